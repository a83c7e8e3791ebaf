"""The algebra of rates: immutable expressions, their absolute values and constraints."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from skbandit.rates._kinds import OUTCOME, Atom, ClassSlot, Slot, has_slots
from skbandit.rates._values import values_of
from skbandit.utils._validation import RATE_TOL, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Summary = Literal["min", "max", "mean"]
Sense = Literal["<=", ">="]

_SUM, _PRODUCT, _CALL = 1, 2, 3
"""Precedence of the last operation in the text of an expression."""

SMALLEST_PERCENTAGE = 0.05
"""Smallest share for which a bound of 100 times as much is taken for a percentage."""


@dataclass(frozen=True, eq=False, repr=False)
class Rate:
    """A linear or linear-fractional expression in rates, independent of any data.

    Built by the functions of `skbandit.rates` and by ``+ - * /``, never directly. Compare
    it with ``<=`` or ``>=`` to get a `Constraint`, or measure it with `value`. Its repr is
    the Python expression that creates it.

    Parameters
    ----------
    terms : tuple of (float, Atom)
        Coefficients and the rates they multiply.
    constant : float
        Added to the terms.
    denominator : Rate or None
        Divisor, if the expression is a ratio of two rates.
    summary : {"min", "max", "mean"} or None
        How forms over ordered pairs, and `mean`, combine the values.
    text : str
        Python expression that creates the rate.
    precedence : int
        Precedence of the last operation in `text`.

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
    precedence: int

    # Makes numpy defer ``array <= rate`` to this class, which explains the error.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        if not math.isfinite(sum((abs(c) for c, _ in self.terms), abs(self.constant))):
            raise ValueError(
                f"{self.text}: the numbers overflow, so an infinite coefficient would result; "
                "use smaller ones."
            )

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} has no truth value until it is measured: see Rate.value.")

    @property
    def is_number(self) -> bool:
        """True if the expression is a constant (1 / rate has no terms, but is not constant)."""
        return not self.terms and self.denominator is None

    @property
    def fractional(self) -> bool:
        """True if a denominator depends on the predictions."""
        return self.denominator is not None or any(a.fractional for _, a in self.terms)

    @property
    def linear_fractional(self) -> bool:
        """True if it is one ratio of linear forms in the predictions, as training requires.

        Otherwise, as for the difference of two precisions, it can only be measured.
        """
        ratios = sum(atom.fractional for atom in self.atoms)
        return ratios == 0 or len(self.atoms) == 1

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """All atoms of the expression, those of the denominator last."""
        denominator = () if self.denominator is None else self.denominator.atoms
        return tuple(atom for _, atom in self.terms) + denominator

    @property
    def symmetric(self) -> bool:
        """True if the value is the same whichever class is positive, term by term."""
        parts = [self] if self.denominator is None else [self, self.denominator]
        return all(_counts(part.terms) == _counts(part.terms, mirrored=True) for part in parts)

    @property
    def grouped_by(self) -> tuple[tuple[str, ...], int] | None:
        """Columns of a group form and number of groups per value (1 or 2), or None."""
        slots = [atom.group for atom in self.atoms if isinstance(atom.group, Slot)]
        if not slots:
            return None
        return slots[0].columns, 1 + max(slot.index for slot in slots)

    @property
    def over_classes(self) -> tuple[ClassSlot, int] | None:
        """Classes of a form and number of classes per value (1 or 2), or None."""
        slots = [atom.of for atom in self.atoms if isinstance(atom.of, ClassSlot)]
        return (slots[0], 1 + max(slot.index for slot in slots)) if slots else None

    @property
    def is_form(self) -> bool:
        """True if it has a value for each of several groups or classes, or pairs of them."""
        several = self.grouped_by is not None or self.over_classes is not None
        return several and self.summary != "mean"

    @property
    def over_pairs(self) -> bool:
        """True if it has a value for each ordered pair of groups or classes."""
        return self.summary in ("min", "max")

    @property
    def greater_is_better(self) -> bool:
        """Direction of the expression as an objective: True if it is maximized.

        Recall, accuracy, precision and the like are maximized; error rate, churn and the
        like are minimized. Positive and negative rates follow the other terms and are
        minimized on their own (Problem 1 of Goh et al.), and refused as an objective with a minus,
        which may mean either. A divisor counts the other way round.
        A cost is minimized whatever the signs of its entries: what counts is the sign before the
        table. An expression of outcomes is maximized as it is written, so ``-outcome("lost")``
        asks for few losses; less outcomes, a cost is minimized. Over pairs of groups, the worst
        pair is improved. Opposite directions raise a ValueError.
        """
        if self.over_pairs:
            return self.summary == "min"
        terms = self.terms
        if self.denominator is not None:
            low, high = value_range(replace(self, denominator=None))
            sign = (low >= 0) - (high <= 0)  # of the dividend, 0 if unknown
            terms += tuple((-sign * c, atom) for c, atom in self.denominator.terms)
        signed = [(c > 0, atom) for c, atom in terms if c != 0]
        wishes = {
            positive == atom.greater_is_better
            for positive, atom in signed
            if atom.kind != OUTCOME and atom.greater_is_better is not None
        }
        outcomes = {positive for positive, atom in signed if atom.kind == OUTCOME}
        if len(wishes) == 2 or (wishes == {False} and True in outcomes):
            raise ValueError(
                f"{self} grows both with what is maximized and with what is minimized, so it has "
                "no direction as an objective: change a sign, as in error_rate() - recall(). "
                "Outcomes are maximized as written: write -outcome(...) - cost(...) for one that "
                "is bad. Costs are minimized: write one table, with negative entries for what is "
                "gained."
            )
        return True in (wishes or (outcomes and {True}))

    def map_atoms(self, change: Callable[[Atom], Atom]) -> Rate:
        """Return the expression with every atom replaced.

        Parameters
        ----------
        change : callable
            Maps an atom to its replacement.

        Returns
        -------
        Rate
        """
        denominator = None if self.denominator is None else self.denominator.map_atoms(change)
        return replace(
            self, terms=tuple((c, change(a)) for c, a in self.terms), denominator=denominator
        )

    def value(
        self,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
    ) -> float:
        """Measure the expression on the predictions of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels. Rows whose label is None or missing are unlabeled; rates that need
            labels ignore them.
        y_pred : array-like of shape (n_samples,)
            Predicted labels (not scores).
        attributes : DataFrame or dict of arrays, default=None
            Columns that `where`, `by`, `weight` and `churn` refer to.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        pos_label : label, default=None
            The class of rates without `of`; optional for labels {0, 1}, {-1, 1} and bool.
        labels : array-like, default=None
            All classes and other decisions that may occur; others are then an error. None is for
            those that do: the classes in `y_true`, and decisions of other labels in `y_pred`.

        Returns
        -------
        float
            The value on these rows, regardless of `on`; for forms over groups and classes, that of
            the worst one or pair. nan, with a warning, if a denominator is empty.

        Examples
        --------
        >>> from skbandit.rates import precision
        >>> precision().value(["no", "yes", "yes"], ["yes", "yes", "no"], pos_label="yes")
        0.5
        """
        given = y_true, y_pred, attributes, sample_weight, pos_label, labels
        values = values_of(self, *given)
        if not values:
            return math.nan
        if not self.is_form:
            return values[0]
        # The terms of the group decide which is worst, as in each(recall, by="g") - recall().
        group_terms = replace(self, terms=tuple((c, a) for c, a in self.terms if has_slots(a)))
        summary = self.summary or ("min" if group_terms.greater_is_better else "max")
        return min(values) if summary == "min" else max(values)

    # --- algebra -----------------------------------------------------------------------

    def __add__(self, other: Any) -> Rate:
        right = as_rate(other, f"{self} + {shown(other)}")
        return _sum(self, right, f"{self} + {right}")

    def __radd__(self, other: Any) -> Rate:
        left = as_rate(other, f"{shown(other)} + {self}")
        if left.constant == 0:  # sum() starts from 0, which the text should not show
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
                f"{text} multiplies two rates, which is not linear: replace one by a number."
            )
        return _scale(self, as_rate(other, text).constant, text)

    def __truediv__(self, other: Any) -> Rate:
        right = as_rate(other, f"{self} / {shown(other)}")
        text = f"{_inside(self, _PRODUCT)} / {_inside(right, _CALL)}"
        if isinstance(other, Rate):
            return _quotient_of_rates(self, right, text)
        if right.constant == 0:
            raise ZeroDivisionError(f"{text} divides by zero.")
        return _scale(self, 1.0 / right.constant, text)

    def __rtruediv__(self, other: Any) -> Rate:
        left = as_rate(other, f"{shown(other)} / {self}")
        return _quotient_of_rates(left, self, f"{left} / {_inside(self, _CALL)}")

    def __abs__(self) -> AbsoluteRate:
        if self.over_pairs:
            raise ValueError(f"abs({self}): {self} already covers every ordered pair of groups.")
        return AbsoluteRate(self)

    def __le__(self, other: Any) -> Constraint:
        return compare(self, "<=", as_rate(other, f"{self} <= {shown(other)}"))

    def __ge__(self, other: Any) -> Constraint:
        return compare(self, ">=", as_rate(other, f"{self} >= {shown(other)}"))

    def __lt__(self, other: Any) -> NoReturn:
        raise TypeError(f"{self} < {shown(other)}: strict bounds are not supported, write <=.")

    def __gt__(self, other: Any) -> NoReturn:
        raise TypeError(f"{self} > {shown(other)}: strict bounds are not supported, write >=.")


