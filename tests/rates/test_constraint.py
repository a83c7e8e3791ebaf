"""Constraints: what is compared with what, names, copies, and lists of them."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from skbandit import rates
from skbandit.measure import Columns, Data, Rows, bind_constraints, expand, flatten_constraints
from skbandit.rates import (
    Constraint,
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
from tests.worlds import refuses

rng = np.random.default_rng(0)
PI = rng.random(60)
DATA = Data(
    Rows(
        Columns.read(
            {"sex": rng.choice(["F", "M"], 60), "deployed": rng.integers(0, 2, 60)}, None, 60
        ),
        rng.integers(0, 2, 60).astype(np.int8),
        rng.random(60),
    ),
    None,
    1,
    [0, 1],
)
women, men = positive_rate({"sex": "F"}), positive_rate("sex == 'M'")


def slacks(constraints):
    bound = bind_constraints(expand(flatten_constraints(constraints), DATA), DATA)
    return bound.slack(bound.values(PI))


CONSTRAINTS = [
    recall() >= 0.9,
    women >= 0.8 * men - 0.05,
    women - (men - recall()) <= 0.3,
    0.5 - women <= men + 0.1,
    precision() >= 0.5,
    2 * f1() - 1 >= -0.25,
    0.25 <= women / (men + recall()),
    1 / recall() <= 5,
    churn("deployed") <= 0.25,
    abs(women - men) <= 0.02,
    abs(women - men) <= 0.1 * recall(),
    abs(precision() - 0.5) <= 0.1,
    each(recall, by="sex") >= recall() - 0.05,
    abs(each(recall, by="sex") - recall()) <= 0.05,
    ratio(positive_rate, by="sex") >= 0.8,
    1 - ratio(positive_rate, by="sex") <= 0.2,
    difference(recall, by="sex") <= 0.02,
    0.02 >= difference(recall, by="sex"),
]
with_names = pytest.mark.parametrize("name", [None, "it's", 'say "no"'])
with_all = pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)


@with_names
@with_all
def test_text_evaluates_to_the_same(constraint, name):
    if name is not None:
        constraint = constraint.named(name)
    copied = eval(repr(constraint), {one: getattr(rates, one) for one in rates.__all__})
    assert isinstance(copied, Constraint)
    assert repr(copied) == repr(constraint)
    assert copied.name == name
    np.testing.assert_allclose(slacks(copied), slacks(constraint), atol=1e-12)


class Holder(BaseEstimator):
    def __init__(self, objective=None, constraints=()):
        self.objective = objective
        self.constraints = constraints


def test_clone_keeps_constraints():
    holder = Holder(error_rate(), CONSTRAINTS)
    cloned = clone(clone(holder))
    assert repr(cloned.constraints) == repr(CONSTRAINTS)
    assert repr(cloned.objective) == "error_rate()"
    np.testing.assert_array_equal(slacks(cloned.constraints), slacks(CONSTRAINTS))
    assert "recall() >= 0.9" in repr(Holder(constraints=recall() >= 0.9))
    assert "recall() &gt;= 0.9" in Holder(constraints=[recall() >= 0.9])._repr_html_()


def test_immutable_and_equal_to_itself_alone():
    one, two = recall() >= 0.9, recall() >= 0.9
    with pytest.raises(FrozenInstanceError):
        one.sense = "<="
    assert one.named("a") is not one
    assert one.name is None
    assert one == one
    assert one != two
    assert len({one, two}) == 2


@pytest.mark.parametrize(
    ("constraint", "bound", "sense"),
    [
        (recall() >= 0.9, 0.9, ">="),
        (0.9 <= recall(), 0.9, ">="),
        (np.float64(0.9) >= recall(), 0.9, "<="),
        (recall() >= np.float32(0.5), 0.5, ">="),
        (recall() + 0.25 >= 1, 1, ">="),
        (women >= 0.8 * men - 0.05, -0.05, ">="),
        (1 - women <= 0.5 - men, 0.5, "<="),
        (precision() - 0.5 >= 0, 0, ">="),
        (2 * (women / men) + 1 <= 3, 3, "<="),
        (1 / recall() <= 5, 5, "<="),
        (1 <= 1 / recall(), 1, ">="),
    ],
    ids=repr,
)
def test_bound_and_sense(constraint, bound, sense):
    assert constraint.bound == pytest.approx(bound)
    assert type(constraint.bound) is float
    assert constraint.sense == sense


def test_constraints_are_labeled_by_name_or_text():
    rule = women >= 0.8 * men
    assert rule.label == rule.text == repr(rule)
    assert rule.named("80%").label == "80%"
    assert rule.named("80%").named("four fifths").name == "four fifths"
    assert rule.named(80).name == "80"


def test_absolute_is_two_sided():
    upper, lower = (abs(women - men) <= 0.02).one_sided()
    assert repr(upper) == f"{women} - {men} <= 0.02"
    assert repr(lower) == f"{women} - {men} >= -0.02"
    assert [side.label for side in (abs(women) <= 0.5).named("w").one_sided()] == [
        "w (upper)",
        "w (lower)",
    ]
    upper, lower = (abs(women - men) <= 2 * recall()).one_sided()
    assert repr(lower) == f"{women} - {men} >= -(2 * recall())"
    assert repr((abs(women) <= 0).one_sided()[1]).endswith(">= 0.0")
    assert (recall() >= 0.9).one_sided()[0].sense == ">="


def test_slack_is_the_distance_inside():
    gap = (women - men).value(None, PI > 0.5, {"sex": DATA.train.columns.frame["sex"]})
    hard = (PI > 0.5).astype(float)
    weightless = Data(Rows(DATA.train.columns, DATA.train.label, np.ones(60)))
    bound = bind_constraints(expand([abs(women - men) <= 0.5], weightless), weightless)
    np.testing.assert_allclose(bound.slack(bound.values(hard)), [0.5 - gap, 0.5 + gap])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: bool(recall() >= 0.9), TypeError, r"recall\(\) >= 0\.9 is a constraint and has"),
        (lambda: 0.1 <= women <= 0.3, TypeError, r">= 0\.1 is a constraint.*\[rate >= low, rate"),
        (lambda: (recall() >= 0.9) and (women <= 1), TypeError, r"\[a, b\] instead of \(a\) and"),
        (lambda: precision() >= recall(), ValueError, r"precision\(\) >= recall\(\) bounds a"),
        (lambda: recall() <= precision(), ValueError, r"recall\(\) <= precision\(\) bounds a"),
        (lambda: precision() <= f1(), ValueError, "can only be bounded by a number"),
        (lambda: women / men >= recall(), ValueError, "bounds a ratio by a rate"),
        (lambda: recall() >= 1 / women, ValueError, "bounds a ratio by a rate"),
        (lambda: 1 / women <= 1 / men, ValueError, "bounds a ratio by a rate"),
        (lambda: abs(women) <= precision(), ValueError, "bounds a ratio by a rate"),
        (lambda: ratio(recall, by="sex") <= 0.8, ValueError, "for both orders.*from below, with"),
        (lambda: difference(recall, by="sex") >= 0, ValueError, "both orders.*from above, with <="),
        (lambda: -difference(recall, by="sex") <= 0, ValueError, "from below, with >="),
        (lambda: abs(difference(recall, by="sex")), ValueError, "every ordered pair"),
    ],
)
def test_impossible_constraints_are_refused(make, error, message):
    refuses(message, make, error=error)


def test_lists_flatten():
    one, two, three = recall() >= 0.9, precision() >= 0.5, women <= 0.5
    for nested in ([one, two, three], (one, [two, (three,)]), [[[one]], [], iter([two, three])]):
        assert flatten_constraints(nested) == [one, two, three]
    assert flatten_constraints(one) == [one]
    assert flatten_constraints(None) == flatten_constraints(()) == []
    assert flatten_constraints(np.array([one, two], dtype=object)) == [one, two]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            [recall() == 0.9],
            r"Found False among the constraints: == does not.*abs\(rate - c\)",
        ),
        (recall() != 0.9, "Found True among the constraints"),
        ([recall() >= 0.9, [recall()]], r"recall\(\) is a rate, not a constraint"),
        (abs(recall()), r"abs\(recall\(\)\) is a rate, not a constraint"),
        ("recall() >= 0.9", r"'recall\(\) >= 0\.9' is not a constraint: compare a rate with a"),
        ([0.9], r"0\.9 is not a constraint"),
        ([recall], "is not a constraint"),
    ],
)
def test_lists_of_other_objects_are_refused(found, message):
    refuses(message, flatten_constraints, found, error=TypeError)
