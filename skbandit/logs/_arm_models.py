"""Models of rewards, one per arm, above what all arms have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.utils._folds import SEED, folds_of_rows
from skbandit.utils._sklearn_compat import count_rows, fit_weighted, rows_of
from skbandit.utils._validation import explained_entries, warn, warn_of_wild_row

HALVES = 2
"""Parts of the rows, each of which has its common part predicted by a model of the other."""

CLEAR = 1.0
"""Standard errors by which a common part must predict other rows better to be used."""

BY_COEFFICIENTS = Ridge, RidgeCV, LinearRegression
"""Models that predict by coefficients alone."""

CLIPPED_FROM, WILD = 1.0, 5.0
"""Widths of the range of rewards beyond it, from which on a prediction is clipped, and told."""

# Where rewards depend on the context much in the same way whatever is chosen, each model of an arm
# learns this common part from the events of its arm only, with errors of its own. Then a model of
# the mean reward learns it from all events, and those of arms learn what is left. Any function of
# the context may be subtracted from rewards, as this changes no decision. It is predicted by a
# model without the row, as else a flexible model would take the arm's part, too. Without a common
# part, or if few parameters suffice, as in linear models, this only adds errors.


@dataclass(frozen=True)
class ArmEvents:
    """Rewards of arms in contexts.

    Attributes
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
    row, arm : ndarray of int, shape (n_events,)
    reward : ndarray of shape (n_events,)
    weight : ndarray of shape (n_events,), or None
        All positive.
    n_arms : int
    consumer : str
        Whose errors on text columns name the cure.
    """

    X: Any
    row: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    weight: np.ndarray | None
    n_arms: int
    consumer: str = "the model of rewards"

    def take(self, events: np.ndarray) -> ArmEvents:
        """Some of the events, by a mask or by numbers."""
        weight = None if self.weight is None else self.weight[events]
        parts = self.row[events], self.arm[events], self.reward[events], weight
        return ArmEvents(self.X, *parts, self.n_arms, self.consumer)

    def fitted(self, model: Any) -> Any:
        """A clone of a model fitted to all rewards; the reward itself if a classifier has one."""
        reward = self.reward
        if hasattr(model, "predict_proba") and (reward == reward[0]).all():
            return float(reward[0])  # classifiers need two classes
        with explained_entries(self.X, self.consumer):
            return fit_weighted(clone(model), rows_of(self.X, self.row), reward, self.weight)


@dataclass(frozen=True)
class RewardsByArm:
    """Fitted models.

    Attributes
    ----------
    by_arm : list of D models
        Or numbers, of rewards that are all equal; None without events.
    common : list of models
        Whose mean is the common part; empty if there is none.
    """

    by_arm: list[Any]
    common: list[Any]

    @classmethod
    def fitted(cls, model: Any, events: ArmEvents, half: np.ndarray | None = None) -> RewardsByArm:
        """Fitted to events; with a common part if the half of each row of X is given."""
        common: list[Any] = []
        if half is not None:
            of_event, reward = half[events.row], events.reward.astype(np.float64)
            for k in range(HALVES):
                here = of_event == k
                if not here.any() or here.all():
                    return cls.fitted(model, events)
                common.append(events.take(~here).fitted(model))
                predicted = expected_reward(common[-1], rows_of(events.X, events.row[here]))
                reward[here] -= predicted
            events = replace(events, reward=reward)
        of_arm = [np.flatnonzero(events.arm == arm) for arm in range(events.n_arms)]
        by_arm = [events.take(rows).fitted(model) if len(rows) else None for rows in of_arm]
        return cls(by_arm, common)

    @property
    def are_linear(self) -> bool:
        """Whether some models have a coefficient for each feature."""
        return any(map(_is_linear, self.by_arm))

    def predicted(self, X: Any, consumer: str = "the model of rewards") -> np.ndarray:
        """Rewards of all arms, (n, D); nan without a model."""
        q = np.full((count_rows(X), len(self.by_arm)), np.nan)
        columns = _finite_numbers(X)
        with explained_entries(X, consumer):
            for arm, model in enumerate(self.by_arm):
                if model is not None:
                    q[:, arm] = _expected(model, X, columns)
            for model in self.common:
                q += _expected(model, X, columns)[:, None] / len(self.common)
        return q


def expected_reward(model: Any, X: Any) -> np.ndarray:
    """Expected reward per row under a fitted model; for a classifier, the expected class."""
    if isinstance(model, float):
        return np.full(count_rows(X), model)
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X), dtype=float).ravel()
    return model.predict_proba(X) @ np.asarray(model.classes_, dtype=float)


def _finite_numbers(X: Any) -> np.ndarray | None:
    """X as an array of finite numbers, if it is one: models then need not check it, one by one."""
    if issparse(X):
        return None
    table = np.asarray(X)
    if table.ndim != 2 or table.dtype not in (np.float64, np.float32):
        return None
    return table if np.isfinite(table).all() else None


def warn_of_wild_context(X: Any) -> None:
    """Warn of a row that sets the scale of linear models, if contexts are an array of numbers."""
    columns = _finite_numbers(X)
    if columns is not None:
        warn_of_wild_row(columns, getattr(X, "columns", None))


def _expected(model: Any, X: Any, columns: np.ndarray | None) -> np.ndarray:
    """`expected_reward` in the same steps, less the checks of each that X is numbers.

    They take most of the time of one row and many linear models.
    """
    *scalers, last = model if isinstance(model, Pipeline) else [model]
    if columns is None or type(last) not in BY_COEFFICIENTS or not _knows(model, X, columns):
        return expected_reward(model, X)
    if any(type(scaler) is not StandardScaler for scaler in scalers):
        return expected_reward(model, X)
    for scaler in scalers:
        if scaler.with_mean:
            columns = columns - scaler.mean_.astype(columns.dtype)
        if scaler.with_std:
            columns = columns / scaler.scale_.astype(columns.dtype)
    return np.asarray(columns @ last.coef_.T + last.intercept_, dtype=float).ravel()


def _knows(model: Any, X: Any, columns: np.ndarray) -> bool:
    """Whether a model was fitted to the columns of X, in their order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns"):
        return names is None and columns.shape[1] == model.n_features_in_
    return list(X.columns) == names.tolist()


