"""The lines watched: each goal on each of its groups, with the evidence that an alarm needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.special import gammaln

from skbandit.evaluation._monitor._counts import Counts, Key
from skbandit.evaluation._monitor._evidence import Sum, Term
from skbandit.evaluation._monitor._units import Claim, Piece, Unit
from skbandit.evaluation._rate_report import ALL
from skbandit.measure import Data
from skbandit.rates._kinds import ClassSlot, Slot

NEVER = 0.01
"""Chance of no label, if labels came for any decision alike, below which they never come."""


@dataclass(frozen=True, eq=False)
class GoalLine:
    """A goal on a group or pair: a row of the report.

    Attributes
    ----------
    claim : Claim
    on : str
        What is written for the next three; see `Watched._lines`.
    of, group, by : tuple
        Classes, and groups, of a form, and the group of `by`; empty for all rows.
    sum : Sum
    n_rows, n_labeled : float
        Decisions that count, and those with a label; nan if none is needed.
    unknown : str
        Why the value cannot be known; "" if it can.
    first : int
        The first period with rows.
    threshold : float
        Logarithm of one over its part of the error.
    """

    claim: Claim
    on: str
    of: tuple[Any, ...]
    group: tuple[Any, ...]
    by: tuple[Any, ...]
    sum: Sum
    n_rows: float
    n_labeled: float
    unknown: str
    first: int
    threshold: float = np.nan

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of its alarm."""
        return self.claim.number, self.of, self.group, self.by


@dataclass(frozen=True, eq=False)
class Watched:
    """Counts, and what they are of."""

    units: Sequence[Unit]
    claims: Sequence[Claim]
    counts: Counts
    data: Data

    def lines(self, false_alarms: float) -> list[GoalLine]:
        """Return all lines, goal by goal, those of all rows first."""
        lines = []
        for claim in self.claims:
            of_claim = [*self._lines(claim)]
            texts = Counter(line.on for line in of_claim)
            texts.update([ALL, ALL])  # of all rows
            for line in of_claim:  # groups and classes in quotes whose texts are not their own
                quoted = any(line.key[1:]) and texts[line.on] > 1
                lines.append(replace(line, on=_text(line, repr)) if quoted else line)
        lines.sort(key=lambda line: (line.claim.goal, bool(line.by)))
        return _with_thresholds(lines, 1 + self.claims[-1].goal, false_alarms)

    def _lines(self, claim: Claim) -> Iterator[GoalLine]:
        """Yield the lines of a claim, of each group of `by`, class and group of a form."""
        rate, pieces = claim.rate, claim.pieces
        of_pieces = [self.units[piece.unit].classes(self.data) for piece in pieces]
        labels = next((labels[1:] for labels in of_pieces if len(labels) > 1), [])
        classes = _ordered(rate.over_classes, labels)
        keys = [key for key in self.counts.seen if key[0] in {piece.unit for piece in pieces}]
        for by in sorted({key[3] for key in keys}, key=_order):
            members = sorted({k[2] for k in keys if k[3] == by and k[2]}, key=_order)
            cells = [
                cell
                for cell in product(classes, _ordered(rate.grouped_by, members))
                if all(self._covered(self._key(piece, *cell, by)) for piece in pieces)
            ]
            if rate.summary == "mean" and cells:
                n = len(cells)
                parts = [replace(x, above=x.above / n, below=x.below / n) for x in pieces]
                spread = [(piece, *cell) for cell in cells for piece in parts]
                yield self._line(claim, spread, ((), (), by))
                continue
            for of, group in cells:
                yield self._line(claim, [(x, of, group) for x in pieces], (of, group, by))

    def _key(self, piece: Piece, of: Any, group: Any, by: tuple[Any, ...]) -> Key:
        atom = self.units[piece.unit].atom
        label = of[piece.of] if isinstance(atom.of, ClassSlot) else None
        member = group[piece.group] if isinstance(atom.group, Slot) else ()
        return piece.unit, label, member, by

    def _covered(self, key: Key) -> dict[tuple[int, Any], list[float]]:
        """Return rows seen, by period and decision, of decisions that can count."""
        seen = self.counts.seen.get((key[0], None, *key[2:]), {})
        counts = np.flatnonzero(self.units[key[0]].denominator(key[1], self.data).any(axis=0))
        inside = {self.data.decisions[k] for k in counts.tolist()}
        return {place: numbers for place, numbers in seen.items() if place[1] in inside}

    def _line(
        self,
        claim: Claim,
        filled: Sequence[tuple[Piece, Any, Any]],
        place: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]],
    ) -> GoalLine:
        periods = self.counts.periods
        keys = [self._key(piece, of, group, place[2]) for piece, of, group in filled]
        terms = []
        for key in keys:
            unit, tally = self.units[key[0]], self.counts.tally(key, periods)
            terms.append(Term(tally, unit.low, unit.high, unit.atom.kind.name == "f1"))
        apart = all(self._apart(a, b) for k, a in enumerate(keys) for b in keys[:k])
        above, below = np.array([(piece.above, piece.below) for piece, *_ in filled]).T.copy()
        of_claim = claim.constant, claim.rest, apart, claim.constraint.bound, claim.sign
        total = Sum(tuple(terms), above, below, *of_claim)
        seen = [(key, self._covered(key)) for key in dict.fromkeys(keys)]
        with_label = [(key, part) for key, part in seen if self.units[key[0]].needs_label]
        n_rows, n_labeled = _in_groups(seen, 0), _in_groups(with_label, 1)
        unknown = next(filter(None, (self._why_unknown(*entry) for entry in with_label)), "")
        first = max((min((p for p, _ in part), default=0) for _, part in seen), default=0)
        n_labels = float(n_labeled) if with_label else np.nan
        line = GoalLine(claim, "", *place, total, float(n_rows), n_labels, unknown, first)
        return replace(line, on=_text(line, str))

    def _apart(self, a: Key, b: Key) -> bool:
        """Return if no row can count in both."""
        first, second = (self.units[key[0]] for key in (a, b))
        if first.columns == second.columns and a[2] != b[2]:
            return True
        kinds = [unit.atom.kind.compares_with for unit in (first, second)]
        if "reference" in kinds:
            return False
        below = [self.units[key[0]].denominator(key[1], self.data) for key in (a, b)]
        return not (below[0] & below[1]).any()

    def _why_unknown(self, key: Key, covered: dict[tuple[int, Any], list[float]]) -> str:
        """Return which decision's labels never come, though those of others of the same time do."""
        seen = self.counts.seen[key[0], None, *key[2:]]
        shares: dict[int, list[float]] = {}
        for (period, _), (rows, labeled) in seen.items():
            total = shares.setdefault(period, [0.0, 0.0])
            total[0], total[1] = total[0] + rows, total[1] + labeled
        for decision in dict.fromkeys(d for _, d in covered):
            places = {p: numbers for (p, d), numbers in covered.items() if d == decision}
            if any(labeled for _, labeled in places.values()):
                continue
            chance = 0.0
            for period, (rows, _) in places.items():
                n, labeled = shares[period]
                rest = n - rows - labeled
                chance += gammaln([n - rows + 1, n - labeled + 1]).sum()
                chance -= gammaln([rest + 1, n + 1]).sum()  # all labels are of other decisions
            if chance < np.log(NEVER):
                return f"cannot be known: no label for rows decided {decision!r}"
        return ""


