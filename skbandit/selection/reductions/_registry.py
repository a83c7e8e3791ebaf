"""The reductions by name, with the learners that they take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from skbandit.selection.reductions._all_pairs import learn_all_pairs
from skbandit.selection.reductions._filter_tree import learn_filter_tree
from skbandit.selection.reductions._one_vs_rest import learn_one_vs_rest
from skbandit.selection.reductions._regression import learn_regression
from skbandit.selection.reductions._rule import Reduction

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "filter_tree": learn_filter_tree,
    "weighted_all_pairs": learn_all_pairs,
    "regression": learn_regression,
    "one_vs_rest": learn_one_vs_rest,
}

WITH_COSTS = ("regression", "one_vs_rest")
"""Those that predict what each ad costs, and choose the lowest."""

ROUND_BY_ROUND = ("filter_tree",)
"""Those whose problem depends on which ads are out of the competition; what the others learn of an
ad, or of a pair, is the same in every round."""


def default_learner(name: str) -> Any:
    """What a reduction asks if it is given no estimator."""
    return Ridge() if name == "regression" else LogisticRegression(max_iter=1000)


def reduction(name: str, estimator: Any, n_jobs: int | None = None) -> Reduction:
    """A reduction with its learner; raise if that is of the wrong kind."""
    learner = default_learner(name) if estimator is None else estimator
    kind = type(learner).__name__
    if name != "regression" and is_regressor(learner):
        raise ValueError(
            f'{kind} is a regressor, and the reduction "{name}" asks a classifier: choose one, '
            "or the reduction to regression."
        )
    if name == "one_vs_rest" and not hasattr(learner, "predict_proba"):
        raise ValueError(
            f"{kind} has no predict_proba, and one_vs_rest compares ads by probabilities: wrap it "
            "in CalibratedClassifierCV, or choose the filter tree."
        )
    return partial(REDUCTIONS[name], learner=learner, n_jobs=n_jobs)
