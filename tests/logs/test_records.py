"""Records of choices, through JSON, joined with rewards that are late, missing or sent twice."""

import json
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy, make_policy_pipeline
from skbandit.evaluation import off_policy_value, slate_ips
from skbandit.logs import join_rewards
from tests.worlds import refuses, warns

PIPELINE = make_policy_pipeline(
    make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"])),
    GLMUCBPolicy(arms=["a", "b"], random_state=0),
)


def through_json(record):
    return json.loads(json.dumps(record, allow_nan=False))


def records_at(*times, policy=None):
    """One record per time, ids being "0", "1", ..."""
    policy = GLMUCBPolicy(arms=["a", "b"]) if policy is None else policy
    made = [policy.record([float(k), 1.0], "ab"[k % 2], 0.5) for k in range(len(times))]
    return [
        one | {"id": str(k), "time": at}
        for k, (one, at) in enumerate(zip(made, times, strict=True))
    ]


@pytest.mark.parametrize(
    "arms",
    [["a", "1"], [3, -7], [1.5, 2.0], [True, False], [("a", 1), ("b", 2)], ["1", 1], np.arange(2)],
    ids=str,
)
def test_labels_survive_json(arms):
    policy = GLMUCBPolicy(arms=arms, random_state=0)
    choices = policy.select(np.eye(2)[[0, 1, 0]])
    available = [list(policy.arms_)]
    records = [
        through_json(policy.record([0.5, 1.0], arm, np.float32(0.5), available=available))
        for arm in choices
    ]
    X, log = join_rewards(records, {one["id"]: 1 for one in records})
    assert log["action"].tolist() == choices.tolist()
    assert [type(arm) for arm in log["action"].tolist()] == [type(arm) for arm in choices.tolist()]
    assert log["available"].tolist() == [tuple(policy.arms_.tolist())] * 3
    learned = policy.partial_fit(X, log)
    assert set(learned.arms_.tolist()) == set(policy.arms_.tolist())


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.5, np.nan], [-0.1, 3e300]]),
        np.array([[1, 2], [3, 2**60]]),
        np.array([[True, False], [True, True]]),
        np.array([["x", 1.5], [np.nan, 2.0]], dtype=object),
        pd.DataFrame({"f": [1.5, np.nan], "i": [1, 2], "b": [True, False], "t": ["x", "ü"]}),
        pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "c": pd.Categorical(["u", "v"])}),
        pd.DataFrame({0: [1.5, 2.5], 1: [0.1, 1 / 3]}),
    ],
    ids=["nan", "integers", "booleans", "objects", "frame", "nullable", "unnamed columns"],
)
def test_contexts_survive_json(X):
    policy = GLMUCBPolicy(arms=["a"])
    rows = [X[k : k + 1] for k in range(2)]
    records = [through_json(policy.record(row, "a", 1.0)) for row in rows]
    again, _ = join_rewards(records, {one["id"]: 0 for one in records})
    named = isinstance(X, pd.DataFrame) and X.columns[0] != 0
    assert isinstance(again, pd.DataFrame if named else np.ndarray)
    if named:
        assert list(again) == list(X)
        for name in X:
            if isinstance(X[name].dtype, np.dtype) and X[name].dtype.kind in "fib":
                assert again[name].dtype == X[name].dtype
    else:
        assert again.dtype == np.asarray(X).dtype
    found, expected = pd.DataFrame(again).astype(object), pd.DataFrame(X).astype(object)
    assert found.isna().equals(expected.isna())
    assert found.fillna("missing").values.tolist() == expected.fillna("missing").values.tolist()


@pytest.mark.parametrize(
    "policy, X",
    [
        (GLMUCBPolicy(exploration="squarecb", arms=["a", "b"], random_state=0), None),
        (SharedGLMPolicy(pd.DataFrame({"z": [0, 1]}, index=["a", "b"]), random_state=0), None),
        (OraclePolicy(DecisionTreeClassifier(), arms=["a", "b"], random_state=0), None),
        (PIPELINE, pd.DataFrame({"city": ["Rome", "Oslo"] * 100})),
    ],
    ids=["glm", "shared", "oracle", "pipeline"],
)
def test_choices_become_a_log_to_learn_and_to_evaluate(policy, X):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) if X is None else X
    if policy is PIPELINE:
        policy.partial_fit(X[:2], {"action": ["a", "b"], "reward": [0, 1]})
    records = []
    for k in range(200):
        x = X[k : k + 1]
        arm, chances = policy.select(x), policy.select_proba(x)[0]
        records.append(through_json(policy.record(x, arm, chances[policy.arms_ == arm[0]])))
    rewards = [{"id": one["id"], "reward": k % 3 == 0} for k, one in enumerate(records)]
    again, log = join_rewards(records, rewards)
    learner = policy.partial_fit(again[:100], log[:100])
    assert learner.record(X[:1], "a", 1.0)["version"] == 100 + 2 * (policy is PIPELINE)
    estimate = off_policy_value(policy, again[100:], log[100:])
    assert np.isfinite(estimate.mean_reward)


