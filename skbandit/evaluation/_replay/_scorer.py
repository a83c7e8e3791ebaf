"""Replay as a scorer for model selection."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED

from skbandit.evaluation._policy_protocol import name_columns
from skbandit.evaluation._replay._engine import ReplayOptions, read_replayed, replay_runs
from skbandit.evaluation._replay._result import FEW, ReplayResult, check_past, too_few
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import column_names
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import check_row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_METRICS = ("mean_reward", "lift")
_STARTS = ("cold", "fitted")


class ReplayScorer(BaseEstimator):
    """Score policies by replaying the events of a fold.

    A scorer for ``GridSearchCV(..., scoring=...)``, `cross_validate` and the like. The policy
    replays the fold's events in order (see `replay`); the score is its mean reward.

    Parameters
    ----------
    metric : {"mean_reward", "lift"}, default="mean_reward"
        The mean reward per kept event, or its ratio to the mean reward of the fold's log.
    start : {"cold", "fitted"}, default="cold"
        "cold" replays an unfitted clone of the policy, behind the fitted transformers: it pays
        for its exploration, and profits from it, within the fold. "fitted" continues with the
        policy as trained on the training fold, where it has mostly explored already: the less it
        explores afterwards, the better its score, so exploration cannot be tuned this way.
    learn : bool, default=True
        Whether the policy learns from the kept events.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring or the greedy one.
    acceptance : float, default=None
        As in `replay`; None is the smallest propensity in the fold.
    n_repeats : int, default=1
        Number of runs to average: on random subsamples of the fold with `subsample`, else in
        random order.
    subsample : float in (0, 1], default=None
        Share of the fold's events that each run replays.
    min_accepted : int, default=10
        If runs keep fewer events on average, the score is nan, with a warning; searches rank
        such candidates last.
    random_state : int, RandomState instance or None, default=None
        Draws orders, subsamples and which matches are kept. Pass an integer to make them the
        same for all candidates of a search.

    See Also
    --------
    replay : The function that computes the score.
    ReplaySplit : Folds that test on later events than they train on.

    Notes
    -----
    `y` is the log that the policy is fitted to. A DataFrame with columns action, reward and, if
    known, propensity, available and timestamp needs no configuration; columns of other names are
    read by the policy's parameter `columns`. If `reward`, `propensity`, `available` and `timestamp`
    are not columns of `y`, they reach the scorer with
    ``sklearn.set_config(enable_metadata_routing=True)``; they are requested by default.

    `sample_weight` weights the kept events in the mean, not in learning.

    The score estimates the mean reward over the policy's first T events, where T is about c times
    the number of events in the fold (c = 1/K for K equally likely arms). Small T favors policies
    that explore little: prefer few long folds.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbandit import GLMUCBPolicy, ReplayScorer
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import ReplaySplit
    >>> log = make_bandit_log(20_000, n_arms=5, base_rate=0.2, random_state=0)
    >>> search = GridSearchCV(
    ...     GLMUCBPolicy(random_state=0),
    ...     {"alpha": [0.3, 30.0]},
    ...     scoring=ReplayScorer(random_state=0),
    ...     cv=ReplaySplit(2),
    ... )
    >>> search.fit(log.X, log.y).best_params_
    {'alpha': 0.3}
    """

    __metadata_request__score: ClassVar = {
        "reward": True,
        "propensity": True,
        "available": True,
        "timestamp": True,
        "sample_weight": True,
        "estimator": UNUSED,
    }

    def __init__(
        self,
        *,
        metric: Literal["mean_reward", "lift"] = "mean_reward",
        start: Literal["cold", "fitted"] = "cold",
        learn: bool = True,
        rule: Literal["select", "predict"] = "select",
        acceptance: float | None = None,
        n_repeats: int = 1,
        subsample: float | None = None,
        min_accepted: int = FEW,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.metric = metric
        self.start = start
        self.learn = learn
        self.rule = rule
        self.acceptance = acceptance
        self.n_repeats = n_repeats
        self.subsample = subsample
        self.min_accepted = min_accepted
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
        timestamp: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a policy on given events.

        Parameters
        ----------
        estimator : policy, Pipeline that ends in one, or fitted search over either
            The policy to score; it is not changed.
        X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
            Contexts, in order of time.
        y : DataFrame or structured array with columns action and reward, or array of actions
            The log.
        reward, propensity, timestamp : array-like of shape (n_events,), default=None
            Values that are not columns of `y`.
        available : array-like, default=None
            Arms available to each event, as in `replay`.
        sample_weight : array-like of shape (n_events,), default=None
            Weights of the kept events in the mean.

        Returns
        -------
        float
            Higher is better; nan if too few events were kept.
        """
        for name, allowed in (("metric", _METRICS), ("start", _STARTS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be in {allowed}, got {getattr(self, name)!r}.")
        options = ReplayOptions(
            learn=self.learn,
            rule=self.rule,
            acceptance=self.acceptance,
            n_repeats=self.n_repeats,
            shuffle=self.n_repeats > 1 and self.subsample is None,
            subsample=self.subsample,
        )
        policy, X = behind_transformers(estimator, X)
        columns, _ = name_columns(policy, None, named=column_names(y) is not None)
        options.check_policy(policy)
        X, log = read_replayed(
            policy,
            X,
            y,
            reward=reward,
            propensity=propensity,
            available=available,
            timestamp=timestamp,
            columns=columns,
        )
        weight = check_row_weights(sample_weight, len(log), "sample_weight")
        if self.start == "cold":
            policy = clone(policy)
        check_past(policy, X, log, learns=True)
        result = replay_runs(policy, X, log, options, self.random_state)
        if result.n_accepted < self.min_accepted * self.n_repeats or not result.n_accepted:
            warnings.warn(
                f"ReplayScorer: {too_few(result)}. The score is nan.",
                ReplayCoverageWarning,
                stacklevel=2,
            )
            return np.nan
        mean = _weighted_mean(result, weight)
        if self.metric == "mean_reward":
            return mean
        logged = float(np.average(log.reward, weights=weight))
        return mean / logged if logged > 0 else np.nan

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)

    def _accept_sample_weight(self) -> bool:
        # called by scikit-learn on every scorer in a dict when routing is off
        return True


def _weighted_mean(result: ReplayResult, weight: np.ndarray) -> float:
    """Weighted mean reward per run, averaged over the runs with positive total weight."""
    means = [
        float(np.average(run.reward, weights=weight[run.event]))
        for run in result.trajectories
        if weight[run.event].any()
    ]
    return float(np.mean(means)) if means else np.nan
