"""Choice probabilities of the evaluated policy on the events of a log."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit import logs
from skbandit.evaluation._off_policy._sums import WeightedEvents
from skbandit.evaluation._policy_protocol import (
    attributes_for,
    check_not_learned,
    check_rule,
    checked_choices,
    known_arms,
    name_columns,
)
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import as_contexts, first_few, refuse_lazy, warn, warn_if_reordered

LARGEST_WEIGHT = 1e100
"""Largest weight π/p of an event; beyond it, squares of sums of weighted rewards may overflow."""

# Rows may sum to 1, and probabilities exceed 1, within this rounding error.
_SUM_TOLERANCE, _ROUNDED = 1e-6, 0.51e-4

_MUCH = 0.01
"""Share of a policy's choices that a warning is worth if no event shows what they earn."""


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
    """

    log: logs.Log
    logged: np.ndarray
    of_arms: np.ndarray | None
    arms: list[Any]

    def events(self, q: np.ndarray | None = None) -> WeightedEvents:
        """Return the estimators' input, with predicted rewards q of shape (n_events, n_arms)."""
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


@dataclass(frozen=True)
class ArmUse:
    """How often each arm is logged, and chosen by the evaluated policy; those of blocks add up."""

    logged: Counter[Any]
    chosen: Counter[Any]  # sums of probabilities

    @classmethod
    def of(cls, evaluated: EvaluatedLog) -> ArmUse:
        """Return the arms of a log, and those chosen if their probabilities are known."""
        log, arms, of_arms = evaluated.log, evaluated.arms, evaluated.of_arms
        logged = np.bincount(log.action, minlength=len(log.arms)).tolist()
        chosen = [] if of_arms is None else of_arms.sum(axis=0).tolist()
        return cls(
            Counter(dict(zip(log.arms.tolist(), logged, strict=True))),
            Counter(dict(zip(arms, chosen, strict=False))),
        )

    def __add__(self, other: ArmUse) -> ArmUse:
        return ArmUse(self.logged + other.logged, self.chosen + other.chosen)

    @property
    def unlogged(self) -> str:
        """Say what the policy chooses and the log has no event of; "" if hardly anything."""
        new = {arm: times for arm, times in self.chosen.items() if times and not self.logged[arm]}
        share = sum(new.values()) / max(self.logged.total(), 1)
        if share < _MUCH:
            return ""
        return (
            f"{share:.1%} of the policy's choices are arms that were never logged, "
            f"{first_few(list(new))}: nothing is known of their rewards, and the estimate is of "
            "the others. Is the label written as in the log, which has "
            f"{first_few([arm for arm, times in self.logged.items() if times])}?"
        )


def read_evaluated(
    given: Any,
    X: Any,
    y: Any,
    *,
    rule: str,
    columns: Mapping[str, Any] | None = None,
    reward: Any = None,
    available: Any = None,
    attributes: Any = None,
    of_logged: bool = False,
    **options: Any,
) -> EvaluatedLog:
    """Read a log, and the choice probabilities of the evaluated policy on its events.

    Parameters
    ----------
    given : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or probabilities of all arms or of the
        logged actions; or labels of the chosen arms.
    X, y, rule, columns, reward, available, attributes : object
        As in `skbandit.evaluation.off_policy_value`.
    of_logged : bool, default=False
        Whether one value per event is known to be a probability, not a label.
    **options : dict
        As in `read_log`.

    Returns
    -------
    EvaluatedLog
    """
    check_rule(rule)
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class: pass a fitted {given.__name__}(...).")
    refuse_lazy(
        {"policy": given, "X": X, "y": y, "reward": reward, "available": available},
        ", or use off_policy_blocks, which takes Dask DataFrames",
    )
    policy = policy_of(given)
    is_fitted = getattr(policy, "__sklearn_is_fitted__", None)
    if is_fitted is not None and not is_fitted():  # and can nevertheless choose
        warn(
            f"{type(policy).__name__} is not fitted: the value is that of its choices before it "
            "has learned anything. Fit it to earlier events, or see replay.",
            UserWarning,
        )
    named = logs.column_names(y) is not None
    columns, reward = name_columns(policy, columns, reward, named=named)
    table = None
    if policy is None:
        if attributes is not None:
            raise ValueError(
                "attributes are for a policy, and these are its choices: leave them out."
            )
        warn_if_reordered({"X": X, "policy": given, "y": y, "reward": reward})
        if isinstance(given, list | tuple) and len(given) and isinstance(given[0], tuple):
            arms = logs.read_log(y, reward=reward, columns=columns).arms.tolist()
            given = pd.Series(logs.label_array(given)) if given[0] in arms else given
        table = as_table(given)
        table_arms = _arms_of_columns(table, y, reward, columns)
        if isinstance(table, pd.DataFrame) and isinstance(available, np.ndarray):
            if available.shape[1:] == table.shape[1:]:  # its columns are those of the table
                available = pd.DataFrame(available, columns=table.columns)
    else:
        warn_if_reordered({"X": X, "y": y, "reward": reward, "attributes": attributes})
        table_arms = known_arms(policy)
        as_contexts(X)  # which a policy needs
    log = logs.read_log(
        y,
        None if X is None else count_rows(X),
        reward=reward,
        available=logs.align_rows(available, X),
        table_arms=table_arms,
        columns=columns,
        **options,
    )
    if log.propensity is None:
        logs.check_uniform(log, X)
    codes = {label: k for k, label in enumerate(log.arms.tolist())}
    if table is None:
        policy, rows = behind_transformers(given, X)
        logs.warn_without_pools(policy, log.pools)
        check_not_learned(policy, rows, log)
        of_arms = _probabilities_of_policy(policy, rows, log, codes, rule, attributes)
    elif table.ndim == 2:
        of_arms = _probabilities_of_table(table, table_arms or [], len(log), codes)
    elif are_floats(table):
        if not of_logged:
            _refuse_float_labels(table, codes)
        logged = _check_range(logs.read_numbers(table, len(log), "probabilities"))
        return EvaluatedLog(log, logged, None, list(codes))
    else:
        of_arms = _of_labels(table, len(log), codes)
    check_available(of_arms, log, list(codes))
    return EvaluatedLog(log, of_arms[np.arange(len(log)), log.action], of_arms, list(codes))


