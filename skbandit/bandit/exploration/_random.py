"""Random numbers by address: a stateless function of (seed, number of the choice, arm, use).

A choice is therefore the same made alone or in a batch, in whatever order its arms are compared,
and even if arms that cannot win are skipped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skbandit.utils._compiled import called_exactly

# Uses of a random number, part of its address. No Python integers: numba would compile each draw
# once per constant.
TIE, COIN, EXPLORE, RADIUS, ANGLE = (np.uint64(use) for use in range(1, 6))

NO_ARM: Any = np.int64(0)
"""Key of random numbers that belong to a choice rather than to one of its arms."""


@called_exactly
def uniform(seed: int, t: int, key: int, use: np.uint64) -> float:
    """Return uniform draw from [0, 1) with 53 random bits."""
    address = _mixed(np.uint64(key) + use * np.uint64(0xD1B54A32D192ED03))
    bits = _mixed(_mixed(np.uint64(seed) + np.uint64(t) * np.uint64(0x9E3779B97F4A7C15)) ^ address)
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@called_exactly
def standard_normal(seed: int, t: int, key: int) -> float:
    """Draw from N(0, 1) by the Box-Muller transform."""
    radius = math.sqrt(-2.0 * math.log1p(-uniform(seed, t, key, RADIUS)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, t, key, ANGLE))


@called_exactly
def _mixed(z: np.uint64) -> np.uint64:
    """Return finalizer of splitmix64 (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