def halves_of_rows(events: ArmEvents, seed: int = SEED) -> np.ndarray:
    """Half of each row of X, copies together."""
    n_rows = count_rows(events.X)
    total = np.bincount(events.row, events.reward, minlength=n_rows)
    return folds_of_rows(events.X, total, HALVES, seed)


def halves_if_common(model: Any, events: ArmEvents) -> np.ndarray | None:
    """Half of each row, if a common part predicts rewards of the other half clearly better.

    None of linear models, which decide worse with it where they have few events.
    """
    if hasattr(model, "predict_proba") or len(np.unique(events.arm)) < 2:
        return None
    half, quarter = halves_of_rows(events), halves_of_rows(events, SEED + 1)
    of_event, gain = half[events.row], np.zeros(len(events.row))
    for k in range(HALVES):
        here = of_event == k
        if not here.any() or here.all():
            return None
        train, test = events.take(~here), events.take(here)
        at, X = (np.arange(len(test.arm)), test.arm), rows_of(events.X, test.row)
        models = RewardsByArm.fitted(model, train)
        if models.are_linear:
            return None
        with_common = RewardsByArm.fitted(model, train, quarter)
        alone, shared = (fitted.predicted(X)[at] for fitted in (models, with_common))
        gain[here] = (test.reward - alone) ** 2 - (test.reward - shared) ** 2
    gain = np.nan_to_num(gain if events.weight is None else gain * events.weight)
    return half if gain.mean() > CLEAR * gain.std() / np.sqrt(len(gain)) else None


def _is_linear(model: Any) -> bool:
    """Whether a fitted model has a coefficient for each feature."""
    for name in ("best_estimator_", "classifier_"):
        model = getattr(model, name, model)
    return hasattr(model[-1] if isinstance(model, Pipeline) else model, "coef_")


def range_of(rewards: np.ndarray) -> tuple[float, float]:
    """Smallest and largest reward."""
    return float(rewards.min()), float(rewards.max())


def within_range(
    predicted: np.ndarray, ends: tuple[float, float], row: np.ndarray | None = None
) -> np.ndarray:
    """Predictions of which those far outside of the range of rewards are clipped to it.

    A linear model predicts them for a context far from all others. If the numbers of the rows are
    passed, a warning names the row of a wild one.
    """
    low, high = ends
    away = np.nan_to_num(np.maximum(low - predicted, predicted - high))
    width = (high - low) * (1 + 1e-9) + 1e-9 * max(abs(low), abs(high))
    far = away > CLIPPED_FROM * width
    if not far.any():
        return predicted
    worst = np.unravel_index(int(away.argmax()), away.shape)
    if row is not None and away[worst] > WILD * width:
        warn(
            f"row {row[worst[0]]}: a model predicts {predicted[worst]:.3g}, where all rewards are "
            f"from {low:.3g} to {high:.3g}, and is clipped to this range. Check the context of the "
            "row for values in another unit, or drop it.",
            UserWarning,
        )
    return np.where(far, np.clip(predicted, low, high), predicted)
