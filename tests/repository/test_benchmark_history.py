"""Benchmarks that asv follows over commits still run, on few rows."""

import inspect
import json
from pathlib import Path

import pytest

from benchmarks.history import kernels

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
BENCHMARKS = {
    name: cls for name, cls in inspect.getmembers(kernels, inspect.isclass) if hasattr(cls, "setup")
}


def test_the_five_are_found():
    assert len(BENCHMARKS) == 5


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs(name, monkeypatch):
    monkeypatch.setattr(BENCHMARKS[name], "n", 400)
    benchmark = BENCHMARKS[name]()
    benchmark.setup()
    timed = [attribute for attribute in dir(benchmark) if attribute.startswith("time_")]
    assert len(timed) == 1
    getattr(benchmark, timed[0])()


def test_asv_is_pointed_at_them():
    path = ROOT / "asv.conf.json"
    if path.exists():  # left out of the sdist
        folder = ROOT / json.loads(path.read_text())["benchmark_dir"]
        assert folder == Path(kernels.__file__).parent
