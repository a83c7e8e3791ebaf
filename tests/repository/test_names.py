"""Names in single backticks, in comments and docstrings, exist.

Double backticks are for code and for names of other libraries.
"""

import re
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType

import skbandit

ROOT = Path(skbandit.__file__).parent

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


def test_names_in_comments_and_docstrings_exist():
    files = ROOT.rglob("*.py")
    sources = {path.relative_to(ROOT): path.read_text("utf-8") for path in files}
    assert list(unknown(sources)) == []


def test_names_that_do_not_exist_are_found():
    sources = {
        Path("a/_one.py"): "def _here(row):\n    '''`row`, `_here()` and `_one`, but `_gone`.'''",
        Path("b/_two.py"): "# `_here`, `skbandit.no_such`, ``code``\nOTHER = {'key': 1}  # `key`",
    }
    found = [("a/_one.py", "_gone"), ("b/_two.py", "_here"), ("b/_two.py", "skbandit.no_such")]
    assert list(unknown(sources)) == [(str(Path(path)), name) for path, name in found]
