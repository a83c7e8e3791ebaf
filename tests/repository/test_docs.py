"""The documentation names everything public, and only what there is.

Snippets are run by pytest itself: see ``--doctest-glob`` in pyproject.toml.
"""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import skbandit
from tests.last_digit import LastDigitChecker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {"_build", "auto_examples", "generated"}
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for pattern in ("**/*.md", "*.rst")
    for path in sorted(DOCS.glob(pattern))
    if not MADE & set(path.relative_to(DOCS).parts)
}


def public_addresses():
    """Map each public address to the object: of every public module, what its `__all__` names."""
    names = ["skbandit"] + [
        found.name
        for found in pkgutil.walk_packages(skbandit.__path__, "skbandit.")
        if not any(part.startswith("_") for part in found.name.split("."))
    ]
    for name in names:
        module = importlib.import_module(name)
        for public in module.__all__:
            obj = getattr(module, public)
            if callable(obj) or isinstance(obj, ModuleType):
                yield f"{name}.{public}", obj


def documented():
    """Addresses in the autosummary tables of the API reference."""
    module, inside = None, False
    for line in PAGES["api.rst"].splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        if line.startswith(".. autosummary::"):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and re.fullmatch(r"   \w+", line):
            yield f"{module}.{line.strip()}"


ADDRESSES = dict(public_addresses())
DOCUMENTED = list(documented())


def test_every_public_name_is_in_the_reference():
    listed = {id(ADDRESSES.get(address)) for address in DOCUMENTED}
    assert not [address for address, obj in ADDRESSES.items() if id(obj) not in listed]


def test_the_reference_names_only_what_there_is_and_once():
    assert set(DOCUMENTED) <= set(ADDRESSES)
    objects = [ADDRESSES[address] for address in DOCUMENTED]
    assert len({id(obj) for obj in objects}) == len(objects)


def test_snippets_end_before_their_fence():
    """Else the fence would be read as output; and prompts outside of a fence would not be shown."""
    for page, text in PAGES.items():
        fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
        shown = [body for language, body in fences if language == "pycon"]
        assert all(body.endswith("\n\n") for body in shown), page
        assert sum(body.count(">>> ") for body in shown) == text.count(">>> "), page


@pytest.mark.parametrize(
    ("want", "got", "passes"),
    [
        (".896", ".895", True),
        (".897", ".895", False),
        ("0.896", "0.8951", False),  # the last digit is the finer one's
        ("round to 0.9", "round to 0.899", True),
        ("3 rows", "4 rows", False),
        ("[1. 0.25]", "[2. 0.25]", False),
        ("[1. 0.25]", "[0.999 0.25 ]", True),
        ("array([-0.00, 0.21])", "array([ 0.01, 0.20])", True),
        ("1.2e-05", "1.3e-05", True),
        ("1.2e-05", "1.2e-04", False),
        ("version 0.1.0", "version 0.2.0", False),
        ("fit 0.51 ... 0.62 of ...", "fit 0.52 and 0.70, 0.63 of all", True),
        ("fit 0.51 ... 0.62 of ...", "fit 0.52 and 0.70, 0.64 of all", False),
        ("... 0.62", "0.61 and 0.64, then 0.63", True),
        ("... 0.62", "0.63 and then 0.64", False),
        ("a <mean 0.19>", "a <mean 0.19> more", False),
    ],
)
def test_the_last_printed_digit_may_differ_by_one(want, got, passes):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert LastDigitChecker().check_output(f"{want}\n", f"{got}\n", flags) == passes


def test_files_that_pages_name_exist():
    """Paths in code style that begin with a folder of the repository."""
    folders = "examples|tests|benchmarks|skbandit|docs"
    named = re.findall(rf"`((?:{folders})/[\w./]+)`", "\n".join(PAGES.values()))
    # files that the reader is told to write
    assert not [name for name in named if "_yours" not in name and not (ROOT / name).exists()]


def test_tests_and_commands_of_the_papers_page_exist():
    """Files are checked above; here single tests, and modules run by name."""
    text = PAGES["papers.md"]
    tests = re.findall(r"`(tests/[\w./]+)::(\w+)`", text)
    assert len(tests) >= 5
    for path, name in tests:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (path, name)
    modules = set(re.findall(r"python -m (benchmarks[\w.]+)", text))
    assert modules
    assert all((ROOT / f"{module.replace('.', '/')}.py").exists() for module in modules)


def test_goals_of_the_cheat_sheet_are_goals():
    """Each piece of code of its first two tables is a constraint, or a list of them."""
    tables = PAGES["cheat_sheet.md"].partition("## Where goals go")[0]
    goals = re.findall(r"^\|[^|]*\| `([^`]*)` \|", tables, flags=re.M)
    assert len(goals) >= 18
    for goal in goals:
        found = eval(goal, vars(skbandit.rates).copy())
        for one in found if isinstance(found, list) else [found]:
            assert isinstance(one, skbandit.rates.Constraint)
