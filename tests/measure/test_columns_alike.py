"""Values that are one group to a reader are never two groups of a report."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedThreshold
from skbandit.evaluation import rate_report, rate_report_blocks
from skbandit.rates import each, positive_rate
from tests.worlds import refuses

DAY = pd.Timestamp("2026-01-01")
ZONED = DAY.tz_localize("UTC")
ALIKE = {
    "text and number": (["1", 1], "to one type"),
    "text and float": (["1.0", 1.0], "to one type"),
    "decimal and float": ([Decimal("1.10"), 1.1], "to one type"),
    "blanks": (["F", "F "], "strip it, as by str.strip"),
    "times": ([DAY, ZONED], "by dt.tz_localize"),
    "times of different days": ([DAY, ZONED + pd.Timedelta(days=1)], "by dt.tz_localize"),
}
APART = {
    "numbers": [1, 2.5, Decimal("3")],
    "one number in several types": [1, 1.0, True, Decimal("1")],
    "text": ["1", "01", "1.0"],
    "zones": [ZONED, ZONED.tz_convert("Asia/Tokyo")],
    "times": [DAY, DAY.to_pydatetime()],
    "days and times": [date(2026, 1, 1), DAY],
}


def column(values):
    return pd.Series([values[k % len(values)] for k in range(60)], dtype=object, name="g")


@pytest.mark.parametrize("name", ALIKE)
def test_values_that_read_alike_are_refused(name):
    values, cure = ALIKE[name]
    g, chosen = column(values), np.tile([1, 0], 30)
    told = f"'g' holds .* and .*, which would be two groups: .*{cure}"
    refuses(told, rate_report, None, chosen, positive_rate(), by=g)
    goal, options = each(positive_rate, by="g") >= 0.1, {"attributes": pd.DataFrame({"g": g})}
    refuses(told, rate_report, None, chosen, goal, **options)
    table = pd.DataFrame({"g": g, "p": chosen})
    refuses(told, rate_report_blocks, [table], positive_rate(), y_true=None, y_pred="p", by="g")
    model = ConstrainedThreshold(LogisticRegression(), constraints=goal)
    refuses(told, model.fit, np.eye(60), chosen, **options)


@pytest.mark.parametrize("name", APART)
def test_values_that_are_equal_or_read_otherwise_stay(name):
    values = APART[name]
    report = rate_report(None, np.tile([1, 0], 30), positive_rate(), by=column(values))
    assert len(report) == 1 + len(set(values))
    assert report["n_rows"][1:].sum() == 60
