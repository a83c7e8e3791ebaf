"""The exploring choice of a policy behind a Pipeline's transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.logs import align_rows
from skbandit.utils._pipeline import behind_transformers


def select(policy: Any, X: Any, *, available: Any = None) -> np.ndarray:
    """Choose an arm per row, exploring, with a policy that may be the last step of a Pipeline.

    `Pipeline.predict` returns the policy's greedy choice; a Pipeline has no `select`, but
    `PolicyPipeline` does.

    Parameters
    ----------
    policy : object with select, Pipeline that ends in one, or fitted search over either
        The policy, which may count its choices.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Contexts, as the first transformer takes them.
    available : array-like, default=None
        The labels of the arms available in each row, or as the policy takes them; None makes
        every arm that the policy knows available.

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
    >>> from skbandit.bandit import select
    >>> from skbandit.datasets import make_bandit_log
    >>> log = make_bandit_log(2000, n_arms=3, random_state=0)
    >>> policy = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    >>> policy = policy.fit(log.X, log.y)
    >>> choices = select(policy, log.X[:4], available=[(1,), (2,), (1,), (0,)])
    >>> choices.tolist()
    [1, 2, 1, 0]
    """
    available = align_rows(available, X)
    policy, X = behind_transformers(policy, X)
    return policy.select(X, available=available)
