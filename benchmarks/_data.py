"""The data of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from skbandit.datasets import load_a9a


@dataclass(frozen=True)
class Sample:
    """Rows, labels 0 and 1, and each row's group: 0, 1, ... (on Adult, 1 is a man)."""

    X: Any
    y: np.ndarray
    group: np.ndarray

    def head(self, n: int) -> Sample:
        """The first n rows."""
        return Sample(self.X[:n], self.y[:n], self.group[:n])


def adult(subset: str, n: int | None = None) -> Sample:
    """a9a, or its first n rows."""
    bunch = load_a9a(subset=subset)
    return Sample(bunch.data, (bunch.target > 0).astype(int), bunch.male.astype(int)).head(n)


def census(n: int, *, d: int = 126, groups: int = 2, seed: int = 0) -> Sample:
    """Sparse rows like Adult's: 14 categories (fewer if d < 28), one-hot, d columns in all.

    Two in five are positive. Groups are equally large. Part of what makes a row positive also makes
    its group a higher one, so that a bound on the ratio of groups' rates binds, and is met by
    relying on the other part.
    """
    rng = np.random.default_rng(seed)
    variables = min(14, d // 2)
    share = np.geomspace(1, 20, variables)
    levels = 2 + np.floor((d - 2 * variables) * share / share.sum()).astype(int)
    levels[-1] += d - levels.sum()
    first = np.append(0, np.cumsum(levels)[:-1])
    columns = np.empty((n, variables), np.int32)
    for k, level in enumerate(levels):
        frequency = 1 / np.arange(1, level + 1) ** 1.2
        columns[:, k] = first[k] + rng.choice(level, n, p=frequency / frequency.sum())
    ends = np.arange(0, variables * n + 1, variables, dtype=np.int32)
    X = csr_matrix((np.ones(variables * n), columns.ravel(), ends), shape=(n, d))

    weights, odd = rng.normal(size=d), np.repeat(np.arange(variables) % 2 == 1, levels)
    own, shared = (X @ np.where(some, weights, 0) for some in (~odd, odd))
    shared = (shared - shared.mean()) / shared.std()
    score = (own - own.mean()) / own.std() + shared
    y = (rng.random(n) < 1 / (1 + np.exp(3 * (np.quantile(score, 0.6) - score)))).astype(int)
    belongs = shared + 2 * rng.normal(size=n)
    group = np.searchsorted(np.quantile(belongs, np.arange(1, groups) / groups), belongs)
    return Sample(X, y, group)


@dataclass(frozen=True)
class Deployment:
    """The three datasets of Goh et al. (2016), section 4.2.

    Parameters
    ----------
    X, y : sparse rows and labels 0 and 1
        D1 above D2.
    second : ndarray of bool
        Which of them are D2.
    X_extra : sparse rows
        D3, unlabeled.
    deployed, deployed_extra : ndarray
        Answers of the model of yesterday.
    """

    X: Any
    y: np.ndarray
    second: np.ndarray
    X_extra: Any
    deployed: np.ndarray
    deployed_extra: np.ndarray


def deployment(sizes: tuple[int, int, int], d: int, seed: int = 0) -> Deployment:
    """Documents of about 30 words, the deployed model one trained on a fifth of D1."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = _documents(n, d, 30, rng)
    score = X @ (3 * rng.normal(size=d) * (rng.random(d) < 0.2))
    y = (score - np.quantile(score, 0.7) + 0.35 * rng.logistic(size=n) > 0).astype(int)
    yesterday = slice(0, sizes[0], 5)
    deployed = LinearSVC().fit(X[yesterday], y[yesterday]).predict(X)
    labeled = sizes[0] + sizes[1]
    second = np.arange(labeled) >= sizes[0]
    return Deployment(
        X[:labeled], y[:labeled], second, X[labeled:], deployed[:labeled], deployed[labeled:]
    )


def _documents(n: int, d: int, words: float, rng: np.random.Generator) -> csr_matrix:
    """Words by Zipf's law, weighted by tf-idf, rows of length 1."""
    from sklearn.feature_extraction.text import TfidfTransformer

    frequency = 1 / np.arange(1, d + 1)
    lengths = np.maximum(rng.poisson(1.15 * words, n), 3)  # some words are drawn twice
    drawn = rng.random(lengths.sum())
    column = np.searchsorted(np.cumsum(frequency / frequency.sum()), drawn).clip(max=d - 1)
    ends = np.append(0, np.cumsum(lengths)).astype(np.int32)
    counts = csr_matrix((np.ones(len(column)), column.astype(np.int32), ends), shape=(n, d))
    counts.sum_duplicates()
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)
