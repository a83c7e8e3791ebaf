"""Errors and warnings of the library."""

from __future__ import annotations

from typing import Any

__all__ = ["InfeasibleConstraintsError", "ReplayCoverageWarning", "SolverError"]


class InfeasibleConstraintsError(ValueError):
    """No rule was found that meets the declared constraints together.

    Parameters
    ----------
    message : str
        Which constraints are missed, and by how much.
    closest : estimator, default=None
        The fitted estimator that comes closest, kept as `closest_`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.exceptions import InfeasibleConstraintsError
    >>> from skbandit.rates import negative_rate, positive_rate
    >>> X, y = make_classification(60, random_state=0)
    >>> impossible = [positive_rate() >= 0.7, negative_rate() >= 0.7]
    >>> try:
    ...     ConstrainedRampClassifier(constraints=impossible).fit(X, y)
    ... except InfeasibleConstraintsError as error:
    ...     print(error.closest_.feasible_)
    False
    """

    def __init__(self, message: str, closest: Any = None) -> None:
        super().__init__(message)
        self.closest_ = closest

    def __reduce__(self) -> tuple[Any, ...]:
        # by default pickling keeps only what went to Exception.__init__
        return type(self), (*self.args, self.closest_)


class ReplayCoverageWarning(UserWarning):
    """A log says too little of the policy that is judged on it.

    Examples
    --------
    >>> import warnings
    >>> from skbandit.evaluation import ips
    >>> from skbandit.exceptions import ReplayCoverageWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     estimate = ips([0.9, 0.1, 0.2], None, ["a", "b", "b"], reward=[1, 0, 1])
    >>> caught[0].category is ReplayCoverageWarning
    True
    """


class SolverError(RuntimeError):
    """A solver is not installed, or ended without a solution.

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
