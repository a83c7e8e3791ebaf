"""Reports and fits of policies against values by hand: weights, actions, ratios, batches."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.preprocessing import StandardScaler

from skbandit.bandit import ConstrainedPolicy, make_policy_pipeline
from skbandit.evaluation import off_policy_value
from skbandit.logged import _policy_rule
from skbandit.logs import join_rewards
from skbandit.rates import cost, difference, outcome, positive_rate

RNG = np.random.default_rng(11)
N = 600
X = RNG.normal(size=(N, 2))
WEIGHT = np.where(np.arange(N) % 3 == 0, 0.0, RNG.exponential(size=N))
COSTS = pd.DataFrame({"a": -X[:, 0], "b": -0.5 * X[:, 1], "c": np.zeros(N)})
COSTS += 0.1 * RNG.normal(size=COSTS.shape)
CAP = positive_rate(of="a") <= 0.3


class Column(RegressorMixin, BaseEstimator):
    """Predicts minus a column, or 0, whatever it is fitted to: no model is out of fold."""

    def fit(self, X, y, sample_weight=None):
        slope = X.T @ (y - y.mean()) / len(y)
        self.column_ = int(np.argmax(np.abs(slope)))
        self.sign_ = np.sign(slope[self.column_]) * (np.abs(slope).max() > 0.2)
        return self

    def predict(self, X):
        return self.sign_ * X[:, self.column_]


POLICY = ConstrainedPolicy(Column(), None, CAP, confidence_level=0.5, random_state=0).fit(X, COSTS)


def error_of(weight, used):
    """Standard error of a weighted mean, with one row of Kish's number more."""
    w = weight / weight.sum()
    kish = 1 / (w**2).sum()
    step = np.ptp(used[weight > 0]) / kish
    return np.sqrt((w**2 * (used - w @ used) ** 2).sum() + step**2)


