"""Confidence limits as functions of the predictions, against tests and intervals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

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


def test_nothing_counted_tells_nothing():
    lower, _ = limits_of(precision() >= 0.5, 0.1)
    upper, _ = limits_of(precision() <= 0.5, 0.1)
    assert (lower(np.zeros(N))[0], upper(np.zeros(N))[0]) == (0, 1)


def test_groups_without_rows_are_not_counted_among_the_constraints():
    data = data_of(weight=(TABLE["sex"] == "F").to_numpy(dtype=float))
    goals = bind_constraints(expand([each(recall, by="sex") >= 0.1], data_of()), data_of())
    with pytest.warns(UserWarning, match="not measured"):
        goals = bind_constraints(goals.constraints, data, allow_empty=True)
    assert goals.n_rows.tolist()[1] == 0
    (only,) = ends_of(goals, data, 0.1, SCORES > 0.3)
    alone = bind_constraints(expand([recall(F) >= 0.1], data), data)
    assert only == pytest.approx(ends_of(alone, data, 0.1, SCORES > 0.3)[0])
