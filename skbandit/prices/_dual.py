"""Multipliers of goals on decisions: the dual of a linear program over randomized rules.

Row i is of stratum f, such as a label, with probability phi[i, f] given what is known of it at
prediction. Expression k of the decisions adds T_k[f, j] per unit of weight of rows of stratum f for
which j is decided. Over all randomized rules,

    minimize <T_0, B>   subject to   <T_k, B> <= b_k,   B[f, j] = sum_i w_i phi[i, f] pi[i, j],

is a linear program. Its dual is concave in the multipliers:

    maximize  sum_i w_i min_j (phi_i L)_j - lambda b, L = T_0 + sum_k lambda_k T_k, lambda >= 0. (1)

A vertex splits at most as many rows as there are goals, so that the deterministic rule
``argmin_j (phi_i L)_j`` is within so many rows of the optimum, unless many rows have equal phi.

The largest of several objectives, ``<T_0g, B> + a_g``, is the smallest t above all of them. Its
multipliers mu add up to 1, as t has the cost 1 - sum mu; t is treated as one more row, which has
two decisions, the ends of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from skbandit.prices._problem import Prices, Problem, without_prices
from skbandit.utils._validation import RATE_TOL

SMOOTHING = (0.1, 0.01, 0.001)
"""Smoothing of min in (1), in units of the objective's largest cost of a row; each starts from the
last."""

HIGHEST_MULTIPLIER = 1e4
"""Multiplier that stands for any higher one, in units of costs per row."""

ITERATIONS, FUNCTION_TOLERANCE, GRADIENT_TOLERANCE = 300, 1e-10, 1e-5
"""When a maximization ends, in units of the objective's largest cost of a row."""

LEVEL_BISECTIONS = 25
"""Bisections of the level at which the shares of several decisions add up."""

CONFLICT = 1e-4
"""Excess, in costs per row, from which on goals are said to be in conflict."""

PART = 0.02
"""Multipliers below this share of the largest one take no part in a conflict."""

RATIO_BISECTIONS = 12
"""Bisections of what is attainable of a ratio."""


def at_ceiling(problem: Problem, prices: Prices) -> bool:
    """Return whether some multiplier is about the highest there is."""
    return bool((prices.goals * problem.reach > 0.5 * HIGHEST_MULTIPLIER * problem.unit).any())


def best_prices(
    problem: Problem,
    start: Prices | None = None,
    smoothing: tuple[float, ...] = SMOOTHING,
    highest: float = HIGHEST_MULTIPLIER,
) -> tuple[Prices, float]:
    """Maximize (1).

    Parameters
    ----------
    problem : Problem
    start : Prices or None
        Where to begin; None is for goals that cost nothing.
    smoothing : tuple of float
        See `SMOOTHING`.
    highest : float
        See `HIGHEST_MULTIPLIER`.

    Returns
    -------
    tuple of (Prices, float)
        The multipliers, and the value of (1): no randomized rule that meets the bounds, as far as
        phi is right, has a lower objective. It is about `highest` or more if none meets them.
    """
    start = without_prices(problem) if start is None else start
    n_objectives, unit, reach = len(problem.constant), problem.unit or 1.0, problem.reach
    several = n_objectives > 1
    # in these units a multiplier of 1 adds costs as large as the objective's
    scale = np.where(reach > 0, reach, 1.0) / unit
    if several:
        scale = np.append(np.ones(n_objectives), scale)
    constant = np.append(problem.constant, -problem.bound)
    ends = problem.range_of_largest

    def prices_of(x: np.ndarray) -> Prices:
        multipliers = x / scale
        if several:
            return Prices(multipliers[:n_objectives], multipliers[n_objectives:])
        return Prices(np.ones(1), multipliers)

    def minus_dual(x: np.ndarray, tau: float) -> tuple[float, np.ndarray]:
        prices = prices_of(x)
        low, share = _soft_lowest(problem.row_costs(prices), problem.n_select, tau * unit)
        gradient = problem.sums(share) + constant
        dual = problem.weight @ low
        dual += np.append(prices.objectives, prices.goals) @ constant
        if several:
            least, at = _soft_lowest(ends[None, :] * (1.0 - prices.objectives.sum()), 1, tau * unit)
            dual += least[0]
            gradient[:n_objectives] -= at[0] @ ends
        gradient = gradient if several else gradient[1:]
        return -float(dual) / unit, -gradient / scale / unit

    x = (np.append(start.objectives, start.goals) if several else start.goals) * scale
    options = {
        "maxiter": ITERATIONS,
        "ftol": FUNCTION_TOLERANCE,
        "gtol": GRADIENT_TOLERANCE,
    }
    for tau in smoothing if len(x) else ():
        bounds = [(0.0, highest)] * len(x)
        x = minimize(minus_dual, x, (tau,), "L-BFGS-B", jac=True, bounds=bounds, options=options).x
    prices = prices_of(x)
    total = float(prices.objectives.sum())
    if total > 0:  # costs are as they were, in units that make mu add up to 1
        prices = Prices(prices.objectives / total, prices.goals / total)
    else:
        prices = replace(prices, objectives=without_prices(problem).objectives)
    lowest = lowest_sums(problem.row_costs(prices), problem.n_select)
    value = problem.weight @ lowest + np.append(prices.objectives, prices.goals) @ constant
    return prices, float(value)


