"""Tables and figures of README.md and of the pages are those of the results that are kept."""

import re

import numpy as np
import pandas as pd
import pytest

from benchmarks._kept import RESULTS, ROOT, about, results
from benchmarks._page_boards import BOARDS
from benchmarks._page_tables import (
    HAND,
    PAGE,
    PAPERS,
    better,
    block,
    figure,
    means,
    paired,
    reference_of,
    written,
)
from benchmarks.published import EXPERIMENTS


@pytest.mark.parametrize("page", [PAGE, PAPERS], ids=lambda page: page.stem)
def test_a_page_has_the_figures_that_were_found(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"<!-- table of (\w+) -->", text)
    assert len(named) >= 4
    assert all(block(name) in text for name in named)
    assert written(text) == text


@pytest.mark.parametrize(
    "page", [*HAND, RESULTS.parent / "README.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_tables_of_measurements_are_on_the_page_of_benchmarks_only(page):
    text = page.read_text(encoding="utf-8")
    assert "<!-- table of" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert not [line for line in rows if re.search(r"\| *±?[\d,]*\.?\d+ ", line)]


@pytest.mark.parametrize("page", HAND, ids=lambda page: page.stem)
def test_figures_of_the_prose_were_found(page):
    """What is measured stands between marks; a mark that began a line would end the paragraph."""
    text = page.read_text(encoding="utf-8")
    assert written(text) == text
    assert not re.findall(r"^<!-- figure", text, flags=re.M)
    prose = re.sub(
        r"^```.*?^```$|`[^`\n]*`|<!-- figure.*?<!-- end -->", "", text, flags=re.M | re.S
    )
    unit = r"(?:µs|ms|seconds|MB|GB|events per second|times (?:as|faster)|points of|%\s(?:of|and))"
    by_hand = re.findall(rf"(?<![\w.])0?\.\d\d+\b|\b\d[\d.,]*\s{unit}", prose)
    assert not by_hand, "measured by hand? Let benchmarks.page write it between marks"


def test_a_figure_is_a_mean_of_one_board():
    frame = results("eighty_percent")
    of_method = frame[frame["method"] == "ConstrainedRampClassifier"]
    n, kept = len(of_method), of_method["rule kept"].sum()
    mark = "{} <!-- figure of eighty_percent; ConstrainedRampClassifier;\n{} -->{}<!-- end -->."
    found = written(mark.format("a", "rule kept", "7 of 7") + mark.format("b", "error", ""))
    assert f"-->{kept:.0f} of {n}<!-- end -->." in found
    assert f"-->{of_method['error'].mean():.3f}<!-- end -->." in found
    board, part = "speed", "replay of a learning policy, 20 arms, 6 features"
    shown = figure(board, "GLMUCBPolicy linear, full", "µs per event", part)
    with pytest.raises(ValueError, match="several parts"):  # replayed, and served
        figure(board, "GLMUCBPolicy linear, full", "µs per event")
    with pytest.raises(ValueError, match="has no"):
        figure(board, "nobody", "µs per event", part)
    assert float(shown) > 0


DRAWN = [*BOARDS, *(f"published_{name}" for name in EXPERIMENTS)]


TABLES = ("budgets", "check", "classes", "horizons", "price", "service")  # without a figure


def test_every_result_is_on_a_page_and_drawn():
    pages = [page.read_text(encoding="utf-8") for page in (PAGE, PAPERS)]
    assert {path.stem for path in RESULTS.glob("*.csv")} == {*DRAWN, *TABLES}
    assert all(f"<!-- table of {name} -->" in pages[0] for name in TABLES)
    for name in DRAWN:
        figure = f"_static/{name if name.startswith('published') else f'benchmark_{name}'}.png"
        assert (ROOT / "docs" / figure).stat().st_size > 10_000
        assert any(f"<!-- table of {name} -->" in page and figure in page for page in pages)


@pytest.mark.parametrize("name", [*DRAWN, *TABLES])
def test_results_say_where_they_come_from(name):
    found = about(name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert found["processor"] and found["cpu seconds"] > 0
    assert {"python", "skbandit", "numpy", "scikit-learn"} <= set(found["versions"])


@pytest.mark.parametrize("name", BOARDS)
def test_repetitions_are_paired(name):
    """Every method of a part has been measured on the same repetitions, once each."""
    for _, of_part in results(name).groupby("part"):
        assert reference_of(of_part, BOARDS[name].references).startswith(BOARDS[name].ours)
        units = of_part.groupby("method")["unit"].agg(lambda unit: tuple(sorted(unit)))
        assert units.nunique() == 1
        assert len(set(units.iloc[0])) == len(units.iloc[0]) >= 2


def test_a_paired_difference_has_the_interval_of_students_t():
    frame = pd.DataFrame(
        {
            "unit": ["a", "b", "c"] * 2,
            "method": ["x"] * 3 + ["y"] * 3,
            "m": [1.0, 2.0, 3.0, 1.5, 2.5, 4.5],
        }
    )
    away, half = paired(frame, "y", "x", "m")
    assert away == pytest.approx(2.5 / 3)
    assert half == pytest.approx(4.302653 * np.std([0.5, 0.5, 1.5], ddof=1) / np.sqrt(3))


def test_who_is_ahead_is_named(monkeypatch):
    """A rival that is better on every repetition by about as much; not one that is so by chance."""
    lines = [
        {
            "part": "p",
            "unit": k,
            "method": method,
            "goals met": 0.5,
            "objective": value,
            "cpu s": 1.0,
        }
        for k in range(4)
        for method, value in (
            ("ConstrainedRampClassifier", 0.30 + 0.01 * k),
            ("better", 0.25 + 0.011 * k),
            ("lucky", 0.28 if k == 0 else 0.31 + 0.01 * k),
        )
    ]
    monkeypatch.setattr("benchmarks._page_tables.results", lambda name: pd.DataFrame(lines))
    assert better("goals") == ["- p: better, objective 0.267 against 0.315"]


def test_means_over_runs():
    frame = pd.DataFrame(
        {
            "rule": ["r", "r", "s"],
            "asked": [1.0, 1.0, np.nan],
            "run": [0, 1, 0],
            "e": [0.1, 0.3, 1.0],
        }
    )
    assert means(frame).to_dict("records") == [
        {"rule": "r", "asked": "1", "e": "0.2000 ± 0.1414"},
        {"rule": "s", "asked": "", "e": "1.0000"},
    ]
