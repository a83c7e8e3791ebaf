"""Whose random numbers are whose: of copies, reloads, forks, a logger and a replayed candidate."""

import copy
import os
import pickle
from io import BytesIO
from itertools import combinations

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.bandit.exploration._random import COIN, EXPLORE, standard_normal, uniform
from skbandit.evaluation import replay
from tests.tiers import first
from tests.worlds import generic, make_log

# === Whose random numbers are whose: of copies, reloads, forks, a logger and a replayed candidate

# ruff: noqa: NPY002, as None stands for NumPy's global state


X, Y = make_log()
Y = Y.drop(columns="timestamp")  # events are learned again here

# Each statistical test below fails falsely, with other seeds, at most once in 100,000.
LEVEL = 1e-5


def by_joblib(policy):
    file = BytesIO()
    joblib.dump(policy, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "joblib": by_joblib,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "clone": lambda policy: clone(policy).fit(X, Y),
}


def choices(policy, n=40):
    return policy.select(X[:n]).tolist()


def random_policy(random_state, **settings):
    settings = {"exploration": "epsilon_greedy", "epsilon": 1.0} | settings
    return GLMUCBPolicy(random_state=random_state, **settings).fit(X, Y)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_draws_afresh_without_a_seed_and_repeats_with_one(how):
    """40 choices among 5 arms agree by chance once in 5⁴⁰."""
    fresh, seeded = random_policy(None), random_policy(7)
    copies = [COPIES[how](fresh) for _ in range(3)]
    for one, other in combinations([fresh, *copies], 2):
        assert choices(one) != choices(other)
    assert choices(COPIES[how](seeded)) == choices(COPIES[how](seeded))


def test_a_new_random_state_takes_effect():
    policy = random_policy(0)
    copies = [copy.deepcopy(policy) for _ in range(4)]
    copies[1].set_params(random_state=1)
    copies[2].set_params(random_state=np.random.RandomState(9))
    copies[3].set_params(random_state=None)
    drawn = [choices(one) for one in copies]
    assert all(one != other for one, other in combinations(drawn, 2))
    policy.set_params(random_state=np.int64(0))  # the same seed
    assert choices(policy) == drawn[0]
    again = copy.deepcopy(policy).set_params(random_state=5)
    assert choices(again) == choices(copy.deepcopy(policy).set_params(random_state=5))


BATCHES = {
    **{
        rule: GLMUCBPolicy(exploration=rule, random_state=0)
        for rule in ("ucb", "epsilon_greedy", "thompson", "squarecb", "greedy")
    },
    **{
        f"shared {rule}": SharedGLMPolicy(exploration=rule, random_state=0)
        for rule in ("ucb", "thompson")
    },
    **{
        f"oracle {rule}": OraclePolicy(Ridge(), exploration=rule, random_state=0)
        for rule in ("squarecb", "epsilon_greedy", "bootstrap", "greedy")
    },
    **{
        f"slates {rule}": SlatePolicy(GLMUCBPolicy(exploration=rule), n_select=2, random_state=0)
        for rule in ("ucb", "epsilon_greedy", "thompson", "squarecb", "greedy")
    },
}

QUICK = dict.fromkeys(
    ["ucb", "thompson", "shared thompson", "oracle bootstrap", "slates ucb", "slates thompson"]
)


@pytest.mark.parametrize("name", first(6, QUICK | BATCHES))
@pytest.mark.parametrize("labels", first(1, [list("edcba"), [7, 2.5, "x", "a", (1, 2)]]))
def test_a_batch_is_one_by_one_whatever_arms_are_new(name, labels):
    """Two arms are known, or none; pools name others, in any order."""
    rng = np.random.default_rng(0)
    fitted = clone(BATCHES[name])
    known = pd.DataFrame({"action": labels[:2] * 15, "reward": rng.integers(0, 2, 30)})
    fitted.fit(X[:30], known)
    for start in (fitted, BATCHES[name]):
        for _ in range(3):
            pools = [
                tuple(labels[k] for k in rng.permutation(5)[: rng.integers(2, 6)]) for _ in range(6)
            ]
            for method in ("select", "predict"):
                batch, single = (
                    clone(start) if start is not fitted else copy.copy(start) for _ in "12"
                )
                together = getattr(batch, method)(X[:6], available=pools)
                alone = [
                    getattr(single, method)(X[k : k + 1], available=pools[k : k + 1])
                    for k in range(6)
                ]
                assert together.tolist() == np.concatenate(alone).tolist()


@pytest.mark.parametrize("random_state", [None, 3])
def test_learning_continues_the_stream(random_state):
    """A batch of choices is one by one, whatever is learned in between."""
    policy = random_policy(random_state)
    seed, before = policy._stream.take(0, random_state)
    other = random_policy(random_state)
    other._stream = copy.copy(policy._stream)
    other._stream._seed = seed  # in one process, as copies of None draw their own
    together = policy.select(X[:60]).tolist()
    alone = []
    for k in range(60):
        alone += other.select(X[k : k + 1]).tolist()
        other.partial_fit(X[k : k + 1], Y[k : k + 1])
    assert alone == together  # uniform choices do not depend on what was learned
    assert other._stream.take(0, random_state) == (seed, before + 60)


