"""Damaged logs: an error that names the file and the line."""

import gzip
import re
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skbandit.datasets import read_yahoo_r6
from tests.reliability.blame import blame

ARTICLE = "2:0.3 3:0.1 4:0.2 5:0.2 6:0.2 1:1.0"
R6A = [
    f"124116{k:04d} {100 + k % 3} {k % 2} |user {ARTICLE} "
    + " ".join(f"|{article} {ARTICLE}" for article in (100, 101, 102))
    for k in range(40)
]
R6B = [
    f"131751{k:04d} id-{k % 3} {k % 2} |user 1 {k % 130 + 2} |id-0 |id-1 |id-2" for k in range(40)
]
WHOLE = {"R6A": ("\n".join(R6A) + "\n").encode(), "R6B": ("\n".join(R6B) + "\n").encode()}

fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path, malformed="raise"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = list(read_yahoo_r6(path, block_size=16, malformed=malformed))
    return pd.concat([block.y for block in blocks], ignore_index=True)


def assert_read_or_named(path, whole):
    """Events of what can be read; else an error with file and line. Skipping leaves the rest."""
    try:
        read(path)
    except ValueError as error:
        assert blame(error) == ""
        named = f"{re.escape(str(path))}, line \\d+: |no event in {re.escape(str(path))}"
        assert re.match(named, str(error)), error
        assert len(str(error)) < 600, "it quotes part of the line"
    try:
        kept = read(path, malformed="skip")
    except ValueError as error:
        assert str(error).startswith(f"no event in {path}")
        return
    assert kept["reward"].isin([0, 1]).all()
    assert all(shown in pool for shown, pool in zip(kept["action"], kept["available"], strict=True))
    np.testing.assert_allclose(kept["propensity"], 1 / kept["available"].map(len))


@pytest.mark.parametrize("kind", WHOLE)
@fuzz
@given(data=st.data(), interleaved=st.booleans())
def test_interleaved_pieces_and_flipped_bytes(tmp_path, kind, data, interleaved):
    """Two writers without a lock: pieces of lines between pieces of others."""
    whole = bytearray(WHOLE[kind])
    if interleaved:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=3, max_size=8)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        whole = b"".join(data.draw(st.permutations(pieces)))
    else:
        for _ in range(data.draw(st.integers(1, 6))):
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "log"
    path.write_bytes(bytes(whole))
    assert_read_or_named(path, whole)


@fuzz
@given(data=st.data())
def test_damaged_archives(tmp_path, data):
    """Truncated, or with a byte changed: named, or not damaged where it matters."""
    packed = bytearray(gzip.compress(WHOLE["R6A"], mtime=0))
    if data.draw(st.booleans()):
        packed = packed[: data.draw(st.integers(0, len(packed) - 1))]
    else:
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "log.gz"
    path.write_bytes(bytes(packed))
    try:
        read(path)
    except (ValueError, OSError) as error:
        assert str(path) in str(error)
        assert blame(error) == ""
