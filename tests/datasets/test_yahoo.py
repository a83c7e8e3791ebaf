"""Lines of R6A and R6B: what is written can be read back, and what is wrong is named."""

import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skbandit.datasets import read_yahoo_r6
from skbandit.logs import read_log

R6A = (
    "1241160900 109513 0 |user 2:0.000012 3:0.000000 4:0.000006 5:0.000023 6:0.999958 1:1.000000 "
    "|109498 2:0.306008 3:0.000450 4:0.077048 5:0.230439 6:0.386055 1:1.000000 "
    "|109513 2:0.211406 3:0.000036 4:0.002773 5:0.569886 6:0.215900 1:1.000000"
)
R6B = (
    "1317513291 id-560620 0 |user 1 9 11 13 23 16 18 17 19 15 43 14 39 30 66 50 27 104 20 "
    "|id-552077 |id-555224 |id-555528 |id-559744 |id-560620"
)


@pytest.fixture
def write(tmp_path):
    """Write lines to a file, packed if its name says so."""

    def to(lines, name="log"):
        text = "\n".join(lines) + "\n"
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return to


def describe(features):
    """Features 1 to 6 in the published order and precision."""
    return " ".join(f"{j + 1}:{features[j]:.6f}" for j in (1, 2, 3, 4, 5, 0))


def random_r6a(n, seed=0, shuffled=False):
    """Lines of R6A and what they say; pools change every 10 lines."""
    rng = np.random.default_rng(seed)
    articles = np.round(rng.dirichlet(np.ones(5), 40), 6)
    articles = np.column_stack([np.ones(40), articles])
    users = np.column_stack([np.ones(n), np.round(rng.dirichlet(np.ones(5), n), 6)])
    lines, pools, shown, clicks = [], [], [], []
    for i in range(n):
        pool = np.arange(20) + i // 10 % 20
        if shuffled:
            rng.shuffle(pool)
        shown.append(109_000 + rng.choice(pool))
        clicks.append(int(rng.random() < 0.2))
        text = " ".join(f"|{109_000 + a} {describe(articles[a])}" for a in pool)
        lines.append(f"{1241160900 + i} {shown[-1]} {clicks[-1]} |user {describe(users[i])} {text}")
        pools.append(tuple((109_000 + pool).tolist()))
    return lines, users, articles, pools, shown, clicks


def random_r6b(n, seed=0):
    """Lines of R6B and what they say."""
    rng = np.random.default_rng(seed)
    users = (rng.random((n, 136)) < 0.1).astype(np.uint8)
    users[:, 0] = 1
    shown = rng.integers(5, size=n)
    lines = [
        f"{1317513291 + i} id-{shown[i]} {i % 2} |user "
        f"{' '.join(map(str, rng.permutation(np.flatnonzero(users[i]) + 1)))} "
        "|id-0 |id-1 |id-2 |id-3 |id-4"
        for i in range(n)
    ]
    return lines, users, shown


def test_published_line_of_r6a(write):
    (log,) = read_yahoo_r6(write([R6A]), malformed="skip")
    assert log.n_skipped == 0
    assert log.X.iloc[0].to_dict() == {
        "user_1": 1.0,
        "user_2": 0.000012,
        "user_3": 0.0,
        "user_4": 0.000006,
        "user_5": 0.000023,
        "user_6": 0.999958,
    }
    assert log.y.iloc[0].to_dict() == {
        "action": 109513,
        "reward": 0,
        "propensity": 0.5,
        "timestamp": 1241160900,
        "available": (109498, 109513),
    }
    assert log.article_features.loc[109498].tolist() == [
        1.0, 0.306008, 0.00045, 0.077048, 0.230439, 0.386055
    ]  # fmt: skip


