"""Estimators that were pickled by an earlier version of the package load, and answer as then.

The promise is for one minor version of scikit-learn: it makes none of its own across versions.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

from tests.reliability.fitted import FITS
from tests.reliability.make_golden import GOLDEN, folder
from tests.reliability.public_calls import X
from tests.tiers import first

# scikit-learn's: about its own patch releases, and of the oldest about the newest scipy.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{warning.__module__}.{warning.__name__}")
    for warning in (InconsistentVersionWarning, DeprecationWarning)
]


def load(name):
    if not folder().exists():
        there = ", ".join(sorted(path.name for path in GOLDEN.iterdir()))
        pytest.skip(f"no pickles by {folder().name}, and others are not portable: {there}")
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("the pickles were written with numpy 2, which numpy 1 cannot read")
    try:
        return pickle.loads((folder() / f"{name}.pickle").read_bytes())
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        pytest.skip("pandas keeps texts, as of reports, in pyarrow where it is, and reads them so")


@pytest.mark.parametrize("name", first(2, FITS))
def test_answers_are_those_of_then(name):
    estimator = load(name)
    with np.load(folder() / f"{name}.npz", allow_pickle=True) as expected:
        assert set(expected) == set(FITS[name].answers)
        for method, answers in FITS[name].asked(estimator).items():
            if answers.dtype.kind == "f":
                np.testing.assert_allclose(answers, expected[method], rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_array_equal(answers, expected[method])


@pytest.mark.parametrize("name", first(2, FITS))
def test_they_can_be_used_on(name):
    """Cloned, shown, fitted again and pickled again; a policy goes on learning."""
    estimator, fit = load(name), FITS[name]
    repr(estimator)
    parameters = clone(estimator).get_params(deep=False)
    assert parameters.keys() == fit.estimator.get_params(deep=False).keys()
    pickle.loads(pickle.dumps(estimator))
    if hasattr(estimator, "partial_fit"):
        known = estimator.n_updates_.sum()
        estimator.partial_fit(X, fit.y)
        assert estimator.n_updates_.sum() == known + 60
    fit.asked(fit(estimator))


def test_there_are_files_for_the_oldest_and_the_newest():
    made = {path.name: {file.stem for file in path.iterdir()} for path in GOLDEN.iterdir()}
    assert len(made) >= 2
    assert all(names == set(FITS) for names in made.values())
    assert sum(file.stat().st_size for file in GOLDEN.rglob("*.*")) < 500_000
