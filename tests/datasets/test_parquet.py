"""read_parquet_log: what was written comes back, in order, whatever the files look like."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from skbandit.datasets import make_bandit_log, read_parquet_log

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

LOG = make_bandit_log(2500, n_arms=6, n_features=3, n_available=4, random_state=0)
FEATURES = list(LOG.X.columns)


def table(log=LOG, **more):
    frame = pd.concat([log.X.astype(np.float32), log.y], axis=1).assign(**more)
    return pa.Table.from_pandas(frame, preserve_index=False)


def whole(blocks):
    blocks = list(blocks)
    X = pd.concat([block.X for block in blocks], ignore_index=True)
    return X, pd.concat([block.y for block in blocks], ignore_index=True)


@pytest.mark.parametrize(
    ("row_group_size", "chunk_size"),
    # a chunk an event is slow, and says no more of larger groups
    [(250, 1), *product([250, 1000, 2500], [300, 999, 10_000])],
)
def test_everything_comes_back(tmp_path, chunk_size, row_group_size):
    pq.write_table(table(unread="text"), tmp_path / "log.parquet", row_group_size=row_group_size)
    blocks = list(read_parquet_log(tmp_path / "log.parquet", FEATURES, chunk_size=chunk_size))
    sizes = [len(block.y) for block in blocks]
    assert max(sizes) == min(chunk_size, row_group_size)
    X, y = whole(blocks)
    assert X.dtypes.tolist() == [np.float32] * 3
    np.testing.assert_array_equal(X, LOG.X.astype(np.float32))
    expected = LOG.y[["action", "reward", "propensity", "timestamp", "available"]]
    pd.testing.assert_frame_equal(y, expected.reset_index(drop=True))
    assert all(block.y.index.equals(pd.RangeIndex(len(block.y))) for block in blocks)


def test_equal_pools_are_one_object(tmp_path):
    y = LOG.y.assign(available=[("a", "b", "c"), ("b", "c")] * 1250)
    y["action"] = ["b", "c"] * 1250
    log = pd.concat([LOG.X, y], axis=1)
    log.to_parquet(tmp_path / "log.parquet")
    (block,) = read_parquet_log(tmp_path / "log.parquet", FEATURES)
    assert block.y["available"].tolist() == y["available"].tolist()
    assert len({id(pool) for pool in block.y["available"]}) == 2
    assert block.y["action"].tolist() == y["action"].tolist()


def test_files_of_a_folder_and_a_list(tmp_path):
    paths = []
    for number, start in enumerate(range(0, 2500, 1000)):
        paths.append(tmp_path / f"part-{number}.parquet")
        pq.write_table(table()[start : start + 1000], paths[-1])
    expected = whole(read_parquet_log(paths, FEATURES))[1]
    assert expected["timestamp"].tolist() == LOG.y["timestamp"].tolist()
    for source in (tmp_path, str(tmp_path), iter(map(str, paths))):
        pd.testing.assert_frame_equal(whole(read_parquet_log(source, FEATURES))[1], expected)
    backwards = whole(read_parquet_log(paths[::-1], FEATURES))[1]
    assert backwards["timestamp"].tolist()[:500] == LOG.y["timestamp"].tolist()[2000:]


def test_part_of_a_dataset(tmp_path):
    pq.write_table(table(day=np.arange(2500) // 500), tmp_path / "log.parquet")
    monday = ds.dataset(tmp_path).filter(ds.field("day") == 2)
    _, y = whole(read_parquet_log(monday, FEATURES))
    assert y["timestamp"].tolist() == LOG.y["timestamp"].tolist()[1000:1500]


def test_other_names_and_no_features(tmp_path):
    renamed = table().rename_columns(
        [{"action": "item", "propensity": "p"}.get(name, name) for name in table().column_names]
    )
    pq.write_table(renamed, tmp_path / "log.parquet")
    names = {"action": "item", "propensity": "p"}
    blocks = list(read_parquet_log(tmp_path / "log.parquet", [], names=names, chunk_size=2000))
    X, y = whole(blocks)
    assert X.shape == (2500, 0)
    assert y["action"].tolist() == LOG.y["action"].tolist()
    assert y["propensity"].tolist() == LOG.y["propensity"].tolist()


def test_times_and_dictionaries(tmp_path):
    frame = pd.concat([LOG.X, LOG.y.drop(columns="available")], axis=1)
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="s")
    frame["action"] = frame["action"].map("arm {}".format).astype("category")
    frame.to_parquet(tmp_path / "log.parquet")
    _, y = whole(read_parquet_log(tmp_path / "log.parquet", FEATURES))
    assert y["action"].tolist() == frame["action"].tolist()
    assert y["timestamp"].tolist() == frame["timestamp"].tolist()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"features": ["x9"]}, ValueError, "no column 'x9': there are"),
        ({"features": "x0"}, TypeError, "must be a list of names, got 'x0'"),
        ({"names": {"reward": "click"}}, ValueError, "no column 'click'"),
        ({"names": {"rewards": "x0"}}, ValueError, "names has 'rewards', expected some of"),
        ({"chunk_size": 0}, ValueError, "chunk_size must be at least 1, got 0"),
        ({"source": []}, ValueError, "source names no file"),
        ({"source": "/no/such/place"}, FileNotFoundError, "/no/such/place"),
    ],
)
def test_refused_at_the_call(tmp_path, options, error, message):
    pq.write_table(table(), tmp_path / "log.parquet")
    told = {"source": tmp_path, "features": FEATURES} | options
    with pytest.raises(error, match=message):
        read_parquet_log(told.pop("source"), told.pop("features"), **told)


def test_no_parquet_at_all(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises((OSError, ValueError), match=r"log\.parquet"):
        list(read_parquet_log(tmp_path / "log.parquet", FEATURES))
