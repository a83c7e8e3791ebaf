"""Threads and processes: what is shared answers the same, and what is fitted at once is equal."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from tests.reliability.fitted import FITS
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
