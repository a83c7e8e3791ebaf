"""Contexts, logs, arms and copies of policies that learn events in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit import logs
from skbandit.bandit._arm_keys import lookalike_label
from skbandit.bandit._events import Events, check_time, join, windows_of
from skbandit.bandit._guard import ChoiceStream, GuardedPolicy, lock_of
from skbandit.bandit._merge import Path, extended, merged_policy
from skbandit.bandit._state import built_with, read_interval
from skbandit.utils import _validation
from skbandit.utils._fitting import atomic_fit, process_entropy
from skbandit.utils._sklearn_compat import fit_context
from skbandit.utils._validation import first_few, warn

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


LARGEST_CONTEXT = 1e16
"""Largest absolute entry of a context: beyond, 1 is less than its rounding error."""

# Entries of a DataFrame whose types are looked at one by one: about 10 µs. Beyond, scikit-learn's
# validation is as fast.
_FEW_ENTRIES = 1000


class SequentialPolicy(GuardedPolicy):
    """Reads contexts and logs for a policy, and holds its arms and its clock."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}

    # parameters of some policies
    arms: Any = None
    new_arms: str = "add"
    forgetting: float | str = 1.0
    update_every: Any = None

    # of each policy
    _start: Callable[[], None]  # makes models without arms and without events
    _grow: Callable[[logs.Codes], None]  # makes new arms known, the last in the codes
    _keep_arms: Callable[[np.ndarray], None]  # forgets all but those of these numbers
    _absorb: Callable[[Events], None]  # learns events now
    _check_rewards: Callable[[np.ndarray], None]  # requires rewards that models can learn
    _choose: Callable[..., Any]  # labels of the chosen arms; with `return_proba`, a pair
    _choice_probabilities: Callable[[Any, Any], np.ndarray]  # of each known arm, by `select`

    random_state: Any
    n_features_in_: int
    _codes: logs.Codes
    _columns: pd.Index | None
    _labels: np.ndarray
    _latest: float | None = None  # time of the latest event, in seconds
    _path: Path = ()  # what it has learned, by which `merge` knows copies
    _walker: bytes | None = None  # process in which this object, and no copy, took the last step
    _waiting: Sequence[Events] = ()  # of one update window
    _table_arms: list[Any] | None = None  # as parameters name them, if not in ascending order

    def __getstate__(self) -> dict[str, Any]:
        """Return state of a copy, without pandas types: skops refuses them."""
        state = super().__getstate__()
        for name in ("_columns", "_walker"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().__setstate__(state)
        self._note_columns()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms, in ascending order if they have one."""
        check_is_fitted(self)
        return self._labels.copy()

    @property
    def last_timestamp_(self) -> float:
        """Time of the latest event, in seconds; nan if no event had a timestamp."""
        check_is_fitted(self)
        return np.nan if self._latest is None else self._latest

    @fit_context(prefer_skip_nested_validation=False)
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
            Number of events that each one counts for. Events of weight 0 are ignored.

        Returns
        -------
        self
            Fitted policy.
        """
        return self._fit(X, y, reward, available, sample_weight, afresh=True)

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        reward: ArrayLike | None = None,
        available: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further events in order.

        The result equals one `fit` on all events, except for `OraclePolicy`, which refits its
        models only from time to time. An error or an interrupt leaves the policy unchanged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_events, n_features)
            Contexts.
        y : DataFrame or structured array with columns action and reward, or array of actions
            As in `fit`. New arms become known.
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
        return self._fit(X, y, reward, available, sample_weight)

    def _fit(
        self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any, *,
        afresh: bool = False,
    ) -> Self:  # fmt: skip
        """Learn events, after those learned before unless `afresh`."""
        tables = {"X": X, "y": y, "reward": reward, "available": available}
        _validation.refuse_lazy(
            {**tables, "sample_weight": sample_weight},
            ", or let partial_fit learn from one part at a time",
        )
        with lock_of(self), atomic_fit(self) as draft:
            if afresh or not draft.__sklearn_is_fitted__():
                draft._begin(X)
            if afresh:
                draft._equal = (math.nan, 0)
            codes = draft._codes
            draft._learn(X, y, reward, available, sample_weight)
            if draft._codes is not codes:
                draft._sort_arms()
        return self

    def _check_described(self, labels: np.ndarray) -> None:
        """Require features of arms, in policies that have any."""

    def predict(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Choose the arm of the largest posterior mean reward, without exploring.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Arm labels; ties go to the first arm of `arms_`, but to one without events last.
        """
        return self._choose(X, available, exploring=False)

    def select(self, X: Any, *, available: Any = None, return_proba: bool = False) -> Any:
        """Choose the arm to play, exploring.

        Choices are counted, so that each has its own random numbers; a batch of choices equals
        the same choices one by one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms: the labels of each row, as in ``[("a", "b"), ("b",)]``; or those of all
            rows, as in ``["a", "b"]``; or a boolean table with one column per arm, an array's in
            the order of `arms_`. New arms have the prior. None makes all of `arms_` available.
        return_proba : bool, default=False
            Whether to return the probabilities of the choices, too, in the same pass.

        Returns
        -------
        ndarray of shape (n_samples,), or a pair of them
            Arm labels, ties broken at random; with `return_proba`, also the probability with which
            each was chosen: the propensity that an off-policy estimate from this log needs.
            Those of "ucb" and "greedy" are 1 except for ties. Those of "thompson" are integrated
            numerically, which takes longer than the choice.
        """
        return self._choose(X, available, exploring=True, return_proba=return_proba)

    def select_proba(self, X: Any, *, available: Any = None) -> np.ndarray:
        """Return the probability that `select` chooses each arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available arms, as in `select`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`. Rows may sum to less than 1; the remainder is the probability of
            arms not in `arms_`. Exact, except that Thompson sampling's are integrated
            numerically, with an error of at most .002.
        """
        return self._choice_probabilities(X, available)

    def drop_arms(self, labels: Iterable[Any]) -> Self:
        """Forget arms, and their events that wait for their update window to end.

        A model shared by all arms keeps what these arms taught it. An arm that appears again later
        is new. If an arm is only unavailable for a while, omit it from `available` instead.

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
        with lock_of(self), atomic_fit(self) as draft:
            waiting = [label for part in draft._waiting for label in part.arms.tolist()]
            arms = dict.fromkeys([*draft._codes, *waiting])
            dropped = set(_validation.as_labels(labels, "labels"))
            unknown = [label for label in dropped if label not in arms]
            if unknown:
                raise ValueError(
                    f"labels contains {unknown[0]!r}, which is not an arm: {first_few(arms)}."
                )
            if len(dropped) == len(arms):
                raise ValueError("labels names all arms: a policy needs at least one.")
            kept = [label for label in draft._codes if label not in dropped]
            draft._keep_arms(np.array([draft._codes[label] for label in kept], dtype=np.int64))
            draft._know({label: k for k, label in enumerate(kept)})
            remaining = [
                part.take(np.array([arm not in dropped for arm in part.arms.tolist()], dtype=bool))
                for part in draft._waiting
            ]
            draft._waiting = [part for part in remaining if len(part)]
        return self

    def merge(self, policies: Sequence[Self], *, base: Self) -> Self:
        """Return a policy with the learning of several ones since a common state.

        Use it if several processes start from copies of `base` and learn different events. This
        policy counts as one of them if it has learned events since `base`. `merge` changes none of
        them.

        For a `GLMUCBPolicy` with ``link="linear"``, ``covariance="full"``, a number for
        `noise_variance`, nothing forgotten and arms that `base` has learned, the result equals
        learning all events in one process, up to rounding. Otherwise it is an approximation:
        posteriors are multiplied by their natural parameters. In models that forget, events count
        as if the workers had taken turns.

        Parameters
        ----------
        policies : sequence of policies
            Policies that descend from `base`. Each counts once, also if it is given as several
            copies, or as an earlier and a later state.
        base : policy
            State from which copies of all of them started: after a merge, the merged policy.
            Unfitted if they started from the prior.

        Returns
        -------
        Self
            Policy with the parameters and the random stream of this one. New arms follow those of
            `base`, in the order of their labels.

        Raises
        ------
        TypeError
            If policies of this type cannot be merged.
        ValueError
            If the policies differ in features or in a parameter of learning, have delayed events or
            an adaptive prior, do not descend from `base`, or share events that `base` has not
            learned.
        """
        return merged_policy(self, policies, base)

    def _sum_up(self, base: Self, workers: dict[str, Self], labels: list[Any]) -> None:
        """Take over what workers have learned since a base about the arms of these labels."""
        raise TypeError(
            f"a {type(self).__name__} cannot be merged: its models are not sums over events. Let "
            "one process learn the events of all, joined by skbandit.logs.join_rewards."
        )

    def _begin(self, X: Any) -> None:
        """Start without experience."""
        self._checked(X, reset=True)
        self._note_columns()
        self._stream = ChoiceStream(self.random_state)
        self._codes = {}
        self._labels = logs.label_array([])
        self._waiting = []
        self._latest = self._first_log = self._walker = None
        self._path = ()
        self._built_with = built_with(self)
        order = self._named_arms()
        self._table_arms = None if order is None or logs.ascending(order) == order else order
        self._start()
        if self.arms is not None:
            codes: logs.Codes = {}
            named = logs.code_labels(self.arms, codes, "arms")
            if len(codes) < len(named):
                twice = np.flatnonzero(np.bincount(named) > 1)[0]
                raise ValueError(f"arms names {list(codes)[twice]!r} twice: name each arm once.")
            self._grow({label: k for k, label in enumerate(logs.ascending(codes) or codes)})
        elif self.new_arms == "error":
            raise ValueError("new_arms='error' closes the set of arms: name it with arms=.")

    def _sort_arms(self) -> None:
        """Renumber arms in the order of their labels, if they have one.

        A table of numbers per arm is then right for whoever takes its columns in that order.
        """
        ordered = logs.ascending(self._codes)
        if ordered is not None and ordered != list(self._codes):
            self._keep_arms(np.array([self._codes[label] for label in ordered], dtype=np.int64))
            self._know({label: k for k, label in enumerate(ordered)})

    def _know(self, codes: logs.Codes) -> None:
        """Replace the known arms."""
        self._codes, self._labels = codes, logs.label_array(codes)

    def _number(self, labels: Any) -> np.ndarray:
        """Return numbers of arms; new arms become known."""
        codes = dict(self._codes)  # a copy, as a draft shares it with the policy
        numbers = logs.code_labels(labels, codes, "arms").astype(np.int64)
        if len(codes) > len(self._codes):
            self._check_new_arms(codes)
            self._grow(codes)
        return numbers

    def _named_arms(self) -> list[Any] | None:
        """Return labels of the arms that parameters name, in the user's order."""
        return None if self.arms is None else logs.plain_labels(self.arms)

    def _check_new_arms(self, codes: logs.Codes) -> None:
        """Refuse arms outside of a closed set, and warn of one that looks like another arm.

        `codes` are those of this policy, followed by the new arms.
        """
        new = list(codes)[len(self._codes) :]
        if new and self.new_arms == "error":
            raise ValueError(
                f"{first_few(new)} is not among the arms, {first_few(self._codes)}: with "
                "new_arms='error' they are those named in arms=."
            )
        twins = lookalike_label(new, codes)
        if twins is not None:
            label, twin = twins
            warn(
                f"arm {label!r} of type {type(label).__name__} is new, and the policy knows "
                f"the arm {twin!r} of type {type(twin).__name__}: labels of different types "
                "are different arms. Convert the labels to one type.",
                UserWarning,
            )

    def _rows(self, X: Any) -> Any:
        """Check contexts, an array or CSR.

        Those that only need finite values skip the full validation.
        """
        plain = self._plain_rows(X)
        if plain is not None and len(plain) and np.vdot(plain, plain) < LARGEST_CONTEXT**2:
            return plain
        return self._checked(X, reset=False)

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

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return contexts as an array or CSR, fully validated."""
        tags = self.__sklearn_tags__().input_tags
        _validation.check_not_masked(X, "X")
        X = _validation.as_contexts(X)
        with _validation.explained_entries(X, "the policy", numbers=True):
            X = validate_data(
                self,
                X,
                ensure_min_features=0,  # the intercept does without contexts
                dtype=np.float64,
                order="C",
                accept_sparse="csr" if tags.sparse else False,
                ensure_all_finite="allow-nan" if tags.allow_nan else True,
                reset=reset,
            )
        if X.shape[1] == 0 and not getattr(self, "fit_intercept", True):
            raise ValueError(
                "X has no columns and fit_intercept=False, so there is nothing to learn from: pass "
                "contexts, or fit_intercept=True."
            )
        if issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        # beyond, a policy would see no difference between any others
        large = abs(X) > LARGEST_CONTEXT
        if large.sum():
            row, column = (int(k[0]) for k in large.nonzero())
            names = getattr(self, "feature_names_in_", None)
            raise ValueError(
                f"X has {X[row, column]:g} in column {column if names is None else names[column]!r}"
                f" of row {row}: contexts beyond {LARGEST_CONTEXT:g} would hide all differences "
                "between others. Correct it, or choose another unit or origin; in a pipeline, it "
                "is the transformed value."
            )
        return X

    def _learn(self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any) -> None:
        """Check events, and learn those whose window has ended."""
        events = None
        if available is None and sample_weight is None:
            events = self._plain_event(X, y, reward)
        if events is None:
            events = self._read_events(X, y, reward, available, sample_weight)
        self._check_described(events.arms)
        if not len(events):
            return
        if self._equal is not None:  # warn once if all rewards since the beginning are equal
            only, n = self._equal if self._equal[1] else (float(events.reward[0]), 0)
            n += len(events)
            done = not (events.reward == only).all() or logs.warn_if_equal(only, n)
            self._equal = None if done else (only, n)
        self._note_step()
        now, later = events, None
        if self.update_every is not None:
            passed = events.window < events.window[-1]
            now, later = events.take(passed), events.take(~passed)
            if self._waiting and self._waiting[0].window[0] < events.window[-1]:
                self._learn_waiting()
        if not self._codes:
            first = dict.fromkeys(now.arms.tolist())
            self._number(logs.label_array(logs.ascending(first) or first))
        self._absorb(now)
        if later is not None:
            self._waiting = [*self._waiting, later]

    def _note_step(self) -> None:
        """Note a call that learns, after which the policy is no longer that of its copies."""
        here = process_entropy()
        self._path, self._walker = extended(self._path, self._walker == here), here

    def _learn_waiting(self) -> None:
        """Learn all delayed events."""
        self._absorb(join(self._waiting))
        self._waiting = []

    def _plain_event(self, X: Any, y: Any, reward: Any) -> Events | None:
        """Read one event of a known arm, of which nothing but action and reward is given.

        None if it is another, which `_read_events` reads: that takes .5 ms, also of one event.
        """
        action = y
        if isinstance(y, pd.DataFrame | dict) and reward is None and len(y) <= 2:
            if {*y} == {"action", "reward"}:
                action, reward = y["action"], y["reward"]
        plain = np.ndarray, list, pd.Series
        if not (isinstance(action, plain) and isinstance(reward, plain)):
            return None
        if len(action) != 1 or len(reward) != 1 or self.columns or self.update_every is not None:
            return None
        label, value = (
            column.iloc[0] if isinstance(column, pd.Series) else column[0]
            for column in (action, reward)
        )
        is_known = isinstance(label, str | int | np.integer) and label in self._codes
        is_number = isinstance(value, float | int | np.floating | np.integer | np.bool_)
        if not (is_known and is_number and abs(value) < LARGEST_CONTEXT):
            return None
        x = self._plain_rows(X)
        if x is None or len(x) != 1 or not np.vdot(x, x) < LARGEST_CONTEXT**2:
            return None
        rewards = np.array([value], dtype=np.float64)
        self._check_rewards(rewards)
        if getattr(self, "standardize", False):
            _validation.warn_of_wild_row(x, getattr(self, "feature_names_in_", None))
        return Events(
            x, logs.label_array([label]), rewards, np.ones(1), np.zeros(1, dtype=np.int64)
        )

    def _read_events(
        self, X: Any, y: Any, reward: Any, available: Any, sample_weight: Any
    ) -> Events:
        """Check events, and note their times."""
        tables = {"X": X, "y": y, "reward": reward, "sample_weight": sample_weight}
        _validation.warn_if_reordered(tables)
        available = logs.align_rows(available, X)
        X = self._rows(X)
        n_rows = X.shape[0]
        if getattr(self, "standardize", False):
            _validation.warn_of_wild_row(X, getattr(self, "feature_names_in_", None))
        if reward is None and logs.column_names(y) is None:
            y, reward = logs.count_actions(y)
            self._equal = None  # as this was said
        # only sets of available arms may refer to arms that are not played
        names = self._names_in(y)
        fields = {*(logs.column_names(y) or ()), *(names or ())}
        arms = self._codes if available is not None or "available" in fields else ()
        log = logs.read_log(
            y, n_rows, reward=reward, available=available, arms=arms, columns=names,
            table_arms=self._table_arms,
        )  # fmt: skip
        self._check_rewards(log.reward)
        if self._first_log is None and len(log) >= 10:
            self._first_log = log.fingerprint(X[log.sample()])
        weight = _validation.check_row_weights(sample_weight, n_rows, "sample_weight")
        window = np.zeros(n_rows, dtype=np.int64)
        every = read_interval(self.update_every)
        if every is not None:
            window = windows_of(log.timestamp, every)
        if log.timestamp is not None:
            check_time(log.timestamp, self._latest, every=every, forgetting=self._forgetting())
            self._note_times(log.timestamp[weight > 0])
        events = Events(X, log.arms[log.action], log.reward, weight, window)
        return events.take(weight > 0)

    def _forgetting(self) -> float:
        """Return factor by which all models forget."""
        return 1.0 if isinstance(self.forgetting, str) else self.forgetting

    def _note_times(self, timestamp: np.ndarray) -> None:
        """Remember the latest time of events."""
        if len(timestamp):
            latest = -np.inf if self._latest is None else self._latest
            self._latest = max(latest, float(timestamp.max()))

    def _ready(self, X: Any, available: Any) -> tuple[Self, Any, logs.Pools, logs.Codes]:
        """Return the present policy, checked contexts, the arms of their rows, and numbers of arms.

        Known arms come first, then new ones. An unfitted policy that knows arms starts without
        experience.
        """
        available = logs.align_rows(available, X)
        self._begin_with(X, available, arms_are_named=self._named_arms() is not None)
        now = self._now()
        X, codes = now._rows(X), now._codes
        if available is None:
            if not codes:
                raise NotFittedError(
                    f"This {type(self).__name__} knows no arms, as its events wait for the end of "
                    "their window of update_every: pass available= to choose by the prior, name "
                    "the arms with arms=, or call advance()."
                )
            return now, X, logs.Pools.of_all(X.shape[0], len(codes)), codes
        codes = dict(codes)
        pools = logs.read_pools(available, X.shape[0], codes, now._table_arms)
        if len(codes) > len(now._codes):
            now._check_new_arms(codes)
            codes, pools = logs.in_label_order(codes, pools, len(now._codes))
        return now, X, pools, codes
