"""More features than rows: a fit compared with one LogisticRegression on the same rows.

python -m benchmarks.wide [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import random_array
from sklearn.linear_model import LogisticRegression

from benchmarks._measure import in_fresh_process, measure
from benchmarks._table import COSTS, Column, costs, print_table
from skbandit import ConstrainedRampClassifier
from skbandit.rates import positive_rate

SIZES = ((200, 20_000, 1.0), (500, 20_000, 1.0), (500, 20_000, 0.01), (1_500, 20_000, 0.01))
"""Rows, features, and the share of entries that are not 0; below 1 the rows are sparse."""

QUICK_SIZES = ((200, 2_000, 1.0), (200, 2_000, 0.05))

COLUMNS = (
    Column("rows", 6, "d"),
    Column("features", 8, "d"),
    Column("density", 7),
    *(Column("x logit") if one.name == "x SVM" else one for one in COSTS),
)


def row(n: int, d: int, density: float) -> dict[str, Any]:
    """A fit with default settings, in units of LogisticRegression."""
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(n, d))
    if density < 1:
        X = random_array((n, d), density=density, rng=rng, format="csr")
    score = X @ np.append(np.ones(5), np.zeros(d - 5)) + rng.normal(size=n)
    y = score > np.median(score)
    clf = ConstrainedRampClassifier(constraints=positive_rate() <= 0.3)
    clf.fit(X[:, : n - 1], y)  # compiles
    cost, _ = measure(partial(clf.fit, X, y), partial(LogisticRegression().fit, X, y), rounds=5)
    values = costs(cost)
    return values | {"x logit": values["x SVM"]}


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every size."""
    for n, d, density in QUICK_SIZES if quick else SIZES:
        key = {"rows": n, "features": d, "density": density}
        yield key | in_fresh_process(row, n, d, density)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer features")
    options = parser.parse_args()
    title = "Wide rows: a fit with default settings in units of LogisticRegression()"
    print_table(title, COLUMNS, rows(options.quick))


if __name__ == "__main__":
    main()
