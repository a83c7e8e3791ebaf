"""Weighted examples: cost-sensitive classification as weighted classification."""

from __future__ import annotations

import numpy as np


def weighted_examples(gain: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn what each choice gains over the worst one into examples of the choices.

    A row becomes one example per choice, of the gain as weight. The probability of a choice by a
    calibrated classifier is then proportional to its expected gain, so that the most probable
    choice is the best one.

    Parameters
    ----------
    gain : ndarray of shape (n_rows, n_choices)
        Nonnegative.
    total : float
        Sum of the weights, so that the strength of a penalty does not depend on the unit of gains.

    Returns
    -------
    tuple of three ndarray of shape (n_examples,)
        Rows, choices, and positive weights.

    Examples
    --------
    >>> weighted_examples(np.array([[0.0, 2.0], [6.0, 0.0]]), 2.0)
    (array([0, 1]), array([1, 0]), array([0.5, 1.5]))
    """
    row, choice = np.nonzero(gain > 0)
    weight = gain[row, choice]
    return row, choice, weight * (total / weight.sum()) if len(weight) else weight
