"""Values of rates on given predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length

from skbandit.exceptions import EmptyRateError
from skbandit.rates._bind import UnlabelledRateError, choices, fill, named, prediction_counts
from skbandit.rates._columns import MISSING, Columns, Data, Rows, check_two_labels, distinct, encode
from skbandit.rates._confidence import effective_rows
from skbandit.rates._expression import AbsoluteRate, Constraint, Rate
from skbandit.rates._forms import MET
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import check_row_weights, warn_if_reordered

SCORES = "y_pred holds scores ({}): pass labels, as of predict()."


def read_predictions(
    y_true: Any, y_pred: Any, attributes: Any, sample_weight: Any, pos_label: Any, X: Any = None
) -> tuple[Data, np.ndarray]:
    """Validate predictions: one dataset, and 1.0 per positive and 0.0 per negative prediction."""
    n = count_rows(y_pred)
    warn_if_reordered(
        {
            "X": X,
            "y_true": y_true,
            "y_pred": y_pred,
            "attributes": attributes,
            "sample_weight": sample_weight,
        }
    )
    check_consistent_length(y_pred, y_true)
    seen = [] if y_true is None else distinct(y_true, "y_true")
    if len(np.shape(y_pred)) == 2 and np.shape(y_pred)[1] == 2:
        raise ValueError(SCORES.format("one column per class"))
    labels = list(dict.fromkeys([*seen, *distinct(y_pred, "y_pred")]))
    if len(labels) > 2 or pos_label is None:
        for label in labels[len(seen) :]:
            if isinstance(label, float | np.floating) and label % 1:
                raise ValueError(SCORES.format(f"such as {label:.3g}"))
    check_two_labels(labels, pos_label)
    predicted = encode(y_pred, pos_label, labels, "y_pred")
    if (predicted == MISSING).any():
        raise ValueError("y_pred has missing values: every row needs a prediction.")
    truth = (
        np.full(n, MISSING, dtype=np.int8)
        if y_true is None
        else encode(y_true, pos_label, labels, "y_true")
    )
    rows = Rows(
        Columns.read(attributes, X, n), truth, check_row_weights(sample_weight, n, "sample_weight")
    )
    return Data(rows, None, pos_label, labels), predicted.astype(float)


def measure(
    expression: Rate | AbsoluteRate,
    y_true: Any,
    y_pred: Any,
    attributes: Any,
    sample_weight: Any,
    pos_label: Any,
) -> float:
    """Evaluate an expression on predictions: the worst group or pair of a group form."""
    data, positive = read_predictions(y_true, y_pred, attributes, sample_weight, pos_label)
    if isinstance(expression, AbsoluteRate):
        rate = on_given_rows(expression.rate)
        return max(map(abs, values_on(rate, data, positive)), default=float("nan"))
    rate = on_given_rows(expression)
    known = values_on(rate, data, positive)
    if not known:
        return float("nan")
    if rate.grouped_by is None:
        return known[0]
    # The terms of the group decide which is worst, as in each(recall, by="g") - recall().
    own = replace(rate, terms=tuple((c, atom) for c, atom in rate.terms if atom.group))
    summary = rate.summary or ("min" if own.greater_is_better else "max")
    return min(known) if summary == "min" else max(known)


def values_on(rate: Rate, data: Data, positive: np.ndarray) -> list[float]:
    """Defined values of a rate: one, or one per group or ordered pair of groups."""
    if rate.grouped_by is None:
        value, why = _single(rate, data, positive)
        if np.isnan(value):
            _warn_undefined(f"{rate} is undefined: {why}")
            return []
        return [value]
    columns, size = rate.grouped_by
    groups = data.groups(columns, {"train"}, repr(rate))
    known: dict[object, float] = {}
    found = [
        (group, *_single(fill(rate, group), data, positive, known))
        for group in choices(groups, size, repr(rate))
    ]
    if not found:
        _warn_undefined(
            f"{rate} is undefined: {named(columns)} {len(groups)} group(s), needs {size}."
        )
    empty = [(group, why) for group, value, why in found if np.isnan(value)]
    if empty:
        (group, why), more = empty[0], len(empty) - 1
        text = f"{rate} is undefined in group {' / '.join(map(str, group))}: {why}"
        if more:
            text += (
                f" Likewise in {more} more of {len(found)}; if they are values of a continuous "
                "column, cut it into bands."
            )
        _warn_undefined(text)
    return [value for _, value, _ in found if not np.isnan(value)]


def _warn_undefined(text: str) -> None:
    # stack levels lead to the caller of Rate.value
    warnings.warn(text, UndefinedMetricWarning, stacklevel=6)


def on_given_rows(rate: Rate) -> Rate:
    """Return the expression with `on` set to the dataset of a metric."""
    return rate.map_atoms(lambda atom: replace(atom, on="train"))


def _single(
    rate: Rate, data: Data, positive: np.ndarray, known: dict[object, float] | None = None
) -> tuple[float, str]:
    """Value of a rate without open group slots; nan and the reason if a denominator is empty."""
    try:
        return count(rate, data, positive, known), "no prediction falls in its denominator."
    except UnlabelledRateError:
        raise  # missing labels are an error of the caller, not an empty denominator
    except EmptyRateError as error:
        return float("nan"), str(error)


def count(
    rate: Rate, data: Data, positive: np.ndarray, known: dict[object, float] | None = None
) -> float:
    """Value of a rate without open group slots, nan if a denominator is empty.

    Each atom is a quotient of two counts, so k of n rows give exactly ``k / n``. `known` has the
    values of atoms that were counted for other rates at the same predictions, and gains those of
    this one.
    """
    known = {} if known is None else known
    value, predicted = rate.constant, positive.astype(int)
    for coefficient, atom in rate.terms:
        if atom.key not in known:
            numerator, denominator = prediction_counts(atom, data, predicted)
            some = denominator.any()
            known[atom.key] = numerator.sum() / denominator.sum() if some else np.nan
        value += coefficient * known[atom.key]
    if rate.denominator is None:
        return float(value)
    divisor = count(rate.denominator, data, positive, known)
    return float(value / divisor) if divisor > 0 else float("nan")


SMALL_DENOMINATOR = 20
"""Effective number of rows in a denominator below which a warning names the rate.

