"""Fitting that changes an estimator only if it succeeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def atomic_fit(estimator: Any) -> Iterator[Any]:
    """Yield a draft that shares the estimator's attributes, and commit its own on success.

    After an error, or an interrupt of a long fit, the estimator is unchanged. The commit is a
    single assignment, so no interrupt and no other thread ever sees a half-fitted estimator.
    """
    draft = object.__new__(type(estimator))  # not a copy, which may draw a random seed of its own
    vars(draft).update(vars(estimator))
    yield draft
    estimator.__dict__ = vars(draft)
