"""Policies and selectors behind transformers, with all of their methods."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skbandit import (
    ConstrainedPolicy,
    ConstrainedReduction,
    ConstrainedThreshold,
    GLMUCBPolicy,
    OffPolicyClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
    assign,
)
from skbandit.bandit import PolicyPipeline, make_policy_pipeline
from skbandit.datasets import make_bandit_log
from skbandit.rates import positive_rate, recall
from tests.worlds import make_log, refuses, warns

# === A policy behind transformers, with all of the policy's methods =============================

X, Y = make_log()
Y = Y.drop(columns="timestamp")  # events are learned again here


def pipeline(**settings):
    return make_policy_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0, **settings))


def test_its_methods_are_the_policys_on_transformed_contexts():
    policy = pipeline(exploration="thompson").fit(X[:200], Y[:200])
    scaler = StandardScaler().fit(X[:200])
    alone = GLMUCBPolicy(exploration="thompson", random_state=0)
    alone.fit(scaler.transform(X[:200]), Y[:200])
    z, available = scaler.transform(X), [("a", "b"), ("c", "d")] * 150
    assert policy.arms_.tolist() == alone.arms_.tolist()
    for name in ("predict", "select", "select_proba"):
        for options in ({}, {"available": available}):
            expected = getattr(alone, name)(z, **options)
            np.testing.assert_array_equal(getattr(policy, name)(X, **options), expected)
    for name in ("decision_function", "predict_reward", "select_scores"):
        np.testing.assert_array_equal(getattr(policy, name)(X), getattr(alone, name)(z))
    policy.partial_fit(X[200:], Y[200:])
    alone.partial_fit(z[200:], Y[200:])
    np.testing.assert_array_equal(policy[-1].coef_, alone.coef_)
    np.testing.assert_array_equal(policy[0].mean_, scaler.mean_)  # applied, not fitted again
    policy.drop_arms(["a"])
    assert "a" not in policy.arms_
    assert policy[:-1].transform(X).shape == X.shape


def test_the_first_partial_fit_fits_the_transformers():
    policy = make_policy_pipeline(
        StandardScaler(), FunctionTransformer(np.tanh), "passthrough", GLMUCBPolicy(random_state=0)
    )
    with pytest.raises(NotFittedError):
        policy.select(X)
    policy.partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert policy.arms_.tolist() == policy[-1].arms_.tolist()
    scaler = StandardScaler().fit(X[:100])
    z = np.tanh(scaler.transform(X))
    np.testing.assert_array_equal(policy[-1].coef_, GLMUCBPolicy().fit(z, Y).coef_)
    ready = PolicyPipeline([("scale", scaler), ("policy", GLMUCBPolicy())])
    ready.partial_fit(X[100:], Y[100:])  # only what is not fitted is fitted
    assert ready[0] is scaler


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_errors_leave_it_unchanged(method):
    wrong = Y.assign(reward=5.0)
    fresh = pipeline()
    with pytest.raises(ValueError, match="reward is 5"):
        getattr(fresh, method)(X, wrong)
    assert not hasattr(fresh[0], "mean_") and not hasattr(fresh, "arms_")
    policy = pipeline().fit(X[:100], Y[:100])
    before = pickle.dumps(policy)
    with pytest.raises(ValueError, match="reward is 5"):
        getattr(policy, method)(X * 100, wrong)
    assert pickle.dumps(policy) == before


def test_only_what_the_last_step_can():
    classifier = make_policy_pipeline(StandardScaler(), LogisticRegression())
    for name in (
        "select", "select_proba", "select_scores", "predict_reward", "partial_fit", "advance",
        "drop_arms", "arms_",
    ):  # fmt: skip
        assert not hasattr(classifier, name)
        assert hasattr(pipeline().fit(X, Y), name)
    classifier.fit(X, Y["reward"]).predict(X)


def test_it_is_a_scikit_learn_estimator():
    policy = make_policy_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0), verbose=False)
    assert isinstance(policy, Pipeline)
    assert policy.get_params()["glmucbpolicy__alpha"] == 0.2
    policy.set_params(glmucbpolicy__alpha=0.3).set_output(transform="pandas").fit(X, Y)
    assert policy[-1].feature_names_in_.tolist() == X.columns.tolist()
    copied = clone(policy)
    assert type(copied) is PolicyPipeline and copied[-1].alpha == 0.3
    assert not hasattr(copied[0], "mean_")
    restored = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(restored.select(X), policy.select(X))
    assert "GLMUCBPolicy" in repr(policy)
    assert "StandardScaler" in policy._repr_html_() and "GLMUCBPolicy" in policy._repr_html_()


@pytest.mark.parametrize("routing", [False, True])
def test_metadata_reach_the_policy(routing):
    available = [("a", "b", "c", "d", "e")] * len(X)
    weight = np.arange(len(X)) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=routing):
        scaler = StandardScaler()
        if routing:
            scaler.set_fit_request(sample_weight=False)
        policy = make_policy_pipeline(scaler, GLMUCBPolicy(random_state=0))
        metadata = {"reward": Y["reward"], "available": available, "sample_weight": weight}
        policy.fit(X, Y["action"], **metadata)
        policy.partial_fit(X, Y["action"], **metadata)
        chosen = policy.predict(X, available=[("b", "z")] * len(X))
    assert set(chosen) <= {"b", "z"}
    z = StandardScaler().fit_transform(X)
    alone = GLMUCBPolicy(random_state=0).fit(z, Y, sample_weight=weight)
    alone.partial_fit(z, Y, sample_weight=weight)
    np.testing.assert_array_equal(policy[-1].coef_, alone.coef_)


class Stateless(TransformerMixin, BaseEstimator):
    """Without fitted attributes, so scikit-learn takes it for unfitted."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) * 2


