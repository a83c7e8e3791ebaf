"""Atoms of rates on rows: what each row contributes to a numerator and a denominator."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.exceptions import EmptyRateError
from skbandit.rates._columns import MOST_SHOWN, Columns, Data, Rows, columns_of_condition
from skbandit.rates._kinds import OUTCOME, AnyOf, Atom, Member
from skbandit.rates._labels import MISSING
from skbandit.rates._query import Query, QueryError
from skbandit.utils._validation import first_few, shortened, warn


class UnlabeledRateError(EmptyRateError):
    """A rate needs labels or reference predictions, and its dataset has none."""


@dataclass(frozen=True)
class AtomRows:
    """The rows that an atom counts, and what decisions contribute there.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Those of positive weight, in order.
    weight : ndarray of shape (m,)
    actual : ndarray of int, shape (m,)
        Codes of what decisions are compared with.
    tables : tuple of two ndarray of shape (K, D)
        Contribution of weight 1 to numerator and denominator, by that code and by decision.
    amount : ndarray of shape (m, 1), or None
        What numerators are multiplied by.
    """

    rows: np.ndarray
    weight: np.ndarray
    actual: np.ndarray
    tables: tuple[np.ndarray, np.ndarray]
    amount: np.ndarray | None

    @property
    def behind(self) -> np.ndarray:
        """Those that are in the denominator at some decision."""
        counts: np.ndarray = np.any(self.tables[1], axis=1)
        return self.rows[counts[self.actual]]

    def counts(self, decided: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Contribution of each row to numerator and denominator.

        By decision, of shape (m, D); or at the codes of one decision per row of data, (m, 1).
        """
        weight = self.weight[:, None]
        if decided is None:
            above, below = (table[self.actual] for table in self.tables)
        else:
            at = self.actual, decided[self.rows]
            above, below = (table[at][:, None] for table in self.tables)
        above, below = weight * above, weight * below
        return above if self.amount is None else above * self.amount, below


def rows_of_atom(atom: Atom, data: Data) -> AtomRows:
    """Return the rows that an atom counts; of merged rows, the same object each time.

    Raises EmptyRateError if the denominator is 0 for all predictions.
    """
    if data.train.merged is None:
        return _rows_of_atom(atom, data)
    if atom.key not in data.counted:
        data.counted[atom.key] = _rows_of_atom(atom, data)
    return data.counted[atom.key]


def _rows_of_atom(atom: Atom, data: Data) -> AtomRows:
    kind, n, context = atom.kind, len(data), repr(atom)
    refuse_outcomes(atom)
    parts = list(data.parts(atom.on))
    if not parts:
        raise EmptyRateError(f"{context} is measured on the rows of X_extra: pass X_extra.")
    weight = np.zeros(n)
    actual = np.full(n, 0 if kind.compares_with == "nothing" else MISSING)
    for rows, place in parts:
        weight[place] = atom_weights(atom, rows)
        if kind.compares_with == "label":
            actual[place] = rows.label
        elif kind.compares_with == "reference":
            column = rows.columns.get(str(atom.reference), context)
            actual[place] = data.encode(column, f"{context}: column {atom.reference!r}")
    any_selected = bool((weight > 0).any())
    if any_selected and (actual == MISSING).all():
        if data.whole is None:
            needed = f"{context} needs labels, and the rows it is measured on have none: "
            needed += "pass y_extra." if atom.on == "extra" else "pass their labels."
            if kind.compares_with == "reference":
                needed = f"{context}: column {atom.reference!r} is missing in all rows."
            raise UnlabeledRateError(needed)
        try:
            rows_of_atom(atom, data.whole)
        except UnlabeledRateError:  # all rows lack labels, not only these
            raise
        except EmptyRateError:
            pass
    weight[actual == MISSING] = 0.0
    counted = np.flatnonzero(weight)
    amount = None
    if atom.amount is not None:
        amounts = [atom_amounts(atom, rows, weight[place]) for rows, place in parts]
        first = parts[0][1].start
        amount = np.concatenate(amounts)[counted - first, None]
    atom_rows = AtomRows(counted, weight[counted], actual[counted], tables(atom, data), amount)
    if not len(atom_rows.behind):
        raise EmptyRateError(_why_empty(atom, data, any_selected))
    return atom_rows


