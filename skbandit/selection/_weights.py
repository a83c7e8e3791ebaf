"""How sample weights reach a learner, whatever its kind."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline


def weight_params(learner: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Keywords of `fit` that carry the weights; none where all are 1, which any learner takes.

    A Pipeline's last step gets them, or, with metadata routing, the steps that request them.
    """
    if weight is None or (weight == 1.0).all():
        return {}
    last, prefix = learner, ""
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    parameters = inspect.signature(last.fit).parameters
    # searches and other meta-estimators pass on what they are given
    passed_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if "sample_weight" not in parameters and not passed_on:
        raise ValueError(
            f"{type(last).__name__}.fit takes no sample_weight, and some rows count for more than "
            "others: choose a learner that takes weights, such as LogisticRegression, Ridge or "
            "gradient boosting."
        )
    return {("" if get_config()["enable_metadata_routing"] else prefix) + "sample_weight": weight}
