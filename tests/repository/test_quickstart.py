"""The quickstart as a script and as a notebook is one and the same."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
MAKER = runpy.run_path(str(ROOT / "docs" / "make_notebook.py"))


def notebook():
    return json.loads((ROOT / "examples" / "quickstart.ipynb").read_text(encoding="utf-8"))


def code_of(kind):
    """The cells of a kind, as text."""
    return ["".join(c["source"]) for c in notebook()["cells"] if c["cell_type"] == kind]


def test_the_notebook_is_made_from_the_script():
    """After a change of the script: python docs/make_notebook.py."""
    made = MAKER["to_notebook"](SCRIPT)
    assert (ROOT / "examples" / "quickstart.ipynb").read_text(encoding="utf-8") == made


def test_no_line_of_the_script_is_lost():
    code = "\n".join(code_of("code"))
    lines = [line for line in SCRIPT.splitlines() if line and not line.startswith("#")]
    assert [line for line in code.splitlines() if line] == lines[
        lines.index("from pathlib import Path") :
    ]
    text = " ".join("\n".join(code_of("markdown")).split())
    said = re.findall(r"^# (?!%%|-+$)(.*)$", SCRIPT, flags=re.M)
    assert len(said) > 10
    assert all(" ".join(line.split()) in text for line in said)


def test_scripts_are_cut_at_their_cells():
    script = '"""\nTitle\n=====\n\nAbout.\n"""\n\na = 1\n\n# %%\n# Next\n# ----\n# Said.\n\nb = 2\n'
    kinds, (title, *rest) = zip(*MAKER["cells_of"](script), strict=True)
    assert kinds == ("markdown", "code", "markdown", "code")
    assert title.startswith("# Title\n\n") and title.endswith("\n\nAbout.")
    assert rest == ["a = 1", "## Next\n\nSaid.", "b = 2"]


@pytest.mark.thorough
def test_the_notebook_runs(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(code_of("code"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "quickstart.png").stat().st_size > 10_000
    parts = re.findall(r"^(ONE|TWO|THREE)\. ", run.stdout, flags=re.M)
    assert parts == ["ONE", "TWO", "THREE"]
