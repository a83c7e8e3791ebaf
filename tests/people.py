"""Two datasets of people with attributes, as several test files declare constraints on them."""

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_classification

from skbandit import ConstrainedRampClassifier

ALL_X, ALL_Y = make_classification(200, 4, n_informative=3, n_redundant=1, random_state=2)
_rng = np.random.default_rng(2)
STORED = (ALL_X @ [1, 0.2, -0.3, 0.1] + 0.3 * _rng.normal(size=200) > 0).astype(int)
FRAME = pd.DataFrame(
    {
        "sex": _rng.choice(["F", "M"], 200),
        "age": _rng.integers(18, 80, 200),
        "deployed": STORED,
        "egregious": (_rng.uniform(size=200) < 0.15) & (np.abs(ALL_X[:, 0]) > 0.8),
        "amount": _rng.exponential(size=200),
    },
    index=_rng.permutation(200) + 1000,
)
X, Y, ATTRIBUTES = ALL_X[:120], ALL_Y[:120], FRAME[:120]
X_EXTRA, Y_EXTRA, ATTRIBUTES_EXTRA = ALL_X[120:], ALL_Y[120:], FRAME[120:]
EXTRA = {"X_extra": X_EXTRA, "y_extra": Y_EXTRA, "attributes_extra": ATTRIBUTES_EXTRA}
PEOPLE, PEOPLE_EXTRA = (
    pd.DataFrame(rows, columns=list("abcd"), index=table.index).join(table[["sex", "age"]])
    for rows, table in ((X, ATTRIBUTES), (X_EXTRA, ATTRIBUTES_EXTRA))
)


def fit(
    constraints,
    *,
    rows=X,
    y=Y,
    attributes=ATTRIBUTES,
    objective=None,
    clf=None,
    pos_label=None,
    **metadata,
):
    clf = ConstrainedRampClassifier() if clf is None else clone(clf)
    clf.set_params(objective=objective, constraints=constraints, pos_label=pos_label)
    return clf.fit(rows, y, attributes=attributes, **metadata)


def assert_same(one, other, **tolerance):
    np.testing.assert_allclose(one.coef_, other.coef_, **tolerance)
    np.testing.assert_allclose(one.intercept_, other.intercept_, **tolerance)
    pd.testing.assert_frame_equal(one.constraint_report_, other.constraint_report_, **tolerance)
