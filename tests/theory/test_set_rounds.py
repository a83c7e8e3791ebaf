"""Regret of sets chosen in rounds, and expectations of costs made from logs.

Bounds are checked for arbitrary classifiers: fixed random answers, row by row, with known expected
costs f*. Expectations are taken exactly, over every choice of the logging policy.
"""

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

from skbandit.logs import LoggedSlates, dr_costs
from skbandit.selection import logged_costs
from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED,
    RoundSettings,
    last_to_first,
    replace_duplicates,
    run_rounds,
)
from skbandit.selection.reductions._rule import NO_AD


@dataclass
class Arbitrary:
    """A classifier that ranks the ads of each row by fixed scores."""

    scores: np.ndarray

    def respond(self, X):
        return self.scores

    def choose(self, answers, allowed):
        lowest = np.where(allowed, answers, np.inf).argmin(axis=1)
        return np.where(allowed.any(axis=1), lowest, NO_AD)


def set_regret(f, chosen):
    """What the chosen sets cost more than the best ones, on average over rows."""
    best = np.sort(f, axis=1)[:, : chosen.shape[1]].sum(axis=1)
    return (np.take_along_axis(f, chosen, axis=1).sum(axis=1) - best).mean()


def round_regrets(f, picks, masked):
    """Sum over rounds of q_k: regret of each as a cost-sensitive problem of its own."""
    rows, total = np.arange(len(f)), 0.0
    chosen = np.zeros(f.shape, dtype=bool)
    for pick in picks.T:
        c = np.where(chosen, np.inf if masked else 0.0, f)
        total += (c[rows, pick] - c.min(axis=1)).mean()
        chosen[rows, pick] = True
    return total


@st.composite
def worlds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_ads = draw(st.integers(2, 8))
    m = draw(st.integers(1, n_ads))
    f = rng.normal(draw(st.sampled_from([-5, 0, 5])), 1.0, size=(6, n_ads))
    # classifiers between useless and good
    noise = draw(st.sampled_from([0.1, 1.0, 10.0]))
    return f, m, [Arbitrary(f + noise * rng.normal(size=f.shape)) for _ in range(n_ads)]


def run(rules, f, scheme):
    everything = np.ones(f.shape, dtype=bool)
    settings = RoundSettings(scheme, len(rules), len(rules), None)
    return run_rounds(rules, np.zeros((len(f), 1)), everything, settings)


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_masked_rounds_need_no_sign_of_costs(world):
    f, m, rules = world
    picks = run(rules[:m], f, MASKED)
    assert set_regret(f, picks) <= round_regrets(f, picks, masked=True) + 1e-9


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_leaving_out_costs_at_most_the_regret_of_the_holes(world):
    f, m, rules = world
    n_ads = f.shape[1]
    of_holes = [Arbitrary(-rule.scores) for rule in rules]
    if m == n_ads:
        return
    holes = run(of_holes[: n_ads - m], f, MASKED)
    kept = last_to_first(run(of_holes, f, MASKED))[:, :m]
    for left_out, chosen in zip(holes.tolist(), kept.tolist(), strict=True):
        assert sorted(left_out + chosen) == list(range(n_ads))
    assert set_regret(f, kept) <= round_regrets(-f, holes, masked=True) + 1e-9


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_the_post_needs_costs_that_are_not_positive(world):
    f, m, rules = world
    f = f - f.max(axis=1, keepdims=True)
    picks = run(rules[:m], f, PUBLISHED)
    chosen = replace_duplicates(picks, np.ones(f.shape, bool), m, np.arange(f.shape[1]))
    assert set_regret(f, chosen) <= round_regrets(f, picks, masked=False) + 1e-9


def test_without_a_shift_the_bound_of_the_post_fails():
    f = np.array([[0.31, -0.42, 0.7]])
    rules = [Arbitrary(np.array([[1.0, 0.0, 1.0]]))] * 2  # both rounds answer the second ad
    picks = run(rules, f, PUBLISHED)
    assert round_regrets(f, picks, masked=False) == 0.0
    everything = np.ones((1, 3), bool)
    regrets = {
        round(set_regret(f, replace_duplicates(picks, everything, 2, np.array(order))), 12)
        for order in permutations(range(3))
    }
    assert regrets == {0.0, 0.39}
    # shifted, the second answer has its multiplier, and masked, it cannot be given
    assert round_regrets(f - 0.7, picks, masked=False) == pytest.approx(0.39)
    assert round_regrets(f, run(rules, f, MASKED), masked=True) == pytest.approx(0.0)


# --- costs from logs -----------------------------------------------------------------------


def expectation(of_choice, f, p):
    """Mean, over the ad shown in the last row of a log, of what is estimated for that row."""
    return sum(p[a] * of_choice(a)[-1] for a in range(len(f)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_expected_costs_are_the_true_ones(seed, n_ads):
    rng = np.random.default_rng(seed)
    f, p, mu = rng.normal(size=n_ads), rng.dirichlet(np.ones(n_ads)), rng.normal(size=n_ads)
    p = 0.9 * p + 0.1 / n_ads

    def ips(a):
        return logged_costs([a], [f[a]], [p[a]], ads=range(n_ads)).to_numpy()

    def dr(a):
        shown = LoggedSlates(np.array([0]), np.array([a]), f[[a]], p[[a]], 1, n_ads)
        return dr_costs(shown, mu[None])  # whatever mu is, if it has not seen the row

    np.testing.assert_allclose(expectation(ips, f, p), f)
    np.testing.assert_allclose(expectation(dr, f, p), f)

    def offset(a):  # two more rows hold the lowest and the highest cost
        log = ([0, 0, a], [f.min(), f.max(), f[a]], [1.0, 1.0, p[a]])
        return logged_costs(*log, ads=range(n_ads), method="offset").to_numpy()

    midrange = (f.min() + f.max()) / 2
    np.testing.assert_allclose(expectation(offset, f, p), f - midrange)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_expected_costs_of_slates_are_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    f, mu = rng.normal(size=4), rng.normal(size=4)
    slates = list(combinations(range(4), 2))
    chance = rng.dirichlet(np.ones(len(slates)))
    inclusion = np.array([sum(chance[k] for k, s in enumerate(slates) if a in s) for a in range(4)])
    ips, dr = np.zeros(4), np.zeros(4)
    for probability, slate in zip(chance, slates, strict=True):
        s = np.array(slate)
        found = logged_costs([slate], [f[s]], [inclusion[s]], ads=range(4))
        ips += probability * found.to_numpy()[0]
        shown = LoggedSlates(np.zeros(2, int), s, f[s], inclusion[s], 1, 4)
        dr += probability * dr_costs(shown, mu[None])[0]
    np.testing.assert_allclose(ips, f)
    np.testing.assert_allclose(dr, f)
