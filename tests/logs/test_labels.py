"""Labels of arms keep their exact value: ids of 64 bits and more, and times of NumPy."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OffPolicyClassifier, OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.bandit._events import Events, join
from skbandit.evaluation import off_policy_value, replay
from skbandit.logs import join_rewards, label_array
from skbandit.selection import logged_costs
from tests.worlds import uniform_log

# floats of 53 bits would make one of the last two
HASHES = [17, 2**63 + 5, 2**63 + 9]
rng = np.random.default_rng(0)
ARM = rng.integers(3, size=600)
REWARD = (rng.random(600) < np.array([0.1, 0.2, 0.9])[ARM]).astype(float)
X = rng.normal(size=(600, 1))


def as_(form):
    """The logged ids in a form, and the three ids."""
    ids = HASHES
    if form == "beyond 64 bits":
        ids = [one + 2**64 for one in HASHES]
    if form in ("list", "beyond 64 bits"):
        return [ids[k] for k in ARM], ids
    array = np.array(ids, dtype=np.uint64)[ARM]
    if form == "arrow":
        return pytest.importorskip("pyarrow").array(array), ids
    if form == "polars":
        return pytest.importorskip("polars").Series(array), ids
    return {
        "uint64": array,
        "NumPy scalars": list(array),
        "object": array.astype(object),
        "UInt64": pd.Series(array).astype("UInt64"),
    }[form], ids


FORMS = ["uint64", "NumPy scalars", "list", "object", "UInt64", "arrow", "polars", "beyond 64 bits"]
POLICIES = [
    GLMUCBPolicy(random_state=0),
    GLMUCBPolicy(arms=HASHES[::-1], random_state=0),
    SharedGLMPolicy(covariance="diagonal", random_state=0),
    OraclePolicy(Ridge(), random_state=0),
    OffPolicyClassifier(random_state=0),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("form", ["uint64", "list"])
def test_a_policy_knows_large_ids_apart(form, policy):
    action, ids = as_(form)
    policy = policy.fit(X, {"action": action, "reward": REWARD})
    assert set(policy.arms_.tolist()) == set(ids)
    assert policy.predict(X[:5]).tolist() == [ids[2]] * 5
    assert policy.predict(X[:5], available=ids[:2]).tolist() == [ids[1]] * 5
    assert policy.predict(X[:2], available=np.array([ids[:2]] * 2, object)).tolist() == [ids[1]] * 2


@pytest.mark.parametrize("form", FORMS)
def test_large_ids_are_exact_in_every_form_of_a_log(form):
    action, ids = as_(form)
    log = {"action": action, "reward": REWARD}
    policy = GLMUCBPolicy(random_state=0).fit(X, log)
    assert set(policy.arms_.tolist()) == set(ids)
    assert policy.predict(X[:2]).tolist() == [ids[2]] * 2
    best = [ids[2]] * len(X)
    assert off_policy_value(best, X, log).mean_reward == pytest.approx(REWARD[ARM == 2].mean())
    costs = logged_costs(action, -REWARD, np.full(len(X), 1 / 3))
    assert costs.columns.tolist() == ids
    record = json.loads(json.dumps(policy.record(X[:1], ids[2], 0.5, available=[ids])))
    _, joined = join_rewards([record], {record["id"]: 1})
    assert (record["arm"], joined["action"].tolist()) == (ids[2], [ids[2]])
    assert sorted(record["available"]) == ids


def test_large_ids_in_slates_replays_and_delayed_events():
    action, ids = as_("uint64")
    slates = [(ids[k], ids[(k + 1) % 3]) for k in ARM]
    clicks = np.column_stack([REWARD, np.zeros(len(X))])
    slate = SlatePolicy(n_select=2, random_state=0).fit(X, slates, clicks).predict(X[:1])
    assert set(slate.ravel().tolist()) <= set(ids)
    result = replay(GLMUCBPolicy(random_state=0), X, {"action": action, "reward": REWARD})
    assert result.mean_reward > 0.7
    assert set(result.history["action"].tolist()) <= set(ids)
    log = {"action": action, "reward": REWARD, "timestamp": np.arange(600.0)}
    delayed = GLMUCBPolicy(update_every=1e9, random_state=0)
    for rows in (slice(0, 300), slice(300, 600)):
        delayed.partial_fit(X[rows], {name: column[rows] for name, column in log.items()})
    assert set(delayed.advance().arms_.tolist()) == set(ids)


def test_only_integers_of_64_bits_are_stored_as_such():
    assert label_array([1, 2]).dtype == np.int64
    assert label_array(HASHES).tolist() == HASHES
    assert label_array(HASHES[1:]).dtype == object
    parts = [label_array([2**60 + 1]), label_array([0.5]), label_array([True])]
    events = [Events(*(np.zeros((1, 1)), part, *[np.zeros(1)] * 3)) for part in parts]
    assert join(events).arms.tolist() == [2**60 + 1, 0.5, True]


@pytest.mark.parametrize("unit", ["ns", "us", "s", "D"])
def test_times_of_numpy_are_those_of_pandas(unit):
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype=f"datetime64[{unit}]")
    policy = GLMUCBPolicy(random_state=0).fit(X, {"action": days[ARM], "reward": REWARD})
    best = [pd.Timestamp("2024-01-03")] * 2
    assert policy.predict(X[:2]).tolist() == best
    for available in (days, [tuple(days)] * 2, np.array([days] * 2), best[:1]):
        assert policy.predict(X[:2], available=available).tolist() == best
    log = {"action": days[ARM], "reward": REWARD}
    value = off_policy_value(days[[2] * len(X)], X, log).mean_reward
    assert value == pytest.approx(REWARD[ARM == 2].mean())


@pytest.mark.parametrize("use", [off_policy_value, replay, OffPolicyClassifier(), GLMUCBPolicy()])
def test_actions_that_are_apart_by_blanks_are_told(use):
    """As of a file with fixed widths: part of an action's events counted as of another one."""
    rows, log = uniform_log(300)
    log["action"] = log["action"].where(np.arange(300) % 3 > 0, log["action"] + " ")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(actions were not chosen|kept|weight|too few)")
        told = r"action has the labels '\w ?' and '\w ?', which count as two: .* str.strip"
        with pytest.warns(UserWarning, match=told):
            use.fit(rows, log) if hasattr(use, "fit") else use(["a"] * 300, rows, log)
