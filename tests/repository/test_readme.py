"""README.md says what is so: its code runs. Its figures: test_benchmarks.py."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.M | re.S)


def run(code):
    """What a block prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    return printed.getvalue()


@pytest.mark.thorough
def test_the_first_block_prints_what_is_shown():
    (language, code), (_, shown) = [block for block in BLOCKS if block[0] != "console"][:2]
    assert language == "python"
    number = r"\d\.\d+"
    printed = run(code)
    assert re.sub(number, "#", printed).split() == re.sub(number, "#", shown).split()
    for value, said in zip(re.findall(number, printed), re.findall(number, shown), strict=True):
        assert abs(float(value) - float(said)) <= 0.02
