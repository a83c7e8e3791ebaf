"""Binding of objectives and constraints to data: from rates to linear-fractional forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skbandit.exceptions import EmptyRateError
from skbandit.measure._forms import BoundConstraints, Form, LinearFractionalForms
from skbandit.rates._atoms import check_classes, rows_of_atom, warn_of_strangers
from skbandit.rates._catalog import error_rate
from skbandit.rates._columns import MANY_GROUPS, Data, Rows, UnknownColumnError
from skbandit.rates._expression import AbsoluteRate, Constraint, Rate, Sense, as_rate
from skbandit.rates._kinds import Atom, On, Slot
from skbandit.rates._values import cells_of, filled
from skbandit.utils._validation import first_few, warn

T = TypeVar("T")

MOST_LISTED = 3
"""Number of rates without rows that one warning lists; it counts the others."""

TO_MAKE_A_GROUP = (
    "To make them a group, fill missing values with one of their own, as fillna('missing') does."
)


def read_objective(objective: Any) -> Rate | AbsoluteRate:
    """Return the objective; None stands for ``error_rate()``."""
    if objective is None:
        return error_rate()
    if not isinstance(objective, Rate | AbsoluteRate):
        raise TypeError(
            f"objective={objective!r} is not a rate: pass one such as skbandit.rates.recall(), "
            "with parentheses, or None for error_rate()."
        )
    if isinstance(objective, AbsoluteRate) or objective.over_pairs:
        return objective
    # shares of decisions are minimized, so -positive_rate() would ask for many positives, where
    # -outcome(...) asks for little of an outcome: something must say whether many are good
    signed = [(c, atom) for c, atom in objective.terms if c != 0]
    if not signed or any(c > 0 or atom.greater_is_better is not None for c, atom in signed):
        return objective
    share, name = repr(signed[0][1]), signed[0][1].kind.name
    other = "negative_rate" if name == "positive_rate" else "positive_rate"
    raise ValueError(
        f"objective={objective} may ask for much or for little of {share}, as a share of decisions "
        f"on its own is minimized: write {share} if it should be small, and "
        f"{share.replace(name, other, 1)} if it should be large."
    )


def flatten_constraints(constraints: Any) -> list[Constraint]:
    """Flatten a constraint, or nested lists of constraints, to a list.

    Parameters
    ----------
    constraints : Constraint or iterable of Constraint, nested to any depth
        As declared by the user; None for no constraints.

    Returns
    -------
    list of Constraint

    Raises
    ------
    TypeError
        If an element is not a constraint.

    Examples
    --------
    >>> from skbandit.rates import precision, recall
    >>> flatten_constraints([recall() >= 0.9, [precision() >= 0.5]])
    [recall() >= 0.9, precision() >= 0.5]
    """
    if isinstance(constraints, Constraint):
        return [constraints]
    if isinstance(constraints, bool):
        raise TypeError(
            f"Found {constraints} among the constraints: == does not create a constraint. "
            "For an equality, write abs(rate - c) <= tol."
        )
    if isinstance(constraints, Rate | AbsoluteRate):
        raise TypeError(
            f"{constraints} is a rate, not a constraint: compare it with a bound, such as >= 0.9."
        )
    if constraints is None:
        return []
    if isinstance(constraints, str | dict) or not isinstance(constraints, Iterable):
        raise TypeError(
            f"{constraints!r} is not a constraint: compare a rate with a bound, as in "
            "skbandit.rates.recall() >= 0.9."
        )
    return [constraint for part in constraints for constraint in flatten_constraints(part)]


def bind_rate(
    rate: Rate, data: Data, bound: dict[Any, tuple[Form, Form, np.ndarray]] | None = None
) -> tuple[Form, Form, np.ndarray]:
    """Numerator, denominator and rows of a rate without open group slots.

    The rows are a boolean mask of those that the value depends on. `bound` has the atoms of other
    rates on the same rows, and gains those of this one.
    """
    if not rate.linear_fractional:
        raise ValueError(
            f"{rate} is not a ratio of sums over rows, so it can be measured but not trained: "
            "bound each precision, NPV or F1 by a number, as in each(precision, by=...) >= 0.8 "
            '(or of="classes").'
        )
    bound = {} if bound is None else bound
    unit = Form.fixed(1.0, data.n_indicators)
    numerator, denominator = unit * rate.constant, unit
    behind: Any = np.zeros(1, dtype=bool)
    for coefficient, atom in rate.terms:
        if atom.key not in bound:
            bound[atom.key] = bind_atom(atom, data)
        above, below, rows = bound[atom.key]
        behind = behind | rows
        if atom.fractional:  # the algebra allows no other term
            numerator, denominator = above * coefficient + below * rate.constant, below
        else:
            numerator = numerator + above * coefficient
    if rate.denominator is not None:
        denominator, below, rows = bind_rate(rate.denominator, data, bound)
        if rate.denominator.fractional:  # a number over a ratio: there is no other atom
            numerator = below * rate.constant
        behind = behind | rows
    return numerator, denominator, behind


def bind_objective(
    rates: Sequence[Rate], data: Data
) -> tuple[tuple[Rate, ...], LinearFractionalForms, np.ndarray]:
    """Bind the rates of an objective, one or one per group, and drop those without rows.

    Returns the rates that are left, their forms, and the number of rows that each depends on.
    """
    bindings = _measurable(
        [(repr(rate), rate, data, False) for rate in rates], partial(bind_rate, bound={})
    )
    kept = [
        (rate, *binding)
        for rate, binding in zip(rates, bindings, strict=True)
        if binding is not None
    ]
    pairs = [(above, below) for _, above, below, _ in kept]
    forms = LinearFractionalForms.stack(pairs, data.n_indicators)
    n_rows = np.array([behind.sum() for *_, behind in kept], dtype=int)
    return tuple(rate for rate, *_ in kept), forms, n_rows


def bind_atom(atom: Atom, data: Data) -> tuple[Form, Form, np.ndarray]:
    """Numerator, denominator and rows of one atom.

    Both forms are divided by the total weight of the rows in the denominator (linear kinds,
    whose denominator is then 1) or of all selected rows (linear-fractional kinds).
    """
    counted, behind = rows_of_atom(atom, data), np.zeros(len(data), dtype=bool)
    behind[counted.behind] = True
    above, below = counted.tables
    amounts = counted.weight if counted.amount is None else counted.weight * counted.amount[:, 0]
    always = counted.weight if atom.fractional else counted.weight * below[counted.actual, 1]
    total = always.sum()
    forms = [
        Form.of_rows(counted.rows, weight, counted.actual, table, data.n_indicators, total)
        for weight, table in ((amounts, above), (counted.weight, below))
    ]
    return forms[0], forms[1], behind


def objective_rates(objective: Rate, data: Data) -> list[Rate]:
    """Return the objective itself, or its rate in each group found in the data."""
    constraints = fill_slots(as_constraint(objective), data)
    if not objective.is_form:
        return [replace(constraint.lhs, text=repr(objective)) for constraint in constraints]
    return [replace(constraint.lhs, text=constraint.label) for constraint in constraints]


def terms_of(rate: Rate) -> list[Rate]:
    """Return a sum of ratios as its terms, each a ratio; a constant belongs to the first."""
    if rate.denominator is not None:
        return [rate]
    constants = [rate.constant, *np.zeros(max(len(rate.terms) - 1, 0))]
    return [
        replace(rate, terms=(term,), constant=float(constant))
        for term, constant in zip(rate.terms, constants, strict=True)
    ]


def as_constraint(objective: Rate) -> Constraint:
    """Return the objective as a constraint that says in which direction it gets worse."""
    sense: Sense = ">=" if objective.greater_is_better else "<="
    return Constraint(objective, sense, as_rate(0.0, repr(objective)), name=repr(objective))


def fill_slots(constraint: Constraint, data: Data) -> list[Constraint]:
    """One constraint per group or class, or per ordered pair of them, found in the data."""
    rate, label = constraint.rate, constraint.label
    check_classes(rate.atoms, data)
    if rate.grouped_by is None and rate.over_classes is None:
        return [constraint]
    cells = cells_of(rate, data, _group_datasets(constraint), label)
    sides = [filled(side, cells, data) for side in (constraint.lhs, constraint.rhs)]
    if not rate.is_form:
        return [replace(constraint, lhs=sides[0][0], rhs=sides[1][0], name=label)]
    joint = " / " if rate.denominator is not None else " - "
    return [
        replace(
            constraint,
            lhs=lhs,
            rhs=rhs,
            name=f"{label} [{cell.name(joint)}]",
            of=cell.of(joint),
        )
        for cell, lhs, rhs in zip(cells, *sides, strict=True)
    ]


def _group_datasets(constraint: Constraint) -> set[On]:
    """Return the datasets in which a group form looks for groups."""
    return {atom.on for atom in constraint.rate.atoms if isinstance(atom.group, Slot)}


def warn_of_groups(
    constraints: Iterable[Constraint], by: tuple[str, ...] | None, data: Data
) -> None:
    """Warn of rows without a group, of very many groups, and of values that no row has.

    Parameters
    ----------
    constraints : iterable of Constraint
        As declared.
    by : tuple of str or None
        Columns whose groups have a threshold each.
    data : Data
        The training rows.
    """
    several: dict[tuple[str, ...], set[On]] = {}
    constraints = list(constraints)
    warn_of_strangers([atom for constraint in constraints for atom in constraint.rate.atoms], data)
    for constraint in constraints:
        if (grouped := constraint.rate.grouped_by) is not None:
            several.setdefault(grouped[0], set()).update(_group_datasets(constraint))
    if by is not None:
        several.setdefault(by, set()).add("train" if data.extra is None else "all")
    for columns, ons in several.items():
        shown, context = " and ".join(map(repr, columns)), f"by={list(columns)}"
        if without := data.without_group(columns, ons, context):
            alike = ", and share a threshold" if columns == by else ""
            warn(
                f"{without} of {len(data)} rows have no group, as {shown} is missing there: they "
                f"count in no constraint by group{alike}. {TO_MAKE_A_GROUP}",
                UserWarning,
            )
        if (n_groups := len(data.groups(columns, ons, context))) > MANY_GROUPS:
            warn(
                f"The values of {shown} make {n_groups} groups, of {len(data) / n_groups:.3g} rows "
                "on average. What the worst of so many attains is decided by chance where groups "
                "are small: merge rare values.",
                UserWarning,
            )


def warn_of_no_group(columns: Sequence[str], rows: Rows) -> None:
    """Warn of rows that count in no rate by the groups of some columns."""
    if Data(rows).without_group(columns, {"train"}, f"by={list(columns)}"):
        shown = " and ".join(map(repr, columns))
        warn(
            f"Some rows have no group, as {shown} is missing there: they count in no rate by "
            f"group. {TO_MAKE_A_GROUP}",
            UserWarning,
        )


def warn_of_weightless(by: Mapping[tuple[str, ...], set[On]], data: Data) -> None:
    """Warn of groups that count nowhere, as the weight of their rows is 0."""
    for columns, ons in {} if (data.weight > 0).all() else by.items():
        groups, every = (
            data.groups(columns, ons, f"by={list(columns)}", weighted=weighted)
            for weighted in (True, False)
        )
        if left_out := [str(group) for group in every if group not in groups]:
            shown = " and ".join(map(repr, columns))
            warn(
                f"All rows of {first_few(left_out)} of {shown} have the weight 0, so these are no "
                "groups of any rate: leave such rows out if this is meant.",
                UserWarning,
            )


def expand(constraints: Iterable[Constraint], data: Data) -> tuple[Constraint, ...]:
    """Split constraints into one-sided ones, and group forms into one constraint per group."""
    return tuple(
        replace(piece, part=(k, constraint.label, piece.label[len(side.label) + 2 : -1]))
        for k, constraint in enumerate(constraints)
        for side in constraint.one_sided()
        for piece in fill_slots(side, data)
    )


def bind_constraints(
    constraints: Iterable[Constraint], data: Data, *, allow_empty: bool = False
) -> BoundConstraints:
    """Bind expanded constraints.

    A group without rows is skipped with a warning. `where` must select some rows, unless
    `allow_empty` (new data may lack rows that the training data had).
    """
    constraints = tuple(constraints)
    zero = Form.fixed(0.0, data.n_indicators)
    empty = zero, zero, np.zeros(0, dtype=bool)
    bound = [
        empty if binding is None else binding
        for binding in _measurable(
            [
                (constraint.label, constraint.rate, data, allow_empty or bool(constraint.of))
                for constraint in constraints
            ],
            partial(bind_rate, bound={}),
        )
    ]
    return BoundConstraints(
        constraints,
        LinearFractionalForms.stack([binding[:2] for binding in bound], data.n_indicators),
        np.array([c.bound for c in constraints], dtype=float),
        np.array([1.0 if c.sense == "<=" else -1.0 for c in constraints]),
        np.array([data.count(behind) for *_, behind in bound], dtype=int),
    )


def count_rows_of_rates(measured: Iterable[tuple[str, Rate, Data, bool]]) -> np.ndarray:
    """Count the rows that labeled rates depend on; 0, and one warning, for those without rows.

    The last part of an entry says whether `where` may select no rows.
    """
    return np.array([n_rows or 0 for n_rows in _measurable(measured, _rows_of_rate)], dtype=int)


def _rows_of_rate(rate: Rate, data: Data) -> int:
    behind = np.zeros(len(data), dtype=bool)
    for atom in rate.atoms:
        behind[rows_of_atom(atom, data).behind] = True
    return data.count(behind)


def _measurable(
    measured: Iterable[tuple[str, Rate, Data, bool]], bind: Callable[[Rate, Data], T]
) -> list[T | None]:
    """Bind labeled rates; None, and one warning in total, for those without rows."""
    bound: list[T | None] = []
    skipped = []
    for label, rate, data, allow_empty in measured:
        try:
            bound.append(bind(rate, data))
        except EmptyRateError as error:
            if not allow_empty:  # raises again unless only the group is empty
                bind(rate.map_atoms(lambda atom: replace(atom, group=None)), data)
            skipped.append(f"{label} is not measured: {error}")
            bound.append(None)
        except UnknownColumnError as error:  # of a group: the rate does not name its column
            raise ValueError(str(error) if label in str(error) else f"{label}: {error}") from error
    text = " ".join(skipped[:MOST_LISTED])
    if (others := len(skipped) - MOST_LISTED) > 0:
        text += (
            f" Nor are {others} others of {len(bound)}: if the groups are values of a continuous "
            "column, cut it into bands."
        )
    if skipped:
        warn(text, UndefinedMetricWarning)
    return bound
