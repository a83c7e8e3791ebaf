"""What packages share: atomic fits, progress, threads, optional packages, row weights, dates."""

import logging
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.rates import recall
from skbandit.utils import _fitting
from skbandit.utils._fitting import atomic_fit, one_blas_thread, report_progress
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import check_row_weights, first_few
from tests.worlds import refuses

# === Fitting a copy: its whole state is committed, or none of it ================================


class Thing:
    def __init__(self, **held):
        vars(self).update(held)


def test_an_atomic_fit_that_ends_replaces_the_state():
    thing = Thing(kept=1, stale=2)
    with atomic_fit(thing) as draft:
        assert draft is not thing
        draft.new = 3
        del draft.stale
    assert vars(thing) == {"kept": 1, "new": 3}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_atomic_fit_that_fails_leaves_the_state(error):
    held = [1]
    thing = Thing(held=held)
    with pytest.raises(error), atomic_fit(thing) as draft:
        draft.held, draft.new = [2], 3
        raise error
    assert vars(thing) == {"held": held}
    assert thing.held is held


# === Lines of progress go to stdout, or to logging if that is configured to show them ===========


@pytest.fixture
def logger(monkeypatch):
    """A logger in place of the package's, without the handlers that pytest adds to that."""
    fresh = logging.Logger("skbandit", logging.INFO)
    monkeypatch.setattr(_fitting, "_LOGGER", fresh)
    return fresh


@pytest.mark.parametrize(
    ("level", "handled", "printed"),
    [
        (None, [], "50% done\n"),
        (logging.INFO, ["50% done"], ""),
        (logging.WARNING, [], "50% done\n"),
    ],
    ids=["no handler", "shows info", "hides info"],
)
def test_progress_is_printed_unless_a_handler_shows_it(logger, capsys, level, handled, printed):
    records = []
    if level is not None:
        handler = logging.Handler()
        handler.emit = records.append
        logger.addHandler(handler)
        logger.setLevel(level)
    report_progress("50% done")
    assert [record.getMessage() for record in records] == handled
    assert capsys.readouterr().out == printed


# === BLAS in one thread for a while =============================================================


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before


# === What a missing optional package says =======================================================


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part"])
def test_a_missing_package_is_named_with_its_cure(module):
    message = "This needs no_such_package: pip install no_such_package"
    refuses(message, import_optional, module, "This", error=ImportError)
    assert import_optional("json.decoder", "This").JSONDecoder is not None


def test_a_package_that_breaks_by_itself_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        import_optional("half_installed", "This")
    assert "pip install half_installed" not in str(caught.value)
    assert "half_installed" not in sys.modules


# === Text for error messages ====================================================================


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], ""),
        (["a", 1], "'a', 1"),
        (np.arange(3), "0, 1, 2"),
        (range(5), "0, 1, 2, 3, 4"),
        (iter(range(6)), "0, 1, 2, 3, 4, ..."),
    ],
)
def test_first_few_shows_five_values(values, text):
    assert first_few(values) == text


# === Row weights ================================================================================


@pytest.mark.parametrize(("values", "weights"), [(None, [1, 1, 1]), ([True, 0, 2], [1, 0, 2])])
def test_row_weights_are_floats_and_ones_by_default(values, weights):
    checked = check_row_weights(values, 3, "w")
    assert checked.dtype == np.float64
    assert checked.tolist() == weights


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "w has 2 entries for 3 rows"),
        ([[1.0], [2.0], [3.0]], "w must be 1D"),
        ([1.0, -2.0, 3.0], "w must not be negative: row 1 has -2"),
        ([1.0, np.nan, 3.0], "NaN"),
        ([1.0, np.inf, 3.0], "inf"),
        ([0.0, 0.0, 0.0], "w must not be zero for every row"),
    ],
)
def test_row_weights_are_refused(values, message):
    refuses(message, check_row_weights, values, 3, "w")


# === Times alone are no numbers: their unit is that of a file, and may be another in the next ====

LOGGED = pd.DataFrame({"action": ["a", "b"] * 50, "reward": [0.0, 1.0] * 50})
ESTIMATORS = [
    (GLMUCBPolicy(link="linear"), LOGGED),
    (RegressionSetSelector(), pd.DataFrame({"a": np.arange(100.0), "b": 50.0})),
    (SetSelectClassifier(LogisticRegression()), pd.DataFrame({"a": np.arange(100.0), "b": 50.0})),
    (ConstrainedRampClassifier(constraints=recall() >= 0.5), np.arange(100) // 50),
]


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("estimator, y", ESTIMATORS)
def test_times_as_features_are_refused(estimator, y, unit):
    times = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=100, freq="h", unit=unit)})
    waits = pd.DataFrame({"n": 1, "wait": times["at"] - times["at"][0]})
    model = clone(estimator)
    pl = pytest.importorskip("polars", reason="polars is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    others = [(pl.from_pandas(waits), "wait"), (pa.Table.from_pandas(times), "at")]
    others += [(times.assign(at=times["at"].dt.to_period("h")), "at")]
    for X, name in ((times, "at"), (waits, "wait"), (waits[["wait"]].to_numpy(), ""), *others):
        refuses(f"X has dates.*{name}.*: pass numbers", model.fit, X, y)
    days = pd.DataFrame({"at": (times["at"] - times["at"][0]) / pd.Timedelta("1D")})
    model.fit(days, y)
    refuses("X has dates in the column 'at'", model.predict, times)
