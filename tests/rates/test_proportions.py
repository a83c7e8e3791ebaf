"""Limits of proportions, of their differences and of their ratios.

Against published figures, against scipy, against the definitions by brute force, and by the
exact coverage: a sum over all outcomes, not a simulation.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, binomtest, norm

from skbandit.rates._binding._proportions import (
    difference_interval,
    ratio_interval,
    ratio_limits,
    sum_limit,
    wilson,
)
from tests.tiers import first


def test_wilson_is_scipys():
    for n, level in itertools.product((1, 7, 300), (0.5, 0.95, 0.999)):
        for k in {0, 1, n // 2, n}:
            expected = binomtest(k, n).proportion_ci(level, method="wilson")
            tail = (1 - level) / 2
            found = wilson(np.array(k / n), np.array(n), tail)
            other = 1 - wilson(np.array(1 - k / n), np.array(n), tail)
            assert (found, other) == pytest.approx(tuple(expected), abs=1e-12)


def test_published_figures():
    """Newcombe (Statistics in Medicine 1998, 17, 873), Table II, to 4 digits."""
    assert difference_interval(56 / 70, 70, 48 / 80, 80, 0.025) == pytest.approx(
        (0.0528, 0.3382), abs=6e-5
    )
    for (p, n, q, m), ends in [
        ((56 / 70, 70, 48 / 80, 80), (0.0524, 0.3339)),
        ((10 / 10, 10, 0 / 10, 10), (0.6075, 1.0)),
    ]:
        assert newcombe(p, n, q, m) == pytest.approx(ends, abs=6e-5)


def newcombe(p, n, q, m, tail=0.025):
    """Method 10: MOVER with Wilson's limits."""
    shares, trials = np.array([p, q]), np.array([n, m])
    below = shares - wilson(shares, trials, tail)
    above = (1 - wilson(1 - shares, trials, tail)) - shares
    sign = np.array([1.0, -1.0])
    return (
        sum_limit(sign, shares, below, above, np.eye(2)),
        -sum_limit(-sign, shares, below, above, np.eye(2)),
    )


CASES = [(0.4, 30, 0.3, 50), (0.0, 20, 0.2, 25), (0.9, 11, 1.0, 40), (0.5, 12.7, 0.25, 33.3)]


def likelihood(p, n, q, m, a, b):
    def logs(share, trials, at):
        terms = ((share * trials, at), (trials - share * trials, 1 - at))
        return sum(x * np.log(max(v, 1e-300)) for x, v in terms if x > 0)

    return logs(p, n, a) + logs(q, m, b)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_limits_invert_the_score_test(case, kind):
    """The constrained estimates by brute force: at a limit the test statistic is z."""
    p, n, q, m = case
    z = norm.isf(0.05)
    found = {"difference": difference_interval, "ratio": ratio_interval}[kind](*case, 0.05)
    assert found[0] < found[1]
    for end, sign in zip(found, (1, -1), strict=True):
        if end in (-1, 1, 0, np.inf):
            continue
        if kind == "difference":
            first_of = lambda b, t=end: b + t  # noqa: E731
            box, slope = (max(0, -end), min(1, 1 - end)), 1.0
        else:
            first_of = lambda b, t=end: b * t  # noqa: E731
            box, slope = (0, min(1, 1 / end)), end
        b = minimize_scalar(
            lambda b, f=first_of: -likelihood(p, n, q, m, f(b), b),
            bounds=box, method="bounded", options={"xatol": 1e-11},
        ).x  # fmt: skip
        a = first_of(b)
        variance = (a * (1 - a) / n + slope**2 * b * (1 - b) / m) * (n + m) / (n + m - 1)
        excess = p - q - end if kind == "difference" else p - end * q
        assert excess / np.sqrt(variance) == pytest.approx(sign * z, rel=1e-4)


def test_symmetry():
    for p, n, q, m in CASES:
        low, high = difference_interval(p, n, q, m, 0.05)
        assert difference_interval(q, m, p, n, 0.05) == pytest.approx((-high, -low), abs=1e-9)
        assert difference_interval(1 - p, n, 1 - q, m, 0.05) == pytest.approx(
            (-high, -low), abs=1e-9
        )
        low, high = ratio_interval(p, n, q, m, 0.05)
        back = (1 / high if high < np.inf else 0.0, 1 / low if low > 0 else np.inf)
        assert ratio_interval(q, m, p, n, 0.05) == pytest.approx(back, rel=1e-6)


