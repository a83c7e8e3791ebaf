"""Input of policies: what raises an error that names it, and what is read without validation."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skbandit import GLMUCBPolicy
from skbandit.bandit import (
    OffPolicyClassifier,
    OraclePolicy,
    SharedGLMPolicy,
    SlatePolicy,
    _sequential,
    make_policy_pipeline,
)
from skbandit.datasets import read_parquet_log
from skbandit.evaluation import off_policy_blocks, off_policy_value, replay
from tests.tiers import first
from tests.worlds import refuses, warns

# === Wrong input raises an error that names it, and leaves the policy unchanged =================

X = np.arange(12.0).reshape(6, 2)
Y = pd.DataFrame({"action": list("abcabc"), "reward": [0, 1, 0, 1, 1, 0]})


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y.assign(reward=[0, 1, 2, 0, 0, 1]), "reward is 2 on row 2"),
        (Y.assign(reward=[0, 1, np.nan, 0, 0, 1]), "reward is missing on row 2"),
        (Y.assign(reward=list("nynyny")), "reward must be numbers"),
        (Y.assign(action=["a", "b", None, "a", "b", "c"]), "action is missing on row 2"),
        (Y[:4], "4 events for 6 rows"),
        (Y.to_numpy(), "no column names"),
        (Y[["reward"]], "no column 'action'"),
        (Y[["action"]], "no rewards"),
        (Y.assign(propensity=[0.5, 0.5, 0.0, 0.5, 0.5, 0.5]), "row 2 has 0"),
        (Y.assign(propensity=[0.5, 0.5, np.nan, 0.5, 0.5, 0.5]), "propensity is missing on row 2"),
        (Y.assign(available=[("a", "b")] * 6), "row 2: the action 'c' is not among"),
        (Y.assign(available=[("a", "b", "c")] * 5 + [()]), "row 5 has no arm"),
    ],
)
def test_wrong_logs(y, message):
    policy = GLMUCBPolicy().fit(X, Y)
    before = policy.coef_.copy(), policy.arms_.tolist()
    for method in (policy.fit, policy.partial_fit):
        refuses(message, method, X, y)
    np.testing.assert_array_equal(policy.coef_, before[0])
    assert policy.arms_.tolist() == before[1]


def test_rewards_outside_of_the_range_name_the_cure():
    refuses("link='linear'", GLMUCBPolicy("probit").fit, X, Y.assign(reward=5.0))
    GLMUCBPolicy("linear").fit(X, Y.assign(reward=5.0))


def slates(**options):
    return SlatePolicy(GLMUCBPolicy("linear"), n_select=1, random_state=0, **options)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda reward: GLMUCBPolicy("linear").partial_fit(X, Y["action"], reward=reward),
        lambda reward: OraclePolicy(Ridge()).fit(X, Y.assign(reward=reward)),
        lambda reward: OffPolicyClassifier().fit(X, Y.assign(reward=reward)),
        lambda reward: slates().fit(X, Y.assign(reward=reward)),
        lambda reward: slates().fit(X, Y[["action"]], reward=reward[:, None]),
        lambda reward: slates().fit(X, Y[["action"]], reward=list(reward[:, None])),
        lambda reward: off_policy_value(Y["action"], X, Y.assign(reward=reward, propensity=1.0)),
        lambda reward: replay(GLMUCBPolicy("linear"), X, Y.assign(reward=reward)),
    ],
)
def test_unsigned_costs_as_rewards(call):
    warns(r"reward holds 255 as uint8, .*-y.astype\(float\)", call, -Y["reward"].to_numpy("uint8"))
    call(Y["reward"].to_numpy("uint8"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "log"}, "link"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": lambda n: n - 1}, "nonnegative"),
        ({"alpha": lambda n: np.ones((2, 2))}, r"shape \(2, 2\)"),
        ({"epsilon": 1.2}, "epsilon"),
        ({"ucb": "U4"}, "ucb"),
        ({"prior_mean": [1.0]}, r"shape \(1,\), expected a number or one for each of the 2"),
        ({"prior_mean": [1.0, np.nan]}, "must be finite"),
        ({"prior_variance": [1.0, 0.0]}, "must be positive"),
        ({"prior_variance": -1.0}, "prior_variance"),
        ({"prior_mean": "adaptive", "forgetting": 0.9}, "fixed prior"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"update_every": 60}, "no column 'timestamp'"),
        ({"update_every": 0}, "update_every"),
        ({"update_every": True}, "update_every=True is no length of time"),
        ({"update_every": "soon"}, "soon|unit|parse"),
        ({"update_every": "86400"}, "'86400' is 8.64e-05 seconds, .* unit.*'86400s'"),
        ({"update_every": " 60.5 "}, "no length of time|want of a unit"),
        ({"arms": ["a", "a"]}, "'a' twice"),
    ],
)
def test_wrong_parameters(settings, message):
    policy = GLMUCBPolicy(**settings)
    refuses(message, policy.fit, X, Y)
    assert not hasattr(policy, "coef_")


def test_fit_refuses_a_duration_of_numpy_without_a_unit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer NumPy deprecates making one
        length = np.timedelta64(60)
    refuses("want of a unit", GLMUCBPolicy(update_every=length).fit, X, Y)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("reward", np.ones(6) + 1j),
        ("reward", np.full(6, np.datetime64("2026-01-01"))),
        ("propensity", np.full(6, np.timedelta64(1, "ns"))),
        ("timestamp", np.ones(6) + 1j),
    ],
)
def test_complex_numbers_and_dates_are_refused(column, values):
    """NumPy would keep the real part, or convert dates to nanoseconds."""
    with pytest.raises(ValueError, match=rf"{column} must be .*numbers"):
        GLMUCBPolicy("linear").fit(X, Y.assign(**{column: values}))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_beyond_64_bits_of_nanoseconds(unit):
    """They end in the year 2262."""
    start = np.datetime64("2200-01-01" if unit == "ns" else "9000-01-01", unit)
    at = start + (np.arange(6) * 30).astype("timedelta64[s]")
    far, near = (GLMUCBPolicy("linear", update_every="1min", random_state=0) for _ in range(2))
    far.fit(X, Y.assign(timestamp=at))
    near.fit(X, Y.assign(timestamp=30.0 * np.arange(6)))
    np.testing.assert_array_equal(far.coef_, near.coef_)


ONE_ARM = [
    GLMUCBPolicy(random_state=0),
    SharedGLMPolicy(random_state=0),
    OraclePolicy(Ridge(), random_state=0),
    OffPolicyClassifier(random_state=0),
]
SLATES = Y.assign(action=[["a", "b"], ["b", "c"]] * 3, reward=[(0, 1), (1, 0)] * 3)


@pytest.mark.parametrize("policy", ONE_ARM, ids=lambda policy: type(policy).__name__)
def test_a_log_of_slates_is_sent_to_its_policy(policy):
    tuples = SLATES.assign(action=SLATES["action"].map(tuple))
    for y in (SLATES, SLATES.assign(reward=1.0), tuples, SLATES.to_dict("list")):
        with pytest.raises(TypeError, match="SlatePolicy, and for replay_slates, slate_ips"):
            clone(policy).fit(X, y)
    with pytest.raises(
        TypeError, match=r"action has several values on a row, such as \['a', 'b'\]"
    ):
        clone(policy).fit(X, SLATES["action"].tolist(), reward=Y["reward"])
    pools = tuples.assign(reward=1.0, available=[("a", "b", "c")] * 6)
    refuses(r"\('a', 'b'\) is not among .*: a log of slates is for", clone(policy).fit, X, pools)
    clone(policy).fit(X, tuples.assign(reward=Y["reward"]))  # a tuple may be a label


@pytest.mark.parametrize("policy", ONE_ARM[:3], ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("arm", [103, "a", np.array(103)])
def test_scalars_for_one_event(policy, arm):
    with pytest.raises(TypeError, match=r"action must have one value per row, got .*: write \["):
        clone(policy).partial_fit(X[:1], {"action": arm, "reward": 1})
    with pytest.raises(ValueError, match=r"reward must have one value per row, got 1: write \[1\]"):
        clone(policy).partial_fit(X[:1], {"action": [103], "reward": 1})
    clone(policy).partial_fit(X[:1], {"action": [103], "reward": [1]})


@pytest.mark.parametrize("policy", ONE_ARM, ids=lambda policy: type(policy).__name__)
def test_strings_among_the_features(policy):
    words = pd.DataFrame({"age": np.arange(6.0), "device": ["tv", "ios"] * 3})
    logged = Y.assign(action=list("ababab"))
    message = r"X has strings in the column 'device', such as '(tv|ios)': encode .*OneHotEncoder"
    with pytest.raises(ValueError, match=message):
        clone(policy).set_params(**({"cv": 2} if hasattr(policy, "cv") else {})).fit(words, logged)
    refuses("X has strings, such as 'x': encode", GLMUCBPolicy().fit, [["x"], ["y"]], Y[:2])
    refuses(message, off_policy_value, np.full((6, 2), 0.5), words, logged, cv=2, method="dr")


def test_lists_and_missing_values_among_the_features():
    rows = pd.DataFrame({"age": np.arange(6.0), "embedding": [[0.0, 1.0]] * 6})
    refuses(
        "X has lists in the column 'embedding': pass a column per", GLMUCBPolicy().fit, rows, Y[:6]
    )
    rows = pd.DataFrame({"age": np.arange(6.0), "size": [1.0, np.nan] * 3})
    with pytest.raises(ValueError, match=r"X contains NaN in the column 'size': .*SimpleImputer"):
        GLMUCBPolicy().fit(rows, Y[:6])
    refuses("X contains NaN: fill", GLMUCBPolicy().fit, rows.to_numpy(), Y[:6])


def test_columns_must_be_a_dict():
    refuses("'columns' parameter of GLMUCBPolicy must be", GLMUCBPolicy(columns="arm_id").fit, X, Y)


# === Rows of known columns skip scikit-learn's validation, and only these do ====================

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.normal(size=60), "visits": RNG.integers(9, size=60), "new": RNG.random(60) < 0.5}
)
Y_COLUMNS = pd.DataFrame({"action": RNG.integers(3, size=60), "reward": RNG.random(60) < 0.3})


def refuse(*args, **kwargs):
    raise AssertionError("validated in full")


@pytest.mark.parametrize(
    "rows",
    [
        FRAME[:1], FRAME[5:9], FRAME[["age", "visits", "new"]], FRAME.astype(float)[:2],
        FRAME.astype("float32")[:2], pd.DataFrame(FRAME[:2].to_dict("records")),
    ],
)  # fmt: skip
def test_known_columns(rows, monkeypatch):
    policy = GLMUCBPolicy(random_state=0).fit(FRAME, Y_COLUMNS)
    expected = policy.decision_function(rows.astype(object))
    monkeypatch.setattr(_sequential, "validate_data", refuse)
    np.testing.assert_array_equal(policy.decision_function(rows), expected)
    refuses("in full", policy.select, rows.rename(columns={"age": "Age"}), error=AssertionError)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (FRAME[["visits", "age", "new"]], "same order"),
        (FRAME.rename(columns={"age": "Age"}), "Feature names unseen"),
        (FRAME[["age", "visits"]], "missing|features"),
        (FRAME.assign(age=np.nan), "NaN"),
        (FRAME.assign(age=np.inf), "infinity"),
        (FRAME.assign(age="old"), "strings in the column 'age', such as 'old'"),
        (FRAME[:0], "0 sample"),
    ],
)
def test_others_are_errors_as_before(rows, message):
    policy = GLMUCBPolicy(random_state=0).fit(FRAME, Y_COLUMNS)
    for method in ("select", "predict", "select_proba"):
        with pytest.raises(ValueError, match=message), warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(policy, method)(rows)
    with pytest.raises(ValueError, match=message), warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.partial_fit(rows, Y_COLUMNS[: len(rows)])


def test_names_are_still_compared_with_arrays():
    named = GLMUCBPolicy(random_state=0).fit(FRAME, Y_COLUMNS)
    warns("does not have valid feature names", named.predict, FRAME.to_numpy(dtype=float))
    unnamed = GLMUCBPolicy(random_state=0).fit(FRAME.to_numpy(dtype=float), Y_COLUMNS)
    warns("fitted without feature names", unnamed.predict, FRAME)


def test_any_order_of_memory(monkeypatch):
    x = np.asfortranarray(RNG.normal(size=(60, 3)))
    policy = GLMUCBPolicy(random_state=0).fit(x, Y_COLUMNS)
    expected = policy.decision_function(np.ascontiguousarray(x))
    monkeypatch.setattr(_sequential, "validate_data", refuse)
    np.testing.assert_array_equal(policy.decision_function(x[:, ::-1][:, ::-1]), expected)
    one = policy.decision_function(x[3:4])
    np.testing.assert_array_equal(one, expected[3:4])
    policy.predict(np.ones((2, 3), dtype=bool))


# === Logs without contexts: policies learn the mean rewards of arms, and None is refused ========

N = 600
RATES = np.array([0.1, 0.3, 0.7])


def log():
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=N)
    reward = (rng.random(N) < RATES[action]).astype(float)
    return pd.DataFrame({"action": action, "reward": reward, "propensity": 1 / 3})


FEATURES = pd.DataFrame({"price": [0.0, 1.0, 2.0]})
POLICIES = {
    "GLM": GLMUCBPolicy(random_state=0),
    "full": GLMUCBPolicy("linear", covariance="full", exploration="thompson", random_state=0),
    "plain": GLMUCBPolicy(standardize=False, prior_variance=1.0, random_state=0),
    "Oracle": OraclePolicy(Ridge(), random_state=0),
    "Shared": SharedGLMPolicy(FEATURES, random_state=0),
    "OffPolicyClassifier": OffPolicyClassifier(random_state=0),
}
FORMS = {
    "array": np.empty((N, 0)),
    "frame": pd.DataFrame(index=range(N)),
    "sparse": sparse.csr_array((N, 0)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", first(2, POLICIES))
def test_policies_learn_mean_rewards(name, form):
    if form == "sparse" and name == "Oracle":
        form = "frame"  # Oracle takes no sparse contexts
    X, y = FORMS[form], log()
    policy = POLICIES[name].fit(X[:300] if form != "sparse" else X.tocsr()[:300], y[:300])
    assert policy.n_features_in_ == 0
    assert policy.predict(X).tolist() == [2] * N
    assert set(policy.select(X)) <= {0, 1, 2}
    if hasattr(policy, "predict_reward"):
        assert policy.predict_reward(X[:1])[0] == pytest.approx(RATES[policy.arms_], abs=0.15)
    refuses(r"0 features|has 1 features", policy.predict, np.zeros((3, 1)))
    best = y["reward"][300:][y["action"] == 2].mean()
    rest = FORMS["array"][300:], y[300:]
    for method in ("snips", "dr"):
        found = off_policy_value(policy, *rest, rule="predict", method=method)
        assert found.mean_reward == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("form", ["array", "frame"])
def test_replay_and_blocks(form, tmp_path):
    X, y = FORMS[form], log()
    result = replay(GLMUCBPolicy(random_state=0), X, y, random_state=0)
    assert result.mean_reward > 0.5
    y.to_parquet(tmp_path / "log.parquet")
    policy = GLMUCBPolicy(random_state=0).fit(X, y)
    blocks = read_parquet_log(tmp_path / "log.parquet", [])
    with pytest.warns(UserWarning, match="fitted to this very log"):
        found = off_policy_blocks(policy, blocks, arms=range(3), rule="predict")
    assert found["snips"].mean_reward == pytest.approx(y["reward"][y["action"] == 2].mean())


def test_none_is_refused_with_the_cure():
    y, cure = log(), r"X is None: a policy needs contexts .*np\.empty\(\(n_events, 0\)\)"
    for policy in POLICIES.values():
        refuses(cure, policy.fit, None, y)
    fitted = GLMUCBPolicy(random_state=0).fit(FORMS["array"], y)
    for call in (replay, off_policy_value):
        refuses(cure, call, fitted, None, y)


def test_without_contexts_and_intercept_there_is_nothing_to_learn():
    with pytest.raises(ValueError, match="no columns and fit_intercept=False"):
        GLMUCBPolicy(fit_intercept=False).fit(FORMS["array"], log())


# === Rewards that are all equal: nothing can be learned from them, and clicks alone look like that

X_EQUAL = np.random.default_rng(0).normal(size=(100, 2))
ARMS = ["a", "b"] * 50
MESSAGE = r"all of 1\d\d rewards are 1, .*they must report 0, too, or join_rewards\(missing=0"


def equal_log(reward, n=100):
    return {"action": ARMS[:n], "reward": [reward] * n}


@pytest.mark.parametrize(
    "policy",
    [
        GLMUCBPolicy(),
        SharedGLMPolicy(),
        OraclePolicy(DecisionTreeClassifier()),
        make_policy_pipeline(StandardScaler(), GLMUCBPolicy()),
        SlatePolicy(n_select=1),
    ],
    ids=["glm", "shared", "oracle", "pipeline", "slate"],
)
def test_said_once(policy):
    warns(MESSAGE, policy.fit, X_EQUAL, equal_log(1))
    policy.partial_fit(X_EQUAL, equal_log(1))  # not again
    with pytest.warns(UserWarning, match=MESSAGE):
        policy.fit(X_EQUAL, equal_log(1))  # a new beginning
    policy.fit(X_EQUAL, {"action": ARMS, "reward": [0] + [1] * 99}).partial_fit(
        X_EQUAL, equal_log(1)
    )
    policy.fit(X_EQUAL, equal_log(0)).partial_fit(X_EQUAL, equal_log(0))  # rewards may be rare


def test_counted_over_calls_and_copies():
    policy = GLMUCBPolicy("linear", arms=["a", "b"])
    for k in range(98):
        policy.partial_fit(X_EQUAL[k : k + 1], {"action": ["a"], "reward": [5.0]})
    policy = pickle.loads(pickle.dumps(policy))
    one_event = {"action": ["a", "a"], "reward": [5.0, 4.0]}
    policy.partial_fit(X_EQUAL[:2], one_event, sample_weight=[1.0, 0.0])
    saved = pickle.dumps(policy)
    with pytest.warns(UserWarning, match="all of 100 rewards are 5, so that no arm is better"):
        policy.partial_fit(X_EQUAL[:1], {"action": ["b"], "reward": [5.0]})
    other = pickle.loads(saved).partial_fit(X_EQUAL[:1], {"action": ["a"], "reward": [4.0]})
    other.partial_fit(X_EQUAL, equal_log(4.0))
    with warnings.catch_warnings(), pytest.raises(UserWarning):  # as an error, it changes nothing
        warnings.simplefilter("error")
        pickle.loads(saved).partial_fit(X_EQUAL, equal_log(5.0))


def test_only_zeros_are_told_after_many():
    policy = GLMUCBPolicy("linear", prior_scale=1)
    zeros = {"action": np.zeros(9_999, dtype=int), "reward": np.zeros(9_999)}
    policy.fit(np.zeros((9_999, 1)), zeros)
    with pytest.warns(UserWarning, match="all of 10000 rewards are 0, .* check that ids and times"):
        policy.partial_fit([[0.0]], {"action": [0], "reward": [0.0]})
