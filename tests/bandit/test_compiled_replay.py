"""The compiled replay decides as the methods do; sparse contexts give the bits of dense ones."""

import importlib
import pickle
import pkgutil
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skbandit.bandit
from skbandit import GLMUCBPolicy
from skbandit.bandit import SharedGLMPolicy, _passes
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay, replay_blocks
from tests.policies import PAPER
from tests.tiers import first
from tests.worlds import generic, refuses, warns

# === The compiled replay decides as `select`, `predict` and `partial_fit` do, event by event ====


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
POLICIES = {name: GLMUCBPolicy(**{"random_state": 3} | kept) for name, kept in SETTINGS.items()} | {
    f"shared {name}": SharedGLMPolicy(**{"random_state": 3, "arm_features": FEATURES} | settings)
    for name, settings in SHARED.items()
}


QUICK = ("default", "linear", "U1", "squarecb", "waiting", "raw features")
"""Of these, few are compiled anew: others take seconds each the first time."""


@pytest.fixture(scope="module")
def log():
    """Arms arrive and retire; features are 0 or 1, so that many arms tie."""
    log = make_bandit_log(700, n_arms=8, n_features=3, n_available=4, base_rate=0.3, random_state=0)
    return (log.X.to_numpy() > 0).astype(float), log.y


OPTIONS = [
    {"deployment_share": 0.3, "acceptance": 0.2, "subsample": 0.9, "max_accepted": 60},
    {"rule": "predict"},
    {"learn": False},
]
NAMES = list(dict.fromkeys(QUICK) | POLICIES)
CASES = [(name, {}) for name in QUICK]
CASES += zip(NAMES, 2 * OPTIONS + 20 * [*OPTIONS[:2], {}], strict=False)
"""The quick ones as they are and with an option; then each policy once, as it learns."""


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "options"), first(len(QUICK), CASES), ids=str)
def test_identical(name, options, log):
    fast, slow = (
        replay(policy, *log, random_state=1, **options)
        for policy in (POLICIES[name], generic(POLICIES[name]))
    )
    assert fast.n_accepted > 20
    assert fast.history.equals(slow.history)
    assert fast.runs.equals(slow.runs)


