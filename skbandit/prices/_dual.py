"""Multipliers of goals on decisions: the dual of a linear program over randomized rules.

Row i is of stratum f, such as a label, with probability phi[i, f] given what is known of it at
prediction. Expression k of the decisions adds T_k[f, j] per unit of weight of rows of stratum f for
which j is decided. Over all randomized rules,

    minimize <T_0, B>   subject to   <T_k, B> <= b_k,   B[f, j] = sum_i w_i phi[i, f] pi[i, j],

is a linear program. Its dual is concave in the multipliers,

    maximize  sum_i w_i min_j (phi_i L)_j - lambda b,   L = T_0 + sum_k lambda_k T_k,  lambda >= 0. (1)

A vertex splits at most as many rows as there are goals, so that the deterministic rule
``argmin_j (phi_i L)_j`` is within so many rows of the optimum, unless many rows have equal phi.

The largest of several objectives, ``<T_0g, B> + a_g``, is the smallest t above all of them. Its
multipliers mu add up to 1, as t has the cost 1 - sum mu; t is treated as one more row, which has
two decisions, the ends of its range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

SMOOTHING = (0.1, 0.01, 0.001)
"""Smoothing of min in (1), in units of the objective's largest cost of a row; each starts from the
last."""

HIGHEST = 1e4
"""Multiplier that stands for any higher one, in units of costs per row."""

ITERATIONS, FUNCTION_TOLERANCE, GRADIENT_TOLERANCE = 300, 1e-12, 2e-6
"""When a maximization ends, in units of the objective's largest cost of a row."""


@dataclass(frozen=True)
class DecisionProblem:
    """Objectives and goals of decisions on N rows, as tables by stratum and decision.

    Attributes
    ----------
    strata : ndarray or csr_array of shape (N, F)
        phi: probability that a row is of each stratum.
    weight : ndarray of shape (N,)
        Nonnegative, of sum 1.
    objective : ndarray of shape (G, F, D)
        T_0 of each expression, of which the largest counts.
    constant : ndarray of shape (G,)
        Added to these.
    goals : ndarray of shape (m, F, D)
        T_k.
    bound : ndarray of shape (m,)
        b.
    divisors : ndarray of shape (m, F, D), optional
        Tables of what each goal's value is a ratio to; None is for sums.
    divisor_constant : ndarray of shape (m,), optional
        Added to these; 1 without divisors.
    """

    strata: np.ndarray | csr_array
    weight: np.ndarray
    objective: np.ndarray
    constant: np.ndarray
    goals: np.ndarray
    bound: np.ndarray
    divisors: np.ndarray | None = None
    divisor_constant: np.ndarray | None = None

    @property
    def reach(self) -> np.ndarray:
        """The largest cost of a row in each goal, shape (m,)."""
        return _largest(self.goals)

    @property
    def unit(self) -> float:
        """The largest cost of a row in the objective."""
        return float(_largest(self.objective).max())

    def costs(self, prices: Prices) -> np.ndarray:
        """L of (1), shape (F, D)."""
        objective = np.tensordot(prices.objectives, self.objective, 1)
        return objective + np.tensordot(prices.goals, self.goals, 1)

    def decide(self, prices: Prices) -> np.ndarray:
        """The decision of least cost for each row, shape (N,)."""
        return np.asarray(self.strata @ self.costs(prices)).argmin(axis=1)

    def excess(self, decided: np.ndarray) -> np.ndarray:
        """Expected excess of each goal's value over its bound at given decisions, shape (m,).

        nan where a divisor is 0.
        """
        chosen = (decided[:, None] == np.arange(self.goals.shape[2])) * self.weight[:, None]
        B = np.asarray(self.strata.T @ chosen)
        above = np.tensordot(self.goals, B, 2) - self.bound
        if self.divisors is None or self.divisor_constant is None:
            return above
        below = np.tensordot(self.divisors, B, 2) + self.divisor_constant
        return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)

    def tightened(self, by: np.ndarray) -> DecisionProblem:
        """The bounds moved inwards, in units of the goals' values.

        N/D <= t - s is N - tD <= -sD: of a ratio the table changes, not the bound. So a stricter
        bound on a precision is met by fewer decisions, whatever the probabilities.
        """
        if self.divisors is None or self.divisor_constant is None:
            return replace(self, bound=self.bound - by)
        goals = self.goals + by[:, None, None] * self.divisors
        return replace(self, goals=goals, bound=self.bound - by * self.divisor_constant)

    def at_ceiling(self, prices: Prices) -> bool:
        """Whether some multiplier is about the highest there is."""
        return bool((prices.goals * self.reach > 0.5 * HIGHEST * self.unit).any())

    def without_prices(self) -> Prices:
        """Prices at which goals cost nothing, and all objectives weigh the same."""
        n_objectives = len(self.constant)
        return Prices(np.full(n_objectives, 1 / n_objectives), np.zeros(len(self.bound)))

    def with_objective(self, tables: np.ndarray, constant: np.ndarray) -> DecisionProblem:
        """The same goals with another objective."""
        return replace(self, objective=tables, constant=constant)

    def with_goals(self, kept: np.ndarray) -> DecisionProblem:
        """Some of the goals."""
        parts = {
            name: part[kept]
            for name in ("goals", "bound", "divisors", "divisor_constant")
            if (part := getattr(self, name)) is not None
        }
        return replace(self, **parts)

    def rows(self, kept: np.ndarray) -> DecisionProblem:
        """Some of the rows stand for all."""
        weight = self.weight[kept]
        return replace(self, strata=self.strata[kept], weight=weight / weight.sum())


