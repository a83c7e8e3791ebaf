"""Model selection for policies: scorers, and splits of a log in time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import UNUSED

from skbandit.evaluation._off_policy._off_policy_value import off_policy_value
from skbandit.evaluation._policy_protocol import name_columns
from skbandit.evaluation._replay._engine import read_replayed, replay_runs
from skbandit.evaluation._replay._result import FEW, ReplayOptions, check_past, too_few
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import check_in_order, column_names, read_log, read_times
from skbandit.measure import RATE_TOL
from skbandit.utils._fitting import seed_for
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import check_row_weights, warn, warn_if_reordered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_METRICS = ("mean_reward", "lift")
_STARTS = ("cold", "fitted")
_OPTIONS = ("method", "rule", "reward_model", "cv", "reward_range", "random_state")


class _PolicyScorer(BaseEstimator):
    """A scorer with a method `score`."""

    score: Any

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)

    def _accept_sample_weight(self) -> bool:
        # called by scikit-learn on every scorer in a dict when routing is off
        return False


class OffPolicyScorer(_PolicyScorer):
    """Score fixed policies by an off-policy estimate on the events of a fold.

    A scorer for ``GridSearchCV(..., scoring=...)``, ``cross_validate`` and the like, for policies
    that learn from a log in `fit`, such as `OffPolicyClassifier`.

    Parameters
    ----------
    method : {"snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"}, default="snips"
        The estimator, as in `off_policy_value`.
    rule : {"predict", "select"}, default="predict"
        The evaluated choice of the policy: the greedy or the exploring one.
    confidence_level : float, default=None
        If given, the score is the lower end of the interval with this level. It then prefers the
        more certain one of two equal estimates.
    kind : {"normal", "sequence"}, default="normal"
        Kind of that interval, as in `OffPolicyEstimate.interval`.
    reward_model : regressor or classifier with predict_proba, default=None
        For all methods but "ips" and "snips", as in `off_policy_value`. No model predicts an event
        of the fold that it was fitted to, and none depends on the policy.
    cv : int, cross-validation generator or iterable of splits, default=5
        Cross-fits the reward models within the fold.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which ``kind="sequence"`` requires.
    constrained : bool, default=False
        Whether the constraints of a `ConstrainedPolicy` must hold on the events. If some do not,
        the score is below the lowest reward, by the amount by which bounds are violated.
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
    `columns`. If `reward`, `propensity` and `available` are not columns of `y`, they, `attributes`
    and `groups` reach the scorer with ``sklearn.set_config(enable_metadata_routing=True)``; they
    are requested by default.

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
        "attributes": True,
        "groups": True,
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
        constrained: bool = False,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.rule = rule
        self.confidence_level = confidence_level
        self.kind = kind
        self.reward_model = reward_model
        self.cv = cv
        self.reward_range = reward_range
        self.constrained = constrained
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
        attributes: Any = None,
        groups: ArrayLike | None = None,
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
        attributes : DataFrame or dict of arrays, default=None
            Columns that a `ConstrainedPolicy` needs, unless X has them.
        groups : array-like of shape (n_events,), default=None
            Events of one value are dependent, as in `off_policy_value`.

        Returns
        -------
        float
            Higher is better; nan, with a warning, if the policy never chooses a logged action.
        """
        given = {"attributes": attributes, "available": available}
        if self.constrained:
            policy, rows = behind_transformers(estimator, X)
            slack = policy.constraint_report(rows, y, **given)["slack"].to_numpy()
            if (violation := -slack[slack < -RATE_TOL].sum()) > 0:
                lowest = float(read_log(y, reward=reward, columns=policy.columns).reward.min())
                return lowest - violation * max(1.0, abs(lowest))
        given |= {"reward": reward, "propensity": propensity, "groups": groups}
        options = {name: getattr(self, name) for name in _OPTIONS}
        estimate = off_policy_value(estimator, X, y, **given, **options)
        if self.confidence_level is None:
            return estimate.mean_reward
        return estimate.interval(self.confidence_level, kind=self.kind)[0]


class ReplayScorer(_PolicyScorer):
    """Score policies by replaying the events of a fold.

    A scorer for ``GridSearchCV(..., scoring=...)``, ``cross_validate`` and the like. The policy
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
        warn_if_reordered({"y": y, "sample_weight": sample_weight})
        options.check_policy(policy)
        given = {"reward": reward, "propensity": propensity, "available": available}
        given |= {"timestamp": timestamp, "columns": columns}
        X, log = read_replayed(policy, X, y, **given)
        weight = check_row_weights(sample_weight, len(log), "sample_weight")
        if self.start == "cold":
            policy = clone(policy)
        check_past(policy, X, log, learns=True)
        result = replay_runs(policy, X, log, options, self.random_state)
        if result.n_accepted < self.min_accepted * self.n_repeats or not result.n_accepted:
            warn(
                f"ReplayScorer: {too_few(result)}. The score is nan.",
                ReplayCoverageWarning,
            )
            return np.nan
        weights = [(run.reward, weight[run.event]) for run in result.trajectories]
        means = [np.average(rewards, weights=w) for rewards, w in weights if w.any()]
        mean = float(np.mean(means)) if means else np.nan
        if self.metric == "mean_reward":
            return mean
        logged = float(np.average(log.reward, weights=weight))
        return mean / logged if logged > 0 else np.nan

    def _accept_sample_weight(self) -> bool:
        return True


