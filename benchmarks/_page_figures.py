"""Figures of the documentation's page of benchmarks, from kept results."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

from benchmarks._kept import ROOT, results
from benchmarks._page_boards import BOARDS, CALIBRATED
from benchmarks._page_tables import paired, reference_of, spread

OURS, THEIRS, HINDSIGHT = "#0072B2", "#D55E00", "0.45"


def color(name: str, method: str) -> str:
    """Of a method's mark: ours, a rival's, or what is known in hindsight only."""
    if method.endswith("in hindsight"):
        return HINDSIGHT
    return OURS if method.startswith(BOARDS[name].ours) else THEIRS


def draw(name: str) -> None:
    """Draw a board's figure into docs/_static."""
    figure = FIGURES[name](results(name))
    save(figure, f"benchmark_{name}")


def save(figure: Any, name: str) -> None:
    """Write a figure into docs/_static, with a palette: a third of the bytes."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110)
    plt.close(figure)
    path = ROOT / "docs" / "_static" / f"{name}.png"
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)


def _dots(ax: Any, name: str, methods: list[str], middle: list[float], half: list[float]) -> None:
    """One mark and bar a method, the first one on top."""
    for at, (method, x, bar) in enumerate(zip(methods, middle, half, strict=True)):
        own = color(name, method)
        ax.errorbar(x, -at, xerr=np.nan_to_num(bar), fmt="o", color=own, capsize=3, markersize=5)
    ax.set_yticks(-np.arange(len(methods)), methods)
    for label, method in zip(ax.get_yticklabels(), methods, strict=False):  # none, if shared
        label.set_color(color(name, method))
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _of_methods(frame: pd.DataFrame, measure: str) -> tuple[list[str], list[float], list[float]]:
    """Methods in their order, means, and standard errors."""
    groups = [(m, g[measure].dropna().to_numpy()) for m, g in frame.groupby("method", sort=False)]
    groups = [(method, values) for method, values in groups if len(values)]
    means = [float(values.mean()) for _, values in groups]
    return [method for method, _ in groups], means, [spread(values) for _, values in groups]


def goals_figure(frame: pd.DataFrame) -> Any:
    """The share of fairness goals met on new rows, and below it what it costs."""
    parts = [part for part in frame["part"].unique() if "fairness" in part]
    figure, axes = plt.subplots(
        2, len(parts), figsize=(10.5, 5), layout="constrained", sharey=True, squeeze=False
    )
    for column, part in zip(axes.T, parts, strict=True):
        of_part = frame[frame["part"] == part]
        calibrated = of_part["method"] == CALIBRATED
        for ax, measure, words in zip(
            column,
            ("goals met", "objective"),
            ("share of goals met", "objective, less is better"),
            strict=True,
        ):
            _dots(ax, "goals", *_of_methods(of_part[~calibrated], measure))
            ax.set_xlabel(words)
        expected = of_part[calibrated]["goals met"].mean()
        column[0].axvline(expected, color=HINDSIGHT, linestyle="--", linewidth=1)
        column[0].set(xlim=(0, 1.05), xticks=[0, 0.5, 1])
        column[0].set_title(part, fontsize=10)
    return figure


def policies_figure(frame: pd.DataFrame) -> Any:
    """Mean reward relative to the default's, with intervals of paired differences."""
    parts = list(frame["part"].unique())
    figure, axes = plt.subplots(
        1, len(parts), figsize=(11, 3.2), layout="constrained", sharey=True, squeeze=False
    )
    for ax, part in zip(axes[0], parts, strict=True):
        of_part = frame[frame["part"] == part]
        own = reference_of(of_part, BOARDS["policies"].references)
        methods = [m for m in of_part["method"].unique() if m != own]
        away = [paired(of_part, method, own, "mean reward") for method in methods]
        _dots(ax, "policies", methods, [x for x, _ in away], [half for _, half in away])
        ax.axvline(0, color=OURS, lw=1)
        ax.set_title(part, fontsize=10)
    figure.supxlabel("mean reward less that of GLMUCBPolicy(), 95% intervals", fontsize=10)
    return figure


def sets_figure(frame: pd.DataFrame) -> Any:
    """Shares of the best sets' value."""
    parts = list(frame["part"].unique())
    figure, axes = plt.subplots(
        1, len(parts), figsize=(11, 3), layout="constrained", sharey=True, squeeze=False
    )
    for ax, part in zip(axes[0], parts, strict=True):
        _dots(ax, "sets", *_of_methods(frame[frame["part"] == part], "share"))
        ax.set_title(part, fontsize=10)
    figure.supxlabel("share of the best sets' value on new rows, ± standard error", fontsize=10)
    return figure


def speed_figure(frame: pd.DataFrame) -> Any:
    """CPU time of each task, on a logarithmic axis."""
    parts = list(frame["part"].unique())
    n_methods = [frame[frame["part"] == part]["method"].nunique() for part in parts]
    figure, axes = plt.subplots(
        len(parts),
        1,
        figsize=(8, 1.6 + 0.28 * sum(n_methods)),
        layout="constrained",
        height_ratios=[n + 1 for n in n_methods],
        squeeze=False,
    )
    for ax, part in zip(axes[:, 0], parts, strict=True):
        of_part = frame[frame["part"] == part]
        timed = ("cpu s", "µs per event", "µs per choice", "µs per row")
        measure = next(m for m in timed if of_part[m].notna().any())
        _dots(ax, "speed", *_of_methods(of_part, measure))
        ax.set(xscale="log", xlabel=measure.replace("cpu s", "CPU time (s)"))
        low, high = ax.get_xlim()
        low, high = low / 1.3, high * 1.3
        ax.set_xlim(low, high)
        ticks = [k * 10.0**e for e in range(-4, 6) for k in (1, 2, 5)]
        shown = [one for one in ticks if low <= one <= high]
        ax.set_xticks(shown, [f"{one:g}" for one in shown])
        ax.minorticks_off()
        ax.set_title(part, fontsize=10, loc="left")
    return figure


ERRORS = (0.14, 0.19)
"""The frame of the figure of the 80% rule; who is above it is named in its legend."""


def eighty_percent_figure(frame: pd.DataFrame) -> Any:
    """Error against the ratio of positive rates, a dot a split."""
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    ax.axvline(0.8, color="0.3", linestyle=":", linewidth=1)
    ax.axvspan(0.8, 2, color=OURS, alpha=0.06, linewidth=0)
    ax.text(0.81, ERRORS[1] - 0.0005, "80% rule kept", color="0.3", va="top")
    markers = dict(zip(frame["method"].unique(), "ovD^sPXp", strict=True))
    for method, of_method in frame.groupby("method", sort=False):
        outside = of_method["error"].mean() > ERRORS[1]
        ax.plot(
            of_method["women / men"],
            of_method["error"],
            markers[method],
            color="0.45" if "no goal" in method else color("eighty_percent", method),
            alpha=0.75,
            label=f"{method} (above the frame)" if outside else method,
        )
    ax.set(
        xlim=(0.25, 1.02),
        ylim=ERRORS,
        xlabel="women's rate of positive predictions over men's, on new data",
        ylabel="error on new data",
    )
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    return figure


FIGURES = {
    "eighty_percent": eighty_percent_figure,
    "goals": goals_figure,
    "policies": policies_figure,
    "sets": sets_figure,
    "speed": speed_figure,
}
