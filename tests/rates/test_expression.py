"""The algebra of rates: texts that evaluate to themselves, immutability, and what is refused."""

import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import hypothesis.strategies as st
from hypothesis import given

from skbandit import rates
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.worlds import refuses

rng = np.random.default_rng(0)
SEEN = (
    rng.integers(0, 2, 200),
    rng.integers(0, 2, 200),
    pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 200),
            "old": rng.random(200) < 0.5,
            "amount": rng.random(200),
            "deployed": rng.integers(0, 2, 200),
        }
    ),
)

a, b, c = positive_rate("sex == 'F'"), recall({"sex": "M"}), error_rate("old")


def again(expression):
    return eval(repr(expression), {name: getattr(rates, name) for name in rates.__all__})


def check_text(expression):
    copied = again(expression)
    assert type(copied) is type(expression)
    assert repr(copied) == repr(expression)
    assert copied.value(*SEEN) == pytest.approx(expression.value(*SEEN), rel=1e-9)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (recall(), "recall()"),
        (recall(None, weight="amount"), "recall(weight='amount')"),
        (recall("old", on="extra"), "recall('old', on='extra')"),
        (churn("deployed"), "churn('deployed')"),
        (
            churn("deployed", {"sex": ["F", "M"]}, on="all", weight="amount"),
            "churn('deployed', {'sex': ['F', 'M']}, on='all', weight='amount')",
        ),
        (a - (b - c), "positive_rate(\"sex == 'F'\") - (recall({'sex': 'M'}) - error_rate('old'))"),
        (1 - recall(), "1 - recall()"),
        (-(recall() + error_rate()), "-(recall() + error_rate())"),
        (-recall() * 2, "-recall() * 2"),
        (2 * (recall() / error_rate()), "2 * (recall() / error_rate())"),
        (2 * (-3 * recall()), "2 * (-3 * recall())"),
        (-(-3 * recall()), "-(-3 * recall())"),
        (1 + (2 + recall()), "1 + (2 + recall())"),
        (1 + 2 * recall(), "1 + 2 * recall()"),
        (2 * (recall() + 0.5), "2 * (recall() + 0.5)"),
        (recall() * 2 / 3, "recall() * 2 / 3"),
        (recall() / (2 * error_rate()), "recall() / (2 * error_rate())"),
        ((recall() / error_rate()) / 2, "recall() / error_rate() / 2"),
        (recall() / -2, "recall() / (-2)"),
        (recall() - (-0.5), "recall() - -0.5"),
        (1 / recall(), "1 / recall()"),
        (abs(recall() - 0.5), "abs(recall() - 0.5)"),
        (each(recall, by="sex"), "each(recall, by='sex')"),
        (each(recall("old"), by="sex"), "each(recall('old'), by='sex')"),
        (each(lambda: recall("old"), by="sex"), "each(recall('old'), by='sex')"),
        (each(2 * precision() - 1, by="sex"), "each(2 * precision() - 1, by='sex')"),
        (1 - ratio(positive_rate, by="sex"), "1 - ratio(positive_rate, by='sex')"),
        (difference(churn("deployed"), by="sex"), "difference(churn('deployed'), by='sex')"),
    ],
    ids=repr,
)
def test_expressions_print_as_declared(expression, text):
    assert repr(expression) == text
    check_text(expression)


def test_sum_of_a_list():
    assert repr(sum([recall(), error_rate(), a])) == f"recall() + error_rate() + {a}"
    assert sum([precision()]).value(*SEEN) == precision().value(*SEEN)


@pytest.mark.parametrize("number", [np.float64(0.8), np.float32(0.5), np.int64(2), Fraction(1, 4)])
def test_numbers_print_as_python(number):
    for expression in (number * recall(), recall() * number, recall() / number, number - recall()):
        assert "np" not in repr(expression)
        assert "Fraction" not in repr(expression)
        check_text(expression)
    known = recall().value(*SEEN)
    assert (number * recall()).value(*SEEN) == pytest.approx(float(number) * known)
    assert (number / recall()).value(*SEEN) == pytest.approx(float(number) / known)
    assert (number - recall()).value(*SEEN) == pytest.approx(float(number) - known)


