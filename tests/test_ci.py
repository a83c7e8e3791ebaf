"""The workflows run scripts that exist, on every supported Python."""

import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with dask, is not installed")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]


def python_of(job):
    (setup,) = (step for step in job["steps"] if "python-version" in step.get("with", {}))
    return setup["with"]["python-version"]


def scripts_of(name):
    """The scripts in .ci/ that a workflow runs, without their arguments."""
    commands = [step.get("run", "") for job in jobs(name).values() for step in job["steps"]]
    return {command.split()[0] for command in commands if command.startswith(".ci/")}


def test_workflows():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "nightly.yml", "release.yml"]
    assert scripts_of("ci.yml") == {".ci/run", ".ci/readme"}
    assert scripts_of("nightly.yml") == {".ci/oldest", ".ci/minimal"}
    scripts = scripts_of("ci.yml") | scripts_of("nightly.yml")
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_every_supported_python_is_tested():
    ci, oldest = jobs("ci.yml"), PROJECT["requires-python"].removeprefix(">=")
    pythons = [*ci["default"]["strategy"]["matrix"]["python"], python_of(ci["full"])]
    assert sorted(pythons) == [f"3.{minor}" for minor in range(11, 11 + len(pythons))]
    assert min(pythons) == python_of(jobs("nightly.yml")["oldest"]) == oldest


def test_the_released_version_is_found():
    (step,) = (s for s in jobs("release.yml")["build"]["steps"] if "version" in s.get("name", ""))
    assert re.search(
        r'^__version__ = "(.*)"$', (ROOT / "skbandit" / "__init__.py").read_text(), re.M
    )
    assert "skbandit/__init__.py" in step["run"]


def test_lower_bounds():
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["lower_bounds"]
    pinned = lower_bounds(PROJECT["dependencies"])
    assert pinned == [one.replace(">=", "==") for one in PROJECT["dependencies"]]
    assert lower_bounds(["dask[dataframe,distributed]>=2024.12"]) == ["dask==2024.12"]
    with pytest.raises(SystemExit, match="'numpy<3' is not name>=version"):
        lower_bounds(["numpy<3"])
