"""Vowpal Wabbit's dsjson: made lines are read exactly; lines that are wrong are named."""

import json
from datetime import UTC, datetime
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skbandit import GLMUCBPolicy
from skbandit.datasets import read_vw_dsjson
from skbandit.evaluation import off_policy_blocks, replay_blocks
from tests.worlds import refuses

EVENT = {
    "_label_cost": -1,
    "_label_probability": 0.8,
    "_label_Action": 2,
    "_labelIndex": 1,
    "o": [{"v": 1.0, "EventId": "13c3", "ActionTaken": False}],
    "Timestamp": "2019-08-13T20:40:28.7880000Z",
    "Version": "1",
    "EventId": "13c3",
    "a": [2, 1, 3],
    "c": {
        "User": [{"tier": "pro", "age": 33}, {"_secret": 1, "geo": {"country": "UK"}}],
        "hour": 20,
        "night": True,
        "vector": [0.5, 1.5],
        "words": {"_text": "hello world"},
        "nothing": None,
        "_synthetic": False,
        "_multi": [
            {"_tag": "news", "i": {"constant": 1, "id": 10}, "Topic": [{"kind": "n"}]},
            {"_tag": "sports", "i": {"constant": 1, "id": 20}, "Topic": [{"kind": "s"}]},
            {"_tag": "music", "i": {"constant": 1, "id": 30}},
        ],
    },
    "p": [0.80000001, 0.1, 0.09999999],
    "VWState": {"m": "x"},
}


def changed(**members):
    """The event with other members; None removes one. Those of the context have the prefix c_."""
    event = json.loads(json.dumps(EVENT))
    for name, value in members.items():
        of = event["c"] if name.startswith("c_") else event
        name = name.removeprefix("c_")
        if value is None:
            del of[name]
        else:
            of[name] = value
    return event


def written(folder, *events):
    path = folder / "log.json"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_an_event_is_read_exactly(tmp_path):
    (log,) = read_vw_dsjson(written(tmp_path, EVENT), action_features=True)
    assert log.X.to_dict("records") == [
        {
            "User.tier": "pro",
            "User.age": 33,
            "User.geo.country": "UK",
            "hour": 20,
            "night": True,
            "vector.0": 0.5,
            "vector.1": 1.5,
            "words._text": "hello world",
        }
    ]
    time = datetime(2019, 8, 13, 20, 40, 28, 788000, tzinfo=UTC)
    assert log.y.to_dict("records") == [
        {
            "action": "sports",
            "reward": 1.0,
            "propensity": 0.8,
            "available": ("news", "sports", "music"),
            "timestamp": time,
            "id": "13c3",
        }
    ]
    assert log.action_features.loc[0, "Topic.kind"].tolist()[:2] == ["n", "s"]
    assert log.action_features.index.tolist() == [(0, "news"), (0, "sports"), (0, "music")]
    assert log.sample_weight.tolist() == [1.0]
    assert (log.n_skipped, log.n_not_learned) == (0, 0)


@pytest.mark.parametrize(
    ("action_id", "tags", "expected"),
    [(None, True, "sports"), (None, False, 20), ("i.id", True, 20), ("Topic.kind", True, "s")],
)
def test_actions_are_labeled_by_tag_id_or_feature(tmp_path, action_id, tags, expected):
    actions = zip(EVENT["c"]["_multi"], "nsm", strict=True)
    multi = [dict(action, Topic={"kind": kind}) for action, kind in actions]
    for action in multi if not tags else []:
        del action["_tag"]
    path = written(tmp_path, changed(c__multi=multi))
    (log,) = read_vw_dsjson(path, action_id=action_id)
    assert log.y["action"].tolist() == [expected]


def test_actions_without_labels_are_numbered_from_1(tmp_path):
    path = written(tmp_path, changed(c__multi=[{"x": 1}, {"x": 2}, {"x": 3}], _labelIndex=None))
    (log,) = read_vw_dsjson(path)
    assert log.y["action"].tolist() == [2]
    assert log.y["available"].tolist() == [(1, 2, 3)]


def test_events_kept_at_random_and_events_not_to_be_learned(tmp_path):
    events = [EVENT, changed(pdrop=0.75), changed(_skipLearn=True), EVENT]
    (log,) = read_vw_dsjson(written(tmp_path, *events))
    assert log.sample_weight.tolist() == [1.0, 4.0, 1.0]
    assert (len(log.X), log.n_not_learned) == (3, 1)
    policy = GLMUCBPolicy(arms=["a", "b", "c"])
    for estimate in (off_policy_blocks, partial(replay_blocks, acceptance=0.1)):
        refuses(r"sample_weight other than 1, .* pass the pair", estimate, policy, [log])


