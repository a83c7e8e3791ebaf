"""Values of expressions on given predictions, and the cells that fill the slots of a form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length

from skbandit.exceptions import EmptyRateError
from skbandit.rates._atoms import UnlabeledRateError, check_classes, rows_of_atom, warn_of_strangers
from skbandit.rates._columns import Columns, Data, Rows
from skbandit.rates._kinds import Atom, ClassSlot, Member, On, Slot, value_text
from skbandit.rates._labels import (
    MISSING,
    as_python,
    check_pos_label,
    distinct,
    in_order,
    positive_is_known,
    warn_of_blank,
)
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import check_row_weights, first_few, warn, warn_if_reordered

if TYPE_CHECKING:
    from skbandit.rates._expression import Rate

MOST_PAIRED = 100
"""Groups that `ratio` and `difference` compare at most.

They make 9,900 ordered pairs, of which the worst is found anew in each step of a fit; among more
groups it is decided by chance.
"""

SCORES = "y_pred holds scores ({}): pass labels, as of predict(), or name all as labels=."


def read_measured(
    rates: Sequence[Rate],
    y_true: Any,
    y_pred: Any,
    attributes: Any,
    sample_weight: Any,
    pos_label: Any,
    X: Any = None,
    by: Any = None,
    labels: Any = None,
    groups: Any = None,
) -> tuple[Data, np.ndarray]:
    """Validate predictions for some rates: one dataset, and the code of each prediction.

    The rates may need no positive class, and name known ones. `labels` are all that may occur; None
    is for those that do.
    """
    # either class may be positive; stored predictions of 0 and 1 decide it
    stored = any(a.kind.compares_with == "reference" for rate in rates for a in rate.atoms)
    if pos_label is None and not stored and all(rate.symmetric for rate in rates):
        either = distinct(y_pred if y_true is None else y_true, "y_true")
        pos_label = None if positive_is_known(either) else either[0]
    n = count_rows(y_pred)
    tables = {"X": X, "y_true": y_true, "y_pred": y_pred, "attributes": attributes}
    warn_if_reordered(tables | {"sample_weight": sample_weight, "by": by})
    check_consistent_length(y_pred, y_true)
    seen = [] if y_true is None else distinct(y_true, "y_true")
    if len(np.shape(y_pred)) == 2 and np.shape(y_pred)[1] == 2:
        raise ValueError(SCORES.format("one column per class"))
    decisions = list(dict.fromkeys([*seen, *distinct(y_pred, "y_pred")]))
    if len(decisions) > 2 or pos_label is None:
        named = [] if labels is None else list(labels)
        for label in decisions[len(seen) :]:
            if isinstance(label, float) and label % 1 and label not in named:
                raise ValueError(SCORES.format(f"such as {label:.3g}"))
    warn_of_blank(decisions, "y")
    closed, others = labels is not None, []
    classes = decisions[: len(seen)] or decisions
    if labels is not None:
        every = list(dict.fromkeys(map(as_python, labels)))
        if unknown := [label for label in decisions if label not in every]:
            raise ValueError(
                f"y has [{first_few(unknown)}], not among labels=[{first_few(every)}]."
            )
        decisions = every
        if len(every) > 2:
            decisions = in_order([x for x in every if x in classes] or every)
            others = [x for x in every if x not in decisions]
    elif len(decisions) > 2:
        more = [x for x in decisions if x not in classes]
        apart = bool(seen) and not set(classes) & set(distinct(y_pred, "y_pred"))
        if apart or any(isinstance(x, int | float) for x in more):
            raise ValueError(
                f"y_true has labels [{first_few(classes)}], and y_pred has [{first_few(more)}]: "
                "encode both alike, or pass all labels as labels= if other decisions are meant."
            )
        decisions, others = in_order(classes), in_order(more)
    check_pos_label(decisions, pos_label)
    weight = check_row_weights(sample_weight, n, "sample_weight")
    unlabeled = Rows(Columns.read(attributes, X, n), np.full(n, MISSING), weight)
    data = Data(unlabeled, None, pos_label, decisions, others, closed)
    predicted = data.encode(y_pred, "y_pred")
    if (predicted == MISSING).any():
        raise ValueError("y_pred has missing values: every row needs a prediction.")
    if y_true is not None:
        data = replace(data, train=replace(unlabeled, label=data.encode(y_true, "y_true")))
    dependent = read_groups(groups, n, X, y_true, y_pred, attributes)
    data = replace(data, dependent=dependent)
    check_classes([atom for rate in rates for atom in rate.atoms], data)
    return data, predicted.astype(float)


def values_of(
    rate: Rate,
    y_true: Any,
    y_pred: Any,
    attributes: Any,
    sample_weight: Any,
    pos_label: Any,
    labels: Any = None,
) -> list[float]:
    """Measure an expression on predictions: its defined values, one or one per cell of a form."""
    rate = on_given_rows(rate)
    given = y_true, y_pred, attributes, sample_weight, pos_label
    data, positive = read_measured([rate], *given, labels=labels)
    warn_of_unnamed([rate], data)
    return values_on(rate, data, positive)


def warn_of_unnamed(rates: Iterable[Rate], data: Data) -> None:
    """Warn of decisions that no class is and no rate names, and of values that no row has."""
    rates = list(rates)
    warn_of_strangers([atom for rate in rates for atom in rate.atoms], data)
    named = {label for rate in rates for atom in rate.atoms for label in atom.named}
    unnamed = [label for label in data.others if label not in named]
    if unnamed and not data.closed:
        warn(
            f"y_pred has {unnamed}, which y_true lacks: rows decided so are counted as other "
            "decisions, which are never right. If they are meant, pass all labels as labels=.",
            UserWarning,
        )


@dataclass(frozen=True)
class Cell:
    """Values of the slots of a form: groups, classes, or an ordered pair of one of the two.

    Attributes
    ----------
    groups : tuple of Member
    classes : tuple of labels
    """

    groups: tuple[Member, ...]
    classes: tuple[Any, ...]

    def of(self, joint: str) -> str:
        """Return the class, or the pair of classes."""
        return joint.join(map(value_text, self.classes))

    def name(self, joint: str) -> str:
        """Return the groups and classes, those of a pair joined."""
        return ", ".join(filter(None, [joint.join(map(str, self.groups)), self.of(joint)]))


def cells_of(rate: Rate, data: Data, ons: set[On], context: str) -> list[Cell]:
    """All cells of a form, one without slots of an expression that is none."""
    groups: list[tuple[Any, ...]] = [()]
    classes: list[tuple[Any, ...]] = [()]
    if (grouped := rate.grouped_by) is not None:
        columns, size = grouped
        members = data.groups(columns, ons, context)
        if len(members) < size:
            names = " and ".join(map(repr, columns))
            holds = f"column {names} holds" if len(columns) == 1 else f"columns {names} hold"
            raise TooFewGroupsError(f"{context}: {holds} {len(members)} group(s), needs {size}.")
        groups = _choices(members, size, context)
    if (several := rate.over_classes) is not None:
        slot, size = several
        labels = [label for label in slot.labels(data.classes, data.decisions) if label is not None]
        if len(labels) < size:
            raise TooFewGroupsError(f"{context}: {len(labels)} class(es), needs {size}: {labels}.")
        classes = _choices(labels, size, context)
    return [Cell(group, label) for label in classes for group in groups]


def _choices(groups: Sequence[Any], size: int, context: str) -> list[tuple[Any, ...]]:
    """Return the groups one by one, or all ordered pairs of them."""
    if size > 1 and len(groups) > MOST_PAIRED:
        raise ValueError(
            f"{context} compares each two of {len(groups)} groups, and {MOST_PAIRED} are the most. "
            "Merge rare groups, or compare each with all rows, as in "
            "abs(each(recall, by='g') - recall()) <= 0.05."
        )
    return list(permutations(groups, size))


class TooFewGroupsError(ValueError):
    """A form over pairs of groups meets fewer than two."""


def filled(rate: Rate, cells: Sequence[Cell], data: Data) -> list[Rate]:
    """Return the expression in each cell; the mean of all that have rows, if it is one."""
    rates = [fill(rate, cell) for cell in cells]
    if rate.summary != "mean" or not rates:
        return rates
    empty = []
    for cell, cell_rate in zip(cells, rates, strict=True):
        try:  # all denominators have rows, for some predictions
            for atom in cell_rate.atoms:
                rows_of_atom(atom, data)
        except UnlabeledRateError:
            raise
        except EmptyRateError:
            empty.append(cell)
    if empty and len(empty) < len(cells):
        names = ", ".join(cell.name(" - ") for cell in empty)
        warn(f"{rate} is the mean without {names}: there are no rows.", UndefinedMetricWarning)
        rates = [
            cell_rate for cell, cell_rate in zip(cells, rates, strict=True) if cell not in empty
        ]
    n = len(rates)
    terms = tuple((c / n, atom) for cell_rate in rates for c, atom in cell_rate.terms)
    return [replace(rate, terms=terms, summary=None)]


def values_on(rate: Rate, data: Data, positive: np.ndarray) -> list[float]:
    """Return defined values of a rate: one, or one per cell of a form."""
    try:
        cells = cells_of(rate, data, {"train"}, repr(rate))
    except TooFewGroupsError as error:
        warn(str(error).replace(f"{rate}:", f"{rate} is undefined:"), UndefinedMetricWarning)
        return []
    cache: dict[object, float] = {}
    rates = filled(rate, cells, data)
    measured = []
    for cell_rate in rates:
        value, why = np.nan, "no prediction falls in its denominator."
        try:
            value = count(cell_rate, data, positive, cache)
        except UnlabeledRateError:
            raise  # missing labels are an error of the caller, not an empty denominator
        except EmptyRateError as error:
            why = str(error)
        measured.append((value, why))
    empty = [k for k, (value, _) in enumerate(measured) if np.isnan(value)]
    if not measured:
        warn(f"{rate} is undefined: there are no groups.", UndefinedMetricWarning)
    if empty:
        text, more = f"{rate} is undefined", len(empty) - 1
        if rate.is_form:
            what = "group" if rate.grouped_by else "class"
            text += f" in {what} {cells[empty[0]].name(' / ')}"
        text += f": {measured[empty[0]][1]}"
        if more:
            text += (
                f" Likewise in {more} more of {len(measured)}; if they are values of a continuous "
                "column, cut it into bands."
            )
        warn(text, UndefinedMetricWarning)
    return [value for value, _ in measured if not np.isnan(value)]


def on_given_rows(rate: Rate) -> Rate:
    """Return the expression with `on` set to the dataset of a metric."""
    return rate.map_atoms(lambda atom: replace(atom, on="train"))


def count(
    rate: Rate, data: Data, positive: np.ndarray, cache: dict[object, float] | None = None
) -> float:
    """Value of a rate without open group slots, nan if a denominator is empty.

    Each atom is a quotient of two counts, so k of n rows give exactly ``k / n``. `cache` has the
    values of atoms that were counted for other rates at the same predictions, and gains those of
    this one.
    """
    cache = {} if cache is None else cache
    value, predicted = rate.constant, positive.astype(int)
    for coefficient, atom in rate.terms:
        if atom.key not in cache:
            numerator, denominator = rows_of_atom(atom, data).counts(predicted)
            has_rows = denominator.any()
            cache[atom.key] = numerator.sum() / denominator.sum() if has_rows else np.nan
        value += coefficient * cache[atom.key]
    if rate.denominator is None:
        return float(value)
    divisor = count(rate.denominator, data, positive, cache)
    return float(value / divisor) if divisor > 0 else float("nan")


def fill(rate: Rate, cell: Cell) -> Rate:
    """Fill the open slots of a rate."""

    def filled_atom(atom: Atom) -> Atom:
        if isinstance(atom.group, Slot):
            atom = replace(atom, group=cell.groups[atom.group.index])
        if isinstance(atom.of, ClassSlot):
            atom = replace(atom, of=cell.classes[atom.of.index])
        return atom

    return rate.map_atoms(filled_atom)
