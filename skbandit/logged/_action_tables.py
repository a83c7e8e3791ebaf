"""Tables of what actions lead to, (n, D), from logs, logs of slates, and tables of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit import logs
from skbandit.utils._exact import exact_column, exact_table
from skbandit.utils._validation import first_few, warn_if_wrapped

COST, REWARD = "cost", "reward"
"""Names of what a table of costs holds, and of the outcome that is the log's reward."""


def arms_of_table(y: Any) -> np.ndarray:
    """Labels of the columns of a table of costs."""
    names = logs.column_names(y)
    if names is None:
        table = np.asarray(y)
        if table.ndim != 2 or table.dtype.kind not in "fiu":
            raise ValueError(
                "y must be a log, a DataFrame with columns action and reward, or a table of costs "
                f"with a column per action, got an array of shape {table.shape}."
            )
        return np.arange(table.shape[1])
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise ValueError(f"y has two columns {twice[0]!r}: each action has one column of costs.")
    if {REWARD, "propensity"} & set(names) or not all(
        pd.api.types.is_numeric_dtype(exact_column(y[name]).dtype) for name in names
    ):
        raise ValueError(
            f"y has the columns {first_few(names)}: a log needs a column of actions, named "
            "'action' or by columns={'action': ...}; a table of costs has one numeric column per "
            "action."
        )
    return logs.label_array(names)


def read_costs(y: Any, n: int, arms: np.ndarray) -> np.ndarray:
    """Return a table of costs as floats; nan is not observed."""
    table = logs.read_cost_values(exact_table(y), arms)
    if len(table) != n:
        raise ValueError(f"y has {len(table)} rows, X has {n}.")
    logs.warn_if_rewards(table, "y", y)
    return np.asarray(table, dtype=float)


def outcome_of_log(y: Any, log: logs.Log, name: str) -> np.ndarray:
    """Return a column of a log, or its reward, shape (n,)."""
    if name == REWARD:
        return np.asarray(log.reward)
    if name not in (columns := logs.column_names(y) or []):
        raise ValueError(
            f"outcome({name!r}) is not a column of the log: its columns are {first_few(columns)}."
        )
    numbers = np.asarray(logs.read_numbers(y[name], len(log), name))
    warn_if_wrapped(y[name], numbers, name)
    return numbers


@dataclass(frozen=True, eq=False)
class LoggedOutcomes:
    """Outcomes of a log's events, and how often events like them are logged.

    Attributes
    ----------
    place : ndarray of int, shape (n,)
        Number of the logged action among those of the policy; -1 if it has no such action.
    propensity : ndarray of shape (n,)
    values : dict of str to ndarray of shape (n,)
        By name of the outcome.
    """

    place: np.ndarray
    propensity: np.ndarray
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, y: Any, log: logs.Log, names: Sequence[str], arms: np.ndarray) -> LoggedOutcomes:
        """Outcomes of a log, whose arms may be others than those of the policy."""
        values = {name: outcome_of_log(y, log, name) for name in names}
        numbers = {label: k for k, label in enumerate(arms.tolist())}
        place = np.array([numbers.get(label, -1) for label in log.arms.tolist()])[log.action]
        return cls(place, log.probability, values)

    def tables(self, D: int) -> dict[str, np.ndarray]:
        """Return a table (n, D) of each outcome, known of the logged action, nan of others."""
        tables = {name: np.full((len(self.place), D), np.nan) for name in self.values}
        for name, table in tables.items():
            table[np.arange(len(table)), self.place] = self.values[name]
        return tables

    def doubly_robust(self, predicted: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outcomes of all actions, unbiased whatever is predicted (Dudík, Langford and Li 2011).

        `predicted` are tables (n, D) of models that were fitted without the row.
        """
        rows = np.flatnonzero(self.place >= 0)
        at, tables = (rows, self.place[rows]), {k: table.copy() for k, table in predicted.items()}
        for name, table in tables.items():
            table[at] += (self.values[name][rows] - table[at]) / self.propensity[rows]
        return tables

    def matches(self, event: np.ndarray, decision: np.ndarray) -> np.ndarray:
        """Inverse propensity of each event whose action was decided, (n,); 0 of others.

        `decision` is of the rows `event`, which may have several.
        """
        same = event[self.place[event] == decision]
        matches = np.zeros(len(self.place))
        matches[same] = 1.0 / self.propensity[same]
        return matches

    def unseen(self, name: str, counted: np.ndarray) -> float:
        """Bound on how a further event's outcome may differ where all counted outcomes are equal.

        0 if it is not.
        """
        value = self.values[name]
        if counted.any() and np.ptp(value[counted]) > 0:
            return 0.0
        return float(np.ptp(value)) or abs(float(value[0])) or 1.0


def read_action_log(
    y: Any, n: int, available: Any, columns: Mapping[str, Any] | None, X: Any
) -> logs.Log | None:
    """Return the log, checked for what cannot be right; None if y is a table of costs."""
    if not logs.is_log(y, columns):
        return None
    reward = None if "reward" in (logs.columns_of(y, columns) or {}) else np.zeros(n)
    log = logs.read_log(
        y, n, available=available, reward=reward, columns=columns
    ).with_sorted_arms()
    logs.check_propensities(log, X)
    return log


def costs_of_slates(
    y: Any, n: int, available: Any, columns: Mapping[str, Any] | None
) -> tuple[pd.DataFrame, Any]:
    """Return the negative rewards of the arms shown, nan for others; and the available arms."""
    log = logs.read_slates(y, n, available=available, columns=columns)
    reward = log.of_arms(log.reward, "reward")
    table = np.full((n, len(log.arms)), np.nan)
    row, place = np.nonzero(log.shown)
    table[row, log.action[row, place]] = -reward[row, place]
    arms = logs.label_array(log.arms.tolist())
    return pd.DataFrame(table, columns=arms), None if log.pools is None else log.available_labels()