def test_blocks_have_the_same_columns(tmp_path):
    events = [changed(c_hour=k) for k in range(5)]
    del events[3]["c"]["User"]
    path = written(tmp_path, *events)
    blocks = list(read_vw_dsjson(path, block_size=2))
    assert [len(block.y) for block in blocks] == [2, 2, 1]
    assert len({tuple(block.X.columns) for block in blocks}) == 1
    assert blocks[1].X["User.age"].isna().tolist() == [False, True]
    chosen = list(read_vw_dsjson(path, features=["hour", "weather"], block_size=2))
    assert [block.X["hour"].tolist() for block in chosen] == [[0, 1], [2, 3], [4]]
    assert all(block.X["weather"].isna().all() for block in chosen)
    path = written(tmp_path, EVENT, changed(c_weather="rain"))
    with pytest.raises(ValueError, match=r"'weather' does not occur in the first block"):
        list(read_vw_dsjson(path, block_size=1))


WRONG = {
    "cut": ('{"_label_cost": -1', "no JSON object, "),
    "array": ("[1]", r"expected a JSON object, got '\[1\]'"),
    "nan": (EVENT | {"_label_cost": float("nan")}, "_label_cost must be finite"),
    "deep": ("[" * 100_000, "no JSON object, "),
    "bytes": (b"\xff\xfe", "no JSON object"),
    "no decision": ({"EventId": "1"}, "there is no c among 'EventId'"),
    "no cost": (changed(_label_cost=None), "there is no _label_cost among"),
    "no probability": (changed(_label_probability=None), "there is no _label_probability"),
    "no action": (changed(_label_Action=None, _labelIndex=None), "neither _label_Action nor"),
    "text": (changed(_label_cost="1"), "_label_cost must be a number, got '1'"),
    "zero": (changed(_label_probability=0), "must be from 1.2e-38, .* to 1, got 0"),
    "above 1": (changed(_label_probability=1.001), "must be from .* to 1, got 1.001"),
    "surrogate in a label": (
        changed(c__multi=[{"_tag": "\ud800"}, {"_tag": "b"}, {"_tag": "c"}]),
        "no JSON object, .*surrogates not allowed",
    ),
    "surrogate in bytes": (json.dumps(EVENT).encode().replace(b"pro", b"\xed\xa0\x80"), "decode"),
    "infinite": (json.dumps(EVENT).replace("33", "1e999"), "the feature 'User.age' must be finite"),
    "beyond": (changed(_label_Action=4, _labelIndex=None), "an integer from 1 to 3, got 4"),
    "slots": (changed(_outcomes=[]), "several slots cannot be read"),
    "no actions": (changed(c__multi=[]), "must be a list of actions"),
    "same tag": (
        changed(c__multi=[{"_tag": "a"}] * 3, p=None),
        "two actions have the label 'a', but .* to add: pass action_id='' to number",
    ),
    "list": (changed(c__multi=[{"_tag": ["a"]}] * 3), r"label of action 1 is \['a'\], not a text"),
    "no tag": (changed(c__multi=[{"_tag": "a"}, {}, {}]), "action 2 has no _tag"),
    "twice": (changed(c_User=[{"age": 1}, {"age": 2}]), "'User.age' occurs twice"),
    "again": (
        json.dumps(EVENT).replace("{", '{"_label_cost": 0, ', 1),
        "'_label_cost' occurs twice",
    ),
    "time": (changed(Timestamp="yesterday"), "Timestamp must be like .* got 'yesterday'"),
    "no time": (changed(Timestamp=None), "Timestamp is missing, unlike in earlier"),
    "pdrop": (changed(pdrop=1), r"pdrop must be in \[0, 1\), got 1"),
}


