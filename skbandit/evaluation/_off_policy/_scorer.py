"""Off-policy estimates as scorers for model selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from skbandit.evaluation._off_policy._off_policy_value import off_policy_value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class OffPolicyScorer(BaseEstimator):
    """Score fixed policies by an off-policy estimate on the events of a fold.

    A scorer for ``GridSearchCV(..., scoring=...)``, `cross_validate` and the like, for policies
    that learn from a log in `fit`, such as `OffPolicyClassifier`.

    Parameters
    ----------
    method : {"snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"}, default="snips"
        The estimator, as in `off_policy_value`.
    rule : {"predict", "select"}, default="predict"
        The evaluated choice of the policy: the greedy or the exploring one.
    confidence_level : float, default=None
        If given, the score is the lower end of the interval with this level, not the estimate:
        of two policies with the same estimate the one that is better known wins.
    kind : {"normal", "sequence"}, default="normal"
        Kind of that interval, as in `OffPolicyEstimate.interval`.
    reward_model : regressor or classifier with predict_proba, default=None
        For all methods but "ips" and "snips", as in `off_policy_value`. No model predicts an event
        of the fold that it was fitted to, and none depends on the policy.
    cv : int, cross-validation generator or iterable of splits, default=5
        Cross-fits the reward models within the fold.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which ``kind="sequence"`` requires.
    random_state : int, RandomState instance or None, default=None
        Draws the folds of reward models. Pass an integer to make them the same for all candidates
        of a search.

    See Also
    --------
    ReplayScorer : For policies that learn while they are evaluated.
    skbandit.bandit.OffPolicyClassifier : A policy to be tuned.

    Notes
    -----
    `y` is the log that the policy is fitted to. A DataFrame with columns action, reward, propensity
    and available needs no configuration; columns of other names are read by the policy's parameter
    `columns`. If `reward`, `propensity` and `available` are not columns of `y`, they reach the
    scorer with ``sklearn.set_config(enable_metadata_routing=True)``; they are requested by default.

    The best score of many candidates is too good, as it won partly by luck: estimate the winner on
    events that took no part in the search.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skbandit.bandit import OffPolicyClassifier
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import OffPolicyScorer
    >>> log = make_bandit_log(4000, n_arms=4, base_rate=0.2, random_state=0)
    >>> search = GridSearchCV(
    ...     OffPolicyClassifier(LogisticRegression(), random_state=0),
    ...     {"estimator__C": [1e-4, 1.0]},
    ...     scoring=OffPolicyScorer("dr", random_state=0),
    ...     cv=3,
    ... )
    >>> search.fit(log.X, log.y).best_params_
    {'estimator__C': 1.0}
    """

    __metadata_request__score: ClassVar = {
        "reward": True,
        "propensity": True,
        "available": True,
        "estimator": UNUSED,
    }

    def __init__(
        self,
        method: str = "snips",
        *,
        rule: str = "predict",
        confidence_level: float | None = None,
        kind: str = "normal",
        reward_model: Any = None,
        cv: Any = 5,
        reward_range: tuple[float, float] | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.rule = rule
        self.confidence_level = confidence_level
        self.kind = kind
        self.reward_model = reward_model
        self.cv = cv
        self.reward_range = reward_range
        self.random_state = random_state

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        available: Any = None,
    ) -> float:
        """Score a policy on given events.

        Parameters
        ----------
        estimator : policy, Pipeline that ends in one, or fitted search over either
            The policy to score; it is not changed.
        X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            The log.
        reward, propensity : array-like of shape (n_events,), default=None
            Values that are not columns of `y`.
        available : array-like, default=None
            Arms available to each event, as in `off_policy_value`.

        Returns
        -------
        float
            Higher is better; nan, with a warning, if the policy never chooses a logged action.
        """
        estimate = off_policy_value(
            estimator,
            X,
            y,
            method=self.method,
            rule=self.rule,
            reward=reward,
            propensity=propensity,
            available=available,
            reward_model=self.reward_model,
            cv=self.cv,
            reward_range=self.reward_range,
            random_state=self.random_state,
        )
        if self.confidence_level is None:
            return estimate.mean_reward
        return estimate.interval(self.confidence_level, kind=self.kind)[0]

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)

    def _accept_sample_weight(self) -> bool:
        # called by scikit-learn on every scorer in a dict when routing is off
        return False
