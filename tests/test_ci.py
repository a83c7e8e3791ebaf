"""What the hosted checks run is there, and runs on what the project says that it supports."""

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


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
def test_workflows():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]
    pythons = jobs("ci.yml")["run"]["strategy"]["matrix"]["python"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert pythons[0] == oldest
    assert pythons == [f"3.{minor}" for minor in range(11, 11 + len(pythons))]
    (setup,) = (step for step in jobs("ci.yml")["oldest"]["steps"] if "with" in step)
    assert setup["with"]["python-version"] == oldest
    started = {
        step["run"]
        for job in jobs("ci.yml").values()
        for step in job["steps"]
        if step.get("run", "").startswith(".ci/")
    }
    assert started == {".ci/run", ".ci/oldest", ".ci/minimal"}
    assert all(os.access(ROOT / script, os.X_OK) for script in started)


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
def test_the_released_version_is_found():
    (step,) = (s for s in jobs("release.yml")["build"]["steps"] if "version" in s.get("name", ""))
    assert re.search(
        r'^__version__ = "(.*)"$', (ROOT / "skbandit" / "__init__.py").read_text(), re.M
    )
    assert "skbandit/__init__.py" in step["run"]


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="an sdist has no .ci")
def test_lower_bounds():
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["lower_bounds"]
    pinned = lower_bounds(PROJECT["dependencies"])
    assert pinned == [one.replace(">=", "==") for one in PROJECT["dependencies"]]
    assert lower_bounds(["dask[dataframe,distributed]>=2024.12"]) == ["dask==2024.12"]
    with pytest.raises(SystemExit, match="'numpy<3' is not name>=version"):
        lower_bounds(["numpy<3"])
