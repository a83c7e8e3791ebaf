"""Logs of decisions with a known truth: contexts, arms that come and go, rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, ndtr, softmax
from sklearn.utils import Bunch, check_random_state

__all__ = ["make_bandit_log"]

# Events whose probabilities are held at a time.
_CHUNK = 16_384

_MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
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
    lifetime: Literal["equal", "random"] = "equal",
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
    """Make a log of decisions and rewards whose truth is known.

    Contexts x are standard normal. Arm a has the linear predictor ``eta = intercept[a] +
    x @ coef[a]``, and its reward is 1 with probability ``expit(eta)`` (logistic) or
    ``ndtr(eta)`` (probit), else 0; or it is normal around ``eta`` (linear).

    Parameters
    ----------
    n_events : int, default=10_000
        How many decisions are logged.
    n_arms : int, default=20
        How many arms there are in all, named 0, 1, ... in order of arrival.
    n_features : int, default=6
        Length of a context; the constant is not among the features.
    n_available : int, default=None
        How many arms can be chosen at any time: each that arrives takes the place of one that
        retires, for good. None is all of them, all the time.
    lifetime : {"equal", "random"}, default="equal"
        Arms are replaced at equal intervals and the oldest goes, so that all stay equally long
        but those that are there at the first or last event; or they are replaced at random
        times and any may go, so that lifetimes are nearly exponential.
    link : {"logistic", "probit", "linear"}, default="logistic"
        The model of rewards.
    base_rate : float, default=0.05
        Mean reward over arms and contexts, each arm counting the same.
    arm_effect, context_effect : float, default=0.5, 1.0
        Standard deviations, on the scale of ``eta``, of what depends on the arm alone, and of
        what depends on the context; weights are drawn for each arm independently.
    noise : float, default=1.0
        Standard deviation of a reward around its mean, where the link is linear.
    logging : {"uniform", "softmax"} or callable, default="uniform"
        How actions were chosen: each available arm with the same probability, or with one
        proportional to ``exp(eta / temperature)``; or ``logging(X, available=available)``
        gives the probabilities as an array of shape (n_events, n_arms), zero where an arm is
        not available, `X` and `available` being those returned: the `select_proba` of a fitted
        policy that has ``arms=range(n_arms)`` does.
    temperature : float, default=1.0
        The higher, the closer is softmax to uniform.
    duration : float, default=86_400.0
        Seconds over which the events are spread, at random.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible logs.

    Returns
    -------
    Bunch
        With

        - ``X``: DataFrame of contexts, columns ``x0``, ``x1``, ...
        - ``y``: DataFrame, in order of time: ``action``, ``reward``, ``propensity`` (the
          probability with which the action was chosen), ``timestamp`` (seconds from the
          start) and, with `n_available`, ``available``, a tuple of arms a row. Events with
          equal sets share one tuple.
        - ``available``: that column; None without `n_available`.
        - ``expected_reward``: array of shape (n_events, n_arms), nan where an arm is not
          available.
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

    What an arm drawn at random earns, and what the best one would:

    >>> import numpy as np
    >>> print(f"{log.y['reward'].mean():.3f}")
    0.047
    >>> print(f"{np.nanmax(log.expected_reward, axis=1).mean():.3f}")
    0.076
    """
    _check(n_events, n_arms, n_features, n_available, lifetime, link, base_rate)
    if not callable(logging) and logging not in ("uniform", "softmax"):
        raise ValueError(f"logging must be 'uniform', 'softmax' or callable, got {logging!r}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}.")
    rng = check_random_state(random_state)
    mean = _MEANS[link]

    coef = context_effect / np.sqrt(n_features) * rng.standard_normal((n_arms, n_features))
    own = arm_effect * rng.standard_normal(n_arms)
    intercept = own + _shift(mean, own, np.linalg.norm(coef, axis=1), base_rate)

    X = rng.standard_normal((n_events, n_features))
    timestamp = np.sort(rng.uniform(0.0, duration, n_events))
    stages = list(_stages(timestamp, duration, n_arms, n_available or n_arms, lifetime, rng))

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)])
    available = None
    if n_available is not None:
        sets = np.empty(len(stages), dtype=object)
        sets[:] = [tuple(pool.tolist()) for _, pool in stages]
        lengths = [rows.stop - rows.start for rows, _ in stages]
        available = pd.Series(np.repeat(sets, lengths), name="available")
    given = None
    if callable(logging):
        given = np.asarray(logging(frame, available=available))
        if given.shape != (n_events, n_arms):
            raise ValueError(
                f"logging returned an array of shape {given.shape}, expected "
                f"{(n_events, n_arms)}: the probability of every arm in every event."
            )

    expected = np.full((n_events, n_arms), np.nan)
    action = np.empty(n_events, dtype=np.int64)
    propensity = np.empty(n_events)
    for rows, pool in _chunks(stages):
        eta = X[rows] @ coef[pool].T + intercept[pool]
        expected[rows, pool] = mean(eta)
        if given is not None:
            probability = given[rows][:, pool]
            _check_probabilities(probability, rows.start, pool)
        elif logging == "softmax":
            probability = softmax(eta / temperature, axis=1)
        else:
            probability = np.full(eta.shape, 1 / len(pool))
        chosen = _draw(probability, rng)
        action[rows] = pool[chosen]
        propensity[rows] = probability[np.arange(len(chosen)), chosen]

    truth = expected[np.arange(n_events), action]
    if link == "linear":
        reward = truth + noise * rng.standard_normal(n_events)
    else:
        reward = (rng.uniform(size=n_events) < truth).astype(np.int64)
    columns = {
        "action": action, "reward": reward, "propensity": propensity, "timestamp": timestamp
    }  # fmt: skip
    if available is not None:
        columns["available"] = available.array
    return Bunch(
        X=frame,
        y=pd.DataFrame(columns),
        available=available,
        expected_reward=expected,
        coef=coef,
        intercept=intercept,
        arms=np.arange(n_arms),
    )


def _shift(
    mean: Callable[[np.ndarray], np.ndarray], own: np.ndarray, sd: np.ndarray, base_rate: float
) -> float:
    """What to add to the arms' intercepts for the mean over arms and contexts to be as asked."""
    # x @ coef[a] is normal with standard deviation |coef[a]|: Gauss-Hermite is near exact.
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    eta = own[:, None] + sd[:, None] * nodes
    weights = weights / weights.sum() / len(own)

    def excess(shift: float) -> float:
        return float((mean(eta + shift) @ weights).sum() - base_rate)

    furthest = np.abs(eta).max() + 40.0
    return float(brentq(excess, -furthest, furthest, xtol=1e-12))


