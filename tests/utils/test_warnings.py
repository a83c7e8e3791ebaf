"""Warnings: at the user's line, also from workers of joblib, and once where a loop repeats them."""

import inspect
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import (
    GLMUCBPolicy,
    RampClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
    replay,
)
from skbandit.constrained import constraint_path
from skbandit.datasets import read_vw_dsjson
from skbandit.rates import error_rate, recall
from skbandit.utils._fitting import in_parallel
from skbandit.utils._validation import silenced, told_once, warn
from tests.policies import Always
from tests.worlds import uniform_log, warns

pytestmark = pytest.mark.filterwarnings("always")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))


def places(caught, message):
    """Files to which the warnings of a message are attributed."""
    return [one.filename for one in caught if message in str(one.message)]


def test_warnings_repeated_by_a_loop_are_told_once():
    with pytest.warns(UserWarning) as caught:
        with told_once():
            for name in "aab":
                warn(name, UserWarning)
            with silenced(UserWarning):
                warn("c", UserWarning)
            with silenced(FutureWarning):
                warn("a", UserWarning)
            warn("c", UserWarning)
        warn("a", UserWarning)
    assert [str(one.message) for one in caught] == list("abca")
    assert {one.filename for one in caught} == {__file__}


class Noisy(ClassifierMixin, BaseEstimator):
    """Warn in each fit by a text with another number."""

    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        warn(f"{X.sum():.3f} of a sum", UserWarning)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))


def test_fits_of_one_search_that_warn_alike_warn_once_and_after_ten():
    y = np.resize([0, 1], 60)
    with pytest.warns(UserWarning) as caught:
        GridSearchCV(Noisy(), {"a": [0, 1, 2, 3]}, cv=3).fit(X, y)
    folds = [str(warning.message).partition("sum")[2] for warning in caught]
    assert folds == ["", " (10 fits of this search so far.)", ""]  # the last is the final fit


class Repetitive(Noisy):
    """Warn twice in each fit, by the same text, in a loop whose warnings are given once."""

    def fit(self, X, y):
        with told_once():
            super().fit(X, y)
            return super().fit(X, y)


def test_a_warning_repeated_within_a_fit_counts_as_one_fit():
    with pytest.warns(UserWarning) as caught:
        cross_validate(Repetitive(), X, np.resize([0, 1], 60), cv=5)
    assert len(caught) == 1  # five fits, ten warnings


def test_each_search_warns_anew():
    for _ in range(2):
        with pytest.warns(UserWarning, match="of a sum") as caught:
            cross_validate(Noisy(), X, np.resize([0, 1], 60), cv=3)
        assert len(caught) == 1


def test_silence_is_of_its_category_and_ends():
    with warnings.catch_warnings(record=True) as caught, silenced(UserWarning):
        warn("a", UserWarning)
        warn("b", FutureWarning)
        warnings.warn("c", UserWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["b"]
    warns("a", warn, "a", UserWarning)


def test_a_path_warns_once():
    y = (X[:, 0] > 0).astype(int)
    model = RampClassifier(error_rate(), recall() >= 0.5, max_iter=1, solver="newton")
    with pytest.warns(ConvergenceWarning) as caught:
        constraint_path(model, X, y, bounds=[0.5, 0.6, 0.7])
    assert places(caught, "Training stopped after max_iter=1") == [__file__]
    z = pd.Series(y, index=range(60)[::-1])
    with pytest.warns(UserWarning) as caught:
        constraint_path(model, pd.DataFrame(X), z, bounds=[0.5, 0.6, 0.7])
    assert places(caught, "have the same row labels in different orders") == [__file__]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_of_the_threads_of_a_search_are_at_the_users_line(n_jobs):
    """It is the line of the main thread, which waits for them."""
    costs = -np.ones((60, 3))
    stock = np.ones((60, 3), dtype=bool)
    stock[::3, 0] = False
    with parallel_config("threading", n_jobs=n_jobs), pytest.warns(UserWarning) as caught:
        cross_validate(RegressionSetSelector(), X, costs, params={"available": stock}, cv=2)
    found = places(caught, "fit was passed which ads were available, but score was not")
    assert set(found) == {__file__}


def test_warnings_of_the_users_thread_are_at_the_users_line():
    with pytest.warns(UserWarning) as caught:
        thread = threading.Thread(target=partial(warn, "own", UserWarning))
        thread.start()
        thread.join()
    assert places(caught, "own") == [__file__]


def of_third_parties(k):
    warnings.warn("theirs", FutureWarning, stacklevel=1)
    warn(f"ours {k}", UserWarning)
    return k


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["sequential", "multiprocessing"])
def test_processes_return_their_warnings(backend):
    with parallel_config(backend, n_jobs=2), pytest.warns((UserWarning, FutureWarning)) as caught:
        done = in_parallel(partial(of_third_parties, k) for k in (1, 1, 2))
    assert done == [1, 1, 2]
    assert set(places(caught, "ours")) == set(places(caught, "theirs")) == {__file__}
    if backend == "multiprocessing":
        assert [len(places(caught, one)) for one in ("ours 1", "ours 2", "theirs")] == [1, 1, 1]


@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing"])
def test_warnings_of_runs_of_a_replay_are_at_the_users_line(backend):
    rows, y = uniform_log(200)
    with parallel_config(backend, n_jobs=2), pytest.warns(UserWarning) as caught:
        replay(Always("z"), rows, y, n_repeats=2, shuffle=True, random_state=0)
    found = places(caught, "chose arms that were not available")
    assert set(found) == {__file__}


@pytest.mark.thorough
def test_errors_of_filters_are_raised_in_processes():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with parallel_config("multiprocessing", n_jobs=2), pytest.raises(UserWarning, match="ours"):
            in_parallel(partial(of_third_parties, k) for k in (1, 1))


def warn_in_rates(folder):
    recall().value([0, 0], [0, 1])


def warn_in_datasets(folder):
    event = '{"_label_cost": -1, "_label_probability": 1, "_label_Action": 1, "a": [1], '
    event += '"p": [1], "c": {"x": 1.0, "_multi": [{"id": "a"}]}}'
    (folder / "log.json").write_text(f"{event}\nno event\n")
    list(read_vw_dsjson(folder / "log.json", malformed="skip"))


def warn_in_bandit(folder):
    GLMUCBPolicy().fit(X, ["a", "b"] * 30)


def warn_in_selection(folder):
    SetSelectClassifier().fit(X, pd.DataFrame({"a": X[:, 0] > 9, "b": X[:, 0] > 1.5}))


def warn_in_workers(folder):
    """Through a pipeline and joblib."""
    model = make_pipeline(StandardScaler(), GLMUCBPolicy())
    Parallel(1)(delayed(model.fit)(X, (X[:, 0] > 0).astype(int)) for _ in range(2))


@pytest.mark.parametrize(
    "call", [warn_in_rates, warn_in_datasets, warn_in_bandit, warn_in_selection, warn_in_workers]
)
def test_a_warning_points_at_the_line_of_the_user(call, tmp_path):
    with pytest.warns() as caught:
        call(tmp_path)
    lines, first = inspect.getsourcelines(call)
    for one in caught:
        assert one.filename == __file__
        assert first < one.lineno < first + len(lines)
