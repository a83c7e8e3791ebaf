"""Which cases of a test belong to the default tier; see CONTRIBUTING.md."""

import pytest


def first(n, values):
    """Mark all but the first n values of a parameter as thorough.

    A tuple is one value for each of several parameters.
    """
    return [
        value if k < n else _thorough(*value) if isinstance(value, tuple) else _thorough(value)
        for k, value in enumerate(values)
    ]


def _thorough(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)
