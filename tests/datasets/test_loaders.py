"""Loaders of published data: Adult, Yahoo and Open Bandit."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_svmlight_file

from skbandit import datasets
from skbandit.datasets import load_a9a, load_adult, load_open_bandit, read_yahoo_r6
from skbandit.datasets._files import INCLUDED
from tests.worlds import refuses

# === Adult and a9a: the published sizes, and two encodings that must agree on the same people ===

N_TRAIN, N_TEST = 32_561, 16_281
# Stated in the publisher's description of the data.
SHARE_TRAIN = 0.2408


@pytest.mark.parametrize("load", [load_adult, load_a9a])
def test_loaders_refuse_an_unknown_subset(load):
    refuses("'train', 'test' or 'all', got 'validation'", load, subset="validation")


@pytest.mark.parametrize("name", ["adult", "a9a", "open_bandit"])
def test_the_old_name_of_a_loader_names_the_new_one(name):
    with pytest.raises(ImportError, match=rf"fetch_{name} is gone: load_{name}\(\)"):
        getattr(datasets, f"fetch_{name}")


def test_adult_has_the_published_rows_columns_and_missing_values(adult_frame):
    assert adult_frame.shape == (N_TRAIN, 15)
    assert set(adult_frame["income"]) == {"<=50K", ">50K"}
    assert (adult_frame["income"] == ">50K").mean() == pytest.approx(SHARE_TRAIN, abs=5e-5)
    assert adult_frame.select_dtypes("category").shape[1] == 8
    assert all(name.isidentifier() for name in adult_frame.columns)
    missing = adult_frame.isna().sum()
    assert missing[missing > 0].index.tolist() == ["workclass", "occupation", "native_country"]
    assert not (adult_frame == "?").any(axis=None)


@pytest.mark.thorough
def test_adult_subsets_add_up_to_all_rows():
    train, test = load_adult(), load_adult(subset="test")
    assert len(test.data) == N_TEST
    pd.testing.assert_series_equal(train.frame.dtypes, test.frame.dtypes)
    stacked = pd.concat([train.frame, test.frame], ignore_index=True)
    pd.testing.assert_frame_equal(stacked, load_adult(subset="all").frame)


@pytest.mark.thorough
def test_adult_is_the_same_in_every_form(adult_frame):
    bunch, arrays = load_adult(), load_adult(as_frame=False)
    assert set(bunch.target_names) == set(bunch.target)
    data, target = load_adult(return_X_y=True)
    pd.testing.assert_frame_equal(data, adult_frame[bunch.feature_names])
    pd.testing.assert_series_equal(target, adult_frame["income"])
    assert arrays.frame is None
    assert arrays.data.shape == data.shape
    assert arrays.data[0, 1] == "State-gov"
    np.testing.assert_array_equal(arrays.target, target)


@pytest.mark.realdata
@pytest.mark.parametrize(("subset", "name"), [("train", "a9a.gz"), ("test", "a9a.t.gz")])
def test_a9a_is_encoded_as_published(real_data, subset, name):
    X, y = load_a9a(subset=subset, return_X_y=True)
    published, labels = load_svmlight_file(str(Path(real_data, "adult", name)), n_features=123)
    assert (X != published).nnz == 0
    np.testing.assert_array_equal(y, labels)


@pytest.mark.thorough
def test_a9a_is_a_code_of_every_person():
    a9a, adult = load_a9a(subset="test"), load_adult(subset="test")
    assert a9a.data.shape == (N_TEST, 123)
    assert a9a.data.indices.dtype == a9a.data.indptr.dtype == np.int32
    # one column per attribute that is known
    known = adult.data.notna().sum(axis=1)
    np.testing.assert_array_equal(np.asarray(a9a.data.sum(axis=1)).ravel(), known)
    np.testing.assert_array_equal(a9a.female, adult.data["sex"] == "Female")
    np.testing.assert_array_equal(a9a.male, adult.data["sex"] == "Male")
    np.testing.assert_array_equal(a9a.target == 1, adult.target == ">50K")


@pytest.mark.thorough
@pytest.mark.parametrize(("subset", "ratio"), [("train", 5.65), ("test", 5.52)])
def test_about_six_men_for_each_woman_have_a_high_income(subset, ratio):
    """Goh et al. (2016), section 4.1."""
    people = load_a9a(subset=subset)
    men, women = ((people.target[who] == 1).sum() for who in (people.male, people.female))
    assert men / women == pytest.approx(ratio, abs=0.005)


# === The Open Bandit sample: the published counts, and tables that read back as logs ============

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
    content = gzip.decompress((INCLUDED / "open_bandit" / name / "men.csv.gz").read_bytes())
    return [line.split(",") for line in content.decode().splitlines()[1:]]


def test_load_open_bandit_refuses_an_unknown_log():
    refuses("'random' or 'bts', got 'uniform'", load_open_bandit, "uniform")


def test_open_bandit_decisions_are_those_of_the_file(name, log, lines):
    assert len(log.y) == len(lines) == 10_000
    assert log.y["reward"].sum() == CLICKS[name]
    assert list(log.y.columns) == ["action", "reward", "propensity", "timestamp", "available"]
    assert log.y["action"].tolist() == [int(line[2]) for line in lines]
    assert log.position.tolist() == [int(line[3]) for line in lines]
    assert log.y["reward"].tolist() == [int(line[4]) for line in lines]
    # older pandas parses floats to 14 digits or so
    np.testing.assert_allclose(log.y["propensity"], [float(line[5]) for line in lines], rtol=1e-12)
    stamps = [pd.Timestamp(line[1]) for line in lines]
    assert log.y["timestamp"].tolist() == stamps == sorted(stamps)


def test_open_bandit_contexts_set_one_column_per_category(log, lines):
    """The one whose name has the level's first characters."""
    assert log.X.shape == (10_000, 26)
    assert set(np.unique(log.X)) == {0.0, 1.0}
    for row in (0, 17, 9_999):
        levels = lines[row][6:10]
        named = {f"user_feature_{j}_{level[:8]}" for j, level in enumerate(levels)}
        assert set(log.X.columns[log.X.iloc[row] == 1]) == named
        assert log.users.iloc[row].tolist() == levels
    assert (log.X.sum(axis=1) == 4).all()


