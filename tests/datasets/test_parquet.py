"""read_parquet_log: what was written comes back, in order, whatever the files look like."""

import warnings
from datetime import datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skbandit.datasets import make_bandit_log, read_parquet_log
from tests.tiers import first
from tests.worlds import refuses, warns

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
def test_a_written_log_comes_back_in_blocks(tmp_path, block_size, row_group_size):
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


@pytest.mark.parametrize("name", ["id", "event"])
def test_ids_are_read(tmp_path, name):
    """A feature of this name is no id."""
    ids = np.arange(2500)
    for k, shift in enumerate((0, 2000)):
        part = table(**{name: ids + shift})
        pq.write_table(part, tmp_path / f"{k}.parquet")
    names = None if name == "id" else {"id": name}
    read = lambda features: read_parquet_log(tmp_path, features, names=names)  # noqa: E731
    assert whole(read(FEATURES))[1]["id"].tolist() == [*ids, *(ids + 2000)]
    assert "id" not in whole(read([*FEATURES, name]))[1]


def test_equal_pools_are_one_object(tmp_path):
    y = LOG.y.assign(available=[("a", "b", "c"), ("b", "c")] * 1250)
    y["action"] = ["b", "c"] * 1250
    log = pd.concat([LOG.X, y], axis=1)
    log.to_parquet(tmp_path / "log.parquet")
    (block,) = read_parquet_log(tmp_path / "log.parquet", FEATURES)
    assert block.y["available"].tolist() == y["available"].tolist()
    assert len({id(pool) for pool in block.y["available"]}) == 2
    assert block.y["action"].tolist() == y["action"].tolist()


def test_files_of_a_folder_or_a_list_are_read_in_order(tmp_path):
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


def test_a_filtered_dataset_is_read_in_part(tmp_path):
    pq.write_table(table(day=np.arange(2500) // 500), tmp_path / "log.parquet")
    monday = ds.dataset(tmp_path).filter(ds.field("day") == 2)
    _, y = whole(read_parquet_log(monday, FEATURES))
    assert y["timestamp"].tolist() == LOG.y["timestamp"].tolist()[1000:1500]


def test_columns_may_have_other_names_and_be_no_features(tmp_path):
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
        ({"source": 3}, TypeError, "source must be a path, a list of paths or .*, got 3"),
        ({"source": ""}, ValueError, "source contains no file name"),
        ({"features": ["x0", "x0"]}, ValueError, "features contains column 'x0' twice"),
        ({"names": "reward"}, TypeError, "names must be a dict of column names, got 'reward'"),
        ({"names": {"reward": ["x0"]}}, TypeError, r"names must be labels, found \['x0'\]"),
        ({"block_size": None}, ValueError, "block_size must be an integer .*, got None"),
    ],
)
def test_read_parquet_log_refuses(tmp_path, options, error, message):
    pq.write_table(table(), tmp_path / "log.parquet")
    told = {"source": tmp_path, "features": FEATURES} | options
    refuses(message, read_parquet_log, error=error, **told)


def test_files_that_differ_are_not_half_read(tmp_path):
    """The second one's propensities would be left out, or be missing."""
    for lacking, told in ((1, "has no"), (0, "has a")):
        parts = [table(), table().drop_columns("propensity")]
        pq.write_table(parts[1 - lacking], tmp_path / "a.parquet")
        pq.write_table(parts[lacking], tmp_path / "b.parquet")
        blocks = read_parquet_log(tmp_path, FEATURES)
        message = rf"b\.parquet {told} column 'propensity', unlike .*a\.parquet"
        refuses(message, whole, blocks)


def write(folder, **columns):
    """Files of the given arrays, one for each value of the columns."""
    for number in range(len(next(iter(columns.values())))):
        part = pa.table({name: arrays[number] for name, arrays in columns.items()})
        pq.write_table(part, folder / f"{number}.parquet")
    return folder


ACTIONS = [[0, 1], [1, 0]]
DAY = datetime(2026, 1, 2, 6)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([pa.array([True, False]), pa.array([9.5, 0.0])], [1, 0, 9.5, 0]),
        ([pa.array([1, 2], pa.int8()), pa.array([300, 4])], [1, 2, 300, 4]),
        ([pa.array([0.5, 1.5], pa.float32()), pa.array([2**24 + 1, 4])], [0.5, 1.5, 2**24 + 1, 4]),
        (
            [pa.array([Decimal("1.25"), Decimal("2.50")]), pa.array([1.004, 3.0])],
            [1.25, 2.5, 1.004, 3],
        ),
    ],
)
def test_each_file_has_its_own_types(tmp_path, parts, expected):
    """The type of the first file is not forced on the others."""
    folder = write(tmp_path, action=ACTIONS, reward=parts, x=parts)
    X, y = whole(read_parquet_log(folder, ["x"]))
    assert y["reward"].astype(float).tolist() == expected
    assert X["x"].astype(float).tolist() == expected


