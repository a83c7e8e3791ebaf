"""The floor of a geometric mean: what its tangents imply, by theorem, on a grid of all rates."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import error_rate, g_mean_at_least, recall, true_negative_rate
from skbandit.rates._catalog import tangents
from tests.worlds import refuses

RATES = np.linspace(0, 1, 401)


@pytest.mark.parametrize("tolerance", [0.05, 0.002])
@pytest.mark.parametrize("bound", [0.05, 0.5, 0.8, 0.9, 0.99, 0.9999])
def test_tangents_imply_the_floor_and_little_more(bound, tolerance):
    t, floor = tangents(bound, tolerance)
    assert bound <= floor <= min(1.0, bound * (1 + tolerance) + 1e-12)
    a, b = np.meshgrid(RATES, RATES)
    mean = np.sqrt(a * b)
    allowed = np.all([(a / x + x * b) / 2 >= floor for x in t], axis=0)
    assert (mean[allowed] >= bound - 1e-12).all()
    assert allowed[mean >= floor + 1e-12].all()
    assert allowed[-1, -1]  # the perfect rule


def test_fewer_tangents_would_not_do():
    t, _ = tangents(0.8, 0.002)
    assert len(t) == 4
    assert np.cosh(np.log(1 / 0.8) / 3) > 1.002


def test_selection_and_weights_reach_both_rates():
    y, p = np.array([1, 1, 0, 0, 1, 0]), np.array([1, 0, 0, 0, 0, 1])
    columns = {"some": [1, 1, 1, 1, 0, 0], "money": [3.0, 1.0, 1.0, 1.0, 9.0, 9.0]}
    columns["some"] = np.array(columns["some"], dtype=bool)
    (goal, *_) = g_mean_at_least(0.9, "some", weight="money")
    t, floor = tangents(0.9, 0.002)
    assert goal.bound == pytest.approx(floor)
    assert goal.rate.value(y, p, columns) == pytest.approx((0.75 / t[0] + t[0] * 1.0) / 2)
    assert goal.label == "G-mean >= 0.9 [1 of 2]"


@pytest.fixture(scope="module")
def rare():
    """One row in ten is positive: fewest errors are made by missing most of them."""
    return make_classification(
        6000, n_features=8, n_informative=5, weights=[0.9], class_sep=1.0, random_state=1
    )


def g_mean(y, p):
    return np.sqrt(recall().value(y, p) * true_negative_rate().value(y, p))


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            ConstrainedRampClassifier(error_rate(), g_mean_at_least(0.75)),
            marks=pytest.mark.thorough,
        ),
        ConstrainedThreshold(LogisticRegression(), error_rate(), g_mean_at_least(0.75)),
    ],
    ids=["ramp", "threshold"],
)
def test_the_floor_is_met_on_new_rows(rare, model):
    X, y = rare
    free = LogisticRegression().fit(X[:3000], y[:3000]).predict(X[3000:])
    assert g_mean(y[3000:], free) < 0.7
    model.fit(X[:3000], y[:3000])
    assert model.feasible_
    assert 0.73 < g_mean(y[3000:], model.predict(X[3000:])) < 0.83
    assert len(model.constraint_report_) == len(g_mean_at_least(0.75)) == 5


@pytest.mark.parametrize("wrong", [0, 1, 1.5, -0.1, "0.9", True, float("nan")])
def test_floors_outside_of_0_and_1_are_refused(wrong):
    refuses(r"bound=.* must be a number between 0 and 1", g_mean_at_least, wrong)
    refuses("tolerance=", g_mean_at_least, 0.9, tolerance=wrong)
