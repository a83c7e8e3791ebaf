"""Input of every wrong kind, in every place: a number that is one, or an error that is ours."""

import numpy as np
import pandas as pd
import pytest

from tests.reliability import hostile, public_calls, wider_calls
from tests.reliability.blame import blame
from tests.reliability.public_calls import LOG
from tests.tiers import first

CALLS = {call.name: call for call in public_calls.CALLS + wider_calls.CALLS}
SMOKE = ["ips_of_table", "costs_of_log"]  # quick: the default tier tries these
BY_COLUMN = [LOG, *wider_calls.BY_COLUMN]
# These read rows as the ramp and the replay do, which they call.
READ_ELSEWHERE = {"path", "curves_of_replay", "shares_of_replay"}

# Warnings of whoever reads the input are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore")

# How scikit-learn counts the features of what is no table, as in all of its own estimators that
# leave the rest to others: PopularitySetSelector does not look at X.
FROM_SKLEARN = {("popularity", "X: dict"), ("popularity", "X: empty list")}

# Documented: an empty denominator is nan, with a warning.
UNDEFINED = {"rate", "path", "path_measured", "report_of_classifier"}


def values_like(good):
    """Hostile ones in the place of a good one."""
    if isinstance(good, pd.DataFrame):
        return hostile.tables(good)
    return hostile.columns(good) if isinstance(good, pd.Series | np.ndarray) else hostile.options()


def changes(call):
    """Each input in turn replaced by hostile ones; of some tables, each column too."""
    for name, good in call.inputs.items():
        if call.name in READ_ELSEWHERE and name in ("X", "y", "attributes", "sample_weight"):
            continue
        for label, value in values_like(good).items():
            yield f"{name}: {label}", {name: value}
        if not any(good is own for own in BY_COLUMN):
            continue
        for column in good:
            for label, value in hostile.columns(good[column]).items():
                try:
                    table = good.assign(**{column: value})
                except (TypeError, ValueError):  # no column for pandas either
                    continue
                yield f"{name}.{column}: {label}", {name: table}


@pytest.mark.parametrize("name", first(2, sorted(CALLS, key=lambda name: name not in SMOKE)))
def test_a_result_or_an_error_of_ours(name):
    call = CALLS[name]
    wrong, n_refused, n_taken = [], 0, 0
    for label, change in changes(call):
        if (name, label) in FROM_SKLEARN:
            continue
        try:
            result = call(**change)
        except Exception as error:
            n_refused += 1
            if reason := blame(error):
                wrong.append(f"{label}: {error!r} {reason}")
            continue
        n_taken += 1
        if result.dtype.kind == "f" and not np.isfinite(result).all():
            if name not in UNDEFINED:
                wrong.append(f"{label}: the result is {result.ravel()[:5]}")
    assert not wrong, "\n".join(wrong)
    assert n_refused > 10 and n_taken > 1, "the values are hostile, but not all of them"
