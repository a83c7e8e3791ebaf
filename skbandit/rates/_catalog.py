"""Catalog of rates: Table 2 of Goh et al. (2016) and the usual ratios."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import pandas as pd

from skbandit.rates._columns import read_by
from skbandit.rates._expression import Constraint, Rate, Summary, atom_rate, call_rate
from skbandit.rates._kinds import (
    CONFUSIONS,
    COST_BY_LABEL,
    KINDS,
    OUTCOME,
    SPENT,
    AnyOf,
    Atom,
    Cells,
    ClassSlot,
    On,
    Slot,
    Where,
    read_class,
)

Function = TypeVar("Function", bound=Callable[..., Rate])

LISTED = "pass a list of classes, 'classes' or 'decisions'"


class RateFunction(partial[Rate]):
    """Function that declares a rate, which says so where its parentheses are forgotten."""

    def __reduce__(self) -> Any:
        """Return its name, by which it is pickled and copied."""
        return self.__name__  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        """Show the name, for messages."""
        return f"{self.__name__} without parentheses"  # type: ignore[attr-defined]

    def _refuse(self, other: object = None) -> NoReturn:
        name = self.__name__  # type: ignore[attr-defined]
        raise TypeError(f"{name} is a function, and {name}() a rate: write the parentheses.")

    __ge__ = __le__ = __gt__ = __lt__ = __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = _refuse
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse


def called(function: Function) -> Function:
    """Return a function whose comparison without a call explains itself."""
    return cast(Function, update_wrapper(RateFunction(function), function))


def _rate(name: str, where: Where, on: On, weight: str | None, of: Any, without: Any) -> Rate:
    of, without = read_class(of, name), read_class(without, name)
    return atom_rate(Atom(KINDS[name], where, on, weight, of=of, without=without))


@called
def positive_rate(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of rows predicted positive (coverage, selection rate).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("positive_rate", where, on, weight, of, without)


@called
def negative_rate(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of rows predicted negative.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("negative_rate", where, on, weight, of, without)


@called
def recall(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of positives predicted positive (true positive rate).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("recall", where, on, weight, of, without)


@called
def true_negative_rate(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of negatives predicted negative (specificity).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("true_negative_rate", where, on, weight, of, without)


@called
def false_positive_rate(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of negatives predicted positive (false alarms).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("false_positive_rate", where, on, weight, of, without)


@called
def false_negative_rate(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of positives predicted negative (misses).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("false_negative_rate", where, on, weight, of, without)


@called
def error_rate(
    where: Where = None,
    *,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of labeled rows predicted incorrectly.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("error_rate", where, on, weight, None, without)


@called
def accuracy(
    where: Where = None,
    *,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of labeled rows predicted correctly.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("accuracy", where, on, weight, None, without)


@called
def precision(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of positive predictions that are correct (positive predictive value).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("precision", where, on, weight, of, without)


@called
def negative_predictive_value(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of negative predictions that are correct.

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("negative_predictive_value", where, on, weight, of, without)


@called
def f1(
    where: Where = None,
    *,
    of: Any = None,
    without: Any = None,
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN).

    Parameters
    ----------
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    of : label, default=None
        The class of the rate, of several classes or of two; None is for `pos_label`. Several
        that count as one are `any_of`.
    without : label, default=None
        Decision whose rows do not count, such as "review"; several are `any_of`.
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
    return _rate("f1", where, on, weight, of, without)


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


def each(
    rate: Rate | Callable[[], Rate],
    *,
    by: str | Sequence[str] | None = None,
    of: str | Sequence[Any] | None = None,
) -> Rate:
    """Rate per group; a constraint on it becomes one constraint per group.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group.
    by : str or list of str, default=None
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.
    of : {"classes", "decisions"} or list, default=None
        The classes of the rate: all, all decisions, or those listed. With `by`, groups are
        compared within each class.

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
    return _form("each", rate, by, of)


