"""Cost-sensitive classification by weighted examples, for any classifier that takes weights.

A row x with rewards R_a for all arms becomes one example (x, a) per arm, of weight R_a - min R.
Then P(a|x) of a calibrated classifier is proportional to the expected weight, E[R_a|x] minus a term
that is the same for all arms, so that its most probable arm is the best one. Rewards may be noisy
estimates of any sign; those by inverse propensities have one example per event of positive reward.

Where arm a is available in a share f_a of the rows only, its weights are divided by f_a, as P(a|x)
would be proportional to f_a, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class WeightedExamples:
    """Examples of a classifier."""

    row: np.ndarray  # (n_examples,)
    arm: np.ndarray  # (n_examples,)
    weight: np.ndarray  # (n_examples,), positive


def weighted_examples(
    rewards: np.ndarray, allowed: np.ndarray, row_weight: np.ndarray
) -> WeightedExamples:
    """Turn estimated rewards into examples.

    Parameters
    ----------
    rewards : ndarray of shape (n_rows, n_arms)
        Estimated rewards R; those of arms that are not allowed are ignored.
    allowed : ndarray of bool, shape (n_rows, n_arms)
        Available arms, at least one per row.
    row_weight : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    WeightedExamples
        Their weights add up to those of the rows, so that the strength of a classifier's penalty
        does not depend on the unit of the rewards.
    """
    lowest = np.where(allowed, rewards, np.inf).min(axis=1)
    excess = np.where(allowed, rewards - lowest[:, None], 0.0) * row_weight[:, None]
    total = row_weight.sum()
    share = row_weight @ allowed / total if total > 0 else np.ones(allowed.shape[1])
    excess = excess / np.where(share > 0, share, 1.0)
    row, arm = np.nonzero(excess > 0)
    weight = excess[row, arm]
    return WeightedExamples(row, arm, weight * (total / weight.sum()) if len(weight) else weight)
