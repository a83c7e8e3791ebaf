"""Group forms: one rate per group, or per ordered pair of groups, found in a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from skbandit.rates._expression import Rate, call_rate
from skbandit.rates._kinds import Slot


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