@pytest.mark.parametrize("weight", [WEIGHT, 1e3 * WEIGHT, np.ones(N)], ids=["w", "1000 w", "1"])
def test_a_report_counts_weights(weight):
    chosen = (POLICY.predict(X) == "a").astype(float)
    (row,) = POLICY.constraint_report(X, sample_weight=weight).to_dict("records")
    assert row["value"] == pytest.approx(np.average(chosen, weights=weight))
    wide = 1.959963985 * error_of(weight, chosen)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(
        (row["value"] - wide, row["value"] + wide)
    )
    assert row["n_rows"] == (weight > 0).sum()
    assert row["effective_n"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_the_shares_of_actions_stand_beside_those_without_goals():
    """In `repr` and below a report, for the traffic of the fit or of the last `reprice`."""
    best = POLICY.expected_costs(X).idxmin(axis=1)
    text = ", ".join(
        f"{arm} {(POLICY.predict(X) == arm).mean():.1%} (without constraints "
        f"{(best == arm).mean():.1%})"
        for arm in "abc"
    )
    assert repr(POLICY).endswith(f"\ndecided: {text}")
    assert [share[0] for share in POLICY.constraint_report_.attrs["decisions"]] == [*"abc"]
    assert "decided" not in repr(clone(POLICY))


def test_a_share_of_0_may_be_one_row():
    """Without variation, the error is the step of one row."""
    costs = COSTS.assign(a=9.0)
    policy = ConstrainedPolicy(None, None, CAP, confidence_level=0.5).fit(X, costs)
    (row,) = policy.constraint_report(X).to_dict("records")
    assert (row["value"], row["ci_high"]) == pytest.approx((0.0, 1.959963985 / N))


def test_an_arm_of_rows_without_weight_is_never_taken():
    action = np.where(WEIGHT == 0, "c", np.where(np.arange(N) % 2, "a", "b"))
    log = pd.DataFrame({"action": action, "reward": 5.0 * (action == "c"), "propensity": 1 / 3})
    with pytest.warns(UserWarning, match=r"No event has the actions \['c'\]"):
        policy = ConstrainedPolicy(None, None, CAP, confidence_level=0.5)
        policy.fit(X, log, sample_weight=WEIGHT)
    assert set(policy.predict(X)) <= {"a", "b"}


def test_rows_without_weight_change_nothing():
    """Neither prices nor levels, with batches, too."""
    kept = WEIGHT > 0
    for batch_size in (None, 100):
        policy = clone(POLICY).set_params(confidence_level=0.8, batch_size=batch_size)
        whole = clone(policy).fit(X, COSTS, sample_weight=WEIGHT)
        part = clone(policy).fit(X[kept], COSTS[kept], sample_weight=WEIGHT[kept])
        margin = [one.constraint_report_["margin"][0] for one in (whole, part)]
        assert margin[0] == pytest.approx(margin[1], rel=0.25)  # folds differ
        assert whole.constraint_report_["n_rows"][0] == kept.sum()


@pytest.mark.parametrize("batch_size", [None, 50, 600])
def test_a_batch_has_the_noise_of_its_own_rows(batch_size):
    """Variance is that of the mean, times 1 + n / batch_size; extra rows have no folds."""
    policy = clone(POLICY).set_params(confidence_level=0.8, batch_size=batch_size)
    (row,) = policy.fit(X, COSTS, X_extra=X).constraint_report_.to_dict("records")
    variance = row["value"] * (1 - row["value"]) / N + 1 / N**2
    times = 1 if batch_size is None else 1 + N / batch_size
    assert row["margin"] == pytest.approx(0.8416212336 * np.sqrt(variance * times))


def test_units_are_of_all_actions_of_a_row():
    """Two actions use twice what one may: a bound between the two sizes is no warning."""
    spend = cost({"a": 1.0, "b": 0.5, "c": 0.5})
    ConstrainedPolicy(None, None, spend <= 15, n_select=2).fit(X, COSTS)
    with pytest.warns(UserWarning, match="the bound is .* times what the costliest"):
        ConstrainedPolicy(None, None, spend <= 15, n_select=1).fit(X, COSTS)


def test_a_ratio_by_hand():
    """Of two shares: value, and its error by the delta method."""
    goal = positive_rate(of="a") / positive_rate(of="b") <= 2.0
    policy = ConstrainedPolicy(Column(), None, goal, confidence_level=0.5, random_state=0)
    policy.fit(X, COSTS)
    chosen = policy.predict(X)
    p, q = np.mean(chosen == "a"), np.mean(chosen == "b")
    (row,) = policy.constraint_report(X).to_dict("records")
    assert row["value"] == pytest.approx(p / q)
    residual = (chosen == "a") - 2.0 * (chosen == "b")  # at the bound, as the goal is a sum
    steps = 1.0 + 2.0**2
    error = np.sqrt(residual.var() / N + steps / N**2) / q
    assert row["ci_high"] - row["value"] == pytest.approx(1.959963985 * error, rel=1e-6)


def test_the_objectives_interval_by_hand():
    """Of a table of costs that are known: the error of the mean cost of the decisions."""
    policy = clone(POLICY).fit(X, COSTS, sample_weight=WEIGHT)
    report = policy.objective_report_.iloc[0]
    chosen = policy.predict(X)
    cost_of = COSTS.to_numpy()[np.arange(N), COSTS.columns.get_indexer(chosen)]
    w = WEIGHT / WEIGHT.sum()
    assert report["value"] == pytest.approx(w @ cost_of)
    middle = (report["ci_low"] + report["ci_high"]) / 2
    assert middle == pytest.approx(report["cross_fitted"])
    error = np.sqrt((w**2 * (cost_of - w @ cost_of) ** 2).sum())
    assert report["ci_high"] - middle == pytest.approx(1.959963985 * error, rel=0.05)


@pytest.mark.thorough
def test_an_outcome_of_a_log_by_hand():
    """Doubly robust, weighted: the mean and the error over events."""
    action = RNG.choice(["a", "b", "c"], N)
    log = pd.DataFrame({"action": action, "reward": X[:, 0] * (action == "a"), "propensity": 1 / 3})
    log["harm"] = 0.1 + 0.2 * RNG.random(N) * (action == "a")
    policy = ConstrainedPolicy(None, None, outcome("harm") <= 0.18, confidence_level=0.5)
    policy.fit(X, log)
    (row,) = policy.constraint_report(X, log, sample_weight=WEIGHT).to_dict("records")
    decided, predicted = policy.predict(X), policy._models.predict(X)["harm"]
    column = policy.arms_.tolist().index
    taken = predicted[np.arange(N), [column(arm) for arm in decided]]
    same = decided == action
    taken = taken + np.where(same, 3.0 * (log["harm"] - taken), 0.0)
    w = WEIGHT / WEIGHT.sum()
    assert row["value"] == pytest.approx(w @ taken)


def test_a_margin_of_losses_of_which_few_are_large():
    """Of a policy that never calls, by hand: the transformed quantile or the lognormal mean."""
    rng = np.random.default_rng(4)
    action = np.where(np.arange(N) % 2 == 0, "call", "none")
    loss = np.where(rng.random(N) < 0.1, np.exp(2.0 * rng.normal(size=N)), 0.0)
    log = pd.DataFrame({"action": action, "reward": 0.0, "loss": loss, "propensity": 0.5})
    log.loc[log["action"] == "none", "reward"] = 1.0
    policy = ConstrainedPolicy(
        DummyRegressor(),
        None,
        outcome("loss") <= 8 * loss.mean(),
        confidence_level=0.9,
        random_state=0,
    )
    with pytest.warns(UserWarning, match="One event has .*'loss'.*lognormal"):
        policy.fit(X, log)
    assert (policy.predict(X) == "none").all()
    (row,) = policy.constraint_report_.to_dict("records")
    amounts = loss[loss > 0]
    s2, n = np.log(amounts).var(ddof=1), len(amounts)
    limit = (
        np.log(amounts).mean()
        + s2 / 2
        + 1.2815515655 * np.sqrt((1 + s2) / n + s2**2 / (2 * (n - 1)))
    )
    assert row["margin"] == pytest.approx(row["value"] * (np.exp(limit) / amounts.mean() - 1))
    assert row["ci_high"] - row["value"] > 1.2 * (row["value"] - row["ci_low"])


@pytest.mark.thorough
@pytest.mark.parametrize("n_select", [1, 2])
def test_what_is_searched_is_what_is_measured(n_select, monkeypatch):
    """Sums of rows and decisions are the excess of any decisions: by column, by group, weighted."""
    posed = {}

    def searched(problem, measure):
        posed.update(problem=problem, measure=measure)
        return search(problem, measure)

    search = _policy_rule.searched
    monkeypatch.setattr(_policy_rule, "searched", searched)
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"minutes": rng.exponential(size=N), "old": rng.integers(0, 2, N)})
    goals = [
        cost({"a": "minutes", "b": 0.5, "c": 0.0}) <= 0.6 * n_select,
        difference(positive_rate, by="old", of=["a"]) <= 0.3,
    ]
    table, weight = COSTS, WEIGHT
    if n_select == 1:
        goals.append(outcome("harm") <= 0.3)
        action = rng.choice(list("abc"), N)
        table = pd.DataFrame({"action": action, "reward": rng.normal(size=N), "propensity": 1 / 3})
        table, weight = table.assign(harm=rng.integers(0, 2, N) * 0.5), None
    policy = ConstrainedPolicy(None, None, goals, n_select=n_select, confidence_level=0.5)
    policy.fit(X, table, attributes=people, sample_weight=weight)
    problem, measure = posed["problem"], posed["measure"]
    added = np.array([*measure.added(np.arange(len(problem.base)))])
    for _ in range(5):
        order = rng.random(problem.base.shape).argsort(axis=1)
        decided = order < n_select
        excess = (added * decided).sum(axis=(1, 2)) + measure.constant
        np.testing.assert_allclose(excess, measure(decided).excess, atol=1e-12)


