"""Rivals of the benchmark of goals: of fairness goals, and MAPIE for bounds on one rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks._goal_data import Part
from benchmarks._goals import Goal

Answers = Callable[[Part], np.ndarray]
"""The probability of a positive prediction per row."""

CONTROLLED = {
    "false_positive_rate": "fpr",
    "recall": "recall",
    "precision": "precision",
    "positive_rate": "predicted_positive_fraction",
}
"""Rates that MAPIE controls, with its names."""

DRAWS = 20
"""Draws of random answers whose mean stands for their probability."""


def linear() -> LogisticRegression:
    """The linear base."""
    return LogisticRegression(max_iter=2000)


def reduced(
    name: str, tightened: float = 1.0, **settings: Any
) -> Callable[[Part, Goal], tuple[Answers, bool]]:
    """One of fairlearn's reductions; expected answers where they are drawn at random.

    `tightened` is the part of a bound's difference, or of a ratio's distance from 1, asked for.
    """

    def fit(part: Part, goal: Goal) -> tuple[Answers, bool]:
        from fairlearn import reductions

        groups, equal = part.attributes[goal.column], float(_is_ratio(goal))
        asked = replace(goal, bound=equal + tightened * (goal.bound - equal))
        clf = getattr(reductions, name)(linear(), asked.of_fairlearn(groups), **settings)
        clf.fit(part.X, part.y, sensitive_features=groups)
        if hasattr(clf, "_pmf_predict"):
            return lambda new: clf._pmf_predict(new.X)[:, 1], False
        return lambda new: clf.predict(new.X), False

    return fit


def equal_by_group(part: Part, goal: Goal) -> tuple[Answers, bool]:
    """fairlearn's thresholds per group, for equal rates; expected answers."""
    from fairlearn.postprocessing import ThresholdOptimizer

    names = {
        "DemographicParity": "demographic_parity",
        "TruePositiveRateParity": "true_positive_rate_parity",
        "EqualizedOdds": "equalized_odds",
    }
    clf = ThresholdOptimizer(
        estimator=linear(),
        constraints=names[str(goal.fairlearn)],
        predict_method="predict_proba",
    ).fit(part.X, part.y, sensitive_features=part.attributes[goal.column])

    def answers(new: Part) -> np.ndarray:
        groups = new.attributes[goal.column]
        return clf._pmf_predict(new.X, sensitive_features=groups)[:, 1]

    return answers, False


def oxonfair(part: Part, goal: Goal) -> tuple[Answers, bool]:
    """OxonFair's thresholds per group, on the training rows, as in its first example."""
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm

    measures = {
        "DemographicParity": gm.pos_pred_rate.max_diff,
        "TruePositiveRateParity": gm.recall.max_diff,
        "EqualizedOdds": gm.equalized_odds_max,
    }
    measure = gm.pos_pred_rate.min_ratio if _is_ratio(goal) else measures[str(goal.fairlearn)]

    def given(some: Part) -> Any:
        return DataDict(some.y, pd.DataFrame(some.X), some.attributes[goal.column].to_numpy())

    clf = FairPredictor(linear().fit(pd.DataFrame(part.X), part.y), given(part))
    clf.fit(gm.accuracy, measure, goal.bound)
    return lambda new: np.asarray(clf.predict(given(new))), False


def error_parity(part: Part, goal: Goal) -> tuple[Answers, bool]:
    """error-parity's thresholds per group, on the training rows; it has no ratios."""
    from error_parity import RelaxedThresholdOptimizer

    names = {
        "DemographicParity": "demographic_parity",
        "TruePositiveRateParity": "true_positive_rate_parity",
        "EqualizedOdds": "equalized_odds",
    }
    if _is_ratio(goal):
        raise NotImplementedError("no ratios")
    base = linear().fit(part.X, part.y)
    clf = RelaxedThresholdOptimizer(
        predictor=lambda X: base.predict_proba(X)[:, 1],
        constraint=names[str(goal.fairlearn)],
        tolerance=goal.bound,
    )
    groups = {name: k for k, name in enumerate(sorted(set(part.attributes[goal.column])))}

    def codes(some: Part) -> np.ndarray:
        return some.attributes[goal.column].map(groups).to_numpy()

    clf.fit(X=part.X, y=part.y, group=codes(part))
    return lambda new: np.mean(
        [clf.predict(new.X, group=codes(new)) for _ in range(DRAWS)], axis=0
    ), False


def controlled(part: Part, goal: Goal) -> tuple[Answers, bool]:
    """MAPIE's threshold with its guarantee at .9, set on a third of the rows."""
    from mapie.risk_control import BinaryClassificationController

    risk = CONTROLLED[goal.constraints[0].rate.atoms[0].kind.name]
    secondary = "recall" if risk == "predicted_positive_fraction" else "auto"
    fitted, held = train_test_split(
        np.arange(len(part.y)), test_size=1 / 3, stratify=part.y, random_state=0
    )
    clf = BinaryClassificationController(
        linear().fit(part.X[fitted], part.y[fitted]).predict_proba,
        risk,
        goal.constraints[0].bound,
        confidence_level=0.9,
        best_predict_param_choice=secondary,
    )
    clf.calibrate(part.X[held], part.y[held])
    refused = clf.best_predict_param is None
    return lambda new: np.zeros(len(new.X)) if refused else clf.predict(new.X), refused


def _is_ratio(goal: Goal) -> bool:
    return goal.bound > 0.5


RIVALS: dict[str, Callable[[Part, Goal], tuple[Answers, bool]]] = {
    "fairlearn ExponentiatedGradient": reduced("ExponentiatedGradient", eps=0.005),
    "fairlearn ExponentiatedGradient, tightened": reduced(
        "ExponentiatedGradient", tightened=0.1, eps=0.001
    ),
    "fairlearn GridSearch": reduced("GridSearch", grid_size=30),
    "fairlearn ThresholdOptimizer": equal_by_group,
    "oxonfair FairPredictor": oxonfair,
    "error_parity thresholds": error_parity,
    "mapie BinaryClassificationController": controlled,
}
"""Rivals, the package first in their names."""

INSTALLED_BY = {
    "fairlearn": "pip install fairlearn",
    "oxonfair": "pip install oxonfair",
    "error_parity": "pip install --no-deps error-parity ecos seaborn (pins numpy 1, cvxpy 1.3)",
    "mapie": "pip install mapie",
}
"""How to install each package."""


def applies(method: str, goal: Goal) -> bool:
    """Whether a method can be asked for a goal."""
    if method not in RIVALS:
        return True
    if package_of(method) != "mapie":
        return goal.fairlearn is not None
    kinds = [constraint.rate.atoms[0].kind.name for constraint in goal.constraints]
    return goal.fairlearn is None and len(kinds) == 1 and kinds[0] in CONTROLLED


def package_of(method: str) -> str | None:
    """The package of a rival; None for ours."""
    return method.split()[0] if method in RIVALS else None
