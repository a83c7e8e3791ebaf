"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
import sklearn

from skbandit.datasets import load_a9a, load_adult


@pytest.fixture
def routing():
    """Enable scikit-learn's metadata routing."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets; tests that need it are skipped without it."""
    folder = os.environ.get("SKBANDIT_DATA")
    if not folder:
        pytest.skip("real data: the environment variable SKBANDIT_DATA is not set")
    return folder


@pytest.fixture(scope="session")
def a9a(real_data):
    """The training rows of a9a; long fits of real data are for the nightly tests."""
    return load_a9a()


@pytest.fixture(scope="session")
def adult_frame():
    """The training rows of Adult, target included."""
    return load_adult().frame


COMPILED_ANEW = {
    "test_sklearn[GLMUCBPolicy()-check_estimators_pickle(readonly_memmap=True)]",
    "test_sklearn[SharedGLMPolicy()-check_estimators_pickle(readonly_memmap=True)]",
    "test_sklearn_never_yields[check_dataframe_column_names_consistency-SharedGLMPolicy()]",
}
"""Checks of scikit-learn with arrays that are read-only, for which kernels compile for seconds."""


def pytest_collection_modifyitems(items):
    """Let toy problems be dear to constrain; examples of the documentation warn of nothing."""
    mark = pytest.mark.filterwarnings("ignore::skbandit.exceptions.ConstrainedFitWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(mark, append=False)  # marks of a test itself come after it
        if item.name in COMPILED_ANEW:
            item.add_marker("thorough")
