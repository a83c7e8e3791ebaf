"""Policies with a posterior of linear predictors: their choices and replays, and GLMUCBPolicy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbandit import logs
from skbandit.bandit import _state
from skbandit.bandit._events import Events, encode_log, join, still_waiting, windows_of
from skbandit.bandit._guard import lock_of
from skbandit.bandit._sequential import SequentialPolicy
from skbandit.bandit._state import Posterior, Prior
from skbandit.utils._changes import N_RESTARTS
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import Interval, StrOptions
from skbandit.utils._validation import warn

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class PosteriorPolicy(SequentialPolicy):
    """Chooses by posteriors of linear predictors, in compiled passes."""

    link: str
    alpha: Any
    prior_scale: Any
    prior_variance: Any
    _posterior: Any
    # of a base and workers: merged posterior, and whether a worker knows less of an arm than base
    _merged: Callable[[Any, list[Any]], tuple[Any, np.ndarray]]
    _posterior_about: Callable[[logs.Codes], Any]  # of known arms and new ones
    _prior: Callable[[], Any]  # of new arms, and settings of learning

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "link": [StrOptions(set(_state.LINKS))],
        "alpha": [Interval(Real, 0, None, closed="left"), callable],
        "exploration": [StrOptions(_state.explorations_by("moments", "means"))],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "prior_scale": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "covariance": [StrOptions({"diagonal", "full"})],
        "forgetting": [Interval(Real, 1e-3, 1, closed="both"), StrOptions({"auto"})],
        "update_every": [
            np.timedelta64,
            Interval(Real, 0, None, closed="neither"),
            str,
            timedelta,
            None,
        ],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def scale_weights_(self) -> np.ndarray:
        """Weight of each prior scale by its evidence; the last may be of the model that forgets."""
        check_is_fitted(self)
        return self._posterior.share.copy()

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned per arm, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._posterior.n_updates.copy()

    @property
    def n_restarts_(self) -> int:
        """Number of times that rewards have changed, and the policy has started anew."""
        check_is_fitted(self)
        return int(self._posterior.restarts[N_RESTARTS])

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn the events of `update_every` windows that have ended.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            Current time, in seconds if a number; None learns all delayed events.

        Returns
        -------
        self
            Fitted policy.
        """
        with lock_of(self):
            if self.__sklearn_is_fitted__() and self._waiting:
                every = _state.read_interval(self.update_every)
                if timestamp is None or every is None:
                    passed = True
                else:
                    now = windows_of(logs.read_times([timestamp], 1), every)[0]
                    passed = now > self._waiting[0].window[0]
                if passed:
                    with atomic_fit(self) as draft:
                        draft._learn_waiting()
                        draft._sort_arms()
                        draft._note_step()
        return self

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
        return mean_rewards(index, _state.read_rule(self))

    def _check_models(self, n_models: int) -> None:
        """Require as many models, of prior scales and one that forgets, as have learned."""
        if n_models != (n_scales := len(self._posterior.share)):
            raise ValueError(
                f"prior_scale={self.prior_scale!r}, prior_variance={self.prior_variance!r}, "
                f"link={self.link!r} and forgetting={self.forgetting!r} are {n_models} models, but "
                f"the policy has learned with {n_scales}: call fit to start afresh."
            )

    def _n_learned(self) -> int:
        return int(self._posterior.counters[_state.N_EVENTS]) if self.__sklearn_is_fitted__() else 0

    def _sum_up(self, base: Self, workers: dict[str, Self], labels: list[Any]) -> None:
        states = []
        for policy in (base, *workers.values()):
            new = [label for label in labels if label not in policy._codes]
            codes = policy._codes | {label: len(policy._codes) + k for k, label in enumerate(new)}
            order = np.array([codes[label] for label in labels], dtype=np.int64)
            states.append(policy._posterior_about(codes).keep_arms(order).copy())
        self._posterior, lost = self._merged(states[0], states[1:])
        if lost.any():
            k, arm = np.argwhere(lost)[0]
            raise ValueError(
                f"base is not an earlier state of {list(workers)[k]}: it knows more of arm "
                f"{labels[arm]!r}."
            )
        self._know({label: k for k, label in enumerate(labels)})

    def _keep_arms(self, kept: np.ndarray) -> None:
        self._posterior = self._posterior.keep_arms(kept)

    def _grow(self, codes: logs.Codes) -> None:
        self._posterior = self._posterior_about(codes)
        self._know(codes)

    def _absorb(self, events: Events) -> None:
        """Learn events now, in a copy: copies and readers keep the state before."""
        from skbandit.bandit._passes import LearningModel, learn_rows

        action, n_restarts = self._number(events.arms), self.n_restarts_
        self._posterior = self._posterior.copy()
        self._alphas(len(events))  # raise errors now, not in the next choice
        prior = self._prior()
        learner = LearningModel(self._posterior, _state.read_rule(self), prior)
        learn_rows(replace(events, arms=action), learner)
        if self.n_restarts_ > n_restarts:
            warn(
                "rewards have changed: those of an arm are no longer what the policy predicted for "
                "it, so it has started anew. With forgetting=1 it would go on.",
                UserWarning,
            )

    def _check_rewards(self, reward: np.ndarray) -> None:
        low, high = _state.LINKS[self.link].reward_range
        wrong = np.flatnonzero((reward < low) | (reward > high))
        if len(wrong):
            raise ValueError(
                f"reward is {reward[wrong[0]]:g} on row {wrong[0]}, but link={self.link!r} "
                f"requires rewards from {low:g} to {high:g}: rescale them, or use link='linear'."
            )

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        """Return values of `alpha` after the events learned, and after 1, 2, ..., n_events more."""
        return _state.read_alphas(self.alpha, self._n_learned(), n_events)

    def _alpha(self) -> float:
        """Return multiple of standard deviations in the next choice."""
        return float(self._alphas()[0])

    def _choose(
        self, X: Any, available: Any, *, exploring: bool, return_proba: bool = False
    ) -> Any:
        """Return labels of the chosen arms, and their probabilities if asked for."""
        from skbandit.bandit import _passes

        now, X, sets, codes = self._ready(X, available)
        labels = now._labels if len(codes) == len(now._codes) else logs.label_array(codes)
        seed, t = now._stream.take(X.shape[0], now.random_state) if exploring else (0, -1)
        posterior, rule = now._posterior_about(codes), _state.read_rule(now, seed)
        asked = _passes.Asked(X, sets, t, now._alpha(), posterior, rule)
        if not return_proba:
            return labels[_passes.choose_rows(asked)]
        chosen, probability = _passes.choose_with_probabilities(asked)
        return labels[chosen], probability

    def _choice_probabilities(self, X: Any, available: Any) -> np.ndarray:
        """Return probability that `select` chooses each known arm."""
        from skbandit.bandit._passes import Asked, probability_rows

        now, X, sets, codes = self._ready(X, available)
        posterior, rule = now._posterior_about(codes), _state.read_rule(now)
        asked = Asked(X, sets, -1, now._alpha(), posterior, rule)
        return probability_rows(asked)[:, : len(now._codes)]

    def _scores(self, X: Any, seed: int, t: int) -> np.ndarray:
        """Return scores of all arms in choices t, t + 1, ..., or in greedy ones if t is -1."""
        from skbandit.bandit._passes import Asked, score_rows

        check_is_fitted(self)
        now = self._now()
        X, posterior, rule = now._rows(X), now._posterior, _state.read_rule(now, seed)
        sets = logs.Pools.of_all(X.shape[0], len(now._codes))
        origin, spread = _state.unit_of_rewards(posterior)
        return origin + spread * score_rows(Asked(X, sets, t, now._alpha(), posterior, rule))

    def _replay_log(self, request: logs.ReplayRequest) -> tuple[np.ndarray, int] | None:
        """Replay a log in one compiled pass; see `skbandit.logs.ReplayRequest`.

        Subclasses of users that choose or learn differently are replayed event by event.
        """
        from skbandit.bandit._passes import LearningModel, replay_log

        for name in ("select", "predict", "partial_fit", "advance"):
            if not getattr(type(self), name).__module__.startswith("skbandit."):
                return None
        log, rows = request.log, request.rows
        self._begin_with(request.X, log.arms, arms_are_named=False)
        X = self._rows(request.X)
        self._check_rewards(log.reward)
        codes = dict(self._codes)
        logs.code_labels(log.arms, codes)
        self._check_new_arms(codes)
        every = _state.read_interval(self.update_every)
        ordered = every is not None or self._forgetting() < 1
        if ordered and log.timestamp is not None and self._latest is not None:
            if len(rows) and log.timestamp[rows[0]] < self._latest:
                return None  # `partial_fit` raises the error
        if self._waiting and every is None:
            self._learn_waiting()
        delayed = join(self._waiting) if self._waiting else None
        if delayed is not None and (log.timestamp is None or (delayed.weight != 1).any()):
            return None
        seed, n_choices = self._stream.take(0, self.random_state)
        encoded, codes = encode_log(request, X, every=every, delayed=delayed, codes=self._codes)
        alphas, n_known, labels = self._alphas(len(rows)), len(self._codes), list(codes)
        posterior, rule = self._posterior_about(codes).copy(), _state.read_rule(self, seed)
        posterior.counters[_state.N_CHOICES] = n_choices
        # new arms rank last until they are learned: arms learned in the meantime precede them
        posterior.tie_order[n_known:] += len(codes)
        learner = LearningModel(posterior, rule, self._prior(), alphas)
        accepted, n_seen = replay_log(request, encoded, learner)
        rank = np.argsort(posterior.tie_order[n_known:], kind="stable") + n_known
        kept = np.concatenate([np.arange(n_known), rank[posterior.n_updates[rank] > 0]])
        self._posterior = posterior.keep_arms(kept)
        self._know({labels[arm]: k for k, arm in enumerate(kept.tolist())})
        self._stream.take(int(posterior.counters[_state.N_CHOICES]) - n_choices, self.random_state)
        self._waiting = still_waiting(request, encoded, labels, accepted, n_seen)
        self._sort_arms()
        if log.timestamp is not None and request.learn:
            learned = accepted[~request.deployment[accepted]]
            self._note_times(log.timestamp[rows[learned]])
        self._note_step()
        return accepted, n_seen


