"""One option from each of G sets: the smallest ratio of sums under K bounds on sums.

Minimise N(c)/D(c) over choices c = (c_1, ..., c_G), one option of each set, subject to
A_k(c) <= b_k for k = 1, ..., K, where N, D and the A_k are constants plus sums over the sets of
what the chosen options contribute. With D = 1 this is the multiple-choice knapsack problem with
several constraints (Kellerer, Pferschy and Pisinger 2004, chapter 11).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from scipy.optimize import linprog

from skbandit.constrained._tolerances import MET

ROUNDING = 1e-12
"""Excess of a sum over its bound, in its units, that is rounding."""


@dataclass(frozen=True)
class Options:
    """What the m options of one set contribute.

    Attributes
    ----------
    numerator, denominator : ndarray of shape (m,)
    rows : ndarray of int, shape (r,)
        The constraints that the set contributes to.
    uses : ndarray of shape (r, m)
        Contributions to these.
    """

    numerator: np.ndarray
    denominator: np.ndarray
    rows: np.ndarray
    uses: np.ndarray

    def __len__(self) -> int:
        return len(self.numerator)

    def subset(self, kept: np.ndarray) -> Options:
        """Keep some of the options."""
        return Options(self.numerator[kept], self.denominator[kept], self.rows, self.uses[:, kept])


@dataclass(frozen=True)
class MultipleChoice:
    """The problem: G sets, the constants n_0 and d_0, and the bounds b of shape (K,)."""

    sets: tuple[Options, ...]
    numerator: float
    denominator: float
    bound: np.ndarray

    def used(self, choice: np.ndarray) -> np.ndarray:
        """Sums A(c) of shape (K,)."""
        total = np.zeros(len(self.bound))
        for options, j in zip(self.sets, choice, strict=True):
            total[options.rows] += options.uses[:, j]
        return total

    def excess(self, choice: np.ndarray) -> float:
        """Largest excess over a bound, negative if there is room; -inf without constraints."""
        return float((self.used(choice) - self.bound).max(initial=-np.inf))

    def value(self, choice: np.ndarray) -> float:
        """The ratio N/D; inf if D is not positive."""
        pairs = list(zip(self.sets, choice, strict=True))
        above = self.numerator + sum(float(one.numerator[j]) for one, j in pairs)
        below = self.denominator + sum(float(one.denominator[j]) for one, j in pairs)
        return above / below if below > ROUNDING else math.inf


@dataclass(frozen=True)
class Choice:
    """One option of each set.

    Attributes
    ----------
    options : ndarray of int, shape (G,)
    value : float
        Its ratio.
    excess : float
        Its largest excess over a bound; positive only if no feasible choice was found.
    lowest : float
        No feasible choice has a smaller value: `value` minus MET if it is optimal, inf if none
        is feasible.
    """

    options: np.ndarray
    value: float
    excess: float
    lowest: float


PENALTY = 1e3
"""Largest sum of multipliers, in units of the objective per unit of excess.

