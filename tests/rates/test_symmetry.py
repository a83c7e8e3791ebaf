"""Kinds of rates: which are the same whichever class is positive, and shares of successes."""

import numpy as np
import pytest

from skbandit import rates
from skbandit.rates import (
    accuracy,
    difference,
    each,
    error_rate,
    false_negative_rate,
    false_positive_rate,
    negative_rate,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
)
from skbandit.rates._kinds import KINDS, Kind

SUMS = [
    (recall() + true_negative_rate()) / 2,
    recall() + false_positive_rate(),
    0.3 * false_negative_rate() + 0.7 * false_positive_rate(),
    false_negative_rate() / 2 + false_positive_rate() / 2 - accuracy(),
    positive_rate() + negative_rate(),
    error_rate({"g": "a"}) - error_rate({"g": "b"}),
    recall({"g": "a"}) + true_negative_rate({"g": "b"}),
    error_rate() / accuracy(),
    positive_rate() / negative_rate(),
    difference(error_rate, by="g"),
    ratio(error_rate, by="g"),
    ratio(positive_rate, by="g"),
    each(precision, by="g"),
    each(accuracy, by="g"),
]
SINGLE = [getattr(rates, name)() for name in KINDS if name != "churn"]


@pytest.mark.parametrize("rate", [*SINGLE, rates.churn("old"), *SUMS])
def test_symmetric_rates_are_those_that_do_not_change_with_the_classes(rate):
    rng, changed = np.random.default_rng(0), []
    for _ in range(5):
        y, predicted, old = rng.integers(2, size=(3, 200))
        table = {"g": rng.choice(["a", "b"], 200), "old": old}
        one, other = (rate.value(y, predicted, table, pos_label=label) for label in (0, 1))
        changed.append(abs(one - other) > 1e-9)
    assert rate.symmetric is not any(changed)


@pytest.mark.parametrize("name", KINDS)
def test_share_of_successes_determines_the_rate(name):
    """By counting: s successes and f failures, for every number of both."""
    kind = KINDS[name]
    above, below = kind.success
    for s, f in [(0, 1), (1, 0), (2, 3), (5, 1)]:
        assert kind.of_share(s / (s + f)) == pytest.approx(
            above * s / (below * s + kind.failure * f)
        )


@pytest.mark.parametrize(
    ("numerator", "denominator", "message"),
    [
        (((1, 0), (0, 1)), ((1, 0), (0, 2)), r"successes, not \[\(1, 1\), \(1, 2\)\]"),
        # F2: a miss weighs four times a false alarm
        (((0, 0), (0, 5)), ((0, 1), (4, 5)), r"failures, not \[1, 4\]"),
    ],
)
def test_tables_that_make_no_rate(numerator, denominator, message):
    with pytest.raises(ValueError, match=f"^Kind 'mine': .*{message}"):
        Kind("mine", "label", numerator, denominator, True)
