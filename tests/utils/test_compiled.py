"""Compiled loops: values, the key and the place of machine code, and interrupts."""

import logging
import os
import signal
import subprocess
import sys
from collections import namedtuple
from types import FunctionType
from unittest.mock import Mock

import numpy as np
import pytest

from skbandit.utils import _compiled
from tests.worlds import refuses


def total(values):
    """Add up in a loop."""
    out = 0.0
    for value in values:
        out += value
    return out


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf])
def test_compiled_code_computes_what_python_does(value):
    values = np.append(np.random.default_rng(0).normal(size=1000), value)
    expected = pytest.approx(total(values), abs=1e-10, nan_ok=True)
    assert _compiled.compiled(total)(values) == expected


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for machine code."""
    monkeypatch.setattr(_compiled, "user_cache", lambda: tmp_path)
    return tmp_path


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


FACTOR = 2.0


@_compiled.called_exactly
def scaled(value):
    """Multiply by a constant of the module."""
    return FACTOR * value


def scaled_total(values):
    """Add up values that another compiled function scales."""
    out = 0.0
    for value in values:
        out += scaled(value)
    return out


def key_of(function, **replaced):
    """Key of a copy of a function whose globals are replaced."""
    copy = FunctionType(function.__code__, function.__globals__ | replaced)
    return _compiled.compiled(copy).key


def test_key_changes_with_a_constant_of_a_called_function():
    def key(factor):
        callee = FunctionType(scaled.__wrapped__.__code__, globals() | {"FACTOR": factor})
        return key_of(scaled_total, scaled=_compiled.called_exactly(callee))

    assert key(2.0) == key_of(scaled_total)
    assert key(3.0) != key_of(scaled_total)


def test_key_changes_with_the_options_and_not_with_the_docstring():
    code = total.__code__
    text = code.replace(co_consts=("Other words.", *code.co_consts[1:]), co_firstlineno=999)
    assert _compiled.compiled(FunctionType(text, globals())).key == key_of(total)
    assert _compiled.compiled_exactly(FunctionType(code, globals())).key != key_of(total)


def test_key_changes_with_an_attribute_of_a_module_of_the_package(monkeypatch):
    def seconds(value):
        return value * _compiled.SLICE_SECONDS

    before = _compiled.compiled(FunctionType(seconds.__code__, globals())).key
    monkeypatch.setattr(_compiled, "SLICE_SECONDS", 7.0)
    assert _compiled.compiled(FunctionType(seconds.__code__, globals())).key != before


def test_code_of_a_named_tuple_is_kept_by_the_order_of_its_fields(folder):
    def difference(pair):
        return pair.high - pair.low

    ordered, swapped = namedtuple("Pair", "low high"), namedtuple("Pair", "high low")
    assert _compiled.compiled(difference)(ordered(1.0, 3.0)) == 2.0
    assert _compiled.compiled(difference)(swapped(3.0, 1.0)) == 2.0
    assert len(files_in(folder)) == 2


def test_kept_code_is_loaded_by_a_second_copy_of_the_function(folder):
    first, second = _compiled.compiled(total), _compiled.compiled(total)
    first(np.ones(2))
    assert second(np.ones(3)) == 3.0
    assert sum(second._dispatcher.stats.cache_hits.values()) == 1
    assert len(files_in(folder)) == 1


@pytest.mark.parametrize("damage", [b"", bytes(range(256))])
def test_damaged_code_is_compiled_anew(folder, damage):
    _compiled.compiled(total)(np.ones(2))
    (path,) = files_in(folder)
    path.write_bytes(damage)
    assert _compiled.compiled(total)(np.ones(3)) == 3.0
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("place", [None, os.devnull])
def test_without_a_place_for_machine_code_calls_work_and_log_once(monkeypatch, caplog, place):
    monkeypatch.setattr(_compiled, "user_cache", lambda: place and _compiled.Path(place))
    _compiled._log_not_kept.cache_clear()
    with caplog.at_level(logging.WARNING, "skbandit"):
        assert _compiled.compiled(total)(np.ones(3)) == 3.0
        assert _compiled.compiled_exactly(total)(np.ones(3)) == 3.0
    assert [record.name for record in caplog.records] == ["skbandit"]
    assert "Set NUMBA_CACHE_DIR" in caplog.text


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"NUMBA_CACHE_DIR": "/somewhere"}, "/somewhere"),
        ({"XDG_CACHE_HOME": "/caches"}, "/caches"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/ada"}, "/home/ada/.cache"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux")
def test_the_folder_for_caches_follows_the_environment(variables, folder):
    code = "from skbandit.utils._compiled import user_cache; print(user_cache())"
    free = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in free}
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, env=environment | variables, capture_output=True, check=True)
    assert output.stdout.decode().strip() == folder


@pytest.mark.parametrize("kind", [_compiled.called_exactly, _compiled.inlined_exactly])
def test_functions_called_by_compiled_code_can_be_called_by_python(kind):
    inner = kind(total)
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
    assert list(_compiled.slices(7)) == [slice(0, 7)]


def test_a_system_error_that_is_no_interrupt_is_raised(monkeypatch):
    function = _compiled.compiled(total)
    error = SystemError("something else")
    monkeypatch.setattr(function, "_call", Mock(side_effect=error))
    refuses("something else", function, np.ones(3), error=SystemError)


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
