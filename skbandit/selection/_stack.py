"""A non-negative stack of regressors that learn the costs of all ads together.

Wolpert (1992), "Stacked generalization"; Breiman (1996), "Stacked regressions". Self-tuning ridge,
extremely randomized trees, nearest neighbors and partial least squares predict the costs of rows
that they have not seen; non-negative least squares over all ads finds their weights, of what each
adds to the mean cost of the ad. Neighborhoods and components of several sizes are members of their
own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import KFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from skbandit.selection._cost_models import MultiOutputModel, PredictsFromRows, learn_costs
from skbandit.selection._costs import CostMatrix, ad_means, fill_costs
from skbandit.selection._ridge import Linear

N_TREES, MIN_LEAF = 100, 3
"""Number of trees, and rows in their smallest leaf."""

NEIGHBORS = {"neighbors_10": 10, "neighbors_30": 30, "neighbors_100": 100}
"""Members by nearest neighbors, and the sizes of their neighborhoods."""

COMPONENTS = {"pls_2": 2, "pls_5": 5, "pls_10": 10, "pls_20": 20}
"""Members by partial least squares, and their numbers of components; dense rows only."""

N_FOLDS = 5
"""Folds whose rows are predicted by members that learned from the others."""

SEED = 0
"""Seed of the folds and trees: equal data give equal models."""


@dataclass(frozen=True)
class NeighborCosts(PredictsFromRows):
    """Weighted means over the nearest rows.

    Parameters
    ----------
    index : NearestNeighbors
        Fitted to the rows.
    size : int
        Number of neighbors.
    paid, s : ndarray of shape (n, K) and (n,)
        Costs of the rows, and their weights.
    """

    index: Any
    size: int
    paid: np.ndarray
    s: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        near = self.index.kneighbors_graph(X, min(self.size, len(self.s)))
        return near @ (self.s[:, None] * self.paid) / (near @ self.s)[:, None]


@dataclass(frozen=True)
class StackedCosts(PredictsFromRows):
    """Ad means plus the weighted predictions of fitted members.

    Parameters
    ----------
    scaler : StandardScaler
        Applied to rows.
    members : dict of str to cost model
        Those of positive weight, by name.
    weights : dict of str to float
        Weight of each member, not negative.
    means : ndarray of shape (n_ads,)
        Mean cost of each ad.
    """

    scaler: Any
    members: dict[str, Any]
    weights: dict[str, float]
    means: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        rows = self.scaler.transform(X)
        total = np.tile(self.means, (rows.shape[0], 1))
        for name, member in self.members.items():
            total += self.weights[name] * (member.costs(rows) - self.means)
        return total


def fit_stack(
    X: Any, costs: CostMatrix, weight: np.ndarray | None, n_jobs: int | None
) -> StackedCosts:
    """Fit the members and their weights.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, p)
        Rows; dense ones are standardized.
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
    dense = not sp.issparse(X)
    scaler = StandardScaler(with_mean=dense, with_std=dense).fit(X, sample_weight=s)
    rows = scaler.transform(X)
    weights = _weigh(rows, F, s, n_jobs)
    names = tuple(name for name, weight in weights.items() if weight > 0.0)
    members = fit_members(rows, F, s, n_jobs, names)
    return StackedCosts(scaler, members, weights, ad_means(F, s))


def fit_members(
    X: Any, costs: np.ndarray, s: np.ndarray, n_jobs: int | None, names: tuple[str, ...]
) -> dict[str, Any]:
    """Fit the named members to costs, nan where not observed.

    Ridge learns each ad from its own rows. The others need complete costs: those missing are filled
    in by ridge and the row's other ads.
    """
    means = ad_means(costs, s)
    known = np.where(np.isnan(costs).all(axis=0), means, costs)
    members: dict[str, Any] = {}
    if "ridge" in names or np.isnan(known).any():
        members["ridge"] = learn_costs(
            None, X, CostMatrix(known, None, np.arange(len(means))), s, None
        )
    if np.isnan(known).any():
        known = fill_costs(known, members["ridge"].costs(X))
    if "extra_trees" in names:
        forest = ExtraTreesRegressor(
            N_TREES, min_samples_leaf=MIN_LEAF, random_state=SEED, n_jobs=n_jobs
        )
        target = known if known.shape[1] > 1 else known.ravel()
        members["extra_trees"] = MultiOutputModel(forest.fit(X, target, s))
    index = NearestNeighbors().fit(X)
    for name, size in NEIGHBORS.items():
        members[name] = NeighborCosts(index, size, known, s)
    if not COMPONENTS.keys().isdisjoint(names):
        members |= _fit_pls(X, known, s)
    return {name: members[name] for name in names}


def _fit_pls(X: np.ndarray, costs: np.ndarray, s: np.ndarray) -> dict[str, Linear]:
    """Partial least squares of all numbers of components, from one fit."""
    center, means, root = s @ X / s.sum(), s @ costs / s.sum(), np.sqrt(s)[:, None]
    A, Y = root * (X - center), root * (costs - means)
    # rows and their mirror images: scikit-learn centers columns without weights
    A, Y = np.concatenate([A, -A]), np.concatenate([Y, -Y])
    most = max(1, min(max(COMPONENTS.values()), np.linalg.matrix_rank(A)))
    with warnings.catch_warnings(action="ignore"):  # costs may be explained by fewer components
        pls = PLSRegression(most, scale=False).fit(A, Y)
    models = {}
    for name, k in COMPONENTS.items():
        coef = pls.x_rotations_[:, :k] @ pls.y_loadings_[:, :k].T
        models[name] = Linear(np.ascontiguousarray(np.vstack([coef, means - center @ coef])))
    return models


def _weigh(rows: Any, F: np.ndarray, s: np.ndarray, n_jobs: int | None) -> dict[str, float]:
    """Weights of the members, by their predictions of rows that they have not seen."""
    linear = () if sp.issparse(rows) else tuple(COMPONENTS)
    names = ("ridge", "extra_trees", *NEIGHBORS, *linear)
    if len(F) < 2 * N_FOLDS:  # too few to tell: ridge, with its own cross-validation
        return {name: float(name == "ridge") for name in names}
    residual, predicted = np.empty_like(F), np.empty((len(names), *F.shape))
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=SEED).split(F):
        means = ad_means(F[train], s[train])
        members = fit_members(rows[train], F[train], s[train], n_jobs, names)
        residual[test] = F[test] - means
        for k, member in enumerate(members.values()):
            predicted[k, test] = member.costs(rows[test]) - means
    return dict(zip(names, stack_weights(predicted, residual, s).tolist(), strict=True))


def stack_weights(predicted: np.ndarray, F: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Non-negative weights w that minimize sum s_i (F_ia - sum_k w_k P_kia)^2 where F is observed.

    Parameters
    ----------
    predicted : ndarray of shape (n_members, n, K)
        P.
    F : ndarray of shape (n, K)
        Costs less the means to which the members add; nan where not observed.
    s : ndarray of shape (n,)
        Positive weights.
    """
    seen, root = ~np.isnan(F), np.sqrt(s)[:, None]
    columns = (predicted * root)[:, seen]
    # the same problem with as many rows as members
    d, V = np.linalg.eigh(columns @ columns.T)
    kept = d > d[-1] * len(d) * np.finfo(float).eps
    if not kept.any():
        return np.zeros(len(columns))
    half = np.sqrt(d[kept])[:, None] * V[:, kept].T
    return nnls(half, V[:, kept].T @ (columns @ (F * root)[seen]) / np.sqrt(d[kept]))[0]
