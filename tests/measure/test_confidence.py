"""Confidence intervals: exact where they claim it, and coverage by simulation.

Coverage is simulated with fixed seeds. A test fails if it falls below the nominal level by
more than 3.3 standard errors of the simulation: were the true coverage exactly nominal, one
seed in 2,000 would raise a false alarm, and most intervals here are conservative.
"""

from itertools import cycle, product

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from skbandit.measure import Columns, Data, Rows, bind_rate, count, interval
from skbandit.measure._score_limits import clopper_pearson, wilson_score
from skbandit.rates import (
    churn,
    error_rate,
    f1,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    recall,
)
from tests.tiers import examples, first

A, B = {"g": "a"}, {"g": "b"}
theorem = examples(100)


def data_of(label, group, weight=None, deployed=None):
    frame = {"g": group, "deployed": label if deployed is None else deployed}
    weight = np.ones(len(label)) if weight is None else weight
    columns = Columns.read(frame, None, len(label))
    return Data(Rows(columns, label.astype(np.int8), weight), None, 1, [0, 1])


def two_sided(successes, trials, level):
    tail, share = (1 - level) / 2, successes / trials
    low, miss = (float(clopper_pearson(q, trials, tail)) for q in (share, 1 - share))
    return low, 1 - miss


def point(rate, data, positive):
    above, below, _ = bind_rate(rate, data)
    return (above.coef @ positive + above.constant) / (below.coef @ positive + below.constant)


RATES = {
    "positive_rate": positive_rate(),
    "recall": recall(),
    "fpr": false_positive_rate(A),
    "error": error_rate(B),
    "churn": churn("deployed"),
    "precision": precision(),
    "npv": negative_predictive_value(),
    "f1": f1(),
    "difference": positive_rate(A) - positive_rate(B),
    "equal odds gap": recall(A) - recall(B),
    "ratio": positive_rate(A) / positive_rate(B),
    "weighted sum": 2 * recall() - 0.5 * false_positive_rate() + 0.1,
    "ratio of sums": (recall() + 0.5) / (1 + error_rate()),
    "affine precision": 1 - precision(),
}


@theorem
@given(st.integers(1, 300), st.data(), st.floats(0.5, 0.999))
def test_clopper_pearson_is_scipys_exact_interval(trials, data, level):
    successes = data.draw(st.integers(0, trials))
    expected = binomtest(successes, trials).proportion_ci(level, method="exact")
    assert two_sided(successes, trials, level) == pytest.approx(tuple(expected), abs=1e-9)


def test_wilson_limits_agree_with_scipy():
    for n, level in product((1, 7, 300), (0.5, 0.95, 0.999)):
        for k in {0, 1, n // 2, n}:
            expected = binomtest(k, n).proportion_ci(level, method="wilson")
            z = norm.isf((1 - level) / 2)
            found = wilson_score(np.array(k / n), np.array(n), z)
            other = 1 - wilson_score(np.array(1 - k / n), np.array(n), z)
            assert (found, other) == pytest.approx(tuple(expected), abs=1e-12)


def draw(rng, n=60):
    label = (rng.random(n) < 0.4).astype(int)
    group = np.where(rng.random(n) < 0.5, "a", "b")
    shift = np.where(group == "a", 0.1, -0.1)
    positive = (rng.random(n) < np.where(label == 1, 0.7, 0.2) + shift).astype(float)
    deployed = np.where(rng.random(n) < 0.8, positive, 1 - positive).astype(int)
    return label, group, positive, deployed


def truth(rate):
    """The rate of the population, from half a million rows."""
    label, group, positive, deployed = draw(np.random.default_rng(99), 500_000)
    return count(rate, data_of(label, group, deployed=deployed), positive)


def coverage(rate, level, repeats, weigh=None, n=60):
    target, held = truth(rate), 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        label, group, positive, deployed = draw(rng, n)
        weight = None if weigh is None else weigh(rng, n)
        data = data_of(label, group, weight, deployed)
        low, high = interval(rate, data, positive, level)
        held += low <= target <= high
    return held / repeats


def least(level, repeats):
    return level - 3.3 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    first(1, ["recall", "precision", "f1", "difference", "ratio", "weighted sum", "ratio of sums"]),
)
def test_coverage_is_at_least_nominal(name):
    assert coverage(RATES[name], 0.9, 250) >= least(0.9, 250)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["precision", "difference"])
def test_coverage_with_unequal_weights(name):
    """An approximation: weights from .2 to 2, drawn apart from the answers."""
    found = coverage(RATES[name], 0.9, 250, lambda rng, n: rng.uniform(0.2, 2, n), n=100)
    assert found >= least(0.9, 250)


@pytest.mark.thorough
def test_coverage_of_a_single_rate_is_not_wastefully_high():
    assert coverage(positive_rate(), 0.8, 400, n=200) <= 0.9