def _stages(
    timestamp: np.ndarray,
    duration: float,
    n_arms: int,
    n_available: int,
    lifetime: str,
    rng: np.random.RandomState,
) -> Iterator[tuple[slice, np.ndarray]]:
    """The events between two replacements, and the arms that are there, ascending."""
    n_replaced = n_arms - n_available
    if lifetime == "equal":
        times = duration * np.arange(1, n_replaced + 1) / (n_replaced + 1)
        leaves = np.zeros(n_replaced, dtype=np.int64)  # first in, first out
    else:
        times = np.sort(rng.uniform(0.0, duration, n_replaced))
        leaves = rng.randint(n_available, size=n_replaced)
    edges = [0, *np.searchsorted(timestamp, times), len(timestamp)]
    pool = np.arange(n_available)
    for k, (start, stop) in enumerate(pairwise(edges)):
        if k:
            pool = np.append(np.delete(pool, leaves[k - 1]), n_available + k - 1)
        yield slice(int(start), int(stop)), pool


def _chunks(stages: list[tuple[slice, np.ndarray]]) -> Iterator[tuple[slice, np.ndarray]]:
    """The same, in pieces of bounded length."""
    for rows, pool in stages:
        for start in range(rows.start, rows.stop, _CHUNK):
            yield slice(start, min(start + _CHUNK, rows.stop)), pool


def _draw(probability: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """One column for every row, never one of probability 0."""
    bounds = np.cumsum(probability, axis=1)
    # times the sum, which is 1 but for rounding
    uniform = rng.uniform(size=len(bounds)) * bounds[:, -1]
    return (uniform[:, None] >= bounds[:, :-1]).sum(axis=1)


def _check(
    n_events: int,
    n_arms: int,
    n_features: int,
    n_available: int | None,
    lifetime: str,
    link: str,
    base_rate: float,
) -> None:
    """Refuse what makes no log."""
    for name, number in (("n_events", n_events), ("n_arms", n_arms), ("n_features", n_features)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    if n_available is not None and not 1 <= n_available <= n_arms:
        raise ValueError(f"n_available must be from 1 to n_arms={n_arms}, got {n_available}.")
    if lifetime not in ("equal", "random"):
        raise ValueError(f"lifetime must be 'equal' or 'random', got {lifetime!r}.")
    if link not in _MEANS:
        raise ValueError(f"link must be one of {', '.join(map(repr, _MEANS))}, got {link!r}.")
    if link != "linear" and not 0 < base_rate < 1:
        raise ValueError(f"base_rate must be between 0 and 1 where rewards are, got {base_rate}.")


def _check_probabilities(probability: np.ndarray, first: int, pool: np.ndarray) -> None:
    """Require the distribution of a choice among the available arms in every row."""
    wrong = (probability < 0).any(axis=1) | ~(np.abs(probability.sum(axis=1) - 1) < 1e-6)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            "logging must give probabilities that sum to 1 over the available arms: in row "
            f"{first + row} arms {pool} have {probability[row]}."
        )