def test_where_of_numpy_and_pandas_prints_as_python():
    for values in (np.array([1, 2]), (1, 2), pd.Series([1, 2]), {1, 2}):
        assert repr(recall({"age": values})) == "recall({'age': [1, 2]})"
    assert repr(recall({"age": np.int64(1)})) == "recall({'age': 1})"


def test_where_is_a_copy():
    where = {"sex": ["F"]}
    rate = recall(where)
    where["sex"].append("M")
    where["old"] = True
    assert repr(rate) == "recall({'sex': ['F']})"


numbers_ = st.sampled_from([-3, -0.5, 0.25, 1, 2.5])
atoms = st.sampled_from([a, b, c, churn("deployed"), recall(weight="amount")])


@st.composite
def algebra(draw, depth=4):
    """An expression by random operators beside its value by the same operators on floats."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        atom = draw(atoms)
        return atom, atom.value(*SEEN)
    left, known = draw(algebra(depth=depth - 1))
    number, operator = draw(numbers_), draw(st.sampled_from("+-*/nrs"))
    if operator in "+-" and draw(st.booleans()):
        right, value = draw(algebra(depth=depth - 1))
    else:
        right, value = number, number
    return {
        "+": lambda: (left + right, known + value),
        "-": lambda: (left - right, known - value),
        "*": lambda: (left * number, known * number),
        "/": lambda: (left / number, known / number),
        "n": lambda: (-left, -known),
        "r": lambda: (number - left, number - known),
        "s": lambda: (number * left, number * known),
    }[operator]()


@pytest.mark.thorough
@given(made=algebra(), below=st.none() | st.sampled_from([a + 0.5, 2 * b, b]), shift=numbers_)
def test_random_algebra(made, below, shift):
    expression, known = made
    if below is not None:
        expression, known = shift - 2 * (expression / below), shift - 2 * known / below.value(*SEEN)
    assert expression.value(*SEEN) == pytest.approx(known, abs=1e-9)
    copied = again(expression)
    assert repr(copied) == repr(expression)
    assert copied.value(*SEEN) == pytest.approx(known, abs=1e-9)


def test_number_over_a_rate():
    known = recall().value(*SEEN)
    assert (1 / recall() + 1).value(*SEEN) == pytest.approx(1 / known + 1)
    assert (1 - 2 / recall()).value(*SEEN) == pytest.approx(1 - 2 / known)
    check_text(3 - 1 / recall())


@pytest.mark.parametrize("expression", [recall(), recall() - 0.5, abs(recall())], ids=repr)
def test_expressions_are_immutable(expression):
    with pytest.raises(FrozenInstanceError):
        expression.text = "precision()"
    with pytest.raises(FrozenInstanceError):
        del expression.anything
    with pytest.raises(FrozenInstanceError):
        (expression.rate if hasattr(expression, "rate") else expression).terms[0][1].on = "all"


def test_equality_is_identity():
    one, two = recall(), recall()
    assert (one == one, one == two, one != two, one == 0.9) == (True, False, True, False)
    assert (np.float64(0.9) == one) is False
    assert len({one, two, abs(one), abs(one)}) == 4


@pytest.mark.parametrize(
    "array", [np.array([0.5, 0.6]), np.array([0.5]), np.array(0.5), [0.5], pd.Series([0.5, 0.6])],
    ids=lambda array: f"{type(array).__name__}{np.shape(array)}",
)  # fmt: skip
@pytest.mark.parametrize(
    "operation",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: x <= y,
        lambda x, y: x >= y,
    ],
)
def test_arrays_are_refused_in_both_orders(operation, array):
    for operands in ((recall(), array), (array, recall())):
        with pytest.raises(
            TypeError, match=r"recall\(\).*(?s:.*)real numbers.*list of constraints"
        ):
            operation(*operands)


@pytest.mark.parametrize("other", [True, np.True_, "0.5", None, 1j, abs(recall())], ids=repr)
def test_operands_that_are_no_numbers_are_refused(other):
    with pytest.raises(TypeError, match=r"^recall\(\) \+ .*not with"):
        recall() + other
    with pytest.raises(TypeError, match="not with"):
        recall() <= other  # noqa: B015
    with pytest.raises(TypeError, match="not with"):
        recall() * other


@pytest.mark.parametrize("number", [math.nan, math.inf, -np.inf, np.float32("nan")], ids=repr)
def test_numbers_are_finite(number):
    with pytest.raises(ValueError, match=r"recall\(\) <= (nan|-?inf): the number must be finite"):
        recall() <= number  # noqa: B015
    with pytest.raises(ValueError, match="must be finite"):
        number * recall()
    with pytest.raises(ValueError, match="must be finite"):
        abs(recall()) <= number  # noqa: B015


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: recall() * precision(), TypeError, r"recall\(\) \* precision\(\) multiplies two"),
        (lambda: recall() / 0, ZeroDivisionError, r"recall\(\) / 0 divides by zero"),
        (lambda: 1 / a + b, ValueError, "can only be combined with numbers"),
        (lambda: (a / b) / c, ValueError, "divides a ratio: multiply out"),
        (lambda: a / (b / c), ValueError, "divides a ratio"),
        (lambda: a / (b - c), ValueError, "the divisor may become negative"),
        (lambda: 1 / -a, ValueError, "the divisor may become negative"),
        (lambda: recall() < 0.5, TypeError, r"recall\(\) < 0\.5: strict bounds are not"),
        (lambda: recall() > 0.5, TypeError, r"recall\(\) > 0\.5: strict bounds are not"),
        (lambda: bool(recall()), TypeError, r"recall\(\) has no truth value"),
        (lambda: abs(recall()) < 0.5, TypeError, r"abs\(recall\(\)\) < 0\.5.*write <="),
        (lambda: abs(recall()) > 0.5, TypeError, "write >="),
        (lambda: abs(recall()) >= 0.5, TypeError, r"abs\(recall\(\)\) >= 0\.5 is a choice"),
        (lambda: bool(abs(recall())), TypeError, r"abs\(recall\(\)\) has no truth value"),
        (lambda: abs(recall()) + 1, TypeError, r"abs\(recall\(\)\) takes no arithmetic"),
        (lambda: 1 - abs(recall()), TypeError, "takes no arithmetic"),
        (lambda: abs(recall()) / 2, TypeError, "takes no arithmetic"),
        (lambda: recall(0), TypeError, "where=0 does not select rows: pass a column"),
        (lambda: recall(np.array([True])), TypeError, r"where=array\(\[ ?True\]\) does not"),
        (lambda: recall(on="test"), ValueError, "on='test' must be 'train', 'extra' or 'all'"),
        (lambda: recall(weight=[1, 2]), TypeError, r"weight=\[1, 2\] must be the name"),
        (lambda: churn(lambda X: 1), TypeError, "pass the name of the attribute column"),
    ],
)
def test_impossible_expressions_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "compare",
    [lambda: recall >= 0.85, lambda: 0.85 <= recall, lambda: -recall, lambda: recall - 1],
)
def test_a_rate_without_parentheses_says_so(compare):
    with pytest.raises(TypeError, match=r"recall is a function, and recall\(\) a rate"):
        compare()
    assert pickle.loads(pickle.dumps(recall)) is recall
    refuses(r"recall\(\) \+ recall without parentheses", recall().__add__, recall, error=TypeError)
    refuses("is a constraint", (recall() >= 0.5).__and__, recall() >= 0.6, error=TypeError)
