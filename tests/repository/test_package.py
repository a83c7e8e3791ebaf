"""One version and one list of Pythons, told alike everywhere; a wheel and an sdist that work."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import skbandit

ROOT = Path(__file__).parents[2]
NAME = f"skbandit-{skbandit.__version__}"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
JUNK = re.compile(
    r"^\.\w+_cache/|^\.hypothesis/|__pycache__|\.py[co]$|\.nb[ic]$|\.egg-info|/\.|~$|_build/|auto_examples"
)
WEIGHT = {"wheel": 1_900_000, "sdist": 3_300_000}
"""Bytes that a file of the release may have: a megabyte is data, and an sdist has tests."""


@pytest.mark.parametrize("workflow", ["ci.yml", "release.yml"])
def test_every_supported_python_is_tested(workflow):
    listed = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name]
    text = (ROOT / ".github" / "workflows" / workflow).read_text()
    assert listed[0] == PROJECT["requires-python"].removeprefix(">=")
    assert sorted(set(re.findall(r'"(3\.\d+)"', text))) == listed


def test_citation_and_changelog_name_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {skbandit.__version__}\n" in citation
    assert changelog.startswith(f"# Changelog\n\n## {skbandit.__version__} (")


def build(root, kind, into):
    """Build as pip and `python -m build` do, without a network, and return the file."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    code = (
        "import sys; from hatchling import build; "
        f"print(build.build_{kind}(sys.argv[1]), file=sys.stderr)"
    )
    made = subprocess.run(
        [sys.executable, "-c", code, str(into)], cwd=root, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    (path,) = [one for one in into.iterdir() if one.name.startswith(NAME)]
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))
    assert path.stat().st_size < WEIGHT["wheel"]
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Files of the sdist, unpacked, below its one folder."""
    path = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    assert path.stat().st_size < WEIGHT["sdist"]
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(path) as archive:
        names = archive.getnames()
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from 3.11.4
        archive.extractall(folder, **safely)
    assert {PurePosixPath(name).parts[0] for name in names} == {NAME}
    return folder / NAME


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def tracked():
    """What the repository tracks; in an unpacked sdist, all there is."""
    if not (ROOT / ".git").exists():
        return {n for n in files_in(ROOT) if not JUNK.search(n)} - {"PKG-INFO"}
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).exists()}


def sources():
    """The library's own files among them."""
    return {name for name in tracked() if name.startswith("skbandit/")}


@pytest.mark.nightly
def test_the_wheel_is_the_library(wheel):
    licenses = {f"licenses/{name}" for name in PROJECT["license-files"]}  # of the code, of the data
    assert len(licenses) == 2
    about = {f"{NAME}.dist-info/{n}" for n in {"METADATA", "WHEEL", "RECORD"} | licenses}
    assert set(wheel.namelist()) == sources() | about
    assert "skbandit/py.typed" in wheel.namelist()
    code = {name for name in sources() if not name.startswith("skbandit/datasets/data/")}
    assert {Path(name).suffix for name in code} == {".css", ".py", ".typed"}
    assert {Path(name).suffix for name in sources() - code} == {".gz", ".json", ".md"}
    assert "Root-Is-Purelib: true" in wheel.read(f"{NAME}.dist-info/WHEEL").decode()


@pytest.mark.nightly
def test_the_wheel_works_by_itself(wheel, tmp_path):
    wheel.extractall(tmp_path)
    code = (
        "import importlib, importlib.metadata, pkgutil, sys, skbandit\n"
        "assert skbandit.__file__.startswith(sys.argv[1]), skbandit.__file__\n"
        "for found in pkgutil.walk_packages(skbandit.__path__, 'skbandit.'):\n"
        "    importlib.import_module(found.name)\n"
        "print(skbandit.GLMUCBPolicy(arms=['a']), importlib.metadata.version('skbandit'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "MPLBACKEND": "Agg", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["GLMUCBPolicy(arms=['a'])", skbandit.__version__]


@pytest.mark.nightly
def test_the_sdist_is_what_the_repository_tracks(sdist):
    found = files_in(sdist)
    assert found == tracked() | {"PKG-INFO"}
    assert not [name for name in found if JUNK.search(name)]
    assert {"LICENSE", "README.md", "pyproject.toml", ".ci/run"} | sources() <= found
    largest = max(found, key=lambda name: (sdist / name).stat().st_size)
    assert (sdist / largest).stat().st_size < 500_000, largest


@pytest.mark.nightly
def test_the_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with zipfile.ZipFile(build(sdist, "wheel", tmp_path)) as again:
        assert set(again.namelist()) == set(wheel.namelist())
        wrong = [n for n in sources() if again.read(n) != (sdist / n).read_bytes()]
    assert not wrong
