"""Folds: their sizes, what stays together, and the requirement that rows are tested once."""

import numpy as np
import pandas as pd
import polars
import pytest
from scipy.sparse import coo_array, csr_array

from skbandit.utils._folds import (
    assign_folds,
    folds_of_classes,
    folds_of_extra,
    read_units,
    rows_tested,
    splits_of_all_rows,
    splits_of_classes,
    units_of_rows,
)
from skbandit.utils._sklearn_compat import count_rows
from tests.worlds import refuses, warns

RNG = np.random.default_rng(0)


# --- assignment ----------------------------------------------------------------------------


def shares(fold, of):
    """Counts of each value of `of` in each fold."""
    return pd.crosstab(np.asarray(of), fold).to_numpy()


def test_each_stratum_is_spread_evenly():
    stratum = RNG.integers(3, size=301)
    fold = assign_folds(stratum, 4, np.arange(301))
    assert np.ptp(shares(fold, stratum), axis=1).max() <= 1
    assert np.ptp(np.bincount(fold)) <= 2


@pytest.mark.parametrize("period", [5, 10])
def test_a_period_of_the_rows_is_not_that_of_the_folds(period):
    """Rows in turn would have each site in one fold.

    Of 100 rows per site, a fold has 20 ± 4; 5 or 10 sites x 5 folds leave 35 with p < .01.
    """
    site = np.arange(100 * period) % period
    labels = site // 5 % 2
    fold = (
        folds_of_classes(labels, 5, np.arange(len(site)))
        if period > 5
        else assign_folds(np.zeros(len(site), dtype=int), 5, np.arange(len(site)))
    )
    assert shares(fold, site).max() < 40


@pytest.mark.parametrize("sizes", [[2] * 50, [40, 30, 1, 1, 1], list(range(1, 30)), [1] * 20])
def test_units_stay_whole(sizes):
    unit = RNG.permutation(np.repeat(np.arange(len(sizes)), sizes))
    stratum = unit % 2
    fold = assign_folds(stratum, 3, unit)
    for one in range(len(sizes)):
        assert len(np.unique(fold[unit == one])) == 1
    largest = max(sizes)
    assert np.ptp(shares(fold, stratum), axis=1).max() <= largest
    assert len(np.unique(fold)) == 3


def test_names_of_labels_and_of_units_do_not_matter():
    labels, unit = RNG.integers(2, size=99), np.arange(99) // 2
    fold = folds_of_classes(labels, 5, unit)
    for names, units in ((np.array(["z", "a"])[labels], unit), (labels, 1000 - 3 * unit)):
        np.testing.assert_array_equal(folds_of_classes(names, 5, units), fold)


def test_a_class_that_cannot_be_left_out_is_named():
    labels, unit = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 3])
    refuses("All 2 rows of class 1 are equal or of one group", folds_of_classes, labels, 2, unit)
    refuses(r"cv=6 folds .* there are 5", folds_of_classes, labels, 6, np.arange(5))
    refuses("n_splits=1", folds_of_classes, labels, 1, np.arange(5))


def test_extra_rows_join_the_fold_of_their_original():
    fold = np.array([0, 1, 2, -1])
    unit = np.array([5, 6, 7, 8, 6, 8, 9, 5, 10, 11])
    found = folds_of_extra(fold, 3, np.zeros(6, dtype=int), unit)
    assert found[[0, 3]].tolist() == [1, 0]
    assert set(found) <= {0, 1, 2} and folds_of_extra(fold, 3, fold[:0], unit[:4]).size == 0


# --- copies --------------------------------------------------------------------------------

