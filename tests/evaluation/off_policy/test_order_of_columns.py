"""One order of arms: a table without names is read as it was made, or refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy
from skbandit.evaluation import off_policy_value, replay
from skbandit.logs import mark_columns

rng = np.random.default_rng(0)
ARM = np.r_[2, 1, 0, rng.integers(3, size=597)]
X = rng.normal(size=(600, 2))
Y = pd.DataFrame(
    {"action": ARM, "reward": (rng.random(600) < np.array([0.9, 0.2, 0.1])[ARM]).astype(float)}
)
OLD, NEW = slice(0, 300), slice(300, 600)
POLICIES = [
    GLMUCBPolicy(exploration="squarecb", random_state=0),
    GLMUCBPolicy(exploration="squarecb", arms=[2, 0, 1], random_state=0),
    SharedGLMPolicy(exploration="squarecb", covariance="diagonal", random_state=0),
    OraclePolicy(Ridge(), random_state=0),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_probabilities_have_the_value_of_their_policy(policy):
    policy = clone(policy).fit(X[OLD], Y[OLD])
    assert policy.arms_.tolist() == [0, 1, 2]
    table = policy.select_proba(X[NEW])
    value = off_policy_value(policy, X[NEW], Y[NEW]).mean_reward
    assert off_policy_value(table, X[NEW], Y[NEW]).mean_reward == pytest.approx(value)
    assert value > 0.7


@pytest.mark.parametrize("policy", [POLICIES[0], *POLICIES[2:]], ids=lambda one: type(one).__name__)
def test_later_arms_are_appended_and_their_tables_need_names(policy):
    first = ARM[OLD] != 0
    policy = clone(policy).partial_fit(X[OLD][first], Y[OLD][first])
    policy.partial_fit(X[OLD][~first], Y[OLD][~first])
    assert policy.arms_.tolist() == [1, 2, 0]
    table = policy.select_proba(X[NEW])
    with pytest.raises(ValueError, match=r"columns 1, 2, 0.*columns=policy.arms_"):
        off_policy_value(table, X[NEW], Y[NEW])
    value = off_policy_value(policy, X[NEW], Y[NEW]).mean_reward
    for right in (pd.DataFrame(table, columns=policy.arms_), table[:, np.argsort(policy.arms_)]):
        assert off_policy_value(right, X[NEW], Y[NEW]).mean_reward == pytest.approx(value)
    mask = np.ones((300, 3), dtype=bool)
    for call in (
        lambda: policy.select(X[NEW], available=mask),
        lambda: off_policy_value(policy, X[NEW], Y[NEW], available=mask),
        lambda: replay(policy, X[NEW], Y[NEW], available=mask),
    ):
        with pytest.raises(ValueError, match="could be read in two ways"):
            call()
    allowed = pd.DataFrame([[True, False, False]] * 300, columns=[2, 0, 1])
    assert (policy.select(X[NEW], available=allowed) == 2).all()


OUT_OF_ORDER = mark_columns(rng.dirichlet([1, 2, 3], size=300), [1, 2, 0])


@pytest.mark.parametrize(
    "change",
    [
        lambda P: np.vstack([P[:100], P[100:]]),
        lambda P: np.concatenate([P, P])[:300],
        lambda P: P.astype("f4"),
        lambda P: 0.5 * P + 0.5 * P[::-1],
        lambda P: P / P.sum(axis=1, keepdims=True),
        lambda P: np.clip(P, 0, 1),
        lambda P: P[np.arange(300)],
        lambda P: P[P[:, 0] >= 0],
        lambda P: P[:, [0, 1, 2]],
        lambda P: P[:, :],
        np.asarray,
        copy.deepcopy,
        lambda P: pickle.loads(pickle.dumps(P)),
    ],
)
def test_columns_out_of_order_are_known_as_such(change):
    with pytest.raises(ValueError, match=r"select_proba made with .*columns=policy.arms_"):
        off_policy_value(change(OUT_OF_ORDER), X[NEW], Y[NEW])


def test_columns_put_in_order_are_read():
    order = [2, 0, 1]
    wanted = off_policy_value(pd.DataFrame(OUT_OF_ORDER, columns=[1, 2, 0]), None, Y[NEW])
    for table in (OUT_OF_ORDER[:, order], OUT_OF_ORDER[:, [1, 0, 2]][:, [2, 1, 0]]):
        assert type(table) is np.ndarray
        assert table.dtype.metadata is None
        assert off_policy_value(table, None, Y[NEW]) == wanted
    # what is no table of arms is an ordinary array
    for plain in (OUT_OF_ORDER[0], OUT_OF_ORDER[:, 1], OUT_OF_ORDER.sum(axis=1)):
        assert type(plain) is np.ndarray
    assert repr(OUT_OF_ORDER[:1]).startswith("array([[")


def test_arms_named_in_another_order_are_sorted_and_their_masks_refused():
    policy = GLMUCBPolicy(arms=["small", "medium", "large"], random_state=0)
    mask = np.array([[True, False, False]])
    with pytest.raises(ValueError, match="'small', 'medium', 'large', are not in the order"):
        policy.select([[0.0]], available=mask)
    assert policy.arms_.tolist() == ["large", "medium", "small"]
    named = pd.DataFrame(mask, columns=["small", "medium", "large"])
    assert policy.select([[0.0]], available=named).tolist() == ["small"]
    shared = SharedGLMPolicy(pd.DataFrame({"z": [1.0, 2.0]}, index=["b", "a"]), random_state=0)
    with pytest.raises(ValueError, match="two ways"):
        shared.select([[0.0]], available=mask[:, :2])
    assert shared.arm_features_["z"].tolist() == [2.0, 1.0]


def test_the_first_arms_are_sorted_in_every_way_to_begin():
    log = pd.DataFrame({"action": ["c", "a", "b", "a"], "reward": [1.0, 0, 1, 0]})
    for begin in ("fit", "partial_fit"):
        policy = getattr(GLMUCBPolicy(random_state=0), begin)(np.ones((4, 1)), log)
        assert policy.arms_.tolist() == ["a", "b", "c"]
    policy.partial_fit([[1.0]] * 2, ["e", "d"], reward=[1, 0])
    assert policy.arms_.tolist() == ["a", "b", "c", "e", "d"]
    unsortable = GLMUCBPolicy().fit(np.ones((2, 1)), ["b", 1], reward=[1, 0])
    assert unsortable.arms_.tolist() == ["b", 1]
