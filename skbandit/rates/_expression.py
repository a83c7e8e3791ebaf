"""The algebra of rates: one immutable expression class, and the constraints made of it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from skbandit.rates._kinds import Atom, Slot

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Summary = Literal["min", "max"]
Sense = Literal["<=", ">="]

_SUM, _PRODUCT, _CALL = 1, 2, 3  # how tightly the last operation of a text binds


@dataclass(frozen=True, eq=False, repr=False)
class Rate:
    """A linear or linear-fractional expression in rates; it knows no data.

    Built by the functions of `skbandit.rates` and by ``+ - * /``, never directly. Compare
    it with ``<=`` or ``>=`` to get a `Constraint`, or measure it with `value`. Its repr is
    the Python text that made it.

    Parameters
    ----------
    terms : tuple of (float, Atom)
        Coefficients and the rates they multiply.
    constant : float
        What is added to the terms.
    denominator : Rate or None
        The divisor of a ratio of two rates.
    summary : {"min", "max"} or None
        For group forms over ordered pairs: which pair's value is the expression's.
    text : str
        The Python text that makes the expression.
    binds : int
        How tightly the last operation of the text binds.

    Examples
    --------
    >>> from skbandit.rates import recall, false_positive_rate
    >>> youden = recall() - false_positive_rate()
    >>> youden
    recall() - false_positive_rate()
    >>> youden.value([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    >>> youden >= 0.4
    recall() - false_positive_rate() >= 0.4
    """

    terms: tuple[tuple[float, Atom], ...]
    constant: float
    denominator: Rate | None
    summary: Summary | None
    text: str
    binds: int

    # numpy must leave ``array <= rate`` to this class, which refuses it with a reason.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} has no truth value before it is measured: see Rate.value.")

    @property
    def is_number(self) -> bool:
        """Whether no rate is in it (1 / rate has no terms, yet is no number)."""
        return not self.terms and self.denominator is None

    @property
    def fractional(self) -> bool:
        """Whether a denominator depends on the predictions."""
        return self.denominator is not None or any(a.kind.fractional for _, a in self.terms)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Every rate in it, those of the denominator last."""
        below = () if self.denominator is None else self.denominator.atoms
        return tuple(atom for _, atom in self.terms) + below

    @property
    def grouped_by(self) -> tuple[str, int] | None:
        """The column of a group form and how many groups it takes at once, or None."""
        slots = [atom.group for atom in self.atoms if isinstance(atom.group, Slot)]
        if not slots:
            return None
        return slots[0].column, 1 + max(slot.index for slot in slots)

    @property
    def greater_is_better(self) -> bool:
        """The expression's direction as a goal: True if it is to be maximised.

        Recall, accuracy, precision and the like are better high, error rate, churn and the
        like better low; positive and negative rates follow the others, and alone are
        minimised (Problem 1 of Goh et al.). Over pairs of groups the worst pair is to
        improve. Terms that disagree are a ValueError.
        """
        if self.summary is not None:
            return self.summary == "min"
        if self.denominator is not None:
            return replace(self, denominator=None).greater_is_better
        wishes = {
            atom.kind.greater_is_better == (coefficient > 0)
            for coefficient, atom in self.terms
            if atom.kind.greater_is_better is not None and coefficient != 0
        }
        if len(wishes) == 2:
            raise ValueError(
                f"{self} adds something to maximise to something to minimise, so it has no "
                "direction as a goal: change a sign, as in error_rate() - recall()."
            )
        return True in wishes

    def map_atoms(self, change: Callable[[Atom], Atom]) -> Rate:
        """Return the same expression of changed atoms.

        Parameters
        ----------
        change : callable
            From an atom to the one that takes its place.

        Returns
        -------
        Rate
        """
        below = None if self.denominator is None else self.denominator.map_atoms(change)
        return replace(self, terms=tuple((c, change(a)) for c, a in self.terms), denominator=below)

    def value(
        self,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> float:
        """Measure the expression on the predictions of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels; None or missing entries are unlabelled rows, which rates that need
            labels leave out.
        y_pred : array-like of shape (n_samples,)
            Predicted labels (not scores).
        attributes : DataFrame or dict of arrays, default=None
            Columns named by `where`, `by`, `weight` and `churn`.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        pos_label : label, default=None
            The positive class; may be left out for labels {0, 1}, {-1, 1} and bool.

        Returns
        -------
        float
            The value on these rows, whatever `on` says. Group forms give their worst
            group or pair. nan, with a warning, where a denominator is empty.

        Examples
        --------
        >>> from skbandit.rates import precision
        >>> precision().value(["no", "yes", "yes"], ["yes", "yes", "no"], pos_label="yes")
        0.5
        """
        return _measured(self, y_true, y_pred, attributes, sample_weight, pos_label)

    # --- algebra -----------------------------------------------------------------------

    def __add__(self, other: Any) -> Rate:
        right = as_rate(other, f"{self} + {shown(other)}")
        return _sum(self, right, f"{self} + {right}")

    def __radd__(self, other: Any) -> Rate:
        left = as_rate(other, f"{shown(other)} + {self}")
        if left.constant == 0:  # where sum() starts: the text should read as the user thinks
            return self
        return _sum(left, self, f"{left} + {_inside(self, _PRODUCT)}")

    def __sub__(self, other: Any) -> Rate:
        right = as_rate(other, f"{self} - {shown(other)}")
        return _sum(self, _scale(right, -1.0, ""), f"{self} - {_inside(right, _PRODUCT)}")

    def __rsub__(self, other: Any) -> Rate:
        left = as_rate(other, f"{shown(other)} - {self}")
        return _sum(left, _scale(self, -1.0, ""), f"{left} - {_inside(self, _PRODUCT)}")

    def __neg__(self) -> Rate:
        return _scale(self, -1.0, f"-{_inside(self, _CALL)}")

    def __mul__(self, other: Any) -> Rate:
        return self._times(other, f"{_inside(self, _PRODUCT)} * {shown(other)}")

    def __rmul__(self, other: Any) -> Rate:
        return self._times(other, f"{shown(other)} * {_inside(self, _CALL)}")

    def _times(self, other: Any, text: str) -> Rate:
        if isinstance(other, Rate):
            raise TypeError(
                f"{text} multiplies two rates, which is not linear: fix one of them as a number."
            )
        return _scale(self, as_rate(other, text).constant, text)

    def __truediv__(self, other: Any) -> Rate:
        right = as_rate(other, f"{self} / {shown(other)}")
        text = f"{_inside(self, _PRODUCT)} / {_inside(right, _CALL)}"
        if isinstance(other, Rate):
            return _quotient(self, right, text)
        if right.constant == 0:
            raise ZeroDivisionError(f"{text} divides by zero.")
        return _scale(self, 1.0 / right.constant, text)

    def __rtruediv__(self, other: Any) -> Rate:
        left = as_rate(other, f"{shown(other)} / {self}")
        return _quotient(left, self, f"{left} / {_inside(self, _CALL)}")

    def __abs__(self) -> AbsoluteRate:
        if self.summary is not None:
            raise ValueError(f"abs({self}): every ordered pair of groups is in {self} already.")
        return AbsoluteRate(self)

    def __le__(self, other: Any) -> Any:
        return compare(self, "<=", as_rate(other, f"{self} <= {shown(other)}"))

    def __ge__(self, other: Any) -> Any:
        return compare(self, ">=", as_rate(other, f"{self} >= {shown(other)}"))

    def __lt__(self, other: Any) -> NoReturn:
        raise TypeError(f"{self} < {shown(other)}: bounds are closed, write <=.")

    def __gt__(self, other: Any) -> NoReturn:
        raise TypeError(f"{self} > {shown(other)}: bounds are closed, write >=.")


@dataclass(frozen=True, eq=False, repr=False)
class AbsoluteRate:
    """The absolute value of a rate expression; it can be bounded from above, or measured.

    Parameters
    ----------
    rate : Rate
        What stands in ``abs(...)``.

    Examples
    --------
    >>> from skbandit.rates import positive_rate
    >>> abs(positive_rate() - 0.3) <= 0.01
    abs(positive_rate() - 0.3) <= 0.01
    """

    rate: Rate

    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"abs({self.rate})"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} has no truth value before it is measured.")

    def __le__(self, other: Any) -> Any:
        return compare(self.rate, "<=", as_rate(other, f"{self} <= {shown(other)}"), absolute=True)

    def __ge__(self, other: Any) -> NoReturn:
        raise TypeError(
            f"{self} >= {shown(other)} asks for one of two alternatives, which no set of rate "
            "constraints states: choose a side and bound it."
        )

    __lt__ = Rate.__lt__
    __gt__ = Rate.__gt__

    def _no_algebra(self, other: Any = None) -> NoReturn:
        raise TypeError(f"{self} can only be compared: abs(rate) <= bound.")

    __add__ = __radd__ = __sub__ = __rsub__ = _no_algebra
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _no_algebra

    def value(
        self,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> float:
        """Measure it on the predictions of any classifier, as `Rate.value` does.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        attributes : DataFrame or dict of arrays, default=None
            Columns named by the expression.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        pos_label : label, default=None
            The positive class.

        Returns
        -------
        float
            The absolute value; for `each`, that of the group furthest from zero.
        """
        return _measured(self, y_true, y_pred, attributes, sample_weight, pos_label)


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


def _measured(expression: Rate | AbsoluteRate, *predictions: Any) -> float:
    # Imported late: what measures expressions is itself written in terms of them.
    from skbandit.rates._binding import measure

    return measure(expression, *predictions)


def atom_rate(atom: Atom) -> Rate:
    """The expression that is one atom."""
    return Rate(((1.0, atom),), 0.0, None, None, repr(atom), _CALL)


def call_rate(rate: Rate, text: str, summary: Summary | None = None) -> Rate:
    """The same expression, printed as the function call that made it."""
    return replace(rate, text=text, binds=_CALL, summary=summary)


def as_rate(other: Any, text: str) -> Rate:
    """An operand: a rate as it is, a finite real number as a constant; `text` for errors."""
    if isinstance(other, Rate):
        return other
    # bool is a Real to Python, and never what is meant here
    if isinstance(other, bool) or not isinstance(other, numbers.Real):
        raise TypeError(
            f"{text}: rates combine with real numbers and with other rates, not with "
            f"{type(other).__name__}; for several bounds write a list of constraints."
        )
    if not math.isfinite(other):
        raise ValueError(f"{text}: the number must be finite.")
    return Rate(
        (), float(other), None, None, shown(other), _CALL if float(other) >= 0 else _PRODUCT
    )


def shown(value: Any) -> str:
    """A number as Python text (numpy's scalars and fractions print with their type)."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        value = float(value)
    return repr(value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value)


def _inside(rate: Rate, binds: int) -> str:
    return rate.text if rate.binds >= binds else f"({rate.text})"


def _scale(rate: Rate, factor: float, text: str) -> Rate:
    summary = rate.summary
    if summary is not None and factor < 0:
        summary = "min" if summary == "max" else "max"
    return replace(
        rate,
        terms=tuple((factor * c, atom) for c, atom in rate.terms),
        constant=factor * rate.constant,
        summary=summary,
        text=text,
        binds=_PRODUCT,
    )


def _sum(left: Rate, right: Rate, text: str) -> Rate:
    if left.fractional or right.fractional:
        if not (left.is_number or right.is_number):
            raise ValueError(
                f"{text} is not linear-fractional: a ratio (precision, F1, a / b) combines "
                "with numbers only."
            )
        ratio, number = (left, right) if right.is_number else (right, left)
        below = ratio.denominator
        if below is not None:  # N/D + c = (N + cD)/D
            above = replace(ratio, denominator=None, summary=None)
            shifted = _sum(above, _scale(below, number.constant, ""), "")
            return replace(shifted, denominator=below, summary=ratio.summary, text=text)
    _check_one_group_column(left, right, text)
    return Rate(
        left.terms + right.terms,
        left.constant + right.constant,
        None,
        left.summary or right.summary,
        text,
        _SUM,
    )


def _quotient(above: Rate, below: Rate, text: str) -> Rate:
    if above.fractional or below.fractional:
        raise ValueError(f"{text} is a ratio of a ratio: multiply out until one division is left.")
    if below.constant < 0 or any(c < 0 for c, _ in below.terms):
        raise ValueError(
            f"{text}: the divisor may become negative, so a bound on the ratio is not one on "
            "rates; divide by a sum of rates with positive coefficients."
        )
    if above.summary or below.summary:
        raise ValueError(f"{text}: a form over pairs of groups combines with numbers only.")
    _check_one_group_column(above, below, text)
    return replace(above, denominator=below, text=text, binds=_PRODUCT)


def _check_one_group_column(left: Rate, right: Rate, text: str) -> None:
    groups = [g for g in (left.grouped_by, right.grouped_by) if g is not None]
    one_column = len({column for column, _ in groups}) == 1
    if len(groups) == 2 and not (one_column and left.summary is None is right.summary):
        raise ValueError(f"{text} mixes two group forms: state them as separate constraints.")


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


def smallest_value(rate: Rate) -> float:
    """The lower end of an expression over all data; the upper end is ``-smallest_value(-rate)``.

    Every atom may be anywhere in [0, 1], independently of those that print otherwise. Over
    that box N/D is smallest at a corner, and its ones are those i whose n_i/d_i is below
    the minimum: so the atoms are raised from 0 to 1 in the order of n_i/d_i. A linear
    expression has D = 1.

    Returns
    -------
    float
        -inf where the denominator can vanish below a negative numerator.
    """
    above, below = rate.constant, 1.0 if rate.denominator is None else rate.denominator.constant
    coefficients: dict[object, list[float]] = {}
    for place, part in enumerate((rate, rate.denominator)):
        for coefficient, atom in () if part is None else part.terms:
            pair = coefficients.setdefault((repr(atom), atom.group), [0.0, 0.0])
            pair[place] += coefficient
    smallest = math.inf
    for n, d in [(0.0, 0.0), *sorted(coefficients.values(), key=_rise)]:
        above, below = above + n, below + d
        if below > 0:
            smallest = min(smallest, above / below)
        elif above < 0:
            return -math.inf
    return smallest


def _rise(pair: list[float]) -> float:
    n, d = pair
    return n / d if d else math.copysign(math.inf, n)