def test_a_transformer_without_a_state():
    policy = make_policy_pipeline(StandardScaler(), Stateless(), GLMUCBPolicy())
    policy.partial_fit(X[:100], Y[:100])
    mean = policy[0].mean_
    policy.partial_fit(X[100:], Y[100:])
    np.testing.assert_array_equal(policy[0].mean_, mean)


def test_rows_are_matched_before_the_transformers():
    """A frame behind a scaler is an array, whose rows have no labels."""
    log, users = make_bandit_log(60, n_arms=2, random_state=0), [f"u{k}" for k in range(60)]
    X = pd.DataFrame(log.X).set_axis(users)
    X.columns = X.columns.astype(str)
    y = pd.DataFrame({"action": log.y["action"], "reward": log.y["reward"]}).set_axis(users)
    pools = pd.Series([(arm,) if k % 3 else (0, 1) for k, arm in enumerate(y["action"])], users)
    turned = X[::-1]
    for method in ("fit", "partial_fit"):
        policy = make_policy_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
        learn = getattr(policy, method)
        for wrong in (
            {"y": y[::-1]},
            {"y": y, "sample_weight": pd.Series(1.0, users[::-1])},
            {"y": y["action"].to_numpy(), "reward": y["reward"][::-1]},
        ):
            warns("have the same row labels in different orders", learn, X, **wrong)
        scores = getattr(clone(policy), method)(X, y).predict_reward(X)
        policy = clone(policy)
        # `available` is put in order by its labels, as nothing else is
        getattr(policy, method)(X, y, available=pools[::-1])
        np.testing.assert_array_equal(policy.predict_reward(X), scores)
        for choose in (policy.predict, policy.select, policy.select_proba):
            options = {"available": pools}
            of_turned = choose(turned, **options)[::-1]
            if choose != policy.select:  # whose random numbers are those of the next choices
                np.testing.assert_array_equal(of_turned, choose(X, **options))
            allowed = [pools[user] for user in users]
            if choose != policy.select_proba:
                assert all(arm in pool for arm, pool in zip(of_turned, allowed, strict=True))


# === Selectors and priced policies behind transformers ==========================================

N, ADS = 300, ["x", "y", "z", "w"]
RNG = np.random.default_rng(0)
X_SELECTOR = pd.DataFrame(
    {"age": RNG.normal(40, 9, N), "place": RNG.choice(["east", "west"], N)},
    index=[f"u{k}" for k in range(N)],
)
COSTS = pd.DataFrame(
    -np.column_stack(
        [X_SELECTOR["age"] / 40, X_SELECTOR["place"] == "east", np.ones(N), RNG.random(N)]
    ),
    X_SELECTOR.index,
    ADS,
)
PAY = COSTS.assign(
    x=-X_SELECTOR["age"], y=-20.0 - 4 * (X_SELECTOR["place"] == "east"), z=-16.0, w=-14.0
)
"""Of x for nearly all, if it costs nothing, and then of y; without ties."""
AVAILABLE = pd.DataFrame(RNG.random((N, 4)) < 0.8, X_SELECTOR.index, ADS)
AVAILABLE[["x", "z"]] = True


