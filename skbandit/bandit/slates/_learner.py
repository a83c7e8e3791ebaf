"""The learning half of a slate policy: logged slates, and what they tell of single arms."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._events import NO_REWARDS
from skbandit.bandit._guard import GuardedPolicy
from skbandit.bandit._policy import GLMUCBPolicy
from skbandit.bandit._stream import ChoiceStream
from skbandit.bandit.slates._models import ArmModels, check_models
from skbandit.logs import SlateLog, align_rows, are_slates, read_slates
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import count_rows, fit_context, rows_of
from skbandit.utils._validation import check_row_weights, warn_if_reordered

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


FEEDBACK = ("semi_bandit", "cascade", "slate")


def looked_at(clicks: np.ndarray) -> np.ndarray:
    """Clicks of a visitor who looks from the best place on until the first click.

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


def clicks_at(position: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Clicks of shape (n_events, n_places), 1 at a position counted from 0; nan is no click."""
    places = np.arange(shown.shape[1])
    clicks = (places == position[:, None]).astype(float)
    clicks[~shown] = np.nan
    return clicks


def read_cascade(log: SlateLog) -> np.ndarray:
    """Clicks by place, from these or from the position of the first click; nan if unknown."""
    rewards = log.reward
    first = rewards.iloc[0] if hasattr(rewards, "iloc") else rewards[0]
    if np.ndim(first):
        clicks = log.of_arms(rewards, "reward")
        wrong = np.argwhere((clicks != 0) & (clicks != 1) & ~np.isnan(clicks))
        if len(wrong):
            row, place = wrong[0]
            raise ValueError(
                f"a cascade needs clicks, 0 or 1: row {row} has the reward {clicks[row, place]:g}; "
                "for other rewards use feedback='semi_bandit', with nan for what was not looked at."
            )
        return looked_at(clicks)
    position = np.array([np.nan if at is None else at for at in rewards], dtype=np.float64)
    if len(position) != len(log):
        raise ValueError(f"reward has {len(position)} entries for {len(log)} slates.")
    known = ~np.isnan(position)
    wrong = known & ~(
        (position >= 0) & (position < log.sizes) & (position == np.floor(np.nan_to_num(position)))
    )
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the position of the first click in row {row} is {position[row]:g}, but places are "
            f"counted from 0 to {log.sizes[row] - 1}; nan is no click."
        )
    return looked_at(clicks_at(position, log.shown))


def shares_of_slate_reward(
    reward: float, mean: np.ndarray, variance: np.ndarray, noise_variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and weights of single arms that stand for the one reward of their slate.

    The reward is Σ θ_a + ε over the arms shown, with θ_a ~ N(mean, variance) independent and ε of
    the noise variance. For arm a it is an observation of θ_a, of the reward less the means of the
    others, with the noise of the others' variances on top. Learning each arm from it is the exact
    (Kalman) update of the arm; only the correlations between arms that it creates are dropped.

    Returns
    -------
    pseudo_reward, weight : ndarray of shape (n_places,)
        A weight w stands for a noise of the noise variance divided by w.
    """
    pseudo = reward - (mean.sum() - mean)
    return pseudo, noise_variance / (noise_variance + variance.sum() - variance)


class SlateLearner(GuardedPolicy):
    """Learns models of single arms from logged slates; how they are used is up to the policy."""

    policy: Any
    feedback: str
    random_state: Any
    policy_: Any

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its models are its own, too."""
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
        """Labels of the arms, in the order in which they were named or first learned."""
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
            Rewards, if not a column of `y`. By `feedback`: of each shown arm, nan if unknown; by
            place, 0 or 1, or the position of the first click, counted from 0, with nan for no
            click; or of the slate.
        available : array-like, default=None
            Arms available to each event, as in `select`, if not a column of `y`.
        sample_weight : array-like of shape (n_events,), default=None
            Number of events that each one counts for. Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning, atomic_fit(self) as draft:
            draft._begin()
            draft._learn(X, y, reward, available, sample_weight)
        return self

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
            As in `fit`. New arms are appended to `arms_`.
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
        with self._guard.learning, atomic_fit(self) as draft:
            if hasattr(draft, "policy_"):
                draft.policy_ = copy.copy(draft.policy_)
            else:
                draft._begin()
            draft._learn(X, y, reward, available, sample_weight)
        return self

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn what the policy's `update_every` has delayed.

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

    def _of_models(self, name: str) -> Any:
        """An attribute of the fitted models."""
        if "policy_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted and has no {name!r}.")
        return getattr(self.policy_, name)

    def _begin(self) -> None:
        """Start from the prior."""
        by_slate = self.feedback == "slate"
        if self.policy is None:
            link = "linear" if by_slate else "logistic"
            self.policy_ = GLMUCBPolicy(link, exploration="thompson")
        else:
            check_models(self.policy)
            self.policy_ = clone(self.policy)
            self.policy_.columns = None  # it learns arms, not the log
        linear = isinstance(self.policy_, GLMUCBPolicy) and self.policy_.link == "linear"
        if by_slate and not linear:
            raise ValueError(
                f"feedback='slate' divides a reward among the arms of a slate, which requires "
                f"policy=GLMUCBPolicy('linear', ...), got {self.policy!r}."
            )
        self._stream = ChoiceStream(self.random_state)

    def _learn(self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any) -> None:
        """Check slates, and pass what is known of their arms to the policy."""
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        X = X.tocsr() if issparse(X) else X
        X = X if hasattr(X, "__getitem__") else np.asarray(X)  # so that rows can be repeated
        n_rows = count_rows(X)
        if reward is None and are_slates(y):
            if y is None:
                raise ValueError("this estimator requires y to be passed, but the target y is None")
            warnings.warn(NO_REWARDS, UserWarning, stacklevel=4)
            y = np.asarray(y) if hasattr(y, "__array__") else list(y)
            reward = [np.ones(np.size(slate)) for slate in y]
            reward = np.ones(len(y)) if self.feedback == "slate" else reward
        fitted = self.policy_.__sklearn_is_fitted__()
        log = read_slates(
            y,
            n_rows,
            reward=reward,
            available=available,
            arms=self.policy_.arms_.tolist() if fitted else (),
            columns=None if are_slates(y) else self._names_in(y),
        )
        weight = check_row_weights(sample_weight, n_rows, "sample_weight")
        if self.feedback == "slate":
            self._learn_sums(X, log, log.of_slates(log.reward, "reward"), weight)
            return
        if self.feedback == "cascade":
            rewards = read_cascade(log)
        else:
            rewards = log.of_arms(log.reward, "reward")
        event, place = np.nonzero(log.shown & ~np.isnan(rewards) & (weight > 0)[:, None])
        if len(event):
            self._pass_on(X, log, event, place, rewards[event, place], weight[event])
        else:  # nothing is known, but arms may be
            ArmModels.of(self.policy_, X, log.available_sets())

    def _pass_on(
        self,
        X: Any,
        log: SlateLog,
        event: np.ndarray,
        place: np.ndarray,
        reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        """Let the policy learn rewards of single arms."""
        arms: dict[str, Any] = {
            "action": log.arms[log.action[event, place]],
            "reward": reward,
        }
        if log.timestamp is not None:
            arms["timestamp"] = log.timestamp[event]
        available = None
        if log.pools is not None:
            sets = log.available_sets()
            available = [sets[k] for k in event.tolist()]
        rows = X[event] if isinstance(X, np.ndarray) else rows_of(X, event)
        if isinstance(rows, pd.DataFrame):  # as the index of the log's rows is repeated
            rows = rows.reset_index(drop=True)
        self.policy_.partial_fit(
            rows, arms, available=available, sample_weight=None if (weight == 1).all() else weight
        )

    def _learn_sums(self, X: Any, log: SlateLog, reward: np.ndarray, weight: np.ndarray) -> None:
        """Learn one reward per slate, slate by slate."""
        sets = log.available_sets()
        noise = float(self.policy_.noise_variance)
        for k in np.flatnonzero(weight > 0).tolist():
            row, place = rows_of(X, [k]), np.flatnonzero(log.shown[k])
            models = ArmModels.of(self.policy_, row, [sets[k]])
            position = {label: i for i, label in enumerate(models.labels.tolist())}
            numbers = [position[label] for label in log.arms[log.action[k, place]].tolist()]
            mean, deviation = models.moments_of_prediction()
            pseudo, share = shares_of_slate_reward(
                reward[k], mean[0, numbers], deviation[0, numbers] ** 2, noise / weight[k]
            )
            self._pass_on(X, log, np.full(len(place), k), place, pseudo, share * weight[k])
