"""A compiled walk along b, past all the places where the penalised ramp objective can be lowest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbandit.utils._compiled import compiled


class Rates(NamedTuple):
    """Linear forms in the answers pi: numerator, denominator, then constraint k's minus its bound.

    Entry (k, cost) of row j says that pi_j counts `cost` in form k; `constant` is what each
    form is where all pi are 0.
    """

    indptr: np.ndarray
    k: np.ndarray
    cost: np.ndarray
    constant: np.ndarray


@compiled
def goal_of(values: np.ndarray, price: float) -> float:
    """The ratio plus the priced violations; infinite where the denominator is empty."""
    goal = values[0] / values[1] if values[1] > 1e-15 else np.inf
    for k in range(2, len(values)):
        goal += price * max(values[k], 0.0)
    return goal


@compiled
def walk(
    rates: Rates, z: np.ndarray, scale: float, price: float, enough: float
) -> tuple[float, float]:
    """The lowest goal along b and where it is; stops at the first that is low `enough`.

    Rows come in descending order of z: memory is then read from front to back. All forms are
    linear in b between the kinks at -1/2 - scale z_j, from which row j's ramp rises, and
    1/2 - scale z_j, where it stops; a violation bends the goal where it begins too.
    """
    n = len(z)
    values, there = rates.constant.copy(), rates.constant.copy()
    slopes = np.zeros_like(values)
    rising, falling = 0, 0
    b = -0.5 - scale * z[0]
    lowest, place = goal_of(values, price), b
    while falling < n and lowest > enough:
        stop = 0.5 - scale * z[falling]
        rises = rising < n and -0.5 - scale * z[rising] <= stop
        j = rising if rises else falling
        nearest = (-0.5 if rises else 0.5) - scale * z[j]
        step = max(nearest - b, 0.0)
        for k in range(2, len(values)):
            ahead = values[k] + step * slopes[k]
            if values[k] * ahead < 0:
                part = step * values[k] / (values[k] - ahead)
                for i in range(len(values)):
                    there[i] = values[i] + part * slopes[i]
                goal = goal_of(there, price)
                if goal < lowest:
                    lowest, place = goal, b + part
        for k in range(len(values)):
            values[k] += step * slopes[k]
        b = nearest
        goal = goal_of(values, price)
        if goal < lowest:
            lowest, place = goal, b
        sign = 1.0 if rises else -1.0
        for e in range(rates.indptr[j], rates.indptr[j + 1]):
            slopes[rates.k[e]] += sign * rates.cost[e]
        if rises:
            rising += 1
        else:
            falling += 1
    return lowest, place
