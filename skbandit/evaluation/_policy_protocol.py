"""The policy protocol.

A policy is any object with `select`, `predict` or both; the other members are optional:

- ``select(X, *, available=None)``: the exploring choice, one arm label per row.
- ``predict(X, *, available=None)``: the greedy choice. `available` holds one tuple of labels per
  row; a method without this parameter is called without it.
- ``select_proba(X, *, available=None)``: probabilities of the exploring choice, one column per arm
  of `arms_`. Rows may sum to less than 1; the rest belongs to available arms not in `arms_`.
- ``predict_reward(X)``: expected rewards, one column per arm of `arms_`.
- ``partial_fit(X, y)``: learn from events; `y` is a DataFrame with columns action and reward, and
  timestamp if the log has one.
- ``advance(timestamp)``: called before each choice if the log has timestamps, in seconds.
- ``describe_arms(arm_features)``: make arms known by a table of their features.
- ``arms_``, or ``arms`` before fitting: labels of the known arms.
- ``last_timestamp_``: time of the latest learned event, in seconds; replay warns if it is later
  than the log's first.
- ``columns``: a dict of the names of a log's columns, if different; None on copies that replay, as
  `partial_fit` then gets the usual names.
- ``_has_learned(X, log)``: whether it was fitted to this very log, which makes estimates
  optimistic: a warning.
- ``_has_pools``: whether some row of its fit lacked an arm, so that a log without `available` is
  told: a warning.
- ``random_state``: set on copies, so that runs differ and can be repeated.
- ``_replay_log(request)``: a faster replay of its own, see `skbandit.logs.ReplayRequest`; None
  declines, as a subclass that overrides a public method must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from skbandit.logs import Log, plain_labels
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import warn


def check_rule(rule: Any) -> None:
    """Require "select", the exploring choice, or "predict", the greedy one."""
    if not isinstance(rule, str) or rule not in ("select", "predict"):
        raise ValueError(f"rule must be 'select' or 'predict', got {rule!r}.")


def known_arms(policy: Any) -> list[Any] | None:
    """Labels of the arms that a policy knows; None if it has neither `arms_` nor `arms`.

    If it names these same arms in another order, they are in that order.
    """
    named = getattr(policy, "arms", None)
    arms = getattr(policy, "arms_", named)
    if arms is None or named is None:
        return arms if arms is None else plain_labels(arms)
    arms, named = plain_labels(arms), plain_labels(named)
    return named if set(named) == set(arms) else arms


def name_columns(
    policy: Any, columns: Mapping[str, Any] | None, reward: Any = None, *, named: bool = True
) -> tuple[Mapping[str, Any] | None, Any]:
    """Names of the columns of a log: as given, else those of the policy, if the log has names.

    If `reward` is a name, it replaces that of the policy's rewards; otherwise it is returned.
    """
    if columns is None and named:
        policy_columns = getattr(behind_transformers(policy, None)[0], "columns", None)
        columns = dict(policy_columns) if isinstance(policy_columns, Mapping) else None
        if columns and isinstance(reward, str):
            columns.pop("reward", None)
    if not isinstance(reward, str):
        return columns, reward
    if not named:
        raise ValueError(
            f"reward={reward!r} names a column, and y has none: pass a DataFrame as y, or rewards."
        )
    if columns and "reward" in columns:
        raise ValueError(
            f"reward={reward!r} and columns={dict(columns)} both name the rewards: pass only one."
        )
    return {**(columns or {}), "reward": reward}, None


def name_block_columns(
    policy: Any, columns: Mapping[str, Any] | None, reward: Any
) -> Mapping[str, Any] | None:
    """Name columns of a log in blocks, where rewards are a column."""
    if reward is not None and not isinstance(reward, str):
        raise TypeError(f"reward must name a column of the blocks, got {type(reward).__name__}.")
    return name_columns(policy, columns, reward)[0]


def check_not_learned(policy: Any, X: Any, log: Log) -> bool:
    """Return if the policy was fitted to this very log, with a warning."""
    learned = hasattr(policy, "_has_learned") and policy._has_learned(X, log)
    if learned:
        warn(
            "the policy was fitted to this very log, or to rows of it, so the estimate is "
            "optimistic: evaluate it on later events, or replay sklearn.base.clone(policy), which "
            "starts unfitted.",
            UserWarning,
        )
    return learned


def attributes_for(policy: Any, name: str, attributes: Any) -> dict[str, Any]:
    """Return attributes as a keyword of a policy's method, which must take them; none for None."""
    if attributes is None:
        return {}
    if not _takes(getattr(policy, name), "attributes"):
        raise ValueError(f"{type(policy).__name__}.{name} takes no attributes: leave them out.")
    return {"attributes": attributes}


def _takes(method: Any, name: str) -> bool:
    """Tell whether a method has a parameter, or takes any."""
    parameters = signature(method).parameters
    return name in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def checked_choices(
    policy: Any, name: str, attributes: Any = None
) -> Callable[[Any, list[tuple[Any, ...]]], list[Any]]:
    """Return a choosing method of a policy, its result checked; `available` if accepted."""
    method, given = getattr(policy, name), attributes_for(policy, name, attributes)
    takes_available = _takes(method, "available")

    def choose(X: Any, available: list[tuple[Any, ...]]) -> list[Any]:
        if takes_available:
            given["available"] = available
        choices = method(X, **given)
        if getattr(choices, "ndim", 1) != 1 or len(choices) != len(available):
            raise ValueError(
                f"{type(policy).__name__}.{name} returned an array of shape {np.shape(choices)} "
                f"for {len(available)} rows: a policy must choose one arm per row."
            )
        return plain_labels(choices)

    return choose
