"""skops saves and loads every estimator, and needs to trust this package's own types only."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skbandit.bandit import ConstrainedPolicy, SharedGLMPolicy
from skbandit.rates import cost, difference, outcome, positive_rate
from tests.reliability.fitted import FITS, NAMED_LOG, Fit
from tests.tiers import first

io = pytest.importorskip("skops.io", reason="skops is not installed")

ARM_FEATURES = pd.DataFrame(
    {"length": [3, 1, 2], "fresh": [0.5, 0.1, 0.9]}, index=["news", "sports", "weather"]
)
SHARED = Fit(SharedGLMPolicy(ARM_FEATURES, random_state=0), NAMED_LOG, ("predict", "select_proba"))
CASES = {"shared_policy": SHARED} | FITS


@pytest.mark.parametrize("name", first(4, CASES))
def test_saved_and_loaded(name):
    fit = CASES[name]
    estimator = fit(clone(fit.estimator))
    saved = io.dumps(estimator)
    trusted = io.get_untrusted_types(data=saved)
    foreign = [one for one in trusted if not one.startswith("skbandit.")]
    assert not foreign
    again, expected = fit.asked(io.loads(saved, trusted=trusted)), fit.asked(estimator)
    for method in expected:
        np.testing.assert_array_equal(again[method], expected[method])


GOALS = {
    "share": positive_rate("minutes > .5", of="a") <= 0.4,
    "spend": cost({"a": "minutes", "b": 0.1}) <= 0.3,
    "outcome": outcome("harm") <= 0.6,
    "groups": difference(positive_rate(of="a"), by="sex") <= 0.1,
}


@pytest.mark.thorough
@pytest.mark.parametrize("goal", first(4, GOALS))
def test_policies_under_constraints(goal):
    rng, n = np.random.default_rng(0), 400
    X = rng.normal(size=(n, 2))
    people = pd.DataFrame({"minutes": rng.random(n), "sex": rng.choice(["F", "M"], n)})
    log = pd.DataFrame({"action": rng.choice(["a", "b"], n), "propensity": 0.5})
    log["reward"] = X[:, 0] * (log["action"] == "a") + 0.1 * rng.normal(size=n)
    log["harm"] = rng.random(n)
    policy = ConstrainedPolicy(None, None, GOALS[goal], random_state=0)
    policy.fit(X, log, attributes=people)
    saved = io.dumps(policy)
    trusted = io.get_untrusted_types(data=saved)
    assert all(name.startswith("skbandit.") for name in trusted)
    for again in (io.loads(saved, trusted=trusted), pickle.loads(pickle.dumps(policy))):
        for rows in ({}, {"attributes": people}):
            if rows or goal == "groups":
                np.testing.assert_array_equal(again.predict(X, **rows), policy.predict(X, **rows))
        for name in ("prices_", "constraint_report_", "objective_report_"):
            pd.testing.assert_frame_equal(getattr(again, name), getattr(policy, name))
        new = [one.constraint_report(X, log, attributes=people) for one in (again, policy)]
        pd.testing.assert_frame_equal(*new)
