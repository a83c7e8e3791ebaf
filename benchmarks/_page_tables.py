"""From kept results to the tables of the documentation."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks._kept import ROOT, about, is_kept, results
from benchmarks.price import with_all

PAGE = ROOT / "docs" / "benchmarks.md"
TABLES = ROOT / "docs" / "benchmarks_tables.md"
PAPERS = ROOT / "docs" / "papers.md"
HAND = (
    ROOT / "README.md",
    *(ROOT / "docs" / page for page in ("index.md", "choose.md", "how_to/service.md")),
)
"""Pages without tables of measurements; a figure in their prose stands between marks."""

LEVEL = 0.95
"""Of the intervals of paired differences, by Student's t over repetitions."""

DIGITS = {
    "cpu s": 2, "fit s": 3, "men / women": 2, "women / men": 2, "goals met": 2, "rule kept": 2,
    "µs per event": 2, "µs per choice": 1, "µs per row": 1, "choices a second": 0, "median ms": 1,
    "99% ms": 1, "regret": 4, "counts as %": 0, "% of regret": 1,
    "constraints met": 2, "share met": 2, "refused": 2, "violated": 2, "% of the ideal gain": 1,
    "% of the best gain": 1, "excess of the worst goal, %": 1, "false alarms at the bound": 2,
    "days, fall on 5": 0, "never, fall on 5": 2, "days, fall on 180": 0, "never, fall on 180": 2,
}  # fmt: skip
"""Decimals of a measure; else three."""


def spread(values: np.ndarray) -> float:
    """Standard error of a mean; nan of a single value."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def paired(frame: pd.DataFrame, method: str, reference: str, measure: str) -> tuple[float, float]:
    """Mean of a method's differences from the reference on the same data, and half an interval."""
    values = frame.pivot(index="unit", columns="method", values=measure)
    away = (values[method] - values[reference]).dropna().to_numpy()
    quantile = student.ppf((1 + LEVEL) / 2, max(len(away) - 1, 1))
    return float(away.mean()), float(quantile * spread(away))


def reference_of(frame: pd.DataFrame, references: tuple[str, ...]) -> str:
    """Our default among the methods of a part."""
    present = set(frame["method"])
    return next(one for one in references if one in present)


def show(measure: str, mean: float, error: float = math.nan) -> str:
    """A figure, and ± its standard error."""
    if math.isnan(mean):
        return "–"
    digits = DIGITS.get(measure, 3)
    text = f"{mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"


def table(name: str) -> list[str]:
    """Markdown: parts that measure the same side by side, a table a measure; others one by one."""
    frame, lines = results(name), []
    frame = with_all(frame) if name == "price" else frame
    alike: dict[tuple[str, ...], list[str]] = {}
    for part, of_part in frame.groupby("part", sort=False):
        measured = tuple(m for m in _measures(frame) if of_part[m].notna().any())
        alike.setdefault(measured, []).append(str(part))
    for measured, parts in alike.items():
        if len(parts) == 1:
            lines += _grid(parts[0], {m: (parts[0], m) for m in measured}, frame)
            continue
        for measure in measured:
            lines += _grid(measure, {part: (part, measure) for part in parts}, frame)
    return lines


def _grid(title: str, columns: dict[str, tuple[str, str]], frame: pd.DataFrame) -> list[str]:
    """A line a method, a column a part and measure; mean ± standard error of the repetitions."""
    cells: dict[str, dict[str, str]] = {}
    repeated = []
    for column, (part, measure) in columns.items():
        of_part = frame[frame["part"] == part]
        repeated.append(of_part["unit"].nunique())
        for method, its in of_part.groupby("method", sort=False)[measure]:
            values = its.dropna().to_numpy()
            if not len(values):
                continue
            cells.setdefault(str(method), {})[column] = show(measure, values.mean(), spread(values))
    counts = ", ".join(str(n) for n in dict.fromkeys(repeated))
    lines = [f"*{title}*: mean ± standard error of {counts} repetitions", ""]
    lines += ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for method, found in cells.items():
        shown = " | ".join(found.get(column, "–") for column in columns)
        lines.append(f"| {method} | {shown} |")
    return [*lines, ""]


