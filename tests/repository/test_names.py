"""Names say what they hold, and mean one thing; those in comments and docstrings exist.

In comments and docstrings, single backticks are for names of the package, and double ones for code
and for names of other libraries.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType

import pytest

import skbandit

ROOT = Path(skbandit.__file__).parent

NO_NOUNS = {"found", "one", "known", "own", "its", "some"}
"""Words that do not say what a variable holds."""

PUBLIC = {"own"}
"""Names of parameters that users pass: of `make_set_selection`."""

NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")


def named(code):
    """What compiled code calls things: definitions, parameters, attributes, keys, modules."""
    yield from (code.co_name, *code.co_varnames)
    for name in code.co_names:  # of an import inside a package: with dots
        yield from name.split(".")
    constants = list(code.co_consts)
    for constant in constants:
        if isinstance(constant, CodeType):
            yield from named(constant)
        elif isinstance(constant, tuple | frozenset):
            constants.extend(constant)
        elif isinstance(constant, str):  # a key, a column, an annotated field, an imported module
            yield from constant.split(".")


def names_by_folder(sources):
    """The names that the code of each folder of the package uses."""
    names = {}
    for path, source in sources.items():
        code = compile(source, path, "exec", optimize=2, dont_inherit=True)  # 2: no docstrings
        modules = path.with_suffix("").parts
        names.setdefault(path.parts[0], set()).update(modules, named(code))
    return names


def unknown(sources):
    """Names in backticks that do not exist; a private one has to exist in the same folder."""
    by_folder = names_by_folder(sources)
    everywhere = set().union(*by_folder.values())
    for path, source in sources.items():
        for name in sorted(set(NAME.findall(source))):
            if name.startswith(("skbandit.", "sklearn.")):
                try:
                    resolve_name(name)
                except (ImportError, AttributeError):
                    yield str(path), name
                continue
            near = by_folder[path.parts[0]]
            parts = name.split(".")
            if any(part not in (near if part[0] == "_" else everywhere) for part in parts):
                yield str(path), name


@pytest.mark.thorough
def test_names_in_comments_and_docstrings_exist():
    files = ROOT.rglob("*.py")
    sources = {path.relative_to(ROOT): path.read_text("utf-8") for path in files}
    assert list(unknown(sources)) == []


def stored(tree):
    """Names that code assigns or defines, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def no_nouns(trees):
    """Names that are no nouns."""
    for path, tree in trees.items():
        for line, name in stored(tree):
            if name in NO_NOUNS - PUBLIC or (name in PUBLIC and "_synthetic" not in str(path)):
                yield f"{path}:{line} {name}"


def classes_of_one_name(trees):
    """Classes of one name, and where they are."""
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    for name, at in places.items():
        if len(at) > 1:
            yield f"{name}: {', '.join(sorted(at))}"


@pytest.fixture(scope="module")
def trees():
    return {
        path.relative_to(ROOT): ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")
    }


@pytest.mark.parametrize("check", [no_nouns, classes_of_one_name])
def test_a_name_says_what_it_holds_and_means_one_thing(check, trees):
    assert list(check(trees)) == []