def test_slates():
    policy = SlatePolicy(n_select=2, random_state=0)
    arms, x = ["a", "b", "c"], [[0.3, 1.0]]
    records = []
    for _ in range(200):
        slate = policy.select(x, available=arms)
        records.append(through_json(policy.record(x, slate[0], [0.5, 0.9], available=arms)))
    rewards = {"id": [one["id"] for one in records], "reward": [np.array([1, 0])] * 200}
    X, log = join_rewards(records, rewards)
    assert log["action"].tolist() == [tuple(one["arm"]) for one in records]
    assert log["propensity"].tolist() == [(0.5, 0.9)] * 200
    policy = policy.partial_fit(X, log)
    assert policy.record(x, "a", 0.5)["version"] == 400
    assert slate_ips(policy, X, log).mean_reward > 0


def test_rewards_are_learned_once_in_the_order_in_which_they_came():
    records = records_at(0.0, 1.0, 2.0, 3.0)
    rewards = pd.DataFrame(
        {"id": ["2", "0", "2", "1"], "reward": [1, 0, 1, 1], "time": [9.0, 8.0, 10.0, 7.0]}
    )
    with pytest.warns(UserWarning, match="'2' has several rewards, such as 1 at 9 s and 1 at 10 s"):
        X, log = join_rewards([*records, records[0]], rewards)
    assert log["id"].tolist() == ["1", "0", "2"]  # that of "3" is missing, "2" came twice
    assert log["timestamp"].tolist() == [7.0, 8.0, 9.0]
    assert X[:, 0].tolist() == [1.0, 0.0, 2.0]
    _, in_given_order = join_rewards(records, rewards.drop(columns="time"))
    assert in_given_order["id"].tolist() == ["2", "0", "1"]
    assert "timestamp" not in in_given_order
    dated = rewards.assign(time=pd.to_datetime(rewards["time"], unit="s"))
    sent_twice = pd.concat([dated.drop(index=2), dated[:1]])  # at one time: the same reward
    pd.testing.assert_frame_equal(join_rewards(records, sent_twice)[1], log)


def test_late_and_missing_rewards():
    records = records_at(0.0, 5.0, 10.0, 100.0)
    rewards = [
        {"id": "0", "reward": 1, "time": 31.0},  # late
        {"id": "1", "reward": 1, "time": 35.0},  # just in time
    ]
    _, log = join_rewards(records, rewards, within=30)
    assert log["id"].tolist() == ["1"]
    _, log = join_rewards(records, rewards, within=30, missing=0.0, now=120.0)
    assert log[["id", "reward", "timestamp"]].values.tolist() == [
        ["0", 0.0, 30.0],
        ["1", 1.0, 35.0],
        ["2", 0.0, 40.0],
    ]  # "3" may still come
    moment = pd.Timestamp(120.0, unit="s")
    for now in (moment, moment.tz_localize("UTC"), moment.to_datetime64(), moment.to_pydatetime()):
        for length in (pd.Timedelta("30s"), np.timedelta64(30, "s"), timedelta(seconds=30)):
            _, same = join_rewards(records, rewards, within=length, missing=0.0, now=now)
            pd.testing.assert_frame_equal(same, log)
    for now in (np.nan, pd.NaT, "12:00", True):
        with pytest.raises(ValueError, match=r"now=.* is no time: pass seconds since 1970"):
            join_rewards(records, rewards, within=30, missing=0.0, now=now)
    for length in ("30s", True):
        with pytest.raises(TypeError, match=r"within=.* is neither a number of seconds nor a"):
            join_rewards(records, rewards, within=length)
    refuses(r"missing=0 needs within=", join_rewards, records, rewards, missing=0)
    refuses(r"within=3 needs the column 'time'", join_rewards, records, {"0": 1}, within=3)
    for wrong in (-1, np.nan):
        refuses("within", join_rewards, records, rewards, within=wrong)


