"""One regressor over (row, ad) pairs, fitted to a long table with the features of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array, gen_batches

from skbandit.selection._cost_models import PredictsFromRows, fit_to_costs, predict_finite
from skbandit.selection._costs import CostMatrix, append_columns, quoted
from skbandit.utils._sklearn_compat import count_rows, feature_names, rows_of


@dataclass(frozen=True)
class AdFeatures:
    """Features of labelled ads.

    Parameters
    ----------
    ads : ndarray of shape (n_ads,)
        Labels: the index of a DataFrame, otherwise 0, 1, ...
    table : DataFrame or ndarray with n_ads rows
        Features, as passed by the user.
    names : ndarray or None
        Feature names, if any.
    """

    ads: np.ndarray
    table: Any
    names: np.ndarray | None

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
                f"ad_features has no row for ad {quoted(missing)}: the index of a DataFrame names "
                "the ads. Cross-validation slices a table that happens to have as many rows as X: "
                "to prevent that, pass (ad_features,), a tuple."
            )
        return AdFeatures(ads, rows_of(self.table, positions), self.names)

    def numbers(self) -> np.ndarray:
        """The features as float64, shape (n_ads, n_ad_features)."""
        try:
            return check_array(self.table, dtype=np.float64, input_name="ad_features")
        except ValueError as error:
            if "convert string" not in str(error):
                raise
            raise ValueError(
                f"ad_features must hold numbers ({error}): encode the others, for example by "
                "pandas.get_dummies(ad_features)."
            ) from error

    def check_same_columns(self, other: AdFeatures) -> None:
        """Raise unless `other` has the columns of this table."""
        n_columns, n_others = np.shape(self.table)[1], np.shape(other.table)[1]
        if n_columns != n_others:
            raise ValueError(f"ad_features has {n_others} columns, but {n_columns} in fit.")
        if self.names is not None and other.names is not None:
            different = [name for name in other.names if name not in set(self.names)]
            if different:
                raise ValueError(f"ad_features has columns unseen in fit: {quoted(different)}.")
            if list(self.names) != list(other.names):
                raise ValueError("The columns of ad_features are in a different order than in fit.")


def read_ad_features(ad_features: Any) -> AdFeatures:
    """Read a DataFrame, an array whose rows are the ads 0, 1, ..., or a tuple of one of these."""
    table = ad_features[0] if isinstance(ad_features, tuple) else ad_features
    if sp.issparse(table):
        raise TypeError("ad_features must not be sparse: pass ad_features.toarray().")
    if not hasattr(table, "ndim"):
        table = check_array(table, dtype=None, input_name="ad_features")
    if np.ndim(table) != 2:
        raise ValueError(
            f"ad_features must be a table with one row per ad, got {np.ndim(table)} dimensions."
        )
    index = getattr(table, "index", None)
    if index is None:
        return AdFeatures(np.arange(len(table)), check_array(table), feature_names(table))
    repeated = index[index.duplicated()]
    if len(repeated):
        raise ValueError(f"ad_features describes ad {quoted(repeated)} more than once.")
    return AdFeatures(np.asarray(index), table, feature_names(table))


PAIRS_PER_CALL = 2**18
"""Number of pairs per call of `predict`; more are predicted in several calls."""


@dataclass(frozen=True)
class PairRegressor:
    """Costs g(x, z_a) + u_a, with u_a = 0 for ads unseen in training.

    Parameters
    ----------
    estimator : object with predict
        g, fitted.
    ad_effects : ndarray of shape (n_ads,)
        u of the ads seen in training.
    """

    estimator: Any
    ad_effects: np.ndarray

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> PairCosts:
        """A model of the given ads; `seen` is the position of each in training, -1 if unseen."""
        u = np.where(seen >= 0, np.append(self.ad_effects, 0)[seen], 0.0)
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
    ad_effects : ndarray of shape (n_ads,)
        u of the ads.
    """

    estimator: Any
    table: Any
    ad_effects: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        n_rows, n_ads = count_rows(X), len(self.ad_effects)
        predicted = np.empty((n_rows, n_ads))
        for block in gen_batches(n_rows, max(1, PAIRS_PER_CALL // n_ads)):
            rows = np.arange(block.start, block.stop)
            pairs = join(
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
    ad_effect : float
        Variance of u relative to that of the noise. With residuals r and weights s of an ad,
        u = ad_effect sum(s r) / (1 + ad_effect sum(s)). At 0, u is 0.

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
    if ad_effect > 0:
        residual = paid - predict_finite(fitted, pairs)
        s = np.ones(len(rows)) if s is None else s
        size = np.bincount(ads, s, len(u))
        u = ad_effect * np.bincount(ads, s * residual, len(u)) / (1 + ad_effect * size)
    return PairRegressor(fitted, u)


def join(X: Any, table: Any, rows: np.ndarray, ads: np.ndarray) -> Any:
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
