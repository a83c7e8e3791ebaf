"""HTML of a report: one file without scripts, for screens, phones and paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._rate_report import count_text, read_verdicts
from skbandit.inspection._report_lines import (
    LONG,
    UNDECIDED,
    Block,
    axis_of,
    by_scale,
    figures_of,
    goal_blocks,
    number_text,
)
from skbandit.rates._kinds import value_text

_STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#5c5c5c;--rule:#d4d4d4;--paper:#fff;
--met:#0072b2;--violated:#c24f00;--undecided:#444}
@media(prefers-color-scheme:dark){:root{--ink:#ececec;--soft:#a8a8a8;--rule:#454545;--paper:#161616;
--met:#5cb8f0;--violated:#ff9352;--undecided:#cfcfcf}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:52rem;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0 0 .2rem}
h2{font-size:1.1rem;margin:2rem 0 .4rem;border-bottom:1px solid var(--rule);break-after:avoid}
p{margin:.4rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%;margin:.6rem 0}
th,td{text-align:left;vertical-align:middle;padding:.22rem .4rem .22rem 0}
th{font-weight:normal}thead th,.facts th{color:var(--soft);font-size:.85rem}
tr,.whole{break-inside:avoid}
tbody tr+tr td,tbody tr+tr th,.bars tbody+tbody tr:first-child>*{border-top:1px solid var(--rule)}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.goal{font-weight:600}th.below{padding-left:1.2rem}
.bars .name{width:34%}.warn{border-left:.3rem solid var(--violated);padding-left:.7rem}
.bars td.bar{min-width:7rem;padding-right:.8rem}
.bars td+td{padding-left:.4rem}.bars span{white-space:nowrap}
.bar svg{display:block;overflow:visible}
.ends span{float:left;color:var(--soft);font-size:.8rem}.ends span+span{float:right}
.label,.again{display:none}.wide{overflow-x:auto}
.met{color:var(--met)}.violated{color:var(--violated);font-weight:600}.undecided{color:var(--undecided)}
.none{color:var(--soft)}
.sign{display:grid;grid-template-columns:2fr 1fr 2fr;gap:1.5rem;margin-top:2.6rem}
.sign div{border-top:1px solid var(--ink);color:var(--soft);font-size:.85rem}
.facts td{font:13px/1.4 ui-monospace,monospace;white-space:break-spaces}
.facts{table-layout:fixed}.facts th{width:9rem;overflow-wrap:anywhere}
.plain th{white-space:normal;overflow-wrap:normal}.plain th[scope=row]{min-width:8.5rem}
.facts th{padding-right:1rem}
@media screen and (max-width:600px){
body{padding:.8rem}.bars thead{display:none}
.bars tr{display:grid;grid-template-columns:auto auto 1fr;column-gap:.9rem;padding:.35rem 0;
border-top:1px solid var(--rule)}
.bars tbody tr>*,.bars tbody+tbody tr:first-child>*{border:0}
.bars td,.bars td+td,.bars th{padding:0}
.bars th.below{padding-left:1.2rem}
.bars td:last-child{text-align:right}.bars td.bar{padding:.1rem .4rem .1rem 0}
.bars .name,.bars td.bar{grid-column:1/-1;width:auto}
.bars td.number{white-space:normal}.bars td:empty{display:none}
.label{display:inline;color:var(--soft);font-size:.85rem}
.sign{grid-template-columns:1fr;gap:2.6rem}}
@media print{.bars .again{display:inline;color:var(--ink);white-space:normal}
.once{display:none}.head{break-after:avoid}.wide{overflow:visible;break-inside:avoid}:root{color-scheme:light;--ink:#000;--soft:#444;--rule:#bbb;--paper:#fff;--met:#0072b2;
--violated:#c24f00;--undecided:#444}
body{padding:0;max-width:none;font-size:10.5pt}.sign{break-inside:avoid}}
"""

