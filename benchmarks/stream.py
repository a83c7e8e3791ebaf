"""A Parquet log larger than memory: a report, an off-policy estimate, and a replay that learns.

python -m benchmarks.stream [--quick] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks._measure import in_fresh_process, measure, resident_peak
from benchmarks._table import Column, print_table
from skbandit import GLMUCBPolicy
from skbandit.datasets import read_parquet_log
from skbandit.evaluation import off_policy_blocks, rate_report_blocks, replay_blocks
from skbandit.rates import positive_rate

EVENTS, QUICK = 100_000_000, 2_000_000
N_ARMS = 20
FEATURES = ["x0", "x1", "x2", "x3"]
PART = 1_000_000
"""Events made at a time, and in a row group."""

COLUMNS = (
    Column("task", 33),
    Column("events", 11, ",d"),
    Column("wall s", 7, ".1f"),
    Column("events/s", 10, ",.0f"),
    Column("peak MB", 7, ",.0f"),
    Column("mean reward", 11, ".5f"),
    Column("+-", 7, ".5f"),
    Column("kept", 9, ",.0f"),
)


def write_log(folder: Path, n_events: int) -> Iterator[Path]:
    """Files of a log of uniform choices, ten parts in each; as each is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(N_ARMS, len(FEATURES))).astype(np.float32)
    for number, start in enumerate(range(0, n_events, 10 * PART)):
        path = folder / f"part-{number:03}.parquet"
        writer = None
        for at in range(start, min(start + 10 * PART, n_events), PART):
            table = pa.table(_part(rng, weights, min(PART, n_events - at)))
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
        yield path


def _part(rng: np.random.Generator, weights: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Columns of some events: clicks on about 12%, by a logistic model an arm."""
    X = rng.standard_normal((n, len(FEATURES)), dtype=np.float32)
    action = rng.integers(N_ARMS, size=n, dtype=np.int8)
    index = np.einsum("ij,ij->i", X, weights[action]) - 3
    reward = rng.random(n, dtype=np.float32) < 1 / (1 + np.exp(-index))
    log = {"action": action, "reward": reward, "propensity": np.full(n, 1 / N_ARMS)}
    return dict(zip(FEATURES, X.T.copy(), strict=True)) | log


def policy() -> GLMUCBPolicy:
    """A policy that has not learned yet."""
    return GLMUCBPolicy(alpha=0.5, random_state=0)


def scan(files: list[Path]) -> dict[str, Any]:
    """Reading alone."""
    total = sum(float(block.y["reward"].sum()) for block in blocks(files))
    return {"mean reward": total / sum(_rows(path) for path in files)}


def judge(files: list[Path]) -> dict[str, Any]:
    """snips, and ips on the way, of a policy that was fitted to the first events."""
    first = next(iter(blocks(files)))
    fitted = policy().fit(first.X, first.y)
    found = off_policy_blocks(fitted, blocks(files), arms=range(N_ARMS), rule="predict")["snips"]
    assert found.n_events == sum(_rows(path) for path in files)
    return {"mean reward": found.mean_reward, "+-": found.standard_error}


def walk(files: list[Path]) -> dict[str, Any]:
    """Replay from a cold start."""
    result = replay_blocks(policy(), blocks(files), acceptance=1 / N_ARMS, arms=range(N_ARMS))
    assert result.n_events == sum(_rows(path) for path in files)
    found = {"mean reward": result.mean_reward, "+-": result.standard_error}
    return found | {"kept": result.n_accepted}


def report(files: list[Path]) -> dict[str, Any]:
    """Share of clicks, of all events and of each arm."""
    clicks = {"y_true": None, "y_pred": "reward", "by": "action"}
    found = rate_report_blocks(files, positive_rate(), **clicks)
    assert found["n_rows"][0] == found["n_rows"][1:].sum() == sum(_rows(path) for path in files)
    return {"mean reward": found["value"][0]}


TASKS = {
    "read only": scan,
    "report of clicks by arm": report,
    "snips and ips of a greedy policy": judge,
    "replay, learning": walk,
}


def blocks(files: Iterable[Path]) -> Iterator[Any]:
    """The log."""
    return read_parquet_log(files, FEATURES)


def _rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def row(task: str, files: list[Path]) -> dict[str, Any]:
    """One task, in a process that does nothing else."""
    cost, found = measure(lambda: TASKS[task](files), rounds=1)
    n_events = sum(_rows(path) for path in files)
    return found | {
        "wall s": cost.wall,
        "events/s": n_events / cost.wall,
        "peak MB": resident_peak(),
    }


def rows(files: list[Path], n_events: int) -> Iterator[dict[str, Any]]:
    """All tasks."""
    for task in TASKS:
        key: dict[str, Any] = {"task": task, "events": n_events}
        yield key | in_fresh_process(row, task, files)


def main() -> None:
    """Write a log, print the table, and remove the log."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the events")
    parser.add_argument("--folder", type=Path, help="where to write the log: 19 bytes per event")
    options = parser.parse_args()
    n_events = QUICK if options.quick else EVENTS
    with TemporaryDirectory(dir=options.folder) as folder:
        files = list(write_log(Path(folder), n_events))
        size = sum(path.stat().st_size for path in files) / 1e6
        packages = ("skbandit", "numpy", "numba", "pandas", "pyarrow")
        print_table(f"A Parquet log of {size:,.0f} MB", COLUMNS, rows(files, n_events), packages)


if __name__ == "__main__":
    main()
