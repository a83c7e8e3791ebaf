"""Values of rates on given predictions."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length

from skbandit.exceptions import EmptyRateError
from skbandit.rates._binding._bind import UnlabelledRateError, fill, named, prediction_counts
from skbandit.rates._binding._columns import Columns
from skbandit.rates._binding._data import Data, Rows
from skbandit.rates._binding._labels import MISSING, check_two_labels, distinct, encode
from skbandit.rates._expression import AbsoluteRate, Rate
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
    found = [
        (group, *_single(fill(rate, group), data, positive))
        for group in itertools.permutations(groups, size)
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


def _single(rate: Rate, data: Data, positive: np.ndarray) -> tuple[float, str]:
    """Value of a rate without open group slots; nan and the reason if a denominator is empty."""
    try:
        return count(rate, data, positive), "no prediction falls in its denominator."
    except UnlabelledRateError:
        raise  # missing labels are an error of the caller, not an empty denominator
    except EmptyRateError as error:
        return float("nan"), str(error)


def count(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """Value of a rate without open group slots, nan if a denominator is empty.

    Each atom is a quotient of two counts, so k of n rows give exactly ``k / n``.
    """
    value, predicted = rate.constant, positive.astype(int)
    for coefficient, atom in rate.terms:
        numerator, denominator = prediction_counts(atom, data, predicted)
        value += coefficient * (
            numerator.sum() / denominator.sum() if denominator.any() else np.nan
        )
    if rate.denominator is None:
        return float(value)
    divisor = count(rate.denominator, data, positive)
    return float(value / divisor) if divisor > 0 else float("nan")
