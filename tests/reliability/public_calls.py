"""Public calls as functions of plain inputs, each with inputs that work.

Nothing is fitted at import: fitted models are built on first use.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    ReplayScorer,
    SetSelectClassifier,
)
from skbandit.constrained import ConstrainedThreshold
from skbandit.evaluation import RateScorer, off_policy_value, replay
from skbandit.rates import each, error_rate, positive_rate, recall
from skbandit.selection import PopularitySetSelector, logged_costs

N = 60
_rng = np.random.default_rng(5)
X = pd.DataFrame(_rng.integers(-4, 5, size=(N, 3)).astype(float), columns=["a", "b", "c"])
OWN_X = X  # where a parameter is called X
LABEL = (X["a"] + 2 * _rng.normal(size=N) > 0).astype(int).to_numpy()
GROUP = pd.DataFrame({"g": np.where(_rng.random(N) < 0.5, "u", "v")})
WEIGHT = _rng.integers(1, 4, size=N).astype(float)
GOALS = (recall() >= 0.6, positive_rate({"g": "u"}) <= 0.9)
LOG = pd.DataFrame(
    {
        "action": _rng.integers(3, size=N),
        "reward": (_rng.random(N) < 0.4).astype(int),
        "propensity": 1 / 3,
    }
)
AVAILABLE = pd.DataFrame({k: _rng.random(N) < 0.7 for k in range(3)})
for _row, _arm in enumerate(LOG["action"]):
    AVAILABLE.iloc[_row, _arm] = True
AVAILABLE.iloc[:, 0] = AVAILABLE.iloc[:, 1] = True
COSTS = pd.DataFrame(
    np.column_stack([X["a"], -X["b"], X["c"] - X["a"]]) + _rng.normal(size=(N, 3)), columns=range(3)
)
CHANCES = pd.DataFrame(np.tile([0.5, 0.25, 0.25], (N, 1)), columns=range(3))
AD_FEATURES = pd.DataFrame({"size": [1.0, 2.0, 4.0]}, index=range(3))


@dataclass(frozen=True)
class PublicCall:
    """Something that users do: `call` takes `inputs` by name and returns an array."""

    name: str
    call: Any = field(repr=False)
    inputs: dict[str, Any] = field(repr=False)
    needs: str = "skbandit"  # a package

    def __call__(self, **changed: Any) -> np.ndarray:
        pytest.importorskip(self.needs, reason=f"{self.needs} is not installed")
        return np.asarray(self.call(**(self.inputs | changed)))


def called_with(calls, inputs, needs="skbandit"):
    """List a function among the calls, with inputs that work."""

    def listed(function):
        calls.append(PublicCall(function.__name__, function, inputs, needs))
        return function

    return listed


CALLS = []
_DESCRIBED = {"X": X, "y": COSTS, "ad_features": AD_FEATURES}
_LABELED = {"X": X, "y": LABEL, "attributes": GROUP, "sample_weight": WEIGHT}
_COSTED = {"X": X, "y": COSTS, "available": AVAILABLE, "sample_weight": WEIGHT}
_LOGGED = {"X": X, "y": LOG}


@called_with(CALLS, _LABELED)
def ramp(X, y, attributes, sample_weight, pos_label=None):
    clf = ConstrainedRampClassifier(constraints=GOALS, solver="newton", pos_label=pos_label)
    clf.fit(X, y, attributes=attributes, sample_weight=sample_weight)
    return clf.decision_function(X)


@called_with(CALLS, {"X": X})
def ramp_predicts(X):
    return _ramp().predict(X)


@called_with(CALLS, _LABELED)
def threshold(X, y, attributes, sample_weight, pos_label=None):
    options = {"cv": 3, "pos_label": pos_label}
    clf = ConstrainedThreshold(LogisticRegression(), constraints=GOALS, **options)
    clf.fit(X, y, attributes=attributes, sample_weight=sample_weight)
    return clf.decision_function(X)


@called_with(CALLS, _LABELED)
def rate_scorer(X, y, attributes, sample_weight):
    scorer = RateScorer(error_rate(), [*GOALS, each(recall, by="g") >= 0.2])
    return scorer(_classifier(), X, y, attributes=attributes, sample_weight=sample_weight)


@called_with(
    CALLS, {"y_true": LABEL, "y_pred": LABEL, "attributes": GROUP, "sample_weight": WEIGHT}
)
def rate(y_true, y_pred, attributes, sample_weight):
    return recall({"g": "u"}).value(y_true, y_pred, attributes, sample_weight)


@called_with(CALLS, {**_LOGGED, "available": AVAILABLE, "sample_weight": WEIGHT})
def policy(X, y, available, sample_weight):
    own = GLMUCBPolicy(random_state=0)
    own.fit(X, y, available=available, sample_weight=sample_weight)
    return own.select_scores(X)


@called_with(CALLS, {**_LOGGED, "sample_weight": WEIGHT})
def policy_continues(X, y, sample_weight):
    own = GLMUCBPolicy(covariance="full", random_state=0).fit(OWN_X, LOG)
    own.partial_fit(X, y, sample_weight=sample_weight)
    return own.coef_


@called_with(CALLS, {"X": X, "available": AVAILABLE})
def policy_selects(X, available):
    return fitted_policy().predict(X, available=available)


@called_with(CALLS, {"X": X, "available": AVAILABLE})
def policy_probabilities(X, available):
    return fitted_policy().select_proba(X, available=available)


@called_with(CALLS, {**_LOGGED, "available": AVAILABLE})
def replayed(X, y, available):
    result = replay(GLMUCBPolicy(random_state=0), X, y, available=available, random_state=0)
    return [result.mean_reward, result.n_accepted]


@called_with(CALLS, {**_LOGGED, "sample_weight": WEIGHT})
def replay_score(X, y, sample_weight):
    scorer = ReplayScorer(min_accepted=1, random_state=0)
    return scorer(GLMUCBPolicy(random_state=0), X, y, sample_weight=sample_weight)


@called_with(CALLS, {"probabilities": CHANCES, "y": LOG})
def ips_of_table(probabilities, y):
    return off_policy_value(probabilities, None, y, method="ips").mean_reward


@called_with(CALLS, {**_LOGGED, "available": AVAILABLE})
def snips_of_policy(X, y, available):
    return off_policy_value(fitted_policy(), X, y, available=available).mean_reward


@called_with(CALLS, {"probabilities": CHANCES, **_LOGGED})
def doubly_robust_of_table(probabilities, X, y):
    return off_policy_value(probabilities, X, y, cv=3, random_state=0, method="dr").mean_reward


@called_with(CALLS, _COSTED)
def regression(X, y, available, sample_weight):
    selector = RegressionSetSelector(n_select=2)
    selector.fit(X, y, available=available, sample_weight=sample_weight)
    return selector.predict_costs(X)


@called_with(CALLS, _DESCRIBED)
def regression_over_ads(X, y, ad_features):
    selector = RegressionSetSelector(n_select=2).fit(X, y, ad_features=ad_features)
    return selector.predict_costs(X)


@called_with(CALLS, _COSTED)
def set_select(X, y, available, sample_weight):
    selector = SetSelectClassifier(n_select=2, cross_fit=2, random_state=0)
    selector.fit(X, y, available=available, sample_weight=sample_weight)
    return selector.predict(X, available=available)


@called_with(CALLS, _COSTED)
def popularity(X, y, available, sample_weight):
    selector = PopularitySetSelector(n_select=2)
    selector.fit(X, y, available=available, sample_weight=sample_weight)
    return selector.predict_costs(X)


@called_with(CALLS, {"X": X, "available": AVAILABLE})
def selector_predicts(X, available):
    return _selector().predict(X, available=available)


@called_with(CALLS, {"X": X, "y": COSTS, "available": AVAILABLE})
def selector_scores(X, y, available):
    return _selector().score(X, y, available=available)


@called_with(
    CALLS, {"action": LOG["action"], "cost": -LOG["reward"], "propensity": LOG["propensity"]}
)
def costs_of_log(action, cost, propensity):
    return logged_costs(action, cost, propensity)


@functools.cache
def _ramp():
    clf = ConstrainedRampClassifier(constraints=GOALS[:1], solver="newton")
    return clf.fit(OWN_X, LABEL)


@functools.cache
def _classifier():
    return LogisticRegression(solver="liblinear").fit(X, LABEL)


@functools.cache
def fitted_policy():
    return GLMUCBPolicy(random_state=0).fit(X, LOG)


@functools.cache
def _selector():
    return RegressionSetSelector(n_select=2).fit(X, COSTS)