@pytest.mark.parametrize("empty", [pa.nulls(2), pa.nulls(2).cast(pa.float64())])
@pytest.mark.parametrize("empty_first", [True, False])
@pytest.mark.parametrize(
    "values", [["a", "b"], [1, 2], [DAY, DAY], pa.array(["a", "b"]).dictionary_encode()]
)
def test_files_without_a_value_take_the_type_of_the_others(tmp_path, empty, empty_first, values):
    parts = [empty, pa.array(values)] if empty_first else [pa.array(values), empty]
    X, _ = whole(read_parquet_log(write(tmp_path, action=ACTIONS, reward=ACTIONS, x=parts), ["x"]))
    missing = [True, True, False, False] if empty_first else [False, False, True, True]
    assert X["x"].isna().tolist() == missing
    assert X["x"].dropna().tolist() == pa.array(values).to_pylist()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([["01", "02"], [1, 2]], r"numbers \(int64\), and text \(string\) in .*: convert it"),
        ([pa.array([DAY, DAY], pa.date32()), [DAY, DAY]], "times without a time zone .* and dates"),
        (
            [[DAY, DAY], pa.array([DAY, DAY], pa.timestamp("us", "UTC"))],
            "times with a time zone .* and times without a time zone .*, as by dt.tz_localize",
        ),
        ([[[1], [2]], [["a"], ["b"]]], "lists of text .* and lists of numbers"),
    ],
)
def test_files_of_other_kinds_are_refused(tmp_path, parts, message):
    folder = write(tmp_path, action=ACTIONS, reward=ACTIONS, x=parts)
    refuses(rf"1\.parquet: column 'x' holds {message}", whole, read_parquet_log(folder, ["x"]))


def test_lists_after_a_file_without_any(tmp_path):
    folder = write(tmp_path, action=ACTIONS, reward=ACTIONS, available=[pa.nulls(2), ["ab", "c"]])
    refuses("column 'available' must hold lists of arm labels", whole, read_parquet_log(folder, []))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.array([True, False]), pa.array([9.5, 0.0])),
        (pa.array([1.5, 0.0], pa.float32()), pa.array([2**24 + 1.0, 0.0])),
        (pa.array([Decimal("1.25"), Decimal("2.50")]), pa.array([1.004, 3.0])),
        (pa.array([DAY, DAY], pa.date32()), pa.array([DAY, DAY])),
    ],
)
def test_a_dataset_casts_nothing_in_silence(tmp_path, first, later):
    """Unless its schema was chosen."""
    folder = write(tmp_path, action=ACTIONS, reward=ACTIONS, x=[first, later])
    message = r"1\.parquet: column 'x' is of type .*, the type in its first file: pass the paths"
    for dataset in (ds.dataset(folder), ds.dataset(folder).filter(ds.field("action") >= 0)):
        refuses(message, whole, read_parquet_log(dataset, ["x"]))
    schema = ds.dataset(folder).schema
    chosen = schema.set(schema.get_field_index("x"), pa.field("x", later.type))
    X, _ = whole(read_parquet_log(ds.dataset(folder, schema=chosen), ["x"]))
    assert X["x"].tolist()[2:] == later.to_pylist()


def test_folders_named_key_and_value_are_columns(tmp_path):
    frame = pd.DataFrame({"action": [0, 1, 0, 1], "reward": [1, 2, 3, 4]})
    frame = frame.assign(zip=["01", "1", "a b", None], day=[10, 9, 10, 9])
    frame.to_parquet(tmp_path, partition_cols=["zip", "day"])
    for source in (tmp_path, f"{tmp_path}/zip=*/day=*/*.parquet", f"{tmp_path}/**", tmp_path / "*"):
        X, y = whole(read_parquet_log(source, ["zip", "day"]))
        assert dict(zip(y["reward"], X["day"], strict=True)) == {1: 10, 2: 9, 3: 10, 4: 9}
        places = dict(
            zip(y["reward"], X["zip"].astype(object).where(X["zip"].notna(), None), strict=True)
        )
        assert places == {1: "01", 2: "1", 3: "a b", 4: None}


