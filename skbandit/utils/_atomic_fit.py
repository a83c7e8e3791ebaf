"""Fitting that changes an estimator only if it succeeds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def atomic_fit(estimator: Any) -> Iterator[Any]:
    """Yield a shallow copy to fit, and commit its state to the estimator on success.

    After an error, or an interrupt of a long fit, the estimator is unchanged. The commit is a
    single assignment, so no interrupt and no other thread ever sees a half-fitted estimator.
    """
    draft = copy.copy(estimator)
    yield draft
    estimator.__dict__ = vars(draft)
