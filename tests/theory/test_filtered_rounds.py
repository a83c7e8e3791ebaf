"""What published rounds cost in duplicates, and what twice as many are good for, exactly.

Mineiro (2010) replaces duplicates at random, and for ads that come and go suggests 2m classifiers
whose answers are filtered. The post has no figures for either; these follow from its definitions.
"""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED,
    RoundSettings,
    replace_duplicates,
    run_rounds,
)
from tests.theory.test_set_rounds import Arbitrary
from tests.tiers import first


@pytest.mark.parametrize("seed", first(20, range(100)))
def test_duplicates_are_paid_for_in_regret(seed):
    """In round k, a duplicate has regret b - f_(1) of the ads not chosen, at least b - f_(k).

    So (b - f_(m)) times the number of duplicates is at most the sum of the rounds' regrets, m q.
    """
    rng = np.random.default_rng(seed)
    n, n_ads = 20, int(rng.integers(3, 9))
    m = int(rng.integers(2, n_ads))
    f = rng.normal(size=(n, n_ads))
    noise = rng.choice([0.1, 1.0, 10.0])
    rules = [Arbitrary(f + noise * rng.normal(size=f.shape)) for _ in range(m)]
    everything = np.ones(f.shape, dtype=bool)
    published = RoundSettings(PUBLISHED, len(rules), len(rules), None)
    picks = run_rounds(rules, np.zeros((n, 1)), everything, published)
    shifted, rows = f - f.max(axis=1, keepdims=True), np.arange(n)
    chosen, regret, duplicates = np.zeros(f.shape, dtype=bool), np.zeros(n), np.zeros(n, dtype=int)
    for pick in picks.T:
        c = np.where(chosen, 0.0, shifted)
        regret += c[rows, pick] - c.min(axis=1)
        duplicates += chosen[rows, pick]
        chosen[rows, pick] = True
    dearest = -np.sort(shifted, axis=1)[:, m - 1]
    assert (duplicates * dearest <= regret + 1e-9).all()
    assert duplicates.sum() > 0 or noise < 10


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("gone", [0.2, 0.5])
def test_twice_the_rounds_survive_a_filter(m, rounds, gone):
    """Each ad is gone with the same probability, independently; classifiers are perfect.

    Of r = m or 2m answers m are left with probability P(Bin(r, 1 - gone) >= m), summed here over
    all sets of ads that are there. Those left are the best available ones; with fewer than m, the
    post fills up at random, and no set is then sure to be best.
    """
    n_ads = 7
    f = np.arange(float(n_ads))[None]
    rules = [Arbitrary(f)] * (rounds * m)
    answers = run_rounds(
        rules, np.zeros((1, 1)), np.ones((1, n_ads), bool), RoundSettings(MASKED, 1, 1, None)
    )[0]
    np.testing.assert_array_equal(answers, np.arange(rounds * m))
    survived = 0.0
    for there in product([False, True], repeat=n_ads):
        available = np.array(there)
        chance = np.prod(np.where(available, 1 - gone, gone))
        left = answers[available[answers]]
        if len(left) < m:
            continue
        survived += chance
        best = np.flatnonzero(available)[:m]
        picks = left[None, :m]
        found = replace_duplicates(picks, available[None], m, np.arange(n_ads))
        np.testing.assert_array_equal(found[0], best)
    assert survived == pytest.approx(binom.sf(m - 1, rounds * m, 1 - gone))
    if rounds == 2 and gone == 0.5:
        assert survived > 0.5  # at a half gone, m of 2m are left more often than not
