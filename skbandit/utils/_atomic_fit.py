"""Fitting that leaves the estimator as it was unless it ends well."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[Any]:
    """Hand out a shallow copy to fit, and make it the estimator's state on success only.

    An error, or an interrupt in the middle of a long fit, then costs nothing; and the change is one
    step, between which and the next neither an interrupt nor another thread finds half a state.
    """
    draft = copy.copy(estimator)
    yield draft
    estimator.__dict__ = vars(draft)
