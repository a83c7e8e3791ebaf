"""fit_blocks: a model of a sample, thresholds and report that count every row."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.exceptions import EmptyRateError, InfeasibleConstraintsError
from skbandit.rates import (
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.tiers import first

FEATURES = list("abcd")
N = 4000


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    g = rng.choice(["p", "q", "r"], n, p=[0.6, 0.3, 0.1])
    y = (X[:, 0] + 0.5 * (g == "q") + rng.normal(size=n) > 0).astype(int)
    table = pd.DataFrame(X, columns=FEATURES)
    return table.assign(g=g, w=rng.integers(0, 3, n).astype(float), y=y)


TABLE = people()
FAIR = [difference(positive_rate, by="g") <= 0.03, recall() >= 0.7]


def blocks_of(table=TABLE, size=700):
    return [table[start : start + size] for start in range(0, len(table), size)]


def model(objective=None, constraints=FAIR, estimator=None, **parameters):
    estimator = LogisticRegression() if estimator is None else estimator
    return ConstrainedThreshold(estimator, objective, constraints, **parameters)


def fit_blocks(clf, blocks=None, sample_size=1000, **columns):
    columns = {"features": FEATURES, "label": "y", "random_state": 0} | columns
    return clf.fit_blocks(
        blocks_of() if blocks is None else blocks, sample_size=sample_size, **columns
    )


def thresholds(clf):
    return [clf.threshold_] if clf.by is None else clf.thresholds_.tolist()


# --- the same as in memory -----------------------------------------------------------------


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_rows_that_fit_give_the_result_of_fit(by, weight):
    table = TABLE[:1500]
    found = fit_blocks(model(by=by), blocks_of(table), 1500, sample_weight=weight)
    metadata = {} if weight is None else {"sample_weight": table["w"]}
    own = table[["g", "w"]]
    whole = model(by=by).fit(table[FEATURES], table["y"], attributes=own, **metadata)
    assert thresholds(found) == thresholds(whole)
    pd.testing.assert_frame_equal(found.constraint_report_, whole.constraint_report_)


DECLARED = {
    "fair": (error_rate(), FAIR),
    "each": (false_positive_rate(), each(recall, by="g") >= 0.7),
    "precision": (recall(), [precision() >= 0.75, positive_rate("a > 0") <= 0.8]),
    "f1": (f1(), recall(weight="w") >= 0.6),
}


@pytest.mark.parametrize("by", first(1, ["g", None]))
@pytest.mark.parametrize("name", DECLARED)
def test_every_row_counts(name, by):
    """The column `value` is what the fitted rule does on all rows, counted in memory."""
    clf = fit_blocks(model(*DECLARED[name], by=by), sample_weight="w")
    report = clf.constraint_report_
    attributes = TABLE[["g", "w"]]
    there = clf.constraint_report(
        TABLE[FEATURES], TABLE["y"], attributes=attributes, sample_weight=TABLE["w"]
    )
    columns = ["constraint", "n_rows", "bound", "value"]
    pd.testing.assert_frame_equal(report[columns], there[columns])
    assert report["satisfied"].all() and clf.feasible_
    assert np.abs(report["cross_fitted"] - report["value"]).max() < 0.02


@pytest.mark.parametrize("by", first(1, [None, "g"]))
@pytest.mark.parametrize("name", DECLARED)
def test_a_fitted_model_has_the_best_of_the_thresholds_of_all_rows(name, by):
    """The optimum on all rows is missed by little: the thresholds tried are dense."""
    fitted = LogisticRegression().fit(people(500, 1)[FEATURES], people(500, 1)["y"])
    objective, constraints = DECLARED[name]
    clf = model(objective, constraints, fitted, cv="prefit", by=by)
    found = fit_blocks(clf)
    rows = {"attributes": TABLE[["g", "w"]]}
    value = objective.value(TABLE["y"], found.predict(TABLE[FEATURES], **rows), **rows)
    report = found.constraint_report_
    again = found.constraint_report(TABLE[FEATURES], TABLE["y"], **rows)
    pd.testing.assert_frame_equal(report.assign(on="given"), again.iloc[:, :-2])
    whole = model(objective, constraints, fitted, cv="prefit", by=by)
    whole.fit(TABLE[FEATURES], TABLE["y"], **rows)
    best = objective.value(TABLE["y"], whole.predict(TABLE[FEATURES], **rows), **rows)
    sign = -1 if objective.greater_is_better else 1
    assert -1e-9 <= sign * (value - best) < 0.01


@pytest.mark.parametrize("by", first(1, ["g", None]))
def test_the_division_into_blocks_changes_nothing(by):
    one, other = (fit_blocks(model(by=by), blocks_of(size=size)) for size in (4000, 313))
    np.testing.assert_allclose(thresholds(one), thresholds(other))
    pd.testing.assert_frame_equal(one.constraint_report_, other.constraint_report_)


def test_a_group_that_the_sample_misses_is_counted():
    rare = TABLE.assign(g=np.where(TABLE.index == 3999, "s", TABLE["g"]))
    goals = [each(positive_rate, by="g") <= 0.9, recall() >= 0.6]
    clf = fit_blocks(model(None, goals, by="g"), blocks_of(rare), 500)
    assert list(clf.thresholds_.index) == ["p", "q", "r", "s"]
    assert clf.constraint_report_["n_rows"][3] == 1
    clf.predict(rare[FEATURES], attributes=rare[["g"]])


def test_thresholds_beyond_all_scores():
    none = fit_blocks(model(None, positive_rate() <= 0.0))
    assert not none.predict(TABLE[FEATURES]).any()
    every = fit_blocks(model(None, recall() >= 1.0, by="g"))
    assert every.predict(TABLE[FEATURES], attributes=TABLE[["g"]])[TABLE["y"] == 1].all()


def test_a_ramp_classifier_of_the_sample():
    ramp = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.8)
    clf = fit_blocks(model(false_positive_rate(), recall() >= 0.8, ramp, cv=2), sample_size=300)
    assert clf.constraint_report_["n_rows"][0] == TABLE["y"].sum()
    assert clf.constraint_report_["satisfied"][0]


# --- where blocks come from ----------------------------------------------------------------


def test_sources(tmp_path):
    expected = fit_blocks(model())
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet

    path = tmp_path / "people.parquet"
    TABLE.to_parquet(path, row_group_size=900)
    sources = [
        lambda: iter(blocks_of()),
        str(path),
        pyarrow.dataset.dataset(path),
        lambda: pyarrow.parquet.ParquetFile(path).iter_batches(500),
        [pyarrow.Table.from_pandas(TABLE)],
    ]
    for source in sources:
        assert fit_blocks(model(), source).threshold_ == pytest.approx(expected.threshold_)


def test_partitions_of_dask_and_tables_of_polars():
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    expected = fit_blocks(model()).threshold_
    lazy = dask.from_pandas(TABLE, npartitions=5)
    assert fit_blocks(model(), lazy).threshold_ == pytest.approx(expected)
    tables = [polars.from_pandas(one) for one in blocks_of()]
    assert fit_blocks(model(), tables).threshold_ == pytest.approx(expected)
    with pytest.raises(TypeError, match="lazy LazyFrame"):
        fit_blocks(model(), [polars.from_pandas(TABLE).lazy()])


# --- what may go wrong ---------------------------------------------------------------------


def once():
    """Tables that differ from call to call."""
    left = iter([blocks_of(), blocks_of()[:-1]])
    return lambda: next(left)


@pytest.mark.parametrize(
    ("blocks", "error", "told"),
    [
        (iter(blocks_of()), TypeError, "read twice.*pass a function"),
        (TABLE, TypeError, r"for a single table, pass \[table\]"),
        ([TABLE.to_numpy()], TypeError, "must be a table"),
        ([], ValueError, "no rows"),
        ([TABLE.drop(columns="b")], ValueError, "no column 'b'"),
        (
            [TABLE.assign(y=TABLE["y"].where(TABLE.index != 7))],
            ValueError,
            "'y' is missing in row 7",
        ),
        (once(), ValueError, "4000 rows when read first and 3500"),
    ],
)
def test_bad_blocks(blocks, error, told):
    clf = model()
    with pytest.raises(error, match=told):
        fit_blocks(clf, blocks)
    assert not hasattr(clf, "estimator_")


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"features": []}, ValueError, "features is empty"),
        ({"label": "a"}, ValueError, "label='a' is among the features"),
        ({"sample_size": 1}, ValueError, "sample_size=1"),
        ({"sample_size": 10.5}, TypeError, "sample_size must be an integer"),
        ({"sample_weight": "v"}, ValueError, "no column 'v'"),
    ],
)
def test_bad_arguments(arguments, error, told):
    with pytest.raises(error, match=told):
        fit_blocks(model(), **arguments)


def test_what_is_not_supported_is_refused():
    with pytest.raises(ValueError, match=r"confidence_level=0\.9 is not supported"):
        fit_blocks(model(confidence_level=0.9))
    with pytest.raises(ValueError, match="X_extra"):
        fit_blocks(model(None, recall(on="extra") >= 0.5))
    with pytest.raises(ValueError, match="leaves rows of the sample untested"):
        fit_blocks(model(cv=ShuffleSplit(1, random_state=0)))
    few = TABLE.assign(rare=TABLE.index == 3999)
    with pytest.raises(EmptyRateError, match="selects no rows") as caught:
        fit_blocks(model(None, positive_rate("rare") <= 0.9), blocks_of(few))
    assert "larger sample_size" in caught.value.__notes__[0]


def test_infeasible_on_all_rows_leaves_the_estimator_as_it_was():
    clf = fit_blocks(model())
    before = pickle.dumps(clf)
    clf.set_params(constraints=[recall() >= 0.95, positive_rate() <= 0.3])
    with pytest.raises(
        InfeasibleConstraintsError, match=r"No threshold meets.*missed by"
    ) as caught:
        fit_blocks(clf)
    clf.set_params(constraints=FAIR)
    assert pickle.dumps(clf) == before
    assert not caught.value.closest_.feasible_
