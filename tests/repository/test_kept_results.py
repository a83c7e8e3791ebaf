"""Tables of the documentation are those of the results that are kept beside the benchmarks."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks._kept import RESULTS, ROOT, about, results
from tests.benchmarks._page_boards import BOARDS
from tests.benchmarks._page_tables import (
    PAGE,
    PAPERS,
    better,
    block,
    means,
    paired,
    reference_of,
    written,
)
from tests.benchmarks.published import EXPERIMENTS


@pytest.mark.parametrize("page", [PAGE, PAPERS], ids=lambda page: page.stem)
def test_a_page_has_the_figures_that_were_found(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"<!-- table of (\w+) -->", text)
    assert len(named) >= 4
    assert all(block(name) in text for name in named)
    assert written(text) == text


def test_every_result_is_on_a_page_and_drawn():
    pages = [page.read_text(encoding="utf-8") for page in (PAGE, PAPERS)]
    kept = {path.stem for path in RESULTS.glob("*.csv")}
    assert kept == set(BOARDS) | {f"published_{name}" for name in EXPERIMENTS}
    for name in kept:
        figure = f"_static/{name if name.startswith('published') else f'benchmark_{name}'}.png"
        assert (ROOT / "docs" / figure).stat().st_size > 10_000
        assert any(f"<!-- table of {name} -->" in page and figure in page for page in pages)


@pytest.mark.parametrize("name", [*BOARDS, *(f"published_{name}" for name in EXPERIMENTS)])
def test_results_say_where_they_come_from(name):
    found = about(name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert found["processor"] and found["processor seconds"] > 0
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
    monkeypatch.setattr("tests.benchmarks._page_tables.results", lambda name: pd.DataFrame(lines))
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
