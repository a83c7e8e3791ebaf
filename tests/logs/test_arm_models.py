"""What arms have in common is learned once, where this helps; wild predictions are clipped."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skbandit.logs import (
    APART,
    ArmEvents,
    RewardsByArm,
    Sharing,
    cross_fitted_rewards,
    halves_of_rows,
    sharing_of,
    within_range,
)
from tests.worlds import warns

NEIGHBORS = KNeighborsRegressor(10)
TREES = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=8, random_state=0)


def world(n, common, seed=0, n_arms=3):
    """Contexts and rewards of all arms: steps of each arm, and of all of them together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    steps = np.column_stack([0.5 * np.sign(X[:, arm]) for arm in range(n_arms)])
    return X, steps + (common * (X[:, 3] - X[:, 4] + 1.5 * np.abs(X[:, 5])))[:, None]


def logged(n, common, seed=0, **options):
    X, rewards = world(n, common, seed)
    rng = np.random.default_rng(seed + 1000)
    arm = rng.integers(3, size=n)
    reward = rewards[np.arange(n), arm] + rng.normal(size=n)
    return ArmEvents(X, np.arange(n), arm, reward, None, 3, **options)


def test_models_of_arms_learn_what_the_halves_leave():
    """By hand: each half less the prediction of a model of the other; then a model per arm."""
    events, X = logged(300, 1.0), world(20, 1.0, 7)[0]
    half = halves_of_rows(events)
    assert np.bincount(half).tolist() == [150, 150]
    common = [Ridge().fit(events.X[half != k], events.reward[half != k]) for k in (0, 1)]
    others = np.choose(half, [model.predict(events.X) for model in common])
    expected = (common[0].predict(X) + common[1].predict(X)) / 2
    predicted = RewardsByArm.fitted(Ridge(), events, Sharing(half)).predicted(X)
    for arm in range(3):
        own = events.arm == arm
        model = Ridge().fit(events.X[own], (events.reward - others)[own])
        np.testing.assert_allclose(predicted[:, arm], expected + model.predict(X))


FORMS = {
    "array": np.asarray,
    "float32": np.float32,
    "frame": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "frame of two types": lambda X: pd.DataFrame(X, columns=list("abcdef")).astype({"b": int}),
    "integers": lambda X: np.round(10 * X).astype(int),
    "sparse": csr_matrix,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        RidgeCV(),
        make_pipeline(StandardScaler(with_mean=False), LinearRegression()),
        make_pipeline(StandardScaler(with_std=False), StandardScaler(with_mean=False), Ridge()),
        make_pipeline(MinMaxScaler(clip=True), RidgeCV()),
        TREES,
    ],
    ids=repr,
)
def test_predictions_are_those_of_the_models_one_by_one(model, form):
    if form == "sparse" and (
        "with_std" in repr(model) or "MinMax" in repr(model) or model is TREES
    ):
        pytest.skip("refuses sparse contexts")
    events = replace(logged(300, 0.0), X=FORMS[form](world(300, 0.0)[0] + 5.0))
    models, X = RewardsByArm.fitted(model, events), FORMS[form](world(40, 0.0, 3)[0] + 5.0)
    one_by_one = np.column_stack([fitted.predict(X) for fitted in models.by_arm])
    near = 1e-4 if form == "float32" else 0.0  # scikit-learn rounds elsewhere, by version
    np.testing.assert_allclose(models.predicted(X), one_by_one, rtol=near, atol=near)


def test_columns_in_another_order_and_missing_values_are_refused_as_by_the_model():
    events = replace(logged(300, 0.0), X=FORMS["frame"](world(300, 0.0)[0]))
    models = RewardsByArm.fitted(make_pipeline(StandardScaler(), Ridge()), events)
    X = events.X[:3]
    with pytest.raises(ValueError, match="same order"):
        models.predicted(X[list("bacdef")])
    with pytest.raises(ValueError, match="contains NaN"):
        models.predicted(X.where(X > X.min()))
    with pytest.raises(ValueError, match="missing"):
        models.predicted(X[["a", "b"]])


def test_one_model_learns_what_the_halves_leave_with_a_column_per_arm():
    events, X = logged(300, 1.0), world(20, 1.0, 7)[0]
    half = halves_of_rows(events)
    models = RewardsByArm.fitted(TREES, events, Sharing(half, in_one=True))
    common = [clone(TREES).fit(events.X[half != k], events.reward[half != k]) for k in (0, 1)]
    others = np.choose(half, [model.predict(events.X) for model in common])
    columns = np.column_stack([events.X, np.eye(3)[events.arm]])
    one = clone(TREES).fit(columns, events.reward - others)
    predicted = models.predicted(X)
    for arm in range(3):
        expected = one.predict(np.column_stack([X, np.tile(np.eye(3)[arm], (20, 1))]))
        expected += (common[0].predict(X) + common[1].predict(X)) / 2
        np.testing.assert_allclose(predicted[:, arm], expected)


def test_one_model_has_no_reward_of_an_arm_without_events():
    events = logged(300, 1.0)
    few = events.take(events.arm > 0)
    q = RewardsByArm.fitted(NEIGHBORS, few, Sharing(halves_of_rows(few), True)).predicted(few.X)
    assert np.isnan(q[:, 0]).all()
    assert np.isfinite(q[:, 1:]).all()


