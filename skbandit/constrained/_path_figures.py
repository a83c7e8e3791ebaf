"""The figures of a path: every model on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skbandit.constrained._classifier import ConstrainedRampClassifier
from skbandit.constrained._extra_rows import Extra
from skbandit.constrained._report import add_intervals, report_table
from skbandit.constrained._varying_bound import VariedConstraint
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import (
    Data,
    LinearFractionalForms,
    as_rate,
    bind_constraints,
    bind_rate,
)


def objectives(
    models: list[ConstrainedRampClassifier], objective: Rate, design: Any, data: Data
) -> dict[str, np.ndarray]:
    """The objective on rows that all models share, by both of their rules."""
    forms = LinearFractionalForms.stack([bind_rate(objective, data)[:2]], len(data))
    scores = [(model, model._linear(design)) for model in models]
    return {
        "objective": np.array([forms.values(m._answers(f))[0] for m, f in scores]),
        "expected_objective": np.array([forms.values(m._expected(f))[0] for m, f in scores]),
    }


def measure(
    model: ConstrainedRampClassifier, objective: Rate, design: Any, data: Data, level: float
) -> dict[str, Any]:
    """Figures of one model on any rows, with the confidence interval of its objective."""
    # as one of the goals it gets an interval as they do
    goal = Constraint(objective, ">=", as_rate(0.0, repr(objective)))
    goals = bind_constraints((*model._constraints, goal), data, allow_empty=True)
    scores = model._linear(design)
    answers = model._answers(scores)
    report = report_table(goals, data, answers, model._expected(scores))
    report = add_intervals(report, goals, data, answers, level)
    report, last = report.iloc[:-1], report.iloc[-1]
    return {
        "objective": last["value"],
        "objective_low": last["ci_low"],
        "objective_high": last["ci_high"],
        "expected_objective": last["expected"],
        "slack": smallest_slack(model, report),
        "satisfied": bool(report["satisfied"].all()),
    }


def frame(bounds: list[float], sense: str | None, columns: Any) -> pd.DataFrame:
    """One row a bound; the value is the bound less the slack, or plus it."""
    table = pd.DataFrame(columns)
    table.insert(0, "bound", bounds)
    sign = {"<=": 1.0, ">=": -1.0, None: np.nan}[sense]
    value = table["bound"] - sign * table["slack"]
    table.insert(table.columns.tolist().index("slack"), "value", value)
    return table


def varies(model: ConstrainedRampClassifier) -> np.ndarray:
    """Which rows of a model's report are of what varies."""
    return np.array([isinstance(one, VariedConstraint) for one in model._constraints], dtype=bool)


def read_data(
    model: ConstrainedRampClassifier, X: Any, y: Any, metadata: dict[str, Any]
) -> tuple[Any, Data]:
    """The design matrix, extra rows below, and what expressions are bound to."""
    parts = (metadata[f"{part}_extra"] for part in ("X", "y", "attributes", "sample_weight"))
    weight, attributes = metadata["sample_weight"], metadata["attributes"]
    return model._read(X, y, weight, attributes, Extra(*parts), model._validated)


def smallest_slack(model: ConstrainedRampClassifier, report: pd.DataFrame) -> float:
    """The smallest slack of what varies; nan if it is undefined or was not measured."""
    slack = report["slack"][varies(model) & (report["n_rows"] > 0)]
    return float(slack.min(skipna=False)) if len(slack) else np.nan