@pytest.mark.parametrize("name", RATES)
def test_holds_the_point_estimate_and_grows_with_the_level(name):
    rate = RATES[name]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        label, group, positive, deployed = draw(rng)
        data = data_of(label, group, rng.uniform(0.1, 3, 60), deployed)
        estimate = point(rate, data, positive)
        last = None
        for level in (0.05, 0.5, 0.9, 0.99):
            low, high = interval(rate, data, positive, level)
            assert low <= estimate <= high
            assert last is None or (low <= last[0] and high >= last[1])
            last = low, high
        assert last[1] - last[0] > 0


@theorem
@given(st.integers(0, 10**6), st.floats(0.1, 100))
def test_scaling_weights_and_adding_weightless_rows_change_nothing(seed, factor):
    rng = np.random.default_rng(seed)
    label, group, positive, deployed = draw(rng)
    weight = rng.uniform(0.5, 2, 60)
    rate = list(RATES.values())[seed % len(RATES)]
    given_ = interval(rate, data_of(label, group, weight, deployed), positive, 0.9)
    scaled = interval(rate, data_of(label, group, factor * weight, deployed), positive, 0.9)
    assert scaled == pytest.approx(given_)
    more = np.append(np.arange(60), [0, 1, 2])
    padded = data_of(label[more], group[more], np.append(weight, np.zeros(3)), deployed[more])
    assert interval(rate, padded, positive[more], 0.9) == pytest.approx(given_)


def test_equal_weights_are_counts_and_weight_is_not_evidence():
    """Weight 2 on every row says nothing new; two rows of each do."""
    label, group, positive, _ = draw(np.random.default_rng(0))
    once = interval(recall(), data_of(label, group), positive, 0.9)
    hits, trials = int(positive[label == 1].sum()), int(label.sum())
    assert once == pytest.approx(two_sided(hits, trials, 0.9))
    double = data_of(label, group, np.full(60, 2.0))
    assert interval(recall(), double, positive, 0.9) == pytest.approx(once)
    twice = np.tile(np.arange(60), 2)
    low, high = interval(recall(), data_of(label[twice], group[twice]), positive[twice], 0.9)
    assert once[0] < low < high < once[1]


def test_single_rates_by_hand():
    label = np.array([1, 1, 1, 0, 0, 0])
    positive = np.array([1, 1, 0, 1, 0, 0], dtype=float)
    data = data_of(label, np.array(list("aaabbb")))
    for rate, hits, trials in [
        (recall(), 2, 3),
        (precision(), 2, 3),
        (false_positive_rate(), 1, 3),
        (error_rate(), 2, 6),
        (negative_predictive_value(), 2, 3),
    ]:
        expected = two_sided(hits, trials, 0.9)
        assert interval(rate, data, positive, 0.9) == pytest.approx(expected)
    q = np.array(two_sided(2, 4, 0.9))  # F1: 2 hits, 1 false alarm, 1 miss
    assert interval(f1(), data, positive, 0.9) == pytest.approx(tuple(2 * q / (1 + q)))


def shares(positive, group):
    """Share, lower and upper Wilson limit at 90% in either group."""
    counts = [(positive[group == one].mean(), (group == one).sum()) for one in "ab"]
    z = norm.isf(0.05)
    return [
        (p, float(wilson_score(p, n, z)), 1 - float(wilson_score(1 - p, n, z))) for p, n in counts
    ]


def newcombe(first, second):
    """Method 10 of Newcombe (Statistics in Medicine 1998) for p - q."""
    (p, p_low, p_high), (q, q_low, q_high) = first, second
    return p - q - np.hypot(p - p_low, q_high - q), p - q + np.hypot(p_high - p, q - q_low)


def donner_zou(first, second):
    """The closed form of Donner and Zou (Stat. Methods in Medical Research 2012) for p / q."""
    (p, p_low, p_high), (q, q_low, q_high) = first, second
    ends = []
    for own, other, sign in ((p_low, q_high, -1), (p_high, q_low, 1)):
        a, b = own * (2 * p - own), other * (2 * q - other)
        ends.append((p * q + sign * np.sqrt((p * q) ** 2 - a * b)) / b)
    return tuple(ends)


def test_two_rates_on_different_rows_have_movers_intervals():
    """Whatever the scale, the shift and the order."""
    label, group, positive, _ = draw(np.random.default_rng(1))
    data, (of_a, of_b) = data_of(label, group), shares(positive, group)
    a, b = positive_rate(A), positive_rate(B)
    low, high = newcombe(of_a, of_b)
    assert interval(a - b, data, positive, 0.9) == pytest.approx((low, high))
    assert interval(b - a, data, positive, 0.9) == pytest.approx((-high, -low))
    assert interval(3 - 2 * a + 2 * b, data, positive, 0.9) == pytest.approx(
        (3 - 2 * high, 3 - 2 * low)
    )
    low, high = donner_zou(of_a, of_b)
    assert interval(a / b, data, positive, 0.9) == pytest.approx((low, high))
    assert interval(b / a, data, positive, 0.9) == pytest.approx((1 / high, 1 / low))
    assert interval(2 * (a / b) - 1, data, positive, 0.9) == pytest.approx(
        (2 * low - 1, 2 * high - 1)
    )
    assert interval(1 - 4 * (a / (2 * b)), data, positive, 0.9) == pytest.approx(
        (1 - 2 * high, 1 - 2 * low)
    )


