"""Sets from regression and from logs: the regret of rounds, over every choice of the logger."""

import numpy as np
import pytest

from skbandit.selection._rounds import MASKED, RoundSettings, run_rounds
from skbandit.selection.reductions._filter_tree import FilterTree
from skbandit.selection.reductions._rule import LowestCost
from tests.tiers import first


class Predictions:
    def __init__(self, g):
        self.g = g

    def costs(self, X):
        return self.g


@pytest.mark.parametrize("seed", first(10, range(100)))
def test_masked_rounds_over_regression_are_direct_regression(seed):
    """The same sets, and so the bound of direct regression, without the square root of m."""
    rng = np.random.default_rng(seed)
    n, n_ads = 20, rng.integers(2, 8)
    m = rng.integers(1, n_ads + 1)
    f = rng.normal(size=(n, n_ads))
    g = f + rng.normal(0, rng.random(), size=f.shape)
    rule = LowestCost(Predictions(g))
    everything = np.ones(f.shape, dtype=bool)
    settings = RoundSettings(MASKED, m, m, None)
    picks = run_rounds((rule,) * m, np.zeros((n, 1)), everything, settings)
    np.testing.assert_array_equal(picks, np.argsort(g, axis=1)[:, :m])
    regret = np.take_along_axis(f, picks, axis=1).sum(axis=1) - np.sort(f)[:, :m].sum(axis=1)
    bound = np.sqrt(2 * min(m, n_ads - m) * n_ads * ((g - f) ** 2).mean())
    assert regret.mean() <= bound + 1e-12


def offset_regret(f, p, first_ad, second, answer):
    """Expected weighted error of a match's answer on offset examples, less that of the best one.

    `f` and `p` are those of a single row: the logger shows ad a with probability p_a.
    """
    midrange = 0.3  # any offset does

    def error(chosen):
        total = 0.0
        for shown in (first_ad, second):
            other = second if shown == first_ad else first_ad
            label = shown if f[shown] < midrange else other
            total += p[shown] * (abs(f[shown] - midrange) / p[shown]) * (chosen != label)
        return total

    return error(answer) - min(error(first_ad), error(second))


def matches_of(allowed, answers, order):
    """Matches played in a filter tree as (left, right, winner)."""
    field = [a if allowed[a] else None for a in order]
    answers, played = list(answers), []
    while len(field) > 1:
        above = []
        for k in range(0, len(field) - 1, 2):
            left, right, left_wins = field[k], field[k + 1], answers.pop(0)
            if left is None or right is None:
                above.append(right if left is None else left)
                continue
            above.append(left if left_wins else right)
            played.append((left, right, above[-1]))
        field = above + field[len(field) // 2 * 2 :]
    return field[0], played


@pytest.mark.parametrize("seed", first(10, range(100)))
def test_masked_rounds_of_the_filter_tree_are_offset_trees(seed):
    """m times the tree's regret, whatever the logger, the answers and the order of the leaves."""
    rng = np.random.default_rng(seed)
    n_ads = int(rng.integers(2, 8))
    m = int(rng.integers(1, n_ads + 1))
    f, p = rng.normal(size=n_ads), rng.dirichlet(np.ones(n_ads)) * 0.9 + 0.1 / n_ads
    order = rng.permutation(n_ads)
    allowed = np.ones(n_ads, dtype=bool)
    total, regrets = 0.0, []
    for _ in range(m):
        answers = rng.random(n_ads - 1) < 0.5
        tree = FilterTree((None,) * (n_ads - 1), order)
        winner, played = matches_of(allowed, answers, order)
        assert tree.choose(answers[None], allowed[None]) == [winner]
        for left, right, won in played:
            lost = right if won == left else left
            found = offset_regret(f, p, left, right, won)
            np.testing.assert_allclose(found, max(0.0, f[won] - f[lost]), atol=1e-12)
        regrets.append(sum(offset_regret(f, p, *match) for match in played))
        total += f[winner]
        allowed[winner] = False
    assert total - np.sort(f)[:m].sum() <= m * np.mean(regrets) + 1e-9
