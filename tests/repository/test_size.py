"""The package does not grow: a feature pays for its lines by what it deletes."""

import ast
from collections import Counter
from pathlib import Path

import skbandit

ROOT = Path(skbandit.__file__).parent

N_LINES = 34_438
N_FUNCTIONS = 2_684
N_CLASSES = 290
"""Numbers that only fall: lower them when you have deleted something."""

MOST_FILES = 16
MOST_LINES = 500
LONGER: dict[Path, int] = {}
"""Files that are still too long: split them."""


def code_lines(text, tree):
    """Count lines without blank lines, comments and docstrings."""
    prose = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            prose.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(1 for k, line in lines if line and line[0] != "#" and k not in prose)


TEXTS = {path.relative_to(ROOT): path.read_text("utf-8") for path in ROOT.rglob("*.py")}
TREES = {path: ast.parse(text) for path, text in TEXTS.items()}
LINES = {path: code_lines(text, TREES[path]) for path, text in TEXTS.items()}
KINDS = Counter(type(node) for tree in TREES.values() for node in ast.walk(tree))


def test_code_lines_leave_out_prose():
    text = (
        '"""Doc."""\n\n# why\nx = """two\nlines"""\ndef f():\n    """Doc.\n\n    More.\n    """\n'
    )
    assert code_lines(text, ast.parse(text)) == 3


def test_the_package_does_not_grow():
    assert sum(LINES.values()) <= N_LINES
    assert KINDS[ast.FunctionDef] + KINDS[ast.AsyncFunctionDef] <= N_FUNCTIONS
    assert KINDS[ast.ClassDef] <= N_CLASSES


def test_no_file_is_too_long():
    assert not {path: n for path, n in LINES.items() if n > LONGER.get(path, MOST_LINES)}


def test_no_folder_has_too_many_files():
    folders = Counter(path.parent for path in TEXTS)
    assert not {folder: n for folder, n in folders.items() if n > MOST_FILES}
