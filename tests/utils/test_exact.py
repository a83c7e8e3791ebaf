"""Integers beyond 2**53 beside missing values, and dates and times: no table changes them."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedThreshold
from skbandit.evaluation import rate_report, rate_report_blocks
from skbandit.rates import each, positive_rate, recall
from skbandit.utils._exact import exact_column, exact_table
from tests.worlds import refuses, warns

SHOP = [2**60] * 100 + [2**60 + 1] * 100 + [None]
Y, PREDICTED = [1] * 201, [1] * 90 + [0] * 10 + [1] * 30 + [0] * 70 + [1]
FLOOR = each(recall, by="shop") >= 0.5


def arrow(shop, **others):
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed").table(
        {"shop": shop, **others}
    )


def polars(shop, **others):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    return pl.DataFrame({"shop": shop, **others})


def columns(shop, **others):
    return {"shop": shop, **others}


def nullable(shop, **others):
    return pd.DataFrame({"shop": pd.array(shop, dtype="Int64"), **others})


FORMS = [arrow, polars, columns, nullable]


@pytest.mark.parametrize("form", FORMS)
def test_groups_stay_apart_in_reports(form):
    given = Y, PREDICTED, FLOOR
    report = warns("Some rows have no group", rate_report, *given, attributes=form(SHOP))
    assert report["value"].tolist() == [0.9, 0.3]
    assert report["n_rows"].tolist() == [100, 100]


@pytest.mark.parametrize("form", FORMS)
def test_groups_stay_apart_in_fits(form):
    X = np.random.default_rng(0).normal(size=(201, 1))
    model = ConstrainedThreshold(LogisticRegression(), None, each(positive_rate, by="shop") <= 0.9)
    warns("1 of 201 rows have no group", model.fit, X, X[:, 0] > 0, attributes=form(SHOP))
    assert len(model.constraint_report_) == 2


SHOPS = pd.DataFrame({"shop": SHOP[:200], "y": 1, "p": PREDICTED[:200]})
FEW = SHOPS.head(3).assign(shop=np.nan)


@pytest.mark.parametrize(
    "blocks",
    [
        [arrow(SHOP, y=Y, p=PREDICTED)],
        [polars(SHOP, y=Y, p=PREDICTED)],
        [nullable(SHOP, y=Y, p=PREDICTED)],
        [SHOPS, SHOPS.astype({"shop": "uint64"}), FEW],
        [FEW, SHOPS, SHOPS],
    ],
    ids=["arrow", "polars", "nullable", "other dtypes", "floats first"],
)
def test_groups_stay_apart_in_blocks(blocks):
    names = {"y_true": "y", "y_pred": "p"}
    report = warns("Some rows have no group", rate_report_blocks, blocks, FLOOR, **names)
    assert report["value"].tolist() == [0.9, 0.3]


@pytest.mark.parametrize(
    "labels", [list, lambda y: pd.array(y, dtype="Int64"), lambda y: polars(y)["shop"]]
)
def test_labels_stay_apart(labels):
    y = labels([2**60, 2**60 + 1, None] * 20)
    predicted = [2**60, 2**60 + 1, 2**60] * 20
    report = rate_report(y, predicted, positive_rate(of=2**60) <= 0.9)
    assert report["value"].tolist() == pytest.approx([2 / 3])


def test_exact_columns_keep_integers_that_floats_would_round():
    large = exact_column([2**63 + 1, None])
    assert large.dtype == "UInt64"
    assert large[0] - 2**63 == 1
    beyond = exact_column([2**70, None])
    assert beyond.dtype == object
    assert beyond[0] == 2**70
    assert exact_column([1, None]) == [1, None]
    assert exact_table({"a": pd.Series([1, 2], index=[5, 6])})["a"].tolist() == [1, 2]
    small = exact_table(arrow([1, None], names=["x", None]))
    pd.testing.assert_frame_equal(small, pd.DataFrame({"shop": [1, np.nan], "names": ["x", None]}))


@pytest.mark.parametrize("form", [arrow, polars])
def test_times_of_a_zone_keep_it(form):
    # half past eleven in London is half past twelve in Paris
    times = pd.date_range("2024-01-01 11:30", periods=60, freq="min", tz="UTC")
    times = times.tz_convert("Europe/Paris").to_pydatetime().tolist()
    goal = positive_rate("shop >= '2024-01-01 13:00'") <= 1
    table = form(times, y=[0, 1] * 30, p=[0, 1] * 30)
    assert rate_report([0, 1] * 30, [0, 1] * 30, goal, attributes=table)["n_rows"].tolist() == [30]
    naive = form([time.replace(tzinfo=None) for time in times[:2]], y=[0, 1], p=[0, 1])
    for blocks in ([table[:2], naive], [naive, table[:2]]):
        with pytest.raises(ValueError, match="time zone"):
            rate_report_blocks(blocks, positive_rate(), y_true="y", y_pred="p", by="shop")


@pytest.mark.parametrize("form", [arrow, polars])
def test_dates_are_compared_and_not_mixed_with_times(form):
    days = [date(2024, 1, 1), date(2024, 2, 1), None] * 20
    table = form(days, y=[0, 1] * 30, p=[0, 1] * 30)
    goal = positive_rate("shop >= '2024-01-15'") <= 1
    assert rate_report([0, 1] * 30, [0, 1] * 30, goal, attributes=table)["n_rows"].tolist() == [20]
    options = {"y_true": "y", "y_pred": "p", "by": "shop"}
    same = pd.DataFrame({"shop": days, "y": [0, 1] * 30, "p": [0, 1] * 30})
    report = rate_report_blocks([table, same], positive_rate(), **options)
    assert report["shop"].tolist() == ["all", days[0], days[1], "(missing)"]
    times = form([datetime(2024, 1, 1, 5)] * 2, y=[0, 1], p=[0, 1])
    for blocks in ([table, times], [times, table]):
        refuses("date values", rate_report_blocks, blocks, positive_rate(), **options)
