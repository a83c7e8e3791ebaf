"""The table that says which constraints hold, for which rule, by how much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from skbandit.rates._binding import (
    MET,
    Atom,
    BoundConstraints,
    ConfidenceLimit,
    Data,
    EmptyRateError,
    count,
    effective_rows,
    interval,
    margins,
)


def report_table(
    goals: BoundConstraints,
    data: Data,
    positive: np.ndarray,
    expected: np.ndarray | None = None,
    multipliers: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row a constraint.

    Parameters
    ----------
    goals : BoundConstraints
        K constraints over n rows.
    data : Data
        What they are bound to.
    positive : ndarray of shape (n,)
        Positive answers of the deterministic rule, 0 and 1.
    expected : ndarray of shape (n,) or None
        Probabilities of a positive answer by the randomised rule.
    multipliers : ndarray of shape (K,) or None
        Shadow prices; nan where skipped.

    Returns
    -------
    DataFrame
        `satisfied` is about the deterministic rule; missing where nothing was measured,
        False where the rate is undefined. `effective_n` is Kish's number of rows for the
        deterministic rule. Without a randomised rule, no column `expected`; without shadow
        prices, no column `multiplier`.
    """
    measured = goals.n_rows > 0
    values, effective = np.full(len(measured), np.nan), np.zeros(len(measured))
    for k in np.flatnonzero(measured):
        values[k] = count(goals.constraints[k].rate, data, positive)
        effective[k] = effective_rows(goals.constraints[k].rate, data, positive)
    slack = goals.slack(values)
    table = pd.DataFrame(
        {
            "constraint": [constraint.label for constraint in goals.constraints],
            "on": [_datasets(constraint.rate.atoms) for constraint in goals.constraints],
            "n_rows": goals.n_rows,
            "effective_n": effective,
            "bound": goals.bound,
            "value": values,
            "slack": slack,
            "satisfied": pd.array(slack >= -MET, dtype="boolean"),
        }
    )
    table["satisfied"] = table["satisfied"].where(measured)
    if expected is not None:
        table.insert(table.columns.tolist().index("value"), "expected", goals.values(expected))
    return table if multipliers is None else table.assign(multiplier=multipliers)


def add_intervals(
    table: pd.DataFrame, goals: BoundConstraints, data: Data, positive: np.ndarray, level: float
) -> pd.DataFrame:
    """Append the columns ci_low and ci_high of the deterministic rule's values."""
    ends = np.full((len(table), 2), np.nan)
    for k, constraint in enumerate(goals.constraints):
        if not np.isnan(table["value"].iloc[k]):
            try:
                ends[k] = interval(constraint.rate, data, positive, level)
            except EmptyRateError:  # a divisor that only the expression as a whole fills
                continue
    return table.assign(ci_low=ends[:, 0], ci_high=ends[:, 1])


def add_margins(
    table: pd.DataFrame,
    goals: BoundConstraints,
    limits: Sequence[ConfidenceLimit],
    positive: np.ndarray,
) -> pd.DataFrame:
    """Insert the column margin, and call satisfied only what has as much slack."""
    measured = goals.n_rows > 0
    margin = np.full(len(table), np.nan)
    margin[measured] = margins(limits, goals.subset(measured), positive)
    enough = pd.array(table["slack"].to_numpy() >= margin - MET, dtype="boolean")
    table = table.assign(satisfied=enough)
    table["satisfied"] = table["satisfied"].where(measured)
    table.insert(table.columns.tolist().index("slack") + 1, "margin", margin)
    return table


def missed(table: pd.DataFrame, goals: BoundConstraints) -> str:
    """Name the constraints that do not hold, and by how much."""
    told = []
    for k in np.flatnonzero(~table["satisfied"].fillna(True)):
        row = table.iloc[k]
        if np.isnan(row["value"]):
            fault = "is undefined, no answer falls in its denominator"
        elif "margin" in table:
            needed = row["bound"] - goals.sign[k] * row["margin"]
            fault = (
                f"is {row['value']:.4g}, missed by {row['margin'] - row['slack']:.2g}, as on "
                f"{row['n_rows']} rows the margin turns the bound {row['bound']:.4g} into "
                f"{needed:.4g}"
            )
        else:
            fault = f"is {row['value']:.4g}, missed by {-row['slack']:.2g}"
        told.append(f"{row['constraint']}: {fault}")
    return "; ".join(told)


def _datasets(atoms: tuple[Atom, ...]) -> str:
    return ", ".join(dict.fromkeys(atom.on for atom in atoms))