def test_nothing_and_everything():
    assert ratio_interval(0.0, 20, 0.5, 20, 0.05)[0] == 0
    assert ratio_interval(0.5, 20, 0.0, 20, 0.05)[1] == np.inf
    assert ratio_interval(0.0, 20, 0.0, 20, 0.05) == (0, np.inf)
    low, high = ratio_interval(1.0, 20, 1.0, 20, 0.05)
    assert 0.8 < low < 1 < high < 1.25
    low, high = difference_interval(0.0, 20, 0.0, 20, 0.05)
    assert -0.2 < low < 0 < high < 0.2
    assert difference_interval(1.0, 5, 0.0, 5, 0.05)[1] == 1
    low, high = difference_interval(1.0, 1, 0.0, 1, 0.025)
    assert -1 <= low < high <= 1


def exact_coverage(method, truth, n, p, m, q, tail):
    one, other = binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q)
    held = total = 0.0
    for i, j in itertools.product(np.flatnonzero(one > 1e-5), np.flatnonzero(other > 1e-5)):
        low, high = method(i / n, n, j / m, m, tail)
        held += one[i] * other[j] * (low <= truth <= high)
        total += one[i] * other[j]
    return held / total


SIZES = [(50, 50), (50, 200), (100, 100)]
SHARES = [(0.3, 0.3), (0.1, 0.2), (0.05, 0.1), (0.5, 0.7), (0.8, 0.9), (0.95, 0.95)]


@pytest.mark.parametrize(
    ("n", "m", "p", "q"),
    first(1, [(*size, *shares) for size in SIZES for shares in SHARES]),
)
@pytest.mark.parametrize(
    ("method", "truth"),
    [(difference_interval, lambda p, q: p - q), (ratio_interval, lambda p, q: p / q)],
)
def test_coverage_is_near_its_level(method, truth, n, m, p, q):
    """All outcomes, weighted with their probabilities: from .93 to .97 at .95."""
    assert 0.93 <= exact_coverage(method, truth(p, q), n, p, m, q, 0.025) <= 0.97


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "truth"),
    [(difference_interval, lambda p, q: p - q), (ratio_interval, lambda p, q: p / q)],
)
@pytest.mark.parametrize(("p", "q"), SHARES)
def test_coverage_at_a_thousand_rows(method, truth, p, q):
    """2,000 samples: a standard error of .005, so .93 - .97 has a false alarm in 30,000."""
    rng = np.random.default_rng(0)
    held = [
        low <= truth(p, q) <= high
        for x, y in zip(rng.binomial(1000, p, 2000), rng.binomial(1000, q, 2000), strict=True)
        for low, high in [method(x / 1000, 1000, y / 1000, 1000, 0.025)]
    ]
    assert 0.93 <= np.mean(held) <= 0.97


@pytest.mark.parametrize("seed", first(2, range(20)))
def test_closed_form_of_ratios_is_where_the_limit_of_a_difference_is_zero(seed):
    """Against a search for the root of N - tD - sqrt(a^2 + t^2 b^2 + 2 |t| ab r)."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        D, N = rng.uniform(0.05, 1), rng.uniform(-1, 1)
        a, b = rng.uniform(0, 1), rng.uniform(0, D)
        up, r = rng.uniform(0, 1), rng.choice([0.0, 0.5, 1.0])

        def limit(t, a=a, b=b, up=up, r=r, N=N, D=D):
            side = up if t > 0 else b
            return N - t * D - np.sqrt(a**2 + t**2 * side**2 + 2 * abs(t) * a * side * r)

        expected = brentq(limit, -1e9, N / D + 1e-9) if limit(-1e9) > 0 else -np.inf
        found = ratio_limits(*map(np.array, (N, a, D, b, up)), (a * b * r, a * up * r))
        if expected > -1e6:  # beyond, D is nearly 0 at its limit
            assert float(found) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_ratios_to_nothing_are_open():
    none = np.zeros(1)
    found = ratio_limits(np.array([0.5]), np.array([0.2]), none, none, np.ones(1), (none, none))
    assert found[0] == pytest.approx(np.sqrt(0.5**2 - 0.2**2))
    found = ratio_limits(np.array([-0.5]), np.array([0.2]), none, none, np.ones(1), (none, none))
    assert found[0] == -np.inf
