"""How likely the policy that is judged makes each choice, whatever form it is given in."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._policy_protocol import (
    behind_transformers,
    check_rule,
    known_arms,
    plain_labels,
)
from skbandit.evaluation._replay._pass import answering, available_sets
from skbandit.evaluation._replay._warnings import check_uniform
from skbandit.logs._arms import Codes, code_labels
from skbandit.logs._log import Log, read_log, read_numbers
from skbandit.utils._sklearn_compat import count_rows

_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class JudgedLog:
    """A log, and the probabilities with which a policy would have chosen there.

    Parameters
    ----------
    log : Log
        Its arms have the numbers 0, 1, ...
    logged : ndarray of shape (n_events,)
        Probabilities of the logged actions.
    of_arms : ndarray of shape (n_events, n_arms), or None
        Those of all arms, after those of the log what else the policy knows; None where only
        those of the logged actions are known.
    arms : list of labels
        Of the columns of `of_arms`.
    """

    log: Log
    logged: np.ndarray
    of_arms: np.ndarray | None
    arms: list[Any]

    @property
    def weight(self) -> np.ndarray:
        """Probability under the policy over that under the policy which logged."""
        return self.logged / self.log.probability

    def predicted(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of rewards q (n_events, n_arms): the logged actions', and the means over choices."""
        assert self.of_arms is not None  # whoever has no such probabilities said so
        of_logged = q[np.arange(len(self.log)), self.log.action]
        return of_logged, np.einsum("ij,ij->i", self.of_arms, q)


def read_judged_log(
    given: Any,
    X: Any,
    y: Any,
    available: Any,
    reward: Any,
    propensity: Any,
    rule: str,
    arms: Iterable[Any] = (),
) -> JudgedLog:
    """Check and number a log, and find how the policy would have chosen.

    Parameters
    ----------
    given : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or probabilities, of all arms or of the
        logged actions.
    X, y, available, reward, propensity : array-like
        As `skbandit.evaluation.ips` takes them.
    rule : {"select", "predict"}
        Which choice of a policy is played.
    arms : iterable of labels, default=()
        Arms that the log has, whether they are in these events or not.

    Returns
    -------
    JudgedLog
    """
    check_rule(rule)
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class: pass a fitted {given.__name__}(...).")
    policy = _policy_of(given)
    if policy is not None and X is None:
        raise ValueError("X is None: a policy needs contexts to choose in.")
    table = _as_table(given) if policy is None else None
    columns = known_arms(policy) if table is None else _arms_of_columns(table, y, reward)
    log = read_log(
        y,
        None if X is None else count_rows(X),
        reward=reward,
        propensity=propensity,
        available=available,
        arms=arms,
        columns=columns,
    )
    if log.propensity is None:
        check_uniform(log)
    if table is not None and table.ndim == 1:
        of_logged = _check_range(read_numbers(table, len(log), "probabilities"))
        return JudgedLog(log, of_logged, None, log.arms.tolist())
    codes = {label: k for k, label in enumerate(log.arms.tolist())}
    if table is None:
        of_arms = _of_policy(*behind_transformers(given, X), log, codes, rule)
    else:
        of_arms = _of_table(table, columns or [], len(log), codes)
    _check_available(of_arms, log, list(codes))
    return JudgedLog(log, of_arms[np.arange(len(log)), log.action], of_arms, list(codes))


def _policy_of(given: Any) -> Any:
    """The policy in what is given; None if it is no policy."""
    if hasattr(given, "__array__"):  # tables of polars, too, have a method select
        return None
    policy, _ = behind_transformers(given, None)
    return policy if hasattr(policy, "select") or hasattr(policy, "predict") else None


def _as_table(given: Any) -> Any:
    """Probabilities as a DataFrame, whose columns are arms, a Series or an array."""
    if isinstance(given, pd.Series | pd.DataFrame):
        return given
    if hasattr(given, "columns"):
        return pd.DataFrame(np.asarray(given), columns=list(given.columns))
    try:
        table = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"probabilities: {error}.") from error
    if table.ndim not in (1, 2) or table.dtype == object:
        raise TypeError(
            "expected a fitted policy (with select or predict), or probabilities of shape "
            f"(n_events, n_arms) or (n_events,), got {type(given).__name__}."
        )
    return table


def _arms_of_columns(table: Any, y: Any, reward: Any) -> list[Any] | None:
    """The arms that the columns of probabilities stand for; None where there are no columns."""
    if table.ndim == 1:
        return None
    if isinstance(table, pd.DataFrame):
        return table.columns.tolist()
    arms = read_log(y, reward=reward).arms.tolist()
    try:
        return sorted(arms)
    except TypeError as error:
        raise ValueError(
            "the log's arms cannot be sorted, so which column of the probabilities is which arm is "
            f"unknown: give a DataFrame, whose columns are arms ({error})."
        ) from error


