"""The reductions as estimators: plumbing around one function each."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from skbandit.selection.reductions._mixin import ReducedMixin
from skbandit.selection.reductions._registry import reduction
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._sklearn_compat import HasMethods, fit_context

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class CostSensitiveClassifier(ReducedMixin, BaseEstimator):
    """The ad of least expected cost for each row: a set selector for sets of one.

    Subclasses name their reduction.
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True, "fill": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_jobs": [Integral, None],
    }

    n_select = 1
    _largest_set = 1

    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> CostSensitiveClassifier:
        """Learn which ad costs least.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, of numbers.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, lower is better; nan is not observed. The columns of a DataFrame name the
            ads. Entries that a sparse matrix does not hold are costs of 0.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads could be chosen, in the order of y or, a DataFrame, by column label. Costs
            of the others count as not observed.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        self : CostSensitiveClassifier
        """
        with atomic_fit(self) as draft:
            read = draft._read_examples(X, y, available, sample_weight)
            learn = reduction(draft._reduction, draft.estimator, draft.n_jobs)
            draft._rules = (learn(read.X, read.costs, read.available, read.weight),)
        return self

    def predict(  # type: ignore[override]
        self, X: Any, *, available: Any = None, fill: Any = None
    ) -> np.ndarray:
        """Choose an ad for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads may be chosen, in the order of `ads_` or, a DataFrame, by column label;
            None is all.
        fill : label, default=None
            What stands for an ad where none is available; None makes that an error.

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
    """Finds the ad of least cost by a knock-out tournament of binary classifiers.

    In each match two ads meet, and a classifier says from the row which one is cheaper; it was
    trained on the rows in which these two met, each counting as much as their costs differ [1]_.
    There are n_ads - 1 matches. Ads that are not available do not take part.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for every match; its `fit` must take `sample_weight`, unless all costs differ by
        the same amount. None is ``LogisticRegression(max_iter=1000)``.
    n_jobs : int, default=None
        Matches of a round of the tournament that are learned at the same time.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, else 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any that are all strings.

    See Also
    --------
    WeightedAllPairsClassifier : Every ad meets every other.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.
    skbandit.selection.logged_costs : Costs from logs; ``method="offset"`` makes this the offset
        tree.

    Notes
    -----
    The winner's regret is at most the sum of the importance-weighted regrets of all matches.

    A match learns only about the ads that reach it in training. So pass `available` to `fit` as
    it is to be expected at prediction: ads that rarely got far are not well judged there, once
    the better ones are gone.

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


class WeightedAllPairsClassifier(CostSensitiveClassifier):
    """Finds the ad of least cost by a binary classifier for every pair of ads.

    A pair's classifier says from the row which of the two is cheaper; it was trained on the rows
    where both were available, each counting as much as their costs differ. The available ad that
    beats most of the other available ones is chosen; ties go to the first [1]_.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for each of the n_ads (n_ads - 1) / 2 pairs; its `fit` must take `sample_weight`,
        unless all costs differ by the same amount. None is
        ``LogisticRegression(max_iter=1000)``.
    n_jobs : int, default=None
        Pairs learned at the same time.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, else 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any that are all strings.

    See Also
    --------
    FilterTreeClassifier : Needs n_ads - 1 classifiers only.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.

    Notes
    -----
    The weights are plain differences of costs: then the best classifiers order *all* ads by
    their expected costs, which is what choosing several of them, or among fewer of them, needs.
    The paper transforms costs first, for a bound on the error of the best ad alone.

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
    """Finds the ad of least cost by a probabilistic classifier for each ad.

    An ad's classifier says how probably the ad is good. For costs between low and high, a row
    trains it as good with weight (high - cost) / (high - low) and as bad with the rest, so that
    the probability, read backwards, is the expected cost. The lowest is chosen.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned for each ad; it must have `predict_proba`, and its `fit` must take
        `sample_weight`, unless each ad's costs have two values only. None is
        ``LogisticRegression(max_iter=1000)``.
    n_jobs : int, default=None
        Ads learned at the same time.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, else 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any that are all strings.

    See Also
    --------
    RegressionCostClassifier : Predicts costs by a regressor.
    skbandit.SetSelectClassifier : Chooses several ads, by this or another reduction.

    Notes
    -----
    Predicted costs are as good as the probabilities are calibrated. They lie between the lowest
    and the highest cost observed of the ad; a single outlier stretches that range.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection.reductions import OneVsRestCostClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> clicks = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model = OneVsRestCostClassifier().fit(X, -clicks)
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
    """Finds the ad of least cost by regression.

    Parameters
    ----------
    estimator : regressor or classifier, default=None
        Predicts costs: a multi-output regressor at once if all are observed, any other in a
        clone for each ad, trained on the rows where its cost was observed. A classifier with
        `predict_proba` does for costs of a few values. None is ``Ridge()``.
    n_jobs : int, default=None
        Ads learned at the same time, where each is learned separately.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, else 0, 1, ...
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any that are all strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Chooses several ads in this way, new ones among them.

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