@dataclass(frozen=True)
class Prices:
    """Multipliers: mu of the objectives, of sum 1, and lambda of the goals."""

    objectives: np.ndarray
    goals: np.ndarray


def best_prices(
    problem: DecisionProblem,
    start: Prices | None = None,
    smoothing: tuple[float, ...] = SMOOTHING,
    highest: float = HIGHEST,
) -> tuple[Prices, float]:
    """Maximize (1).

    Parameters
    ----------
    problem : DecisionProblem
    start : Prices or None
        Where to begin; None is for goals that cost nothing.
    smoothing : tuple of float
        See `SMOOTHING`.
    highest : float
        See `HIGHEST`.

    Returns
    -------
    tuple of (Prices, float)
        The multipliers, and the value of (1): no randomized rule that meets the bounds, as far as
        phi is right, has a lower objective. It is about `highest` or more if none meets them.
    """
    start = problem.without_prices() if start is None else start
    several, one = len(problem.constant) if len(problem.constant) > 1 else 0, problem.unit or 1.0
    reach = problem.reach
    # in these units a multiplier of 1 adds costs as large as the objective's
    scale = np.concatenate([np.full(several, one), np.where(reach > 0, reach, 1.0)]) / one
    tables = np.concatenate([problem.objective[:several], problem.goals])
    tables = tables.reshape(len(scale), problem.objective[0].size) / scale[:, None]
    fixed = np.zeros(problem.objective[0].size) if several else problem.objective[0].ravel()
    offset = np.concatenate([problem.constant[:several], -problem.bound]) / scale
    added = 0.0 if several else float(problem.constant[0])
    ends, member = _range_of_largest(problem), np.arange(len(scale)) < several
    strata, weight, shape = problem.strata, problem.weight, problem.goals.shape[1:]
    transposed = strata.T

    def minus_dual(x: np.ndarray, tau: float) -> tuple[float, np.ndarray]:
        cost = np.asarray(strata @ (fixed + x @ tables).reshape(shape))
        value, share = _soft_minimum(cost, tau * one)
        B = np.asarray(transposed @ (share * weight[:, None])).ravel()
        found, gradient = float(weight @ value) + x @ offset + added, tables @ B + offset
        if several:
            left = 1.0 - float((x / scale)[member].sum())
            least, at = _soft_minimum(ends[None, :] * left, tau * one)
            found += float(least[0])
            gradient = gradient - np.where(member, float((at @ ends)[0]), 0.0) / scale
        return -float(found) / one, -gradient / one

    x = np.concatenate([start.objectives[:several], start.goals]) * scale
    options = {
        "maxiter": ITERATIONS,
        "ftol": FUNCTION_TOLERANCE,
        "gtol": GRADIENT_TOLERANCE,
    }
    for tau in smoothing if len(x) else ():
        bounds = [(0.0, highest)] * len(x)
        x = minimize(minus_dual, x, (tau,), "L-BFGS-B", jac=True, bounds=bounds, options=options).x
    multipliers = x / scale
    mu = multipliers[:several] if several else np.ones(1)
    total = float(mu.sum())
    prices = Prices(
        mu / total if total > 0 else np.full(len(mu), 1 / len(mu)), multipliers[several:]
    )
    if total > 0:  # costs are as they were, in units that make mu add up to 1
        prices = replace(prices, goals=prices.goals / total)
    least = np.asarray(strata @ problem.costs(prices)).min(axis=1)
    constant = prices.objectives @ problem.constant - prices.goals @ problem.bound
    return prices, float(weight @ least + constant)


