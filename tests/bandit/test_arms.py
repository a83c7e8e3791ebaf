"""Arms: their labels, closed sets, arms that go, come later, and JSON."""

import copy
import enum
import pickle
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, _arm_keys
from skbandit.bandit._arm_keys import arm_key, canonical, lookalike_label, new_keys
from skbandit.bandit.exploration._random import TIE, uniform
from tests.policies import PAPER
from tests.tiers import first
from tests.worlds import make_log, refuses, warns

# === Labels of arms: their keys, twins of other types, closed sets, arms that go, and JSON ======

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


@pytest.mark.thorough
def test_a_string_twin_of_a_number_warns():
    """As labels read from JSON are, beside arms=[0, 1]."""
    y = pd.DataFrame({"action": ["1", "0"], "reward": [1, 0]})
    policy, told = GLMUCBPolicy(arms=[0, 1]), r"arm '1' of type str is new, and .* the arm 1 of"
    warns(told, policy.select, X[:1], available=[("1", 0)])
    warns(told, policy.partial_fit, X[:2], y)
    policy.partial_fit(X[:2], y)  # known by now
    mixed = y.assign(action=pd.Series([1, "1"], dtype=object))
    warns("labels of different types are different arms", GLMUCBPolicy().fit, X[:2], mixed)


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
        refuses(message, attempt)
    assert pickle.dumps(policy.coef_) == before and policy.arms_.tolist() == [0, 1]
    refuses("name it with arms=", GLMUCBPolicy(new_arms="error").fit, X[:2], y)


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
    assert policy.arms_.tolist() == sorted(policy.arms_)
    only = GLMUCBPolicy(**settings).fit(X[:50], Y[:50])
    back = [policy.arms_.tolist().index(arm) for arm in "bd"]
    there = [only.arms_.tolist().index(arm) for arm in "bd"]
    np.testing.assert_array_equal(policy.coef_[back], only.coef_[there])


def test_drop_arms_takes_delayed_events_along():
    policy = GLMUCBPolicy(update_every=1e9, random_state=0).fit(X, TIMED)
    policy.drop_arms(["a"]).advance()
    assert policy.arms_.tolist() == ["b", "c", "d", "e"]
    assert policy.n_updates_.sum() == (Y["action"] != "a").sum()


def test_no_arm_is_known_before_the_first_window_ends():
    policy = GLMUCBPolicy(update_every=1e9, random_state=0).fit(X, TIMED)
    for method in (policy.select, policy.predict, policy.select_proba):
        refuses("knows no arms, as its events wait", method, X, error=NotFittedError)
    assert set(policy.select(X, available=["a", "b"])) <= {"a", "b"}
    assert len(policy.advance().select(X)) == len(X)


def test_wrong_drops():
    policy = GLMUCBPolicy(random_state=0).fit(X, Y)
    before = policy.coef_
    refuses("contains 'z', which is not an arm", policy.drop_arms, ["a", "z"])
    refuses("at least one", policy.drop_arms, policy.arms_)
    refuses("must be a list of labels", policy.drop_arms, "ab", error=TypeError)
    np.testing.assert_array_equal(policy.coef_, before)


def test_a_dict_is_a_table():
    rows = Y[:2].assign(action=["b", "a"])
    event = {"action": rows["action"].tolist(), "reward": rows["reward"].tolist()}
    learned = GLMUCBPolicy().partial_fit(X[:2], event)
    np.testing.assert_array_equal(learned.coef_, GLMUCBPolicy().partial_fit(X[:2], rows).coef_)
    assert learned.arms_.tolist() == ["a", "b"]
    with pytest.raises(TypeError, match=r"got 'news': write \['news'\]"):
        GLMUCBPolicy().partial_fit(X[:1], {"action": "news", "reward": [1]})
    refuses("'action'", GLMUCBPolicy().partial_fit, X[:2], {"arm": [1, 2], "reward": [0, 1]})


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
        refuses(f"{name} is a masked array", attempt, GLMUCBPolicy("linear"), error=TypeError)


# === Arms that come when others are known, and contexts that would hide all others ==============

RATES = np.array([0.010, 0.0125, 0.015, 0.0175, 0.020])
OLD, ALL = list("abcde"), list("abcdef")