@dataclass(frozen=True, eq=False, repr=False)
class AbsoluteRate:
    """The absolute value of a rate: can be bounded or measured, but takes no arithmetic.

    Parameters
    ----------
    rate : Rate
        Argument of ``abs(...)``.

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
        raise TypeError(f"{self} has no truth value until it is measured.")

    def __le__(self, other: Any) -> Constraint:
        return compare(self.rate, "<=", as_rate(other, f"{self} <= {shown(other)}"), absolute=True)

    def __ge__(self, other: Any) -> NoReturn:
        raise TypeError(
            f"{self} >= {shown(other)} is a choice between two constraints, which cannot be "
            "declared: bound the rate on one side instead."
        )

    __lt__ = Rate.__lt__
    __gt__ = Rate.__gt__

    def _no_algebra(self, other: Any = None) -> NoReturn:
        raise TypeError(f"{self} takes no arithmetic: use it as abs(rate) <= bound.")

    __add__ = __radd__ = __sub__ = __rsub__ = _no_algebra
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _no_algebra

    def value(
        self,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
    ) -> float:
        """Measure the absolute value on the predictions of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        attributes : DataFrame or dict of arrays, default=None
            Columns that the expression refers to.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        pos_label : label, default=None
            The class of rates without `of`.
        labels : array-like, default=None
            All classes and other decisions that may occur.

        Returns
        -------
        float
            For `each`, the value of the group furthest from zero.
        """
        given = y_true, y_pred, attributes, sample_weight, pos_label, labels
        return max(map(abs, values_of(self.rate, *given)), default=math.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Constraint:
    """A constraint on rates, created by a comparison: ``recall() >= 0.9``.

    Parameters
    ----------
    lhs, rhs : Rate
        The two sides as written.
    sense : {"<=", ">="}
        Direction of the comparison.
    absolute : bool
        Whether the left side is ``abs(lhs)``.
    name : str or None
        Label set by `named`.
    part : tuple of int, str and str, or None
        If this is one side, or one group, of a declared constraint: the number and the label of
        that one, and the group.
    of : str
        The class, or the pair of classes, of a form over classes; else empty.

    Examples
    --------
    >>> from skbandit.rates import positive_rate
    >>> rule = positive_rate("sex == 'F'") >= 0.8 * positive_rate("sex == 'M'") - 0.05
    >>> rule.bound
    -0.05
    >>> rule.named("80% rule").label
    '80% rule'
    """

    lhs: Rate
    sense: Sense
    rhs: Rate
    absolute: bool = False
    name: str | None = None
    part: tuple[int, str, str] | None = None
    of: str = ""

    def __repr__(self) -> str:
        return self.text if self.name is None else f"({self.text}).named({self.name!r})"

    def __bool__(self, other: object = None) -> NoReturn:
        raise TypeError(
            f"{self.text} is a constraint and has no truth value. Write a list for several "
            "constraints, [a, b] instead of (a) and (b), and two of them for a chained comparison: "
            "[rate >= low, rate <= high]."
        )

    __and__ = __or__ = __add__ = __ge__ = __le__ = __bool__

    @property
    def text(self) -> str:
        """The constraint as it was written."""
        lhs = f"abs({self.lhs})" if self.absolute else f"{self.lhs}"
        return f"{lhs} {self.sense} {self.rhs}"

    @property
    def label(self) -> str:
        """The name, if set, or else the text."""
        return self.text if self.name is None else self.name

    @property
    def rate(self) -> Rate:
        """The bounded expression: all terms, and the constant of the left side."""
        if not self.rhs.terms:
            return self.lhs
        return replace(self.lhs - self.rhs, constant=self.lhs.constant)

    @property
    def bound(self) -> float:
        """The number that bounds `rate`: the constant of the right side."""
        return self.rhs.constant

    def named(self, name: str) -> Constraint:
        """Return the same constraint with a label for reports and messages.

        Parameters
        ----------
        name : str
            The label.

        Returns
        -------
        Constraint
        """
        return replace(self, name=str(name))

    def one_sided(self) -> tuple[Constraint, ...]:
        """Split ``abs(...) <= bound`` into an upper and a lower constraint."""
        if not self.absolute:
            return (self,)
        upper = replace(self, absolute=False)
        # a constant is printed as -0.3, not as -(0.3)
        rhs = -self.rhs if self.rhs.terms else as_rate(0.0 - self.rhs.constant, self.rhs.text)
        lower = replace(upper, sense=">=", rhs=rhs)
        if self.name is None:
            return upper, lower
        return upper.named(f"{self.name} (upper)"), lower.named(f"{self.name} (lower)")


def _counts(terms: tuple[tuple[float, Atom], ...], *, mirrored: bool = False) -> dict[Any, float]:
    """Coefficient of each atom, or of its mirror image if the classes are swapped."""
    coefficients: dict[Any, float] = {}
    for coefficient, atom in terms:
        kind = atom.kind.mirrored if mirrored and atom.needs_pos_label else atom.kind
        key = None if kind is None else replace(atom, kind=kind).key
        coefficients[key] = coefficients.get(key, 0.0) + coefficient
    return coefficients


def atom_rate(atom: Atom) -> Rate:
    """Wrap one atom as an expression."""
    return Rate(((1.0, atom),), 0.0, None, None, repr(atom), _CALL)


def call_rate(rate: Rate, text: str, summary: Summary | None = None) -> Rate:
    """Return the expression with the text of the function call that created it."""
    return replace(rate, text=text, precedence=_CALL, summary=summary)


def as_rate(other: Any, text: str) -> Rate:
    """Convert an operand, a rate or a finite real number; errors quote `text`."""
    if isinstance(other, Rate):
        return other
    # bool is a numbers.Real
    if isinstance(other, bool) or not isinstance(other, numbers.Real):
        raise TypeError(
            f"{text}: a rate combines with real numbers and other rates, not with "
            f"{type(other).__name__}; for several bounds, write a list of constraints."
        )
    try:
        finite = math.isfinite(other)
    except OverflowError:  # an integer or a fraction beyond the range of floats
        finite = False
    if not finite:
        raise ValueError(f"{text}: the number must be finite, and within the range of floats.")
    return Rate(
        (), float(other), None, None, shown(other), _CALL if float(other) >= 0 else _PRODUCT
    )


def shown(value: Any) -> str:
    """Format a number as a Python literal (the repr of a numpy scalar includes its type)."""
    if isinstance(value, int | Fraction) and abs(whole := int(value)) > sys.float_info.max:
        return f"a number of about 2**{whole.bit_length() - 1}"
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        value = float(value)
    return repr(value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value)


def _inside(rate: Rate, precedence: int) -> str:
    return rate.text if rate.precedence >= precedence else f"({rate.text})"


def _scale(rate: Rate, factor: float, text: str) -> Rate:
    summary = rate.summary
    if rate.over_pairs and factor < 0:
        summary = "min" if summary == "max" else "max"
    return replace(
        rate,
        terms=tuple((factor * c, atom) for c, atom in rate.terms),
        constant=factor * rate.constant,
        summary=summary,
        text=text,
        precedence=_PRODUCT,
    )


def _sum(left: Rate, right: Rate, text: str) -> Rate:
    for ratio, other in ((left, right), (right, left)):
        if (denominator := ratio.denominator) is not None:
            if not other.is_number:
                raise ValueError(
                    f"{text} is not linear-fractional: a quotient of rates can only be combined "
                    "with numbers."
                )
            # N/D + c = (N + cD)/D
            numerator = replace(ratio, denominator=None, summary=None)
            shifted = _sum(numerator, _scale(denominator, other.constant, ""), "")
            return replace(shifted, denominator=denominator, summary=ratio.summary, text=text)
    _check_one_group_column(left, right, text)
    return Rate(
        left.terms + right.terms,
        left.constant + right.constant,
        None,
        left.summary or right.summary,
        text,
        _SUM,
    )


def _quotient_of_rates(numerator: Rate, denominator: Rate, text: str) -> Rate:
    if numerator.denominator is not None or denominator.denominator is not None:
        raise ValueError(f"{text} divides a ratio: multiply out until a single division is left.")
    if denominator.constant < 0 or any(c < 0 for c, _ in denominator.terms):
        raise ValueError(
            f"{text}: the divisor may become negative, so a bound on the ratio is not a linear "
            "constraint; divide by a sum of rates with positive coefficients."
        )
    if numerator.summary or denominator.summary:
        raise ValueError(f"{text}: a form over pairs of groups can only be combined with numbers.")
    _check_one_group_column(numerator, denominator, text)
    return replace(numerator, denominator=denominator, text=text, precedence=_PRODUCT)


def _check_one_group_column(left: Rate, right: Rate, text: str) -> None:
    forms = [(side.grouped_by, side.over_classes) for side in (left, right)]
    slots = [
        (groups and groups[0], classes and classes[0].among)
        for groups, classes in forms
        if groups or classes
    ]
    alike = len(set(slots)) == 1 and left.summary is None is right.summary
    if len(slots) == 2 and not alike:
        raise ValueError(f"{text} mixes two group forms: write them as separate constraints.")


def compare(lhs: Rate, sense: Sense, rhs: Rate, *, absolute: bool = False) -> Constraint:
    """Create a constraint from two expressions, or explain why that is impossible."""
    made = Constraint(lhs, sense, rhs, absolute)
    if rhs.fractional or (lhs.fractional and not rhs.is_number):
        raise ValueError(
            f"{made.text} bounds a ratio by a rate: precision, F1 and ratios of rates can only be "
            "bounded by a number."
        )
    summary = made.rate.summary
    if made.rate.over_pairs and (summary == "max") != (sense == "<="):
        side = "above, with <=" if summary == "max" else "below, with >="
        raise ValueError(
            f"{made.text} would have to hold for both orders of every pair of groups: "
            f"bound {made.rate} from {side}."
        )
    if absolute and value_range(rhs)[1] < -RATE_TOL:
        raise ValueError(f"{made.text} can never hold: an absolute value is at least 0.")
    for constraint in made.one_sided():
        _check_possible(constraint, made.text)
        if not absolute:
            _warn_if_idle(constraint, made.text)
    return made


def _check_possible(side: Constraint, text: str) -> None:
    """Raise an error if no data and no classifier meet a one-sided constraint."""
    low, high = value_range(side.rate)
    is_upper = side.sense == "<="
    if low - RATE_TOL <= side.bound if is_upper else side.bound <= high + RATE_TOL:
        return
    shift = -side.rhs.constant if side.rhs.terms else 0.0
    shown_rate = f"{side.lhs} - ({side.rhs})" if side.rhs.terms else f"{side.lhs}"
    if side.rate.over_pairs:
        at = "at least" if is_upper else "at most"
        why = (
            f"of the two orders of a pair of groups, one has {shown_rate} {at} {high + shift:.6g}, "
            "as groups with equal rates have"
        )
    else:
        why = f"{shown_rate} lies between {low + shift:.6g} and {high + shift:.6g}"
    share = (side.bound + shift) / 100
    possible = smallest_value(side.rate) <= share - shift <= high
    hint = f" Did you mean {share:g}?" if possible and share >= SMALLEST_PERCENTAGE else ""
    raise ValueError(f"{text} can never hold: {why}.{hint}")


def _warn_if_idle(side: Constraint, text: str) -> None:
    """Warn of an upper bound that always holds, and reads like a percentage or a table of gains."""
    if side.sense != "<=" or (high := value_range(side.rate)[1]) > side.bound:
        return
    cells = [atom.cells for atom in side.rate.atoms if atom.cells is not None]
    if cells and all(cell.negative for cell in cells):
        why = "no cost in the table is above 0: costs are positive, and gains negative."
    elif side.rhs.is_number and side.lhs.constant == 0.0 and abs(high - 1.0) <= RATE_TOL:
        if not 2 <= side.bound <= 100:
            return
        why = f"the rate is at most 1. Did you mean {side.bound / 100:g}?"
    else:
        return
    warn(f"{text} always holds, as {why}", UserWarning)


def value_range(rate: Rate) -> tuple[float, float]:
    """Smallest and largest value over all data; of the worst pair, for a form over pairs.

    A form over ordered pairs of groups is at best its value at two equal groups: of a / b
    and b / a one is at most 1, and of a - b and b - a one is at least 0.
    """
    if rate.over_pairs:
        rate = replace(rate.map_atoms(lambda atom: replace(atom, group=None)), summary=None)
        rate = rate.map_atoms(lambda a: replace(a, of=None) if has_slots(a) else a)
    return smallest_value(rate), -smallest_value(-rate)


def smallest_value(rate: Rate) -> float:
    """Lower bound of an expression over all data; the upper one is ``-smallest_value(-rate)``.

    Atoms vary in [0, 1], independently unless they have the same text. Over that box, N/D is
    smallest at a corner, where exactly the atoms i with n_i/d_i below the minimum are 1. So
    the atoms are raised from 0 to 1 in increasing order of n_i/d_i. A linear expression has
    D = 1.

    Returns
    -------
    float
        -inf if the denominator can be 0 while the numerator is negative.
    """
    if any(atom.amount is not None for atom in rate.atoms):  # in units of a column
        return -math.inf
    numerator, denominator = (
        rate.constant,
        1.0 if rate.denominator is None else rate.denominator.constant,
    )
    coefficients: dict[object, list[float]] = {}
    for place, part in enumerate((rate, rate.denominator)):
        for coefficient, atom in () if part is None else part.terms:
            pair = coefficients.setdefault(atom.key, [0.0, 0.0])
            pair[place] += coefficient

    def rise(pair: list[float]) -> float:
        return pair[0] / pair[1] if pair[1] else math.copysign(math.inf, pair[0])

    smallest = math.inf
    for n, d in [(0.0, 0.0), *sorted(coefficients.values(), key=rise)]:
        numerator, denominator = numerator + n, denominator + d
        if denominator > 0:
            smallest = min(smallest, numerator / denominator)
        elif numerator < 0:
            return -math.inf
    return smallest
