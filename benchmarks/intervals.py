"""How often intervals of a mean reward cover, and how wide they are, by simulation.

    python -m benchmarks.intervals [--quick]

Clicks with probability p, and the weights of a policy that plays its own arm (1), or one of ten
uniform arms (0 and 10), or of a log of logistic choices (0, and 1 to 50). Misses are the share of
intervals at 95% that do not contain p; "ever" is the share of logs in which one of the intervals
after 2, 4, 8, ... events does not. Widths are means over logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._table import Column, print_table
from skbandit.evaluation._off_policy._estimate import LogSums
from skbandit.evaluation._off_policy._sums import WeightedEvents

KINDS = ("normal", "sequence")
LEVEL = 0.95

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, float]]


def own_arm(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Weights of a policy's own events, and the largest possible one."""
    return np.ones(n), 1.0


def one_of_ten(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Weights of a uniform log of ten arms, for a policy that plays one."""
    return 10.0 * (rng.random(n) < 0.1), 10.0


def logistic(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Weights of a log whose propensities are from .02 to .98, for one arm."""
    propensity = np.clip(1 / (1 + np.exp(-2 * rng.normal(size=n))), 0.02, 0.98)
    return (rng.random(n) < propensity) / propensity, 50.0


LOGS: dict[str, Draw] = {"own arm": own_arm, "one of ten": one_of_ten, "logistic": logistic}


def row(name: str, p: float, n: int, n_logs: int) -> dict[str, Any]:
    """Misses and widths for one kind of log."""
    missed, ever, width = np.zeros((3, len(KINDS), n_logs))
    ends = 2 ** np.arange(1, int(np.log2(n)) + 1)  # the last is n
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        weight, largest = LOGS[name](rng, n)
        reward = (rng.random(n) < p).astype(float)
        for end in ends:
            events = WeightedEvents(reward[:end], weight[:end], largest)
            estimate = LogSums.of(events, (0.0, 1.0)).estimates()["snips"]
            for k, kind in enumerate(KINDS):
                low, high = estimate.interval(LEVEL, kind=kind)
                missed[k, seed] = not low <= p <= high  # nan does not cover
                ever[k, seed] = max(ever[k, seed], missed[k, seed])
                width[k, seed] = high - low
    found: dict[str, Any] = {"log": name, "p": p, "events": n}
    for k, kind in enumerate(KINDS):
        found |= {
            kind: f"{missed[k].mean():.3f}",
            f"ever {kind[0]}": f"{ever[k].mean():.3f}",
            f"width {kind[0]}": f"{np.nanmean(width[k]):.4f}",
        }
    return found


def rows(n_logs: int, sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """All kinds of logs."""
    for name in LOGS:
        for p in (0.001, 0.02, 0.3):
            for n in sizes:
                yield row(name, p, n, n_logs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals")
    parser.add_argument("--quick", action="store_true", help="few and short logs")
    options = parser.parse_args()
    columns = [Column("log", 10), Column("p", 6, "g"), Column("events", 6, "d")]
    for kind in KINDS:
        columns += [Column(kind), Column(f"ever {kind[0]}"), Column(f"width {kind[0]}")]
    size = (
        {"n_logs": 20, "sizes": (256,)} if options.quick else {"n_logs": 200, "sizes": (256, 4096)}
    )
    print_table("Misses of intervals at 95%", columns, rows(**size))


if __name__ == "__main__":
    main()
