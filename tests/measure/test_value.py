"""Rates as metrics: against scikit-learn, and where there is nothing to measure."""

import re

import numpy as np
import pytest
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

from skbandit import rates
from skbandit.measure import read_objective
from skbandit.rates import (
    accuracy,
    churn,
    confusion,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    mean,
    negative_predictive_value,
    negative_rate,
    outcome,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
)
from tests.worlds import refuses

pl = pytest.importorskip("polars", reason="polars is not installed")

SAMPLES = range(4)


def sample(seed, labels=(0, 1), n=60):
    rng = np.random.default_rng(seed)
    labels = np.array(labels)
    return labels[rng.integers(0, 2, n)], labels[rng.integers(0, 2, n)], rng.random(n)


@pytest.mark.parametrize("seed", SAMPLES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), ("no", "yes"), ("x", "a")])
def test_against_sklearn(labels, weighted, seed):
    y, predicted, weight = sample(seed, labels)
    pos_label = labels[1] if isinstance(labels[1], str) else None
    weight = weight if weighted else None

    def value(rate):
        return pytest.approx(rate().value(y, predicted, None, weight, pos_label), abs=1e-12)

    sklearns = {"pos_label": labels[1], "sample_weight": weight}
    assert metrics.recall_score(y, predicted, **sklearns) == value(recall)
    assert metrics.precision_score(y, predicted, **sklearns) == value(precision)
    assert metrics.f1_score(y, predicted, **sklearns) == value(f1)
    assert metrics.accuracy_score(y, predicted, sample_weight=weight) == value(accuracy)
    assert metrics.zero_one_loss(y, predicted, sample_weight=weight) == value(error_rate)
    (TN, FP), (FN, TP) = metrics.confusion_matrix(y, predicted, labels=labels, sample_weight=weight)
    assert TN / (TN + FP) == value(true_negative_rate)
    assert FP / (TN + FP) == value(false_positive_rate)
    assert FN / (TP + FN) == value(false_negative_rate)
    assert TN / (TN + FN) == value(negative_predictive_value)
    assert (TP + FP) / (TN + FP + FN + TP) == value(positive_rate)
    assert (TN + FN) / (TN + FP + FN + TP) == value(negative_rate)
    stored = {"stored": y}  # churn against stored labels is the error against them
    found = churn("stored").value(None, predicted, stored, weight, pos_label)
    assert metrics.zero_one_loss(y, predicted, sample_weight=weight) == pytest.approx(found)


@pytest.mark.parametrize("seed", SAMPLES)
def test_expressions_are_expressions_of_values(seed):
    y, predicted, weight = sample(seed)
    group = np.where(np.arange(60) % 3, "a", "b")
    over = (y, predicted, {"g": group, "amount": weight})
    a = group == "a"
    in_a = metrics.recall_score(y[a], predicted[a])
    weighted = metrics.precision_score(y, predicted, sample_weight=weight)
    assert recall({"g": "a"}).value(*over) == pytest.approx(in_a)
    assert precision(weight="amount").value(*over) == pytest.approx(weighted)
    assert (2 - 3 * precision(weight="amount")).value(*over) == pytest.approx(2 - 3 * weighted)
    rate = positive_rate().value(*over)
    assert (recall("g == 'a'") / positive_rate()).value(*over) == pytest.approx(in_a / rate)
    assert abs(recall("g == 'a'") - 2).value(*over) == pytest.approx(2 - in_a)
    # both kinds of weights multiply; `on` says nothing here
    both = metrics.recall_score(y, predicted, sample_weight=weight**2)
    found = recall(weight="amount", on="extra").value(*over, sample_weight=weight)
    assert found == pytest.approx(both)


@pytest.mark.parametrize(
    ("rate", "y_true", "y_pred", "why"),
    [
        (recall(), [0, 0], [0, 1], "the selected rows hold no positives"),
        (false_negative_rate(), [0, 0], [0, 1], "no positives"),
        (true_negative_rate(), [1, 1], [0, 1], "no negatives"),
        (false_positive_rate(), [1, 1], [0, 1], "no negatives"),
        (precision(), [0, 1], [0, 0], "no prediction falls in its denominator"),
        (negative_predictive_value(), [0, 1], [1, 1], "no prediction falls in its denominator"),
        (f1(), [0, 0], [0, 0], "no prediction falls in its denominator"),
        (1 - precision(), [0, 1], [0, 0], "no prediction"),
        (recall() / positive_rate(), [0, 1], [0, 0], "no prediction"),
        (positive_rate() - recall(), [0, 0], [0, 1], "no positives"),
        (recall("g == 'z'"), [0, 1], [0, 1], "selects no rows"),
        (recall({"g": "b"}), [1, None], [0, 1], "the selected rows hold no positives"),
        (accuracy({"g": "b"}), [1, None], [0, 1], "the selected rows hold no labels"),
        (churn("d", {"g": "b"}), None, [0, 1], "hold no predictions in column 'd'"),
    ],
    ids=repr,
)
def test_empty_denominator_is_nan(rate, y_true, y_pred, why):
    attributes = {"g": ["a", "b"], "d": [1, None]}
    with pytest.warns(UndefinedMetricWarning, match=f"is undefined.*{why}") as caught:
        assert np.isnan(rate.value(y_true, y_pred, attributes))
    assert len(caught) == 1
    assert repr(rate) in str(caught[0].message)