def test_published_line_of_r6b(write):
    (log,) = read_yahoo_r6(write([R6B]))
    on = [1, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 23, 27, 30, 39, 43, 50, 66, 104]
    assert list(log.X.columns[log.X.iloc[0] == 1]) == [f"user_{j}" for j in on]
    assert log.X.shape == (1, 136)
    assert log.y.loc[0, "action"] == "id-560620"
    assert log.y.loc[0, "propensity"] == 0.2
    assert log.available[0][:2] == ("id-552077", "id-555224")
    assert log.article_features is None


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["log", "log.gz"])
def test_r6a_is_read_back(write, name, shuffled):
    lines, users, articles, pools, shown, clicks = random_r6a(95, shuffled=shuffled)
    blocks = list(read_yahoo_r6(write(lines, name), block_size=30))
    assert [len(log.X) for log in blocks] == [30, 30, 30, 5]
    y = pd.concat([log.y for log in blocks], ignore_index=True)
    np.testing.assert_array_equal(pd.concat([log.X for log in blocks]), users)
    assert y["action"].tolist() == shown
    assert y["reward"].tolist() == clicks
    assert y["available"].tolist() == pools
    assert y["timestamp"].tolist() == list(range(1241160900, 1241160995))
    for log in blocks:
        assert set(log.article_features.index) == set().union(*log.available)
        np.testing.assert_array_equal(
            log.article_features, articles[log.article_features.index - 109_000]
        )


def test_r6b_is_read_back_from_several_files(write):
    lines, users, shown = random_r6b(50)
    paths = [write(lines[:20], "20111002.gz"), write(lines[20:], "20111003")]
    blocks = list(read_yahoo_r6(paths, block_size=16))  # a block may span files
    assert [len(log.X) for log in blocks] == [16, 16, 16, 2]
    np.testing.assert_array_equal(pd.concat([log.X for log in blocks]), users)
    assert pd.concat([log.y for log in blocks])["action"].tolist() == [f"id-{a}" for a in shown]
    assert {log.X.to_numpy().dtype for log in blocks} == {np.dtype(np.uint8)}


def test_events_with_equal_pools_share_a_tuple(write):
    (log,) = read_yahoo_r6(write(random_r6a(60)[0]))
    assert len({id(pool) for pool in log.available}) == len(set(log.available)) == 6


@pytest.mark.parametrize("line", [R6A, R6B], ids=["R6A", "R6B"])
def test_it_is_a_log(write, line):
    (log,) = read_yahoo_r6(write([line] * 3))
    read = read_log(log.y, len(log.X))
    np.testing.assert_array_equal(read.probability, log.y["propensity"])
    assert read.arms[read.action].tolist() == log.y["action"].tolist()


def test_an_article_without_features(write):
    (log,) = read_yahoo_r6(write([R6A + " |109528"]))
    assert log.available[0] == (109498, 109513, 109528)
    assert log.article_features.loc[109528].isna().all()
    assert log.article_features.loc[109513].notna().all()


def test_features_in_any_order(write):
    swapped = R6A.replace("5:0.000023 6:0.999958 1:1.000000", "1:1.000000 6:0.999958 5:0.000023", 1)
    assert swapped != R6A
    one, other = (next(read_yahoo_r6(write([line]))) for line in (R6A, swapped))
    pd.testing.assert_frame_equal(one.X, other.X)


