"""Threads and processes: what is shared answers the same, and what is fitted at once is equal."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    ReplayScorer,
    SetSelectClassifier,
)
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplaySplit, replay
from skbandit.rates import positive_rate
from tests.reliability.fitted import FITS, NAMED_LOG
from tests.reliability.public_calls import COSTS, LABEL, X
from tests.tiers import first

pytestmark = pytest.mark.filterwarnings("ignore")


def assert_equal_answers(one, other):
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("name", first(1, sorted(FITS, key="policy".__ne__)))
def test_threads_that_ask_while_another_fits_again(name):
    """They get the answers of one fit or of the other: here both are the same."""
    fit = FITS[name]
    estimator = fit(clone(fit.estimator))
    expected = fit.asked(copy.deepcopy(estimator))
    with ThreadPoolExecutor(3) as pool:
        refits = [pool.submit(fit, estimator) for _ in range(3)]
        for answers in pool.map(lambda _: fit.asked(estimator), range(40)):
            assert_equal_answers(answers, expected)
        for refit in refits:
            refit.result()


@pytest.mark.parametrize("name", first(1, sorted(FITS, key="policy".__ne__)))
def test_fits_in_threads_equal_one_by_one(name):
    fit = FITS[name]
    expected = fit.asked(fit(clone(fit.estimator)))
    with ThreadPoolExecutor(3) as pool:
        for estimator in pool.map(fit, [clone(fit.estimator) for _ in range(6)]):
            assert_equal_answers(fit.asked(estimator), expected)


@pytest.mark.thorough
def test_processes_give_what_this_one_gives():
    fits = list(FITS.values())
    done = Parallel(n_jobs=2)(delayed(fit)(clone(fit.estimator)) for fit in fits)
    for fit, estimator in zip(fits, done, strict=True):
        assert_equal_answers(fit.asked(estimator), fit.asked(fit(clone(fit.estimator))))


SEARCHES = {
    "ramp": (
        ConstrainedRampClassifier(constraints=positive_rate() <= 0.9, solver="newton"),
        {"alpha": [1e-3, 1e-1]},
        {"X": X, "y": LABEL},
        {"cv": 2},
    ),
    "regression": (RegressionSetSelector(), {"n_select": [1, 2]}, {"X": X, "y": COSTS}, {"cv": 2}),
    "set_select": (
        SetSelectClassifier(random_state=0, cross_fit=2),
        {"reduction": ["filter_tree", "regression"]},
        {"X": X, "y": COSTS},
        {"cv": 2},
    ),
    "replay": (
        GLMUCBPolicy(random_state=0),
        {"alpha": [0.3, 3.0]},
        {},
        {"cv": ReplaySplit(2), "scoring": ReplayScorer(random_state=0)},
    ),
}


@pytest.fixture(scope="module")
def log():
    return make_bandit_log(3000, n_arms=4, base_rate=0.3, random_state=0)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", first(1, ["threading", "loky"]))
@pytest.mark.parametrize("name", first(1, SEARCHES))
def test_searches(name, backend, log):
    estimator, grid, data, options = SEARCHES[name]
    data = data or {"X": log.X, "y": log.y}
    serial = GridSearchCV(estimator, grid, **options).fit(**data)
    with parallel_config(backend):
        parallel = GridSearchCV(estimator, grid, n_jobs=2, **options).fit(**data)
    scores = [column for column in serial.cv_results_ if "score" in column and "time" not in column]
    pd.testing.assert_frame_equal(
        pd.DataFrame(parallel.cv_results_)[scores], pd.DataFrame(serial.cv_results_)[scores]
    )
    assert parallel.best_params_ == serial.best_params_


@pytest.mark.parametrize("backend", first(1, ["threading", "loky"]))
def test_repeated_replay(backend, log):
    options = {"n_repeats": 4, "subsample": 0.5, "random_state": 0}
    serial = replay(GLMUCBPolicy(), log.X, log.y, **options)
    with parallel_config(backend, n_jobs=2):
        parallel = replay(GLMUCBPolicy(), log.X, log.y, **options)
    pd.testing.assert_frame_equal(parallel.runs, serial.runs)


@pytest.mark.thorough
def test_select_in_threads_makes_choices_of_its_own():
    """However choices of several threads interleave, each batch has random numbers of its own."""
    policy = GLMUCBPolicy(exploration="thompson", random_state=0).fit(X, NAMED_LOG)
    one_by_one = copy.deepcopy(policy)
    expected = [one_by_one.select(X).tolist() for _ in range(400)]
    coef = policy.coef_
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            chosen = [*pool.map(lambda _: policy.select(X).tolist(), range(400))]
    finally:
        sys.setswitchinterval(interval)
    assert sorted(chosen) == sorted(expected)
    np.testing.assert_array_equal(policy.coef_, coef)
    pickle.loads(pickle.dumps(policy)).partial_fit(X, NAMED_LOG)
