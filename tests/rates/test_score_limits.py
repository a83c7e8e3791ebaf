"""Score limits of all constraints at once: against intervals, coverage, brute force, corners."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from skbandit.rates._binding import (
    Columns,
    Data,
    Rows,
    bind_constraints,
    expand,
    flatten_constraints,
    interval,
    score_limits,
)

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


def bound_limits(declared, data):
    goals = bind_constraints(expand(flatten_constraints(declared), data), data)
    return goals, score_limits(goals, data)


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
    _, limits = bound_limits(declared, data)
    assert limits.at(positive, Z) == pytest.approx([0.0], abs=1e-9)


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


def test_common_factors_of_weights_do_not_matter():
    weight = np.random.default_rng(1).exponential(size=N)
    x, data = made(weight=weight)
    _, scaled = made(weight=7.0 * weight)
    positive = (x > 0.1).astype(float)
    one, other = (bound_limits(DECLARED, d)[1].at(positive, Z) for d in (data, scaled))
    assert one == pytest.approx(other, abs=1e-12)


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


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize(("p", "q"), [(0.7, 0.6), (0.9, 0.8)])
def test_limits_of_a_difference_err_at_about_their_level(n, p, q):
    """Exact probabilities, by summing over all samples of two groups of n rows."""
    x, y = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    chance = binom.pmf(x, n, p) * binom.pmf(y, n, q)
    group = np.repeat(["F", "M"], n)
    columns = Columns.read(pd.DataFrame({"sex": group}), None, 2 * n, "attributes")
    data = Data(Rows(columns, np.zeros(2 * n, np.int8), np.ones(2 * n)), None, 1, [0, 1])
    rate = positive_rate("sex == 'F'") - positive_rate("sex == 'M'")
    _, limits = bound_limits(rate <= p - q, data)
    # rows sum up positives of each group: the sums depend on their numbers only
    positive = (np.arange(n)[None, :] < np.arange(n + 1)[:, None]).astype(float)
    first = np.hstack([positive, np.zeros((n + 1, n))]) @ limits.rows.T.toarray()
    second = np.hstack([np.zeros((n + 1, n)), positive]) @ limits.rows.T.toarray()
    sums = (first[:, None, :] + second[None, :, :]).reshape(-1, first.shape[1]).T
    passes = limits.slack(sums, Z)[0] >= 0
    assert 0.06 <= float(chance.ravel()[passes].sum()) <= 0.12  # nominally 0.1
