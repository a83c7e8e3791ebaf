"""Pages, examples, docstrings and messages use the field's words and American spelling."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CUTTING_PLANES = (
    "docs/derivations/constrained.md",
    "docs/papers.md",
    "skbandit/constrained/paper/_cutting_plane.py",
)
"""Files in which a cut is a plane, not a threshold."""

WORDS = (
    # pattern, the field's word, a sentence that it finds
    (r"processor[ -](seconds|time)", "CPU time", "It takes 3 processor seconds."),
    (r"made (problems?|data|rows|worlds?)", "synthetic data", "It is best on made problems."),
    (r"judg(e|es|ed|ing)", "evaluate, score, estimate", "Each is judged on new rows."),
    (r"(?<!and )answers?", "prediction", "It gets half of the answers wrong."),
    (r"(?<!on )demands?", "constraint", "Every demand is met."),
    (r"promises?", "constraint, guarantee", "The promise must hold on new rows."),
    (r"(a|the|one|each|moved|global|single|per-group) cuts?", "threshold", "Move the cut."),
    (r"what (comes|came|becomes) of", "result, reward, feedback", "It learns what comes of it."),
    (r"(deals?|dealt) (the )?rows", "assign (rows to folds)", "It deals rows to folds."),
    (
        r"(is|are|was|were|be|been) told",
        "use, require, take (an argument)",
        "It is told the group.",
    ),
    (r"(hand|hands|handed|handing) out", "select, choose, return", "It hands out the copies."),
    (r"of our own", "built-in, separate", "It has solvers of our own."),
    (r"beside", "compared with, next to", "It is slow beside a plain fit."),
    (r"rows (fitted|left out)", "training rows, out-of-fold rows", "The rows fitted show less."),
    (r"beliefs?", "posterior", "The beliefs are updated."),
    (r"new people", "new data", "It holds for new people."),
    (r"to be read from it", "Takeaway", "*To be read from it*: little."),
    (r"unasked", "by default", "It keeps a margin, unasked."),
    (r"the prices", "multipliers", "The prices are known then."),
    (r"(other|all|which) rooms", "packages, modules", "Other rooms import it."),
    (r"answered (positive|alike)", "predicted", "Both rows are answered alike."),
    (r"µs an? \w+", "per event, per row", "It takes 3 µs an event."),
)


def prose_of_page(text):
    """The page without code, addresses and directives."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", " ", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.S)
    text = re.sub(r"\]\([^)]*\)|https?://\S+|``.+?``|`[^`]*`", " ", text)
    return " ".join(text.split())


def prose_of_module(text):
    """Its strings: docstrings and messages, without code in them."""
    strings = (
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    )
    text = "\n".join(strings)
    text = re.sub(r"^ *(>>>|\.\.\. ).*$", " ", text, flags=re.M)
    text = re.sub(r"https?://\S+|``.+?``|:\w+:`[^`]*`|`[^`\s]*`", " ", text)
    return " ".join(text.split())


def prose_of_example(text):
    """Strings and comments: the gallery shows both."""
    comments = "\n".join(re.findall(r"^ *# ?(.*)$", text, flags=re.M))
    return prose_of_module(text) + " " + prose_of_page(comments)


def read_texts():
    for pattern, prose in (
        ("*.md", prose_of_page),
        ("docs/**/*.md", prose_of_page),
        ("examples/**/*.py", prose_of_example),
        ("skbandit/**/*.py", prose_of_module),
    ):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            # A changelog keeps the words of its time.
            made = {"_build", "auto_examples", "generated"} & set(path.parts)
            if not made and name != "CHANGELOG.md":
                yield name, prose(path.read_text(encoding="utf-8"))


def british():
    """Map British spellings to American ones: codespell's dictionary."""
    folder = Path(find_spec("codespell_lib").submodule_search_locations[0])
    lines = (folder / "data" / "dictionary_en-GB_to_en-US.txt").read_text("utf-8").splitlines()
    spelled = dict(line.split("->") for line in lines if "->" in line)
    return {old: new.partition(",")[0] for old, new in spelled.items()}


FOUND_BY = [(re.compile(rf"\b(?:{old})\b", re.I), new) for old, new, _ in WORDS]


def house_words(prose, spellings):
    """Each one found, and the word to use."""
    found = [(hit[0], new) for old, new in FOUND_BY for hit in old.finditer(prose)]
    for word in re.findall(r"[A-Za-z]+", prose):
        if american := spellings.get(word.lower()):
            found.append((word, american))
    return sorted(set(found))


@pytest.mark.parametrize(("pattern", "field", "bad"), WORDS, ids=[word[0] for word in WORDS])
def test_each_pattern_finds_its_sentence(pattern, field, bad):
    for prose in (
        prose_of_page(bad),
        prose_of_module(f'"""{bad}"""'),
        prose_of_module(f'raise ValueError(f"{bad} got {{x}}")'),
        prose_of_example(f"# {bad}"),
    ):
        assert field in [new for _, new in house_words(prose, {})]


def test_code_is_not_prose():
    assert not house_words(prose_of_page("`demand` [x](judge.md)\n```\ncut beside\n```\n"), {})
    assert not house_words(prose_of_module("demand = 1\n'''Use ``demand``.\n\n>>> demand\n'''"), {})


def test_texts_use_the_words_of_the_field():
    pytest.importorskip("codespell_lib")
    spellings = british()
    assert spellings["optimis" + "e"] == "optimize"
    found = {name: house_words(prose, spellings) for name, prose in read_texts()}
    assert len(found) > 150 and "README.md" in found
    wrong = [
        f"{name}: {old!r}, say {new}"
        for name, words in found.items()
        for old, new in words
        if not (new == "threshold" and name in CUTTING_PLANES)
    ]
    assert not wrong, "\n".join(wrong)
