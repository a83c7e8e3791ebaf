"""A policy that shows m arms at a time, over the models of a policy for single arms."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skbandit import logs
from skbandit.bandit._arm_keys import arm_key
from skbandit.bandit._guard import ChoiceStream, GuardedPolicy, lock_of
from skbandit.bandit._policy import GLMUCBPolicy
from skbandit.bandit._shared_policy import SharedGLMPolicy
from skbandit.bandit._state import ChoiceRule, read_rule
from skbandit.utils import _validation
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import HasMethods, Interval, count_rows, fit_context, rows_of

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


FEEDBACK = ("semi_bandit", "cascade")


class SlatePolicy(GuardedPolicy):
    """Contextual bandit that chooses a slate of several arms and learns from the feedback.

    A policy for single arms predicts the reward of each arm, and its exploration rule chooses the
    slate. The feedback is a reward per shown arm, or the first click of a visitor who looks from
    the top down.

    Parameters
    ----------
    policy : GLMUCBPolicy or SharedGLMPolicy, default=None
        Models of single arms, and the rule by which `select` explores. None uses
        ``GLMUCBPolicy(exploration="thompson")``.
    n_select : int, default=3
        Number of arms per slate, m.
    feedback : {"semi_bandit", "cascade"}, default="semi_bandit"
        Observed feedback. "semi_bandit": the reward of each shown arm, or nan if it is unknown.
        "cascade": the first click; arms below it count as not examined.
    columns : dict, default=None
        Names of a log's columns that differ, as in ``{"action": "arm_id"}``, for learning and
        evaluation.
    random_state : int, RandomState instance or None, default=None
        Seed of random choices; that of `policy` is not used.

    Attributes
    ----------
    policy_ : GLMUCBPolicy or SharedGLMPolicy
        The fitted models.
    arms_ : ndarray of shape (n_arms,)
        Labels, ordered as in `GLMUCBPolicy`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    skbandit.RegressionSetSelector : Learns sets from costs of all ads, without exploring.
    skbandit.evaluation.replay_slates : Evaluates a learning policy on logged slates.
    skbandit.evaluation.slate_ips : Evaluates a fixed policy on logged slates.

    Notes
    -----
    The exploration rule chooses among the available arms as follows:

    - "thompson": the m largest of one draw per arm from its posterior.
    - "ucb", "greedy": the m largest upper bounds, or mean rewards.
    - "squarecb": arm a with probability min(1, 1/(γ (λ - y_a))), where y are mean rewards, λ makes
      the probabilities sum to m, and γ = √(K n/m)/α² after n learned rewards. The slate is a
      systematic sample with these probabilities.
    - "epsilon_greedy": a uniform slate with probability ε, else the m largest mean rewards.

    A slate never contains an arm twice. Its arms are ordered by the draws, upper bounds or mean
    rewards that the rule compares, best first; uniform slates of "epsilon_greedy" are in random
    order. If some places are seen more often than others, fill these first. Learning ignores
    places, except for cascades.

    References
    ----------
    W. Chen, Y. Wang, Y. Yuan (2013). Combinatorial multi-armed bandit. ICML, PMLR 28, 151-159.

    B. Kveton, C. Szepesvári, Z. Wen, A. Ashkan (2015). Cascading bandits. ICML, PMLR 37, 767-776.

    D. Foster, A. Rakhlin (2020). Beyond UCB. ICML, PMLR 119, 3199-3210.

    Examples
    --------
    Visitors like two of four topics, those for which their feature is largest:

    >>> import numpy as np
    >>> from skbandit.bandit import SlatePolicy
    >>> rng = np.random.default_rng(0)
    >>> topics = ["news", "sports", "music", "films"]
    >>> policy = SlatePolicy(n_select=2, random_state=0)
    >>> for _ in range(300):
    ...     visitor = rng.normal(size=(1, 4))
    ...     slate = policy.select(visitor, available=topics)
    ...     clicked = [[rng.random() < 0.1 + 0.8 * (visitor[0, topics.index(topic)] > 0)
    ...                 for topic in slate[0]]]
    ...     policy = policy.partial_fit(visitor, slate, clicked)
    >>> policy.predict([[2.0, -1.0, 1.0, -1.0]])
    array([['news', 'music']], dtype=object)
    >>> round(float(policy.select_proba([[2.0, -1.0, 1.0, -1.0]]).sum()), 9)
    2.0
    """

    policy_: Any

    _shows_slates: ClassVar[bool] = True

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}
    score = _validation.no_score(
        "as scoring a function that returns slate_ips(policy, X, log).mean_reward (ReplayScorer() "
        "takes policies that choose one arm)"
    )

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "policy": [HasMethods(["select", "partial_fit"]), None],
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "feedback": [str],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        policy: Any = None,
        n_select: int = 3,
        *,
        feedback: str = "semi_bandit",
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.policy = policy
        self.n_select = n_select
        self.feedback = feedback
        self.columns = columns
        self.random_state = random_state

    def __getstate__(self) -> dict[str, Any]:
        """Return state of a copy: its models are its own, too."""
        state = super().__getstate__()
        if "policy_" in state:
            state["policy_"] = copy.copy(state["policy_"])
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "policy_") and self.policy_.__sklearn_is_fitted__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms: the first ones in ascending order, then those that came later."""
        check_is_fitted(self)
        return self.policy_.arms_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._of_models("n_features_in_")

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if all column names of `X` are strings."""
        return self._of_models("feature_names_in_")

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        reward: Any = None,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the slates of a log in order, discarding earlier learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame, dict or structured array with columns action and reward, or slates
            An entry of action is a tuple of labels, best place first. Slates alone are an array of
            labels of shape (n_events, n_places) or a sequence of tuples; a single label is a
            slate of one arm. Slates may have any size. Columns available and timestamp are used
            as by `policy`.
        reward : array-like, default=None
            Rewards, if not a column of `y`. By `feedback`: of each shown arm, nan if unknown; or by
            place, 0 or 1, or the position of the first click, counted from 0, with nan or None in
            place of either for no click.
        available : array-like, default=None
            Arms available to each event, as in `select`, if not a column of `y`.
        sample_weight : array-like of shape (n_events,), default=None
            Number of events that each one counts for. Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        return self._fit(X, y, reward, available, sample_weight, afresh=True)

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        reward: Any = None,
        *,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further slates in order, with the same result as one `fit` on all of them.

        An error or an interrupt leaves the policy unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame, dict or structured array with columns action and reward, or slates
            As in `fit`. New arms become known.
        reward : array-like, default=None
            As in `fit`.
        available : array-like, default=None
            As in `fit`.
        sample_weight : array-like of shape (n_events,), default=None
            As in `fit`.

        Returns
        -------
        self
            Fitted policy.
        """
        return self._fit(X, y, reward, available, sample_weight, afresh=False)

    def _fit(
        self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any, *, afresh: bool
    ) -> Self:
        """Learn slates, after those learned before unless `afresh`."""
        with lock_of(self), atomic_fit(self) as draft:
            if afresh or not hasattr(draft, "policy_"):
                draft._begin(X)
            else:
                draft.policy_ = copy.copy(draft.policy_)
                draft.policy_._walker = self.policy_._walker  # it goes on in the place of the other
            draft._learn(X, y, reward, available, sample_weight)
        return self

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn the events that the policy's `update_every` has delayed.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            Current time, in seconds if a number; None learns all delayed events.

        Returns
        -------
        self
            Fitted policy.
        """
        if hasattr(self, "policy_") and hasattr(self.policy_, "advance"):
            self.policy_.advance(timestamp)
        return self

    def merge(self, policies: Sequence[Self], *, base: Self) -> Self:
        """Return a policy with the learning of several ones since a common state.

        Parameters
        ----------
        policies : sequence of SlatePolicy
            Policies that started from copies of `base`, fitted.
        base : SlatePolicy
            The state that they started from, fitted.

        Returns
        -------
        Self
            Policy with the parameters and the random stream of this one, and the models that
            `policy_.merge` makes.
        """
        check_is_fitted(base)
        merged = copy.copy(self if hasattr(self, "policy_") else base)
        merged.policy_ = merged.policy_.merge(
            [worker.policy_ for worker in policies], base=base.policy_
        )
        return merged.set_params(**self.get_params(deep=False))

    def _n_learned(self) -> int:
        return self.policy_._n_learned() if hasattr(self, "policy_") else 0

    def _of_models(self, name: str) -> Any:
        """Return an attribute of the fitted models."""
        if "policy_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted and has no {name!r}.")
        return getattr(self.policy_, name)

    def _begin(self, X: Any) -> None:
        """Start from the prior."""
        if self.feedback not in FEEDBACK:
            raise ValueError(
                f"feedback must be one of {FEEDBACK}, got {self.feedback!r}: a policy learns from "
                "a reward of each shown arm, feedback='semi_bandit', and one reward per slate is "
                "for slate_pseudo_inverse, which evaluates."
            )
        policy = GLMUCBPolicy(exploration="thompson") if self.policy is None else self.policy
        if not isinstance(policy, GLMUCBPolicy | SharedGLMPolicy):
            name = policy.__name__ if isinstance(policy, type) else type(policy).__name__
            raise TypeError(
                f"policy must be a GLMUCBPolicy or a SharedGLMPolicy, which predict rewards of "
                f"single arms, got {name}."
            )
        self.policy_ = clone(policy)
        self.policy_.columns = None  # it learns arms, not the log
        self._stream, self._equal = ChoiceStream(self.random_state), (np.nan, 0)

    def _learn(self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any) -> None:
        """Check slates, and pass what is known of their arms to the policy."""
        tables = {"X": X, "y": y, "reward": reward, "sample_weight": sample_weight}
        _validation.refuse_lazy(
            {**tables, "available": available}, ", or let partial_fit learn from one part at a time"
        )
        _validation.warn_if_reordered(tables)
        available = logs.align_rows(available, X)
        X = _validation.as_contexts(X)
        X = X.tocsr() if issparse(X) else X
        X = X if hasattr(X, "__getitem__") else np.asarray(X)  # so that rows can be repeated
        n_rows = count_rows(X)
        if reward is None and logs.are_slates(y):
            if y is None:
                raise ValueError("this estimator requires y to be passed, but the target y is None")
            _validation.warn(logs.NO_REWARDS, UserWarning)
            self._equal = self.policy_._equal = None  # as this was said
            y = np.asarray(y) if hasattr(y, "__array__") else list(y)
            reward = [np.ones(np.size(slate)) for slate in y]
        fitted = self.policy_.__sklearn_is_fitted__()
        log = logs.read_slates(
            y,
            n_rows,
            reward=reward,
            available=available,
            arms=self.policy_.arms_.tolist() if fitted else (),
            columns=None if logs.are_slates(y) else self._names_in(y),
        )
        weight = _validation.check_row_weights(sample_weight, n_rows, "sample_weight")
        cascade = self.feedback == "cascade"
        rewards = read_cascade(log) if cascade else log.of_arms(log.reward, "reward")
        event, place = np.nonzero(log.shown & ~np.isnan(rewards) & (weight > 0)[:, None])
        if not len(event):  # nothing is known, but arms may be
            ArmModels.of(self.policy_, X, log.available_labels())
            return
        arms = {"action": log.arms[log.action[event, place]], "reward": rewards[event, place]}
        if log.timestamp is not None:
            arms["timestamp"] = log.timestamp[event]
        sets = log.available_labels()
        available = None if sets is None else [sets[k] for k in event.tolist()]
        weight = weight[event]
        rows = X[event] if isinstance(X, np.ndarray) else rows_of(X, event)
        if isinstance(rows, pd.DataFrame):  # as the index of the log's rows is repeated
            rows = rows.reset_index(drop=True)
        self.policy_.partial_fit(
            rows, arms, available=available, sample_weight=None if (weight == 1).all() else weight
        )

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the arms of the largest mean rewards, without exploring.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_select)
            Labels, best first.
        """
        from skbandit.bandit.exploration._sets import best

        models = self._models(X, available)
        chosen = best(models.scores(0, -1), self.n_select, None)
        return models.labels[chosen]

    def select(self, X: Any, *, available: Any = None, return_proba: bool = False) -> Any:
        """Choose the slates to show, exploring.

        Choices are counted, so that each has its own random numbers; a batch of choices equals
        the same choices one by one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms: the labels of each row, as in ``[("a", "b", "c"), ("b", "c")]``; or
            those of all rows, as in ``["a", "b", "c"]``; or a boolean table with one column per
            arm, an array's in the order of `arms_`. New arms have the prior. None makes all of
            `arms_` available.
        return_proba : bool, default=False
            Whether to return the probability of each chosen arm to be in the slate, too.

        Returns
        -------
        ndarray of shape (n_samples, n_select), or a pair of them
            Labels per row, best first, none twice. With `return_proba`, also the inclusion
            probability of each: the propensities that `skbandit.evaluation.slate_ips` requires.
            Those of "thompson" are integrated numerically, which takes longer than the choice.

        Raises
        ------
        ValueError
            If a row has fewer than `n_select` available arms.
        """
        from skbandit.bandit.exploration._sets import set_rule

        models = self._models(X, available)
        seed, t = self._stream.take(len(models.available), self.random_state)
        rule = set_rule(models.policy.exploration)
        chosen = rule.choose(models, self.n_select, seed, t)
        if not return_proba:
            return models.labels[chosen]
        included = rule.inclusion(models, self.n_select)
        return models.labels[chosen], np.take_along_axis(included, chosen, axis=1)

    def select_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Return the probability of each arm to be in the slate of `select`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Inclusion probabilities; columns as `arms_`. Rows sum to `n_select`, or less: the
            remainder is that of arms not in `arms_`. Exact, except that Thompson sampling's are
            integrated numerically, with an error of at most .002.
        """
        from skbandit.bandit.exploration._sets import set_rule

        models = self._models(X, available)
        included = set_rule(models.policy.exploration).inclusion(models, self.n_select)
        return included[:, : models.n_known]

    def predict_reward(self, X: Any) -> np.ndarray:
        """Predict the mean reward of every arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`.
        """
        check_is_fitted(self)
        return self.policy_.predict_reward(X)

    def _models(self, X: Any, available: Any) -> ArmModels:
        """Return posterior about the available arms, of which each row has enough."""
        named = [getattr(self.policy, name, None) for name in ("arms", "arm_features")]
        self._begin_with(X, available, arms_are_named=any(arms is not None for arms in named))
        models = ArmModels.of(self.policy_, X, available)
        count = models.available.sum(axis=1)
        short = np.flatnonzero(count < self.n_select)
        if len(short):
            raise ValueError(
                f"Row {short[0]} has {count[short[0]]} available arms, but n_select is "
                f"{self.n_select}. Make more arms available, or choose fewer (n_select=)."
            )
        return models


@dataclass(frozen=True, eq=False)
class ArmModels:
    """A policy's posterior about the arms available to some rows.

    Parameters
    ----------
    policy : GLMUCBPolicy or SharedGLMPolicy
        In its current state.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Checked contexts.
    sets : Pools
        Available arms.
    posterior : object
        About known arms, and then new ones.
    labels : ndarray of shape (n_arms,)
        Of these arms; the first `n_known` are those of the policy.
    available : ndarray of bool, shape (n_rows, n_arms)
        Which of them may be shown.
    n_known : int
        Number of arms of the policy.
    n_events : int
        Number of events that it has learned.
    alpha : float
        Amount of exploration in the next choice, in the parameter's units.
    epsilon : float
        Probability of a uniform choice.
    """

    policy: Any
    X: Any
    sets: logs.Pools
    posterior: Any
    labels: np.ndarray
    available: np.ndarray
    n_known: int
    n_events: int
    alpha: float
    epsilon: float

    @classmethod
    def of(cls, policy: Any, X: Any, available: Any) -> ArmModels:
        """Read contexts and availability; an unfitted policy begins with its prior."""
        now, X, sets, codes = policy._ready(X, available)
        posterior, mask = now._posterior_about(codes), sets.mask(len(codes))
        numbers = len(now._codes), now._n_learned(), float(now._alphas()[0]), float(now.epsilon)
        return cls(now, X, sets, posterior, logs.label_array(codes), mask, *numbers)

    def uniforms(self, seed: int, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Uniform numbers of choices t, t + 1, ...: one per arm for ties, and again with a coin.

        Those of an arm that is new to the policy belong to its label.
        """
        (n_rows, n_arms), n = self.available.shape, self.n_known
        keys = [arm_key(label) % 2**64 for label in self.labels[n:].tolist()]
        u = np.empty((n_rows, 2 * n_arms + 1))
        for row in range(n_rows):
            draws = np.random.default_rng([seed, t + row]).random(2 * n + 1)
            new = [np.random.default_rng([seed, t + row, key]).random(2) for key in keys]
            ties, others = np.reshape(new, (-1, 2)).T
            u[row] = np.concatenate([draws[:n], ties, draws[n:-1], others, draws[-1:]])
        return u[:, :n_arms], u[:, n_arms:]

    def scores(self, seed: int, t: int) -> np.ndarray:
        """Scores of choices t, t + 1, ..., or of greedy ones if t is -1; -inf if not available."""
        return self._scores(t, self.policy._alpha(), read_rule(self.policy, seed))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean of each linear predictor, and the standard deviation of its Thompson draw."""
        from skbandit.bandit.exploration import linear_bounds

        rule = linear_bounds(read_rule(self.policy))
        mean = self._scores(-1, 0.0, rule)
        upper = self._scores(0, self.policy._alpha(), rule)
        there = self.available
        deviation = np.zeros(mean.shape)
        deviation[there] = np.maximum(upper[there] - mean[there], 0.0)
        return mean, deviation

    def rewards(self) -> np.ndarray:
        """Return posterior mean rewards; -inf if not available."""
        from skbandit.bandit.links import mean_rewards

        rule = read_rule(self.policy)
        rewards = mean_rewards(np.where(self.available, self._scores(-1, 0.0, rule), 0.0), rule)
        return np.where(self.available, rewards, -np.inf)

    def _scores(self, t: int, width: float, rule: ChoiceRule) -> np.ndarray:
        from skbandit.bandit._passes import Asked, score_rows

        scores = score_rows(Asked(self.X, self.sets, t, width, self.posterior, rule))
        return np.where(self.available, scores, -np.inf)


def looked_at(clicks: np.ndarray) -> np.ndarray:
    """Return clicks of a visitor who looks from the best place on until the first click.

    Parameters
    ----------
    clicks : ndarray of shape (n_events, n_places)
        Positive if clicked.

    Returns
    -------
    ndarray of the same shape
        nan after the first click: what was not looked at is unknown.
    """
    after = np.cumsum(np.nan_to_num(clicks) > 0, axis=1) - (np.nan_to_num(clicks) > 0)
    return np.where(after > 0, np.nan, clicks)


def read_cascade(log: logs.Log) -> np.ndarray:
    """Return clicks by place, from these or from the position of the first click; nan if unknown.

    In either form, a slate without an entry was not clicked.
    """
    rewards = logs.entries_per_slate(log.reward, "reward")
    if len(rewards) != len(log):
        raise ValueError(f"reward has {len(rewards)} entries for {len(log)} slates.")
    by_place = any(np.ndim(reward) for reward in rewards)
    no_click = [np.ndim(reward) == 0 and bool(pd.isna(reward)) for reward in rewards]
    if by_place:
        sizes = log.sizes.tolist()
        rewards = [
            np.zeros(size) if none else reward
            for reward, size, none in zip(rewards, sizes, no_click, strict=True)
        ]
        clicks = log.of_arms(rewards, "reward")
        wrong = np.argwhere((clicks != 0) & (clicks != 1) & ~np.isnan(clicks))
        if len(wrong):
            row, place = wrong[0]
            raise ValueError(
                f"a cascade needs clicks, 0 or 1: row {row} has the reward {clicks[row, place]:g}; "
                "for other rewards use feedback='semi_bandit', with nan for what was not looked at."
            )
        return looked_at(clicks)
    missing = getattr(log.reward, "attrs", {}).get("missing")
    if missing is not None and not pd.isna(missing):
        raise ValueError(
            f"the log was joined with missing={missing!r}, which as the position of the first "
            "click is a click: join_rewards(..., missing=nan) says that there was none."
        )
    if any(isinstance(at, bool | np.bool_) for at in rewards):
        raise ValueError(
            "reward is true or false, and a cascade needs the position of the first click, counted "
            "from 0, with nan for none, or a list of clicks per slate."
        )
    position = np.array(
        [np.nan if none else at for at, none in zip(rewards, no_click, strict=True)], np.float64
    )
    clicked = ~np.isnan(position)
    wrong = clicked & ~(
        (position >= 0) & (position < log.sizes) & (position == np.floor(np.nan_to_num(position)))
    )
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the position of the first click in row {row} is {position[row]:g}, but places are "
            f"counted from 0 to {log.sizes[row] - 1}; nan is no click."
        )
    clicks = np.arange(log.shown.shape[1]) == position[:, None]
    return looked_at(np.where(log.shown, clicks, np.nan))