@pytest.fixture
def numpy_state():
    """Put NumPy's global state back."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


@pytest.mark.usefixtures("numpy_state")
def test_without_a_seed_numpy_draws_it_when_it_is_needed():
    policy = random_policy(None)
    np.random.seed(0)
    before = np.random.get_state()[1].tolist()
    pickle.loads(pickle.dumps(policy))
    copies = [copy.copy(policy) for _ in range(2)]
    assert np.random.get_state()[1].tolist() == before
    first_time = choices(copies[0])
    np.random.seed(0)
    assert choices(copies[1]) == first_time  # reproducible, as everywhere in scikit-learn


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork, in a process with threads
def test_forked_servers_draw_different_numbers():
    policy = random_policy(None)
    choices(policy)
    drawn = []
    for _ in range(2):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, pickle.dumps(choices(policy)))
            os._exit(0)
        os.waitpid(child, 0)
        drawn.append(pickle.loads(os.read(reader, 65536)))
        os.close(reader)
        os.close(writer)
    assert drawn[0] != drawn[1]
    assert choices(policy) not in drawn


@pytest.mark.parametrize("exploration", first(1, ["epsilon_greedy", "thompson"]))
def test_logger_and_candidate_of_the_same_seed(exploration):
    """Replay keeps each event with probability c, though both have the same random_state."""
    n, K = 6000, 10
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    # without learning, Thompson sampling by the prior is uniform, as is ε = 1
    logger, candidate = (
        GLMUCBPolicy(exploration=exploration, epsilon=1.0, arms=range(K), random_state=0)
        for _ in range(2)
    )
    y = pd.DataFrame({"action": logger.select(x), "reward": 0.0, "propensity": 1 / K})
    result = replay(candidate, x, y, learn=False, random_state=0)
    low, high = stats.binom.ppf([LEVEL / 2, 1 - LEVEL / 2], n, 1 / K)
    assert low <= result.n_accepted <= high
    # nor does the logger itself, and a second replay repeats the first
    again = replay(candidate, x, y, learn=False, random_state=0)
    assert again.history.equals(result.history)
    assert low <= replay(logger, x, y, learn=False).n_accepted <= high


# === Random numbers by address: their distribution, independent of the address ==================

# Each test below fails falsely, with another seed, at most once in 100,000.


def test_uniform_over_choices_arms_uses_and_seeds():
    n = 20_000
    streams = {
        "choices": [uniform(1, t, 77, COIN) for t in range(n)],
        "arms": [uniform(1, 5, key, COIN) for key in range(n)],
        "seeds": [uniform(seed, 5, 77, COIN) for seed in range(n)],
    }
    for name, numbers in streams.items():
        assert min(numbers) >= 0 and max(numbers) < 1
        assert stats.kstest(numbers, "uniform").pvalue > LEVEL, name
    both = np.array([(uniform(1, t, 77, COIN), uniform(1, t, 77, EXPLORE)) for t in range(n)])
    for pair in (both, np.column_stack([both[:-1, 0], both[1:, 0]])):
        table = np.histogram2d(*pair.T, bins=8)[0]
        assert stats.chi2_contingency(table).pvalue > LEVEL


def test_normal():
    draws = np.array([standard_normal(1, t, 77) for t in range(20_000)])
    assert stats.kstest(draws, "norm").pvalue > LEVEL
    assert stats.pearsonr(draws[:-1], draws[1:]).pvalue > LEVEL


# === A change of rewards starts a policy anew ===================================================


def changed_log(n, at, seed=0, high=0.9, low=0.1):
    """Uniform choices of two arms, of which the first is better before `at` and the other after."""
    rng = np.random.default_rng(seed)
    arm, X = rng.integers(2, size=n), rng.normal(size=(n, 2))
    better = (arm == 0) == (np.arange(n) < at)
    reward = (rng.random(n) < np.where(better, high, low)).astype(float)
    return X, pd.DataFrame({"action": arm, "reward": reward})


CHECKED = {
    "logistic": GLMUCBPolicy(random_state=0),
    "probit": GLMUCBPolicy("probit", random_state=0, covariance="full"),
    "linear": GLMUCBPolicy("linear", random_state=0),
    "sparse": GLMUCBPolicy(standardize="scale", random_state=0),
    "shared": SharedGLMPolicy(random_state=0),
    "shared linear": SharedGLMPolicy(link="linear", covariance="diagonal", random_state=0),
}


@pytest.mark.parametrize("name", CHECKED)
def test_partial_fit_starts_anew_and_warns_when_rewards_change(name):
    X, y = changed_log(1100, 900)
    policy = clone(CHECKED[name]).fit(X[:900], y[:900])
    assert policy.n_restarts_ == 0
    with pytest.warns(UserWarning, match="rewards have changed"):
        policy.partial_fit(X[900:], y[900:])
    assert policy.n_restarts_ == 1
    assert (policy.predict(X) == 1).all()
    restored = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(restored.predict_reward(X), policy.predict_reward(X))


@pytest.mark.filterwarnings("ignore:rewards have changed")
@pytest.mark.parametrize("kind", [GLMUCBPolicy, SharedGLMPolicy])
def test_a_model_that_forgets_does_not_hide_a_change(kind):
    """It has followed rates of .3 that become .1 before the residuals of the mixture add up."""
    for seed in (1, 5, 7):
        rng = np.random.default_rng(seed)
        X, rate = rng.normal(size=(2400, 2)), np.where(np.arange(2400) < 2000, 0.3, 0.1)
        policy = kind().fit(X, np.zeros(2400, dtype=int), reward=(rng.random(2400) < rate) * 1.0)
        assert policy.n_restarts_ == 1


@pytest.mark.filterwarnings("ignore:rewards have changed")
def test_partial_fit_of_sparse_rows_starts_anew_as_that_of_dense_ones():
    X, y = changed_log(1300, 900)
    dense = clone(CHECKED["sparse"]).fit(X, y)
    sparse = clone(CHECKED["sparse"]).fit(csr_array(X), y)
    assert sparse.n_restarts_ == dense.n_restarts_ == 1
    np.testing.assert_allclose(sparse.predict_reward(X), dense.predict_reward(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:rewards have changed")
@pytest.mark.parametrize("name", ["logistic", "linear", "shared"])
def test_replay_starts_anew_where_partial_fit_does(name):
    X, y = changed_log(2400, 1800)
    policy = clone(CHECKED[name]).set_params(exploration="squarecb")
    compiled, one_by_one = (
        replay(p, X, y, random_state=0).history for p in (policy, generic(policy))
    )
    pd.testing.assert_frame_equal(compiled, one_by_one)
    assert compiled.query("event > 2200")["reward"].mean() > 0.7


@pytest.mark.parametrize("settings", [{"forgetting": 1.0}, {"forgetting": 0.99}])
def test_partial_fit_does_not_start_anew_with_a_number_for_forgetting(settings):
    policy = GLMUCBPolicy(random_state=0, **settings).fit(*changed_log(1300, 900))
    assert policy.n_restarts_ == 0


@pytest.mark.filterwarnings("ignore:rewards have changed")
@pytest.mark.parametrize("name", ["probit", "shared", "linear"])
def test_merge_leaves_out_what_was_learned_before_rewards_changed(name):
    """The merged policy is that of the only worker that started anew, in whatever units."""
    X, y = changed_log(1500, 900)
    base = clone(CHECKED[name]).set_params(covariance="full").fit(X[:800], y[:800])
    workers = [copy.copy(base), copy.copy(base)]
    workers[0].partial_fit(X[800:900] * [50.0, 3.0] - 9, y[800:900])
    workers[1].partial_fit(X[900:], y[900:])
    merged = base.merge(workers, base=base)
    assert merged.n_restarts_ == 1
    assert (merged.predict(X) == 1).all()
    expected, error = workers[1].predict_reward(X), 1e-3 if name == "linear" else 1e-6
    np.testing.assert_allclose(merged.predict_reward(X), expected, atol=error)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_rewards_of_a_model_that_is_wrong_do_not_start_it_anew(link):
    """Rare rewards, and products of features, of which a linear predictor knows nothing."""
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(6000, 3)), rng.integers(3, size=6000)
    chance = 1 / (1 + np.exp(2 - 2 * X[:, 0] * X[:, 1] - np.abs(X[:, 2])))
    for p in (chance, np.array([0.01, 0.015, 0.02])[arm]):
        reward = (rng.random(6000) < p).astype(float)
        policy = GLMUCBPolicy(link, random_state=0).fit(X, arm, reward=reward)
        assert policy.n_restarts_ == 0


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:rewards have changed")
@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_one_change_of_the_best_arm_is_followed(link):
    """Rates of .3, .2, .1 become .1, .2, .3 after 2,000 of 6,000 events."""
    earned = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        policy = GLMUCBPolicy(link, arms=range(3), random_state=seed)
        for start in range(0, 6000, 50):
            rate = np.array([0.3, 0.2, 0.1] if start < 2000 else [0.1, 0.2, 0.3])
            X = rng.normal(size=(50, 2))
            arm = policy.select(X).astype(int)
            policy.partial_fit(X, arm, reward=(rng.random(50) < rate[arm]) * 1.0)
            if start >= 4500:
                earned.append(rate[arm].mean())
    assert np.mean(earned) > 0.285
