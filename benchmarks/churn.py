"""Recall and churn at the size of Goh et al. (2016), section 4.2, on synthetic documents.

    python -m benchmarks.churn [--quick] [--fit]

131,840 and 53,877 labeled rows, 68,892 unlabeled ones, 30,000 features. Takes minutes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import vstack

from benchmarks._data import Deployment, deployment
from benchmarks._measure import in_fresh_process, measure
from benchmarks._rivals import linear_svc
from benchmarks._table import COSTS, Column, costs, print_table
from skbandit.constrained import RampClassifier
from skbandit.constrained._goals import Declared
from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point, compile_problem
from skbandit.constrained.paper._registry import choose_solver
from skbandit.measure import MISSING, Columns, Data, Rows
from skbandit.rates import Constraint, Rate, churn, error_rate, false_positive_rate, recall

SIZES, FEATURES = (131_840, 53_877, 68_892), 30_000
QUICK_SIZES, QUICK_FEATURES = (6_592, 2_694, 3_445), 3_000
ALPHAS = (1e-5, 1e-7)
CHURN = 0.05
STEPS = 5


def goals(data: Deployment) -> tuple[Rate, list[Constraint]]:
    """Errors on D1 and false positives on D2; recall on D2 as yesterday; little churn on D3."""
    negatives = int((data.y[data.second] == 0).sum())
    first = int((~data.second).sum())
    errors = first * error_rate("first") + negatives * false_positive_rate("second")
    before = recall().value(data.y[data.second], data.deployed[data.second])
    objective = errors / (first + negatives)
    return objective, [recall("second") >= before, churn("deployed", on="extra") <= CHURN]


def attributes(data: Deployment) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Those of the labeled and of the unlabeled rows."""
    labeled = {"first": ~data.second, "second": data.second}
    return pd.DataFrame(labeled), pd.DataFrame({"deployed": data.deployed_extra})


def five_steps(data: Deployment, alpha: float) -> Callable[[], Any]:
    """The solver alone, from zero."""
    one, two = attributes(data)
    n, extra = len(data.y), data.X_extra.shape[0]
    goals_on_data = Declared.read(*goals(data)).bind(
        Data(
            Rows(Columns.read(one, None, n), data.y.astype(np.int8), np.ones(n)),
            Rows(Columns.read(two, None, extra), np.full(extra, MISSING, np.int8), np.ones(extra)),
            1,
            [0, 1],
        )
    )
    X = vstack([data.X, data.X_extra], format="csr")
    problem = compile_problem(X, goals_on_data.measured, alpha, True)
    solver = choose_solver("newton", {}, *X.shape)
    zero = Point(np.zeros(X.shape[1]), 0.0)

    def run() -> str:
        found = majorize_minimize(problem, zero, solver, max_iter=STEPS, tol=-math.inf)
        return f"objective {found.path[-1]:.4f}, violation {found.violation:+.0e}"

    return run


def default_fit(data: Deployment, alpha: float) -> Callable[[], Any]:
    """A fit scored on its training rows: start, steps, threshold."""
    objective, constraints = goals(data)
    clf = RampClassifier(objective, constraints, alpha=alpha)
    one, two = attributes(data)
    metadata = {"attributes": one, "X_extra": data.X_extra, "attributes_extra": two}

    def run() -> str:
        clf.fit(data.X, data.y, **metadata)
        recalled, churned = clf.constraint_report_["value"]
        return f"{clf.n_iter_} steps, recall {recalled:.3f}, churn {churned:.4f}"

    return run


TASKS: dict[str, Callable[[Deployment, float], Callable[[], Any]]] = {
    "LinearSVC C=1": lambda data, alpha: partial(linear_svc, data.X, data.y, data.second),
    "MM, five steps, certified": five_steps,
    "fit, default settings": default_fit,
}

COLUMNS = (Column("task", 25), Column("alpha", 7, ".0e"), *COSTS)


def row(name: str, alpha: float, quick: bool) -> dict[str, Any]:
    """One task and its unit, once each."""
    sizes, d = (QUICK_SIZES, QUICK_FEATURES) if quick else (SIZES, FEATURES)
    make = TASKS[name]
    tiny = deployment((300, 150, 150), 1_100)  # as many features as take the same solver
    make(tiny, 1e-3)()
    data = deployment(sizes, d)
    unit = TASKS["LinearSVC C=1"](data, alpha)
    cost, result = measure(make(data, alpha), unit, rounds=1)
    shown = costs(cost)
    if isinstance(result, str):
        shown["note"] = ", ".join(filter(None, [result, cost.note]))
    return shown


def rows(quick: bool, with_fit: bool) -> Iterator[dict[str, Any]]:
    """The unit, then each task at both alphas."""
    for name in TASKS:
        if name == "fit, default settings" and not with_fit:
            continue
        for alpha in (math.nan,) if name == "LinearSVC C=1" else ALPHAS:
            yield {"task": name, "alpha": alpha} | in_fresh_process(row, name, alpha, quick)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--fit", action="store_true", help="also whole fits: takes longer yet")
    options = parser.parse_args()
    print_table("Recall and churn, two constraints", COLUMNS, rows(options.quick, options.fit))


if __name__ == "__main__":
    main()
