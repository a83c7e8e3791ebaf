"""Parquet files as they arrive: cut short, damaged, of other columns, of other kinds."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skbandit.datasets import make_bandit_log, read_parquet_log
from skbandit.evaluation import off_policy_blocks
from tests.reliability.blame import blame
from tests.tiers import first

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

# Warnings of odd propensities are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore")

LOG = make_bandit_log(400, n_arms=4, n_features=2, n_available=3, random_state=0)
FEATURES = list(LOG.X.columns)
TABLE = pa.Table.from_pandas(pd.concat([LOG.X, LOG.y], axis=1), preserve_index=False)
TABLE = TABLE.append_column("chance", pa.array(np.full(400, 0.5)))

fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def judged(source):
    """What an estimate makes of the files; the column of chances is read as a feature."""
    blocks = read_parquet_log(source, [*FEATURES, "chance"], block_size=150)
    pairs = ((block.X[FEATURES], block.y.assign(chance=block.X["chance"])) for block in blocks)
    return off_policy_blocks("chance", pairs)["ips"].n_events


def assert_judged_or_named(source, *names):
    """All events count, or an error of ours names the file."""
    try:
        assert judged(source) == 400
    except (TypeError, ValueError, OSError) as error:
        assert blame(error) == ""
        assert all(name in str(error) for name in names)
        return error
    return None


def written(table, **options):
    """Bytes of a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


WHOLE = {kind: written(TABLE, row_group_size=100, compression=kind) for kind in ("snappy", "none")}
places = st.integers(0, 10**6)
changes = st.lists(st.tuples(places, st.integers(1, 255)), min_size=1, max_size=8)


@pytest.mark.parametrize("kind", WHOLE)
@fuzz
@given(end=places)
def test_truncated(tmp_path, kind, end):
    path = tmp_path / "log.parquet"
    path.write_bytes(WHOLE[kind][: end % len(WHOLE[kind])])
    assert assert_judged_or_named(path, "log.parquet")


@pytest.mark.parametrize("kind", WHOLE)
@fuzz
@given(changes=changes, footer=st.booleans())
def test_flipped_bytes(tmp_path, kind, changes, footer):
    """The last ones, of the footer, say where everything is; what a number is goes unnoticed.

    Files have no checksums by default.
    """
    bad, path = bytearray(WHOLE[kind]), tmp_path / "log.parquet"
    length = int.from_bytes(bad[-8:-4], "little") + 8 if footer else len(bad)
    for place, change in changes:
        bad[-1 - place % length] ^= change
    path.write_bytes(bytes(bad))
    try:
        judged(path)
    except (TypeError, ValueError, OSError) as error:
        assert blame(error) == ""


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"a,b\n1,2\n", bytes(4000)])
def test_no_parquet(tmp_path, content):
    (tmp_path / "log.parquet").write_bytes(content)
    assert assert_judged_or_named(tmp_path / "log.parquet", "log.parquet")
    assert assert_judged_or_named(tmp_path, "log.parquet")


def test_a_damaged_file_among_others(tmp_path):
    """The position is told, and no result is given."""
    whole = WHOLE["snappy"]
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.parquet").write_bytes(whole)
    bad = bytearray(whole)
    bad[10 : len(bad) // 2] = bytes(len(bad) // 2 - 10)
    (tmp_path / "b.parquet").write_bytes(bytes(bad))
    error = assert_judged_or_named(tmp_path, "b.parquet, after row 0")
    assert isinstance(error, OSError)


@pytest.mark.parametrize("nothing", ["folder", "gone", "none in a list"])
def test_nothing_there(tmp_path, nothing):
    source = {
        "folder": tmp_path,
        "gone": tmp_path / "gone.parquet",
        "none in a list": [tmp_path / "gone.parquet"],
    }[nothing]
    with pytest.raises((ValueError, FileNotFoundError), match=r"without files|gone") as caught:
        read_parquet_log(source, FEATURES)
    assert blame(caught.value) == ""


# --- columns -----------------------------------------------------------------------------------

# Of 400 events; what pyarrow makes of them is what is in the file.
COLUMNS = {
    "nulls": pa.nulls(400),
    "one null": pa.array([None] + [0.5] * 399),
    "nan": pa.array([float("nan")] + [0.5] * 399),
    "numbers as text": pa.array(["0.5"] * 400),
    "booleans": pa.array([True, False] * 200),
    "decimals": pa.array([decimal.Decimal("0.5")] * 400),
    "dates": pa.array([datetime.date(2026, 1, 1)] * 400),
    "datetimes of a zone": pa.array(
        [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)] * 400, pa.timestamp("us", "Asia/Tokyo")
    ),
    "lists": pa.array([[0, 1]] * 400),
    "lists of all arms": pa.array([[0, 1, 2, 3]] * 400),
    "empty lists": pa.array([[]] * 400, pa.list_(pa.int64())),
    "lists of lists": pa.array([[[0], [1]]] * 400),
    "structs": pa.array([{"a": 1}] * 400),
    "dictionary with nulls": pa.array(["0", None] * 200).dictionary_encode(),
    "unsigned": pa.array([2**64 - 1] * 400, pa.uint64()),
    "no utf-8": pa.Array.from_buffers(
        pa.string(), 400, [None, *pa.array([b"\xff"] * 400, pa.binary()).buffers()[1:]]
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("column", first(1, TABLE.column_names))
def test_columns_of_any_kind(tmp_path, column):
    """Also of a second file, which reads as the first one's, or the error says where it is."""
    place, n_refused = TABLE.column_names.index(column), 0
    for values in COLUMNS.values():
        table = TABLE.set_column(place, column, values)
        pq.write_table(table, tmp_path / "a.parquet")
        n_refused += assert_judged_or_named(tmp_path / "a.parquet") is not None
        pq.write_table(TABLE[:200], tmp_path / "a.parquet")
        pq.write_table(table[200:], tmp_path / "b.parquet")
        assert_judged_or_named(tmp_path)
        (tmp_path / "b.parquet").unlink()
    assert n_refused == 1 if column in FEATURES else n_refused > 5, "features are not looked at"


@pytest.mark.parametrize("column", first(1, TABLE.column_names))
@pytest.mark.parametrize("position", [0, 1], ids=["first", "second"])
def test_a_file_without_a_column(tmp_path, column, position):
    """Whether it is the first or the second, no event is judged by half of what is known."""
    parts = [TABLE[:200], TABLE[200:]]
    parts[position] = parts[position].drop_columns(column)
    for name, part in zip("ab", parts, strict=True):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    error = assert_judged_or_named(tmp_path, repr(column))
    assert error
