"""A non-negative stack of regressors that learn the costs of all ads together.

Wolpert (1992), "Stacked generalization"; Breiman (1996), "Stacked regressions". Self-tuning ridge,
extremely randomized trees, nearest neighbors and partial least squares predict the costs of rows
that they have not seen; non-negative least squares over all ads finds their weights, of what each
adds to the mean cost of the ad. Sizes (of neighborhoods, of components) are those of least error
on the same predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.optimize import nnls
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from skbandit.selection._cost_models import learn_costs
from skbandit.selection._costs import CostMatrix, ad_means, fill_costs
from skbandit.selection._ridge import Linear
from skbandit.utils._fitting import report_progress
from skbandit.utils._folds import splits_of_all_rows
from skbandit.utils._validation import called_by, warn

NEGLIGIBLE = 1e-12
"""Share of the first covariance below which no component is left."""

MEMBERS = ("ridge", "extra_trees", "neighbors", "pls")
"""Names of the members."""

N_TREES, MIN_LEAF = 100, 3
"""Number of trees, and rows in their smallest leaf."""

NEIGHBORS = (10, 30, 100)
"""Sizes of neighborhoods to choose from."""

COMPONENTS = (2, 5, 10, 20)
"""Numbers of components to choose from."""

COMPARED_ROWS, MIN_COMPARED_ROWS = 1000, 200
"""Largest and smallest numbers of rows on which ridge is compared with trees."""

WORTH_TELLING = 0.1
"""Share of the squared error of ridge that trees must save for a warning."""

SEED = 0
"""Seed of the folds and trees: equal data give equal models."""

N_FOLDS = 5
"""Folds whose rows are predicted by members that learned from the others."""


def partial_least_squares(
    X: Any, Y: np.ndarray, s: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Directions and loadings: with k components the coefficients are ``R[:, :k] @ Q[:, :k].T``.

    Parameters
    ----------
    X : {ndarray, sparse array} of shape (n, p)
        Rows, centered or not.
    Y : ndarray of shape (n, K)
        Costs; those of each column are centered here.
    s : ndarray of shape (n,)
        Positive weights.
    n_components : int
        Largest number of components.

    Returns
    -------
    R : ndarray of shape (p, k)
        Directions; their scores have the weighted sum of squares 1. k is smaller than
        `n_components` if no more directions covary with the costs.
    Q : ndarray of shape (K, k)
        Loadings of the costs.
    """
    center = X.T @ s / s.sum()
    Y = Y - s @ Y / s.sum()
    weighted = Y * s[:, None]
    left = np.asarray(X.T @ weighted)
    p, n_ads = left.shape
    R, P, Q = np.zeros((p, n_components)), np.zeros((p, n_components)), np.zeros((n_ads, 0))
    first = 0.0
    for k in range(n_components):
        wide = p <= n_ads
        gram = left @ left.T if wide else left.T @ left
        value, vector = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])
        r = vector[:, 0] if wide else left @ vector[:, 0]  # the first left singular vector
        length, size = np.linalg.norm(r), float(np.sqrt(max(value[0], 0.0)))
        r, first = (r / length if length > 0.0 else r), first or size
        scores = X @ r - center @ r
        norm = np.sqrt(s @ scores**2)
        if size <= NEGLIGIBLE * first or norm <= 0.0:
            return R[:, :k], Q
        scores, r = scores / norm, r / norm
        direction = X.T @ (s * scores) - center * (s @ scores)
        direction = direction - P[:, :k] @ (P[:, :k].T @ direction)
        direction = direction / np.linalg.norm(direction)
        left = left - np.outer(direction, direction @ left)
        left -= P[:, :k] @ (P[:, :k].T @ left)  # against rounding errors
        R[:, k], P[:, k] = r, direction
        Q = np.column_stack([Q, weighted.T @ scores])
    return R, Q


Member = Callable[[Any], list[np.ndarray]]
"""A fitted member: maps rows to costs less the ad means, (n, K) for each size."""