SERVED = clone(POLICY).set_params(exploration=0.3, constraints=positive_rate(of="a") <= 0.6)
SERVED.fit(X, COSTS)
POOLS = np.column_stack([np.ones((N, 2), dtype=bool), np.arange(N) % 2 == 0])


def test_select_proba_without_exploration_is_certain_of_predict():
    chosen = COSTS.columns.get_indexer(POLICY.predict(X))
    np.testing.assert_array_equal(POLICY.select_proba(X), np.eye(3)[chosen])


def test_select_proba_gives_each_available_action_its_share_of_exploration():
    best = COSTS.columns.get_indexer(SERVED.predict(X, available=POOLS))
    share = 0.3 * POOLS / POOLS.sum(axis=1, keepdims=True)
    expected = share + 0.7 * np.eye(3)[best]
    np.testing.assert_allclose(SERVED.select_proba(X, available=POOLS), expected)


def test_select_draws_with_the_probabilities_that_it_returns():
    many = np.repeat(X[:2], 4000, axis=0)
    chosen, chance = SERVED.select(many, return_proba=True)
    codes = COSTS.columns.get_indexer(chosen)
    expected = SERVED.select_proba(many)
    np.testing.assert_allclose(chance, expected[np.arange(8000), codes])
    counted = [
        np.bincount(codes[rows], minlength=3) / 4000 for rows in np.split(np.arange(8000), 2)
    ]
    np.testing.assert_allclose(counted, expected[[0, -1]], atol=0.03)


def test_select_of_single_rows_does_not_repeat_its_draws():
    assert len({SERVED.select(X[:1])[0] for _ in range(60)}) == 3


