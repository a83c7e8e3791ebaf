"""Random numbers by address: their distribution, independent of the address."""

import numpy as np
from scipy import stats

from skbandit.bandit.exploration._random import COIN, EXPLORE, standard_normal, uniform

# Each test below fails falsely, with another seed, at most once in 100,000.
LEVEL = 1e-5


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