def better(name: str) -> list[str]:
    """Who beats our default, by more than chance explains, and in what."""
    from benchmarks._page_boards import BOARDS

    board, frame, lines = BOARDS[name], results(name), []
    for part, of_part in frame.groupby("part", sort=False):
        own = reference_of(of_part, board.references)
        mean = of_part.groupby("method").mean(numeric_only=True)
        for method in of_part["method"].unique():
            if method.startswith(board.ours):
                continue
            ahead = []
            for measure, sense in board.measures.items():
                if not sense or measure not in mean or mean[measure][[method, own]].isna().any():
                    continue
                away, half = paired(of_part, method, own, measure)
                if sense * away > half:
                    its, ours = (show(measure, mean[measure][one]) for one in (method, own))
                    ahead.append(f"{measure} {its} against {ours}")
            if ahead:
                lines.append(f"- {part}: {method}, {', '.join(ahead)}")
    return lines or ["- none"]


def header(name: str) -> str:
    """One sentence: date, processor, versions."""
    found = about(name)
    used = {k: v for k, v in found["versions"].items() if v != "not installed"}
    text = (
        f"Run on {found['date']} on {found.get('ran on', 'one thread')} of {found['processor']} "
        f"({found['system']}), "
        f"{found['cpu seconds']} s of CPU time; "
        + ", ".join(f"{package} {v}" for package, v in used.items())
    )
    return text + "."


def left_out(name: str) -> str:
    """A sentence that names the rivals that were not there."""
    absent = [k for k, v in about(name)["versions"].items() if v == "not installed"]
    return f" Not installed, and so not compared: {', '.join(absent)}." if absent else ""


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per rule and what was asked for, each figure's mean over runs ± its deviation."""
    figures = [column for column in frame if column not in {"rule", "asked", "run"}]
    lines = []
    for (rule, asked), runs in frame.groupby(["rule", "asked"], sort=False, dropna=False):
        line = {"rule": rule, "asked": "" if math.isnan(asked) else f"{asked:g}"}
        for figure in figures:
            line[figure] = f"{runs[figure].mean():.4f}"
            if len(runs) > 1:
                line[figure] += f" ± {runs[figure].std(ddof=1):.4f}"
        lines.append(line)
    return pd.DataFrame(lines)


def block(name: str) -> str:
    """What stands between the marks of a board, or of a published experiment."""
    as_kept = name in ("check", "sizes", "tables")
    if as_kept or name.startswith("published_"):
        frame = results(name)
        found = frame.round(2).astype(object).fillna("").astype(str) if as_kept else means(frame)
        lines = ["| " + " | ".join(found) + " |", "|---" * len(found.columns) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in found.to_numpy().tolist()]
        return "\n".join([header(name), "", *lines])
    if name in (
        "service", "horizons", "changes", "price", "classes", "levels", "far_levels", "budgets",
        "uplift", "contrasts", "watch",
    ):  # fmt: skip
        return "\n".join([header(name), "", *table(name)]).rstrip()
    lines = [header(name) + left_out(name), "", *table(name)]
    lines += ["**Ahead of our default beyond chance** (95% intervals of paired differences):", ""]
    return "\n".join([*lines, *better(name)])


def figure(name: str, method: str, measure: str, part: str = "") -> str:
    """One mean of a board; of a measure that is yes or no, how often it was yes."""
    frame = results(name)
    asked = (frame["method"] == method) & (frame["part"] == part if part else True)
    if frame[asked]["part"].nunique() != 1:
        raise ValueError(f"{name} has no or several parts {part!r} with a method {method!r}")
    values = frame[asked][measure]
    if measure == "rule kept":
        return f"{values.sum():.0f} of {len(values)}"
    return show(measure, values.mean())


def written(page: str) -> str:
    """The page with its tables and figures from the kept results.

    A table stands between `<!-- table of NAME -->` and `<!-- end -->`, a figure of the prose
    between `<!-- figure of NAME; method; measure -->` (`; measure; part -->` if there are several)
    and `<!-- end -->`.
    """

    def fill(found: re.Match[str]) -> str:
        mark, name = found[1], found[2]
        if not is_kept(name):  # not run yet
            return found[0]
        return f"{mark}\n\n{block(name)}\n\n<!-- end -->"

    def put(found: re.Match[str]) -> str:
        name, *keys = (" ".join(key.split()) for key in found[2].split(";"))
        return f"{found[1]}{figure(name, *keys)}<!-- end -->"

    page = re.sub(r"(<!-- table of (\w+) -->).*?<!-- end -->", fill, page, flags=re.S)
    return re.sub(r"(<!-- figure of ([^>]+) -->)[^<]*<!-- end -->", put, page)


def write_pages() -> None:
    """Write the tables and figures of all pages."""
    for page in (*HAND, PAGE, TABLES, PAPERS):
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


def _measures(frame: pd.DataFrame) -> list[str]:
    return [column for column in frame if column not in {"part", "unit", "method"}]
