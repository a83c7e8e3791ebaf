"""Tables of kinds of rates: those of the catalog are sound, others are refused by name."""

import numpy as np
import pytest

from skbandit import rates
from skbandit.measure import interval
from skbandit.rates._expression import atom_rate
from skbandit.rates._kinds import KINDS, Atom, Kind
from tests.rates.tables import make_data


@pytest.mark.parametrize("name", KINDS)
def test_share_of_successes_determines_the_rate(name):
    """By counting: s successes and f failures, for every number of both."""
    kind = KINDS[name]
    above, below = kind.success
    for s, f in [(0, 1), (1, 0), (2, 3), (5, 1)]:
        assert kind.of_share(s / (s + f)) == pytest.approx(
            above * s / (below * s + kind.failure * f)
        )


def test_a_success_may_count_less_above_than_below():
    """TP / (2 TP + FP + FN): 0.5 at most, and its interval follows the share of hits."""
    half_f1 = Kind("half_f1", "label", ((0, 0), (0, 1)), ((0, 1), (1, 2)), True)
    data = make_data([1, 1, 1, 0, 0])
    positive = np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    low, high = interval(atom_rate(Atom(half_f1, None, "train", None)), data, positive, 0.9)
    f1_low, f1_high = interval(rates.f1(), data, positive, 0.9)
    assert (low, high) == pytest.approx((f1_low / 2, f1_high / 2))


@pytest.mark.parametrize(
    ("numerator", "denominator", "message"),
    [
        # Successes that count differently: one share of successes does not give the rate.
        (((1, 0), (0, 2)), ((1, 1), (1, 2)), "one weight for all successes.*2, 2"),
        (((1, 0), (0, 1)), ((1, 0), (0, 2)), r"\[\(1, 1\), \(1, 2\)\] for successes"),
        # F2: a miss weighs four times a false alarm.
        (((0, 0), (0, 5)), ((0, 1), (4, 5)), r"denominator \[1, 4\] for failures"),
    ],
)
def test_tables_that_make_no_rate(numerator, denominator, message):
    with pytest.raises(ValueError, match=f"^Kind 'mine': .*{message}"):
        Kind("mine", "label", numerator, denominator, True)
