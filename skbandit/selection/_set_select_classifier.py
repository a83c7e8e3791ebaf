"""SetSelectClassifier: sets chosen in rounds of cost-sensitive classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_regressor
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from skbandit.selection._ad_features import AdFeatures, read_ad_features
from skbandit.selection._costs import check_every_ad_observed, to_dense
from skbandit.selection._m_lowest import m_lowest
from skbandit.selection._mixin import PREDICTS, SetSelectorMixin, labeled_costs
from skbandit.selection._rounds import (
    MASKED,
    RoundSettings,
    draw_lots,
    last_to_first,
    replace_duplicates,
    run_rounds,
    settle_rounds,
    train_rounds,
)
from skbandit.selection.reductions._pairwise import RuleOfAds, learn_pairwise
from skbandit.selection.reductions._registry import (
    REDUCTIONS,
    WITH_COSTS,
    bind_learner,
    choose_reduction,
    default_learner,
    shared_penalty,
)
from skbandit.selection.reductions._rule import CostSensitiveRule, Examples
from skbandit.utils._fitting import atomic_fit, fit_task, report_progress
from skbandit.utils._folds import folds_of_rows
from skbandit.utils._sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    available_if,
    fit_context,
)
from skbandit.utils._validation import refuse_lazy, warn_if_reordered, warn_of_wild_row

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def _has_costs(selector: SetSelectClassifier) -> bool:
    """Return whether `selector` predicts costs; raise AttributeError otherwise."""
    if selector._reduction in WITH_COSTS and selector.method == "masked":
        return True
    raise AttributeError(
        f"{type(selector).__name__} predicts costs only if its reduction does, in "
        f"masked rounds, unlike with these parameters: {selector!r}."
    )


class SetSelectClassifier(
    SetSelectorMixin, MetaEstimatorMixin, CallbackSupportMixin, BaseEstimator
):
    """Choose the best m of n ads by classification, one ad per round.

    A reduction of set selection to classification [1]_: costs are compared, not predicted.

    Parameters
    ----------
    estimator : classifier or regressor, default=None
        The learner used by `reduction`; its `fit` should take `sample_weight`. None means
        `LogisticRegression` with one penalty chosen for all fits (see Notes) or, for the reduction
        to regression, `Ridge` with the penalty of least leave-one-out error.
    n_select : int, default=1
        Number of ads to choose, m.
    reduction : {"auto", "filter_tree", "weighted_all_pairs", "regression", "one_vs_rest"}, \
