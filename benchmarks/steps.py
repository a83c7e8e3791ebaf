"""Cost of training on Adult relative to one LinearSVC, with one to five constraints.

python -m benchmarks.steps [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._data import Sample, adult
from benchmarks._measure import in_fresh_process, measure
from benchmarks._rivals import linear_svc
from benchmarks._table import COSTS, Column, costs, print_table
from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier
from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point
from skbandit.rates import Constraint, error_rate, false_positive_rate, positive_rate, recall
from tests.problems import compiled

MEN, WOMEN = {"g": 1}, {"g": 0}

GOALS: tuple[Constraint, ...] = (
    positive_rate(MEN) <= positive_rate(WOMEN) / 0.8,
    recall() >= 0.53,
    false_positive_rate() <= 0.075,
    recall(MEN) >= recall(WOMEN) - 0.2,
    positive_rate(WOMEN) <= 0.17,
)
"""They can all be met together, and the first is the dearest."""

STEPS = 5
WARM_UP_ROWS = 300


def five_steps(sample: Sample, goals: list[Constraint], alpha: float) -> Callable[[], Any]:
    """The solver alone, from zero; the last step is solved to its certificate."""
    from skbandit.constrained.paper._augmented_lagrangian import AugmentedLagrangianSolver

    return _steps(sample, goals, alpha, AugmentedLagrangianSolver())


def five_rough_steps(sample: Sample, goals: list[Constraint], alpha: float) -> Callable[[], Any]:
    """The same, every step as rough as the first."""
    from skbandit.constrained.paper._augmented_lagrangian import AugmentedLagrangianSolver

    class RoughSolver(AugmentedLagrangianSolver):
        exact = AugmentedLagrangianSolver.rough

    return _steps(sample, goals, alpha, RoughSolver())


def _steps(sample: Sample, goals: list[Constraint], alpha: float, solver: Any) -> Callable[[], Any]:
    problem = compiled(sample.X, sample.y, sample.group, error_rate(), goals, alpha=alpha)
    zero = Point(np.zeros(sample.X.shape[1]), 0.0)
    # no step gains so little that it is the last
    return partial(majorize_minimize, problem, zero, solver, max_iter=STEPS, tol=-math.inf)


def five_step_fit(sample: Sample, goals: list[Constraint], alpha: float) -> Callable[[], Any]:
    """A fit of five steps, with its start, without a threshold."""
    clf = RampClassifier(
        constraints=goals, alpha=alpha, solver="newton", max_iter=STEPS, threshold=False
    )
    return _fit(clf, sample)


def default_fit(sample: Sample, goals: list[Constraint], alpha: float) -> Callable[[], Any]:
    """A fit with default settings: start, up to 15 steps, threshold."""
    return _fit(ConstrainedRampClassifier(constraints=goals, alpha=alpha), sample)


def _fit(clf: ConstrainedRampClassifier, sample: Sample) -> Callable[[], Any]:
    return partial(clf.fit, sample.X, sample.y, attributes=pd.DataFrame({"g": sample.group}))


TASKS: dict[str, tuple[Callable[..., Callable[[], Any]], float]] = {
    "MM, five rough steps": (five_rough_steps, 0.6),
    "MM, five steps, certified": (five_steps, 1.0),
    "fit, five steps": (five_step_fit, math.nan),
    "fit, default settings": (default_fit, 2.0),
}
"""Each task, and what it is to cost at most in units of one LinearSVC."""

COLUMNS = (
    Column("task", 25),
    Column("alpha", 7, ".1e"),
    Column("constraints", 11, "d"),
    *COSTS,
    Column("aim", 4, ".1f"),
)


def row(name: str, alpha: float, constraints: int, quick: bool) -> dict[str, Any]:
    """One task and LinearSVC."""
    make, _ = TASKS[name]
    goals = list(GOALS[:constraints])
    sample = adult("train", 4_000 if quick else None)
    make(sample.head(WARM_UP_ROWS), goals[:1], alpha)()
    unit = partial(linear_svc, sample.X, sample.y, sample.group == 1)
    cost, _ = measure(make(sample, goals, alpha), unit, rounds=2 if quick else 7)
    return costs(cost)


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every task, at both alphas, with one to five constraints."""
    for name, (_, aim) in TASKS.items():
        for alpha in (1e-3,) if quick else (1e-3, 1 / 32_561):
            for constraints in (1, 5) if quick else range(1, len(GOALS) + 1):
                key = {"task": name, "alpha": alpha, "constraints": constraints, "aim": aim}
                yield key | in_fresh_process(row, name, alpha, constraints, quick)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, fewer settings")
    options = parser.parse_args()
    adult("all")  # downloaded once, before other processes ask for it
    title = "Adult: training in units of LinearSVC(loss='hinge', C=1, max_iter=20000)"
    print_table(title, COLUMNS, rows(options.quick))


if __name__ == "__main__":
    main()