def encoder():
    return make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["place"]))


def selector_pipeline(last=None):
    return make_policy_pipeline(encoder(), last or RegressionSetSelector(n_select=2))


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("selector", [RegressionSetSelector, SetSelectClassifier])
def test_all_that_a_selector_can(selector, routing):
    last = selector(n_select=2)
    with sklearn.config_context(enable_metadata_routing=routing):
        found = selector_pipeline(last).fit(X_SELECTOR, COSTS, available=AVAILABLE[::-1])
        Z = encoder().fit_transform(X_SELECTOR)
        alone = selector(n_select=2).fit(Z, COSTS, available=AVAILABLE.to_numpy())
        assert found.ads_.tolist() == ADS and found.n_select == 2
        given = {"available": AVAILABLE.to_numpy()}
        expected = alone.predict(Z, **given)
        turned = AVAILABLE[::-1]  # matched by label before the transformers
        np.testing.assert_array_equal(found.predict(X_SELECTOR, available=turned), expected)
        np.testing.assert_array_equal(
            found.predict_indicator(X_SELECTOR, available=turned),
            alone.predict_indicator(Z, **given),
        )
        score = found.score(X_SELECTOR, COSTS, available=turned, position_weights=[1.0, 0.5])
        assert score == alone.score(Z, COSTS, position_weights=[1.0, 0.5], **given)
        assert found.score(X_SELECTOR, COSTS, available=ADS) > score
    three = found.predict(X_SELECTOR, available=["x"], n_select=3, fill="none") == "none"
    assert three.sum(axis=1).tolist() == [2] * N


def test_costs_keep_their_labels_down_to_assign():
    selector = selector_pipeline().fit(X_SELECTOR, COSTS)
    costs = selector.predict_costs(X_SELECTOR)
    assert costs.index.equals(X_SELECTOR.index) and costs.columns.tolist() == ADS
    alone = RegressionSetSelector(n_select=2).fit(encoder().fit_transform(X_SELECTOR), COSTS)
    np.testing.assert_array_equal(costs, alone.predict_costs(encoder().fit_transform(X_SELECTOR)))
    with_labels, by_position = (
        assign(costs, {"x": 100}, n_select=2, available=one)
        for one in (AVAILABLE[::-1], AVAILABLE.to_numpy())
    )
    np.testing.assert_array_equal(with_labels, by_position)
    assert (with_labels == "x").sum() <= 100
    assert (
        type(selector_pipeline().fit(X_SELECTOR, COSTS.to_numpy()).predict_costs(X_SELECTOR))
        is np.ndarray
    )


@pytest.mark.parametrize("routing", [False, True])
def test_ads_with_features(routing):
    Z = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0, 5.0]}, [*ADS, "new"])
    with sklearn.config_context(enable_metadata_routing=routing):
        last = RegressionSetSelector(n_select=2)
        if routing:
            last.set_predict_request(ad_features=True)
        selector = selector_pipeline(last).fit(X_SELECTOR, COSTS, ad_features=Z)
        assert selector.predict_costs(X_SELECTOR, ad_features=Z).columns.tolist() == [*ADS, "new"]
        assert set(selector.predict(X_SELECTOR, ad_features=Z[3:]).ravel()) == {"w", "new"}
    if not routing:
        named = selector_pipeline().fit(X_SELECTOR, COSTS, regressionsetselector__ad_features=Z)
        pd.testing.assert_frame_equal(
            named.predict_costs(X_SELECTOR), selector.predict_costs(X_SELECTOR)
        )


def test_only_what_the_selector_can():
    classifier = make_policy_pipeline(StandardScaler(), LogisticRegression())
    of_selectors = ("predict_costs", "predict_indicator", "ads_", "n_select")
    for name in (*of_selectors, "reprice", "expected_costs"):
        assert not hasattr(classifier, name)
    assert all(hasattr(selector_pipeline().fit(X_SELECTOR, COSTS), name) for name in of_selectors)
    assert not hasattr(selector_pipeline(), "select") and not hasattr(
        selector_pipeline(), "partial_fit"
    )
    assert (
        classifier.fit(X_SELECTOR[["age"]], AVAILABLE["y"]).score(
            X_SELECTOR[["age"]], AVAILABLE["y"]
        )
        > 0.5
    )


