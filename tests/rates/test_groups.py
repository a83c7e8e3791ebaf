"""Group forms: the constraints they stand for, and groups that cannot be measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from skbandit.measure import Data, bind_constraints, expand
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.rates.tables import make_data, make_rows
from tests.worlds import refuses

G = ["b", "a", "c", "b", "a", "c", None, "a"]
LABEL = np.array([1, 1, 1, 0, 0, 1, 1, 1])
PI = np.array([0.5, 0.25, 1, 0, 1, 0.5, 0, 0.75])
DATA = make_data(LABEL, g=G)
RECALL = {"a": 0.5, "b": 0.5, "c": 0.75}
POSITIVE = {"a": 2 / 3, "b": 0.25, "c": 0.75}


def measured(constraint, data=DATA, pi=PI):
    """Every constraint it stands for: label, sense, value and bound."""
    bound = bind_constraints(expand([constraint], data), data)
    return {
        one.label: (one.sense, pytest.approx(value, nan_ok=True), pytest.approx(one.bound))
        for one, value in zip(bound.constraints, bound.values(pi), strict=True)
    }


def test_each_is_one_constraint_a_group():
    text = "each(recall, by='g') >= 0.6"
    assert measured(each(recall, by="g") >= 0.6) == {
        f"{text} [{group}]": (">=", RECALL[group], 0.6) for group in "abc"
    }
    assert list(measured(each(recall, by="g") >= 0.6)) == [f"{text} [{g}]" for g in "abc"]


def test_each_keeps_the_other_rates_to_their_own_rows():
    everyone = PI[LABEL == 1].mean()
    found = measured((each(recall, by="g") >= recall() - 0.05).named("fair"))
    assert found == {f"fair [{group}]": (">=", RECALL[group] - everyone, -0.05) for group in "abc"}
    bound = bind_constraints(expand([each(recall, by="g") >= recall()], DATA), DATA)
    assert bound.n_rows.tolist() == [6, 6, 6]
    assert measured(0.1 <= recall({"g": "c"}) - each(positive_rate, by="g")) == {
        f"recall({{'g': 'c'}}) - each(positive_rate, by='g') >= 0.1 [{group}]": (
            ">=", 0.75 - POSITIVE[group], 0.1,
        )
        for group in "abc"
    }  # fmt: skip


def test_each_of_both_sides_takes_the_same_group():
    found = measured((each(recall, by="g") <= each(positive_rate, by="g")).named("n"))
    assert found == {f"n [{group}]": ("<=", RECALL[group] - POSITIVE[group], 0) for group in "abc"}
    found = measured((each(recall, by="g") / each(positive_rate, by="g") <= 2).named("n"))
    assert found == {f"n [{group}]": ("<=", RECALL[group] / POSITIVE[group], 2) for group in "abc"}


PAIRS = [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]


def test_ratio_is_every_ordered_pair():
    found = measured(ratio(positive_rate, by="g") >= 0.8)
    assert found == {
        f"ratio(positive_rate, by='g') >= 0.8 [{one} / {other}]": (
            ">=", POSITIVE[one] / POSITIVE[other], 0.8,
        )
        for one, other in PAIRS
    }  # fmt: skip
    assert [label.split("[")[1] for label in found] == [f"{x} / {y}]" for x, y in PAIRS]
    turned = measured((1 - ratio(positive_rate, by="g") <= 0.2).named("n"))
    assert turned == {
        f"n [{one} / {other}]": ("<=", 1 - POSITIVE[one] / POSITIVE[other], 0.2)
        for one, other in PAIRS
    }


def test_abs_of_each_has_both_sides():
    everyone = PI[LABEL == 1].mean()
    found = measured(abs(each(recall, by="g") - recall()) <= 0.1)
    text = "each(recall, by='g') - recall()"
    assert found == {
        f"{text} {sense} {bound} [{group}]": (sense, RECALL[group] - everyone, bound)
        for sense, bound in (("<=", 0.1), (">=", -0.1))
        for group in "abc"
    }
    named = measured((abs(each(recall, by="g") - recall()) <= 0.1).named("near"))
    assert list(named) == [f"near ({side}) [{g}]" for side in ("upper", "lower") for g in "abc"]


def test_forms_take_a_function_or_a_rate():
    assert repr(each(recall, by="g")) == "each(recall, by='g')"
    assert repr(each(recall(), by="g")) == "each(recall(), by='g')"
    data = make_data(LABEL, g=G, d=[1] * 8, old=[True] * 6 + [False] * 2)
    by_group = measured((each(churn("d"), by="g") <= 0.5).named("n"), data)
    assert by_group == {f"n [{g}]": ("<=", 1 - POSITIVE[g], 0.5) for g in "abc"}
    in_both = measured((each(positive_rate("old"), by="g") <= 0.5).named("n"), data)
    assert in_both["n [a]"] == ("<=", (PI[1] + PI[4]) / 2, 0.5)
    scaled = measured((each(2 * precision() - 1, by="g") >= 0).named("n"))
    assert scaled["n [a]"] == (">=", 2 * 1 / 2 - 1, 0)


@pytest.mark.parametrize(
    "groups",
    [
        [3, 1, 10, 3, 1, 10, None, 1],
        pd.array([3, 1, 10, 3, 1, 10, None, 1], dtype="Int64"),
        pd.Categorical([3, 1, 10, 3, 1, 10, None, 1], categories=[10, 3, 1, 7]),
    ],
    ids=["float", "Int64", "category"],
)
def test_groups_are_sorted_by_value(groups):
    found = measured((each(recall, by="g") >= 0).named("n"), Data(make_rows(LABEL, g=groups)))
    assert [float(label[3:-1]) for label in found] == [1, 3, 10]
    assert [value for _, value, _ in found.values()] == [0.5, 0.5, 0.75]


def test_groups_of_several_types():
    data = Data(make_rows([1, 1, 1], g=np.array(["b", 2, "a"], dtype=object)))
    found = measured((each(recall, by="g") >= 0).named("n"), data, np.ones(3))
    assert list(found) == ["n [2]", "n [a]", "n [b]"]


def test_rows_of_weight_zero_make_no_group():
    data = Data(make_rows([1, 1, 1], [1, 0, 1], g=["a", "b", "c"]))
    assert list(measured((each(recall, by="g") >= 0).named("n"), data, np.ones(3))) == [
        "n [a]", "n [c]",
    ]  # fmt: skip


def test_groups_of_train_extra_or_both():
    data = Data(make_rows([1, 1], g=["a", "b"]), make_rows([1, 0], g=["b", "c"]))
    for on, groups in (("train", "ab"), ("extra", "bc"), ("all", "abc")):
        found = measured((each(positive_rate(on=on), by="g") >= 0).named("n"), data, np.ones(4))
        assert list(found) == [f"n [{group}]" for group in groups]


def skipped(constraint, data, message):
    constraints = expand([constraint], data)
    with pytest.warns(UndefinedMetricWarning, match=message):
        return bind_constraints(constraints, data)


def test_group_without_positives_is_skipped():
    data = Data(make_rows([1, 0, 0], g=["a", "b", "a"]))
    text = r"each\(recall, by='g'\) >= 0\.5 \[b\] is not measured: recall\(\): .* no positives"
    bound = skipped(each(recall, by="g") >= 0.5, data, text)
    assert bound.n_rows.tolist() == [1, 0]
    np.testing.assert_array_equal(bound.values(np.ones(3)), [1, np.nan])
    assert not bound.forms.numerator.toarray()[1].any()
    assert len(bound.constraints) == 2


LABELED = Data(make_rows([1, 0], g=["a", "a"]), make_rows([-1, -1], g=["a", "b"]))
STORED = make_data([1, 0], g=["a", "b"], d=[1, None])
OLD = Data(make_rows([1, 1], g=["a", "b"], old=[True, False]))


@pytest.mark.parametrize(
    ("rate", "data", "message", "n_rows"),
    [
        (error_rate(on="all"), LABELED, r"error_rate\(on='all'\): .* hold no labels", [2, 0]),
        (churn("d"), STORED, "the selected rows hold no predictions in column 'd'", [1, 0]),
        (recall("old"), OLD, r"recall\('old'\): no rows of 'g' = 'b' are selected", [1, 0]),
    ],
    ids=["no labels", "no predictions", "outside of where"],
)
def test_groups_with_nothing_to_measure_are_skipped(rate, data, message, n_rows):
    bound = skipped(each(rate, by="g") <= 0.5, data, r"\[b\] is not measured: .*" + message)
    assert bound.n_rows.tolist() == n_rows


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (each(recall("g == 'typo'"), by="g") >= 0.5, "selects no rows"),
        (each(recall, by="g") >= recall({"g": "typo"}), "selects no rows; 'g' holds 'b', 'a', 'c'"),
        (each(recall, by="h") >= 0.5, r"each\(recall, by='h'\) >= 0\.5: unknown column 'h'; known"),
        (each(recall(on="extra"), by="g") >= 0.5, "rows of X_extra: pass X_extra"),
        (each(recall, by="none") >= 0.5, r"column 'none' holds 0 group\(s\), needs 1"),
        (ratio(recall, by="one") >= 0.5, r"column 'one' holds 1 group\(s\), needs 2"),
    ],
    ids=repr,
)
def test_mistakes_are_not_skipped(constraint, message):
    data = Data(make_rows(LABEL, g=G, none=[None] * 8, one=["a"] * 8))
    with pytest.raises(ValueError, match=message):
        bind_constraints(expand([constraint], data), data)


def test_no_labels_at_all():
    data = Data(make_rows([1]), make_rows([-1, -1], g=["a", "b"]))
    for rate in (recall(on="extra"), each(recall(on="extra"), by="g")):
        with pytest.raises(ValueError, match=r"needs labels.*have none: pass y_extra"):
            bind_constraints(expand([rate >= 0.5], data), data)
    with pytest.raises(ValueError, match=r"needs labels.*have none: pass their labels"):
        bind_constraints([recall() >= 0.5], Data(make_rows([-1, -1])))
    with pytest.raises(ValueError, match=r"churn\('d'\): column 'd' is missing in all rows"):
        bind_constraints([churn("d") <= 0.5], Data(make_rows([1, 0], d=[None, None])))


def test_new_data_may_lack_what_the_training_data_had():
    constraints = expand([recall({"g": "a"}) >= 0.5, each(recall, by="g") >= 0.5], DATA)
    new = Data(make_rows([1, 0], g=["b", "b"]))
    refuses("selects no rows", bind_constraints, constraints, new)
    with pytest.warns(UndefinedMetricWarning) as caught:
        bound = bind_constraints(constraints, new, allow_empty=True)
    assert bound.n_rows.tolist() == [0, 0, 1, 0]
    assert len(caught) == 1
    assert "selects no rows" in str(caught[0].message)
    assert "no rows of 'g' = 'a' are selected" in str(caught[0].message)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: each(each(recall, by="g"), by="h"), ValueError, "is already a group form"),
        (lambda: each(recall, by=["g", 1]), TypeError, r"by=\['g', 1\] must be the name of an"),
        (lambda: each(recall, by=[]), TypeError, r"by=\[\] must be the name of an attribute"),
        (lambda: each(recall, by=["g", "g"]), ValueError, "names a column twice"),
        (lambda: each(0.5, by="g"), TypeError, "0.5 is not a rate"),
        (lambda: each(dict, by="g"), TypeError, "is not a rate"),
        (lambda: each(recall() >= 0.5, by="g"), TypeError, r"recall\(\) >= 0\.5 is not a rate"),
        (lambda: each(recall, by="g") - each(recall, by="h"), ValueError, "mixes two group forms"),
        (lambda: each(recall, by="g") - difference(recall, by="g"), ValueError, "mixes two group"),
        (
            lambda: difference(recall, by="g") / recall(),
            ValueError,
            "can only be combined with numbers",
        ),
        (lambda: ratio(recall, by="g") / recall(), ValueError, "divides a ratio"),
    ],
)
def test_impossible_groups_are_refused(make, error, message):
    refuses(message, make, error=error)


TWO = {"g": list("aabbab"), "h": [1, 1, 1, 2, 2, 2]}


def test_groups_of_several_columns_are_the_combinations_present():
    label = [1, 1, 1, 1, 1, 0]
    data = Data(make_rows(label, g=TWO["g"], h=TWO["h"]))
    found = expand([(each(recall, by=["g", "h"]) >= 0.5).named("n")], data)
    assert [one.label for one in found] == ["n [a, 1]", "n [a, 2]", "n [b, 1]", "n [b, 2]"]
    rate = each(recall, by=["g", "h"])
    assert repr(rate) == "each(recall, by=['g', 'h'])"
    predicted = [1, 0, 1, 1, 1, 1]
    assert rate.value(label, predicted, TWO) == 0.5
    assert difference(recall, by=["g", "h"]).value(label, predicted, TWO) == 0.5
    assert ratio(recall, by=("g", "h")).value(label, predicted, TWO) == 0.5
    assert repr(each(recall, by=["g"])) == "each(recall, by='g')"


def test_groups_must_be_hashable():
    with pytest.raises(TypeError, match=r"column 'g': .* must be hashable .*make them strings"):
        each(recall, by="g").value([1, 1], [1, 1], {"g": [["a"], ["b"]]})


def test_a_continuous_column_warns_once_in_total():
    label, age = [1, 0, 0, 0, 0, 0], np.linspace(20, 30, 6)
    with pytest.warns(UndefinedMetricWarning) as caught:
        assert each(recall, by="age").value(label, label, {"age": age}) == 1
    assert len(caught) == 1 and "4 more of 6; if they are" in str(caught[0].message)
    data = Data(make_rows(label, age=age))
    with pytest.warns(UndefinedMetricWarning) as caught:
        bind_constraints(expand([each(recall, by="age") >= 0.5], data), data)
    assert len(caught) == 1 and "cut it into bands" in str(caught[0].message)


def test_precision_by_group_is_a_metric():
    label, predicted = [1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]
    # precision is 1/2 in a (rows 0, 1), 2/3 in b
    attributes = {"g": list("aabbbb")}
    gap, quotient = difference(precision, by="g"), ratio(precision, by="g")
    assert gap.value(label, predicted, attributes) == pytest.approx(2 / 3 - 1 / 2)
    assert quotient.value(label, predicted, attributes) == pytest.approx(3 / 4)
    assert (precision() / recall()).value(label, predicted) == pytest.approx(3 / 5)
    assert (f1() - precision()).value(label, predicted) == pytest.approx(6 / 8 - 3 / 5)


def test_precision_by_group_cannot_be_trained():
    data = Data(make_rows([1, 0, 1, 0], g=list("aabb")))
    for constraint in (difference(precision, by="g") <= 0.1, ratio(f1, by="g") >= 0.8):
        with pytest.raises(ValueError, match=r"can be measured but not trained: .*each\(precision"):
            bind_constraints(expand([constraint], data), data)
