"""A policy learned from another policy's log, by any classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import ClassifierTags, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit import logs
from skbandit.utils._examples import logistic_of_gains, weighted_examples
from skbandit.utils._fitted_rows import SHARE_TOLD, events_of_log, fitted_rows, share_fitted
from skbandit.utils._fitting import atomic_fit, standardized
from skbandit.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    available_if,
    count_rows,
    fit_context,
    fit_weighted,
    rows_of,
)
from skbandit.utils._trials import labels_of_groups
from skbandit.utils._validation import (
    as_contexts,
    check_not_masked,
    check_row_weights,
    explained_entries,
    no_score,
    refuse_lazy,
    warn,
    warn_if_reordered,
    without_unit,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

# Default classifier; cloned before use.
DEFAULT_CLASSIFIER = LogisticRegression(max_iter=1000)


# Cost-sensitive classification by weighted examples, for any classifier that takes weights.
#
# A row x with rewards R_a for all arms becomes one example (x, a) per arm, of weight R_a - min R.
# Then P(a|x) of a calibrated classifier is proportional to the expected weight, E[R_a|x] minus a
# term that is the same for all arms, so that its most probable arm is the best one. Rewards may be
# noisy estimates of any sign; those by inverse propensities have one example per event of positive
# reward.
#
# Where arm a is available in a share f_a of the rows only, and whatever x is, its weights are
# divided by f_a, as P(a|x) would be proportional to f_a, too. Where all arms have estimates, all of
# them count, as the smallest reward of a pool depends on the pool.


def gains_of_rewards(
    rewards: np.ndarray, allowed: np.ndarray, row_weight: np.ndarray
) -> np.ndarray:
    """Turn estimated rewards into the weights of examples.

    Parameters
    ----------
    rewards : ndarray of shape (n_rows, n_arms)
        Estimated rewards R; those of arms that are not allowed are ignored.
    allowed : ndarray of bool, shape (n_rows, n_arms)
        Available arms, at least one per row.
    row_weight : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
        What arms gain over the worst one. The sum is that of the weights of the rows, so that the
        strength of a classifier's penalty does not depend on the unit of the rewards.
    """
    excess = np.where(allowed, rewards, np.inf)
    excess -= excess.min(axis=1, keepdims=True)
    excess[~allowed] = 0.0
    total = row_weight.sum()
    share = row_weight @ allowed / total if total > 0 else np.ones(allowed.shape[1])
    excess *= row_weight[:, None]
    excess /= np.where(share > 0, share, 1.0)
    sums = excess.sum()
    return excess * (total / sums) if sums > 0 else excess


class RewardsByClassifier(RegressorMixin, BaseEstimator):
    """Predict rewards by any classifier, and so as flexibly as it chooses arms.

    A reward that is a share s of the way from the smallest to the largest counts as an example of
    1 with weight s, and as one of 0 with weight 1 - s. The probability of 1 is then the mean share.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.lowest_, self.range_ = y.min(), np.ptp(y)
        self.classifier_ = None
        if self.range_ > 0:
            share = (y - self.lowest_) / self.range_
            row, label = np.nonzero(weights := weight[:, None] * np.c_[1 - share, share])
            fitted, of_row = clone(self.classifier), weights[row, label]
            self.classifier_ = fit_weighted(fitted, rows_of(X, row), label, of_row)
        return self

    def predict(self, X: Any) -> np.ndarray:
        if self.classifier_ is None:
            return np.full(count_rows(X), self.lowest_)
        return self.lowest_ + self.range_ * logs.expected_reward(self.classifier_, X)


def _has_probabilities(policy: Any) -> bool:
    """Check for `predict_proba`; its absence raises the classifier's own error."""
    return bool((getattr(policy, "estimator_", None) or policy._classifier()).predict_proba)


