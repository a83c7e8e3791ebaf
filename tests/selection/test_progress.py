"""Rounds of a set selector tell when they are learned: in lines, and to callbacks."""

import numpy as np
import pytest

from skbandit import SetSelectClassifier
from skbandit.datasets import make_set_selection

X, Y, _ = make_set_selection(200, n_ads=5, random_state=0)


class Recorder:
    """Notes every call as (hook, task name, task id)."""

    def __init__(self):
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(("end", context.task_name, context.task_id))


def selector(**options):
    return SetSelectClassifier(n_select=2, cross_fit=2, random_state=0, **options)


def test_verbose_is_a_line_a_round(capsys):
    told = selector(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"[SetSelectClassifier] round {k} of 2" for k in (1, 2)]
    quiet = selector().fit(X, Y)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(told.predict(X), quiet.predict(X))


def test_rounds_of_ads_to_leave_out_are_told_as_well(capsys):
    fitted = SetSelectClassifier(
        n_select=3, reduction="filter_tree", cross_fit=2, random_state=0, verbose=1
    ).fit(X, Y)
    assert len(capsys.readouterr().out.splitlines()) == fitted.n_rounds_ == 2


def test_callbacks_get_a_task_a_round():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brought callbacks")
    recorder = Recorder()
    watched = selector().set_callbacks(recorder).fit(X, Y)
    rounds = [(hook, "round", k) for k in range(2) for hook in ("begin", "end")]
    assert recorder.calls == [
        ("setup", "fit", 0), ("begin", "fit", 0), *rounds, ("end", "fit", 0), ("teardown", "fit", 0)
    ]  # fmt: skip
    np.testing.assert_array_equal(watched.predict(X), selector().fit(X, Y).predict(X))
    recorder.calls.clear()
    with pytest.raises(ValueError, match="NaN"):
        watched.fit(np.full_like(X, np.nan), Y)
    assert recorder.calls == [("setup", "fit", 0), ("begin", "fit", 0), ("teardown", "fit", 0)]
    assert set(vars(watched)) - set(vars(selector().fit(X, Y))) == {"_skl_callbacks"}
