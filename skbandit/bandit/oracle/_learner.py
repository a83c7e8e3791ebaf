"""The learning half of a policy over any estimator: events of arms, and when models are fitted."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.bandit._arm_keys import arm_key
from skbandit.bandit._events import Events
from skbandit.bandit._sequential import SequentialPolicy
from skbandit.bandit._state import EXPLORATIONS, read_alphas
from skbandit.logs import Codes
from skbandit.utils._fitting import seed_for, seeded

GROWTH = 1.25
"""Factor by which the events of an arm grow until its model is refitted: n events then cost as much
as five fits to all of them."""


@dataclass(frozen=True)
class EventStore:
    """Learned events in order, in arrays with room for more.

    `extended` writes behind the events of this store, and leaves these as they are.
    """

    X: np.ndarray  # (capacity, n_features)
    arm: np.ndarray  # (capacity,)
    reward: np.ndarray  # (capacity,)
    weight: np.ndarray  # (capacity,)
    copies: np.ndarray  # (capacity, n_replicates), times that the event is in each replicate
    n: int

    @classmethod
    def empty(cls, n_features: int, n_replicates: int) -> EventStore:
        """A store without events."""
        return cls(
            np.empty((0, n_features)),
            np.empty(0, dtype=np.int64),
            np.empty(0),
            np.empty(0),
            np.empty((0, n_replicates), dtype=np.int8),
            0,
        )

    def extended(self, **columns: np.ndarray) -> EventStore:
        """Store with further events."""
        stop = self.n + len(columns["arm"])
        arrays = {}
        for name, new in columns.items():
            array = getattr(self, name)
            if stop > len(array):
                old = array[: self.n]
                array = np.empty((max(2 * len(array), stop, 16), *array.shape[1:]), array.dtype)
                array[: self.n] = old
            array[self.n : stop] = new
            arrays[name] = array
        return EventStore(**arrays, n=stop)

    def own_copy(self) -> EventStore:
        """Store that shares no arrays with this one."""
        names = ("X", "arm", "reward", "weight", "copies")
        return EventStore(
            **{name: getattr(self, name)[: self.n].copy() for name in names}, n=self.n
        )

    def of_arms(self, kept: np.ndarray) -> EventStore:
        """Events of the arms of these numbers, numbered anew in this order."""
        number = np.full(max(int(self.arm[: self.n].max(initial=-1)), int(kept.max())) + 1, -1)
        number[kept] = np.arange(len(kept))
        rows = np.flatnonzero(number[self.arm[: self.n]] >= 0)
        own = {name: getattr(self, name)[rows] for name in ("X", "reward", "weight", "copies")}
        return EventStore(arm=number[self.arm[rows]], n=len(rows), **own)


@dataclass(frozen=True)
class RewardModel:
    """Fitted estimators of an arm, one per replicate.

    In place of one stands a number if all rewards in its replicate are equal, and None if there are
    no events.
    """

    replicates: tuple[Any, ...]
    n_fitted: int  # events of the arm when it was fitted


def fit_model(
    estimator: Any,
    X: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    copies: np.ndarray,
    seeds: np.ndarray,
    label: Any,
) -> RewardModel:
    """Fit an estimator to the events of one arm, in each replicate with its number of copies."""
    replicates = []
    for b in range(copies.shape[1]):
        rows = np.repeat(np.arange(len(X)), copies[:, b])
        r = reward[rows]
        if not len(rows) or (r == r[0]).all():
            replicates.append(float(r[0]) if len(rows) else None)
            continue
        own = seeded(estimator, int(seeds[b]))
        target = r.astype(np.int64) if is_classifier(own) else r
        with _naming(label, len(X)):
            own.fit(X[rows], target, **_weights(own, weight[rows]))
        replicates.append(own)
    return RewardModel(tuple(replicates), len(X))


def update_model(
    model: RewardModel | None,
    estimator: Any,
    X: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    copies: np.ndarray,
    seeds: np.ndarray,
    label: Any,
) -> RewardModel:
    """Let the estimators of an arm learn further events by their `partial_fit`; others are kept."""
    n_replicates = copies.shape[1]
    old = (None,) * n_replicates if model is None else model.replicates
    replicates = []
    for b in range(n_replicates):
        rows = np.repeat(np.arange(len(X)), copies[:, b])
        if not len(rows):
            replicates.append(old[b])
            continue
        own = copy.deepcopy(old[b])
        classes: dict[str, Any] = {}
        if own is None:
            own = seeded(estimator, int(seeds[b]))
            classes = {"classes": np.array([0, 1])} if is_classifier(own) else {}
        target = reward[rows].astype(np.int64) if is_classifier(own) else reward[rows]
        with _naming(label, len(X)):
            own.partial_fit(X[rows], target, **classes, **_weights(own, weight[rows]))
        replicates.append(own)
    return RewardModel(tuple(replicates), len(X) + (0 if model is None else model.n_fitted))


def predicted_rewards(replicate: Any, X: np.ndarray, label: Any) -> np.ndarray:
    """Rewards that a fitted estimator of an arm predicts, finite."""
    if isinstance(replicate, float):
        return np.full(len(X), replicate)
    if is_classifier(replicate):
        probabilities = replicate.predict_proba(X)
        rewards = probabilities[:, list(replicate.classes_).index(1)]
    else:
        rewards = np.asarray(replicate.predict(X), dtype=np.float64)
    if rewards.shape != (len(X),) or not np.isfinite(rewards).all():
        raise ValueError(
            f"the reward model of arm {label!r}, {type(replicate).__name__}, predicted "
            f"{rewards[~np.isfinite(rewards)][:1] if rewards.ndim == 1 else rewards.shape}: it "
            "must predict one finite number per row. Regularise it, or scale the contexts."
        )
    return rewards


def shrunk(
    predicted: np.ndarray, weight: float, center: float | np.ndarray, prior_events: float
) -> np.ndarray:
    """Predictions of a model fitted to `weight` events, averaged with `prior_events` of `center`.

    Without it an arm with a few bad events would be given up, and one with a few good ones trusted.
    """
    return (weight * predicted + prior_events * center) / (weight + prior_events)


def _weights(estimator: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Keyword of weights, if there are any."""
    if (weight == 1).all():
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but {type(estimator).__name__} does not take it: leave it "
            "out, or repeat events."
        )
    return {"sample_weight": weight}


