"""ConstrainedPolicy: what it earns, what it keeps, what it says, on logs with known truth."""

import pickle
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skbandit.bandit import ConstrainedPolicy, OffPolicyClassifier, make_policy_pipeline
from skbandit.constrained import constraint_report
from skbandit.evaluation import OffPolicyScorer, off_policy_value, replay, to_model_card
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.logged._unknown_groups import EstimatedRows, units
from skbandit.measure import Columns, Rows
from skbandit.rates import (
    any_of,
    cost,
    difference,
    each,
    error_rate,
    negative_rate,
    outcome,
    positive_rate,
    recall,
)
from skbandit.selection import RegressionSetSelector
from tests.worlds import refuses, uniform_log, warns

ARMS = np.array(["call", "letter", "mail", "none"])
TILT = np.random.default_rng(9).normal(size=(4, 4)) * 0.6
LEVEL = np.array([1.0, 0.4, 0.2, 0.0])
HARM = np.array([0.15, 0.06, 0.04, 0.02])


def world(n, seed):
    """Contexts, people, and what each action would earn."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    women = rng.random(n) < 0.5
    X["d"] += 0.8 * women
    people = pd.DataFrame({"sex": np.where(women, "F", "M"), "minutes": rng.exponential(4.0, n)})
    return X, people, X.to_numpy() @ TILT + LEVEL


def logged(n=3000, seed=0):
    X, people, reward = world(n, seed)
    rng, rows = np.random.default_rng(seed + 1), np.arange(n)
    action = rng.integers(0, 4, n)
    log = pd.DataFrame(
        {
            "action": ARMS[action],
            "reward": reward[rows, action] + rng.normal(size=n),
            "propensity": 0.25,
            "complaint": (rng.random(n) < HARM[action]).astype(float),
        }
    )
    return X, log, people


X, LOG, PEOPLE = logged()
REWARD = world(3000, 0)[2]
NEW, NEW_PEOPLE, NEW_REWARD = world(20_000, 100)
CAP = positive_rate(of="call") <= 0.1


def fitted(constraints=(), objective=None, estimator=None, **more):
    policy = ConstrainedPolicy(estimator, objective, constraints, **more)
    return policy.fit(X, LOG, attributes=PEOPLE)


@cache
def usual(capped=False, level=None):
    """A policy that several tests look at, and do not change."""
    return fitted(CAP if capped else (), confidence_level=level)


def shares(policy, **given):
    """What a policy does in new rows, as a table of 0 and 1 in the order of ARMS."""
    chosen = policy.predict(NEW, attributes=NEW_PEOPLE, **given)
    return (np.atleast_2d(chosen.T).T[:, :, None] == ARMS).any(axis=1)


def value(share):
    return float((share * NEW_REWARD).sum(axis=1).mean())


def test_without_constraints_it_takes_the_best_prediction():
    policy = usual()
    expected = policy.expected_costs(NEW)
    assert expected.columns.tolist() == policy.arms_.tolist() == ARMS.tolist()
    assert expected.index.equals(NEW.index)
    np.testing.assert_array_equal(policy.predict(NEW), ARMS[expected.to_numpy().argmin(axis=1)])
    assert value(shares(policy)) > 0.97 * NEW_REWARD.max(axis=1).mean()


def test_a_cap_is_a_price():
    policy = usual(capped=True, level=0.9)
    share = shares(policy)
    assert 0.07 < share[:, 0].mean() <= 0.1
    report = policy.constraint_report_
    assert report["satisfied"].all()
    assert report["ci_low"][0] < report["value"][0] < report["ci_high"][0]
    prices = policy.prices_["all"]
    assert prices["call"] == pytest.approx(policy.multipliers_[0])
    assert (prices.drop("call") == 0).all()
    cost_with_prices = policy.expected_costs(NEW) + prices
    np.testing.assert_array_equal(
        policy.predict(NEW), ARMS[cost_with_prices.to_numpy().argmin(axis=1)]
    )
    # thinned at random to the cap, which is what people do
    rng, best = np.random.default_rng(0), shares(usual())
    to_none = best[:, 0] & (rng.random(len(best)) > 0.1 / best[:, 0].mean())
    best[to_none] = np.eye(4, dtype=bool)[3]
    assert value(share) > value(best) + 0.2


@pytest.mark.thorough
def test_six_goals_of_all_kinds():
    spend = cost({"none": 0, "letter": 0.7, "mail": 0.1, "call": "minutes"})
    goals = [
        CAP,
        spend <= 0.6,
        outcome("complaint") <= 0.06,
        each(positive_rate, of="decisions") >= 0.03,
        difference(positive_rate, by="sex", of=["call"]) <= 0.05,
    ]
    policy = fitted(goals, confidence_level=0.9)
    share, women = shares(policy), (NEW_PEOPLE["sex"] == "F").to_numpy()
    minutes = NEW_PEOPLE["minutes"].to_numpy()
    assert share[:, 0].mean() <= 0.1
    assert (share @ np.array([0, 0.7, 0.1, 0]) + minutes * share[:, 0]).mean() <= 0.6
    assert (share @ HARM).mean() <= 0.062
    assert share.mean(axis=0).min() >= 0.025
    assert abs(share[women, 0].mean() - share[~women, 0].mean()) <= 0.05
    assert value(share) > 0.75 * value(shares(usual()))
    assert len(policy.constraint_report_) == 3 + 4 + 2
    assert {"all", "per 'minutes'", "per 'complaint'"} <= set(policy.prices_.columns)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:For .* of the rows, several actions cost nearly the same")
def test_objectives():
    spend = cost({"none": 0.0, "letter": 0.7, "mail": 0.1, "call": 3.0})
    revenue = LOG.rename(columns={"reward": "revenue"})
    refuses("no reward: name what to maximize", ConstrainedPolicy().fit, X, revenue)
    policy = ConstrainedPolicy(None, outcome("revenue")).fit(X, revenue)
    np.testing.assert_array_equal(policy.predict(NEW), usual().predict(NEW))
    net = ConstrainedPolicy(None, outcome("revenue") - 0.5 * spend).fit(X, revenue)
    assert shares(net)[:, 0].mean() < 0.7 * shares(policy)[:, 0].mean()
    cheapest = fitted([outcome("reward") >= 0.5], spend, confidence_level=0.9)
    assert value(shares(cheapest)) >= 0.5
    assert (shares(cheapest) @ np.array([3.0, 0.7, 0.1, 0])).mean() < 0.5


@pytest.mark.thorough
def test_a_table_of_costs_and_several_actions_per_row():
    costs = pd.DataFrame(
        -(world(2000, 5)[2]) + np.random.default_rng(0).normal(size=(2000, 4)), columns=ARMS
    )
    contexts = world(2000, 5)[0]
    goals = [positive_rate(of="call") <= 0.2, positive_rate(of="none") >= 0.1]
    policy = ConstrainedPolicy(
        RegressionSetSelector(), None, goals, n_select=2, confidence_level=0.9
    )
    policy.fit(contexts, costs)
    chosen = policy.predict(NEW)
    assert chosen.shape == (len(NEW), 2)
    assert (chosen[:, 0] != chosen[:, 1]).all()
    assert (chosen == "call").any(axis=1).mean() <= 0.2
    assert (chosen == "none").any(axis=1).mean() >= 0.1
    best = ConstrainedPolicy(None, n_select=2).fit(contexts, costs.to_numpy())
    np.testing.assert_array_equal(best.arms_, [0, 1, 2, 3])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the weights 1/propensity of arm 'call'")
def test_what_is_not_available_is_not_taken():
    table = pd.DataFrame(True, index=NEW.index, columns=ARMS)
    table.loc[::2, "call"] = False
    policy = fitted(positive_rate(of="call") <= 0.3)
    assert (policy.predict(NEW, available=table)[::2] != "call").all()
    assert policy.predict(NEW[:1], available=[("mail",)]).tolist() == ["mail"]
    with pytest.raises(InfeasibleConstraintsError, match="cannot hold together"):
        ConstrainedPolicy(None, None, positive_rate(of="call") >= 0.5).fit(
            X, LOG.assign(available=[("letter", "mail", "none", a) for a in LOG["action"]])
        )


@pytest.mark.thorough
def test_extra_rows_batches_and_new_traffic():
    shifted = NEW.copy()
    shifted["a"] += 1.5
    policy = ConstrainedPolicy(None, None, CAP, confidence_level=0.9)
    policy.fit(X, LOG, X_extra=shifted)
    assert 0.08 < np.mean(policy.predict(shifted) == "call") <= 0.1
    alone = fitted(CAP, confidence_level=0.9)
    before = np.mean(alone.predict(shifted) == "call")
    alone.reprice(shifted)
    assert abs(np.mean(alone.predict(shifted) == "call") - 0.1) < abs(before - 0.1)
    batch = fitted(CAP, confidence_level=0.9, batch_size=500)
    assert shares(batch)[:, 0].mean() < shares(usual(capped=True, level=0.9))[:, 0].mean()


@pytest.mark.thorough
def test_goals_in_conflict_are_named_with_what_is_attainable():
    goals = [CAP, positive_rate(of="call") >= 0.2, positive_rate(of="none") <= 0.9]
    with pytest.raises(InfeasibleConstraintsError, match="cannot hold together") as error:
        fitted(goals)
    message = str(error.value)
    assert "to 0.2" in message and "to 0.1" in message
    assert "none" not in message
    closest = error.value.closest_
    assert closest.feasible_ is False and set(closest.predict(NEW)) <= set(ARMS)
    assert np.isfinite(closest.objective_report_["value"][0])


@pytest.mark.parametrize(("goals", "message"), [
    (recall(of="call") >= 0.5, "a policy has not"),
    (positive_rate() <= 0.5, r"write positive_rate\(of='call'\)"),
    (positive_rate(of="cal") <= 0.5, "Did you mean 'call'"),
    (outcome("refund") <= 0.5, r"outcome\('refund'\) is not a column of the log"),
    (cost({"none": 0, "letter": 1, "mail": 1, "call": "hours"}) <= 1, "unknown column 'hours'"),
    (cost({"none": 0, "letter": 1}) <= 1, "no costs of the decision"),
])  # fmt: skip
def test_wrong_goals(goals, message):
    refuses(message, fitted, goals)


@pytest.mark.thorough
def test_budgets_in_other_units_and_negative_amounts_are_told():
    with pytest.warns(UserWarning, match="it never binds. Are both in one unit"):
        fitted(cost({"none": 0, "letter": 0.7, "mail": 0.1, "call": 3}) <= 1000)
    paid = PEOPLE.assign(minutes=-1.0)
    spend = cost({"none": 0, "letter": 0, "mail": 0, "call": "minutes"})
    with pytest.warns(UserWarning, match="a negative amount"):
        ConstrainedPolicy(None, None, spend <= 1).fit(X, LOG, attributes=paid)


@pytest.mark.thorough
def test_an_arm_that_the_log_never_chose():
    log = LOG.assign(available=[("call", "letter", "mail", "none", "visit")] * len(LOG))
    with pytest.warns(UserWarning, match=r"\['visit'\]: they are never taken"):
        policy = ConstrainedPolicy().fit(X, log.assign(propensity=0.25))
    assert "visit" not in policy.predict(NEW)
    assert policy.expected_costs(NEW[:2])["visit"].isna().all()
    spend = {"none": 0, "letter": 0.7, "mail": 0.1, "call": 3}
    without = fitted(cost(spend) <= 0.5)
    with pytest.warns(UserWarning, match="'visit' is not among the actions .* never taken"):
        policy = fitted(cost(spend | {"visit": 9}) <= 0.5)
    np.testing.assert_array_equal(policy.predict(NEW), without.predict(NEW))
    refuses("'visit' is not among the actions", fitted, positive_rate(of="visit") >= 0.1)


@pytest.mark.thorough
def test_a_failed_fit_leaves_the_policy_as_it_was():
    policy = fitted(CAP)
    before = policy.predict(NEW)
    policy.set_params(constraints=[CAP, positive_rate(of="call") >= 0.3])
    with pytest.raises(InfeasibleConstraintsError):
        policy.fit(X, LOG)
    np.testing.assert_array_equal(policy.predict(NEW), before)
    restored = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(restored.predict(NEW), before)
    assert not hasattr(clone(policy), "prices_")


@pytest.mark.thorough
def test_classifiers_trees_and_pipelines():
    binary = LOG.assign(reward=(LOG["reward"] > 0.5).astype(float))
    policy = ConstrainedPolicy(LogisticRegression(), None, CAP).fit(X, binary)
    assert np.mean(policy.predict(NEW) == "call") <= 0.12
    trees = fitted(CAP, None, HistGradientBoostingRegressor(max_iter=20))
    assert shares(trees)[:, 0].mean() <= 0.12
    pipeline = make_policy_pipeline(StandardScaler(), ConstrainedPolicy(Ridge(), None, CAP))
    pipeline.fit(X, LOG)
    assert np.mean(pipeline.predict(NEW) == "call") <= 0.12


@pytest.mark.thorough
def test_units_and_order_do_not_matter():
    policy = usual(capped=True)
    scaled = ConstrainedPolicy(None, None, CAP).fit(X, LOG.assign(reward=1000 * LOG["reward"]))
    assert np.mean(scaled.predict(NEW) == policy.predict(NEW)) > 0.999
    order = np.random.default_rng(0).permutation(len(X))
    other = ConstrainedPolicy(None, None, CAP).fit(X.iloc[order], LOG.iloc[order])
    assert np.mean(other.predict(NEW) == policy.predict(NEW)) > 0.995


@pytest.mark.thorough
def test_weights_reach_the_models():
    weight = np.where(X["a"] > 0, 10.0, 1.0)
    for estimator in (None, Ridge(), RegressionSetSelector()):
        policy = ConstrainedPolicy(estimator, None, CAP)
        plain = policy.fit(X, LOG).expected_costs(NEW)
        weighted = policy.fit(X, LOG, sample_weight=weight).expected_costs(NEW)
        assert not np.allclose(plain, weighted)


@pytest.mark.parametrize(("y", "message"), [
    (LOG.rename(columns={"action": "arm"}).assign(arm=0), "a log needs a column of actions"),
    (pd.DataFrame(np.ones((len(X), 2)), columns=["a", "a"]), "two columns 'a'"),
    (pd.DataFrame(np.ones((5, 2)), columns=["a", "b"]), "has 5 rows"),
    (pd.DataFrame(np.full((len(X), 2), np.inf), columns=["a", "b"]), "y contains inf in row 0"),
])  # fmt: skip
def test_wrong_tables(y, message):
    refuses(message, ConstrainedPolicy().fit, X, y)
    costs = pd.DataFrame(np.random.default_rng(0).normal(size=(len(X), 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match="is a column of a log, and y is a table"):
        ConstrainedPolicy(None, None, outcome("revenue") >= 1).fit(X, costs)


def test_wrong_propensities_are_told():
    warns("the propensities are wrong", ConstrainedPolicy().fit, X, LOG.assign(propensity=0.01))


@pytest.mark.filterwarnings("ignore:The objective is .* without margins")
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_what_spends_leave_open_goes_to_the_highest_rewards(level):
    """Three of ten must be called, whoever they are, and a call earns x: up to a tenth."""
    x = np.random.default_rng(0).uniform(size=(1000, 1))
    action = np.where(np.arange(1000) % 2, "call", "none")
    log = pd.DataFrame({"action": action, "reward": x[:, 0] * (action == "call"), "harm": 0.0})
    goals, spend = positive_rate(of="call") >= 0.3, cost({"none": 0, "call": 1})
    policy = ConstrainedPolicy(None, spend, goals, confidence_level=level, random_state=0)
    called = policy.fit(x, log.assign(propensity=0.5)).predict(x) == "call"
    assert called.mean() == pytest.approx(0.3 if level == 0.5 else 0.325, abs=0.015)
    assert x[called].min() > x[~called].max() - 0.1
    with pytest.warns(UserWarning, match="several actions cost nearly the same"):
        policy.fit(x, log.assign(propensity=0.5, reward=0.0))


def test_extra_rows_behind_a_pipeline_are_refused_unless_transformed():
    pipeline = make_policy_pipeline(StandardScaler(), ConstrainedPolicy(Ridge(), None, CAP))
    with pytest.raises(ValueError, match="X was transformed and X_extra was not"):
        pipeline.fit(X, LOG, constrainedpolicy__X_extra=X)


def test_an_objective_without_direction_is_refused():
    refuses("a policy has not", fitted, (), error_rate())


@pytest.mark.thorough
def test_signs():
    """The least cost is best, whatever its signs; an outcome is maximized as it is written."""
    for shift in (-6.0, 0.0):
        costs = dict(zip(ARMS.tolist(), [-1 + shift, 2 + shift, shift, 4 + shift], strict=True))
        assert set(fitted((), cost(costs)).predict(NEW)) == {"call"}
    free = cost(dict.fromkeys(ARMS.tolist(), -1.0))
    bad = outcome("complaint")
    for objective in (-bad, 1 - bad, -bad - 0.01 * free):  # HARM is least of "none"
        assert np.mean(fitted((), objective).predict(NEW) == "none") > 0.9
    assert np.mean(fitted((), 0.01 * free - bad).predict(NEW) == "call") > 0.9
    with pytest.raises(ValueError, match="no direction as an objective: change a sign"):
        fitted((), bad + free)


@pytest.mark.thorough
def test_what_constraints_cost():
    goals = [CAP, positive_rate(of="mail") >= 0.001]
    policy, free = fitted(goals, confidence_level=0.9), usual()
    (row,) = policy.objective_report_.to_dict("records")
    assert row["objective"] == "outcome('reward')"
    assert row["ci_low"] < value(shares(policy)) < row["ci_high"]  # seeded: one in 20 would not
    assert row["unconstrained"] == free.objective_report_["cross_fitted"][0]
    price = policy.constraint_report_["price"]
    assert price[0] == pytest.approx(row["unconstrained"] - row["cross_fitted"], abs=0.02)
    assert price[0] > 0.05 and price[1] == 0
    # a row's own reward is in its models, and not in those of other folds
    tree = DecisionTreeRegressor(max_leaf_nodes=200, random_state=0)
    (row,) = fitted(estimator=tree).objective_report_.to_dict("records")
    assert row["value"] > row["cross_fitted"] + 0.1
    policy.reprice(NEW, attributes=NEW_PEOPLE)
    (row,) = policy.objective_report_.to_dict("records")
    assert np.isnan(row["cross_fitted"]) and row["value"] < row["unconstrained"]
    assert row["ci_low"] < row["value"] < row["ci_high"]


@pytest.mark.thorough
def test_groups_unknown_at_prediction_are_estimated():
    gap = difference(positive_rate, by="sex", of=["call"])
    policy, women = fitted(gap <= 0.05, confidence_level=0.9), (NEW_PEOPLE["sex"] == "F").to_numpy()
    chosen = policy.predict(NEW)
    called = chosen == "call"
    free = usual().predict(NEW) == "call"
    assert free[~women].mean() - free[women].mean() > 0.15
    assert abs(called[women].mean() - called[~women].mean()) <= 0.05
    report = policy.constraint_report_
    assert (report["groups_unknown"] <= 0.05).all()
    share = (chosen[:, None] == ARMS).astype(bool)
    known = value(shares(policy))
    assert known - 0.1 < value(share) < known
    assert pickle.loads(pickle.dumps(policy)).predict(NEW[:9]).tolist() == chosen[:9].tolist()
    # where the features say nothing of the group, and the groups need other decisions
    coin = pd.DataFrame({"coin": np.random.default_rng(3).choice(["h", "t"], len(X))})
    goals = [positive_rate({"coin": "h"}, of="call") <= 0.1]
    goals += [positive_rate({"coin": "t"}, of="call") >= 0.5]
    policy = ConstrainedPolicy(None, None, goals).fit(X, LOG, attributes=coin)
    refuses(r"rows lack 'coin'.* no policy was found", policy.predict, NEW)
    assert len(policy.predict(X, attributes=coin)) == len(X)


def test_the_expectation_of_groups_by_hand():
    rows = Rows(Columns.read({"visits": [1, 3, 5]}, None, 3), np.zeros(3, dtype=int), np.ones(3))
    share = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    estimated = EstimatedRows(rows, [{"sex": "F"}, {"sex": "M"}], share)
    women = positive_rate({"sex": "F"}, of="call").atoms[0]
    np.testing.assert_allclose(units(women, estimated), share[:, 0])
    often = positive_rate("visits > 2 and sex == 'M'", of="call").atoms[0]
    np.testing.assert_allclose(units(often, estimated), [0, 0.5, 0])


@pytest.mark.thorough
def test_a_log_of_slates():
    contexts, _, reward = world(2000, 5)
    rng, rows = np.random.default_rng(0), np.arange(2000)
    first = rng.integers(0, 4, 2000)
    second = (first + rng.integers(1, 4, 2000)) % 4
    noisy = reward + rng.normal(size=reward.shape)
    log = pd.DataFrame(
        {
            "action": list(zip(ARMS[first], ARMS[second], strict=True)),
            "reward": list(zip(noisy[rows, first], noisy[rows, second], strict=True)),
        }
    )
    costs = np.full((2000, 4), np.nan)
    costs[rows, first], costs[rows, second] = -noisy[rows, first], -noisy[rows, second]
    table = pd.DataFrame(costs, columns=ARMS)
    goals = [positive_rate(of="call") <= 0.3, positive_rate(of="none") >= 0.2]
    policies = [
        ConstrainedPolicy(None, None, goals, n_select=2, random_state=0).fit(contexts, y)
        for y in (log, table)
    ]
    chosen = [one.predict(NEW) for one in policies]
    np.testing.assert_array_equal(*chosen)
    share = (chosen[0][:, :, None] == ARMS).any(axis=1).mean(axis=0)
    assert share[0] <= 0.33 and share[3] >= 0.17
    with pytest.raises(ValueError, match="a log of slates, with a reward per action"):
        ConstrainedPolicy(None, None, goals, n_select=2).fit(X, LOG)


@pytest.mark.thorough
def test_reports_on_new_rows_and_cards():
    goals = [
        (positive_rate(of="call") <= 0.1).named("capacity"),
        outcome("complaint") <= 0.06,
        difference(positive_rate, by="sex", of=["call"]) <= 0.05,
    ]
    policy = fitted(goals, confidence_level=0.9)
    new, log, people = logged(5000, seed=50)
    report = policy.constraint_report(new, log, attributes=people)
    called = policy.predict(new, attributes=people) == "call"
    assert report["value"][0] == pytest.approx(called.mean())
    error = np.sqrt(called.mean() * (1 - called.mean()) / 5000)
    assert report["ci_high"][0] - report["value"][0] == pytest.approx(1.96 * error, rel=0.01)
    share = policy.predict(new, attributes=people)[:, None] == ARMS
    assert report["ci_low"][1] < (share * HARM).sum(axis=1).mean() < report["ci_high"][1]
    women = (people["sex"] == "F").to_numpy()
    assert report["value"][2] == pytest.approx(called[women].mean() - called[~women].mean())
    free = usual().predict(new) == "call"
    assert report["unconstrained"][0] == pytest.approx(free.mean())
    fewest = min(women.sum(), (~women).sum())
    assert report["n_rows"].tolist() == [5000, 5000, fewest, fewest]
    pd.testing.assert_frame_equal(  # also through the function for Pipelines
        constraint_report(policy, new, log, attributes=people), report
    )
    inside = report["ci_high"] <= report["bound"]
    assert report["verdict"].tolist() == np.where(inside, "met", "undecided").tolist()
    card = to_model_card(report)
    assert "capacity" in card and "Of 3 goals" in card
    some = log.assign(action=log["action"].where(log["action"] != "mail", "new arm"))
    again = policy.constraint_report(new, some, attributes=people)
    assert again["ci_low"][1] < (share * HARM).sum(axis=1).mean() < again["ci_high"][1]
    with pytest.raises(ValueError, match=r"'complaint'.* is known from a log only"):
        policy.constraint_report(new, attributes=people)
    columns = ["constraint", "n_rows", "effective_n", "bound", "value", "ci_low", "ci_high"]
    columns += ["unconstrained", "slack", "margin", "satisfied", "multiplier", "price"]
    assert policy.constraint_report_.columns.tolist() == [*columns, "groups_unknown"]
    assert " 3 goals" in to_model_card(policy.constraint_report_)


@pytest.mark.thorough
def test_attributes_reach_the_policy_in_estimates_and_searches():
    spend = cost({"none": 0, "letter": 0.7, "mail": 0.1, "call": "minutes"})
    policy = fitted(spend <= 0.6, confidence_level=0.9)
    new, log, people = logged(4000, seed=60)
    estimate = off_policy_value(policy, new, log, attributes=people, rule="predict")
    chosen = policy.predict(new, attributes=people)
    of_choices = off_policy_value(chosen, new, log)
    assert estimate.mean_reward == pytest.approx(of_choices.mean_reward)
    refuses("unknown column 'minutes'", off_policy_value, policy, new, log, rule="predict")
    free = OffPolicyClassifier().fit(X, LOG)
    with pytest.raises(ValueError, match=r"OffPolicyClassifier\.predict takes no attributes"):
        off_policy_value(free, new, log, attributes=people, rule="predict")
    refuses("attributes are for a policy", off_policy_value, chosen, new, log, attributes=people)
    scorer = OffPolicyScorer(constrained=True)
    assert scorer.score(policy, new, log, attributes=people) == pytest.approx(
        off_policy_value(policy, new, log, attributes=people, rule="predict").mean_reward
    )
    capped, other = usual(capped=True), new + np.array([1, 0, 0, 1]) * np.sign(TILT[0, 0])
    value = capped.constraint_report(other, log)["value"][0]
    lowest = log["reward"].min()
    assert value > 0.1
    expected = lowest - (value - 0.1) * max(1, abs(lowest))
    assert scorer.score(capped, other, log) == pytest.approx(expected)
    candidates = {"constraints": [[spend <= 0.3], [spend <= 0.6]]}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(ConstrainedPolicy(), candidates, scoring=scorer, cv=2)
        search.fit(X, LOG, attributes=PEOPLE)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.thorough
def test_groups_that_rows_lack_are_estimated_row_by_row():
    rng = np.random.default_rng(1)

    def people(n):
        group = rng.choice(["DE", "IT"], n)
        return pd.DataFrame({"x": rng.normal(1.0 * (group == "IT"), 0.5)}), group

    Z, country = people(6000)
    action = rng.choice(["no", "sale"], 6000)
    reward = np.where(action == "sale", Z["x"] - 0.5, 0) + rng.normal(size=6000)
    log = pd.DataFrame({"action": action, "reward": reward, "propensity": 0.5})
    gap = difference(positive_rate, by="country", of=["sale"]) <= 0.1
    policy = ConstrainedPolicy(None, None, gap, confidence_level=0.9, random_state=0)
    policy.fit(Z, log, attributes={"country": country})
    new, group = people(20_000)

    def gap_of(values):
        sold = policy.predict(new, attributes={"country": values}) == "sale"
        return abs(sold[group == "IT"].mean() - sold[group == "DE"].mean())

    assert gap_of(group) <= 0.1 and gap_of(np.full(20_000, None)) <= 0.1
    assert gap_of(np.where(rng.random(20_000) < 0.5, group, None)) <= 0.1
    with pytest.warns(UserWarning, match="20000 of 20000 rows have country = '(de|it)'"):
        assert gap_of(np.char.lower(group)) <= 0.1
    known = ConstrainedPolicy(None, None, gap, random_state=0)
    coded = new.assign(country=group == "IT")
    known.fit(Z.assign(country=country == "IT"), log)  # a feature, which is never missing
    other = coded.assign(country=np.where(np.arange(20_000) < 5, 2, coded["country"]))
    warns("5 of 20000 rows have country = 2", known.predict, other)
    with pytest.warns(UserWarning, match="of 6000 rows have no group"):
        ConstrainedPolicy(None, None, gap).fit(
            Z, log, attributes={"country": np.where(rng.random(6000) < 0.1, None, country)}
        )


@pytest.mark.thorough
def test_no_outcome_is_low_because_models_chose_their_luckiest_rows():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(2000, 4)))
    log = pd.DataFrame({"action": rng.choice(["a", "b", "c"], 2000), "propensity": 1 / 3})
    log["reward"] = rng.normal(size=2000)
    log["complaint"] = (rng.random(2000) < 0.1).astype(float)  # whatever is done
    trees = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=6, random_state=0)
    with pytest.raises(InfeasibleConstraintsError):
        policy = ConstrainedPolicy(trees, None, outcome("complaint") <= 0.08, confidence_level=0.9)
        policy.fit(noise, log)


@pytest.mark.thorough
def test_new_prices_are_also_those_of_unknown_groups():
    policy = fitted([CAP, difference(positive_rate, by="sex", of=["call"]) <= 0.1])
    busy = NEW + 0.5 * (TILT[:, 0] - TILT[:, 1:].mean(axis=1))  # calls are worth more
    before = (policy.predict(busy) == "call").mean()
    policy.reprice(busy, attributes=NEW_PEOPLE)
    called = policy.predict(busy) == "call"
    assert before > 0.12 and called.mean() <= 0.1
    assert "groups_unknown" in policy.constraint_report_


def clicks_of_three(n=2000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    chance = 1 / (1 + np.exp(-(X @ rng.normal(size=(2, 3)) + [-1.5, -1.0, -0.5])))
    return X, chance, (rng.random(chance.shape) < chance).astype(np.uint8)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (lambda y: y, "are 1 and the others 0, as if for clicks"),
        (np.negative, "holds 255 as uint8"),
    ],
)
def test_clicks_are_no_costs(costs, message):
    X, _, clicks = clicks_of_three()
    with pytest.warns(UserWarning, match=message):
        ConstrainedPolicy(None, None, positive_rate(of=0) <= 0.5).fit(X, costs(clicks))


def test_costs_of_nullable_columns_may_be_missing():
    X, chance, clicks = clicks_of_three()
    costs = pd.DataFrame(-clicks.astype(float)).astype("Float64")
    costs = costs.mask(np.random.default_rng(1).random(costs.shape) < 0.1)
    policy = ConstrainedPolicy(None, None, positive_rate(of=2) <= 0.9).fit(X, costs)
    earned = chance[np.arange(len(X)), policy.predict(X)].mean()
    assert earned > chance.max(axis=1).mean() - 0.02


@pytest.mark.thorough
def test_an_action_that_is_not_available_is_never_chosen():
    table = pd.DataFrame(-REWARD, columns=ARMS).assign(never=np.nan)
    with pytest.warns(UserWarning, match=r"\['never'\]: they are never taken"):
        policy = ConstrainedPolicy(n_select=2).fit(X, table)
    assert len(policy.predict(X[:2], available=[("none", "mail", "never")] * 2)) == 2
    for call in (policy.predict, policy.constraint_report):
        with pytest.raises(ValueError, match="row 0 has fewer actions with events in fit than n_s"):
            call(X[:2], available=[("none", "never")] * 2)


@pytest.mark.parametrize(
    "goal", [negative_rate(of="call"), positive_rate(of=any_of("call", "mail"))]
)
def test_rates_that_do_not_add_up_are_refused_for_several_actions(goal):
    table = pd.DataFrame(-REWARD, columns=ARMS)
    with pytest.raises(ValueError, match="with n_select above 1"):
        ConstrainedPolicy(None, None, goal <= 0.9, n_select=2).fit(X, table)


@pytest.mark.thorough
def test_prices_by_selection_and_unit_reproduce_the_decisions():
    """Costs and the prices as their columns say: of groups within a selection, and per unit."""
    goals = [
        positive_rate(of="call", weight="minutes") <= 0.2,
        each(positive_rate("a > 0", of="letter"), by="sex") <= 0.2,
        each(positive_rate(of="mail"), by="sex") <= 0.2,
    ]
    policy = fitted(goals)
    applies = {
        "per 'minutes'": PEOPLE["minutes"],
        **{f"'sex' = {s!r}": PEOPLE["sex"] == s for s in "FM"},
        **{f"where='a > 0', 'sex' = {s!r}": (PEOPLE["sex"] == s) & (X["a"] > 0) for s in "FM"},
    }
    assert set(applies) == set(policy.prices_.columns)
    total = policy.expected_costs(X).to_numpy()
    for name, amount in applies.items():
        total = total + np.outer(amount, policy.prices_[name])
    chosen = policy.arms_[total.argmin(axis=1)]
    assert np.mean(chosen == policy.predict(X, attributes=PEOPLE)) > 0.999


@pytest.mark.thorough
def test_tight_parity_at_a_level_costs_little():
    """Two bounds on one difference, whose margins overlap, do not send prices to the ceiling."""
    goals = [
        cost({"none": 0, "letter": 0.3, "mail": 0.1, "call": "minutes"}) <= 0.8,
        positive_rate(of="letter") <= 0.2,
        difference(positive_rate, by="sex", of=["letter"]) <= 0.04,
    ]
    loose, tight = (fitted(goals[:n], confidence_level=0.9) for n in (2, 3))
    report = tight.constraint_report_
    assert report["satisfied"].all() and report["multiplier"].max() < 10
    assert report["price"].notna().all() and report["price"].max() < 1
    values = [one.objective_report_["value"].item() for one in (loose, tight)]
    assert values[1] > values[0] - 0.05
    opposed = report[report["constraint"].str.contains("difference")]["multiplier"]
    assert opposed.min() == 0


@pytest.mark.thorough
def test_the_unit_of_a_spend_does_not_matter():
    decided = []
    for unit in (1.0, 1e-6, 1e6):
        spend = {"none": 0, "letter": 0.7 * unit, "mail": 0.1 * unit, "call": 3 * unit}
        decided.append(fitted(cost(spend) <= 0.5 * unit).predict(NEW))
    assert np.mean(decided[0] == decided[1]) > 0.995
    assert np.mean(decided[0] == decided[2]) > 0.995


@pytest.mark.thorough
def test_ties_are_broken_by_contexts_whatever_the_types_of_the_columns():
    """Each leaf has one cost; without noise, a whole leaf would be called or not."""
    whole = X.assign(a=(3 * X["a"]).round().astype(int))
    tree = DecisionTreeRegressor(max_leaf_nodes=2, random_state=0)
    with pytest.warns(UserWarning, match="several actions cost nearly the same"):
        policy = ConstrainedPolicy(tree, None, CAP).fit(whole, LOG)
    chosen = policy.predict(whole)
    assert 0.06 < np.mean(chosen == "call") <= 0.12
    alone = [policy.predict(pd.DataFrame([whole.iloc[k]]))[0] for k in range(100)]
    np.testing.assert_array_equal(alone, chosen[:100])
    missing = whole.assign(a=whole["a"].astype(float).mask(np.arange(len(whole)) == 0))
    np.testing.assert_array_equal(policy.predict(missing)[1:], chosen[1:])
    np.testing.assert_array_equal(policy.predict(whole.astype({"a": "int32"})), chosen)


@pytest.mark.thorough
def test_a_level_that_costs_much_is_told():
    """Both figures are those of fits at the level and at .5."""
    rng = np.random.default_rng(0)
    action, features = rng.integers(3, size=1500), rng.normal(size=(1500, 2))
    reward = action * 0.5 * (1 + features[:, 0]) + rng.normal(size=1500)
    harm = (rng.random(1500) < 0.03 + 0.08 * action).astype(float)
    log = pd.DataFrame({"action": action, "reward": reward, "harm": harm, "propensity": 1 / 3})
    with pytest.warns(UserWarning, match=r"at confidence_level=0\.95, and .* at 0\.5") as told:
        ConstrainedPolicy(None, None, outcome("harm") <= 0.08, confidence_level=0.95).fit(
            features, log
        )
    value, without = map(float, re.findall(r" is (.*?) at.* and (.*?) at", str(told[0].message))[0])
    assert without - value > 0.2 * (without - reward.mean())
    half = ConstrainedPolicy(None, None, outcome("harm") <= 0.08, confidence_level=0.5)
    half.fit(features, log)  # without a warning
    # as predicted, and as measured of 1,500 rewards
    assert without == pytest.approx(half.objective_report_["value"][0], abs=0.04)


def test_a_level_that_costs_little_is_not():
    rng = np.random.default_rng(1)
    costs = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["a", "b"])
    ConstrainedPolicy(None, None, positive_rate(of="a") <= 0.5, confidence_level=0.9).fit(
        rng.normal(size=(3000, 2)), costs
    )


def with_pools(n, seed):
    """Contexts, actions that each row can get, and what each earns; 40 % can be called."""
    rng = np.random.default_rng(seed)
    rows, reached = rng.normal(size=(n, 3)), rng.random(n) < 0.4
    pools = [("call", "mail", "none") if one else ("mail", "none") for one in reached]
    gain = np.column_stack([0.8 + 0.4 * rows[:, 1], 0.3 + 0.5 * rows[:, 0], np.zeros(n)])
    return rows, pools, gain


def log_with_pools(n=4000):
    rows, pools, gain = with_pools(n, 50)
    rng = np.random.default_rng(0)
    p = np.array([[1 / 3] * 3 if len(pool) == 3 else [0.0, 0.5, 0.5] for pool in pools])
    action = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    at = np.arange(n), action
    log = pd.DataFrame({"action": np.array(["call", "mail", "none"])[action], "propensity": p[at]})
    return rows, log.assign(reward=gain[at] + rng.normal(size=n), available=pools)


POOLED = "some rows of the fit could not get every action, .* pass {}=, labels per row"


@pytest.mark.thorough
@pytest.mark.parametrize("behind", [False, True])
def test_new_traffic_has_pools_of_its_own(behind):
    """40 % can be called: a call for 35 % is possible, and one for 60 % is not."""
    rows, log = log_with_pools()
    (traffic, pools, _), (new, new_pools, _) = with_pools(6000, 52), with_pools(20_000, 53)
    calls = positive_rate(of="call")
    policy = ConstrainedPolicy(None, None, calls >= 0.35, confidence_level=0.9, random_state=0)
    policy = make_policy_pipeline(StandardScaler(), policy) if behind else policy
    if behind:
        policy.fit(rows, log)
    else:
        more = {"X_extra": traffic, "available_extra": pools}
        policy.fit(rows, log, **more)
        refuses(POOLED.format("available_extra"), policy.fit, rows, log, X_extra=traffic)
        refuses("available_extra is of the rows", policy.fit, rows, log, available_extra=pools)
    refuses(POOLED.format("available"), policy.reprice, traffic)
    refuses(POOLED.format("available"), policy.constraint_report, traffic)
    for _ in range(2):
        share = (policy.predict(new, available=new_pools) == "call").mean()
        assert share == pytest.approx(0.37, abs=0.02)
        table = policy.constraint_report(new, available=new_pools)
        assert table["value"][0] == pytest.approx(share)
        policy.reprice(traffic, available=pools)
    last = policy[-1] if behind else policy
    np.testing.assert_allclose(
        last.constraint_report_["value"],
        policy.constraint_report(traffic, available=pools)["value"],
    )
    with pytest.raises(InfeasibleConstraintsError, match="cannot hold together"):
        ConstrainedPolicy(None, None, calls >= 0.6, random_state=0).fit(
            rows, log, X_extra=traffic, available_extra=pools
        )
    policy.reprice(traffic, available=np.ones((6000, 3), dtype=bool))  # every row can, as said


@pytest.mark.thorough
@pytest.mark.parametrize("policy", [ConstrainedPolicy(), OffPolicyClassifier()])
def test_rows_without_pools_are_told_if_those_of_the_fit_had_some(policy):
    """All rows were sent "call", which 60 % of them could not get, and values counted it."""
    rows, log = log_with_pools()
    new, pools, _ = with_pools(400, 53)
    policy.fit(rows, log)
    unknown, log_of_new = POOLED.format("available"), uniform_log(400, ("call", "mail", "none"))[1]
    for method in (policy.predict, policy.select):
        warns(unknown, method, new)
        for known in (pools, np.ones((400, 3), dtype=bool), ["mail", "none"]):
            method(new, available=known)  # a warning would be an error
    if hasattr(policy, "predict_proba"):
        warns(unknown, policy.predict_proba, new)
    warns(unknown, off_policy_value, policy, new, log_of_new)
    warns(unknown, replay, policy, new, log_of_new, learn=False)
    off_policy_value(policy, new, log_of_new, available=[("call", "mail", "none")] * 400)
    clone(policy).fit(new, log_of_new).predict(new)


@pytest.mark.thorough
def test_the_correction_is_what_the_log_has_beyond_predictions():
    policy = fitted([outcome("complaint") <= 0.06, CAP], confidence_level=0.6, random_state=0)
    correction = policy._correction
    assert correction.goals[1].error == 0 < correction.goals[0].error
    mean, none = correction.means
    assert none == 0
    before = policy.constraint_report_["value"].to_numpy()
    assert 0 < abs(mean) < 0.05
    of_log = policy.constraint_report_.eval("ci_high - value")[0]
    again = pickle.loads(pickle.dumps(policy)).reprice(X, attributes=PEOPLE)
    assert again.constraint_report_.eval("ci_high - value")[0] > 0.9 * of_log
    predicted = again._models.predict(X)["complaint"]
    chosen = np.searchsorted(again.arms_, again.predict(X, attributes=PEOPLE))
    expected = predicted[np.arange(len(X)), chosen].mean() + mean
    assert again.constraint_report_["value"][0] == pytest.approx(expected)
    assert again.constraint_report_["value"][1] == pytest.approx((chosen == 0).mean())
    assert again.constraint_report_["value"][0] == pytest.approx(before[0], abs=0.03)


@pytest.mark.parametrize("unit", [1e-6, 0.3, 1e6])
def test_the_unit_of_weights_changes_nothing(unit):
    """Not even where a penalty of the models is of the size of the weights."""
    rng = np.random.default_rng(3)
    features, weight = rng.normal(size=(200, 4)), rng.exponential(size=200)
    costs = pd.DataFrame(features @ rng.normal(size=(4, 3)) + rng.normal(size=(200, 3)))
    policy = ConstrainedPolicy(Ridge(50.0), None, positive_rate(of=1) <= 0.2, confidence_level=0.7)
    expected = clone(policy).fit(features, costs, sample_weight=weight)
    policy.fit(features, costs, sample_weight=unit * weight)
    np.testing.assert_array_equal(policy.predict(features), expected.predict(features))
    np.testing.assert_allclose(policy.multipliers_, expected.multipliers_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The objective is")
def test_a_stricter_level_of_a_rare_outcome_does_not_collapse():
    """Decided by moved bounds alone, it earned .03 at .8, and .14 at .9, of .36."""
    rng = np.random.default_rng(1)
    features, (gain, _, harm) = rare_harm(3000, rng)
    share, rows = np.array([0.4, 0.3, 0.2, 0.1]), np.arange(3000)
    action = rng.choice(4, 3000, p=share)
    log = pd.DataFrame({"action": action, "propensity": share[action]})
    log["reward"] = (gain + 0.3 * features[["a"]].to_numpy())[rows, action]
    log["reward"] += rng.normal(size=3000)
    log["harm"] = (rng.random(3000) < harm[rows, action]) * 1.0
    goals = [cost({0: 0, 1: 0.2, 2: 0.6, 3: "minutes"}) <= 0.3, outcome("harm") <= 0.065]
    new, (of_new, *_) = rare_harm(20000, rng)
    attained, earned = [], []
    for level in (0.8, 0.9):
        policy = ConstrainedPolicy(None, None, goals, confidence_level=level, random_state=0)
        policy.fit(features, log)
        report = policy.constraint_report_
        assert (report["value"] + report["margin"] <= report["bound"] + 1e-9).all()
        attained.append(policy.objective_report_["cross_fitted"][0])
        earned.append(of_new[np.arange(20000), policy.predict(new)].mean())
    assert min(earned) > 0.28
    assert attained[1] <= attained[0] + 1e-9


def rare_harm(n, rng):
    """Contexts, and the gain, spend and chance of harm of four actions in each."""
    X, none = rng.normal(size=(n, 6)), np.zeros(n)
    steps = 0.5 + 0.6 * (X[:, 3] > 0) * X[:, 2]
    gain = np.column_stack([none, 0.3 + 0.3 * X[:, 2], steps, 0.2 + 0.5 * abs(X[:, 4])])
    spend = np.column_stack([none, none + 0.2, none + 0.6, np.exp(0.3 * X[:, 5])])
    harm = 0.02 + 0.05 * np.column_stack([none, none + 1, none + 2, 1 + (X[:, 4] > 0)])
    frame = pd.DataFrame(X, columns=list("abcdef"))
    return frame.assign(minutes=spend[:, 3]), (gain, spend, harm)


@pytest.mark.filterwarnings("ignore:The objective is .* without margins")
def test_a_rule_just_outside_by_its_margin_moves_a_little_and_not_a_step_of_the_grid():
    rng = np.random.default_rng(5)
    X, call = rng.normal(size=(600, 1)), rng.random(600) < 0.5
    log = pd.DataFrame({"action": np.where(call, "call", "none"), "propensity": 0.5})
    log["reward"] = call * (1 + 0.5 * X[:, 0]) + 0.3 * rng.normal(size=600)
    log["cost"] = call * (1 + rng.exponential(1, 600))
    goal = outcome("cost") <= 0.6
    policy = ConstrainedPolicy(None, None, goal, confidence_level=0.9, random_state=0)
    report = policy.fit(X, log).constraint_report_
    assert 0.4 < report["value"][0] <= 0.6 - report["margin"][0]  # .2 by the grid alone
