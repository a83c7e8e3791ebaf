"""A policy with one model of all arms, over features of contexts and arms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from skbandit.bandit._state import LINKS, explorations_by
from skbandit.bandit.shared._learner import SharedLearner
from skbandit.utils._sklearn_compat import Interval, StrOptions

if TYPE_CHECKING:
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
        return self._choose(X, available, exploring=False, arm_features=arm_features)

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
        return self._choose(X, available, exploring=True, arm_features=arm_features)

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
        return self._choice_probabilities(X, available, arm_features=arm_features)
