"""Levels in groups of few rows: no goal that the population misses passes too often.

Coverage is computed, not drawn: all numbers of successes are enumerated, with their binomial
probabilities, so that there are no false alarms.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from skbandit.constrained._goals import Declared
from skbandit.measure import Columns, Data, Rows, score_limits
from skbandit.rates import error_rate, recall
from tests.tiers import first

SMALL, LARGE = {"group": "small"}, {"group": "large"}
RATES = np.linspace(0.02, 0.98, 49)


def limits_of(constraint, sizes):
    """Limits over positives of two groups."""
    group = np.repeat(["small", "large"], sizes)
    columns = Columns.read(pd.DataFrame({"group": group}), None, len(group), "attributes")
    rows = Rows(columns, np.ones(len(group), dtype=np.int8), np.ones(len(group)))
    goals = Declared.read(error_rate(), constraint).bind(Data(rows, None, 1, [0, 1]))
    return score_limits(goals.constraints, goals.data)


def passes(limits, sizes, z):
    """Whether limits are inside, by numbers of successes in both groups."""
    small, large = np.meshgrid(*(np.arange(n + 1) for n in sizes), indexing="ij")
    row = np.concatenate([np.arange(n) for n in sizes])
    successes = np.where(np.arange(len(row))[:, None] < sizes[0], small.ravel(), large.ravel())
    positive = (row[:, None] < successes).astype(float)
    inside = limits.slack(limits.rows @ positive, z).min(axis=0) >= 0
    return inside.reshape(small.shape)


@pytest.mark.parametrize("n", first(2, range(2, 10)))
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_a_rate_of_few_rows_at_its_bound_passes_no_more_often_than_the_level_allows(n, level):
    z, exact, score = norm.ppf(level), [], []
    for rate in RATES:
        limits = limits_of(recall(SMALL) >= rate, (n, 1))
        for one, found in ((limits, score), (limits.at_confidence(level), exact)):
            inside = passes(one, (n, 1), z)[:, 0]
            found.append(binom.pmf(np.arange(n + 1), n, rate) @ inside)
    assert max(exact) <= 1 - level + 1e-9
    assert max(score) > 1 - level + 0.08, "Wilson's limits let more pass"


@pytest.mark.parametrize("n", first(1, [3, 2, 5, 9]))
@pytest.mark.parametrize("gap", first(1, [0.1, 0.0, 0.3]))
def test_a_difference_from_a_large_group_passes_no_more_often_than_the_level_allows(n, gap):
    sizes, level, worst = (n, 60), 0.9, {}
    limits = limits_of(recall(SMALL) - recall(LARGE) <= gap, sizes)
    for name, one in (("score", limits), ("exact", limits.at_confidence(level))):
        inside = passes(one, sizes, norm.ppf(level))
        chances = [
            binom.pmf(np.arange(n + 1), n, rate + gap) @ inside @ binom.pmf(np.arange(61), 60, rate)
            for rate in np.linspace(0.05, 0.95 - gap, 20)
        ]
        worst[name] = max(chances)
    assert worst["exact"] <= 1 - level + 0.01
    assert worst["score"] > worst["exact"]


def test_many_rows_have_score_limits():
    limits = limits_of(recall(SMALL) >= 0.5, (10, 1))
    positive = np.append(np.arange(10) < 8, 0.0)
    assert limits.at(positive, 1.0) == limits.at_confidence(0.8).at(positive, 1.0)
