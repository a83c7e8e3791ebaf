"""Goals on several classes, met on new rows: tables of costs compared with what people do.

python -m benchmarks.classes [--quick] [--keep]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._kept import keep
from benchmarks._table import Column, print_table
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import load_adult
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, difference, error_rate, positive_rate, precision, recall

N_JOBS = int(os.environ.get("JOBS", "2"))
"""Splits at once."""

SEEDS, LEVEL, REVIEW = range(3), 0.9, "review"
"""Splits of each problem, the level that is asked for, and the decision that is no class."""

OCCUPATIONS = {
    "expert": ("Prof-specialty", "Exec-managerial", "Tech-support"),
    "office": ("Adm-clerical", "Sales"),
    "service": ("Other-service", "Protective-serv", "Priv-house-serv", "Armed-Forces"),
}
"""Groups of Adult's occupations; all others are "manual"."""

LEARNERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "trees": HistGradientBoostingClassifier(max_iter=60, random_state=0),
    "bayes": GaussianNB(),
}
METHODS = ("plain", "balanced", "greedy", "program", "skbandit", "hindsight")
COLUMNS = (
    Column("data", 12),
    Column("goals", 10),
    Column("learner", 9),
    Column("method", 10),
    Column("kept", 5, ".2f"),
    Column("refused", 7, ".2f"),
    Column("error", 7, ".4f"),
    Column("beyond", 8, "+.4f"),
    Column("cpu s", 7, ".2f"),
)

Rows = tuple[pd.DataFrame, np.ndarray, pd.DataFrame]


def load(name: str) -> Rows:
    """Features, labels, and attributes."""
    if name == "occupations":
        frame = load_adult(subset="all").frame
        frame = frame[frame["occupation"].notna() & (frame["occupation"].astype(str) != "?")]
        groups = {one: name for name, several in OCCUPATIONS.items() for one in several}
        y = frame["occupation"].astype(str).map(lambda one: groups.get(one, "manual"))
        X = frame.drop(columns=["occupation", "sex", "relationship", "fnlwgt"])
        return X.reset_index(drop=True), y.to_numpy(str), frame[["sex"]].reset_index(drop=True)
    X, y = make_classification(
        30_000,
        n_features=20,
        n_informative=10,
        n_classes=8,
        n_clusters_per_class=1,
        weights=np.geomspace(1, 5, 8) / np.geomspace(1, 5, 8).sum(),
        random_state=0,
    )
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], len(y))})
    return pd.DataFrame(X).add_prefix("x"), np.array([f"c{k}" for k in y]), people


DATA = {"occupations": (3000, 10_000), "synthetic": (3000, 10_000)}
"""Rows to learn from, and rows that goals are set by; the others are new."""


