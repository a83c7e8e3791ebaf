"""One model of the costs of all ads, by their features: new ads can be chosen.

Ridge regression is bilinear: costs x'Wz of ads with features z, plus an effect per ad. Any other
regressor is fitted to a long table of (row, ad) pairs, with the features of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.linalg import eigh, svd
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, gen_batches

from skbandit.selection._cost_models import fit_to_costs, predict_finite
from skbandit.selection._costs import CostMatrix, append_columns, index_labels
from skbandit.selection._m_lowest import BLOCK_BYTES
from skbandit.selection._ridge import Linear, NormalEquations
from skbandit.utils._exact import exact_table
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import first_few, warn

CG_TOL = 1e-10
"""Norm of the residual, relative to the right-hand side, at which conjugate gradients stop."""

CG_MAX_ITER = 500
"""Largest number of steps of conjugate gradients; beyond it, a ConvergenceWarning is raised."""

PREDICTED_PAIRS = 2**18
"""Number of pairs per call of `predict`; more are predicted in several calls."""


@dataclass(frozen=True)
class AdFeatures:
    """Features of labeled ads.

    Parameters
    ----------
    ads : ndarray of shape (n_ads,)
        Labels: the index of a DataFrame, otherwise 0, 1, ...
    table : DataFrame or ndarray with n_ads rows
        Features, as passed by the user.
    """

    ads: np.ndarray
    table: Any

    def positions_of(self, ads: np.ndarray) -> np.ndarray:
        """Row of each of the given ads, -1 if it is not described."""
        position = {ad: k for k, ad in enumerate(self.ads.tolist())}
        return np.array([position.get(ad, -1) for ad in ads.tolist()], dtype=np.intp)

    def of_ads(self, ads: np.ndarray) -> AdFeatures:
        """Features of the given ads, all of which must be described."""
        positions = self.positions_of(ads)
        missing = ads[positions < 0]
        if len(missing):
            raise ValueError(
                f"ad_features has no row for ad {first_few(missing)}: the index of a DataFrame "
                "names the ads. Cross-validation slices a table that happens to have as many rows "
                "as X: to prevent that, pass (ad_features,), a tuple."
            )
        return AdFeatures(ads, rows_of(self.table, positions))

    def numbers(self) -> np.ndarray:
        """Return the features as float64, shape (n_ads, n_ad_features)."""
        try:
            return check_array(self.table, dtype=np.float64, input_name="ad_features")
        except ValueError as error:
            if "convert string" not in str(error):
                raise
            raise ValueError(
                f"ad_features must hold numbers ({error}): encode the others, for example by "
                "pandas.get_dummies(ad_features)."
            ) from error


def read_ad_features(ad_features: Any) -> AdFeatures:
    """Read a DataFrame, an array whose rows are the ads 0, 1, ..., or a tuple of one of these."""
    table = exact_table(ad_features[0] if isinstance(ad_features, tuple) else ad_features)
    if sp.issparse(table):
        raise TypeError("ad_features must not be sparse: pass ad_features.toarray().")
    if not hasattr(table, "ndim"):
        table = check_array(table, dtype=None, input_name="ad_features")
    if np.ndim(table) != 2:
        raise ValueError(
            f"ad_features must be a table with one row per ad, got {np.ndim(table)} dimensions."
        )
    names = list(getattr(table, "columns", ()))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"ad_features has the column {twice!r} more than once: rename one.")
    index = getattr(table, "index", None)
    if index is None:
        return AdFeatures(np.arange(len(table)), check_array(table))
    repeated = index[index.duplicated()]
    if len(repeated):
        raise ValueError(
            f"ad_features describes ad {first_few(index_labels(repeated))} more than once."
        )
    return AdFeatures(index_labels(index), table)


# --- bilinear ridge regression ---------------------------------------------------------


@dataclass(frozen=True)
class Bilinear:
    """Costs ``[x, 1]' (W [1, z - center] + u_a)``, with u_a = 0 for ads unseen in training.

    Parameters
    ----------
    W : ndarray of shape (n_features + 1, n_ad_features + 1)
        Weights shared by all ads, including the mean cost.
    ad_effects : ndarray of shape (n_features + 1, n_ads)
        u of the ads seen in training.
    center : ndarray of shape (n_ad_features,)
        Mean of z over these ads.
    alpha : float
        Penalty.
    """

    W: np.ndarray
    ad_effects: np.ndarray
    center: np.ndarray
    alpha: float

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> Linear:
        """Return the costs of given ads, as a model linear in x.

        Parameters
        ----------
        features : AdFeatures
            Features of n_new_ads ads.
        seen : ndarray of intp, shape (n_new_ads,)
            Position of each ad in training, -1 if unseen.
        """
        weights = self.W @ np.insert(features.numbers() - self.center, 0, 1.0, axis=1).T
        weights[:, seen >= 0] += self.ad_effects[:, seen[seen >= 0]]
        return Linear(np.ascontiguousarray(weights), self.alpha)


def fit_bilinear(
    equations: NormalEquations, costs: CostMatrix, Z: np.ndarray, alpha: float, ad_effect: float
) -> Bilinear:
    """Fit the bilinear model with an effect per ad.

    With A = [X - mean, 1], z~ = [1, z - center] and the mean cost c, the objective is

        sum_ia s_i (f_ia - c - A_i'(W z~_a + u_a))^2 + alpha (||W||^2 + ||U||^2 / ad_effect).

    The weights B = W Z~' + U of the ads then minimize the same loss with the penalty
    alpha tr(B K^-1 B'), K = Z~Z~' + ad_effect I, and W = B K^-1 Z~. If all costs are observed, the
    eigenvectors and eigenvalues V, mu of K and Q, d of A'SA separate the problem into one division
    per entry: Q'BV is Q'A'S(F - c)V / (d + alpha / mu). Otherwise conjugate gradients are
    preconditioned by this solution.

    Parameters
    ----------
    equations : NormalEquations
        A and S.
    costs : CostMatrix
        Costs of the same rows.
    Z : ndarray of shape (n_ads, n_ad_features)
        Features of the ads, in the order of `costs`.
    alpha : float
        Penalty.
    ad_effect : float
        Variance of the weights u of an ad relative to that of W; at 0, u is 0.

    Returns
    -------
    Bilinear
    """
    center = Z.mean(axis=0)
    kernel = _Kernel.of(np.insert(Z - center, 0, 1.0, axis=1), ad_effect)
    complete = bool((costs.n_observed() == costs.shape[0]).all())
    sums = np.broadcast_to(equations.gram[:, -1:], (len(equations.gram), len(Z)))
    if not complete:
        sums = _over_blocks(equations, costs, lambda rows, seen: seen)
    right = equations.right_hand_sides(costs)
    mean = right[-1].sum() / sums[-1].sum()
    center_rows, of_centered = _centering(equations.gram)
    right = center_rows(right - mean * sums)

    d, Q = eigh(center_rows(center_rows(equations.gram).T))
    observed = sums[-1].mean() / equations.gram[-1, -1]

    def solve_complete(R: np.ndarray) -> np.ndarray:
        return Q @ kernel.divide(Q.T @ R, observed * d, alpha)

    def normal(B: np.ndarray) -> np.ndarray:
        predicted = _over_blocks(
            equations,
            costs,
            lambda rows, seen: seen * (equations.design[rows] @ of_centered(B)),
        )
        return kernel.inside(center_rows(predicted)) + alpha * kernel.solve(B)

    B = solve_complete(right)
    if not complete:
        B = _conjugate_gradients(normal, kernel.inside(right), solve_complete)
    W = kernel.shared(B)
    U = B - W @ kernel.features.T
    W, U = (equations.for_X(of_centered(part)).weights for part in (W, U))
    W[-1, 0] += mean
    return Bilinear(W, U, center, float(alpha))


def _centering(
    gram: np.ndarray,
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """T' and T for which A T has columns of mean 0, but for the last one of ones.

    Sparse rows are not centered themselves; for dense ones, T is 1 up to rounding.
    """
    m = gram[:-1, -1] / gram[-1, -1]
    return (
        lambda R: np.vstack([R[:-1] - np.outer(m, R[-1]), R[-1:]]),
        lambda B: np.vstack([B[:-1], B[-1:] - m @ B[:-1]]),
    )


@dataclass(frozen=True)
class _Kernel:
    """K = Z~Z~' + ad_effect I, in terms of the singular values of Z~ = V diag(size) R.

    Parameters
    ----------
    features : ndarray of shape (n_ads, n_ad_features + 1)
        Z~.
    V : ndarray of shape (n_ads, rank)
        Eigenvectors of K in the span of Z~; on their orthogonal complement, K is ad_effect I.
    size : ndarray of shape (rank,)
        Singular values.
    R : ndarray of shape (rank, n_ad_features + 1)
        Right singular vectors.
    ad_effect : float
        At 0, solutions are confined to the span.
    """

    features: np.ndarray
    V: np.ndarray
    size: np.ndarray
    R: np.ndarray
    ad_effect: float

    @classmethod
    def of(cls, features: np.ndarray, ad_effect: float) -> _Kernel:
        """Decompose Z~."""
        V, size, R = svd(features, full_matrices=False)
        kept = size > max(features.shape) * np.finfo(float).eps * size[0]
        return cls(features, V[:, kept], size[kept], R[kept], ad_effect)

    @property
    def mu(self) -> np.ndarray:
        """Eigenvalues of K in the span of Z~."""
        return self.size**2 + self.ad_effect

    def divide(self, R: np.ndarray, d: np.ndarray, alpha: float) -> np.ndarray:
        """B with d_j B_jk + alpha B_jk / mu_k = R_jk, where k indexes the eigenbasis of K."""
        inside = R @ self.V
        B = _quotient(inside, d[:, None] + alpha / self.mu) @ self.V.T
        if self.ad_effect > 0:
            outside = R - inside @ self.V.T
            B += _quotient(outside, d[:, None] + alpha / self.ad_effect)
        return B

    def solve(self, B: np.ndarray) -> np.ndarray:
        """B K^-1; restricted to the span if ad_effect is 0."""
        inside = B @ self.V
        solution = (inside / self.mu) @ self.V.T
        if self.ad_effect > 0:
            solution += (B - inside @ self.V.T) / self.ad_effect
        return solution

    def inside(self, R: np.ndarray) -> np.ndarray:
        """Part of R to which solutions are confined: all of it, or the span if ad_effect is 0."""
        return R if self.ad_effect > 0 else (R @ self.V) @ self.V.T

    def shared(self, B: np.ndarray) -> np.ndarray:
        """W = B K^-1 Z~."""
        return (B @ self.V) * (self.size / self.mu) @ self.R


def _over_blocks(
    equations: NormalEquations,
    costs: CostMatrix,
    of_block: Callable[[slice, np.ndarray], np.ndarray],
) -> np.ndarray:
    """A'S T, where `of_block` maps the rows and observed entries of a block to rows of T."""
    total = np.zeros((len(equations.gram), costs.shape[1]))
    for rows in gen_batches(costs.shape[0], max(1, BLOCK_BYTES // (8 * costs.shape[1]))):
        seen = ~np.isnan(costs.of_rows(rows).dense())
        total += equations.weighted[rows].T @ of_block(rows, seen)
    return total


def _conjugate_gradients(
    normal: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Solve normal(B) = right for a matrix B."""
    size = right.size

    def linear(function: Callable[[np.ndarray], np.ndarray]) -> LinearOperator:
        return LinearOperator((size, size), lambda v: function(v.reshape(right.shape)).ravel())

    B, left = cg(
        linear(normal), right.ravel(), rtol=CG_TOL, maxiter=CG_MAX_ITER, M=linear(precondition)
    )
    if left:
        warn(
            f"The bilinear model did not converge in {CG_MAX_ITER} steps: increase alpha.",
            ConvergenceWarning,
        )
    return B.reshape(right.shape)


def _quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Entrywise quotient; 0 where the denominator is 0 up to rounding."""
    tiny = denominator.max(initial=0.0) * np.finfo(float).eps
    return np.divide(
        numerator,
        denominator,
        out=np.zeros_like(numerator),
        where=np.broadcast_to(denominator > tiny, numerator.shape),
    )


# --- any regressor of pairs ------------------------------------------------------------


@dataclass(frozen=True)
class PairCosts:
    """Costs g(x, z_a) + u_a, predicted by a regressor over pairs; u_a = 0 for ads unseen in `fit`.

    Parameters
    ----------
    estimator : object with predict
        g, fitted.
    ad_effects : ndarray of shape (n_ads,)
        u of the ads.
    table : DataFrame or ndarray with n_ads rows
        Features z of the ads.
    """

    estimator: Any
    ad_effects: np.ndarray
    table: Any

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> PairCosts:
        """Return a model of the given ads; `seen` is their positions in training, -1 if unseen."""
        u = np.where(seen >= 0, self.ad_effects[seen], 0.0)
        return PairCosts(self.estimator, u, features.table)

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        n_rows, n_ads = count_rows(X), len(self.ad_effects)
        predicted = np.empty((n_rows, n_ads))
        for block in gen_batches(n_rows, max(1, PREDICTED_PAIRS // n_ads)):
            rows = np.arange(block.start, block.stop)
            pairs = pair_features(
                X, self.table, np.repeat(rows, n_ads), np.tile(np.arange(n_ads), len(rows))
            )
            predicted[block] = predict_finite(self.estimator, pairs).reshape(len(rows), n_ads)
        return predicted + self.ad_effects


def fit_pairs(
    estimator: Any,
    X: Any,
    costs: CostMatrix,
    features: AdFeatures,
    weight: np.ndarray | None,
    ad_effect: float,
) -> PairCosts:
    """Fit a clone to all observed pairs, then the shrunken mean residual of each ad.

    Parameters
    ----------
    estimator : regressor, or classifier with predict_proba
        g.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Rows.
    costs : CostMatrix
        Costs of these rows.
    features : AdFeatures
        Features of the ads, in the order of `costs`.
    weight : ndarray of shape (n_samples,) or None
        Row weights.
    ad_effect : float
        Variance of u relative to that of the noise. With residuals r and weights s of an ad,
        u = ad_effect sum(s r) / (1 + ad_effect sum(s)). At 0, u is 0.

    Returns
    -------
    PairCosts
    """
    observed = [costs.of_ad(j) for j in range(costs.shape[1])]
    rows = np.concatenate([ad_rows for ad_rows, _ in observed])
    paid = np.concatenate([ad_costs for _, ad_costs in observed])
    ads = np.repeat(np.arange(len(observed)), [len(ad_rows) for ad_rows, _ in observed])
    s = None if weight is None else weight[rows]
    pairs = pair_features(X, features.table, rows, ads)
    fitted = fit_to_costs(estimator, pairs, paid, s)
    u = np.zeros(len(observed))
    if ad_effect > 0:
        residual = paid - predict_finite(fitted, pairs)
        s = np.ones(len(rows)) if s is None else s
        size = np.bincount(ads, s, len(u))
        u = ad_effect * np.bincount(ads, s * residual, len(u)) / (1 + ad_effect * size)
    return PairCosts(fitted, u, features.table)


def pair_features(X: Any, table: Any, rows: np.ndarray, ads: np.ndarray) -> Any:
    """Features of pairs: those of the rows, followed by those of the ads.

    The result is a DataFrame if both tables are; their column names must then differ.
    """
    left, right = rows_of(X, rows), rows_of(table, ads)
    if sp.issparse(left):
        return append_columns(left, np.asarray(right, dtype=float))
    if not isinstance(left, pd.DataFrame) or not isinstance(right, pd.DataFrame):
        return np.concatenate([np.asarray(left), np.asarray(right)], axis=1)
    both = [name for name in right.columns if name in set(left.columns)]
    if both:
        raise ValueError(f"X and ad_features both have a column {both[0]!r}: rename one.")
    return pd.concat([left.reset_index(drop=True), right.reset_index(drop=True)], axis=1)
