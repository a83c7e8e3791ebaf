"""Rows are matched by position; the same labels in another order are nearly always a mistake."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, RegressionSetSelector, ReplayScorer, SetSelectClassifier
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_value, replay
from skbandit.selection import PopularitySetSelector, logged_costs

ips = partial(off_policy_value, method="ips")
snips = partial(off_policy_value, method="snips")

LOG = make_bandit_log(400, n_arms=2, base_rate=0.4, random_state=0)
X, Y = LOG.X, LOG.y[["action", "reward", "propensity"]]
COSTS = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 3)), columns=list("abc"))
ONES = pd.Series(np.ones(400))
ORDER = np.random.default_rng(1).permutation(400)


def policy():
    return GLMUCBPolicy(random_state=0)


def table(index):
    return pd.DataFrame(0.5, index=index, columns=[0, 1])


MISTAKES = {
    "fit": lambda: policy().fit(X, Y.iloc[ORDER]),
    "partial_fit": lambda: policy().partial_fit(X, Y.iloc[ORDER]),
    "reward": lambda: policy().fit(X, Y["action"], reward=Y["reward"].iloc[ORDER]),
    "weight": lambda: policy().fit(X, Y, sample_weight=ONES.iloc[ORDER]),
    "replay": lambda: replay(policy(), X, Y.iloc[ORDER]),
    "ReplayScorer": lambda: ReplayScorer(random_state=0)(policy(), X, Y.iloc[ORDER]),
    "propensity": lambda: ips(
        table(Y.index), None, Y.drop(columns="propensity"), propensity=ONES.iloc[ORDER] / 2
    ),
    "ips": lambda: ips(policy().fit(X, Y), X, Y.iloc[ORDER]),
    "snips of a table": lambda: snips(table(ORDER), None, Y),
    "logged_costs": lambda: logged_costs(Y["action"], -Y["reward"].iloc[ORDER], Y["propensity"]),
    "RegressionSetSelector": lambda: RegressionSetSelector().fit(X, COSTS.iloc[ORDER]),
    "PopularitySetSelector": lambda: PopularitySetSelector().fit(X, COSTS.iloc[ORDER]),
    "SetSelectClassifier": lambda: SetSelectClassifier(reduction="regression").fit(
        X, COSTS.iloc[ORDER]
    ),
    "score": lambda: RegressionSetSelector().fit(X, COSTS).score(X, COSTS.iloc[ORDER]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_same_labels_in_another_order(mistake):
    with pytest.warns(UserWarning, match=r"same row labels in different orders .*reset_index"):
        MISTAKES[mistake]()


def repeated(labels):
    """A user's day may have several rows."""
    day = np.arange(400) % 7
    return {
        "labels": pd.Index(labels[day]),
        "pairs": pd.MultiIndex.from_arrays([labels[day], day % 2]),
    }


@pytest.mark.parametrize("labels", [np.array([*"abcdefg"]), np.array([np.nan, *range(6)])])
@pytest.mark.parametrize("form", ["labels", "pairs"])
def test_repeated_labels_are_compared_in_order(form, labels):
    index = repeated(labels)[form]
    one, other = X.set_axis(index), Y.set_axis(index)
    policy().fit(one, other)
    policy().fit(one, other.set_axis(index[np.r_[1, 0:399]]))  # each not as often
    for mistake in (other.iloc[ORDER], other.iloc[::-1]):
        with pytest.warns(
            UserWarning, match=r"row \d+ is labeled .*put both tables in one order first; if"
        ):
            policy().fit(one, mistake)


def test_other_indices_say_nothing():
    named = X.set_axis([f"row {k}" for k in range(400)])
    policy().fit(named, Y)
    policy().fit(X.iloc[ORDER], Y.iloc[ORDER])
    replay(policy(), X.iloc[ORDER], Y.iloc[ORDER])
    RegressionSetSelector().fit(named, COSTS).score(X.iloc[ORDER], COSTS.iloc[ORDER])
