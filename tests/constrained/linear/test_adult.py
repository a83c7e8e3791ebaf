"""Real people's data: the paper's settings on a9a, against figures measured before."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit.constrained import RampClassifier
from skbandit.datasets import load_a9a
from skbandit.rates import (
    churn,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)

pytestmark = pytest.mark.thorough


def machine(alpha=1e-3, **params):
    """The paper's algorithm, judged on its training rows."""
    return RampClassifier(alpha=alpha, **params)


@pytest.fixture(scope="module")
def a9a_test(real_data):
    return load_a9a(subset="test")


# Prototype figures for the same problem: MM from the unconstrained direction, alpha = 1e-3.
@pytest.mark.parametrize(
    ("kappa", "error", "ratio"), [(1.0, 0.1697, 1.02), (0.8, 0.1627, 1.28), (0.4, 0.1515, 2.50)]
)
def test_parity(a9a, a9a_test, kappa, error, ratio):
    men, women = positive_rate({"sex": "Male"}), positive_rate({"sex": "Female"})
    clf = machine(constraints=men <= women / kappa)
    sex = pd.DataFrame({"sex": np.where(a9a.male, "Male", "Female")})
    clf.fit(a9a.data, a9a.target, attributes=sex)

    assert clf.feasible_
    answers = clf.predict(a9a.data) > 0
    assert answers[a9a.male].mean() <= answers[a9a.female].mean() / kappa + 1e-9
    assert np.all(np.diff(clf.objective_path_) <= 1e-9)
    # the bound binds: a shadow price, and a randomized rule at it
    assert clf.multipliers_[0] > 0
    assert abs(clf.constraint_report_["expected"][0]) < 1e-3

    unseen = clf.predict(a9a_test.data)
    assert error_rate().value(a9a_test.target, unseen) <= error + 0.004
    positive = unseen > 0
    assert positive[a9a_test.male].mean() / positive[a9a_test.female].mean() <= ratio + 0.01


@pytest.fixture(scope="module")
def deployment(a9a):
    """A model deployed yesterday, labeled rows of today, and unlabeled ones (Fig. 3)."""
    rows = np.random.default_rng(0).permutation(len(a9a.target))
    old, labeled, unlabeled = rows[:3000], rows[3000:9000], rows[9000:15000]
    deployed = LogisticRegression(C=0.01, max_iter=500).fit(a9a.data[old], a9a.target[old])
    return deployed, labeled, unlabeled


def test_churn_and_recall_together(a9a, a9a_test, deployment):
    deployed, labeled, unlabeled = deployment
    X, y = a9a.data[labeled], a9a.target[labeled]
    recall_before = recall().value(y, deployed.predict(X))
    errors = []
    for target in (0.04, 0.01):
        goals = [recall() >= recall_before, churn("deployed", on="extra") <= target]
        clf = machine(constraints=goals, alpha=1e-4, max_iter=30).fit(
            X,
            y,
            X_extra=a9a.data[unlabeled],
            attributes_extra=pd.DataFrame({"deployed": deployed.predict(a9a.data[unlabeled])}),
        )
        assert clf.constraint_report_["satisfied"].all()
        unseen, before = clf.predict(a9a_test.data), deployed.predict(a9a_test.data)
        # held out: within four standard errors of a share of the 6,000 rows it was set on
        noise = 4 * np.sqrt(target / len(unlabeled))
        assert np.mean(unseen != before) <= target + noise
        errors.append(error_rate().value(a9a_test.target, unseen))
    # change is what buys accuracy: more of it, no worse; a little, better than none
    assert errors[0] <= errors[1] + 0.003
    assert errors[1] <= error_rate().value(a9a_test.target, before)


def test_precision_does_not_fall_into_the_all_negative_trap(a9a, a9a_test, deployment):
    _, labeled, _ = deployment
    X, y = a9a.data[labeled], a9a.target[labeled]
    clf = machine(constraints=precision() >= 0.9, max_iter=30).fit(X, y)
    assert clf.feasible_
    # answering nobody is feasible, stationary and worthless: its recall is 0, its error .24
    assert recall().value(y, clf.predict(X)) > 0.25
    assert error_rate().value(y, clf.predict(X)) < 0.19
    unseen = clf.predict(a9a_test.data)
    assert precision().value(a9a_test.target, unseen) > 0.8


def test_the_first_convex_problem_need_not_be_feasible(a9a, deployment):
    _, labeled, _ = deployment
    X, y = a9a.data[labeled], a9a.target[labeled]
    goals = [recall() >= 0.8, false_positive_rate() <= 0.2]
    clf = machine(constraints=goals, max_iter=30).fit(X, y)
    assert clf.feasible_
    assert recall().value(y, clf.predict(X)) >= 0.8
    assert false_positive_rate().value(y, clf.predict(X)) <= 0.2
