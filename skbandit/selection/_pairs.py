"""One regressor over (row, ad) pairs, fitted to a long table with the features of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import gen_batches

from skbandit.selection._ad_features import AdFeatures
from skbandit.selection._cost_models import PredictsFromRows, fit_to_costs, predict_finite
from skbandit.selection._costs import CostMatrix
from skbandit.utils._sklearn_compat import count_rows, rows_of

PAIRS_PER_CALL = 2**18
"""Number of pairs per call of `predict`; more are predicted in several calls."""


@dataclass(frozen=True)
class PairRegressor:
    """Costs g(x, z_a) + u_a, with u_a = 0 for ads unseen in training.

    Parameters
    ----------
    estimator : object with predict
        g, fitted.
    id_effects : ndarray of shape (n_ads,)
        u of the ads seen in training.
    """

    estimator: Any
    id_effects: np.ndarray

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> PairCosts:
        """A model of the given ads; `seen` is the position of each in training, -1 if unseen."""
        u = np.where(seen >= 0, np.append(self.id_effects, 0)[seen], 0.0)
        return PairCosts(self.estimator, features.table, u)


@dataclass(frozen=True)
class PairCosts(PredictsFromRows):
    """Costs of given ads, predicted by a regressor over pairs.

    Parameters
    ----------
    estimator : object with predict
        g, fitted.
    table : DataFrame or ndarray with n_ads rows
        Features z of the ads.
    id_effects : ndarray of shape (n_ads,)
        u of the ads.
    """

    estimator: Any
    table: Any
    id_effects: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        n_rows, n_ads = count_rows(X), len(self.id_effects)
        predicted = np.empty((n_rows, n_ads))
        for block in gen_batches(n_rows, max(1, PAIRS_PER_CALL // n_ads)):
            rows = np.arange(block.start, block.stop)
            pairs = join(
                X, self.table, np.repeat(rows, n_ads), np.tile(np.arange(n_ads), len(rows))
            )
            predicted[block] = predict_finite(self.estimator, pairs).reshape(len(rows), n_ads)
        return predicted + self.id_effects


def fit_pairs(
    estimator: Any,
    X: Any,
    costs: CostMatrix,
    features: AdFeatures,
    weight: np.ndarray | None,
    id_effect: float,
) -> PairRegressor:
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
    id_effect : float
        Variance of u relative to that of the noise. With residuals r and weights s of an ad,
        u = id_effect sum(s r) / (1 + id_effect sum(s)). At 0, u is 0.

    Returns
    -------
    PairRegressor
    """
    observed = [costs.of_ad(j) for j in range(costs.shape[1])]
    rows = np.concatenate([ad_rows for ad_rows, _ in observed])
    paid = np.concatenate([ad_costs for _, ad_costs in observed])
    ads = np.repeat(np.arange(len(observed)), [len(ad_rows) for ad_rows, _ in observed])
    s = None if weight is None else weight[rows]
    pairs = join(X, features.table, rows, ads)
    fitted = fit_to_costs(estimator, pairs, paid, s)
    u = np.zeros(len(observed))
    if id_effect > 0:
        residual = paid - predict_finite(fitted, pairs)
        s = np.ones(len(rows)) if s is None else s
        size = np.bincount(ads, s, len(u))
        u = id_effect * np.bincount(ads, s * residual, len(u)) / (1 + id_effect * size)
    return PairRegressor(fitted, u)


def join(X: Any, table: Any, rows: np.ndarray, ads: np.ndarray) -> Any:
    """Features of pairs: those of the rows, followed by those of the ads.

    The result is a DataFrame if both tables are; their column names must then differ.
    """
    left, right = rows_of(X, rows), rows_of(table, ads)
    if sp.issparse(left):
        return sp.hstack([left, np.asarray(right, dtype=float)], format="csr")
    if not isinstance(left, pd.DataFrame) or not isinstance(right, pd.DataFrame):
        return np.concatenate([np.asarray(left), np.asarray(right)], axis=1)
    both = [name for name in right.columns if name in set(left.columns)]
    if both:
        raise ValueError(f"X and ad_features both have a column {both[0]!r}: rename one.")
    return pd.concat([left.reset_index(drop=True), right.reset_index(drop=True)], axis=1)
