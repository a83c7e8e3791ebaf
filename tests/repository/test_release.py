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


def test_the_oldest_python_is_classified():
    prefix = "Programming Language :: Python :: "
    pythons = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert pythons[1] == PROJECT["requires-python"].removeprefix(">=")


def test_the_citation_names_the_project_as_it_is():
    yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with dask, is not installed")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"].startswith(PROJECT["name"])
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert citation["version"] == skbandit.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"^## (.*)$", changelog, flags=re.M)
    assert first == f"{skbandit.__version__} ({citation.get('date-released', 'unreleased')})"


def test_links_of_the_long_description_lead_to_the_tag():
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    from hatch_build import REPOSITORY, absolute_links

    text = "![a\nb](docs/a.png) [c](docs/c.md#d) [e](https://e.org) [f](#f)\nreport[['a']]\n"
    assert absolute_links(text, "1.2.3") == (
        "![a\nb](https://raw.githubusercontent.com/skbandit/skbandit/v1.2.3/docs/a.png) "
        "[c](https://github.com/skbandit/skbandit/blob/v1.2.3/docs/c.md#d) "
        "[e](https://e.org) [f](#f)\nreport[['a']]\n"
    )
    assert PROJECT["urls"]["Source"] == f"https://github.com/{REPOSITORY}"
    for page in ("README.md", "CHANGELOG.md"):
        made = absolute_links((ROOT / page).read_text(encoding="utf-8"), "1")
        names = re.findall(rf"\(https://\S+{REPOSITORY}/(?:blob/)?v1/([^)#]+)", made)
        assert len(names) >= 2
        assert not [name for name in names if not (ROOT / name).exists()]


def test_the_notes_of_a_release_are_its_section():
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    section = runpy.run_path(str(ROOT / ".ci" / "release_notes.py"))["section"]
    notes = (
        "# Changelog\n\n## 0.2.0 (2027-01-01)\n\nNew.\n\n### A\n\n## 0.1.0 (2026-11-22)\n\nOld.\n"
    )
    assert section(notes, "0.2.0") == "New.\n\n### A\n"
    assert section(notes, "0.1.0") == "Old.\n"
    assert section("## 1.0 (unreleased)\n\nNext.\n", "1.0") == "Next.\n"
    with pytest.raises(SystemExit, match="no section"):
        section(notes, "0.1")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(section(changelog, skbandit.__version__)) > 1000


def test_a_release_sets_version_and_date_wherever_they_are_told():
    prepare = runpy.run_path(str(ROOT / ".ci" / "prepare_release.py"))
    for name, lines in prepare["PLACES"].items():
        text = (ROOT / name).read_text(encoding="utf-8")
        new = prepare["dated"](text, lines, "9.8.7", "2031-02-03")
        changed = set(new.splitlines()) - set(text.splitlines())
        assert 0 < len(changed) <= 2
        assert all("9.8.7" in line or "2031-02-03" in line for line in changed)
        assert prepare["dated"](new, lines, "9.8.7", "2031-02-03") == new
    first = "# Changelog\n\n## 0.1.0 ({})\n\nText (unreleased).\n"
    dated = prepare["dated"](first.format("unreleased"), prepare["FIRST"], "0.1.0", "2031-02-03")
    assert dated == first.format("2031-02-03")
    with pytest.raises(SystemExit, match="found 0"):
        prepare["dated"]("", {"^version: .*$": "version: {version}"}, "1.0.0", "2031-02-03")


def test_fragments_are_of_known_types():
    """Else the changelog would leave them out in silence."""
    names = [path.name for path in (ROOT / "changes").iterdir() if path.name != "README.md"]
    kinds = {kind["directory"] for kind in TOWNCRIER["type"]}
    wrong = [n for n in names if not re.fullmatch(rf"(\+[\w-]+|\d+)\.({'|'.join(kinds)})\.md", n)]
    assert not wrong
