"""The contextual bandit policy: a scikit-learn front for beliefs, a rule, and compiled passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._learner import ArmLearner
from skbandit.bandit._sequential import join
from skbandit.bandit._state import (
    EXPLORATIONS,
    LINKS,
    MEANS,
    N_CHOICES,
    UCBS,
    ArmSets,
    Beliefs,
    all_arms,
    read_interval,
    read_rule,
)
from skbandit.logs import (
    Codes,
    ReplayRequest,
    align_rows,
    code_labels,
    in_label_order,
    label_array,
    read_pools,
)
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class GLMUCBPolicy(ArmLearner):
    """Contextual bandit with one Bayesian GLM per arm and a choice of exploration strategies.

    Each arm has weights w ~ N(μ, Σ), and in a context x the linear predictor of its reward is
    θ = wᵀx ~ N(m, v). An event updates m and v of the arm that was played, and from them its
    weights (Li, Chu, Langford, Moon & Wang, 2012). Online, `select` returns the arm to play,
    `partial_fit` learns from the reward, and `predict` returns the best arm so far. `fit` learns
    a whole log in order.

    Parameters
    ----------
    link : {"linear", "logistic", "probit"}, default="logistic"
        Reward model: θ plus Gaussian noise (any rewards; exact updates), P(r = 1) = σ(θ)
        (Laplace approximation, eqs. 6-7) or P(r = 1) = Φ(θ) (assumed density filtering,
        eqs. 10-11). The last two require rewards from 0 to 1; a fraction r counts as r successes
        and 1 - r failures.
    alpha : float or callable, default=0.2
        Amount of exploration, at least 0: the multiple of the standard deviation of θ in upper
        confidence bounds and in Thompson sampling's draws (1 draws from the posterior itself), or
        the α of "squarecb" (see Notes). A function, such as ``np.log1p``, is called with an array
        of numbers of learned events.
    exploration : {"ucb", "epsilon_greedy", "thompson", "squarecb", "greedy"}, default="ucb"
        Rule by which `select` explores: the largest upper bound of the mean reward; any arm with
        probability `epsilon`, else the greedy choice; the largest draw from the posterior;
        inverse gap weighting of mean rewards (Foster & Rakhlin, 2020); or no exploration.
    epsilon : float, default=0.1
        Probability that an ε-greedy choice is uniform among the available arms. Other rules do
        without it; 0 is greedy.
    ucb : {"U0", "U1", "U2", "U3"}, default="U0"
        Upper bound of the logistic model, with E the mean reward of `mean`: U0 σ(m + α√v);
        U1 U0 plus α times an approximate standard deviation of σ(θ); U2 E (1 + α√(exp(v) - 1));
        U3 σ(m) + α√v, which needs a very small α (Filippi et al., 2010). The other links have
        one bound each: m + α√v, Φ(m + α√v).
    mean : {"M0", "M1", "M2", "M3"}, default="M0"
        Posterior mean reward of the logistic model: M0 σ(m), M1 σ(m/√(1 + πv/8)), M2 σ(m + v/2),
        M3 exp(m + v/2). M2 and M3 are for rare rewards: accurate to 1 % at m = -6, v = 1, they
        return .88 and 7.39 instead of .5 at m = 0, v = 4.
    prior_mean : float, array-like or "adaptive", default=0.0
        Prior mean of all weights, or one number per feature, optionally followed by the
        constant's. "adaptive": once two arms have been learned, a new arm starts from the
        average of the learned arms' posterior means (section 5.2).
    prior_variance : "scaled", float, array-like or "adaptive", default="scaled"
        Prior variance of the weights. "scaled": s/n_features for each s of `prior_scale`, and √s
        for the constant, so that with standardised features θ has a prior variance of about s + √s
        however many features there are. Or one number for all weights, or one per feature, as
        `prior_mean`. "adaptive": the empirical covariance of the learned arms' posterior means,
        with N(0, 1) counted as one arm. If logistic or probit rewards are rare, a wide prior is
        optimistic and explores by itself, even with `exploration="greedy"`; for linear rewards
        it is not: raise the `prior_mean` of the constant feature instead.
    prior_scale : float or array-like of floats, default=(1, 3, 10)
        Scales s of "scaled" prior variances, learned side by side and weighed by how well they
        predicted all rewards so far (see Notes). One scale takes less time. The scale 0 leaves the
        features out: with (0, 1, 3, 10) a policy finds out whether they tell anything of the
        rewards. It needs a constant and, with linear rewards, the right `noise_variance`.
    standardize : bool or "scale", default=True
        Whether to centre and scale features by the mean and the standard deviation of the learned
        contexts. These units are renewed at learned events 8, 16, 32, ...; before the eighth, arms
        are compared by their constants alone. "scale" only scales, to a mean square of 1, so that
        sparse contexts stay sparse (see Notes); without a constant (`fit_intercept=False`), True
        does the same. Priors refer to standardised features.
    noise_variance : float, default=1.0
        Noise variance of linear rewards.
    covariance : {"diagonal", "full"}, default="diagonal"
        Whether the weights of an arm are independent or correlated. The cost per event is linear
        or quadratic in the number of features.
    forgetting : float, default=1.0
        Factor by which an arm's earlier evidence is discounted whenever the arm is learned, for
        rewards that drift: a factor g, from .001 to 1, keeps the evidence of about 1/(1 - g)
        events.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    arms : array-like of labels, default=None
        Arms known in advance.
    new_arms : {"add", "error"}, default="add"
        Whether other arms may appear at any time, in `y` or in `available`, or are errors.
    update_every : float, str or timedelta, default=None
        Length of update windows, in seconds of the log's `timestamp` or as in "5min": events are
        learned when their window ends, and choices use the old beliefs until then (section 5.1).
        None learns at once.
    columns : dict, default=None
        Names of a log's columns that differ, as in
        ``{"action": "arm_id", "reward": "clicked"}``: `fit`, `partial_fit`, and the functions and
        scorers that evaluate the policy read logs by them.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices, including those between ties. With None every copy of a policy,
        pickled or not, draws afresh. With a number or an instance a copy repeats what the original
        goes on to draw: servers that load the same file then choose alike, so give each a
        `random_state` of its own by `set_params`, which takes effect at the next choice.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels, in the order in which they were named or first learned. New arms are appended.
    coef_ : ndarray of shape (n_arms, n_features)
        Posterior means of the weights, in the units of `X`.
    intercept_ : ndarray of shape (n_arms,)
        Posterior mean of the constant feature's weight; 0 if there is none.
    covariance_ : ndarray of shape (n_arms, n_weights) or (n_arms, n_weights, n_weights)
        Posterior variances, or covariances, of the weights in the units of `X`, the constant
        feature's last.
    scale_weights_ : ndarray of shape (n_scales,)
        Weights of the prior scales, which sum to 1.
    n_updates_ : ndarray of shape (n_arms,)
        Number of events learned per arm.
    last_timestamp_ : float
        Time of the latest event, in seconds; nan if no event had a timestamp.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.bandit.select : The exploring choice of a policy behind transformers.
    skbandit.evaluation.replay : Estimate what a policy would have earned on a log.
    skbandit.evaluation.ReplayScorer : The same for `GridSearchCV`.

    Notes
    -----
    Learning is sequential: the same events in the same order lead to the same state to the bit,
    by one `fit` or several `partial_fit`, before or after pickling. Another order leads to
    another state.

    With running units, contexts are standardised by those learned before, and the weights of all
    arms are carried over at each renewal: mean rewards stay the same functions of `X`. So do full
    covariances; a diagonal one keeps, weight by weight, what the data told. Prior scales are mixed
    by Bayes' rule: the weight of a scale is proportional to the likelihood that it gave to all
    rewards so far, each predicted before it was learned, and m and v are the moments of the
    mixture. Scales of a weight below .001 are left out of choices. The scale 0 starts with a
    thousandth of the others' odds, and counts an event as half an event, so that it goes on
    exploring (Grünwald & van Ommen, 2017).

    The published algorithm, on features as they are, is
    ``GLMUCBPolicy(prior_variance=1.0, standardize=False, alpha=1.0)``; textbook LinUCB is this with
    ``link="linear", covariance="full"``.

    Sparse contexts give the same bits as dense ones, so True centres them, too: their rows become
    dense, 8 MB at a time, and time grows with the number of features. With ``standardize="scale"``
    or False, a diagonal covariance and a fixed prior without forgetting, it grows with the number
    of nonzero entries of `select` and `partial_fit`: for thousands of features that are mostly 0,
    whose mean is small beside their standard deviation, choose "scale".

    The log that a policy writes can evaluate others only if every arm had a chance. "ucb"
    is deterministic: use "squarecb", "thompson" or "epsilon_greedy" if the log must be useful.

    An unfitted policy acts by its prior once it knows arms, from `arms` or `available`.

    Random numbers are functions of the seed, the number of choices made before, and the arm's
    label. A batch of choices therefore equals choices one by one, and two policies with the same
    seed see the same random numbers. Those of `replay` are its own: see there.

    Threads may share a policy: they learn one after the other, and each choice has its own random
    numbers. Choices never wait for a fit, as they are made by the state before it.

    `arms_` and choices are NumPy arrays; ``select(X).tolist()`` returns the labels as they were
    given, ready for JSON.

    A step takes (m, v, r) to m⁺ = m + v g and v⁺ = v - v² h, and the weights to μ + g Σx and
    Σ - h Σx xᵀΣ (only the diagonal of a diagonal Σ). A full Σ is stored as L with Σ = L Lᵀ, so
    that it stays positive definite. The constant 1/2 in eqs. 5-6, 1/(1 + v) in eq. 11 and Σx in
    eq. 8 are misprinted in the paper.

    SquareCB plays arm a, of K available, with probability 1/(K + γ (y_b - y_a)), where y are
    posterior mean rewards, and the best arm b with the remaining probability. γ = √(K n)/α² after
    n learned events: the γ = √(K T/R) of the paper's Theorem 1, with T replaced by n and the bound
    R on the squared-loss regret of the reward model by α⁴. So α² is in units of the reward;
    ``alpha=0`` is greedy, and a large `alpha` approaches uniform choices. Exploring costs at most
    (K - 1)/γ per round. As R grows with log n for linear models, a slowly growing function is a
    sound `alpha`, too.

    References
    ----------
    P. Grünwald, T. van Ommen (2017). Inconsistency of Bayesian inference for misspecified linear
    models, and a proposal for repairing it. Bayesian Analysis 12, 1069-1103.

    L. Li, W. Chu, J. Langford, T. Moon, X. Wang (2012). An unbiased offline evaluation of
    contextual bandit algorithms with generalized linear models. JMLR W&CP 26, 19-36.

    D. Foster, A. Rakhlin (2020). Beyond UCB: Optimal and efficient contextual bandits with
    regression oracles. ICML, PMLR 119, 3199-3210.

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
            StrOptions({"adaptive", "scaled"}),
        ],
        "prior_scale": [Interval(Real, 0, None, closed="left"), "array-like"],
        "standardize": ["boolean", StrOptions({"scale"})],
        "noise_variance": [Interval(Real, 0, None, closed="neither")],
        "covariance": [StrOptions({"diagonal", "full"})],
        "forgetting": [Interval(Real, 1e-3, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "arms": ["array-like", None],
        "new_arms": [StrOptions({"add", "error"})],
        "update_every": [Interval(Real, 0, None, closed="neither"), str, timedelta, None],
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
        prior_mean: float | ArrayLike | str = 0.0,
        prior_variance: float | ArrayLike | str = "scaled",
        prior_scale: float | ArrayLike = (1, 3, 10),
        standardize: bool | str = True,
        noise_variance: float = 1.0,
        covariance: str = "diagonal",
        forgetting: float = 1.0,
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
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the arm of the largest posterior mean reward, without exploring.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels; ties go to the arm that comes first in `arms_`.
        """
        return self._choose(X, available, exploring=False)

    def select(self, X: Any, *, available: Any = None) -> np.ndarray:
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
            the order of `arms_`. New arms have the prior. None makes all of `arms_` available.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels. Ties are broken at random.
        """
        return self._choose(X, available, exploring=True)

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
            On the reward's scale; columns as `arms_`. `mean="M3"` may exceed 1.
        """
        from skbandit.bandit.links import mean_rewards

        index = self.decision_function(X)
        return mean_rewards(index, read_rule(self))

    def select_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Return the probability that `select` chooses each arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`. Rows may sum to less than 1; the remainder is the probability of
            arms not in `arms_`. Exact, except that Thompson sampling's are integrated
            numerically, with an error of at most .002.
        """
        from skbandit.bandit._contexts import probability_rows

        available = align_rows(available, X)
        X = self._ready(X, available)
        now = self._now()
        sets, codes = now._available(X.shape[0], available)

        def compute() -> np.ndarray:
            beliefs = now._beliefs_about(codes)
            return probability_rows(X, sets, now._alphas()[0], beliefs, read_rule(now))

        return self._guard.read(compute)[:, : len(now._codes)]

    def _ready(self, X: Any, available: Any) -> Any:
        """Check contexts, and start an unfitted policy that knows arms from its prior."""
        if not self.__sklearn_is_fitted__():
            if self.arms is None and available is None:
                raise NotFittedError(
                    f"This {type(self).__name__} knows no arms: fit it, or pass arms= or "
                    "available= to act by the prior."
                )
            with self._guard.learning:
                if not self.__sklearn_is_fitted__():  # another thread may have begun
                    with atomic_fit(self) as draft:
                        draft._validate_params()
                        draft._begin(X)
        return self._rows(X)

    def _available(self, n_rows: int, available: Any) -> tuple[ArmSets, Codes]:
        """Sets of available arms per row, and numbers of the known arms and then the new ones."""
        if available is None:
            return all_arms(n_rows, len(self._codes)), self._codes
        codes = dict(self._codes)
        pools = read_pools(available, n_rows, codes)
        if len(codes) > len(self._codes):
            self._check_new_arms(codes)
            codes, pools = in_label_order(codes, pools, len(self._codes))
        return ArmSets(pools.of_event, pools.start, pools.arms.astype(np.int64)), codes

    def _beliefs_about(self, codes: Codes) -> Beliefs:
        """Beliefs about the known arms and new ones."""
        if len(codes) == len(self._codes):
            return self._beliefs
        from skbandit.bandit._posterior import with_arms

        return with_arms(self._beliefs, list(codes)[len(self._codes) :], self._prior())

    def _choose(self, X: Any, available: Any, exploring: bool) -> np.ndarray:
        """Labels of the chosen arms."""
        from skbandit.bandit._contexts import choose_rows

        available = align_rows(available, X)
        X = self._ready(X, available)
        now = self._now()
        sets, codes = now._available(X.shape[0], available)
        labels = now._labels if len(codes) == len(now._codes) else label_array(codes)
        seed, t = now._stream.take(X.shape[0], now.random_state) if exploring else (0, -1)
        rule = read_rule(now, seed)

        def compute() -> np.ndarray:
            alpha = float(now._alphas()[0])
            return choose_rows(X, sets, t, alpha, now._beliefs_about(codes), rule)

        return labels[self._guard.read(compute)]

    def _scores(self, X: Any, seed: int, t: int) -> np.ndarray:
        """Scores of all arms in choices t, t + 1, ..., or in greedy ones if t is -1."""
        from skbandit.bandit._contexts import score_rows

        check_is_fitted(self)
        X, now = self._rows(X), self._now()
        rule = read_rule(now, seed)
        return self._guard.read(lambda: score_rows(X, t, now._alphas()[0], now._beliefs, rule))

    def _replay_log(self, request: ReplayRequest) -> tuple[np.ndarray, int] | None:
        """Replay a log in one compiled pass; see `skbandit.logs._blocks.ReplaysLogs`.

        Subclasses that choose or learn differently are replayed event by event.
        """
        own = ("select", "predict", "partial_fit", "advance")
        if any(getattr(type(self), name) is not getattr(GLMUCBPolicy, name) for name in own):
            return None
        from skbandit.bandit._compiled_replay import replay_compiled
        from skbandit.bandit.links import check_rewards

        log, rows = request.log, request.rows
        X = self._ready(request.X, log.arms)
        check_rewards(self.link, log.reward)
        codes = dict(self._codes)
        code_labels(log.arms, codes)
        self._check_new_arms(codes)
        every = read_interval(self.update_every)
        ordered = every is not None or self.forgetting < 1
        if ordered and log.timestamp is not None and self._latest is not None:
            if len(rows) and log.timestamp[rows[0]] < self._latest:
                return None  # `partial_fit` raises the error
        delayed = None
        if self._waiting and every is None:
            self._learn_waiting()
        elif self._waiting and every is not None:
            delayed = join(self._waiting)
            if log.timestamp is None or (delayed.weight != 1).any():
                return None
        seed, n_choices = self._stream.take(0, self.random_state)
        beliefs = self._beliefs._replace(counters=self._beliefs.counters.copy())
        beliefs.counters[N_CHOICES] = n_choices
        replayed = replay_compiled(
            request,
            X,
            every=every,
            delayed=delayed,
            alphas=self._alphas(len(rows)),
            codes=self._codes,
            beliefs=beliefs,
            prior=self._prior(),
            rule=read_rule(self, seed),
        )
        self._codes, self._beliefs = replayed.codes, replayed.beliefs
        self._stream.take(int(self._beliefs.counters[N_CHOICES]) - n_choices, self.random_state)
        self._labels = label_array(self._codes)
        self._waiting = [] if replayed.delayed is None else [replayed.delayed]
        if log.timestamp is not None and request.learn:
            learned = replayed.accepted[~request.deployment[replayed.accepted]]
            self._note_times(log.timestamp[rows[learned]])
        return replayed.accepted, replayed.n_seen
