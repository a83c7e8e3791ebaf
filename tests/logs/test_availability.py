"""Availability: one meaning, whichever way it is passed."""

import numpy as np
import pandas as pd
import pytest

from skbandit.logs import read_log

Y = pd.DataFrame({"action": ["a", "b", "a", "c"], "reward": [1.0, 0.0, 0.0, 1.0]})
SETS = [("a", "b"), ("b", "c"), ("a", "b"), ("a", "b", "c")]
TABLE = pd.DataFrame({arm: [arm in pool for pool in SETS] for arm in "abc"})


@pytest.mark.parametrize(
    "available",
    [SETS, [list(pool) for pool in SETS], [set(pool) for pool in SETS], TABLE, TABLE.to_numpy()],
    ids=["tuples", "lists", "sets", "DataFrame", "array"],
)
def test_all_forms_mean_the_same(available):
    log = read_log(Y, available=available, arms="abc")
    sets, set_of_event = log.available_sets()
    assert [set(sets[k]) for k in set_of_event] == [set(pool) for pool in SETS]
    np.testing.assert_array_equal(log.available_mask(3), TABLE.to_numpy())
    assert log.pools.sizes.tolist() == [2, 2, 2, 3]


def test_without_it_every_arm_of_the_log_is_available():
    log = read_log(Y)
    sets, set_of_event = log.available_sets()
    assert sets == [("a", "b", "c")]
    assert set_of_event.tolist() == [0, 0, 0, 0]


def test_arms_beyond_the_log_are_not_available():
    assert read_log(Y).available_mask(5).tolist() == [[True] * 3 + [False] * 2] * 4
    masked = read_log(Y, available=SETS, arms="abc").available_mask(4)
    assert not masked[:, 3].any()
