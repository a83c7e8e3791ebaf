"""One small adapter a rival: what ads cost is learned, and of new rows the best few are chosen.

An adapter is three functions. `read` turns a sample into what the library takes, which is not
timed; `fit` learns from that; `choose` takes what `fit` returned and another sample, read, and
returns M columns per row, best first.

Where an ad is not available in a training row its cost is not known: it is left out if the
library can do that, and else replaced by the ad's mean.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import fetch_openml
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector

M = 5

LEAVES, STEPS, RATE = 15, 60, 0.08
"""Boosting, in all libraries alike: their own settings overfit some thousand rows."""

PASSES = 10

GONE = (0.0, 0.3)
"""Shares of ads that are not available."""


@dataclass(frozen=True)
class Choices:
    """Rows to choose for.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    costs, expected : ndarray of shape (n_rows, n_ads)
        What is learned from; and what choices are judged by, which is the same where expected
        costs are not known.
    available : ndarray of bool, (n_rows, n_ads), or None
    """

    X: np.ndarray
    costs: np.ndarray
    expected: np.ndarray
    available: np.ndarray | None = None

    def rows(self, which: Any) -> Choices:
        """Some of the rows."""
        available = None if self.available is None else self.available[which]
        return Choices(self.X[which], self.costs[which], self.expected[which], available)

    def without(self, gone: float) -> Choices:
        """The same with that share of ads not available, another one in each row; M are left."""
        lots = np.random.default_rng(0).random(self.costs.shape)
        spared = lots.argsort(axis=1).argsort(axis=1) >= lots.shape[1] - M
        return replace(self, available=(lots >= gone) | spared) if gone else self

    def split(self, seed: int) -> tuple[Choices, Choices]:
        """Rows to learn from, and three in ten to choose for."""
        train, test = train_test_split(np.arange(len(self.X)), test_size=0.3, random_state=seed)
        return self.rows(train), self.rows(test)

    @property
    def mask(self) -> np.ndarray:
        """Which ads are available."""
        return np.ones(self.costs.shape, bool) if self.available is None else self.available

    @property
    def complete(self) -> np.ndarray:
        """Costs, with an ad's mean where it is not available."""
        mean = self.costs.mean(axis=0, where=self.mask)
        return np.where(self.mask, self.costs, mean)

    def share(self, chosen: np.ndarray) -> float:
        """The value of chosen sets relative to that of the best."""
        best = np.sort(np.where(self.mask, self.expected, np.inf), axis=1)[:, :M]
        return np.take_along_axis(self.expected, chosen, axis=1).sum() / best.sum()


def yeast() -> Choices:
    """Functions of genes, each worth 1 if the gene has it; read from SKBANDIT_DATA, or fetched."""
    if folder := os.environ.get("SKBANDIT_DATA"):
        table = pd.read_csv(Path(folder) / "yeast" / "yeast.csv.gz")
        X, has = table.filter(like="Att"), table.filter(like="Class").astype(bool)
    else:
        X, has = fetch_openml("yeast", version=4, return_X_y=True, as_frame=True)
        has = has.apply(lambda column: column.astype(str).str.upper() == "TRUE")
    costs = -has.to_numpy(float)
    return Choices(X.to_numpy(float), costs, costs)


def made() -> Choices:
    """Clicks with probabilities that are linear but for the logistic link."""
    return Choices(*make_set_selection(4_000, 20, 30, random_state=0))


DATA = {"yeast": yeast, "synthetic": made}


