"""How often intervals of rates and of a mean reward cover, by simulation.

    python -m benchmarks.intervals [--quick]

Clicks with probability p, and the weights of a policy that plays its own arm (1), or one of ten
uniform arms (0 and 10), or of a log of logistic choices (0, and 1 to 50). Rates of fixed decisions
on rows of people, and with weights that go with the outcome. Misses are the share of
intervals at 95% that do not contain p; "ever" is the share of logs in which one of the intervals
after 2, 4, 8, ... events does not. Widths are means over logs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._table import Column, print_table
from skbandit.evaluation import rate_report
from skbandit.evaluation._off_policy._estimate import LogSums
from skbandit.evaluation._off_policy._sums import WeightedEvents
from skbandit.rates import error_rate, positive_rate, precision, recall

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


def people(rng: np.random.Generator, n: int, per_person: int) -> dict[str, Any]:
    """Labels of people with several rows each, and decisions that depend on the person."""
    person = np.repeat(np.arange(n // per_person), per_person)
    y = (rng.random(n // per_person) < 0.35).astype(int)[person]
    score = 1.5 * y + 0.8 * rng.normal(size=n // per_person)[person] + 0.6 * rng.normal(size=n)
    return {"y_true": y, "y_pred": (score > 0.9).astype(int), "groups": person}


def weighted(rng: np.random.Generator, n: int, factor: float) -> dict[str, Any]:
    """Decisions whose errors weigh more, as amounts that are lost do."""
    y = (rng.random(n) < 0.06).astype(int)
    decided = (rng.random(n) < np.where(y == 1, 0.7, 0.05)).astype(int)
    weight = np.exp(rng.normal(size=n) - 0.5) * np.where(decided != y, factor, 1.0)
    return {"y_true": y, "y_pred": decided, "sample_weight": weight}


RATES = {
    "recall": recall(),
    "error": error_rate(),
    "share": positive_rate(),
    "precision": precision(),
}
POPULATIONS: dict[str, Callable[[np.random.Generator, int], dict[str, Any]]] = {
    "1 row a person": partial(people, per_person=1),
    "4 rows a person": partial(people, per_person=4),
    "20 rows a person": partial(people, per_person=20),
    "errors weigh 4 times": partial(weighted, factor=4.0),
    "errors weigh 20 times": partial(weighted, factor=20.0),
}


def row_of_rates(name: str, n: int, n_samples: int) -> dict[str, Any]:
    """Share of samples whose intervals at 95% contain the rate, for each rate."""
    many = POPULATIONS[name](np.random.default_rng(1), 2_000_000)
    many.pop("groups", None)
    truth = [rate.value(**many) for rate in RATES.values()]
    covered = np.zeros((n_samples, len(RATES)))
    for seed in range(n_samples):
        rows = POPULATIONS[name](np.random.default_rng(100 + seed), n)
        report = rate_report(goals=list(RATES.values()), **rows)
        covered[seed] = (report["ci_low"] <= truth) & (truth <= report["ci_high"])
    shares = dict(zip(RATES, covered.mean(axis=0).tolist(), strict=True))
    return {"rows": name, "n": n, **shares}


def rates(n_samples: int, sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """All populations."""
    warnings.simplefilter("ignore")
    for name in POPULATIONS:
        for n in sizes:
            yield row_of_rates(name, n, n_samples)


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
    columns = [Column("rows", 22), Column("n", 6, "d")]
    columns += [Column(rate, 9, ".3f") for rate in RATES]
    size = (
        {"n_samples": 20, "sizes": (400,)}
        if options.quick
        else {"n_samples": 1000, "sizes": (400, 1600)}
    )
    print_table("Coverage of rate_report at 95%", columns, rates(**size))


if __name__ == "__main__":
    main()
