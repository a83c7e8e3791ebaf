"""Goals in three forms: ours, plain arithmetic that scores all methods, and fairlearn's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._goal_data import Part
from skbandit.rates import (
    Constraint,
    Rate,
    churn,
    difference,
    each,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)

Judge = Callable[[np.ndarray, Part], float]
"""From probabilities of a positive prediction to a number; lower is better."""


def _mean(p: np.ndarray, rows: np.ndarray) -> float:
    return float(p[rows].mean()) if rows.any() else np.nan


def _by_group(p: np.ndarray, part: Part, column: str, label: int | None) -> np.ndarray:
    counted = np.ones(len(p), dtype=bool) if label is None else part.y == label
    names: pd.Series = part.attributes[column]
    return np.array([_mean(p, counted & (names == one).to_numpy()) for one in sorted(set(names))])


def error(p: np.ndarray, part: Part) -> float:
    """Error rate."""
    return float(np.where(part.y == 1, 1 - p, p).mean())


def alarms(p: np.ndarray, part: Part) -> float:
    """False positive rate."""
    return _mean(p, part.y == 0)


def misses(p: np.ndarray, part: Part) -> float:
    """False negative rate."""
    return 1.0 - _mean(p, part.y == 1)


def _gap(column: str, label: int | None, bound: float) -> Judge:
    return lambda p, part: float(np.ptp(_by_group(p, part, column, label))) - bound


def _quotient(p: np.ndarray, part: Part) -> float:
    rates = _by_group(p, part, "group", None)
    return 0.8 - (float(rates.min() / rates.max()) if rates.max() > 0 else 1.0)


def _precision(p: np.ndarray, part: Part) -> float:
    return float(p[part.y == 0].sum() / max(p.sum(), 1e-12))


def _churn(p: np.ndarray, part: Part) -> float:
    return float(np.where(part.attributes["deployed"] == 1, 1 - p, p).mean()) - 0.05


def _largest(*measures: Judge) -> Judge:
    return lambda p, part: max(measure(p, part) for measure in measures)


def _worst_alarms(p: np.ndarray, part: Part) -> float:
    return float(_by_group(p, part, "group", 0).max()) - 0.25


@dataclass(frozen=True)
class Goal:
    """An objective and constraints.

    Parameters
    ----------
    objective : Rate
    constraints : sequence of Constraint
    cost, missed : callable
        The objective (lower is better), and by how much the worst constraint is missed (negative
        if met), of probabilities of positive predictions.
    fairlearn : str or None
        Name of fairlearn's constraint, if it has one.
    bound : float
        Of the difference between two groups, or of their ratio.
    column : str
        The groups.
    """

    objective: Rate
    constraints: Sequence[Constraint]
    cost: Judge
    missed: Judge
    fairlearn: str | None = None
    bound: float = 0.05
    column: str = "group"

    def of_fairlearn(self, groups: pd.Series) -> Any:
        """Its constraint, which is on the difference of each group from all.

        Of two groups that is the share of the larger one times their difference; of more it is
        half of it at least.
        """
        from fairlearn import reductions

        kind = getattr(reductions, str(self.fairlearn))
        share = groups.value_counts(normalize=True).max()
        share = share if groups.nunique() == 2 else 0.5
        if self.fairlearn == "DemographicParity" and self.bound > 0.5:
            return kind(ratio_bound=self.bound / (share + (1 - share) * self.bound))
        return kind(difference_bound=share * self.bound)


def _parity(rate: Any, label: int | None, kind: str) -> Goal:
    constraints = [difference(rate, by="group") <= 0.05]
    return Goal(error_rate(), constraints, error, _gap("group", label, 0.05), kind)


GOALS = {
    "parity, ratio .8": Goal(
        error_rate(),
        [ratio(positive_rate, by="group") >= 0.8],
        error,
        _quotient,
        "DemographicParity",
        0.8,
    ),
    "parity, difference .05": _parity(positive_rate, None, "DemographicParity"),
    "equal opportunity .05": _parity(recall, 1, "TruePositiveRateParity"),
    "equalized odds .05": Goal(
        error_rate(),
        [
            difference(recall, by="group") <= 0.05,
            difference(false_positive_rate, by="group") <= 0.05,
        ],
        error,
        _largest(_gap("group", 1, 0.05), _gap("group", 0, 0.05)),
        "EqualizedOdds",
    ),
    "parity of both, difference .1": Goal(
        error_rate(),
        [difference(positive_rate, by="both") <= 0.1],
        error,
        _gap("both", None, 0.1),
        "DemographicParity",
        0.1,
        "both",
    ),
    "false positives <= .1": Goal(
        error_rate(),
        [false_positive_rate() <= 0.1],
        error,
        lambda p, part: alarms(p, part) - 0.1,
    ),
    "recall >= .9": Goal(
        false_positive_rate(),
        [recall() >= 0.9],
        alarms,
        lambda p, part: misses(p, part) - 0.1,
    ),
    "precision >= .6": Goal(
        recall(), [precision() >= 0.6], misses, lambda p, part: _precision(p, part) - 0.4
    ),
    "positives <= .1": Goal(
        recall(), [positive_rate() <= 0.1], misses, lambda p, part: float(p.mean()) - 0.1
    ),
    "churn <= .05": Goal(error_rate(), [churn("deployed") <= 0.05], error, _churn),
    "three at once": Goal(
        error_rate(),
        [
            difference(positive_rate, by="group") <= 0.1,
            difference(recall, by="group") <= 0.1,
            each(false_positive_rate, by="group") <= 0.25,
        ],
        error,
        _largest(_gap("group", None, 0.1), _gap("group", 1, 0.1), _worst_alarms),
    ),
}
"""Goals by name."""
