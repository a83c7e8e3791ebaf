"""The compiled replay decides as `select`, `predict` and `partial_fit` do, event by event."""

import importlib
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import skbandit.bandit
from skbandit import GLMUCBPolicy
from skbandit.bandit import SharedGLMPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.policies import PAPER
from tests.tiers import first


class OneByOne(GLMUCBPolicy):
    """The same policy, which as a subclass is replayed event by event."""

    def select(self, X, *, available=None):
        return super().select(X, available=available)


class SharedOneByOne(SharedGLMPolicy):
    """The same of a shared model."""

    def select(self, X, *, available=None, arm_features=None):
        return super().select(X, available=available, arm_features=arm_features)


SETTINGS = {
    "default": {},
    "full": {"covariance": "full"},
    "linear": {"link": "linear", "prior_mean": [0.0, 0.0, 0.0, 0.5]},
    "probit greedy": {"link": "probit", "exploration": "greedy"},
    "U1": {"ucb": "U1", "mean": "M1"},
    "U2": {"ucb": "U2", "mean": "M3"},
    "U3": {"ucb": "U3", "alpha": 0.01},
    "epsilon": {"exploration": "epsilon_greedy", "epsilon": 0.3},
    "thompson": {"exploration": "thompson", "covariance": "full"},
    "squarecb": {"exploration": "squarecb"},
    "squarecb full linear": {"exploration": "squarecb", "link": "linear", "covariance": "full"},
    "squarecb waiting": {"exploration": "squarecb", "link": "probit", "update_every": 500.0},
    "adaptive": {"prior_mean": "adaptive", "prior_variance": "adaptive"},
    "adaptive full": {
        "prior_mean": "adaptive", "prior_variance": "adaptive", "covariance": "full"
    },
    "arms known": {"arms": [7, 5, 3, 1], "prior_mean": "adaptive"},
    "forgetting": {"forgetting": 0.97},
    "growing": {"alpha": np.log1p},
    "waiting": {"update_every": 500.0},
    "raw features": {"standardize": False},
    "raw waiting": {"standardize": False, "update_every": 500.0, "exploration": "thompson"},
    "scaled": {"standardize": "scale"},
    "scaled waiting": {"standardize": "scale", "update_every": 500.0, "fit_intercept": False},
    "scaled forgetting": {"standardize": "scale", "forgetting": 0.98, "covariance": "full"},
    "scaled full": {"standardize": "scale", "covariance": "full", "link": "linear"},
    "paper": PAPER,
    "no constant": {"fit_intercept": False, "forgetting": 0.98, "covariance": "full"},
}  # fmt: skip


FEATURES = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 2)))
SHARED = {
    "default": {},
    "linear": {"link": "linear"},
    "diagonal linear": {"covariance": "diagonal", "link": "linear", "noise_variance": 0.5},
    "thompson probit": {"exploration": "thompson", "link": "probit"},
    "squarecb": {"exploration": "squarecb"},
    "epsilon": {"exploration": "epsilon_greedy", "epsilon": 0.3},
    "growing": {"alpha": np.log1p, "standardize": False},
    "no features": {"arm_features": None},
    "no features, greedy": {"arm_features": None, "exploration": "greedy"},
    "forgetting": {"forgetting": 0.97},
    "forgetting diagonal linear": {"forgetting": 0.9, "covariance": "diagonal", "link": "linear"},
    "waiting": {"update_every": 500.0},
    "waiting, no features": {"update_every": "8min", "arm_features": None, "forgetting": 0.99},
}
POLICIES = {name: (GLMUCBPolicy, OneByOne, settings) for name, settings in SETTINGS.items()} | {
    f"shared {name}": (SharedGLMPolicy, SharedOneByOne, {"arm_features": FEATURES} | settings)
    for name, settings in SHARED.items()
}


QUICK = ("default", "linear", "U1", "squarecb", "waiting", "raw features")
"""Of these, few are compiled anew: others take seconds each the first time."""


@pytest.fixture(scope="module")
def log():
    """Arms arrive and retire; features are 0 or 1, so that many arms tie."""
    log = make_bandit_log(700, n_arms=8, n_features=3, n_available=4, base_rate=0.3, random_state=0)
    return (log.X.to_numpy() > 0).astype(float), log.y


@pytest.mark.parametrize(
    "options",
    first(1, [
        {}, {"deployment_share": 0.3, "acceptance": 0.2, "subsample": 0.9, "max_accepted": 60},
        {"rule": "predict"}, {"learn": False},
    ]), ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", first(len(QUICK), dict.fromkeys(QUICK) | POLICIES))
def test_identical(name, options, log):
    fast, slow = (
        replay(kind(**{"random_state": 3} | POLICIES[name][2]), *log, random_state=1, **options)
        for kind in POLICIES[name][:2]
    )
    assert fast.n_accepted > 20
    assert fast.history.equals(slow.history)
    assert fast.runs.equals(slow.runs)


@pytest.mark.parametrize(
    "name", first(3, ["default", "waiting", "shared default", "shared waiting", "adaptive"])
)
def test_identical_from_a_fitted_policy(name, log):
    X, y = log
    *kinds, settings = POLICIES[name]
    histories = []
    for kind in kinds:
        policy = kind(**{"random_state": 3} | settings).fit(X[:200], y[:200])
        policy.select(X[:10])
        before = policy.coef_.copy()
        histories.append(replay(policy, X[200:], y[200:], random_state=1).history)
        np.testing.assert_array_equal(policy.coef_, before)
    assert len(histories[0]) > 20
    assert histories[0].equals(histories[1])


@pytest.mark.thorough
def test_without_a_directory_for_compiled_code(tmp_path):
    """A process that may not write anywhere compiles in memory."""
    code = "from skbandit import GLMUCBPolicy\nprint(GLMUCBPolicy(arms=['a']).select([[1.0]])[0])\n"
    environment = os.environ | {"NUMBA_CACHE_DIR": "/dev/null/nowhere"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "a"


def test_no_kernel_counts_references():
    """Counting the references of arrays took four times as long as all arithmetic."""
    compiled = {}
    for found in pkgutil.walk_packages(skbandit.bandit.__path__, "skbandit.bandit."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if hasattr(value, "_dispatcher"):
                compiled[name] = value._dispatcher.targetoptions.get("_nrt", True)
    assert {"replay_rows", "choose_rows", "learn_rows", "score"} <= compiled.keys()
    assert [name for name, counts in compiled.items() if counts] == ["renew_prior"]


@pytest.mark.thorough
def test_machine_code_counts_no_references(tmp_path):
    code = """if True:
        import numpy as np
        from skbandit.bandit import GLMUCBPolicy, _kernels
        from skbandit.evaluation import replay
        X, y = np.eye(2)[np.arange(60) % 2], {"action": np.arange(60) % 3, "reward": np.ones(60)}
        for link in ("logistic", "linear", "probit"):
            for rule in ("ucb", "epsilon_greedy", "thompson", "squarecb", "greedy"):
                policy = GLMUCBPolicy(link, exploration=rule, random_state=0)
                replay(policy, X, y)
                policy.fit(X, y).select(X)
        for kernel in (_kernels.replay_rows, _kernels.choose_rows, _kernels.learn_rows):
            compiled = list(kernel._dispatcher.inspect_llvm().values())
            assert len(compiled) == 1  # once, for all links and rules and forms of rewards
            assert "define" in compiled[0] and "NRT_incref" not in compiled[0]
    """
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