MALFORMED = {
    "no user": (R6A.replace("|user", "user", 1), "expected 'time shown click"),
    "no pool": (R6A.partition(" |109498")[0], "expected 'time shown click"),
    "two fields": (R6A.replace("1241160900 ", "", 1), "expected 'time shown click"),
    "cut short": (R6A[:120], "article 109498 must have the features 1 to 6"),
    "cut in a name": (R6A[:-75], "the article shown, '109513', is not in the pool"),
    "time": (R6A.replace("1241160900", "12411609.5"), "time .* got '12411609.5'"),
    "click": (R6A.replace(" 0 |", " 2 |"), "the click must be 0 or 1, got '2'"),
    "not shown": (R6A.replace(" 109513 0", " 109514 0"), "'109514', is not in the pool"),
    "twice": (R6A.replace("|109498", "|109513"), "the pool has article 109513 twice"),
    "no name": (R6A + " |", "an article without a name"),
    "no number": (R6A.replace("3:0.000000", "3:x"), "the user must have the features 1 to 6"),
    "nan": (R6A.replace("3:0.000000", "3:nan"), "the user must have the features 1 to 6"),
    "missing": (R6A.replace("3:0.000000 ", ""), "the user must have the features 1 to 6"),
    "again": (R6A.replace("3:0.0", "2:0.1 3:0.0", 1), "the user must have the features 1 to 6"),
    "seventh": (R6A.replace("3:0.0", "7:0.1 3:0.0", 1), "the user must have the features 1 to 6"),
    "article": (R6A.replace("0.386055", "0,386055"), "article 109498 must have the features"),
    "bytes": ("\x00é" * 50, "expected 'time shown click"),
    "index": (R6B.replace(" 104 ", " 137 "), "indices from 1 to 136, got '137'"),
    "index 0": (R6B.replace(" 104 ", " 0 "), "indices from 1 to 136, got '0'"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_line_is_named_or_left_out(write, case):
    wrong, message = MALFORMED[case]
    right = R6B if "id-" in wrong else R6A
    path = write([right, right, wrong, right])
    with pytest.raises(ValueError, match=message) as caught:
        list(read_yahoo_r6(path))
    assert f"{path}, line 3: " in str(caught.value)
    assert "malformed='skip'" in str(caught.value)
    path = write([wrong, right, wrong, right, right, wrong])
    with pytest.warns(UserWarning, match="3 malformed lines were skipped, the first: .*line 1:"):
        first, last = read_yahoo_r6(path, block_size=2, malformed="skip")
    assert (first.n_skipped, last.n_skipped) == (2, 3)
    clean = next(read_yahoo_r6(write([right] * 3, "clean")))
    pd.testing.assert_frame_equal(pd.concat([first.X, last.X], ignore_index=True), clean.X)
    pd.testing.assert_frame_equal(pd.concat([first.y, last.y], ignore_index=True), clean.y)


def test_the_two_formats_do_not_mix(write):
    path = write([R6A, R6A, R6B])
    for block_size in (2, 100):
        with pytest.raises(ValueError, match="line 3: a line of R6B after lines of R6A"):
            list(read_yahoo_r6(path, block_size=block_size))


def test_line_numbers_start_again_with_each_file(write):
    paths = [write([R6A] * 3, "one"), write([R6A, "x"], "two")]
    with pytest.raises(ValueError, match="two, line 2: "):
        list(read_yahoo_r6(paths))


def test_nothing_to_read(write):
    with pytest.raises(ValueError, match=r"no event in .*empty"):
        list(read_yahoo_r6(write([], "empty"), malformed="skip"))
    with pytest.raises(ValueError, match=r"no event in .*wrong\. .*line 1: expected"):
        list(read_yahoo_r6(write(["x"], "wrong"), malformed="skip"))


def test_wrong_arguments_are_refused_at_the_call(tmp_path, write):
    path = write([R6A])
    with pytest.raises(FileNotFoundError, match="no-such-file is not a file"):
        read_yahoo_r6([path, tmp_path / "no-such-file"])
    with pytest.raises(ValueError, match="paths contains no file name"):
        read_yahoo_r6([])
    with pytest.raises(ValueError, match="malformed must be 'raise' or 'skip', got 'ignore'"):
        read_yahoo_r6(path, malformed="ignore")
    for wrong in (0, 2.5, np.nan, "2"):
        with pytest.raises(ValueError, match=r"block_size must be an integer of at least 1, got"):
            read_yahoo_r6(path, block_size=wrong)


def test_a_damaged_archive_is_named(tmp_path):
    content = gzip.compress(("\n".join(random_r6a(200)[0])).encode())
    path = tmp_path / "log.gz"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"log\.gz is damaged: "):
        list(read_yahoo_r6(path))


@pytest.mark.thorough
@pytest.mark.parametrize("shuffled", [False, True])
def test_memory_is_that_of_a_block(write, shuffled):
    """Ten times the lines need no more memory, though no two pools or users are equal."""
    lines = random_r6a(3_000, shuffled=shuffled)[0]

    def peak(n):
        path = write(lines[:n], f"{n}")
        tracemalloc.start()
        for _ in read_yahoo_r6(path, block_size=300):
            pass
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(300)  # what is imported or cached on first use
    assert peak(3_000) < 1.3 * peak(600)  # the block handed out, and the next


def test_blank_lines_and_a_byte_order_mark(write):
    (log,) = read_yahoo_r6(write(["\ufeff" + R6A, "", R6A, " "]))
    assert log.y["action"].tolist() == [109513, 109513]


@pytest.mark.parametrize(
    "line", [R6A.replace("1241160900", "1" * 30), R6A.replace("2:0.000012", "2:0_1")]
)
def test_numbers_that_only_python_reads_are_refused(write, line):
    with pytest.raises(ValueError, match="line 1"):
        list(read_yahoo_r6(write([line])))
