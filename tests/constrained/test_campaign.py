"""Random data and random goals: what a linear fit says of itself holds of its predictions."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier
from skbandit.exceptions import EmptyRateError, InfeasibleConstraintsError
from skbandit.rates import (
    churn,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.tiers import first

LINEAR = [positive_rate, recall, false_positive_rate, error_rate]


def random_goal(rng):
    """A bound on a rate, of all rows or of a group, on a difference of two, or on churn."""
    bound = round(float(rng.uniform(0.05, 0.95)), 2)
    kind = rng.choice(["one", "difference", "churn"], p=[0.6, 0.25, 0.15])
    if kind == "churn":
        return churn("deployed") <= bound
    if kind == "difference":
        rate, bound = rng.choice(LINEAR)({"g": 0}) - rng.choice(LINEAR)({"g": 1}), bound - 0.5
    else:
        rate = rng.choice([*LINEAR, precision, f1])(rng.choice([None, None, {"g": 0}, {"g": 1}]))
    return rate <= bound if rng.random() < 0.5 else rate >= bound


def random_rows(rng):
    """Few or many columns, of any scale, with or without noise, repeated rows and weights."""
    n, d = int(rng.choice([30, 60, 120])), int(rng.choice([1, 2, 4, 150]))
    X = rng.normal(size=(n, d)) * rng.choice([0.01, 1, 100])
    if rng.random() < 0.2:
        X = X[rng.integers(0, 10, n)]
    noise = rng.choice([0, 0.5, 3]) * np.abs(X[:, 0]).mean()
    y = (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    weight = rng.choice([0.0, 0.5, 1, 3], n) if rng.random() < 0.4 else np.ones(n)
    weight[:4] = 1
    return X, y, pd.DataFrame(rng.integers(0, 2, (n, 2)), columns=["g", "deployed"]), weight


def random_classifier(rng, goals):
    objective = rng.choice([*LINEAR, precision, f1])() if rng.random() < 0.7 else None
    solver = str(rng.choice(["auto", "newton", "cvxpy", "cutting_plane"], p=[0.4, 0.4, 0.15, 0.05]))
    options = {"alpha": float(10 ** rng.uniform(-4, 0)), "solver": solver}
    options["fit_intercept"] = bool(rng.random() < 0.85)
    options["class_weight"] = "balanced" if rng.random() < 0.2 else None
    if rng.random() < 0.6 or solver == "cutting_plane":  # which takes a minute per cross-fit
        options |= {"max_iter": int(rng.choice([2, 15])), "threshold": bool(rng.random() < 0.7)}
        return RampClassifier(objective, goals, **options)
    options |= {"alpha": "auto"} if rng.random() < 0.2 else {}
    options |= {"confidence_level": 0.8} if rng.random() < 0.4 else {}
    return ConstrainedRampClassifier(objective, goals, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, [1, 0, *range(2, 30)]))
def test_a_random_fit_keeps_its_promises(seed):
    rng = np.random.default_rng(seed)
    X, y, table, weight = random_rows(rng)
    goals = [random_goal(rng) for _ in range(rng.integers(0, 4))]
    extra = X[rng.integers(0, len(X), 20)] + 0.1
    of_extra = positive_rate(on="extra") <= round(float(rng.uniform(0.1, 0.9)), 2)
    clf = random_classifier(rng, [*goals, of_extra])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clf.fit(X, y, sample_weight=weight, attributes=table, X_extra=extra)
        except InfeasibleConstraintsError as error:
            clf = error.closest_
            assert not clf.feasible_
        except EmptyRateError:
            return
        except ValueError as error:  # too few rows to leave some out
            assert re.search("rows of each class are left out|is a class of 1 row", str(error))
            return
    scores, decided = clf.decision_function(X), clf.predict(X)
    np.testing.assert_array_equal(decided, (scores > 0).astype(int))
    assert np.isfinite(scores).all()
    assert np.isfinite(clf.coef_).all()
    clear = np.abs(scores) > 1e-12
    probability = clf.predict_proba(X)[clear]
    np.testing.assert_array_equal(probability.argmax(axis=1), decided[clear])
    report = clf.constraint_report_["satisfied"].fillna(True).all()
    if isinstance(
        clf, ConstrainedRampClassifier
    ):  # the rule itself may miss what holds out of fold
        assert report or not clf.feasible_
        return
    values = [goal.rate.value(y, decided, table, sample_weight=weight) for goal in goals]
    values, sign = np.append(values, clf.predict(extra).mean()), {"<=": 1, ">=": -1}
    slack = [
        sign[goal.sense] * (goal.bound - value)
        for goal, value in zip([*goals, of_extra], values, strict=True)
    ]
    assert report == clf.feasible_ == (min(slack) >= -1e-9)
