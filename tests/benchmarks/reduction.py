"""Adult over boosted trees: goals on held-out rows, by threshold, by reduction, by fairlearn.

python -m tests.benchmarks.reduction [--quick] [--only GOAL ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.rates import (
    Constraint,
    difference,
    error_rate,
    false_positive_rate,
    positive_rate,
    ratio,
    recall,
)
from tests.benchmarks._data import Sample, adult
from tests.benchmarks._measure import in_fresh_process
from tests.benchmarks._table import Column, print_table

TRAINED, SPLITS = 10_000, 8
"""Rows to train on, of 48,842; the others are held out. Splits overlap in the former."""

QUICK_TRAINED, QUICK_SPLITS = 2_000, 2

RIVAL = "fairlearn ExponentiatedGradient"

COLUMNS = (
    Column("goal", 22),
    Column("method", 34),
    Column("error", 7, ".4f"),
    Column("missed by", 9, "+.4f"),
    Column("met", 4, ".2f"),
    Column("cpu s", 6, ".1f"),
    Column("error - fairlearn's", 19),
    Column("missed - fairlearn's", 20),
)


@dataclass(frozen=True)
class Goal:
    """One goal in both languages.

    Parameters
    ----------
    constraints : list of Constraint
        Over attribute column `men`.
    rival : callable
        From labels and who is a man to fairlearn's constraint: the same set of rules, but for
        equalised odds, where the group shares of positives and negatives differ and the stricter
        of the two translations is taken.
    """

    constraints: Sequence[Constraint]
    rival: Callable[[np.ndarray, np.ndarray], Any]


def against_all(bound: float, men: np.ndarray) -> float:
    """The bound on a group's difference from all that bounds the difference of two groups.

    With the share p of the larger group, the smaller one is p times the difference from all.
    """
    return bound * max(men.mean(), 1 - men.mean())


def ratio_against_all(bound: float, men: np.ndarray) -> float:
    """The same for the ratio of women to men, where men have the higher rate."""
    share = men.mean()
    return bound / (share + (1 - share) * bound)


def _parity_difference(y: np.ndarray, men: np.ndarray) -> Any:
    from fairlearn.reductions import DemographicParity

    return DemographicParity(difference_bound=against_all(0.05, men))


def _parity_ratio(y: np.ndarray, men: np.ndarray) -> Any:
    from fairlearn.reductions import DemographicParity

    return DemographicParity(ratio_bound=ratio_against_all(0.8, men))


def _opportunity(y: np.ndarray, men: np.ndarray) -> Any:
    from fairlearn.reductions import TruePositiveRateParity

    return TruePositiveRateParity(difference_bound=against_all(0.05, men[y == 1]))


def _odds(y: np.ndarray, men: np.ndarray) -> Any:
    from fairlearn.reductions import EqualizedOdds

    bounds = [against_all(0.05, men[y == label]) for label in (0, 1)]
    return EqualizedOdds(difference_bound=min(bounds))


GOALS = {
    "parity, difference .05": Goal(
        [difference(positive_rate, by="men") <= 0.05], _parity_difference
    ),
    "parity, ratio .8": Goal([ratio(positive_rate, by="men") >= 0.8], _parity_ratio),
    "equal opportunity .05": Goal([difference(recall, by="men") <= 0.05], _opportunity),
    "equalised odds .05": Goal(
        [
            difference(recall, by="men") <= 0.05,
            difference(false_positive_rate, by="men") <= 0.05,
        ],
        _odds,
    ),
}


def trees() -> HistGradientBoostingClassifier:
    """The base of all methods but one."""
    return HistGradientBoostingClassifier(random_state=0)


Answers = Callable[[np.ndarray], np.ndarray]


def unconstrained(X: np.ndarray, y: np.ndarray, men: np.ndarray, goal: Goal) -> Answers:
    """The boosted trees alone."""
    return trees().fit(X, y).predict


def threshold(X: np.ndarray, y: np.ndarray, men: np.ndarray, goal: Goal) -> Answers:
    """Ours: the threshold alone."""
    clf = ConstrainedThreshold(trees(), constraints=goal.constraints)
    return clf.fit(X, y, attributes=pd.DataFrame({"men": men})).predict


def reduction(X: np.ndarray, y: np.ndarray, men: np.ndarray, goal: Goal) -> Answers:
    """Ours, with default settings."""
    clf = ConstrainedReduction(trees(), constraints=goal.constraints)
    return clf.fit(X, y, attributes=pd.DataFrame({"men": men})).predict


def linear_reduction(X: np.ndarray, y: np.ndarray, men: np.ndarray, goal: Goal) -> Answers:
    """Ours over a linear model: the step from linear to boosted."""
    base = LogisticRegression(max_iter=2000)
    clf = ConstrainedReduction(base, constraints=goal.constraints)
    return clf.fit(X, y, attributes=pd.DataFrame({"men": men})).predict


def exponentiated_gradient(X: np.ndarray, y: np.ndarray, men: np.ndarray, goal: Goal) -> Answers:
    """fairlearn's reduction (Agarwal et al. 2018); its answers are drawn at random."""
    from fairlearn.reductions import ExponentiatedGradient

    clf = ExponentiatedGradient(trees(), goal.rival(y, men))
    clf.fit(X, y, sensitive_features=men)
    return lambda X: clf.predict(X, random_state=0)


