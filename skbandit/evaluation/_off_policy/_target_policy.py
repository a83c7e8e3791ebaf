"""Choice probabilities of the evaluated policy on the events of a log."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._off_policy._sums import WeightedEvents
from skbandit.evaluation._policy_protocol import (
    check_not_learned,
    check_rule,
    checked_choices,
    known_arms,
    log_columns,
    plain_labels,
)
from skbandit.logs import (
    Codes,
    Log,
    check_uniform,
    code_labels,
    column_names,
    label_array,
    named_rewards,
    read_log,
    read_numbers,
    read_rewards,
)
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import first_few, warn_if_reordered

# How pandas calls numbers stored as objects that are not all integers.
_FLOATING = ("floating", "mixed-integer-float", "decimal")


def are_labels(values: pd.Series | np.ndarray, arms: Collection[Any]) -> bool:
    """Whether one value per event is the label of the chosen arm, not a probability.

    Parameters
    ----------
    values : Series or ndarray of shape (n_events,)
        Only floats can be probabilities; integers, booleans, strings, categories and all other
        values are labels.
    arms : collection of labels
        Arms of the log.

    Returns
    -------
    bool
        Floats are labels if each is an arm and they do not all lie in [0, 1].

    Raises
    ------
    ValueError
        If the floats could be either: each is an arm of the log, and all lie in [0, 1]; or if
        the array is structured.
    """
    names = getattr(values.dtype, "names", None)
    if names is not None:
        raise ValueError(
            f"probabilities is a structured array with fields {first_few(names)}: pass "
            "pandas.DataFrame(probabilities), with one column per arm."
        )
    series = pd.Series(values)
    if not _has_floats(series):
        return True
    distinct = series.dropna().unique().tolist()
    known = set(arms)
    if not distinct or not all(value in known for value in distinct):
        return False
    if all(0 <= value <= 1 for value in distinct):
        raise ValueError(
            f"the values {first_few(sorted(distinct))} are both arms of the log and numbers in "
            "[0, 1]: for labels of the chosen arms, pass integers, strings or a pandas "
            "Categorical; for probabilities, pass a table with one column per arm."
        )
    return True


def require_probabilities(values: pd.Series | np.ndarray, name: str) -> None:
    """Require floats for a column that is said to hold probabilities."""
    if not _has_floats(pd.Series(values)):
        found = pd.Series(values)
        raise ValueError(
            f"column {name!r} holds {found.dtype} values such as {found.iloc[0]!r}, which look "
            "like labels of chosen arms: pass a column with the probabilities of the logged "
            "actions, as floats."
        )


def certain(labels: pd.Series | np.ndarray, n_events: int, codes: Codes) -> np.ndarray:
    """Probabilities (n_events, n_arms) of a policy that is certain to choose the given labels.

    Labels that are not arms of the log extend `codes`.
    """
    if len(labels) != n_events:
        raise ValueError(
            f"there are {len(labels)} labels of chosen arms for {n_events} events: pass one "
            "label per event."
        )
    arms = list(codes)
    choice = code_labels(labels, codes, "the label of the chosen arm")
    if (choice >= len(arms)).all():
        new = list(codes)[len(arms) :]
        raise ValueError(
            f"none of the chosen labels, {first_few(new)}, is an arm of the log, "
            f"{first_few(arms)}: pass labels as the log writes them, or floats for the "
            "probabilities of the logged actions."
        )
    of_arms = np.zeros((n_events, len(codes)))
    of_arms[np.arange(n_events), choice] = 1.0
    return of_arms


def _has_floats(series: pd.Series) -> bool:
    """Whether the values are floats, also if stored as objects."""
    if series.dtype == object:
        return pd.api.types.infer_dtype(series, skipna=True) in _FLOATING
    return bool(pd.api.types.is_float_dtype(series.dtype))


LARGEST_WEIGHT = 1e100
"""Largest weight π/p of an event; beyond it, squares of sums of weighted rewards may overflow."""

# Rows may sum to 1, and probabilities exceed 1, within this rounding error.
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class EvaluatedLog:
    """A log, with the choice probabilities of the evaluated policy.

    Parameters
    ----------
    log : Log
        Its arms have the numbers 0, 1, ...
    logged : ndarray of shape (n_events,)
        Probabilities of the logged actions.
    of_arms : ndarray of shape (n_events, n_arms), or None
        Probabilities of all arms: those of the log, then other arms that the policy knows. None
        if only the probabilities of the logged actions are known.
    arms : list of labels
        Labels of the columns of `of_arms`.
    rewards : dict of ndarray, default={}
        Rewards by name, if they are named; the first ones are those of the log.
    """

    log: Log
    logged: np.ndarray
    of_arms: np.ndarray | None
    arms: list[Any]
    rewards: Mapping[str, np.ndarray] = field(default_factory=dict)

    def by_reward(self) -> dict[str | None, EvaluatedLog]:
        """The same log with each of the named rewards; by None if they have no name."""
        if not self.rewards:
            return {None: self}
        return {
            name: replace(self, log=replace(self.log, reward=values), rewards={})
            for name, values in self.rewards.items()
        }

    def events(self, q: np.ndarray | None = None) -> WeightedEvents:
        """The input of the estimators, with predicted rewards q of shape (n_events, n_arms)."""
        with np.errstate(over="ignore"):
            weight = self.logged / self.log.probability
        if weight.max(initial=0.0) > LARGEST_WEIGHT:
            row = int(weight.argmax())
            raise ValueError(
                f"row {row} has the weight {weight[row]:g}, a probability of {self.logged[row]:g} "
                f"over the propensity {self.log.probability[row]:g}, above {LARGEST_WEIGHT:g}, "
                "beyond which sums of squares overflow: correct the propensity, or drop the event."
            )
        largest_weight = 1 / float(self.log.probability.min())
        if q is None:
            return WeightedEvents(self.log.reward, weight, largest_weight)
        assert self.of_arms is not None  # checked by the callers
        q_logged = q[np.arange(len(self.log)), self.log.action]
        return WeightedEvents(
            self.log.reward,
            weight,
            largest_weight,
            q_logged,
            np.einsum("ij,ij->i", self.of_arms, q),
        )


def read_evaluated(
    given: Any,
    X: Any,
    y: Any,
    available: Any,
    reward: Any,
    propensity: Any,
    rule: str,
    arms: Iterable[Any] = (),
    probabilities: bool = False,
    columns: Mapping[str, Any] | None = None,
) -> EvaluatedLog:
    """Read a log, and the choice probabilities of the evaluated policy on its events.

    Parameters
    ----------
    given : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or probabilities of all arms or of the
        logged actions; or labels of the chosen arms.
    X, y, available, reward, propensity, columns : object
        As in `skbandit.evaluation.ips`.
    rule : {"select", "predict"}
        The evaluated choice of a policy.
    arms : iterable of labels, default=()
        Arms of the whole log, whether or not they occur in these events.
    probabilities : bool, default=False
        Whether one value per event is known to be a probability, not a label.

    Returns
    -------
    EvaluatedLog
    """
    check_rule(rule)
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class: pass a fitted {given.__name__}(...).")
    policy = _policy_of(given)
    columns = log_columns(policy, columns, reward, named=column_names(y) is not None)
    reward, columns, reward_names = named_rewards(y, reward, columns)
    named = {"policy_or_probabilities": given} if policy is None else {}
    warn_if_reordered({"X": X, **named, "y": y})
    if policy is not None and X is None:
        raise ValueError("X is None: a policy needs contexts.")
    table = _as_table(given) if policy is None else None
    table_arms = (
        known_arms(policy) if table is None else _arms_of_columns(table, y, reward, columns)
    )
    log = read_log(
        y,
        None if X is None else count_rows(X),
        reward=reward,
        propensity=propensity,
        available=available,
        arms=arms,
        table_arms=table_arms,
        columns=columns,
    )
    if log.propensity is None:
        check_uniform(log)
    rewards = read_rewards(y, reward_names, len(log))
    codes = {label: k for k, label in enumerate(log.arms.tolist())}
    if table is not None and table.ndim == 1:
        if probabilities or not are_labels(table, codes):
            of_logged = _check_range(read_numbers(table, len(log), "probabilities"))
            return EvaluatedLog(log, of_logged, None, list(codes), rewards)
        of_arms = certain(table, len(log), codes)
    elif table is None:
        policy, rows = behind_transformers(given, X)
        check_not_learned(policy, rows, log)
        of_arms = _of_policy(policy, rows, log, codes, rule)
    else:
        of_arms = _of_table(table, table_arms or [], len(log), codes)
    _check_available(of_arms, log, list(codes))
    of_logged = of_arms[np.arange(len(log)), log.action]
    return EvaluatedLog(log, of_logged, of_arms, list(codes), rewards)


def _policy_of(given: Any) -> Any:
    """The policy, taken out of a Pipeline or search; None for probabilities."""
    if hasattr(given, "__array__"):  # polars tables have a method select, too
        return None
    policy, _ = behind_transformers(given, None)
    return policy if hasattr(policy, "select") or hasattr(policy, "predict") else None


def _as_table(given: Any) -> Any:
    """Probabilities or labels as a DataFrame (one column per arm), Series or array."""
    if isinstance(given, pd.Series | pd.DataFrame):
        return given
    if isinstance(given, list | tuple):  # not an array at once, which would turn 1 into "1"
        given = label_array(given) if _flat(given) else given
    if hasattr(given, "columns"):
        return pd.DataFrame(np.asarray(given), columns=list(given.columns))
    try:
        table = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"probabilities: {error}.") from error
    if table.ndim not in (1, 2) or (table.ndim == 2 and table.dtype == object):
        raise TypeError(
            "expected a fitted policy (with select or predict), probabilities of shape "
            "(n_events, n_arms) or (n_events,), or one label of the chosen arm per event, got "
            f"{type(given).__name__}."
        )
    return table


def _flat(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether none of the values is itself a row of values."""
    return not any(isinstance(value, list | tuple | np.ndarray) for value in values)


