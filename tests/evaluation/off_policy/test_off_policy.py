"""Off-policy estimates: what the numbers are, whatever form policy and log are given in."""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.datasets import make_bandit_log
from skbandit.evaluation import OffPolicyEstimate, off_policy_value, replay
from skbandit.exceptions import ReplayCoverageWarning
from tests.evaluation.logs import Greedy, Softmax, logged
from tests.tiers import first

doubly_robust = partial(off_policy_value, method="dr")
ips = partial(off_policy_value, method="ips")
snips = partial(off_policy_value, method="snips")

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


@small
@pytest.mark.parametrize("rule", ["select", "predict"])
def test_a_deterministic_policy_counts_its_matches(rule):
    policy = Greedy(["a", "b", "c"]) if rule == "select" else Softmax(["a", "b", "c"])
    total = weights = 0.0
    for x, action, reward, p in zip(X, Y["action"], Y["reward"], Y["propensity"], strict=True):
        if "abc"[int(np.argmax(x[:3]))] == action:
            total += reward / p
            weights += 1 / p
    assert ips(policy, X, Y, rule=rule).mean_reward == pytest.approx(total / len(X))
    assert snips(policy, X, Y, rule=rule).mean_reward == pytest.approx(total / weights)


def test_doubly_robust_by_loops():
    policy = Softmax(["a", "b", "c"])
    pi = pd.DataFrame(policy.select_proba(X), columns=policy.arms_)
    splits = [(np.arange(200, 400), np.arange(200)), (np.arange(200), np.arange(200, 400))]
    terms = []
    for train, test in splits:
        seen = Y.iloc[train]
        q = seen.groupby("action")["reward"].mean()
        for row in test:
            event = Y.iloc[row]
            direct = sum(pi.loc[row, arm] * q[arm] for arm in "abc")
            weight = pi.loc[row, event["action"]] / event["propensity"]
            terms.append(direct + weight * (event["reward"] - q[event["action"]]))
    estimate = doubly_robust(policy, X, Y, reward_model=DummyRegressor(), cv=splits)
    assert estimate.mean_reward == pytest.approx(np.mean(terms))
    assert estimate.standard_error == pytest.approx(np.std(terms, ddof=1) / 20)


@pytest.mark.parametrize("estimator", ALL)
def test_the_logging_policy_earned_what_was_logged(estimator):
    estimate = estimator(Softmax(["b", "c", "a"], 0.5), X, Y)
    assert estimate.lift == pytest.approx(1, abs=0 if estimator is not doubly_robust else 0.05)
    assert estimate.effective_sample_size == pytest.approx(400)
    if estimator is not doubly_robust:
        assert estimate.standard_error == pytest.approx(Y["reward"].std() / 20)


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_snips_keeps_to_the_range_and_moves_with_the_rewards(seed):
    X, y = logged(seed=seed)
    policy = Softmax(["a", "b", "c"], 3.0)
    estimate = snips(policy, X, y)
    assert 0 <= estimate.mean_reward <= 1
    shifted = snips(policy, X, y.assign(reward=10 + 2 * y["reward"]))
    assert shifted.mean_reward == pytest.approx(10 + 2 * estimate.mean_reward)
    assert shifted.standard_error == pytest.approx(2 * estimate.standard_error)


def test_ips_does_neither():
    policy = Softmax(["a", "b", "c"], 3.0)
    mean_weight = ips(policy, X, Y.assign(reward=1)).mean_reward
    assert mean_weight != pytest.approx(1, abs=1e-4)  # of rewards that are all 1
    shifted = ips(policy, X, Y.assign(reward=10 + Y["reward"]))
    assert shifted.mean_reward == pytest.approx(10 * mean_weight + ips(policy, X, Y).mean_reward)


def test_doubly_robust_of_predictions_that_are_constant_is_shifted_ips():
    policy, c = Softmax(["a", "b", "c"]), Y["reward"].mean()
    shifted = ips(policy, X, Y.assign(reward=Y["reward"] - c))
    constant = DummyRegressor(strategy="constant", constant=c)
    estimate = doubly_robust(policy, X, Y, reward_model=constant)
    assert estimate.mean_reward == pytest.approx(c + shifted.mean_reward)
    assert estimate.standard_error == pytest.approx(shifted.standard_error)


def test_interval_lift_repr():
    estimate = OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 1.6)
    low, high = estimate.interval(0.9)
    assert (low + high) / 2 == pytest.approx(2)
    assert norm.cdf(high, 2, 0.1) - norm.cdf(low, 2, 0.1) == pytest.approx(0.9)
    for part in ("ips", "2 ± 0.1", "1.25 x", "4,567", "12"):
        assert part in repr(estimate)
    assert np.isnan(OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 0.0).lift)
    assert "log's" not in repr(OffPolicyEstimate("ips", 2.0, 0.1, 12.3, 4567, 0.0))
    with pytest.raises(ValueError, match="confidence_level=95 must lie between 0 and 1"):
        estimate.interval(95)


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


def test_forms_of_one_log():
    policy = Softmax(["c", "a", "b"])
    estimate = ips(policy, X, Y)
    assert ips(policy, pd.DataFrame(X), Y.to_records(index=False)) == estimate
    assert ips(policy, X, pl.DataFrame(Y.to_dict("list"))) == estimate
    parts = {"reward": Y["reward"].to_numpy(), "propensity": Y["propensity"].to_numpy()}
    assert ips(policy, X, Y["action"].to_numpy(), **parts) == estimate


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
    assert ips(policy, X[rows], possible).mean_reward == pytest.approx(
        ips(table, None, possible).mean_reward
    )


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


def test_snips_of_a_uniform_log_is_replay_without_learning():
    log = make_bandit_log(2000, n_arms=4, n_features=4, base_rate=0.3, random_state=0)
    policy = Greedy(range(4))
    replayed = replay(policy, log.X, log.y, random_state=0)
    estimate = snips(policy, log.X, log.y)
    assert estimate.mean_reward == pytest.approx(replayed.mean_reward)
    assert estimate.effective_sample_size == pytest.approx(replayed.n_accepted)
    assert estimate.lift == pytest.approx(replayed.lift)
    assert estimate.standard_error == pytest.approx(replayed.standard_error, rel=0.01)


def test_arms_that_the_log_has_not():
    """Predictions for them are the mean of all; the weights tell that they are missing."""
    _, y = logged()
    X = np.zeros((400, 1))
    table = pd.DataFrame({"a": 0.25, "b": 0.25, "new": 0.5}, index=y.index)
    y = y.assign(propensity=1 / 3)
    splits = [(np.arange(200, 400), np.arange(200)), (np.arange(200), np.arange(200, 400))]
    with pytest.warns(ReplayCoverageWarning, match="arms that were never logged"):
        estimate = doubly_robust(table, X, y, reward_model=DummyRegressor(), cv=splits)
    with pytest.warns(ReplayCoverageWarning, match=r"the mean weight is 0\.5"):
        ips(table, X, y)
    known = table.drop(columns="new").assign(new=0)
    q = 0.5 * np.mean([y["reward"][:200].mean(), y["reward"][200:].mean()])
    rest = doubly_robust(known.assign(c=0.5), X, y, reward_model=DummyRegressor(), cv=splits)
    weight_c = 1.5 * (y["action"] == "c")
    q_c = [y["reward"][rows][y["action"][rows] == "c"].mean() for rows, _ in splits]
    q_c = np.repeat(q_c, 200)
    of_c = 0.5 * q_c + weight_c * (y["reward"] - q_c)
    assert estimate.mean_reward == pytest.approx(rest.mean_reward - of_c.mean() + q)
