"""Tables that describe ads, one row an ad."""

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
    """What is known of each ad.

    Parameters
    ----------
    ads : ndarray of shape (n_ads,)
        Labels: the index of a DataFrame, else 0, 1, ...
    table : DataFrame or ndarray with n_ads rows
        Features, as given.
    names : ndarray or None
        Their names, if they have any.
    """

    ads: np.ndarray
    table: Any
    names: np.ndarray | None

    def places_of(self, ads: np.ndarray) -> np.ndarray:
        """The rows of given ads, -1 for those that are not described."""
        place = {ad: k for k, ad in enumerate(self.ads.tolist())}
        return np.array([place.get(ad, -1) for ad in ads.tolist()], dtype=np.intp)

    def of_ads(self, ads: np.ndarray) -> AdFeatures:
        """The rows of given ads, each of which must be there."""
        places = self.places_of(ads)
        missing = ads[places < 0]
        if len(missing):
            raise ValueError(
                f"ad_features has no row for ad {quoted(missing)}: the index of a DataFrame names "
                "the ads. Cross-validation slices a table that happens to have as many rows as X: "
                "pass (ad_features,), a tuple, which it leaves alone."
            )
        return AdFeatures(ads, rows_of(self.table, places), self.names)

    def numbers(self) -> np.ndarray:
        """The features as float64, shape (n_ads, n_ad_features)."""
        return check_array(self.table, dtype=np.float64, input_name="ad_features")

    def check_same_columns(self, other: AdFeatures) -> None:
        """Raise unless `other` has the columns of this table."""
        own, others = np.shape(self.table)[1], np.shape(other.table)[1]
        if own != others:
            raise ValueError(f"ad_features has {others} columns, in fit it had {own}.")
        if self.names is not None and other.names is not None:
            different = [name for name in other.names if name not in set(self.names)]
            if different:
                raise ValueError(f"ad_features has columns unseen in fit: {quoted(different)}.")
            if list(self.names) != list(other.names):
                raise ValueError("The columns of ad_features are in another order than in fit.")


def read_ad_features(ad_features: Any) -> AdFeatures:
    """Read a DataFrame, or an array whose rows are the ads 0, 1, ...; or a tuple of one of them."""
    table = ad_features[0] if isinstance(ad_features, tuple) else ad_features
    if issparse(table):
        raise TypeError("ad_features is sparse: pass table.toarray(), it has one row an ad.")
    if not hasattr(table, "ndim"):
        table = check_array(table, dtype=None, input_name="ad_features")
    if np.ndim(table) != 2:
        raise ValueError(
            f"ad_features must be a table with a row for each ad, got {np.ndim(table)} dimensions."
        )
    index = getattr(table, "index", None)
    if index is None:
        return AdFeatures(np.arange(len(table)), check_array(table), feature_names(table))
    repeated = index[index.duplicated()]
    if len(repeated):
        raise ValueError(f"ad_features describes ad {quoted(repeated)} more than once.")
    return AdFeatures(np.asarray(index), table, feature_names(table))