def _arms_of_columns(
    table: Any, y: Any, reward: Any, columns: Mapping[str, Any] | None
) -> list[Any] | None:
    """Arms of the columns of probabilities; None for probabilities of logged actions."""
    if table.ndim == 1:
        return None
    if isinstance(table, pd.DataFrame):
        return table.columns.tolist()
    arms = read_log(y, reward=reward, columns=columns).arms.tolist()
    try:
        return sorted(arms)
    except TypeError as error:
        raise ValueError(
            "the log's arms cannot be sorted, so the arms of the columns of the probabilities are "
            f"unknown: pass a DataFrame with one column per arm ({error})."
        ) from error


def _of_policy(policy: Any, X: Any, log: Log, codes: Codes, rule: str) -> np.ndarray:
    """Probabilities of a policy's choices; arms that are not in the log extend `codes`."""
    name = type(policy).__name__
    sets, set_of_event = log.available_sets()
    available = [sets[k] for k in set_of_event.tolist()]
    policy = copy.deepcopy(policy)  # random draws change its state
    if rule == "select" and hasattr(policy, "select_proba"):
        found = np.asarray(policy.select_proba(X, available=available), dtype=np.float64)
        arms = plain_labels(policy.arms_)
        if found.shape != (len(log), len(arms)):
            raise ValueError(
                f"{name}.select_proba: shape {found.shape}, expected {(len(log), len(arms))}, one "
                f"column per arm of arms_, {arms}."
            )
        of_arms = _by_number(found, arms, codes)
        return _with_new_arms(of_arms, log.available_mask(len(codes)), arms, codes)
    if not hasattr(policy, rule):
        other = "predict" if rule == "select" else "select"
        raise ValueError(f"{name} has no {rule}: choose rule={other!r}.")
    choice = code_labels(checked_choices(policy, rule)(X, available), codes, f"{name}.{rule}")
    of_arms = np.zeros((len(log), len(codes)))
    of_arms[np.arange(len(log)), choice] = 1.0
    return of_arms


