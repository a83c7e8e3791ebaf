"""The quickstart as a script, as a notebook and in README.md is one and the same."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
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
def test_the_notebook_prints_what_the_readme_shows(tmp_path):
    """Words are the same; numbers may differ a little between versions of what we depend on."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(code_of("code"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "quickstart.png").stat().st_size > 10_000
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    after = readme.partition("<!-- quickstart output -->")[2]
    shown = re.search(r"```text\n(.*?)```", after, flags=re.S)[1]
    number = r"\d+(?:\.\d+)?"
    assert re.sub(number, "#", run.stdout).split() == re.sub(number, "#", shown).split()
    printed, promised = (
        np.array(re.findall(number, text), dtype=float) for text in (run.stdout, shown)
    )
    np.testing.assert_allclose(printed, promised, atol=0.02)