@pytest.mark.parametrize(
    "rewards",
    [
        [{"id": "0", "reward": None}, {"id": "0", "reward": True}, {"id": "1", "reward": pd.NA}],
        pd.DataFrame({"id": ["0", "0", "1"], "reward": pd.array([None, 1, None], dtype="Int64")}),
        pd.DataFrame({"id": ["0", "0", "1"], "reward": [None, 1.0, np.nan]}, dtype=object),
        {"id": ["0", "0", "1"], "reward": pd.array([None, 1, None], dtype="boolean")},
        {"id": ["0", "0", "1"], "reward": [pd.NaT, 1, float("nan")]},
        {"0": 1, "1": None},
        [{"id": "0", "reward": [1, None]}, {"id": "1", "reward": [None, np.nan]}],
    ],
)
def test_what_is_missing_is_no_reward(rewards):
    _, log = join_rewards(records_at(0.0, 1.0), rewards)
    assert log["id"].tolist() == ["0"]
    assert np.ravel(log["reward"].tolist())[0] == 1


def test_two_choices_of_one_id_are_refused():
    first, second = records_at(0.0, 1.0)
    message = "two records have the id '0', and time is 0.0 in one and 1.0 in the other"
    refuses(message, join_rewards, [first, second | {"id": "0"}], {"0": 1})
    again = through_json(first) | {"received": "later"}  # the same choice
    assert len(join_rewards([first, again], {"0": 1})[1]) == 1


@pytest.mark.parametrize("missing, expected", [(0, (0, 0, 0)), ([0, 1, 0], (0, 1, 0))])
def test_a_missing_reward_per_place(missing, expected):
    policy, arms = SlatePolicy(n_select=3, random_state=0), ["a", "b", "c"]
    records = [
        policy.record([[1.0, 2.0]], policy.select([[1.0, 2.0]], available=arms)[0], [1.0] * 3)
        | {"id": str(k), "time": 0.0}
        for k in range(2)
    ]
    rewards = [{"id": "0", "reward": [0, 1, 0], "time": 1.0}]
    X, log = join_rewards(records, rewards, within=10, missing=missing, now=20.0)
    assert log["reward"].tolist() == [(0, 1, 0), expected]
    assert policy.partial_fit(X, log).record(X[:1], ["a", "b"], None)["version"] == 6


def test_positions_of_clicks_need_nan_for_none():
    """As a position, the 0 that is meant to be none is a click at the first place."""
    policy = SlatePolicy(n_select=2, feedback="cascade", random_state=0)
    records = [
        policy.record([[1.0]], ["a", "b"], [1.0, 1.0]) | {"id": str(k), "time": 0.0}
        for k in range(4)
    ]
    options = {"within": 10, "now": 20.0}
    rewards = [{"id": "2", "reward": 1, "time": 1.0}]
    X, log = join_rewards(records, rewards, missing=0, **options)
    refuses(r"joined with missing=0, .* missing=nan\) says", policy.partial_fit, X[:3], log[:3])
    X, log = join_rewards(records, rewards, missing=np.nan, **options)
    by_place = [(0, 1) if key == "2" else (0, 0) for key in log["id"]]
    again = SlatePolicy(n_select=2, feedback="cascade", random_state=0)
    again.partial_fit(X, log.assign(reward=by_place))
    np.testing.assert_array_equal(
        policy.partial_fit(X, log).predict_reward(X), again.predict_reward(X)
    )


def test_many_equal_rewards_are_told():
    records = records_at(*range(100))
    clicks = {one["id"]: 1 for one in records}
    message = r"all of 100 rewards are 1, .* they must report 0, too, or join_rewards\(missing=0"
    warns(message, join_rewards, records, clicks)
    join_rewards(records, clicks | {"7": 0})
    join_rewards(records[1:], {one["id"]: 1 for one in records[1:]})
    join_rewards(records, dict.fromkeys(clicks, 0))  # where rewards are rare, these are common


def test_different_rewards_of_one_choice_and_rewards_of_none_are_told():
    records = records_at(0.0, 1.0)
    with pytest.warns(UserWarning, match="'1' has several rewards, .* of which the first counts"):
        _, log = join_rewards(records, [{"id": "1", "reward": 0}, {"id": "1", "reward": 1}])
    assert log["reward"].tolist() == [0]
    with pytest.warns(UserWarning, match="1 of 2 rewards have no record, such as that of id 'x'"):
        _, log = join_rewards(records, {"x": 1, "0": 1})
    assert log["id"].tolist() == ["0"]


PURCHASES = [
    {"id": "0", "reward": 5, "time": 1.0},
    {"id": "1", "reward": 2, "time": 2.0},
    {"id": "0", "reward": 5, "time": 3.0},  # as much, later: another one
    {"id": "0", "reward": 5, "time": 3.0},  # sent twice
    {"id": "0", "reward": 7, "time": 9.0},
    {"id": "0", "reward": 100, "time": 50.0},  # too late
]


