"""All displays: what they say if matplotlib is not installed."""

import pandas as pd
import pytest

from skbandit.inspection import (
    ArmSharesDisplay,
    ConstraintReportDisplay,
    RateReportDisplay,
    ReplayDisplay,
    TradeoffDisplay,
)

REPORT = pd.DataFrame(
    {"constraint": ["recall() >= 0.5"], "n_rows": [9], "bound": [0.5], "value": [0.6],
     "slack": [0.1], "satisfied": pd.array([True], dtype="boolean")}
)  # fmt: skip
RATES = pd.DataFrame(
    {"goal": ["recall()"], "n_rows": [9], "effective_n": [9.0], "value": [0.6], "ci_low": [0.3],
     "ci_high": [0.8]}
)  # fmt: skip
SHARES = pd.DataFrame({"a": [1.0]}, index=pd.IntervalIndex.from_breaks([1, 9], closed="left"))
DISPLAYS = [
    ArmSharesDisplay(SHARES), ConstraintReportDisplay(REPORT), ReplayDisplay(None),
    TradeoffDisplay(None), RateReportDisplay(RATES),
]  # fmt: skip


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib_the_cure_is_named(display, uninstalled):
    uninstalled()
    name = type(display).__name__
    with pytest.raises(ImportError, match=f"{name}.plot needs matplotlib: pip install matplotlib"):
        display.plot()
