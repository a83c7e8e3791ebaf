"""Models of rewards, one per arm, above what all arms have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
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
"""Standard errors by which models that share must tell arms apart better to be used."""

BY_COEFFICIENTS = Ridge, RidgeCV, LinearRegression
"""Models that predict by coefficients alone."""

CLIPPED_FROM, WILD = 1.0, 5.0
"""Widths of the range of rewards beyond it, from which on a prediction is clipped, and told."""

# Where rewards depend on the context much in the same way whatever is chosen, each model of an arm
# learns this common part from the events of its arm only, with errors of its own. Then a model of
# the mean reward learns it from all events, and what is left is learned by a model of each arm, or
# by one model of context and arm. Any function of the context may be subtracted from rewards, as
# this changes no decision. It is predicted by a model without the row, as else a flexible model
# would take the arm's part, too. Without a common part, or if few parameters suffice, as in linear
# models, this only adds errors. Which of them is used is decided by how well they tell arms apart.


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
        """Return some of the events, by a mask or by numbers."""
        weight = None if self.weight is None else self.weight[events]
        parts = self.row[events], self.arm[events], self.reward[events], weight
        return ArmEvents(self.X, *parts, self.n_arms, self.consumer)

    def fitted(self, model: Any) -> Any:
        """Fit a clone of a model to all rewards; return the reward if a classifier has only one."""
        reward = self.reward
        if hasattr(model, "predict_proba") and (reward == reward[0]).all():
            return float(reward[0])  # classifiers need two classes
        with explained_entries(self.X, self.consumer):
            return fit_weighted(clone(model), rows_of(self.X, self.row), reward, self.weight)


@dataclass(frozen=True)
class Sharing:
    """Parts that models of arms share.

    Attributes
    ----------
    half : ndarray of int, shape (n_rows,), or None
        Halves of the rows of X that learn the common part of each other; None without one.
    in_one : bool
        Whether one model of context and arm learns what is left, in place of one of each arm.
    """

    half: np.ndarray | None = None
    in_one: bool = False


APART = Sharing()
"""Models of which each learns from the events of its arm alone."""


@dataclass(frozen=True)
class RewardsByArm:
    """Fitted models.

    Attributes
    ----------
    by_arm : list of D models
        Or numbers, of rewards that are all equal; None without events.
    common : list of models
        Whose mean is the common part; empty if there is none.
    in_one : bool
        Whether the models are one, of context and arm.
    """

    by_arm: list[Any]
    common: list[Any]
    in_one: bool = False

    @classmethod
    def fitted(cls, model: Any, events: ArmEvents, sharing: Sharing = APART) -> RewardsByArm:
        """Fit models to events, which share what is said."""
        common, events = _common_part(model, events, sharing.half)
        return cls.above(common, model, events, sharing.in_one and bool(common))

    @classmethod
    def above(cls, common: list[Any], model: Any, left: ArmEvents, in_one: bool) -> RewardsByArm:
        """Fit models to what a common part leaves of rewards."""
        of_arm = [np.flatnonzero(left.arm == arm) for arm in range(left.n_arms)]
        if in_one:
            X = _with_arm(rows_of(left.X, left.row), left.arm, left.n_arms)
            shared = replace(left, X=X, row=np.arange(len(left.row))).fitted(model)
            return cls([shared if len(rows) else None for rows in of_arm], common, True)
        by_arm = [left.take(rows).fitted(model) if len(rows) else None for rows in of_arm]
        return cls(by_arm, common)

    @property
    def are_linear(self) -> bool:
        """True if some models have a coefficient for each feature."""
        for model in self.by_arm:
            for name in ("best_estimator_", "classifier_"):
                model = getattr(model, name, model)
            if hasattr(model[-1] if isinstance(model, Pipeline) else model, "coef_"):
                return True
        return False

    def predicted(self, X: Any, consumer: str = "the model of rewards") -> np.ndarray:
        """Predict rewards of all arms, (n, D); nan without a model."""
        n, n_arms = count_rows(X), len(self.by_arm)
        q, columns = np.full((n, n_arms), np.nan), _finite_numbers(X)
        with explained_entries(X, consumer):
            for arm, model in enumerate(self.by_arm):
                if model is not None and self.in_one:
                    q[:, arm] = expected_reward(model, _with_arm(X, np.full(n, arm), n_arms))
                elif model is not None:
                    q[:, arm] = _expected(model, X, columns)
            for model in self.common:
                q += _expected(model, X, columns)[:, None] / len(self.common)
        return q


def _common_part(
    model: Any, events: ArmEvents, half: np.ndarray | None
) -> tuple[list[Any], ArmEvents]:
    """Fit a model to each half of the events, and subtract what that of the other predicts."""
    if half is None:
        return [], events
    common, reward = [], events.reward.astype(np.float64)
    for k in range(HALVES):
        here = half[events.row] == k
        if not here.any() or here.all():
            return [], events
        common.append(events.take(~here).fitted(model))
        reward[here] -= expected_reward(common[-1], rows_of(events.X, events.row[here]))
    return common, replace(events, reward=reward)


def _with_arm(X: Any, arm: np.ndarray, n_arms: int) -> Any:
    """Append a column for each arm to contexts, 1 in its rows."""
    is_arm = (arm[:, None] == np.arange(n_arms)).astype(np.float64)
    if issparse(X):
        return hstack([X, csr_array(is_arm)], format="csr")
    if not hasattr(X, "columns"):
        return np.column_stack([np.asarray(X), is_arm])
    names = [f"is_arm_{number}" for number in range(n_arms)]
    return X.assign(**dict(zip(names, is_arm.T, strict=True)))


def expected_reward(model: Any, X: Any) -> np.ndarray:
    """Return the expected reward per row by a fitted model; the expected class by a classifier."""
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
    """Tell whether a model was fitted to the columns of X, in their order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns"):
        return names is None and columns.shape[1] == model.n_features_in_
    return list(X.columns) == names.tolist()


