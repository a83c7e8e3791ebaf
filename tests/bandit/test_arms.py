"""Labels of arms: their keys, twins of other types, closed sets, arms that go, and JSON."""

import enum
import json
import pickle
import uuid
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from skbandit import GLMUCBPolicy
from skbandit.bandit import _arm_keys
from skbandit.bandit._arm_keys import arm_key, canonical, lookalike_label, new_keys
from skbandit.bandit.exploration._random import TIE, uniform
from tests.bandit.test_policy import make_log
from tests.policies import PAPER
from tests.tiers import first

X, TIMED = make_log()
Y = TIMED.drop(columns="timestamp")  # events are learned again here


class Size(enum.IntEnum):
    SMALL = 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Nameless:
    """Its repr holds an address."""


@pytest.mark.parametrize(
    "labels",
    [
        [1, 1.0, True, np.int64(1), np.float32(1), np.True_, Decimal(1), Fraction(1), Size.SMALL],
        [0.5, Decimal("0.5"), Fraction(1, 2), np.float64(0.5)],
        [-0.0, 0, False],
        ["a", np.str_("a")],
        [("a", 1), ("a", True)],
        [frozenset("ab"), frozenset("ba")],
        [datetime(2026, 1, 1), pd.Timestamp("2026-01-01")],
        [datetime(2026, 1, 1, 12, tzinfo=UTC),
         datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))],
    ],
)  # fmt: skip
def test_equal_labels_have_one_key(labels):
    assert all(label == labels[0] for label in labels)
    assert len({arm_key(label) for label in labels}) == 1


def test_different_labels_have_different_keys():
    identities = [uuid.UUID(int=k) for k in range(200_000)]  # by their first 32 bits, some collide
    assert len({arm_key(label) for label in identities[:2000]}) == 2000
    # every pair is of different labels
    labels = [
        1, "1", b"1", ("1",), (1,), "1.0", 1.5, "True", Color.RED, Color.BLUE, "a", ("a", "b"),
        ("ab",), (("a",), "b"), frozenset({"a"}), date(2026, 1, 1), datetime(2026, 1, 1),
        "2026-01-01", float("inf"), -float("inf"), 10**30, 10**30 + 1, "\ud800", "",
        pd.Timestamp("2026-01-01 00:00:00.000000001"), datetime(2026, 1, 1, tzinfo=UTC),
    ]  # fmt: skip
    assert len({canonical(label) for label in labels}) == len(labels)
    assert len(set(new_keys(labels, ()))) == len(labels)


def test_keys_do_not_depend_on_the_process():
    """Each draws its own seed of hashes and has its own addresses, and these keys."""
    assert arm_key(Nameless()) == arm_key(Nameless())
    assert [arm_key(label) for label in ("a", frozenset("abcdef"), 7)] == [
        -8793498590732925012, -870127829303426667, -5458701589803479809
    ]  # fmt: skip


def test_collisions_are_resolved(monkeypatch):
    """With keys of 3 bits, eight arms use all of them."""
    whole = arm_key
    monkeypatch.setattr(_arm_keys, "arm_key", lambda label, attempt=0: whole(label, attempt) % 8)
    keys = new_keys("abcdefgh", ())
    assert sorted(keys) == list(range(8))
    assert new_keys("abcdefgh", ()) == keys
    nameless = [Nameless(), Nameless()]
    assert len(set(new_keys(nameless, ()))) == 2


@pytest.mark.parametrize("arms", [[1, "1"], ["plumless", "buckeroo"], [True, "True"]])
def test_arms_of_similar_labels_are_drawn_independently(arms):
    """CRC-32, an earlier key, of "plumless" and "buckeroo" is the same."""
    policy = GLMUCBPolicy(exploration="thompson", arms=arms, random_state=0)
    x = np.zeros((4000, 1))
    proba = policy.select_proba(x[:1])[0]
    np.testing.assert_allclose(proba, 0.5, atol=0.002)
    count = int((policy.select(x) == policy.arms_[1]).sum())
    low, high = stats.binom.ppf([5e-6, 1 - 5e-6], 4000, 0.5)  # fails falsely once in 100,000
    assert low <= count <= high


