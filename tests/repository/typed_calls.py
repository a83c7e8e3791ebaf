"""Calls whose types mypy must see, though decorators of scikit-learn have none; nothing is run."""

from typing import Any, assert_type

from skbandit import (
    ConstrainedPolicy,
    ConstrainedRampClassifier,
    ConstrainedReduction,
    ConstrainedThreshold,
    GLMUCBPolicy,
    OffPolicyClassifier,
    OraclePolicy,
    PopularitySetSelector,
    RampClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
    SharedGLMPolicy,
    SlatePolicy,
)
from skbandit.bandit import PolicyPipeline


def calls(X: Any, y: Any) -> None:
    assert_type(ConstrainedRampClassifier().fit(X, y), ConstrainedRampClassifier)
    assert_type(RampClassifier().fit(X, y), RampClassifier)
    assert_type(ConstrainedReduction(X).fit(X, y), ConstrainedReduction)
    assert_type(ConstrainedThreshold(X).fit(X, y), ConstrainedThreshold)
    assert_type(RegressionSetSelector().fit(X, y), RegressionSetSelector)
    assert_type(SetSelectClassifier().fit(X, y), SetSelectClassifier)
    assert_type(PopularitySetSelector().fit(X, y), PopularitySetSelector)
    assert_type(OffPolicyClassifier().fit(X, y), OffPolicyClassifier)
    assert_type(ConstrainedPolicy().fit(X, y).reprice(X), ConstrainedPolicy)
    assert_type(GLMUCBPolicy().fit(X, y).partial_fit(X, y), GLMUCBPolicy)
    assert_type(SharedGLMPolicy().fit(X, y).partial_fit(X, y), SharedGLMPolicy)
    assert_type(OraclePolicy(X).fit(X, y).partial_fit(X, y), OraclePolicy)
    assert_type(PolicyPipeline(X).fit(X, y).partial_fit(X, y), PolicyPipeline)
    assert_type(SlatePolicy().fit(X, y).partial_fit(X, y), SlatePolicy)

    # errors of mypy; were they Any, mypy would complain of comments that ignore nothing
    RegressionSetSelector().fit(X, y, ads_available=[0])  # type: ignore[call-arg]
    GLMUCBPolicy().partial_fit(X, y, rewards=[1])  # type: ignore[call-arg]
    SetSelectClassifier().predict_costs(X, y)  # type: ignore[call-arg]