@pytest.mark.thorough
def test_prices_behind_transformers():
    """As without a pipeline, on transformed rows; `reprice` transforms its rows."""
    cap = positive_rate(of="x") <= 0.25
    policy = selector_pipeline(ConstrainedPolicy(Ridge(), None, cap)).fit(X_SELECTOR, PAY)
    Z = encoder().fit(X_SELECTOR)
    alone = ConstrainedPolicy(Ridge(), None, cap).fit(Z.transform(X_SELECTOR), PAY)
    np.testing.assert_array_equal(
        policy.predict(X_SELECTOR), alone.predict(Z.transform(X_SELECTOR))
    )
    expected = policy.expected_costs(X_SELECTOR)
    assert expected.index.equals(X_SELECTOR.index)
    np.testing.assert_array_equal(expected, alone.expected_costs(Z.transform(X_SELECTOR)))
    older = X_SELECTOR.assign(age=X_SELECTOR["age"] + 30.0)
    assert np.mean(policy.predict(older) == "x") > 0.9
    assert policy.reprice(older) is policy
    assert np.mean(policy.predict(older) == "x") <= 0.25
    assert policy[-1].prices_.equals(alone.reprice(Z.transform(older)).prices_)


@pytest.mark.thorough
def test_attributes_reach_a_priced_policy():
    """Without the name of a step; in other orders they are told."""
    cap = positive_rate(of="x", where="place == 'east'") <= 0.1
    policy = selector_pipeline(ConstrainedPolicy(Ridge(), None, cap)).fit(
        X_SELECTOR, PAY, attributes=X_SELECTOR
    )
    east = X_SELECTOR["place"] == "east"
    assert np.mean(policy.predict(X_SELECTOR, attributes=X_SELECTOR)[east] == "x") <= 0.1
    assert np.mean(policy.predict(X_SELECTOR, attributes=X_SELECTOR)[~east] == "x") > 0.3
    policy.reprice(X_SELECTOR, attributes=X_SELECTOR)
    for call in (policy.predict, policy.reprice):
        with pytest.warns(UserWarning, match="attributes and X have the same row labels"):
            call(X_SELECTOR, attributes=X_SELECTOR[::-1])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Trees predict the costs")
def test_a_pipeline_of_costs_inside_of_others():
    """ConstrainedPolicy and ConstrainedReduction learn costs by a selector behind an encoder."""
    inner = selector_pipeline(RegressionSetSelector())
    cap = positive_rate(of="x") <= 0.25
    policy = ConstrainedPolicy(inner, None, cap).fit(X_SELECTOR, PAY)
    assert np.mean(policy.predict(X_SELECTOR) == "x") <= 0.25
    labels = np.where(X_SELECTOR["age"] > 45, "old", X_SELECTOR["place"])
    goal = recall(of="old") >= 0.9
    model = ConstrainedReduction(inner, None, goal, max_iter=2).fit(X_SELECTOR, labels)
    assert np.mean(model.predict(X_SELECTOR)[labels == "old"] == "old") >= 0.85


LABELS = (X_SELECTOR["age"] > 40).astype(int)
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
@pytest.mark.filterwarnings("ignore:Trees predict the costs")
def test_text_is_told_with_its_column_and_the_cure(model, y):
    numbers = X_SELECTOR.assign(place=(X_SELECTOR["place"] == "east") + np.arange(N) / N)
    told = r"X has strings in the column 'place', such as '(east|west)': encode them, as by OneHot"
    refuses(told, model.fit, X_SELECTOR, y)
    model.fit(numbers, y)
    refuses(told, model.predict, X_SELECTOR)
    refuses("X contains NaN in the column 'age'", model.predict, numbers.assign(age=np.nan))


def test_it_is_a_pipeline():
    selector = selector_pipeline().fit(X_SELECTOR, COSTS)
    assert type(selector[1:]) is PolicyPipeline
    np.testing.assert_array_equal(
        selector.decision_function(X_SELECTOR), -selector.predict_costs(X_SELECTOR).to_numpy()
    )
