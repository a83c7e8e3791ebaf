"""The exploring choice of a policy that stands behind transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.utils._pipeline import split_pipeline, transformed


def select(policy: Any, X: Any, *, available: Any = None) -> np.ndarray:
    """Choose an arm for each row as a policy explores, also behind a Pipeline's transformers.

    `Pipeline.predict` gives a policy's greedy choice; a Pipeline has no `select`.

    Parameters
    ----------
    policy : object with select, Pipeline that ends in one, or fitted search over either
        What chooses. It may count its choices.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Contexts, as the first transformer takes them.
    available : array-like of shape (n_samples,), default=None
        A tuple of arm labels a row; None is every arm that the policy knows.

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
    """Require the name of a policy's exploring choice, or of its greedy one."""
    if not isinstance(rule, str) or rule not in ("select", "predict"):
        raise ValueError(f"rule must be 'select' or 'predict', got {rule!r}.")


def known_arms(policy: Any) -> list[Any] | None:
    """Labels of the arms that a policy knows, if it tells."""
    arms = getattr(policy, "arms_", getattr(policy, "arms", None))
    return arms if arms is None else plain_labels(arms)


def plain_labels(labels: Any) -> list[Any]:
    """Labels in a list."""
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def behind_transformers(policy: Any, X: Any) -> tuple[Any, Any]:
    """The policy in a Pipeline or a fitted search, and the rows as it sees them."""
    if hasattr(policy, "best_estimator_"):
        return behind_transformers(policy.best_estimator_, X)
    transformers, last = split_pipeline(policy)
    if last is policy:
        return policy, X
    return behind_transformers(last, transformed(transformers, X))
