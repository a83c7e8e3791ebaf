"""A non-negative stack of regressors that learn the costs of all ads together.

Wolpert (1992), "Stacked generalization"; Breiman (1996), "Stacked regressions". Self-tuning ridge,
extremely randomised trees, nearest neighbours and partial least squares predict the costs of rows
that they have not seen; non-negative least squares over all ads finds their weights, of what each
adds to the mean cost of the ad. Sizes (of neighbourhoods, of components) are those of least error
on the same predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.model_selection import KFold

from skbandit.selection._cost_models import PredictsFromRows
from skbandit.selection._costs import CostMatrix
from skbandit.selection._fill_costs import ad_means
from skbandit.selection._stack_members import MEMBERS, SEED, Member, fit_members

N_FOLDS = 5
"""Folds whose rows are predicted by members that learned from the others."""


@dataclass(frozen=True)
class Scaling:
    """Columns in units of their standard deviation; dense ones are centred, too."""

    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X: Any, s: np.ndarray) -> Scaling:
        """The scaling of rows with weights s; sparse rows keep their units."""
        if sp.issparse(X):
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        centre = s @ X / s.sum()
        deviation = np.sqrt(s @ (X - centre) ** 2 / s.sum())
        constant = deviation <= np.finfo(X.dtype).eps * np.abs(centre)
        return cls(centre, np.where(constant, 1.0, deviation))

    def of_rows(self, X: Any) -> Any:
        """Scaled rows, as float64."""
        if sp.issparse(X):
            return sp.csr_array(X, dtype=np.float64)
        return (X - self.centre) / self.scale


@dataclass(frozen=True)
class StackedCosts(PredictsFromRows):
    """Ad means plus the weighted predictions of fitted members.

    Parameters
    ----------
    scaling : Scaling
        Applied to rows.
    members : dict of str to Member
        Those of positive weight, by name.
    sizes : dict of str to int
        Position of the size to use of each member.
    weights : dict of str to float
        Weight of each member, not negative.
    means : ndarray of shape (n_ads,)
        Mean cost of each ad.
    """

    scaling: Scaling
    members: dict[str, Member]
    sizes: dict[str, int]
    weights: dict[str, float]
    means: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        rows = self.scaling.of_rows(X)
        total = np.tile(self.means, (rows.shape[0], 1))
        for name, member in self.members.items():
            total += self.weights[name] * member.predict(rows)[self.sizes[name]]
        return total


def fit_stack(
    X: Any, costs: CostMatrix, weight: np.ndarray | None, n_jobs: int | None
) -> StackedCosts:
    """Fit the members and their weights.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, p)
        Rows.
    costs : CostMatrix
        Costs of these rows, observed or not.
    weight : ndarray of shape (n,) or None
        Positive row weights.
    n_jobs : int or None
        Number of trees grown in parallel.

    Returns
    -------
    StackedCosts
    """
    s = np.ones(costs.shape[0]) if weight is None else weight
    F = costs.dense().astype(float)
    scaling = Scaling.of(X, s)
    rows = scaling.of_rows(X)
    sizes, weights = _weigh(rows, F, s, n_jobs)
    used = tuple(name for name in MEMBERS if weights[name] > 0.0)
    members = dict(zip(used, fit_members(rows, F, s, n_jobs, used), strict=True))
    return StackedCosts(scaling, members, sizes, weights, ad_means(F, s))


def stack_weights(predictions: np.ndarray, F: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Non-negative weights w that minimise sum s_i (F_ia - sum_k w_k P_kia)^2 where F is observed.

    Parameters
    ----------
    predictions : ndarray of shape (n_members, n, K)
        P.
    F : ndarray of shape (n, K)
        Costs less the means to which the members add; nan where not observed.
    s : ndarray of shape (n,)
        Positive weights.
    """
    seen = ~np.isnan(F)
    root = np.sqrt(s)[:, None]
    columns = np.stack([np.where(seen, P * root, 0.0).ravel() for P in predictions])
    target = np.where(seen, F * root, 0.0).ravel()
    # the same problem with as many rows as members
    d, V = np.linalg.eigh(columns @ columns.T)
    kept = d > d[-1] * len(d) * np.finfo(float).eps
    half = np.sqrt(d[kept])[:, None] * V[:, kept].T
    if not kept.any():
        return np.zeros(len(columns))
    return nnls(half, V[:, kept].T @ (columns @ target) / np.sqrt(d[kept]))[0]


def _weigh(
    rows: Any, F: np.ndarray, s: np.ndarray, n_jobs: int | None
) -> tuple[dict[str, int], dict[str, float]]:
    """Sizes and weights of the members, by their predictions of rows that they have not seen."""
    if len(F) < 2 * N_FOLDS:  # too few to tell: ridge, with its own cross-validation
        return dict.fromkeys(MEMBERS, 0), {name: float(name == "ridge") for name in MEMBERS}
    unseen: list[list[np.ndarray]] = [[] for _ in MEMBERS]
    left = np.empty_like(F)
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=SEED).split(F):
        left[test] = F[test] - ad_means(F[train], s[train])
        for sizes, member in zip(
            unseen, fit_members(rows[train], F[train], s[train], n_jobs), strict=True
        ):
            found = member.predict(rows[test])
            sizes.extend(np.empty_like(F) for _ in found[len(sizes) :])
            for whole, part in zip(sizes, found, strict=True):
                whole[test] = part
    errors = [[s @ np.nansum((left - P) ** 2, axis=1) for P in sizes] for sizes in unseen]
    best = [int(np.argmin(of_member)) for of_member in errors]
    chosen = np.stack([sizes[k] for sizes, k in zip(unseen, best, strict=True)])
    weights = stack_weights(chosen, left, s)
    return dict(zip(MEMBERS, best, strict=True)), dict(zip(MEMBERS, weights.tolist(), strict=True))