def lowest(costs: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """What one would write: the M lowest of the available ads, in order."""
    if available is not None:
        costs = np.where(available, costs, np.inf)
    found = np.argpartition(costs, M - 1, axis=1)[:, :M]
    order = np.take_along_axis(costs, found, axis=1).argsort(axis=1)
    return np.take_along_axis(found, order, axis=1)


def _as_it_is(sample: Choices) -> Choices:
    return sample


@dataclass(frozen=True)
class SelectionRival:
    """An adapter, and what must be installed for it."""

    fit: Callable[[Any], Any]
    choose: Callable[[Any, Any], np.ndarray]
    read: Callable[[Choices], Any] = _as_it_is
    module: str = "skbandit"
    package: str = "skbandit"

    @property
    def cure(self) -> str:
        """What to do before it can run; empty if nothing."""
        return "" if find_spec(self.module) else f"not installed: pip install {self.package}"


def skbandit(selector: Any) -> SelectionRival:
    """Ours, through the public calls."""
    selector.set_params(n_select=M)

    def fit(sample: Choices) -> Any:
        return clone(selector).fit(sample.X, sample.costs, available=sample.available)

    def choose(model: Any, sample: Choices) -> np.ndarray:
        return model.predict(sample.X, available=sample.available)

    return SelectionRival(fit, choose)


def plain(regressor: Any) -> SelectionRival:
    """Everything that a plain multi-output regressor takes, and argpartition."""

    def fit(sample: Choices) -> Any:
        return clone(regressor).fit(sample.X, sample.complete)

    def choose(model: Any, sample: Choices) -> np.ndarray:
        return lowest(model.predict(sample.X), sample.available)

    return SelectionRival(fit, choose, module="sklearn", package="scikit-learn")


def lightgbm_ranker(objective: str) -> SelectionRival:
    """LightGBM's ranking: a line for each ad available in a row, a query for each row.

    As all ads share the trees, there are more of them.
    """

    def read(sample: Choices) -> tuple[np.ndarray, np.ndarray, Choices]:
        row, ad = np.nonzero(sample.mask)
        return np.column_stack([sample.X[row], ad]), -sample.costs[row, ad], sample

    def fit(table: tuple[np.ndarray, np.ndarray, Choices]) -> Any:
        from lightgbm import LGBMRanker

        lines, clicks, sample = table
        ranker = LGBMRanker(
            objective=objective,
            num_leaves=LEAVES,
            n_estimators=5 * STEPS,
            learning_rate=RATE,
            random_state=0,
            n_jobs=1,
            verbose=-1,
        )
        return ranker.fit(
            lines,
            clicks.astype(int),
            group=sample.mask.sum(axis=1),
            categorical_feature=[lines.shape[1] - 1],
        )

    def choose(model: Any, table: tuple[np.ndarray, np.ndarray, Choices]) -> np.ndarray:
        lines, _, sample = table
        scores = np.full(sample.mask.shape, np.inf)
        scores[sample.mask] = -model.predict(lines)
        return lowest(scores, None)

    return SelectionRival(fit, choose, read, "lightgbm", "lightgbm")


def lightgbm_regression() -> SelectionRival:
    """LightGBM's regression: a model for each ad, of the rows in which it was available."""

    def fit(sample: Choices) -> list[Any]:
        from lightgbm import LGBMRegressor

        model = LGBMRegressor(
            num_leaves=LEAVES, n_estimators=STEPS, learning_rate=RATE, n_jobs=1, verbose=-1
        )
        return [
            clone(model).fit(sample.X[known], costs[known])
            for known, costs in zip(sample.mask.T, sample.costs.T, strict=True)
        ]

    def choose(models: list[Any], sample: Choices) -> np.ndarray:
        costs = np.column_stack([model.predict(sample.X) for model in models])
        return lowest(costs, sample.available)

    return SelectionRival(fit, choose, module="lightgbm", package="lightgbm")


def vowpal_wabbit() -> SelectionRival:
    """Vowpal Wabbit's csoaa_ldf, which gets the available ads only, and ranks them.

    The features of a row cross those that say which ad it is. Files in its format are written
    before; reading them counts, as does reading what it answers.
    """

    def read(sample: Choices) -> Path:
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder)
        with (folder / "rows.txt").open("w") as file:
            for x, costs, available in zip(sample.X, sample.costs, sample.mask, strict=True):
                file.write(_in_words(x, costs, np.flatnonzero(available)))
        return folder

    def fit(folder: Path) -> Path:
        _run(
            f"--csoaa_ldf m --csoaa_rank -q sa --passes {PASSES} --holdout_off "
            f"-d {folder}/rows.txt -k --cache_file {folder}/cache -f {folder}/model"
        )
        return folder / "model"

    def choose(model: Path, folder: Path) -> np.ndarray:
        _run(f"-t -i {model} -d {folder}/rows.txt -p {folder}/answers.txt")
        ranked = (folder / "answers.txt").read_text().split()
        return np.array([_labels(line)[:M] for line in ranked])

    return SelectionRival(fit, choose, read, "vowpalwabbit", "vowpalwabbit")


