"""No file of the package imports, directly or through others, a file that imports it."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import skbandit

ROOT = Path(skbandit.__file__).parent


def module(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """What a file imports from the package, inside functions and for type checkers, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skbandit"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            files = names & FILES.keys()
            found |= files if len(files) == len(names) else files | {node.module}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.startswith("skbandit")}
    return found


FILES = {module(path): path for path in ROOT.rglob("*.py")}


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


@pytest.mark.thorough
def test_there_is_no_circle():
    graph = {name: imported(path) - {name} for name, path in FILES.items()}
    assert len(graph) > 100
    assert circle(graph) is None
