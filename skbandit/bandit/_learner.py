"""The learning half of a policy: posteriors of arms, updated by ordered events."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.bandit._delayed import Events, join, windows_of
from skbandit.bandit._parameters import read_alphas, read_interval, read_prior, read_rule
from skbandit.bandit._state import N_EVENTS, Beliefs, Prior, no_beliefs
from skbandit.logs import (
    Codes,
    as_actions,
    code_labels,
    column_names,
    label_array,
    read_log,
    read_times,
)
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._sklearn_compat import fit_context
from skbandit.utils._validation import check_row_weights, check_squares

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class ArmLearner(BaseEstimator):
    """Learns one model per arm from ordered events; how they are used is up to the policy."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "available": True,
        "columns": True,
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
        """Posterior covariance of each arm's weights, or its diagonal; the constant's last."""
        check_is_fitted(self)
        factor = self._beliefs.cov_factor
        return factor.copy() if factor.ndim == 2 else factor @ factor.transpose(0, 2, 1)

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned per arm, of shape (n_arms,)."""
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
        columns: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the events of a log in order, discarding earlier learning.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            Arms played and rewards observed. `update_every` requires a column `timestamp`
            (datetimes, or numbers of seconds); a column `available` is checked; other columns
            are ignored.
        reward : array-like of shape (n_events,), default=None
            Rewards, if `y` is an array of actions. Without them each action counts as reward 1,
            with a warning.
        available : array-like, default=None
            Arms available to each event, as in `select`, if not a column of `y`. Each action
            must be among them.
        columns : dict, default=None
            Names of the columns of `y`, if different, as in
            ``columns={"action": "arm_id", "reward": "clicked"}``.
        sample_weight : array-like of shape (n_events,), default=None
            Number of events that each one counts for: its likelihood is raised to this power.
            Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        with atomic_fit(self) as draft:
            draft._begin(X)
            draft._learn(X, y, reward, available, columns, sample_weight)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        columns: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further events in order, with the same result as one `fit` on all of them.

        An error leaves the policy unchanged. An interrupt is rolled back too, except for batches
        smaller than the number of arms, which may already have been learned.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            As in `fit`. New arms are appended to `arms_`.
        reward : array-like of shape (n_events,), default=None
            As in `fit`.
        available : array-like, default=None
            As in `fit`.
        columns : dict, default=None
            As in `fit`.
        sample_weight : array-like of shape (n_events,), default=None
            As in `fit`.

        Returns
        -------
        self
            Fitted policy.
        """
        with atomic_fit(self) as draft:
            if not draft.__sklearn_is_fitted__():
                draft._begin(X)
            draft._learn(X, y, reward, available, columns, sample_weight)
        return self

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn the events of `update_every` windows that have ended.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            Current time, in seconds if a number; None learns all delayed events.

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
                with atomic_fit(self) as draft:
                    draft._learn_waiting()
        return self

    def _begin(self, X: Any) -> None:
        """Start from the prior."""
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
                raise ValueError(
                    f"arms names {list(self._codes)[twice[0]]!r} twice: name each arm once."
                )

    def _number(self, labels: Any) -> np.ndarray:
        """Numbers of arms; new arms start from the prior."""
        from skbandit.bandit._posterior import with_arms

        n_known = len(self._codes)
        codes = dict(self._codes)  # a copy, as a draft shares it with the policy
        numbers = code_labels(labels, codes, "arms")
        if len(codes) > n_known:
            self._beliefs = with_arms(self._beliefs, list(codes)[n_known:], self._prior())
            self._codes, self._labels = codes, label_array(codes)
        return numbers

    def _prior(self) -> Prior:
        return read_prior(self, self.n_features_in_)

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        return read_alphas(self.alpha, int(self._beliefs.counters[N_EVENTS]), n_events)

    def _rows(self, X: Any) -> np.ndarray:
        """Check contexts; arrays that only need finite values skip the full validation."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous
        named = hasattr(self, "feature_names_in_")
        if plain and not named and X.ndim == 2 and X.shape[1] == self.n_features_in_ and len(X):
            if np.isfinite(np.vdot(X, X)):
                return X
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        check_squares(X)  # else variances would overflow to nan
        return X

    def _learn(
        self, X: Any, y: Any, reward: Any, available: Any, columns: Any, sample_weight: Any
    ) -> None:
        """Check events, and learn those whose window has ended."""
        from skbandit.bandit.links import check_rewards

        X = self._rows(X)
        if reward is None and column_names(y) is None:
            y = as_actions(y)
            warnings.warn(
                "y has actions but no rewards, so each action counts as reward 1: pass a "
                "DataFrame with columns 'action' and 'reward', or reward=.",
                UserWarning,
                stacklevel=4,
            )
            reward = np.ones(len(y))
        log = read_log(
            y, len(X), reward=reward, available=available, arms=self._codes, columns=columns
        )
        check_rewards(self.link, log.reward)
        weight = check_row_weights(sample_weight, len(X), "sample_weight")
        every = read_interval(self.update_every)
        if every is None:
            window = np.zeros(len(X), dtype=np.int64)
        else:
            window = windows_of(log.timestamp, every)
            if self._waiting and window[0] < self._waiting[0].window[0]:
                raise ValueError(
                    "timestamp of row 0 is earlier than events already learned: update_every "
                    "requires events in order of time."
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
        """Learn all delayed events."""
        self._absorb(join(self._waiting))
        self._waiting = []

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        from skbandit.bandit._kernels import learn_rows

        if len(events):
            action = self._number(events.arms)
            prior, rule = self._prior(), read_rule(self, self._seed)
            self._alphas(len(events))  # raise errors now, not in the next choice
            # Learning works in place, and an interrupt may follow it. Copy where that costs less
            # than learning; delayed events always, as they would be learned twice.
            if self._waiting or len(events) >= len(self._codes):
                self._beliefs = Beliefs(*(array.copy() for array in self._beliefs))
            learn_rows(events.X, action, events.reward, events.weight, self._beliefs, prior, rule)