ROWS = np.array([[1.5, 0.0], [0.0, -2.0], [1.5, 0.0], [0.0, 1.5], [0.0, -2.0], [0.0, 0.0]])
COPIES = [0, 1, 0, 2, 1, 3]
TEXT = ["a", "b", "a", "c", "b", ""]
FORMS = {
    "array": ROWS,
    "negative zeros": np.where(ROWS == 0, np.array([[-0.0], [0.0]] * 3), ROWS),
    "list": ROWS.tolist(),
    "single precision": ROWS.astype(np.float32),
    "integers": (2 * ROWS).astype(int),
    "small integers": (2 * ROWS).astype(np.int8),
    "Fortran order": np.asfortranarray(ROWS),
    "csr": csr_array(ROWS),
    "coo with zeros": coo_array((ROWS.ravel(), np.indices((6, 2)).reshape(2, -1)), shape=(6, 2)),
    "frame": pd.DataFrame(ROWS, index=list("abcabc")),
    "mixed frame": pd.DataFrame({"a": ROWS[:, 0], "b": pd.Categorical(TEXT), "c": TEXT}),
    "missing": np.where(ROWS == -2, np.nan, ROWS),
    "rounded frame": pd.DataFrame(ROWS * (1 + np.array([[0, 0, 1, 0, 1, 0]]).T * 2.0**-52)),
    "nullable frame": pd.DataFrame({"a": ROWS[:, 0], "b": pd.array(COPIES, dtype="Int8")}),
    "polars": polars.DataFrame({"a": ROWS[:, 0], "b": TEXT}),
    "text": TEXT,
    "objects": np.array([[1, one] for one in TEXT], dtype=object),
    "three dimensions": ROWS.reshape(6, 2, 1),
    "rounded by a product": ROWS * (1 + np.array([[0, 0, 1, 0, 1, 0]]).T * 2.0**-52),
}


@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_are_one_unit(form):
    unit = units_of_rows(FORMS[form], np.array(COPIES))
    assert [unit.tolist().index(one) for one in unit] == [COPIES.index(one) for one in COPIES]


