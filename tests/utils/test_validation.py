"""Row weights."""

import numpy as np
import pytest

from skbandit.utils._validation import check_row_weights


def test_none_is_ones():
    np.testing.assert_array_equal(check_row_weights(None, 3, "w"), np.ones(3))


def test_numbers_of_any_kind_become_floats():
    weights = check_row_weights([True, 0, 2], 3, "w")
    assert weights.dtype == np.float64
    np.testing.assert_array_equal(weights, [1.0, 0.0, 2.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "w has 2 entries for 3 rows"),
        ([[1.0], [2.0], [3.0]], "w must be 1D"),
        ([1.0, -2.0, 3.0], "w must not be negative: row 1 has -2"),
        ([1.0, np.nan, 3.0], "NaN"),
        ([1.0, np.inf, 3.0], "inf"),
        ([0.0, 0.0, 0.0], "w must not be zero for every row"),
    ],
)
def test_what_is_no_weight(values, message):
    with pytest.raises(ValueError, match=message):
        check_row_weights(values, 3, "w")