def worst(
    rate: Rate | Callable[[], Rate],
    *,
    by: str | Sequence[str] | None = None,
    of: str | Sequence[Any] | None = None,
) -> Rate:
    """Rate of the worst group, as an objective.

    As the objective of a constrained classifier, the largest rate is minimized, or the smallest
    one maximized (minimax). In a constraint it is the same as `each`: all groups meet the bound if
    the worst one does.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. As an objective, no precision, NPV or F1.
    by : str or list of str, default=None
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.
    of : {"classes", "decisions"} or list, default=None
        The classes of the rate: all, all decisions, or those listed. With `by`, groups are
        compared within each class.

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
    return _form("worst", rate, by, of)


def mean(
    rate: Rate | Callable[[], Rate],
    *,
    by: str | Sequence[str] | None = None,
    of: str | Sequence[Any] | None = None,
) -> Rate:
    """Mean rate of groups or classes, each with the same weight (macro average).

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each. Precision, NPV and F1 can be measured, not trained.
    by : str or list of str, default=None
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.
    of : {"classes", "decisions"} or list, default=None
        The classes of the rate: all, all decisions, or those listed. With `by`, groups are
        compared within each class.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import f1, mean
    >>> float(round(mean(f1, of="classes").value(list("aabbcc"), list("aabbca")), 3))
    0.822
    """
    return _form("mean", rate, by, of, "mean")


def ratio(
    rate: Rate | Callable[[], Rate],
    *,
    by: str | Sequence[str] | None = None,
    of: str | Sequence[Any] | None = None,
) -> Rate:
    """Ratio of the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. Precision, NPV and F1 can be measured, not trained.
    by : str or list of str, default=None
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.
    of : {"classes", "decisions"} or list, default=None
        The classes of the rate: all, all decisions, or those listed. With `by`, groups are
        compared within each class.

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
    return _form("ratio", rate, by, of, "min", operator.truediv)


