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
th{color:var(--soft);font-weight:normal;font-size:.85rem}
tr{break-inside:avoid}
tbody tr+tr td,tbody tr+tr th{border-top:1px solid var(--rule)}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.goal{font-weight:600}.below{padding-left:1.2rem}
.bars td.name{width:34%}.bars td.bar{min-width:7rem;padding-right:.8rem}
.bars td+td{padding-left:.4rem}.bars span{white-space:nowrap}
.bar svg{display:block;overflow:visible}
.ends span{float:left;color:var(--soft);font-size:.8rem}.ends span+span{float:right}
.label,.again{display:none}.wide{overflow-x:auto}
.met{color:var(--met)}.violated{color:var(--violated);font-weight:600}.undecided{color:var(--undecided)}
.none{color:var(--soft)}
.sign{display:grid;grid-template-columns:2fr 1fr 2fr;gap:1.5rem;margin-top:2.6rem}
.sign div{border-top:1px solid var(--ink);color:var(--soft);font-size:.85rem}
code{font:13px/1.4 ui-monospace,monospace}
.facts code{white-space:break-spaces;overflow-wrap:anywhere}
.facts{table-layout:fixed}.facts th{width:9rem;overflow-wrap:anywhere}
.plain th{white-space:normal;overflow-wrap:normal}.plain td:first-child{min-width:8.5rem}
.facts th{padding-right:1rem}
@media screen and (max-width:600px){
body{padding:.8rem}.bars thead{display:none}
.bars tr{display:grid;grid-template-columns:auto auto 1fr;column-gap:.9rem;padding:.35rem 0;
border-top:1px solid var(--rule)}
.bars tbody tr+tr td{border:0}.bars td,.bars td+td{padding:0}.bars td.below{padding-left:1.2rem}
.bars td:last-child{text-align:right}.bars td.bar{padding:.1rem .4rem .1rem 0}
.bars td.name,.bars td.bar{grid-column:1/-1;width:auto}
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
    """A page of sections, each a heading and its HTML; the first has the title as its heading.

    It ends with lines to sign. Title and number of the report stand on each sheet of paper.
    """
    title = title.encode("utf-8", "backslashreplace").decode()
    content = "\n".join([title, *(part for section in sections for part in section)])
    number_of_report = sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    sections = [*sections, ("Approval", _signature(number_of_report))]
    sheet = _SHEET % {"title": _css(title), "number": number_of_report}
    parts = [f"<section><h2>{escape(head)}</h2>{body}</section>" for head, body in sections[1:]]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{sheet}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>{sections[0][1]}</header>\n" + "\n".join(parts) + "\n"
        "</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def plain_table(headings: Sequence[Any], rows: Sequence[Sequence[Any]], numbers: int = 0) -> str:
    """A table of plain text, whose last `numbers` columns are numbers."""
    kinds = [""] * (len(headings) - numbers) + [' class="number"'] * numbers
    head = "".join(
        f"<th{k}>{escape(value_text(h))}</th>" for h, k in zip(headings, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{k}>{escape(value_text(value))}</td>" for value, k in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table}</div>' if len(headings) > 4 else table


def facts(named: Mapping[str, Any]) -> str:
    """Names and values, in two columns."""
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td><code>{escape(str(value))}</code></td></tr>"
        for name, value in named.items()
    )
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def _signature(number_of_report: str) -> str:
    """Lines for a name, a date and a signature."""
    text = f"This is report {number_of_report}, a number that is made of all it says."
    lines = '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>'
    return f"{paragraph(text)}{lines}"


def _css(text: str) -> str:
    """Text within quotes of a style sheet, which nothing in it can end."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text)


def bars(report: pd.DataFrame) -> str:
    """A report with bars of its values and intervals, one table per scale."""
    report, verdict = report.reset_index(drop=True), read_verdicts(report)
    return "".join(
        _bars_of(scale, blocks, report, verdict)
        for scale, blocks in by_scale(goal_blocks(report)).items()
    )


def _bars_of(
    scale: str, blocks: Sequence[Block], report: pd.DataFrame, verdict: Sequence[str]
) -> str:
    """The table of one scale."""
    shown = report.iloc[[row for block in blocks for row in block.rows]]
    limits = _finite(axis_of(scale, shown), shown)
    has_bound = "bound" in shown and bool(shown["bound"].notna().any())
    if len(blocks) > 1 and any(len(block.lines) > LONG for block in blocks):
        return "".join(_bars_of(scale, [block], report, verdict) for block in blocks)
    again = ""  # on each sheet of paper
    if len(blocks[0].lines) > LONG:
        again = f'<span class="again">{escape(blocks[0].lines[0].text)}</span>'
    rows = []
    for block in blocks:
        for line in block.lines:
            kind = "goal" if line.is_goal else "below"
            cells = [f'<td class="name {kind}">{escape(line.text)}</td>']
            if line.row is None:
                kind = "head once" if again else "head"
                rows.append(f"<tr class='{kind}'>{cells[0]}{'<td></td>' * (3 + has_bound)}</tr>")
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
    heads = [again, "", "value [interval]", *(["bound", "verdict"] if has_bound else ["rows"])]
    kinds = ["", "", "number", *(["number", ""] if has_bound else ["number"])]
    head = "".join(f'<th class="{k}">{h}</th>' for h, k in zip(heads, kinds, strict=True))
    ends = "".join(f"<span>{limit + 0.0:.3g}</span>" for limit in limits)
    name = scale if scale in ("rate", "ratio", "difference") else ""
    foot = f'<td class="name soft">{name}</td><td class="bar ends">{ends}</td>'
    foot += "<td></td>" * (len(heads) - 2)
    return (
        f'<table class="bars"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody><tfoot><tr>{foot}</tr></tfoot></table>"
    )


def _verdict(verdict: str) -> str:
    """A verdict with its mark."""
    if not verdict:
        return ""
    mark = (
        f'<svg width="14" height="12" viewBox="-7 -6 14 12" aria-hidden="true">{_SHAPES[verdict]}'
    )
    return f'<span class="{verdict}">{mark}</svg> {verdict}</span>'


def _bar(row: pd.Series, verdict: str, limits: tuple[float, float]) -> str:
    """A picture of a value, its interval and its bound, which grows with the page, not its marks.

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
    """A shape at a part of the width."""
    return f'<svg x="{percent:g}%" y="{_MIDDLE}" overflow="visible">{shape}</svg>'


def _finite(limits: tuple[float, float], report: pd.DataFrame) -> tuple[float, float]:
    """Limits, with those that follow from the data filled in."""
    columns = [name for name in ("value", "ci_low", "ci_high", "bound") if name in report]
    values = report[columns].to_numpy(dtype=float)
    least, most = (
        values[np.isfinite(values)].min(initial=0),
        values[np.isfinite(values)].max(initial=0),
    )
    step = _step((most - least) / 4 or 1.0)
    low, high = step * np.floor(least / step), step * np.ceil(most / step)
    return (
        limits[0] if np.isfinite(limits[0]) else float(low),
        limits[1] if np.isfinite(limits[1]) else float(high if high > low else low + step),
    )


def _step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of 10 that is at least so large."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(digit * power for digit in (1, 2, 5, 10) if digit * power >= 0.999 * least))


def number(value: float) -> str:
    """A number, or that it is not known."""
    return "not known" if np.isnan(value) else number_text(value)