def refuse_outcomes(atom: Atom) -> None:
    """Raise an error if an atom can only be estimated, for other decisions than those logged."""
    if atom.kind == OUTCOME:
        raise TypeError(
            f"{atom!r} follows from the decision, and is known for logged ones only: it is a goal "
            "of ConstrainedPolicy."
        )


def tables(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Contribution of a row of weight 1 to numerator and denominator, by label and decision.

    Returns two arrays of shape (K, D), in the order of the codes of `data`; (D, D) if stored
    predictions are in the place of labels.
    """
    kind, decisions = atom.kind, data.decisions
    labels = decisions if kind.compares_with == "reference" else data.classes or (None,)
    if atom.cells is not None:
        pairs = set(atom.cells.pairs)
        inside = [[bool({(a, j), (None, j)} & pairs) for j in decisions] for a in labels]
        return np.array(inside, float), np.ones((len(labels), len(decisions)))
    of = data.positive(atom) if atom.needs_pos_label else atom.of
    label = _members(of, labels)
    decided = _members(of if atom.decided is None else atom.decided, decisions)
    contributions = []
    for table in (np.array(kind.numerator, float), np.array(kind.denominator, float)):
        if kind.of_pairs:
            same = np.eye(len(labels), len(decisions), dtype=int)
            by_decision = np.where(same, table[1, 1], table[0, 1])
        else:
            by_decision = table[np.ix_(label, decided)]
        if atom.without is not None:
            by_decision = by_decision * (1 - _members(atom.without, decisions))
        contributions.append(by_decision)
    return contributions[0], contributions[1]


def _members(of: Any, labels: Sequence[Any]) -> np.ndarray:
    """1 for the labels that a class, or one of several, is; all ones for None."""
    if of is None:
        return np.ones(len(labels), dtype=int)
    chosen = of.labels if isinstance(of, AnyOf) else (of,)
    return np.array([label in chosen for label in labels], dtype=int)


def check_classes(atoms: Sequence[Atom], data: Data) -> None:
    """Raise an error, or warn if other labels may occur elsewhere, if an atom names none of them.

    A table of costs must name all. Without classes, the decisions are actions, and costs of others,
    which are never taken, are not used.
    """
    options, told = data.decisions, set[Any]()
    for atom in atoms:
        part = repr(atom) if atom.cells is None else "cost"
        for label in atom.named:
            if label in options or (label, part) in told:
                continue
            told.add((label, part))
            near = difflib.get_close_matches(str(label), [str(label) for label in options], 1)
            hint = ""
            if near:
                hint = f" Did you mean {next(x for x in options if str(x) == near[0])!r}?"
            elif data.closed and atom.cells is None:
                hint = (
                    " A decision that is no class is named in other_decisions= of estimators, and "
                    "in labels= of reports."
                )
            others = f", and other decisions {list(data.others)}" if data.others else ""
            classes = [label for label in data.classes if label is not None]
            choices = f"classes {classes}{others}" if classes else f"actions {list(options)}"
            text = f"{part}: {label!r} is not among the {choices}.{hint}"
            if atom.cells is not None and not classes:
                warn(f"{text} It is never taken, and its cost is not used.", UserWarning)
            elif data.closed:
                raise ValueError(text)
            else:
                warn(f"{text} It counts as a class without rows.", UserWarning)
    tables = dict.fromkeys(
        (atom.cells.labels, atom.cells.decisions) for atom in atoms if atom.cells
    )
    for labels, decisions in tables:
        for name, given, wanted in (
            ("label", labels, data.classes),
            ("decision", decisions, options),
        ):
            lacking = [entry for entry in wanted if entry is not None and entry not in given]
            if given and lacking:
                raise ValueError(
                    f"cost: the table has no costs of the {name} {lacking[0]!r}; its {name}s are "
                    f"{list(given)}."
                )


def warn_of_strangers(atoms: Iterable[Atom], data: Data) -> None:
    """Warn of texts in conditions that no row has, most likely misspelt, if they select some."""
    for atom in {atom.condition: atom for atom in atoms if isinstance(atom.where, str)}.values():
        try:
            query = Query.parse(str(atom.where))
        except QueryError:  # the name of a boolean column, or told where it is evaluated
            continue
        for name, text in [] if query.is_equality else query.texts():
            values: list[Any] = []  # none of merged rows if they are too many
            for rows, _ in data.parts("all"):
                if rows.merged is not None:
                    shown = rows.values_in(atom).get(name, [])
                    values += shown if len(shown) <= MOST_SHOWN else []
                    continue
                column = rows.columns.get(name, repr(atom))
                may_be = isinstance(column.dtype, pd.CategoricalDtype)
                values += list(column.cat.categories if may_be else pd.unique(column.dropna()))
            # elsewhere a text may stand for a date
            if pd.api.types.infer_dtype(values) == "string" and text not in values:
                near = difflib.get_close_matches(text, values, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                warn(f"{atom!r}: no row has {text!r} in column {name!r}.{hint}", UserWarning)


def atom_weights(atom: Atom, rows: Rows) -> np.ndarray:
    """Weight of each row of one dataset in an atom; 0 if `where` excludes the row."""
    context = repr(atom)
    weight = rows.weight * rows.selected(atom)
    if isinstance(atom.group, Member):
        weight = weight * rows.columns.member(atom.group, context)
    if atom.weight is not None:
        values = rows.numbers(atom.weight, context)
        wrong = (weight > 0) & ~((values >= 0) & np.isfinite(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{context}: weights must be finite and not negative, "
                f"{atom.weight!r} has {values[row]} in row {row}."
            )
        weight = weight * np.where(weight > 0, values, 0.0)
    return weight


def columns_of_selections(atoms: Iterable[Atom], columns: Columns) -> tuple[str, ...] | None:
    """Columns that tell which rows atoms count; None if a function does."""
    names: dict[str, None] = {}
    for atom in atoms:
        read = columns_of_condition(atom.where, columns.frame.columns)
        if read is None:
            return None
        if atom.group is not None:
            names |= dict.fromkeys(atom.group.columns)
        if atom.reference is not None:
            names[atom.reference] = None
        names |= dict.fromkeys(read)
    return tuple(names)


def atom_amounts(atom: Atom, rows: Rows, weight: np.ndarray) -> np.ndarray:
    """Return what a decision costs in each row, by the column of an atom; 0 without weight."""
    assert atom.amount is not None
    values = rows.numbers(atom.amount, repr(atom), atom.weight)
    if (unknown := (weight > 0) & ~np.isfinite(values)).any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(f"{atom!r}: {atom.amount!r} is {values[row]} in row {row}.")
    return np.where(weight > 0, values, 0.0)


def _why_empty(atom: Atom, data: Data, any_selected: bool) -> str:
    if any_selected:
        negatives, positives = map(any, atom.kind.denominator)
        wanted = "labels" if negatives and positives else "positives" if positives else "negatives"
        if atom.of is not None and positives and not negatives:
            wanted = f"label {atom.of!r}"
        if atom.kind.compares_with == "reference":
            wanted = f"predictions in column {atom.reference!r}"
        return f"{atom!r}: the selected rows hold no {wanted}."
    if isinstance(atom.group, Member):
        return f"{atom!r}: no rows of {atom.group.described} are selected."
    if atom.where is None:
        return f"{atom!r}: every row has weight 0."
    message = f"{shortened(f'{atom!r}: where={atom.where!r}')} selects no rows"
    rows, _ = next(data.parts(atom.on))
    for column, values in rows.values_in(atom).items():
        message += f"; {column!r} holds {first_few(values, MOST_SHOWN)}"
    return message + "."
