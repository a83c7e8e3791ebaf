"""The constraint whose bound varies along a path, and its copies with other bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array

from skbandit.rates import Constraint
from skbandit.rates._binding import as_rate, flatten_constraints

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class VariedConstraint(Constraint):
    """A constraint whose bound varies.

    A type rather than a mask, as `dataclasses.replace` keeps it when a constraint is split into
    one per group at `fit`.
    """


def read_bounds(bounds: ArrayLike) -> list[float]:
    """Check the user's `bounds`: one or more finite numbers."""
    try:
        numbers = check_array(bounds, ensure_2d=False, dtype=np.float64, input_name="bounds")
    except ValueError as error:
        raise ValueError(f"bounds={bounds!r} must be a list of finite numbers: {error}") from error
    if numbers.ndim != 1:
        raise ValueError(f"bounds must be a list of numbers, got shape {numbers.shape}.")
    return numbers.tolist()


def family(
    declared: Any, which: int | str | Callable[[float], Any] | None
) -> tuple[Callable[[float], list[Constraint]], str]:
    """Return a function from a bound to all constraints, and a label of what varies."""
    constraints = flatten_constraints(declared)
    if callable(which) and not isinstance(which, type):
        constraint_at = which
        try:
            label = next(iter(inspect.signature(constraint_at).parameters), "bound")
        except ValueError:  # some compiled functions have no signature
            label = "bound"

        def with_made(bound: float) -> list[Constraint]:
            made = [_as_varied(one) for one in flatten_constraints(constraint_at(bound))]
            if not made:
                raise ValueError(f"constraint={constraint_at!r} returns no constraint for {bound}.")
            return [*constraints, *made]

        return with_made, label

    k = _index(constraints, which)

    def with_replaced(bound: float) -> list[Constraint]:
        varied = _as_varied(with_bound(constraints[k], bound))
        return [*constraints[:k], varied, *constraints[k + 1 :]]

    return with_replaced, constraints[k].label


def _index(constraints: list[Constraint], which: Any) -> int:
    """Return the index of the constraint that the user's `constraint=` refers to."""
    listed = "; ".join(f"{k}: {one.label}" for k, one in enumerate(constraints))
    if not constraints:
        raise ValueError(
            "The estimator declares no constraint whose bound could vary: declare one, or pass "
            "constraint=lambda bound: ..., a function that returns one."
        )
    if which is None and len(constraints) == 1:
        return 0
    if which is None:
        raise ValueError(f"Pass constraint= to choose the one whose bound varies: {listed}.")
    if isinstance(which, str):
        found = [k for k, one in enumerate(constraints) if which in (one.name, one.text)]
        if len(found) == 1:
            return found[0]
    elif isinstance(which, int | np.integer) and -len(constraints) <= which < len(constraints):
        return int(which) % len(constraints)
    raise ValueError(f"constraint={which!r} does not match exactly one of {listed}.")


def _as_varied(one: Constraint) -> VariedConstraint:
    return VariedConstraint(one.lhs, one.sense, one.rhs, one.absolute, one.name)


def with_bound(constraint: Constraint, bound: float) -> Constraint:
    """Replace the number on the right-hand side of a constraint."""
    rhs = constraint.rhs
    if rhs.is_number:
        return replace(constraint, rhs=as_rate(bound, constraint.text))
    more = bound - rhs.constant
    moved = rhs + more if more >= 0 else rhs - -more
    return replace(constraint, rhs=replace(moved, constant=bound))


def common_sense(varied: Iterable[list[Constraint]], numbers: list[float]) -> str | None:
    """Return the sense of all constraints if each is bounded by its own number, else None."""
    as_given = all(
        one.rhs.constant == number
        for made, number in zip(varied, numbers, strict=True)
        for one in made
    )
    senses = {str(one.sense) for made in varied for one in made}
    return senses.pop() if as_given and len(senses) == 1 else None


def common_text(varied: list[list[Constraint]]) -> str | None:
    """Return the text of the bounded expressions if it is the same for every bound."""
    texts = {" and ".join(map(_bounded_text, made)) for made in varied}
    return texts.pop() if len(texts) == 1 else None


def _bounded_text(one: Constraint) -> str:
    if one.name is not None or not one.rhs.is_number:
        return one.label
    return f"abs({one.lhs})" if one.absolute else f"{one.lhs}"


def tightest_first(numbers: list[float], sense: str | None) -> list[int]:
    """Indices of the bounds, tightest first; in the order given if `sense` is unknown."""
    if sense is None:
        return list(range(len(numbers)))
    order = np.argsort(numbers, kind="stable")
    return (order if sense == "<=" else order[::-1]).tolist()
