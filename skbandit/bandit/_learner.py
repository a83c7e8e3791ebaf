"""The learning half of a policy: posteriors of arms, updated by ordered events."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.bandit._arm_keys import arms_to_drop, twin
from skbandit.bandit._sequential import Events, WindowedPolicy, check_time, windows_of
from skbandit.bandit._state import (
    N_EVENTS,
    Beliefs,
    Prior,
    copied,
    no_beliefs,
    only_arms,
    read_alphas,
    read_interval,
    read_prior,
    read_rule,
)
from skbandit.bandit._stream import ChoiceStream
from skbandit.logs import (
    Codes,
    align_rows,
    as_actions,
    code_labels,
    column_names,
    label_array,
    read_log,
)
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import fit_context
from skbandit.utils._validation import (
    check_not_masked,
    check_row_weights,
    check_squares,
    explained_strings,
    first_few,
    warn_if_reordered,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


# Weights of arms in the units of the contexts, averaged over prior scales.
#
# With x = (X - c) r (`skbandit.bandit._units`), θ = Σ_i w_i (X_i - c_i) r_i + w_0: the weight of
# X_i is r_i w_i, and the constant is w_0 - Σ_i c_i r_i w_i. Means and covariances over prior
# scales are those of the mixture (`skbandit.bandit._mixture`).


def mean_weights(beliefs: Beliefs) -> np.ndarray:
    """Posterior means, (n_arms, n_weights), the constant's last."""
    return _in_units(beliefs, np.einsum("e,kei->ki", beliefs.share, beliefs.mean))


def weight_covariance(beliefs: Beliefs) -> np.ndarray:
    """Posterior variances, (n_arms, n_weights), or covariances, with another axis of n_weights."""
    share, factor = beliefs.share, beliefs.cov_factor
    away = beliefs.mean - np.einsum("e,kei->ki", share, beliefs.mean)[:, None]
    if factor.ndim == 3:
        of_weights = np.einsum("e,kei->ki", share, factor + away**2)
        return _diagonal_in_units(beliefs, of_weights)
    covariance = factor @ factor.transpose(0, 1, 3, 2) + away[..., None] * away[..., None, :]
    mixed = np.einsum("e,keij->kij", share, covariance)
    once = _in_units(beliefs, mixed)
    both = _in_units(beliefs, once.transpose(0, 2, 1))
    return both if not len(beliefs.rate) else (both + both.transpose(0, 2, 1)) / 2


def _in_units(beliefs: Beliefs, weights: np.ndarray) -> np.ndarray:
    """Map the last axis of weights of features in running units to those of the contexts."""
    n_features = len(beliefs.rate)
    if not n_features:
        return weights
    mapped = weights.copy()
    mapped[..., :n_features] *= beliefs.rate
    if len(beliefs.centre):
        mapped[..., -1] -= mapped[..., :n_features] @ beliefs.centre
    return mapped


def _diagonal_in_units(beliefs: Beliefs, variance: np.ndarray) -> np.ndarray:
    """Map variances of uncorrelated weights likewise."""
    n_features = len(beliefs.rate)
    if not n_features:
        return variance
    mapped = variance.copy()
    mapped[:, :n_features] *= beliefs.rate**2
    if len(beliefs.centre):
        mapped[:, -1] += mapped[:, :n_features] @ beliefs.centre**2
    return mapped


# Entries of a DataFrame whose types are looked at one by one: about 10 µs. Beyond, scikit-learn's
# validation is as fast.
_FEW_ENTRIES = 1000