def _with_new_arms(
    of_arms: np.ndarray, available: np.ndarray, known: list[Any], codes: Codes
) -> np.ndarray:
    """Divide the rest of each row equally among the available arms new to the policy."""
    new = available & np.array([label not in set(known) for label in codes])
    count = new.sum(axis=1)
    rest = np.where(count > 0, 1 - of_arms.sum(axis=1), 0.0).clip(min=0.0)
    of_arms = of_arms + new * (rest / np.maximum(count, 1))[:, None]
    return _check_sums(of_arms, "select_proba")


def _of_table(table: Any, columns: list[Any], n: int, codes: Codes) -> np.ndarray:
    """Validated probabilities; arms that are not in the log extend `codes`."""
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"probabilities must be numbers: {error}.") from error
    if values.shape != (n, len(columns)):
        raise ValueError(
            f"probabilities: shape {values.shape}, expected {(n, len(columns))}, one row per event "
            f"and one column per arm, in this order: {columns}. The columns of a DataFrame name "
            "their arms, and need not be in the log."
        )
    if len(set(columns)) != len(columns):
        raise ValueError(f"probabilities: two columns have the same arm, among {columns}.")
    if not set(columns) & set(codes):
        raise ValueError(
            f"probabilities: no arm of the log, {list(codes)}, is among the columns {columns}."
        )
    return _check_sums(_by_number(values, columns, codes), "probabilities")


def _by_number(values: np.ndarray, columns: list[Any], codes: Codes) -> np.ndarray:
    """Probabilities with columns in order of arm numbers."""
    numbers = [codes.setdefault(label, len(codes)) for label in columns]
    of_arms = np.zeros((len(values), len(codes)))
    of_arms[:, numbers] = _check_range(values)
    return of_arms


def _check_sums(of_arms: np.ndarray, name: str) -> np.ndarray:
    """Require rows that sum to 1."""
    total = of_arms.sum(axis=1)
    wrong = np.flatnonzero(abs(total - 1) > _SUM_TOLERANCE)
    if len(wrong):
        raise ValueError(f"{name} must sum to 1: row {wrong[0]} sums to {total[wrong[0]]:g}.")
    return of_arms


def _check_range(probabilities: np.ndarray) -> np.ndarray:
    """Require probabilities between 0 and 1, up to rounding."""
    wrong = ~((probabilities >= 0) & (probabilities <= 1 + _SUM_TOLERANCE))
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"probabilities must be in [0, 1]: row {place[0]} has {probabilities[place]:g}."
        )
    return probabilities


def _check_available(of_arms: np.ndarray, log: Log, labels: list[Any]) -> None:
    """Require that only available arms are chosen, if the log has availability."""
    if log.pools is None:
        return
    wrong = (of_arms > 0) & ~log.available_mask(len(labels))
    if wrong.any():
        row, arm = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"row {row}: arm {labels[arm]!r} is chosen with probability {of_arms[row, arm]:g}, but "
            "was not available to this event."
        )