@pytest.mark.parametrize("repeats, reward, at", [("last", 7, 9.0), ("sum", 17, 9.0)])
def test_the_last_of_several_rewards_and_their_sum(repeats, reward, at):
    records = records_at(0.0, 1.0)
    for rewards in (PURCHASES, PURCHASES[::-1]):
        _, log = join_rewards(records, rewards, repeats=repeats, within=30)
        expected = [["1", 2, 2.0], ["0", reward, at]]
        assert log[["id", "reward", "timestamp"]].values.tolist() == expected
    options = {"repeats": repeats, "within": 30, "missing": 0, "now": 100.0}
    assert join_rewards(records, PURCHASES, **options)[1]["reward"].tolist() == [reward, 2]


def test_several_rewards_without_times():
    records = records_at(0.0, 1.0)
    untimed = [{"id": one["id"], "reward": one["reward"]} for one in PURCHASES]
    _, log = join_rewards(records, untimed, repeats="sum")
    assert log["reward"].tolist() == [122, 2]  # which were sent twice is not known
    assert join_rewards(records, untimed, repeats="last")[1]["reward"].tolist() == [100, 2]
    assert join_rewards(records, untimed[:3])[1]["reward"].tolist() == [5, 2]  # perhaps sent twice
    refuses("'0' has several rewards, such as 5 and 5", join_rewards, records, untimed, **ERROR)


ERROR = {"repeats": "error"}


def test_several_rewards_can_be_an_error():
    records = records_at(0.0, 1.0)
    message = "'0' has several rewards, such as 5 at 1 s and 5 at 3 s: repeats='sum' adds them"
    refuses(message, join_rewards, records, PURCHASES, **ERROR)
    once = [PURCHASES[k] for k in (0, 0, 1, 5)]
    assert join_rewards(records, once, within=30, **ERROR)[1]["reward"].tolist() == [5, 2]
    refuses("repeats='mean' must be in", join_rewards, records, once, repeats="mean")


def test_sums_of_rewards_per_place():
    policy = SlatePolicy(n_select=2, random_state=0)
    record = policy.record([[1.0]], ["a", "b"], [1.0, 1.0]) | {"id": "0", "time": 0.0}
    rewards = {"id": ["0"] * 3, "reward": [[1, None], [2, 0.5], [0, 1]], "time": [1.0, 2.0, 3.0]}
    assert join_rewards([record], rewards, repeats="sum")[1]["reward"].tolist() == [(3, 1.5)]
    text = [{"id": "0", "reward": "4"}]
    refuses("a reward is the text '4'", join_rewards, [record], text, error=TypeError)
    for other in (4, [1, 2, 3]):
        mixed = [{"id": "0", "reward": [1, 2]}, {"id": "0", "reward": other}]
        refuses("which cannot be added", join_rewards, [record], mixed, repeats="sum")


def test_sums_that_are_not_final_are_told():
    records, now = records_at(0.0, 95.0), {"now": 100.0, "within": 30, "repeats": "sum"}
    rewards = [{"id": "0", "reward": 1, "time": 1.0}, {"id": "1", "reward": 1, "time": 96.0}]
    warns(
        "1 choices may get further rewards, such as id '1'", join_rewards, records, rewards, **now
    )
    assert join_rewards(records, rewards, missing=0, **now)[1]["id"].tolist() == ["0"]


def test_times_that_cannot_be_are_told():
    at = 1_700_000_000.0
    records = records_at(at, at + 1)
    early = [{"id": "0", "reward": 1, "time": at + 2}, {"id": "1", "reward": 1, "time": at - 3600}]
    with pytest.warns(UserWarning, match=r"1 of 2 rewards came before its choice, .* '1': check"):
        join_rewards(records, early, within=30)
    late = [{"id": str(k), "reward": 1, "time": 1000 * at} for k in range(2)]
    too_late = pytest.warns(
        UserWarning, match=r"2 of 2 rewards came too late, .*seconds since 1970"
    )
    with too_late, pytest.warns(UserWarning, match="after the year 5138"):
        join_rewards(records, late, within=30, missing=0.0)
    skewed = [{"id": "0", "reward": 1, "time": at - 0.5}]
    assert len(join_rewards(records, skewed, within=30)[1]) == 1


def test_nothing_to_join():
    X, log = join_rewards(records_at(0.0), [])
    assert len(X) == len(log) == 0
    assert len(join_rewards([], {})[1]) == 0