def difference(
    rate: Rate | Callable[[], Rate],
    *,
    by: str | Sequence[str] | None = None,
    of: str | Sequence[Any] | None = None,
) -> Rate:
    """Difference between the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group. Precision, NPV and F1 can be measured, not trained.
    by : str or list of str, default=None
        Attribute column; its values at fit are the groups. Of several columns, the
        combinations of values that occur. Rows with a missing value are of no group. A column
        of more than 50 different floats is refused: bin it with `pandas.cut`.
    of : {"classes", "decisions"} or list, default=None
        The classes of the rate: all, all decisions, or those listed. With `by`, groups are
        compared within each class.

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
    return _form("difference", rate, by, of, "max", operator.sub)


def _rate_of_form(rate: Rate | Callable[[], Rate]) -> tuple[Rate, str]:
    """Return the rate and its text within a group form."""
    if isinstance(rate, Rate):
        return rate, repr(rate)
    needed = {
        "churn": 'the column of its reference: pass churn("deployed")',
        "confusion": 'a label and a decision: pass confusion("sick", "well")',
        "cost": "a table: pass cost(table)",
    }
    if (what := needed.get(getattr(rate, "__name__", ""))) is not None:
        raise TypeError(f"{rate.__name__} needs {what}.")
    if not callable(rate) or not isinstance(made := rate(), Rate):
        raise TypeError(f"{rate!r} is not a rate: pass a rate or a function of skbandit.rates.")
    name = getattr(rate, "__name__", "")
    return made, name if repr(made) == f"{name}()" else repr(made)


def _form(
    name: str,
    rate: Any,
    by: Any,
    of: Any,
    summary: Summary | None = None,
    of_pair: Callable[[Rate, Rate], Rate] = lambda first, second: first,
) -> Rate:
    """Return what is made of the rates of the first and second group or, without groups, class."""
    made, shown = _rate_of_form(rate)
    if by is None and of is None:
        raise TypeError(f"{name}({shown}): pass by= (groups), of= (classes) or both.")
    if made.grouped_by is not None or made.over_classes is not None:
        raise ValueError(f"{made} is already a group form, and groups cannot be nested.")
    columns: tuple[str, ...] = ()
    arguments, among = [shown], None
    if by is not None:
        columns = read_by(by)
        arguments.append(f"by={columns[0] if len(columns) == 1 else list(columns)!r}")
    if of is not None:
        among = _among(of, name, made, shown)
        arguments.append(f"of={list(among) if isinstance(among, tuple) else among!r}")

    def in_slot(index: int, atom: Atom) -> Atom:
        if columns:
            atom = replace(atom, group=Slot(columns, index))
        if among is not None:
            atom = replace(atom, of=ClassSlot(among, 0 if columns else index))
        return atom

    pair = of_pair(*(made.map_atoms(partial(in_slot, index)) for index in (0, 1)))
    return call_rate(pair, f"{name}({', '.join(arguments)})", summary)


def _among(of: Any, name: str, made: Rate, shown: str) -> str | tuple[Any, ...]:
    """Return the classes of a form."""
    fixed = [atom for atom in made.atoms if not atom.needs_pos_label]
    if fixed:
        raise TypeError(
            f"{name}({shown}, of=...): {fixed[0]!r} is not the rate of one class that of= could "
            "choose."
        )
    if isinstance(of, str):
        if of not in ("classes", "decisions"):
            raise TypeError(
                f"{name}({shown}, of={of!r}): {LISTED}; the rate of one class is "
                f"{shown}(of={of!r})."
            )
        return of
    if np.ndim(of) != 1 or not len(of):
        raise TypeError(f"{name}({shown}, of={of!r}): {LISTED}.")
    labels = tuple(read_class(label, shown) for label in of)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name}({shown}, of={list(labels)}): a class is there twice.")
    return labels


def any_of(*labels: Any) -> AnyOf:
    """Several classes that count as one: confusions among them are no errors.

    Parameters
    ----------
    *labels : label
        Two or more.

    Returns
    -------
    AnyOf
        For the argument `of` of a rate.

    Examples
    --------
    >>> from skbandit.rates import any_of, recall
    >>> recall(of=any_of("carcinoma", "melanoma")).value(
    ...     ["carcinoma", "melanoma", "benign"], ["melanoma", "benign", "benign"]
    ... )
    0.5
    """
    if len(labels) < 2 or any(isinstance(label, AnyOf) for label in labels):
        shown = ", ".join(map(repr, labels))
        raise TypeError(f"any_of({shown}): pass two classes or more, one after the other.")
    return AnyOf(tuple(read_class(label, "any_of") for label in labels))


def confusion(
    label: Any,
    decision: Any,
    where: Where = None,
    *,
    normalize: str = "true",
    on: On = "train",
    weight: str | None = None,
) -> Rate:
    """Share of rows of one class that are decided for another: a cell of the confusion matrix.

    Parameters
    ----------
    label, decision : label
        The true class and the decision, in the order of scikit-learn.
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    normalize : {"true", "pred", "all"}, default="true"
        Of the rows with this label, of those with this decision, or of all rows.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate

    Examples
    --------
    >>> from skbandit.rates import confusion
    >>> confusion("melanoma", "benign").value(
    ...     ["melanoma", "melanoma", "carcinoma"], ["benign", "melanoma", "benign"]
    ... )
    0.5
    """
    if normalize not in CONFUSIONS:
        raise ValueError(f"normalize={normalize!r} must be one of {list(CONFUSIONS)}.")
    if label is None or decision is None:
        raise TypeError(f"confusion({label!r}, {decision!r}): pass a label and a decision.")
    of, decided = read_class(label, "confusion"), read_class(decision, "confusion")
    return atom_rate(Atom(CONFUSIONS[normalize], where, on, weight, of=of, decided=decided))


def cost(table: Any, where: Where = None, *, on: On = "train", weight: str | None = None) -> Rate:
    """Mean cost of the decisions: as an objective it is minimized, whatever its signs.

    Parameters
    ----------
    table : DataFrame or dict
        Costs {label: {decision: cost}}, or a DataFrame with labels as index and decisions as
        columns; {decision: cost} if they do not depend on the label. All classes and decisions
        must be in it. Without labels, a cost may be the name of an attribute column. Gains are
        negative costs, so that of a DataFrame of profits ``cost(-profits)`` is meant.
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
    >>> from skbandit.rates import cost
    >>> misses = {"sick": {"sick": 0, "well": 20}, "well": {"sick": 1, "well": 0}}
    >>> cost(misses).value(["sick", "well", "well", "well"], ["well", "well", "sick", "well"])
    5.25
    """
    if isinstance(table, pd.DataFrame | pd.Series):
        labels = table.index, getattr(table, "columns", table.index)
        if twice := [axis[axis.duplicated()][0] for axis in labels if axis.has_duplicates]:
            raise ValueError(f"cost: the table has {twice[0]!r} twice.")
        table = table.to_dict("index") if isinstance(table, pd.DataFrame) else table.to_dict()
    if not isinstance(table, Mapping) or not table or {} in table.values():
        raise TypeError(
            f"cost({table!r}): pass a DataFrame of labels x decisions, or a dict "
            "{label: {decision: cost}} or {decision: cost}."
        )
    nested = all(isinstance(row, Mapping) for row in table.values())
    rows: dict[Any, dict[Any, float]] = {
        read_class(label, "cost"): {
            read_class(decision, "cost"): _cost(value, label, decision)
            for decision, value in row.items()
        }
        for label, row in (table if nested else {None: table}).items()
    }
    if len({tuple(sorted(map(repr, row))) for row in rows.values()}) > 1:
        named = {label: list(row) for label, row in rows.items()}
        raise ValueError(f"cost: the labels have costs of different decisions: {named}.")
    plain, kind = (rows, COST_BY_LABEL) if nested else (rows[None], SPENT)
    by_cost: dict[float | str, list[tuple[Any, Any]]] = {}
    for label, row in rows.items():
        for decision, value in row.items():
            by_cost.setdefault(value, []).append((label, decision))
    axes = tuple(rows) if nested else (), tuple(next(iter(rows.values())))
    terms = tuple(
        (
            1.0 if isinstance(value, str) else value,
            Atom(
                kind,
                where,
                on,
                weight,
                cells=Cells(tuple(pairs), *axes, not isinstance(value, str) and value < 0),
                amount=value if isinstance(value, str) else None,
            ),
        )
        for value, pairs in by_cost.items()
        if value or len(by_cost) == 1
    )
    shown = repr(terms[0][1]).partition("(")[2][:-1]
    text = ", ".join(filter(None, [repr(plain), shown]))
    return replace(atom_rate(terms[0][1]), terms=terms, text=f"cost({text})")


def outcome(
    column: str, where: Where = None, *, on: On = "train", weight: str | None = None
) -> Rate:
    """Mean of what follows from the decisions, such as revenue: a goal of `ConstrainedPolicy`.

    Parameters
    ----------
    column : str
        Column of the log. It is known for the logged decisions, and estimated for others.
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Must be "train": only logged rows have outcomes.
    weight : str, default=None
        Attribute column of nonnegative row weights.

    Returns
    -------
    Rate
        In the unit of the column. As an objective, an expression of outcomes is maximized as it is
        written: ``-outcome("complaints")`` asks for few complaints.

    Examples
    --------
    >>> from skbandit.rates import outcome
    >>> outcome("complaints") <= 0.02
    outcome('complaints') <= 0.02
    """
    if not isinstance(column, str):
        raise TypeError(f"outcome({column!r}): pass the name of a column of the log.")
    return atom_rate(Atom(OUTCOME, where, on, weight, amount=column))


def _cost(value: Any, label: Any, decision: Any) -> Any:
    """One cost of a table, as a plain number or the name of a column."""
    if isinstance(value, str) and label is None:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        of = "" if label is None else f"label {label!r}, "
        raise TypeError(f"cost: {of}decision {decision!r}: {value!r} is not a finite number.")
    return int(value) if isinstance(value, numbers.Integral) else float(value)


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
    slopes, floor = tangents(float(bound), float(tolerance))
    goals = []
    for k, t in enumerate(slopes.tolist(), 1):
        mean = 0.5 / t * recall(where, on=on, weight=weight) + 0.5 * t * true_negative_rate(
            where, on=on, weight=weight
        )
        name = f"G-mean >= {bound:g} [{k} of {len(slopes)}]"
        goals.append((mean >= floor).named(name))
    return goals