class ArmLearner(WindowedPolicy):
    """Learns one model per arm from ordered events; how they are used is up to the policy."""

    link: str
    alpha: Any
    arms: Any
    covariance: str
    fit_intercept: bool
    forgetting: float
    new_arms: str
    prior_scale: Any
    prior_variance: Any
    standardize: bool | str
    random_state: Any
    n_features_in_: int
    _beliefs: Beliefs
    _codes: Codes
    _columns: pd.Index | None
    _labels: np.ndarray
    _latest: float | None = None  # time of the latest event, in seconds

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its arrays are its own, too."""
        state = super().__getstate__()
        state.pop("_columns", None)  # restored from the names; skops refuses pandas types
        if "_beliefs" in state:
            arrays = state["_beliefs"]
            state["_beliefs"] = self._guard.read(lambda: copied(arrays))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state."""
        super().__setstate__(state)
        self._note_columns()

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
        return mean_weights(self._beliefs)[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior means of the constant feature's weight, of shape (n_arms,)."""
        check_is_fitted(self)
        weights = mean_weights(self._beliefs)
        if weights.shape[1] == self.n_features_in_:
            return np.zeros(len(weights))
        return weights[:, -1].copy()

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of each arm's weights, or its diagonal; the constant's last."""
        check_is_fitted(self)
        return weight_covariance(self._beliefs)

    @property
    def scale_weights_(self) -> np.ndarray:
        """Weight of each prior scale by its evidence, of shape (n_scales,)."""
        check_is_fitted(self)
        return self._beliefs.share.copy()

    @property
    def last_timestamp_(self) -> float:
        """Time of the latest event, in seconds; nan if no event had a timestamp."""
        check_is_fitted(self)
        return np.nan if self._latest is None else self._latest

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
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the events of a log in order, discarding earlier learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame, dict or structured array with columns action and reward, or array of actions
            Arms played and rewards observed. `update_every` requires a column `timestamp`
            (datetimes, or numbers of seconds); a column `available` is checked; other columns
            are ignored.
        reward : array-like of shape (n_events,), default=None
            Rewards, if `y` is an array of actions. Without them each action counts as reward 1,
            with a warning.
        available : array-like, default=None
            Arms available to each event, as in `select`, if not a column of `y`. Each action
            must be among them.
        sample_weight : array-like of shape (n_events,), default=None
            Number of events that each one counts for: its likelihood is raised to this power.
            Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning, atomic_fit(self) as draft:
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
        """Learn further events in order, with the same result as one `fit` on all of them.

        An error leaves the policy unchanged. An interrupt is rolled back too, except for batches
        smaller than the number of arms, which may already have been learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            As in `fit`. New arms are appended to `arms_`.
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
        with self._guard.learning, atomic_fit(self) as draft:
            if not draft.__sklearn_is_fitted__():
                draft._begin(X)
            draft._learn(X, y, reward, available, sample_weight)
        return self

    def drop_arms(self, labels: Iterable[Any]) -> Self:
        """Forget arms: their posteriors, and their events that wait for `advance`.

        An arm that appears again later starts from the prior. An arm that is only away for a
        while is left out of `available` instead. What is known of features and of prior scales
        stays: `standardize` and the weights of `prior_scale` count the forgotten events, too.

        Parameters
        ----------
        labels : iterable of labels
            Arms of `arms_`.

        Returns
        -------
        self
            Policy without these arms.
        """
        check_is_fitted(self)
        with self._guard.learning, atomic_fit(self) as draft:
            known = dict.fromkeys([*draft._codes, *draft._waiting_arms()])
            dropped = arms_to_drop(labels, known)
            kept = [label for label in draft._codes if label not in dropped]
            numbers = np.array([draft._codes[label] for label in kept], dtype=np.int64)
            draft._beliefs = only_arms(draft._beliefs, numbers)
            draft._codes = {label: k for k, label in enumerate(kept)}
            draft._labels = label_array(kept)
            draft._drop_waiting(dropped)
        return self

    def _begin(self, X: Any) -> None:
        """Start from the prior."""
        check_not_masked(X, "X")
        with explained_strings(X, "the policy"):
            n_features = validate_data(self, X, dtype=np.float64, accept_sparse="csr").shape[1]
        self._note_columns()
        self._stream = ChoiceStream(self.random_state)
        self._codes = {}
        self._labels = label_array([])
        self._waiting = []
        self._latest = self._first_log = None
        prior = read_prior(self, n_features)
        self._beliefs = no_beliefs(
            n_features + bool(self.fit_intercept),
            self.covariance == "full",
            len(prior.variance),
            n_features if self.standardize else 0,
            centred=bool(self.fit_intercept) and self.standardize != "scale",
        )
        if self.arms is None:
            if self.new_arms == "error":
                raise ValueError("new_arms='error' closes the set of arms: name it with arms=.")
        else:
            named = self._number(self.arms, named=True)
            twice = np.flatnonzero(np.bincount(named, minlength=1) > 1)
            if len(twice):
                raise ValueError(
                    f"arms names {list(self._codes)[twice[0]]!r} twice: name each arm once."
                )

    def _number(self, labels: Any, named: bool = False) -> np.ndarray:
        """Numbers of arms; new arms start from the prior. Those in `arms` are `named`."""
        from skbandit.bandit._posterior import with_arms

        n_known = len(self._codes)
        codes = dict(self._codes)  # a copy, as a draft shares it with the policy
        numbers = code_labels(labels, codes, "arms")
        if len(codes) > n_known:
            if not named:
                self._check_new_arms(codes)
            self._beliefs = with_arms(self._beliefs, list(codes)[n_known:], self._prior())
            self._codes, self._labels = codes, label_array(codes)
        return numbers

    def _check_new_arms(self, codes: Codes) -> None:
        """Refuse arms outside of a closed set, and warn of those that look like known ones.

        `codes` are those of this policy, followed by the new arms.
        """
        new = list(codes)[len(self._codes) :]
        if new and self.new_arms == "error":
            raise ValueError(
                f"{first_few(new)} is not among the arms, {first_few(self._codes)}: with "
                "new_arms='error' they are those named in arms=."
            )
        for label in new:
            known = twin(label, codes)
            if known is not None:
                warnings.warn(
                    f"arm {label!r}, of type {type(label).__name__}, is new, beside the arm "
                    f"{known!r} of type {type(known).__name__}: labels of different types are "
                    "different arms. Convert the labels to one type; new_arms='error' refuses "
                    "arms that are not in arms=.",
                    UserWarning,
                    stacklevel=2,
                )
                return

    def _prior(self) -> Prior:
        prior = read_prior(self, self.n_features_in_)
        n_scales = len(self._beliefs.share)
        if len(prior.variance) != n_scales:
            raise ValueError(
                f"prior_scale={self.prior_scale!r} and prior_variance={self.prior_variance!r} are "
                f"{len(prior.variance)} priors, but the policy has learned with {n_scales}: call "
                "fit to start afresh."
            )
        return prior

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        return read_alphas(self.alpha, int(self._beliefs.counters[N_EVENTS]), n_events)

    def _rows(self, X: Any) -> Any:
        """Check contexts, an array or CSR.

        Those that only need finite values skip the full validation.
        """
        plain = self._plain_rows(X)
        if plain is not None and len(plain) and math.isfinite(np.vdot(plain, plain)):
            return plain
        check_not_masked(X, "X")
        with explained_strings(X, "the policy"):
            X = validate_data(
                self, X, dtype=np.float64, order="C", accept_sparse="csr", reset=False
            )
        check_squares(X)  # else variances would overflow to nan
        if issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def _note_columns(self) -> None:
        """Keep the names of features in the form in which a DataFrame's can be compared fast."""
        names = getattr(self, "feature_names_in_", None)
        self._columns = None if names is None else pd.Index(names)

    def _plain_rows(self, X: Any) -> np.ndarray | None:
        """Contexts as an array, if they are numbers in the columns seen at fit, else None."""
        columns = self._columns
        if type(X) is np.ndarray:
            fits = columns is None and X.ndim == 2 and X.shape[1] == self.n_features_in_
            if not (fits and X.dtype.kind in "fiub"):
                return None
            return np.ascontiguousarray(X, dtype=np.float64)
        if columns is None or type(X) is not pd.DataFrame or not X.columns.equals(columns):
            return None
        rows = X.to_numpy()
        if rows.dtype.kind not in "fiub":  # object, if columns of numbers and booleans meet
            few = rows.dtype == object and rows.size <= _FEW_ENTRIES
            if not (few and {type(entry) for entry in rows.flat} <= {bool, int, float}):
                return None
        return np.ascontiguousarray(rows, dtype=np.float64)

    def _learn(self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any) -> None:
        """Check events, and learn those whose window has ended."""
        from skbandit.bandit.links import check_rewards

        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        X = self._rows(X)
        n_rows = X.shape[0]
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
            y,
            n_rows,
            reward=reward,
            available=available,
            arms=self._codes,
            columns=self._names_in(y),
        )
        check_rewards(self.link, log.reward)
        self._note_log(X, log)
        weight = check_row_weights(sample_weight, n_rows, "sample_weight")
        every = read_interval(self.update_every)
        if every is None:
            window = np.zeros(n_rows, dtype=np.int64)
        else:
            window = windows_of(log.timestamp, every)
        if log.timestamp is not None:
            check_time(log.timestamp, self._latest, every=every, forgetting=self.forgetting)
        events = Events(X, log.arms[log.action], log.reward, weight, window).take(weight > 0)
        self._take(events)
        if log.timestamp is not None:
            self._note_times(log.timestamp[weight > 0])

    def _note_times(self, timestamp: np.ndarray) -> None:
        """Remember the latest time of events."""
        if len(timestamp):
            latest = -np.inf if self._latest is None else self._latest
            self._latest = max(latest, float(timestamp.max()))

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        from skbandit.bandit._contexts import learn_rows

        if len(events):
            action = self._number(events.arms)
            prior, rule = self._prior(), read_rule(self)
            self._alphas(len(events))  # raise errors now, not in the next choice
            # Learning works in place, and an interrupt may follow it. Copy where that costs less
            # than learning; delayed events always, as they would be learned twice, and sparse
            # ones, which are learned in several calls.
            apart = bool(self._waiting) or len(events) >= len(self._codes) or issparse(events.X)
            if apart:
                self._beliefs = copied(self._beliefs)
            with nullcontext() if apart else self._guard.writing():
                learn_rows(
                    events.X, action, events.reward, events.weight, self._beliefs, prior, rule,
                    at_once=not apart,
                )  # fmt: skip
