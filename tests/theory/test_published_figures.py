"""What Figures 2 and 3 of Goh et al. (2016) claim, on Adult.

No statement is statistical: splits are seeded, and bounds leave a standard error or two of a test
error as room. Where this data does not bear a claim out, that is said.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks._published_goals import covariance_bound, everybody, fair, split
from skbandit.constrained import ConstrainedThreshold, RampClassifier, constraint_path
from skbandit.rates import churn, error_rate, false_positive_rate, recall

pytestmark = pytest.mark.nightly

NOISE = 0.003
"""Standard error of an error of .16 on the 16,281 test rows."""

SPLIT_NOISE = 0.008
"""And of one of .21 on 2,800 rows held out."""

CHURN_NOISE = 0.005
"""And of a churn of .04 on the 1,513 rows of D3 held out."""


@pytest.fixture(scope="module")
def figure_2():
    """Test error and ratio: ours by 1/kappa (deterministic, randomized), covariance by c."""
    train, test = split(everybody(), run=0)
    asked = (1.0, 1.25, 2.0, 3.0, 6.0)
    scores = [test.X @ fair(train, one).coef_[0] for one in asked]
    threshold = np.array([test.figures((z > 0).astype(float)) for z in scores])
    drawn = np.array([test.figures(np.clip(0.5 + z, 0, 1)) for z in scores])
    fit = covariance_bound(train)
    rival = np.array(
        [test.figures((fit(c)(test.X) > 0).astype(float)) for c in (2.0, 0.0, -2.0, -3.0)]
    )
    return np.array(asked), threshold, drawn, rival


def test_kappa_is_an_effective_proxy_for_the_ratio(figure_2):
    """Until the ratio of an SVM without constraints, 3.6: beyond, the constraint is slack."""
    asked, threshold, drawn, _ = figure_2
    for found in (threshold, drawn):
        np.testing.assert_allclose(found[:4, 1], asked[:4], rtol=0.05)
        assert 3.4 < found[4, 1] < 3.9


def test_fairness_costs_from_nothing_to_two_percent(figure_2):
    _, threshold, _, rival = figure_2
    svm = rival[0, 0]
    assert abs(threshold[-1, 0] - svm) <= NOISE
    assert svm + 0.01 < threshold[0, 0] <= svm + 0.025
    assert (np.diff(threshold[:, 0]) <= NOISE).all()


def test_a_covariance_constraint_reaches_every_ratio_too(figure_2):
    """The paper has ratios that it cannot reach for any c, but eq. 8 goes on below c = 0."""
    _, _, _, rival = figure_2
    assert rival[0, 1] > 3
    assert 1.5 < rival[1, 1] < 2.0  # equal mean scores are not equal rates
    assert rival[-1, 1] < 1.0
    assert (np.diff(rival[:, 1]) < 0).all()


def test_a_covariance_constraint_is_not_more_accurate_at_any_ratio(figure_2):
    """The paper has it .03 worse everywhere; here it is level to 1.8, and worse at parity."""
    _, threshold, _, rival = figure_2
    by_ratio = rival[np.argsort(rival[:, 1])]
    lost = np.interp(threshold[:4, 1], by_ratio[:, 1], by_ratio[:, 0]) - threshold[:4, 0]
    assert (lost > -NOISE).all()
    assert 0.001 < lost[0] < 0.01


@pytest.fixture(scope="module", params=[0, 1, 2])
def churning(request, a9a):
    """Churn on D3, errors on D1 and D2 and recall on D2, in and out of sample, by target."""
    rng = np.random.default_rng(request.param)
    X, y, rows = a9a.data, a9a.target, rng.permutation(len(a9a.target))
    deployed = LogisticRegression(C=0.01, max_iter=500, class_weight={-1: 1, 1: 2})
    deployed.fit(X[rows[:3000]], y[rows[:3000]])
    unsure = np.argsort(np.abs(deployed.decision_function(X[rows[3000:17000]])))[:6000]
    d1, d2, d3 = rng.permutation(rows[3000:17000][unsure]), rows[17000:25000], rows[25000:]
    (d1, d1_test), (d2, d2_test), (d3, d3_test) = (
        np.split(d, [int(0.8 * len(d))]) for d in (d1, d2, d3)
    )

    def told(first, second):
        kinds = np.repeat([True, False], [len(first), len(second)])
        answers = deployed.predict(X[np.append(first, second)])
        return pd.DataFrame({"d1": kinds, "d2": ~kinds, "deployed": answers})

    both, attributes = np.append(d1, d2), told(d1, d2)
    extra = pd.DataFrame({"deployed": deployed.predict(X[d3])})
    costs = len(d1) * error_rate("d1") + np.sum(y[d2] < 0) * false_positive_rate("d2")
    floor = recall("d2").value(y[both], attributes["deployed"], attributes)
    goals = [recall("d2") >= floor, churn("deployed", on="extra") <= 0.04]
    svm = LinearSVC(C=1 / (1e-4 * len(both)), loss="hinge", max_iter=50_000, random_state=0).fit(
        X[both], y[both]
    )
    rival = ConstrainedThreshold(svm, costs, goals[0], cv="prefit", confidence_level=0.5)
    rival.fit(X[both], y[both], attributes=attributes)

    def figures(model):
        found = {}
        for where, first, second, third in (
            ("train", d1, d2, d3),
            ("test", d1_test, d2_test, d3_test),
        ):
            joint = np.append(first, second)
            answers = model.predict(X[joint])
            changed = model.predict(X[third]) != deployed.predict(X[third])
            found[f"churn {where}"] = changed.mean()
            found[f"error {where}"] = np.mean(answers != y[joint])
            found[f"recall {where}"] = recall("d2").value(y[joint], answers, told(first, second))
        return found

    rival_figures = figures(rival)
    targets = rival_figures["churn train"] * np.array([1 / 3, 2 / 3, 1])
    path = constraint_path(
        RampClassifier(costs / len(both), goals, alpha=1e-4, max_iter=50),
        X[both],
        y[both],
        bounds=targets,
        constraint=1,
        attributes=attributes,
        X_extra=X[d3],
        attributes_extra=extra,
    )
    expected = [model.constraint_report_["expected"].iloc[1] for model in path.estimators]
    ours = pd.DataFrame([figures(model) for model in path.estimators])
    return targets, floor, ours, np.array(expected), rival_figures


def test_churn_stays_below_its_target(churning):
    """The randomized rule's is just the target on training rows.

    These are taken at face value: on test rows, churn is .006, .002 and -.001 above the three
    targets on average of 20 splits. One of the 20 is beyond these bounds, by chance.
    """
    targets, _, ours, expected, _ = churning
    assert (expected <= targets + 3e-4).all()
    assert (expected >= 0.95 * targets).all()
    assert (ours["churn train"] <= targets + 1e-9).all()
    above = ours["churn test"] - targets
    assert (above <= 3 * CHURN_NOISE).all()
    assert above.mean() <= 2 * CHURN_NOISE
    assert (np.diff(ours["churn train"]) > 0).all()


def test_recall_is_kept(churning):
    _, floor, ours, _, _ = churning
    assert (ours["recall train"] >= floor - 1e-9).all()


def test_no_more_errors_than_a_thresholded_svm_at_its_churn_or_less(churning):
    """The paper has fewer errors at any churn; here a third of the churn costs .02 of error."""
    _, _, ours, _, rival = churning
    assert (ours["churn train"] <= rival["churn train"] + 1e-9).all()
    assert ours["error train"].iloc[-1] <= rival["error train"]
    assert ours["error test"].iloc[-1] <= rival["error test"] + 2 * SPLIT_NOISE
    assert ours["error test"].iloc[0] <= rival["error test"] + 0.02 + 2 * SPLIT_NOISE
