"""The contextual bandit policy with one model per arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._events import EncodedLog, Events
from skbandit.bandit._posterior_policy import PosteriorPolicy
from skbandit.bandit._state import (
    LINKS,
    MEANS,
    N_CHOICES,
    UCBS,
    ChoiceRule,
    Posterior,
    Prior,
    explorations_by,
    mean_weights,
    no_posterior,
    read_prior,
    read_rule,
    standardizes_rewards,
    weight_covariance,
)
from skbandit.logs import Codes, ReplayRequest
from skbandit.utils._sklearn_compat import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
        Labels: the arms of `arms`, or of the first events learned, in ascending order if they have
        one; then later arms as they came.
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
        "link": [StrOptions(set(LINKS))],
        "alpha": [Interval(Real, 0, None, closed="left"), callable],
        "exploration": [StrOptions(explorations_by("moments", "means"))],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "ucb": [StrOptions(set(UCBS))],
        "mean": [StrOptions(set(MEANS))],
        "prior_mean": [Real, "array-like", StrOptions({"adaptive", "auto"})],
        "prior_variance": [
            Interval(Real, 0, None, closed="neither"),
            "array-like",
            StrOptions({"adaptive", "scaled"}),
        ],
        "prior_scale": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "standardize": ["boolean", StrOptions({"scale"})],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "covariance": [StrOptions({"diagonal", "full"})],
        "forgetting": [Interval(Real, 1e-3, 1, closed="both"), StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "arms": ["array-like", None],
        "new_arms": [StrOptions({"add", "error"})],
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its arrays are its own, too."""
        state = super().__getstate__()
        if "_posterior" in state:
            arrays = state["_posterior"]
            state["_posterior"] = self._guard.read(arrays.copy)
        return state

    @property
    def coef_(self) -> np.ndarray:
        """Posterior means of the features' weights, of shape (n_arms, n_features)."""
        check_is_fitted(self)
        return mean_weights(self._posterior)[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior means of the constant feature's weight, of shape (n_arms,)."""
        check_is_fitted(self)
        weights = mean_weights(self._posterior)
        if weights.shape[1] == self.n_features_in_:
            return np.zeros(len(weights))
        return weights[:, -1].copy()

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of each arm's weights, or its diagonal; the constant's last."""
        check_is_fitted(self)
        return weight_covariance(self._posterior)

    @property
    def scale_weights_(self) -> np.ndarray:
        """Weight of each prior scale by its evidence; the last may be of the model that forgets."""
        check_is_fitted(self)
        return self._posterior.share.copy()

    def _start(self) -> None:
        prior = read_prior(self, self.n_features_in_)
        self._posterior = no_posterior(
            self.n_features_in_ + bool(self.fit_intercept),
            self.covariance == "full",
            len(prior.variance),
            self.n_features_in_ if self.standardize else 0,
            centered=bool(self.fit_intercept) and self.standardize != "scale",
            rewards=standardizes_rewards(self),
        )

    def _posterior_about(self, codes: Codes) -> Posterior:
        if len(codes) == len(self._codes):
            return self._posterior
        from skbandit.bandit._posterior import with_arms

        return with_arms(self._posterior, list(codes)[len(self._codes) :], self._prior())

    def _prior(self) -> Prior:
        prior = read_prior(self, self.n_features_in_)
        n_scales = len(self._posterior.share)
        if len(prior.variance) != n_scales:
            raise ValueError(
                f"prior_scale={self.prior_scale!r}, prior_variance={self.prior_variance!r} and "
                f"forgetting={self.forgetting!r} are {len(prior.variance)} models, but the policy "
                f"has learned with {n_scales}: call fit to start afresh."
            )
        if standardizes_rewards(self) != bool(len(self._posterior.reward)):
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
        return merged(base, workers, prior, LINKS.index(self.link))

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        from skbandit.bandit._passes import learn_rows

        if len(events):
            action = self._number(events.arms)
            prior, rule = self._prior(), read_rule(self)
            self._alphas(len(events))  # raise errors now, not in the next choice
            # Learning works in place, and an interrupt may follow it. Copy where that costs less
            # than learning; delayed events always, as they would be learned twice, and sparse
            # ones, which are learned in several calls.
            apart = bool(self._waiting) or len(events) >= len(self._codes) or issparse(events.X)
            if apart:
                self._posterior = self._posterior.copy()
            with nullcontext() if apart else self._guard.writing():
                learn_rows(
                    events.X, action, events.reward, events.weight, self._posterior, prior, rule,
                    at_once=not apart,
                )  # fmt: skip

    def _replay(
        self,
        request: ReplayRequest,
        log: EncodedLog,
        codes: Codes,
        rule: ChoiceRule,
        n_choices: int,
    ) -> tuple[np.ndarray, int]:
        from skbandit.bandit._passes import replay_present_features

        posterior = self._posterior._replace(counters=self._posterior.counters.copy())
        posterior.counters[N_CHOICES] = n_choices
        alphas = self._alphas(len(request.rows))
        accepted, n_seen, codes, posterior = replay_present_features(
            request, log, len(self._codes), codes, alphas, posterior, self._prior(), rule
        )
        self._posterior = posterior
        self._know(codes)
        return accepted, n_seen