def test_select_never_takes_what_a_row_cannot_get():
    policy = clone(SERVED).set_params(exploration=1.0).fit(X, COSTS)
    chosen = COSTS.columns.get_indexer(policy.select(X, available=POOLS))
    assert POOLS[np.arange(N), chosen].all()


def test_select_of_two_actions_returns_the_chance_of_each_to_be_among_them():
    policy = clone(POLICY).set_params(constraints=(), n_select=2, exploration=0.3).fit(X, COSTS)
    chosen, chance = policy.select(X, return_proba=True)
    assert all(first != second for first, second in chosen)
    np.testing.assert_allclose(policy.select_proba(X).sum(axis=1), 2.0)
    assert set(chance.round(9).ravel()) <= {0.2, 0.9}


def test_records_of_choices_and_their_rewards_are_a_log_of_their_value():
    records, rewards = [], {}
    for row in range(60):
        (arm,), (chance,) = SERVED.select(X[row : row + 1], return_proba=True)
        record = json.loads(json.dumps(SERVED.record(X[row : row + 1], arm, chance)))
        assert record["version"] == N
        records.append(record)
        rewards[record["id"]] = float(arm == "a")
    contexts, log = join_rewards(records, rewards)
    assert set(log["propensity"].round(9)) <= {0.1, 0.8}
    estimate = off_policy_value(SERVED, contexts, log, method="ips")
    assert estimate.mean_reward == pytest.approx(log["reward"].mean())


def test_record_refuses_several_labels_and_arms_that_were_not_available():
    with pytest.raises(ValueError, match="a record is of one choice"):
        POLICY.record(X[:1], POLICY.predict(X[:2]), 1.0)
    with pytest.raises(ValueError, match="arm 'a' is not among the available"):
        POLICY.record(X[:1], "a", 1.0, available=["b", "c"])


def test_a_pipeline_serves_the_policy_behind_it():
    pipeline = make_policy_pipeline(StandardScaler(), clone(SERVED)).fit(X, COSTS)
    assert pipeline.select(X[:3], return_proba=True)[1].shape == (3,)
    np.testing.assert_allclose(pipeline.select_proba(X[:3]).sum(axis=1), 1.0)
    assert pipeline.record(X[:1], "a", 0.8)["context"] == pytest.approx(X[0])


def test_the_value_of_an_exploring_policy_is_by_its_probabilities():
    rows = np.arange(N)
    log = pd.DataFrame({"action": np.array(list("abc"))[rows % 3], "reward": X[:, 0]})
    estimate = off_policy_value(SERVED, X, log.assign(propensity=1 / 3), method="ips")
    expected = (3 * SERVED.select_proba(X)[rows, rows % 3] * X[:, 0]).mean()
    assert estimate.mean_reward == pytest.approx(expected)


@pytest.mark.parametrize("name", ["reward", "propensity", "harm"])
def test_features_that_are_outcomes_are_told(name):
    log = pd.DataFrame({"action": np.tile(list("abc"), N // 3), "reward": X[:, 0]})
    log = log.assign(propensity=1 / 3, harm=0.1 + 0.01 * X[:, 1])
    features = pd.DataFrame(X, columns=["age", name])
    policy = ConstrainedPolicy(None, None, outcome("harm") <= 0.5, confidence_level=0.5)
    with pytest.warns(UserWarning, match=rf"X and y share the columns '{name}'"):
        policy.fit(features, log)


def test_verbose_prints_what_is_shared_and_each_level(capsys):
    clone(POLICY).set_params(confidence_level=0.8, verbose=1).fit(X, COSTS)
    shared, level = capsys.readouterr().out.splitlines()
    assert shared == "[ConstrainedPolicy] cost: a model of each action"
    assert level.startswith("[ConstrainedPolicy] level 0.8: objective -0.")
    assert level.endswith(", the goals hold")


def test_select_proba_names_columns_that_are_not_in_label_order():
    policy = clone(POLICY).fit(X, COSTS[["c", "a", "b"]])
    chance = policy.select_proba(X)
    assert chance.columns.tolist() == ["c", "a", "b"]
    assert (chance.idxmax(axis=1) == policy.predict(X)).all()


def test_goals_that_exploration_misses_are_told():
    """Of an action that is never the best, half of a third is explored."""
    costs, goal = COSTS.assign(c=1.0), positive_rate(of="c")
    policy = ConstrainedPolicy(None, None, goal <= 0.2, confidence_level=0.5, exploration=0.5)
    policy.fit(X, costs)  # warnings are errors
    with pytest.warns(UserWarning, match="With exploration=0.5, what select chooses misses"):
        clone(policy).set_params(constraints=goal <= 0.1).fit(X, costs)
