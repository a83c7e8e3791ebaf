"""Tables of ad features, one row per ad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from skbandit.selection._costs import quoted
from skbandit.utils._sklearn_compat import feature_names, rows_of


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
    if issparse(table):
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