class ReplaySplit(BaseCrossValidator):
    """Split a log in time, so that all training events precede the test events.

    The first events, the warmup, are used for training only. Without `subsample`, the others form
    consecutive blocks of equal length, one per split: each is tested after training on all
    earlier events. With `subsample`, each split is a random subsample of the whole log, in the
    log's order: its warmup events train and its other events are tested, as in the experiments
    of Li et al. (2012). The spread of the scores is then that of a policy's whole path over
    samples of the log.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits, at least 1.
    warmup : float in (0, 1) or int, default=0.2
        Share or number of events before the first test event.
    subsample : float in (0, 1], default=None
        Share of the events in each split.
    random_state : int, RandomState instance or None, default=None
        Draws the subsamples.

    See Also
    --------
    ReplayScorer : Scores a policy on the tested events.
    sklearn.model_selection.TimeSeriesSplit : Without warmup and subsamples.

    Notes
    -----
    Events must be in order of time, as only their number is used. A column timestamp of `y` is
    checked; one of another name is checked by those who know it, the policy and `ReplayScorer`.

    Searches by successive halving take rows in random order, and so lose the order of the log: they
    warn. Use `GridSearchCV` or `RandomizedSearchCV` instead.

    A policy that starts cold (see `ReplayScorer`) replays the test events only, so its horizon is
    proportional to their number: `subsample`, or few splits, make it long.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.evaluation import ReplaySplit
    >>> X = np.zeros((10, 1))
    >>> for train, test in ReplaySplit(2, warmup=4).split(X):
    ...     print(train, test)
    [0 1 2 3] [4 5 6]
    [0 1 2 3 4 5 6] [7 8 9]
    >>> for train, test in ReplaySplit(2, warmup=4, subsample=0.5, random_state=0).split(X):
    ...     print(train, test)
    [0 2] [4 5 8]
    [0 2] [4 5 6]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        warmup: float = 0.2,
        subsample: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.warmup = warmup
        self.subsample = subsample
        self.random_state = random_state

    @property
    def shuffle(self) -> bool:
        """True if splits are drawn at random, as successive halving asks, which shuffles rows."""
        warn(
            "successive halving trains and tests on rows in random order, so that policies replay "
            "a shuffled log: use GridSearchCV or RandomizedSearchCV if its order matters, as for a "
            "policy that forgets.",
            UserWarning,
        )
        return self.subsample is not None

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training and test rows of each split.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts; only their number is used.
        y : DataFrame or array-like, default=None
            The log. A column timestamp must be nondecreasing.
        groups : object
            Ignored, exists for compatibility.

        Yields
        ------
        train : ndarray
            Rows to learn from, ascending.
        test : ndarray
            Rows to score on, ascending, all later than `train`.
        """
        X, y = indexable(X, y)
        n_events = np.shape(X)[0]
        n_warmup = self._n_warmup(n_events)
        if "timestamp" in (column_names(y) or ()):
            check_in_order(read_times(y["timestamp"], len(y)), "a split in time")
        if self.subsample is None:
            edges = np.linspace(n_warmup, n_events, self.n_splits + 1).round().astype(int)
            for start, stop in pairwise(edges):
                yield np.arange(start), np.arange(start, stop)
            return
        rng = np.random.default_rng(seed_for("replay split", self.random_state))
        parts = np.split(np.arange(n_events), [n_warmup])
        sizes = [max(1, round(self.subsample * len(part))) for part in parts]
        for _ in range(self.n_splits):
            train, test = (
                np.sort(rng.permutation(part)[:size])
                for part, size in zip(parts, sizes, strict=True)
            )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object
            Ignored, exist for compatibility.

        Returns
        -------
        int
        """
        return self.n_splits

    def _n_warmup(self, n_events: int) -> int:
        """Validate the options and return the number of warmup events."""
        if not (isinstance(self.n_splits, Integral) and self.n_splits >= 1):
            raise ValueError(f"n_splits must be a positive integer, got {self.n_splits!r}.")
        share = self.subsample
        if share is not None and not (isinstance(share, Real) and 0 < share <= 1):
            raise ValueError(f"subsample must be None or in (0, 1], got {share!r}.")
        counted = isinstance(self.warmup, Integral)
        if not (isinstance(self.warmup, Real) and 0 < self.warmup < (n_events if counted else 1)):
            raise ValueError(
                f"warmup must be a share in (0, 1), or a number of events below {n_events}, got "
                f"{self.warmup!r}."
            )
        n_warmup = int(self.warmup) if counted else max(1, round(self.warmup * n_events))
        needed = self.n_splits if share is None else 1
        if n_events - n_warmup < needed:
            raise ValueError(
                f"{n_warmup} of {n_events} events are warmup, which leaves {n_events - n_warmup} "
                f"for n_splits={self.n_splits}: choose fewer splits or a shorter warmup."
            )
        return n_warmup