def test_no_kernel_counts_references():
    """Counting the references of arrays took four times as long as all arithmetic."""
    compiled = {}
    for found in pkgutil.walk_packages(skbandit.bandit.__path__, "skbandit.bandit."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if hasattr(value, "_dispatcher"):
                compiled[name] = value._dispatcher.targetoptions.get("_nrt", True)
    assert {"replay_rows", "choose_rows", "learn_rows", "score"} <= compiled.keys()
    assert [name for name, counts in compiled.items() if counts] == ["renew_prior"]


# === Sparse contexts give the bits that dense ones give =========================================

N, D, ARMS = 400, 60, 5


def sparse_log(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    present = rng.random((n, d)) < 0.08
    present[7:9] = False  # rows without any feature
    X = sparse.csr_matrix(present * rng.normal(size=(n, d)))
    y = pd.DataFrame(
        {"action": rng.integers(ARMS, size=n), "reward": rng.random(n) < 0.3,
         "timestamp": np.arange(n) * 7.0}
    )  # fmt: skip
    return X, y


X, Y = sparse_log()
DENSE = X.toarray()


def settings_of(name):
    settings = {"random_state": 3} | SETTINGS[name]
    settings.pop("prior_mean", None) if name == "linear" else None
    return settings


def assert_same(one, other):
    for name in ("arms_", "coef_", "intercept_", "covariance_", "n_updates_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    first(
        6,
        ["default", "scaled", "scaled waiting", "full", "squarecb", "adaptive", "thompson",
         "forgetting", "waiting", "linear", "scaled full", "scaled forgetting", "probit greedy",
         "U1", "U2", "epsilon", "arms known", "growing"],
    ),
)  # fmt: skip
def test_the_same_bits(name):
    one, other = (GLMUCBPolicy(**settings_of(name)).fit(x[:250], Y[:250]) for x in (X, DENSE))
    assert_same(one, other)
    for k in (250, 255, 300):
        one.partial_fit(X[k : k + 5], Y[k : k + 5])
        other.partial_fit(DENSE[k : k + 5], Y[k : k + 5])
    assert_same(one, other)
    available = [(0, 2, "new"), (4,), (1, 3)] * 40
    for method in ("predict", "select", "select_proba"):
        for options in ({}, {"available": available}):
            results = [
                getattr(policy, method)(x[:120], **options)
                for policy, x in ((one, X), (other, DENSE))
            ]
            np.testing.assert_array_equal(*results, err_msg=method)
    for method in ("decision_function", "select_scores", "predict_reward"):
        np.testing.assert_array_equal(getattr(one, method)(X), getattr(other, method)(DENSE))
    mixed = GLMUCBPolicy(**settings_of(name)).fit(X[:100], Y[:100])
    mixed.partial_fit(DENSE[100:250], Y[100:250])
    assert_same(mixed.advance(), GLMUCBPolicy(**settings_of(name)).fit(X[:250], Y[:250]).advance())


@pytest.mark.parametrize(
    "name",
    first(2, ["default", "scaled waiting", "full", "thompson", "adaptive"]),
)
@pytest.mark.parametrize("entries", [_passes.DENSE_ENTRIES, 1000])
def test_replay(name, entries, monkeypatch):
    """Of rows that become dense together, or a few at a time."""
    monkeypatch.setattr(_passes, "DENSE_ENTRIES", entries)
    settings = settings_of(name)
    cold = [
        replay(GLMUCBPolicy(**settings), x, Y, random_state=0, deployment_share=0.2)
        for x in (X, DENSE)
    ]
    assert len(cold[0].history) > 30
    assert cold[0].history.equals(cold[1].history)


@pytest.mark.parametrize("name", first(3, ["default", "scaled", "waiting", "full"]))
def test_the_state_after_a_replay_goes_on(name):
    """Blocks of a log carry the state of the policy from one to the next."""
    y = Y.assign(propensity=1 / ARMS)
    histories = [
        replay_blocks(
            GLMUCBPolicy(**settings_of(name)),
            ((x[k : k + 90], y[k : k + 90]) for k in range(0, N, 90)),
            acceptance=1 / ARMS,
            arms=range(ARMS),
            random_state=0,
        ).history
        for x in (X, DENSE)
    ]
    assert len(histories[0]) > 30 and histories[0].equals(histories[1])


@pytest.mark.parametrize(
    "form",
    [
        sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix, sparse.lil_matrix,
        pd.DataFrame.sparse.from_spmatrix,
    ],
)  # fmt: skip
def test_forms(form):
    got = GLMUCBPolicy(random_state=0).fit(form(X), Y)
    np.testing.assert_array_equal(got.coef_, GLMUCBPolicy(random_state=0).fit(X, Y).coef_)
    assert got.select(form(X)).shape == (N,)


def test_repeated_and_unsorted_entries_are_summed():
    data, columns, starts = [1.0, 2.0, 0.5, 3.0], [4, 1, 4, 0], [0, 3, 4]
    messy = sparse.csr_matrix((data, columns, starts), shape=(2, D))
    before = messy.indices.copy(), messy.data.copy()
    y = Y[:2]
    got = GLMUCBPolicy(random_state=0).fit(messy, y)
    np.testing.assert_array_equal(got.coef_, GLMUCBPolicy().fit(messy.toarray(), y).coef_)
    np.testing.assert_array_equal(messy.indices, before[0])
    np.testing.assert_array_equal(messy.data, before[1])


def test_bad_sparse_input_leaves_the_policy_unchanged():
    policy = GLMUCBPolicy(random_state=0).fit(X, Y)
    before = pickle.dumps(policy)
    for value, message in (
        (np.nan, "NaN"),
        (np.inf, "infinity"),
        (1e200, "1e\\+200 in column 2 of row 0"),
    ):
        wrong = X[:5].copy()
        wrong.data[0] = value
        for attempt in (lambda w=wrong: policy.partial_fit(w, Y[:5]),
                        lambda w=wrong: policy.select(w)):  # fmt: skip
            refuses(message, attempt)
    refuses("60 features", policy.predict, X[:, :59])
    assert pickle.dumps(policy) == before


@pytest.mark.thorough
@pytest.mark.parametrize("standardize", [True, "scale"])
def test_memory_of_wide_contexts(standardize):
    """2,000 rows x 20,000 features, 1% of them present: 320 MB if dense at once."""
    n, d, n_arms = 2000, 20_000, 3
    rng = np.random.default_rng(0)
    wide = sparse.random_array((n, d), density=0.01, format="csr", rng=rng)
    y = pd.DataFrame({"action": rng.integers(n_arms, size=n), "reward": rng.random(n) < 0.3})
    policy = GLMUCBPolicy(standardize=standardize, arms=range(n_arms), random_state=0)
    policy.fit(wide[:300], y[:300])  # compiled before memory is measured
    replay(policy, wide[:299], y[:299], random_state=0)
    tracemalloc.start()
    policy.fit(wide, y).select(wide)
    warns("fitted to this very log", replay, policy, wide, y, random_state=0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60e6
