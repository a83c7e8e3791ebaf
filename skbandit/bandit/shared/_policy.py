"""A policy with one model of all arms, over features of contexts and arms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._sequential import Events, join, still_waiting, windows_of
from skbandit.bandit._state import LINKS, explorations_by, read_interval, read_rule
from skbandit.bandit.shared._learner import SharedLearner
from skbandit.logs import ReplayRequest, align_rows, code_labels, label_array
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import Interval, StrOptions

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class SharedGLMPolicy(SharedLearner):
    """Contextual bandit with one Bayesian GLM for all arms, described by features of their own.

    In a context x, the linear predictor of the reward of an arm with features z is
    θ = x̃ᵀB z̃ + b, where x̃ = (x, 1) and z̃ = (z, 1): all products of a feature of the context and
    one of the arm, the main effects of both, and an offset b of the arm for what its features do
    not say. What is learned from one arm holds for the others, so an arm never played before is
    judged by its features. For many arms, and arms that come and go.

    Parameters
    ----------
    arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
        Features of arms: finite numbers, one row per arm, with the arms' labels as index. More
        arms may be described at any time, by `select` or `partial_fit` among others. With None,
        and none described later, arms differ by their offsets only.
    link : {"linear", "logistic", "probit"}, default="logistic"
        Reward model, as in `GLMUCBPolicy`.
    alpha : float or callable, default=0.2
        Amount of exploration, as in `GLMUCBPolicy`. A function is called with an array of numbers
        of learned events.
    exploration : {"ucb", "epsilon_greedy", "thompson", "squarecb", "greedy"}, default="ucb"
        Rule by which `select` explores, as in `GLMUCBPolicy`.
    epsilon : float, default=0.1
        Probability that an ε-greedy choice is uniform among the available arms. Other rules do
        without it; 0 is greedy.
    covariance : {"full", "diagonal"}, default="full"
        Whether the entries of B are correlated or independent. The cost of an event is quadratic
        or linear in their number, p = (n_features + 1)(n_arm_features + 1).
    prior_variance : float, default=3.0
        Prior variance of the entries of B, in units of the standardised features. That of its
        constant is 1.
    offset_variance : float, default=0.3
        Prior variance of the arms' offsets; 0 leaves all differences to the features.
    noise_variance : float or "auto", default="auto"
        Noise variance of linear rewards. "auto" estimates it, and takes all other variances as
        multiples of it, so that the unit of the reward does not matter.
    standardize : bool, default=True
        Whether features are standardised as they go: x = (X - mean) / (sd √n_features), with
        means and standard deviations renewed at learned events 8, 16, 32, ...; what was learned
        is carried over to the new units. Features of arms likewise, as arms are described.
    forgetting : float, default=1.0
        Factor, from .001 to 1, by which earlier evidence is discounted at every learned event, for
        rewards that drift: what was learned of features by all events, an arm's offset by its own.
        Below 1, learning takes p³ operations an event under a full covariance.
    update_every : float, str or timedelta, default=None
        Length of update windows, as in `GLMUCBPolicy`: events are learned when their window ends.
    columns : dict, default=None
        Names of a log's columns that differ, as in
        ``{"action": "arm_id", "reward": "clicked"}``: `fit`, `partial_fit`, and the functions and
        scorers that evaluate the policy read logs by them.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices, as in `GLMUCBPolicy`.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels, in the order in which they were described or first learned.
    arm_features_ : DataFrame of shape (n_arms, n_arm_features)
        Features of `arms_`.
    coef_ : ndarray of shape (n_features + 1, n_arm_features + 1)
        Posterior mean of B for features as given, those of contexts in rows; the constants' row
        and column are last.
    offset_ : ndarray of shape (n_arms,)
        Posterior means of the arms' offsets.
    n_updates_ : ndarray of shape (n_arms,)
        Number of events learned per arm.
    last_timestamp_ : float
        Time of the latest event, in seconds; nan if no event had a timestamp.
    n_features_in_ : int
        Number of features of contexts.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.GLMUCBPolicy : One model per arm, for arms with many events each.
    skbandit.evaluation.replay : Estimate what a policy would have earned on a log.

    Notes
    -----
    B has a Gaussian prior and posterior, and so have the offsets. An event moves them by a step on
    θ, exact for linear rewards, as in `GLMUCBPolicy`; only the covariance between B and the offsets
    is dropped, so that the cost does not grow with the number of arms. For n arms a choice takes
    p² + n n_arm_features² operations under a full covariance.

    Arms of a log or of `available` need features if any arm has them. A known arm keeps its
    features: others are an error. Features that change from event to event belong into the
    context.

    Learning is sequential, and random numbers belong to a seed, a choice and an arm, as in
    `GLMUCBPolicy`: a batch equals the same events or choices one by one. Replays are compiled, with
    the decisions of `select` and `partial_fit`. Sparse contexts become dense.

    Examples
    --------
    Articles are described by their topic, and readers by a taste. One that was never shown is
    judged by its topic:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.bandit import SharedGLMPolicy
    >>> articles = pd.DataFrame({"sport": [1, 1, 0, 0]}, index=["cup", "race", "vote", "law"])
    >>> rng = np.random.default_rng(0)
    >>> policy = SharedGLMPolicy(articles, random_state=0)
    >>> for _ in range(300):
    ...     reader = rng.normal(size=(1, 1))
    ...     shown = policy.select(reader)
    ...     liked = (reader[0, 0] > 0) == (articles.loc[shown[0], "sport"] == 1)
    ...     policy = policy.partial_fit(reader, pd.DataFrame({"action": shown, "reward": [liked]}))
    >>> new = pd.DataFrame({"sport": [1, 0]}, index=["final", "debate"])
    >>> policy.predict([[1.5], [-1.5]], available=["final", "debate"], arm_features=new)
    array(['final', 'debate'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "arm_features": [pd.DataFrame, None],
        "link": [StrOptions(set(LINKS))],
        "alpha": [Interval(Real, 0, None, closed="left"), callable],
        "exploration": [StrOptions(explorations_by("moments", "means"))],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "covariance": [StrOptions({"diagonal", "full"})],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
        "offset_variance": [Interval(Real, 0, None, closed="left")],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "standardize": ["boolean"],
        "forgetting": [Interval(Real, 1e-3, 1, closed="both")],
        "update_every": [Interval(Real, 0, None, closed="neither"), str, timedelta, None],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        arm_features: pd.DataFrame | None = None,
        link: str = "logistic",
        alpha: float | Callable[[np.ndarray], ArrayLike] = 0.2,
        *,
        exploration: str = "ucb",
        epsilon: float = 0.1,
        covariance: str = "full",
        prior_variance: float = 3.0,
        offset_variance: float = 0.3,
        noise_variance: float | str = "auto",
        standardize: bool = True,
        forgetting: float = 1.0,
        update_every: float | str | timedelta | None = None,
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.arm_features = arm_features
        self.link = link
        self.alpha = alpha
        self.exploration = exploration
        self.epsilon = epsilon
        self.covariance = covariance
        self.prior_variance = prior_variance
        self.offset_variance = offset_variance
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.forgetting = forgetting
        self.update_every = update_every
        self.columns = columns
        self.random_state = random_state

    def predict(
        self, X: Any, *, available: Any = None, arm_features: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Choose the arm of the largest posterior mean reward, without exploring.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.
        arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
            Features of new arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels; ties go to the arm that comes first in `arms_`.
        """
        return self._choose(X, available, arm_features, exploring=False)

    def select(
        self, X: Any, *, available: Any = None, arm_features: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Choose the arm to play, exploring.

        Choices are counted, so that each has its own random numbers; a batch of choices equals
        the same choices one by one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms: the labels of each row, as in ``[("a", "b"), ("b",)]``; or those of all
            rows, as in ``["a", "b"]``; or a boolean table with one column per arm, an array's in
            the order of `arms_`. None makes all of `arms_` available.
        arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
            Features of new arms, which the policy then knows; it may hold known ones, too.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels. Ties are broken at random.
        """
        return self._choose(X, available, arm_features, exploring=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores that `predict` compares: linear predictors of mean rewards.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; larger is better. See `predict_reward` for the reward's scale.
        """
        return self._scores(X, 0, -1)

    def select_scores(self, X: Any) -> np.ndarray:
        """Return the scores that the next `select` compares.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`: an increasing function of upper bounds; for Thompson sampling, one
            draw per arm; for ε-greedy and SquareCB, the scores of greedy choices.
        """
        check_is_fitted(self)
        return self._scores(X, *self._stream.take(0, self.random_state))

    def predict_reward(self, X: Any) -> np.ndarray:
        """Predict the posterior mean reward of every arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            On the reward's scale; columns as `arms_`.
        """
        from skbandit.bandit.links import mean_rewards

        index = self.decision_function(X)
        return mean_rewards(index, read_rule(self))

    def select_proba(
        self, X: Any, *, available: Any = None, arm_features: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the probability that `select` chooses each arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.
        arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
            Features of new arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`. Rows may sum to less than 1; the remainder is the probability of
            arms not in `arms_`. Exact, except that Thompson sampling's are integrated
            numerically.
        """
        from skbandit.bandit.shared._passes import probability_rows

        available = align_rows(available, X)
        now, X = self._prepared(X, available, arm_features)
        sets, codes = now._available(len(X), available)
        beliefs = now._beliefs_about(codes)
        out = probability_rows(X, sets, now._alpha(), beliefs, read_rule(now))
        return out[:, : len(now._codes)]

    def _prepared(self, X: Any, available: Any, arm_features: Any) -> tuple[Self, np.ndarray]:
        """The policy in its current state, which knows these arms, and checked contexts."""
        fitted = self.__sklearn_is_fitted__()
        if arm_features is None:
            self._check_ready(available)
        if not fitted or arm_features is not None:
            with self._guard.learning, atomic_fit(self) as draft:
                if not draft.__sklearn_is_fitted__():  # else another thread has begun
                    draft._validate_params()
                    draft._begin(X)
                if arm_features is not None:
                    draft._describe(arm_features)
        return self._now(), self._rows(X)

    def _choose(self, X: Any, available: Any, arm_features: Any, *, exploring: bool) -> np.ndarray:
        """Labels of the chosen arms."""
        from skbandit.bandit.shared._passes import choose_rows

        available = align_rows(available, X)
        now, X = self._prepared(X, available, arm_features)
        sets, codes = now._available(len(X), available)
        beliefs = now._beliefs_about(codes)
        labels = now._labels if len(codes) == len(now._codes) else label_array(codes)
        seed, t = now._stream.take(len(X), now.random_state) if exploring else (0, -1)
        rule = read_rule(now, seed)
        return labels[choose_rows(X, sets, t, now._alpha(), beliefs, rule)]

    def _alpha(self) -> float:
        """Multiple of standard deviations in the next choice."""
        from skbandit.bandit.exploration import alpha_scale
        from skbandit.bandit.shared._bilinear import noise_scale

        scale = alpha_scale(noise_scale(self._beliefs.noise), read_rule(self))
        return float(self._alphas()[0] * scale)

    def _scores(self, X: Any, seed: int, t: int) -> np.ndarray:
        """Scores of all arms in choices t, t + 1, ..., or in greedy ones if t is -1."""
        from skbandit.bandit.shared._passes import score_rows

        check_is_fitted(self)
        X, now = self._rows(X), self._now()
        return score_rows(X, t, now._alpha(), now._beliefs, read_rule(now, seed))

    def _replay_log(self, request: ReplayRequest) -> tuple[np.ndarray, int] | None:
        """Replay a log in one compiled pass; see `skbandit.logs._blocks.ReplaysLogs`.

        Subclasses that choose or learn differently are replayed event by event.
        """
        names = ("select", "predict", "partial_fit", "advance")
        if any(getattr(type(self), name) is not getattr(SharedGLMPolicy, name) for name in names):
            return None
        from skbandit.bandit.links import check_rewards
        from skbandit.bandit.shared._passes import replay_rows
        from skbandit.bandit.shared._state import N_CHOICES, N_RANKED, only_arms, own_copy

        log = request.log
        _, X = self._prepared(request.X, log.arms, None)
        check_rewards(self.link, log.reward)
        every = read_interval(self.update_every)
        ordered = every is not None or self.forgetting < 1
        if ordered and log.timestamp is not None and self._latest is not None:
            if len(request.rows) and log.timestamp[request.rows[0]] < self._latest:
                return None  # `partial_fit` raises the error
        if self._waiting and every is None:
            self._learn_waiting()
        before = join(self._waiting) if self._waiting else None
        if before is not None and (log.timestamp is None or (before.weight != 1).any()):
            return None
        window, delayed = np.empty(0, dtype=np.int64), None
        if every is not None and (request.learn or before is not None):
            times = None if log.timestamp is None else log.timestamp[request.rows]
            window = np.empty(len(log), dtype=np.int64)
            window[request.rows] = windows_of(times, every)
        codes, n_known = dict(self._codes), len(self._codes)
        number = code_labels(log.arms, codes).astype(np.int64)
        if before is not None:
            delayed = before.X, code_labels(before.arms, codes).astype(np.int64), before.reward
            window = np.concatenate([window, before.window])
        beliefs = own_copy(self._beliefs_about(codes))
        # new arms rank last until they are learned: arms learned in the meantime precede them
        beliefs.tie_order[n_known:] += len(codes)
        beliefs.counters[N_RANKED] = n_known
        seed, n_choices = self._stream.take(0, self.random_state)
        beliefs.counters[N_CHOICES] = n_choices
        accepted, n_seen = replay_rows(
            request, X, number, self._alphas(len(request.rows)), beliefs, self._prior(),
            read_rule(self, seed), window, delayed,
        )  # fmt: skip
        if len(window):
            own = Events(X, log.arms[log.action], log.reward, np.ones(len(log)), window[: len(log)])
            n_before = 0 if before is None else len(before)
            late = still_waiting(request, window, n_before, accepted, n_seen)
            self._waiting = []
            if len(late):
                self._waiting = [(own if before is None else join([own, before])).take(late)]
        self._stream.take(int(beliefs.counters[N_CHOICES]) - n_choices, self.random_state)
        # new arms in the order in which they were learned
        rank = np.argsort(beliefs.tie_order[n_known:], kind="stable") + n_known
        learned = rank[beliefs.n_updates[rank] > 0]
        labels = list(codes)
        kept = np.concatenate([np.arange(n_known), learned])
        self._beliefs = only_arms(beliefs, kept)
        self._know({labels[arm]: k for k, arm in enumerate(kept.tolist())})
        if log.timestamp is not None and request.learn:
            events = accepted[~request.deployment[accepted]]
            self._note_times(log.timestamp[request.rows[events]])
        return accepted, n_seen
