"""A policy behind transformers, with all of the policy's methods."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.bandit import PolicyPipeline, make_policy_pipeline, select
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplayScorer, ReplaySplit, off_policy_value, replay
from tests.bandit.test_policy import make_log

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


def test_it_replays_as_a_pipeline_does():
    log = make_bandit_log(2400, n_arms=4, base_rate=0.3, random_state=0)
    fitted = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    fitted.fit(log.X[:400], log.y[:400])
    policy = PolicyPipeline(fitted.steps)
    one, other = (replay(p, log.X[400:], log.y[400:], random_state=0) for p in (policy, fitted))
    assert one.n_accepted > 300 and one.history.equals(other.history)
    np.testing.assert_array_equal(select(policy, log.X[:9]), select(clone_state(fitted), log.X[:9]))
    uniform = GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, random_state=0)
    policy = make_policy_pipeline(StandardScaler(), uniform).fit(log.X[:9], log.y[:9])
    estimate = off_policy_value(policy, log.X, log.y)
    assert abs(estimate.mean_reward - log.y["reward"].mean()) < 1e-9  # a uniform log


def clone_state(policy):
    return pickle.loads(pickle.dumps(policy))


def test_grid_search_over_replays():
    log = make_bandit_log(6000, n_arms=3, base_rate=0.3, random_state=0)
    search = GridSearchCV(
        pipeline(),
        {"glmucbpolicy__alpha": [0.3, 30.0]},
        scoring=ReplayScorer(random_state=0),
        cv=ReplaySplit(2),
        error_score="raise",
    )
    search.fit(log.X, log.y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert type(search.best_estimator_) is PolicyPipeline
    assert set(select(search, log.X[:50])) <= {0, 1, 2}


def test_text_columns_one_event_at_a_time():
    """The way a server uses it: history first, then events as they come."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 300), "place": rng.choice(["x", "y"], 300)})
    policy = make_policy_pipeline(
        make_column_transformer(
            (StandardScaler(), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["place"])
        ),
        GLMUCBPolicy(exploration="epsilon_greedy", epsilon=0.1, arms=["a", "b"]),
    ).fit(frame[:250], {"action": ["a", "b"] * 125, "reward": rng.random(250) < 0.5})
    for k in range(250, 300):
        row = frame[k : k + 1]
        p = policy.select_proba(row)
        arm = policy.select(row).tolist()
        assert p[0, policy.arms_.tolist().index(arm[0])] > 0
        policy.partial_fit(row, {"action": arm, "reward": [1]})
    assert policy[-1].n_updates_.sum() == 300


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
            with pytest.warns(UserWarning, match="have the same row labels in different orders"):
                learn(X, **wrong)
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
