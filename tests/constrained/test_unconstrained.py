"""What constraints cost: the rates of the model without them, and warnings of a high multiplier."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.constrained.linear._directions import column_scales
from skbandit.exceptions import ConstrainedFitWarning
from skbandit.rates import difference, error_rate, positive_rate, precision, recall
from skbandit.utils._folds import folds_of_classes
from tests.folds import out_of_fold
from tests.worlds import warns

ALL_X, ALL_Y = make_classification(800, 6, flip_y=0.3, random_state=0)
X, Y, X_NEW, Y_NEW = ALL_X[:400], ALL_Y[:400], ALL_X[400:], ALL_Y[400:]
GOALS = [recall() >= 0.8, precision() >= 0.5, positive_rate() <= 0.9]
LOGISTIC = LogisticRegression()
CV = StratifiedKFold(4)
ESTIMATORS = [
    ConstrainedRampClassifier(),
    ConstrainedThreshold(LOGISTIC, cv=CV),
    ConstrainedReduction(LOGISTIC, cv=CV, max_iter=3),
]


def values(goals, y, predictions, **more):
    return [goal.rate.value(y, predictions, **more) for goal in goals]


# --- the column ----------------------------------------------------------------------------


@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize("estimator", ESTIMATORS[1:])
def test_of_other_classifiers_it_is_their_own_predictions(estimator, pos_label):
    clf = clone(estimator).set_params(constraints=GOALS, pos_label=pos_label).fit(X, Y)
    scores = out_of_fold(LOGISTIC, "predict_proba", X, Y, splits=list(CV.split(X, Y)))
    report = clf.constraint_report_
    expected = values(GOALS, Y, (scores > 0.5).astype(int), pos_label=pos_label)
    np.testing.assert_allclose(report["unconstrained"], expected)
    new = values(GOALS, Y_NEW, LOGISTIC.fit(X, Y).predict(X_NEW), pos_label=pos_label)
    np.testing.assert_allclose(clf.constraint_report(X_NEW, Y_NEW)["unconstrained"], new)


def test_of_fitted_classifiers_it_is_their_own_predictions_by_group_too():
    table = pd.DataFrame({"g": np.where(X[:, 0] > 0, "a", "b")})
    fitted = clone(LOGISTIC).fit(X_NEW, Y_NEW)
    clf = ConstrainedThreshold(fitted, None, GOALS, cv="prefit", by="g")
    clf.fit(X, Y, attributes=table)
    expected = values(GOALS, Y, fitted.predict(X))
    np.testing.assert_allclose(clf.constraint_report_["unconstrained"], expected)
    report = clf.constraint_report(X, Y, attributes=table)
    np.testing.assert_allclose(report["unconstrained"], expected)


@pytest.mark.thorough
@pytest.mark.parametrize(("form", "pos_label"), [(np.asarray, 0), (csr_array, 1)])
def test_of_the_linear_classifier_it_is_logistic_regression_without_each_fold(form, pos_label):
    rows, y = X + np.array([3, 0, 0, -1, 0, 0]), Y
    if form is csr_array:
        rows = rows * (np.abs(rows) > 0.5)
    clf = ConstrainedRampClassifier(constraints=positive_rate() <= 0.9, pos_label=pos_label)
    clf.fit(form(rows), y)
    fold = folds_of_classes((y == pos_label).astype(np.int8), 5, np.arange(len(y)))
    scaled = rows / column_scales(rows, np.ones(len(y)), centered=True)
    scores, everywhere = np.zeros(len(y)), []
    for k in range(5):
        model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(scaled[fold != k], y[fold != k])
        everywhere.append(model.decision_function(scaled))
        scores[fold == k] = everywhere[-1][fold == k]
    close = np.abs(scores) < 1e-3
    assert close.sum() <= 2
    share = np.mean((scores > 0) == (pos_label == 1))
    found = clf.constraint_report_["unconstrained"][0]
    assert found == pytest.approx(share, abs=close.mean() + 1e-9)
    mean = np.mean(everywhere, axis=0)
    share, close = np.mean((mean > 0) == (pos_label == 1)), np.abs(mean) < 1e-3
    found = clf.constraint_report(form(rows), y)["unconstrained"][0]
    assert found == pytest.approx(share, abs=close.mean() + 1e-9)


# --- warnings ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_ordinary_fits_are_silent(estimator):
    clf = clone(estimator).set_params(constraints=GOALS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.fit(X, Y)
        clf.set_params(constraints=()).fit(X, Y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_high_cost_is_told_with_both_figures(estimator):
    clf = clone(estimator).set_params(constraints=recall() >= 0.97, objective=error_rate())
    with pytest.warns(ConstrainedFitWarning) as caught:
        clf.fit(X, Y)
    assert len(caught) == 1 and caught[0].filename == __file__
    told = str(caught[0].message)
    start, without, _, _, _, within = told.split(" with them")[0].rsplit(maxsplit=5)[0:6]
    assert start == "error_rate() is"
    assert 0.1 < float(without) < 0.25 < float(within) < 0.5


@pytest.mark.parametrize(("n_positive", "is_told"), [(24, True), (2400, False)])
def test_a_level_that_costs_much_is_named_with_both_figures(n_positive, is_told):
    """Two of 24 scores are low: 22 do not promise 0.85, and 24 flag 94 % of the others."""
    n_low = n_positive // 12
    scores = np.repeat([0.9, 0.1, 0.2, 0.05], [n_positive - n_low, n_low, 150, 10])
    y = np.repeat([1, 0], [n_positive, 160])
    clf = ConstrainedThreshold(None, error_rate(), recall() >= 0.85, confidence_level=0.9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(scores[:, None], y)
    told = [w for w in caught if "0.8152 at confidence_level=0.9, and 0.01087" in str(w.message)]
    assert len(told) == is_told


def test_a_cost_by_group_is_told():
    """Levelling down: the error goes up by half and more."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": rng.choice(["a", "b"], 400)})
    shifted = X + 2 * np.eye(6)[0] * (table["g"] == "a").to_numpy()[:, None]
    y = (shifted[:, 0] + 0.5 * rng.normal(size=400) > 1).astype(int)
    clf = ConstrainedThreshold(LOGISTIC, None, difference(positive_rate, by="g") <= 0.02)
    with pytest.warns(ConstrainedFitWarning, match=r"error_rate\(\) is 0\..* without constraints"):
        clf.fit(shifted, y, attributes=table)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_rule_that_is_all_but_constant_is_told(estimator):
    names = np.array(["no", "yes"])[Y]
    clf = clone(estimator).set_params(
        objective=precision(), constraints=positive_rate() <= 0.04, pos_label="yes"
    )
    with pytest.warns(ConstrainedFitWarning, match=r"^'yes' is predicted for .*all but constant"):
        clf.fit(X, names)


@pytest.mark.parametrize(
    ("estimator", "precise"),
    [(ESTIMATORS[0], 0.78), (ESTIMATORS[2], 0.77)],
    ids=["ramp", "reduction"],
)
def test_a_low_level_is_told(estimator, precise):
    clf = clone(estimator).set_params(constraints=[recall() >= 0.8, precision() >= precise])
    warns(r"confidence_level_ is 0\.5\. A higher", clf.fit, X, Y, warning=ConstrainedFitWarning)
    assert clf.confidence_level_ == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_params(constraints=recall() >= 0.6, confidence_level=0.6).fit(X, Y)
    assert clf.confidence_level_ == pytest.approx(0.6)


@pytest.mark.parametrize("make", [ConstrainedThreshold, ConstrainedReduction])
def test_an_objective_of_0_by_0_is_warned_of(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    clf = make(LogisticRegression(), precision(), positive_rate() <= 0.0)
    warns(r"precision\(\) is 0/0 for the chosen rule", clf.fit, X, y, warning=ConstrainedFitWarning)
    assert not clf.predict(X).any()
