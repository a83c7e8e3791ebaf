"""The Open Bandit sample: the published counts, and tables that read back as logs."""

import gzip

import numpy as np
import pandas as pd
import pytest

from skbandit.datasets import fetch_open_bandit, load_open_bandit
from skbandit.datasets._files import INCLUDED, load_bytes
from skbandit.datasets._public_logs import _LOGS
from skbandit.logs import read_log

LOGS = ["random", "bts"]
CLICKS = {"random": 46, "bts": 69}


@pytest.fixture(scope="module", params=LOGS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def log(name):
    return load_open_bandit(name)


@pytest.fixture(scope="module")
def lines(name):
    """The file's own lines, header left out, read without pandas."""
    content = load_bytes(_LOGS[name], **INCLUDED)
    return [line.split(",") for line in content.decode().splitlines()[1:]]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="'random' or 'bts', got 'uniform'"):
        fetch_open_bandit("uniform")
    with pytest.raises(ValueError, match=r"campaign must be 'men', .* got 'women'"):
        fetch_open_bandit(campaign="women")


def test_missing(tmp_path):
    with pytest.raises(OSError, match="SKBANDIT_DATA"):
        fetch_open_bandit(data_home=tmp_path, download_if_missing=False)


def test_another_file_is_refused(tmp_path):
    folder = tmp_path / "open_bandit" / "random"
    folder.mkdir(parents=True)
    (folder / "men.csv.gz").write_bytes(gzip.compress(b",timestamp,item_id\n"))
    with pytest.raises(OSError, match="is not the published file"):
        fetch_open_bandit(data_home=tmp_path)


def test_decisions(name, log, lines):
    assert len(log.y) == len(lines) == 10_000
    assert log.y["reward"].sum() == CLICKS[name]
    assert log.y["action"].tolist() == [int(line[2]) for line in lines]
    assert log.position.tolist() == [int(line[3]) for line in lines]
    assert log.y["reward"].tolist() == [int(line[4]) for line in lines]
    # older pandas parses floats to 14 digits or so
    np.testing.assert_allclose(log.y["propensity"], [float(line[5]) for line in lines], rtol=1e-12)
    stamps = [pd.Timestamp(line[1]) for line in lines]
    assert log.y["timestamp"].tolist() == stamps == sorted(stamps)


def test_contexts(log, lines):
    """Of each category the one column is set whose name has the level's first characters."""
    assert log.X.shape == (10_000, 26)
    assert set(np.unique(log.X)) == {0.0, 1.0}
    for row in (0, 17, 9_999):
        levels = lines[row][6:10]
        named = {f"user_feature_{j}_{level[:8]}" for j, level in enumerate(levels)}
        assert set(log.X.columns[log.X.iloc[row] == 1]) == named
        assert log.users.iloc[row].tolist() == levels
    assert (log.X.sum(axis=1) == 4).all()


def test_affinities(log, lines):
    assert list(log.affinity.columns) == list(log.item_context.index) == list(range(34))
    np.testing.assert_array_equal(log.affinity, [[float(v) for v in line[10:]] for line in lines])


def test_columns_are_those_of_the_other_log(log):
    for other in LOGS:
        X, y = load_open_bandit(other, return_X_y=True)
        assert list(X.columns) == list(log.X.columns)
        assert list(y.columns) == ["action", "reward", "propensity", "timestamp", "available"]


def test_the_random_log_is_uniform_and_the_other_is_not():
    random, bts = (load_open_bandit(name).y["propensity"] for name in LOGS)
    np.testing.assert_allclose(random, 1 / 34)
    assert bts.min() == pytest.approx(1.65e-4)
    # if items are drawn with probability p, then 1/p has mean 34
    se = (1 / bts).std() / 100
    assert abs((1 / bts).mean() - 34) < 5 * se


def test_it_is_a_log(log):
    read = read_log(log.y, len(log.X))
    assert sorted(read.arms.tolist()) == list(range(34))
    assert (read.pools.sizes == 34).all()
    assert len({id(pool) for pool in log.available}) == 1
    np.testing.assert_array_equal(read.probability, log.y["propensity"])
    assert np.ptp(read.timestamp) == pytest.approx(7 * 86_400, rel=0.01)
