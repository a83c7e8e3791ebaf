"""What reports say of rates on given predictions, and which pairs of groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skbandit.exceptions import EmptyRateError
from skbandit.measure._score_limits import intervals, trials_at
from skbandit.rates._columns import Data
from skbandit.rates._expression import Constraint, Rate, value_range
from skbandit.rates._values import count
from skbandit.utils._validation import RATE_TOL, warn

SMALL_DENOMINATOR = 20
"""Effective number of rows in a denominator below which a warning names the rate.

With fewer, the standard error of a rate of .8 exceeds .09.
"""

MOST_PAIRS = 30
"""Ordered pairs of groups, of one constraint, that are considered at once: all of six groups."""


@dataclass(frozen=True)
class Estimates:
    """Values of K rates at given decisions, and how well the rows tell them.

    Attributes
    ----------
    value : ndarray of shape (K,)
        nan if undefined, or not measured.
    effective : ndarray of shape (K,)
        Number of independent rows of equal weight that tell as much: of Kish's number, (sum w)^2 /
        sum w^2 over the rows in the denominator, dependence of rows and weights that go with the
        outcome leave a part (see `_trials`). The smallest of several denominators.
    n_groups : ndarray of int, shape (K,)
        Groups of dependent rows in the denominator, the fewest of several; 0 without groups.
    ends : ndarray of shape (K, 2)
        Intervals, nan where there is no value.
    """

    value: np.ndarray
    effective: np.ndarray
    n_groups: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(
        cls,
        rates: Sequence[Rate],
        measured: np.ndarray,
        data: Data,
        decided: np.ndarray,
        level: float | None = None,
    ) -> Estimates:
        """Measure those of some rates without open slots that have rows.

        Parameters
        ----------
        rates : sequence of K Rate
        measured : ndarray of bool, shape (K,)
            Which have rows in their denominators for some decisions.
        data : Data
            The n rows they are measured on.
        decided : ndarray of shape (n,)
            Codes of decisions.
        level : float or None
            That of the intervals; None leaves them out.
        """
        value, effective = np.full(len(rates), np.nan), np.zeros(len(rates))
        n_groups, ends = np.zeros(len(rates), dtype=int), np.full((len(rates), 2), np.nan)
        values: dict[object, float] = {}
        for k in np.flatnonzero(measured).tolist():
            value[k] = count(rates[k], data, decided, values)
            at = [trials_at(atom, data, decided) for atom in rates[k].atoms]
            kish = (effect.rows / (effect.deff * effect.spread) for _, effect in at)
            effective[k] = min(kish, default=0.0)
            if data.dependent is not None:
                inside = (trials.rows[trials.counted[1] > 0] for trials, _ in at)
                n_groups[k] = min(
                    (len(np.unique(data.dependent[rows])) for rows in inside), default=0
                )
        if level is not None and (defined := np.flatnonzero(~np.isnan(value)).tolist()):
            ends[defined] = intervals([rates[k] for k in defined], data, decided, level)
        return cls(value, effective, n_groups, ends)


def worst_pairs(constraints: Sequence[Constraint], data: Data, positive: np.ndarray) -> np.ndarray:
    """Find the pairs of groups that decide whether constraints hold at given predictions.

    A bound on all ordered pairs of groups holds if it holds for the worst pair.

    Parameters
    ----------
    constraints : sequence of Constraint
        Expanded: one-sided, groups filled in.
    data : Data
        The n rows they are measured on.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1.

    Returns
    -------
    ndarray of int
        Numbers of all constraints, but of a form over more than `MOST_PAIRS` pairs only of those
        with the least slack, and of one pair for each group that cannot be measured.
    """
    forms: dict[str, list[int]] = {}
    for k, constraint in enumerate(constraints):
        if constraint.rate.over_pairs:
            forms.setdefault(constraint.text, []).append(k)
    kept = np.ones(len(constraints), dtype=bool)
    values: dict[object, float] = {}
    for form in (pairs for pairs in forms.values() if len(pairs) > MOST_PAIRS):
        kept[form], empty, slack = False, set(), {}
        for k in form:
            constraint = constraints[k]
            try:
                value = count(constraint.rate, data, positive, values)
            except EmptyRateError:
                key = next(atom.key for atom in constraint.rate.atoms if atom.key not in values)
                kept[k] = key not in empty
                empty.add(key)
                continue
            room = (
                constraint.bound - value if constraint.sense == "<=" else value - constraint.bound
            )
            slack[k] = -np.inf if np.isnan(room) else room  # an undefined rate meets no bound
        kept[sorted(slack, key=slack.__getitem__)[:MOST_PAIRS]] = True
    return np.flatnonzero(kept)


@dataclass(frozen=True)
class Report:
    """Goals and decisions of a table's rows, which its columns do not say.

    A table keeps it in its attributes, as lists, which files of pandas keep too.

    Attributes
    ----------
    goals : list of lists
        Of each row: see `row`.
    decisions : list of lists
        Each decision, its share and, without constraints, that of the plain rule.
    """

    goals: list[list[Any]]
    decisions: list[list[Any]] = field(default_factory=list)

    @classmethod
    def of(cls, constraints: Iterable[Constraint], decisions: Any = ()) -> Report:
        """Return what a table of expanded constraints is of."""
        parts = [(c, c.part) for c in constraints if c.part is not None]
        rows = [cls.row(c.label, part, c.rate, c.sense) for c, part in parts]
        return cls(rows, list(decisions))

    @staticmethod
    def row(label: str, part: tuple[int, str, str], rate: Rate, sense: str) -> list[Any]:
        """Return the label, the number and text of the goal as declared, and the group of a row.

        And whether it is one of several pairs, its form, "ratio", "difference", "amount" or "", and
        the side that is bounded.
        """
        form = "amount" if value_range(rate)[1] > 1.0 + RATE_TOL else ""
        if rate.over_pairs and len(rate.terms) > 1:
            form = "difference"
        if rate.denominator is not None:
            form = "ratio"
        return [label, *part, rate.over_pairs, form, sense]

    @classmethod
    def read(cls, table: pd.DataFrame | pd.Series) -> Report:
        """Return what a table, or one of its columns, is of, as far as it knows."""
        return cls(table.attrs.get("goals", []), table.attrs.get("decisions", []))

    def attached(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table that keeps this."""
        table.attrs = {"goals": self.goals, "decisions": self.decisions}
        return table

    def take(self, rows: Iterable[int]) -> Report:
        """Return what some of the rows are of."""
        return Report([self.goals[k] for k in rows], self.decisions)

    def rows(self, written: pd.Series) -> tuple[str, pd.DataFrame]:
        """Return what rows of such names are parts of, "goals" or "rows", and a table of the parts.

        Its columns are those of `row`. If a table lost what it is of, as in a CSV file, each row
        counts as it is.
        """
        texts, n, unit = list(map(str, written)), len(self.goals), "goals"
        parts = [self.goals[k] for k in written.index if isinstance(k, int) and 0 <= k < n]
        if [label for label, *_ in parts] != texts:
            unit = "rows"
            parts = [[text, k, text, "", False, "", ""] for k, text in enumerate(texts)]
        columns = ["label", "number", "declared", "group", "over_pairs", "form", "sense"]
        return unit, pd.DataFrame(parts, columns=columns)


