"""Availability of selectors: labels as for policies; catalogs that change."""

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["shoe", "hat", "coat", "sock"])
MASK = RNG.random((N, 4)) < 0.6
MASK[:, :2] |= ~MASK.any(axis=1)[:, None]
LABELS = [tuple(Y.columns[row]) for row in MASK]

SELECTORS = [
    RegressionSetSelector(),
    PopularitySetSelector(),
    SetSelectClassifier(cross_fit=None),
    SetSelectClassifier(reduction="filter_tree", random_state=0),
]


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_labels_per_row_mean_the_table(selector):
    expected = selector.fit(X, Y, available=MASK).predict(X, available=MASK)
    found = selector.fit(X, Y, available=LABELS).predict(X, available=LABELS)
    np.testing.assert_array_equal(found, expected)
    assert selector.score(X, Y, available=LABELS) == selector.score(X, Y, available=MASK)


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_one_list_for_all_rows(selector):
    selector.fit(X, Y)
    only = pd.DataFrame({name: [name in ("hat", "sock")] * N for name in Y})
    expected = selector.predict(X, available=only)
    np.testing.assert_array_equal(selector.predict(X, available=["sock", "hat"]), expected)


def test_integer_ads_in_tuples_are_not_booleans():
    selector = PopularitySetSelector(n_select=2).fit(X, [[0.0, 1.0, -1.0]] * N)
    assert selector.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0, 1]] * 4
    assert selector.predict(X[:1], available=[(2, 1)]).tolist() == [[2, 1]]
    # two ads: as booleans, only 1 would be available
    two = PopularitySetSelector().fit(X, [[-1.0, 0.0]] * N)
    assert two.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0]] * 4


def test_what_one_selector_chose_is_available_to_another():
    first = PopularitySetSelector(n_select=3).fit(X, Y).predict(X)
    second = RegressionSetSelector().fit(X, Y).predict(X, available=first)
    assert all(chosen in row for chosen, row in zip(second[:, 0], first, strict=True))


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_a_catalog_that_changed(selector):
    selector.fit(X, Y)
    today = [("hat", "scarf")] * N  # scarf is new; shoe, coat and sock were retired
    with pytest.raises(ValueError, match=r"unknown ads: 'scarf'.*unknown_ads=\"ignore\""):
        selector.predict(X, available=today)
    selector.set_params(unknown_ads="ignore")
    try:
        assert (np.ravel(selector.predict(X, available=today)) == "hat").all()
        table = pd.DataFrame({"hat": [True] * N, "scarf": True})
        assert (np.ravel(selector.predict(X, available=table)) == "hat").all()
        with pytest.raises(ValueError, match="Row 0 has 0 available ads"):
            selector.predict(X, available=["scarf"])
        # in training, too
        both = [(*row, "scarf") for row in LABELS]
        expected = selector.fit(X, Y, available=LABELS).predict(X)
        np.testing.assert_array_equal(selector.fit(X, Y, available=both).predict(X), expected)
    finally:
        selector.set_params(unknown_ads="error")


@pytest.mark.parametrize(
    "available", [["hat", "sock"], [("hat", "sock")] * N, [{"hat", "sock"}] * N]
)
def test_a_policy_reads_the_same_forms(available):
    policy = GLMUCBPolicy(arms=list(Y), random_state=0).fit(
        X, pd.DataFrame({"action": RNG.choice(list(Y), N), "reward": RNG.integers(2, size=N)})
    )
    table = pd.DataFrame({name: [name in ("hat", "sock")] * N for name in Y})
    expected = policy.predict(X, available=table)
    np.testing.assert_array_equal(policy.predict(X, available=available), expected)
