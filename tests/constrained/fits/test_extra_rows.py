"""Several datasets at once, and tables of all kinds, in `fit` and in the reports."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbandit.constrained import RampClassifier
from skbandit.rates import (
    accuracy,
    churn,
    difference,
    each,
    error_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.people import (
    ALL_Y,
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
from tests.tiers import first

# --- several datasets ----------------------------------------------------------------------


@pytest.mark.thorough
def test_constraints_on_several_datasets_at_once():
    goals = [
        recall() >= 0.8,
        error_rate(on="extra") <= 0.35,
        churn("deployed", on="extra") <= 0.45,
        positive_rate("sex == 'F'", on="all") >= 0.8 * positive_rate("sex == 'M'", on="all"),
        accuracy("egregious", on="all") >= 0.6,
        recall(weight="amount") >= 0.75,
        precision() >= 0.5,
        difference(recall, by="sex") <= 0.2,
        ratio(lambda: positive_rate(on="all"), by="sex") >= 0.7,
        abs(positive_rate() - 0.5) <= 0.15,
        each(churn("deployed"), by="sex") <= 0.5,
    ]
    clf = fit(goals, **EXTRA)
    report = clf.constraint_report_
    assert clf.feasible_ and report["satisfied"].all() and len(report) == 15
    here, there = clf.predict(X), clf.predict(X_EXTRA)
    everywhere, women = np.append(here, there), FRAME["sex"] == "F"
    odd, rows = FRAME["egregious"], report.set_index("constraint")
    expected = {
        0: here[Y == 1].mean(),
        1: np.mean(there != Y_EXTRA),
        2: np.mean(there != ATTRIBUTES_EXTRA["deployed"]),
        3: everywhere[women].mean() - 0.8 * everywhere[~women].mean(),
        4: np.mean(everywhere[odd] == ALL_Y[odd]),
        5: np.average(here[Y == 1], weights=ATTRIBUTES["amount"][Y == 1]),
        6: Y[here == 1].mean(),
    }
    for k, value in expected.items():
        assert rows.loc[repr(goals[k]), "value"] == pytest.approx(value), goals[k]
    women = women[:120]
    gap = here[women & (Y == 1)].mean() - here[~women & (Y == 1)].mean()
    assert rows.loc[f"{goals[7]} [F - M]", "value"] == pytest.approx(gap)
    assert rows.loc[f"{goals[7]} [M - F]", "value"] == pytest.approx(-gap)
    assert report["on"].tolist()[:5] == ["train", "extra", "extra", "all", "all"]


@pytest.mark.parametrize("marker", first(1, [pd.NA, None, np.nan]), ids=repr)
def test_partly_labeled_extra_is_its_labeled_part(marker):
    labeled = np.arange(80) % 3 > 0
    partly = [
        int(label) if known else marker for label, known in zip(Y_EXTRA, labeled, strict=True)
    ]
    goals = [error_rate(on="extra") <= 0.3, recall() >= 0.8]
    one = fit(goals, X_extra=X_EXTRA, y_extra=partly)
    other = fit(goals, X_extra=X_EXTRA[labeled], y_extra=Y_EXTRA[labeled])
    np.testing.assert_allclose(one.coef_, other.coef_)
    np.testing.assert_allclose(one.intercept_, other.intercept_)
    columns = ["n_rows", "effective_n", "value", "satisfied"]  # folds count unlabeled rows, too
    pd.testing.assert_frame_equal(
        one.constraint_report_[columns], other.constraint_report_[columns]
    )
    assert one.constraint_report_["n_rows"].tolist() == [labeled.sum(), Y.sum()]


def test_unlabeled_extra():
    goals = [churn("deployed", on="extra") <= 0.3, positive_rate(on="extra") <= 0.6]
    clf = fit(goals, X_extra=X_EXTRA, attributes_extra=ATTRIBUTES_EXTRA)
    there = clf.predict(X_EXTRA)
    changed = np.mean(there != ATTRIBUTES_EXTRA["deployed"])
    assert changed <= 0.3 and there.mean() <= 0.6
    assert clf.constraint_report_["value"].tolist() == pytest.approx([changed, there.mean()])
    assert clf.constraint_report_["n_rows"].tolist() == [80, 80]


@pytest.mark.thorough
def test_weights_are_repetitions_in_every_dataset():
    rng = np.random.default_rng(2)
    weight, weight_extra = rng.integers(0, 3, 120), rng.integers(0, 3, 80)
    i, j = np.repeat(np.arange(120), weight), np.repeat(np.arange(80), weight_extra)
    goals = [recall() >= 0.8, error_rate(on="extra") <= 0.4, churn("deployed", on="all") <= 0.4]
    weighted = fit(
        goals,
        clf=RampClassifier(),
        sample_weight=weight,
        sample_weight_extra=weight_extra,
        **EXTRA,
    )
    repeated = fit(
        goals, clf=RampClassifier(), rows=X[i], y=Y[i],
        attributes=ATTRIBUTES.iloc[i], X_extra=X_EXTRA[j],
        y_extra=Y_EXTRA[j], attributes_extra=ATTRIBUTES_EXTRA.iloc[j],
    )  # fmt: skip
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    columns = ["constraint", "bound", "expected", "value", "satisfied"]
    pd.testing.assert_frame_equal(
        weighted.constraint_report_[columns], repeated.constraint_report_[columns], rtol=1e-6
    )


def test_parts_of_extra_in_tuples_are_the_same():
    goals = [error_rate(on="extra") <= 0.4, churn("deployed", on="extra") <= 0.4]
    wrapped = {name: (part,) for name, part in EXTRA.items()}
    weight = np.ones(80)
    assert_same(
        fit(goals, **EXTRA, sample_weight_extra=weight),
        fit(goals, **wrapped, sample_weight_extra=(weight,)),
    )


# --- tables of all kinds -------------------------------------------------------------------

MIXED = [error_rate(on="extra") <= 0.4, recall() >= 0.85]


@functools.cache
def dense_fit():
    return fit(MIXED, X_extra=X_EXTRA, y_extra=Y_EXTRA)


@pytest.mark.thorough
@pytest.mark.parametrize("extra", first(1, [sparse.csr_array, np.asarray, sparse.csc_matrix]))
@pytest.mark.parametrize(
    "make",
    first(
        2, [sparse.csc_array, np.asarray, sparse.csr_matrix, sparse.coo_array, sparse.lil_matrix]
    ),
)
def test_sparse(make, extra):
    dense = dense_fit()
    other = fit(MIXED, rows=make(X), X_extra=extra(X_EXTRA), y_extra=Y_EXTRA)
    np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-5)
    np.testing.assert_array_equal(other.predict(make(X)), dense.predict(X))
    np.testing.assert_array_equal(other.predict(extra(X_EXTRA)), dense.predict(X_EXTRA))
    report = other.constraint_report(make(X), Y, X_extra=extra(X_EXTRA), y_extra=Y_EXTRA)
    np.testing.assert_allclose(report["value"], other.constraint_report_["value"])


GROUPED = [recall({"sex": "F"}) >= 0.8, churn("deployed") <= 0.3, accuracy("egregious") >= 0.6]


@functools.cache
def grouped_fit():
    return fit(GROUPED)


def nullable(frame):
    return frame.convert_dtypes().astype({"sex": "category"})


def polars_frame(frame):
    return pytest.importorskip("polars").DataFrame(
        {name: column.tolist() for name, column in frame.items()}
    )


def pyarrow_table(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    "make",
    [
        nullable,
        polars_frame,
        pyarrow_table,
        lambda frame: {name: column[::1] for name, column in frame.items()},
        lambda frame: frame.set_index("age", drop=False),
    ],
    ids=["nullable", "polars", "pyarrow", "series", "repeated index"],
)
def test_attributes_by_position_in_any_table(make):
    assert_same(fit(GROUPED, attributes=make(ATTRIBUTES)), grouped_fit())


@pytest.mark.thorough
def test_attributes_may_be_columns_of_X():
    table = pd.DataFrame(X, columns=list("abcd"), index=ATTRIBUTES.index)
    table["woman"] = ATTRIBUTES["sex"] == "F"
    goals = [recall("woman") >= 0.8, positive_rate("a > 0 and not woman") <= 0.9]
    inside = fit(goals, rows=table, attributes=None)
    outside = fit(goals, rows=table.to_numpy(), attributes=table[["a", "woman"]])
    assert_same(inside, outside)
    assert inside.feature_names_in_.tolist() == ["a", "b", "c", "d", "woman"]
    hidden = fit(goals, rows=table, attributes=table[["woman"]])  # attributes, then X
    assert_same(hidden, inside)
    report = inside.constraint_report(table, Y)
    np.testing.assert_allclose(report["value"], inside.constraint_report_["value"])


@pytest.mark.parametrize("dtype", ["string", "category", "object"])
def test_labels_in_any_series(dtype):
    y = pd.Series(np.where(Y, "yes", "no")).astype(dtype)
    y_extra = pd.Series(np.where(Y_EXTRA, "yes", None)).astype(dtype)
    goal = recall(on="all") >= 0.9
    clf = fit(goal, y=y, X_extra=X_EXTRA, y_extra=y_extra, pos_label="yes")
    assert clf.classes_.tolist() == ["no", "yes"] and set(clf.predict(X)) == {"no", "yes"}
    assert clf.constraint_report_["n_rows"].tolist() == [ALL_Y.sum()]
