"""confidence_level=: confidence limits inside the bounds, exactly; what users see of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.constrained._report import report_table, with_margins
from skbandit.constrained.linear import _ramp_cv
from skbandit.constrained.linear._cross_fit import choose_mixture
from skbandit.constrained.rules._advice import missed
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.measure import (
    RATE_TOL,
    Columns,
    Data,
    Rows,
    bind_constraints,
    expand,
    flatten_constraints,
)
from skbandit.rates import (
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.problems import exact_limits
from tests.worlds import warns

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


def data_of(y=Y, table=TABLE, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    rows = Rows(Columns.read(table, None, len(y)), y.astype(np.int8), weight)
    return Data(rows, None, 1, [0, 1])


def bound(constraints, data):
    return bind_constraints(expand(flatten_constraints(constraints), data), data)


# --- what users see ------------------------------------------------------------------------

IGNORED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def estimator():
    return ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.85)


@pytest.mark.thorough
@IGNORED
def test_report_tells_the_margin(estimator):
    plain = clone(estimator).fit(X, Y).constraint_report_
    assert "margin" not in plain
    report = estimator.set_params(confidence_level=0.9).fit(X, Y).constraint_report_
    columns = plain.columns.tolist()
    columns.insert(columns.index("slack") + 1, "margin")
    assert report.columns.tolist() == columns
    row = report.iloc[0]
    assert row["bound"] == 0.85 and row["satisfied"] and estimator.feasible_
    assert row["slack"] == pytest.approx(row["cross_fitted"] - 0.85)
    # by hand: Wilson's limit is the root of a quadratic; wider, as a direction was chosen, too
    distance = row["margin"] * norm.isf(0.1) / norm.isf(0.1 / 2)
    limit = row["cross_fitted"] - distance
    assert distance == pytest.approx(norm.isf(0.1) * np.sqrt(limit * (1 - limit) / Y.sum()))
    assert row["slack"] >= row["margin"] - RATE_TOL
    assert "margin" not in estimator.constraint_report(X, Y)


@IGNORED
def test_a_final_rule_that_misses_is_said_to(monkeypatch):
    """A model that says yes to all, whatever its stand-ins do."""

    def yes_to_all(*args):
        fitted = choose_mixture(*args)
        return replace(fitted, point=replace(fitted.point, intercept=1e3))

    monkeypatch.setattr(_ramp_cv, "choose_mixture", yes_to_all)
    clf = ConstrainedRampClassifier(
        constraints=[positive_rate() <= 0.6, recall() >= 0.5], confidence_level=0.9
    )
    told = r"feasible_ is False: .* violates some: positive_rate\(\) <= 0.6 is 1"
    warns(told, clf.fit, X, Y)
    assert not clf.feasible_ and clf.predict(X).all()
    report = clf.constraint_report_
    assert report["value"].tolist() == [1, 1] and report["satisfied"].tolist() == [True, True]
    assert (report["slack"] >= report["margin"]).all()
    held_out = report["bound"] + np.array([-1, 1]) * report["slack"]
    np.testing.assert_allclose(report["cross_fitted"], held_out)


def test_a_missed_margin_is_told_with_the_bound_that_it_makes():
    data = data_of()
    goals = bound([recall() >= 0.85, positive_rate() <= 0.5], data)
    limits = exact_limits(goals, data, 0.1)
    positive = (SCORES > np.quantile(SCORES, 0.52)).astype(float)
    margins = limits.margins(positive)
    table = with_margins(report_table(goals, data, positive), goals.n_rows > 0, margins)
    told = missed(table, goals).split("; ")
    needed = table["bound"] + np.array([1, -1]) * table["margin"]
    assert needed[0] > 0.85 and needed[1] < 0.5
    for text, value in zip(told, needed, strict=True):
        assert text.endswith(f"becomes {value:.4g}")


@pytest.mark.thorough
@IGNORED
@pytest.mark.parametrize("level", [None, 0.9])
def test_too_few_rows_for_the_bound(estimator, level):
    """All 16 positives found leave 1 - 1.28 * 1.28**2 / (16 + 1.28**2) = .881 for certain."""
    rows = np.sort(np.append(np.flatnonzero(Y == 1)[:16], np.flatnonzero(Y == 0)))
    estimator.set_params(constraints=recall() >= 0.9, confidence_level=level)
    if level is None:
        assert estimator.fit(X[rows], Y[rows]).feasible_
        return
    told = (
        r"recall\(\) >= 0.9: is .*, missed by .*16 rows .* (no value inside the bound 0.9|becomes)"
    )
    with pytest.raises(InfeasibleConstraintsError, match=told) as caught:
        estimator.fit(X[rows], Y[rows])
    row = caught.value.closest_.constraint_report_.iloc[0]
    assert not row["satisfied"] and row["slack"] < row["margin"]
    assert estimator.set_params(constraints=recall() >= 0.7).fit(X[rows], Y[rows]).feasible_


@pytest.mark.parametrize(
    "estimator",
    [
        ConstrainedThreshold(LogisticRegression(), cv=3),
        pytest.param(
            ConstrainedReduction(LogisticRegression(), max_iter=3, cv=3), marks=pytest.mark.thorough
        ),
        pytest.param(ConstrainedRampClassifier(cv=3), marks=pytest.mark.thorough),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("dependent", [False, True], ids=["weights", "persons"])
@pytest.mark.parametrize(
    ("objective", "goal"),
    [
        (false_negative_rate(), positive_rate() <= 0.3),
        (false_negative_rate(), false_positive_rate() <= 0.3),
        (false_positive_rate(), recall() >= 0.7),
        (false_negative_rate(), precision() >= 0.12),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Fewer than 20 rows:UserWarning")
def test_a_margin_is_no_smaller_than_the_interval_of_the_report_implies(
    estimator, dependent, objective, goal
):
    """Where the chosen rule is far from the usual one, and weights go with the label."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), 10)
    x = rng.normal(size=(600, 2)) + rng.normal(size=(60, 1))[person]
    y = (rng.random(600) < 1 / (1 + np.exp(2.5 - x[:, 0]))).astype(int)
    parts = {"groups": person} if dependent else {"sample_weight": np.where(y == 1, 1.0, 10.0)}
    clf = clone(estimator).set_params(objective=objective, constraints=goal, confidence_level=0.9)
    row = clf.fit(x, y, **parts).constraint_report_.iloc[0]
    side = row["ci_high"] if str(goal).count("<=") else row["ci_low"]
    implied = norm.isf(0.1) / norm.isf(0.025) * abs(side - row["cross_fitted"])
    assert row["margin"] >= 0.85 * implied