@pytest.mark.parametrize(
    ("folder", "values", "told"),
    [("7", [1, 2], "1"), ("07", ["7", "07"], "'7'"), ("a", [None, "a"], None)],
)
def test_files_that_contradict_their_folder_are_warned_of(tmp_path, folder, values, told):
    """What the files hold is read."""
    (tmp_path / f"x={folder}").mkdir()
    write(tmp_path / f"x={folder}", action=ACTIONS[:1], reward=ACTIONS[:1], x=[values])
    message = f"column 'x' holds {told} where the folder is x={folder}: the file's"
    X, _ = warns(message, lambda: whole(read_parquet_log(tmp_path, ["x"])))
    assert X["x"].astype(object).where(X["x"].notna(), None).tolist() == values


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        ("07", ["07", "07"]),
        ("7", pa.array(["7", "7"]).dictionary_encode()),
        ("7", [Decimal("7.00"), Decimal("7.00")]),
        ("True", [True, True]),
        ("2026-01-02", pa.array([DAY, DAY], pa.date32())),
        ("2026-01-02 06%3A00%3A00", [DAY, DAY]),
        ("__HIVE_DEFAULT_PARTITION__", pa.nulls(2, pa.string())),
    ],
)
def test_a_folder_may_say_what_its_files_hold(tmp_path, folder, values):
    """As Spark and Dask can write both."""
    (tmp_path / f"x={folder}").mkdir()
    write(tmp_path / f"x={folder}", action=ACTIONS[:1], reward=ACTIONS[:1], x=[values])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, _ = whole(read_parquet_log(tmp_path, ["x"]))
    assert X["x"].isna().all() or X["x"].nunique() == 1


def test_features_of_unlike_time_zones_are_refused(tmp_path):
    """The hour of an instant is that of its file's zone; times of events are instants."""
    zones = [pa.array([DAY, DAY], pa.timestamp("us", zone)) for zone in ("UTC", "Europe/Berlin")]
    folder = write(tmp_path, action=ACTIONS, reward=ACTIONS, timestamp=zones, t=zones)
    refuses(
        "feature 't' holds times of the zone Europe/Berlin, and of UTC in .*, as by dt.tz_convert",
        lambda: whole(read_parquet_log(folder, ["t"])),
    )
    assert whole(read_parquet_log(folder, []))[1]["timestamp"].nunique() == 1


def test_patterns_name_files(tmp_path):
    write(tmp_path, action=[[0], [1], [2]], reward=[[0], [0], [0]])
    (tmp_path / "_SUCCESS").touch()
    for pattern, expected in (("*", [0, 1, 2]), ("[12].parquet", [1, 2]), ("?.parquet", [0, 1, 2])):
        _, y = whole(read_parquet_log(str(tmp_path / pattern), []))
        assert y["action"].tolist() == expected
    with pytest.raises(FileNotFoundError, match=r"source: no such file: nothing matches .*/x\*"):
        read_parquet_log(str(tmp_path / "x*"), [])
    (tmp_path / "0.parquet").rename(tmp_path / "x[0].parquet")  # a name is no pattern
    assert whole(read_parquet_log(tmp_path / "x[0].parquet", []))[1]["action"].tolist() == [0]


@pytest.mark.parametrize("pools", [["news", "sports"], [[["news"]], [["sports"]]], [1, 2]])
def test_available_must_hold_lists_of_labels(tmp_path, pools):
    """A text is not taken for the list of its letters."""
    place = tmp_path / "log.parquet"
    pq.write_table(pa.table({"action": ["a", "b"], "reward": [0, 1], "available": pools}), place)
    refuses("column 'available' must hold lists of arm labels", read_parquet_log, place, [])


def test_two_columns_of_one_name_are_refused():
    twice = ds.dataset(pa.table([[1], [0], [1]], ["action", "reward", "reward"]))
    refuses("two columns are named 'reward'", read_parquet_log, twice, [])


def test_texts_that_cannot_be_decoded_are_refused(tmp_path):
    """Found in the block that they are in, not where a label is used first."""
    bad = pa.array([b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, [None, *bad.buffers()[1:]])
    pq.write_table(pa.table({"action": text, "reward": [1]}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"log\.parquet, after row 0: cannot be read: .*UTF8"):
        whole(read_parquet_log(tmp_path, []))


def test_a_file_that_is_named_twice_would_count_twice(tmp_path):
    write(tmp_path, action=[[0], [1]], reward=[[0], [0]])
    file, link = tmp_path / "0.parquet", tmp_path.parent / f"{tmp_path.name}_link"
    link.symlink_to(file)
    for source in ([file, file], [tmp_path, file], [link, tmp_path]):
        refuses("0.parquet' 2 times: name it once", read_parquet_log, source, [])


@pytest.mark.thorough
def test_a_file_is_never_in_memory_as_a_whole(tmp_path):
    n, n_groups = 1_600_000, 40
    values = np.random.default_rng(0).normal(size=(n, 4))
    frame = pd.DataFrame(values, columns=["x0", "x1", "x2", "reward"]).assign(action=0)
    path = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=n // n_groups)
    before, most = pa.total_allocated_bytes(), 0
    for _ in read_parquet_log(path, ["x0", "x1", "x2"], block_size=n // n_groups):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < path.stat().st_size / 2


def test_a_folder_without_files_is_refused(tmp_path):
    refuses("is a folder without files", read_parquet_log, tmp_path, [])