def _run(options: str) -> None:
    from vowpalwabbit import Workspace

    workspace = Workspace(f"{options} --quiet")
    workspace.run_parser()
    workspace.finish()


def _in_words(x: np.ndarray, costs: np.ndarray, ads: np.ndarray) -> str:
    """A row in the format of Vowpal Wabbit; its labels start at 1."""
    shared = "shared |s " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(x))
    lines = [f"{ad + 1}:{costs[ad]:.6g} |a {ad}" for ad in ads]
    return "\n".join([shared, *lines, "", ""])


def _labels(answer: str) -> list[int]:
    """The ads of an answer "2:-0.4,3:0.1,...", best first."""
    return [int(pair.partition(":")[0]) - 1 for pair in answer.split(",")]


class BothClasses(LogisticRegression):
    """Logistic regression that learns from rows of one class, too.

    So it is where an ad is never better than another, which costsensitive leaves to its learner.
    """

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> BothClasses:
        """Fit with a row of each class added, of next to no weight."""
        X = np.vstack([X, np.zeros((2, X.shape[1]))])
        return super().fit(X, np.append(y, [0, 1]), np.append(sample_weight, [1e-6, 1e-6]))


def costsensitive_pairs() -> SelectionRival:
    """costsensitive's WeightedAllPairs; ads are ranked by their probabilities to win, summed.

    Not by the number of wins, which leaves many ties, and finds no more.
    """

    def fit(sample: Choices) -> Any:
        from costsensitive import WeightedAllPairs

        model = WeightedAllPairs(BothClasses(max_iter=1000), njobs=1)
        return model.fit(sample.X, sample.complete)

    def choose(model: Any, sample: Choices) -> np.ndarray:
        return lowest(-model.decision_function(sample.X, "goodness"), sample.available)

    return SelectionRival(fit, choose, module="costsensitive", package="costsensitive")


def costsensitive_regression() -> SelectionRival:
    """costsensitive's RegressionOneVsRest."""

    def fit(sample: Choices) -> Any:
        from costsensitive import RegressionOneVsRest

        return RegressionOneVsRest(Ridge(), njobs=1).fit(sample.X, sample.complete)

    def choose(model: Any, sample: Choices) -> np.ndarray:
        return lowest(model.decision_function(sample.X, apply_softmax=False), sample.available)

    return SelectionRival(fit, choose, module="costsensitive", package="costsensitive")


UNIT = "MultiOutputRegressor(Ridge), argpartition"

RIVALS = {
    UNIT: plain(MultiOutputRegressor(Ridge())),
    "LightGBM lambdarank": lightgbm_ranker("lambdarank"),
    "LightGBM rank_xendcg": lightgbm_ranker("rank_xendcg"),
    "LightGBM regression per ad": lightgbm_regression(),
    "VW csoaa_ldf": vowpal_wabbit(),
    "costsensitive WeightedAllPairs": costsensitive_pairs(),
    "costsensitive RegressionOneVsRest": costsensitive_regression(),
}

_BOOSTING = HistGradientBoostingRegressor(
    max_leaf_nodes=LEAVES, max_iter=STEPS, learning_rate=RATE, early_stopping=False, random_state=0
)
_POST: dict[str, Any] = {"method": "published", "random_state": 0}

OURS = {
    "popularity": skbandit(PopularitySetSelector()),
    "regression, Ridge": skbandit(RegressionSetSelector(Ridge())),
    "regression, HistGradientBoosting": skbandit(RegressionSetSelector(_BOOSTING)),
    "one vs rest": skbandit(SetSelectClassifier(reduction="one_vs_rest")),
    "all pairs": skbandit(SetSelectClassifier(reduction="weighted_all_pairs")),
    "filter tree, masked rounds": skbandit(
        SetSelectClassifier(reduction="filter_tree", random_state=0)
    ),
    "filter tree, as published": skbandit(SetSelectClassifier(**_POST)),
    "Ridge, as published": skbandit(SetSelectClassifier(reduction="regression", **_POST)),
}

ALL = RIVALS | OURS
