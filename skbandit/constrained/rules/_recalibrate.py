"""Recalibrated probabilities: a temperature, and a constant per class and group.

With probabilities q of rows out of fold, and labels y,

    p_ik = q_ik^(1/T) exp(c_k + c_gk) / sum_l ...                                              (1)

minimizes the log loss plus RIDGE/2 (|c|^2 + |c_g|^2): a convex problem in 1/T, c and c_g. Trees,
forests and naive Bayes are far too sure, and one temperature mends most of it (Guo et al. 2017);
the constants mend what a class, or a class in one group, is over- or underestimated by. Slopes per
class would be fitted to noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize

RIDGE = 3.0
"""Penalty of squared constants, in rows: a class of few rows keeps a constant near 0."""

SMALLEST = 1e-6
"""Probability that stands for any lower one."""

MOST_FITTED = 6000
"""Rows, evenly, that a recalibration is fitted to."""


@dataclass(frozen=True)
class Recalibration:
    """Temperature and constants that (1) applies to probabilities.

    Attributes
    ----------
    temperature : float
        T: above 1 where the classifier is too sure.
    constants : ndarray of shape (n_groups + 1, L)
        c + c_g of each group, and c, for rows of other groups; 0 of labels that no row has, -inf
        of decisions that are no labels.
    """

    temperature: float
    constants: np.ndarray

    def __call__(self, probability: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
        """Recalibrate rows (n, L) of groups with these codes; rows with nan keep it."""
        row = np.full(len(probability), -1) if group is None else group
        return _softmax(_logarithms(probability) / self.temperature + self.constants[row])

    @classmethod
    def fit(
        cls,
        probability: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        group: np.ndarray | None,
        n_groups: int,
    ) -> Recalibration:
        """Fit (1).

        Parameters
        ----------
        probability : ndarray of shape (n, L)
        label : ndarray of int, shape (n,)
            Column of each row's label; negative where there is none.
        weight : ndarray of shape (n,)
            Nonnegative; its mean counts as a row.
        group : ndarray of int, shape (n,), or None
        n_groups : int
        """
        L = probability.shape[1]
        rows = np.flatnonzero((label >= 0) & (weight > 0) & ~np.isnan(probability).any(axis=1))
        if not len(rows):
            return cls(1.0, np.zeros((n_groups + 1, L)))
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_FITTED)).astype(int)]
        w = weight[rows] / weight[rows].mean()
        possible = probability[rows].any(axis=0)
        seen = possible & (np.bincount(label[rows], minlength=L) > 0)
        logs = np.where(seen, _logarithms(probability[rows]), -np.inf)
        finite = np.where(np.isfinite(logs), logs, 0.0)
        truth = np.eye(L)[label[rows]]
        by_group = group is not None and n_groups > 1
        member = np.eye(n_groups)[group[rows]] if by_group and group is not None else None

        def constants(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return x[1 : 1 + L], x[1 + L :].reshape(-1, L)

        def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
            c, of_group = constants(x)
            logits = x[0] * logs + c
            if member is not None:
                logits = logits + member @ of_group
            p = _softmax(logits)
            of_label = np.maximum((p * truth).sum(axis=1), 1e-300)
            value = -(w @ np.log(of_label)) + 0.5 * RIDGE * (x[1:] @ x[1:])
            over = (p - truth) * w[:, None]
            gradient = [[(over * finite).sum()], over.sum(axis=0)]
            if member is not None:
                gradient.append((member.T @ over).ravel())
            slope = np.concatenate(gradient)
            slope[1:] += RIDGE * x[1:]
            return value / len(rows), slope / len(rows)

        start = np.zeros(1 + L + (n_groups * L if member is not None else 0))
        start[0] = 1.0
        bounds = [(1e-3, None)] + [(None, None)] * (len(start) - 1)
        x = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        c, of_group = constants(x)
        table = np.tile(c, (n_groups + 1, 1))
        if member is not None:
            table[:-1] += of_group
        table[:, ~possible] = -np.inf
        return cls(float(1.0 / x[0]), table)


@dataclass(frozen=True)
class NamedRecalibration:
    """A recalibration as users read it.

    Attributes
    ----------
    temperature : float
        Logarithms of probabilities, of at least 1e-6, are divided by it.
    constants : Series
        Added to them, by class or by group and class; then they are made to add up to 1.
    """

    temperature: float
    constants: pd.Series


def recalibrate(
    probability: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray | None,
    n_groups: int,
    fold: np.ndarray,
) -> tuple[np.ndarray, Recalibration]:
    """Probabilities recalibrated by the rows of other folds, and the recalibration by all rows.

    Parameters as of `Recalibration.fit`; `fold` is a number per row.
    """
    mended = np.full(probability.shape, np.nan)
    for k in np.unique(fold):
        inside = fold == k
        others = np.where(inside, 0.0, weight)
        rule = Recalibration.fit(probability, label, others, group, n_groups)
        mended[inside] = rule(probability[inside], None if group is None else group[inside])
    return mended, Recalibration.fit(probability, label, weight, group, n_groups)


def _logarithms(probability: np.ndarray) -> np.ndarray:
    return np.log(np.clip(probability, SMALLEST, 1.0))


def _softmax(logits: np.ndarray) -> np.ndarray:
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)
