"""Pipelines taken apart: the transformers, the last step, and rows as it sees them."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def split_pipeline(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The transformers, None if there are none, and the last step, or what is no Pipeline."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    transformers = estimator[:-1] if len(estimator.steps) > 1 else None
    return transformers, estimator.steps[-1][1]


def transformed(transformers: Pipeline | None, rows: Any) -> Any:
    """Rows as the last step sees them; parts of a tuple, a Pipeline's way to pass rows whole."""
    if transformers is None or rows is None:
        return rows
    if isinstance(rows, tuple):
        return tuple(transformers.transform(part) for part in rows)
    return transformers.transform(rows)