def _soft_minimum(cost: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """The smoothed minimum of each row, and its gradient: the share of each entry."""
    low = cost.min(axis=1)
    share = np.exp((low[:, None] - cost) / tau)
    total = share.sum(axis=1)
    return low - tau * np.log(total), share / total[:, None]


def _largest(tables: np.ndarray) -> np.ndarray:
    """The largest difference of two decisions' costs in some stratum, per table."""
    if not tables.size:
        return np.zeros(len(tables))
    return np.ptp(tables, axis=2).max(axis=1)


def _range_of_largest(problem: DecisionProblem) -> np.ndarray:
    """Ends of the range of the largest objective, shape (2,)."""
    of_stratum = np.asarray(problem.strata.T @ problem.weight).ravel()
    low = problem.objective.min(axis=2) @ of_stratum + problem.constant
    high = problem.objective.max(axis=2) @ of_stratum + problem.constant
    return np.array([low.max(), high.max()])


CONFLICT = 1e-4
"""Excess, in costs per row, from which on goals are said to be in conflict."""

PART = 0.02
"""Multipliers below this share of the largest one take no part in a conflict."""


def conflicting(problem: DecisionProblem) -> np.ndarray:
    """The goals that no randomized rule meets together, by number; none if some rule meets all.

    The multipliers at most 1 that maximize the excess of the goals' weighted sum over its bound
    prove it (Farkas 1902): if the excess is positive, those with a positive one cannot hold
    together.
    """
    nothing = np.zeros((1, *problem.goals.shape[1:]))
    scale = np.where(problem.reach > 0, problem.reach, 1.0)
    free = replace(
        problem,
        objective=nothing,
        constant=np.zeros(1),
        goals=problem.goals / scale[:, None, None],
        bound=problem.bound / scale,
    )
    prices, excess = best_prices(free, highest=1.0)
    if excess <= CONFLICT:
        return np.zeros(0, dtype=int)
    return np.flatnonzero(prices.goals > PART * prices.goals.max())


HALVINGS = 12
"""Bisections of what is attainable of a ratio."""


def attainable(problem: DecisionProblem, k: int) -> float:
    """How much the bound of goal k must be relaxed if the others hold, as far as phi is right.

    In units of the goal's value; negative if it can be tightened, inf if the others cannot hold.
    """
    others = np.arange(len(problem.bound)) != k
    alone = problem.with_goals(others)
    if len(conflicting(alone)):
        return np.inf

    def excess(relaxed: float) -> float:
        moved = problem.tightened(np.where(others, 0.0, -relaxed))
        return best_prices(alone.with_objective(moved.goals[[k]], np.zeros(1)))[1] - moved.bound[k]

    if problem.divisors is None or not problem.divisors[k].any():
        return excess(0.0)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) <= CONFLICT else (middle, high)
    return high