def test_the_kernels_take_all_64_bits():
    """A flip of any bit of the key changes the number drawn."""
    key = arm_key("a")
    drawn = {uniform(0, 0, key, TIE)}
    for bit in range(64):
        flipped = int(np.int64(np.uint64(key % 2**64) ^ np.uint64(2**bit)))
        drawn.add(uniform(0, 0, flipped, TIE))
    assert len(drawn) == 65


@pytest.mark.parametrize(
    ("label", "known", "expected"),
    [
        ("1", [0, 1], 1), (1, ["0", "1"], "1"), (1.0, ["1"], "1"), ("1.0", [1], 1),
        (" 2", [2], 2), ("True", [True], True), (False, ["False"], "False"), (b"a", ["a"], "a"),
        ("a", [b"a"], b"a"), ("-3", [-3], -3), (0.5, ["0.5"], "0.5"), (1, ["1.0"], "1.0"),
        ("a", [0, 1], None), ("1", ["0", "01"], None), (2, ["1"], None), ("1_0", [10], None),
        ("9" * 5000, [9], None), (("a",), ["a"], None), (float("inf"), ["1"], None),
    ],
)  # fmt: skip
def test_twins(label, known, expected):
    found = lookalike_label(["other", label], dict.fromkeys(known))
    if expected is None:
        assert found is None
    else:
        assert found == (label, expected) and type(found[1]) is type(expected)


