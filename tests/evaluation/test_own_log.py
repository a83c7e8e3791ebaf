"""A policy evaluated on the very log that it was fitted to: a warning, and none otherwise."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.bandit import OraclePolicy, SharedGLMPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_value, replay
from tests.tiers import first

LOG = make_bandit_log(600, n_arms=3, base_rate=0.3, random_state=0)
X, Y = LOG.X, LOG.y[["action", "reward"]]

POLICIES = {
    "arms": (GLMUCBPolicy(random_state=0), X),
    "array": (GLMUCBPolicy(random_state=0), X.to_numpy()),
    "sparse": (GLMUCBPolicy(random_state=0), csr_array(X)),
    "shared": (SharedGLMPolicy(random_state=0), X),
    "pipeline": (make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)), X),
    "oracle": (OraclePolicy(Ridge(), random_state=0), X),
}
WARM = ReplayScorer(start="fitted", random_state=0)
EVALUATIONS = {
    "replay": lambda policy, X, y: replay(policy, X, y, random_state=0),
    "fixed": lambda policy, X, y: replay(policy, X, y, learn=False, random_state=0),
    "snips": lambda policy, X, y: off_policy_value(policy, X, y, rule="predict"),
    "warm": lambda policy, X, y: WARM(policy, X, y),
}


@pytest.mark.parametrize("name", first(5, POLICIES))
@pytest.mark.parametrize("evaluation", first(2, EVALUATIONS))
def test_its_own_log(name, evaluation):
    policy, contexts = POLICIES[name]
    policy = clone(policy).fit(contexts, Y)
    evaluate = EVALUATIONS[evaluation]
    with pytest.warns(UserWarning, match="fitted to this very log.*clone"):
        evaluate(policy, contexts, Y)


@pytest.mark.parametrize("name", first(5, POLICIES))
@pytest.mark.parametrize("evaluation", first(1, EVALUATIONS))
def test_other_logs(name, evaluation):
    policy, contexts = POLICIES[name]
    evaluate, fitted = EVALUATIONS[evaluation], clone(policy).fit(contexts[:300], Y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(fitted, contexts[300:], Y[300:])
        evaluate(fitted, contexts[:300], Y[:300].assign(reward=1 - Y["reward"][:300]))
        evaluate(fitted, contexts[:300], Y[:300].assign(action=Y["action"][:300].to_numpy()[::-1]))
        cold = ReplayScorer(random_state=0)
        cold(clone(policy).fit(contexts, Y), contexts, Y)


def test_a_later_fit_replaces_the_log_and_contexts_may_say_nothing():
    nothing = np.zeros((600, 1))
    policy = GLMUCBPolicy(random_state=0).fit(nothing[:300], Y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replay(policy, nothing[300:], Y[300:], random_state=0)
        replay(clone(policy), nothing[:300], Y[:300], random_state=0)
        policy.fit(nothing[300:], Y[300:])
        replay(policy, nothing[:300], Y[:300], random_state=0)
    policy.partial_fit(nothing[:300], Y[:300])
    with pytest.warns(UserWarning, match="fitted to this very log"):
        replay(policy, nothing[300:], Y[300:], random_state=0)
