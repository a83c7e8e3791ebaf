"""Validation of the parameters `objective` and `constraints`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skbandit.rates._catalogue import error_rate
from skbandit.rates._expression import AbsoluteRate, Constraint, Rate


def read_objective(objective: Any) -> Rate | AbsoluteRate:
    """Return the objective; None stands for ``error_rate()``."""
    if objective is None:
        return error_rate()
    if not isinstance(objective, Rate | AbsoluteRate):
        raise TypeError(
            f"objective={objective!r} is not a rate: pass one such as skbandit.rates.recall(), "
            "with parentheses, or None for error_rate()."
        )
    return objective


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
    return [one for part in constraints for one in flatten_constraints(part)]
