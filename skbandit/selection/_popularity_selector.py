"""PopularitySetSelector: one set for all rows, the baseline of other selectors."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import indexable
from sklearn.utils.validation import validate_data

from skbandit.selection._cost_models import PredictsFromRows
from skbandit.selection._costs import (
    CostMatrix,
    check_every_ad_observed,
)
from skbandit.selection._mixin import CostModelMixin
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import Interval, StrOptions, count_rows, fit_context
from skbandit.utils._validation import warn_if_reordered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class ConstantCosts(PredictsFromRows):
    """The same costs in every row."""

    mean: np.ndarray

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        return np.tile(self.mean, (count_rows(X), 1))


class PopularitySetSelector(CostModelMixin, BaseEstimator):
    """Choose the m available ads of lowest mean cost for every row: the baseline.

    The baseline for every other selector.

    Parameters
    ----------
    n_select : int, default=1
        Number of ads to choose, m.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads named in `available` but not in y, or the other way round: an error; or
        unknown ads are left out, and known ads without a column are not available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    mean_costs_ : ndarray of shape (n_ads,)
        Mean observed cost of each ad.
    n_features_in_ : int
        Number of features, if X has any.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Chooses by costs predicted from X.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection import PopularitySetSelector
    >>> clicks = np.array([[0, 1, 1], [0, 1, 0], [1, 1, 0]])
    >>> X = np.zeros((3, 1))
    >>> selector = PopularitySetSelector(n_select=2).fit(X, -clicks)
    >>> selector.predict(X[:1])
    array([[1, 0]])
    >>> selector.predict(X[:1], available=[[True, False, True]])
    array([[0, 2]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "unknown_ads": [StrOptions({"error", "ignore"})],
    }

    def __init__(
        self,
        n_select: int = 1,
        *,
        unknown_ads: Literal["error", "ignore"] = "error",
    ) -> None:
        self.n_select = n_select
        self.unknown_ads = unknown_ads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> PopularitySetSelector:
        """Compute the mean observed cost of each ad.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows; only their number matters.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, lower is better; nan is not observed. The columns of a DataFrame name the
            ads. Implicit zeros of a sparse matrix are costs of 0.
        available : array-like, table or collection of labels, default=None
            Which ads could be chosen: a boolean table, dense or sparse, with columns in the order
            of y or, for a DataFrame, matched by label; a collection of labels per row; or one for
            all rows. None means all. Costs of the other ads count as not observed.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        self : PopularitySetSelector
        """
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        with atomic_fit(self) as draft:
            _, costs, _, weight = draft._read_training(X, y, available, sample_weight)
            check_every_ad_observed(costs)
            weight = np.ones(costs.shape[0]) if weight is None else weight
            draft.mean_costs_ = _means(costs, weight)
            draft._model = ConstantCosts(draft.mean_costs_)
        return self

    def _read_X(self, X: Any, reset: bool) -> Any:
        validate_data(self, X, skip_check_array=True, reset=reset)
        return indexable(X)[0]


def _means(costs: CostMatrix, weight: np.ndarray) -> np.ndarray:
    """Weighted mean of the observed costs per ad."""
    means = np.empty(costs.shape[1])
    for j in range(costs.shape[1]):
        rows, paid = costs.of_ad(j)
        means[j] = np.average(paid, weights=weight[rows])
    return means
