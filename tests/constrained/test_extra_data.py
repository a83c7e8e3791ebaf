"""ExtraData: one object in place of the four `*_extra` arguments."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, ExtraData, constraint_path
from skbandit.inspection import ConstraintReportDisplay, TradeoffDisplay
from skbandit.rates import churn, error_rate, recall
from tests.people import (
    ALL_X,
    ATTRIBUTES,
    ATTRIBUTES_EXTRA,
    EXTRA,
    FRAME,
    X_EXTRA,
    Y_EXTRA,
    X,
    Y,
    assert_same,
    fit,
)

WEIGHT = np.linspace(0.5, 2, len(Y_EXTRA))
ONE_BY_ONE = EXTRA | {"sample_weight_extra": WEIGHT}
DATA = ExtraData(X_EXTRA, Y_EXTRA, ATTRIBUTES_EXTRA, WEIGHT)
GOALS = [churn("deployed", on="extra") <= 0.4, error_rate(on="extra") <= 0.4, recall() >= 0.7]


def test_fit_and_report_are_those_of_the_four_arguments():
    one, other = fit(GOALS, extra=DATA), fit(GOALS, **ONE_BY_ONE)
    assert_same(one, other)
    reports = (
        clf.constraint_report(X, Y, attributes=ATTRIBUTES, **extra)
        for clf, extra in ((one, {"extra": DATA}), (other, ONE_BY_ONE))
    )
    pd.testing.assert_frame_equal(*reports)


def test_thresholds_and_paths_are_those_of_the_four_arguments():
    found = []
    for extra in ({"extra": DATA}, ONE_BY_ONE):
        clf = ConstrainedThreshold(LogisticRegression(), None, GOALS)
        clf.fit(X, Y, attributes=ATTRIBUTES, **extra)
        path = constraint_path(
            ConstrainedRampClassifier(constraints=GOALS), X, Y,
            bounds=[0.5, 0.4], constraint=0, attributes=ATTRIBUTES, **extra,
        )  # fmt: skip
        measured = path.measure(X, Y, attributes=ATTRIBUTES, **extra)
        found.append((clf.threshold_, path.table.drop(columns="seconds"), measured))
    assert found[0][0] == found[1][0]
    pd.testing.assert_frame_equal(found[0][1], found[1][1])
    pd.testing.assert_frame_equal(found[0][2], found[1][2])


def test_displays_take_it():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    clf = fit(GOALS, extra=DATA)
    drawn = ConstraintReportDisplay.from_estimator(clf, X, Y, attributes=ATTRIBUTES, extra=DATA)
    expected = clf.constraint_report(X, Y, attributes=ATTRIBUTES, extra=DATA)
    pd.testing.assert_frame_equal(drawn.report, expected)
    path = TradeoffDisplay.from_estimator(
        clf, X, Y, bounds=[0.5, 0.4], constraint=0, attributes=ATTRIBUTES, extra=DATA
    )
    assert path.train["feasible"].all()


def test_cross_validation_passes_it_whole():
    """Also with as many rows as X."""
    extra = ExtraData(ALL_X[60:180], attributes=FRAME[60:180])
    clf = ConstrainedRampClassifier(constraints=churn("deployed", on="extra") <= 0.3)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(clf, {"alpha": [1e-3, 0.1]}, cv=2, error_score="raise")
        search.fit(X, Y, attributes=ATTRIBUTES, extra=extra)
    assert search.best_estimator_.constraint_report_["n_rows"].tolist() == [120]


def test_a_threshold_passes_it_on_to_a_classifier_that_takes_it():
    seen = []

    class Recorder(ConstrainedRampClassifier):
        def fit(self, X, y, *, extra=None):
            seen.append(extra)
            return super().fit(X, y, extra=extra)

    clf = ConstrainedThreshold(Recorder(), constraints=churn("deployed", on="extra") <= 0.4, cv=2)
    clf.fit(X, Y, extra=DATA)
    assert seen == [DATA] * 3


@pytest.mark.parametrize(
    ("extra", "error", "message"),
    [
        ({"extra": DATA, "y_extra": Y_EXTRA}, ValueError, "as extra= or as y_extra=, not both"),
        ({"extra": X_EXTRA}, TypeError, r"extra must be an ExtraData, got ndarray: pass extra="),
    ],
    ids=["both forms", "an array"],
)
def test_a_wrong_extra_is_explained(extra, error, message):
    with pytest.raises(error, match=message):
        fit(GOALS, **extra)
    with pytest.raises(error, match=message):
        ConstrainedThreshold(LogisticRegression(), None, GOALS).fit(X, Y, **extra)


def test_it_needs_rows():
    with pytest.raises(ValueError, match="needs rows: X is None"):
        ExtraData(None)
