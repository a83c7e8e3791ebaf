"""How time and memory grow with rows, features and constraints.

    python -m benchmarks.growth [rows] [features] [constraints] [--quick] [--limit SECONDS]

A method's larger sizes are left out once a fit of its has taken longer than the limit.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks._data import Sample, census
from benchmarks._measure import in_fresh_process, measure
from benchmarks._rivals import Rule, linear_svc
from benchmarks._table import COSTS, Column, costs, print_table
from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier
from skbandit.rates import Constraint, positive_rate, ratio

BASE_ROWS = 30_000
"""Where rows do not grow."""

WARM_UP_ROWS = 300
MANY_GROUPS = 50
PAIRS = 380
"""The constraints that one line declares, the ratio of every two of 20 groups."""

SIZES = {
    "rows": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "features": (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000),
    "constraints": (1, 2, 5, 10, 20, 50, PAIRS),
}
QUICK_SIZES = {"rows": (1_000, 4_000), "features": (10, 2_000), "constraints": (1, 20)}
QUICK_ROWS = 2_000

Fit = Callable[[], Rule]


def svc(sample: Sample, goals: list[Constraint]) -> Fit:
    """Unconstrained: the unit."""
    return partial(linear_svc, sample.X, sample.y, sample.group)


def skbandit(ramp: Any) -> Callable[[Sample, list[Constraint]], Fit]:
    """A fit of ours, start and threshold included."""

    def fit(sample: Sample, goals: list[Constraint]) -> Fit:
        clf = clone(ramp).set_params(constraints=goals)
        groups = pd.DataFrame({"g": sample.group})

        def run() -> Rule:
            clf.fit(sample.X, sample.y, attributes=groups)
            return lambda X, group: clf.predict(X) > 0

        return run

    return fit


METHODS = {
    "LinearSVC C=1": svc,
    "newton, five steps": skbandit(RampClassifier(solver="newton", max_iter=5)),
    "newton": skbandit(ConstrainedRampClassifier(solver="newton")),
    "cvxpy, five steps": skbandit(RampClassifier(solver="cvxpy", max_iter=5)),
}
"""The unit first."""


def problem(axis: str, size: int, quick: bool) -> tuple[Sample, list[Constraint]]:
    """The rows and goals of a size along an axis."""
    n = QUICK_ROWS if quick else BASE_ROWS
    if axis == "constraints":
        return _many_goals(n, size)
    sample = census(size) if axis == "rows" else census(n, d=size)
    return sample, [positive_rate({"g": 1}) <= positive_rate({"g": 0}) / 0.8]


def _many_goals(n: int, constraints: int) -> tuple[Sample, list[Constraint]]:
    """No group below .8 of the rate of all, the worst-off first; or every two of 20 groups."""
    if constraints == PAIRS:
        return census(n, groups=20), [ratio(positive_rate, by="g") >= 0.5]
    least = 0.8 * positive_rate()
    return census(n, groups=MANY_GROUPS), [
        positive_rate({"g": k}) >= least for k in range(constraints)
    ]


def row(axis: str, size: int, name: str, in_units: bool, quick: bool) -> dict[str, Any]:
    """One method at one size."""
    sample, goals = problem(axis, size, quick)
    small = sample.head(WARM_UP_ROWS)
    METHODS[name](small, [positive_rate() >= 0.2])()
    unit = svc(sample, goals) if in_units else None
    cost, rule = measure(METHODS[name](sample, goals), unit, rounds=2 if quick else 3)
    error = np.mean(rule(sample.X, sample.group) != sample.y)
    return costs(cost) | {"error": error}


def rows(axis: str, quick: bool, limit: float) -> Iterator[dict[str, Any]]:
    """Every method at growing sizes."""
    unit, *_ = METHODS
    longest_unit = math.inf  # sizes up to here are compared with it
    for name in METHODS:
        previous, seconds = 0, math.nan
        for size in (QUICK_SIZES if quick else SIZES)[axis]:
            if seconds > limit:
                break
            in_units = size <= longest_unit
            found = in_fresh_process(row, axis, size, name, in_units, quick)
            grown = found.get("cpu s", math.nan) / seconds
            power = math.log(grown) / math.log(size / previous) if previous else math.nan
            yield {"method": name, axis: size, "power": power} | found
            previous, seconds = size, found.get("cpu s", math.inf)
        if name == unit and seconds > limit:
            longest_unit = previous


def columns(axis: str) -> tuple[Column, ...]:
    """The power of the size by which time grew since the last size, and the training error."""
    shown = Column(axis, max(len(axis), 9), ",d")
    power, error = Column("power", 6, ".2f"), Column("error", 6, ".4f")
    return Column("method", 18), shown, *COSTS, power, error


def main() -> None:
    """Print a table an axis."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("axes", nargs="*", metavar="axis", help=", ".join(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one fit")
    options = parser.parse_args()
    for axis in options.axes or SIZES:
        if axis not in SIZES:
            parser.error(f"{axis!r} is none of {', '.join(SIZES)}")
        title = f"Growth with the number of {axis}"
        print_table(title, columns(axis), rows(axis, options.quick, options.limit))


if __name__ == "__main__":
    main()