def test_y_true_may_be_missing():
    predicted = [1, 1, 0, 0]
    assert positive_rate().value(None, predicted) == 0.5
    assert negative_rate().value(None, ["n", "n", "n", "y"], pos_label="y") == 0.75
    assert churn("d").value(None, predicted, {"d": [1, 0, None, 0]}) == pytest.approx(1 / 3)
    for rate in set(rates.__all__) & {"recall", "precision", "error_rate", "f1"}:
        with pytest.raises(ValueError, match=rf"{rate}\(\) needs labels.*pass their labels"):
            getattr(rates, rate)().value(None, predicted)
        refuses("needs labels", getattr(rates, rate)().value, [None] * 4, predicted)


def test_unlabeled_rows_are_left_out_where_labels_count():
    y, predicted = [1, None, 0, 1], [1, 1, 1, 0]
    assert recall().value(y, predicted) == 0.5
    assert precision().value(y, predicted) == 0.5
    assert accuracy().value(y, predicted) == pytest.approx(1 / 3)
    assert positive_rate().value(y, predicted) == 0.75


Y = [1, 1, 1, 1, 0, 0, 0, 0, 1]
P = [1, 1, 1, 0, 1, 1, 0, 0, 0]
GROUPS = {"g": ["a", "a", "b", "b", "a", "b", "b", "b", None]}
# recall: a 1, b 1/2; error rate: a 1/3, b 2/5; positive rate: a 1, b 2/5


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (each(recall, by="g"), 0.5),
        (each(error_rate, by="g"), 0.4),
        (each(positive_rate, by="g"), 1),
        (-each(recall, by="g"), -0.5),
        (1 - each(error_rate, by="g"), 0.6),
        (each(1 - recall(), by="g"), 0.5),
        (each(recall, by="g") - recall(), 0.5 - 0.6),
        (recall() - each(error_rate, by="g"), 0.6 - 0.4),
        (each(recall, by="g") / positive_rate(), 0.5 / (5 / 9)),
        (each(precision, by="g"), 0.5),
        (ratio(positive_rate, by="g"), 0.4),
        (2 * ratio(positive_rate, by="g") - 1, -0.2),
        (1 - ratio(positive_rate, by="g"), 0.6),
        (difference(positive_rate, by="g"), 0.6),
        (-difference(positive_rate, by="g"), -0.6),
        (difference(recall, by="g"), 0.5),
        (abs(each(recall, by="g") - 0.6), 0.4),
        (abs(each(recall, by="g") - 0.9), 0.4),
    ],
    ids=repr,
)
def test_group_forms_give_the_worst(rate, expected):
    assert rate.value(Y, P, GROUPS) == pytest.approx(expected)


def test_groups_that_cannot_be_measured():
    labels = [1, 1, 0, 0, 0, 0, 0, 0, 1]
    text = r"each\(recall, by='g'\) is undefined in group b: .*no positives"
    with pytest.warns(UndefinedMetricWarning, match=text):
        assert each(recall, by="g").value(labels, P, GROUPS) == 1
    with pytest.warns(UndefinedMetricWarning, match=r"in group (a / b|b / a): .*no positives"):
        assert np.isnan(ratio(recall, by="g").value(labels, P, GROUPS))
    text = r"ratio\(recall, by='g'\) is undefined: column 'g' holds 1 group\(s\), needs 2"
    with pytest.warns(UndefinedMetricWarning, match=text):
        assert np.isnan(ratio(recall, by="g").value(Y, P, {"g": ["a"] * 9}))
    with pytest.warns(UndefinedMetricWarning, match=r"holds 0 group\(s\), needs 1"):
        assert np.isnan(each(recall, by="g").value(Y, P, {"g": [None] * 9}))


