"""Errors and warnings raised by skbandit."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConstrainedFitWarning",
    "EmptyRateError",
    "InfeasibleConstraintsError",
    "ReplayCoverageWarning",
    "SolverError",
]


def __dir__() -> list[str]:
    return __all__


class ConstrainedFitWarning(UserWarning):
    """A fit meets its constraints at a high cost, or with less confidence than it aims at.

    It says which of these holds, with the figures:

    - The objective is worse than without constraints by more than 0.1, or by more than 0.05 and
      half of its value. (Not if predicting one class for all rows would be optimal, as for recall
      alone.)
    - A class is predicted for less than a tenth of its rows, and was not without constraints.
    - `confidence_level_` is below 0.6, and no `confidence_level` was given.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_classification
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.exceptions import ConstrainedFitWarning
    >>> from skbandit.rates import recall
    >>> X, y = make_classification(400, flip_y=0.4, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     clf = ConstrainedRampClassifier(constraints=recall() >= 0.99).fit(X, y)
    >>> caught[0].category is ConstrainedFitWarning
    True
    """


class EmptyRateError(ValueError):
    """The denominator of a rate is empty: no row, or no prediction, falls in it.

    Raised for the rows that a rate names itself. A group of `each`, `ratio` or `difference`
    without rows is skipped with a warning, and `Rate.value` returns nan with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.exceptions import EmptyRateError
    >>> from skbandit.rates import recall
    >>> X, y = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    >>> clf = ConstrainedRampClassifier(constraints=recall("age > 90") >= 0.9)
    >>> try:
    ...     clf.fit(X, y, attributes={"age": [20, 30, 40, 50, 60, 70]})
    ... except EmptyRateError as error:
    ...     print(error)
    recall('age > 90'): where='age > 90' selects no rows; 'age' holds 20, 30, 40, 50, 60, 70.
    """


class InfeasibleConstraintsError(ValueError):
    """No rule was found that meets all declared constraints.

    Parameters
    ----------
    message : str
        The violated constraints, and by how much each is violated.
    closest : estimator, default=None
        The fitted estimator with the smallest violation; the attribute `closest_`.
    proven : bool, default=False
        The attribute `proven`: whether there is a proof, on the training rows, that no rule of the
        estimator's kind meets the constraints as measured, without the margin of a level.
        Otherwise none was found.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.exceptions import InfeasibleConstraintsError
    >>> from skbandit.rates import negative_rate, positive_rate
    >>> X, y = make_classification(60, 4, random_state=0)
    >>> impossible = [positive_rate() >= 0.7, negative_rate() >= 0.7]
    >>> try:
    ...     ConstrainedRampClassifier(constraints=impossible).fit(X, y)
    ... except InfeasibleConstraintsError as error:
    ...     print(error.closest_.feasible_)
    False
    """

    def __init__(self, message: str, closest: Any = None, *, proven: bool = False) -> None:
        super().__init__(message)
        self.closest_ = closest
        self.proven = proven

    def __reduce__(self) -> tuple[Any, ...]:
        # by default, pickling keeps only the arguments of Exception.__init__
        return type(self), (*self.args, self.closest_), {"proven": self.proven}


class ReplayCoverageWarning(UserWarning):
    """A log holds too little evidence on the policy that is evaluated.

    Examples
    --------
    >>> import warnings
    >>> from skbandit.evaluation import off_policy_value
    >>> from skbandit.exceptions import ReplayCoverageWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     few = off_policy_value([0.9, 0.1, 0.2], None, ["a", "b", "b"], reward=[1, 0, 1])
    >>> caught[0].category is ReplayCoverageWarning
    True
    """


class SolverError(RuntimeError):
    """A solver is not installed, or stopped without a solution.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbandit import ConstrainedRampClassifier
    >>> X, y = make_classification(60, random_state=0)
    >>> ConstrainedRampClassifier(solver_options={"solver": "nonesuch"}).fit(X, y)
    Traceback (most recent call last):
    ...
    skbandit.exceptions.SolverError: cvxpy finds no solver 'nonesuch'; installed are ...
    """
