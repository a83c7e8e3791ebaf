"""Slate estimators: weights by enumeration of their definition, estimates against the truth."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.bandit import SlatePolicy
from skbandit.evaluation import replay_slates, slate_ips, slate_pseudo_inverse
from skbandit.evaluation._off_policy._slates import weights_of_uniform
from skbandit.exceptions import ReplayCoverageWarning
from tests.tiers import first
from tests.worlds import refuses, warns

N_ARMS, M = 6, 3
QUALITY = np.linspace(0.1, 0.6, N_ARMS)


def by_definition(q, slates, probability):
    """Weights qᵀ Γ⁺ 1_s of all slates of a logging policy."""
    m, n_arms = q.shape
    ones = np.zeros((len(slates), m, n_arms))
    for k, slate in enumerate(slates):
        ones[k, np.arange(m), slate] = 1
    ones = ones.reshape(len(slates), -1)
    gamma = (ones.T * probability) @ ones
    return ones @ np.linalg.pinv(gamma) @ q.ravel()


@pytest.mark.parametrize(("m", "n_arms"), [(1, 4), (2, 3), (2, 5), (3, 5), (3, 3), (4, 4)])
def test_weights_of_uniform_logs_are_those_of_the_definition(m, n_arms):
    rng = np.random.default_rng(0)
    slates = np.array(list(permutations(range(n_arms), m)))
    shown = rng.dirichlet(np.ones(len(slates)))  # of the evaluated policy
    q = np.zeros((m, n_arms))
    for slate, p in zip(slates, shown, strict=True):
        q[np.arange(m), slate] += p
    at_place, included = q[np.arange(m), slates], q.sum(axis=0)[slates]
    found = weights_of_uniform(at_place, included, np.full(len(slates), n_arms))
    expected = by_definition(q, slates, np.full(len(slates), 1 / len(slates)))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    # unbiased for every reward that is a sum over places and arms
    value = rng.normal(size=(m, n_arms))
    assert (found * value[np.arange(m), slates].sum(axis=1)).mean() == pytest.approx(
        (q * value).sum()
    )


def uniform_log(n, seed, per_slate=False):
    rng = np.random.default_rng(seed)
    slates = rng.permuted(np.tile(np.arange(N_ARMS), (n, 1)), axis=1)[:, :M]
    clicks = (rng.random((n, M)) < QUALITY[slates]).astype(float)
    if per_slate:  # places matter
        return slates, (clicks * [1.0, 0.7, 0.2]).sum(axis=1)
    return slates, clicks


TARGET = np.array([5, 1, 3])
TRUTH = QUALITY[TARGET].sum()
TRUTH_WITH_PLACES = (QUALITY[TARGET] * [1.0, 0.7, 0.2]).sum()


@pytest.mark.thorough
@pytest.mark.parametrize(("n_logs", "least"), first(1, [(50, 40), (200, 178)]))
def test_intervals_cover(n_logs, least):
    """Of intervals at 95%, fewer than these cover by chance once in 10,000 runs."""
    covered = 0
    for k in range(n_logs):
        slates, clicks = uniform_log(300, k)
        low, high = slate_ips(np.tile(TARGET, (300, 1)), None, slates, reward=clicks).interval()
        covered += low <= TRUTH <= high
    assert covered >= least


def test_skewed_logs_need_propensities():
    rng = np.random.default_rng(0)
    keys = np.log(rng.random((4000, N_ARMS))) / np.array([1.0, 2, 3, 4, 5, 6])
    slates = np.argsort(-keys, axis=1)[:, :M]
    share = np.bincount(slates.ravel(), minlength=N_ARMS) / 4000
    clicks = (rng.random((4000, M)) < QUALITY[slates]).astype(float)
    target = np.tile(TARGET, (4000, 1))
    log = pd.DataFrame({"action": slates.tolist(), "reward": clicks.tolist()})
    found = slate_ips(target, None, log.assign(propensity=share[slates].tolist()))
    assert abs(found.mean_reward - TRUTH) < 4.4 * found.standard_error
    coverage = pytest.warns(ReplayCoverageWarning, match="the mean weight is 1.115")
    with coverage, pytest.warns(UserWarning, match="not chosen uniformly: 0 on 741 events"):
        wrong = slate_ips(target, None, log)
    assert abs(wrong.mean_reward - TRUTH) > 4.4 * wrong.standard_error


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["select", "predict"])
def test_policies_are_evaluated(rule):
    slates, clicks = uniform_log(1500, 1)
    X = np.random.default_rng(0).normal(size=(1500, 2))
    models = GLMUCBPolicy(exploration="squarecb", alpha=1.0)
    policy = SlatePolicy(models, M, random_state=0).fit(X[:500], slates[:500], clicks[:500])
    X, slates, clicks = X[500:], slates[500:], clicks[500:]
    one = slate_ips(policy, X, slates, reward=clicks, rule=rule)
    two = slate_pseudo_inverse(policy, X, slates, reward=clicks.sum(axis=1), rule=rule)
    truth = QUALITY[getattr(policy, rule)(X)].sum(axis=1).mean()
    for found in (one, two):
        assert abs(found.mean_reward - truth) < 4.4 * found.standard_error
    assert one.standard_error < two.standard_error


@pytest.mark.thorough
def test_replay_of_a_fixed_policy_is_unbiased():
    slates, clicks = uniform_log(2000, 2)
    X = np.zeros((2000, 1))
    policy = SlatePolicy(GLMUCBPolicy(), M, random_state=0).fit(X, slates, clicks)
    found = replay_slates(policy, X, slates, reward=clicks, rule="predict", learn=False)
    same = slate_ips(policy, X, slates, reward=clicks, rule="predict")
    assert found.mean_reward == pytest.approx(same.mean_reward)
    assert found.standard_error == pytest.approx(same.standard_error)


@pytest.mark.thorough
def test_replay_of_a_learner():
    """A policy that learns earns more than random slates, and is left as it was."""
    slates, clicks = uniform_log(300, 3)
    X = np.zeros((300, 1))
    policy = SlatePolicy(GLMUCBPolicy(exploration="thompson"), M)
    found = replay_slates(policy, X, slates, reward=clicks, random_state=0)
    again = replay_slates(policy, X, slates, reward=clicks, random_state=0)
    assert found == again
    assert not hasattr(policy, "policy_")
    assert found.mean_reward - 3 * found.standard_error > 3 * QUALITY.mean()
    assert found.mean_reward - 4 * found.standard_error < np.sort(QUALITY)[-3:].sum()


def test_errors_name_the_row():
    slates, clicks = uniform_log(50, 0)
    target = np.tile(TARGET, (50, 1))
    unknown = clicks.copy()
    unknown[7, 2] = np.nan
    refuses("row 7 at place 2 is missing", slate_ips, target, None, slates, reward=unknown)
    with pytest.raises(ValueError, match="row 3 has 0 at place 1"):
        p = np.full((50, M), 0.5)
        p[3, 1] = 0
        slate_ips(target, None, slates, reward=clicks, propensity=p)
    with pytest.raises(ValueError, match="the policy shows 2 arms, the log 3"):
        slate_pseudo_inverse(target[:, :2], None, slates, reward=clicks.sum(axis=1))
    with pytest.raises(ValueError, match="only uniform logs are read: use slate_ips"):
        slate_pseudo_inverse(target, None, slates, reward=clicks[:, 0], logging="independent")
    with pytest.raises(ValueError, match="feedback='cascade'"):
        cascade = SlatePolicy(feedback="cascade")
        replay_slates(cascade, np.zeros((50, 1)), slates, reward=clicks)


def uniform_slates(arms, n=200, **columns):
    rng = np.random.default_rng(0)
    shown = [(arms[k],) for k in rng.integers(len(arms), size=n)]
    reward = [(float(arm == arms[-1]),) for (arm,) in shown]
    return pd.DataFrame({"action": shown, "reward": reward, **columns})


@pytest.mark.parametrize("arms", [["a", "b", 0], [("x", 1), ("x", 2)], ["a", "b"]], ids=str)
@pytest.mark.parametrize("form", [list, pd.Series, lambda slates: pd.DataFrame(slates)])
def test_slates_in_any_form_keep_their_labels(arms, form):
    log = uniform_slates(arms)
    slates = [(arms[-1],) if k % 2 else (arms[0],) for k in range(len(log))]
    matches = np.array([a == b for a, b in zip(slates, log["action"], strict=True)])
    reward = np.array([r for (r,) in log["reward"]])
    expected = len(arms) * (matches * reward).mean()
    assert slate_ips(form(slates), None, log).mean_reward == pytest.approx(expected)
    log["reward"] = reward
    with_places = slate_pseudo_inverse(form(slates), None, log).mean_reward
    of_one = np.where(matches, 1 + (len(arms) - 1), 0.0) * reward
    assert with_places == pytest.approx(of_one.mean())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([["a"]] * 200, "row 0: the action 'a' is not among the available arms"),
        ([["b", "b"]] * 200, "row 0 shows an arm twice"),
        ([["b"]] * 3, "there are 3 slates for 200 events"),
        (
            pd.DataFrame({"a": [0.5] * 200, "b": [0.5] * 200}),
            "row 0: arm 'a' is chosen with probability 0.5, but was not",
        ),
        (pd.DataFrame([[0.5, 0.5]] * 200, columns=["b", "b"]), "two columns have the same arm"),
    ],
)
def test_slates_that_cannot_be_shown_are_refused(given, message):
    log = uniform_slates(["b", "c"], available=[("b", "c")] * 199 + [("a", "b", "c")])
    refuses(message, slate_ips, given, None, log)


def test_rows_in_another_order_are_told():
    log, order = uniform_slates(["a", "b"]), np.random.default_rng(1).permutation(200)
    given = pd.DataFrame({"place": ["a"] * 200})
    for estimate in (slate_ips, slate_pseudo_inverse):
        y = log if estimate is slate_ips else log.assign(reward=1.0)
        warns("same row labels in different orders", estimate, given.iloc[order], None, y)


class Clock:
    """Shows "b" from t = 450 on."""

    now = 0.0

    def advance(self, timestamp):
        self.now = timestamp

    def select(self, X, *, available=None):
        return [["b" if self.now >= 450 else "a"]] * len(X)


def test_a_replay_of_slates_advances_the_clock():
    log = uniform_slates(["a", "b"], 900, timestamp=np.arange(900.0))
    estimate = replay_slates(Clock(), np.zeros((900, 1)), log, learn=False)
    late = np.array([r for (r,) in log["reward"]])[450:]
    assert estimate.mean_reward == pytest.approx(2 * late.sum() / 900)
    with pytest.raises(ValueError, match="replay_slates needs events in order of time"):
        replay_slates(Clock(), np.zeros((900, 1)), log[::-1], learn=False)