@pytest.mark.parametrize(
    ("counts", "ends"),
    [((56, 70, 48, 80), (0.0524, 0.3339)), ((10, 10, 0, 10), (0.6075, 1.0))],
)
def test_published_figures(counts, ends):
    """Newcombe (Statistics in Medicine 1998, 17, 873), Table II, to 4 digits."""
    x, n, y, m = counts
    group = np.repeat(["a", "b"], [n, m])
    positive = np.concatenate([np.arange(n) < x, np.arange(m) < y]).astype(float)
    data = data_of(np.zeros(n + m, dtype=int), group)
    found = interval(positive_rate(A) - positive_rate(B), data, positive, 0.95)
    assert found == pytest.approx(ends, abs=6e-5)


def test_a_rate_against_itself_is_certain():
    label, group, positive, _ = draw(np.random.default_rng(1))
    data = data_of(label, group)
    assert interval(recall() - recall(), data, positive, 0.9) == (0, 0)
    assert interval(recall() / recall(), data, positive, 0.9) == pytest.approx((1, 1))
    twice = interval(recall() + recall(), data, positive, 0.9)
    once = np.array(interval(recall(), data, positive, 0.9))
    assert twice == pytest.approx(tuple(2 * once))


COMBINED = {
    "group and whole": positive_rate(A) - positive_rate(),
    "ratio to the whole": positive_rate(A) / positive_rate(),
    "four fifths": positive_rate(A) - 0.8 * positive_rate(B),
    "youden": recall() - false_positive_rate(),
    "sum on the same rows": error_rate() + positive_rate(),
    "gap of precision": precision(A) - precision(B),
    "ratio of precision": precision(A) / precision(B),
    "gap of f1": f1(A) - f1(B),
    "precision and recall": precision() - recall(),
    "ratio of sums": (recall() + 0.5) / (1 + error_rate()),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "n"), [*zip(COMBINED, cycle([100, 400, 2000]), strict=False)])
def test_combined_rates_are_covered_at_their_level_and_no_more(name, n):
    """n rows, about half of them in a group: from .93 to .97 at .95, give or take the noise.

    3.3 standard errors of 400 samples: one test in 1,000 would raise a false alarm at a coverage
    of exactly .93 or .97.
    """
    found = coverage(COMBINED[name], 0.95, 400, n=n)
    assert 0.93 - 3.3 * np.sqrt(0.93 * 0.07 / 400) <= found
    assert found <= 0.97 + 3.3 * np.sqrt(0.97 * 0.03 / 400)


def test_divisors_that_may_be_zero_leave_the_end_open():
    label = np.array([1, 1, 0, 0])
    positive = np.array([1.0, 1.0, 1.0, 0.0])
    data = data_of(label, np.array(list("aabb")))
    low, high = interval(positive_rate(A) / positive_rate(B), data, positive, 0.999999)
    assert 0 < low < high < np.inf, "Wilson's limit of a share above 0 is above 0"
    none = data_of(label, np.array(list("aaab")))
    assert interval(positive_rate(A) / positive_rate(B), none, positive, 0.9)[1] == np.inf


@pytest.mark.thorough
@pytest.mark.parametrize("n_few", first(1, [1, 2, 5]))
def test_a_difference_with_a_group_of_few_rows_is_not_decided_by_them(n_few):
    """The probability, summed over all tables, that the interval ends below the true difference.

    Wilson's limits of the few rows alone exceed the nominal .025 four times.
    """
    many, p_many, p_few = 100, 0.9, 0.95
    table = Columns.read({"g": np.repeat(["A", "B"], [many, n_few])}, None, many + n_few)
    data = Data(Rows(table, np.ones(many + n_few, dtype=np.int8), np.ones(many + n_few)))
    rate = recall("g == 'B'") - recall("g == 'A'")
    missed = 0.0
    for a in range(many + 1):
        for b in range(n_few + 1):
            probability = binom.pmf(a, many, p_many) * binom.pmf(b, n_few, p_few)
            positive = np.r_[np.arange(many) < a, np.arange(n_few) < b].astype(float)
            if probability > 1e-8 and interval(rate, data, positive, 0.95)[1] < p_few - p_many:
                missed += probability
    assert missed <= 0.025
