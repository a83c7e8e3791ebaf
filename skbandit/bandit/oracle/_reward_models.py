"""Events of arms, and the estimators that are fitted to them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

from skbandit.logs import noting
from skbandit.utils._fitting import seeded

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

    def copy(self) -> EventStore:
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


def learn_events(
    model: RewardModel | None,
    estimator: Any,
    events: Sequence[np.ndarray],
    seeds: np.ndarray,
    label: Any,
    *,
    further: bool,
) -> RewardModel:
    """Fit an estimator to events of one arm, in each replicate with its number of copies.

    `events` are the columns X, reward, weight and copies. If `further`, estimators learn by their
    `partial_fit`, and those without events are kept.
    """
    X, reward, weight, copies = events
    replicates = []
    for b in range(copies.shape[1]):
        rows = np.repeat(np.arange(len(X)), copies[:, b])
        own, r = None if model is None or not further else model.replicates[b], reward[rows]
        if not len(rows) or (not further and (r == r[0]).all()):
            replicates.append(float(r[0]) if len(rows) else own)
            continue
        classes: dict[str, Any] = {}
        if own is None:
            own = seeded(estimator, int(seeds[b]))
            classes = {"classes": np.array([0, 1])} if further and is_classifier(own) else {}
        else:
            own = copy.deepcopy(own)
        target = r.astype(np.int64) if is_classifier(own) else r
        with noting(f"while fitting the reward model of arm {label!r} to {len(X)} events"):
            learn = own.partial_fit if further else own.fit
            learn(X[rows], target, **classes, **_weights(own, weight[rows]))
        replicates.append(own)
    before = model.n_fitted if further and model is not None else 0
    return RewardModel(tuple(replicates), len(X) + before)


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
            "must predict one finite number per row. Regularize it, or scale the contexts."
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
