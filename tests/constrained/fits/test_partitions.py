"""Dask collections give the results of the same rows in memory, and features stay on workers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier, ConstrainedThreshold
from skbandit.constrained.fits._partitions import columns_read, from_partitions
from skbandit.inspection import save_report
from skbandit.rates import difference, error_rate, false_positive_rate, positive_rate, recall
from tests.worlds import refuses, warns

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

RNG = np.random.default_rng(0)
N = 900
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc")).assign(age=RNG.integers(20, 60, N))
Y = pd.Series((X["a"] + RNG.normal(size=N) > 0).astype(int))
GIVEN = {
    "attributes": pd.DataFrame({"sex": RNG.choice(["F", "M"], N)}),
    "sample_weight": pd.Series(RNG.random(N)),
    "groups": pd.Series(np.arange(N) // 3),
}
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:300], Y[:300])
GOALS = [
    recall() >= 0.7,
    recall("age > 40") >= 0.6,
    difference(positive_rate, by="sex") <= 0.2,
]


def spread(table, parts=4):
    return dd.from_pandas(table, npartitions=parts)


@pytest.mark.thorough
@pytest.mark.parametrize("by", [None, "sex"])
def test_thresholds_and_reports_are_those_in_memory(by):
    goals = GOALS if by is None else [recall() >= 0.7]
    clf = ConstrainedThreshold(MODEL, false_positive_rate(), goals, cv="prefit", by=by)
    lazy = {name: spread(table) for name, table in GIVEN.items()}
    expected = clf.fit(X, Y, **GIVEN).constraint_report_
    report = clf.fit(spread(X), spread(Y), **lazy).constraint_report_
    pd.testing.assert_frame_equal(report, expected)
    new = slice(400, N)
    parts = {name: spread(table[new]) for name, table in GIVEN.items()}
    pd.testing.assert_frame_equal(
        clf.constraint_report(spread(X[new]), spread(Y[new]), **parts),
        clf.constraint_report(
            X[new], Y[new], **{name: table[new] for name, table in GIVEN.items()}
        ),
    )


@pytest.mark.thorough
def test_several_classes_of_an_array():
    y = np.digitize(X["a"], [-0.5, 0.5]).astype(str)
    values = X.to_numpy()
    model = LogisticRegression(max_iter=1000).fit(values[:300], y[:300])
    goals = [error_rate(without="person") <= 0.2, positive_rate(of="person") <= 0.5]
    clf = ConstrainedThreshold(model, None, goals, cv="prefit", other_decisions=["person"])
    costs = clf.fit(values, y).costs_
    blocks = da.from_array(values, chunks=(250, 2)), da.from_array(y, chunks=250)
    pd.testing.assert_frame_equal(clf.fit(*blocks).costs_, costs)


@pytest.mark.thorough
def test_a_report_of_a_ramp_classifier():
    clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.7).fit(X[:300], Y[:300])
    report = clf.constraint_report(spread(X[300:]), spread(Y[300:]))
    pd.testing.assert_frame_equal(report, clf.constraint_report(X[300:], Y[300:]))


def test_only_named_columns_and_responses_are_collected():
    columns = columns_read([recall("age > 40")], None, spread(X))
    table, answers = from_partitions(spread(X), columns, lambda part: part["a"].to_numpy())
    pd.testing.assert_frame_equal(table, X[["age"]])
    np.testing.assert_array_equal(answers, X["a"])
    assert columns_read([recall(lambda frame: frame["a"] > 0)], None, X) == X.columns.tolist()


def test_other_fits_and_extra_rows_are_refused():
    clf = ConstrainedThreshold(MODEL, false_positive_rate(), recall() >= 0.7)
    refuses("pass a sample that fits in memory", clf.fit, spread(X), spread(Y), error=TypeError)
    clf.set_params(cv="prefit")
    with pytest.raises(TypeError, match="X_extra cannot be combined with Dask"):
        clf.fit(spread(X), spread(Y), X_extra=X)


def test_a_page(tmp_path):
    clf = ConstrainedThreshold(MODEL, false_positive_rate(), GOALS[:2], cv="prefit").fit(X, Y)
    warns("were in the fit", save_report, clf, spread(X), spread(Y), tmp_path / "page.html")
    assert "recall" in (tmp_path / "page.html").read_text("utf-8")
