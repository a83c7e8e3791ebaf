"""A policy whose reward models, one per arm, are any scikit-learn estimator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.bandit._arm_keys import arm_key
from skbandit.bandit._events import Events
from skbandit.bandit._sequential import SequentialPolicy
from skbandit.bandit._state import EXPLORATIONS, explorations_by, read_alphas
from skbandit.logs import Codes, label_array, noting
from skbandit.utils._fitting import seed_for, seeded
from skbandit.utils._sklearn_compat import HasMethods, Interval, StrOptions

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


GROWTH = 1.25
"""Factor by which the events of an arm grow until its model is refitted: n events then cost as much
as five fits to all of them."""


Replicates = tuple[Any, ...]
"""Fitted estimators of an arm, one per replicate; in place of one a number if all rewards in its
replicate are equal, and None if there are no events."""


class OraclePolicy(SequentialPolicy):
    """Contextual bandit with any scikit-learn regressor or classifier as the reward model.

    The policy fits a clone of the estimator to the events of each arm, and explores by the
    predicted rewards. Use it with trees or boosting if rewards are not linear in the features.

    Parameters
    ----------
    estimator : regressor or classifier
        Reward model. A classifier needs `predict_proba`, and rewards 0 and 1. A `random_state` of
        None is set by the policy.
    alpha : float or callable, default=0.3
        Amount of exploration by "squarecb", as in `GLMUCBPolicy`; α² is in units of the reward of
        a classifier, and of the rewards' standard deviation with a regressor.
        A function is called with an array of numbers of learned events.
    exploration : {"squarecb", "epsilon_greedy", "bootstrap", "greedy"}, default="squarecb"
        Rule by which `select` explores. "bootstrap": the best arm according to one of
        `n_replicates` models, drawn at random, each fitted to resampled events. Others as in
        `GLMUCBPolicy`.
    epsilon : float, default=0.1
        Probability of a uniform choice. Only "epsilon_greedy" uses it.
    n_replicates : int, default=10
        Models per arm of "bootstrap"; other rules have one.
    refit : {"geometric", "partial_fit"} or int, default="geometric"
        When a call of `partial_fit` refits the model of an arm. "geometric": if the arm has a
        quarter more events than at its last fit. An integer: if it has that many new events.
        "partial_fit": at every event, by the estimator's own `partial_fit`. `fit` always ends with
        models of all events.
    min_events : int, default=10
        Number of events of an arm from which its model is fitted; before, the mean reward is used.
    prior_events : float, default=1.0
        Weight of the prior in events. Predictions are averaged with the mean reward of all arms, or
        for "bootstrap" with a random reward per replicate, drawn from the range of rewards.
    arms : array-like of labels, default=None
        Arms known in advance.
    columns : dict, default=None
        Names of a log's columns that differ, as in `GLMUCBPolicy`.
    random_state : int, RandomState instance or None, default=None
        Seed of choices, replicates and estimators.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels, ordered as in `GLMUCBPolicy`.
    estimators_ : dict
        Fitted estimators by arm, a tuple with one per replicate; a number where all rewards of the
        arm were equal. Arms without a model are missing.
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
    skbandit.GLMUCBPolicy : Linear predictors, much faster.
    skbandit.evaluation.replay : Estimates a policy's mean reward from a log.

    Notes
    -----
    The policy keeps the events that it has learned, unless `refit="partial_fit"`.

    Rewards r and a r + b, with a > 0, lead to the same choices if the predictions of the regressor
    follow them, as those of ridge regression and trees do.

    Models depend on the calls: one `fit` ends with newer models than many `partial_fit` on the same
    events. A batch of choices equals the same choices one by one.

    Contexts may have missing values if the estimator takes them, as
    `sklearn.ensemble.HistGradientBoostingClassifier` does.

    References
    ----------
    D. Foster, A. Rakhlin (2020). Beyond UCB: Optimal and efficient contextual bandits with
    regression oracles. ICML, PMLR 119, 3199-3210.

    I. Osband, B. Van Roy (2015). Bootstrapped Thompson sampling and deep exploration.
    arXiv:1507.00300.

    Examples
    --------
    Which of two arms is better depends on the product of two features:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skbandit.bandit import OraclePolicy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 2))
    >>> action = rng.choice(["even", "odd"], size=1000)
    >>> reward = (X.prod(axis=1) > 0) == (action == "even")
    >>> policy = OraclePolicy(RandomForestClassifier(20), random_state=0)
    >>> policy = policy.fit(X, pd.DataFrame({"action": action, "reward": reward}))
    >>> policy.predict([[0.5, 0.5], [0.5, -0.5]])
    array(['even', 'odd'], dtype=object)
    >>> round(float(policy.select_proba([[0.5, 0.5]]).sum()), 12)
    1.0
    """

    _parts: list[tuple[np.ndarray, ...]]  # learned events: X, arm, reward, weight and copies
    _models: dict[int, Replicates]  # by index of the arm
    _n_fitted: np.ndarray  # (n_arms,), events of the arm when its models were fitted
    _n_events: int
    _n_updates: np.ndarray  # (n_arms,)
    _totals: np.ndarray  # (n_arms, n_replicates, 2): total weight, and weighted reward
    _range: tuple[float, float]  # of rewards
    _learns_further: bool
    _moments = (0.0, 0.0, 0.0)  # of rewards: weight, mean, sum of squared deviations
    _model_seed: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "alpha": [Interval(Real, 0, None, closed="left"), callable],
        "exploration": [StrOptions(explorations_by("means", "replicates"))],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "n_replicates": [Interval(Integral, 1, None, closed="left")],
        "refit": [
            StrOptions({"geometric", "partial_fit"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "min_events": [Interval(Integral, 1, None, closed="left")],
        "prior_events": [Interval(Real, 0, None, closed="neither")],
        "arms": ["array-like", None],
        "columns": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        alpha: float | Callable[[np.ndarray], ArrayLike] = 0.3,
        *,
        exploration: str = "squarecb",
        epsilon: float = 0.1,
        n_replicates: int = 10,
        refit: str | int = "geometric",
        min_events: int = 10,
        prior_events: float = 1.0,
        arms: Sequence[Any] | None = None,
        columns: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.exploration = exploration
        self.epsilon = epsilon
        self.n_replicates = n_replicates
        self.refit = refit
        self.min_events = min_events
        self.prior_events = prior_events
        self.arms = arms
        self.columns = columns
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags

    @property
    def estimators_(self) -> dict[Any, tuple[Any, ...]]:
        """Fitted estimators by arm, one per replicate."""
        check_is_fitted(self)
        labels = self._labels.tolist()
        return {labels[k]: replicates for k, replicates in sorted(self._models.items())}

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned per arm, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._n_updates.copy()

    def _n_learned(self) -> int:
        return self._n_events if self.__sklearn_is_fitted__() else 0

    def _keep_arms(self, kept: np.ndarray) -> None:
        number = np.full(len(self._n_updates), -1)
        number[kept] = np.arange(len(kept))
        parts = []
        for X, arm, *others in self._parts:
            rows = np.flatnonzero(number[arm] >= 0)
            parts.append((X[rows], number[arm[rows]], *(column[rows] for column in others)))
        self._parts, models = parts, self._models
        self._models = {i: models[k] for i, k in enumerate(kept.tolist()) if k in models}
        self._n_updates, self._totals = self._n_updates[kept], self._totals[kept]
        self._n_fitted = self._n_fitted[kept]

    @property
    def _resamples(self) -> bool:
        """True if models are fitted to resampled events."""
        return EXPLORATIONS[self.exploration] == "replicates"

    def _replicates(self) -> int:
        """Return number of models per arm."""
        return int(self.n_replicates) if self._resamples else 1

    def _start(self) -> None:
        if is_classifier(self.estimator) and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator={self.estimator!r} is a classifier without predict_proba: set its "
                "probability=True if it has that, wrap it in CalibratedClassifierCV, or take a "
                "regressor."
            )
        if self.refit == "partial_fit" and not hasattr(self.estimator, "partial_fit"):
            raise TypeError(
                f"refit='partial_fit', but estimator={self.estimator!r} has no partial_fit: use "
                "refit='geometric'."
            )
        self._model_seed = seed_for("reward models", self.random_state)
        self._parts, self._models, self._n_events = [], {}, 0
        self._learns_further = self.refit == "partial_fit"
        self._n_updates = self._n_fitted = np.zeros(0, dtype=np.int64)
        self._totals = np.zeros((0, self._replicates(), 2))
        self._range, self._moments = (np.inf, -np.inf), (0.0, 0.0, 0.0)

    def _grow(self, codes: Codes) -> None:
        n_new = len(codes) - len(self._codes)
        self._n_updates = np.pad(self._n_updates, (0, n_new))
        self._n_fitted = np.pad(self._n_fitted, (0, n_new))
        self._totals = np.pad(self._totals, ((0, n_new), (0, 0), (0, 0)))
        self._know(codes)

    def _absorb(self, events: Events) -> None:
        if not len(events):
            return
        self._check_settings()
        self._alphas(len(events))  # raise errors now, not in the next choice
        arm = self._number(events.arms)
        copies = np.ones((len(events), 1), dtype=np.int8)  # of each event in each replicate
        if self._resamples:  # the online Poisson bootstrap
            draws = [
                np.random.default_rng([self._model_seed, number]).poisson(1.0, self._replicates())
                for number in range(self._n_events, self._n_events + len(events))
            ]
            copies = np.array(draws).astype(np.int8)
        self._n_events += len(events)
        low, high = self._range
        self._range = (min(low, events.reward.min()), max(high, events.reward.max()))
        n, mean, squares = self._moments
        total = float(events.weight.sum())
        of_new = float(events.weight @ events.reward) / total
        away, within = of_new - mean, float(events.weight @ (events.reward - of_new) ** 2)
        squares = squares + within + away * away * n * total / (n + total)
        self._moments = n + total, mean + away * total / (n + total), squares
        self._n_updates = self._n_updates + np.bincount(arm, minlength=len(self._codes))
        self._totals = self._totals.copy()
        weight = copies * events.weight[:, None]
        np.add.at(self._totals, arm, np.stack([weight, weight * events.reward[:, None]], axis=-1))
        arms, learned = np.unique(arm), (events.X, arm, events.reward, events.weight, copies)
        if self.refit == "partial_fit":
            self._learn_models(arms, learned, further=True)
            return
        self._parts = [*self._parts, (events.X.copy(), *learned[1:])]
        n, fitted = self._n_updates[arms], self._n_fitted[arms]
        least = GROWTH * fitted if isinstance(self.refit, str) else fitted + int(self.refit)
        due = arms[(n >= self.min_events) & ((n >= least) | (fitted == 0))]
        if len(due):  # joined now, as a fit takes longer
            columns = zip(*self._parts, strict=True)
            self._parts = [tuple(np.concatenate(column) for column in columns)]
            self._learn_models(due, self._parts[0])
            self._n_fitted = self._n_fitted.copy()
            self._n_fitted[due] = self._n_updates[due]

    def _check_rewards(self, reward: np.ndarray) -> None:
        if is_classifier(self.estimator):
            wrong = np.flatnonzero((reward != 0) & (reward != 1))
            if len(wrong):
                raise ValueError(
                    f"reward is {reward[wrong[0]]:g} on row {wrong[0]}, but a classifier predicts "
                    "rewards 0 and 1: take a regressor as estimator."
                )

    def _check_settings(self) -> None:
        """Require the way to learn, and as many replicates, as the policy began with."""
        further = self.refit == "partial_fit"
        if self._learns_further != further:
            before = "without" if further else "with"
            raise ValueError(
                f"refit={self.refit!r}, but the policy has learned {before} refit='partial_fit', "
                "so that its models or its events are missing: call fit to start afresh."
            )
        began = self._totals.shape[1]
        if self._replicates() != began:
            raise ValueError(
                f"the policy has learned with {began} replicates, and exploration="
                f"{self.exploration!r} with n_replicates={self.n_replicates} has "
                f"{self._replicates()}: fit it anew."
            )

    def _learn_models(
        self, arms: np.ndarray, events: tuple[np.ndarray, ...], *, further: bool = False
    ) -> None:
        """Fit the models of some arms to events, or let them learn further ones."""
        X, arm, *others = events
        models = dict(self._models)
        for k in arms.tolist():
            rows = np.flatnonzero(arm == k)
            key, n = arm_key(self._labels[k]) % 2**64, 0 if further else len(rows)
            words = np.random.SeedSequence([self._model_seed, key, n])
            seeds = words.generate_state(self._replicates()) % 2**31
            models[k] = learn_events(
                models.get(k), self.estimator, [column[rows] for column in (X, *others)], seeds,
                self._labels[k], further=further,
            )  # fmt: skip
        self._models = models

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        return read_alphas(self.alpha, self._n_events, n_events)

    def _choose(
        self, X: Any, available: Any, *, exploring: bool, return_proba: bool = False
    ) -> Any:
        from skbandit.bandit.exploration._sets import draw_arms

        now, X, mask, codes = self._prepared(X, available)
        labels = label_array(codes)
        if not exploring:
            rewards = now._rewards(X, mask, codes).mean(axis=0)
            return labels[np.argmax(np.where(mask, rewards, -np.inf), axis=1)]
        seed, t = now._stream.take(len(X), now.random_state)
        u = np.array([np.random.default_rng([seed, t + row]).random() for row in range(len(X))])
        p = now._probabilities(X, mask, codes)
        drawn = draw_arms(p, u)
        return (labels[drawn], p[np.arange(len(p)), drawn]) if return_proba else labels[drawn]

    def _choice_probabilities(self, X: Any, available: Any) -> np.ndarray:
        now, X, mask, codes = self._prepared(X, available)
        return now._probabilities(X, mask, codes)[:, : len(now._codes)]

    def predict_reward(self, X: Any) -> np.ndarray:
        """Predict the reward of every arm.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; the mean of the replicates.
        """
        check_is_fitted(self)
        now, X, mask, codes = self._prepared(X, None)
        return now._rewards(X, mask, codes).mean(axis=0)

    def _prepared(self, X: Any, available: Any) -> tuple[Self, np.ndarray, np.ndarray, Codes]:
        """Return the present policy, checked contexts, available arms and their numbers."""
        now, X, sets, codes = self._ready(X, available)
        now._check_settings()
        return now, X, sets.mask(len(codes)), codes

    def _rewards(self, X: np.ndarray, mask: np.ndarray, codes: Codes) -> np.ndarray:
        """Predicted rewards where arms are available, else 0, (n_replicates, n_rows, n_arms)."""
        labels, n_replicates = list(codes), self._replicates()
        rewards = np.zeros((n_replicates, len(X), len(codes)))
        for k in np.flatnonzero(mask.any(axis=0)).tolist():
            rows = np.flatnonzero(mask[:, k])
            center = self._prior_rewards(labels[k])
            model = self._models.get(k)
            if model is not None and self._n_updates[k] < self.min_events:
                model = None
            for b in range(n_replicates):
                weight, total = self._totals[k, b] if k < len(self._totals) else (0.0, 0.0)
                fitted = None if model is None else model[b]
                if fitted is None and weight:
                    fitted = float(total / weight)
                rewards[b, rows, k] = center[b]
                if fitted is not None:
                    # else an arm with a few bad events would be given up, and good ones trusted
                    of_rows = predicted_rewards(fitted, X[rows], labels[k])
                    total = weight * of_rows + self.prior_events * center[b]
                    rewards[b, rows, k] = total / (weight + self.prior_events)
        return rewards

    def _prior_rewards(self, label: Any) -> np.ndarray:
        """Return the reward expected of an arm before its first event, in each replicate."""
        if not self._n_events:
            return np.zeros(self._replicates())
        if self._resamples:
            words = [self._model_seed, arm_key(label) % 2**64]
            low, high = self._range
            return low + (high - low) * np.random.default_rng(words).random(self._replicates())
        weight, reward = self._totals.sum(axis=0).T  # 0 if the arms of all events were dropped
        return np.divide(reward, weight, out=np.zeros_like(reward), where=weight > 0)

    def _probabilities(self, X: np.ndarray, mask: np.ndarray, codes: Codes) -> np.ndarray:
        """Return probability of each arm, known and new."""
        from skbandit.bandit.exploration._sets import arm_probabilities

        rewards = np.where(mask, self._rewards(X, mask, codes), -np.inf)
        weight, _, squares = self._moments
        numeric = not is_classifier(self.estimator) and squares > 0
        unit = float(np.sqrt(squares / weight)) if numeric else 1.0  # of "squarecb"
        models = SimpleNamespace(
            available=mask,
            n_events=self._n_events,
            alpha=float(self._alphas()[0]),
            epsilon=float(self.epsilon),
            scores=lambda seed, t: rewards[0],
            rewards=lambda: rewards[0] / unit,
            replicates=lambda: rewards,
        )
        return arm_probabilities(self.exploration, models)


def learn_events(
    model: Replicates | None, estimator: Any, events: Sequence[np.ndarray], seeds: np.ndarray,
    label: Any, *, further: bool,
) -> Replicates:  # fmt: skip
    """Fit an estimator to events of one arm, in each replicate with its number of copies.

    `events` are the columns X, reward, weight and copies. If `further`, estimators learn by their
    `partial_fit`, and those without events are kept.
    """
    X, reward, weight, copies = events
    replicates, weighted = [], bool((weight != 1).any())
    if weighted and not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but {type(estimator).__name__} does not take it: leave it "
            "out, or repeat events."
        )
    for b in range(copies.shape[1]):
        rows = np.repeat(np.arange(len(X)), copies[:, b])
        replicate, r = None if model is None or not further else model[b], reward[rows]
        if not len(rows) or (not further and (r == r[0]).all()):
            replicates.append(float(r[0]) if len(rows) else replicate)
            continue
        given: dict[str, Any] = {"sample_weight": weight[rows]} if weighted else {}
        if replicate is None:
            replicate = seeded(estimator, int(seeds[b]))
            given |= {"classes": np.array([0, 1])} if further and is_classifier(replicate) else {}
        else:
            replicate = copy.deepcopy(replicate)
        target = r.astype(np.int64) if is_classifier(replicate) else r
        with noting(f"while fitting the reward model of arm {label!r} to {len(X)} events"):
            learn = replicate.partial_fit if further else replicate.fit
            learn(_contexts_or_constant(X[rows]), target, **given)
        replicates.append(replicate)
    return tuple(replicates)


def predicted_rewards(replicate: Any, X: np.ndarray, label: Any) -> np.ndarray:
    """Return rewards that a fitted estimator of an arm predicts, finite."""
    if isinstance(replicate, float):
        return np.full(len(X), replicate)
    if is_classifier(replicate):
        probabilities = replicate.predict_proba(_contexts_or_constant(X))
        rewards = probabilities[:, list(replicate.classes_).index(1)]
    else:
        rewards = np.asarray(replicate.predict(_contexts_or_constant(X)), dtype=np.float64)
    if rewards.shape != (len(X),) or not np.isfinite(rewards).all():
        raise ValueError(
            f"the reward model of arm {label!r}, {type(replicate).__name__}, predicted "
            f"{rewards[~np.isfinite(rewards)][:1] if rewards.ndim == 1 else rewards.shape}: it "
            "must predict one finite number per row. Regularize it, or scale the contexts."
        )
    return rewards


def _contexts_or_constant(X: np.ndarray) -> np.ndarray:
    """Return contexts, or a constant column for estimators if there are none."""
    return X if X.shape[1] else np.ones((len(X), 1))
