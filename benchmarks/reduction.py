"""Adult over boosted trees: goals on held-out rows, by threshold, by reduction, by fairlearn.

python -m benchmarks.reduction [--quick] [--only GOAL ...] [--methods METHOD ...]
    [--seeds ...] [--trained ROWS] [--trees NUMBER]
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

from benchmarks._data import Sample, adult
from benchmarks._measure import in_fresh_process
from benchmarks._table import Column, print_table
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

TRAINED, TREES, SEEDS = 10_000, 100, tuple(range(8))
"""Rows to train on, of 48,842, the others held out; trees of a model; seeds of the splits."""

QUICK_TRAINED, QUICK_SEEDS = 2_000, (0, 1)

RIVAL = "fairlearn ExponentiatedGradient"
STRICTER = f"{RIVAL}, stricter"

COLUMNS = (
    Column("goal", 22),
    Column("method", 49),
    Column("error", 7, ".4f"),
    Column("missed by", 9, "+.4f"),
    Column("met", 4, ".2f"),
    Column("cpu s", 6, ".1f"),
    Column("error - fairlearn's", 19),
    Column("missed - fairlearn's", 20),
    Column("cpu s - fairlearn's", 19),
)


@dataclass(frozen=True)
class Goal:
    """One goal in both languages.

    Parameters
    ----------
    constraints : list of Constraint
        Over attribute column `men`.
    rival : callable
        From labels, who is a man and a bound to fairlearn's constraint: the same set of rules, but
        for equalized odds, where the group shares of positives and negatives differ and the
        stricter of the two translations is taken.
    bound : float
    stricter : float
        A bound at which fairlearn keeps some distance from `bound`, as ours do by default.
    """

    constraints: Sequence[Constraint]
    rival: Callable[[np.ndarray, np.ndarray, float], Any]
    bound: float = 0.05
    stricter: float = 0.035


def against_all(bound: float, men: np.ndarray) -> float:
    """The bound on a group's difference from all that bounds the difference of two groups.

    With the share p of the larger group, the smaller one is p times the difference from all.
    """
    return bound * max(men.mean(), 1 - men.mean())


def ratio_against_all(bound: float, men: np.ndarray) -> float:
    """The same for the ratio of women to men, where men have the higher rate."""
    share = men.mean()
    return bound / (share + (1 - share) * bound)


def _parity_difference(y: np.ndarray, men: np.ndarray, bound: float) -> Any:
    from fairlearn.reductions import DemographicParity

    return DemographicParity(difference_bound=against_all(bound, men))


def _parity_ratio(y: np.ndarray, men: np.ndarray, bound: float) -> Any:
    from fairlearn.reductions import DemographicParity

    return DemographicParity(ratio_bound=ratio_against_all(bound, men))


def _opportunity(y: np.ndarray, men: np.ndarray, bound: float) -> Any:
    from fairlearn.reductions import TruePositiveRateParity

    return TruePositiveRateParity(difference_bound=against_all(bound, men[y == 1]))


def _odds(y: np.ndarray, men: np.ndarray, bound: float) -> Any:
    from fairlearn.reductions import EqualizedOdds

    bounds = [against_all(bound, men[y == label]) for label in (0, 1)]
    return EqualizedOdds(difference_bound=min(bounds))


GOALS = {
    "parity, difference .05": Goal(
        [difference(positive_rate, by="men") <= 0.05], _parity_difference
    ),
    "parity, ratio .8": Goal([ratio(positive_rate, by="men") >= 0.8], _parity_ratio, 0.8, 0.86),
    "equal opportunity .05": Goal([difference(recall, by="men") <= 0.05], _opportunity),
    "equalized odds .05": Goal(
        [
            difference(recall, by="men") <= 0.05,
            difference(false_positive_rate, by="men") <= 0.05,
        ],
        _odds,
    ),
}


Answers = Callable[[np.ndarray], np.ndarray]
"""From rows to answers 0 and 1."""


@dataclass(frozen=True)
class Training:
    """Rows to train on, a goal, and how many trees a model has."""

    X: np.ndarray
    y: np.ndarray
    men: np.ndarray
    goal: Goal
    n_trees: int

    def trees(self) -> HistGradientBoostingClassifier:
        """The base of all methods but one."""
        return HistGradientBoostingClassifier(max_iter=self.n_trees, random_state=0)

    def fit(self, clf: Any) -> Any:
        """Fit one of ours."""
        return clf.fit(self.X, self.y, attributes=pd.DataFrame({"men": self.men}))


def unconstrained(given: Training) -> Answers:
    """The boosted trees alone."""
    return given.trees().fit(given.X, given.y).predict


def threshold(given: Training) -> Answers:
    """Ours: the threshold alone."""
    moved = ConstrainedThreshold(
        given.trees(), constraints=given.goal.constraints, confidence_level=0.5
    )
    return given.fit(moved).predict


def reduction(given: Training) -> Answers:
    """Ours, with default settings."""
    constraints = given.goal.constraints
    return given.fit(ConstrainedReduction(given.trees(), constraints=constraints)).predict


def reduction_at_face_value(given: Training) -> Answers:
    """Ours, bounds on the rates out of fold themselves, as fairlearn's are on those fitted."""
    clf = ConstrainedReduction(
        given.trees(), constraints=given.goal.constraints, confidence_level=0.5
    )
    return given.fit(clf).predict


