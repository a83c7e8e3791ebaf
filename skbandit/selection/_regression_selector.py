"""Selectors of the lowest costs: predicted by regression, or means, the baseline."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.linear_model import Ridge
from sklearn.utils import check_array, get_tags

from skbandit.selection._ad_features import AdFeatures, fit_bilinear, fit_pairs, read_ad_features
from skbandit.selection._cost_models import CostModels, constant, learn_costs, ridge_of
from skbandit.selection._costs import CostMatrix, check_every_ad_observed
from skbandit.selection._mixin import PREDICTS, CostModelMixin
from skbandit.selection._ridge import MAX_GRAM, Linear, NormalEquations, choose_penalty
from skbandit.selection._stack import fit_stack, warn_of_better_trees
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import HasMethods, Interval, StrOptions, fit_context
from skbandit.utils._validation import (
    check_squares,
    explained_entries,
    refuse_lazy,
    warn_if_reordered,
    warn_of_wild_row,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class RegressionSetSelector(CostModelMixin, MetaEstimatorMixin, BaseEstimator):
    """Choose the m of n ads of lowest predicted cost (top-m).

    A regression predicts the costs g(x, a) of all ads. For each row, the m available ads with the
    lowest predictions are chosen [1]_.

    Parameters
    ----------
    estimator : regressor, classifier or "stack", default=None
        Predicts costs. None means `Ridge` with the penalty of least leave-one-out error. A
        multi-output regressor is fitted once to all ads if every cost was observed. Otherwise, and
        for any other regressor, one clone per ad is fitted to the rows in which its cost was
        observed. A classifier with `predict_proba` can be used for costs with few distinct values,
        such as 0 and -1; ads are then chosen by expected cost. "stack" is a weighted mean of
        several regressors, usually the most accurate and the slowest: see Notes.
    n_select : int, default=1
        Number of ads to choose, m.
    ad_effect : float, default=1.0
        With `ad_features`: how far an ad seen in training may deviate from the prediction by its
        features, as the variance of its own weights relative to those of its features. With 0,
        ads do not deviate.
    n_jobs : int, default=None
        Number of ads fitted in parallel, if each is fitted separately.
    verbose : int, default=0
        1 prints one line per fold of "stack", or logs it if INFO records of "skbandit" are shown.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads that are in `available` but not in y, or the other way round. "error"
        raises an error. "ignore" ignores unknown ads, and treats known ads without a column as not
        available.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    alpha_ : float
        Penalty of the costs, if learned by `Ridge`: chosen in `fit` if `estimator` is None.
    coef_ : ndarray of shape (n_ads, n_features)
        Coefficients of the costs, if learned by `Ridge`.
    intercept_ : ndarray of shape (n_ads,)
        Intercepts of the costs, if learned by `Ridge`.
    stack_weights_ : dict of str to float
        Weight of each member of the stack, if costs are learned by "stack".
    estimator_ : estimator
        The fitted estimator, if one serves all ads.
    estimators_ : list
        The fitted estimators in the order of `ads_`, if each ad has its own.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    skbandit.selection.PopularitySetSelector : The baseline that ignores X.

    Notes
    -----
    With expected costs f*, the regret of the chosen sets is at most
    sqrt(2 min(m, n_ads - m)) sqrt(n_ads) times the root of the mean squared error
    (g - f*)^2, averaged over ads [1]_. If positions have weights w_1 >= w_2 >= ..., the first k
    ads are a set of k, and count for w_k - w_{k+1}: the bound is the sum of theirs.

    Without an estimator, one penalty for all ads minimizes the leave-one-out error, or that of
    generalized cross-validation if there are many costs. Features should be in comparable units,
    because they share the penalty: see :class:`~sklearn.preprocessing.StandardScaler`.

    "stack" combines self-tuning ridge, extremely randomized trees, nearest neighbors and partial
    least squares, with non-negative weights that minimize the out-of-fold error. It standardizes
    dense features, imputes unobserved costs by ridge and the row's other ads, and takes about as
    long as 600 trees.

    `Ridge` with its default solver is fitted by normal equations that all ads share, with the same
    predictions. For sparse X and many ads, this is much faster than its own `fit`, which is called
    if it is faster, or if both rows and features number more than 5000.

    With `ad_features` z_a, one model predicts the costs of all ads, including unseen ones:

    - `Ridge` fits the bilinear costs ``[x, 1]' (W [1, z_a] + u_a)`` plus the mean cost, with
      the penalty alpha (||W||^2 + sum_a ||u_a||^2 / `ad_effect`). Standardize z, as its scale
      matters.
    - Any other estimator is fitted to a long table of observed pairs, with the features of x
      followed by those of the ad (a DataFrame if both are). The shrunken mean residual of each
      ad is added. `n_jobs` has no effect.

    References
    ----------
    .. [1] P. Mineiro, "Choosing m Advertisements from n Candidates", 2010.

    Examples
    --------
    >>> from skbandit import RegressionSetSelector
    >>> from skbandit.datasets import make_set_selection
    >>> from skbandit.selection import PopularitySetSelector
    >>> X, y, _ = make_set_selection(2000, n_ads=30, random_state=0)
    >>> X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
    >>> selector = RegressionSetSelector(n_select=3).fit(X_train, y_train)
    >>> selector.predict(X_test[:2])
    array([[...],
           [...]])
    >>> popularity = PopularitySetSelector(n_select=3).fit(X_train, y_train)
    >>> [round(one.score(X_test, y_test), 2) for one in (selector, popularity)]  # clicks
    [1.83, 1.28]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"ad_features": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), StrOptions({"stack"}), None],
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "ad_effect": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "unknown_ads": [StrOptions({"error", "ignore"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_select: int = 1,
        *,
        ad_effect: float = 1.0,
        n_jobs: int | None = None,
        unknown_ads: Literal["error", "ignore"] = "error",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_select = n_select
        self.ad_effect = ad_effect
        self.n_jobs = n_jobs
        self.unknown_ads = unknown_ads
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        numeric = self.estimator is None or isinstance(self.estimator, str)
        inner = get_tags(Ridge() if numeric else self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        ad_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> RegressionSetSelector:
        """Learn the costs of all ads.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, lower is better (pass minus the values of ads); nan is not observed. The columns
            of a DataFrame name the ads. Implicit zeros of a sparse matrix are costs of 0.
        available : array-like, table or collection of labels, default=None
            Which ads could be chosen: a boolean table, dense or sparse, with columns in the order
            of y or, for a DataFrame, matched by label; a collection of labels per row; or one for
            all rows. None means all. Costs of the other ads count as not observed.
        ad_features : DataFrame with a row for each ad, or array, default=None
            Features of the ads. The index of a DataFrame holds the labels of y, and possibly of
            other ads; the rows of an array are the ads 0, 1, ... Wrap the table in a tuple to
            keep cross-validation from slicing it when it has as many rows as X.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights. Whole numbers are numbers of equal rows, but for a common divisor. Other
            weights have any unit: their mean counts as one row.

        Returns
        -------
        self : RegressionSetSelector
        """
        with atomic_fit(self) as draft:
            draft._fit(X, y, available, ad_features, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, available: Any, ad_features: Any, sample_weight: Any) -> None:
        refuse_lazy({"X": X, "y": y, "available": available}, PREDICTS)
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        stacked = isinstance(self.estimator, str)
        ridge = None if stacked else ridge_of(self.estimator)
        self._needs_numbers = stacked or ridge is not None
        if stacked and ad_features is not None:
            raise ValueError(
                'estimator="stack" knows ads by label only: pass estimator=None, or a regressor, '
                "with ad_features."
            )
        X, costs, _, weight = self._read_training(X, y, available, sample_weight)
        self._shared: Any = None
        self._described: Any = None
        if ad_features is not None:
            self._described = read_ad_features(ad_features).of_ads(costs.ads)
            self._fit_shared(ridge, X, costs, weight)
            return
        check_every_ad_observed(costs)
        if stacked:
            self._model: Any = fit_stack(X, costs, weight, self.n_jobs, bool(self.verbose))
            self.stack_weights_ = self._model.weights
            return
        if self.estimator is None:
            warn_of_better_trees(X, costs, weight)
        with explained_entries(X, type(self.estimator).__name__):
            self._model = learn_costs(self.estimator, X, costs, weight, self.n_jobs)
        fitted = self._model.estimators if isinstance(self._model, CostModels) else []
        if len(fitted) == len(self.ads_):
            self.estimators_ = fitted
        elif fitted:
            self.estimator_ = fitted[0]

    def _fit_shared(
        self, ridge: Ridge | None, X: Any, costs: CostMatrix, weight: np.ndarray | None
    ) -> None:
        """Fit one model to rows and ad features."""
        features = self._described
        if ridge is None:
            self._shared = fit_pairs(self.estimator, X, costs, features, weight, self.ad_effect)
            self.estimator_ = self._shared.estimator
        elif min(X.shape) <= MAX_GRAM:
            equations, Z = NormalEquations.of(X, weight), features.numbers()
            alpha = ridge.alpha
            if self.estimator is None:
                alpha = choose_penalty(X, costs, weight, equations)
                # ads then have on average the prior variance of weights that alpha gives ad by ad
                alpha *= 1.0 + float(Z.var(axis=0).sum()) + self.ad_effect
            self._shared = fit_bilinear(equations, costs, Z, alpha, self.ad_effect)
        else:
            raise ValueError(
                f"The bilinear model takes at most {MAX_GRAM} rows or {MAX_GRAM} features, but X "
                f"has shape {X.shape}: reduce its features, for example by TruncatedSVD."
            )
        self._model = self._shared.of_ads(features, np.arange(len(self.ads_)))

    def _read_X(self, X: Any, reset: bool) -> Any:
        """Check rows, as numbers if `Ridge` is replaced by normal equations."""
        if self._needs_numbers:
            # finite numbers as in fit; other checks take longer than to choose for a single row
            as_in_fit = (
                not reset
                and type(X) is np.ndarray
                and X.dtype in (np.float64, np.float32)
                and X.shape[1:] == (self.n_features_in_,)
                and len(X) > 0
                and not hasattr(self, "feature_names_in_")
                and bool(np.isfinite(X).all())
            )
            if as_in_fit:
                return X
            X = self._read_numbers(X, reset)
            if reset:
                check_squares(X)
                warn_of_wild_row(X, getattr(self, "feature_names_in_", None))
            return X
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            check_array(X)  # raises for a single row; 1-D texts have no features
        return super()._read_X(X, reset)

    @property
    def alpha_(self) -> float:
        """Penalty of linear costs."""
        return self._linear("alpha_").alpha

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of linear costs."""
        return self._linear("coef_").coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of linear costs."""
        return self._linear("intercept_").intercept

    def _linear(self, name: str) -> Linear:
        """Return the linear model of costs; raise AttributeError for `name` if there is none."""
        model = vars(self).get("_model")
        if not isinstance(model, Linear):
            raise AttributeError(
                f"{name} exists only after fit, and only if the costs are linear in X."
            )
        return model

    def _describe(self, features: AdFeatures) -> None:
        positions = self._described.positions_of(features.ads)
        self._model = self._shared.of_ads(features, positions)


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
        refuse_lazy({"X": X, "y": y, "available": available}, PREDICTS)
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        with atomic_fit(self) as draft:
            _, costs, _, weight = draft._read_training(X, y, available, sample_weight)
            check_every_ad_observed(costs)
            weight = np.ones(costs.shape[0]) if weight is None else weight
            observed = map(costs.of_ad, range(costs.shape[1]))
            means = [np.average(paid, weights=weight[rows]) for rows, paid in observed]
            draft.mean_costs_ = np.array(means)
            draft._model = CostModels([constant(draft.mean_costs_)])
        return self
