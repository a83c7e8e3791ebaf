"""Which slates the evaluated policy would have shown."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._policy_protocol import check_rule
from skbandit.logs import SlateLog
from skbandit.utils._pipeline import behind_transformers


def is_policy(given: Any) -> bool:
    """Whether a policy is given, rather than slates or probabilities."""
    if hasattr(given, "__array__"):
        return False
    policy, _ = behind_transformers(given, None)
    return hasattr(policy, "select") or hasattr(policy, "predict")


def shown_slates(policy: Any, X: Any, log: SlateLog, rule: str) -> np.ndarray:
    """Labels of the slates that a policy shows, (n_events, m)."""
    policy, X = behind_transformers(policy, X)
    if not hasattr(policy, rule):
        raise ValueError(f"{type(policy).__name__} has no {rule}.")
    return checked_slates(
        getattr(policy, rule)(X, available=log.available_sets()),
        len(log),
        f"{type(policy).__name__}.{rule}",
    )


def checked_slates(slates: Any, n_events: int, name: str) -> np.ndarray:
    """Slates as an array of labels of shape (n_events, m)."""
    table = slates.to_numpy() if isinstance(slates, pd.DataFrame) else np.asarray(slates)
    if table.ndim != 2 or len(table) != n_events:
        raise ValueError(
            f"{name}: slates have shape {table.shape}, expected a row of labels for each of the "
            f"{n_events} events."
        )
    return table


def place_matches(slates: np.ndarray, log: SlateLog) -> tuple[np.ndarray, np.ndarray]:
    """Whether each shown arm of the log has its own place in a slate, and whether any place.

    Returns
    -------
    at_place, included : ndarray of bool, shape (n_events, n_places)
    """
    codes = {label: k for k, label in enumerate(log.arms.tolist())}
    numbers = np.array(
        [[codes.get(label, -2) for label in slate] for slate in slates.tolist()], dtype=np.int64
    ).reshape(len(log), -1)
    equal = log.action[:, :, None] == numbers[:, None, :]
    places = min(equal.shape[1:])
    at_place = np.zeros(log.action.shape, dtype=bool)
    diagonal = np.arange(places)
    at_place[:, :places] = equal[:, diagonal, diagonal]
    return at_place, equal.any(axis=2)


def inclusion_of_shown(given: Any, X: Any, log: SlateLog, rule: str) -> tuple[np.ndarray, float]:
    """Inclusion probabilities of the shown arms, and the evaluated slates' mean number of arms.

    Parameters
    ----------
    given : policy, slates, or DataFrame of inclusion probabilities
    X, log, rule : object
        As the estimators read them.

    Returns
    -------
    included : ndarray of shape (n_events, n_places)
        nan in empty places.
    size : float
    """
    check_rule(rule)
    if isinstance(given, pd.DataFrame) and all(map(pd.api.types.is_float_dtype, given.dtypes)):
        if len(given) != len(log):
            raise ValueError(f"there are {len(given)} rows of probabilities for {len(log)} slates.")
        return _of_table(given.to_numpy(np.float64), given.columns.tolist(), log)
    if not is_policy(given):
        slates = checked_slates(given, len(log), "the evaluated policy")
    else:
        if X is None:
            raise ValueError("X is None: a policy needs contexts.")
        policy, rows = behind_transformers(copy.deepcopy(given), X)
        if rule == "select" and hasattr(policy, "select_proba"):
            found = policy.select_proba(rows, available=log.available_sets())
            return _of_table(np.asarray(found, dtype=np.float64), policy.arms_.tolist(), log)
        slates = shown_slates(policy, rows, log, rule)
    _, included = place_matches(slates, log)
    return np.where(log.shown, included, np.nan), float(slates.shape[1])


def _of_table(table: np.ndarray, arms: list[Any], log: SlateLog) -> tuple[np.ndarray, float]:
    """Inclusion probabilities of shown arms, from those of the arms of the columns."""
    wrong = np.argwhere(~((table >= 0) & (table <= 1 + 1e-6)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"inclusion probabilities must be in [0, 1]: row {row} has {table[row, column]:g} for "
            f"{arms[column]!r}."
        )
    codes = {label: k for k, label in enumerate(arms)}
    column = np.array([codes.get(label, -1) for label in log.arms.tolist()])
    padded = np.column_stack([table, np.zeros(len(table))])  # arms without a column
    included = padded[np.arange(len(log))[:, None], column[log.action]]
    return np.where(log.shown, included, np.nan), float(table.sum(axis=1).mean())
