"""Replays and searches on any joblib backend, a cluster of processes among them, as in series."""

import joblib
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.policies import EpsilonGreedy
from tests.tiers import first

# Whose warning: dask.distributed's own, of its sockets and event loops as they close.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def log():
    return make_bandit_log(1000, n_arms=4, n_features=3, base_rate=0.3, random_state=0)


@pytest.fixture(scope="module")
def cluster():
    """Two processes of a local Dask cluster, which see what this process sees."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=first(1, ["threading", "loky", "dask"]))
def backend(request):
    """A joblib backend with two workers, entered."""
    if request.param == "dask":
        request.getfixturevalue("cluster")
    with joblib.parallel_config(request.param, n_jobs=2):
        yield request.param


def in_series(call):
    with joblib.parallel_config("sequential"):
        return call()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "policy",
    [GLMUCBPolicy(exploration="thompson", random_state=0), EpsilonGreedy(0.3)],
    ids=["compiled", "any policy"],
)
def test_replay(backend, policy, log):
    def run():
        return replay(
            policy, log.X, log.y, n_repeats=4, subsample=0.5, deployment_share=0.2, random_state=7
        )

    serial, parallel = in_series(run), run()
    assert serial.n_accepted > 200
    pd.testing.assert_frame_equal(serial.history, parallel.history)
    assert serial.interval() == parallel.interval()