def lowest_sums(cost: np.ndarray, n_select: int) -> np.ndarray:
    """Return the sum of the lowest costs of each row."""
    if n_select == 1:
        return cost.min(axis=1)
    return np.partition(cost, n_select - 1, axis=1)[:, :n_select].sum(axis=1)


def _soft_lowest(cost: np.ndarray, n_select: int, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the smoothed sum of the lowest costs of each row, and its gradient: the share of each.

    By entropy for one decision. For several, shares are ``clip((t - cost) / tau, 0, 1)``, with the
    level t at which they add up: the minimum of ``cost @ pi + tau/2 |pi|^2``.
    """
    if n_select == 1:
        low = cost.min(axis=1)
        share = np.exp((low[:, None] - cost) / tau)
        total = share.sum(axis=1)
        return low - tau * np.log(total), share / total[:, None]
    if n_select == cost.shape[1]:
        return cost.sum(axis=1), np.ones(cost.shape)
    below = np.partition(cost, n_select - 1, axis=1)[:, n_select - 1]
    low, high = below - tau, below + tau
    for _ in range(LEVEL_BISECTIONS):
        middle = 0.5 * (low + high)
        enough = np.clip((middle[:, None] - cost) / tau, 0.0, 1.0).sum(axis=1) >= n_select
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    share = np.clip((high[:, None] - cost) / tau, 0.0, 1.0)
    finite = np.where(share > 0, cost, 0.0)
    return (finite * share).sum(axis=1) + 0.5 * tau * (share**2).sum(axis=1), share


def opposed_goals(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of goals that bound one value from both sides, found by their sums at any shares."""
    m, shape = len(problem.bound), problem.row_costs(without_prices(problem)).shape
    share = np.random.default_rng(0).random((2, *shape))
    sums = np.column_stack([problem.sums(draw / draw.sum(axis=1, keepdims=True)) for draw in share])
    values = sums[len(problem.constant) :]
    size = np.abs(values).max(axis=1)
    return [
        (k, other)
        for k in range(m)
        for other in range(k + 1, m)
        if size[k] > 0 and np.abs(values[k] + values[other]).max() <= RATE_TOL * size[k]
    ]


def net_prices(prices: Prices, pairs: Sequence[tuple[int, int]]) -> Prices:
    """Remove from prices of decisions what two opposed goals add and take away again."""
    goals = prices.goals.copy()
    for pair in pairs:
        goals[[*pair]] -= goals[[*pair]].min()
    return replace(prices, goals=goals)


def conflicting(problem: Problem) -> np.ndarray:
    """Find the goals that no randomized rule meets together; none if a rule meets all.

    The multipliers at most 1 that maximize the excess of the goals' weighted sum over its bound
    prove it (Farkas 1902): if the excess is positive, those with a positive one cannot hold
    together.
    """
    prices, excess = best_prices(problem.free(), highest=1.0)
    if excess <= CONFLICT:
        return np.zeros(0, dtype=int)
    part = prices.goals * problem.reach
    return np.flatnonzero(part > PART * part.max())


def attainable(problem: Problem, k: int) -> float:
    """How much the bound of goal k must be relaxed if the others hold, as far as phi is right.

    In units of the goal's value; negative if it can be tightened, inf if the others cannot hold.
    """
    this = np.arange(len(problem.bound)) == k
    if len(conflicting(problem.with_goals(~this))):
        return np.inf

    def excess(relaxed: float) -> float:
        moved = problem.tightened(np.where(this, -relaxed, 0.0))
        return best_prices(moved.minimizing(k))[1] - moved.bound[k]

    if not problem.is_ratio[k]:
        by, only = excess(0.0), problem.minimizing(k)
        uses = only.row_costs(without_prices(only))
        most = -only.weight @ lowest_sums(np.where(np.isfinite(uses), -uses, np.inf), only.n_select)
        return by if by <= most - problem.bound[k] else np.inf  # beyond any value of the goal
    low, high = 0.0, 1.0
    for _ in range(RATIO_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) <= CONFLICT else (middle, high)
    return high


def told_apart(value: float, other: float, digits: int = 3) -> str:
    """Return a number with so many digits, or as tell it from another one; empty if 9 do not."""
    if abs(value - other) <= RATE_TOL:
        return ""
    texts = (f"{value:.{n}g}" for n in range(digits, 10))
    return next((text for text in texts if text != f"{other:.9g}"), "")


def enough_to_relax(
    problem: Problem,
    goals: Iterable[int],
    labels: Sequence[str],
    bound: Sequence[float] | np.ndarray,
    sign: Sequence[float] | np.ndarray,
) -> str:
    """Advise how far to relax one of some goals in conflict; empty if one is not enough.

    `bound` and `sign` are those of the goals as declared, with a sign of 1 for <= and -1 for >=.
    """
    enough = []
    for k in goals:
        by = max(attainable(problem, k), 0.0)
        if np.isfinite(by) and (reached := told_apart(bound[k] + sign[k] * by, bound[k])):
            enough.append(f"{labels[k]} to {reached}")
    if not enough:
        return ""
    return f" It is about enough to relax one of them: {', or '.join(enough)}."


@dataclass(frozen=True)
class ShadowPrices:
    """Shadow prices: the cost of the constraints to the objective.

    Attributes
    ----------
    per_unit : ndarray of shape (m,)
        How much better it is per unit by which each bound is relaxed.
    dropped : ndarray of shape (m,)
        How much better it is without the declared constraint that each one is a part of.
    free : float
        The objective without any constraint, lower is better; nan if it is not known.
    """

    per_unit: np.ndarray
    dropped: np.ndarray
    free: float = np.nan


def gains_without(
    value: Callable[[np.ndarray], float],
    declared: np.ndarray,
    binding: np.ndarray,
    every: float,
) -> np.ndarray:
    """How much lower the objective is without each declared constraint.

    Parameters
    ----------
    value : callable
        The lowest objective under some of the m goals, given by a mask.
    declared : ndarray of int, shape (m,)
        Number of the declared constraint that each goal is a part of.
    binding : ndarray of bool, shape (m,)
        The goals without which something may be gained.
    every : float
        The objective under all of them.

    Returns
    -------
    ndarray of shape (m,)
        At least 0, and the same for all parts of a constraint.
    """
    gains = np.zeros(len(declared))
    for number in np.unique(declared[binding]):
        of_it = declared == number
        gains[of_it] = np.maximum(every - value(~of_it), 0.0)  # nan stays
    return gains


def prices_under(
    problem: Problem, prices: Prices, kept: np.ndarray
) -> tuple[Problem, Prices, float]:
    """Return the problem under some of the goals, and `best_prices` of it from those of all."""
    part = problem.with_goals(kept)
    start = replace(prices, goals=prices.goals[kept])
    return part, *best_prices(part, start, SMOOTHING[-1:])


def dropped_prices(problem: Problem, prices: Prices, declared: np.ndarray) -> np.ndarray:
    """`gains_without` each declared constraint, as the dual expects, from a rule's multipliers.

    nan if no randomized rule meets the goals.
    """
    if at_ceiling(problem, prices):
        return np.full(len(declared), np.nan)

    def value(kept: np.ndarray) -> float:
        return prices_under(problem, prices, kept)[2]

    binding = prices.goals > 0
    every = value(np.ones(len(declared), dtype=bool)) if binding.any() else 0.0
    return gains_without(value, declared, binding, every)
