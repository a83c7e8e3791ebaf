"""Group forms: one rate per group, or per ordered pair of groups, found in a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from skbandit.rates._expression import Rate, call_rate
from skbandit.rates._kinds import Slot


def each(rate: Rate | Callable[[], Rate], *, by: str) -> Rate:
    """Rate per group; a constraint on it becomes one constraint per group.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group.
    by : str
        Attribute column; its values at fit are the groups.

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
    return call_rate(_in_slot(made, by, 0), f"each({shown}, by={by!r})")


def ratio(rate: Rate | Callable[[], Rate], *, by: str) -> Rate:
    """Ratio of the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group; must be linear (not precision, NPV or F1).
    by : str
        Attribute column; its values at fit are the groups.

    Returns
    -------
    Rate
        Its `value` is the smallest ratio; bound it from below.

    Examples
    --------
    >>> from skbandit.rates import positive_rate, ratio
    >>> ratio(positive_rate, by="sex") >= 0.8
    ratio(positive_rate, by='sex') >= 0.8
    """
    made, shown = _member(rate)
    pair = _in_slot(made, by, 0) / _in_slot(made, by, 1)
    return call_rate(pair, f"ratio({shown}, by={by!r})", "min")


def difference(rate: Rate | Callable[[], Rate], *, by: str) -> Rate:
    """Difference between the rates of two groups, for every ordered pair of groups.

    Parameters
    ----------
    rate : Rate or function that returns one
        Rate measured in each group; must be linear (not precision, NPV or F1).
    by : str
        Attribute column; its values at fit are the groups.

    Returns
    -------
    Rate
        Its `value` is the largest difference; bound it from above.

    Examples
    --------
    >>> from skbandit.rates import difference, recall
    >>> difference(recall, by="sex").value([1, 1, 1], [1, 1, 0], {"sex": ["F", "M", "M"]})
    0.5
    """
    made, shown = _member(rate)
    pair = _in_slot(made, by, 0) - _in_slot(made, by, 1)
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


def _in_slot(rate: Rate, by: str, index: int) -> Rate:
    if rate.grouped_by is not None:
        raise ValueError(f"{rate} is already a group form, and groups cannot be nested.")
    if not isinstance(by, str):
        raise TypeError(f"by={by!r} must be the name of one attribute column.")
    return rate.map_atoms(lambda atom: replace(atom, group=Slot(by, index)))