With fewer, the standard error of a rate of .8 exceeds .09.
"""


def value_and_rows(rate: Rate, data: Data, positive: np.ndarray) -> tuple[float, float]:
    """Value of a rate without open slots, nan if undefined, and the effective number of rows.

    Parameters
    ----------
    rate : Rate
        Expression whose denominators hold rows for some predictions.
    data : Data
        The n rows it is measured on.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1.
    """
    return count(rate, data, positive), effective_rows(rate, data, positive)


MOST_PAIRS = 30
"""Ordered pairs of groups, of one constraint, that are considered at once: all of six groups."""


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
    for k, one in enumerate(constraints):
        if one.rate.summary is not None:
            forms.setdefault(one.text, []).append(k)
    kept = np.ones(len(constraints), dtype=bool)
    known: dict[object, float] = {}
    for form in (pairs for pairs in forms.values() if len(pairs) > MOST_PAIRS):
        kept[form], empty, slack = False, set(), {}
        for k in form:
            one = constraints[k]
            try:
                value = count(one.rate, data, positive, known)
            except EmptyRateError:
                key = next(atom.key for atom in one.rate.atoms if atom.key not in known)
                kept[k] = key not in empty
                empty.add(key)
                continue
            room = one.bound - value if one.sense == "<=" else value - one.bound
            slack[k] = -np.inf if np.isnan(room) else room  # an undefined rate meets no bound
        kept[sorted(slack, key=slack.__getitem__)[:MOST_PAIRS]] = True
    return np.flatnonzero(kept)


def satisfied(slack: np.ndarray, measured: np.ndarray) -> pd.Series:
    """Whether slacks are nonnegative up to rounding; missing if not measured."""
    return pd.Series(pd.array(slack >= -MET, dtype="boolean")).where(measured)


def warn_of_few(labels: Sequence[str], effective: Iterable[float], stacklevel: int) -> None:
    """Name, in one warning, the rates that few rows decide."""
    few = [
        f"{label} ({rows:.3g})"
        for label, rows in zip(labels, effective, strict=True)
        if 0 < rows < SMALL_DENOMINATOR
    ]
    if few:
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        warnings.warn(
            f"Fewer than {SMALL_DENOMINATOR} rows are in the denominator of {', '.join(few[:5])}"
            f"{more} (effective number in parentheses): on new rows the value may differ much; "
            "see the interval.",
            UserWarning,
            stacklevel=stacklevel,
        )