def known(link="logistic", **settings):
    """A policy that knows five arms of 1 to 2 % by 20,000 events."""
    rng = np.random.default_rng(0)
    k = rng.integers(5, size=20_000)
    policy = GLMUCBPolicy(link, random_state=0, **settings)
    reward = rng.random(20_000) < RATES[k]
    return policy.fit(rng.normal(size=(20_000, 2)), np.array(OLD)[k], reward=reward)


DAY = np.random.default_rng(1).normal(size=(4000, 2))


@pytest.mark.parametrize("link", ["logistic", "probit", "linear"])
@pytest.mark.parametrize("exploration", ["ucb", "thompson", "squarecb"])
def test_a_new_arm_is_explored_but_not_preferred(link, exploration):
    policy = known(link, exploration=exploration)
    assert (policy.predict(DAY, available=ALL) == "f").mean() < 0.01
    share = (policy.select(DAY, available=ALL) == "f").mean()
    assert 0 < share and (share < 1 / 3 or exploration == "ucb")


def test_its_mean_is_the_average_of_the_others():
    """In every context, at any time; from its first event on it has the prior's variance."""
    rng = np.random.default_rng(0)
    k = rng.integers(3, size=150)
    policy = GLMUCBPolicy(arms=[0, 1, 2, 3], random_state=0)
    X = rng.normal(size=(150, 2))
    reward = (rng.random(150) < 0.2 + 0.3 * (X[:, 0] > 0) * (k == 1)).astype(float)
    policy.fit(X, k, reward=reward)
    scores = policy.decision_function(DAY[:50])
    np.testing.assert_allclose(scores[:, 3], scores[:, :3].mean(axis=1), rtol=1e-9)
    for rows in (X[:1], csr_array(X[:1])):
        later = copy.deepcopy(policy).partial_fit(rows, [3], reward=[0], sample_weight=[1e-9])
        np.testing.assert_allclose(later.decision_function(DAY[:50]), scores, rtol=2e-3)
        assert (later.covariance_[3, :2] > 2 * policy.covariance_[3, :2]).all()


@pytest.mark.parametrize("link", first(1, ["logistic", "probit", "linear"]))
@pytest.mark.parametrize("sparse", [False, True])
def test_a_failure_does_not_raise_an_estimate(link, sparse):
    """Of an arm that comes when others are known, neither expected nor chosen more after it."""
    policy = known(link, exploration="squarecb", standardize="scale" if sparse else True)
    none = csr_array(np.zeros((1, 2))) if sparse else [[0.0, 0.0]]
    before = copy.deepcopy(policy).partial_fit(none, ["f"], reward=[0], sample_weight=[1e-12])
    expected = before.predict_reward([[0, 0]])[0, 5]
    for n in (1, 10, 50):
        for _ in range(n):
            policy.partial_fit(none, ["f"], reward=[0])
        now = policy.predict_reward([[0, 0]])[0]
        assert now[5] < expected
        assert now[5] < now[:5].mean()
        if link != "probit":  # whose mean rewards include the variance, larger in far-off contexts
            assert (policy.predict(DAY) == "f").mean() < 0.01
            assert (policy.select(DAY) == "f").mean() < 0.05
        expected = now[5]


@pytest.mark.parametrize("arms", [None, ["a", "z"]])
def test_predict_prefers_the_only_known_arm_to_one_without_events(arms):
    for n in (20, 100, 500):
        rng = np.random.default_rng(n)
        policy = GLMUCBPolicy(arms=arms, random_state=0)
        policy.fit(rng.normal(size=(n, 2)), ["z"] * n, reward=rng.random(n) < 0.3)
        assert (policy.predict(DAY, available=["a", "z"]) == "z").all()
    policy = GLMUCBPolicy(arms=arms, random_state=0)  # nor does it matter that there is no context
    policy.fit(np.empty((100, 0)), ["z"] * 100, reward=rng.random(100) < 0.01)
    assert policy.predict(np.empty((1, 0)), available=["a", "z"]).tolist() == ["z"]


