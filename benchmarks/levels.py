"""What a level means: goals kept on populations with known posteriors, of fits that were accepted.

python -m benchmarks.levels [--far] [--quick] [--seeds N] [--limit SECONDS] [--keep]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks import _far_levels
from benchmarks._kept import keep
from benchmarks._table import Column, print_table
from skbandit.constrained import ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, difference, error_rate, positive_rate, precision, recall

LEVEL, REVIEW = 0.9, "review"
"""The level that is asked for, and the decision that is no class."""

N_NEW, N_REFERENCE = 20_000, 50_000
"""New rows, and those that tell what the best rule without goals attains."""

FEATURES, SHARED = 4, 0.7
"""Features, and the part of their variance that rows of one person share."""

LEARNERS = {
    "logistic": LogisticRegression(max_iter=500),
    "forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "boosted": HistGradientBoostingClassifier(max_iter=25, max_leaf_nodes=8, random_state=0),
    "bayes": GaussianNB(),
}
COLUMNS = (
    Column("cell", 62),
    Column("fits", 4, "d"),
    Column("refused", 7, ".2f"),
    Column("kept", 5, ".3f"),
    Column("violated", 8, ".3f"),
    Column("cpu s", 6, ".2f"),
)


@dataclass(frozen=True)
class Cell:
    """Goals, a learner, and rows of a population."""

    goals: str
    classes: int
    learner: str
    rows: int
    rarest: int
    per_person: int = 1

    def __str__(self) -> str:
        people = f", {self.per_person} a person" if self.per_person > 1 else ""
        classes = f"{self.classes} classes, the rarest of {self.rarest} rows"
        return f"{self.goals}, {self.learner}, {classes} in {self.rows:,}{people}"


CELLS = (
    Cell("floors", 3, "bayes", 500, 30),
    Cell("floors", 4, "logistic", 1000, 60),
    Cell("floors", 5, "forest", 2000, 100),
    Cell("floors", 10, "logistic", 6000, 300),
    Cell("floors", 4, "boosted", 1500, 60),
    Cell("precision", 4, "logistic", 1500, 60),
    Cell("precision", 5, "forest", 2000, 100),
    Cell("answered", 5, "logistic", 2000, 100),
    Cell("answered", 4, "boosted", 1500, 60),
    Cell("answered", 3, "bayes", 500, 30),
    Cell("parity", 4, "logistic", 2000, 100),
    Cell("parity", 3, "boosted", 1500, 100),
    Cell("floors", 4, "logistic", 3000, 200, 12),
    Cell("answered", 4, "forest", 3000, 200, 12),
    Cell("precision", 3, "bayes", 3000, 300, 12),
    Cell("parity", 3, "logistic", 3000, 300, 12),
)


@dataclass(frozen=True)
class Sample:
    """Rows of a population: of people, in one of two regions."""

    X: pd.DataFrame
    label: np.ndarray
    region: np.ndarray
    person: np.ndarray
    posterior: np.ndarray


def sample(cell: Cell, n: int, seed: int) -> Sample:
    """Rows whose posteriors are known; the population does not depend on the seed."""
    fixed, rng = np.random.default_rng(100 + cell.classes), np.random.default_rng(seed)
    means = 1.3 * fixed.normal(size=(cell.classes, FEATURES))
    prior = np.geomspace(1.0, 0.35, cell.classes)[:-1]
    rare = cell.rarest / cell.rows
    prior = np.append((1.0 - rare) * prior / prior.sum(), rare)
    n_people = -(-n // cell.per_person)
    person = np.repeat(np.arange(n_people), cell.per_person)[:n]
    label = rng.choice(cell.classes, n_people, p=prior)[person]
    region = (rng.random(n_people) < 0.4)[person].astype(int)
    shared = SHARED if cell.per_person > 1 else 0.0
    noise = np.sqrt(shared) * rng.normal(size=(n_people, FEATURES))[person]
    noise += np.sqrt(1.0 - shared) * rng.normal(size=(n, FEATURES))
    X = means[label] + noise
    logarithm = np.log(prior) - 0.5 * ((X[:, None] - means) ** 2).sum(axis=2)
    posterior = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    X[:, 0] += 0.8 * region  # seen by the learner, which knows the region
    frame = pd.DataFrame(X).add_prefix("x").assign(region=region)
    return Sample(frame, label, region, person, posterior)


def named(codes: np.ndarray) -> np.ndarray:
    """Names of classes and of the review."""
    return np.array([f"c{k}" for k in range(10)] + [REVIEW])[codes]


def bounds_of(cell: Cell) -> np.ndarray:
    """What each goal of `goals_of` is bounded by, from the best rule without goals.

    Rows of one person count for less than as many people, and are asked for less.
    """
    many, alone = sample(cell, N_REFERENCE, 10**6), cell.per_person == 1
    plain = many.posterior.argmax(axis=1)
    if cell.goals == "answered":
        sure = 1.0 - many.posterior.max(axis=1)
        kept = np.sort(sure)[: int(0.75 * len(sure))]
        return np.array([round((1.15 if alone else 1.8) * float(kept.mean()), 3)])
    weak = np.arange(cell.classes)[-max(cell.classes // 2, 2) :]
    if cell.goals == "floors":
        right = np.array([many.posterior[plain == k, k].sum() for k in range(cell.classes)])
        rates = right / many.posterior.sum(axis=0)
        return np.round(rates[weak] + (0.4 if alone else 0.12) * (rates.mean() - rates[weak]), 3)
    if cell.goals == "precision":
        rates = np.array([many.posterior[plain == k, k].mean() for k in weak])
        return np.round(rates + 0.05 * (1.0 - rates) if alone else 0.92 * rates, 3)
    return np.array([0.06 if alone else 0.124])


def goals_of(cell: Cell, bounds: np.ndarray) -> tuple[list[Constraint], list[str]]:
    """Goals, and further decisions."""
    weak = named(np.arange(cell.classes)[-len(bounds) :])
    if cell.goals == "answered":
        goals = [error_rate(without=REVIEW) <= bounds[0], positive_rate(of=REVIEW) <= 0.35]
        return goals, [REVIEW]
    if cell.goals == "parity":
        return [difference(positive_rate, by="region", of="classes") <= bounds[0]], []
    rate = recall if cell.goals == "floors" else precision
    return [rate(of=k) >= bound for k, bound in zip(weak, bounds, strict=True)], []


def slack(cell: Cell, bounds: np.ndarray, decided: np.ndarray, new: Sample) -> float:
    """The least slack of the goals, by the posteriors; -inf where a rate is undefined."""
    P, weak = new.posterior, np.arange(cell.classes)[-len(bounds) :]
    if cell.goals == "answered":
        answered = decided < cell.classes
        if not answered.any():
            return -np.inf
        right = P[answered, decided[answered]].mean()
        return min(bounds[0] - (1.0 - right), 0.35 - 1.0 + answered.mean())
    if cell.goals == "parity":
        shares = [
            np.bincount(decided[new.region == g], minlength=cell.classes) / (new.region == g).sum()
            for g in (0, 1)
        ]
        return float(bounds[0] - np.abs(shares[0] - shares[1]).max())
    right = np.array([P[decided == k, k].sum() for k in weak])
    if cell.goals == "floors":
        return float((right / P[:, weak].sum(axis=0) - bounds).min())
    counts = np.array([(decided == k).sum() for k in weak])
    return float((right / counts - bounds).min()) if counts.all() else -np.inf


def one(cell: Cell, bounds: np.ndarray, seed: int) -> dict[str, float]:
    """A fit, and whether the population's rates hold."""
    warnings.simplefilter("ignore")
    rows, new = sample(cell, cell.rows, seed), sample(cell, N_NEW, 10**5 + seed)
    goals, others = goals_of(cell, bounds)
    clf = ConstrainedThreshold(
        LEARNERS[cell.learner],
        None,
        goals,
        confidence_level=LEVEL,
        by="region" if cell.goals == "parity" else None,
        other_decisions=others,
    )
    started = time.process_time()
    people = {"groups": rows.person} if cell.per_person > 1 else {}
    try:
        clf.fit(rows.X, named(rows.label), **people)
    except InfeasibleConstraintsError:
        return {"kept": np.nan, "refused": 1.0, "violated": 0.0}
    seconds = time.process_time() - started
    names = clf.predict(new.X)
    decided = np.where(names == REVIEW, cell.classes, 0)
    for k, name in enumerate(named(np.arange(cell.classes))):
        decided[names == name] = k
    kept = float(slack(cell, bounds, decided, new) >= 0)
    return {"kept": kept, "refused": 0.0, "violated": 1.0 - kept, "cpu s": seconds}


