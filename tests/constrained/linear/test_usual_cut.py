"""The threshold nearest to the usual one: what it may give up, and what that is good for."""

import numpy as np
import pytest
from scipy.special import ndtr

from skbandit.constrained.rules._choose import NOISE, choose, nearest_to_default
from skbandit.measure import Data, Rows
from skbandit.rates import error_rate, f1, positive_rate, recall
from tests.constrained.rules.test_choose import GOALS, Z, bound, made
from tests.tiers import first


@pytest.mark.thorough
@pytest.mark.parametrize("objective, constraints", GOALS.values(), ids=GOALS)
@pytest.mark.parametrize("usual", first(1, [0.6, -1.0, 5.0]))
def test_equals_brute_force(objective, constraints, usual):
    score, _, data = made(300, seed=1)
    goals, limits = bound(objective, constraints, data)
    score = score[goals.rows]
    choice = choose({"one": score}, goals, limits, levels=(0.8,), preferred=usual)
    assert choice.feasible
    found = nearest_to_default(choice, score, goals, limits, usual)
    best, expected = np.inf, None
    ordered = np.sort(score)
    for threshold in [
        *(ordered[1:] + ordered[:-1]) / 2,
        ordered[0] - 0.5,
        ordered[-1] + 0.5,
        usual,
    ]:
        positive = (score > threshold).astype(float)
        value = goals.objective.values(positive)[0]
        rho = float(goals.objective.values(choice.rule.decided)[0])
        costs = goals.objective.numerator[[0]].toarray().ravel()
        costs = costs - rho * goals.objective.denominator[[0]].toarray().ravel()
        below = goals.objective.fractions(choice.rule.decided)[1][0]
        error = np.sqrt((costs**2) @ (positive != choice.rule.decided)) / below
        inside = limits.at(positive, 0.0).min(initial=np.inf) >= -1e-9
        sums = (limits.rows @ positive)[:, None]
        inside &= not len(limits.offset) or limits.risk(sums, Z)[0] <= ndtr(-Z) + 1e-9
        good = value <= choice.rule.objective + NOISE * error + 1e-9
        if inside and good and abs(threshold - usual) < best:
            best, expected = abs(threshold - usual), threshold
    assert found.rule.thresholds[0] == pytest.approx(expected)
    np.testing.assert_array_equal(found.rule.decided, score > found.rule.thresholds[0])
    assert found.rule.objective == pytest.approx(goals.objective.values(found.rule.decided)[0])


def test_a_real_advantage_stays():
    score, _, data = made(2000)
    goals, limits = bound(error_rate(), recall() >= 0.5, data)
    choice = choose({"one": score}, goals, limits)
    usual = choice.rule.thresholds[0] + 1.0
    found = nearest_to_default(choice, score, goals, limits, usual)
    assert abs(found.rule.thresholds[0] - choice.rule.thresholds[0]) < 0.3
    gain = found.rule.objective - choice.rule.objective
    label = data.train.label[goals.rows]
    gains = np.abs(found.rule.decided - label) - np.abs(choice.rule.decided - label)
    assert gain <= gains.std() / np.sqrt(len(gains))


@pytest.mark.thorough
@pytest.mark.parametrize(("shift", "gain"), first(1, [(0.0, 0.004), (0.1, -0.003)]))
def test_on_few_rows_of_calibrated_scores_it_errs_less_on_new_ones(shift, gain):
    """Scores that are too high by a tenth, so that 0.6 is best, lose less than calibrated gain."""
    rng = np.random.default_rng(0)
    columns = made(100)[2].train.columns
    chosen, moved = [], []
    for _ in range(200):
        p = rng.beta(2, 2, 100)
        label = (rng.random(100) < p - shift).astype(np.int8)
        data = Data(Rows(columns, label, np.ones(100)), None, 1, [0, 1])
        goals, limits = bound(error_rate(), [], data)
        choice = choose({"one": p}, goals, limits, preferred=0.5)
        chosen.append(choice.rule.thresholds[0])
        moved.append(nearest_to_default(choice, p, goals, limits, 0.5).rule.thresholds[0])
    p = rng.beta(2, 2, 100_000)
    truth = np.maximum(p - shift, 0)
    error = [
        np.mean([np.where(p > threshold, 1 - truth, truth).mean() for threshold in thresholds])
        for thresholds in (chosen, moved)
    ]
    assert error[0] - error[1] > gain


def test_a_ratio_and_weights():
    weight = np.random.default_rng(1).uniform(0.1, 3, 300)
    score, _, data = made(300, weight=weight)
    goals, limits = bound(f1(), positive_rate() <= 0.6, data)
    choice = choose({"one": score}, goals, limits)
    found = nearest_to_default(choice, score, goals, limits, 0.0)
    assert abs(found.rule.thresholds[0]) <= abs(choice.rule.thresholds[0])
    assert limits.at(found.rule.decided, 0.0)[0] >= 0
