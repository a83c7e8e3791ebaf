"""The reductions as estimators."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skbandit.selection.reductions._mixin import ReductionMixin
from skbandit.selection.reductions._registry import bind_learner
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._sklearn_compat import HasMethods, StrOptions, fit_context

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class CostSensitiveClassifier(ReductionMixin, BaseEstimator):
    """Chooses the ad of lowest expected cost per row: a set selector for sets of one.

    Subclasses set `_reduction`, the name of their reduction.
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True, "fill": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_jobs": [Integral, None],
        "unknown_ads": [StrOptions({"error", "ignore"})],
    }

    n_select = 1
    _largest_set = 1

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_jobs: int | None = None,
        unknown_ads: Literal["error", "ignore"] = "error",
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.unknown_ads = unknown_ads

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> CostSensitiveClassifier:
        """Learn which ad costs least per row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows of numbers.
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
        self : CostSensitiveClassifier
        """
        with atomic_fit(self) as draft:
            read = draft._read_examples(X, y, available, sample_weight)
            random = check_random_state(getattr(draft, "random_state", None))
            learn = bind_learner(draft._reduction, draft.estimator, read, random, draft.n_jobs)
            draft._rules = (learn(read.X, read.costs, read.available, read.weight),)
        return self

    def predict(  # type: ignore[override]
        self, X: Any, *, available: Any = None, fill: Any = None
    ) -> np.ndarray:
        """Choose one ad per row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, table or collection of labels, default=None
            Which ads may be chosen: a boolean table, dense or sparse, with columns in the order of
            `ads_` or, for a DataFrame, matched by label; a collection of labels per row; or one
            for all rows. None means all.
        fill : label, default=None
            Marker for rows without an available ad; with None, such rows are an error.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels of ads.
        """
        return super().predict(X, available=available, fill=fill)[:, 0]

    def _ranked(self, X: Any, available: np.ndarray, n_select: int) -> np.ndarray:
        (rule,) = self._rules
        return rule.choose(rule.respond(X), available)[:, None]


class FilterTreeClassifier(CostSensitiveClassifier):
    """Finds the ad of lowest cost by a knock-out tournament of binary classifiers.

    In each of the n_ads - 1 matches, a classifier predicts from the row which of two ads is
    cheaper. It is trained on the rows in which these two meet, weighted by the difference of their
    costs [1]_. Unavailable ads do not take part.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for each match; its `fit` must take `sample_weight`, unless all costs differ by
        the same amount. None means `LogisticRegression`
        with the penalty that suits ridge regression of the costs.
    random_state : int, RandomState or None, default=0
        Draws the order of the ads in the tournament, which would otherwise be that of the columns
        of y.
    n_jobs : int, default=None
        Number of matches of a tournament round that are learned in parallel.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads named in `available` but not in y, or the other way round: an error; or
        unknown ads are left out, and known ads without a column are not available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    WeightedAllPairsClassifier : Compares every pair of ads.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.
    skbandit.selection.logged_costs : Costs from logs; with ``method="offset"`` this is the offset
        tree.

    Notes
    -----
    The regret of the winner is at most the sum of the importance-weighted regrets of all
    matches.

    A match learns only about the ads that reach it in training. So pass to `fit` an `available`
    like that expected at prediction: ads that rarely got far in training are poorly judged once
    the better ones are missing.

    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    References
    ----------
    .. [1] A. Beygelzimer, J. Langford & P. Ravikumar, "Error-correcting tournaments", 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection.reductions import FilterTreeClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> costs = np.hstack([X, -X, np.zeros_like(X)])
    >>> FilterTreeClassifier().fit(X, costs).predict(X)
    array([0, 0, 1, 1])
    """

    _reduction = "filter_tree"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CostSensitiveClassifier._parameter_constraints,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        random_state: Any = 0,
        n_jobs: int | None = None,
        unknown_ads: Literal["error", "ignore"] = "error",
    ) -> None:
        super().__init__(estimator, n_jobs=n_jobs, unknown_ads=unknown_ads)
        self.random_state = random_state