def numbers_of_goals(constraints: Iterable[Constraint]) -> np.ndarray:
    """Return the number of the declared constraint that each one is a `part` of."""
    return np.array(
        [-1 if constraint.part is None else constraint.part[0] for constraint in constraints],
        dtype=int,
    )


def satisfied(slack: np.ndarray, measured: np.ndarray) -> pd.Series:
    """Return whether slacks are nonnegative up to rounding; missing if not measured."""
    return pd.Series(pd.array(slack >= -RATE_TOL, dtype="boolean")).where(measured)


def verdicts(ends: np.ndarray, bound: np.ndarray, sign: np.ndarray) -> list[str]:
    """Per constraint, "met" or "violated" if the whole interval is, else "undecided".

    Parameters
    ----------
    ends : ndarray of shape (K, 2)
        Intervals.
    bound : ndarray of shape (K,)
    sign : ndarray of shape (K,)
        1 for <=, -1 for >=.
    """
    slack = sign[:, None] * (bound[:, None] - ends)
    met, violated = (slack >= -RATE_TOL).all(axis=1), (slack < -RATE_TOL).all(axis=1)
    return np.select([met, violated], ["met", "violated"], "undecided").tolist()


def warn_of_few(labels: Sequence[str], effective: Iterable[float]) -> None:
    """Name, in one warning, the rates that few rows decide."""
    few = [
        f"{label} ({rows:.3g})"
        for label, rows in zip(labels, effective, strict=True)
        if 0 < rows < SMALL_DENOMINATOR
    ]
    if few:
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        warn(
            f"Fewer than {SMALL_DENOMINATOR} rows are in the denominator of {', '.join(few[:5])}"
            f"{more} (effective number in parentheses): on new rows the value may differ much; "
            "see the interval.",
            UserWarning,
        )
