"""Score limits of all constraints at once: against intervals, coverage, brute force, corners."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from skbandit.measure import (
    Columns,
    Data,
    Rows,
    bind_constraints,
    expand,
    flatten_constraints,
    interval,
    intervals,
    merge_equal,
    reached_quantiles,
    score_limits,
)
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.problems import ends_of
from tests.tiers import first

N = 400
Z = norm.isf(0.1)


def made(seed=3, weight=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    label = (x + rng.normal(size=N) > 0).astype(np.int8)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], N),
            "deployed": (x + 0.3 * rng.normal(size=N) > 0).astype(int),
            "amount": rng.exponential(size=N),
        }
    )
    columns = Columns.read(table, None, N, "attributes")
    weight = np.ones(N) if weight is None else weight
    return x, Data(Rows(columns, label, weight), None, 1, [0, 1])


def bound_limits(declared, data, decided=None):
    goals = bind_constraints(expand(flatten_constraints(declared), data), data)
    return goals, score_limits(goals, data, decided)


MOVED = [
    recall("sex == 'F'") - recall(),
    recall() - 0.5 * positive_rate(),
    error_rate() + 0.3 * churn("deployed"),
    recall("sex == 'F'") / recall(),
    positive_rate("sex == 'F'", weight="amount") - positive_rate(),
]


@pytest.mark.parametrize("rate", MOVED, ids=str)
@pytest.mark.parametrize("sense", ["<=", ">="])
def test_a_bound_at_the_end_of_the_mover_interval_has_no_slack(rate, sense):
    """The test N - tD against 0 and the interval are the same method."""
    x, data = made()
    positive = (x > 0.2).astype(float)
    (declared,) = flatten_constraints(rate <= 1.0)
    low, high = interval(declared.rate, data, positive, 0.8)
    declared = rate <= high if sense == "<=" else rate >= low
    _, limits = bound_limits(declared, data, positive)
    assert limits.at(positive, Z) == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_several_rates_are_those_of_each(level):
    x, data = made(weight=np.random.default_rng(2).exponential(size=N))
    positive, rates = (x > 0.2).astype(float), [*MOVED, recall(), f1(), 1 - MOVED[3]]
    of_each = [interval(rate, data, positive, level) for rate in rates]
    merged, decided, _ = merge_equal(rates, data, positive, pd.DataFrame(index=range(N)))
    np.testing.assert_allclose(intervals(rates, merged, decided, level), of_each, rtol=1e-9)


def wilson(share, n):
    middle, half = share + Z**2 / (2 * n), Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", [recall, error_rate])
def test_rates_of_rows_that_overlap_are_correlated(sign, kind):
    """MOVER by hand, with the correlation of two means by the rows that they share."""
    x, data = made()
    positive = (x > 0.2).astype(float)
    table, label = data.train.columns.frame, data.train.label
    one = ((table["sex"] == "F") & (label == 1)).to_numpy()
    other = (table["amount"] > 0.5).to_numpy() & ((label == 1) | (kind is error_rate))
    hit = positive if kind is recall else (positive != label).astype(float)
    p, q = positive[one].mean(), hit[other].mean()
    covariance = ((positive - p) * (hit - q))[one & other].sum()
    spread = ((positive - p)[one] ** 2).sum() * ((hit - q)[other] ** 2).sum()
    r = sign * covariance / np.sqrt(spread)
    of_one = np.abs(np.subtract(wilson(p, one.sum()), p))  # to the lower and the upper limit
    of_other = np.abs(np.subtract(wilson(q, other.sum()), q))[::sign]
    distances = np.sqrt(of_one**2 + of_other**2 + 2 * r * of_one * of_other)
    rate = recall("sex == 'F'") + sign * kind("amount > 0.5")
    value = p + sign * q
    expected = value - distances[0], value + distances[1]
    assert interval(rate, data, positive, 0.8) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rate", [recall(), precision(), f1(), churn("deployed")], ids=str)
def test_a_single_rate_has_wilsons_limits(rate):
    x, data = made()
    positive = (x > 0.2).astype(float)
    value = float(bound_limits(rate <= 0.0, data)[0].values(positive)[0])
    numbers = {
        "recall()": (data.train.label == 1).sum(),
        "precision()": positive.sum(),
        "churn('deployed')": N,
    }
    goals, limits = bound_limits([rate <= 0.9, rate >= 0.1], data)
    upper, lower = goals.bound - goals.sign * limits.at(positive, Z)
    if str(rate) in numbers:  # Wilson's limits are the roots of a quadratic
        for end in (upper, lower):
            error = np.sqrt(end * (1 - end) / numbers[str(rate)])
            assert abs(value - end) == pytest.approx(Z * error, rel=1e-6)
    assert lower < value < upper


DECLARED = [
    each(recall, by="sex") >= 0.6,
    difference(false_positive_rate, by="sex") <= 0.1,
    ratio(positive_rate, by="sex") >= 0.8,
    precision() >= 0.7,
    recall("sex == 'F'") >= recall() - 0.05,
    f1() >= 0.5,
]


def test_without_a_quantile_limits_are_the_rates():
    x, data = made(weight=np.random.default_rng(0).exponential(size=N))
    positive = (x > 0.1).astype(float)
    goals, limits = bound_limits(DECLARED, data)
    assert limits.at(positive, 0.0) == pytest.approx(goals.slack(goals.values(positive)), abs=1e-9)


def test_limits_move_inwards_with_the_quantile_and_outwards_with_rows():
    x, data = made()
    positive = (x > 0.1).astype(float)
    _, limits = bound_limits(DECLARED, data)
    by_quantile = np.stack([limits.at(positive, z) for z in (0.0, 0.5, 1.0, 2.0)])
    assert (np.diff(by_quantile, axis=0) < 0).all()
    train = data.train
    four = np.tile(np.arange(N), 4)
    columns = Columns.read(train.columns.attributes.iloc[four], None, 4 * N, "attributes")
    more = Data(Rows(columns, train.label[four], train.weight[four]), None, 1, [0, 1])
    _, of_more = bound_limits(DECLARED, more)
    assert (of_more.at(positive[four], 1.0) > limits.at(positive, 1.0)).all()


def test_at_a_promised_level_rates_share_out_its_tail():
    """Distances of limits of two rates grow as if each had half of the tail."""
    x, data = made()
    _, limits = bound_limits([error_rate() <= 0.4, recall("sex == 'F'") - recall() <= 0.1], data)
    positive = (x > 0).astype(float)
    promised, at_rates = limits.at_confidence(0.9), limits.at(positive, 0.0)
    np.testing.assert_array_equal(promised.at(positive, 0.0), at_rates)
    grown = (at_rates - promised.at(positive, Z)) / (at_rates - limits.at(positive, Z))
    np.testing.assert_allclose(grown, [1.0, norm.isf(0.05) / Z])
    np.testing.assert_array_equal(limits.at_confidence(0.5).at(positive, 0.0), at_rates)


def test_risks_at_a_promised_level_add_up_undivided():
    """One at a time, constraints of two rates count twice; together, once."""
    x, data = made()
    larger = set()
    for bound in (0.02, 0.2):
        _, limits = bound_limits([difference(recall, by="sex") <= bound], data)
        sums = (limits.rows @ (x > 0).astype(float))[:, None]
        quantile = reached_quantiles(limits.slack(sums, 0.0), limits.slack(sums, Z), Z)[:, 0]
        alone = norm.sf(quantile * Z / norm.isf(0.05)).max()  # at the widened limit
        together = 1 - np.prod(norm.cdf(quantile))
        assert limits.at_confidence(0.9).risk(sums, Z)[0] == pytest.approx(max(together, alone))
        larger.add(together > alone)
    assert larger == {True, False}


def test_limits_at_all_cuts_are_those_at_each():
    x, data = made(weight=np.random.default_rng(1).exponential(size=N))
    _, limits = bound_limits(DECLARED, data)
    order = np.argsort(-x)
    running = np.cumsum(limits.rows.toarray()[:, order], axis=1)
    at_once = limits.slack(running, Z)
    for head in (1, 7, 150, N):
        positive = np.zeros(N)
        positive[order[:head]] = 1.0
        assert limits.at(positive, Z) == pytest.approx(at_once[:, head - 1], abs=1e-9)


def test_rows_left_out_count_as_predicted_negative():
    x, data = made()
    kept = np.flatnonzero(x > -0.5)
    positive = (x > 0.1).astype(float)
    _, limits = bound_limits(DECLARED, data)
    assert limits.columns(kept).at(positive[kept], Z) == pytest.approx(limits.at(positive, Z))


def test_without_trials_nothing_is_known():
    _, data = made()
    _, limits = bound_limits([precision() >= 0.2, precision() <= 0.7], data)
    assert limits.at(np.zeros(N), Z) == pytest.approx([-0.2, -0.3])


SINGLE = [
    *(recall(), recall({"sex": "F"}), false_negative_rate(), false_positive_rate()),
    *(positive_rate(), error_rate(), precision(), negative_predictive_value(), f1()),
    *(churn("deployed"), recall(weight="amount"), 0.3 - 2 * recall({"sex": "F"})),
]


@pytest.mark.parametrize("rate", SINGLE, ids=repr)
@pytest.mark.parametrize("margin", [0.02, 0.3])
def test_limits_are_the_ends_of_the_reports_intervals(rate, margin):
    """Sums over rows of a matrix, against counts at one vector of predictions."""
    x, data = made()
    goals, _ = bound_limits([rate >= -9, rate <= 200], data)
    for cut in (-1.0, 0.2, 1.5):
        positive = (x > cut).astype(float)
        ends = interval(goals.constraints[0].rate, data, positive, 1 - margin)
        assert tuple(ends_of(goals, data, margin, positive)) == pytest.approx(ends, rel=1e-9)


def test_groups_without_rows_are_not_counted_among_the_constraints():
    x, whole = made()
    women = whole.train.columns.attributes["sex"] == "F"
    data = made(weight=women.to_numpy(dtype=float))[1]
    goals, _ = bound_limits([each(recall, by="sex") >= 0.1], whole)
    with pytest.warns(UserWarning, match="not measured"):
        goals = bind_constraints(goals.constraints, data, allow_empty=True)
    assert goals.n_rows.tolist()[1] == 0
    (only,) = ends_of(goals, data, 0.1, x > 0.3)
    alone, _ = bound_limits([recall({"sex": "F"}) >= 0.1], data)
    assert only == pytest.approx(ends_of(alone, data, 0.1, x > 0.3)[0])


def slack_of_all_samples(n, m, constraints):
    """Slack of constraints at 0, 0 to n, m positives of groups of n and m rows, (K, (n+1)(m+1))."""
    group = np.repeat(["F", "M"], [n, m])
    columns = Columns.read(pd.DataFrame({"sex": group}), None, n + m, "attributes")
    data = Data(Rows(columns, np.zeros(n + m, np.int8), np.ones(n + m)), None, 1, [0, 1])
    _, limits = bound_limits(constraints, data)
    # rows sum up positives of each group: the sums depend on their numbers only
    x, y = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    counts = np.stack([x.ravel(), y.ravel()])
    per_row = limits.rows[:, [0, n]].toarray()
    return counts, lambda z: limits.slack(per_row @ counts, z)


WOMEN, MEN = positive_rate("sex == 'F'"), positive_rate("sex == 'M'")


SIZES = [(50, 50), (50, 200), (300, 300)]
SHARES = [(0.3, 0.3), (0.1, 0.2), (0.05, 0.1), (0.5, 0.7), (0.8, 0.9), (0.95, 0.95)]


@pytest.mark.parametrize(
    ("n", "m", "p", "q"), first(9, [(*size, *shares) for size in SIZES for shares in SHARES])
)
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_intervals_of_two_groups_cover_at_their_level(kind, n, m, p, q):
    """All samples, weighted with their probabilities: from .945 to .98 at .95.

    A bound is inside the interval if neither constraint with this bound holds at its limit.
    Samples whose ratio is undefined have no interval.
    """
    rate, truth = (WOMEN - MEN, p - q) if kind == "difference" else (WOMEN / MEN, p / q)
    (x, y), slack = slack_of_all_samples(n, m, [rate <= truth, rate >= truth])
    chance = binom.pmf(x, n, p) * binom.pmf(y, m, q) * ((y > 0) | (kind == "difference"))
    covered = (slack(norm.isf(0.025)) <= 0).all(axis=0)
    assert 0.945 <= chance[covered].sum() / chance.sum() <= 0.98


def drawn(seed, n_persons=None):
    """Rows whose weights, of up to 20, go with the label or the score; persons of unequal size."""
    rng = np.random.default_rng(seed)
    person = np.arange(N)
    if n_persons is not None:
        person = rng.choice(n_persons, N, p=rng.dirichlet(np.full(n_persons, 3.0)))
    x = rng.normal(size=N) + 1.5 * rng.normal(size=N)[person]
    label = (x + rng.normal(size=N) > rng.normal()).astype(np.int8)
    weight = 1.0 + rng.choice([0.0, 4.0, 19.0]) * (label if rng.random() < 0.5 else x > 0)
    rows = Rows(Columns.read({}, None, N, "attributes"), label, weight)
    dependent = None if n_persons is None else np.unique(person, return_inverse=True)[1]
    decided = x > np.quantile(x, rng.uniform(0.2, 0.8))
    return Data(rows, None, 1, [0, 1], dependent=dependent), decided, person


COUNTED = {
    positive_rate: lambda y, d: (y >= 0, d),
    recall: lambda y, d: (y == 1, d),
    precision: lambda y, d: (d, y == 1),
    false_positive_rate: lambda y, d: (y == 0, d),
    error_rate: lambda y, d: (y >= 0, y != d),
}


@pytest.mark.parametrize("n_persons", [None, 60])
def test_margins_are_those_of_a_bootstrap_of_rows_or_of_persons(n_persons):
    ratios = []
    for seed in range(20):
        data, decided, person = drawn(seed, n_persons)
        codes = np.unique(person, return_inverse=True)[1]
        n_units, rng = codes.max() + 1, np.random.default_rng(seed)
        # unequal weights count at each rule; dependent rows at the one that limits are bound to
        usual = np.zeros(N) if n_persons is None else decided.astype(float)
        times = rng.multinomial(n_units, np.full(n_units, 1 / n_units), 400)[:, codes]
        for rate, counted in COUNTED.items():
            rows, won = counted(data.train.label, decided)
            weight = data.train.weight * times
            spread = np.std((weight @ (rows & won)) / (weight @ rows.astype(float)))
            both = [rate() <= 0.5, rate() >= 0.5]
            _, limits = bound_limits(both, data, usual)
            margins = limits.at(decided, 0.0) - limits.at(decided, Z)
            ratios += [margins.mean() / (Z * spread)] if spread > 0 else []
    assert 0.97 < np.median(ratios) < 1.06
    assert np.quantile(ratios, 0.05) > 0.93
