"""Replay estimates what a policy would have earned: the theorems, on logs whose truth is known.

Every seed is fixed. With another one each comparison of a mean with its truth fails a correct
implementation with probability 1e-5 (a normal quantile, `FAR`), each of a count with a binomial
quantile with 1e-4 (`ALARM`); biases that must be seen are at least 8 standard errors large.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from skbandit import GLMUCBPolicy
from skbandit.evaluation import replay
from tests.policies import PAPER, EpsilonGreedy, QuickEpsilonGreedy
from tests.tiers import first

ALARM = 1e-4
FAR = norm.isf(1e-5 / 2)

pytestmark = pytest.mark.filterwarnings(
    # uncorrected logs are replayed on purpose, and truths are about short horizons
    "ignore::skbandit.exceptions.ReplayCoverageWarning",
    "ignore:the log has no propensities",
    "ignore:acceptance=",
    "ignore:ByContext chose arms",
    "ignore:the policy learned in a single run",
)


def z_score(estimates, truth):
    estimates = np.asarray(estimates)
    return (estimates.mean() - truth) / (estimates.std(ddof=1) / np.sqrt(len(estimates)))


class ByContext:
    """Chooses arm 2 where x > 0 and arm 0 elsewhere, however these were logged."""

    def select(self, X):
        return np.where(X[:, 0] > 0, 2, 0)


def rewards(X, arm):
    """Probability of reward 1: more for higher arms where x > 0, less elsewhere."""
    return np.clip(0.4 + 0.15 * (arm - 1) * np.sign(X[:, 0]), 0, 1)


TRUTH = 0.4 + 0.15  # of ByContext: each choice is the better extreme


def draw(rng, n, probabilities):
    """A log whose actions have these probabilities, of shape (n, 3), in contexts X."""
    X = rng.normal(size=(n, 1))
    p = probabilities(X)
    arm = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    reward = (rng.random(n) < rewards(X, arm)).astype(int)
    return X, pd.DataFrame({"action": arm, "reward": reward, "propensity": p[np.arange(n), arm]})


def uniform(X):
    return np.full((len(X), 3), 1 / 3)


def uneven(X):
    """A logging policy that likes what is bad."""
    return np.where(X > 0, [[0.6, 0.3, 0.1]], [[0.2, 0.2, 0.6]])


# --- policies that do not learn ------------------------------------------------------------


@pytest.mark.parametrize("logging", [uniform, uneven])
def test_fixed_policy_is_estimated_without_bias(logging):
    rng = np.random.default_rng(0)
    estimates = []
    for seed in range(400):
        X, y = draw(rng, 500, logging)
        estimates.append(replay(ByContext(), X, y, random_state=seed).mean_reward)
    assert abs(z_score(estimates, TRUTH)) < FAR


def test_events_kept_have_the_distribution_of_all_events():
    rng = np.random.default_rng(1)
    X, y = draw(rng, 60_000, uneven)
    c = y["propensity"].min()
    result = replay(ByContext(), X, y, random_state=0)
    kept = np.zeros(len(X), dtype=bool)
    kept[result.history["event"]] = True
    for part in (X[:, 0] < -1, X[:, 0] < 0, X[:, 0] > 0, X[:, 0] > 1, X[:, 0] < np.inf):
        n, found = part.sum(), kept[part].sum()
        assert binom.ppf(ALARM, n, c) <= found <= binom.isf(ALARM, n, c)


def test_uneven_log_taken_for_uniform_is_biased():
    X, y = draw(np.random.default_rng(2), 60_000, lambda X: uneven(X)[:, [1, 2, 0]])
    naive = replay(ByContext(), X, y[["action", "reward"]])
    corrected = replay(ByContext(), X, y, random_state=0)
    assert abs(corrected.mean_reward - TRUTH) < FAR * corrected.standard_error

    class OneArm:
        """Better where x > 0, where it was logged rarely."""

        def select(self, X):
            return np.full(len(X), 2)

    X, y = draw(np.random.default_rng(3), 60_000, uneven)
    naive = replay(OneArm(), X, y[["action", "reward"]])
    corrected = replay(OneArm(), X, y, random_state=0)
    assert naive.mean_reward < 0.4 - 8 * naive.standard_error
    assert abs(corrected.mean_reward - 0.4) < FAR * corrected.standard_error
    clipped = replay(OneArm(), X, y, acceptance=0.6, random_state=0)
    assert clipped.mean_reward < 0.4 - 8 * clipped.standard_error


def varying(rng, n):
    """Sets of two arms where x < 0 and of four elsewhere; arm 0, always there, likes x > 0."""
    X = rng.normal(size=(n, 1))
    pools = np.empty(2, dtype=object)
    pools[:] = [(0, 1), (0, 1, 2, 3)]
    rich = (X[:, 0] > 0).astype(int)
    arm = (rng.random(n) * np.array([2, 4])[rich]).astype(int)
    reward = (rng.random(n) < 0.2 + 0.4 * rich).astype(int)
    return X, pd.DataFrame({"action": arm, "reward": reward}), pools[rich]


def test_sets_of_arms_that_vary_are_replayed_without_bias():
    X, y, pools = varying(np.random.default_rng(4), 40_000)

    class First:
        def select(self, X, available):
            return np.array([pool[0] for pool in available])

    truth = 0.4
    corrected = replay(First(), X, y, available=pools, random_state=0)
    assert corrected.acceptance == 0.25
    assert abs(corrected.mean_reward - truth) < FAR * corrected.standard_error
    # all matches kept, as if the sets were one: those of two arms count twice as often
    naive = replay(First(), X, y, available=pools, acceptance=0.5)
    assert naive.mean_reward == pytest.approx(0.2 * 2 / 3 + 0.6 / 3, abs=0.02)
    assert naive.mean_reward < truth - 8 * naive.standard_error


# --- policies that learn -------------------------------------------------------------------

MEANS = {"a": 0.3, "b": 0.6}


def exact_mean(T):
    """Expected mean reward of the greedy policy over T events: all courses that it can take."""
    total = 0.0
    for course in itertools.product([0, 1], repeat=T):
        policy, likely = EpsilonGreedy(0.0), 1.0
        for reward in course:
            arm = policy.predict(None, available=[("a", "b")])[0]
            likely *= MEANS[arm] if reward else 1 - MEANS[arm]
            policy.partial_fit(None, pd.DataFrame({"action": [arm], "reward": [reward]}))
        total += likely * sum(course) / T
    return total


def bandit_log(rng, n, p_of_a=0.5):
    a = rng.random(n) < p_of_a
    y = pd.DataFrame(
        {"action": np.where(a, "a", "b"), "propensity": np.where(a, p_of_a, 1 - p_of_a)}
    )
    return y.assign(reward=(rng.random(n) < y["action"].map(MEANS)).astype(int))


def spread(n, **settings):
    """Standard deviation of 100 estimates by Algorithm 2, which are unbiased, as tested below."""
    rng = np.random.default_rng(16)
    policy = GLMUCBPolicy(random_state=0, **PAPER | settings)
    X = np.ones((n, 1))
    return np.std([replay(policy, X, bandit_log(rng, n)).mean_reward for _ in range(100)], ddof=1)


LONG = 6400
AT_BEST = np.sqrt(0.6 * 0.4 / (LONG / 2))
"""Standard error of a policy that plays the better arm of `MEANS` on the half that it keeps."""


def growing(n):
    """A bound that widens slowly, so that no arm is given up for good."""
    return np.sqrt(2 * np.log(n + 2))


@pytest.mark.parametrize(
    "settings", [{"exploration": "thompson"}, {"alpha": growing}], ids=["thompson", "growing"]
)
def test_error_of_a_policy_that_learns_falls_as_one_over_the_root_of_the_log(settings):
    """By a factor of 4 at least in 16 times the log; to that of a fixed policy, known to 7%."""
    short, long = spread(400, **settings), spread(LONG, **settings)
    assert long == pytest.approx(AT_BEST, rel=0.2)
    assert short / long > 3.0


def test_error_of_a_policy_that_may_give_up_the_better_arm_does_not():
    """Courses differ for good, however long the log is."""
    short, long = (spread(n, exploration="greedy", link="linear") for n in (400, LONG))
    assert long > 2 * AT_BEST
    assert short / long < 2.5


@pytest.mark.parametrize("p_of_a", [0.5, 0.8])
def test_learning_policy_is_estimated_without_bias(p_of_a):
    truth = exact_mean(8)
    rng = np.random.default_rng(7)
    estimates = []
    for seed in range(400):
        y = bandit_log(rng, 120, p_of_a)
        result = replay(
            QuickEpsilonGreedy(0.0), np.zeros((120, 1)), y, max_accepted=8, random_state=seed
        )
        assert result.n_accepted == 8
        estimates.append(result.mean_reward)
    assert abs(z_score(estimates, truth)) < FAR
    assert abs(z_score(estimates, 0.6)) > 8  # not what it would earn once it has learned


def lives(rng, T, n_lives, epsilon, means):
    """Mean reward of the ε-greedy policy at work itself, in many lives at a time."""
    K, each = len(means), np.arange(n_lives)
    total, times, earned = np.ones((n_lives, K)), np.ones((n_lives, K)), np.zeros(n_lives)
    for _ in range(T):
        arm = (total / times).argmax(axis=1)
        explore = rng.random(n_lives) < epsilon
        arm[explore] = rng.integers(K, size=explore.sum())
        reward = rng.random(n_lives) < means[arm]
        total[each, arm] += reward
        times[each, arm] += 1
        earned += reward
    return earned.mean() / T


def coverage(rng, n_logs, n, T, epsilon, **options):
    """How many of the intervals from so many logs of n events hold what T events earn."""
    means = np.array([0.3, 0.4, 0.5])
    truth = lives(rng, T, 20_000, epsilon, means)
    covered = 0
    for seed in range(n_logs):
        arm = rng.integers(3, size=n)
        y = pd.DataFrame({"action": arm, "reward": (rng.random(n) < means[arm]).astype(int)})
        policy = QuickEpsilonGreedy(epsilon, seed)
        result = replay(policy, np.zeros((n, 1)), y, max_accepted=T, random_state=seed, **options)
        low, high = result.interval()
        covered += low <= truth <= high
    return covered


@pytest.mark.parametrize(
    ("options", "T"),
    first(1, [({"subsample": 0.5}, 40), ({"shuffle": True}, 90)]),
    ids=["half", "shuffle"],
)
def test_intervals_of_learning_policies_cover(options, T):
    covered = coverage(np.random.default_rng(9), 200, 330, T, 0.02, n_repeats=10, **options)
    assert covered >= binom.ppf(ALARM, 200, 0.93)


def test_a_single_path_of_a_learning_policy_tells_too_little():
    covered = coverage(np.random.default_rng(11), 200, 700, 200, 0.0)
    assert covered <= binom.ppf(ALARM, 200, 0.9)


def test_intervals_of_fixed_policies_cover():
    rng = np.random.default_rng(10)
    for options in ({}, {"subsample": 0.5, "n_repeats": 4}):
        covered = 0
        for seed in range(300):
            X, y = draw(rng, 300, uniform)
            low, high = replay(ByContext(), X, y, random_state=seed, **options).interval()
            covered += low <= TRUTH <= high
        assert binom.ppf(ALARM, 300, 0.95) <= covered <= binom.isf(ALARM, 300, 0.97)