def fits(seeds: int, limit: float) -> Iterator[dict[str, Any]]:
    """Fits of all cells, seed by seed, until the time is over."""
    started = time.process_time()
    bounds = [bounds_of(cell) for cell in CELLS]
    for seed in range(seeds):
        if time.process_time() - started > limit:
            break
        for cell, of_cell in zip(CELLS, bounds, strict=True):
            yield {"part": "level .9", "unit": seed, "method": str(cell)} | one(cell, of_cell, seed)


def far_fits(seeds: int, limit: float) -> Iterator[dict[str, Any]]:
    """Fits of all cells of goals far from the usual rule."""
    started = time.process_time()
    for seed in range(seeds):
        if time.process_time() - started > limit:
            break
        for cell in _far_levels.CELLS:
            figures = _far_levels.one(cell, seed, LEVEL)
            yield {"part": "level .9", "unit": seed, "method": str(cell)} | figures


def as_kept(every: pd.DataFrame) -> pd.DataFrame:
    """A row per fit, as the page shows them: with the number of fits of each cell."""
    figures = [name for name in ("kept", "refused", "violated", "told", "covered") if name in every]
    shown = every[["part", "unit", "method", *figures]].copy()
    counts = shown.groupby("method")["unit"].transform("size").astype(str)
    shown["method"] = shown["method"] + " (" + counts + " fits)"
    return shown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levels", description=__doc__)
    parser.add_argument("--far", action="store_true", help="goals far from the usual rule")
    parser.add_argument("--quick", action="store_true", help="one fit of each cell")
    parser.add_argument("--seeds", type=int, default=60, help="fits of each cell at most")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of CPU time")
    parser.add_argument("--keep", action="store_true", help="write results/levels.csv")
    chosen = parser.parse_args()
    started = time.process_time()
    run, name = (far_fits, "far_levels") if chosen.far else (fits, "levels")
    every = pd.DataFrame(run(1 if chosen.quick else chosen.seeds, chosen.limit))
    means = every.groupby("method", sort=False).mean(numeric_only=True)
    counts = every.groupby("method", sort=False).size()
    lines = [{"cell": cell, "fits": counts[cell], **row} for cell, row in means.iterrows()]
    columns = [*COLUMNS, Column("told", 5), Column("covered", 7)] if chosen.far else COLUMNS
    print_table("Goals kept on the population", columns, lines)
    if chosen.keep:
        keep(name, as_kept(every), time.process_time() - started, level=LEVEL)


if __name__ == "__main__":
    main()
