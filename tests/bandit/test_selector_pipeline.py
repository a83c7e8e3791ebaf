"""Selectors and priced policies behind transformers."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import (
    ConstrainedPolicy,
    ConstrainedReduction,
    ConstrainedThreshold,
    OffPolicyClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
    assign,
)
from skbandit.bandit import PolicyPipeline, make_policy_pipeline
from skbandit.rates import positive_rate, recall

N, ADS = 300, ["x", "y", "z", "w"]
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"age": RNG.normal(40, 9, N), "place": RNG.choice(["east", "west"], N)},
    index=[f"u{k}" for k in range(N)],
)
COSTS = pd.DataFrame(
    -np.column_stack([X["age"] / 40, X["place"] == "east", np.ones(N), RNG.random(N)]), X.index, ADS
)
PAY = COSTS.assign(x=-X["age"], y=-20.0 - 4 * (X["place"] == "east"), z=-16.0, w=-14.0)
"""Of x for nearly all, if it costs nothing, and then of y; without ties."""
AVAILABLE = pd.DataFrame(RNG.random((N, 4)) < 0.8, X.index, ADS)
AVAILABLE[["x", "z"]] = True


def encoder():
    return make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["place"]))


def pipeline(last=None):
    return make_policy_pipeline(encoder(), last or RegressionSetSelector(n_select=2))


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("selector", [RegressionSetSelector, SetSelectClassifier])
def test_all_that_a_selector_can(selector, routing):
    last = selector(n_select=2)
    with sklearn.config_context(enable_metadata_routing=routing):
        found = pipeline(last).fit(X, COSTS, available=AVAILABLE[::-1])
        Z = encoder().fit_transform(X)
        alone = selector(n_select=2).fit(Z, COSTS, available=AVAILABLE.to_numpy())
        assert found.ads_.tolist() == ADS and found.n_select == 2
        given = {"available": AVAILABLE.to_numpy()}
        expected = alone.predict(Z, **given)
        turned = AVAILABLE[::-1]  # matched by label before the transformers
        np.testing.assert_array_equal(found.predict(X, available=turned), expected)
        np.testing.assert_array_equal(
            found.predict_indicator(X, available=turned), alone.predict_indicator(Z, **given)
        )
        score = found.score(X, COSTS, available=turned, position_weights=[1.0, 0.5])
        assert score == alone.score(Z, COSTS, position_weights=[1.0, 0.5], **given)
        assert found.score(X, COSTS, available=ADS) > score
    three = found.predict(X, available=["x"], n_select=3, fill="none") == "none"
    assert three.sum(axis=1).tolist() == [2] * N


def test_costs_keep_their_labels_down_to_assign():
    selector = pipeline().fit(X, COSTS)
    costs = selector.predict_costs(X)
    assert costs.index.equals(X.index) and costs.columns.tolist() == ADS
    alone = RegressionSetSelector(n_select=2).fit(encoder().fit_transform(X), COSTS)
    np.testing.assert_array_equal(costs, alone.predict_costs(encoder().fit_transform(X)))
    with_labels, by_position = (
        assign(costs, {"x": 100}, n_select=2, available=one)
        for one in (AVAILABLE[::-1], AVAILABLE.to_numpy())
    )
    np.testing.assert_array_equal(with_labels, by_position)
    assert (with_labels == "x").sum() <= 100
    assert type(pipeline().fit(X, COSTS.to_numpy()).predict_costs(X)) is np.ndarray


@pytest.mark.parametrize("routing", [False, True])
def test_ads_with_features(routing):
    Z = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0, 5.0]}, [*ADS, "new"])
    with sklearn.config_context(enable_metadata_routing=routing):
        last = RegressionSetSelector(n_select=2)
        if routing:
            last.set_predict_request(ad_features=True)
        selector = pipeline(last).fit(X, COSTS, ad_features=Z)
        assert selector.predict_costs(X, ad_features=Z).columns.tolist() == [*ADS, "new"]
        assert set(selector.predict(X, ad_features=Z[3:]).ravel()) == {"w", "new"}
    if not routing:
        named = pipeline().fit(X, COSTS, regressionsetselector__ad_features=Z)
        pd.testing.assert_frame_equal(named.predict_costs(X), selector.predict_costs(X))


def test_only_what_the_last_step_can():
    classifier = make_policy_pipeline(StandardScaler(), LogisticRegression())
    of_selectors = ("predict_costs", "predict_indicator", "ads_", "n_select")
    for name in (*of_selectors, "reprice", "expected_costs"):
        assert not hasattr(classifier, name)
    assert all(hasattr(pipeline().fit(X, COSTS), name) for name in of_selectors)
    assert not hasattr(pipeline(), "select") and not hasattr(pipeline(), "partial_fit")
    assert classifier.fit(X[["age"]], AVAILABLE["y"]).score(X[["age"]], AVAILABLE["y"]) > 0.5


def test_cross_validation():
    scores = cross_val_score(pipeline(), X, COSTS, cv=3)
    assert (scores > -COSTS.to_numpy().mean() * 2).all()


def test_rows_are_matched_before_the_transformers():
    selector = pipeline()
    with pytest.warns(UserWarning, match="y and X have the same row labels in different orders"):
        selector.fit(X, COSTS[::-1])
    with pytest.warns(UserWarning, match="y and X have the same row labels in different orders"):
        selector.score(X, COSTS[::-1])


def test_prices_behind_transformers():
    """As without a pipeline, on transformed rows; `reprice` transforms its rows."""
    cap = positive_rate(of="x") <= 0.25
    policy = pipeline(ConstrainedPolicy(Ridge(), None, cap)).fit(X, PAY)
    Z = encoder().fit(X)
    alone = ConstrainedPolicy(Ridge(), None, cap).fit(Z.transform(X), PAY)
    np.testing.assert_array_equal(policy.predict(X), alone.predict(Z.transform(X)))
    expected = policy.expected_costs(X)
    assert expected.index.equals(X.index)
    np.testing.assert_array_equal(expected, alone.expected_costs(Z.transform(X)))
    older = X.assign(age=X["age"] + 30.0)
    assert np.mean(policy.predict(older) == "x") > 0.9
    assert policy.reprice(older) is policy
    assert np.mean(policy.predict(older) == "x") <= 0.25
    assert policy[-1].prices_.equals(alone.reprice(Z.transform(older)).prices_)


def test_attributes_reach_a_priced_policy():
    """Without the name of a step; in other orders they are told."""
    cap = positive_rate(of="x", where="place == 'east'") <= 0.1
    policy = pipeline(ConstrainedPolicy(Ridge(), None, cap)).fit(X, PAY, attributes=X)
    east = X["place"] == "east"
    assert np.mean(policy.predict(X, attributes=X)[east] == "x") <= 0.1
    assert np.mean(policy.predict(X, attributes=X)[~east] == "x") > 0.3
    policy.reprice(X, attributes=X)
    for call in (policy.predict, policy.reprice):
        with pytest.warns(UserWarning, match="attributes and X have the same row labels"):
            call(X, attributes=X[::-1])


def test_a_pipeline_of_costs_inside_of_others():
    """ConstrainedPolicy and ConstrainedReduction learn costs by a selector behind an encoder."""
    inner = pipeline(RegressionSetSelector())
    cap = positive_rate(of="x") <= 0.25
    policy = ConstrainedPolicy(inner, None, cap).fit(X, PAY)
    assert np.mean(policy.predict(X) == "x") <= 0.25
    labels = np.where(X["age"] > 45, "old", X["place"])
    goal = recall(of="old") >= 0.9
    model = ConstrainedReduction(inner, None, goal, max_iter=2).fit(X, labels)
    assert np.mean(model.predict(X)[labels == "old"] == "old") >= 0.85


LABELS = (X["age"] > 40).astype(int)
LOG = pd.DataFrame({"action": RNG.integers(2, size=N), "reward": LABELS.to_numpy()})


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (RegressionSetSelector(), COSTS),
        (ConstrainedPolicy(), COSTS),
        (ConstrainedPolicy(RegressionSetSelector()), COSTS),
        (ConstrainedThreshold(LogisticRegression(), None, recall() >= 0.5), LABELS),
        (ConstrainedReduction(LogisticRegression(), None, recall() >= 0.5, max_iter=1), LABELS),
        (OffPolicyClassifier(), LOG),
    ],
    ids=lambda one: type(one).__name__,
)
def test_text_is_told_with_its_column_and_the_cure(model, y):
    numbers = X.assign(place=(X["place"] == "east") + np.arange(N) / N)
    told = r"X has strings in the column 'place', such as '(east|west)': encode them, as by OneHot"
    with pytest.raises(ValueError, match=told):
        model.fit(X, y)
    model.fit(numbers, y)
    with pytest.raises(ValueError, match=told):
        model.predict(X)
    with pytest.raises(ValueError, match="X contains NaN in the column 'age'"):
        model.predict(numbers.assign(age=np.nan))


def test_it_is_a_pipeline():
    selector = pipeline().fit(X, COSTS)
    assert type(selector[1:]) is PolicyPipeline
    np.testing.assert_array_equal(
        selector.decision_function(X), -selector.predict_costs(X).to_numpy()
    )
