"""Estimators between the mean prediction and doubly robust: formulas and choice of settings."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

from skbandit.evaluation import off_policy_value
from skbandit.evaluation._off_policy._sums import CONFIDENCE_WIDTH, slope
from tests.evaluation.logs import Softmax, logged

X, Y = logged()
POLICY = Softmax(["a", "b", "c"], 2.0)
SPLITS = [(np.arange(200, 400), np.arange(200)), (np.arange(200), np.arange(200, 400))]
OPTIONS = {"reward_model": DummyRegressor(), "cv": SPLITS}


def terms(X, y, policy):
    """Weights, residuals and mean predictions, event by event; predictions are the arms' means."""
    pi = pd.DataFrame(policy.select_proba(X), columns=policy.arms_)
    w, residual, mean = np.zeros((3, len(y)))
    for train, test in SPLITS:
        q = y.iloc[train].groupby("action")["reward"].mean()
        for row in test:
            event = y.iloc[row]
            w[row] = pi.loc[row, event["action"]] / event["propensity"]
            residual[row] = event["reward"] - q[event["action"]]
            mean[row] = sum(pi.loc[row, arm] * q[arm] for arm in "abc")
    return w, residual, mean


def test_formulas_event_by_event():
    w, residual, mean = terms(X, Y, POLICY)
    found = off_policy_value(POLICY, X, Y, method="sndr", **OPTIONS)
    assert found.mean_reward == pytest.approx(mean.mean() + (w @ residual) / w.sum())
    for setting in (0.0, 0.7, 2.0, 1e6, np.inf):
        found = off_policy_value(POLICY, X, Y, **OPTIONS, method="switch_dr", threshold=setting)
        by_hand = mean + np.where(w <= setting, w, 0) * residual
        assert found.mean_reward == pytest.approx(by_hand.mean())
        assert found.standard_error == pytest.approx(by_hand.std(ddof=1) / 20)
        assert found.setting == setting
    for setting in (0.0, 0.7, 30.0):
        found = off_policy_value(POLICY, X, Y, **OPTIONS, method="dr_shrinkage", shrinkage=setting)
        by_hand = mean + setting * w / (w**2 + setting) * residual
        assert found.mean_reward == pytest.approx(by_hand.mean())
        assert found.standard_error == pytest.approx(by_hand.std(ddof=1) / 20)


@pytest.mark.parametrize("method", ["switch_dr", "dr_shrinkage"])
def test_an_interval_is_no_narrower_than_what_is_known(method):
    low, high = off_policy_value(POLICY, X, Y, method="dr", **OPTIONS).interval()
    found = off_policy_value(POLICY, X, Y, method=method, **OPTIONS)
    own_low, own_high = found.interval()
    assert own_low <= low < high <= own_high
    assert own_low <= found.mean_reward <= own_high
    assert (own_low, own_high) == (min(low, found.mean_reward), max(high, found.mean_reward))


def test_without_a_limit_both_are_doubly_robust():
    wanted = off_policy_value(POLICY, X, Y, method="dr", **OPTIONS)
    for found in (
        off_policy_value(POLICY, X, Y, **OPTIONS, method="switch_dr", threshold=np.inf),
        off_policy_value(POLICY, X, Y, **OPTIONS, method="dr_shrinkage", shrinkage=np.inf),
    ):
        assert found.mean_reward == pytest.approx(wanted.mean_reward, rel=1e-14)
        assert found.standard_error == pytest.approx(wanted.standard_error, rel=1e-14)


def test_self_normalized_with_a_constant_prediction_is_snips():
    wanted = off_policy_value(POLICY, X, Y)
    constant = DummyRegressor(strategy="constant", constant=0.7)
    found = off_policy_value(POLICY, X, Y, method="sndr", reward_model=constant)
    assert found.mean_reward == pytest.approx(wanted.mean_reward)
    assert found.standard_error == pytest.approx(wanted.standard_error)