def _less_means(costs: Callable[[Any], np.ndarray], means: np.ndarray, X: Any) -> list[np.ndarray]:
    """Costs less the ad means, in the only size of self-tuning ridge and of trees."""
    return [costs(X).reshape(X.shape[0], -1) - means]


def _means_of_neighbors(
    index: NearestNeighbors, values: np.ndarray, s: np.ndarray, X: Any
) -> list[np.ndarray]:
    """Means of `values` (n, K), with weights s, over the neighborhoods of each size."""
    n = len(values)
    nearest = index.kneighbors(X, min(NEIGHBORS[-1], n), return_distance=False)
    predictions, start = [], 0
    total, weight = np.zeros((X.shape[0], values.shape[1])), np.zeros(X.shape[0])
    for size in NEIGHBORS:
        for column in nearest[:, start:size].T:
            total += s[column, None] * values[column]
            weight += s[column]
        predictions.append(total / weight[:, None])
        start = size
    return predictions


def _by_components(center: np.ndarray, R: np.ndarray, Q: np.ndarray, X: Any) -> list[np.ndarray]:
    """Predictions of `partial_least_squares` with each number of components."""
    scores = X @ R - center @ R
    return [scores[:, :k] @ Q[:, :k].T for k in COMPONENTS]


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
    targets = np.where(np.isnan(costs).all(axis=0), means, costs)
    ridge = learn_costs(None, X, CostMatrix(targets, None, np.arange(len(means))), s, None)
    assert isinstance(ridge, Linear)
    complete = fill_costs(targets, ridge.costs(X)) if np.isnan(targets).any() else targets
    members: list[Member] = []
    for name in which:
        if name == "ridge":
            members.append(partial(_less_means, ridge.costs, means))
        elif name == "extra_trees":
            forest = ExtraTreesRegressor(
                N_TREES, min_samples_leaf=MIN_LEAF, random_state=SEED, n_jobs=n_jobs
            )
            target = complete if complete.shape[1] > 1 else complete.ravel()
            members.append(partial(_less_means, forest.fit(X, target, s).predict, means))
        elif name == "neighbors":
            index = NearestNeighbors().fit(X)
            members.append(partial(_means_of_neighbors, index, complete - means, s))
        else:
            R, Q = partial_least_squares(X, complete, s, COMPONENTS[-1])
            members.append(partial(_by_components, np.asarray(X.T @ s) / s.sum(), R, Q))
    return members


def _scaled(X: Any, scaling: StandardScaler | None) -> Any:
    """Rows as float64: sparse ones keep their units."""
    if scaling is None:
        return sp.csr_array(X, dtype=np.float64)
    return scaling.transform(X.astype(float))


@dataclass(frozen=True)
class StackedCosts:
    """Ad means plus the weighted predictions of fitted members.

    Parameters
    ----------
    scaling : StandardScaler or None
        Applied to dense rows.
    members : dict of str to Member
        Those of positive weight, by name.
    sizes : dict of str to int
        Position of the size to use of each member.
    weights : dict of str to float
        Weight of each member, not negative.
    means : ndarray of shape (n_ads,)
        Mean cost of each ad.
    """

    scaling: StandardScaler | None
    members: dict[str, Member]
    sizes: dict[str, int]
    weights: dict[str, float]
    means: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        rows = _scaled(X, self.scaling)
        total = np.tile(self.means, (rows.shape[0], 1))
        for name, member in self.members.items():
            total += self.weights[name] * member(rows)[self.sizes[name]]
        return total


