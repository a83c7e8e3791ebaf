"""Wrong input raises an error that names it, and leaves the policy unchanged."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OffPolicyClassifier, OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.evaluation import off_policy_value, replay

X = np.arange(12.0).reshape(6, 2)
Y = pd.DataFrame({"action": list("abcabc"), "reward": [0, 1, 0, 1, 1, 0]})


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y.assign(reward=[0, 1, 2, 0, 0, 1]), "reward is 2 on row 2"),
        (Y.assign(reward=[0, 1, -0.5, 0, 0, 1]), "reward is -0.5 on row 2"),
        (Y.assign(reward=[0, 1, np.nan, 0, 0, 1]), "reward is missing on row 2"),
        (Y.assign(reward=list("nynyny")), "reward must be numbers"),
        (Y.assign(action=["a", "b", None, "a", "b", "c"]), "action is missing on row 2"),
        (Y[:4], "4 events for 6 rows"),
        (Y[:0], "0 events for 6 rows"),
        (Y.to_numpy(), "no column names"),
        (Y[["reward"]], "no column 'action'"),
        (Y[["action"]], "no rewards"),
        (Y.rename(columns={"reward": "rewards"}), "rename it to 'reward'"),
        (Y.assign(propensity=[0.5, 0.5, 0.0, 0.5, 0.5, 0.5]), "row 2 has 0"),
        (Y.assign(propensity=[0.5, 0.5, 1.5, 0.5, 0.5, 0.5]), "row 2 has 1.5"),
        (Y.assign(propensity=[0.5, 0.5, np.nan, 0.5, 0.5, 0.5]), "propensity is missing on row 2"),
        (Y.assign(available=[("a", "b")] * 6), "row 2: the action 'c' is not among"),
        (Y.assign(available=["abc"] * 6), "one tuple of arm labels per row"),
        (Y.assign(available=[("a", "b", "c")] * 5 + [()]), "row 5 has no arm"),
    ],
)
def test_wrong_logs(y, message):
    policy = GLMUCBPolicy().fit(X, Y)
    before = policy.coef_.copy(), policy.arms_.tolist()
    for method in (policy.fit, policy.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(X, y)
    np.testing.assert_array_equal(policy.coef_, before[0])
    assert policy.arms_.tolist() == before[1]


def test_rewards_outside_of_the_range_name_the_cure():
    with pytest.raises(ValueError, match="link='linear'"):
        GLMUCBPolicy("probit").fit(X, Y.assign(reward=5.0))
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
        lambda reward: slates(feedback="slate").fit(X, Y.assign(reward=reward)),
        lambda reward: off_policy_value(Y["action"], X, Y.assign(reward=reward, propensity=1.0)),
        lambda reward: replay(GLMUCBPolicy("linear"), X, Y.assign(reward=reward)),
    ],
)
def test_unsigned_costs_as_rewards(call):
    with pytest.warns(UserWarning, match=r"reward holds 255 as uint8, .*-y.astype\(float\)"):
        call(-Y["reward"].to_numpy("uint8"))
    call(Y["reward"].to_numpy("uint8"))


@pytest.mark.parametrize(
    ("available", "message"),
    [
        (np.ones((6, 2), dtype=bool), r"shape \(6, 2\), expected \(6, 3\)"),
        (np.full((6, 3), 0.5), "boolean table .* got 0.5 in row 0"),
        ([("a",)] * 5, "5 entries for 6 rows"),
        ((("a",), "b"), "2 entries for 6 rows"),
        (("a", "b", "a"), "names 'a' twice"),
        ([("a",)] * 5 + [()], "row 5 has no arm"),
        (np.zeros((6, 3), dtype=bool), "row 0 has no arm"),
    ],
)
def test_wrong_available_arms(available, message):
    policy = GLMUCBPolicy().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        policy.select(X, available=available)


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
        ({"update_every": "86400"}, "'86400' has no unit.*'86400s'"),
        ({"update_every": " 60.5 "}, "has no unit"),
        ({"update_every": np.timedelta64(60)}, "has no unit"),
        ({"arms": ["a", "a"]}, "'a' twice"),
    ],
)
def test_wrong_parameters(settings, message):
    policy = GLMUCBPolicy(**settings)
    with pytest.raises(ValueError, match=message):
        policy.fit(X, Y)
    assert not hasattr(policy, "coef_")


def test_timestamps_must_not_decrease():
    policy = GLMUCBPolicy(update_every=60)
    with pytest.raises(ValueError, match="timestamp goes back on row 3"):
        policy.fit(X, Y.assign(timestamp=[0, 100, 200, 150, 300, 400]))


def test_labels_must_be_hashable():
    with pytest.raises(TypeError, match="hashable"):
        GLMUCBPolicy().fit(X, Y.assign(action=[["a"]] * 6))


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
    with pytest.raises(ValueError, match=r"\('a', 'b'\) is not among .*: a log of slates is for"):
        clone(policy).fit(X, pools)
    clone(policy).fit(X, tuples.assign(reward=Y["reward"]))  # a tuple may be a label


@pytest.mark.parametrize("policy", ONE_ARM[:3], ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("arm", [103, np.int64(103), "a", np.array(103), pd.Timestamp(0)])
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
    with pytest.raises(ValueError, match="X has strings, such as 'x': encode"):
        GLMUCBPolicy().fit([["x"], ["y"]], Y[:2])
    with pytest.raises(ValueError, match=message):
        off_policy_value(np.full((6, 2), 0.5), words, logged, cv=2, method="dr")


def test_lists_and_missing_values_among_the_features():
    rows = pd.DataFrame({"age": np.arange(6.0), "embedding": [[0.0, 1.0]] * 6})
    with pytest.raises(
        ValueError, match="X has lists in the column 'embedding': pass a column per"
    ):
        GLMUCBPolicy().fit(rows, Y[:6])
    rows = pd.DataFrame({"age": np.arange(6.0), "size": [1.0, np.nan] * 3})
    with pytest.raises(ValueError, match=r"X contains NaN in the column 'size': .*SimpleImputer"):
        GLMUCBPolicy().fit(rows, Y[:6])
    with pytest.raises(ValueError, match="X contains NaN: fill"):
        GLMUCBPolicy().fit(rows.to_numpy(), Y[:6])


def test_columns_must_be_a_dict():
    with pytest.raises(ValueError, match="'columns' parameter of GLMUCBPolicy must be"):
        GLMUCBPolicy(columns="arm_id").fit(X, Y)