Any mu gives a valid bound; this one limits where the linear program looks for it.
"""

PRICED = 12
"""Rounds of column generation at most for one box; the first gets `FIRST_PRICED`."""

FIRST_PRICED = 60
"""Rounds of column generation at most for the whole problem."""

ENUMERATED = 200_000
"""Partial choices that an enumeration keeps at most, divided by 1 + K/10; beyond it splits."""

BOXES, MORE_BOXES = 150, 600
"""Boxes that are bounded in search of the exact optimum, and in search of one within CLOSE."""

CLOSE = 1e-3
"""Gap, in units of the objective, with which the search ends after BOXES boxes."""


def minimise(problem: MultipleChoice, start: np.ndarray, most_boxes: int | None = None) -> Choice:
    """Find the best feasible choice, or, if there is none, one with the smallest excess.

    Parameters
    ----------
    problem : MultipleChoice
    start : ndarray of int, shape (G,)
        A choice, not necessarily feasible. The result is at least as good.
    most_boxes : int or None
        Boxes that are bounded at most; None is MORE_BOXES.

    Returns
    -------
    Choice
    """
    start = np.asarray(start)
    if problem.excess(start) > ROUNDING:
        search = _Search(replace(problem, denominator=1.0), start, elastic=True)
        search.run(MORE_BOXES if most_boxes is None else most_boxes)
        start = search.best
        if problem.excess(start) > ROUNDING:
            proven = search.lowest > ROUNDING
            return Choice(
                start,
                problem.value(start),
                problem.excess(start),
                math.inf if proven else -math.inf,
            )
    search = _Search(problem, start, elastic=False)
    search.run(MORE_BOXES if most_boxes is None else most_boxes)
    return Choice(
        search.best, problem.value(search.best), problem.excess(search.best), search.lowest
    )


@dataclass(frozen=True)
class _Box:
    """Intervals of options, with multipliers and columns to start from."""

    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray
    columns: tuple[frozenset[int], ...]


@dataclass
class _Search:
    """Branch and bound; `elastic` minimises the excess and stops at the first feasible choice."""

    problem: MultipleChoice
    best: np.ndarray
    elastic: bool
    lowest: float = -math.inf
    value: float = field(init=False)
    costs: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = [np.arange(len(options)) for options in self.problem.sets]
        self._set_best(self._descend(self.best))

    # --- the incumbent ---------------------------------------------------------------------

    def _measure(self, choice: np.ndarray) -> float:
        excess = self.problem.excess(choice)
        if self.elastic:
            return max(excess, 0.0)
        return self.problem.value(choice) if excess <= ROUNDING else math.inf

    def _set_best(self, choice: np.ndarray) -> None:
        self.best, self.value = choice, self._measure(choice)
        v = self.value if math.isfinite(self.value) else 0.0
        self.costs = [
            np.zeros(len(one)) if self.elastic else one.numerator - v * one.denominator
            for one in self.problem.sets
        ]

    def _offer(self, choice: np.ndarray) -> None:
        if self._measure(choice) < self.value - (0.0 if self.elastic else MET):
            self._set_best(choice)

    def _descend(self, choice: np.ndarray) -> np.ndarray:
        """Move one set at a time to its best option, given the others."""
        problem, choice = self.problem, np.array(choice)
        for _ in range(20):
            before = choice.copy()
            for g, options in enumerate(problem.sets):
                others = problem.used(choice)
                others[options.rows] -= options.uses[:, choice[g]]
                room = problem.bound - others
                fixed = np.delete(-room, options.rows).max(initial=0.0)
                over = (options.uses - room[options.rows][:, None]).max(axis=0, initial=0.0)
                over = np.where(over > ROUNDING, np.maximum(over, fixed), fixed)
                least = over <= over.min() + ROUNDING
                v = problem.value(choice)
                v = v if math.isfinite(v) else 0.0
                cost = np.where(least, options.numerator - v * options.denominator, np.inf)
                if cost.min() < cost[choice[g]] - ROUNDING:
                    choice[g] = int(np.argmin(cost))
            if (choice == before).all():
                break
        return choice

    # --- bounds ----------------------------------------------------------------------------

    @property
    def _target(self) -> float:
        """The Lagrangian from which on a box holds nothing better."""
        return self.value - ROUNDING if self.elastic else -MET * max(self.problem.denominator, 0.0)

    @property
    def _constant(self) -> float:
        v = self.value if math.isfinite(self.value) else 0.0
        if self.elastic:
            return 0.0
        return self.problem.numerator - v * self.problem.denominator

    def _price(self, box: _Box, mu: np.ndarray) -> tuple[float, np.ndarray, list[np.ndarray]]:
        """L(mu) on a box, its minimiser, and what each option costs above its set's minimum."""
        total, choice, above = self._constant - float(mu @ self.problem.bound), [], []
        for options, cost, low, high in zip(
            self.problem.sets, self.costs, box.low, box.high, strict=True
        ):
            reduced = cost[low:high] + mu[options.rows] @ options.uses[:, low:high]
            j = int(np.argmin(reduced))
            total += float(reduced[j])
            choice.append(low + j)
            above.append(reduced - reduced[j])
        return total, np.array(choice), above

    def _master(
        self, columns: Sequence[Sequence[int]]
    ) -> tuple[float, np.ndarray, list[np.ndarray]] | None:
        """Optimal value, multipliers and weights of the linear program over some columns.

        None if the solver fails: any multipliers give a bound, so those known so far will do.
        """
        problem, sizes = self.problem, [len(some) for some in columns]
        n = sum(sizes)
        uses = np.zeros((len(problem.bound), n + 1))
        uses[:, n] = -1.0
        once = np.zeros((len(sizes), n + 1))
        cost = np.full(n + 1, 1.0 if self.elastic else PENALTY)
        place = 0
        for g, (options, some) in enumerate(zip(problem.sets, columns, strict=True)):
            at = slice(place, place + len(some))
            uses[options.rows, at] = options.uses[:, some]
            once[g, at] = 1.0
            cost[at] = self.costs[g][some]
            place += len(some)
        found = linprog(cost, uses, problem.bound, once, np.ones(len(sizes)), method="highs")
        if found.x is None:
            return None
        mu = np.maximum(-found.ineqlin.marginals, 0.0)
        weights = np.split(found.x[:n], np.cumsum(sizes)[:-1])
        return float(found.fun) + self._constant, mu, weights

    def _bound(
        self, box: _Box, rounds: int
    ) -> tuple[float, _Box, list[np.ndarray], list[list[int]], list[np.ndarray]]:
        """Best L found on a box, its mu, costs above minima there, columns and their weights."""
        columns = [
            {j for j in some if low <= j < high}
            for some, low, high in zip(box.columns, box.low, box.high, strict=True)
        ]
        best, choice, above = self._price(box, box.mu)
        kept, chosen = box.mu, [sorted(some) for some in columns]
        weights: list[np.ndarray] = []
        for _ in range(rounds):
            if best >= self._target:
                break
            size = sum(map(len, columns))
            for some, j in zip(columns, choice, strict=True):
                some.add(int(j))
            if weights and sum(map(len, columns)) == size:
                break
            chosen = [sorted(some) for some in columns]
            solved = self._master(chosen)
            if solved is None:
                break
            value, mu, weights = solved
            bound, choice, at = self._price(box, mu)
            if bound > best:
                best, kept, above = bound, mu, at
            if value - best <= ROUNDING:
                break
        found = replace(box, mu=kept, columns=tuple(map(frozenset, columns)))
        return best, found, above, chosen, weights

    # --- branching -------------------------------------------------------------------------

    def run(self, most: int) -> None:
        """Search until the best choice is proven, or the number of boxes is used up."""
        problem = self.problem
        sizes = np.array([len(options) for options in problem.sets])
        none = tuple(frozenset[int]() for _ in sizes)
        root = _Box(np.zeros_like(sizes), sizes, np.zeros(len(problem.bound)), none)
        ticket = count()
        heap: list[tuple[float, int, _Box]] = [(-math.inf, next(ticket), root)]
        following: tuple[float, _Box] | None = None
        for done in range(most):
            if self.elastic and self.value <= ROUNDING:
                break
            while heap and heap[0][0] >= self.value - MET:
                heapq.heappop(heap)
            if following is None:
                if not heap:
                    break
                if done >= BOXES and self.value - heap[0][0] <= CLOSE:
                    break
                at, _, box = heapq.heappop(heap)
                following = at, box
            at, box = following
            following = None
            children = self._split(box, FIRST_PRICED if not done else PRICED)
            children = [(max(low, at), child) for low, child in children]
            if children:  # plunge into the better half
                children.sort(key=lambda pair: pair[0])
                following = children[0]
                for low, child in children[1:]:
                    heapq.heappush(heap, (low, next(ticket), child))
        open_bounds = [low for low, *_ in heap] + ([] if following is None else [following[0]])
        self.lowest = min([self.value - (0.0 if self.elastic else MET), *open_bounds])
        self.best = np.array([kept[j] for kept, j in zip(self.kept, self.best, strict=True)])

    def _lowest_value(self, bound: float, box: _Box) -> float:
        """No choice in the box has a smaller value, if L there is at least `bound`."""
        if self.elastic:
            return bound
        smallest = self.problem.denominator + sum(
            float(one.denominator[low:high].min())
            for one, low, high in zip(self.problem.sets, box.low, box.high, strict=True)
        )
        if bound >= 0:
            return self.value
        return self.value + bound / smallest if smallest > ROUNDING else -math.inf

    def _split(self, box: _Box, rounds: int) -> list[tuple[float, _Box]]:
        """The halves of a box that may hold something better, with their bounds."""
        bound, box, above, columns, weights = self._bound(box, rounds)
        if bound < self._target and weights:
            before = self.value
            for start in self._rounded(columns, weights):
                self._offer(self._descend(start))
            if self.value < before:
                bound, _, above = self._price(box, box.mu)
        if bound >= self._target:
            return []
        room = self.value - bound if self.elastic else -bound
        left = [np.flatnonzero(one <= room + ROUNDING) for one in above]
        if self._enumerate(box, left, above, room):
            return []
        low = np.array([at + one[0] for at, one in zip(box.low, left, strict=True)])
        high = np.array([at + one[-1] + 1 for at, one in zip(box.low, left, strict=True)])
        box = replace(box, low=low, high=high)
        lowest = self._lowest_value(bound, box)
        if rounds == FIRST_PRICED:
            box = self._compress(box, left)
        g, at = self._where(box)
        first, second = box.high.copy(), box.low.copy()
        first[g] = second[g] = at
        return [(lowest, replace(box, high=first)), (lowest, replace(box, low=second))]

    def _compress(self, box: _Box, left: list[np.ndarray]) -> _Box:
        """Forget the options that are in no better choice; only the best choice may use one."""
        kept = [
            np.union1d(low_left, [best]) for low_left, best in zip(left, self.best, strict=True)
        ]  # the root's box starts at 0
        self.kept = [old[new] for old, new in zip(self.kept, kept, strict=True)]
        sets = tuple(one.subset(new) for one, new in zip(self.problem.sets, kept, strict=True))
        self.problem = replace(self.problem, sets=sets)
        self._set_best(
            np.array([np.searchsorted(new, j) for new, j in zip(kept, self.best, strict=True)])
        )
        columns = tuple(
            frozenset(np.flatnonzero(np.isin(new, list(some))).tolist())
            for new, some in zip(kept, box.columns, strict=True)
        )
        sizes = np.array([len(new) for new in kept])
        return _Box(np.zeros_like(sizes), sizes, box.mu, columns)

    def _rounded(
        self, columns: Sequence[Sequence[int]], weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Choices near the linear program's mixtures."""
        heaviest = [some[int(np.argmax(w))] for some, w in zip(columns, weights, strict=True)]
        nearest = []
        for options, some, w in zip(self.problem.sets, columns, weights, strict=True):
            mean = options.uses[:, some] @ w
            away = np.abs(options.uses - mean[:, None]).sum(axis=0)
            nearest.append(int(np.argmin(away)))
        return [np.array(heaviest), np.array(nearest)]

    def _where(self, box: _Box) -> tuple[int, int]:
        """The set to split, and the first option of its second half."""
        size = box.high - box.low
        g = int(np.argmax(size))
        return g, int(box.low[g] + size[g] // 2)

    def _enumerate(
        self, box: _Box, left: list[np.ndarray], above: list[np.ndarray], room: float
    ) -> bool:
        """Offer the best of all choices that are left in a box; False if they are too many."""
        problem = self.problem
        most = max(int(ENUMERATED / (1.0 + len(problem.bound) / 10.0)), 1)
        order = np.argsort([len(one) for one in left])
        spent, used = np.zeros(1), np.zeros((len(problem.bound), 1))
        picked = np.zeros((len(order), 1), dtype=np.int64)
        least = np.zeros(len(problem.bound))
        smallest = []
        for g in order:
            options, at = problem.sets[g], left[g] + box.low[g]
            part = np.zeros(len(problem.bound))
            part[options.rows] = options.uses[:, at].min(axis=1)
            smallest.append(part)
            least += part
        for place, g in enumerate(order):
            options, at = problem.sets[g], left[g] + box.low[g]
            least = least - smallest[place]
            if spent.size * len(at) > 20 * most:
                return False
            total = spent[:, None] + above[g][left[g]][None, :]
            one, two = np.nonzero(total <= room + ROUNDING)
            if len(one) > most:
                return False
            spent, used = total[one, two], used[:, one]
            used[options.rows] += options.uses[:, at[two]]
            picked = picked[:, one]
            picked[g] = at[two]
            if not self.elastic:
                inside = (used + least[:, None] <= problem.bound[:, None] + ROUNDING).all(axis=0)
                spent, used, picked = spent[inside], used[:, inside], picked[:, inside]
        if spent.size:
            if self.elastic:
                over = (used - problem.bound[:, None]).max(axis=0, initial=0.0)
                self._offer(picked[:, int(np.argmin(over))])
            else:
                n, d = np.array(problem.numerator), np.array(problem.denominator)
                for options, j in zip(problem.sets, picked, strict=True):
                    n, d = n + options.numerator[j], d + options.denominator[j]
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = np.where(d > ROUNDING, n / d, np.inf)
                self._offer(picked[:, int(np.argmin(value))])
        return True
