"""Thresholds for more rows than memory: a model of a sample, every row counted.

python -m tests.benchmarks.thresholds_of_blocks [--rows ROWS] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import difference, positive_rate, recall
from tests.benchmarks._measure import in_fresh_process, measure, resident_peak
from tests.benchmarks._table import Column, print_table

ROWS = 100_000_000
FEATURES = [f"x{j}" for j in range(20)]
PART = 1_000_000
"""Rows made at a time, and in a file."""

RULES = {"one threshold": None, "one per group": "g"}
GOALS = [difference(positive_rate, by="g") <= 0.02, recall() >= 0.7]

COLUMNS = (
    Column("rule", 14),
    Column("rows", 11, ",d"),
    Column("cpu s", 7, ".1f"),
    Column("wall s", 7, ".1f"),
    Column("peak MB", 7, ",.0f"),
    Column("slack", 8, ".5f"),
    Column("gap", 8, ".5f"),
)


def write_rows(folder: Path, n_rows: int) -> None:
    """Files of 20 features, a group of three, and a label that the features tell partly."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    weights = rng.normal(size=len(FEATURES)).astype(np.float32) / 3
    for start in range(0, n_rows, PART):
        n = min(PART, n_rows - start)
        X = rng.standard_normal((n, len(FEATURES)), dtype=np.float32)
        group = rng.integers(0, 3, n, dtype=np.int8)
        index = X @ weights + 0.5 * group - 1
        label = rng.random(n, dtype=np.float32) < 1 / (1 + np.exp(-index))
        columns = dict(zip(FEATURES, X.T.copy(), strict=True))
        table = pa.table(columns | {"g": group, "y": label.astype(np.int8)})
        pq.write_table(table, folder / f"part-{start // PART:03}.parquet", compression="none")


def fit(rule: str, folder: str) -> dict[str, Any]:
    """One fit, in a process that does nothing else."""
    clf = ConstrainedThreshold(LogisticRegression(), None, GOALS, by=RULES[rule])
    started = time.perf_counter()
    cost, fitted = measure(
        lambda: clf.fit_blocks(folder, features=FEATURES, label="y", random_state=0), rounds=1
    )
    report = fitted.constraint_report_
    return {
        "cpu s": cost.cpu,
        "wall s": time.perf_counter() - started,
        "peak MB": resident_peak(),
        "slack": report["slack"].min(),
        "gap": fitted.gap_,
    }


def rows(folder: str, n_rows: int) -> Iterator[dict[str, Any]]:
    """All rules."""
    for rule in RULES:
        yield {"rule": rule, "rows": n_rows} | in_fresh_process(fit, rule, folder)


def main() -> None:
    """Write the rows, print the table, and remove the rows."""
    name = "python -m tests.benchmarks.thresholds_of_blocks"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--folder", type=Path, help="where to write the rows: 82 bytes a row")
    options = parser.parse_args()
    n_rows = options.rows // 100 if options.quick else options.rows
    with TemporaryDirectory(dir=options.folder) as folder:
        write_rows(Path(folder), n_rows)
        packages = ("skbandit", "numpy", "scikit-learn", "pyarrow")
        print_table(f"{n_rows:,} rows in Parquet", COLUMNS, rows(folder, n_rows), packages)


if __name__ == "__main__":
    main()