default="auto"
        Method by which a round finds the cheapest ad. "auto" is explained in the Notes.
    method : {"masked", "published"}, default="masked"
        "masked": each round is trained and evaluated on the ads not chosen by earlier rounds.
        "published": on all ads, with a cost of 0 for ads already chosen, as in [1]_.
    cross_fit : int or None, default=5
        Number of folds. The ads that earlier rounds choose for a training row are predicted
        without its fold. None means no folds. Published rounds are never cross-fitted, because
        that would make more duplicates.
    random_state : int, RandomState or None, default=None
        Orders the ads in the filter tree, assigns rows to folds and replaces duplicates.
    n_jobs : int, default=None
        Number of folds fitted in parallel or, without folds, of matches or ads within a round.
    unknown_ads : {"error", "ignore"}, default="error"
        Treatment of ads that are in `available` but not in y, or the other way round. "error"
        raises an error. "ignore" ignores unknown ads, and treats known ads without a column as not
        available.
    verbose : int, default=0
        If positive, print a line after each round. With scikit-learn 1.9 or newer,
        ``set_callbacks(sklearn.callback.ProgressBar())`` shows a progress bar.

    Attributes
    ----------
    ads_ : ndarray of shape (n_ads,)
        Labels of the ads: column names of y, otherwise 0, 1, ...
    reduction_ : str
        The reduction, chosen by the rule in the Notes if `reduction` is "auto".
    n_rounds_ : int
        Number of rounds trained.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Predicts costs; chooses among ads not seen in training.
    skbandit.selection.PopularitySetSelector : The baseline that ignores X.
    skbandit.selection.logged_costs : Costs estimated from logs of the ads shown.

    Notes
    -----
    If q is the mean regret of the rounds, each a cost-sensitive classification problem, the regret
    of the sets is at most m q. In masked rounds this always holds, because the cheapest remaining
    ad costs no more than the k-th cheapest of all. Published rounds require nonpositive expected
    costs, so the highest cost of a row is subtracted if it is positive. Ads chosen twice are
    replaced by random others, which depend on the values of the row, not on its batch.

    Filter trees see which ads are excluded (already chosen or not available), as n_ads additional
    features. If m > n_ads / 2 and all ads were available in `fit`, their rounds choose the
    n_ads - m ads to leave out, worst first, and the bound is (n_ads - m) q.

    If positions have weights w_1 >= w_2 >= ..., the bound is the sum of w_k q_k, q_k the mean
    regret of round k: rounds fill the best positions first, and training is the same for all
    weights.

    In masked rounds, all pairs, one versus rest and regression are trained once, on all rows, and
    each round selects the best remaining ad. With regression, this is `RegressionSetSelector`. The
    filter tree is trained in each round, because its matches depend on the remaining ads.

    ``reduction="auto"`` is one versus rest if no estimator is passed: with the default penalty it
    was the best on synthetic problems, and the fastest. For another classifier it is all pairs up
    to 20 ads, which need no probabilities. For more ads it is one versus rest or, without
    `predict_proba`, the filter tree. If every round needs a separate fit, it is the filter tree.

    The default penalty is that of ridge regression of the costs, chosen by leave-one-out, in terms
    of the logistic loss.

    With `ad_features`, one classifier compares all ads by the differences of their features, so
    that ads unseen in training can be chosen. A linear classifier uses these differences and their
    products with X, so that each ad has a score. Any other classifier uses X and the differences,
    and the ad that beats most others is chosen. Standardize the features of ads.

    Published rounds choose many ads twice and are often worse than the most popular ads. Do not
    use them with `logged_costs`, whose estimates must not be shifted.

    Compare with `PopularitySetSelector`, a strong baseline for m = 1 and for m close to n_ads.

    References
    ----------
    .. [1] P. Mineiro, "Choosing m Advertisements from n Candidates", 2010.

    Examples
    --------
    >>> from skbandit import SetSelectClassifier
    >>> from skbandit.datasets import make_set_selection
    >>> from skbandit.selection import PopularitySetSelector
    >>> X, y, _ = make_set_selection(2000, n_ads=10, random_state=0)
    >>> X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
    >>> selector = SetSelectClassifier(n_select=3, random_state=0).fit(X_train, y_train)
    >>> selector.predict(X_test[:2]).shape
    (2, 3)
    >>> popularity = PopularitySetSelector(n_select=3).fit(X_train, y_train)
    >>> [round(one.score(X_test, y_test), 2) for one in (selector, popularity)]  # clicks
    [1.04, 0.81]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "reduction": [StrOptions({"auto", *REDUCTIONS})],
        "method": [StrOptions({"masked", "published"})],
        "cross_fit": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "unknown_ads": [StrOptions({"error", "ignore"})],
        "verbose": ["verbose"],
    }

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"ad_features": True}

    _settings: RoundSettings
    _rules: tuple[CostSensitiveRule, ...]
    _pairwise: RuleOfAds | None
    _described: AdFeatures | None

    def __init__(
        self,
        estimator: Any = None,
        n_select: int = 1,
        *,
        reduction: str = "auto",
        method: str = "masked",
        cross_fit: int | None = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        unknown_ads: Literal["error", "ignore"] = "error",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_select = n_select
        self.reduction = reduction
        self.method = method
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.unknown_ads = unknown_ads
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        ad_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> SetSelectClassifier:
        """Train the rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows of numbers.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, lower is better (pass minus the values of ads); nan is not observed, and is
            never compared. The columns of a DataFrame name the ads. Implicit zeros of a sparse
            matrix are costs of 0.
        available : array-like, table or collection of labels, default=None
            Which ads could be chosen: a boolean table, dense or sparse, with columns in the order
            of y or, for a DataFrame, matched by label; a collection of labels per row; or one for
            all rows. None means all.
        ad_features : DataFrame with a row for each ad, or array, default=None
            Features of the ads. The index of a DataFrame holds the labels of y, and possibly of
            other ads; the rows of an array are the ads 0, 1, ... Wrap the table in a tuple to
            keep cross-validation from slicing it when it has as many rows as X.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights. Whole numbers are numbers of equal rows, but for a common divisor. Other
            weights have any unit: their mean counts as one row.

        Returns
        -------
        self : SetSelectClassifier

        Raises
        ------
        ValueError
            If there are fewer than n_select ads, an ad was never observed, the learner is of the
            wrong kind, or it takes no sample weights although rows differ in weight.
        """
        with fit_task(self, X, y, sample_weight) as step_done, atomic_fit(self) as draft:
            refuse_lazy({"X": X, "y": y, "available": available}, PREDICTS)
            warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
            X, costs, allowed, weight = draft._read_training(X, y, available, sample_weight)
            check_every_ad_observed(costs)
            examples = Examples(
                X,
                costs.dense(),
                np.ones(costs.shape, dtype=bool) if allowed is None else to_dense(allowed),
                np.ones(costs.shape[0]) if weight is None else weight,
            )
            draft.reduction_ = draft.reduction
            draft._pairwise, draft._described = None, None
            if ad_features is not None:
                if draft.reduction not in ("auto", "weighted_all_pairs") or draft.method != MASKED:
                    raise ValueError(
                        'ad_features are for masked rounds over all pairs: use reduction="auto" '
                        f'or "weighted_all_pairs" and method="masked" with them, not {draft!r}.'
                    )
                if draft.estimator is not None and is_regressor(draft.estimator):
                    raise ValueError(
                        f"{type(draft.estimator).__name__} is a regressor, but ads are compared by "
                        "a classifier: pass one, or use RegressionSetSelector."
                    )
                draft._described = read_ad_features(ad_features).of_ads(draft.ads_)
                draft.reduction_ = "weighted_all_pairs"
            elif draft.reduction == "auto":
                draft.reduction_ = choose_reduction(draft.estimator, len(draft.ads_), draft.method)
            draft._settings = settle_rounds(
                len(draft.ads_),
                draft.n_select,
                all_available=available is None,
                reduction=draft.reduction_,
                method=draft.method,
            )
            draft.n_rounds_ = draft._settings.n_rounds
            random = check_random_state(draft.random_state)
            folds = None
            # published rounds would choose even more duplicates
            if draft.cross_fit is not None and draft.method == MASKED and examples.n > 1:
                folds = folds_of_rows(X, examples.costs, min(draft.cross_fit, examples.n), random)

            def report(k: int) -> None:
                if draft.verbose:
                    report_progress(f"[SetSelectClassifier] round {k + 1} of {draft.n_rounds_}")
                step_done("round")

            draft._rules = draft._learn(examples, folds, random, report)
            draft._ad_keys = random.randint(2**63, size=len(draft.ads_), dtype=np.uint64)
        return self

    def _learn(
        self,
        examples: Examples,
        folds: np.ndarray | None,
        random: np.random.RandomState,
        report: Callable[[int], None],
    ) -> tuple[CostSensitiveRule, ...]:
        """Learn the rule of each round."""
        if self._settings.trained_once:
            if self._described is None:
                name, n_jobs = self.reduction_, self.n_jobs
                rule = bind_learner(name, self.estimator, examples, random, n_jobs)(examples)
            else:
                alpha = shared_penalty(examples) if self.estimator is None else np.nan
                Z = self._described.numbers()
                self._pairwise = learn_pairwise(examples, Z, self.estimator, alpha, random)
                rule = self._pairwise(Z)
            for k in range(self.n_rounds_):
                report(k)
            return (rule,) * self.n_rounds_
        inside, outside = (self.n_jobs, None) if folds is None else (None, self.n_jobs)
        learn = bind_learner(self.reduction_, self.estimator, examples, random, inside)
        n_choices = np.full(examples.n, self.n_rounds_)
        if self._settings.leaves_out:
            # at least one round per row, for the order of the ads that are kept
            n_choices = np.maximum(1, examples.allowed.sum(axis=1) - self.n_select)
            examples = replace(examples, costs=-examples.costs)
        return train_rounds(examples, n_choices, learn, self._settings, folds, outside, report)

    def _describe(self, features: AdFeatures) -> None:
        assert self._pairwise is not None
        self._rules = (self._pairwise(features.numbers()),)

    @property
    def _reduction(self) -> str:
        if self.reduction != "auto":
            return self.reduction
        if self.estimator is None and vars(self).get("_described") is None:  # whatever n_ads
            return choose_reduction(None, 0, self.method)
        return vars(self).get("reduction_", "auto")

    @property
    def _largest_set(self) -> int:
        return len(self.ads_) if self._settings.trained_once else self._settings.n_select

    def _rank(self, X: Any, allowed: np.ndarray | None, n_select: int) -> np.ndarray:
        if self._settings.ranked_by_cost:  # the rounds would take the lowest costs in turn
            return m_lowest(self._rules[0].respond(X), n_select, allowed)
        available = np.ones((X.shape[0], len(self.ads_)), bool) if allowed is None else allowed
        if self._settings.leaves_out:  # rank all ads, worst first
            return last_to_first(self._picked(X, available, len(self.ads_)))[:, :n_select]
        return self._picked(X, available, n_select)

    def _picked(self, X: Any, available: np.ndarray, n_picks: int) -> np.ndarray:
        """Return the first `n_picks` ads in the order in which rounds pick them.

        Beyond the last round, its classifier is applied again, to pick the next best.
        """
        rules = self._rules
        if self._settings.method == MASKED:
            rules = (rules + rules[-1:] * (n_picks - len(rules)))[:n_picks]
            return run_rounds(rules, X, available, self._settings)
        picks = run_rounds(rules, X, available, self._settings)
        return replace_duplicates(picks, available, n_picks, draw_lots(X, self._ad_keys))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def _learner(self) -> Any:
        """Return the learner as passed, or the default of the reduction."""
        return default_learner(self._reduction) if self.estimator is None else self.estimator

    def _read_X(self, X: Any, reset: bool) -> Any:
        """Check rows of numbers."""
        finite = not get_tags(self._learner()).input_tags.allow_nan
        X = self._read_numbers(X, reset, finite)
        if reset and self.estimator is None:
            warn_of_wild_row(X, getattr(self, "feature_names_in_", None))
        return X

    @available_if(_has_costs)
    def predict_costs(self, X: Any) -> np.ndarray | pd.DataFrame:
        """Predict the cost of each ad.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        DataFrame or ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`: an array if these are 0, 1, ..., a DataFrame if ads have
            other labels.
        """
        check_is_fitted(self)
        costs = self._rules[0].respond(self._read_X(X, reset=False))
        return labeled_costs(costs, self.ads_, X, self.n_select)

    @available_if(_has_costs)
    def decision_function(self, X: Any) -> np.ndarray:
        """Predict the negative costs: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`.
        """
        return -np.asarray(self.predict_costs(X))
