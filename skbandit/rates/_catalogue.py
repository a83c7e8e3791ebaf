"""Catalogue of rates: Table 2 of Goh et al. (2016) and the usual ratios."""

from __future__ import annotations

from skbandit.rates._expression import Rate, atom_rate
from skbandit.rates._kinds import KINDS, Atom, On, Where


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
    Needs no labels, so it can be measured on unlabelled rows.

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
    Needs no labels, so it can be measured on unlabelled rows.

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
    """Share of labelled rows predicted incorrectly.

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
    """Share of labelled rows predicted correctly.

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
    Needs no labels, so it can be measured on unlabelled rows.

    Examples
    --------
    >>> from skbandit.rates import churn
    >>> churn("deployed").value(None, [1, 1, 0, 0], {"deployed": [1, 0, 0, 0]})
    0.25
    """
    return atom_rate(Atom(KINDS["churn"], where, on, weight, reference))
