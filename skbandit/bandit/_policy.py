"""The contextual bandit policy: plumbing around beliefs, a rule, and compiled passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from numbers import Real
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, ndtr, ndtri
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._delayed import check_rewards, join, windows_of
from skbandit.bandit._learner import ArmLearner
from skbandit.bandit._parameters import read_interval, read_rule
from skbandit.bandit._state import EXPLORATIONS, LINKS, MEANS, UCBS, Beliefs, Choices, with_arms
from skbandit.logs import Log, label_array, read_pools
from skbandit.utils._atomic_fit import all_or_nothing
from skbandit.utils._sklearn_compat import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Thompson sampling's probabilities are within 1/(2 * this) of the truth.
_QUANTILES = 250
# Choices of several threads are counted one after the other, so that no two share their chance.
_COUNTING = Lock()


class GLMUCBPolicy(ArmLearner):
    """Choose arms by context and learn from rewards: a Bayesian GLM an arm, several explorations.

    Each arm a has weights w ~ N(μ, Σ), and for a context x the reward's linear predictor is
    θ = wᵀx ~ N(m, v). An event updates m and v of the arm that was played, and is lifted from
    there to its weights (Li, Chu, Langford, Moon & Wang, 2012). Contexts, arms and rewards come
    one event after the other: `select` says what to play, `partial_fit` learns from what came of
    it, `predict` says what is best by now. `fit` learns a whole log in order.

    Parameters
    ----------
    link : {"linear", "logistic", "probit"}, default="logistic"
        Reward model: θ plus Gaussian noise (any rewards; updated exactly), P(r = 1) = σ(θ)
        (Laplace's approximation, eqs. 6-7) or P(r = 1) = Φ(θ) (assumed density filtering,
        eqs. 10-11). The last two take rewards from 0 to 1; a fraction counts as that share of a
        success, and of a failure.
    alpha : float or callable, default=1.0
        Multiple of the standard deviation in upper confidence bounds, at least 0. A function is
        called on an array of numbers of learned events, as ``np.log1p``, and makes it grow.
    exploration : {"ucb", "epsilon_greedy", "thompson", "greedy"}, default="ucb"
        How `select` explores: the largest upper bound of the mean reward; the greedy choice,
        but with probability `epsilon` any arm; the largest draw from the posterior; not at all.
    epsilon : float, default=0.0
        Share of ε-greedy choices that are made uniformly among the available arms.
    ucb : {"U0", "U1", "U2", "U3"}, default="U0"
        Upper bound of the logistic model, with E the mean reward of `mean`: U0 σ(m + α√v);
        U1 U0 plus α times an approximate standard deviation of σ(θ); U2 E (1 + α√(exp(v) - 1));
        U3 σ(m) + α√v, which wants a very small α (Filippi et al., 2010). The other links have
        one each: m + α√v, Φ(m + α√v).
    mean : {"M0", "M1", "M2", "M3"}, default="M0"
        Posterior mean reward of the logistic model: M0 σ(m), M1 σ(m/√(1 + πv/8)), M2 σ(m + v/2),
        M3 exp(m + v/2). M2 and M3 are for rare rewards: good to 1 % at m = -6, v = 1, they give
        .88 and 7.39 for .5 at m = 0, v = 4.
    prior_mean : float, array-like or "adaptive", default=0.0
        Of all weights, or of each feature's, or of each feature's and then the constant's.
        "adaptive": a new arm starts from the average of the posterior means of the arms that
        have been learned by then (section 5.2), from two arms on.
    prior_variance : float, array-like or "adaptive", default=1.0
        Likewise. "adaptive": their empirical covariance, with N(0, 1) counted as one arm.
        A wide prior is optimistic for logistic and probit rewards that are rare: it explores by
        itself, even with `exploration="greedy"`. For linear rewards it is not: there, raise
        `prior_mean` of the constant feature.
    noise_variance : float, default=1.0
        Of linear rewards.
    covariance : {"diagonal", "full"}, default="diagonal"
        Whether weights of an arm count as independent: linear or quadratic cost in the features.
    forgetting : float, default=1.0
        Below 1, whenever an arm is learned its earlier evidence is discounted by this factor,
        for rewards that drift: with g, the evidence of about 1/(1 - g) events is kept.
    fit_intercept : bool, default=True
        Whether a constant feature is added.
    arms : array-like of labels, default=None
        Arms known beforehand; others may appear at any time, in `y` or in `available`.
    update_every : float, str or timedelta, default=None
        Learn at the end of windows of so many seconds (or of a length like "5min") of the log's
        `timestamp`, and choose by the old beliefs until then (section 5.1). None learns at once.
    random_state : int, RandomState instance or None, default=None
        Of draws, of blind choices, and of choices between equals.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels, in the order in which they were named or first learned. New ones are appended.
    coef_ : ndarray of shape (n_arms, n_features)
        Posterior means of the weights.
    intercept_ : ndarray of shape (n_arms,)
        Posterior mean of the constant feature's weight, 0 without one.
    covariance_ : ndarray of shape (n_arms, n_weights) or (n_arms, n_weights, n_weights)
        Posterior variances, or covariances, of the weights, the constant feature's last.
    n_updates_ : ndarray of shape (n_arms,)
        Number of events learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` has string names.

    See Also
    --------
    skbandit.evaluation.replay : What a policy would have earned on a log, learning as it goes.
    skbandit.evaluation.ReplayScorer : The same for `GridSearchCV`.

    Notes
    -----
    Learning is sequential: the same events in the same order give the same state to the bit, by
    one `fit` or many `partial_fit`, before or after pickling. In another order they give another
    state, if one that is as good.

    A policy that was not fitted acts by its prior once it knows of arms, by `arms` or `available`.

    Random numbers are functions of the seed, of how many choices were made before, and of the
    arm's label. So a batch of choices is the same as one by one, and two policies with the same
    seed face the same chance.

    A step takes (m, v, r) to m⁺ = m + v g and v⁺ = v - v² h, and the weights to μ + g Σx and
    Σ - h Σx xᵀΣ (of diagonal Σ, its diagonal). A full Σ is kept as L with Σ = L Lᵀ, so that
    it stays positive definite. The constant 1/2 in eqs. 5-6, 1/(1 + v) in eq. 11 and Σx in eq. 8
    are misprinted in the paper.

    References
    ----------
    L. Li, W. Chu, J. Langford, T. Moon, X. Wang (2012). An unbiased offline evaluation of
    contextual bandit algorithms with generalized linear models. JMLR W&CP 26, 19-36.

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

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "link": [StrOptions(set(LINKS))],
        "alpha": [Interval(Real, 0, None, closed="left"), callable],
        "exploration": [StrOptions({*EXPLORATIONS, "greedy"})],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "ucb": [StrOptions(set(UCBS))],
        "mean": [StrOptions(set(MEANS))],
        "prior_mean": [Real, "array-like", StrOptions({"adaptive"})],
        "prior_variance": [
            Interval(Real, 0, None, closed="neither"),
            "array-like",
            StrOptions({"adaptive"}),
        ],
        "noise_variance": [Interval(Real, 0, None, closed="neither")],
        "covariance": [StrOptions({"diagonal", "full"})],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "fit_intercept": ["boolean"],
        "arms": ["array-like", None],
        "update_every": [Interval(Real, 0, None, closed="neither"), str, timedelta, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        link: str = "logistic",
        alpha: float | Callable[[np.ndarray], ArrayLike] = 1.0,
        *,
        exploration: str = "ucb",
        epsilon: float = 0.0,
        ucb: str = "U0",
        mean: str = "M0",
        prior_mean: float | ArrayLike | str = 0.0,
        prior_variance: float | ArrayLike | str = 1.0,
        noise_variance: float = 1.0,
        covariance: str = "diagonal",
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        arms: Sequence[Any] | None = None,
        update_every: float | str | timedelta | None = None,
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
        self.noise_variance = noise_variance
        self.covariance = covariance
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.arms = arms
        self.update_every = update_every
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """The arm of largest posterior mean reward: what is best to do, not to learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            What can be chosen, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels; of equals, the arm that comes first in `arms_`.
        """
        return self._choose(X, available, exploring=False)

    def select(self, X: Any, *, available: Any = None) -> np.ndarray:
        """The arm to play: the exploring choice.

        Choices are counted, so that each has random numbers of its own: those of a batch are
        the same as if they were made one by one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.
        available : sequence of tuples of arm labels, or boolean array or DataFrame, default=None
            What can be chosen: one tuple a row, or one column an arm, those of an array in
            the order of `arms_`. Arms that are new are judged by the prior. None is all of
            `arms_`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels. Equals are chosen from at random.
        """
        return self._choose(X, available, exploring=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """What `predict` compares: the linear predictor of the posterior mean reward.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Larger is better; columns as `arms_`. See `predict_reward` for the reward's scale.
        """
        return self._scores(X, -1)

    def select_scores(self, X: Any) -> np.ndarray:
        """What the next `select` compares, on a scale that increases in the upper bound.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`. Thompson sampling: one draw of each. ε-greedy: scores of its
            greedy choices.
        """
        check_is_fitted(self)
        return self._scores(X, int(self._beliefs.clock[1]))

    def predict_reward(self, X: Any) -> np.ndarray:
        """Posterior mean reward of every arm.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            On the reward's scale; columns as `arms_`. `mean="M3"` may exceed 1.
        """
        index = self.decision_function(X)
        if self.link == "linear":
            return index
        if self.link == "probit":
            return ndtr(index)
        return np.exp(index) if self.mean == "M3" else expit(index)

    def select_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Probability that `select` chooses each arm.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            What can be chosen, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; what a row lacks to 1 is the probability of arms that are new.
            Exact but for Thompson sampling, where an integral is taken numerically, to .002.
        """
        from skbandit.bandit._probabilities import choice_probabilities

        X = self._ready(X, available)
        beliefs, choices, _ = self._choices(len(X), available)
        n_quantiles = _QUANTILES if self.exploration == "thompson" else 1
        quantiles = ndtri((np.arange(n_quantiles) + 0.5) / n_quantiles)
        likely = choice_probabilities(
            X, choices, quantiles, self._alphas()[0], beliefs, read_rule(self, self._seed)
        )
        return likely[:, : len(self._codes)]

    def _ready(self, X: Any, available: Any) -> np.ndarray:
        """Contexts, checked, for a policy that knows of arms at least."""
        if not self.__sklearn_is_fitted__():
            if self.arms is None and available is None:
                raise NotFittedError(
                    f"This {type(self).__name__} knows no arms: fit it, or name them by arms=, or "
                    "pass available=; it then acts by its prior."
                )
            with all_or_nothing(self) as draft:
                draft._validate_params()
                draft._begin(X)
        return self._rows(X)

    def _choices(self, n_rows: int, available: Any) -> tuple[Beliefs, Choices, np.ndarray]:
        """What is believed of the arms to choose from, the sets of them, and their labels."""
        if available is None:
            n_arms = len(self._codes)
            sets = Choices(np.zeros(n_rows, np.int32), np.array([0, n_arms]), np.arange(n_arms))
            return self._beliefs, sets, self._labels
        codes = dict(self._codes)
        pools = read_pools(available, n_rows, codes)
        sets = Choices(pools.of_event, pools.start, pools.arms)
        if len(codes) == len(self._codes):
            return self._beliefs, sets, self._labels
        beliefs = with_arms(self._beliefs, list(codes)[len(self._codes) :], self._prior())
        return beliefs, sets, label_array(codes)

    def _choose(self, X: Any, available: Any, exploring: bool) -> np.ndarray:
        """Labels of the arms chosen."""
        from skbandit.bandit._kernels import choose_rows

        X = self._ready(X, available)
        beliefs, sets, labels = self._choices(len(X), available)
        alpha, rule = self._alphas()[0], read_rule(self, self._seed)
        t = self._count_choices(len(X)) if exploring else -1
        return labels[choose_rows(X, sets, t, alpha, beliefs, rule)]

    def _count_choices(self, n: int) -> int:
        """Number of the first of so many further choices."""
        clock = self._beliefs.clock
        with _COUNTING:
            t = int(clock[1])
            clock[1] += n
        return t

    def _scores(self, X: Any, t: int) -> np.ndarray:
        """Scores of all arms for choices t, t + 1, ..., or for greedy ones."""
        from skbandit.bandit._kernels import score_rows

        check_is_fitted(self)
        rule = read_rule(self, self._seed)
        return score_rows(self._rows(X), t, self._alphas()[0], self._beliefs, rule)

    def _walk_log(
        self,
        X: Any,
        log: Log,
        rows: np.ndarray,
        keep: np.ndarray,
        deployment: np.ndarray,
        *,
        rule: str,
        learn: bool,
        max_accepted: int | None,
    ) -> tuple[np.ndarray, int] | None:
        """Replay in one compiled pass, as `evaluation.replay` asks for it; a subclass does not.

        Decisions are those of `select`, `predict` and `partial_fit`, event for event, and so is
        what this policy has learned in the end.
        """
        own = ("select", "predict", "partial_fit", "advance")
        if any(getattr(type(self), name) is not getattr(GLMUCBPolicy, name) for name in own):
            return None
        from skbandit.bandit._compiled_replay import replay_pass

        X = self._ready(X, log.arms)
        check_rewards(self.link, log.reward)
        every = read_interval(self.update_every)
        waiting = None
        if self._waiting and every is None:
            self._learn_waiting()
        elif self._waiting and every is not None:
            waiting = join(self._waiting)
            if log.timestamp is None or (waiting.weight != 1).any():
                return None
            if windows_of(log.timestamp[rows[:1]], every)[0] < waiting.window[0]:
                return None  # `partial_fit` says what is wrong
        passed = replay_pass(
            X,
            log,
            rows,
            keep,
            deployment | (rule == "predict"),
            deployment,
            max_accepted=len(rows) if max_accepted is None else max_accepted,
            learn=learn,
            every=every,
            waiting=waiting,
            alphas=self._alphas(len(rows)),
            codes=self._codes,
            beliefs=self._beliefs,
            prior=self._prior(),
            rule=read_rule(self, self._seed),
        )
        self._codes, self._beliefs = passed.codes, passed.beliefs
        self._labels = label_array(self._codes)
        self._waiting = [] if passed.waiting is None else [passed.waiting]
        return passed.accepted, passed.n_seen
