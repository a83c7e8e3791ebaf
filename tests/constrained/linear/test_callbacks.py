"""Progress through scikit-learn's callbacks: a task a fit, a task an MM step."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier, constraint_path
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import negative_rate, positive_rate, recall
from tests.people import X, Y

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brought callbacks")

GOAL = recall() >= 0.9
IMPOSSIBLE = [positive_rate() >= 0.7, negative_rate() >= 0.7]
QUICK = {"solver": "newton", "alpha": 0.05}
TRANSIENT = {"_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx"}


class Recorder:
    """Notes every call as (hook, task name, task id); one hook may be told to fail."""

    def __init__(self, fail_at=None):
        self.calls, self.seen, self.fail_at = [], [], fail_at

    def _note(self, hook, context, **seen):
        self.calls.append((hook, context.task_name, context.task_id))
        self.seen.append(seen)
        if self.fail_at == (hook, context.task_name, context.task_id):
            raise RuntimeError("the callback failed")

    def setup(self, estimator, context):
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self._note("begin", context, estimator=estimator, X=X, y=y, metadata=metadata)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self._note("end", context, estimator=estimator, fitted=fitted_estimator)


class Everywhere(Recorder):
    """Reaches into the estimators of searches and pipelines."""

    max_propagation_depth = None


def task(name, number):
    return [("begin", name, number), ("end", name, number)]


def test_one_task_a_step_within_one_a_fit():
    recorder = Recorder()
    clf = RampClassifier(constraints=GOAL, threshold=False)
    assert clf.set_callbacks(recorder) is clf
    clf.fit(X, Y)
    steps = [call for k in range(clf.n_iter_) for call in task("MM step", k)]
    fit = [("setup", "fit", 0), ("begin", "fit", 0), *steps, ("end", "fit", 0)]
    assert recorder.calls == [*fit, ("teardown", "fit", 0)]


@pytest.mark.thorough
def test_callbacks_do_not_change_the_fit(capsys):
    plain = ConstrainedRampClassifier(constraints=GOAL).fit(X, Y)
    watched = ConstrainedRampClassifier(constraints=GOAL).set_callbacks(Recorder()).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, watched.coef_)
    np.testing.assert_array_equal(plain.intercept_, watched.intercept_)
    assert set(vars(watched)) - set(vars(plain)) == {"_skl_callbacks"}
    assert capsys.readouterr().out == ""


@pytest.mark.thorough
def test_what_callbacks_see():
    recorder, weight = Recorder(), np.linspace(1, 2, len(Y))
    clf = ConstrainedRampClassifier(constraints=GOAL).set_callbacks(recorder)
    clf.fit(X, Y, sample_weight=weight)
    begin = recorder.seen[recorder.calls.index(("begin", "fit", 0))]
    assert begin["estimator"] is clf and begin["X"] is X and begin["y"] is Y
    assert list(begin["metadata"]) == ["sample_weight"]
    assert begin["metadata"]["sample_weight"] is weight
    end = recorder.seen[recorder.calls.index(("end", "fit", 0))]
    np.testing.assert_array_equal(end["fitted"].predict(X), clf.predict(X))
    recorder.seen.clear()
    clf.fit(X, Y)
    assert recorder.seen[1]["metadata"] == {}


@pytest.mark.thorough
@pytest.mark.parametrize("copied", [clone, lambda clf: pickle.loads(pickle.dumps(clf))])
def test_clone_and_pickle_work_before_and_after(copied):
    clf = ConstrainedRampClassifier(constraints=GOAL).set_callbacks(Recorder())
    again = copied(clf).fit(X, Y)
    assert not TRANSIENT & set(vars(again))
    final = copied(again.set_callbacks())
    np.testing.assert_array_equal(final.fit(X, Y).coef_, again.coef_)


@pytest.mark.parametrize(
    ("problem", "error"),
    [("impossible", InfeasibleConstraintsError), ("data", ValueError), ("callback", RuntimeError)],
)
def test_a_failed_fit_tears_down_and_leaves_nothing(problem, error):
    recorder = Recorder(("end", "MM step", 0) if problem == "callback" else None)
    goals = IMPOSSIBLE if problem == "impossible" else GOAL
    clf = RampClassifier(constraints=goals, **QUICK).set_callbacks(recorder)
    before = set(vars(clf))
    with pytest.raises(error) as caught:
        clf.fit(np.full_like(X, np.nan) if problem == "data" else X, Y)
    assert recorder.calls[-1] == ("teardown", "fit", 0)
    assert ("end", "fit", 0) not in recorder.calls
    assert set(vars(clf)) == before
    if problem == "impossible":
        closest = caught.value.closest_
        assert not TRANSIENT & set(vars(closest))
        recorder.calls.clear()
        closest.set_params(constraints=GOAL).fit(X, Y)
        assert recorder.calls[0] == ("setup", "fit", 0)


@pytest.mark.thorough
def test_every_fit_of_a_path_is_told_of():
    recorder = Recorder()
    clf = RampClassifier(constraints=IMPOSSIBLE, **QUICK)
    path = constraint_path(clf.set_callbacks(recorder), X, Y, bounds=[0.9, 0.2, 0.1], constraint=1)
    assert path.table["feasible"].tolist() == [False, True, True]
    assert recorder.calls.count(("setup", "fit", 0)) == 3
    assert recorder.calls.count(("teardown", "fit", 0)) == 3
    assert recorder.calls.count(("end", "fit", 0)) == 2


@pytest.mark.thorough
def test_within_a_search_steps_belong_to_the_fits():
    recorder = Everywhere()
    search = GridSearchCV(ConstrainedRampClassifier(constraints=GOAL), {"alpha": [1e-3, 0.1]}, cv=2)
    search.set_callbacks(recorder).fit(X, Y)
    begun = [call for call in recorder.calls if call[0] == "begin"]
    assert sum(name == "fit" for _, name, _ in begun) == 1 + 4 + 1  # search, folds, refit
    assert sum(name == "MM step" for _, name, _ in begun) >= 6
    assert [call for call in recorder.calls if call[0] == "setup"] == [("setup", "fit", 0)]
    assert not {"_skl_callbacks", *TRANSIENT} & set(vars(search.best_estimator_))


def test_scikit_learns_own_callbacks(capsys):
    pytest.importorskip("rich", reason="rich draws the bars")
    clf = ConstrainedRampClassifier(constraints=GOAL)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    clf.set_callbacks(callback.ProgressBar(), monitor).fit(X, Y)
    assert "ConstrainedRampClassifier - fit" in capsys.readouterr().out
    assert [row["accuracy"] for row in monitor.get_logs().data] == [clf.score(X, Y)]
