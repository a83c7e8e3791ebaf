"""The policy protocol, and policies behind transformers.

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
- ``arms_``, or ``arms`` before fitting: labels of the known arms.
- ``random_state``: set on copies, so that runs differ and can be repeated.
- ``_walk_log(X, log, rows, keep, deployment, *, rule, learn, max_accepted)``: a faster
  `skbandit.evaluation._replay._pass.replay_pass`, with the same return values (accepted positions,
  number of events seen), the same decisions as the public methods, event for event, and the same
  state afterwards. It may return None to decline, as a subclass that overrides a public method must.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np

from skbandit.utils._pipeline import split_pipeline, transformed


def select(policy: Any, X: Any, *, available: Any = None) -> np.ndarray:
    """Choose arms by a policy's `select`, also if the policy ends a Pipeline.

    `Pipeline.predict` gives a policy's greedy choice; a Pipeline has no `select`.

    Parameters
    ----------
    policy : object with select, Pipeline that ends in one, or fitted search over either
        The policy; `select` may change its state, such as its count of choices.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Contexts, in the form that the first transformer expects.
    available : array-like of shape (n_samples,), default=None
        One tuple of arm labels per row; None is every arm that the policy knows.

    Returns
    -------
    ndarray of shape (n_samples,)
        Arm labels.

    Raises
    ------
    AttributeError
        If the last step has no `select`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import select
    >>> log = make_bandit_log(2000, n_arms=3, random_state=0)
    >>> policy = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    >>> policy = policy.fit(log.X, log.y)
    >>> choices = select(policy, log.X[:4], available=[(1,), (2,), (1,), (0,)])
    >>> choices.tolist()
    [1, 2, 1, 0]
    """
    policy, X = behind_transformers(policy, X)
    return policy.select(X, available=available)


def check_rule(rule: Any) -> None:
    """Require "select", the exploring choice, or "predict", the greedy one."""
    if not isinstance(rule, str) or rule not in ("select", "predict"):
        raise ValueError(f"rule must be 'select' or 'predict', got {rule!r}.")


def known_arms(policy: Any) -> list[Any] | None:
    """Labels of the arms that a policy knows; None if it has neither `arms_` nor `arms`."""
    arms = getattr(policy, "arms_", getattr(policy, "arms", None))
    return arms if arms is None else plain_labels(arms)


def plain_labels(labels: Any) -> list[Any]:
    """Labels as a list."""
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def behind_transformers(policy: Any, X: Any) -> tuple[Any, Any]:
    """The policy in a Pipeline or fitted search, and the rows transformed for it."""
    if hasattr(policy, "best_estimator_"):
        return behind_transformers(policy.best_estimator_, X)
    transformers, last = split_pipeline(policy)
    if last is policy:
        return policy, X
    return behind_transformers(last, transformed(transformers, X))


def checked_choices(policy: Any, name: str) -> Callable[[Any, list[tuple[Any, ...]]], list[Any]]:
    """A choosing method of a policy, its result checked; `available` is passed if accepted."""
    method = getattr(policy, name)
    parameters = signature(method).parameters
    takes_available = "available" in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )

    def choose(X: Any, available: list[tuple[Any, ...]]) -> list[Any]:
        choices = method(X, available=available) if takes_available else method(X)
        if getattr(choices, "ndim", 1) != 1 or len(choices) != len(available):
            raise ValueError(
                f"{type(policy).__name__}.{name} returned an array of shape {np.shape(choices)} "
                f"for {len(available)} rows: a policy must choose one arm per row."
            )
        return choices.tolist() if hasattr(choices, "tolist") else list(choices)

    return choose