def goals_of(kind: str, y: np.ndarray, plain: np.ndarray) -> tuple[list[Constraint], list[str]]:
    """Goals a little out of reach of plain decisions on other rows, and further decisions."""
    labels = np.unique(y)
    recalls = pd.Series({k: recall(of=k).value(y, plain, labels=labels) for k in labels})
    if kind == "floors":  # the weaker half at 1/2 of the way to the mean
        weak = recalls.nsmallest(max(len(labels) // 2, 1))
        return [recall(of=k) >= round(0.5 * (r + recalls.mean()), 2) for k, r in weak.items()], []
    if kind == "review":
        error = float(np.mean(plain != y))
        bounds = error_rate(without=REVIEW) <= round(0.75 * error, 3)
        return [bounds, positive_rate(of=REVIEW) <= 0.4], [REVIEW]
    if kind == "parity":
        return [difference(positive_rate, by="sex", of="classes") <= 0.08], []
    predicted = [k for k in labels if (plain == k).any()]
    exact = pd.Series({k: precision(of=k).value(y, plain, labels=labels) for k in predicted})
    return [precision(of=k) >= round(r + 0.04, 2) for k, r in exact.nsmallest(2).items()], []


def slack(goals: Sequence[Constraint], y: np.ndarray, decided: np.ndarray, rows: Any) -> float:
    """The least slack of the goals; -inf where a rate is undefined."""
    labels = np.unique(np.concatenate([y, decided, [REVIEW]])).tolist()
    labels = [*np.unique(y).tolist(), *(one for one in labels if one not in set(y))]
    found = []
    for goal in goals:
        value = goal.rate.value(y, decided, rows, labels=labels)
        found.append(goal.bound - value if goal.sense == "<=" else value - goal.bound)
    return float(np.nan_to_num(found, nan=-np.inf).min())


def greedy(
    probability: np.ndarray, classes: np.ndarray, goals: Sequence[Constraint], y: np.ndarray, A: Any
) -> np.ndarray:
    """Weights of classes, one after the other, by the goals' worst slack and then the error."""
    weights = np.ones(len(classes))

    def loss(tried: np.ndarray) -> tuple[float, float]:
        decided = classes[(probability * tried).argmax(axis=1)]
        return max(-slack(goals, y, decided, A), 0.0), float(np.mean(decided != y))

    best = loss(weights)
    for _ in range(4):
        for k in range(len(classes)):
            for factor in (0.5, 0.8, 0.9, 1.1, 1.25, 2.0):
                tried = weights.copy()
                tried[k] *= factor
                found = loss(tried)
                if found < best:
                    best, weights = found, tried
    return weights


def rows_of_goals(
    goals: Sequence[Constraint], P: np.ndarray, classes: np.ndarray, others: Any, women: np.ndarray
) -> tuple[list[np.ndarray], list[float]]:
    """What a decision adds to each goal by probabilities, (n, D), and the bound from above."""
    decisions = np.append(classes, others)
    one = dict(zip(decisions, np.eye(len(decisions)), strict=True))
    p = dict(zip(classes, P.T[:, :, None], strict=True))
    found: list[np.ndarray] = []
    bounds: list[float] = []
    for goal in goals:
        kind, of = goal.rate.atoms[0].kind.name, goal.rate.atoms[0].of
        if goal.rate.over_pairs:  # shares of each class among women and men
            gap = np.where(women, 1 / women.mean(), -1 / (~women).mean())[:, None]
            found += [side * gap * one[k] for k in classes for side in (1, -1)]
            bounds += [goal.bound] * (2 * len(classes))
            continue
        if kind == "recall":
            found.append(-p[of] / p[of].mean() * one[of])
        elif kind == "precision":
            found.append((goal.bound - p[of]) * one[of])
        elif kind == "error_rate":
            found.append((1.0 - P - goal.bound) @ np.eye(len(classes), len(decisions)))
        else:
            found.append(np.tile(one[of], (len(P), 1)))
        shares = kind in ("recall", "positive_rate")
        bounds.append((-goal.bound if kind == "recall" else goal.bound) if shares else 0.0)
    return found, bounds


def program(
    P: np.ndarray, classes: np.ndarray, goals: Sequence[Constraint], others: Any, women: np.ndarray
) -> np.ndarray | None:
    """Prices of the goals in the linear program that takes probabilities for the truth.

    LinearPost (Xian and Zhao 2024) solves this program for its fairness goals. None without
    a solution.
    """
    table, bounds = rows_of_goals(goals, P, classes, others, women)
    n, D = table[0].shape
    wrong = 1.0 - np.column_stack([P, np.zeros((n, D - P.shape[1]))])
    found = linprog(
        wrong.ravel() / n,
        csr_array(np.array([row.ravel() / n for row in table])),
        bounds,
        csr_array(kron(eye_array(n), np.ones((1, D)))),
        np.ones(n),
        method="highs",
    )
    return None if found.x is None else -found.ineqlin.marginals


def priced(
    prices: np.ndarray, P: np.ndarray, classes: np.ndarray, goals: Any, others: Any, women: Any
) -> np.ndarray:
    """Decisions of least error and prices."""
    table, _ = rows_of_goals(goals, P, classes, others, women)
    wrong = 1.0 - np.column_stack([P, np.zeros((len(P), table[0].shape[1] - P.shape[1]))])
    cost = wrong + np.tensordot(prices, table, 1)
    return np.append(classes, others)[cost.argmin(axis=1)]


def prepared(learner: Any, X: pd.DataFrame) -> Any:
    """The learner behind transformers of categories, if there are some."""
    numbers = StandardScaler(), make_column_selector(dtype_include=np.number)
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=10, sparse_output=False)
    others = words, make_column_selector(dtype_exclude=np.number)
    return make_pipeline(make_column_transformer(numbers, others), clone(learner))


def one(name: str, kind: str, learner: str, seed: int) -> list[dict[str, Any]]:
    """All methods on one split."""
    warnings.simplefilter("ignore")
    X, y, people = load(name)
    n_train, n_set = DATA[name]
    order = train_test_split(np.arange(len(y)), train_size=n_train, random_state=seed, stratify=y)
    train, (setting, new) = order[0], np.split(order[1], [n_set])
    model = prepared(LEARNERS[learner], X)
    plain = clone(model).fit(X.iloc[train], y[train])
    goals, others = goals_of(kind, y[setting], plain.predict(X.iloc[setting]))
    by = "sex" if kind == "parity" else None
    found = []

    def kept_by(decided: np.ndarray) -> float:
        return float(slack(goals, y[new], decided, people.iloc[new]) >= 0)

    def judged(method: str, decided: np.ndarray, refused: bool, seconds: float) -> None:
        found.append(
            {
                "method": method,
                "kept": np.nan if refused else kept_by(decided),
                "refused": float(refused),
                "error": float(np.mean(decided != y[new])),
                "cpu s": seconds,
            }
        )

    def constrained(method: str, estimator: Any, rows: np.ndarray, **settings: Any) -> None:
        started, refused = time.process_time(), False
        clf = ConstrainedThreshold(
            estimator, None, goals, by=by, other_decisions=others, **settings
        )
        try:
            clf.fit(X.iloc[rows], y[rows], attributes=people.iloc[rows])
        except InfeasibleConstraintsError as error:
            clf, refused = error.closest_, True
        seconds = time.process_time() - started
        given = {} if by is None else {"attributes": people.iloc[new]}
        judged(method, clf.predict(X.iloc[new], **given), refused, seconds)

    judged("plain", plain.predict(X.iloc[new]), False, np.nan)
    if "class_weight" in LEARNERS[learner].get_params():
        balanced = clone(model)
        balanced[-1].set_params(class_weight="balanced")
        balanced.fit(X.iloc[train], y[train])
        judged("balanced", balanced.predict(X.iloc[new]), False, np.nan)
    started = time.process_time()
    P = cross_val_predict(model, X.iloc[train], y[train], method="predict_proba")
    folds, women = time.process_time() - started, people["sex"].str.startswith("F").to_numpy()
    if not others:
        started = time.process_time() - folds
        weights = greedy(P, plain.classes_, goals, y[train], people.iloc[train])
        decided = (plain.predict_proba(X.iloc[new]) * weights).argmax(axis=1)
        judged("greedy", plain.classes_[decided], False, time.process_time() - started)
    started = time.process_time() - folds
    of_goals = plain.classes_, goals, others
    prices = program(P, *of_goals, women[train])
    decided = plain.predict(X.iloc[new])
    if prices is not None:
        decided = priced(prices, plain.predict_proba(X.iloc[new]), *of_goals, women[new])
    judged("program", decided, prices is None, time.process_time() - started)
    constrained("skbandit", model, train, confidence_level=LEVEL)
    constrained("hindsight", plain, new, confidence_level=0.5, cv="prefit")
    best = found[-1]["error"] if not found[-1]["refused"] else np.nan
    key = {"data": name, "goals": kind, "learner": learner, "seed": seed}
    return [key | each | {"beyond": each["error"] - best} for each in found]


def rows(seeds: Sequence[int], names: Sequence[str], kept: list[pd.DataFrame]) -> Iterator[Any]:
    """Means over the seeds; all splits go to `kept`."""
    for name in names:
        for kind in ("floors", "precision", "review", "parity"):
            if kind == "parity" and name != "occupations":
                continue
            for learner in LEARNERS:
                tasks = (delayed(one)(name, kind, learner, seed) for seed in seeds)
                found = pd.DataFrame([row for part in Parallel(N_JOBS)(tasks) for row in part])
                kept.append(found)
                means = found.groupby("method", sort=False).mean(numeric_only=True)
                for method, row in means.iterrows():
                    key = {"data": name, "goals": kind, "learner": learner, "method": method}
                    yield key | row.to_dict()


def as_kept(every: pd.DataFrame) -> pd.DataFrame:
    """A row per split and method, as the page shows them."""
    unit = every[["data", "learner", "seed"]].astype(str).agg(" ".join, axis=1)
    found = pd.DataFrame({"part": every["goals"], "unit": unit, "method": every["method"]})
    found["goals kept"], found["refused"] = every["kept"], every["refused"]
    found["error beyond hindsight"] = every["beyond"]
    return found


def main() -> None:
    """Print the table."""
    name = "python -m benchmarks.classes"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of synthetic data")
    parser.add_argument("--keep", action="store_true", help="write results/classes.csv")
    chosen = parser.parse_args()
    seeds, names = (range(1), ["synthetic"]) if chosen.quick else (SEEDS, list(DATA))
    kept: list[pd.DataFrame] = []
    started = time.perf_counter()
    print_table("Goals on several classes, on new rows", COLUMNS, rows(seeds, names, kept))
    every = pd.concat(kept)
    summary = every.groupby("method", sort=False).agg(
        kept=("kept", "mean"), refused=("refused", "mean"), beyond=("beyond", "mean")
    )
    print(summary.round(4).to_string())
    if chosen.keep:
        keep("classes", as_kept(every), time.perf_counter() - started, level=LEVEL)


if __name__ == "__main__":
    main()