def policy_of(given: Any) -> Any:
    """Return the policy, taken out of a Pipeline or search; None for anything else."""
    if hasattr(given, "__array__"):  # polars tables have a method select, too
        return None
    policy, _ = behind_transformers(given, None)
    return policy if hasattr(policy, "select") or hasattr(policy, "predict") else None


def as_table(given: Any) -> Any:
    """Return a DataFrame with a column per arm, a 2D array, or a Series with a value per event."""
    if isinstance(given, list | tuple) and not any(
        isinstance(row, list | tuple | np.ndarray) for row in given
    ):
        given = logs.label_array(given)  # not an array at once, which would turn 1 into "1"
    if hasattr(given, "columns"):
        return pd.DataFrame(np.asarray(given), columns=list(given.columns))
    try:
        given = given.toarray() if issparse(given) else given
        table = np.asarray(given) if not isinstance(given, pd.Series) else given
    except ValueError as error:
        raise ValueError(f"probabilities: {error}.") from error
    if table.ndim == 2 and table.dtype == object:
        with suppress(TypeError, ValueError, OverflowError):
            table = table.astype(np.float64)
    if table.shape[1:] == (1,) and (table.dtype.kind in "OSU" or (table > 1).any()):
        raise ValueError(
            f"labels of the chosen arms must have the shape (n_events,), got {table.shape}: pass "
            "labels.ravel()."
        )
    is_structured = getattr(table.dtype, "names", None) is not None
    if is_structured or table.ndim not in (1, 2) or (table.ndim == 2 and table.dtype == object):
        raise TypeError(
            "expected a fitted policy (with select or predict), probabilities of shape "
            "(n_events, n_arms) or (n_events,), or one label of the chosen arm per event, got "
            f"{type(given).__name__}."
        )
    return pd.Series(table) if table.ndim == 1 else table


def are_floats(values: pd.Series) -> bool:
    """Tell whether the values are floats, also if stored as objects."""
    if values.dtype == object:
        kind = pd.api.types.infer_dtype(values, skipna=True)
        return kind in ("floating", "mixed-integer-float", "decimal")
    return bool(pd.api.types.is_float_dtype(values.dtype))


def _refuse_float_labels(values: pd.Series, codes: logs.Codes) -> None:
    """Refuse floats that may be labels of the chosen arms, and not probabilities."""
    distinct = values.dropna().unique().tolist()
    if distinct and all(value in codes for value in distinct):
        raise ValueError(
            f"the values {first_few(sorted(distinct))} are both arms of the log and floats: for "
            "labels of the chosen arms, pass integers, strings or a pandas Categorical; for "
            "probabilities, pass a table with one column per arm."
        )


def _of_labels(labels: Any, n_events: int, codes: logs.Codes, name: str = "") -> np.ndarray:
    """Probabilities (n_events, n_arms) of a policy that is certain to choose the given labels.

    Labels that are not arms of the log extend `codes`. Without the name of a method that returned
    them, they are a user's, of which some must be arms of the log.
    """
    choice = number_of_choice(labels, n_events, codes, name)
    of_arms = np.zeros((n_events, len(codes)))
    of_arms[np.arange(n_events), choice] = 1.0
    return of_arms


def number_of_choice(labels: Any, n_events: int, codes: logs.Codes, name: str = "") -> np.ndarray:
    """Numbers of the chosen arms, as in `_of_labels`."""
    if len(labels) != n_events:
        raise ValueError(
            f"there are {len(labels)} labels of chosen arms for {n_events} events: pass one "
            "label per event."
        )
    arms = list(codes)
    if not name and labels.dtype == bool and not set(arms) <= {0, 1}:  # True equals 1
        raise ValueError(
            f"the policy is an array of booleans, which are no arms of the log, {first_few(arms)}: "
            "pass the labels of the chosen arms, or probabilities."
        )
    choice = logs.code_labels(labels, codes, name or "the label of the chosen arm")
    if not name and (choice >= len(arms)).all():
        new = list(codes)[len(arms) :]
        raise ValueError(
            f"none of the chosen labels, {first_few(new)}, is an arm of the log, "
            f"{first_few(arms)}: pass labels as the log writes them, or floats for the "
            "probabilities of the logged actions."
        )
    return choice