METHODS = {
    "boosted trees, unconstrained": unconstrained,
    "ConstrainedThreshold, trees": threshold,
    "ConstrainedReduction, logistic": linear_reduction,
    RIVAL: exponentiated_gradient,
    "ConstrainedReduction, trees": reduction,
}


def runs(method: str, name: str, trained: int, splits: int) -> dict[str, Any]:
    """Error, largest miss and seconds of one method on each split, for one goal."""
    goal, sample = GOALS[name], _dense(adult("all"))
    found = []
    for seed in range(splits):
        train, test = train_test_split(
            np.arange(len(sample.y)), train_size=trained, random_state=seed, stratify=sample.y
        )
        men = sample.group == 1
        before = time.process_time()
        answers = METHODS[method](sample.X[train], sample.y[train], men[train], goal)
        spent = time.process_time() - before
        positive = np.asarray(answers(sample.X[test])).astype(int)
        table = pd.DataFrame({"men": men[test]})
        values = [
            (one.rate.value(sample.y[test], positive, table), one) for one in goal.constraints
        ]
        missed = [value - c.bound if c.sense == "<=" else c.bound - value for value, c in values]
        found.append((error_rate().value(sample.y[test], positive), max(missed), spent))
    errors, misses, seconds = map(list, zip(*found, strict=True))
    return {"errors": errors, "misses": misses, "seconds": seconds}


def _dense(sample: Sample) -> Sample:
    return Sample(sample.X.toarray(), sample.y, sample.group)


def rows(names: Sequence[str], trained: int, splits: int) -> Iterator[dict[str, Any]]:
    """One row a goal and method."""
    for name in names:
        fairlearn: dict[str, Any] = {}
        for method in METHODS:
            line = {"goal": name, "method": method}
            if method == RIVAL and not find_spec("fairlearn"):
                yield line | {"note": "not installed: pip install fairlearn"}
                continue
            found = in_fresh_process(runs, method, name, trained, splits)
            if "note" in found:
                yield line | found
                continue
            fairlearn = found if method == RIVAL else fairlearn
            misses = np.array(found["misses"])
            line |= {
                "error": np.mean(found["errors"]),
                "missed by": misses.mean(),
                "met": np.mean(misses <= 1e-9),
                "cpu s": np.mean(found["seconds"]),
            }
            if fairlearn and fairlearn is not found:
                for column, key in (("error", "errors"), ("missed", "misses")):
                    line[f"{column} - fairlearn's"] = paired(found[key], fairlearn[key])
            yield line


def paired(one: Sequence[float], other: Sequence[float]) -> str:
    """Mean difference over the splits and its standard error."""
    differences = np.subtract(one, other)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.reduction", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="few rows and splits")
    parser.add_argument("--only", nargs="+", choices=GOALS, metavar="GOAL", default=list(GOALS))
    parser.add_argument(
        "--splits", type=int, default=SPLITS, help="splits into trained and held out"
    )
    options = parser.parse_args()
    trained, splits = TRAINED, options.splits
    if options.quick:
        trained, splits = QUICK_TRAINED, QUICK_SPLITS
    adult("all")  # downloaded once, before other processes ask for it
    title = f"Adult, {trained:,} rows trained, held-out rows, mean of {splits} splits"
    print_table(title, COLUMNS, rows(options.only, trained, splits))


if __name__ == "__main__":
    main()
