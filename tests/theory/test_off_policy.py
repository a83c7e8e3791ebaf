"""Off-policy estimates over many logs: bias, spread, and how often intervals cover.

Every seed is fixed. For other seeds each comparison (`unbiased`, `covers`, `less_variable`) fails a
correct implementation with probability 1e-4 at most.
"""

import functools
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from scipy.stats import binom, f, norm
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from skbandit.evaluation import off_policy_value

doubly_robust = partial(off_policy_value, method="dr")
ips = partial(off_policy_value, method="ips")
self_normalized_dr = partial(off_policy_value, method="sndr")
snips = partial(off_policy_value, method="snips")

ALARM = 1e-4
LOGS, EVENTS, ARMS = 150, 500, 3

_rng = np.random.default_rng(0)
COEF = _rng.normal(size=(ARMS, 2))
LOGGING = _rng.normal(size=(ARMS, 2))
POLICY = 1.5 * _rng.normal(size=(ARMS, 2))


def rewards_of(X, link):
    eta = X @ COEF.T + np.arange(ARMS)
    return expit(eta - 1) if link == "logistic" else eta


def logging_of(X):
    """A quarter of the time at random: weights are 12 at most."""
    return 0.25 / ARMS + 0.75 * softmax(X @ LOGGING.T, axis=1)


def policy_of(X):
    return softmax(X @ POLICY.T, axis=1)


def draw(seed, link, n=EVENTS):
    """A log, the probabilities of the policy that is judged, and its mean reward there."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    logging, pi, expected = logging_of(X), policy_of(X), rewards_of(X, link)
    action = (logging.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    mean, p = (table[np.arange(n), action] for table in (expected, logging))
    reward = rng.random(n) < mean if link == "logistic" else mean + rng.normal(size=n)
    y = pd.DataFrame({"action": action, "reward": reward * 1.0, "propensity": p})
    return X, y, pi, (pi * expected).sum(axis=1).mean()


def population(link, n=2_000_000):
    """The policy's mean reward over all contexts, to three digits more than a log's error."""
    X = np.random.default_rng(1).normal(size=(n, 2))
    return (policy_of(X) * rewards_of(X, link)).sum(axis=1).mean()


def estimates(estimator, link, change=lambda y: y, **options):
    """What is estimated on each log, with errors, and the truth there."""
    found = []
    for seed in range(LOGS):
        X, y, pi, truth = draw(seed, link)
        if estimator in (doubly_robust, self_normalized_dr):
            options["random_state"] = seed
        estimate = estimator(pi, X, change(y), **options)
        found.append([estimate.mean_reward, estimate.standard_error, truth])
    return np.array(found).T


def z_score(errors):
    return errors.mean() / (errors.std(ddof=1) / np.sqrt(len(errors)))


def unbiased(errors):
    return abs(z_score(errors)) < norm.isf(ALARM / 2)


def covers(inside, level):
    """As often as claimed, or up to 1.5% less: a log is finite and its weights are skewed."""
    low = binom.ppf(ALARM / 2, len(inside), level - 0.015)
    return low <= inside.sum() <= binom.isf(ALARM / 2, len(inside), level)


def less_variable(one, other):
    """Pitman and Morgan's test of errors on the same logs, which correlate.

    Its z scores here average 5.7 and more.
    """
    correlation = np.corrcoef(other + one, other - one)[0, 1]
    return np.arctanh(correlation) * np.sqrt(len(one) - 3) > 2.9


@functools.cache
def estimates_by_all(link):
    return {
        "ips": estimates(ips, link),
        "snips": estimates(snips, link),
        "dr": estimates(doubly_robust, link, reward_model=LinearRegression(), cv=2),
        "sndr": estimates(self_normalized_dr, link, reward_model=LinearRegression(), cv=2),
    }


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_estimates_are_unbiased_and_their_intervals_cover(link):
    everywhere = population(link)
    for name, (mean, error, truth) in estimates_by_all(link).items():
        assert unbiased(mean - truth), name  # that of the self-normalized is some 1/n
        for level in (0.8, 0.95):
            half = norm.ppf((1 + level) / 2) * error
            assert covers(abs(mean - everywhere) < half, level), (name, level)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_doubly_robust_estimates_vary_least(link):
    found = estimates_by_all(link)
    errors = {name: mean - truth for name, (mean, _, truth) in found.items()}
    assert less_variable(errors["dr"], errors["ips"])
    if link == "logistic":  # rewards that are far from 0 for their spread
        assert less_variable(errors["snips"], errors["ips"])


WRONG_MODEL = DummyRegressor(strategy="constant", constant=-3.0)


@functools.cache
def by_a_wrong_model():
    return estimates(doubly_robust, "linear", reward_model=WRONG_MODEL, cv=2)


def test_doubly_robust_is_unbiased_if_only_propensities_are_right():
    """The reward model may be anything."""
    mean, _, truth = by_a_wrong_model()
    assert unbiased(mean - truth)


def test_a_good_reward_model_lowers_the_spread():
    mean, _, truth = by_a_wrong_model()
    good, _, _ = estimates_by_all("linear")["dr"]
    assert less_variable(good - truth, mean - truth)


@pytest.mark.filterwarnings("ignore::UserWarning")  # they tell that propensities are missing
def test_doubly_robust_is_unbiased_if_only_the_reward_model_is_right():
    """The propensities may be anything; the others need them."""

    def uniform(y):
        return y.drop(columns="propensity")

    model = LinearRegression()
    mean, _, truth = estimates(doubly_robust, "linear", uniform, reward_model=model, cv=2)
    assert unbiased(mean - truth)
    for estimator in (ips, snips):
        mean, _, truth = estimates(estimator, "linear", uniform)
        assert abs(z_score(mean - truth)) > 6  # 13 and 53 on 400 logs


def test_error_falls_with_the_root_of_the_number_of_events():
    spread = []
    for n in (250, 1000, 4000):
        found = []
        for seed in range(LOGS):
            X, y, pi, truth = draw(seed, "logistic", n)
            found.append(snips(pi, X, y).mean_reward - truth)
        spread.append(np.std(found, ddof=1))
    # a ratio of two standard deviations of 200 is exact to a factor of 1.32 with probability ALARM
    bound = np.sqrt(f.isf(ALARM / 2, LOGS - 1, LOGS - 1))
    for more, less in pairwise(spread):
        assert 2 / bound < more / less < 2 * bound