def halves_of_rows(events: ArmEvents, seed: int = SEED) -> np.ndarray:
    """Half of each row of X, copies together."""
    n_rows = count_rows(events.X)
    total = np.bincount(events.row, events.reward, minlength=n_rows)
    return folds_of_rows(events.X, total, HALVES, seed)


def sharing_of(model: Any, events: ArmEvents) -> Sharing:
    """Choose what models share by how well they predict the other half of the rows.

    A common part above which each arm has a model must predict rewards clearly better. One model
    of what is left must tell arms apart clearly better than those, by the R-loss (Nie & Wager
    2021): what differences between arms leave of rewards less the common part. A model that shrinks
    all differences has small errors of these, and orders arms badly: so the arms that it takes for
    the best and for the worst must also be better and worse, doubly robust, than those that the
    others take. Linear models share nothing: they decide worse with few events, and one of them
    lets the arm not act together with features.
    """
    half, n = halves_of_rows(events), len(events.row)
    of_event = half[events.row]
    errors, losses, best_arm, worst_arm = np.zeros((4, len(CANDIDATES), n))
    if hasattr(model, "predict_proba") or len(np.unique(events.arm)) < 2:
        return APART
    for k in range(HALVES):
        here = of_event == k
        if not here.any() or here.all():
            return APART
        candidates = _candidates(model, events.take(~here))
        if candidates is None:
            return APART
        measured = _measured(candidates, events.take(here))
        errors[:, here], losses[:, here], best_arm[:, here], worst_arm[:, here] = measured
    weight = np.ones(n) if events.weight is None else events.weight

    def gain(before: np.ndarray, after: np.ndarray) -> float:
        """Return the mean by which values fall, in standard errors."""
        less = np.nan_to_num((before - after) * weight)
        return float(less.mean() * np.sqrt(n) / (less.std() or 1.0))

    best = int(gain(errors[0], errors[1]) > CLEAR)
    orders = gain(best_arm[2], best_arm[best]) > 0 and gain(worst_arm[best], worst_arm[2]) > 0
    if gain(losses[best], losses[2]) > CLEAR and orders:
        best = 2
    return Sharing(half, CANDIDATES[best]) if best else APART


CANDIDATES = False, False, True
"""Whether one model is of all arms: models apart, models above a common part, and that one."""


def _candidates(model: Any, train: ArmEvents) -> list[RewardsByArm] | None:
    """Fit models apart and models above a common part; None of linear ones."""
    candidates = [RewardsByArm.fitted(model, train)]
    if candidates[0].are_linear:
        return None
    common, left = _common_part(model, train, halves_of_rows(train, SEED + 1))
    candidates.append(RewardsByArm.above(common, model, left, in_one=False))
    try:
        candidates.append(RewardsByArm.above(common, model, left, in_one=bool(common)))
    except (TypeError, ValueError):  # of transformers that expect the columns of X
        candidates.append(candidates[1])
    return candidates


def _measured(
    candidates: list[RewardsByArm], test: ArmEvents
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return squared errors, R-losses, and values of the best and of the worst arm, by event."""
    X, at = rows_of(test.X, test.row), (np.arange(len(test.arm)), test.arm)
    share = np.bincount(test.arm, test.weight, minlength=test.n_arms)
    share = share / share.sum()
    common = [expected_reward(model, X) for model in candidates[-1].common]
    left = test.reward - (np.mean(common, axis=0) if common else 0.0)
    mean = float(np.mean(test.reward))
    predicted = np.array([np.nan_to_num(models.predicted(X), nan=mean) for models in candidates])
    effects = predicted - (predicted @ share)[:, :, None]
    robust = effects.mean(axis=0)
    robust[at] += (left - robust[at]) / share[test.arm]
    best, worst = (robust[at[0], end(axis=2)] for end in (effects.argmax, effects.argmin))
    errors, losses = test.reward - predicted[:, *at], left - effects[:, *at]
    if not (candidates[2].in_one and np.ptp(predicted[2], axis=1).any()):
        losses[2] = np.nan  # it was refused, or transformers drop the columns of arms
    return errors**2, losses**2, best, worst


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
