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


def pytest_collection_modifyitems(items):
    """Let toy problems be dear to constrain; examples of the documentation warn of nothing."""
    mark = pytest.mark.filterwarnings("ignore::skbandit.exceptions.ConstrainedFitWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(mark, append=False)  # marks of a test itself come after it
