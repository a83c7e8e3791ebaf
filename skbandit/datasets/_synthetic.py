"""Generated logs and cost matrices with known expected values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, ndtr, softmax
from sklearn.utils import Bunch, check_random_state

from skbandit.utils._validation import first_few

# Number of events whose probabilities are held in memory at once.
_BLOCK_SIZE = 16_384

_MEAN_REWARDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": expit,
    "probit": ndtr,
    "linear": lambda eta: eta,
}


def make_bandit_log(
    n_events: int = 10_000,
    n_arms: int = 20,
    n_features: int = 6,
    *,
    n_available: int | None = None,
    link: Literal["logistic", "probit", "linear"] = "logistic",
    base_rate: float = 0.05,
    arm_effect: float = 0.5,
    context_effect: float = 1.0,
    noise: float = 1.0,
    logging: Literal["uniform", "softmax"] | Callable[..., Any] = "uniform",
    temperature: float = 1.0,
    duration: float = 86_400.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make a log of decisions and rewards with known expected rewards.

    Contexts x are standard normal. Arm a has the linear predictor ``eta = intercept[a] +
    x @ coef[a]``, and its reward is 1 with probability ``expit(eta)`` (logistic) or
    ``ndtr(eta)`` (probit), else 0; or it is normal around ``eta`` (linear).

    Parameters
    ----------
    n_events : int, default=10_000
        Number of logged decisions.
    n_arms : int, default=20
        Total number of arms, labeled 0, 1, ... in order of arrival.
    n_features : int, default=6
        Number of features, without a constant.
    n_available : int, default=None
        Number of arms available at any time: at equal intervals, an arriving arm replaces the
        oldest, which retires for good. None is all arms, all the time.
    link : {"logistic", "probit", "linear"}, default="logistic"
        The reward model.
    base_rate : float, default=0.05
        Mean reward over arms and contexts, with equal weight per arm.
    arm_effect, context_effect : float, default=0.5, 1.0
        Standard deviations, on the scale of ``eta``, of the part that depends on the arm only and
        of the part that depends on the context; weights are drawn per arm, independently.
    noise : float, default=1.0
        Standard deviation of a reward around its mean, for the linear link.
    logging : {"uniform", "softmax"} or callable, default="uniform"
        The logging policy: available arms are equally probable, or have probabilities
        proportional to ``exp(eta / temperature)``. A callable ``logging(X, available=available)``
        returns the probabilities as an array of shape (n_events, n_arms), zero for unavailable
        arms; `X` and `available` are those of the returned Bunch. An example is `select_proba` of
        a fitted policy with ``arms=range(n_arms)``.
    temperature : float, default=1.0
        The higher, the closer softmax is to uniform.
    duration : float, default=86_400.0
        Length of the log in seconds; timestamps are uniform at random.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible logs.

    Returns
    -------
    Bunch
        With

        - ``X``: DataFrame of contexts, columns ``x0``, ``x1``, ...
        - ``y``: DataFrame, in order of time: ``action``, ``reward``, ``propensity`` (the
          probability with which the action was chosen), ``timestamp`` (seconds from the
          start) and, with `n_available`, ``available``, one tuple of arms per row. Events with
          equal sets share one tuple.
        - ``available``: that column; None without `n_available`.
        - ``expected_reward``: array of shape (n_events, n_arms), nan for unavailable
          arms.
        - ``coef``: array of shape (n_arms, n_features); ``intercept``: of shape (n_arms,).
        - ``arms``: array of the arms.

    Examples
    --------
    >>> from skbandit.datasets import make_bandit_log
    >>> log = make_bandit_log(1000, n_arms=5, n_available=3, random_state=0)
    >>> log.y[["action", "reward", "propensity", "available"]].head(2)
       action  reward  propensity  available
    0       1       0    0.333333  (0, 1, 2)
    1       0       0    0.333333  (0, 1, 2)

    The mean reward of random arms, and that of the best arms:

    >>> import numpy as np
    >>> print(f"{log.y['reward'].mean():.3f}")
    0.047
    >>> print(f"{np.nanmax(log.expected_reward, axis=1).mean():.3f}")
    0.076
    """
    for name, number in (("n_events", n_events), ("n_arms", n_arms), ("n_features", n_features)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    if n_available is not None and not 1 <= n_available <= n_arms:
        raise ValueError(f"n_available must be from 1 to n_arms={n_arms}, got {n_available}.")
    if link not in _MEAN_REWARDS:
        raise ValueError(f"link must be one of {first_few(_MEAN_REWARDS)}, got {link!r}.")
    if link != "linear" and not 0 < base_rate < 1:
        raise ValueError(f"base_rate must be in (0, 1), as rewards are 0 or 1, got {base_rate}.")
    if not callable(logging) and logging not in ("uniform", "softmax"):
        raise ValueError(f"logging must be 'uniform', 'softmax' or callable, got {logging!r}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}.")
    rng = check_random_state(random_state)
    mean = _MEAN_REWARDS[link]
    coef = context_effect / np.sqrt(n_features) * rng.standard_normal((n_arms, n_features))
    effect = arm_effect * rng.standard_normal(n_arms)
    intercept = effect + _intercept_shift(mean, effect, np.linalg.norm(coef, axis=1), base_rate)

    X = rng.standard_normal((n_events, n_features))
    timestamp = np.sort(rng.uniform(0.0, duration, n_events))
    # blocks of events between two replacements, and their available arms, ascending
    size = n_available or n_arms
    times = duration * np.arange(1, n_arms - size + 1) / (n_arms - size + 1)
    edges = [0, *np.searchsorted(timestamp, times).tolist(), n_events]
    stages = [
        (slice(first, min(first + _BLOCK_SIZE, stop)), np.arange(k, k + size))
        for k, (start, stop) in enumerate(pairwise(edges))
        for first in range(start, stop, _BLOCK_SIZE)
    ]

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)])
    available = None
    if n_available is not None:
        sets = ([tuple(pool.tolist())] * (rows.stop - rows.start) for rows, pool in stages)
        available = pd.Series(list(chain.from_iterable(sets)), name="available")
    logging_probability = None
    if callable(logging):
        logging_probability = np.asarray(logging(frame, available=available))
        if logging_probability.shape != (n_events, n_arms):
            raise ValueError(
                f"logging returned an array of shape {logging_probability.shape}, expected "
                f"{(n_events, n_arms)}: the probability of every arm in every event."
            )

    expected = np.full((n_events, n_arms), np.nan)
    action = np.empty(n_events, dtype=np.int64)
    propensity = np.empty(n_events)
    for rows, pool in stages:
        eta = X[rows] @ coef[pool].T + intercept[pool]
        expected[rows, pool] = mean(eta)
        if logging_probability is not None:
            probability = logging_probability[rows][:, pool]
            sums = np.where((probability < 0).any(axis=1), np.nan, probability.sum(axis=1))
            if (wrong := ~(np.abs(sums - 1) < 1e-6)).any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    "logging must give probabilities that sum to 1 over the available arms: in "
                    f"row {rows.start + row} arms {pool} have {probability[row]}."
                )
        elif logging == "softmax":
            probability = softmax(eta / temperature, axis=1)
        else:
            probability = np.full(eta.shape, 1 / len(pool))
        # one column per row, never one of probability 0; the sum is 1 up to rounding
        bounds = np.cumsum(probability, axis=1)
        uniform = rng.uniform(size=len(bounds)) * bounds[:, -1]
        chosen = (uniform[:, None] >= bounds[:, :-1]).sum(axis=1)
        action[rows] = pool[chosen]
        propensity[rows] = probability[np.arange(len(chosen)), chosen]

    truth = expected[np.arange(n_events), action]
    if link == "linear":
        reward = truth + noise * rng.standard_normal(n_events)
    else:
        reward = (rng.uniform(size=n_events) < truth).astype(np.int64)
    y = pd.DataFrame(
        {"action": action, "reward": reward, "propensity": propensity, "timestamp": timestamp}
    )
    if available is not None:
        y["available"] = available
    return Bunch(
        X=frame,
        y=y,
        available=available,
        expected_reward=expected,
        coef=coef,
        intercept=intercept,
        arms=np.arange(n_arms),
    )


def _intercept_shift(
    mean: Callable[[np.ndarray], np.ndarray], effect: np.ndarray, sd: np.ndarray, base_rate: float
) -> float:
    """Shift of the arms' intercepts that makes the mean reward equal `base_rate`."""
    # x @ coef[a] is normal with standard deviation |coef[a]|: Gauss-Hermite is nearly exact.
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    eta = effect[:, None] + sd[:, None] * nodes
    weights = weights / weights.sum() / len(effect)

    def excess(shift: float) -> float:
        return float((mean(eta + shift) @ weights).sum() - base_rate)

    furthest = np.abs(eta).max() + 40.0
    return float(brentq(excess, -furthest, furthest, xtol=1e-12))


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
