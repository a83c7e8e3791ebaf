"""Reports on moved thresholds: on rows as fitted, out of fold, and within confidence limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr

from skbandit.constrained._declared import Goals
from skbandit.constrained._limits import Limits, SharedRisk
from skbandit.constrained._report import add_intervals
from skbandit.rates._binding import satisfied

REPORTED_LEVEL = 0.95
"""Nominal coverage of the interval of each out-of-fold value in a report."""


def with_margins(
    table: pd.DataFrame, goals: Goals, limits: Limits, positive: np.ndarray
) -> pd.DataFrame:
    """Insert column margin; only a slack of at least the margin counts as satisfied."""
    margin = np.full(len(table), np.nan)
    margin[goals.is_measured] = limits.margins(positive[goals.measured.rows], 1.0)
    slack = table["slack"].to_numpy()
    table = table.assign(satisfied=satisfied(slack - margin, goals.is_measured))
    table.insert(table.columns.tolist().index("slack") + 1, "margin", margin)
    return table


def judged_out_of_fold(
    held_out: pd.DataFrame, own: pd.DataFrame, goals: Goals, positive: np.ndarray
) -> pd.DataFrame:
    """Rename the out-of-fold values, with their intervals, and put those as fitted before them.

    Parameters
    ----------
    held_out, own : DataFrame
        Reports of the out-of-fold predictions and of the fitted rule on the rows it was fitted
        to.
    goals : Goals
        The goals, over the rows that were predicted out of fold.
    positive : ndarray of shape (n,)
        The out-of-fold predictions, 0 and 1.
    """
    table = add_intervals(held_out, goals.constraints, goals.data, positive, REPORTED_LEVEL)
    table = table.rename(columns={"value": "cross_fitted"})
    at = table.columns.tolist().index("cross_fitted")
    table.insert(at, "value", own["value"])
    for place, name in enumerate(("ci_low", "ci_high"), at + 2):
        table.insert(place, name, table.pop(name))
    return table


def level_reached(limits: SharedRisk, positive: np.ndarray) -> str:
    """The level that predictions reach, and the rows that the asked one takes, in words.

    Widths of limits shrink with the square root of the number of rows.
    """
    sums = (limits.rows @ positive)[:, None]
    rates = limits.limits.slack(sums, 0.0).min(initial=np.inf)
    if rates <= 0 or limits.quantile == 0:
        return f". On these rows the rates leave no room for confidence_level={limits.level:g}"

    def left(z: float) -> float:
        return float(ndtr(-z) - limits.limits.risk(sums, z)[0])

    low = 1e-3
    if left(low) < 0 or left(limits.quantile) >= 0:
        reached, times = 0.5, np.inf
    else:
        z = brentq(left, low, limits.quantile)
        reached, times = float(ndtr(z)), (limits.quantile / z) ** 2
    text = f". These rows support a level of {reached:.2g}, not confidence_level={limits.level:g}"
    return text if np.isinf(times) else f"{text}, which takes about {times:.2g} times as many"