CONTRADICTIONS = {
    "index": (changed(_labelIndex=2), "counts from 1 and _labelIndex, 2, from 0, but they name"),
    "other p": (changed(p=[0.1, 0.8, 0.1]), "is 0.8, but p gives action 2 0.1"),
    "short p": (changed(p=[1.0]), "a names 3 actions, but p 1 probabilities"),
    "not in a": (changed(a=[1, 3, 4]), "chosen action 2 is not among a, 1, 3, 4"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
@pytest.mark.parametrize("malformed", ["raise", "skip"])
def test_contradictions_are_not_skipped(tmp_path, case, malformed):
    """Of a log of another convention, lines that agree by chance would be left."""
    event, message = CONTRADICTIONS[case]
    blocks = read_vw_dsjson(written(tmp_path, EVENT, event), malformed=malformed)
    refuses(rf"line 2: .*{message}.* It cannot be skipped", list, blocks)


def test_actions_in_a_may_count_from_0(tmp_path):
    (log,) = read_vw_dsjson(written(tmp_path, EVENT, changed(a=[1, 0, 2])))
    pd.testing.assert_series_equal(log.y.iloc[0], log.y.iloc[1], check_names=False)


@pytest.mark.parametrize("a", [[2, 1, 3], [1, 0, 2]])
def test_actions_with_the_same_label_are_one_arm(tmp_path, a):
    twins = changed(c__multi=[{"_tag": "tea"}, {"_tag": "coffee"}, {"_tag": "coffee"}], a=a)
    (log,) = read_vw_dsjson(written(tmp_path, twins), action_features=True)
    assert log.y["action"].tolist() == ["coffee"]
    assert log.y["available"].tolist() == [("tea", "coffee")]
    assert log.y["propensity"][0] == pytest.approx(0.8 + 0.09999999)
    assert log.action_features.index.tolist() == [(0, "tea"), (0, "coffee")]
    (log,) = read_vw_dsjson(written(tmp_path, twins), action_id="")
    assert log.y[["action", "available"]].values.tolist() == [[2, (1, 2, 3)]]
    twins["c"]["_multi"][2]["size"] = 1
    with pytest.raises(ValueError, match="'coffee' and different features"):
        list(read_vw_dsjson(written(tmp_path, twins), action_features=True))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_lines_are_named_and_skipped(tmp_path, case):
    line, message = WRONG[case]
    line = json.dumps(line) if isinstance(line, dict) else line
    line = line.encode() if isinstance(line, str) else line
    right = json.dumps(EVENT).encode()
    path = tmp_path / "log.json"
    path.write_bytes(b"\n".join([right, line, right]))
    refuses(rf"log\.json, line 2: .*{message}.*malformed='skip'", list, read_vw_dsjson(path))
    with pytest.warns(UserWarning, match="1 malformed lines were skipped, the first: .* line 2"):
        (log,) = read_vw_dsjson(path, malformed="skip")
    assert (len(log.y), len(log.X), log.n_skipped) == (2, 2, 1)


def test_a_pair_of_surrogates_is_a_character(tmp_path):
    path = written(tmp_path, changed(c_page="\U0001f600"))
    assert "\\ud83d" in path.read_text()
    (log,) = read_vw_dsjson(path)
    assert log.X["page"].tolist() == ["\U0001f600"]


def test_probabilities_are_rounded_to_single_precision(tmp_path):
    events = [changed(_label_probability=p, p=None) for p in (1.00005, 2.0**-126)]
    (log,) = read_vw_dsjson(written(tmp_path, *events))
    assert log.y["propensity"].tolist() == [1.0, 2.0**-126]


@given(st.data())
def test_any_bytes_are_read_or_named(tmp_path_factory, data):
    text = json.dumps(EVENT).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + data.draw(st.binary(max_size=4)) + text[at + 1 :]
    path = tmp_path_factory.mktemp("dsjson") / "log.json"
    path.write_bytes(garbled)
    try:
        for block in read_vw_dsjson(path):
            assert len(block.X) == len(block.y)
    except ValueError as error:
        assert str(path) in str(error)


def test_an_action_id_must_be_a_name(tmp_path):
    message = "action_id must be the name of a feature, got 3"
    refuses(message, read_vw_dsjson, written(tmp_path), action_id=3, error=TypeError)


def test_an_id_may_be_missing(tmp_path):
    """Before or after events that have one; no line is lost but rewards without a decision."""
    without, dangling = changed(EventId=None), {"EventId": "1", "RewardValue": 1}
    path = written(tmp_path, without, EVENT, without, dangling)
    (log,) = read_vw_dsjson(path, malformed="skip")
    assert (log.n_dangling, log.n_skipped) == (1, 0)
    assert log.y["id"].isna().tolist() == [True, False, True]
    blocks = list(read_vw_dsjson(path, block_size=1))
    assert ["id" in block.y for block in blocks] == [False, True, True]


def test_a_missing_file_is_an_error_of_the_operating_system(tmp_path):
    with pytest.raises(OSError, match=r"none\.json"):
        list(read_vw_dsjson(tmp_path / "none.json"))
