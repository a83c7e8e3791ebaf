"""Write examples/quickstart.ipynb from examples/quickstart.py: ``python docs/make_notebook.py``."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "quickstart.py"
NOTEBOOK = SCRIPT.with_suffix(".ipynb")

INSTALL = """To be run once before: `python -m pip install "skbandit[examples]"`, or in a
checkout `python -m pip install ".[examples]"`."""
"""Said below the title, since a notebook may be read far from the repository."""

CELL = re.compile(r"^# %%\n((?:#.*\n)*)", flags=re.M)
"""Where a cell of the script begins, with the comment that becomes text."""


def to_markdown(text: str) -> str:
    """Turn underlined titles of reStructuredText into those of Markdown."""
    text = re.sub(r"^(.+)\n=+\n*", r"# \1\n\n", text, flags=re.M)
    return re.sub(r"^(.+)\n-+\n*", r"## \1\n\n", text, flags=re.M)


def cells_of(script: str) -> list[tuple[str, str]]:
    """Cut a script into (kind, source): its docstring, comments after ``# %%``, and code."""
    docstring, rest = re.fullmatch(r'"""\n(.*?)\n"""\n(.*)', script, flags=re.S).groups()
    code, *pairs = CELL.split(rest)
    title, _, about = to_markdown(docstring).partition("\n\n")
    cells = [("markdown", f"{title}\n\n{INSTALL}\n\n{about}"), ("code", code)]
    for comment, body in zip(pairs[::2], pairs[1::2], strict=True):
        text = re.sub(r"^# ?", "", comment, flags=re.M)
        cells += [("markdown", to_markdown(text)), ("code", body)]
    return [(kind, source.strip()) for kind, source in cells if source.strip()]


def to_notebook(script: str) -> str:
    """Write the cells of a script in the format of Jupyter, without outputs."""
    cells = []
    for number, (kind, source) in enumerate(cells_of(script)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(to_notebook(SCRIPT.read_text(encoding="utf-8")), encoding="utf-8")
