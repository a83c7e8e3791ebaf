"""Set selection with known expected costs."""

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
    """Make rows, the costs of all ads in them, and the expected costs.

    Ad a is clicked in row x with probability p(a | x) = sigmoid(b + x'w_a + b_a), w_a = M z_a +
    u_a. A click is a cost of -1, none is 0. Row features x, ad features z, M, the ad's own
    weights u and popularity b_a are normal.

    Parameters
    ----------
    n_samples : int, default=1000
        Rows.
    n_features : int, default=10
        Features of a row, all of them informative.
    n_ads : int, default=20
        Ads.
    n_ad_features : int, default=5
        Features of an ad, all of them informative.
    signal : float, default=1.0
        Standard deviation of x'M z_a.
    popularity : float, default=0.5
        Standard deviation of b_a: what ads differ by for everyone.
    own : float, default=0.3
        Standard deviation of x'u_a: what the features of ads do not tell.
    click_rate : float, default=0.2
        Probability of a click where the other terms are 0; sets b.
    return_ad_features : bool, default=False
        Whether z is returned too.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples, n_ads)
        Costs, -1 or 0.
    expected : ndarray of shape (n_samples, n_ads)
        f* = -p(a | x): the best set is that of the lowest.
    ad_features : DataFrame of shape (n_ads, n_ad_features)
        z, with the ads 0, 1, ... as its index; only with `return_ad_features`.

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
    made = X, y, -probability
    if not return_ad_features:
        return made
    names = [f"z{k}" for k in range(n_ad_features)]
    return *made, pd.DataFrame(Z, columns=names)