def test_rows_of_other_columns_are_other_units():
    """(1, 2) is not (2, 1), nor a value the same value of another column."""
    for rows in (
        [[1.0, 2.0], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
        csr_array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
        polars.DataFrame({"a": [1, 2], "b": [2, 1]}),
    ):
        n = count_rows(rows)
        assert len(np.unique(units_of_rows(rows, np.zeros(n)))) == n
    many = RNG.integers(2, size=(5000, 40))
    assert len(np.unique(units_of_rows(many, np.zeros(5000)))) == len(np.unique(many, axis=0))


@pytest.mark.parametrize("times", [2, 26])
@pytest.mark.parametrize("target", ["labels", "names", "rare labels", "costs", "logged costs"])
def test_copies_have_the_target_of_their_original(target, times):
    """However often each row occurs; rows that are independent have a target of their own.

    Of 60 rows twice, independent labels of 2 % are all alike with a probability of .09, which the
    seed avoids.
    """
    rng = np.random.default_rng(times)
    targets = {
        "labels": lambda n: rng.integers(2, size=n),
        "names": lambda n: np.array(["no", "yes"], dtype=object)[rng.integers(2, size=n)],
        "rare labels": lambda n: rng.random(n) < 0.02,
        "costs": lambda n: rng.normal(size=(n, 3)),
        "logged costs": lambda n: np.where(np.eye(3)[rng.integers(3, size=n)], 1.0, np.nan),
    }
    rows = rng.normal(size=(300, 2))
    row = np.append(np.arange(300), np.repeat(np.arange(60), times - 1))
    target_of_row = targets[target](300)[row]
    unit = units_of_rows(rows[row], target_of_row)
    assert len(np.unique(unit)) == 300
    np.testing.assert_array_equal(unit, unit[row])
    independent = targets[target](len(row))
    assert units_of_rows(rows[row], independent).tolist() == list(range(len(row)))


def test_rows_of_few_features_that_tell_the_label_are_no_copies():
    cell = RNG.integers(8, size=200)
    X = cell[:, None] >> np.arange(3) & 1
    y = (X[:, 0] & X[:, 1] & X[:, 2]).astype(int)
    assert len(np.unique(read_units(None, X, y, np.ones(200), None))) == 200
    assert len(np.unique(units_of_rows(X[:30], y[:30]))) == len(np.unique(cell[:30]))


def test_independent_rows_are_no_copies_however_much_features_tell():
    """Of a label with R² = 0.64 in each of 100 cells, and copies with a label in 20 read wrong."""
    cell = np.arange(2000) % 100
    y = (RNG.random(2000) < np.where(cell < 50, 0.1, 0.9)).astype(int)
    assert len(np.unique(units_of_rows(cell[:, None], y))) == 2000
    wrong = np.where(RNG.random(2000) < 0.05, RNG.integers(2, size=2000), cell % 2)
    assert len(np.unique(units_of_rows(cell[:, None], wrong))) == 100


def test_rows_that_cannot_be_compared_are_units_of_their_own():
    rows = np.empty(3, dtype=object)
    rows[:] = [[1], [1, 2], [1]]
    assert len(np.unique(units_of_rows(rows, np.zeros(3)))) == 3


def test_copies_are_warned_of_once_they_are_many():
    rows, y = RNG.normal(size=(200, 2)), RNG.integers(2, size=200)
    assert len(np.unique(read_units(None, rows, y, np.ones(200), None))) == 200
    one, of_one = np.vstack([rows, rows[:1]]), np.append(y, y[:1])
    assert len(np.unique(read_units(5, one, of_one, np.ones(201), None))) == 200
    many, of_many, weight = np.vstack([rows, rows[:3]]), np.append(y, y[:3]), np.ones(203)
    warns("6 of 203 rows of X .* as rows 0 and 200", read_units, None, many, of_many, weight, None)
    read_units("a splitter", many, of_many, weight, None)
    unit = read_units(None, many, of_many, weight, np.arange(203))
    assert unit.tolist() == list(range(203))


def test_rows_of_weight_0_are_no_copies_to_tell_of():
    rows, y, weight = RNG.normal(size=(200, 2)), np.arange(200) % 2, np.ones(210)
    many, of_many = np.vstack([rows, rows[:10]]), np.append(y, y[:10])
    weight[:9] = 0.0
    read_units(None, many, of_many, weight, None)
    weight[7:9] = 2.0
    warns("6 of 203 rows of X .* as rows 7 and 207", read_units, None, many, of_many, weight, None)
    of_many[:7] = 1 - of_many[:7]
    warns("6 of 203 rows of X .* as rows 7 and 207", read_units, None, many, of_many, weight, None)


def test_equal_rows_of_either_label_are_no_copies():
    rows = RNG.normal(size=(200, 2))[np.arange(400) % 200]
    y = RNG.integers(2, size=400)
    unit = read_units(None, rows, y, np.ones(400), None)
    assert unit.tolist() == list(range(400))
    with pytest.warns(UserWarning, match="400 of 400 rows of X occur more than once"):
        read_units(None, rows, np.append(y[:200], y[:200]), np.ones(400), None)


def test_rows_of_a_group_are_one_unit():
    rows, y, weight = np.arange(5.0)[:, None], np.zeros(3), np.ones(3)
    unit = read_units(None, rows, y, weight, ["u", "v", "u"])
    assert unit[0] == unit[2] != unit[1] and len(np.unique(unit)) == 4
    with pytest.raises(ValueError, match="groups has 3 entries for 5 rows"):
        read_units(None, rows, np.zeros(5), np.ones(5), ["u", "v", "u"])
    refuses("groups is missing in row 1", read_units, None, rows[:3], y, weight, ["u", None, "u"])


def test_extra_rows_are_of_the_group_of_the_row_they_are_copies_of():
    rows = np.array([[0.0], [1.0], [2.0], [2.0], [7.0], [7.0], [0.0], [8.0]])
    unit = read_units(None, rows, np.array([0, 1, 0]), np.ones(3), ["u", "v", "u"])
    assert unit[3] == unit[6] == unit[0] == unit[2]
    assert unit[4] == unit[5] and len(np.unique(unit)) == 4


# --- splits --------------------------------------------------------------------------------


@pytest.mark.parametrize("as_masks", [False, True])
def test_rows_tested_are_those_of_any_fold(as_masks):
    tests = [np.array([0, 2]), np.array([3])]
    if as_masks:
        tests = [np.isin(np.arange(5), test) for test in tests]
    assert rows_tested([(None, test) for test in tests], 5).tolist() == [1, 0, 1, 1, 0]


def test_a_row_tested_twice_is_refused():
    splits = [(None, np.array([0, 1])), (None, np.array([1]))]
    refuses("cv tests row 1 2 times, but a row has one score", rows_tested, splits, 2)


def test_splits_are_used_as_they_are():
    splits = [(np.array([0]), np.array([1, 2])), (np.array([1, 2]), np.array([0]))]
    labels, unit = np.array([0, 1, 1]), np.array([0, 0, 0])
    assert splits_of_classes(splits, np.zeros((3, 1)), labels, unit, {}) == splits


@pytest.mark.parametrize("as_masks", [False, True])
def test_a_class_that_folds_do_not_train_on_is_warned_of(as_masks):
    """Tested elsewhere, its rows there are left out; else they are spread over all folds."""
    y, n = np.array([*"abababab", *"cccc", *"ab"]), 14
    X = np.arange(n)[:, None]
    tests = [np.array([0, 1, 2, 3]), np.array([4, 5, 6, 7]), np.arange(8, 14)]
    splits = [(np.setdiff1d(np.arange(n), test), test) for test in tests]
    if as_masks:
        splits = [tuple(np.isin(np.arange(n), rows) for rows in split) for split in splits]
    text = "cv leaves fold 2 no row of class 'c' to train on, of which it tests 4: the 4 rows"
    with pytest.warns(UserWarning, match=f"{text} .* are spread over all folds"):
        spread = splits_of_classes(splits, X, y, X[:, 0], {})
    assert rows_tested(spread, n).all()
    for train, test in spread:
        assert set(y[train]) == {"a", "b", "c"} and "c" in y[test]
        assert not np.isin(train, test).any() and len(train) + len(test) == n
    # a class that comes late: the first fold that tests it is trained before
    late = [(np.arange(4), np.arange(4, 10)), (np.arange(10), np.arange(10, n))]
    text = "fold 0 no row of class 'c' .* it tests 2: the 2 rows .* left out of all"
    with pytest.warns(UserWarning, match=text):
        kept = splits_of_classes(late, X, y, X[:, 0], {})
    assert [(train.tolist(), test.tolist()) for train, test in kept] == [
        (list(range(4)), list(range(4, 8))),
        (list(range(10)), list(range(10, n))),
    ]


def test_an_integer_tests_each_row_once_and_copies_together():
    X = RNG.normal(size=(30, 2))[np.arange(60) % 30]
    target = np.arange(60) % 30
    splits = splits_of_all_rows(3, X, target, 0)
    fold = np.empty(60, dtype=int)
    for k, (train, test) in enumerate(splits):
        fold[test] = k
        assert np.union1d(train, test).size == 60 and len(test) == 20
    np.testing.assert_array_equal(fold[:30], fold[30:])
    assert len(splits_of_all_rows(3, np.zeros((9, 1)), np.zeros(9), 0)) == 3, (
        "where all rows are equal"
    )
    with pytest.raises(ValueError, match="cv=3 folds need as many rows, and there are 2"):
        splits_of_all_rows(3, np.zeros((2, 1)), np.zeros(2), 0)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(3), np.arange(2))], "cv tests row 2 0 times, but each row needs one"),
        ([(np.arange(1, 3), np.arange(3))], "cv trains on row 1 in the fold that tests it"),
    ],
)
def test_splits_must_test_each_row_once(cv, message):
    refuses(message, splits_of_all_rows, cv, np.zeros((3, 1)), np.zeros(3), None)