class OffPolicyClassifier(MetaEstimatorMixin, BaseEstimator):
    """Policy learned from logged actions, rewards and propensities by any classifier.

    A log has the reward of one action per context. The policy estimates the rewards of all arms,
    and trains the classifier on examples weighted by them. It chooses the most probable class and
    does not explore.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier whose `fit` takes `sample_weight`; None uses logistic regression
        of standardized features. Put any other preprocessing of contexts into a Pipeline that ends
        in this policy.
    method : {"dr", "ips", "snips"}, default="dr"
        Estimate of the rewards of all arms, from the logged reward r, its propensity p, and
        rewards q predicted by `reward_model`:

        - "dr", doubly robust: q, plus (r - q) w for the logged arm, where w is 1/p, shrunk by
          `shrinkage`;
        - "ips", inverse propensity: r/p for the logged arm, 0 for others;
        - "snips", self-normalized: the same, with the weights 1/p of each arm divided by their mean
          over the events in which it was available.
    reward_model : regressor or classifier with predict_proba, default=None
        For "dr": fitted per arm, and cross-fitted. None is the classifier itself if all rewards
        are 0 or 1; for other rewards, the mixture of ``Ridge()`` and the classifier, which predicts
        rewards as shares of their range, with the smallest cross-fitted squared error. It is
        ``Ridge()`` if the classifier has no predict_proba.
    shrinkage : float or "auto", default="auto"
        For "dr": λ of the weights λ w/(w² + λ) with w = 1/p (optimistic shrinkage); infinity is the
        unbiased 1/p, and 0 trusts the predictions. "auto" is √n for n events, which halves weights
        of n to the power of 1/4: where p is .01, and so 1/p 100, the predictions count more than
        their corrections until n is 10**8. Increase it if `reward_model` cannot be right.
    cv : int, cross-validation generator or iterable of splits, default=5
        For "dr": each event is predicted by reward models fitted without it.
    columns : dict, default=None
        Names of a log's columns that differ, as in
        ``{"action": "arm_id", "propensity": "pscore"}``, for `fit` and evaluation.
    random_state : int, RandomState instance or None, default=None
        For "dr": shuffles events into folds if `cv` is an integer.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels of the arms, sorted if they can be.
    classes_ : ndarray of shape (n_arms,)
        The same: the columns of `predict_proba`.
    estimator_ : classifier or None
        The fitted classifier, whose classes are positions in `arms_`; None if only one arm has
        examples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.evaluation.OffPolicyScorer : Tunes it in `GridSearchCV`.
    skbandit.evaluation.off_policy_value : Estimates its mean reward on other events.
    GLMUCBPolicy : Learns from events as they arrive, and explores.

    Notes
    -----
    A row with estimated rewards R becomes one example per arm a, with weight R_a minus the row's
    smallest. A calibrated classifier's most probable arm is then the best one on average. Rewards
    may have any unit; for "ips" and "snips" the worst reward should be 0, as a reward of 0 is no
    evidence about its arm.

    For an arm that the log never chose, "dr" predicts the mean reward of all arms; other methods
    estimate 0.

    If the available arms differ between events, "dr" uses its predictions for arms that were not
    available, too. "ips" and "snips" divide an arm's weights by the share of the events in which
    it was available: this is right only if availability does not depend on the context, and `fit`
    warns if it visibly does.

    References
    ----------
    Dudík, Langford and Li (2011), Doubly robust policy evaluation and learning.

    Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual learning.

    Su, Dimakopoulou, Krishnamurthy and Dudík (2020), Doubly robust off-policy evaluation with
    shrinkage.

    Examples
    --------
    Learn from the first half of a log whose actions were chosen at random, and evaluate the policy
    on the second:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from skbandit.bandit import OffPolicyClassifier
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_value
    >>> log = make_bandit_log(10_000, n_arms=4, base_rate=0.2, random_state=0)
    >>> policy = OffPolicyClassifier(LogisticRegression(), method="dr", random_state=0)
    >>> policy = policy.fit(log.X[:5000], log.y[:5000])
    >>> off_policy_value(policy, log.X[5000:], log.y[5000:])
    <snips: mean reward 0.4175 ± 0.014, 2.09 x the log's; 5,000 events count as 1,255>
    >>> policy.predict(log.X[:3], available=[(0, 1), (2, 3), (3,)]).tolist()
    [0, 2, 3]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "propensity": True,
        "available": True,
        "sample_weight": True,
        "groups": True,
    }
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}
    score = no_score("scoring=OffPolicyScorer(), or ReplayScorer(start='fitted', learn=False)")

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "method": [StrOptions({"dr", "ips", "snips"})],
        "reward_model": [HasMethods(["fit", "predict"]), None],
        "shrinkage": [Interval(Real, 0, np.inf, closed="both"), StrOptions({"auto"})],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), "array-like"],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        method: str = "dr",
        *,
        reward_model: Any = None,
        shrinkage: float | str = "auto",
        cv: Any = 5,
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.reward_model = reward_model
        self.shrinkage = shrinkage
        self.cv = cv
        self.columns = columns
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._classifier()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()  # of what has predict_proba
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from a log.

        An error leaves the policy unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
            Contexts.
        y : DataFrame, dict or structured array with columns action and reward, or array of actions
            The log. Columns propensity and available are read if present.
        reward, propensity : array-like of shape (n_events,), default=None
            Rewards, and probabilities with which the actions were chosen, if not columns of `y`.
            Without propensities, actions are taken as chosen uniformly among the available arms.
            Without rewards each action counts as reward 1, with a warning, and `method` as "ips".
        available : array-like, default=None
            Arms available to each event, if not a column of `y`: tuples of labels, or a boolean
            table with one column per arm, an array's in the order of their labels. None is all
            arms of the log.
        sample_weight : array-like of shape (n_events,), default=None
            Whole numbers are numbers of equal events, but for a common divisor. Other weights have
            any unit: their mean counts as one event.
        groups : array-like of shape (n_events,), default=None
            Events of one value, such as a person, are dependent and share a fold of the reward
            models. None makes each event independent.

        Returns
        -------
        self
            Fitted policy.
        """
        tables = {"X": X, "y": y, "reward": reward, "sample_weight": sample_weight}
        refuse_lazy(
            {**tables, "propensity": propensity, "available": available},
            "; off_policy_blocks then evaluates the classifier on all rows",
        )
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = logs.align_rows(available, X)
        with atomic_fit(self) as draft:
            (X,) = indexable(X)
            contexts, X = X, draft._check_features(X, reset=True)
            labels_of_rows = labels_of_groups(groups, count_rows(X), contexts, y)
            group = None if labels_of_rows is None else pd.factorize(labels_of_rows)[0]
            labels_only = reward is None and logs.column_names(y) is None
            if labels_only:
                y, reward = logs.count_actions(y)
            log = logs.read_log(
                y,
                count_rows(X),
                reward=reward,
                propensity=propensity,
                available=available,
                columns=None if logs.column_names(y) is None else draft.columns,
            ).with_sorted_arms()
            draft._fitted_rows = fitted_rows(contexts, *events_of_log(log))
            if not labels_only:
                logs.warn_of_shared_columns(X, y, draft.columns)
                logs.check_propensities(log, X)
            weight = without_unit(check_row_weights(sample_weight, len(log), "sample_weight"))
            allowed = log.available_mask(len(log.arms))
            draft._has_pools = not allowed.all()
            # equal rewards would all be predicted
            method = "ips" if labels_only else draft.method
            depends = None if method == "dr" else logs.find_dependence_of_pools(log, X)
            if depends is not None:
                warn(
                    f"available depends on the context, with {depends}: method={method!r} compares "
                    "arms as if it did not, and may choose the wrong one. Use method='dr'.",
                    UserWarning,
                )
            slates = logs.LoggedSlates.of_log(log)
            if method == "ips":
                rewards = -logs.ips_costs(slates)
            elif method == "snips":
                rewards = -logs.snips_costs(slates, weight)
            else:
                q = draft._predicted(X, log, weight, group, sample_weight is not None)
                # q knows the rewards of all arms, in or out of the pool
                allowed = np.ones_like(allowed)
                automatic = draft.shrinkage == "auto"
                shrinkage = np.sqrt(weight.sum()) if automatic else float(draft.shrinkage)
                rewards = -logs.dr_costs(slates, -q, shrinkage)
            if method != "dr" and draft.estimator is None:
                logs.warn_of_wild_context(X)
            draft._labels = log.arms
            draft._learn(X, rewards, allowed, weight)
        return self

    def _has_learned(self, X: Any, log: Any) -> bool:
        """Tell whether it was fitted to rows of this log: see `skbandit.evaluation`."""
        fitted = getattr(self, "_fitted_rows", None)
        return share_fitted(fitted, X, *events_of_log(log)) >= SHARE_TOLD

    def _learn(self, X: Any, rewards: np.ndarray, allowed: np.ndarray, weight: np.ndarray) -> None:
        """Fit the classifier to weighted examples."""
        classifier = self._classifier(X)
        gain = gains_of_rewards(rewards, allowed, weight)
        arms = np.flatnonzero(gain.any(axis=0))
        if len(arms) == 0 and len(self._labels) > 1:
            cure = "." if self.method == "dr" else ', or 0. Subtract the smallest one, or use "dr".'
            raise ValueError(
                f'method="{self.method}" estimates the same reward for all arms, so there is '
                f"nothing to learn: all rewards are equal{cure}"
            )
        self._only = int(arms[0]) if len(arms) else 0
        self.estimator_ = None
        if len(arms) > 1:
            numbers = np.arange(len(self._labels))
            fitted = logistic_of_gains(classifier, X, gain, numbers, scaled_by_weight=True)
            if fitted is None:
                row, arm, weight = weighted_examples(gain)
                fitted = fit_weighted(clone(classifier), rows_of(X, row), arm, weight)
            self.estimator_ = fitted

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms, sorted if they can be."""
        check_is_fitted(self)
        return self._labels.copy()

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the arms: the columns of `predict_proba`."""
        return self.arms_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_labels")

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the most probable of the available arms.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms: the labels of each row, as in ``[("a", "b"), ("b",)]``; or those of all
            rows, as in ``["a", "b"]``; or a boolean table with one column per arm. None makes all
            of `arms_` available, with a warning if some row of `fit` lacked an arm.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels. An arm unseen in `fit` is chosen only where no other is available.
        """
        check_is_fitted(self)
        logs.warn_without_pools(self, available)
        inner = self.estimator_
        codes, allowed = self._read_available(logs.align_rows(available, X), count_rows(X))
        if available is None and inner is not None and not _scores_classes(inner):
            with explained_entries(X, type(self).__name__):
                return self._labels[inner.predict(self._check_features(X, reset=False))]
        scores = self._scores(X)
        n_scored = scores.shape[1]
        best = np.where(allowed[:, :n_scored], scores, -np.inf).argmax(axis=1)
        without = ~allowed[np.arange(len(best)), best]  # no available arm has a score above -inf
        best[without] = allowed[without].argmax(axis=1)
        return logs.label_array(codes)[best]

    def select(self, X: Any, *, available: Any = None, return_proba: bool = False) -> Any:
        """Choose as `predict`: the policy does not explore.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `predict`.
        return_proba : bool, default=False
            Whether to return the probabilities of the choices, too: all are 1.

        Returns
        -------
        ndarray of shape (n_samples,), or a pair of them
            Arm labels; with `return_proba`, also their probabilities.
        """
        chosen = self.predict(X, available=available)
        return (chosen, np.ones(len(chosen))) if return_proba else chosen

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Return the classifier's probabilities that each arm is the best.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `predict`; others have probability 0.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; rows sum to 1, and are 0 where no arm of `arms_` is available. They
            are shares of weighted examples, not calibrated; ``softmax(log(p) / t)`` makes a
            policy that explores.
        """
        check_is_fitted(self)
        logs.warn_without_pools(self, available)
        _, allowed = self._read_available(logs.align_rows(available, X), count_rows(X))
        scores = self._scores(X)
        allowed = allowed[:, : scores.shape[1]]
        p = np.where(allowed, scores, 0.0)
        total = p.sum(axis=1, keepdims=True)
        n_allowed = allowed.sum(axis=1, keepdims=True)
        uniform = allowed / np.maximum(n_allowed, 1)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), uniform)

    def _classifier(self, X: Any = None) -> Any:
        """Return the classifier to clone; without X, one of the same kind."""
        if self.estimator is not None:
            return self.estimator
        return DEFAULT_CLASSIFIER if X is None else standardized(DEFAULT_CLASSIFIER, X)

    def _predicted(
        self, X: Any, log: logs.Log, weight: np.ndarray, group: np.ndarray | None, weighted: bool
    ) -> np.ndarray:
        """Predicted rewards of all arms, by models that have not seen the event."""
        reward, action = log.reward, log.action.astype(np.intp)
        classifier = self._classifier(X)
        models = [None, RewardsByClassifier(classifier)]
        if self.reward_model is not None:
            models = [self.reward_model]
        elif not hasattr(classifier, "predict_proba"):
            models = [None]
        elif np.isin(reward[weight > 0], (0.0, 1.0)).all():
            models = [classifier]
        options = {"cv": self.cv, "random_state": self.random_state, "group": group}
        options["sample_weight"] = weight if weighted else None
        candidates = [
            logs.cross_fitted_rewards(model, X, action, reward, len(log.arms), **options)
            for model in models
        ]
        q, away = candidates[0], candidates[-1] - candidates[0]
        logged = np.arange(len(action)), action
        squares = weight @ away[logged] ** 2
        if squares == 0:
            return q
        # the mixture with the smallest mean squared error
        share = (weight * away[logged]) @ (reward - q[logged]) / squares
        return q + np.clip(share, 0.0, 1.0) * away

    def _check_features(self, X: Any, reset: bool) -> Any:
        """Note or compare number and names of the features; values are the classifier's affair.

        Without features, the classifier has a constant one.
        """
        check_not_masked(X, "X")
        X = as_contexts(X)
        n_dimensions = len(getattr(X, "shape", (0, 0)))
        if n_dimensions != 2:
            raise ValueError(
                f"X must have 2 dimensions, one row per context, got {n_dimensions}. Reshape your "
                "data with X.reshape(1, -1) if it is a single context."
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X if np.shape(X)[1] else np.ones((count_rows(X), 1))

    def _scores(self, X: Any) -> np.ndarray:
        """Scores of all arms, (n_samples, n_arms); those without examples have the lowest."""
        X = self._check_features(X, reset=False)
        n_arms = len(self._labels)
        if self.estimator_ is None:
            return np.tile(np.arange(n_arms) == self._only, (count_rows(X), 1)).astype(float)
        if not _scores_classes(self.estimator_):
            raise ValueError(
                f"{type(self.estimator_).__name__} has neither predict_proba nor "
                "decision_function, so it cannot choose among available arms."
            )
        with explained_entries(X, type(self).__name__):
            if hasattr(self.estimator_, "predict_proba"):
                class_scores, lowest = self.estimator_.predict_proba(X), 0.0
            else:
                class_scores, lowest = np.asarray(self.estimator_.decision_function(X)), -np.inf
        if class_scores.ndim == 1:
            class_scores = np.column_stack([-class_scores, class_scores])
        scores = np.full((len(class_scores), n_arms), lowest)
        scores[:, self.estimator_.classes_] = class_scores
        return scores

    def _read_available(self, available: Any, n_rows: int) -> tuple[logs.Codes, np.ndarray]:
        """Return indices of the known arms and then new ones, and a mask with a column for each."""
        codes: logs.Codes = {label: k for k, label in enumerate(self._labels.tolist())}
        if available is None:
            return codes, np.ones((n_rows, len(codes)), dtype=bool)
        pools = logs.read_pools(available, n_rows, codes)
        return codes, pools.mask(len(codes))


def _scores_classes(classifier: Any) -> bool:
    """Tell whether a classifier can choose among available classes."""
    return hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")
