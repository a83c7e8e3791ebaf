"""Logs without contexts: policies learn the mean rewards of arms, and None is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OffPolicyClassifier, OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.datasets import read_parquet_log
from skbandit.evaluation import off_policy_blocks, off_policy_value, replay, slate_ips
from tests.tiers import first

N = 600
RATES = np.array([0.1, 0.3, 0.7])


def log():
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=N)
    reward = (rng.random(N) < RATES[action]).astype(float)
    return pd.DataFrame({"action": action, "reward": reward, "propensity": 1 / 3})


FEATURES = pd.DataFrame({"price": [0.0, 1.0, 2.0]})
POLICIES = {
    "GLM": GLMUCBPolicy(random_state=0),
    "full": GLMUCBPolicy("linear", covariance="full", exploration="thompson", random_state=0),
    "plain": GLMUCBPolicy(standardize=False, prior_variance=1.0, random_state=0),
    "Oracle": OraclePolicy(Ridge(), random_state=0),
    "Shared": SharedGLMPolicy(FEATURES, random_state=0),
    "OffPolicyClassifier": OffPolicyClassifier(random_state=0),
}
FORMS = {
    "array": np.empty((N, 0)),
    "frame": pd.DataFrame(index=range(N)),
    "sparse": sparse.csr_array((N, 0)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", first(2, POLICIES))
def test_policies_learn_mean_rewards(name, form):
    if form == "sparse" and name == "Oracle":
        form = "frame"  # Oracle takes no sparse contexts
    X, y = FORMS[form], log()
    policy = POLICIES[name].fit(X[:300] if form != "sparse" else X.tocsr()[:300], y[:300])
    assert policy.n_features_in_ == 0
    assert policy.predict(X).tolist() == [2] * N
    assert set(policy.select(X)) <= {0, 1, 2}
    if hasattr(policy, "predict_reward"):
        assert policy.predict_reward(X[:1])[0] == pytest.approx(RATES[policy.arms_], abs=0.15)
    with pytest.raises(ValueError, match=r"0 features|has 1 features"):
        policy.predict(np.zeros((3, 1)))
    best = y["reward"][300:][y["action"] == 2].mean()
    rest = FORMS["array"][300:], y[300:]
    for method in ("snips", "dr"):
        found = off_policy_value(policy, *rest, rule="predict", method=method)
        assert found.mean_reward == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("form", ["array", "frame"])
def test_replay_and_blocks(form, tmp_path):
    X, y = FORMS[form], log()
    result = replay(GLMUCBPolicy(random_state=0), X, y, random_state=0)
    assert result.mean_reward > 0.5
    y.to_parquet(tmp_path / "log.parquet")
    policy = GLMUCBPolicy(random_state=0).fit(X, y)
    blocks = read_parquet_log(tmp_path / "log.parquet", [])
    with pytest.warns(UserWarning, match="fitted to this very log"):
        found = off_policy_blocks(policy, blocks, arms=range(3), rule="predict")
    assert found["snips"].mean_reward == pytest.approx(y["reward"][y["action"] == 2].mean())


def test_slates():
    rng = np.random.default_rng(0)
    slates = [tuple(rng.permutation(3)[:2].tolist()) for _ in range(N)]
    y = pd.DataFrame({"action": slates})
    y["reward"] = [tuple(float(arm == 2) for arm in slate) for slate in slates]
    policy = SlatePolicy(n_select=1, random_state=0).fit(FORMS["frame"], y)
    assert policy.predict(FORMS["frame"]).tolist() == [[2]] * N
    assert slate_ips(policy, FORMS["array"], y, rule="predict").mean_reward == pytest.approx(1, 0.2)


def test_none_is_refused_with_the_cure():
    y, cure = log(), r"X is None: a policy needs contexts .*np\.empty\(\(n_events, 0\)\)"
    for policy in POLICIES.values():
        with pytest.raises(ValueError, match=cure):
            policy.fit(None, y)
    fitted = GLMUCBPolicy(random_state=0).fit(FORMS["array"], y)
    for call in (replay, off_policy_value):
        with pytest.raises(ValueError, match=cure):
            call(fitted, None, y)


def test_without_contexts_and_intercept_there_is_nothing_to_learn():
    with pytest.raises(ValueError, match="no columns and fit_intercept=False"):
        GLMUCBPolicy(fit_intercept=False).fit(FORMS["array"], log())
