"""Generated set selection data with known expected costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.utils import check_random_state

__all__ = ["make_set_selection"]


def make_set_selection(
    n_samples: int = 1000,
    n_features: int = 10,
    n_ads: int = 20,
    *,
    n_ad_features: int = 5,
    signal: float = 1.0,
    popularity: float = 0.5,
    own: float = 0.3,
    click_rate: float = 0.2,
    return_ad_features: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, ...]:
    """Make rows, the costs of all ads for each row, and their expected costs.

    Ad a is clicked in row x with probability p(a | x) = sigmoid(b + x'w_a + b_a), where w_a = M z_a
    + u_a. The cost is -1 for a click and 0 otherwise. The row features x, ad features z, matrix M,
    ad-specific weights u_a and popularities b_a are normal.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=10
        Number of features per row, all informative.
    n_ads : int, default=20
        Number of ads.
    n_ad_features : int, default=5
        Number of features per ad, all informative.
    signal : float, default=1.0
        Standard deviation of x'M z_a.
    popularity : float, default=0.5
        Standard deviation of b_a, the difference between ads that is the same for all rows.
    own : float, default=0.3
        Standard deviation of x'u_a, the part not explained by ad features.
    click_rate : float, default=0.2
        Probability of a click if all other terms are 0; sets b.
    return_ad_features : bool, default=False
        Whether to return z as well.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples, n_ads)
        Costs, -1 or 0.
    expected : ndarray of shape (n_samples, n_ads)
        f* = -p(a | x): the best set has the lowest.
    ad_features : DataFrame of shape (n_ads, n_ad_features)
        z, indexed by the ads 0, 1, ...; only with `return_ad_features`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.datasets import make_set_selection
    >>> X, y, expected = make_set_selection(n_ads=8, random_state=0)
    >>> X.shape, y.shape
    ((1000, 10), (1000, 8))
    >>> best = np.argsort(expected, axis=1)[:, :3]
    >>> value = -np.take_along_axis(y, best, axis=1).sum(axis=1).mean()
    >>> bool(value > -3 * y.mean())
    True
    """
    if not 0 < click_rate < 1:
        raise ValueError(f"click_rate={click_rate} must lie between 0 and 1.")
    rng = check_random_state(random_state)
    X = rng.normal(size=(n_samples, n_features))
    Z = rng.normal(size=(n_ads, n_ad_features))
    M = rng.normal(size=(n_ad_features, n_features)) / np.sqrt(n_features * n_ad_features)
    U = rng.normal(size=(n_ads, n_features)) / np.sqrt(n_features)
    logit = X @ (signal * Z @ M + own * U).T + popularity * rng.normal(size=n_ads)
    probability = expit(logit + np.log(click_rate / (1 - click_rate)))
    y = -(rng.random_sample(probability.shape) < probability).astype(float)
    if not return_ad_features:
        return X, y, -probability
    names = [f"z{k}" for k in range(n_ad_features)]
    return X, y, -probability, pd.DataFrame(Z, columns=names)
