"""The workflows run scripts that exist, on every supported Python."""

import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import skbandit

yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with dask, is not installed")

ROOT = Path(__file__).parents[2]
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
    scripts = scripts_of("ci.yml") | scripts_of("nightly.yml") | scripts_of("release.yml")
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_every_supported_python_is_tested():
    ci, oldest = jobs("ci.yml"), PROJECT["requires-python"].removeprefix(">=")
    pythons = [*ci["default"]["strategy"]["matrix"]["python"], python_of(ci["full"])]
    assert sorted(pythons) == [f"3.{minor}" for minor in range(11, 11 + len(pythons))]
    assert min(pythons) == python_of(jobs("nightly.yml")["oldest"]) == oldest


def test_a_release_is_tested_on_every_supported_python():
    release, ci = jobs("release.yml"), jobs("ci.yml")
    matrix = release["test"]["strategy"]["matrix"]
    pythons = [*ci["default"]["strategy"]["matrix"]["python"], python_of(ci["full"])]
    assert sorted(matrix["python"]) == sorted(pythons)
    assert matrix["include"] == [{"python": min(pythons), "dependencies": "oldest"}]
    listed = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: 3." in one]
    assert sorted(listed) == sorted(pythons)
    assert scripts_of("release.yml") == {".ci/release_test"}


def test_nothing_is_published_that_was_not_tested():
    release = jobs("release.yml")
    assert release["test"]["needs"] == "build"
    assert release["publish"]["needs"] == "test" and "tag" in release["publish"]["if"]
    assert release["page"]["needs"] == "publish"
    writes = {name for name, job in release.items() if "write" in str(job.get("permissions"))}
    assert writes == {"publish", "page"}


def test_the_released_version_is_found():
    (step,) = (s for s in jobs("release.yml")["build"]["steps"] if "version" in s.get("name", ""))
    assert "skbandit/__init__.py" in step["run"]
    pattern = re.search(r"s/(\S+ = .*?)/\\1/p", step["run"])[1].replace(r"\(", "(")
    code = (ROOT / "skbandit" / "__init__.py").read_text()
    assert re.search(pattern.replace(r"\)", ")"), code, re.M)[1] == skbandit.__version__


def test_speed_is_checked_every_night():
    commands = [step.get("run", "") for step in jobs("nightly.yml")["benchmarks"]["steps"]]
    assert "python -m benchmarks.check" in commands
    tests = next(command for command in commands if "pytest" in command)
    assert list(ROOT.glob(tests.split()[-1]))  # a pattern, which the shell expands


def test_actions_are_pinned_alike():
    """One version per action in all workflows, each a tag or a branch named for a version."""
    used = {}
    for path in WORKFLOWS:
        for action, version in re.findall(r"uses: (\S+)@(\S+)", path.read_text()):
            used.setdefault(action, set()).add(version)
    assert len(used) >= 6
    assert all(len(versions) == 1 for versions in used.values()), used
    assert all(re.fullmatch(r"(release/)?v\d+", version) for (version,) in used.values())


def test_rooms_that_a_release_tests_are_all_rooms():
    script = (ROOT / ".ci" / "release_test").read_text()
    named = set(re.findall(r"(?<= )tests/(\w+)(?=[ \n])", script))
    packages = {
        path.name for path in (ROOT / "skbandit").iterdir() if (path / "__init__.py").exists()
    }
    assert named == packages - {"utils"}  # whose tests read the sources


def test_lower_bounds():
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["lower_bounds"]
    pinned = lower_bounds(PROJECT["dependencies"])
    assert pinned == [one.replace(">=", "==") for one in PROJECT["dependencies"]]
    assert lower_bounds(["dask[dataframe,distributed]>=2024.12"]) == ["dask==2024.12"]
    with pytest.raises(SystemExit, match="'numpy<3' is not name>=version"):
        lower_bounds(["numpy<3"])
