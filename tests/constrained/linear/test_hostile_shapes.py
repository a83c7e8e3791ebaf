"""The classifier's default on data of awkward shapes: it fits without a warning, or says why not.

Warnings are errors in these tests.
"""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from sklearn.base import clone

from skbandit import ConstrainedRampClassifier
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import difference, each, false_positive_rate, positive_rate, recall
from tests.tiers import first


def people(n, d, seed=0):
    """Columns, labels of which two in five are positive, and a group that the last one tells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * rng.logistic(size=n)
    y = (score > np.quantile(score, 0.6)).astype(int)
    group = np.where(X[:, -1] + rng.normal(size=n) > 0, "a", "b")
    return X, y, pd.DataFrame({"group": group})


X, Y, TABLE = people(200, 3)
GOALS = {
    "recall": (false_positive_rate(), recall() >= 0.6),
    "parity": (None, difference(positive_rate, by="group") <= 0.3),
}


def columns_of_one_value(value):
    rows = X.copy()
    rows[:, 1] = value
    return rows, Y, TABLE


def one_row_many_times():
    rows, y, table = people(100, 3)
    return np.tile(rows, (3, 1)), np.tile(y, 3), pd.concat([table] * 3, ignore_index=True)


def few_values():
    return np.repeat(X[:3], 100, axis=0), np.tile([0, 1, 1], 100), people(300, 1)[2]


def few_positives():
    y = np.zeros(200, dtype=int)
    y[[3, 90, 150]] = 1
    return X, y, TABLE


def outlier():
    rows = X.copy()
    rows[0] = 1e6
    return rows, Y, TABLE


SHAPES = {
    "many columns": lambda: people(150, 400),
    "one column": lambda: people(200, 1),
    "two columns": lambda: people(200, 2),
    "a constant column": lambda: columns_of_one_value(5.0),
    "a column of zeros": lambda: columns_of_one_value(0.0),
    "nothing but constants": lambda: (np.full((200, 3), 3.3), Y, TABLE),
    "20 rows": lambda: people(20, 3),
    "8 rows": lambda: people(8, 2),
    "sparse, 1000 columns": lambda: (
        csr_array(random_sparse(200, 1000, 0.02, random_state=0)),
        *people(200, 3)[1:],
    ),
    "sparse without entries": lambda: (csr_array((200, 5)), Y, TABLE),
    "rows many times": one_row_many_times,
    "three different rows": few_values,
    "columns many times": lambda: (np.hstack([X, X, X]), Y, TABLE),
    "separable": lambda: (np.column_stack([2.0 * Y - 1, X]), Y, TABLE),
    "three positives": few_positives,
    "units apart": lambda: (X * [1e-8, 1.0, 1e8], Y, TABLE),
    "huge": lambda: (X * 1e150, Y, TABLE),
    "tiny": lambda: (X * 1e-150, Y, TABLE),
    "far from zero": lambda: (X + 1e8, Y, TABLE),
    "an outlier": outlier,
    "single precision": lambda: (X.astype(np.float32), Y, TABLE),
    "integers": lambda: ((3 * X).astype(int), Y, TABLE),
}


OFTEN = [
    "many columns", "a constant column", "20 rows", "sparse, 1000 columns", "rows many times",
    "separable", "three positives", "units apart",
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "goal"),
    first(
        len(OFTEN),
        [(shape, "parity") for shape in sorted(SHAPES, key=lambda shape: shape not in OFTEN)]
        + [(shape, "recall") for shape in OFTEN],
    ),
)
def test_a_shape(shape, goal):
    rows, y, table = SHAPES[shape]()
    groups = np.arange(300) if shape == "rows many times" else None
    objective, constraints = GOALS[goal]
    clf = ConstrainedRampClassifier(objective, constraints)
    told = pytest.warns(UserWarning, match=r"row 0: .* as far from the median")
    with told if shape == "an outlier" else nullcontext():
        clf.fit(rows, y, attributes=table, groups=groups)
    assert clf.feasible_
    assert np.isfinite(clf.coef_).all() and np.isfinite(clf.intercept_).all()
    assert clf.constraint_report_["satisfied"].all()
    assert np.isfinite(clf.constraint_report_["value"]).all()
    positive = clf.predict(rows)
    if goal == "recall":
        assert positive[y == 1].mean() == pytest.approx(clf.constraint_report_["value"][0])


def weights(kind):
    rng = np.random.default_rng(1)
    return {
        "zeros": np.where(np.arange(200) % 3, 1.0, 0.0),
        "long tails": rng.pareto(1.0, 200) + 1e-3,
        "tiny": np.full(200, 1e-12),
        "huge": np.full(200, 1e12),
    }[kind]


@pytest.mark.parametrize("kind", first(2, ["zeros", "long tails", "tiny", "huge"]))
def test_weights(kind):
    weight = weights(kind)
    clf = ConstrainedRampClassifier(*GOALS["recall"]).fit(X, Y, sample_weight=weight)
    found = clf.predict(X)[Y == 1] @ weight[Y == 1] / weight[Y == 1].sum()
    assert clf.constraint_report_["value"][0] == pytest.approx(found)
    assert clf.feasible_


@pytest.mark.thorough
def test_a_group_of_one_row():
    """The bound holds; a level does not, and the error says what these rows support."""
    table = pd.DataFrame({"group": np.where(np.arange(200) < 1, "b", "a")})
    goal = difference(positive_rate, by="group") <= 0.3
    clf = ConstrainedRampClassifier(constraints=goal)
    clf.fit(X, Y, attributes=table)
    assert clf.feasible_
    with pytest.raises(InfeasibleConstraintsError, match="These rows support a level of") as caught:
        clone(clf).set_params(confidence_level=0.9).fit(X, Y, attributes=table)
    assert set(caught.value.closest_.predict(X)) <= {0, 1}


def test_a_group_without_negatives_is_skipped_and_said_to_be():
    table = pd.DataFrame({"group": np.where(np.arange(200) == np.flatnonzero(Y)[0], "b", "a")})
    clf = ConstrainedRampClassifier(constraints=each(false_positive_rate, by="group") <= 0.5)
    with pytest.warns(UserWarning, match=r"\[b\] is not measured"):
        clf.fit(X, Y, attributes=table)
    assert clf.feasible_ and clf.constraint_report_["satisfied"][0]
