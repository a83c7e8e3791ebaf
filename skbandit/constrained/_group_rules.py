"""Rules with one threshold per group of rows, as columns of the linear program of prices.

With G groups and C thresholds in each, a score makes C^G rules: too many to list. But the reduced
cost of a rule, N0 - t D0 + lambda @ (S pi - rhs), is a sum over rows, so over groups, and what a
group adds depends on its own threshold alone. The combination of least reduced cost is found group
by group, in G C steps, and becomes a column; when none has a negative reduced cost, the prices are
those of the best mixture of all C^G rules (column generation, as in `_prices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skbandit.constrained._prices import (
    CUTS,
    LinearProblem,
    Prices,
    Rules,
    best_prices,
    rules_of_sums,
    summed_rows,
)
from skbandit.constrained._threshold import (
    cuts_between,
    descending_in_groups,
    head_sums_in_groups,
    spread,
)
from skbandit.rates._binding import ScoreLimits

ROUNDS = 40
"""Linear programs at most until no combination of thresholds has a negative reduced cost."""

ENOUGH = 1e-4
"""Reduced costs that are smaller, relative to the largest objective, change prices by less than
sampling error does."""


@dataclass(frozen=True)
class GroupCuts:
    """What the rows of each group above each threshold of a score contribute.

    Attributes
    ----------
    problem : LinearProblem
    limits : ScoreLimits or None
        Over the same rows.
    sums : tuple of ndarray of shape (S, C_g)
        Of `summed_rows`, for each group.
    """

    problem: LinearProblem
    limits: ScoreLimits | None
    sums: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        group: np.ndarray,
        problem: LinearProblem,
        limits: ScoreLimits | None = None,
        most: int = CUTS,
    ) -> GroupCuts:
        """Sort a score in each group.

        Parameters
        ----------
        scores : ndarray of shape (n,)
        group : ndarray of int, shape (n,)
            Group of each row, 0 to G - 1.
        problem : LinearProblem
            Over these rows.
        limits : ScoreLimits or None
        most : int
            Number of thresholds of a group at most, besides the outermost two: evenly spaced.
        """
        orders = [order for order in descending_in_groups(scores, group) if len(order)]
        heads = [spread(cuts_between(scores[order])[1], most) for order in orders]
        sums = head_sums_in_groups(summed_rows(problem, limits), orders, heads)
        return cls(problem, limits, tuple(sums))

    def cheapest(self, prices: Prices, z: float = 0.0) -> Rules:
        """The combination of least reduced cost, one rule.

        What constraints miss is counted by limits at the normal quantile z afterwards, and by
        rates in the search: limits are no sums over groups.
        """
        # no prices for the divisors and for the sums of limits
        of_sums = np.concatenate([[1.0, -prices.value], prices.constraints])
        best = [part[:, [np.argmin(of_sums @ part[: len(of_sums)])]] for part in self.sums]
        return rules_of_sums(np.sum(best, axis=0), self.problem, self.limits, z)


def with_group_cuts(
    rules: Rules, several: Sequence[GroupCuts], most: np.ndarray, z: float = 0.0
) -> Rules:
    """Add combinations of thresholds that the best mixture of rules lacks.

    Parameters
    ----------
    rules : Rules
        Known ones, with D0 > 0 for one of them at least.
    several : sequence of GroupCuts
        One per score.
    most : ndarray of shape (K,)
        Highest price of each constraint.
    z : float
        Normal quantile of the limits' level.

    Returns
    -------
    Rules
        Those known first, then the added ones.
    """
    for _ in range(ROUNDS):
        prices = best_prices(rules, most)
        added = Rules.joined([one.cheapest(prices, z) for one in several])
        useful = added.reduced(prices) < -ENOUGH * np.abs(rules.above).max()
        if not useful.any():
            break
        rules = Rules.joined([rules, added.subset(useful)])
    return rules
