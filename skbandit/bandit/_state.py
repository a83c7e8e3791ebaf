"""What a policy believes of its arms and how it acts on that, as plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

LINKS = ("linear", "logistic", "probit")
EXPLORATIONS = ("ucb", "epsilon_greedy", "thompson")
UCBS = ("U0", "U1", "U2", "U3")
MEANS = ("M0", "M1", "M2", "M3")


class Beliefs(NamedTuple):
    """Weights w ~ N(mean, Σ) of every arm, and what else learning changes. Arrays, in place.

    `spread` is the diagonal of Σ, or a matrix L with Σ = L Lᵀ: so Σ stays positive definite.
    """

    mean: np.ndarray  # (n_arms, n_weights)
    spread: np.ndarray  # (n_arms, n_weights) or (n_arms, n_weights, n_weights)
    n_updates: np.ndarray  # (n_arms,), events learned
    rank: np.ndarray  # (n_arms,), whom greedy choices prefer among equals: the smallest
    learned: np.ndarray  # (n_arms,), the arms with events, in order of their first
    key: np.ndarray  # (n_arms,), address of its random numbers
    clock: np.ndarray  # (3,): events learned, choices made, arms with events


class Prior(NamedTuple):
    """What is believed of an arm before any event, and how else learning is set."""

    mean: np.ndarray  # (n_weights,)
    variance: np.ndarray  # (n_weights,)
    adaptive_mean: bool
    adaptive_variance: bool
    noise_variance: float
    forgetting: float


class Rule(NamedTuple):
    """How arms are compared; names are numbered as in the tuples of this module. Only scalars.

    Compiled code counts references of every array that it takes out of a tuple, and arms are
    compared a billion times.
    """

    link: int
    exploration: int
    ucb: int
    mean: int
    epsilon: float
    seed: int
    intercept: bool


class Choices(NamedTuple):
    """Sets of arms to choose from: set k is ``arms[start[k]:start[k + 1]]``."""

    of_event: np.ndarray  # (n_events,)
    start: np.ndarray  # (n_sets + 1,)
    arms: np.ndarray


def no_beliefs(n_weights: int, full: bool) -> Beliefs:
    """Beliefs about no arm yet."""
    return Beliefs(
        mean=np.empty((0, n_weights)),
        spread=np.empty((0, n_weights, n_weights) if full else (0, n_weights)),
        n_updates=np.empty(0, dtype=np.int64),
        rank=np.empty(0, dtype=np.int64),
        learned=np.empty(0, dtype=np.int64),
        key=np.empty(0, dtype=np.int64),
        clock=np.zeros(3, dtype=np.int64),
    )


def with_arms(beliefs: Beliefs, labels: list[Any], prior: Prior) -> Beliefs:
    """A copy with further arms, which have the prior; greedy choices prefer earlier arms."""
    from skbandit.bandit._posterior import renew_prior

    grown = {}
    for name, array in beliefs._asdict().items():
        if name == "clock":
            grown[name] = array.copy()
        else:
            grown[name] = np.concatenate(
                [array, np.zeros((len(labels), *array.shape[1:]), array.dtype)]
            )
    old, new = len(beliefs.rank), len(beliefs.rank) + len(labels)
    grown["rank"][old:] = np.arange(old, new)
    # by label, as an arm's number depends on the order of events
    grown["key"][old:] = [crc32(str(one).encode("utf-8", "backslashreplace")) for one in labels]
    larger = Beliefs(**grown)
    renew_prior(larger, prior)
    return larger
