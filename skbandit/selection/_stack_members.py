"""The members of the stack: regressors that learn the costs of all ads together.

Each predicts costs less the mean cost of the ad, once for each of its sizes (of neighbourhoods, of
components), so that sizes are compared after one fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import NearestNeighbors

from skbandit.selection._cost_models import learn_costs
from skbandit.selection._costs import CostMatrix
from skbandit.selection._fill_costs import ad_means, filled
from skbandit.selection._pls import partial_least_squares
from skbandit.selection._ridge import Linear

MEMBERS = ("ridge", "extra_trees", "neighbors", "pls")
"""Names of the members."""

N_TREES, MIN_LEAF = 100, 3
"""Number of trees, and rows in their smallest leaf."""

NEIGHBORS = (10, 30, 100)
"""Sizes of neighbourhoods to choose from."""

COMPONENTS = (2, 5, 10, 20)
"""Numbers of components to choose from."""

SEED = 0
"""Seed of the folds and trees: equal data give equal models."""


class Member(Protocol):
    """A fitted member."""

    def predict(self, X: Any) -> list[np.ndarray]:
        """Costs less the ad means, (n, K) for each size."""
        ...


@dataclass(frozen=True)
class RidgeMember:
    """Self-tuning ridge, which learns each ad from its own rows."""

    model: Linear
    means: np.ndarray

    def predict(self, X: Any) -> list[np.ndarray]:
        """Costs less the ad means, in the only size."""
        return [self.model.costs(X) - self.means]


@dataclass(frozen=True)
class TreesMember:
    """Extremely randomised trees over all ads."""

    forest: Any
    means: np.ndarray

    def predict(self, X: Any) -> list[np.ndarray]:
        """Costs less the ad means, in the only size."""
        return [self.forest.predict(X).reshape(X.shape[0], -1) - self.means]


@dataclass(frozen=True)
class NeighborsMember:
    """Weighted means over the nearest rows.

    Parameters
    ----------
    index : NearestNeighbors
        Fitted to the rows.
    values, s : ndarray of shape (n, K) and (n,)
        Costs of the rows less the ad means, and their weights.
    """

    index: Any
    values: np.ndarray
    s: np.ndarray

    def predict(self, X: Any) -> list[np.ndarray]:
        """Means over the neighbourhoods of each size."""
        n = len(self.values)
        nearest = self.index.kneighbors(X, min(NEIGHBORS[-1], n), return_distance=False)
        found, start = [], 0
        total = np.zeros((X.shape[0], self.values.shape[1]))
        weight = np.zeros(X.shape[0])
        for size in NEIGHBORS:
            for column in nearest[:, start:size].T:
                total += self.s[column, None] * self.values[column]
                weight += self.s[column]
            found.append(total / weight[:, None])
            start = size
        return found


@dataclass(frozen=True)
class PlsMember:
    """Partial least squares.

    Parameters
    ----------
    centre, R, Q : ndarray of shape (p,), (p, k) and (K, k)
        The score of a row on component j, its j-th factor, is ``(x - centre) @ R[:, j]``.
    """

    centre: np.ndarray
    R: np.ndarray
    Q: np.ndarray

    def predict(self, X: Any) -> list[np.ndarray]:
        """Costs less the ad means, with each number of components."""
        scores = X @ self.R - self.centre @ self.R
        return [scores[:, :k] @ self.Q[:, :k].T for k in COMPONENTS]


def fit_members(
    X: Any, costs: np.ndarray, s: np.ndarray, n_jobs: int | None, which: tuple[str, ...] = MEMBERS
) -> list[Member]:
    """Fit the named members.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, p)
        Rows.
    costs : ndarray of shape (n, K)
        nan where not observed. Joint learners get those filled in by ridge and the row's other
        ads; ridge needs no such costs.
    s : ndarray of shape (n,)
        Positive weights.
    n_jobs : int or None
        Number of trees grown in parallel.
    which : tuple of str
        Names of members, in the order of `MEMBERS`.

    Returns
    -------
    list of Member
    """
    means = ad_means(costs, s)
    known = np.where(np.isnan(costs).all(axis=0), means, costs)
    ridge = learn_costs(None, X, CostMatrix(known, None, np.arange(len(means))), s, None)
    assert isinstance(ridge, Linear)
    complete = filled(known, ridge.costs(X)) if np.isnan(known).any() else known
    members: list[Member] = []
    for name in which:
        if name == "ridge":
            members.append(RidgeMember(ridge, means))
        elif name == "extra_trees":
            forest = ExtraTreesRegressor(
                N_TREES, min_samples_leaf=MIN_LEAF, random_state=SEED, n_jobs=n_jobs
            )
            target = complete if complete.shape[1] > 1 else complete.ravel()
            members.append(TreesMember(forest.fit(X, target, s), means))
        elif name == "neighbors":
            members.append(NeighborsMember(NearestNeighbors().fit(X), complete - means, s))
        else:
            R, Q = partial_least_squares(X, complete, s, COMPONENTS[-1])
            members.append(PlsMember(np.asarray(X.T @ s) / s.sum(), R, Q))
    return members