@pytest.mark.parametrize(
    "change, match",
    [
        ({"context": [1.0]}, r"context of record '1', \[1.0\], lacks 1: join records"),
        ({"context": {"u": 1.0, "v": 2.0}}, "has 'u', 'v', too: join"),
        ({"propensity": None}, "record '1' has no propensity, but others have"),
    ],
)
def test_records_that_do_not_fit_together(change, match):
    first, second = records_at(0.0, 1.0)
    refuses(match, join_rewards, [first, second | change], {"0": 1, "1": 1})


@pytest.mark.parametrize(
    "row, arm, propensity, available, match",
    [
        ([[1.0], [2.0]], "a", 1.0, None, r"X_row has the shape \(2, 1\): pass one row"),
        ([np.inf], "a", 1.0, None, r"X_row\[0\] is inf, of type float, which JSON does not hold"),
        (pd.DataFrame({"t": [pd.Timestamp(0)]}), "a", 1.0, None, r"X_row\['t'\] is Timestamp"),
        ([1.0], np.array(["a", "b"]), 1.0, None, "arm has 2 labels"),
        ([1.0], None, 1.0, None, "arm is None: the label of an arm cannot be missing"),
        ([1.0], {"a"}, 1.0, None, r"arm is \{'a'\}, of type set"),
        ([1.0], "a", 0.0, None, r"propensity is 0.0: a probability is in \(0, 1\]"),
        ([1.0], "a", 1.5, None, "propensity is 1.5"),
        ([1.0], 1, 0.5, ["1", "2"], "arm 1 is not among the available arms, '1', '2'"),
    ],
)
def test_records_that_cannot_be_made(row, arm, propensity, available, match):
    refuses(match, GLMUCBPolicy(arms=["a"]).record, row, arm, propensity, available=available)


def test_rewards_that_wrapped_around():
    records = records_at(0.0, 1.0)
    rewards = pd.DataFrame({"id": ["0", "1"], "reward": -np.array([1, 0], dtype=np.uint8)})
    with pytest.warns(UserWarning, match="reward holds 255 as uint8") as caught:
        join_rewards(records, rewards)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "rewards",
    [
        [{"id": 2**60 + 1, "reward": 1}, {"id": None, "reward": 0}],
        {"id": [2**60 + 1, None], "reward": [1, 0]},
    ],
)
def test_integer_ids_beside_a_missing_one(rewards):
    policy = GLMUCBPolicy(arms=["a", "b"], random_state=0)
    records = [policy.record([[float(i)]], "ab"[i], 0.5) | {"id": 2**60 + i} for i in range(2)]
    with pytest.warns(UserWarning, match="1 of 2 rewards have no record"):
        X, log = join_rewards(records, rewards)
    assert X.tolist() == [[1.0]] and log["action"].tolist() == ["b"]


def test_records_that_came_through_a_table():
    """Lists are arrays there, None is nan, and times may be datetimes."""
    policy = GLMUCBPolicy(arms=["a", "b"], random_state=0)
    records = [
        policy.record([[float(i), 2.0]], "ab"[i], None, available=["a", "b"]) for i in range(2)
    ]
    rewards = {record["id"]: i for i, record in enumerate(records)}
    X, log = join_rewards(records, rewards)
    kept = [
        one
        | {
            "context": np.array(one["context"]),
            "available": np.array(one["available"], dtype=object),
            "propensity": np.nan,
            "time": pd.Timestamp(one["time"], unit="s", tz="Asia/Tokyo"),
        }
        for one in records
    ]
    for its, table in (join_rewards(kept, rewards), join_rewards([*kept, *records], rewards)):
        np.testing.assert_array_equal(its, X)
        pd.testing.assert_frame_equal(table, log)


def test_rewards_of_several_time_zones():
    policy = GLMUCBPolicy(arms=["a", "b"], random_state=0)
    records = [policy.record([[0.0]], "a", 0.5) | {"time": 1e9 + i} for i in range(2)]
    zones = ("UTC", "Asia/Tokyo")
    rewards = [
        {"id": one["id"], "reward": i, "time": pd.Timestamp(1e9 + i, unit="s", tz=zones[i])}
        for i, one in enumerate(records)
    ]
    _, log = join_rewards(records, rewards, within=5)
    assert log["timestamp"].tolist() == [1e9, 1e9 + 1]


# --- what is no record ----------------------------------------------------------------------


def test_join_rewards_names_what_a_record_lacks():
    with pytest.raises(ValueError, match="a record has no 'context', but 'id', 'arm'"):
        join_rewards([{"id": 7, "arm": "a"}], {7: 1})
