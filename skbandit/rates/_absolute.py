"""The absolute value of a rate, which can be bounded but not reckoned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from skbandit.rates._binding._metric import on_given_rows, read_predictions, values_on
from skbandit.rates._constraint import compare
from skbandit.rates._expression import Rate, as_rate, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
        data, positive = read_predictions(y_true, y_pred, attributes, sample_weight, pos_label)
        known = values_on(on_given_rows(self.rate), data, positive)
        return max(map(abs, known), default=float("nan"))