@pytest.mark.thorough
@pytest.mark.parametrize("exploration", ["thompson", "squarecb"])
def test_a_new_arm_of_a_shared_model_is_not_preferred(exploration):
    """Its own weights hold what those of all arms do, such as a low rate."""
    rng, n = np.random.default_rng(0), 20_000
    category = pd.Series([2, 1, 1, 0, 0, 0], index=ALL)  # f is as d and e
    features = pd.get_dummies(category).astype(float)
    policy = SharedGLMPolicy(features, exploration=exploration, random_state=0)
    k = rng.integers(5, size=n)
    reward = rng.random(n) < RATES[k]
    policy.fit(rng.normal(size=(n, 2)), np.array(OLD)[k], reward=reward)
    d, e, f = policy.predict_reward(DAY).mean(axis=0)[3:]
    assert d < f < e
    assert (policy.predict(DAY) == "f").mean() < 0.05
    assert (policy.select(DAY) == "f").mean() < 1 / 4
    policy.partial_fit([[0.0, 0.0]], ["f"], reward=[0])
    assert policy.predict_reward(DAY).mean(axis=0)[5] < f


def test_labels_are_returned_as_they_are_offered():
    """Whatever equal ones this policy, or another one, was offered before."""
    a, b = (
        GLMUCBPolicy(random_state=0).fit(np.zeros((1, 1)), ["x"], reward=[0.0]) for _ in range(2)
    )
    pairs = [(1002.0, 1001.0), (1002, 1001), ((2.0,), (1.0,)), ((2,), (1,))]
    for policy in (a, b):
        for pair in (*pairs, *pairs[::-1]):
            (chosen,) = policy.select(np.zeros((1, 1)), available=[pair])
            plain = chosen.item() if isinstance(chosen, np.generic) else chosen
            assert repr(plain) in map(repr, pair)


def test_the_first_arms_start_from_the_prior():
    policy = GLMUCBPolicy(arms=list(range(9)), random_state=0)
    for _ in range(64):
        arm = policy.select([[1.0]])
        policy.partial_fit([[1.0]], {"action": arm, "reward": [0]})
    assert (policy.n_updates_ > 0).all()  # optimistic for rare rewards


FEW = np.random.default_rng(2).normal(size=(40, 2))


@pytest.mark.parametrize("value", [1e17, -1e30, 1e150])
@pytest.mark.parametrize(
    "policy",
    [
        GLMUCBPolicy(random_state=0),
        GLMUCBPolicy(standardize=False, random_state=0),
        SharedGLMPolicy(random_state=0),
        OraclePolicy(Ridge(), random_state=0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_context_that_would_hide_all_others_is_refused(policy, value):
    arms, reward = ["a", "b"] * 20, [0.0, 1.0] * 20
    wrong = FEW.copy()
    wrong[7, 1] = value
    frame = pd.DataFrame(wrong, columns=["age", "height"])
    with pytest.raises(ValueError, match=r"in column 'height' of row 7: contexts beyond 1e\+16"):
        policy.fit(frame, arms, reward=reward)
    refuses("in column 1 of row 0", policy.fit, wrong[7:8], ["a"], reward=[1])
    policy.fit(FEW, arms, reward=reward)
    before = policy.predict_reward(FEW)
    calls = [lambda: policy.partial_fit(wrong, arms, reward=reward), lambda: policy.select(wrong)]
    if not isinstance(policy, OraclePolicy):
        calls.append(lambda: policy.predict(csr_array(wrong)))
    for call in calls:
        refuses("in column 1 of row 7", call)
    np.testing.assert_array_equal(policy.predict_reward(FEW), before)


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        (OraclePolicy(GaussianNB(), refit="partial_fit"), "refit", 5),
        (OraclePolicy(GaussianNB(), refit=5), "refit", "partial_fit"),
        (GLMUCBPolicy(), "link", "probit"),
        (GLMUCBPolicy(), "fit_intercept", False),
        (GLMUCBPolicy(prior_scale=1, forgetting=1), "covariance", "full"),
        (GLMUCBPolicy(prior_scale=1, forgetting=1), "standardize", "scale"),
        (SharedGLMPolicy(), "link", "probit"),
    ],
)
def test_settings_of_the_models_cannot_change_after_learning(policy, name, value):
    arms, reward = ["a", "b", "a", "b"] * 10, [0, 1, 1, 0] * 10
    policy.set_params(random_state=0).fit(FEW, arms, reward=reward).set_params(**{name: value})
    for call in (
        lambda: policy.partial_fit(FEW[:4], arms[:4], reward=reward[:4]),
        lambda: policy.predict(FEW),
    ):
        refuses(f"{name}=.*, but the policy has learned", call)
    policy.fit(FEW, arms, reward=reward).predict(FEW)
