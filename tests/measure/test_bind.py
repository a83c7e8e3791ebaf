"""Compilation is exact: bound forms and weight rows against counts written out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import hypothesis.strategies as st
from hypothesis import assume, given

from skbandit import rates
from skbandit.measure import (
    Columns,
    Data,
    LinearFractionalForms,
    Rows,
    bind_constraints,
    bind_rate,
    expand,
    nonnegative_rows,
    weight_rows,
)
from tests.rates.tables import make_data

LINEAR = [
    "positive_rate", "negative_rate", "recall", "true_negative_rate", "false_positive_rate",
    "false_negative_rate", "error_rate", "accuracy", "churn",
]  # fmt: skip
FRACTIONAL = ["precision", "negative_predictive_value", "f1"]


def older(frame):
    return frame["age"] > 1


# each `where` beside what it says of one row
WHERES = [
    (None, lambda row: True),
    ("flag", lambda row: row["flag"] is True),
    ("group == 'a' and age > 0", lambda row: row["group"] == "a" and (row["age"] or 0) > 0),
    ("~(age > 1)", lambda row: row["age"] is not None and not row["age"] > 1),
    ({"group": "a"}, lambda row: row["group"] == "a"),
    ({"group": ["a", "b"]}, lambda row: row["group"] is not None),
    ({"group": "b", "flag": False}, lambda row: row["group"] == "b" and row["flag"] is False),
    (older, lambda row: (row["age"] or 0) > 1),
]


class Empty(Exception):
    """No answers can fill a denominator."""


def by_hand(kind, selects, on, weight, table):
    """One rate from its definition; a row answers positive with probability row["pi"]."""
    every = total = TP = FP = FN = TN = positive = differs = compared = 0.0
    for row in table:
        if on not in ("all", row["on"]) or not selects(row):
            continue
        w, pi = row["weight"], row["pi"]
        if weight:
            w *= row["money"]
        every += w
        positive += w * pi
        if row["label"] == 1:
            TP, FN = TP + w * pi, FN + w * (1 - pi)
        if row["label"] == 0:
            FP, TN = FP + w * pi, TN + w * (1 - pi)
        if row["label"] is not None:
            total += w
        if row["deployed"] is not None:
            compared += w
            differs += w * (1 - pi if row["deployed"] == "yes" else pi)
    above, below, can_be = {
        "positive_rate": (positive, every, every),
        "negative_rate": (every - positive, every, every),
        "recall": (TP, TP + FN, TP + FN),
        "true_negative_rate": (TN, TN + FP, TN + FP),
        "false_positive_rate": (FP, TN + FP, TN + FP),
        "false_negative_rate": (FN, TP + FN, TP + FN),
        "error_rate": (FP + FN, total, total),
        "accuracy": (TP + TN, total, total),
        "precision": (TP, TP + FP, total),
        "negative_predictive_value": (TN, TN + FN, total),
        "f1": (2 * TP, 2 * TP + FP + FN, total),
        "churn": (differs, compared, compared),
    }[kind]
    if not can_be > 0:
        raise Empty
    return above / below if below > 1e-12 else math.nan


@st.composite
def one_rate(draw, kinds):
    """A rate of the catalog, and the function from a table to its value."""
    kind = draw(st.sampled_from(kinds))
    where, selects = draw(st.sampled_from(WHERES))
    on = draw(st.sampled_from(["train", "extra", "all"]))
    weight = draw(st.sampled_from([None, None, "money"]))
    given = ("deployed", where) if kind == "churn" else (where,)
    rate = getattr(rates, kind)(*given, on=on, weight=weight)
    return rate, lambda table: by_hand(kind, selects, on, weight, table)


coefficients = st.sampled_from([-2, -1.5, -1, -0.3, 0, 0.25, 1, 3])
constants = st.sampled_from([-1, -0.2, 0, 0.5, 2])
divisors = st.sampled_from([-4, 0.5, 1, 3])


@st.composite
def linear(draw, positive=False):
    """A linear combination; `positive` makes one that may divide."""
    parts = draw(st.lists(one_rate(LINEAR), min_size=1, max_size=3))
    numbers = draw(st.lists(coefficients, min_size=len(parts), max_size=len(parts)))
    constant, divisor = draw(constants), draw(divisors)
    if positive:
        numbers, constant, divisor = [abs(c) for c in numbers], abs(constant), abs(divisor)
    rate = (sum(c * r for c, (r, _) in zip(numbers, parts, strict=True)) + constant) / divisor

    def value(table):
        known = [value(table) for _, value in parts]
        return (sum(c * v for c, v in zip(numbers, known, strict=True)) + constant) / divisor

    return rate, value


@st.composite
def fractional(draw):
    """A scaled and shifted precision, NPV, F1, number over one, or quotient of linear ones."""
    kind = draw(st.sampled_from(["ratio", "inverse", "quotient"]))
    if kind != "quotient":
        rate, value = draw(one_rate(FRACTIONAL))
    if kind == "inverse":
        shift, ratio = draw(st.sampled_from([0, 0.5])), value
        rate = 2 / (shift + rate)

        def value(table):
            known = ratio(table) + shift
            return 2 / known if abs(known) > 1e-12 else math.nan

    if kind == "quotient":
        (above, over), (below, under) = draw(linear()), draw(linear(positive=True))
        rate = above / below

        def value(table):
            divided, divisor = over(table), under(table)
            return divided / divisor if divisor > 1e-12 else math.nan

    factor, constant, divisor = draw(coefficients), draw(constants), draw(divisors)
    if kind == "inverse":  # a shifted one can only be measured
        return rate * factor / divisor, lambda table: factor * value(table) / divisor
    scaled = (
        lambda table: constant - factor * value(table) / divisor,
        lambda table: factor * value(table) / divisor + constant,
    )
    if draw(st.booleans()):
        return constant - factor * rate / divisor, scaled[0]
    return rate * factor / divisor + constant, scaled[1]


def random_table(seed):
    """Rows as dicts, missing values and all."""
    rng = np.random.default_rng(seed)

    def pick(*values):
        return values[rng.integers(len(values))]

    answers = pick("hard", "soft", "none", "all")
    return [
        {
            "on": on,
            "label": pick(0, 1) if on == "train" else pick(0, 1, None),
            "weight": pick(0.0, 0.5, 1.0, 2.0),
            "money": pick(0.0, 1.0, 7.5),
            "group": pick("a", "b", None),
            "age": pick(0, 1, 2, 3, None),
            "flag": pick(True, False, None),
            "deployed": pick("yes", "no", None),
            "pi": {"hard": float(rng.integers(2)), "soft": rng.random(), "none": 0.0, "all": 1.0}[
                answers
            ],
        }
        for on in ("train", "extra")
        for _ in range(rng.integers(4, 13))
    ]


def as_data(table):
    """The same rows as the library is given them, some columns in X."""

    def part(on):
        rows = pd.DataFrame([row for row in table if row["on"] == on])
        label = rows["label"].astype("Int64").fillna(-1).to_numpy(dtype=np.int8)
        columns = Columns.read(
            rows[["group", "flag", "money", "deployed"]], rows[["age"]], len(rows)
        )
        return Rows(columns, label, rows["weight"].to_numpy())

    return Data(part("train"), part("extra"), "yes", ["no", "yes"])


tables = st.integers(0, 2**32 - 1).map(random_table)


def answers_of(table):
    return np.array([row["pi"] for row in table])


def same(found, expected):
    return found == pytest.approx(expected, abs=1e-10, nan_ok=True)


@pytest.mark.thorough
@given(made=linear() | fractional(), table=tables)
def test_forms_equal_counts(made, table):
    rate, value = made
    data = as_data(table)
    try:
        expected = value(table)
    except Empty:
        with pytest.raises(ValueError, match=r"selected rows hold no|selects no rows|weight 0"):
            bind_rate(rate, data)
        return
    above, below, behind = bind_rate(rate, data)
    found = LinearFractionalForms.stack([(above, below)], len(data)).values(answers_of(table))
    assert same(found[0], expected)
    assert behind.dtype == bool
    assert np.array([row["weight"] for row in table])[behind].all()


@st.composite
def comparisons(draw):
    """A constraint and the function from a table to its two sides."""
    upper = draw(st.booleans())
    if draw(st.booleans()):
        (lhs, left), (rhs, right) = draw(linear()), draw(linear())
    else:
        (lhs, left), rhs = draw(linear() | fractional()), draw(constants)
        right = lambda table: rhs  # noqa: E731
    try:
        made = lhs <= rhs if upper else lhs >= rhs
    except ValueError as error:
        assume("can never hold" not in str(error))
        raise
    return made, lambda table: (right(table) - left(table)) * (1 if upper else -1)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*always holds, as the rate is at most 1:UserWarning")
@given(made=comparisons(), table=tables)
def test_weight_rows_state_the_constraint(made, table):
    constraint, inside = made
    try:
        slack = inside(table)
    except Empty:
        assume(False)
    data, pi = as_data(table), answers_of(table)
    bound = bind_constraints([constraint], data)
    assert same(bound.slack(bound.values(pi))[0], slack)
    signed, rhs = weight_rows(bound.forms, bound.bound, bound.sign)
    margin = (rhs - signed @ pi)[0]
    if constraint.rate.fractional:
        assert math.isnan(slack) or abs(slack) < 1e-9 or (margin > 0) == (slack > 0)
    else:
        assert same(margin, slack)

    P, Q, gamma = nonnegative_rows(signed, rhs)
    p, q = P.toarray(), Q.toarray()
    assert (p >= 0).all()
    assert (q >= 0).all()
    assert not ((p > 0) & (q > 0)).any()
    assert same((gamma - P @ pi - Q @ (1 - pi))[0], margin)


def test_overlap_is_netted():
    data = make_data([1, 0, 1, 0, 1], g=["a", "a", "b", "b", "b"])
    group, everyone = rates.positive_rate({"g": "a"}), rates.positive_rate()
    bound = bind_constraints([group <= everyone + 0.1], data)
    signed, rhs = weight_rows(bound.forms, bound.bound, bound.sign)
    np.testing.assert_allclose(signed.toarray(), [[0.3, 0.3, -0.2, -0.2, -0.2]])
    P, Q, gamma = nonnegative_rows(signed, rhs)
    np.testing.assert_allclose(P.toarray(), [[0.3, 0.3, 0, 0, 0]])
    np.testing.assert_allclose(Q.toarray(), [[0, 0, 0.2, 0.2, 0.2]])
    np.testing.assert_allclose(gamma, [0.7])


def test_opposite_rates_cancel():
    data = make_data([1, 0, 1])
    bound = bind_constraints([rates.positive_rate() + rates.negative_rate() <= 1], data)
    signed, rhs = weight_rows(bound.forms, bound.bound, bound.sign)
    assert not signed.toarray().any()
    np.testing.assert_allclose(rhs, [0], atol=1e-15)


def test_precision_is_the_row_of_methods():
    # precision >= p is (1 - p) TP - p FP >= 0
    bound = bind_constraints([rates.precision() >= 0.75], make_data([1, 0, 1, 0]))
    signed, rhs = weight_rows(bound.forms, bound.bound, bound.sign)
    np.testing.assert_allclose(4 * signed.toarray(), [[-0.25, 0.75, -0.25, 0.75]])
    np.testing.assert_allclose(rhs, [0])


def test_f1_is_the_row_of_methods():
    # F1 >= t is 2 (1 - t) TP - t (FP + FN) >= 0, with FN = positives - TP
    t, data = 0.6, make_data([1, 0, 1, 0])
    bound = bind_constraints([rates.f1() >= t], data)
    signed, rhs = weight_rows(bound.forms, bound.bound, bound.sign)
    np.testing.assert_allclose(-4 * signed.toarray(), [[2 * (1 - t) + t, -t, 2 * (1 - t) + t, -t]])
    np.testing.assert_allclose(-4 * rhs, [2 * t])


def test_n_rows_counts_the_denominator():
    data = make_data([1, 0, 1, -1, 1], g=["a", "a", "b", "b", None], w=[1, 1, 1, 1, 0])
    bound = bind_constraints(
        [
            rates.recall() >= 0,
            rates.recall(weight="w") >= 0,
            rates.error_rate() <= 1,
            rates.positive_rate() <= 1,
            rates.recall({"g": "a"}) - rates.true_negative_rate({"g": "a"}) <= 1,
            rates.precision() >= 0,
            rates.recall() / rates.false_positive_rate() >= 0,
        ],
        data,
    )
    assert bound.n_rows.tolist() == [3, 2, 4, 5, 2, 4, 4]


@pytest.mark.parametrize("n", [3, 100_003])
@pytest.mark.parametrize("share", ["negative_predictive_value", "a / true_negative_rate"])
def test_rounding_is_no_denominator(n, share):
    # all answers positive: sum(w) / sum(w) - sum(w / sum(w)) is rounding, not a share
    data = make_data(np.arange(n) % 2, np.random.default_rng(0).random(n))
    rate = (
        rates.negative_predictive_value()
        if share == "negative_predictive_value"
        else rates.recall() / rates.true_negative_rate()
    )
    above, below, _ = bind_rate(rate, data)
    forms = LinearFractionalForms.stack([(above, below)], n)
    positive = np.ones(n)
    assert np.isnan(forms.values(positive)[0])
    positive[0] = 0  # one row is enough
    assert not np.isnan(forms.values(positive)[0])


def test_extra_rows_are_asked_for():
    for on_extra in (rates.positive_rate(on="extra"), rates.each(rates.recall(on="extra"), by="g")):
        data = make_data([1, 0], g=["a", "b"])
        with pytest.raises(ValueError, match=r"measured on the rows of X_extra: pass X_extra"):
            bind_constraints(expand([on_extra <= 0.5], data), data)
