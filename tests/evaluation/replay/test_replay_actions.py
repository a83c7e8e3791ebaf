"""Replay of a rule's choices, one label per event, and its difference to a policy that learns."""

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, off_policy_value, replay
from skbandit.exceptions import ReplayCoverageWarning
from tests.evaluation.logs import NOTHING, Y, uneven_log, uniform_log


class BySign:
    """The rule as a policy, which reads it from contexts."""

    def __init__(self, arms):
        self.named = np.array(arms)

    def select(self, X):
        return self.named[(X[:, 0] > 0).astype(int)]

    predict = select


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "n_repeats": 3},
        {"subsample": 0.5, "n_repeats": 2},
        {"max_accepted": 20},
        {"deployment_share": 0.3},
        {"rule": "predict"},
        {"acceptance": 0.1},
    ],
)
@pytest.mark.parametrize("form", [np.asarray, list, pd.Series, pd.Categorical])
def test_labels_are_the_policy_that_chooses_them(form, options):
    X, y = uneven_log(400)
    rule = BySign([0, 2])
    found = replay(form(rule.select(X).tolist()), X, y, random_state=0, **options)
    expected = replay(rule, X, y, random_state=0, **options)
    assert found.n_accepted > 0 and found.history.equals(expected.history)
    assert (found - expected).standard_error == 0
    if options.get("deployment_share"):
        assert found.deployment.history.equals(expected.deployment.history)


def test_by_hand():
    """Always b, whose rewards in the log are 1, 1, 0, 1."""
    with pytest.warns(ReplayCoverageWarning):
        result = replay(["b"] * 12, NOTHING, Y)
    assert (result.n_accepted, result.mean_reward) == (4, 0.75)


def test_labels_that_are_tuples():
    X, y = uniform_log(300, [0, 1])
    arms = [("home", 1), ("home", 2)]
    y["action"] = [arms[k] for k in y["action"]]
    result = replay([arms[1]] * 300, X, y)
    assert result.n_accepted == y["action"].tolist().count(arms[1])


def test_a_policy_that_learns_is_compared_with_todays_rule():
    """It earns 0.6 once it has learned, and today's rule, which is right in half of all, 0.4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 1))
    y = pd.DataFrame({"action": rng.choice(["a", "b"], 6000)})
    best = np.where(X[:, 0] > 0, "b", "a")
    y["reward"] = rng.random(6000) < np.where(y["action"] == best, 0.6, 0.2)
    options = {"subsample": 0.5, "n_repeats": 10, "random_state": 0}
    today = np.full(6000, "a")
    gain = replay(GLMUCBPolicy(random_state=0), X, y, **options) - replay(today, X, y, **options)
    low, high = gain.interval()
    assert 0.12 < low < gain.mean_reward < high < 0.22


def test_events_that_could_not_be_chosen_are_told():
    X, y = uniform_log(200)
    y.loc[100:, "action"] = np.random.default_rng(1).choice(["a", "c"], 100)
    y["available"] = [("a", "b", "c")] * 100 + [("a", "c")] * 100
    with pytest.warns(UserWarning, match="chose arms that were not available on"):
        replay(["b"] * 200, X, y)


def test_what_is_refused():
    X, y = uniform_log(60)
    for given, message in (
        (["a"] * 59, "there are 59 labels of chosen arms for 60 events"),
        (["A"] * 60, r"none of the chosen labels, 'A', is an arm of the log, 'a', 'b', 'c'"),
        (["a"] * 30 + ["B"] * 30, r"the label 'B', chosen on row 30, is no arm of the log"),
        ([True] * 60, "an array of booleans"),
        (["a"] * 59 + [None], "label of the chosen arm is missing on row 59"),
    ):
        with pytest.raises(ValueError, match=message):
            replay(given, X, y)
    with pytest.raises(TypeError, match=r"got a table of shape \(60, 3\): pass probabilities to"):
        replay(np.full((60, 3), 1 / 3), X, y)
    with pytest.warns(UserWarning, match="policy"):
        replay(pd.Series(["a"] * 60, index=range(59, -1, -1)), pd.DataFrame(X), y)


def test_a_replay_less_an_estimate():
    X, y = uniform_log(300)
    one, other = replay(["a"] * 300, X, y), off_policy_value(["a"] * 300, X, y)
    for a, b in ((one, other), (other, one)):
        with pytest.raises(TypeError, match=r"replay\(actions, X, y, random_state=0\)"):
            a - b
    with pytest.raises(TypeError, match="unsupported operand"):
        one - 1.0
