"""Reports: which constraints hold, for which rule, by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from skbandit.rates._binding import (
    MET,
    Atom,
    BoundConstraints,
    Data,
    interval,
    satisfied,
    value_and_rows,
    warn_of_few,
)

INTERVAL_LEVEL = 0.95
"""Level of the intervals in `constraint_report_`."""


def report_table(
    goals: BoundConstraints,
    data: Data,
    positive: np.ndarray,
    expected: np.ndarray | None = None,
    multipliers: np.ndarray | None = None,
) -> pd.DataFrame:
    """Report on constraints, one row per constraint.

    Parameters
    ----------
    goals : BoundConstraints
        K constraints over n rows.
    data : Data
        The rows that they are bound to.
    positive : ndarray of shape (n,)
        Predictions of the deterministic rule, 0 and 1.
    expected : ndarray of shape (n,) or None
        Probabilities of a positive prediction by the randomised rule.
    multipliers : ndarray of shape (K,) or None
        Shadow prices; nan where skipped.

    Returns
    -------
    DataFrame
        `satisfied` refers to the deterministic rule: missing if nothing was measured, False
        if the rate is undefined. `effective_n` is Kish's number of rows for the deterministic
        rule. The columns `expected` and `multiplier` are left out if these are None.
    """
    measured = goals.n_rows > 0
    values, effective = np.full(len(measured), np.nan), np.zeros(len(measured))
    for k in np.flatnonzero(measured):
        values[k], effective[k] = value_and_rows(goals.constraints[k].rate, data, positive)
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
            "satisfied": satisfied(slack, measured),
        }
    )
    # The classifier chooses how many rows these denominators hold.
    chosen = [
        k
        for k, one in enumerate(goals.constraints)
        if any(atom.kind.fractional for atom in one.rate.atoms)
    ]
    warn_of_few(table["constraint"].iloc[chosen].tolist(), effective[chosen], stacklevel=4)
    if expected is not None:
        table.insert(table.columns.tolist().index("value"), "expected", goals.values(expected))
    return table if multipliers is None else table.assign(multiplier=multipliers)


def add_intervals(
    table: pd.DataFrame,
    goals: BoundConstraints,
    data: Data,
    positive: np.ndarray,
    level: float = INTERVAL_LEVEL,
) -> pd.DataFrame:
    """Append columns ci_low and ci_high for the deterministic rule's values."""
    ends = np.full((len(table), 2), np.nan)
    for k, constraint in enumerate(goals.constraints):
        if not np.isnan(table["value"].iloc[k]):
            ends[k] = interval(constraint.rate, data, positive, level)
    return table.assign(ci_low=ends[:, 0], ci_high=ends[:, 1])


def with_margins(table: pd.DataFrame, is_measured: np.ndarray, margins: np.ndarray) -> pd.DataFrame:
    """Insert column margin; only a slack of at least the margin counts as satisfied.

    Parameters
    ----------
    table : DataFrame
        From `report_table`, K rows.
    is_measured : ndarray of bool, shape (K,)
        Which constraints were not skipped.
    margins : ndarray of shape (m,)
        Slack that the confidence level takes, for each of these.

    Returns
    -------
    DataFrame
    """
    margin = np.full(len(table), np.nan)
    margin[is_measured] = margins
    table = table.assign(satisfied=satisfied(table["slack"].to_numpy() - margin, is_measured))
    table.insert(table.columns.tolist().index("slack") + 1, "margin", margin)
    return table


def cross_fitted_report(
    own: pd.DataFrame, held_out: pd.DataFrame, margins: np.ndarray | None
) -> pd.DataFrame:
    """Combine the reports of a rule on its training rows and of out-of-fold predictions.

    `expected` and `value` are the rule's own. All else is out of fold: `cross_fitted` and its
    interval, `effective_n`, `slack`, the `margin` that a confidence level takes, if there is
    one, and `satisfied`.

    Parameters
    ----------
    own : DataFrame
        From `report_table`, of the rule itself.
    held_out : DataFrame
        From `report_table` and `add_intervals`, of out-of-fold predictions.
    margins : ndarray of shape (m,) or None
        Slack that the confidence level takes, for each constraint that was not skipped.

    Returns
    -------
    DataFrame
    """
    kept = {name: held_out[name] for name in ("effective_n", "slack", "satisfied")}
    table = own.assign(**kept)
    place = table.columns.tolist().index("value") + 1
    inserted = {"cross_fitted": "value", "ci_low": "ci_low", "ci_high": "ci_high"}
    for offset, (name, of) in enumerate(inserted.items()):
        table.insert(place + offset, name, held_out[of])
    if margins is None:
        return table
    return with_margins(table, table["n_rows"].to_numpy() > 0, margins)


def plain_columns(table: pd.DataFrame) -> dict[str, Any]:
    """The columns of a report as lists and arrays of numbers.

    A DataFrame keeps its strings and its missing values in types of pandas and pyarrow, which
    skops refuses, and which pickle restores only where both are installed.
    """
    columns: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        if is_bool_dtype(column):
            columns[name] = [None if value is pd.NA else bool(value) for value in column]
        else:
            columns[name] = column.to_numpy() if is_numeric_dtype(column) else list(column)
    return columns


def report_of(columns: dict[str, Any]) -> pd.DataFrame:
    """The report whose `plain_columns` these are."""
    table = pd.DataFrame(columns)
    return table.assign(satisfied=pd.array(columns["satisfied"], dtype="boolean"))


def missed(table: pd.DataFrame, goals: BoundConstraints) -> str:
    """List the constraints that do not hold, with the amounts missed."""
    faults = []
    for k in np.flatnonzero(~table["satisfied"].fillna(True)):
        row = table.iloc[k]
        cross_fitted = row.get("cross_fitted", row["value"])
        own_slack = goals.sign[k] * (row["bound"] - row["value"])
        if np.isnan(row["value"]) or np.isnan(cross_fitted):
            fault = "is undefined, as no prediction falls in its denominator"
        elif "margin" in table and not row["slack"] >= row["margin"] - MET:
            needed = row["bound"] - goals.sign[k] * row["margin"]
            fault = (
                f"is {cross_fitted:.4g}, missed by {row['margin'] - row['slack']:.2g}: with the "
                f"margin for {row['n_rows']} rows, the bound {row['bound']:.4g} becomes "
                f"{needed:.4g}"
            )
        else:
            of, slack = ("", own_slack)
            if "cross_fitted" in table:
                of, slack = (" out of fold", row["slack"])
            fault = f"is {cross_fitted:.4g}{of}, missed by {-slack:.2g}"
        faults.append(f"{row['constraint']}: {fault}")
    return "; ".join(faults)


def _datasets(atoms: tuple[Atom, ...]) -> str:
    return ", ".join(dict.fromkeys(atom.on for atom in atoms))
