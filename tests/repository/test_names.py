"""Names say what they hold, and mean one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import skbandit

ROOT = Path(skbandit.__file__).parent

NO_NOUNS = {"found", "one", "known", "own", "its", "some"}
"""Words that do not say what a variable holds."""

PUBLIC = {"own"}
"""Names of parameters that users pass: of `make_set_selection`."""


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
