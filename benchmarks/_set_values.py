"""The value of chosen sets relative to the best ones, for each of several sizes, from one fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks._selection_rivals import LEAVES, RATE, STEPS
from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector

SIZES = (1, 3, 5, 10)
"""Numbers of ads to choose."""

GRADES = 32
"""Levels of relevance into which a ranker's costs are binned, by quantiles."""

Predict = Callable[[np.ndarray], np.ndarray]
"""Maps rows to scores of all ads, lower is better."""


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and costs of `oes97` or `cal500`, from the folder SKBANDIT_DATA."""
    folder = Path(os.environ["SKBANDIT_DATA"]) / "set_selection"
    with np.load(folder / f"{name}.npz") as arrays:
        return arrays["X"].astype(float), arrays["costs"].astype(float)


def by_costs(selector: Any) -> Callable[[np.ndarray, np.ndarray], Predict]:
    """A selector of ours that predicts costs."""

    def fit(X: np.ndarray, costs: np.ndarray) -> Predict:
        return selector.fit(X, costs).predict_costs

    return fit


def by_order(X: np.ndarray, costs: np.ndarray) -> Predict:
    """SetSelectClassifier: the place of each ad in its ranking of all ads."""
    selector = SetSelectClassifier(n_select=1, random_state=0).fit(X, costs)
    n_ads = costs.shape[1]

    def scores(rows: np.ndarray) -> np.ndarray:
        return selector.predict(rows, n_select=n_ads).argsort(axis=1).astype(float)

    return scores


def lambdarank(X: np.ndarray, costs: np.ndarray) -> Predict:
    """LightGBM's lambdarank: a line per row and ad, with the features of the row and the ad."""
    from lightgbm import LGBMRanker

    n_ads = costs.shape[1]

    def lines(rows: np.ndarray) -> np.ndarray:
        ads = np.tile(np.arange(n_ads), len(rows))
        return np.column_stack([np.repeat(rows, n_ads, axis=0), ads])

    levels = np.unique(-costs)
    if len(levels) > GRADES:
        levels = np.quantile(-costs, np.arange(GRADES) / GRADES)
    ranker = LGBMRanker(
        num_leaves=LEAVES,
        n_estimators=5 * STEPS,
        learning_rate=RATE,
        label_gain=list(range(GRADES)),
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )
    ranker.fit(
        lines(X),
        np.searchsorted(levels, -costs.ravel(), side="right") - 1,
        group=np.full(len(X), n_ads),
        categorical_feature=[X.shape[1]],
    )
    return lambda rows: -ranker.predict(lines(rows)).reshape(len(rows), n_ads)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Predict]] = {
    "PopularitySetSelector": by_costs(PopularitySetSelector()),
    "RegressionSetSelector()": by_costs(RegressionSetSelector()),
    'RegressionSetSelector("stack")': by_costs(RegressionSetSelector("stack")),
    "SetSelectClassifier()": by_order,
    "LightGBM lambdarank": lambdarank,
}


def cure(name: str) -> str:
    """What to do before a method can run; empty if nothing."""
    if name == "LightGBM lambdarank" and not find_spec("lightgbm"):
        return "not installed: pip install lightgbm"
    return ""


def shares(scores: np.ndarray, costs: np.ndarray, there: np.ndarray) -> list[float]:
    """Value of the sets of lowest scores over that of the best ones, for each of `SIZES`."""
    order = np.where(there, scores, np.inf).argsort(axis=1, kind="stable")
    best = np.sort(np.where(there, costs, np.inf), axis=1)
    paid = np.take_along_axis(costs, order, axis=1)
    return [paid[:, :m].sum() / best[:, :m].sum() for m in SIZES]


def values(name: str, method: str, seed: int) -> np.ndarray:
    """Shares of one split, (2, sizes): with all ads, and with 30% of them gone after training."""
    X, costs = read(name)
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(1000, len(X) * 2 // 3)
    train, test = order[:n], order[n : n + 1000]
    scaled = StandardScaler().fit(X[train])
    varies = costs[train].std(axis=0) > 0
    predict = METHODS[method](scaled.transform(X[train]), costs[train][:, varies])
    scores, paid = predict(scaled.transform(X[test])), costs[test][:, varies]
    there = np.random.default_rng(1000 + seed).random(paid.shape) > 0.3
    there[there.sum(axis=1) < max(SIZES)] = True
    every = np.ones(paid.shape, dtype=bool)
    return np.array([shares(scores, paid, every), shares(scores, paid, there)])
