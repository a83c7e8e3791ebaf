"""Which way a regressor learns the costs of all ads."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from skbandit.selection._cost_models import Joint, Separate, fit_joint, fit_separate, learns_jointly
from skbandit.selection._costs import Costs
from skbandit.selection._ridge import Linear, RidgeFactor, normal_equations_pay


def learn_costs(
    estimator: Any, X: Any, costs: Costs, weight: np.ndarray | None, n_jobs: int | None
) -> Linear | Joint | Separate:
    """Fit an estimator to observed costs; `Ridge` by normal equations where they pay."""
    ridge = ridge_of(estimator)
    if ridge is not None and normal_equations_pay(X, costs):
        found = RidgeFactor.of(X, ridge.alpha, weight, ridge.fit_intercept).solve(costs)
        return found.astype(X.dtype)
    learner = ridge or estimator
    if learns_jointly(learner, costs):
        joint = fit_joint(learner, X, costs, weight)
        return joint if ridge is None else Linear.of([joint.estimator])
    separate = fit_separate(learner, X, costs, weight, n_jobs)
    return separate if ridge is None else Linear.of(separate.estimators)


def ridge_of(estimator: Any) -> Ridge | None:
    """The Ridge that normal equations stand for: the default, and any that is content with them."""
    ridge = Ridge() if estimator is None else estimator
    plain = (
        type(ridge) is Ridge
        and ridge.solver in ("auto", "cholesky")
        and not ridge.positive
        and isinstance(ridge.alpha, Real)
        and float(ridge.alpha) >= 0
    )
    return ridge if plain else None
