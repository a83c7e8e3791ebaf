"""Rows are matched by position; the same row labels in another order raise a warning."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skbandit import ConstrainedRampClassifier
from skbandit.rates import positive_rate, recall
from skbandit.utils._validation import warn_if_reordered
from tests.worlds import warns

ORDER = [2, 0, 1, 3]
Y = pd.Series([0, 1, 1, 0])
GROUPS = pd.DataFrame({"g": list("aabb")})
SAME_LABELS = "same row labels in different orders .*reindex.*reset_index"


@pytest.mark.parametrize(
    "passed",
    [
        {"attributes": GROUPS.iloc[ORDER]},
        {"attributes": {"g": GROUPS["g"].iloc[ORDER]}},
        {"sample_weight": pd.Series(np.ones(4)).iloc[ORDER], "attributes": GROUPS},
        {"y_pred": Y.iloc[ORDER]},
    ],
)
def test_metrics_warn_of_rows_in_another_order(passed):
    predicted = passed.pop("y_pred", Y.to_numpy())
    with pytest.warns(UserWarning, match=SAME_LABELS) as caught:
        positive_rate().value(Y, predicted, **passed)
    assert len(caught) == 1
    position = {0: 2, 1: 0}  # of rows 0 and 1 of the shuffled objects
    assert f"row 0 is labeled {position[0]} and 0" in str(caught[0].message)


@pytest.mark.parametrize(
    "index", [[0, 1, 2, 3], [5, 6, 7, 8], [0, 1, 2, 9], list("wxyz"), [0, 0, 1, 1]]
)
def test_other_labels_or_the_same_order_are_no_warning(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        positive_rate().value(Y, Y.to_numpy(), GROUPS.set_axis(index))
        warn_if_reordered({"y": Y, "X": np.zeros((4, 1)), "attributes": None})


def test_reindexed_rows_are_counted_in_order():
    shuffled = GROUPS.iloc[ORDER]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rate = recall({"g": "a"})
        assert rate.value(Y, [1, 1, 0, 0], shuffled.reindex(Y.index)) == 1.0
        assert rate.value(Y, [1, 1, 0, 0], shuffled.reset_index(drop=True)) == 0.5


@pytest.mark.parametrize("name", ["attributes", "y", "sample_weight"])
def test_training_warns_of_rows_in_another_order(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = (X["a"] > 0).astype(int)
    passed = {
        "y": y,
        "attributes": pd.DataFrame({"g": rng.choice(["a", "b"], 60)}),
        "sample_weight": pd.Series(np.ones(60)),
    }
    passed[name] = passed[name].iloc[::-1]
    clf = ConstrainedRampClassifier(constraints=recall() >= 0.1)
    warns(f"{name} and .*{SAME_LABELS}", clf.fit, X, **passed)
    warns(SAME_LABELS, clf.constraint_report, X, **passed)
