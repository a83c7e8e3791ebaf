"""Confidence limits as functions of the predictions, against tests and intervals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from skbandit.measure import bind_constraints, expand, flatten_constraints, interval
from skbandit.rates import (
    churn,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    recall,
)
from tests.problems import ends_of
from tests.rates.tables import make_data

RNG = np.random.default_rng(11)
N = 300
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.6 * RNG.normal(size=N) > 0.2).astype(int)
TABLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], N),
        "deployed": (X[:, 0] > 0).astype(int),
        "amount": RNG.exponential(size=N),
    }
)
SCORES = X[:, 0] + 0.3 * X[:, 1]
F = {"sex": "F"}

RATES = [
    recall(),
    recall(F),
    false_negative_rate(),
    false_positive_rate(),
    positive_rate(),
    error_rate(),
    precision(),
    negative_predictive_value(),
    f1(),
    churn("deployed"),
    recall(weight="amount"),
    0.3 - 2 * recall(F),
]


def data_of(y=Y, table=TABLE, weight=None):
    return make_data(y, weight, **table)


def bound(constraints, data):
    return bind_constraints(expand(flatten_constraints(constraints), data), data)


def limits_of(constraints, margin, data=None):
    """A function from predictions to the limit of each constraint, and the constraints."""
    data = data_of() if data is None else data
    goals = bound(constraints, data)
    return partial(ends_of, goals, data, margin), goals


@pytest.mark.parametrize("rate", RATES, ids=repr)
@pytest.mark.parametrize("margin", [0.02, 0.3])
def test_limits_are_the_ends_of_the_reports_intervals(rate, margin):
    """Sums over rows of a matrix, against counts at one vector of predictions."""
    limits, goals = limits_of([rate >= -9, rate <= 200], margin)
    for cut in (-1.0, 0.2, 1.5):
        answers = (SCORES > cut).astype(float)
        ends = interval(goals.constraints[0].rate, data_of(), answers, 1 - margin)
        assert tuple(limits(answers)) == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_limits_invert_the_binomial_test(n):
    """At the limit, this many successes or more have probability `margin`."""
    data = make_data(np.ones(n))
    lower, _ = limits_of(recall() >= 0.5, 0.03, data)
    upper, _ = limits_of(recall() <= 0.5, 0.03, data)
    for hits in range(n + 1):
        answers = (np.arange(n) < hits).astype(float)
        if hits:
            assert binom.sf(hits - 1, n, lower(answers)[0]) == pytest.approx(0.03)
        else:
            assert lower(answers)[0] == pytest.approx(0.0, abs=1e-15)
        if hits < n:
            assert binom.cdf(hits, n, upper(answers)[0]) == pytest.approx(0.03)
        else:
            assert upper(answers)[0] == pytest.approx(1.0)


def test_nothing_counted_tells_nothing():
    lower, _ = limits_of(precision() >= 0.5, 0.1)
    upper, _ = limits_of(precision() <= 0.5, 0.1)
    assert (lower(np.zeros(N))[0], upper(np.zeros(N))[0]) == (0, 1)


@pytest.mark.parametrize("rate", RATES, ids=repr)
def test_limits_move_outwards_with_certainty_and_with_the_number_of_constraints(rate):
    answers = (SCORES > 0.3).astype(float)
    at = [limits_of(rate >= -9, margin)[0](answers)[0] for margin in (0.01, 0.1, 0.4)]
    assert at[0] < at[1] < at[2] < bound(rate >= -9, data_of()).values(answers)[0]
    one_of_two = limits_of([rate >= -9, recall() >= 0], 0.02)[0](answers)[0]
    assert one_of_two == pytest.approx(at[0])


def test_groups_without_rows_are_not_counted_among_the_constraints():
    data = data_of(weight=(TABLE["sex"] == "F").to_numpy(dtype=float))
    goals = bind_constraints(expand([each(recall, by="sex") >= 0.1], data_of()), data_of())
    with pytest.warns(UserWarning, match="not measured"):
        goals = bind_constraints(goals.constraints, data, allow_empty=True)
    assert goals.n_rows.tolist()[1] == 0
    (only,) = ends_of(goals, data, 0.1, SCORES > 0.3)
    alone = bind_constraints(expand([recall(F) >= 0.1], data), data)
    assert only == pytest.approx(ends_of(alone, data, 0.1, SCORES > 0.3)[0])
