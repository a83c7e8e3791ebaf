"""Intervals with a guarantee: coverage, at one time and at all times; their form."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from skbandit.evaluation import OffPolicyEstimate, off_policy_blocks
from skbandit.evaluation._guaranteed import BETS, RewardEvidence, WeightedShares, betting_limit
from skbandit.exceptions import ReplayCoverageWarning
from tests.tiers import first
from tests.worlds import ips, logged, refuses, snips

# --- limits as theorems ------------------------------------------------------------------


X, Y = logged()


def capital(w, s, m, largest):
    """Logarithm of the average capital of all gamblers who believe in more than m."""
    one = np.log1p(BETS[:, None] * (w * s / m - 1)).sum(axis=1)
    other = np.log1p(BETS[:, None] * w * (s - m) / (largest * m)).sum(axis=1)
    return logsumexp(np.append(one, other)) - np.log(2 * len(BETS))


@pytest.mark.parametrize("kind", ["clicks", "uniform", "weighted clicks", "weighted uniform"])
def test_the_betting_limit_is_where_the_capital_reaches_its_bound(kind):
    rng = np.random.default_rng(0)
    s = (rng.random(500) < 0.1).astype(float) if "clicks" in kind else rng.random(500)
    w = rng.choice([0.0, 1.5, 3.0], 500) if "weighted" in kind else np.ones(500)
    limit = betting_limit(WeightedShares.of(w, s), 3.0, 0.05)
    needed = np.log(1 / 0.05)
    # exact for clicks, whose cells have one value each; else below by less than 1%
    tight = 1e-6 if "clicks" in kind else 1e-2
    assert capital(w, s, limit * (1 + tight), 3.0) < needed <= capital(w, s, limit, 3.0) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_summaries_add_up_and_are_conservative(seed):
    rng = np.random.default_rng(seed)
    w, s = rng.exponential(size=(2, 300))
    s = np.minimum(s, 1)
    whole = WeightedShares.of(w, s)
    parts = [WeightedShares.of(w[k : k + 7], s[k : k + 7]) for k in range(0, 300, 7)]
    total = sum(parts[1:], parts[0])
    assert betting_limit(total, 20.0, 0.05) == pytest.approx(
        betting_limit(whole, 20.0, 0.05), rel=1e-6
    )
    assert total.n == 300
    totals, each = np.array([np.ones(300), w, w * s]), np.array([w, s])
    single = WeightedShares(np.arange(300), totals, each, each)  # no grouping
    assert betting_limit(whole, 20.0, 0.05) <= betting_limit(single, 20.0, 0.05) + 1e-9
    assert betting_limit(whole, 20.0, 0.05) == pytest.approx(
        betting_limit(single, 20.0, 0.05), abs=5e-3
    )


# --- coverage ----------------------------------------------------------------------------


def clicks_on_own(p):
    return lambda rng, n: ((rng.random(n) < p).astype(float), np.ones(n), 1.0)


def clicks_on_matches(p):
    """A policy that plays one of ten uniform arms."""

    def draw(rng, n):
        return (rng.random(n) < p).astype(float), 10.0 * (rng.random(n) < 0.1), 10.0

    return draw


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("draw", "p"), [(clicks_on_own, 0.001), (clicks_on_own, 0.5), (clicks_on_matches, 0.05)]
)
def test_coverage_at_all_times_at_once(draw, p):
    """A gambler looks at the interval after 4, 16, 64, ... events, and stops when it misses.

    At 80%, 60 logs would show more than 23 failures with probability 3e-4.
    """
    failures = 0
    for seed in range(60):
        reward, weight, largest = draw(p)(np.random.default_rng(seed), 4096)
        total, start, missed = None, 0, False
        for end in 4 ** np.arange(1, 7):
            part = slice(start, end)
            evidence = RewardEvidence.of(reward[part], weight[part], (0.0, 1.0), largest)
            total, start = evidence if total is None else total + evidence, end
            low, high = total.interval(0.8)
            missed |= not low <= p <= high
        failures += missed
    assert failures <= 23


# --- the methods -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "sequence"])
def test_inside_of_the_range_of_rewards(kind):
    always_a = pd.DataFrame({"a": 1.0}, index=Y.index)
    for reward, bounds in ((Y["reward"], (0, 1)), (5 - 2.0 * Y["reward"], (3, 5))):
        for rare in (reward, reward.where(np.arange(400) > 0, bounds[0])):
            found = ips(always_a, X, Y.assign(reward=rare), reward_range=bounds)
            low, high = found.interval(0.9999, kind=kind)
            assert bounds[0] <= low <= high <= bounds[1]


def test_intervals_move_with_the_rewards():
    pi = np.full((400, 3), 1 / 3)

    def interval(reward, bounds):
        return snips(pi, X, Y.assign(reward=reward), reward_range=bounds).interval(kind="sequence")

    low, high = interval(Y["reward"], (0, 1))
    low_2, high_2 = interval(1e6 + 10 * Y["reward"], (1e6, 1e6 + 10))
    assert (low_2 - 1e6) / 10 == pytest.approx(low, abs=1e-6)
    assert (high_2 - 1e6) / 10 == pytest.approx(high, abs=1e-6)
    low_3, high_3 = interval(-Y["reward"], (-1, 0))
    assert (-high_3, -low_3) == pytest.approx((low, high), abs=1e-9)


def test_what_intervals_refuse():
    pi = np.full((400, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"kind must be in .*'sequence'\), got 'wald'"):
        ips(pi, X, Y).interval(kind="wald")
    with pytest.raises(ValueError, match="this estimate was made by hand"):
        OffPolicyEstimate("ips", 0.1, 0.1, 9.0, 10, 0.1).interval(kind="sequence")
    with pytest.raises(ValueError, match=r"reward of row \d+, 1, is outside of reward_range"):
        ips(pi, X, Y, reward_range=(0, 0.5))
    for wrong in ((1, 0), (0,), "01", 3, (0, np.inf)):
        refuses("reward_range", ips, pi, X, Y, reward_range=wrong)
    beyond = Y.assign(reward=7 * Y["reward"], w=1.0)
    found = off_policy_blocks("w", [beyond.assign(w=beyond["propensity"])])["ips"]
    assert 0 <= found.interval()[0] <= found.interval()[1] <= 7
    refuses("kind must be in", found.interval, kind="bernstein")


RANGELESS = {
    "ips": lambda X, y: ips(y["propensity"], X, y),
    "blocks": lambda X, y: off_policy_blocks("w", [y.assign(w=y["propensity"])])["snips"],
}


@pytest.mark.parametrize("call", RANGELESS)
def test_a_sequence_requires_the_range_of_rewards(call):
    """The observed ones do not bound those to come."""
    for reward in (Y["reward"], Y["reward"] * 7):
        found = RANGELESS[call](X, Y.assign(reward=reward))
        low, high = found.interval()
        assert 0 <= low <= high <= 7
        refuses(r"pass reward_range=\(smallest, largest\)", found.interval, kind="sequence")


LEVELS = (0.1, 0.3, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99)


@pytest.mark.thorough
@pytest.mark.parametrize("rewards", first(1, ["rare", "none", "often", "all"]))
def test_intervals_are_nested_at_all_levels(rewards):
    """Chance alone may rule out every mean at low levels: then the interval is a point."""
    points = 0
    for seed in range(10 if rewards == "rare" else 30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 400))
        q, pi = rng.choice([0.1, 0.5]), rng.choice([0.05, 0.3, 1.0])
        match = rng.random(n) < 1.25 * q  # somewhat more than the propensities say
        weight = np.where(match, pi / q, (1 - pi) / (1 - q))
        p = {"none": 0.0, "rare": 0.01, "often": 0.4, "all": 1.0}[rewards]
        evidence = RewardEvidence.of((rng.random(n) < p) * 1.0, weight, (0, 1), weight.max())
        if sum(evidence._limits(0.025)) >= 1:
            continue  # weights that 95% exclude, of which it warns
        found = [evidence.interval(level) for level in LEVELS]
        for (low, high), (wider_low, wider_high) in pairwise(found):
            assert wider_low <= low <= high <= wider_high
        points += found[0][0] == found[0][1]
    assert points


def test_wrong_weights_are_told_at_every_level():
    rng = np.random.default_rng(0)
    reward, weight = (rng.random(500) < 0.3) * 1.0, rng.choice([1.0, 2.0], 500)
    evidence = RewardEvidence.of(reward, weight, (0, 1), 2.0)
    for level in LEVELS:
        with pytest.warns(ReplayCoverageWarning, match="compatible with the weights"):
            assert evidence.interval(level) == (0, 1)