def _with_thresholds(
    lines: Sequence[GoalLine], n_goals: int, false_alarms: float
) -> list[GoalLine]:
    """Return lines with their parts of the error.

    Each goal has the same part of the error. Half of it is for groups of `by`, if there are. Of
    what has groups, those that begin in the n-th of the periods in which any begin share
    1/(n (n + 1)).
    """
    split = {line.claim.goal for line in lines if line.by}
    each = []
    for line in lines:
        alike = [
            other.first
            for other in lines
            if other.claim.goal == line.claim.goal and bool(other.by) == bool(line.by)
        ]
        share = alike.count(line.first)
        if line.by or line.claim.rate.is_form:
            rank = sorted(set(alike)).index(line.first) + 1
            share *= rank * (rank + 1)
        share *= n_goals * (2 if line.claim.goal in split else 1)
        each.append(replace(line, threshold=float(np.log(share / false_alarms))))
    return each


def _text(line: GoalLine, show: Callable[[Any], str]) -> str:
    joint = " / " if line.claim.rate.denominator is not None else " - "
    names = [joint.join(", ".join(map(show, group)) for group in line.group)]
    names += [joint.join(map(show, line.of)), *map(show, line.by)]
    return ", ".join(filter(None, names)) or ALL


def _in_groups(parts: Sequence[tuple[Key, dict[Any, list[float]]]], column: int) -> float:
    """Return rows of all groups, of which those of all rows, (), are one."""
    totals: dict[tuple[Any, ...], float] = {}
    for key, part in parts:
        total = sum(numbers[column] for numbers in part.values())
        totals[key[2]] = max(total, totals.get(key[2], 0.0))
    return totals.get((), sum(totals.values()))


def _ordered(several: tuple[Any, int] | None, members: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return what a form is of: groups or classes, or ordered pairs of them; () is no form."""
    return [()] if several is None else list(permutations(members, several[1]))


def _order(values: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Return numbers in order before texts."""
    return [(isinstance(x, str), x if isinstance(x, str) else float(x)) for x in values]
