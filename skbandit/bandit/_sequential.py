"""Contexts, logs, arms and copies of policies that learn events in order."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.bandit._arm_keys import twin
from skbandit.bandit._delayed import Events, check_time, windows_of
from skbandit.bandit._guarded import GuardedPolicy
from skbandit.bandit._state import ArmSets
from skbandit.bandit._stream import ChoiceStream
from skbandit.logs import (
    Codes,
    align_rows,
    as_actions,
    column_names,
    label_array,
    read_log,
    read_pools,
)
from skbandit.utils._validation import (
    check_not_masked,
    check_row_weights,
    check_squares,
    warn_if_reordered,
)

if TYPE_CHECKING:
    pass


class SequentialPolicy(GuardedPolicy):
    """Reads contexts and logs for a policy, and holds its arms and its clock."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}

    random_state: Any
    n_features_in_: int
    _codes: Codes
    _labels: np.ndarray
    _latest: float | None = None  # time of the latest event, in seconds

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms, in the order in which they were named or first learned."""
        check_is_fitted(self)
        return self._labels.copy()

    @property
    def last_timestamp_(self) -> float:
        """Time of the latest event, in seconds; nan if no event had a timestamp."""
        check_is_fitted(self)
        return np.nan if self._latest is None else self._latest

    def _begin(self, X: Any) -> None:
        """Start without arms and without events."""
        self._checked(X, reset=True)
        self._stream = ChoiceStream(self.random_state)
        self._codes = {}
        self._labels = label_array([])
        self._latest = None

    def _know(self, codes: Codes) -> None:
        """Extend the known arms."""
        self._codes, self._labels = codes, label_array(codes)

    def _knows_arms(self) -> bool:
        """Whether the parameters of an unfitted policy name arms."""
        raise NotImplementedError

    def _rows(self, X: Any) -> np.ndarray:
        """Check contexts; plain arrays skip the full validation."""
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub"
        if plain and X.shape[1] == self.n_features_in_ and len(X):
            if not hasattr(self, "feature_names_in_"):
                rows = np.ascontiguousarray(X, dtype=np.float64)
                if np.isfinite(np.vdot(rows, rows)):
                    return rows
        return self._checked(X, reset=False)

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        """Contexts as an array, fully validated."""
        tags = self.__sklearn_tags__().input_tags
        check_not_masked(X, "X")
        X = validate_data(
            self,
            X,
            dtype=np.float64,
            order="C",
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
            reset=reset,
        )
        X = X.toarray() if issparse(X) else X
        check_squares(np.nan_to_num(X) if tags.allow_nan else X)
        return X

    def _read_events(
        self,
        X: Any,
        y: Any,
        reward: Any,
        available: Any,
        columns: Mapping[str, Any] | None,
        sample_weight: Any,
        *,
        every: float | None = None,
        forgetting: float = 1.0,
    ) -> Events:
        """Check events, and note their times; `every` and `forgetting` as in `check_time`."""
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        X = self._rows(X)
        n_rows = len(X)
        if reward is None and column_names(y) is None:
            y = as_actions(y)
            warnings.warn(
                "y has actions but no rewards, so each action counts as reward 1: pass a "
                "DataFrame with columns 'action' and 'reward', or reward=.",
                UserWarning,
                stacklevel=4,
            )
            reward = np.ones(len(y))
        # only sets of available arms may refer to arms that are not played
        played = column_names(y)
        sets = available is not None or columns is not None or "available" in (played or ())
        arms = self._codes if sets else ()
        log = read_log(y, n_rows, reward=reward, available=available, arms=arms, columns=columns)
        weight = check_row_weights(sample_weight, n_rows, "sample_weight")
        window = np.zeros(n_rows, dtype=np.int64)
        if every is not None:
            window = windows_of(log.timestamp, every)
        if log.timestamp is not None:
            check_time(log.timestamp, self._latest, every=every, forgetting=forgetting)
            self._note_times(log.timestamp[weight > 0])
        events = Events(X, log.arms[log.action], log.reward, weight, window)
        return events.take(weight > 0)

    def _note_times(self, timestamp: np.ndarray) -> None:
        """Remember the latest time of events."""
        if len(timestamp):
            latest = -np.inf if self._latest is None else self._latest
            self._latest = max(latest, float(timestamp.max()))

    def _check_ready(self, available: Any) -> None:
        """Require a policy that knows arms, fitted or not."""
        if not self.__sklearn_is_fitted__() and not self._knows_arms() and available is None:
            raise NotFittedError(
                f"This {type(self).__name__} knows no arms: fit it, or pass available= to act "
                "without experience."
            )

    def _available(self, n_rows: int, available: Any) -> tuple[ArmSets, Codes]:
        """Sets of available arms per row, and numbers of the known arms and then the new ones."""
        if available is None:
            n_arms = len(self._codes)
            sets = ArmSets(
                np.zeros(n_rows, np.int32), np.array([0, n_arms], np.int64), np.arange(n_arms)
            )
            return sets, self._codes
        codes = dict(self._codes)
        pools = read_pools(available, n_rows, codes)
        sets = ArmSets(
            pools.of_event.astype(np.int32),
            pools.start.astype(np.int64),
            pools.arms.astype(np.int64),
        )
        return sets, codes

    def _warn_of_twins(self, new: list[Any]) -> None:
        """Warn of a new arm that is written like a known one, but of another type."""
        for label in new:
            known = twin(label, {**self._codes, **dict.fromkeys(new)})
            if known is not None:
                warnings.warn(
                    f"arm {label!r}, of type {type(label).__name__}, is new, beside the arm "
                    f"{known!r} of type {type(known).__name__}: labels of different types are "
                    "different arms. Convert the labels to one type.",
                    UserWarning,
                    stacklevel=2,
                )
                return
