"""read_parquet_log: what was written comes back, in order, whatever the files look like."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from skbandit.datasets import make_bandit_log, read_parquet_log
from tests.tiers import first
from tests.worlds import refuses

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
    ("row_group_size", "block_size"),
    # one event per block is slow, and proves nothing more for larger groups
    first(4, [*product([250, 2500], [300, 10_000]), (250, 1)]),
)
def test_everything_comes_back(tmp_path, block_size, row_group_size):
    pq.write_table(table(unread="text"), tmp_path / "log.parquet", row_group_size=row_group_size)
    blocks = list(read_parquet_log(tmp_path / "log.parquet", FEATURES, block_size=block_size))
    sizes = [len(block.y) for block in blocks]
    assert max(sizes) == min(block_size, row_group_size)
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
    blocks = list(read_parquet_log(tmp_path / "log.parquet", [], names=names, block_size=2000))
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
        ({"features": ["x9"]}, ValueError, "no column 'x9' among"),
        ({"features": "x0"}, TypeError, "features must be a list of labels, got 'x0'"),
        ({"names": {"reward": "click"}}, ValueError, "no column 'click'"),
        ({"names": {"rewards": "x0"}}, ValueError, "names has the key 'rewards', expected some of"),
        ({"block_size": 0}, ValueError, "block_size must be an integer of at least 1, got 0"),
        ({"source": []}, ValueError, "source contains no file name"),
        ({"source": "/no/such/place"}, FileNotFoundError, "/no/such/place"),
        ({"source": ["/no/such/place"]}, FileNotFoundError, "/no/such/place"),
        ({"source": 3}, TypeError, "source must be a path, a list of paths or .*, got 3"),
        ({"source": [None]}, TypeError, r"source must be a path, .*, got \[None\]"),
        ({"source": ""}, ValueError, "source contains no file name"),
        ({"features": None}, TypeError, "features must be a list of labels, got None"),
        ({"features": ["x0", "x0"]}, ValueError, "features contains column 'x0' twice"),
        ({"features": [["x0"]]}, TypeError, r"features must be labels, found \['x0'\]"),
        ({"names": "reward"}, TypeError, "names must be a dict of column names, got 'reward'"),
        ({"names": {"reward": ["x0"]}}, TypeError, r"names must be labels, found \['x0'\]"),
        ({"block_size": 1.5}, ValueError, "block_size must be an integer of at least 1, got 1.5"),
        ({"block_size": None}, ValueError, "block_size must be an integer .*, got None"),
    ],
)
def test_refused_at_the_call(tmp_path, options, error, message):
    pq.write_table(table(), tmp_path / "log.parquet")
    told = {"source": tmp_path, "features": FEATURES} | options
    with pytest.raises(error, match=message):
        read_parquet_log(told.pop("source"), told.pop("features"), **told)


def test_a_folder_without_files(tmp_path):
    refuses("is a folder without files", read_parquet_log, tmp_path, FEATURES)


def test_no_parquet_at_all(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises((OSError, ValueError), match=r"log\.parquet"):
        list(read_parquet_log(tmp_path / "log.parquet", FEATURES))


def test_an_index_of_pandas_is_a_column(tmp_path):
    frame = pd.concat([LOG.X, LOG.y], axis=1)
    frame.set_index("x0").to_parquet(tmp_path / "log.parquet")
    X, _ = whole(read_parquet_log(tmp_path, FEATURES))
    np.testing.assert_array_equal(X, LOG.X)


def test_files_that_differ_are_not_half_read(tmp_path):
    """The second one's propensities would be left out, or be missing."""
    for lacking, told in ((1, "has no"), (0, "has a")):
        parts = [table(), table().drop_columns("propensity")]
        pq.write_table(parts[1 - lacking], tmp_path / "a.parquet")
        pq.write_table(parts[lacking], tmp_path / "b.parquet")
        blocks = read_parquet_log(tmp_path, FEATURES)
        message = rf"b\.parquet {told} column 'propensity', unlike .*a\.parquet"
        refuses(message, whole, blocks)


def test_the_place_of_an_error_is_named(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    text = pa.array(["news"] * 2500)
    spoilt = table().set_column(table().column_names.index("action"), "action", text)
    pq.write_table(spoilt, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet or a file after it, after row "):
        whole(read_parquet_log(tmp_path, FEATURES))


@pytest.mark.parametrize("pools", [["news", "sports"], [[["news"]], [["sports"]]], [1, 2]])
def test_what_was_available_is_lists_of_labels(tmp_path, pools):
    """A text is not taken for the list of its letters."""
    place = tmp_path / "log.parquet"
    pq.write_table(pa.table({"action": ["a", "b"], "reward": [0, 1], "available": pools}), place)
    refuses("column 'available' must hold lists of arm labels", read_parquet_log, place, [])


def test_two_columns_of_one_name_in_a_dataset():
    twice = ds.dataset(pa.table([[1], [0], [1]], ["action", "reward", "reward"]))
    refuses("two columns are named 'reward'", read_parquet_log, twice, [])


def test_texts_that_are_none(tmp_path):
    """Found in the block that they are in, not where a label is used first."""
    bad = pa.array([b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, [None, *bad.buffers()[1:]])
    pq.write_table(pa.table({"action": text, "reward": [1]}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"log\.parquet, after row 0: cannot be read: .*UTF8"):
        whole(read_parquet_log(tmp_path, []))
