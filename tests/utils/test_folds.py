"""Folds: their sizes, and the requirement that rows are tested once."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skbandit.utils._folds import rows_tested, splits_of_all_rows, stratified_folds


def test_stratified_folds_deal_each_label_in_turn():
    fold = stratified_folds(np.array([1, 0, 1, 1, 0, 1]), 3)
    assert fold.tolist() == [0, 0, 1, 2, 1, 0]


@pytest.mark.parametrize("as_masks", [False, True])
def test_rows_tested(as_masks):
    tests = [np.array([0, 2]), np.array([3])]
    if as_masks:
        tests = [np.isin(np.arange(5), test) for test in tests]
    assert rows_tested([(None, test) for test in tests], 5).tolist() == [1, 0, 1, 1, 0]


def test_a_row_tested_twice():
    splits = [(None, np.array([0, 1])), (None, np.array([1]))]
    with pytest.raises(ValueError, match="cv tests row 1 2 times, but a row has one score"):
        rows_tested(splits, 2)


def test_an_integer_is_a_shuffled_kfold():
    X = np.zeros((9, 1))
    found = splits_of_all_rows(3, X, 9, 0)
    expected = KFold(3, shuffle=True, random_state=0).split(X)
    for (train, test), (own_train, own_test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(train, own_train)
        np.testing.assert_array_equal(test, own_test)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(3), np.arange(2))], "cv tests row 2 0 times, but each row needs one"),
        ([(np.arange(1, 3), np.arange(3))], "cv trains on row 1 in the fold that tests it"),
    ],
)
def test_splits_that_do_not_test_each_row_once(cv, message):
    with pytest.raises(ValueError, match=message):
        splits_of_all_rows(cv, np.zeros((3, 1)), 3, None)
