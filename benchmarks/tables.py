"""What reports and thresholds cost on many rows, groups and classes: CPU seconds and memory.

    python -m benchmarks.tables [--quick] [--keep]

Each size runs in a process of its own, on predictions that are right in 70 % of the rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks._kept import keep
from benchmarks._measure import in_fresh_process, measure
from skbandit import ConstrainedThreshold
from skbandit.evaluation import rate_report
from skbandit.inspection import save_report
from skbandit.rates import (
    each,
    error_rate,
    f1,
    false_positive_rate,
    mean,
    positive_rate,
    precision,
    ratio,
    recall,
)

WARM_UP_ROWS, QUICK = 500, 20
"""Rows before anything is measured, and by how much a quick run is smaller."""

FIVE = [
    recall() >= 0.6,
    precision(),
    positive_rate(),
    false_positive_rate(),
    error_rate(where="age > 0.5"),
]


def report(goals: Any, by: str | None) -> Callable[[int, int, int], Callable[[], Any]]:
    """A report on labels, predictions and groups."""

    def of_size(n: int, n_groups: int, n_classes: int) -> Callable[[], Any]:
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"y": rng.integers(n_classes, size=n), "age": rng.random(n)})
        table["g"] = rng.integers(n_groups, size=n)
        drawn = rng.integers(n_classes, size=n)
        table["p"] = np.where(rng.random(n) < 0.7, table["y"], drawn)
        return lambda: rate_report(table["y"], table["p"], goals, by=by, attributes=table)

    return of_size


def threshold(n: int, n_groups: int, n_classes: int) -> Callable[[], Any]:
    """A goal per class, on a classifier that is fitted."""
    X, y, inner = _classified(n, n_classes)
    goals = each(recall, of="classes") >= 0.3 / n_classes
    clf = ConstrainedThreshold(inner, error_rate(), goals, cv="prefit")
    return lambda: clf.fit(X, y)


def page(n: int, n_groups: int, n_classes: int) -> Callable[[], Any]:
    """A report on a classifier with goals, as a page."""
    X, y, inner = _classified(n, n_classes)
    groups = pd.DataFrame({"g": np.random.default_rng(1).integers(n_groups, size=n)})
    goals = [recall() >= 0.8, each(positive_rate, by="g") >= 0.2]
    clf = ConstrainedThreshold(inner, error_rate(), goals, cv="prefit")
    clf.fit(X[:5000], y[:5000], attributes=groups[:5000])

    def run() -> None:
        with TemporaryDirectory() as folder:
            save_report(clf, X, y, Path(folder) / "page.html", attributes=groups, by="g")

    return run


def _classified(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    scores = X @ rng.normal(size=(8, n_classes)) + 2 * rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    return X, y, LogisticRegression(max_iter=50).fit(X[:3000], y[:3000])


TASKS: dict[str, tuple[Callable[..., Callable[[], Any]], tuple[int, int, int]]] = {
    "rate_report(by=), one goal": (report([recall() >= 0.6], "g"), (100_000, 1000, 2)),
    "rate_report(by=), five goals": (report(FIVE, "g"), (1_000_000, 1000, 2)),
    "ratio(by=)": (report(ratio(positive_rate, by="g"), None), (20_000, 50, 2)),
    "each class, by=": (report(each(recall, of="classes"), "g"), (100_000, 10, 20)),
    "mean of f1": (report(mean(f1, of="classes"), None), (100_000, 10, 20)),
    "save_report": (page, (1_000_000, 10, 2)),
    "ConstrainedThreshold, a goal per class": (threshold, (20_000, 1, 50)),
}
"""What is measured, with rows, groups and classes."""


def row(name: str, n: int, n_groups: int, n_classes: int) -> dict[str, Any]:
    """Cost of one task."""
    task, _ = TASKS[name]
    task(WARM_UP_ROWS, min(n_groups, 5), min(n_classes, 3))()
    cost, _ = measure(task(n, n_groups, n_classes), rounds=1)
    return {"CPU s": cost.cpu, "MB": cost.megabytes}


def main() -> None:
    """Print the costs, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--keep", action="store_true", help="write results/tables.csv")
    options = parser.parse_args()
    lines = []
    for name, (_, (n, *others)) in TASKS.items():
        n = n // QUICK if options.quick else n
        found = in_fresh_process(row, name, n, *others)
        lines.append({"part": name, "rows": n, "groups": others[0], "classes": others[1], **found})
        print(lines[-1], flush=True)
    if options.keep and not options.quick:
        frame = pd.DataFrame(lines)
        keep("tables", frame, frame["CPU s"].sum())


if __name__ == "__main__":
    main()
