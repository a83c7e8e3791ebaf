"""Splits for the benchmark of goals: two real data sets and synthetic problems."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit.datasets import load_adult

NEW_ROWS = 20_000
"""Test rows of a synthetic problem: a rate errs by some thousandths."""

GERMAN = Path("german", "german_credit.csv.gz")
"""German credit (UCI), in the folder named by SKBANDIT_DATA."""


@dataclass(frozen=True)
class Part:
    """Rows, labels 0 and 1, and attributes.

    Attributes are `group`, `both` (of two sensitive columns) and `deployed`, the predictions of a
    model of yesterday. None of them is a feature.
    """

    X: np.ndarray
    y: np.ndarray
    attributes: pd.DataFrame


@dataclass(frozen=True)
class Split:
    """Training rows and test rows."""

    train: Part
    new: Part


@dataclass(frozen=True)
class Shape:
    """A synthetic problem.

    Parameters
    ----------
    n, d : int
        Training rows and columns.
    positive : float
        Share of positives, about.
    strength : float
        Deviation of the log odds that the columns explain.
    groups : int
        The later, the rarer and the lower its scores.
    correlation : float
        Of neighboring columns.
    curved : float
        Share of the log odds that no linear rule finds.
    units : bool
        Whether columns have units from 1e-4 to 1e4, and long tails.
    own : float
        Deviation of the weights that each group has of its own; that of the common ones is 1.
    """

    n: int = 1500
    d: int = 12
    positive: float = 0.4
    strength: float = 1.8
    groups: int = 2
    correlation: float = 0.0
    curved: float = 0.0
    units: bool = False
    own: float = 0.0


SHAPES = {
    "few rows": Shape(n=300, d=8),
    "many columns": Shape(n=500, d=80),
    "imbalanced": Shape(n=3000, positive=0.08, strength=2.2),
    "three groups": Shape(n=2000, groups=3),
    "weak features": Shape(n=2000, d=20, strength=0.7),
    "correlated": Shape(d=30, correlation=0.95),
    "scaled": Shape(units=True),
    "curved": Shape(n=4000, curved=0.5, strength=2.5),
    "groups differ": Shape(n=3000, d=10, own=1.0),
}
"""Synthetic problems by name."""


def made(shape: Shape, seed: int) -> Split:
    """Draw a problem, its training rows and `NEW_ROWS` others.

    Half of what makes a row positive depends on its group, too, so that bounds between groups bind
    and are met at a price by relying on the other half.
    """
    rng = np.random.default_rng(seed)
    n, d = shape.n + NEW_ROWS, shape.d
    share = 0.5 ** np.arange(shape.groups)
    group = rng.choice(shape.groups, n, p=share / share.sum())
    second = rng.integers(0, 2, n)
    noise = rng.normal(size=(n, d))
    X = noise.copy()
    for k in range(1, d):
        X[:, k] = shape.correlation * X[:, k - 1] + np.sqrt(1 - shape.correlation**2) * noise[:, k]
    lower = rng.normal(size=d) * (np.arange(d) % 2)
    X -= 0.7 * (group / max(shape.groups - 1, 1) - 0.3)[:, None] * np.abs(lower)
    X[:, 0] += 0.4 * second
    weights = rng.normal(size=d)
    weights[1::2] = np.abs(weights[1::2])
    of_group = np.tile(weights, (shape.groups, 1))
    if shape.own:
        of_group += shape.own * rng.normal(size=of_group.shape)
    linear = _unit(np.einsum("ij,ij->i", X, of_group[group]))
    bent = _unit(X[:, 0] * X[:, 1] + np.abs(X[:, d - 1]))
    score = _unit(np.sqrt(1 - shape.curved) * linear + np.sqrt(shape.curved) * bent)
    odds = shape.strength * score
    shift = _shift(odds, shape.positive)
    y = (rng.random(n) < expit(odds + shift)).astype(int)
    if shape.units:
        X = np.sign(X) * np.expm1(np.abs(X)) * np.geomspace(1e-4, 1e4, d)
    names = pd.DataFrame({"group": group.astype(str), "second": second.astype(str)})
    return _split(X, y, names, shape.n, np.arange(n), seed)


def drawn(seed: int) -> Shape:
    """A shape drawn at random."""
    rng = np.random.default_rng([4, seed])
    n = int(np.exp(rng.uniform(np.log(200), np.log(20_000))))
    return Shape(
        n=n,
        d=int(np.exp(rng.uniform(np.log(3), np.log(min(n / 4, 200))))),
        positive=rng.uniform(0.08, 0.5),
        strength=rng.uniform(0.7, 2.5),
        groups=rng.choice([2, 3, 4]),
        correlation=rng.choice([0.0, 0.5, 0.95]),
        curved=rng.choice([0.0, 0.3, 0.6]),
        own=rng.choice([0.0, 1.0]),
    )


def german(seed: int) -> Split:
    """German credit, good customers positive, by sex, and by sex and youth."""
    table = pd.read_csv(Path(os.environ["SKBANDIT_DATA"]) / GERMAN)
    names = pd.DataFrame({"group": table["sex"], "second": table["age"]})
    features = table.drop(columns=["credit", "sex", "sex-age", "age"])
    return _encoded(features, (table["credit"] == 1).to_numpy().astype(int), names, 700, seed)


def adult(seed: int) -> Split:
    """Adult, 10,000 rows trained, by sex, and by sex and whether white."""
    bunch = load_adult(subset="all")
    table = bunch.data
    race = np.where(table["race"].astype(str) == "White", "white", "other")
    names = pd.DataFrame({"group": table["sex"].astype(str).to_numpy(), "second": race})
    kept = ["age", "workclass", "education_num", "marital_status", "occupation", "relationship"]
    features = table[[*kept, "hours_per_week"]].reset_index(drop=True)
    features["age2"] = features["age"].astype(float) ** 2
    for column in ("capital_gain", "capital_loss"):
        features[column] = np.log1p(table[column].to_numpy(dtype=float))
    y = bunch.target.astype(str).str.startswith(">50").to_numpy().astype(int)
    return _encoded(features, y, names, 10_000, seed)


def _encoded(
    features: pd.DataFrame, y: np.ndarray, names: pd.DataFrame, n_train: int, seed: int
) -> Split:
    """Split rows by label and both columns; numbers standardized, categories one-hot."""
    strata = names["group"] + names["second"] + y.astype(str)
    train, new = train_test_split(
        np.arange(len(y)), train_size=n_train, random_state=seed, stratify=strata
    )
    words = OneHotEncoder(
        drop="if_binary", handle_unknown="ignore", sparse_output=False, min_frequency=10
    )
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (words, make_column_selector(dtype_exclude=np.number)),
    ).fit(features.iloc[train])
    order = np.concatenate([train, new])
    X = np.asarray(encode.transform(features.iloc[order]), dtype=float)
    return _split(X, y[order], names.iloc[order], n_train, order, seed)


def _split(
    X: np.ndarray, y: np.ndarray, names: pd.DataFrame, n_train: int, order: np.ndarray, seed: int
) -> Split:
    """The first rows to train on; yesterday's model has seen half the columns of a third."""
    names = names.reset_index(drop=True)
    seen = np.flatnonzero(np.random.default_rng([seed, 1]).random(n_train) < 1 / 3)
    half = StandardScaler().fit(X[seen, ::2]).transform(X[:, ::2])
    deployed = LogisticRegression(max_iter=1000).fit(half[seen], y[seen]).predict(half)
    attributes = pd.DataFrame(
        {
            "group": names["group"],
            "both": names["group"] + " " + names["second"],
            "deployed": deployed,
        }
    )
    first, second = slice(0, n_train), slice(n_train, None)
    return Split(
        *(
            Part(X[rows], y[rows], attributes.iloc[rows].reset_index(drop=True))
            for rows in (first, second)
        )
    )


def _unit(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean()) / scores.std()


def _shift(odds: np.ndarray, positive: float) -> float:
    """What to add to log odds for a share of positives."""
    return float(brentq(lambda shift: expit(odds + shift).mean() - positive, -20.0, 20.0))


def _maker(shape: Shape) -> Callable[[int], Split]:
    return lambda seed: made(shape, seed)


SETS: dict[str, Callable[[int], Split]] = {
    "German credit": german,
    "Adult": adult,
    **{name: _maker(shape) for name, shape in SHAPES.items()},
}
"""A split of each data set by seed."""


def absent(name: str) -> str:
    """What to do before a data set can be read; empty if nothing."""
    folder: Any = os.environ.get("SKBANDIT_DATA")
    if name != "German credit" or (folder and (Path(folder) / GERMAN).exists()):
        return ""
    return f"not there: {GERMAN} in the folder named by SKBANDIT_DATA"
