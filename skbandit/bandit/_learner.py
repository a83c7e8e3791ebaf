"""The learning half of a policy: beliefs about arms, and events that change them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.bandit._delayed import Events, check_rewards, join, windows_of
from skbandit.bandit._parameters import read_alphas, read_interval, read_prior, read_rule
from skbandit.bandit._state import Beliefs, Prior, no_beliefs, with_arms
from skbandit.logs import (
    Codes,
    as_actions,
    code_labels,
    column_names,
    label_array,
    read_log,
    read_times,
)
from skbandit.utils._atomic_fit import all_or_nothing
from skbandit.utils._sklearn_compat import fit_context
from skbandit.utils._validation import check_row_weights, check_squares

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class ArmLearner(BaseEstimator):
    """Learns a model an arm from events in order; what it does with them, a policy says."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "available": True,
        "sample_weight": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = __metadata_request__fit

    link: str
    alpha: Any
    arms: Any
    covariance: str
    fit_intercept: bool
    update_every: Any
    random_state: Any
    n_features_in_: int
    _beliefs: Beliefs
    _codes: Codes
    _labels: np.ndarray
    _seed: int
    _waiting: list[Events]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_beliefs")

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms, in the order in which they were named or first learned."""
        check_is_fitted(self)
        return self._labels.copy()

    @property
    def coef_(self) -> np.ndarray:
        """Posterior means of the features' weights, of shape (n_arms, n_features)."""
        check_is_fitted(self)
        return self._beliefs.mean[:, : self.n_features_in_].copy()

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior means of the constant feature's weight, of shape (n_arms,)."""
        check_is_fitted(self)
        if self._beliefs.mean.shape[1] == self.n_features_in_:
            return np.zeros(len(self._beliefs.mean))
        return self._beliefs.mean[:, -1].copy()

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of each arm's weights, or its diagonal; the constant one's last."""
        check_is_fitted(self)
        spread = self._beliefs.spread
        return spread.copy() if spread.ndim == 2 else spread @ spread.transpose(0, 2, 1)

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned of each arm, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._beliefs.n_updates.copy()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Forget what was learned, and learn the events of a log in their order.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            What was done and what came of it. A column `timestamp` (datetimes, or numbers of
            seconds) is needed for `update_every`, a column `available` is checked; what else a
            log has is left alone.
        reward : array-like of shape (n_events,), default=None
            Rewards of an array of actions. Without them each action counts as reward 1, with a
            warning.
        available : array-like, default=None
            What could be chosen, as in `select`, if it is no column of `y`: each action must be
            among its own.
        sample_weight : array-like of shape (n_events,), default=None
            How many events each one counts for: its likelihood is taken to that power. Events
            of weight 0 never happened.

        Returns
        -------
        self
            Fitted policy.
        """
        with all_or_nothing(self) as draft:
            draft._begin(X)
            draft._learn(X, y, reward, available, sample_weight)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further events, in their order; the same as if `fit` had seen all of them.

        An error leaves the policy as it was. So does an interrupt, but that one of fewer events
        than arms may come when all of them are learned: learning so few is not undone.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            As in `fit`. Arms that are new are appended to `arms_`.
        reward : array-like of shape (n_events,), default=None
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
        with all_or_nothing(self) as draft:
            if not draft.__sklearn_is_fitted__():
                draft._begin(X)
            draft._learn(X, y, reward, available, sample_weight)
        return self

    def advance(self, timestamp: Any = None) -> Self:
        """Say what time it is: events of earlier windows of `update_every` are learned.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            The time, in seconds if a number; None learns all that waits.

        Returns
        -------
        self
            Fitted policy.
        """
        if self.__sklearn_is_fitted__() and self._waiting:
            every = read_interval(self.update_every)
            if timestamp is None or every is None:
                passed = True
            else:
                now = windows_of(read_times([timestamp], 1), every)[0]
                passed = now > self._waiting[0].window[0]
            if passed:
                with all_or_nothing(self) as draft:
                    draft._learn_waiting()
        return self

    def _begin(self, X: Any) -> None:
        """Start with what is believed beforehand."""
        n_features = validate_data(self, X, dtype=np.float64).shape[1]
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._codes = {}
        self._labels = label_array([])
        self._waiting = []
        self._beliefs = no_beliefs(n_features + bool(self.fit_intercept), self.covariance == "full")
        if self.arms is not None:
            named = self._number(self.arms)
            twice = np.flatnonzero(np.bincount(named, minlength=1) > 1)
            if len(twice):
                raise ValueError(f"arms names {list(self._codes)[twice[0]]!r} twice.")

    def _number(self, labels: Any) -> np.ndarray:
        """Numbers of arms; those that are new get the prior."""
        known = len(self._codes)
        codes = dict(self._codes)  # a draft shares it with the policy, which an error leaves alone
        numbers = code_labels(labels, codes, "arms")
        if len(codes) > known:
            self._beliefs = with_arms(self._beliefs, list(codes)[known:], self._prior())
            self._codes, self._labels = codes, label_array(codes)
        return numbers

    def _prior(self) -> Prior:
        return read_prior(self, self.n_features_in_)

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        return read_alphas(self.alpha, int(self._beliefs.clock[0]), n_events)

    def _rows(self, X: Any) -> np.ndarray:
        """Contexts, checked; what needs no check beyond its numbers takes the short way."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous
        named = hasattr(self, "feature_names_in_")
        if plain and not named and X.ndim == 2 and X.shape[1] == self.n_features_in_ and len(X):
            if np.isfinite(np.vdot(X, X)):
                return X
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        check_squares(X)  # else variances, and beliefs with them, would be no numbers
        return X

    def _learn(self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any) -> None:
        """Check events, and learn those whose window has passed."""
        X = self._rows(X)
        if reward is None and column_names(y) is None:
            y = as_actions(y)
            warnings.warn(
                "y has actions and no rewards, so each counts as one of reward 1: give a "
                "DataFrame with columns 'action' and 'reward', or pass reward=.",
                UserWarning,
                stacklevel=4,
            )
            reward = np.ones(len(y))
        log = read_log(y, len(X), reward=reward, available=available, arms=self._codes)
        check_rewards(self.link, log.reward)
        weight = check_row_weights(sample_weight, len(X), "sample_weight")
        every = read_interval(self.update_every)
        if every is None:
            window = np.zeros(len(X), dtype=np.int64)
        else:
            window = windows_of(log.timestamp, every)
            if self._waiting and window[0] < self._waiting[0].window[0]:
                raise ValueError(
                    "timestamp of row 0 is earlier than events that were learned before: "
                    "update_every needs events in order of time."
                )
        events = Events(X, log.arms[log.action], log.reward, weight, window).take(weight > 0)
        if every is None:
            self._absorb(events)
        elif len(events):
            passed = events.window < events.window[-1]
            if self._waiting and self._waiting[0].window[0] < events.window[-1]:
                self._learn_waiting()
            self._absorb(events.take(passed))
            self._waiting = [*self._waiting, events.take(~passed)]

    def _learn_waiting(self) -> None:
        """Learn what waited for its window to pass."""
        self._absorb(join(self._waiting))
        self._waiting = []

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        from skbandit.bandit._kernels import learn_rows

        if len(events):
            action = self._number(events.arms)
            prior, rule = self._prior(), read_rule(self, self._seed)
            self._alphas(len(events))  # says now what is wrong with it, not in the next choice
            # Learning is in place, and an interrupt may follow it. A copy costs less than to learn
            # so many events; those that waited would be learned again.
            if self._waiting or len(events) >= len(self._codes):
                self._beliefs = Beliefs(*(array.copy() for array in self._beliefs))
            learn_rows(events.X, action, events.reward, events.weight, self._beliefs, prior, rule)
