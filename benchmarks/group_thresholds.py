"""A threshold per group compared with one for all and fairlearn's, on held-out rows.

python -m benchmarks.group_thresholds [--quick]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._table import Column, print_table
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import load_adult
from skbandit.rates import Constraint, difference, false_positive_rate, positive_rate, recall

SEEDS, N_TRAIN = (100, 101), 10_000
GOALS: dict[str, tuple[list[Constraint], str]] = {
    "positive rates": ([difference(positive_rate, by="sex") <= 0.05], "demographic_parity"),
    "recalls": ([difference(recall, by="sex") <= 0.05], "true_positive_rate_parity"),
    "both error rates": (
        [difference(rate, by="sex") <= 0.05 for rate in (recall, false_positive_rate)],
        "equalized_odds",
    ),
}
METHODS = ("one threshold", "one per sex", "fairlearn")
COLUMNS = (
    Column("goal", 17),
    Column("method", 14),
    Column("error", 7, ".4f"),
    Column("missed", 7, ".4f"),
    Column("cpu s", 7, ".2f"),
)

Split = tuple[pd.DataFrame, np.ndarray, pd.DataFrame]
Answers = Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]


def split(seed: int, n_train: int) -> tuple[Split, Split]:
    """Rows to learn from, and new ones; the sex is no feature."""
    X, y = load_adult(subset="all", return_X_y=True)
    label, sex = (y == y.max()).to_numpy().astype(int), X[["sex"]].astype(str)
    features = X.drop(columns=["sex", "relationship", "fnlwgt"], errors="ignore")
    rows = train_test_split(
        np.arange(len(X)),
        train_size=n_train,
        random_state=seed,
        stratify=sex["sex"] + y.astype(str),
    )
    first, second = (
        (features.iloc[some], label[some], sex.iloc[some]) for some in map(np.sort, rows)
    )
    return first, second


def base() -> Any:
    """Logistic regression of standardized numbers and categories."""
    numbers = StandardScaler(), make_column_selector(dtype_include=np.number)
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=10, sparse_output=False)
    others = words, make_column_selector(dtype_exclude=np.number)
    return make_pipeline(
        make_column_transformer(numbers, others), LogisticRegression(max_iter=1000)
    )


def fitted(method: str, goal: str, train: Split) -> Answers:
    """The probability of a positive prediction, as a function of rows and their sex."""
    (X, y, sex), (constraints, equal) = train, GOALS[goal]
    if method == "fairlearn":
        from fairlearn.postprocessing import ThresholdOptimizer

        rival = ThresholdOptimizer(
            estimator=base(), constraints=equal, predict_method="predict_proba"
        ).fit(X, y, sensitive_features=sex["sex"])
        return lambda X, sex: rival._pmf_predict(X, sensitive_features=sex["sex"])[:, 1]
    by = "sex" if method == "one per sex" else None
    clf = ConstrainedThreshold(base(), None, constraints, by=by, confidence_level=0.5)
    clf.fit(X, y, attributes=sex)
    return lambda X, sex: clf.predict(X, attributes=sex).astype(float)


def judged(answers: np.ndarray, y: np.ndarray, sex: np.ndarray, goal: str) -> tuple[float, float]:
    """Error, and the largest difference between the sexes beyond the bound; negative if inside."""
    kinds = {
        "positive rates": [y >= 0],
        "recalls": [y == 1],
        "both error rates": [y == 1, y == 0],
    }[goal]
    apart = [
        np.ptp([answers[rows & (sex == one)].mean() for one in np.unique(sex)]) for rows in kinds
    ]
    return float(np.mean(np.where(y == 1, 1 - answers, answers))), max(apart) - 0.05


def rows(seeds: tuple[int, ...], n_train: int) -> Iterator[dict[str, Any]]:
    """Means over the seeds."""
    splits = [split(seed, n_train) for seed in seeds]
    for goal in GOALS:
        for method in METHODS:
            if method == "fairlearn" and find_spec("fairlearn") is None:
                yield {"goal": goal, "method": method, "note": "not installed"}
                continue
            found = []
            for train, (X, y, sex) in splits:
                started = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    answers = fitted(method, goal, train)(X, sex)
                cpu = time.process_time() - started
                found.append((*judged(answers, y, sex["sex"].to_numpy(), goal), cpu))
            error, missed, cpu = np.mean(found, axis=0)
            key = {"goal": goal, "method": method}
            yield key | {"error": error, "missed": missed, "cpu s": cpu}


def main() -> None:
    """Print the table."""
    name = "python -m benchmarks.group_thresholds"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split, 2000 rows")
    quick = parser.parse_args().quick
    title = "Goals between the sexes on Adult, on new rows"
    print_table(title, COLUMNS, rows(SEEDS[:1] if quick else SEEDS, 2000 if quick else N_TRAIN))


if __name__ == "__main__":
    main()