def test_sharing_is_of_one_model_where_a_common_part_is_strong():
    sharing = sharing_of(TREES, logged(2000, 3.0, 1))
    assert sharing.in_one
    assert np.bincount(sharing.half).tolist() == [1000, 1000]


@pytest.mark.thorough
def test_shared_models_choose_better_arms_where_a_common_part_is_strong():
    X, rewards = world(4000, 2.0, 9)
    events, at = logged(2000, 2.0), np.arange(4000)
    gains = []
    for sharing in (APART, sharing_of(TREES, events)):
        chosen = RewardsByArm.fitted(TREES, events, sharing).predicted(X).argmax(axis=1)
        gains.append((rewards[at, chosen] - rewards.mean(axis=1)).mean())
    assert gains[1] > gains[0] + 0.1


def test_sharing_leaves_out_one_model_if_transformers_drop_the_columns_of_arms():
    events = replace(logged(600, 2.0), X=FORMS["frame"](world(600, 2.0)[0]))
    model = make_pipeline(ColumnTransformer([("kept", "passthrough", list("abcdef"))]), TREES)
    assert not sharing_of(model, events).in_one


@pytest.mark.parametrize("seed", range(3))
def test_linear_models_share_nothing(seed):
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(1500, 5)), rng.integers(4, size=1500)
    reward = 2 * X.sum(axis=1) + X[np.arange(1500), arm] + rng.normal(size=1500)
    assert sharing_of(Ridge(), ArmEvents(X, np.arange(1500), arm, reward, None, 4)) is APART


@pytest.mark.thorough
def test_a_row_does_not_see_its_own_reward_through_the_common_part():
    events = logged(600, 3.0)
    assert sharing_of(NEIGHBORS, events).half is not None
    options = {"n_arms": 3, "random_state": 0}
    before = cross_fitted_rewards(NEIGHBORS, events.X, events.arm, events.reward, **options)
    reward = events.reward.copy()
    reward[7] += 1.0
    after = cross_fitted_rewards(NEIGHBORS, events.X, events.arm, reward, **options)
    np.testing.assert_array_equal(after[7], before[7])
    assert (after != before).any(axis=1).sum() > 10  # of other folds


def test_where_there_is_nothing_in_common():
    events = logged(200, 1.0)
    assert sharing_of(TREES, events.take(events.arm == 1)) is APART
    binary = ArmEvents(
        *(getattr(events, name) for name in ("X", "row", "arm")), events.row % 2, None, 3
    )
    assert sharing_of(LogisticRegression(), binary) is APART
    q = RewardsByArm.fitted(LinearRegression(), events.take(events.arm > 0)).predicted(events.X[:4])
    assert np.isnan(q[:, 0]).all() and np.isfinite(q[:, 1:]).all()


def test_weights_and_sparse_contexts():
    """Integer weights are copies, up to which rows are in a half; sparse is dense."""
    events = logged(400, 1.0)
    sharing = Sharing(halves_of_rows(events))
    weight = np.random.default_rng(0).integers(1, 4, size=400)
    weighted = ArmEvents(events.X, events.row, events.arm, events.reward, weight, 3)
    rows = np.repeat(np.arange(400), weight)
    model, X = LinearRegression(), events.X[:9]
    expected = RewardsByArm.fitted(model, events.take(rows), sharing).predicted(X)
    np.testing.assert_allclose(RewardsByArm.fitted(model, weighted, sharing).predicted(X), expected)
    sparse = ArmEvents(
        csr_matrix(events.X), *(weighted.row, weighted.arm, weighted.reward, weight), 3
    )
    found = RewardsByArm.fitted(model, sparse, sharing).predicted(X)
    np.testing.assert_allclose(found, expected, atol=1e-4)  # by an iterative solver


def test_wild_predictions_are_clipped_to_the_range_of_rewards():
    predicted, ends = np.array([[0.2, 1.1], [-0.9, 0.5], [0.5, np.nan]]), (0.0, 1.0)
    np.testing.assert_array_equal(within_range(predicted, ends, np.arange(3)), predicted)
    predicted[1] = -30.0, 2.5
    message = r"row 12: a model predicts -30, where all rewards are from 0 to 1"
    warns(message, within_range, predicted, ends, np.arange(11, 14))
    expected = [[0.2, 1.1], [0.0, 1.0], [0.5, np.nan]]
    np.testing.assert_array_equal(within_range(predicted, ends), expected)
    equal = np.full((2, 2), 0.1 + 0.2)  # a model of equal rewards may be off by rounding
    np.testing.assert_array_equal(within_range(equal, (0.3, 0.3), np.arange(2)), equal)


def test_a_wild_context_is_told():
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    reward = (rng.random(2000) < 0.3) * 1.0
    X[77, 0] = 1e9
    with pytest.warns(UserWarning, match="row 77: a model predicts .* all rewards are from 0 to 1"):
        q = cross_fitted_rewards(None, X, arm, reward, 2, random_state=0)
    assert q.min() > -1 and q.max() < 2
