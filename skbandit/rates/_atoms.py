"""Atoms of rates on rows: what each row contributes to a numerator and a denominator."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from skbandit.exceptions import EmptyRateError
from skbandit.rates._columns import MISSING, Data, Rows, encode
from skbandit.rates._kinds import Atom, Member
from skbandit.utils._validation import shortened


class UnlabeledRateError(EmptyRateError):
    """A rate needs labels or reference predictions, and its dataset has none."""


def atom_counts(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contribution of each row to numerator and denominator if predicted 0 or 1; its weight.

    Returns two arrays of shape (n, 2) and one of shape (n,). Raises EmptyRateError if the
    denominator is 0 for all predictions.
    """
    kind, n, context = atom.kind, len(data), repr(atom)
    parts = list(data.parts(atom.on))
    if not parts:
        raise EmptyRateError(f"{context} is measured on the rows of X_extra: pass X_extra.")
    weight = np.zeros(n)
    actual = np.full(n, 0 if kind.compares_with == "nothing" else MISSING, dtype=np.int8)
    for rows, place in parts:
        weight[place] = atom_weights(atom, rows)
        if kind.compares_with == "label":
            actual[place] = rows.label
        elif kind.compares_with == "reference":
            actual[place] = _reference(atom, rows, data)
    any_selected = bool((weight > 0).any())
    if any_selected and (actual == MISSING).all():
        raise UnlabeledRateError(_why_unlabeled(atom))
    weight[actual == MISSING] = 0.0
    numerator = _counted(weight, kind.numerator, actual)
    denominator = _counted(weight, kind.denominator, actual)
    if not denominator.any():
        raise EmptyRateError(_why_empty(atom, data, any_selected))
    return numerator, denominator, weight


def _counted(weight: np.ndarray, table: Any, actual: np.ndarray) -> np.ndarray:
    """Contribution of each row if predicted 0 or 1: ``weight * table[actual]``."""
    return np.column_stack([weight * np.take(column, actual) for column in np.transpose(table)])


def prediction_counts(
    atom: Atom, data: Data, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Contribution of each row to numerator and denominator at given predictions 0 and 1."""
    numerator, denominator, _ = atom_counts(atom, data)
    rows = np.arange(len(predicted))
    return numerator[rows, predicted], denominator[rows, predicted]


def atom_weights(atom: Atom, rows: Rows) -> np.ndarray:
    """Weight of each row of one dataset in an atom; 0 if `where` excludes the row."""
    context, n = repr(atom), len(rows)
    weight = rows.weight * rows.columns.mask(atom.where, context, n)
    if isinstance(atom.group, Member):
        weight = weight * rows.columns.member(atom.group, context)
    if atom.weight is not None:
        column = rows.columns.get(atom.weight, context)
        try:
            values = column.to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{context}: weight column {atom.weight!r} is not numeric.") from error
        wrong = (weight > 0) & ~((values >= 0) & np.isfinite(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{context}: weights must be finite and not negative, "
                f"{atom.weight!r} has {values[row]} in row {row}."
            )
        weight = weight * np.where(weight > 0, values, 0.0)
    return weight


def _reference(atom: Atom, rows: Rows, data: Data) -> np.ndarray:
    assert atom.reference is not None  # checked by Atom
    column = rows.columns.get(atom.reference, repr(atom))
    return encode(column, data.pos_label, data.labels, f"{atom!r}: column {atom.reference!r}")


def _why_unlabeled(atom: Atom) -> str:
    if atom.kind.compares_with == "reference":
        return f"{atom!r}: column {atom.reference!r} is missing in all rows."
    hint = "pass y_extra" if atom.on == "extra" else "pass their labels"
    return f"{atom!r} needs labels, and the rows it is measured on have none: {hint}."


def _why_empty(atom: Atom, data: Data, any_selected: bool) -> str:
    if any_selected:
        negatives, positives = map(any, atom.kind.denominator)
        wanted = "labels" if negatives and positives else "positives" if positives else "negatives"
        if atom.kind.compares_with == "reference":
            wanted = f"predictions in column {atom.reference!r}"
        return f"{atom!r}: the selected rows hold no {wanted}."
    if isinstance(atom.group, Member):
        return f"{atom!r}: no rows of {atom.group.described} are selected."
    if atom.where is None:
        return f"{atom!r}: every row has weight 0."
    message = f"{shortened(f'{atom!r}: where={atom.where!r}')} selects no rows"
    rows, _ = next(data.parts(atom.on))
    for column in rows.columns.named_in(atom.where):
        message += f"; {column!r} holds {rows.columns.values_of(column, repr(atom))}"
    return message + "."


MOST_PAIRED = 100
"""Groups that `ratio` and `difference` compare at most.

They make 9,900 ordered pairs, of which the worst is found anew in each step of a fit; among more
groups it is decided by chance.
"""


def choices(groups: Sequence[Member], size: int, context: str) -> list[tuple[Member, ...]]:
    """The groups one by one, or all ordered pairs of them."""
    if size > 1 and len(groups) > MOST_PAIRED:
        raise ValueError(
            f"{context} compares each two of {len(groups)} groups, and {MOST_PAIRED} are the most. "
            "Merge rare groups, or compare each with all rows, as in "
            "abs(each(recall, by='g') - recall()) <= 0.05."
        )
    return list(itertools.permutations(groups, size))


def named(columns: Sequence[str]) -> str:
    """Beginning of a sentence about the groups of some columns."""
    names = " and ".join(map(repr, columns))
    return f"column {names} holds" if len(columns) == 1 else f"columns {names} hold"