def few_large_weights(seed, bias=0.0):
    """A policy whose weights are .5 or 500, and the predictions, which are right up to a bias."""
    rng = np.random.default_rng(seed)
    n = 2000
    x = rng.integers(2, size=n)
    p = np.where(x == 0, 0.001, 0.5)  # of arm 1
    action = (rng.random(n) < p).astype(int)
    reward = (rng.random(n) < 0.3).astype(float)
    y = pd.DataFrame({"action": action, "reward": reward})
    y["propensity"] = np.where(action == 1, p, 1 - p)
    return x[:, None], y, DummyRegressor(strategy="constant", constant=0.3 + bias)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.parametrize("method", ["switch_dr", "dr_shrinkage"])
def test_few_large_weights(method):
    errors = {"ips": [], method: []}
    for seed in range(20):
        X, y, model = few_large_weights(seed)
        pi = np.full((len(X), 2), 0.5)
        for name, options in (("ips", {}), (method, {"reward_model": model})):
            found = off_policy_value(pi, X, y, method=name, **options)
            errors[name].append(found.mean_reward - 0.3)
    rms = {name: np.sqrt(np.mean(np.square(values))) for name, values in errors.items()}
    # here 5 to 20 times as large
    assert rms["ips"] > 3 * rms[method]


def test_slope_keeps_what_agrees():
    error = np.array([0.3, 0.2, 0.1])
    assert slope(np.array([1.0, 1.05, 1.1]), error) == 2
    assert slope(np.array([1.0, 1.05, 9.0]), error) == 1
    assert slope(np.array([1.0, 9.0, 1.0]), error) == 0
    assert slope(np.array([1.0]), error[:1]) == 0
    edge = CONFIDENCE_WIDTH * (0.2 + (np.sqrt(6) - 1) * 0.3)  # the second against the first
    assert slope(np.array([0.0, 0.99 * edge]), error[:2]) == 1
    assert slope(np.array([0.0, 1.01 * edge]), error[:2]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_slope_is_near_the_best_sum_of_bias_and_width(seed):
    """Theorem 3 of the paper: at most 6 + 2 √6 times the sum, here without failures of widths."""
    rng = np.random.default_rng(seed)
    for _ in range(300):
        k = np.arange(8)
        bias, width = rng.exponential(0.1) * (1.5**k - 1), rng.exponential(1.0) * 0.6**k
        sign = rng.choice([-1, 1], 8)
        values = sign * bias + width * rng.uniform(-1, 1, 8)
        chosen = slope(values, width / CONFIDENCE_WIDTH)
        assert abs(values[chosen]) <= (6 + 2 * np.sqrt(6)) * (bias + width).min()


@pytest.mark.parametrize(
    ("method", "name"), [("switch_dr", "threshold"), ("dr_shrinkage", "shrinkage")]
)
@pytest.mark.parametrize("value", [-1.0, "auto", None, True, np.nan])
def test_settings_refused(method, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 0 or 'slope', got"):
        off_policy_value(POLICY, X, Y, method=method, **{name: value})


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("snips", {"reward_model": DummyRegressor()}),
        ("ips", {"cv": 3}),
        ("dr", {"threshold": 2.0}),
        ("sndr", {"shrinkage": None}),
        ("switch_dr", {"shrinkage": 1.0}),
        ("dr_shrinkage", {"threshold": np.inf}),
    ],
)
def test_parameters_that_a_method_does_not_use(method, given):
    (name,) = given
    with pytest.raises(ValueError, match=f"method='{method}' does not use {name}"):
        off_policy_value(POLICY, X, Y, method=method, **given)
    with pytest.raises(ValueError, match=r"method must be in \('snips', .*, got 'doubly_robust'"):
        off_policy_value(POLICY, X, Y, method="doubly_robust", **given)


def test_probabilities_of_logged_actions_do_not_suffice():
    with pytest.raises(ValueError, match="needs the probabilities of all arms"):
        off_policy_value(np.full(400, 0.4), X, Y, method="switch_dr")