_SHEET = """
@page{size:A4;margin:20mm 18mm;font:8.5pt system-ui,sans-serif;color:#444;
@top-left{content:"%(title)s"}@top-right{content:"report %(number)s"}
@bottom-right{content:"page " counter(page) " of " counter(pages)}}
"""
"""Margins of each sheet of paper."""

_SHAPES = {
    "met": '<circle r="5" fill="currentColor"/>',
    "violated": '<path d="M-5-5 5 5M-5 5 5-5" stroke="currentColor" stroke-width="3.5"/>',
    UNDECIDED: '<circle r="4.5" fill="var(--paper)" stroke="currentColor" stroke-width="2"/>',
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
    number_of_report = sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    sections = [*sections, ("Approval", _signature(number_of_report))]
    sheet = _SHEET % {"title": _css(title), "number": number_of_report}
    top = "".join(body for head, body in sections if not head)
    parts = [f"<section><h2>{escape(head)}</h2>{body}</section>" for head, body in sections if head]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{sheet}</style>\n</head>\n<body>\n"
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
    kinds = [""] * (len(headings) - numbers) + ["number"] * numbers
    lines = [_line(headings, kinds, "col")] * any(headings)
    lines += ["</thead><tbody>", *(_line(row, kinds, "row") for row in rows)]
    table = f'<table class="{kind}"><thead>{"".join(lines)}</tbody></table>'
    return f'<div class="wide">{table}</div>' if len(headings) > 4 else table


def _line(cells: Sequence[Any], kinds: Sequence[str], scope: str) -> str:
    """Return a line of a table: heads of columns, or the head of a row and its cells."""
    line = ""
    for k, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
        is_head = scope == "col" or k == 0
        tag = f'th scope="{scope}"' if is_head else "td"
        attribute = f' class="{kind}"' if kind else ""
        line += f"<{tag}{attribute}>{escape(value_text(cell))}</{tag[:2]}>"
    return f"<tr>{line}</tr>"


def facts(named: Mapping[str, Any]) -> str:
    """Return a table of names and values."""
    return plain_table(("", ""), [(name, str(value)) for name, value in named.items()], 0, "facts")


def _signature(number_of_report: str) -> str:
    """Lines for a name, a date and a signature."""
    text = f"This is report {number_of_report}, a number that is made of all it says."
    lines = '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>'
    return f"{paragraph(text)}{lines}"


def _css(text: str) -> str:
    """Return text to quote in a style sheet, which nothing in it can end."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text)


def bars(report: pd.DataFrame) -> str:
    """Return a report with bars of its values and intervals, one table per scale."""
    report, verdict = report.reset_index(drop=True), read_verdicts(report)
    return "".join(
        _bars_of(scale, blocks, report, verdict)
        for scale, blocks in by_scale(goal_blocks(report)).items()
    )


def _bars_of(
    scale: str, blocks: Sequence[Block], report: pd.DataFrame, verdict: Sequence[str]
) -> str:
    """Return the table of one scale; on paper, each part of a goal is on a sheet with its name."""
    if len(blocks) > 1 and any(len(block.lines) > LONG for block in blocks):
        return "".join(_bars_of(scale, [block], report, verdict) for block in blocks)
    shown = report.iloc[[row for block in blocks for row in block.rows]]
    limits = axis_of(scale, shown)
    has_bound = "bound" in shown and bool(shown["bound"].notna().any())
    again = escape(blocks[0].lines[0].text) if len(blocks[0].lines) > LONG else ""
    bodies = []
    for block in blocks:
        rows = []
        for line in block.lines:
            kind = "goal" if line.is_goal else "below"
            cells = [f'<th scope="row" class="name {kind}">{escape(line.text)}</th>']
            if line.row is None:
                kind = "head once" if again else "head"
                rows.append(f'<tr class="{kind}">{cells[0]}{"<td></td>" * (3 + has_bound)}</tr>')
                continue
            row, word = report.iloc[line.row], verdict[line.row]
            cells.append(f'<td class="bar">{_bar(row, word, limits)}</td>')
            cells.append(f'<td class="number">{escape(figures_of(row))}</td>')
            if has_bound:
                bound = "" if np.isnan(row["bound"]) else f"{row['bound']:g}"
                label = '<span class="label">bound </span>' if bound else ""
                cells.append(f'<td class="number">{label}{bound}</td>')
                cells.append(f"<td>{_verdict(word)}</td>")
            elif "effective_n" in report:
                label = '<span class="label">rows </span>'
                cells.append(f'<td class="number">{label}{count_text(row["effective_n"])}</td>')
            rows.append(f"<tr>{''.join(cells)}</tr>")
        kind = "" if again else ' class="whole"'
        bodies.append(f"<tbody{kind}>{''.join(rows)}</tbody>")
    heads = ["", "value [interval]", *(["bound", "verdict"] if has_bound else ["rows"])]
    kinds = ["", "number", *(["number", ""] if has_bound else ["number"])]
    head = f'<th scope="col"><span class="again">{again}</span></th>' + "".join(
        f'<th scope="col" class="{kind}">{head}</th>'
        for kind, head in zip(kinds, heads, strict=True)
    )
    ends = "".join(f"<span>{limit + 0.0:.3g}</span>" for limit in limits)
    name = scale if scale in ("rate", "ratio", "difference") else ""
    foot = f'<td class="name soft">{name}</td><td class="bar ends">{ends}</td>'
    foot += "<td></td>" * (len(heads) - 1)
    return (
        f'<table class="bars"><thead><tr>{head}</tr></thead>{"".join(bodies)}'
        f"<tfoot><tr>{foot}</tr></tfoot></table>"
    )


def _verdict(verdict: str) -> str:
    """Return a verdict with its mark."""
    if not verdict:
        return ""
    mark = (
        f'<svg width="14" height="12" viewBox="-7 -6 14 12" aria-hidden="true">{_SHAPES[verdict]}'
    )
    return f'<span class="{verdict}">{mark}</svg> {verdict}</span>'


def _bar(row: pd.Series, verdict: str, limits: tuple[float, float]) -> str:
    """Return an SVG bar: value, interval and bound, in percent, so that it scales with its column.

    What ends outside of the limits is cut there, with an arrow.
    """
    if row["n_rows"] == 0 or np.isnan(row["value"]):
        return ""
    low, high = limits
    ends = [row.get("ci_low", np.nan), row.get("ci_high", np.nan)]
    parts = ['<line x1="0" x2="100%" y1="10" y2="10" stroke="var(--rule)"/>']

    def at(value: float) -> float:
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    if np.isfinite(ends).all():
        x1, x2 = (at(end) for end in ends)
        line = f'x1="{x1}%" x2="{x2}%" y1="{_MIDDLE}" y2="{_MIDDLE}" stroke-width="2.5"'
        parts.append(f'<line {line} stroke="currentColor"/>')
    if not np.isnan(bound := row.get("bound", np.nan)):
        line = f'x1="{at(bound)}%" x2="{at(bound)}%" y1="1" y2="{_HEIGHT - 1}" stroke-width="2"'
        parts.append(f'<line {line} stroke="var(--ink)"/>')
    if np.nanmax([row["value"], *ends]) > high:
        parts.append(_placed(100, _ARROW))
    if np.nanmin([row["value"], *ends]) < low:
        parts.append(_placed(0, f'<g transform="scale(-1)">{_ARROW}</g>'))
    inside = min(max(at(row["value"]), 0 if row["value"] >= low else 4), 100)
    if row["value"] > high:
        inside = 93
    parts.append(_placed(inside, _SHAPES[verdict]))
    text = escape(figures_of(row), quote=True)
    return (
        f'<svg width="100%" height="{_HEIGHT}" class="{verdict or "none"}" role="img" '
        f'aria-label="{text}">{"".join(parts)}</svg>'
    )


def _placed(percent: float, shape: str) -> str:
    """Return a shape at a percentage of the width."""
    return f'<svg x="{percent:g}%" y="{_MIDDLE}" overflow="visible">{shape}</svg>'


def number(value: float) -> str:
    """Return a number as text, or that it is not known."""
    return "not known" if np.isnan(value) else number_text(value)