def test_a_string_twin_of_a_number_warns():
    """As labels read from JSON are, beside arms=[0, 1]."""
    y = pd.DataFrame({"action": ["1", "0"], "reward": [1, 0]})
    policy = GLMUCBPolicy(arms=[0, 1], random_state=0)
    with pytest.warns(
        UserWarning, match=r"arm '1' of type str is new, and the policy knows the arm 1 of"
    ):
        policy.partial_fit(X[:2], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.partial_fit(X[:2], y)  # known by now
        GLMUCBPolicy(arms=[1, "1"]).partial_fit(X[:2], y.assign(action=[1, "1"]))
    with pytest.warns(UserWarning, match="arm '1' of type str is new"):
        GLMUCBPolicy(arms=[0, 1]).select(X[:1], available=[("1", 0)])
    mixed = y.assign(action=pd.Series([1, "1"], dtype=object))
    with pytest.warns(UserWarning, match="labels of different types are different arms"):
        GLMUCBPolicy().fit(X[:2], mixed)


def test_a_closed_set_of_arms():
    policy = GLMUCBPolicy(arms=[0, 1], new_arms="error", random_state=0)
    y = pd.DataFrame({"action": [0, 1], "reward": [1, 0]})
    policy.partial_fit(X[:2], y)
    before = pickle.dumps(policy.coef_)
    message = r"'1' is not among the arms, 0, 1: with new_arms='error'"
    for attempt in (
        lambda: policy.partial_fit(X[:1], y[:1].assign(action="1")),
        lambda: policy.fit(X[:1], y[:1].assign(action="1")),
        lambda: policy.select(X[:1], available=[("1", 0)]),
        lambda: policy.predict(X[:1], available=[("1", 0)]),
        lambda: policy.select_proba(X[:1], available=[("1", 0)]),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert pickle.dumps(policy.coef_) == before and policy.arms_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="name it with arms="):
        GLMUCBPolicy(new_arms="error").fit(X[:2], y)


@pytest.mark.parametrize("covariance", first(1, ["diagonal", "full"]))
def test_dropped_arms_are_forgotten(covariance):
    """As if their events had never been, with a fixed prior."""
    settings = PAPER | {"covariance": covariance, "random_state": 0, "exploration": "thompson"}
    policy = GLMUCBPolicy(**settings).fit(X, Y).drop_arms(["b", "d"])
    other = GLMUCBPolicy(**settings).fit(X, Y, sample_weight=~Y["action"].isin(["b", "d"]))
    assert policy.arms_.tolist() == other.arms_.tolist()
    for name in ("coef_", "covariance_", "n_updates_", "intercept_"):
        np.testing.assert_array_equal(getattr(policy, name), getattr(other, name))
    np.testing.assert_array_equal(policy.select(X), other.select(X))
    policy.partial_fit(X[:50], Y[:50])  # they come back as new arms
    assert policy.arms_.tolist()[:3] == other.arms_.tolist()
    only = GLMUCBPolicy(**settings).fit(X[:50], Y[:50])
    back = [policy.arms_.tolist().index(arm) for arm in "bd"]
    there = [only.arms_.tolist().index(arm) for arm in "bd"]
    np.testing.assert_array_equal(policy.coef_[back], only.coef_[there])


def test_drop_arms_takes_delayed_events_along():
    policy = GLMUCBPolicy(update_every=1e9, random_state=0).fit(X, TIMED)
    policy.drop_arms(["a"]).advance()
    assert policy.arms_.tolist() == [arm for arm in dict.fromkeys(Y["action"]) if arm != "a"]
    assert policy.n_updates_.sum() == (Y["action"] != "a").sum()


def test_no_arm_is_known_before_the_first_window_ends():
    policy = GLMUCBPolicy(update_every=1e9, random_state=0).fit(X, TIMED)
    for method in (policy.select, policy.predict, policy.select_proba):
        with pytest.raises(NotFittedError, match="knows no arms, as its events wait"):
            method(X)
    assert set(policy.select(X, available=["a", "b"])) <= {"a", "b"}
    assert len(policy.advance().select(X)) == len(X)


def test_wrong_drops():
    policy = GLMUCBPolicy(random_state=0).fit(X, Y)
    before = policy.coef_
    with pytest.raises(ValueError, match="contains 'z', which is not an arm"):
        policy.drop_arms(["a", "z"])
    with pytest.raises(ValueError, match="at least one"):
        policy.drop_arms(policy.arms_)
    with pytest.raises(TypeError, match="must be a list of labels"):
        policy.drop_arms("ab")
    np.testing.assert_array_equal(policy.coef_, before)


def test_a_dict_is_a_table():
    rows = Y[:2].assign(action=["b", "a"])
    event = {"action": rows["action"].tolist(), "reward": rows["reward"].tolist()}
    learned = GLMUCBPolicy().partial_fit(X[:2], event)
    np.testing.assert_array_equal(learned.coef_, GLMUCBPolicy().partial_fit(X[:2], rows).coef_)
    assert learned.arms_.tolist() == ["a", "b"]
    with pytest.raises(TypeError, match=r"got 'news': write \['news'\]"):
        GLMUCBPolicy().partial_fit(X[:1], {"action": "news", "reward": [1]})
    with pytest.raises(ValueError, match="'action'"):
        GLMUCBPolicy().partial_fit(X[:2], {"arm": [1, 2], "reward": [0, 1]})


@pytest.mark.parametrize("labels", [["a", "b"], [0, 1], [0.5, 1.5], [True, False], [1, "b"]])
def test_labels_go_back_as_json(labels):
    n = 40
    for action in ([labels[k % 2] for k in range(n)], np.array(labels * 20, dtype=object)):
        y = {"action": action, "reward": np.arange(n) % 3 == 0}
        policy = GLMUCBPolicy(random_state=0).fit(X[:n], y)
        chosen = json.loads(json.dumps(policy.select(X).tolist()))
        assert {type(arm) for arm in chosen} <= {type(arm) for arm in labels}
        ordered = labels if "b" in labels else sorted(labels)
        assert json.loads(json.dumps(policy.arms_.tolist())) == ordered
    boxed = pd.Series([np.int64(3), "b"] * 20, dtype=object)
    mixed = GLMUCBPolicy().fit(X[:n], {"action": boxed, "reward": np.zeros(n)})
    assert json.dumps(mixed.arms_.tolist()) == '[3, "b"]'


def test_masked_values_are_refused():
    masked = np.ma.array(np.ones(len(X)), mask=np.arange(len(X)) < 5)
    action = Y["action"]
    for attempt, name in (
        (lambda p: p.fit(X, action, reward=masked), "reward"),
        (lambda p: p.fit(X, {"action": action, "reward": masked}), "reward"),
        (lambda p: p.fit(X, np.ma.array(action), reward=Y["reward"]), "y"),
        (lambda p: p.fit(np.ma.array(X), Y), "X"),
        (lambda p: p.fit(X.to_numpy(), Y).select(np.ma.array(X)), "X"),
        (lambda p: p.fit(X, Y, sample_weight=masked), "sample_weight"),
    ):
        with pytest.raises(TypeError, match=f"{name} is a masked array"):
            attempt(GLMUCBPolicy("linear"))
