"""The benchmark of logs larger than memory still runs, and its log is what it says."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import stream
from skbandit.evaluation import off_policy_value, replay

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """25,000 events in three files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "PART", 1000)
        return list(stream.write_log(tmp_path_factory.mktemp("log"), 25_000))


@pytest.fixture(scope="module")
def log(files):
    blocks = list(stream.blocks(files))
    X = pd.concat([block.X for block in blocks], ignore_index=True)
    return X, pd.concat([block.y for block in blocks], ignore_index=True)


def test_the_log(files, log):
    X, y = log
    assert len(files) == 3
    assert X.dtypes.tolist() == [np.float32] * 4
    times = np.bincount(y["action"], minlength=stream.N_ARMS)
    assert abs(times - 1250).max() < 5.5 * 35  # false alarm: 20 arms, 4e-8 each
    assert (y["propensity"] == 1 / stream.N_ARMS).all()


# the benchmark judges a policy on a log whose first block it has learned
@pytest.mark.filterwarnings("ignore:the policy was fitted to this very log")
def test_tasks(files, log):
    X, y = log
    assert stream.scan(files)["mean reward"] == pytest.approx(y["reward"].mean())
    (first, *_) = stream.blocks(files)
    fitted = stream.policy().fit(first.X, first.y)
    expected = off_policy_value(fitted, X, y, rule="predict")
    assert stream.judge(files)["mean reward"] == pytest.approx(expected.mean_reward)
    walked, expected = stream.walk(files), replay(stream.policy(), X, y)
    assert walked["kept"] == expected.n_accepted
    assert walked["mean reward"] == pytest.approx(expected.mean_reward)


def test_a_row(files):
    row = stream.row("replay, learning", files)
    assert row["events/s"] > 0
    assert set(row) == {column.name for column in stream.COLUMNS} - {"task", "events"}
