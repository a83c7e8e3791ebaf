"""Parquet files as they arrive: cut short, damaged, of other columns, of other kinds."""

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


# --- columns -----------------------------------------------------------------------------------


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
