"""Published figures drawn anew from kept results: means over runs, and bands of ± one deviation."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKERS = "osd^"


def _over_runs(frame: pd.DataFrame, rule: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean and deviation of each figure by what was asked for."""
    of_rule = frame[frame["rule"] == rule].drop(columns=["rule", "run"]).groupby("asked")
    return of_rule.mean(), of_rule.std(ddof=1).fillna(0.0)


def _band(ax: Any, x: Any, mean: pd.Series, deviation: pd.Series, at: int, label: str) -> None:
    color, marker = COLORS[at % 4], MARKERS[at % 4]
    x = np.asarray(x, dtype=float)
    ax.plot(x, mean, f"{marker}-", color=color, label=label, markersize=4, lw=1.2)
    ax.fill_between(x, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)


def fairness(frame: pd.DataFrame) -> Any:
    """Figure 2 of Goh et al."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for at, rule in enumerate(frame["rule"].unique()):
        mean, deviation = _over_runs(frame, rule)
        _band(left, mean["men / women"], mean["error"], deviation["error"], at, rule)
        if rule.endswith("κ"):
            _band(right, mean.index, mean["men / women"], deviation["men / women"], at, rule)
    right.plot([1, 6], [1, 6], color="0.6", lw=1, label="as asked for")
    left.set(xlabel="test ratio s_p(men) / s_p(women)", ylabel="test error")
    right.set(xlabel="1/κ asked for in training", ylabel="test ratio")
    for ax in (left, right):
        ax.legend(frameon=False)
    return figure


def churning(frame: pd.DataFrame) -> Any:
    """Figure 3 of Goh et al.: churn, error and recall against the target."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained", sharex=True)
    rules = [rule for rule in frame["rule"].unique() if not rule.startswith("thresholded")]
    targets = np.sort(frame["asked"].dropna().unique())
    svm = frame[frame["asked"].isna()]
    for row, where in zip(axes, ("train", "test"), strict=True):
        for ax, what in zip(row, ("churn", "error", "recall"), strict=True):
            column = f"{what} {where}"
            for at, rule in enumerate(rules):
                mean, deviation = _over_runs(frame, rule)
                _band(ax, mean.index, mean[column], deviation[column], at, rule)
            level, away = svm[column].mean(), svm[column].std(ddof=1)
            ax.axhline(level, color=COLORS[2], lw=1.2, label="thresholded SVM")
            ax.axhspan(level - away, level + away, color=COLORS[2], alpha=0.12, lw=0)
            if what == "churn":
                ax.plot(targets, targets, color="0.6", lw=1, label="as asked for")
            ax.set(ylabel=f"{what}, {where}")
    for ax in axes[1]:
        ax.set_xlabel("churn target on D3")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def _places(ax: Any, frame: pd.DataFrame, rules: list[str], column: str) -> None:
    """Lines over amounts of exploration at equal distances, a little apart."""
    for at, rule in enumerate(rules):
        mean, deviation = _over_runs(frame, rule)
        x = np.arange(len(mean)) + 0.06 * (at - len(rules) / 2)
        style = {"color": COLORS[at], "marker": MARKERS[at], "capsize": 3, "lw": 1, "ms": 4}
        ax.errorbar(x, mean[column], deviation[column], label=rule.partition(",")[0], **style)
        ax.set_xticks(range(len(mean)), [f"{asked:g}" for asked in mean.index])


def _models(frame: pd.DataFrame) -> Any:
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained", sharey=True)
    for row, amount in zip(axes, "εα", strict=True):
        rules = [rule for rule in frame["rule"].unique() if rule.endswith(amount)]
        for ax, bucket in zip(row, ("learning", "deployment"), strict=True):
            _places(ax, frame, rules, bucket)
            ax.set(xlabel=amount, ylabel="click rate / the log's", title=f"{bucket} bucket")
    axes[0, 0].legend(frameon=False)
    return figure


def rewards(frame: pd.DataFrame) -> Any:
    """Figure 1 of Li et al."""
    return _models(frame)


def optimism(frame: pd.DataFrame) -> Any:
    """Figure 2 of Li et al."""
    return _models(frame)


def approximations(frame: pd.DataFrame) -> Any:
    """Figure 3 of Li et al.: upper bounds in both buckets, means where they matter."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    for ax, kind, bucket in zip(axes, "UUM", ("learning", "deployment", "deployment"), strict=True):
        rules = [rule for rule in frame["rule"].unique() if rule.startswith(kind)]
        _places(ax, frame, rules, bucket)
        ax.set(xlabel="α", ylabel="click rate / the log's", title=f"{bucket} bucket")
        ax.legend(frameon=False)
    return figure
