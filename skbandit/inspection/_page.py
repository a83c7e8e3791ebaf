"""HTML of a report: one file without scripts, for screens, phones and paper."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._rate_report import count_text, read_verdicts
from skbandit.inspection import _report_lines as lines
from skbandit.rates._kinds import value_text

_STYLE = Template(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))
"""Style of the page, with title and number on each sheet of paper."""

_SHAPES = {
    "met": '<circle r="5" fill="currentColor"/>',
    "violated": '<path d="M-5-5 5 5M-5 5 5-5" stroke="currentColor" stroke-width="3.5"/>',
    lines.UNDECIDED: '<circle r="4.5" fill="var(--paper)" stroke="currentColor" stroke-width="2"/>',
    "": '<path d="M0-5 4 0 0 5-4 0Z" fill="currentColor"/>',
}
"""Marks of verdicts, which differ in shape, as on the displays."""

_ARROW = '<path d="M-7-4 0 0-7 4Z" fill="currentColor"/>'

_HEIGHT, _MIDDLE = 20, 10


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """Return a page of sections, each a heading and its HTML; without one it is below the title.

    It ends with lines to sign. Title and number of the report stand on each sheet of paper.
    """
    title = title.encode("utf-8", "backslashreplace").decode()
    content = "\n".join([title, *(part for section in sections for part in section)])
    number = sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    lines = '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>'
    about = paragraph(f"This is report {number}, a number that is made of all it says.")
    sections = [*sections, ("Approval", f"{about}{lines}")]
    # in a style sheet, nothing in a quoted text may end it
    quoted = "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in title)
    style = _STYLE.substitute(title=quoted, number=number)
    top = "".join(body for head, body in sections if not head)
    parts = [f"<section><h2>{escape(head)}</h2>{body}</section>" for head, body in sections if head]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>{top}</header>\n" + "\n".join(parts) + "\n"
        "</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def plain_table(
    headings: Sequence[Any], rows: Sequence[Sequence[Any]], numbers: int = 0, kind: str = "plain"
) -> str:
    """Return a table of plain text, whose last `numbers` columns are numbers."""
    kinds = [""] * (len(headings) - numbers) + [' class="number"'] * numbers

    def line(cells: Sequence[Any], scopes: Sequence[str]) -> str:
        inner = "".join(
            f"<{tag}{kind}>{escape(value_text(cell))}</{tag[:2]}>"
            for tag, kind, cell in zip(scopes, kinds, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    head = line(headings, ['th scope="col"'] * len(kinds)) if any(headings) else ""
    body = "".join(line(row, ['th scope="row"', *["td"] * (len(kinds) - 1)]) for row in rows)
    table = f'<table class="{kind}"><thead>{head}</thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table}</div>' if len(headings) > 4 else table


def bars(report: pd.DataFrame) -> str:
    """Return a report with bars of its values and intervals, one table per scale."""
    report, verdict = report.reset_index(drop=True), read_verdicts(report)
    panels = lines.panels_of(report).items()
    return "".join(_bars_of(scale, goals, report, verdict) for scale, goals in panels)


def _bars_of(
    scale: str, goals: Sequence[list[lines.Line]], report: pd.DataFrame, verdict: Sequence[str]
) -> str:
    """Return the table of one scale; on paper, each part of a goal is on a sheet with its name."""
    if len(goals) > 1 and any(len(of_goal) > lines.LONG for of_goal in goals):
        return "".join(_bars_of(scale, [of_goal], report, verdict) for of_goal in goals)
    shown = report.iloc[lines.rows_of(goals)]
    limits = lines.axis_of(scale, shown)
    has_bound = "bound" in shown and bool(shown["bound"].notna().any())
    again = escape(goals[0][0].text) if len(goals[0]) > lines.LONG else ""
    bodies = []
    for of_goal in goals:
        rows = []
        for line in of_goal:
            kind = "goal" if line.is_goal else "below"
            cells = [f'<th scope="row" class="name {kind}">{escape(line.text)}</th>']
            if line.row is None:
                kind = "head once" if again else "head"
                rows.append(f'<tr class="{kind}">{cells[0]}{"<td></td>" * (3 + has_bound)}</tr>')
                continue
            row, word = report.iloc[line.row], verdict[line.row]
            cells.append(f'<td class="bar">{_bar(row, word, limits)}</td>')
            cells.append(f'<td class="number">{escape(lines.figures_of(row))}</td>')
            if has_bound:
                bound = "" if np.isnan(row["bound"]) else f"{row['bound']:g}"
                label = '<span class="label">bound </span>' if bound else ""
                cells.append(f'<td class="number">{label}{bound}</td>')
                mark = '<svg width="14" height="12" viewBox="-7 -6 14 12" aria-hidden="true">'
                mark = f'<span class="{word}">{mark}{_SHAPES[word]}</svg> {word}</span>'
                cells.append(f"<td>{mark if word else ''}</td>")
            else:
                label = '<span class="label">rows </span>'
                cells.append(f'<td class="number">{label}{count_text(row["effective_n"])}</td>')
            rows.append(f"<tr>{''.join(cells)}</tr>")
        kind = "" if again else ' class="whole"'
        bodies.append(f"<tbody{kind}>{''.join(rows)}</tbody>")
    heads = {"": "", "value [interval]": "number"}
    heads |= {"bound": "number", "verdict": ""} if has_bound else {"rows": "number"}
    head = f'<th scope="col"><span class="again">{again}</span></th>' + "".join(
        f'<th scope="col" class="{kind}">{head}</th>' for head, kind in heads.items()
    )
    ends = "".join(f"<span>{limit + 0.0:.3g}</span>" for limit in limits)
    name = scale if scale in lines.FORMS else ""
    foot = f'<td class="name soft">{name}</td><td class="bar ends">{ends}</td>'
    foot += "<td></td>" * (len(heads) - 1)
    return (
        f'<table class="bars"><thead><tr>{head}</tr></thead>{"".join(bodies)}'
        f"<tfoot><tr>{foot}</tr></tfoot></table>"
    )


def _bar(row: pd.Series, verdict: str, limits: tuple[float, float]) -> str:
    """Return an SVG bar: value, interval and bound, in percent, so that it scales with its column.

    What ends outside of the limits is cut there, with an arrow.
    """
    if row["n_rows"] == 0 or np.isnan(row["value"]):
        return ""
    low, high = limits
    value, ends = row["value"], [row.get("ci_low", np.nan), row.get("ci_high", np.nan)]
    parts = ['<line x1="0" x2="100%" y1="10" y2="10" stroke="var(--rule)"/>']

    def at(value: float) -> float:
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    def placed(percent: float, shape: str) -> str:
        return f'<svg x="{percent:g}%" y="{_MIDDLE}" overflow="visible">{shape}</svg>'

    if np.isfinite(ends).all():
        x1, x2 = (at(end) for end in ends)
        line = f'x1="{x1}%" x2="{x2}%" y1="{_MIDDLE}" y2="{_MIDDLE}" stroke-width="2.5"'
        parts.append(f'<line {line} stroke="currentColor"/>')
    if not np.isnan(bound := row.get("bound", np.nan)):
        line = f'x1="{at(bound)}%" x2="{at(bound)}%" y1="1" y2="{_HEIGHT - 1}" stroke-width="2"'
        parts.append(f'<line {line} stroke="var(--ink)"/>')
    if np.nanmax([value, *ends]) > high:
        parts.append(placed(100, _ARROW))
    if np.nanmin([value, *ends]) < low:
        parts.append(placed(0, f'<g transform="scale(-1)">{_ARROW}</g>'))
    inside = 93.0 if value > high else max(at(value), 0.0 if value >= low else 4.0)
    parts.append(placed(inside, _SHAPES[verdict]))
    text = escape(lines.figures_of(row), quote=True)
    return (
        f'<svg width="100%" height="{_HEIGHT}" class="{verdict or "none"}" role="img" '
        f'aria-label="{text}">{"".join(parts)}</svg>'
    )