def _of_policy(policy: Any, X: Any, log: Log, codes: Codes, rule: str) -> np.ndarray:
    """Probabilities of a policy's choices; arms that the log has not are appended to `codes`."""
    name = type(policy).__name__
    sets, set_of_event = available_sets(log)
    available = [sets[k] for k in set_of_event.tolist()]
    policy = copy.deepcopy(policy)  # drawing at random is a change of state
    if rule == "select" and hasattr(policy, "select_proba"):
        found = np.asarray(policy.select_proba(X, available=available), dtype=np.float64)
        arms = plain_labels(policy.arms_)
        if found.shape != (len(log), len(arms)):
            raise ValueError(
                f"{name}.select_proba: shape {found.shape}, expected {(len(log), len(arms))}, one "
                f"column for each of arms_, {arms}."
            )
        of_arms = _by_number(found, arms, codes)
        return _with_new_arms(of_arms, _there(log, len(codes)), arms, codes)
    if not hasattr(policy, rule):
        other = "predict" if rule == "select" else "select"
        raise ValueError(f"{name} has no {rule}: choose rule={other!r}.")
    choice = code_labels(answering(policy, rule)(X, available), codes, f"{name}.{rule}")
    of_arms = np.zeros((len(log), len(codes)))
    of_arms[np.arange(len(log)), choice] = 1.0
    return of_arms


def _with_new_arms(of_arms: np.ndarray, there: np.ndarray, known: list[Any], codes: Codes) -> Any:
    """Share what rows lack to 1 among the arms that the policy has never seen, as it does."""
    new = np.array([label not in set(known) for label in codes])
    new_there = there & new
    count = new_there.sum(axis=1)
    lacking = np.where(count > 0, 1 - of_arms.sum(axis=1), 0.0).clip(min=0.0)
    of_arms = of_arms + new_there * (lacking / np.maximum(count, 1))[:, None]
    return _check_sums(of_arms, "select_proba")


def _of_table(table: Any, columns: list[Any], n: int, codes: Codes) -> np.ndarray:
    """Given probabilities; arms that the log has not are appended to `codes`."""
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"probabilities must be numbers: {error}.") from error
    if values.shape != (n, len(columns)):
        raise ValueError(
            f"probabilities: shape {values.shape}, expected {(n, len(columns))}, one row an event "
            f"and one column an arm, in this order: {columns}. Columns of a DataFrame name their "
            "arms, and may be of arms that the log has not."
        )
    if len(set(columns)) != len(columns):
        raise ValueError(f"probabilities: two columns are of the same arm, among {columns}.")
    if not set(columns) & set(codes):
        raise ValueError(f"probabilities: no arm of the log, {list(codes)}, is among {columns}.")
    return _check_sums(_by_number(values, columns, codes), "probabilities")


def _by_number(values: np.ndarray, columns: list[Any], codes: Codes) -> np.ndarray:
    """Probabilities with columns in order of the arms' numbers."""
    numbers = [codes.setdefault(label, len(codes)) for label in columns]
    of_arms = np.zeros((len(values), len(codes)))
    of_arms[:, numbers] = _check_range(values)
    return of_arms


def _check_sums(of_arms: np.ndarray, name: str) -> np.ndarray:
    """Require rows of sum 1."""
    total = of_arms.sum(axis=1)
    wrong = np.flatnonzero(abs(total - 1) > _SUM_TOLERANCE)
    if len(wrong):
        raise ValueError(f"{name} must sum to 1: those of row {wrong[0]} to {total[wrong[0]]:g}.")
    return of_arms


def _check_range(probabilities: np.ndarray) -> np.ndarray:
    """Require numbers between 0 and 1, up to rounding."""
    wrong = ~((probabilities >= 0) & (probabilities <= 1 + _SUM_TOLERANCE))
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"probabilities must be in [0, 1]: row {place[0]} has {probabilities[place]:g}."
        )
    return probabilities


def _there(log: Log, n_arms: int) -> np.ndarray:
    """Which arms each event could choose from, of shape (n_events, n_arms)."""
    if log.pools is None:
        return np.broadcast_to(np.arange(n_arms) < len(log.arms), (len(log), n_arms))
    sets = np.zeros((len(log.pools.start) - 1, n_arms), dtype=bool)
    sets[log.pools.set_of_arm, log.pools.arms] = True
    return sets[log.pools.of_event]


def _check_available(of_arms: np.ndarray, log: Log, labels: list[Any]) -> None:
    """Require that nothing is chosen which was not there to be chosen, where the log tells."""
    if log.pools is None:
        return
    wrong = (of_arms > 0) & ~_there(log, len(labels))
    if wrong.any():
        row, arm = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"row {row}: arm {labels[arm]!r} is chosen with probability {of_arms[row, arm]:g}, and "
            "was not available to this event."
        )