def fit_stack(
    X: Any, costs: CostMatrix, weight: np.ndarray | None, n_jobs: int | None, verbose: bool = False
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
    verbose : bool
        Report each fold.

    Returns
    -------
    StackedCosts
    """
    s = np.ones(costs.shape[0]) if weight is None else weight
    F = costs.dense().astype(float)
    scaling = None if sp.issparse(X) else StandardScaler().fit(X.astype(float), sample_weight=s)
    rows = _scaled(X, scaling)
    sizes, weights = _weigh(rows, F, s, n_jobs, verbose)
    used = tuple(name for name in MEMBERS if weights[name] > 0.0)
    members = dict(zip(used, fit_members(rows, F, s, n_jobs, used), strict=True))
    return StackedCosts(scaling, members, sizes, weights, ad_means(F, s))


def warn_of_better_trees(X: Any, costs: CostMatrix, weight: np.ndarray | None) -> None:
    """Warn if trees predict the costs of rows left out clearly better than ridge does.

    Both learn from half of at most `COMPARED_ROWS` rows, and predict the other half. Equal rows are
    in the same half. Nothing is said within the fits of other estimators of this package, which are
    many and of some of the rows only.
    """
    n = min(costs.shape[0], COMPARED_ROWS)
    if sp.issparse(X) or n < MIN_COMPARED_ROWS or called_by("constrained", "logged"):
        return
    sample = np.random.default_rng(SEED).permutation(costs.shape[0])[:n]
    rows, F = X[sample], costs.of_rows(sample).dense().astype(float)
    s = np.ones(n) if weight is None else weight[sample]
    train, test = splits_of_all_rows(2, rows, F, SEED)[0]
    scaling = StandardScaler().fit(rows[train].astype(float), sample_weight=s[train])
    rows = _scaled(rows, scaling)
    members = fit_members(rows[train], F[train], s[train], None, ("ridge", "extra_trees"))
    left = F[test] - ad_means(F[train], s[train])
    ridge, trees = (np.nansum((left - member(rows[test])[0]) ** 2, axis=1) for member in members)
    gain = ridge - trees
    clear = gain.mean() > 3.0 * gain.std() / np.sqrt(len(test))
    if clear and gain.mean() > WORTH_TELLING * ridge.mean():
        warn(
            f"Trees predict the costs of rows left out with {gain.mean() / ridge.mean():.0%} less "
            'squared error than the default ridge: try RegressionSetSelector("stack"), or pass a '
            "regressor such as ExtraTreesRegressor().",
            UserWarning,
        )


def stack_weights(predictions: np.ndarray, F: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Non-negative weights w that minimize sum s_i (F_ia - sum_k w_k P_kia)^2 where F is observed.

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
    rows: Any, F: np.ndarray, s: np.ndarray, n_jobs: int | None, verbose: bool = False
) -> tuple[dict[str, int], dict[str, float]]:
    """Sizes and weights of the members, by their predictions of rows that they have not seen."""
    if len(F) < 2 * N_FOLDS:  # too few to tell: ridge, with its own cross-validation
        return dict.fromkeys(MEMBERS, 0), {name: float(name == "ridge") for name in MEMBERS}
    unseen: list[list[np.ndarray]] = [[] for _ in MEMBERS]
    left = np.empty_like(F)
    for k, (train, test) in enumerate(splits_of_all_rows(N_FOLDS, rows, F, SEED)):
        if verbose:
            report_progress(f"[RegressionSetSelector] fold {k + 1} of {N_FOLDS}: {len(train)} rows")
        left[test] = F[test] - ad_means(F[train], s[train])
        for sizes, member in zip(
            unseen, fit_members(rows[train], F[train], s[train], n_jobs), strict=True
        ):
            predictions = member(rows[test])
            sizes.extend(np.empty_like(F) for _ in predictions[len(sizes) :])
            for whole, part in zip(sizes, predictions, strict=True):
                whole[test] = part
    errors = [[s @ np.nansum((left - P) ** 2, axis=1) for P in sizes] for sizes in unseen]
    best = [int(np.argmin(of_member)) for of_member in errors]
    chosen = np.stack([sizes[k] for sizes, k in zip(unseen, best, strict=True)])
    weights = stack_weights(chosen, left, s)
    return dict(zip(MEMBERS, best, strict=True)), dict(zip(MEMBERS, weights.tolist(), strict=True))
