"""One of each estimator, as users fit it: what is interrupted, pickled and shared below."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.constrained import ConstrainedThreshold
from skbandit.selection import PopularitySetSelector
from tests.reliability.public_calls import COSTS, GOALS, GROUP, LABEL, LOG, X

ROWS = X.to_numpy()
NAMED_LOG = LOG.assign(action=LOG["action"].map({0: "news", 1: "sports", 2: "weather"}))


@dataclass(frozen=True)
class Fit:
    """An estimator, what it is fitted to, and the methods that answer."""

    estimator: Any
    y: Any
    answers: tuple[str, ...]
    metadata: tuple[tuple[str, Any], ...] = ()

    def __call__(self, estimator: Any) -> Any:
        return estimator.fit(X, self.y, **dict(self.metadata))

    def asked(self, estimator: Any) -> dict[str, np.ndarray]:
        """What each method answers; they are functions of X."""
        return {name: np.asarray(getattr(estimator, name)(X)) for name in self.answers}


_TOLD = (("attributes", GROUP),)
_SCORED = ("predict", "decision_function", "predict_proba")
_COSTED = ("predict", "predict_indicator", "predict_costs")

FITS = {
    "ramp": Fit(
        ConstrainedRampClassifier(constraints=GOALS, solver="newton"), LABEL, _SCORED, _TOLD
    ),
    "threshold": Fit(
        ConstrainedThreshold(LogisticRegression(solver="liblinear"), constraints=GOALS, cv=3),
        LABEL,
        _SCORED,
        _TOLD,
    ),
    "policy": Fit(
        GLMUCBPolicy(random_state=0), NAMED_LOG, ("predict", "decision_function", "select_proba")
    ),
    "full_policy": Fit(
        GLMUCBPolicy("linear", covariance="full", exploration="thompson", random_state=0),
        NAMED_LOG,
        ("predict", "decision_function", "select_scores"),
    ),
    "regression": Fit(RegressionSetSelector(n_select=2), COSTS, _COSTED),
    "any_regression": Fit(RegressionSetSelector(Ridge(solver="lsqr"), 2), COSTS, _COSTED),
    "set_select": Fit(
        SetSelectClassifier(n_select=2, cross_fit=2, random_state=0),
        COSTS,
        ("predict", "predict_indicator"),
    ),
    "popularity": Fit(PopularitySetSelector(n_select=2), COSTS, _COSTED),
}
