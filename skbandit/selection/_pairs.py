"""One regressor over pairs of a row and an ad: a long table of features of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import gen_batches

from skbandit.selection._ad_features import AdFeatures
from skbandit.selection._cost_models import Asked, answers_of, fit_to_costs
from skbandit.selection._costs import Costs
from skbandit.utils._sklearn_compat import count_rows, rows_of

PAIRS = 2**18
"""Pairs that are predicted in one go."""


@dataclass(frozen=True)
class PairRegressor:
    """Costs g(x, z_a) + u_a, with u_a = 0 for an ad that was not seen.

    Parameters
    ----------
    estimator : object with predict
        g, fitted.
    own : ndarray of shape (n_ads,)
        u of the ads seen in training.
    """

    estimator: Any
    own: np.ndarray

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> PairCosts:
        """The costs of given ads; `seen` says which of the training each is, -1 if none."""
        return PairCosts(
            self.estimator, features.table, np.where(seen >= 0, np.append(self.own, 0)[seen], 0.0)
        )


@dataclass(frozen=True)
class PairCosts(Asked):
    """The costs of given ads by a regressor over pairs."""

    estimator: Any
    table: Any
    own: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        n_rows, n_ads = count_rows(X), len(self.own)
        found = np.empty((n_rows, n_ads))
        for block in gen_batches(n_rows, max(1, PAIRS // n_ads)):
            rows = np.arange(block.start, block.stop)
            pairs = join(
                X, self.table, np.repeat(rows, n_ads), np.tile(np.arange(n_ads), len(rows))
            )
            found[block] = answers_of(self.estimator, pairs).reshape(len(rows), n_ads)
        return found + self.own


def fit_pairs(
    estimator: Any,
    X: Any,
    costs: Costs,
    features: AdFeatures,
    weight: np.ndarray | None,
    id_effect: float,
) -> PairRegressor:
    """Fit a clone to all observed pairs, then each ad's mean residual, shrunk.

    Parameters
    ----------
    estimator : regressor, or classifier with predict_proba
        g.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Rows.
    costs : Costs
        Of these rows.
    features : AdFeatures
        Of these ads, in the order of `costs`.
    weight : ndarray of shape (n_samples,) or None
        Row weights.
    id_effect : float
        Variance of u beside that of the noise: the residuals r of an ad with weights s make
        u = id_effect sum(s r) / (1 + id_effect sum(s)); 0 is none.

    Returns
    -------
    PairRegressor
    """
    observed = [costs.of_ad(j) for j in range(costs.shape[1])]
    rows = np.concatenate([which for which, _ in observed])
    paid = np.concatenate([values for _, values in observed])
    ads = np.repeat(np.arange(len(observed)), [len(which) for which, _ in observed])
    s = None if weight is None else weight[rows]
    pairs = join(X, features.table, rows, ads)
    fitted = fit_to_costs(estimator, pairs, paid, s)
    own = np.zeros(len(observed))
    if id_effect > 0:
        residual = paid - answers_of(fitted, pairs)
        s = np.ones(len(rows)) if s is None else s
        size = np.bincount(ads, s, len(own))
        own = id_effect * np.bincount(ads, s * residual, len(own)) / (1 + id_effect * size)
    return PairRegressor(fitted, own)


def join(X: Any, table: Any, rows: np.ndarray, ads: np.ndarray) -> Any:
    """Features of pairs: those of the rows, then those of the ads.

    A DataFrame where both are, whose columns must be called differently.
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
