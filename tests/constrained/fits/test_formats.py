"""What leaves the process and comes in: pickles, skops, pyarrow, Pipelines, huge numbers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, RampClassifier, constraint_report
from skbandit.inspection import ConstraintReportDisplay
from skbandit.rates import each, false_positive_rate, positive_rate, ratio, recall
from tests.worlds import refuses, warns

RNG = np.random.default_rng(0)
N = 80
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc"))
Y = pd.Series(np.where(X["a"] + RNG.normal(size=N) > 0, "yes", "no"))
TABLE = pd.DataFrame({"g": RNG.choice(["u", "v"], N)})
GOALS = [recall() >= 0.6, each(positive_rate, by="g") >= 0.1, ratio(recall, by="g") >= 0.2]
RAMP = ConstrainedRampClassifier(false_positive_rate(), GOALS, solver="newton", pos_label="yes")
CLASSIFIERS = {
    "ramp": RAMP,
    "confidence": ConstrainedRampClassifier(
        None,
        recall({"g": "u"}) >= 0.3,
        solver="newton",
        confidence_level=0.8,
        pos_label="yes",
    ),
    "threshold": ConstrainedThreshold(
        LogisticRegression(), false_positive_rate(), GOALS, pos_label="yes"
    ),
}
SETTLING = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module", params=CLASSIFIERS)
def fitted(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(CLASSIFIERS[request.param]).fit(X, Y, attributes=TABLE)


@pytest.mark.thorough
def test_pickles_and_skops_need_neither_pandas_nor_pyarrow(fitted):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    pickled, saved = pickle.dumps(fitted), io.dumps(fitted)
    assert b"arrow" not in pickled.lower() and b"pandas" not in pickled
    foreign = io.get_untrusted_types(data=saved)
    assert all(name.startswith("skbandit.") for name in foreign)
    on_rows = fitted.constraint_report(X, Y, attributes=TABLE)
    for again in (pickle.loads(pickled), io.loads(saved, trusted=foreign)):
        pd.testing.assert_frame_equal(again.constraint_report_, fitted.constraint_report_)
        np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
        pd.testing.assert_frame_equal(again.constraint_report(X, Y, attributes=TABLE), on_rows)


def test_the_report_is_of_the_types_of_a_report_on_rows(fitted):
    report, on_rows = fitted.constraint_report_, fitted.constraint_report(X, Y, attributes=TABLE)
    shared = [name for name in report.columns if name in on_rows]
    assert report[shared].dtypes.tolist() == on_rows[shared].dtypes.tolist()
    report.loc[:, "value"] = 7.0  # a copy
    assert fitted.constraint_report_["value"].max() < 2


def test_a_skipped_group_is_missing_in_the_report():
    clf = ConstrainedRampClassifier(constraints=each(recall, by="g") >= 0.1, pos_label="yes")
    labels = np.where(TABLE["g"] == "u", Y, "no")
    warns("is not measured", clf.fit, X, labels, attributes=TABLE)
    satisfied = pickle.loads(pickle.dumps(clf)).constraint_report_["satisfied"]
    assert satisfied.dtype == "boolean" and satisfied.isna().tolist() == [False, True]


@pytest.mark.parametrize("clf", [RAMP, CLASSIFIERS["threshold"]])
def test_no_report_before_fit(clf):
    clf = type(clf)(**clf.get_params(deep=False))
    with pytest.raises(AttributeError, match="before it is fitted"):
        clf.constraint_report_  # noqa: B018
    assert not hasattr(clf, "constraint_report_")


def test_log_probabilities(fitted):
    logs = fitted.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(logs), fitted.predict_proba(X))
    if isinstance(fitted, ConstrainedRampClassifier):
        scale = 1e3 / np.abs(fitted.coef_).max()
        assert np.isneginf(fitted.predict_log_proba(X * scale)).any()


# --- Pipelines -----------------------------------------------------------------------------


@pytest.mark.thorough
@SETTLING
@pytest.mark.parametrize("name", ["ramp", "threshold"])
def test_a_report_behind_a_pipeline(name):
    clf = CLASSIFIERS[name]
    pipeline = make_pipeline(StandardScaler(), clf)
    pipeline.fit(X[:50], Y[:50], **{f"{type(clf).__name__.lower()}__attributes": TABLE[:50]})
    rows = pipeline[:-1].transform(X[50:])
    by_hand = pipeline[-1].constraint_report(rows, Y[50:], attributes=TABLE[50:])
    report = constraint_report(pipeline, X[50:], Y[50:], attributes=TABLE[50:])
    pd.testing.assert_frame_equal(report, by_hand)
    alone = constraint_report(pipeline[-1], rows, Y[50:], attributes=TABLE[50:])
    pd.testing.assert_frame_equal(alone, by_hand)


@pytest.mark.thorough
@SETTLING
def test_extra_rows_of_a_report_are_transformed_too():
    clf = ConstrainedRampClassifier(constraints=positive_rate(on="extra") <= 0.5, pos_label="yes")
    scaler = StandardScaler()
    clf.fit(scaler.fit_transform(X[:50]), Y[:50], X_extra=scaler.transform(X[50:]))
    pipeline = make_pipeline(scaler, clf)
    share = (pipeline.predict(X[50:]) == "yes").mean()
    for extra in ({"X_extra": X[50:]}, {"X_extra": (X[50:],)}):
        report = constraint_report(pipeline, X[:50], Y[:50], **extra)
        assert report["value"][0] == pytest.approx(share)
    pytest.importorskip("matplotlib")
    drawn = ConstraintReportDisplay.from_estimator(pipeline, X[:50], Y[:50], X_extra=X[50:])
    pd.testing.assert_frame_equal(drawn.report, report)


def test_a_report_needs_declared_constraints():
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    for estimator in (plain, GridSearchCV(plain, {}).fit(X, Y)):
        with pytest.raises(TypeError, match=r"^LogisticRegression has no .*rate_report") as told:
            constraint_report(estimator, X, Y)
        assert "(" not in str(told.value).split("rate_report")[0]
    with pytest.raises(TypeError, match=r"^GridSearchCV has no .* search that has refitted one"):
        constraint_report(GridSearchCV(RAMP, {}), X, Y)


@pytest.mark.thorough
def test_a_column_that_a_pipeline_drops_is_found_by_the_message():
    frame = X.assign(g=TABLE["g"])
    numbers = make_column_transformer((StandardScaler(), ["a", "b", "c"]))
    pipeline = make_pipeline(numbers, RAMP)
    told = r"unknown column 'g'; .* Behind a Pipeline, .* pass <step>__attributes=, .*routing=True"
    refuses(told, pipeline.fit, frame, Y)
    with config_context(enable_metadata_routing=True):
        pipeline.fit(frame, Y, attributes=TABLE)
    first = pipeline.predict(frame)
    pipeline.fit(frame, Y, constrainedrampclassifier__attributes=TABLE)
    np.testing.assert_array_equal(pipeline.predict(frame), first)


# --- numbers out of range ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alpha", "tol"])
def test_numbers_beyond_any_float(name):
    with pytest.raises(ValueError, match=f"{name} must be finite and at most 1.8e308"):
        RampClassifier(pos_label="yes", **{name: 10**400}).fit(X, Y)
