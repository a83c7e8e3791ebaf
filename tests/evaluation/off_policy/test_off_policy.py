"""Off-policy estimates: what the numbers are, whatever form policy and log are given in."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.datasets import make_bandit_log
from skbandit.evaluation import OffPolicyEstimate, off_policy_blocks, off_policy_value
from skbandit.evaluation._off_policy._sums import CONFIDENCE_WIDTH, METHODS, WeightedEvents, slope
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import shrunk_weights
from tests.tiers import examples
from tests.worlds import Softmax, doubly_robust, ips, logged, refuses, snips, warns

# === Off-policy estimates: what the numbers are, whatever form policy and log are given in ======


pl = pytest.importorskip("polars", reason="polars is not installed")

X, Y = logged()
small = pytest.mark.filterwarnings(  # what is tested are numbers, on logs of a few events
    "ignore::skbandit.exceptions.ReplayCoverageWarning"
)


ALL = [ips, snips, doubly_robust]


# --- the numbers -------------------------------------------------------------------------


@small
def test_by_hand():
    y = pd.DataFrame({"action": ["a", "a", "b", "b"], "reward": [1.0, 0.0, 1.0, 1.0]})
    y["propensity"] = [0.5, 0.25, 0.5, 0.25]
    probability = [0.25, 0.25, 0.5, 0.75]
    # weights .5, 1, 1, 3; weighted rewards .5, 0, 1, 3
    estimate = ips(probability, None, y)
    assert estimate.mean_reward == pytest.approx(4.5 / 4)
    assert estimate.standard_error == pytest.approx(np.std([0.5, 0, 1, 3], ddof=1) / 2)
    assert estimate.effective_sample_size == pytest.approx(5.5**2 / 11.25)
    assert (estimate.n_events, estimate.logged_mean) == (4, 0.75)
    assert estimate.lift == pytest.approx(1.5)
    estimate = snips(probability, None, y)
    assert estimate.mean_reward == pytest.approx(4.5 / 5.5)
    residuals = np.array([0.5, 1, 1, 3]) * (np.array([1, 0, 1, 1]) - 4.5 / 5.5)
    error = np.sqrt((residuals**2).sum() * 4 / 3) / 5.5
    assert estimate.standard_error == pytest.approx(error)


def test_interval_lift_repr():
    estimate = OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 1.6)
    low, high = estimate.interval(0.9)
    assert (low + high) / 2 == pytest.approx(2)
    assert norm.cdf(high, 2, 0.1) - norm.cdf(low, 2, 0.1) == pytest.approx(0.9)
    for part in ("ips", "2 ± 0.1", "1.25 x", "4,567", "12"):
        assert part in repr(estimate)
    assert np.isnan(OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 0.0).lift)
    assert "log's" not in repr(OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 0.0))
    refuses("confidence_level=95 must lie between 0 and 1", estimate.interval, 95)


# --- forms of a policy -------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL)
def test_forms_of_one_policy(estimator):
    policy = Softmax(["c", "a", "b"])
    estimate = estimator(policy, X, Y)
    table = pd.DataFrame(policy.select_proba(X), columns=policy.arms_)
    forms = [
        table,
        table.set_index(np.arange(400) + 7),
        table[["b", "a", "c"]],
        table.assign(never=0.0),
        pl.DataFrame(table.to_dict("list")),
        table[["a", "b", "c"]].to_numpy(),  # sorted
        table[["a", "b", "c"]].to_numpy().tolist(),
    ]
    if estimator is not doubly_robust:
        column = table.columns.get_indexer(Y["action"])
        of_logged = table.to_numpy()[np.arange(400), column]
        forms += [of_logged, list(of_logged), pd.Series(of_logged, index=np.arange(400) + 7)]
    if estimator is not doubly_robust:
        assert all(estimator(form, None, Y) == estimate for form in forms)
    options = {"random_state": 0} if estimator is doubly_robust else {}
    found = {estimator(form, X, Y, **options).mean_reward for form in forms}
    assert max(found) - min(found) < 1e-12


def test_a_policy_is_as_it_was():
    policy = Softmax(["c", "a", "b"])
    before = copy.deepcopy(policy.rng.bit_generator.state)
    assert ips(policy, X, Y) == ips(policy, X, Y)
    assert policy.rng.bit_generator.state == before


def test_a_policy_behind_transformers():
    policy = Softmax(["c", "a", "b"])
    pipeline = make_pipeline(StandardScaler(), policy)
    pipeline[0].fit(X[:50])
    assert ips(pipeline, X, Y) == ips(policy, pipeline[0].transform(X), Y)

    class Search:
        best_estimator_ = pipeline

    assert ips(Search(), X, Y) == ips(pipeline, X, Y)


def test_the_policy_gets_the_arms_of_the_log():
    X, y = logged()
    y["action"] = np.random.default_rng(0).choice(["a", "b", "c"], 400)
    two = y[y["action"] != "c"]
    X = X[two.index]
    judged = ips(Softmax(["c", "a", "b"]), X, two.drop(columns="propensity"))
    policy = Softmax(["c", "a", "b"])
    pi = policy.select_proba(X, available=[("a", "b")] * len(X))[:, 1:]
    of_logged = pi[np.arange(len(X)), (two["action"] == "b").to_numpy().astype(int)]
    assert judged.mean_reward == pytest.approx((of_logged * two["reward"] * 2).mean())


def test_arms_that_vary():
    log = make_bandit_log(3000, n_arms=6, n_available=3, n_features=6, random_state=0)
    policy = Softmax(range(6))
    estimate = ips(policy, log.X, log.y)
    assert ips(policy, log.X, log.y.drop(columns="propensity")) == estimate  # 1 / 3
    pi = policy.select_proba(log.X, available=log.available)
    truth = np.nansum(pi * log.expected_reward, axis=1).mean()
    low, high = estimate.interval(0.999)
    assert low < truth < high
    without = log.y.drop(columns="available")
    mask = np.isfinite(log.expected_reward)
    table = pd.DataFrame(pi, columns=policy.arms_)
    columns = [3, 4, 5, 2, 1, 0]
    named = pd.DataFrame(mask, columns=policy.arms_)[columns]
    for how in (policy, table):
        assert ips(how, log.X, without, available=log.available) == estimate
        assert ips(how, log.X, without, available=named) == estimate
        assert ips(how, log.X, without, available=mask) == estimate
    assert ips(pi, log.X, without, available=mask) == estimate
    shuffled = table[columns]
    assert ips(shuffled, log.X, without, available=mask[:, columns]) == estimate


class Learned(Softmax):
    """What rows lack to 1 is the probability of arms that are new to it."""

    def select_proba(self, X, *, available=None):
        known = super().select_proba(X, available=None)
        here = np.array([[arm in pool for arm in self.arms_] for pool in available])
        return np.where(here, known, 0)


def test_arms_that_the_policy_has_not():
    X, y = logged()
    y["available"] = [("a", "b", "c") if k % 2 else ("a", "b", "c", "d") for k in range(400)]
    policy = Learned(["a", "b"])
    known = Softmax(["a", "b"]).select_proba(X)
    everywhere = [("a", "b") if k % 2 else ("c", "b", "d") for k in range(400)]
    possible = y[[action in pool for action, pool in zip(y["action"], everywhere, strict=True)]]
    rows = possible.index
    possible = possible.assign(available=pd.Series(everywhere)[rows])
    table = pd.DataFrame(known[rows], columns=["a", "b"], index=rows)
    odd = rows % 2 == 1
    table.loc[~odd, "a"] = 0.0
    table["c"] = table["d"] = np.where(odd, 0, (1 - table["b"]) / 2)
    with pytest.warns(ReplayCoverageWarning, match="13.2% .* never logged, 'd'"):
        estimates = ips(policy, X[rows], possible), ips(table, None, possible)
    assert estimates[0].mean_reward == pytest.approx(estimates[1].mean_reward)


class Constant:
    def __init__(self, arm):
        self.arm = arm

    def predict(self, X):
        return np.full(len(X), self.arm)


class Blind:
    """Chooses without being told what is available, as a classifier does."""

    def predict(self, X):
        return np.full(len(X), "a")


def test_a_policy_that_is_not_told_what_is_available():
    estimate = snips(Blind(), X, Y, rule="predict")
    own = Y[Y["action"] == "a"]
    assert estimate.mean_reward == pytest.approx(
        np.average(own["reward"], weights=1 / own["propensity"])
    )


@pytest.mark.parametrize("n_new", [5, 6])
def test_few_choices_that_the_log_has_not(n_new):
    """The mean weight cannot tell 1% of them, and they earn nothing that is known."""
    y = pd.DataFrame({"action": ["a", "b"] * 300, "reward": 1.0, "propensity": 0.5})
    choices = np.repeat(["A", "a"], [n_new, 600 - n_new])
    tables = [y.assign(here=1.0), y.assign(here=1.0)]
    policy = Constant("a")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert snips(choices, None, y).mean_reward == 1
        off_policy_blocks(policy, tables, features=["here"], arms=["a", "b"], rule="predict")
        apart = [table[table["action"] == arm] for table, arm in zip(tables, "ab", strict=True)]
        off_policy_blocks(policy, apart, features=["here"], arms=["a", "b"], rule="predict")
    told = [str(warning.message) for warning in caught]
    assert len(told) == (n_new == 6)
    assert all("1.0% of the policy's choices" in text and "logged, 'A'" in text for text in told)
    with pytest.warns(ReplayCoverageWarning, match="100.0% .* logged, 'z'|never chooses"):
        off_policy_blocks(Constant("z"), tables, features=["here"], arms=["a", "b"], rule="predict")


def test_arms_that_the_log_has_not():
    """Predictions for them are the mean of all; the weights tell that they are missing."""
    _, y = logged()
    X = np.zeros((400, 1))
    table = pd.DataFrame({"a": 0.25, "b": 0.25, "new": 0.5}, index=y.index)
    y = y.assign(propensity=1 / 3)
    splits = [(np.arange(200, 400), np.arange(200)), (np.arange(200), np.arange(200, 400))]
    with pytest.warns(ReplayCoverageWarning, match="arms that were never logged"):
        estimate = doubly_robust(table, X, y, reward_model=DummyRegressor(), cv=splits)
    warns(r"the mean weight is 0\.5", ips, table, X, y, warning=ReplayCoverageWarning)
    known = table.drop(columns="new").assign(new=0)
    q = 0.5 * np.mean([y["reward"][:200].mean(), y["reward"][200:].mean()])
    rest = doubly_robust(known.assign(c=0.5), X, y, reward_model=DummyRegressor(), cv=splits)
    weight_c = 1.5 * (y["action"] == "c")
    q_c = [y["reward"][rows][y["action"][rows] == "c"].mean() for rows, _ in splits]
    q_c = np.repeat(q_c, 200)
    of_c = 0.5 * q_c + weight_c * (y["reward"] - q_c)
    assert estimate.mean_reward == pytest.approx(rest.mean_reward - of_c.mean() + q)


# === Sums of off-policy estimates: parts add up, and their errors are right =====================


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
@examples(60)
def test_parts_add_up(name, data):
    n = data.draw(st.integers(2, 20))
    number = st.floats(-1e3, 1e3)
    reward, q, q_policy = (
        np.array(data.draw(st.lists(number, min_size=n, max_size=n))) for _ in range(3)
    )
    weights = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    weight = np.array(data.draw(st.lists(weights, min_size=n, max_size=n)))
    cut = data.draw(st.integers(1, n - 1))
    sums = [
        METHODS[name].sums(WeightedEvents(reward[part], weight[part], 1e3, q[part], q_policy[part]))
        for part in (slice(None), slice(cut), slice(cut, None))
    ]
    size = 1 + abs(weight).max() * (abs(reward).max() + abs(q).max()) + abs(q_policy).max()
    for whole, one, two in zip(*sums, strict=True):
        for parts in (one + two, two + one):
            assert parts.moments.n == whole.moments.n
            np.testing.assert_allclose(parts.ratio, whole.ratio, 1e-9, 1e-9 * size)
            np.testing.assert_allclose(parts.moments.mean, whole.moments.mean, 1e-9, 1e-9 * size)
            products = parts.moments.products, whole.moments.products
            np.testing.assert_allclose(*products, 1e-9, 1e-9 * size**2)


def sums_of(method, *columns):
    (sums,) = METHODS[method].sums(WeightedEvents(*columns))
    return sums


def test_many_parts_of_rewards_far_from_zero():
    rng = np.random.default_rng(0)
    reward, weight = 1e9 + rng.normal(size=1000), rng.uniform(0.5, 2, size=1000)
    parts = [sums_of("snips", reward[k : k + 1], weight[k : k + 1]) for k in range(1000)]
    total = sum(parts[1:], parts[0])
    residual = weight * (reward - 1e9 - np.average(reward - 1e9, weights=weight))
    error = np.sqrt((residual**2).sum() * 1000 / 999) / weight.sum()
    assert total.standard_error == pytest.approx(error, rel=1e-5)
    assert total.value == pytest.approx(np.average(reward, weights=weight), rel=1e-13)
    assert parts[0].standard_error is np.nan


def test_the_delta_method_of_self_normalized_corrections_agrees_with_leaving_events_out():
    rng = np.random.default_rng(1)
    reward, weight, q, q_policy = rng.normal(size=(4, 500))
    weight = np.exp(weight)
    q_policy = 2 * q_policy + weight * (reward - q)  # so that both parts covary
    sums = sums_of("sndr", reward, weight, weight.max(), q, q_policy)
    total, weights, base = weight @ (reward - q), weight.sum(), q_policy.sum()
    assert sums.value == pytest.approx(base / 500 + total / weights)
    without = (base - q_policy) / 499 + (total - weight * (reward - q)) / (weights - weight)
    jackknife = np.sqrt(((without - without.mean()) ** 2).sum() * 499 / 500)
    assert sums.standard_error == pytest.approx(jackknife, rel=0.02)


# === Estimators between the mean prediction and doubly robust: formulas and choice of settings ==

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
    found = off_policy_value(POLICY, X, Y, method="dr", **OPTIONS)
    assert found.mean_reward == pytest.approx((mean + w * residual).mean())
    assert found.standard_error == pytest.approx((mean + w * residual).std(ddof=1) / 20)
    for setting in (0.0, 0.7, 2.0, 1e6, np.inf):
        found = off_policy_value(POLICY, X, Y, **OPTIONS, method="switch_dr", threshold=setting)
        by_hand = mean + np.where(w <= setting, w, 0) * residual
        assert found.mean_reward == pytest.approx(by_hand.mean())
        assert found.standard_error == pytest.approx(by_hand.std(ddof=1) / 20)
        assert found.setting == setting
    assert (shrunk_weights(np.array([1e100, np.inf]), 4.0) <= 1.0).all()  # without overflow
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
    unbiased = off_policy_value(POLICY, X, Y, method="dr", **OPTIONS)
    assert found.standard_error == unbiased.standard_error
    assert abs(found.mean_reward - unbiased.mean_reward) <= unbiased.standard_error


def test_slope_keeps_what_agrees():
    error = np.array([0.3, 0.2, 0.1])
    assert slope(np.array([1.0, 1.05, 1.1]), error) == 2
    assert slope(np.array([1.0, 1.05, 9.0]), error) == 1
    assert slope(np.array([1.0, 9.0, 1.0]), error) == 0
    assert slope(np.array([1.0]), error[:1]) == 0
    edge = CONFIDENCE_WIDTH * (0.2 + (np.sqrt(6) - 1) * 0.3)  # the second against the first
    assert slope(np.array([0.0, 0.99 * edge]), error[:2]) == 1
    assert slope(np.array([0.0, 1.01 * edge]), error[:2]) == 0


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
