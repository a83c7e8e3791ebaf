"""Which cases of a test belong to the default tier; see CONTRIBUTING.md."""

import pytest

leave_out = False
"""If true, `first` leaves out what the default tier would deselect; conftest.py sets it."""


def first(n, values):
    """Mark all but the first n values of a parameter as thorough.

    A tuple is one value for each of several parameters.
    """
    if leave_out and n:
        return list(values)[:n]
    return [
        value if k < n else _thorough(*value) if isinstance(value, tuple) else _thorough(value)
        for k, value in enumerate(values)
    ]


def examples(n):
    """Settings of a Hypothesis test whose examples are slow: n at night, half of them in CI.

    In the default tier a tenth of them, at least 3. Other tests have the number of conftest.py.
    """
    from hypothesis import settings

    return settings(max_examples=max(3, n * settings().max_examples // 200))


def _thorough(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)
