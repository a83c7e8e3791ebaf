"""Results that are kept in the repository, and what they were measured on and with."""

from __future__ import annotations

import json
import platform
import re
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import skbandit

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
RIVAL_PACKAGES = (
    "fairlearn",
    "lightgbm",
    "vowpalwabbit",
    "costsensitive",
    "contextualbandits",
    "mabwiser",
    "river",
)
PACKAGES = ("scikit-learn", "numpy", "scipy", "numba", "cvxpy", *RIVAL_PACKAGES)


def keep(name: str, frame: pd.DataFrame, seconds: float, **settings: Any) -> None:
    """Write rows with their date, machine and versions."""
    versions = {"python": platform.python_version(), "skbandit": skbandit.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    about = {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu seconds": round(seconds),
        **settings,
        "versions": versions,
    }
    RESULTS.mkdir(exist_ok=True)
    frame.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.6g")
    text = json.dumps(about, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def results(name: str) -> pd.DataFrame:
    """The rows of one run."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def about(name: str) -> dict[str, Any]:
    """When and where it was run."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def is_kept(name: str) -> bool:
    """Whether there are results of that name."""
    return (RESULTS / f"{name}.csv").exists()


def _processor() -> str:
    """The processor's name, as the system tells it."""
    path = Path("/proc/cpuinfo")
    if path.exists() and (found := re.search(r"model name\s*:\s*(.*)", path.read_text())):
        return found[1].strip()
    return platform.processor() or platform.machine()
