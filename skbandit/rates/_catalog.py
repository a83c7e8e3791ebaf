"""Catalog of rates: Table 2 of Goh et al. (2016) and the usual ratios."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skbandit.rates._expression import Constraint, Rate, atom_rate, call_rate
from skbandit.rates._kinds import KINDS, Atom, On, Slot, Where


def positive_rate(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of rows predicted positive (coverage, selection rate).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Needs no labels, so it can be measured on unlabeled rows.

    Examples
    --------
    >>> from skbandit.rates import positive_rate
    >>> positive_rate().value([0, 1, 1, 0], [1, 1, 0, 0])
    0.5
    """
    return atom_rate(Atom(KINDS["positive_rate"], where, on, weight))


def negative_rate(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of rows predicted negative.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Needs no labels, so it can be measured on unlabeled rows.

    Examples
    --------
    >>> from skbandit.rates import negative_rate
    >>> negative_rate().value([0, 1, 1, 0], [1, 0, 0, 0])
    0.75
    """
    return atom_rate(Atom(KINDS["negative_rate"], where, on, weight))


def recall(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of positives predicted positive (true positive rate).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import recall
    >>> recall().value([1, 1, 1, 1, 0], [1, 1, 1, 0, 0])
    0.75
    """
    return atom_rate(Atom(KINDS["recall"], where, on, weight))


def true_negative_rate(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of negatives predicted negative (specificity).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import true_negative_rate
    >>> true_negative_rate().value([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.75
    """
    return atom_rate(Atom(KINDS["true_negative_rate"], where, on, weight))


def false_positive_rate(
    where: Where = None, *, on: On = "train", weight: str | None = None
) -> Rate:
    """Share of negatives predicted positive (false alarms).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import false_positive_rate
    >>> false_positive_rate().value([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.25
    """
    return atom_rate(Atom(KINDS["false_positive_rate"], where, on, weight))


def false_negative_rate(
    where: Where = None, *, on: On = "train", weight: str | None = None
) -> Rate:
    """Share of positives predicted negative (misses).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import false_negative_rate
    >>> false_negative_rate().value([1, 1, 1, 1, 0], [1, 1, 1, 0, 0])
    0.25
    """
    return atom_rate(Atom(KINDS["false_negative_rate"], where, on, weight))


def error_rate(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of labeled rows predicted incorrectly.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import error_rate
    >>> error_rate().value([0, 0, 1, 1], [0, 1, 1, 1])
    0.25
    """
    return atom_rate(Atom(KINDS["error_rate"], where, on, weight))


def accuracy(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of labeled rows predicted correctly.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import accuracy
    >>> accuracy().value([0, 0, 1, 1], [0, 1, 1, 1])
    0.75
    """
    return atom_rate(Atom(KINDS["accuracy"], where, on, weight))


def precision(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Share of positive predictions that are correct (positive predictive value).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Linear-fractional: with a constant bound it gives a linear constraint. It is undefined if
    its denominator is empty, and an undefined rate never satisfies a bound.

    Examples
    --------
    >>> from skbandit.rates import precision
    >>> precision().value([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    """
    return atom_rate(Atom(KINDS["precision"], where, on, weight))


def negative_predictive_value(
    where: Where = None, *, on: On = "train", weight: str | None = None
) -> Rate:
    """Share of negative predictions that are correct.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Linear-fractional: with a constant bound it gives a linear constraint. It is undefined if
    its denominator is empty, and an undefined rate never satisfies a bound.

    Examples
    --------
    >>> from skbandit.rates import negative_predictive_value
    >>> negative_predictive_value().value([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    """
    return atom_rate(Atom(KINDS["negative_predictive_value"], where, on, weight))


def f1(where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Linear-fractional: with a constant bound it gives a linear constraint. It is undefined if
    its denominator is empty, and an undefined rate never satisfies a bound.

    Examples
    --------
    >>> from skbandit.rates import f1
    >>> f1().value([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    """
    return atom_rate(Atom(KINDS["f1"], where, on, weight))


def churn(
    reference: str, where: Where = None, *, on: On = "train", weight: str | None = None
) -> Rate:
    """Share of rows predicted differently from a reference model.

    Parameters
    ----------
    reference : str
        Attribute column with the predictions of the reference model, as labels or as
        {0, 1}, {-1, 1} or bool; rows where it is missing are ignored.
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Notes
    -----
    Needs no labels, so it can be measured on unlabeled rows.

    Examples
    --------
    >>> from skbandit.rates import churn
    >>> churn("deployed").value(None, [1, 1, 0, 0], {"deployed": [1, 0, 0, 0]})
    0.25
    """
    return atom_rate(Atom(KINDS["churn"], where, on, weight, reference))


def each(rate: Rate | Callable[[], Rate], *, by: str | Sequence[str]) -> Rate:
    """Rate per group; a constraint on it becomes one constraint per group.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group.
    by : str or list of str
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.

    Returns
    -------
    Rate
        May be combined with other rates, which are still measured on their own rows. Its
        `value` is that of the worst group.

    Examples
    --------
    >>> from skbandit.rates import each, recall
    >>> each(recall, by="country") >= recall() - 0.05
    each(recall, by='country') >= recall() - 0.05
    """
    made, shown = _member(rate)
    columns, by = _columns(by)
    return call_rate(_in_slot(made, columns, 0), f"each({shown}, by={by!r})")


def worst(rate: Rate | Callable[[], Rate], *, by: str | Sequence[str]) -> Rate:
    """Rate of the worst group, as an objective.

    As the objective of a constrained classifier, the largest rate is minimized, or the smallest
    one maximized (minimax). In a constraint it is the same as `each`: all groups meet the bound if
    the worst one does.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. As an objective, no precision, NPV or F1.
    by : str or list of str
        Attribute column; its values at fit are the groups. Of several columns, the combinations of
        values that occur. Rows with a missing value are of no group. A column of more than 50
        different floats is refused: bin it with `pandas.cut`.

    Returns
    -------
    Rate
        Its `value` is that of the worst group.

    Examples
    --------
    >>> from skbandit.rates import error_rate, worst
    >>> region = {"region": ["north", "north", "south", "south"]}
    >>> worst(error_rate, by="region").value([0, 1, 0, 1], [0, 1, 1, 1], attributes=region)
    0.5
    """
    made, shown = _member(rate)
    columns, by = _columns(by)
    return call_rate(_in_slot(made, columns, 0), f"worst({shown}, by={by!r})")


def ratio(rate: Rate | Callable[[], Rate], *, by: str | Sequence[str]) -> Rate:
    """Ratio of the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. Precision, NPV and F1 can be measured, not trained.
    by : str or list of str
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.

    Returns
    -------
    Rate
        Its `value` is the smallest ratio; bound it from below. At most 100 groups are compared.

    Examples
    --------
    >>> from skbandit.rates import positive_rate, ratio
    >>> ratio(positive_rate, by="sex") >= 0.8
    ratio(positive_rate, by='sex') >= 0.8
    """
    made, shown = _member(rate)
    columns, by = _columns(by)
    pair = _in_slot(made, columns, 0) / _in_slot(made, columns, 1)
    return call_rate(pair, f"ratio({shown}, by={by!r})", "min")


def difference(rate: Rate | Callable[[], Rate], *, by: str | Sequence[str]) -> Rate:
    """Difference between the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. Precision, NPV and F1 can be measured, not trained.
    by : str or list of str
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.

    Returns
    -------
    Rate
        Its `value` is the largest difference; bound it from above. At most 100 groups are
        compared.

    Examples
    --------
    >>> from skbandit.rates import difference, recall
    >>> difference(recall, by="sex").value([1, 1, 1], [1, 1, 0], {"sex": ["F", "M", "M"]})
    0.5
    """
    made, shown = _member(rate)
    columns, by = _columns(by)
    pair = _in_slot(made, columns, 0) - _in_slot(made, columns, 1)
    return call_rate(pair, f"difference({shown}, by={by!r})", "max")


def _member(rate: Rate | Callable[[], Rate]) -> tuple[Rate, str]:
    """Return the rate and its text within a group form."""
    if isinstance(rate, Rate):
        return rate, repr(rate)
    if getattr(rate, "__name__", "") == "churn":
        raise TypeError('churn needs the column of its reference: pass churn("deployed").')
    if not callable(rate) or not isinstance(made := rate(), Rate):
        raise TypeError(f"{rate!r} is not a rate: pass a rate or a function of skbandit.rates.")
    name = getattr(rate, "__name__", "")
    return made, name if repr(made) == f"{name}()" else repr(made)


def _columns(by: Any) -> tuple[tuple[str, ...], str | list[str]]:
    """Names of the columns of `by`, and `by` as it is printed."""
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"by={by!r} must be the name of an attribute column, or a list of names.")
    if len(set(names)) < len(names):
        raise ValueError(f"by={by!r} names a column twice.")
    return names, names[0] if len(names) == 1 else list(names)


def _in_slot(rate: Rate, columns: tuple[str, ...], index: int) -> Rate:
    if rate.grouped_by is not None:
        raise ValueError(f"{rate} is already a group form, and groups cannot be nested.")
    return rate.map_atoms(lambda atom: replace(atom, group=Slot(columns, index)))


# A floor for the geometric mean of recall and specificity, as linear constraints on both.
#
# sqrt(ab) is concave in rates a and b, and the lower envelope of its tangents: by the inequality of
# means, sqrt(ab) <= (a/t + tb)/2 for every t > 0, with equality at t = sqrt(a/b).


def tangents(bound: float, tolerance: float) -> tuple[np.ndarray, float]:
    """Values of t, and the floor c' of all (a/t + tb)/2, that make sqrt(ab) at least `bound`.

    With c the bound and L = log(1/c), the K values of t lie at the middles of equal cells of
    [-L, L] on the logarithmic axis, no further than d = L/K from any of its points; c' = c cosh(d).
    For rates in [0, 1] the floors imply sqrt(ab) >= c, and sqrt(ab) >= c' implies them. K is the
    least number for which cosh(d) <= 1 + `tolerance`.
    """
    length = -math.log(bound)
    n = max(1, math.ceil(length / math.acosh(1 + tolerance)))
    away = length / n
    middles = away * (2 * np.arange(n) + 1) - length
    return np.exp(middles), bound * math.cosh(away)


def g_mean_at_least(
    bound: float,
    where: Where = None,
    *,
    on: On = "train",
    weight: str | None = None,
    tolerance: float = 0.002,
) -> list[Constraint]:
    """Constraints that hold the geometric mean of recall and specificity above a bound.

    Parameters
    ----------
    bound : float
        Floor of the G-mean, sqrt(TPR x TNR), between 0 and 1, both excluded.
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.
    tolerance : float, default=0.002
        How much more than `bound` is asked, at most, as a share of it. The smaller, the more
        constraints: 2 for a floor of .9, 4 for .8 and 11 for .5.

    Returns
    -------
    list of Constraint
        On means of both rates with different weights. Together they imply the floor; none of
        them is the G-mean itself.

    See Also
    --------
    f1 : The harmonic mean of precision and recall.

    Notes
    -----
    The G-mean is concave in the two rates, so that its floors are floors of its tangents. As an
    objective it is not a rate: minimize `false_positive_rate` or `error_rate` under a floor.

    Examples
    --------
    >>> from skbandit.rates import g_mean_at_least
    >>> for goal in g_mean_at_least(0.9):
    ...     print(goal.label, "|", goal.text)
    G-mean >= 0.9 [1 of 2] | 0.52... * recall() + 0.47... * true_negative_rate() >= 0.9012...
    G-mean >= 0.9 [2 of 2] | 0.47... * recall() + 0.52... * true_negative_rate() >= 0.9012...
    """
    for name, value in (("bound", bound), ("tolerance", tolerance)):
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < 1:
            raise ValueError(f"{name}={value!r} must be a number between 0 and 1, both excluded.")
    found, goals = tangents(float(bound), float(tolerance)), []
    for k, t in enumerate(found[0].tolist(), 1):
        mean = 0.5 / t * recall(where, on=on, weight=weight) + 0.5 * t * true_negative_rate(
            where, on=on, weight=weight
        )
        name = f"G-mean >= {bound:g} [{k} of {len(found[0])}]"
        goals.append((mean >= found[1]).named(name))
    return goals