def _arms_of_columns(
    table: Any, y: Any, reward: Any, columns: Mapping[str, Any] | None
) -> list[Any] | None:
    """Arms of the columns of probabilities; None for one value per event."""
    if table.ndim == 1:
        return None
    if isinstance(table, pd.DataFrame):
        return table.columns.tolist()
    arms = logs.read_log(y, reward=reward, columns=columns).arms.tolist()
    ordered = logs.ascending(arms)
    if ordered is None:
        raise ValueError(
            f"the log's arms, {first_few(arms)}, cannot be sorted, so the arms of the columns of "
            "the probabilities are unknown: pass a DataFrame with one column per arm."
        )
    return ordered


def _probabilities_of_policy(
    policy: Any, X: Any, log: logs.Log, codes: logs.Codes, rule: str, attributes: Any
) -> np.ndarray:
    """Probabilities of a policy's choices; arms that are not in the log extend `codes`."""
    name = type(policy).__name__
    available = log.available_labels()
    policy = copy.deepcopy(policy)  # random draws change its state
    if rule == "select" and hasattr(policy, "select_proba"):
        given = attributes_for(policy, "select_proba", attributes)
        chances = policy.select_proba(X, available=available, **given)
        probabilities = np.asarray(chances, dtype=np.float64)
        arms = logs.plain_labels(policy.arms_)
        if probabilities.shape != (len(log), len(arms)):
            raise ValueError(
                f"{name}.select_proba: shape {probabilities.shape}, "
                f"expected {(len(log), len(arms))}, one column per arm of arms_, {arms}."
            )
        of_arms = by_number(probabilities, arms, codes)
        # divide the rest of each row equally among the available arms new to the policy
        of_policy = set(arms)
        is_new = np.array([label not in of_policy for label in codes])
        new = log.available_mask(len(codes)) & is_new
        count = new.sum(axis=1)
        rest = np.where(count > 0, 1 - of_arms.sum(axis=1), 0.0).clip(min=0.0)
        of_arms = of_arms + new * (rest / np.maximum(count, 1))[:, None]
        return _check_sums(of_arms, "select_proba")
    if not hasattr(policy, rule):
        other = "predict" if rule == "select" else "select"
        raise ValueError(f"{name} has no {rule}: choose rule={other!r}.")
    choices = checked_choices(policy, rule, attributes)(X, available)
    return _of_labels(choices, len(log), codes, f"{name}.{rule}")


def _probabilities_of_table(
    table: Any, columns: list[Any], n: int, codes: logs.Codes
) -> np.ndarray:
    """Return validated probabilities; arms that are not in the log extend `codes`."""
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
    if not set(columns) & set(codes):
        raise ValueError(
            f"probabilities: no arm of the log, {list(codes)}, is among the columns {columns}."
        )
    return _check_sums(by_number(values, columns, codes), "probabilities")


def by_number(values: np.ndarray, columns: list[Any], codes: logs.Codes) -> np.ndarray:
    """Probabilities with columns in order of arm numbers; other arms extend `codes`."""
    if len(set(columns)) != len(columns):
        raise ValueError(f"probabilities: two columns have the same arm, among {columns}.")
    numbers = [codes.setdefault(label, len(codes)) for label in columns]
    of_arms = np.zeros((len(values), len(codes)))
    of_arms[:, numbers] = _check_range(values)
    return of_arms


def _check_sums(of_arms: np.ndarray, name: str) -> np.ndarray:
    """Require rows that sum to 1, up to entries rounded to four digits, and scale these."""
    total = of_arms.sum(axis=1)
    missed = abs(total - 1)
    wrong = np.flatnonzero(missed > max(_SUM_TOLERANCE, _ROUNDED * of_arms.shape[1]))
    if len(wrong):
        raise ValueError(f"{name} must sum to 1: row {wrong[0]} sums to {total[wrong[0]]:g}.")
    return np.where((missed > _SUM_TOLERANCE)[:, None], of_arms / total[:, None], of_arms)


def _check_range(probabilities: np.ndarray) -> np.ndarray:
    """Require probabilities between 0 and 1, up to rounding."""
    wrong = ~((probabilities >= 0) & (probabilities <= 1 + _SUM_TOLERANCE))
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"probabilities must be in [0, 1]: row {place[0]} has {probabilities[place]:g}."
        )
    return probabilities


def check_available(of_arms: np.ndarray, log: logs.Log, labels: list[Any]) -> None:
    """Require that only available arms are chosen, if the log has availability."""
    if log.pools is None:
        return
    wrong = (of_arms > 0) & ~log.pools.mask(len(labels))
    if wrong.any():
        row, arm = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"row {row}: arm {labels[arm]!r} is chosen with probability {of_arms[row, arm]:g}, but "
            "was not available to this event."
        )
