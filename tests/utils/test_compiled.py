"""Compiled loops, with and without a place to keep them."""

import numpy as np
import pytest

from skbandit.utils import _compiled


def total(values):
    """Add up in a loop."""
    out = 0.0
    for value in values:
        out += value
    return out


def test_it_computes_what_python_does():
    values = np.random.default_rng(0).normal(size=1000)
    assert _compiled.compiled(total)(values) == pytest.approx(total(values), abs=1e-10)


def test_without_a_place_for_its_results_it_still_works(monkeypatch):
    asked, njit = [], _compiled.njit

    def read_only(**options):
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(_compiled, "njit", read_only)
    assert _compiled.compiled(total)(np.ones(3)) == 3.0
    assert asked == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_keeps_its_meaning(value):
    assert repr(_compiled.compiled(total)(np.array([1.0, value]))) == repr(float(value))
