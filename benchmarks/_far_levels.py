"""Populations of two classes whose goals are far from the usual rule, for `benchmarks.levels`.

Rows weigh 5 to 50 times as much if they are negative, as many as were left out; or they are those
of persons, 3 to 40 each, whose rows are alike; or learners are unstable.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skbandit import ConstrainedRampClassifier, ConstrainedReduction, ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    Constraint,
    Rate,
    error_rate,
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)

N_POPULATION, N_PERSONS, SIZES = 100_000, 70, (3, 41)
"""Rows that stand for the population, persons of a fit, and how many rows each may have."""

SLOW, N_FEW = ("nearest neighbors", "SVC"), 20_000
"""Learners that predict slowly, and the rows that stand for the population then."""

LEARNERS: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "SGD on raw columns": SGDClassifier(random_state=0),
    "SGD": make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    "perceptron": Perceptron(random_state=0),
    "network": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=60, random_state=0)),
    "tree of 50 rows a leaf": DecisionTreeClassifier(min_samples_leaf=50, random_state=0),
    "tree of depth 4": DecisionTreeClassifier(max_depth=4, random_state=0),
    "nearest neighbors": make_pipeline(StandardScaler(), KNeighborsClassifier(25)),
    "SVC": make_pipeline(StandardScaler(), SVC()),
}


@dataclass(frozen=True)
class Rows:
    """Rows, their probabilities, what they weigh, the person of each, and an amount."""

    X: np.ndarray
    p: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    person: np.ndarray
    euros: np.ndarray


def rows(n: int, seed: int, rare: float, *, heavy: float = 1.0, persons: bool = False) -> Rows:
    """Draw rows: of negatives one in `heavy`; what is told of a person's rows is alike."""
    rng = np.random.default_rng(seed)
    person, shared = np.arange(n), 0.0
    if persons:
        sizes = rng.integers(*SIZES, 2 + n // SIZES[0])
        person = np.repeat(np.arange(len(sizes)), sizes)[:n]
        shared = 0.6
    X = np.sqrt(1.0 - shared) * rng.normal(size=(n, 5))
    X += np.sqrt(shared) * rng.normal(size=(person.max() + 1, 5))[person]
    p = expit(1.5 * X[:, 0] + 0.8 * X[:, 1] - rare)
    y = (rng.random(n) < p).astype(int)
    euros = np.exp(0.7 * rng.normal(size=n) + 0.4 * X[:, 0])
    kept = (y == 1) | (rng.random(n) < 1.0 / heavy)
    parts = X, p, y, np.where(y == 1, 1.0, heavy), person, euros
    return Rows(*(part[kept] for part in parts))


@dataclass(frozen=True)
class Goal:
    """A bounded rate, the objective that pulls against it, and its value by probabilities."""

    rate: Rate
    objective: Rate
    least: bool
    value: Callable[[Rows, np.ndarray], float]

    def at(self, bound: float) -> Constraint:
        """Declare the bound."""
        return self.rate >= bound if self.least else self.rate <= bound


def _share_of(part: Callable[[Rows], np.ndarray]) -> Callable[[Rows, np.ndarray], float]:
    return lambda many, d: float((part(many) * d).sum() / part(many).sum())


def _errors(many: Rows, d: np.ndarray) -> float:
    return float(np.where(d == 1, 1.0 - many.p, many.p).mean())


missed = false_negative_rate()
GOALS = {
    "share <=": Goal(positive_rate(), missed, False, lambda many, d: float(d.mean())),
    "share >=": Goal(positive_rate(), error_rate(), True, lambda many, d: float(d.mean())),
    "errors <=": Goal(error_rate(), missed, False, _errors),
    "FPR <=": Goal(false_positive_rate(), missed, False, _share_of(lambda many: 1.0 - many.p)),
    "recall >=": Goal(recall(), false_positive_rate(), True, _share_of(lambda many: many.p)),
    "precision >=": Goal(
        precision(), missed, True, lambda many, d: float((many.p * d).sum() / max(d.sum(), 1))
    ),
    "money found >=": Goal(
        recall(weight="euros"),
        positive_rate(),
        True,
        _share_of(lambda many: many.p * many.euros),
    ),
}
"""Money found is the part of what positives are worth, which is very unequal."""


@dataclass(frozen=True)
class FarCell:
    """A goal, at the value of the rule that flags a share of the population, and how rows come."""

    goal: str
    share: float
    rare: float = 1.5
    heavy: float = 1.0
    persons: bool = False
    learner: str = ""
    n: int = 1000
    method: str = "threshold"

    def __str__(self) -> str:
        how = [f"weights 1 and {self.heavy:g}"] if self.heavy > 1 else []
        how += [f"persons of 3 to 40 rows, {self.n:,} in all"] if self.persons else []
        how += [self.learner or "prefit logistic"]
        how += [self.method] if self.method != "threshold" else []
        return f"{self.goal} that of flagging {self.share:.0%}, {', '.join(how)}"


CELLS = (
    *(FarCell("share <=", 0.05, 4.2, heavy, n=12_000) for heavy in (5, 20, 50)),
    *(FarCell("share >=", 0.05, 4.2, heavy, n=12_000) for heavy in (5, 20, 50)),
    *(FarCell(goal, 0.15, 3.0, 20, n=8000) for goal in ("errors <=", "FPR <=", "precision >=")),
    FarCell("recall >=", 0.3, 3.0, 20, n=8000),
    FarCell("money found >=", 0.3, 3.0, 20, n=8000),
    *(
        FarCell(goal, share, 3.0, persons=True, n=1200)
        for goal, share in (
            ("share <=", 0.2),
            ("share >=", 0.3),
            ("errors <=", 0.2),
            ("FPR <=", 0.15),
            ("recall >=", 0.3),
            ("precision >=", 0.15),
            ("money found >=", 0.3),
        )
    ),
    FarCell("share <=", 0.2, 3.0, 5, persons=True, n=5000),
    FarCell("recall >=", 0.3, 3.0, 5, persons=True, n=5000),
    FarCell("recall >=", 0.3, 1.5, persons=True, n=1200, learner="logistic"),
    FarCell("FPR <=", 0.05, learner="logistic"),
    FarCell("recall >=", 0.8, learner="logistic"),
    *(FarCell("recall >=", 0.4, learner=learner) for learner in LEARNERS),
    *(
        FarCell("FPR <=", 0.1, learner=learner)
        for learner in ("SGD", "network", "tree of 50 rows a leaf", "nearest neighbors", "SVC")
    ),
    FarCell("share <=", 0.05, 4.2, 20, n=12_000, learner="logistic", method="reduction"),
    FarCell("recall >=", 0.3, 1.5, persons=True, n=1200, learner="logistic", method="reduction"),
    FarCell("share <=", 0.05, 4.2, 20, n=12_000, learner="logistic", method="ramp"),
    FarCell("recall >=", 0.3, 1.5, persons=True, n=1200, learner="logistic", method="ramp"),
)


@cache
def population(rare: float, persons: bool) -> Rows:
    """Draw the rows that stand for the population."""
    return rows(N_POPULATION, 1, rare, persons=persons)


@cache
def prefit(rare: float) -> Any:
    """Fit the model that has not seen the rows of a fit."""
    many = rows(20_000, 2, rare)
    return LogisticRegression().fit(many.X, many.y)


@cache
def bound_of(cell: FarCell) -> float:
    """Return the value of the rule that flags the most probable rows of the population."""
    many = population(cell.rare, cell.persons)
    flagged = many.p > np.quantile(many.p, 1.0 - cell.share)
    return round(GOALS[cell.goal].value(many, flagged.astype(float)), 4)


def fitted(cell: FarCell, seed: int, level: float) -> tuple[Any, Rows, dict[str, Any]]:
    """Return the classifier of a cell, its rows, and what its fit takes besides."""
    here = rows(cell.n, 1000 + seed, cell.rare, heavy=cell.heavy, persons=cell.persons)
    goal = GOALS[cell.goal]
    model = prefit(cell.rare) if not cell.learner else LEARNERS[cell.learner]
    settings = goal.objective, goal.at(bound_of(cell))
    scale = 1000.0 if "raw" in cell.learner else 1.0
    here.X[:] *= scale
    if cell.method == "ramp":
        clf: Any = ConstrainedRampClassifier(*settings, confidence_level=level)
    elif cell.method == "reduction":
        clf = ConstrainedReduction(model, *settings, confidence_level=level, max_iter=3)
    else:
        cv = None if cell.learner else "prefit"
        clf = ConstrainedThreshold(model, *settings, confidence_level=level, cv=cv)
    given: dict[str, Any] = {"attributes": {"euros": here.euros}}
    given |= {"sample_weight": here.weight} if cell.heavy > 1 else {}
    given |= {"groups": here.person} if cell.persons else {}
    return clf, here, given


def one(cell: FarCell, seed: int, level: float) -> dict[str, float]:
    """A fit: whether its goal holds in the population, and whether a warning names the learner."""
    clf, here, given = fitted(cell, seed, level)
    goal, bound, many = GOALS[cell.goal], bound_of(cell), population(cell.rare, cell.persons)
    if cell.learner in SLOW:
        many = Rows(*(part[:N_FEW] for part in astuple(many)))
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            clf.fit(here.X, here.y, **given)
        except InfeasibleConstraintsError:
            return {"kept": np.nan, "refused": 1.0, "violated": 0.0}
        seconds = time.process_time() - started
        report = clf.constraint_report_
        if "ci_low" not in report:
            report = clf.constraint_report(here.X, here.y, **given)
    told = any("unstable" in str(warning.message) for warning in caught)
    scale = 1000.0 if "raw" in cell.learner else 1.0
    value = goal.value(many, clf.predict(scale * many.X))
    low, high = report[["ci_low", "ci_high"]].iloc[0]
    kept = value >= bound if goal.least else value <= bound
    figures = {"kept": float(kept), "refused": 0.0, "violated": float(not kept), "cpu s": seconds}
    return figures | {"told": float(told), "covered": float(low <= value <= high)}
