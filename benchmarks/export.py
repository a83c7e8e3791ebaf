"""What `to_onnx` makes of learners on kinds of rows: an equal graph, or a refusal.

    python -m benchmarks.export [--rows 10000]

Each learner is fitted to 3,000 rows of each kind, and its graph is verified on 10,000 others, of
which `check` counts the decisions that differ. "-" is a learner that the rows do not fit.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skbandit import ConstrainedThreshold
from skbandit.export import check, to_onnx
from skbandit.rates import each, error_rate, recall

FITTED = 3000

LEARNERS: dict[str, Any] = {
    "logistic regression": LogisticRegression(),
    "scaler, logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "SGD, hinge": SGDClassifier(random_state=0),
    "linear support vectors": LinearSVC(),
    "support vectors": SVC(),
    "linear discriminant": LinearDiscriminantAnalysis(),
    "naive Bayes": GaussianNB(),
    "nearest neighbors": KNeighborsClassifier(),
    "neural network": MLPClassifier((8,), max_iter=60, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(20, max_depth=8, random_state=0),
    "extra trees": ExtraTreesClassifier(20, max_depth=8, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
}


def draw(n: int, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Rows of each kind, and labels."""
    rng = np.random.default_rng(seed)
    X, missing = rng.normal(size=(n, 4)), rng.random(n) < 0.2
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["n"] = rng.integers(0, 9, n)
    frame["flag"] = rng.random(n) < 0.4
    job = rng.choice(["clerk", "nurse", "smith"], n)
    score = X[:, 1] + 0.2 * frame["n"] + (job == "nurse") + 1.5 * missing + rng.logistic(size=n)
    holes = np.where(missing[:, None] & (np.arange(4) == 0), np.nan, X)
    kinds = {
        "floats": X,
        "floats, missing": holes,
        "columns of numbers": frame,
        "and text": frame[["a", "b", "n"]].assign(job=job),
        "text, missing": frame[["a", "b", "n"]].assign(job=np.where(missing, None, job)),
        "three classes": X,
    }
    return kinds, np.asarray(score)


def behind(kind: str, learner: Any) -> Any:
    """Return the learner, behind an encoder of text."""
    if "text" not in kind:
        return learner
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    text = make_column_selector(dtype_exclude=[np.number, bool])
    return make_pipeline(make_column_transformer((encoder, text), remainder="passthrough"), learner)


def outcome(kind: str, learner: Any, n: int) -> str:
    """Return "equal" with the number of rows that differ by rounding, "refused", or "-"."""
    (kinds, score), (others, _) = draw(FITTED, 0), draw(n, 1)
    y = np.where(score > np.median(score), "yes", "no")
    goal = recall(of="yes") >= 0.8
    if kind == "three classes":
        y = np.array(["a", "b", "c"])[np.digitize(score, np.quantile(score, [0.3, 0.7]))]
        goal = each(recall, of="classes") >= 0.3
    rule = ConstrainedThreshold(behind(kind, learner), error_rate(), goal, cv=2, random_state=0)
    try:
        rule.fit(kinds[kind], y)
    except ValueError:  # such as missing values that it refuses
        return "-"
    try:
        graph = to_onnx(rule, others[kind])
    except ValueError as error:
        return f"refused: {str(error).split(':')[0].split(',')[0]}"
    differ = len(check(graph, rule, others[kind]))
    return f"equal, but {differ}" if differ else "equal"


def main(show: Callable[[str], Any] = print) -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    n = parser.parse_args().rows
    kinds = list(draw(9, 0)[0])
    learners = LEARNERS | {
        "imputer, logistic regression": make_pipeline(SimpleImputer(), LogisticRegression()),
        "imputer with indicators": make_pipeline(
            SimpleImputer(add_indicator=True), LogisticRegression()
        ),
    }
    show(f"| learner | {' | '.join(kinds)} |")
    show(f"|---|{'---|' * len(kinds)}")
    for name, learner in learners.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = [outcome(kind, learner, n) for kind in kinds]
        show(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
