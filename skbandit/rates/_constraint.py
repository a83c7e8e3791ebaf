"""Constraints: a rate expression, a sense and a bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from skbandit.rates._expression import Rate, as_rate

Sense = Literal["<=", ">="]


@dataclass(frozen=True, eq=False, repr=False)
class Constraint:
    """A declared goal, made by comparing a rate: ``recall() >= 0.9``.

    Parameters
    ----------
    lhs, rhs : Rate
        The two sides as written.
    sense : {"<=", ">="}
        How they compare.
    absolute : bool
        Whether the left side stands in ``abs(...)``.
    name : str or None
        Set by `named`.

    Examples
    --------
    >>> from skbandit.rates import positive_rate
    >>> rule = positive_rate("sex == 'F'") >= 0.8 * positive_rate("sex == 'M'") - 0.05
    >>> rule.bound
    -0.05
    >>> rule.named("80 % rule").label
    '80 % rule'
    """

    lhs: Rate
    sense: Sense
    rhs: Rate
    absolute: bool = False
    name: str | None = None

    def __repr__(self) -> str:
        return self.text if self.name is None else f"({self.text}).named({self.name!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self.text} is a goal, not a truth value. A chained comparison such as "
            "low <= rate <= high must be written as two: [rate >= low, rate <= high]."
        )

    @property
    def text(self) -> str:
        """The constraint as it was written."""
        lhs = f"abs({self.lhs})" if self.absolute else f"{self.lhs}"
        return f"{lhs} {self.sense} {self.rhs}"

    @property
    def label(self) -> str:
        """The name if there is one, else the text."""
        return self.text if self.name is None else self.name

    @property
    def rate(self) -> Rate:
        """What is bounded: every term on the left, every constant in `bound`."""
        if self.lhs.denominator is not None:
            return self.lhs
        moved = self.lhs - self.rhs if self.rhs.terms else self.lhs
        return replace(moved, constant=0.0)

    @property
    def bound(self) -> float:
        """The number that `rate` is compared with."""
        if self.lhs.denominator is not None:
            return self.rhs.constant
        return self.rhs.constant - self.lhs.constant

    def named(self, name: str) -> Constraint:
        """Return the same constraint under a name for reports and messages.

        Parameters
        ----------
        name : str
            What to call it.

        Returns
        -------
        Constraint
        """
        return replace(self, name=str(name))

    def one_sided(self) -> tuple[Constraint, ...]:
        """Return it as constraints without ``abs``: itself, or an upper and a lower one."""
        if not self.absolute:
            return (self,)
        upper = replace(self, absolute=False)
        lower = replace(upper, sense=">=", rhs=_negated(self.rhs))
        if self.name is None:
            return upper, lower
        return upper.named(f"{self.name} (upper)"), lower.named(f"{self.name} (lower)")


def _negated(rate: Rate) -> Rate:
    # a bare number prints as a number, not as -(number)
    return -rate if rate.terms else as_rate(0.0 - rate.constant, rate.text)


def compare(lhs: Rate, sense: Sense, rhs: Rate, *, absolute: bool = False) -> Constraint:
    """Make a constraint of two expressions, or say why they make none."""
    made = Constraint(lhs, sense, rhs, absolute)
    if lhs.is_number and rhs.is_number:
        raise TypeError(f"{made.text} compares two numbers.")
    if rhs.fractional or (lhs.fractional and not rhs.is_number):
        if not lhs.is_number:
            raise ValueError(
                f"{made.text} bounds a ratio by a rate: precision, F1 and ratios of rates can "
                "only be compared with a number."
            )
        return compare(rhs, ">=" if sense == "<=" else "<=", lhs)
    summary = made.rate.summary
    if summary is not None and (summary == "max") != (sense == "<="):
        side = "above, with <=" if summary == "max" else "below, with >="
        raise ValueError(
            f"{made.text} would hold for every ordered pair of groups, both ways round: "
            f"bound {made.rate} from {side}."
        )
    return made
