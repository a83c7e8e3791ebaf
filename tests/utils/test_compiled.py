"""Compiled loops, with and without a place to keep them, and interrupted."""

import signal

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
    monkeypatch.setattr(_compiled, "FOLDER", None)
    assert _compiled.compiled(total)(np.ones(3)) == 3.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_keeps_its_meaning(value):
    assert repr(_compiled.compiled(total)(np.array([1.0, value]))) == repr(float(value))


def called(values):
    """Add up; kept apart from `total`, as code is kept by function, not by how it is compiled."""
    out = 0.0
    for value in values:
        out += value
    return out


def inlined(values):
    """Add up; see `called`."""
    out = 0.0
    for value in values:
        out += value
    return out


@pytest.mark.parametrize(
    ("kind", "function"), [(_compiled.called_exactly, called), (_compiled.inlined_exactly, inlined)]
)
def test_what_compiled_code_calls_python_can_call_too(kind, function):
    inner = kind(function)
    outer = _compiled.compiled_exactly(lambda values: 2.0 * inner(values))
    assert outer(np.ones(3)) == 6.0
    assert inner(np.ones(3)) == 3.0


def test_a_split_pass_covers_every_row_once(monkeypatch):
    clock = iter(np.cumsum([0.0, 0.01] * 3 + [0.0, 1.0] * 3 + [0.0, 0.07] * 40))
    monkeypatch.setattr(_compiled, "perf_counter", lambda: next(clock))
    parts = list(_compiled.slices(10_000))
    rows = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    np.testing.assert_array_equal(rows, np.arange(10_000))
    sizes = [part.stop - part.start for part in parts]
    assert sizes[:7] == [256, 512, 1024, 2048, 1024, 512, 256]  # fast calls, then slow ones
    assert list(_compiled.slices(0)) == []


def test_an_error_of_the_interpreter_that_is_no_interrupt_is_raised(monkeypatch):
    function = _compiled.compiled(total)
    error = SystemError("something else")

    def fail(values):
        raise error

    monkeypatch.setattr(function, "_call", fail)
    with pytest.raises(SystemError, match="something else"):
        function(np.ones(3))


@pytest.mark.thorough
def test_an_interrupt_in_compiled_code_is_an_interrupt():
    """CPython reports it as SystemError if it arrives while a result is converted."""
    function = _compiled.compiled_exactly(lambda values, n: (total_of(values, n), values))
    values = np.ones(10)
    function(values, 1)
    n_interrupts = 0

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                for _ in range(100):
                    function(values, 1_000_000)
                pytest.fail("the alarm did not ring")
            except KeyboardInterrupt:
                n_interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_interrupts == 20


@_compiled.called_exactly
def total_of(values, n):
    out = 0.0
    for i in range(n):
        out += values[i % len(values)]
    return out
