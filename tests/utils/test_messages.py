"""Text for error messages."""

import numpy as np
import pytest

from skbandit.utils._validation import first_few


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], ""),
        (["a", 1], "'a', 1"),
        (np.arange(3), "0, 1, 2"),
        (range(5), "0, 1, 2, 3, 4"),
        (iter(range(6)), "0, 1, 2, 3, 4, ..."),
    ],
)
def test_first_few(values, text):
    assert first_few(values) == text