def linear_reduction(given: Training) -> Answers:
    """Ours over a linear model: the step from linear to boosted."""
    base, constraints = LogisticRegression(max_iter=2000), given.goal.constraints
    return given.fit(ConstrainedReduction(base, constraints=constraints)).predict


def exponentiated_gradient(given: Training) -> Answers:
    """fairlearn's reduction (Agarwal et al. 2018); its answers are drawn at random."""
    return _at_bound(given, given.goal.bound)


def stricter_gradient(given: Training) -> Answers:
    """The same, asked for more."""
    return _at_bound(given, given.goal.stricter)


def _at_bound(given: Training, bound: float) -> Answers:
    from fairlearn.reductions import ExponentiatedGradient

    clf = ExponentiatedGradient(given.trees(), given.goal.rival(given.y, given.men, bound))
    clf.fit(given.X, given.y, sensitive_features=given.men)
    return lambda X: clf.predict(X, random_state=0)


METHODS = {
    "boosted trees, unconstrained": unconstrained,
    "ConstrainedThreshold, trees": threshold,
    "ConstrainedReduction, logistic": linear_reduction,
    RIVAL: exponentiated_gradient,
    STRICTER: stricter_gradient,
    "ConstrainedReduction, trees": reduction,
    "ConstrainedReduction, trees, level .5": reduction_at_face_value,
}


def runs(
    method: str, name: str, trained: int, n_trees: int, seeds: Sequence[int]
) -> dict[str, Any]:
    """Error, largest miss and seconds of one method on each split, for one goal."""
    goal, sample = GOALS[name], _dense(adult("all"))
    found = []
    for seed in seeds:
        train, test = train_test_split(
            np.arange(len(sample.y)), train_size=trained, random_state=seed, stratify=sample.y
        )
        men = sample.group == 1
        given = Training(sample.X[train], sample.y[train], men[train], goal, n_trees)
        before = time.process_time()
        answers = METHODS[method](given)
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


RESULTS = {"error": "errors", "missed": "misses", "cpu s": "seconds"}
"""Name of the results of `runs` for each column that is compared."""


def _dense(sample: Sample) -> Sample:
    return Sample(sample.X.toarray(), sample.y, sample.group)


def rows(
    names: Sequence[str],
    methods: Sequence[str],
    trained: int,
    n_trees: int,
    seeds: Sequence[int],
) -> Iterator[dict[str, Any]]:
    """One row per goal and method; ours once more, compared with the stricter rival."""
    for name in names:
        known: dict[str, Any] = {}
        for method in methods:
            line = {"goal": name, "method": method}
            if method in (RIVAL, STRICTER) and not find_spec("fairlearn"):
                yield line | {"note": "not installed: pip install fairlearn"}
                continue
            found = in_fresh_process(runs, method, name, trained, n_trees, seeds)
            if "note" in found:
                yield line | found
                continue
            known[method] = found
            misses = np.array(found["misses"])
            line |= {
                "error": np.mean(found["errors"]),
                "missed by": misses.mean(),
                "met": np.mean(misses <= 1e-9),
                "cpu s": np.mean(found["seconds"]),
            }
            if method == RIVAL or RIVAL not in known:
                yield line
                continue
            yield line | compared(found, known[RIVAL])
            if STRICTER in known and method != STRICTER:
                line = {"goal": name, "method": f"{method}, beside the stricter"}
                yield line | compared(found, known[STRICTER])


def compared(found: dict[str, Any], rival: dict[str, Any]) -> dict[str, str]:
    """Paired differences from a rival."""
    return {
        f"{column} - fairlearn's": paired(found[key], rival[key]) for column, key in RESULTS.items()
    }


def paired(one: Sequence[float], other: Sequence[float]) -> str:
    """Mean difference over the splits and its standard error."""
    differences = np.subtract(one, other)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reduction", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and splits")
    parser.add_argument("--only", nargs="+", choices=GOALS, metavar="GOAL", default=list(GOALS))
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="METHOD", default=list(METHODS)
    )
    parser.add_argument("--trained", type=int, default=TRAINED, metavar="ROWS")
    parser.add_argument("--trees", type=int, default=TREES, metavar="NUMBER")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="of the splits")
    options = parser.parse_args()
    if options.quick:
        options.trained, options.seeds = QUICK_TRAINED, QUICK_SEEDS
    adult("all")  # downloaded once, before other processes ask for it
    title = (
        f"Adult, {options.trained:,} rows trained, {options.trees} trees, held-out rows, "
        f"mean of {len(options.seeds)} splits"
    )
    print_table(
        title,
        COLUMNS,
        rows(options.only, options.methods, options.trained, options.trees, options.seeds),
    )


if __name__ == "__main__":
    main()
