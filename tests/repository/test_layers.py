"""Who may import whom, and what importing the library costs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_python(code):
    """Run code in a fresh interpreter that sees the checkout."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_import_contracts():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    # In its own process: it changes sys.path and its own global settings.
    result = run_python(
        "import sys; from importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(no_cache=True))"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def test_import_is_light():
    heavy = {"cvxpy", "numba", "matplotlib"}
    result = run_python(f"import sys, skbandit; print(*{heavy} & set(sys.modules))")
    assert result.returncode == 0, result.stderr
    assert not result.stdout.split(), f"import skbandit imports {result.stdout}"