class _naming:
    """Adds to an error of a reward model whose it was."""

    def __init__(self, label: Any, n_events: int) -> None:
        self.note = f"while fitting the reward model of arm {label!r} to {n_events} events"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            error.add_note(self.note)


class OracleLearner(SequentialPolicy):
    """Fits one reward model per arm to ordered events; how they are used is up to the policy."""

    estimator: Any
    alpha: Any
    exploration: str
    n_replicates: int
    refit: Any  # "geometric", "partial_fit" or a number of events
    min_events: int

    _store: EventStore

    _models: dict[int, RewardModel]  # by number of the arm

    _n_events: int

    _n_updates: np.ndarray  # (n_arms,)

    _totals: np.ndarray  # (n_arms, n_replicates, 2): total weight, and weighted reward

    _range: tuple[float, float]  # of rewards

    _model_seed: int

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy, whose events are its own."""
        state = super().__getstate__()
        if "_store" in state:
            state["_store"] = state["_store"].own_copy()
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags

    @property
    def estimators_(self) -> dict[Any, tuple[Any, ...]]:
        """Fitted estimators by arm, one per replicate."""
        check_is_fitted(self)
        labels = self._labels.tolist()
        return {labels[k]: model.replicates for k, model in sorted(self._models.items())}

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned per arm, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._n_updates.copy()

    def _keep_arms(self, kept: np.ndarray) -> None:
        self._store = self._store.of_arms(kept)
        models = self._models
        self._models = {i: models[k] for i, k in enumerate(kept.tolist()) if k in models}
        self._n_updates, self._totals = self._n_updates[kept], self._totals[kept]

    def _replicates(self) -> int:
        """Number of models per arm."""
        return int(self.n_replicates) if self._resamples() else 1

    def _resamples(self) -> bool:
        """Whether models are fitted to resampled events."""
        return EXPLORATIONS[self.exploration] == "replicates"

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
        self._store = EventStore.empty(self.n_features_in_, self._replicates())
        self._models, self._n_events = {}, 0
        self._n_updates = np.zeros(0, dtype=np.int64)
        self._totals = np.zeros((0, self._replicates(), 2))
        self._range = (np.inf, -np.inf)

    def _grow(self, codes: Codes) -> None:
        n_new = len(codes) - len(self._codes)
        self._n_updates = np.concatenate([self._n_updates, np.zeros(n_new, dtype=np.int64)])
        self._totals = np.concatenate([self._totals, np.zeros((n_new, self._replicates(), 2))])
        self._know(codes)

    def _absorb(self, events: Events) -> None:
        if not len(events):
            return
        self._check_replicates()
        self._alphas(len(events))  # raise errors now, not in the next choice
        arm = self._number(events.arms)
        copies = self._copies(len(events))
        self._n_events += len(events)
        low, high = self._range
        self._range = (min(low, events.reward.min()), max(high, events.reward.max()))
        self._n_updates = self._n_updates + np.bincount(arm, minlength=len(self._codes))
        self._totals = self._totals.copy()
        weight = copies * events.weight[:, None]
        np.add.at(self._totals, arm, np.stack([weight, weight * events.reward[:, None]], axis=-1))
        if self.refit == "partial_fit":
            self._update(events, arm, copies)
            return
        self._store = self._store.extended(
            X=events.X, arm=arm, reward=events.reward, weight=events.weight, copies=copies
        )
        self._refit([k for k in np.unique(arm).tolist() if self._is_due(k)])

    def _check_rewards(self, reward: np.ndarray) -> None:
        if is_classifier(self.estimator):
            wrong = np.flatnonzero((reward != 0) & (reward != 1))
            if len(wrong):
                raise ValueError(
                    f"reward is {reward[wrong[0]]:g} on row {wrong[0]}, but a classifier predicts "
                    "rewards 0 and 1: take a regressor as estimator."
                )

    def _check_replicates(self) -> None:
        """Require as many replicates as the policy began with."""
        began = self._store.copies.shape[1]
        if self._replicates() != began:
            raise ValueError(
                f"the policy has learned with {began} replicates, and exploration="
                f"{self.exploration!r} with n_replicates={self.n_replicates} has "
                f"{self._replicates()}: fit it anew."
            )

    def _copies(self, n: int) -> np.ndarray:
        """Times that each of n events is in each replicate: Poisson, as in the online bootstrap."""
        if not self._resamples():
            return np.ones((n, 1), dtype=np.int8)
        numbers = range(self._n_events, self._n_events + n)
        draws = [
            np.random.default_rng([self._model_seed, number]).poisson(1.0, self._replicates())
            for number in numbers
        ]
        return np.array(draws).reshape(n, self._replicates()).astype(np.int8)

    def _is_due(self, k: int) -> bool:
        """Whether the model of an arm is to be fitted."""
        n = int(self._n_updates[k])
        if n < self.min_events:
            return False
        fitted = self._models[k].n_fitted if k in self._models else 0
        if isinstance(self.refit, str):
            return n >= GROWTH * fitted
        return n >= fitted + int(self.refit) or not fitted

    def _finish(self) -> None:
        """Fit the models of all arms that have new events."""
        if self.refit != "partial_fit":
            enough = np.flatnonzero(self._n_updates >= self.min_events).tolist()
            models, n = self._models, self._n_updates
            self._refit([k for k in enough if k not in models or models[k].n_fitted < n[k]])

    def _refit(self, arms: list[int]) -> None:
        """Fit the models of some arms to all their events."""
        models, store = dict(self._models), self._store
        of_arm = store.arm[: store.n]
        for k in arms:
            rows = np.flatnonzero(of_arm == k)
            models[k] = fit_model(
                self.estimator, store.X[rows], store.reward[rows], store.weight[rows],
                store.copies[rows], self._seeds(k, len(rows)), self._labels[k],
            )  # fmt: skip
        self._models = models

    def _update(self, events: Events, arm: np.ndarray, copies: np.ndarray) -> None:
        """Let models learn events by `partial_fit`."""
        models = dict(self._models)
        for k in np.unique(arm).tolist():
            rows = np.flatnonzero(arm == k)
            models[k] = update_model(
                models.get(k), self.estimator, events.X[rows], events.reward[rows],
                events.weight[rows], copies[rows], self._seeds(k, 0), self._labels[k],
            )  # fmt: skip
        self._models = models

    def _seeds(self, k: int, n: int) -> np.ndarray:
        """Seeds of the models of an arm after n events."""
        key = arm_key(self._labels[k]) % 2**64
        words = np.random.SeedSequence([self._model_seed, key, n])
        return words.generate_state(self._replicates()) % 2**31

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        return read_alphas(self.alpha, self._n_events, n_events)
