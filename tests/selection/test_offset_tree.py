"""The filter tree on offset costs against the offset tree as published."""

import numpy as np
import pytest
from sklearn.base import clone

from skbandit import SetSelectClassifier
from skbandit.selection import logged_costs
from tests.selection.tabular import LEARNER


def offset_tree(X, action, reward, p, n_ads, contexts):
    """Beygelzimer & Langford (2009), for rewards in [0, 1]: the choice in each context.

    At a node, events that show one of the two ads are examples with importance |r - 1/2| / p for
    the ad shown, if r > 1/2, and else for the other.
    """
    rows = np.arange(len(X))
    seen, wanted = (
        [np.full(len(X), a) for a in range(n_ads)],
        [np.full(len(contexts), a) for a in range(n_ads)],
    )
    while len(seen) > 1:
        above_seen, above_wanted = [], []
        for k in range(0, len(seen) - 1, 2):
            left, right = seen[k], seen[k + 1]
            mine = rows[((action == left) | (action == right)) & (reward != 0.5)]
            left_better = (action == left)[mine] == (reward[mine] > 0.5)
            node = clone(LEARNER).fit(
                X[mine], left_better.astype(int), sample_weight=np.abs(reward[mine] - 0.5) / p[mine]
            )
            above_seen.append(np.where(node.predict(X) == 1, left, right))
            above_wanted.append(np.where(node.predict(contexts) == 1, wanted[k], wanted[k + 1]))
        odd = len(seen) % 2
        seen, wanted = above_seen + seen[-1:] * odd, above_wanted + wanted[-1:] * odd
    return wanted[0]


@pytest.mark.parametrize("n_ads", [2, 3, 5, 8])
def test_is_the_offset_tree(n_ads):
    rng = np.random.default_rng(n_ads)
    n, contexts = 4000, np.arange(10.0)[:, None]
    X = rng.integers(10, size=(n, 1)).astype(float)
    policy = rng.dirichlet(np.ones(n_ads), size=10) * 0.5 + 0.5 / n_ads
    of_row = policy[X[:, 0].astype(int)]
    action = (of_row.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = of_row[np.arange(n), action]
    reward = rng.random(n)
    reward[:2] = 0.0, 1.0  # so that the midrange is 1/2
    expected = offset_tree(X, action, reward, p, n_ads, contexts)
    costs = logged_costs(action, -reward, p, method="offset")
    found = SetSelectClassifier(LEARNER, reduction="filter_tree").fit(X, costs).predict(contexts)
    assert (found[:, 0] == expected).all()
