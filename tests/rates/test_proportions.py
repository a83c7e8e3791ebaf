"""Limits of proportions against scipy."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from skbandit.measure._confidence import wilson_score


def test_wilson_limits_agree_with_scipy():
    for n, level in itertools.product((1, 7, 300), (0.5, 0.95, 0.999)):
        for k in {0, 1, n // 2, n}:
            expected = binomtest(k, n).proportion_ci(level, method="wilson")
            z = norm.isf((1 - level) / 2)
            found = wilson_score(np.array(k / n), np.array(n), z)
            other = 1 - wilson_score(np.array(1 - k / n), np.array(n), z)
            assert (found, other) == pytest.approx(tuple(expected), abs=1e-12)