class WeightedAllPairsClassifier(CostSensitiveClassifier):
    """Finds the ad of lowest cost by one binary classifier per pair of ads.

    The classifier of a pair predicts from the row which of the two is cheaper. It is trained on the
    rows where both are available, weighted by the difference of their costs. The available ad that
    beats most of the other available ads is chosen; ties go to the first [1]_.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for each of the n_ads (n_ads - 1) / 2 pairs; its `fit` must take `sample_weight`,
        unless all costs differ by the same amount. None means
        ``LogisticRegression(max_iter=1000)``.
    n_jobs : int, default=None
        Number of pairs learned in parallel.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads named in `available` but not in y, or the other way round: an error; or
        unknown ads are left out, and known ads without a column are not available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    FilterTreeClassifier : Needs only n_ads - 1 classifiers.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.

    Notes
    -----
    The weights are plain differences of costs. So the best classifiers order *all* ads by their
    expected costs, as is needed to choose several ads or to choose among fewer ads. The paper
    first transforms costs, for a bound on the error of the best ad only.

    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    References
    ----------
    .. [1] A. Beygelzimer, V. Dani, T. Hayes, J. Langford & B. Zadrozny, "Error limiting
       reductions between classification tasks", ICML 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection.reductions import WeightedAllPairsClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> costs = np.hstack([X, -X, np.zeros_like(X)])
    >>> WeightedAllPairsClassifier().fit(X, costs).predict(X)
    array([0, 0, 1, 1])
    """

    _reduction = "weighted_all_pairs"


class OneVsRestCostClassifier(CostSensitiveClassifier):
    """Finds the ad of lowest cost by one probabilistic classifier per ad.

    The classifier of an ad predicts the probability that the ad is good. With costs between low
    and high, a row is an example of "good" with weight (high - cost) / (high - low) and of "bad"
    with the rest, so that the probability converts to the expected cost. The ad with the lowest
    is chosen.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for each ad; it must have `predict_proba`, and its `fit` must take
        `sample_weight`, unless the costs of each ad have only two values. None means
        ``LogisticRegression(max_iter=1000)``.
    n_jobs : int, default=None
        Number of ads learned in parallel.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads named in `available` but not in y, or the other way round: an error; or
        unknown ads are left out, and known ads without a column are not available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    RegressionCostClassifier : Predicts costs by a regressor.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.

    Notes
    -----
    Predicted costs are only as good as the calibration of the probabilities. They lie between the
    lowest and the highest observed cost of the ad; a single outlier stretches that range.

    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skbandit.selection.reductions import OneVsRestCostClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> clicks = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model = OneVsRestCostClassifier(LogisticRegression()).fit(X, -clicks)
    >>> model.predict(X)
    array([0, 0, 1, 1])
    >>> model.predict_costs(X).round(1)
    array([[-0.9, -0.1],
           [-0.7, -0.3],
           [-0.3, -0.7],
           [-0.1, -0.9]])
    """

    _reduction = "one_vs_rest"


class RegressionCostClassifier(CostSensitiveClassifier):
    """Finds the ad of lowest cost by regression.

    Parameters
    ----------
    estimator : regressor or classifier, default=None
        Predicts costs. A multi-output regressor is fitted once if all costs are observed;
        otherwise, and for any other regressor, one clone per ad is fitted to the rows where its
        cost is observed. A classifier with `predict_proba` can be used for costs with few distinct
        values. None means `Ridge` with the penalty of least leave-one-out error.
    n_jobs : int, default=None
        Number of ads learned in parallel, if each is learned separately.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads named in `available` but not in y, or the other way round: an error; or
        unknown ads are left out, and known ads without a column are not available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Chooses several ads in this way, including new ones.

    Notes
    -----
    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection.reductions import RegressionCostClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> costs = np.hstack([X, -X, np.zeros_like(X)])
    >>> RegressionCostClassifier().fit(X, costs).predict(X)
    array([0, 0, 1, 1])
    """

    _reduction = "regression"