@pytest.mark.parametrize(
    ("rate", "direction"),
    [
        (positive_rate(), False),
        (negative_rate(), False),
        (recall(), True),
        (true_negative_rate(), True),
        (false_positive_rate(), False),
        (false_negative_rate(), False),
        (error_rate(), False),
        (accuracy(), True),
        (precision(), True),
        (negative_predictive_value(), True),
        (f1(), True),
        (churn("d"), False),
        (-recall(), False),
        (1 - error_rate(), True),
        (recall() - false_positive_rate() + positive_rate(), True),
        (error_rate() + 0.1 * churn("d") - positive_rate(), False),
        (recall() + 0 * error_rate(), True),
        (recall() / positive_rate(), True),
        (-(error_rate() / positive_rate()), True),
        (1 / (1 + error_rate()), True),
        (-1 / precision(), True),
        (false_positive_rate() / (1 + recall()), False),
        ((recall() - false_positive_rate()) / (1 + error_rate()), True),
        (each(recall, by="g"), True),
        (ratio(positive_rate, by="g"), True),
        (difference(recall, by="g"), False),
        (1 - ratio(recall, by="g"), False),
        (-difference(recall, by="g"), True),
        (outcome("won") - 0.5 * outcome("lost") - cost({"a": 1, "b": "paid"}), True),
        (cost({"a": 1, "b": -2}), False),
        (cost({"a": 1}) - outcome("won"), False),
        (cost({"a": -1, "b": -2}), False),
        (2 * cost({"a": {"a": -5, "b": 1}, "b": {"a": 0, "b": -4}}) - 1, False),
        (-cost({"a": {"a": -5, "b": 1}, "b": {"a": 0, "b": -4}}), True),
        (cost({"a": -1, "b": 2}) + 0.1 * error_rate(), False),
        (recall(of="a") - cost({"a": {"a": -1, "b": 1}, "b": {"a": 1, "b": -1}}), True),
        (-outcome("lost"), True),
        (1 - outcome("lost"), True),
        (-outcome("lost") - 0.1 * cost({"a": 1, "b": -1}), True),
        (outcome("won") - cost({"a": -1, "b": -2}), True),
        (cost({"a": -1}) - outcome("won"), False),
        (-(outcome("lost") / outcome("seen")), True),
        (confusion("a", "a"), True),
        (confusion("a", "b") - confusion("a", "a"), False),
    ],
    ids=repr,
)
def test_direction(rate, direction):
    assert rate.greater_is_better is direction


def test_a_share_with_a_minus_asks_which_way():
    """Of -positive_rate(of="call") alone, all were called; of -outcome("calls"), nobody is."""
    for rate, small, large in [
        (-positive_rate(of="call"), "positive_rate(of='call')", "negative_rate(of='call')"),
        (1 - 2 * negative_rate(), "negative_rate()", "positive_rate()"),
        (-mean(positive_rate, by="g"), "positive_rate()", "negative_rate()"),
        (-(positive_rate() / positive_rate("g")), "positive_rate()", "negative_rate()"),
    ]:
        cure = re.escape(f"write {small} if it should be small, and {large} if it should be large")
        refuses(f"objective={re.escape(repr(rate))} may ask .*: {cure}", read_objective, rate)
    for rate in [
        2 * positive_rate() + 1,
        positive_rate("g") - positive_rate(),  # a gap, minimized as it is written
        error_rate() - positive_rate(),
        outcome("won") - positive_rate(of="call"),
        -ratio(positive_rate, by="g"),
        -difference(positive_rate, by="g"),
        -recall(),
    ]:
        assert read_objective(rate) is rate


def test_directions_that_disagree():
    both = cost({"a": 1, "b": -1})
    for rate, cure in [
        (outcome("lost") + both, r"-outcome\(...\) - cost\(...\) for one that is bad"),
        (both - cost({"a": 2, "b": 1}), "one table, with negative entries for what is gained"),
    ]:
        with pytest.raises(ValueError, match=f"no direction as an objective: .*{cure}"):
            _ = rate.greater_is_better
    for rate in (recall() + error_rate(), recall() / accuracy()):
        with pytest.raises(ValueError, match=rf"{re.escape(repr(rate))} grows .* change a sign"):
            _ = rate.greater_is_better
    assert (recall() + error_rate()).value([0, 1], [1, 1]) == 1.5


def test_rows_of_weight_zero_are_absent():
    assert recall().value([1, 1, 1], [1, 0, 1], sample_weight=[1, 0, 2]) == 1
    with pytest.warns(UndefinedMetricWarning, match="every row has weight 0"):
        assert np.isnan(positive_rate(weight="w").value([1, 1], [1, 0], {"w": [0, 0]}))


@pytest.mark.thorough
def test_shares_are_exact():
    # a bound met exactly must not be missed by rounding
    for n in range(1, 40):
        for k in range(n + 1):
            assert recall().value([1] * n, [1] * k + [0] * (n - k), pos_label=1) == k / n


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [(["yes", "no"], "yes"), ([2, 1], 2), ([True, False], None), ([1, 0], None)],
)
@pytest.mark.filterwarnings("ignore:Fewer than 20")
def test_churn_alone_on_the_day_that_one_class_is_predicted(labels, pos_label):
    """Without y, the stored predictions may be the only ones that have the second label."""
    first, second = labels
    old = [first, second, first, first]
    for predicted, expected in ((first, 0.25), (second, 0.75)):
        found = churn("old").value(None, [predicted] * 4, {"old": old}, pos_label=pos_label)
        assert found == expected
    if pos_label is not None:
        with pytest.raises(ValueError, match="not among the labels"):
            churn("old").value(None, [first] * 2, {"old": ["maybe", "never"]}, pos_label=pos_label)
