"""Labels of any kind, and the positive class among them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from skbandit.measure import distinct, encode
from skbandit.rates import churn, recall
from skbandit.rates._labels import check_pos_label
from tests.worlds import refuses

pl = pytest.importorskip("polars", reason="polars is not installed")

CODES = [1, 0, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 0, 1],
        [1.0, -1.0, -1.0, 1.0],
        [True, False, False, True],
        np.array([1, 0, 0, 1], dtype=np.uint8),
        np.array([True, False, False, True]),
        np.array([1, 0, 0, 1], dtype=object),
        pd.Series([1, 0, 0, 1], index=[3, 2, 1, 0]),
        pd.Series([True, False, False, True], dtype="boolean"),
        pd.Series([1, -1, -1, 1], dtype="Int64"),
        pd.Categorical([1, 0, 0, 1]),
        pl.Series([1, 0, 0, 1]),
    ],
    ids=lambda values: f"{type(values).__name__}-{getattr(values, 'dtype', '')}",
)
def test_numbers_and_booleans_are_read_as_they_are(values):
    codes = encode(values, None, [], "y")
    assert codes.dtype == np.int8
    assert codes.tolist() == CODES


@pytest.mark.parametrize(
    "values",
    [
        ["yes", "no", "no", "yes"],
        np.array(["yes", "no", "no", "yes"]),
        pd.Series(["yes", "no", "no", "yes"]),
        pd.Series(["yes", "no", "no", "yes"], dtype="category"),
        pd.array(["yes", "no", "no", "yes"], dtype="string"),
        pl.Series(["yes", "no", "no", "yes"]),
    ],
    ids=lambda values: f"{type(values).__name__}-{getattr(values, 'dtype', '')}",
)
def test_strings_need_a_positive_class(values):
    assert encode(values, "yes", ["no", "yes"], "y").tolist() == CODES
    assert encode(values, "no", ["no", "yes"], "y").tolist() == [0, 1, 1, 0]
    assert sorted(distinct(values, "y")) == ["no", "yes"]
    refuses(r"y has labels \['yes', 'no'\]: choose the positive one", encode, values, None, [], "y")


@pytest.mark.parametrize(
    ("values", "pos_label"),
    [
        ([1, None, 0], None),
        ([True, None, False], None),
        (["yes", None, "no"], "yes"),
        (["yes", np.nan, "no"], "yes"),
        (np.array([1, np.nan, -1]), None),
        (pd.Series([1, None, 0], dtype="Int64"), None),
        (pd.Series([True, None, False], dtype="boolean"), None),
        (pd.Series(["yes", None, "no"], dtype="category"), "yes"),
        (pd.array(["yes", None, "no"], dtype="string"), "yes"),
        (pl.Series(["yes", None, "no"]), "yes"),
        (pl.Series([1, None, 0]), None),
        (pl.Series([True, None, False]), None),
    ],
    ids=repr,
)
def test_missing_labels_are_encoded_as_minus_1(values, pos_label):
    labels = [] if pos_label is None else ["yes", "no"]
    assert encode(values, pos_label, labels, "y").tolist() == [1, -1, 0]
    assert len(distinct(values, "y")) == 2


def test_positive_class_of_numbers():
    assert encode([1, 2], 2, [1, 2], "y").tolist() == [0, 1]
    assert encode([0, 1], 0, [0, 1], "y").tolist() == [1, 0]
    assert encode([2, 2], 1, [1, 2], "y").tolist() == [0, 0]
    refuses(r"y has labels \[1, 2\]: choose the positive one", encode, [1, 2], None, [1, 2], "y")


@pytest.mark.parametrize("stored", [[1, 0], [1, -1], [True, False], ["yes", "no"]], ids=repr)
def test_stored_predictions_are_labels_or_ones(stored):
    codes = encode(pd.Series(stored), "yes", ["no", "yes"], "column 'deployed'")
    assert codes.tolist() == [1, 0]
    # and where the labels are numbers, they go first
    assert encode(pd.Series([1, 2]), 2, [1, 2], "column 'deployed'").tolist() == [0, 1]
    on = {"deployed": stored}
    assert churn("deployed").value(["no", "yes"], ["yes", "yes"], on, pos_label="yes") == 0.5


def test_stored_predictions_of_other_labels():
    message = r"churn\('d'\): column 'd' has \['maybe'\], not among the labels \['no', 'yes'\]"
    with pytest.raises(ValueError, match=message + "; the positive label is 'yes'"):
        churn("d").value(["no", "yes"], ["no", "yes"], {"d": ["yes", "maybe"]}, pos_label="yes")
    with pytest.raises(ValueError, match=r"column 'd' has labels \['a', 'b'\]: choose the pos"):
        churn("d").value([0, 1], [0, 1], {"d": ["a", "b"]})


def test_the_positive_label_is_one_of_several():
    check_pos_label(["a", "b"], "b")
    check_pos_label(["a"], "b")  # one class may be all there is in a sample
    check_pos_label([], None)
    check_pos_label(["a", "b", "c"], "a")
    refuses(r"pos_label='c' is not among the labels \['a', 'b'\]", check_pos_label, ["a", "b"], "c")


@pytest.mark.parametrize(
    ("y_true", "y_pred", "pos_label", "message"),
    [
        (["n", "y"], ["n", "y"], None, r"y_pred has labels \['n', 'y'\]: choose the positive one"),
        (["n", "y"], ["n", "y"], "x", "pos_label='x' is not among the labels"),
        ([0, 1, 2], [0, 1, 1], 3, r"pos_label=3 is not among the labels \[0, 1, 2\]"),
        ([0, 1], [-1, 1], None, "encode both alike"),
        ([0, 1], [0, None], None, "y_pred has missing values: every row needs a prediction"),
        ([0, 1], [0.5, 0.7], None, r"y_pred holds scores \(such as 0.5\): pass labels"),
        ([0.5, 1.5], [1.5, 0.5], None, "y_pred has labels"),
        ([0, 1, 1], [0, 1], None, "inconsistent numbers of samples"),
    ],
)
def test_other_labels_are_refused(y_true, y_pred, pos_label, message):
    refuses(message, recall().value, y_true, y_pred, pos_label=pos_label)


def test_a_stored_1_is_not_read_as_positive_where_1_is_the_negative_label():
    refuses("not among the labels", encode, [-1, 1], 0, [0, 1], "deployed")
    assert encode([-1, 1], 1, [0, 1], "deployed").tolist() == [0, 1]
    assert encode([0, 1], "yes", ["no", "yes"], "deployed").tolist() == [0, 1]


def test_decimals_beside_integers_of_numpy_are_labels():
    truth = [Decimal(0), Decimal(1), Decimal(1)]
    assert recall().value(truth, np.array([0, 1, 0]), pos_label=1) == 0.5


def test_a_decision_between_integers_is_no_score_if_labels_name_it():
    assert recall(of=1.0).value([1.0, 2.0], [1.0, 9.5], labels=[1.0, 2.0, 9.5]) == 1
    refuses("holds scores .* name all as labels=", recall(of=1.0).value, [1.0, 2.0], [1.0, 9.5])
