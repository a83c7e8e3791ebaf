"""What importing the library costs; `lint-imports` checks who may import whom."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import skbandit
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import read_parquet_log
from skbandit.export import to_onnx

ROOT = Path(__file__).parents[2]
ROWS = np.arange(40.0)[:, None]
FITTED = ConstrainedThreshold(GaussianNB().fit(ROWS, ROWS[:, 0] > 20), cv="prefit")


def run_python(code):
    """Run code in a fresh interpreter that sees the checkout."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_import_is_light():
    heavy = {"cvxpy", "numba", "matplotlib"}
    result = run_python(f"import sys, skbandit; print(*{heavy} & set(sys.modules))")
    assert result.returncode == 0, result.stderr
    assert not result.stdout.split(), f"import skbandit imports {result.stdout}"


def test_import_loads_what_is_asked_for():
    """Rooms and names arrive on first use, so a process that serves a policy starts fast."""
    result = run_python(
        "import sys, numpy, pandas, sklearn.base\n"
        "before = set(sys.modules)\n"
        "import skbandit\n"
        "print(len(set(sys.modules) - before))\n"
        "assert {'rates', 'datasets', 'GLMUCBPolicy', '__version__'} <= set(dir(skbandit))\n"
        "assert repr(skbandit.rates.recall()) == 'recall()'\n"
        "assert 'skbandit.selection' not in sys.modules\n"
        "from skbandit import *\n"
        "assert GLMUCBPolicy is skbandit.bandit.GLMUCBPolicy is skbandit.GLMUCBPolicy\n"
        "import pickle; assert pickle.loads(pickle.dumps(ReplayScorer)) is ReplayScorer\n"
        "print(*(set(skbandit.__all__) - set(globals())))\n"
    )
    assert result.returncode == 0, result.stderr
    n_modules, *missing = result.stdout.split()
    assert int(n_modules) < 20
    assert not missing


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'GLMPolicy'"):
        skbandit.GLMPolicy  # noqa: B018


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pyarrow.dataset", lambda: list(read_parquet_log("log.parquet", ["x"]))),
        ("skl2onnx", lambda: to_onnx(FITTED.fit(ROWS, ROWS[:, 0] > 20), ROWS)),
    ],
)
def test_an_optional_package_that_is_not_installed_is_named(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=package):
        call()