def test_open_bandit_affinities_are_those_of_the_file(log, lines):
    assert list(log.affinity.columns) == list(log.item_context.index) == list(range(34))
    np.testing.assert_array_equal(log.affinity, [[float(v) for v in line[10:]] for line in lines])


# === Lines of R6A and R6B: what is written can be read back, and what is wrong is named =========

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


def random_r6a(n, shuffled=False):
    """Lines of R6A and what they say; pools change every 10 lines."""
    rng = np.random.default_rng(0)
    articles = np.column_stack([np.ones(40), np.round(rng.dirichlet(np.ones(5), 40), 6)])
    users = np.column_stack([np.ones(n), np.round(rng.dirichlet(np.ones(5), n), 6)])
    order = rng.permutation(20) if shuffled else np.arange(20)
    pools = [109_000 + (np.arange(20) + i // 10 % 20)[order]
             for i in range(n)]  # fmt: skip
    shown, clicks = [int(rng.choice(pool)) for pool in pools], (rng.random(n) < 0.2).astype(int)

    def described(name, features):  # features in the published order and precision
        return f"|{name} " + " ".join(f"{j + 1}:{features[j]:.6f}" for j in (1, 2, 3, 4, 5, 0))

    lines = [
        " ".join(
            [f"{1241160900 + i} {shown[i]} {clicks[i]}", described("user", users[i])]
            + [described(name, articles[name - 109_000]) for name in pools[i]]
        )
        for i in range(n)
    ]
    return lines, users, articles, [tuple(pool.tolist()) for pool in pools], shown, clicks.tolist()


def random_r6b(n):
    """Lines of R6B and what they say."""
    rng = np.random.default_rng(0)
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


def test_the_published_line_of_r6a(write):
    (log,) = read_yahoo_r6(write([R6A]), malformed="skip")
    assert log.n_skipped == 0
    user = [1.0, 0.000012, 0.0, 0.000006, 0.000023, 0.999958]
    assert log.X.iloc[0].to_dict() == {f"user_{j}": v for j, v in enumerate(user, 1)}
    assert log.y.iloc[0].to_dict() == {
        "action": 109513,
        "reward": 0,
        "propensity": 0.5,
        "timestamp": 1241160900,
        "available": (109498, 109513),
    }
    article = [1.0, 0.306008, 0.00045, 0.077048, 0.230439, 0.386055]
    assert log.article_features.loc[109498].tolist() == article


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
    assert len({id(pool) for pool in blocks[0].available}) == len(set(blocks[0].available))
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


def test_an_article_without_features_is_missing_them(write):
    (log,) = read_yahoo_r6(write([R6A + " |109528"]))
    assert log.available[0] == (109498, 109513, 109528)
    assert log.article_features.loc[109528].isna().all()
    assert log.article_features.loc[109513].notna().all()


MALFORMED = {
    "no user": (R6A.replace("|user", "user", 1), "expected 'time shown click"),
    "no pool": (R6A.partition(" |109498")[0], "expected 'time shown click"),
    "cut short": (R6A[:120], "article 109498 must have the features 1 to 6"),
    "time": (R6A.replace("1241160900", "12411609.5"), "time .* got '12411609.5'"),
    "click": (R6A.replace(" 0 |", " 2 |"), "the click must be 0 or 1, got '2'"),
    "not shown": (R6A.replace(" 109513 0", " 109514 0"), "'109514', is not in the pool"),
    "twice": (R6A.replace("|109498", "|109513"), "the pool has article 109513 twice"),
    "no name": (R6A + " |", "an article without a name"),
    "nan": (R6A.replace("3:0.000000", "3:nan"), "the user must have the features 1 to 6"),
    "missing": (R6A.replace("3:0.000000 ", ""), "the user must have the features 1 to 6"),
    "seventh": (R6A.replace("3:0.0", "7:0.1 3:0.0", 1), "the user must have the features 1 to 6"),
    "bytes": ("\x00é" * 50, "expected 'time shown click"),
    "index": (R6B.replace(" 104 ", " 137 "), "indices from 1 to 136, got '137'"),
    "long time": (R6A.replace("1241160900", "1" * 30), "the time must be a whole number"),
    "of Python": (R6A.replace("2:0.000012", "2:0_1"), "the user must have the features 1 to 6"),
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
    refuses("two, line 2: ", list, read_yahoo_r6(paths))


def test_nothing_to_read(write):
    refuses(r"no event in .*empty", list, read_yahoo_r6(write([], "empty"), malformed="skip"))
    with pytest.raises(ValueError, match=r"no event in .*wrong\. .*line 1: expected"):
        list(read_yahoo_r6(write(["x"], "wrong"), malformed="skip"))


def test_wrong_arguments_are_refused_at_the_call(tmp_path, write):
    path = write([R6A])
    with pytest.raises(FileNotFoundError, match="no-such-file is not a file"):
        read_yahoo_r6([path, tmp_path / "no-such-file"])
    refuses("paths contains no file name", read_yahoo_r6, [])
    with pytest.raises(ValueError, match="malformed must be 'raise' or 'skip', got 'ignore'"):
        read_yahoo_r6(path, malformed="ignore")
    for wrong in (0, 2.5, np.nan, "2"):
        with pytest.raises(ValueError, match=r"block_size must be an integer of at least 1, got"):
            read_yahoo_r6(path, block_size=wrong)


def test_a_damaged_archive_is_named(tmp_path):
    content = gzip.compress(("\n".join(random_r6a(200)[0])).encode())
    path = tmp_path / "log.gz"
    path.write_bytes(content[: len(content) // 2])
    refuses(r"log\.gz is damaged: ", list, read_yahoo_r6(path), error=OSError)


def test_blank_lines_and_a_byte_order_mark(write):
    (log,) = read_yahoo_r6(write(["\ufeff" + R6A, "", R6A, " "]))
    assert log.y["action"].tolist() == [109513, 109513]
