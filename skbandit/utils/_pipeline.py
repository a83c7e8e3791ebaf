"""Taking pipelines apart: transformers, last step, and the rows that the last step receives."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def split_pipeline(estimator: Any) -> tuple[Pipeline | None, Any]:
    """Split an estimator into transformers (None if there are none) and final estimator."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    transformers = estimator[:-1] if len(estimator.steps) > 1 else None
    return transformers, estimator.steps[-1][1]


def transformed(transformers: Pipeline | None, rows: Any) -> Any:
    """Transform rows for the last step; the items of a tuple are transformed one by one."""
    if transformers is None or rows is None:
        return rows
    if isinstance(rows, tuple):
        return tuple(transformers.transform(part) for part in rows)
    return transformers.transform(rows)


def behind_transformers(policy: Any, X: Any) -> tuple[Any, Any]:
    """The policy within a Pipeline or a fitted search, and the rows transformed for it."""
    if hasattr(policy, "best_estimator_"):
        return behind_transformers(policy.best_estimator_, X)
    transformers, last = split_pipeline(policy)
    if last is policy:
        return policy, X
    return behind_transformers(last, transformed(transformers, X))
