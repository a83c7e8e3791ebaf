"""Fitting that leaves the estimator as it was unless it ends well."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[Any]:
    """Hand out a shallow copy to fit, and make it the estimator's state on success only.

    An error, or an interrupt in the middle of a long fit, then costs nothing.
    """
    draft = copy.copy(estimator)
    yield draft
    vars(estimator).clear()
    vars(estimator).update(vars(draft))
