"""One version, told alike everywhere; its changelog; the links that a release turns."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import skbandit

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOWNCRIER = SETTINGS["project"], SETTINGS["tool"]["towncrier"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", ["ci.yml", "release.yml"])
def test_every_supported_python_is_tested(workflow):
    listed = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name]
    assert listed[0] == PROJECT["requires-python"].removeprefix(">=")
    text = (ROOT / ".github" / "workflows" / workflow).read_text()
    assert sorted(set(re.findall(r'"(3\.\d+)"', text))) == listed


def test_lower_bounds_are_what_the_oldest_dependencies_are_tested_with():
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))["lower_bounds"]
    pinned = [name.replace(">=", "==") for name in PROJECT["dependencies"]]
    assert lower_bounds(PROJECT["dependencies"]) == pinned
    with pytest.raises(SystemExit, match="'numpy<3' is not name>=version"):
        lower_bounds(["numpy<3"])


def test_citation_and_changelog_name_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, flags=re.M)[1] == skbandit.__version__
    released = re.search(r"^date-released: (.*)$", citation, flags=re.M)
    date = released[1] if released else "unreleased"
    assert re.search(r"^## (.*)$", CHANGELOG, flags=re.M)[1] == f"{skbandit.__version__} ({date})"
    section = runpy.run_path(str(ROOT / ".ci" / "release_notes.py"))["section"]
    assert len(section(CHANGELOG, skbandit.__version__)) > 1000


def test_links_of_the_long_description_lead_to_the_tag():
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    from hatch_build import REPOSITORY, absolute_links

    assert PROJECT["urls"]["Source"] == f"https://github.com/{REPOSITORY}"
    for page in ((ROOT / "README.md").read_text(encoding="utf-8"), CHANGELOG):
        text = absolute_links(page, "1")
        paths = re.findall(rf"\(https://\S+{REPOSITORY}/(?:blob/)?v1/([^)#]+)", text)
        assert len(paths) >= 2
        assert not [path for path in paths if not (ROOT / path).exists()]


def test_a_release_sets_version_and_date():
    prepare = runpy.run_path(str(ROOT / ".ci" / "prepare_release.py"))
    for path, lines in prepare["PLACES"].items():
        text = prepare["dated"]((ROOT / path).read_text("utf-8"), lines, "9.8.7", "2031-02-03")
        assert "9.8.7" in text
        assert prepare["dated"](text, lines, "9.8.7", "2031-02-03") == text


def test_fragments_are_of_known_types():
    """Else the changelog would leave them out in silence."""
    names = [path.name for path in (ROOT / "changes").iterdir() if path.name != "README.md"]
    kinds = "|".join(kind["directory"] for kind in TOWNCRIER["type"])
    assert not [n for n in names if not re.fullmatch(rf"(\+[\w-]+|\d+)\.({kinds})\.md", n)]
