"""Neyman-Pearson classification is the problem of Gasso et al. (2011), as Goh et al. (2016) say.

Theirs, "Batch and online learning algorithms for nonconvex Neyman-Pearson classification", is to
minimize the mean bounded loss over the positives, with a bound on that over the negatives. With the
ramp for the bounded loss, our Problem 2 has the same objective and the same constraint everywhere.
"""

import numpy as np
import pytest

from skbandit.constrained.paper._problem import Point
from skbandit.rates import false_negative_rate, false_positive_rate
from tests import problems
from tests.tiers import first

ALPHA, CAP = 0.05, 0.1


@pytest.mark.parametrize("seed", first(1, range(20)))
def test_both_problems_are_one(seed):
    X, y, _ = problems.sample(seed, 60, 3)
    goals = (false_negative_rate(), [false_positive_rate() <= CAP])
    problem = problems.compiled(X, y, None, *goals, alpha=ALPHA)
    rng = np.random.default_rng(seed)
    scales = []
    for _ in range(10):
        w, b = rng.normal(size=3), rng.normal()
        found = problem.evaluate(Point(w, b))
        f = X @ w + b
        missed = np.clip(0.5 - f[y == 1], 0, 1).mean()
        alarms = np.clip(0.5 + f[y == 0], 0, 1).mean()
        assert found.objective == pytest.approx(missed + ALPHA / 2 * w @ w)
        scales.append(found.violations[0] / (alarms - CAP))
    assert scales[0] > 0  # constraints are compared in units of their own
    np.testing.assert_allclose(scales, scales[0])