class GLMUCBPolicy(PosteriorPolicy):
    """Contextual bandit with one Bayesian generalized linear model per arm.

    An arm's reward in context x depends on θ = wᵀx, and its weights w have a Gaussian posterior
    (Li et al., 2012). `select` chooses an arm and explores, `partial_fit` learns from the reward,
    and `predict` returns the best arm so far. `fit` learns a whole log in order.

    Parameters
    ----------
    link : {"linear", "logistic", "probit"}, default="logistic"
        Reward model. "linear": θ plus Gaussian noise. "logistic": P(r = 1) = σ(θ). "probit":
        P(r = 1) = Φ(θ). The last two require rewards from 0 to 1; a fraction r counts as r
        successes and 1 - r failures.
    alpha : float or callable, default=0.2
        Amount of exploration, at least 0. "ucb" and "thompson" multiply the standard deviation of θ
        by it; for "squarecb" see Notes. A function, such as ``np.log1p``, is called with an array
        of numbers of learned events. Increase it for long horizons, and with "ucb" for contexts
        that hardly vary: 0.2 may settle for an arm close to the best, 2 does not.
    exploration : {"ucb", "epsilon_greedy", "thompson", "squarecb", "greedy"}, default="ucb"
        Rule by which `select` explores. "ucb": the largest upper confidence bound.
        "epsilon_greedy": a uniform choice with probability `epsilon`, else the best arm.
        "thompson": the largest draw from the posterior. "squarecb": probabilities by the inverse
        gap to the best arm. "greedy": no exploration. "ucb" is deterministic: its log cannot
        evaluate other policies.
    epsilon : float, default=0.1
        Probability of a uniform choice. Only "epsilon_greedy" uses it.
    ucb : {"U0", "U1", "U2", "U3"}, default="U0"
        Upper bound of the logistic model, with θ ~ N(m, v) and E the mean reward. U0: σ(m + α√v).
        U1: U0 plus α times an approximate standard deviation of σ(θ). U2: E (1 + α√(exp(v) - 1)).
        U3: σ(m) + α√v, which needs a very small α.
    mean : {"M0", "M1", "M2", "M3"}, default="M0"
        Mean reward of the logistic model. M0: σ(m). M1: σ(m/√(1 + πv/8)). M2: σ(m + v/2). M3:
        exp(m + v/2). M2 and M3 are for rare rewards.
    prior_mean : "auto", "adaptive", float or array-like, default="auto"
        Prior mean of all weights, or of each feature's, optionally followed by the constant's.
        "auto": 0; with `standardize`, an arm that comes when others are known, by ten events each,
        begins as their average. "adaptive" starts all arms but the first two from the average.
    prior_variance : "scaled", float, array-like or "adaptive", default="scaled"
        Prior variance of the weights. "scaled": s/n_features for each s of `prior_scale`, and √s
        for the constant. Numbers as for `prior_mean`. "adaptive": the empirical covariance of the
        learned arms' posterior means.
    prior_scale : float or array-like of floats, default=(1, 3, 10)
        Scales s of "scaled" prior variances. One model per scale is learned; choices weight them by
        how well they predicted rewards so far. One scale is faster.
    standardize : bool or "scale", default=True
        Whether to center and scale features by the contexts learned so far, and linear rewards by
        the rewards. "scale" does not center features: choose it for thousands of them that are
        mostly 0.
    noise_variance : "auto" or float, default="auto"
        Noise variance of linear rewards. "auto": that of the rewards learned so far, or 1 without
        `standardize`.
    covariance : {"diagonal", "full"}, default="diagonal"
        Whether an arm's weights are independent or correlated. Use "full" if features correlate;
        its cost per event is quadratic in their number.
    forgetting : "auto" or float, default="auto"
        Factor, from .001 to 1, by which an arm's earlier evidence is discounted at each of its
        events; 1 forgets nothing. "auto": 1, and one more model, of the middle prior scale, with
        .995; choices weight it like the scales, so that they follow a drift of rewards. It needs a
        logistic or probit link, several scales, a diagonal covariance and ``standardize=True``.
        With "auto", the policy also starts anew, with a warning, when rewards of an arm are no
        longer what it predicts.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    arms : array-like of labels, default=None
        Arms known in advance, among which an unfitted policy chooses by its prior.
    new_arms : {"add", "error"}, default="add"
        Whether new labels in `y` or `available` become arms or raise.
    update_every : float, str or timedelta, default=None
        Length of update windows, in seconds or as in "5min". Events are learned when their window
        ends, by the log's `timestamp`; None learns at once.
    columns : dict, default=None
        Names of a log's columns that differ, as in ``{"action": "arm_id"}``, for learning and
        evaluation.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices and ties. Copies of a seeded policy repeat its choices; give each
        server a seed of its own.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels of the arms, in ascending order if they have one, else as they came.
    coef_ : ndarray of shape (n_arms, n_features)
        Posterior means of the weights, in the units of `X`.
    intercept_ : ndarray of shape (n_arms,)
        Posterior mean of the constant feature's weight; 0 without one.
    covariance_ : ndarray of shape (n_arms, n_weights) or (n_arms, n_weights, n_weights)
        Posterior variances or covariances of the weights, the constant's last.
    scale_weights_ : ndarray of shape (n_scales,) or (n_scales + 1,)
        Weights of the prior scales, which sum to 1; the last may be of the model that forgets.
    n_updates_ : ndarray of shape (n_arms,)
        Number of events learned per arm.
    last_timestamp_ : float
        Time of the latest event in seconds, or nan.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.bandit.SharedGLMPolicy : One model of all arms, from features of the arms.
    skbandit.evaluation.replay : Estimates a policy's mean reward from a log.

    Notes
    -----
    The order of events matters. One `fit` equals several `partial_fit` on the same events in the
    same order, and a batch of choices equals the same choices one by one.

    With a linear link, `standardize` and a constant, rewards r and a r + b, with a > 0, lead to the
    same choices; all results are in the unit of the rewards. If `prior_mean`, `prior_variance` or
    `noise_variance` is a number, it is in that unit, and rewards are not standardized.

    "squarecb" plays arm a of K with probability 1/(K + γ (y_b - y_a)), where y are mean rewards,
    and the best arm b otherwise; γ = √(K n)/α² after n events, so α² is in units of the reward,
    or of the standard deviation of standardized ones.

    References
    ----------
    Li, Chu, Langford, Moon & Wang (2012). An unbiased offline evaluation of contextual bandit
    algorithms with generalized linear models. JMLR W&CP 26.

    Foster & Rakhlin (2020). Beyond UCB: Optimal and efficient contextual bandits with regression
    oracles. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit import GLMUCBPolicy
    >>> rng = np.random.default_rng(0)
    >>> policy = GLMUCBPolicy(arms=["news", "sports"], random_state=0)
    >>> for _ in range(200):
    ...     reader = rng.normal(size=(1, 2))
    ...     shown = policy.select(reader)
    ...     liked = reader[0, 0] > 0 if shown[0] == "news" else reader[0, 1] > 0
    ...     policy = policy.partial_fit(reader, pd.DataFrame({"action": shown, "reward": [liked]}))
    >>> policy.predict([[2.0, -1.0], [-1.0, 2.0]])
    array(['news', 'sports'], dtype=object)
    >>> policy.predict([[2.0, -1.0]], available=[("sports", "weather")])
    array(['weather'], dtype=object)
    """

    _posterior: Posterior

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PosteriorPolicy._parameter_constraints,
        "ucb": [StrOptions(set(_state.UCBS))],
        "mean": [StrOptions(set(_state.MEANS))],
        "prior_mean": [Real, "array-like", StrOptions({"adaptive", "auto"})],
        "prior_variance": [
            Interval(Real, 0, None, closed="neither"),
            "array-like",
            StrOptions({"adaptive", "scaled"}),
        ],
        "standardize": ["boolean", StrOptions({"scale"})],
        "fit_intercept": ["boolean"],
        "arms": ["array-like", None],
        "new_arms": [StrOptions({"add", "error"})],
    }

    def __init__(
        self,
        link: str = "logistic",
        alpha: float | Callable[[np.ndarray], ArrayLike] = 0.2,
        *,
        exploration: str = "ucb",
        epsilon: float = 0.1,
        ucb: str = "U0",
        mean: str = "M0",
        prior_mean: float | ArrayLike | str = "auto",
        prior_variance: float | ArrayLike | str = "scaled",
        prior_scale: float | ArrayLike = (1, 3, 10),
        standardize: bool | str = True,
        noise_variance: float | str = "auto",
        covariance: str = "diagonal",
        forgetting: float | str = "auto",
        fit_intercept: bool = True,
        arms: Sequence[Any] | None = None,
        new_arms: str = "add",
        update_every: float | str | timedelta | None = None,
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.link = link
        self.alpha = alpha
        self.exploration = exploration
        self.epsilon = epsilon
        self.ucb = ucb
        self.mean = mean
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.prior_scale = prior_scale
        self.standardize = standardize
        self.noise_variance = noise_variance
        self.covariance = covariance
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.arms = arms
        self.new_arms = new_arms
        self.update_every = update_every
        self.columns = columns
        self.random_state = random_state

    @property
    def coef_(self) -> np.ndarray:
        """Posterior means of the features' weights, of shape (n_arms, n_features)."""
        check_is_fitted(self)
        return _state.mean_weights(self._posterior)[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior means of the constant feature's weight, of shape (n_arms,)."""
        check_is_fitted(self)
        weights = _state.mean_weights(self._posterior)
        if weights.shape[1] == self.n_features_in_:
            return np.zeros(len(weights))
        return weights[:, -1].copy()

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of each arm's weights, or its diagonal; the constant's last."""
        check_is_fitted(self)
        return _state.weight_covariance(self._posterior)

    def _start(self) -> None:
        prior = _state.read_prior(self, self.n_features_in_)
        self._posterior = _state.no_posterior(
            self.n_features_in_ + bool(self.fit_intercept),
            self.covariance == "full",
            len(prior.variance),
            self.n_features_in_ if self.standardize else 0,
            centered=bool(self.fit_intercept) and self.standardize != "scale",
            rewards=_state.standardizes_rewards(self),
        )

    def _posterior_about(self, codes: logs.Codes) -> Posterior:
        if len(codes) == len(self._codes):
            return self._posterior
        from skbandit.bandit._posterior import with_arms

        return with_arms(self._posterior, list(codes)[len(self._codes) :], self._prior())

    def _prior(self) -> Prior:
        prior = _state.read_prior(self, self.n_features_in_)
        self._check_models(len(prior.variance))
        if _state.standardizes_rewards(self) != bool(len(self._posterior.reward)):
            raise ValueError(
                f"prior_mean={self.prior_mean!r}, prior_variance={self.prior_variance!r} and "
                f"noise_variance={self.noise_variance!r}: whether one of them is a number cannot "
                "change after learning, call fit to start afresh."
            )
        return prior

    def _merged(self, base: Posterior, workers: list[Posterior]) -> tuple[Posterior, np.ndarray]:
        from skbandit.bandit._posterior import merged

        prior = self._prior()
        if prior.adaptive_mean is not None:
            raise ValueError(
                f"prior_mean={self.prior_mean!r} and prior_variance={self.prior_variance!r}: with "
                "an adaptive prior, the start of new arms is not known. Merge needs a fixed prior."
            )
        return merged(base, workers, prior, list(_state.LINKS).index(self.link))
