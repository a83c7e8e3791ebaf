"""Policies at a level where rows are dependent, events are rare, or a bound is 0."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression

from skbandit.bandit import ConstrainedPolicy
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import any_of, cost, outcome, positive_rate
from tests.worlds import refuses, warns

ARMS = np.array(["call", "mail", "none"])
SITES, VISITS = 60, 20
N = SITES * VISITS
SITE = np.repeat(np.arange(SITES), VISITS)
CAP = positive_rate(of="call") <= 0.3


def visits(seed=0, sites=SITES, per=VISITS, harm=0.0):
    """Contexts and a log in which calls help at some sites."""
    rng = np.random.default_rng(seed)
    n, site = sites * per, np.repeat(np.arange(sites), per)
    X = pd.DataFrame({"site": rng.normal(size=sites)[site], "age": rng.normal(size=n)})
    action = rng.integers(3, size=n)
    gain = np.column_stack([X["site"] + 0.2, 0.1 * X["age"], np.zeros(n)])
    log = pd.DataFrame(
        {
            "action": ARMS[action],
            "reward": gain[np.arange(n), action] + 0.3 * rng.normal(size=n),
            "propensity": 1 / 3,
            "harm": (rng.random(n) < harm) * 1.0,
        }
    )
    return X, log


X, LOG = visits()


pytestmark = pytest.mark.filterwarnings("ignore:The objective is .* without margins")


def fitted(goals, X=X, log=LOG, level=None, groups=None, **given):
    policy = ConstrainedPolicy(None, None, goals, confidence_level=level, random_state=0)
    return policy.fit(X, log, groups=groups, **given)


def widening(used, site):
    """What groups of equal size do to the variance of a mean, and their degrees of freedom."""
    away = used - used.mean()
    n, groups = len(used), len(np.unique(site))
    sums = np.bincount(site, away)
    return (sums**2).sum() / (away**2).sum() * (1 - 1 / n) / (1 - 1 / groups), groups - 1


@pytest.mark.thorough
def test_margins_and_intervals_by_the_formula():
    policy = fitted(CAP, level=0.9, groups=SITE)
    row = policy.constraint_report_.iloc[0]
    used = (policy.predict(X) == "call") * 1.0
    assert row["value"] == pytest.approx(used.mean())
    deff, freedom = widening(used, SITE)
    assert deff > 3
    # the influences of rows, and one more group that differs
    error = np.sqrt(deff * used.var() / N + 1 / SITES**2)
    for width, tail in ((row["margin"], 0.1), (row["ci_high"] - row["value"], 0.025)):
        z = norm.ppf(1 - tail) * student.ppf(tail, freedom) / student.ppf(tail, N - 1)
        assert width == pytest.approx(z * error)
    report = policy.constraint_report(X, groups=SITE)
    assert report["ci_high"][0] == pytest.approx(row["ci_high"])
    alone = policy.constraint_report(X)
    assert alone["ci_high"][0] - alone["value"][0] < 0.6 * (row["ci_high"] - row["value"])
    naive = fitted(CAP, level=0.9)
    assert naive.constraint_report_["margin"][0] < 0.6 * row["margin"]
    wide = np.ptp(policy.objective_report_[["ci_low", "ci_high"]].to_numpy())
    assert wide > 1.5 * np.ptp(naive.objective_report_[["ci_low", "ci_high"]].to_numpy())


@pytest.mark.thorough
@pytest.mark.parametrize("level", [None, 0.9])
def test_groups_of_one_row_change_nothing(level):
    goals = [CAP, outcome("harm") + 0.1 * positive_rate(of="mail") <= 0.2]
    x, log = visits(3, harm=0.1)
    plain, grouped = (fitted(goals, x, log, level, groups) for groups in (None, np.arange(N)))
    pd.testing.assert_frame_equal(plain.constraint_report_, grouped.constraint_report_)
    pd.testing.assert_frame_equal(plain.objective_report_, grouped.objective_report_)
    assert (plain.multipliers_ == grouped.multipliers_).all()


@pytest.mark.thorough
def test_groups_of_the_extra_rows():
    extra, _ = visits(7)
    plain = fitted(CAP, level=0.9, X_extra=extra, groups=SITE)
    grouped = fitted(CAP, level=0.9, X_extra=extra, groups=SITE, groups_extra=SITE + 1000)
    only = fitted(CAP, level=0.9, X_extra=extra, groups_extra=pd.Series(SITE))
    margins = [policy.constraint_report_["margin"][0] for policy in (plain, grouped, only)]
    assert margins[1] > 2 * margins[0]
    assert margins[1] == pytest.approx(margins[2], rel=0.2)
    refuses("groups_extra has 3 entries", fitted, CAP, X_extra=extra, groups_extra=[1, 2, 3])
    refuses("rows of X_extra, which is missing", fitted, CAP, groups_extra=SITE)


class SiteRecorder(LinearRegression):
    """Notes the sites that it predicts for and was trained on; they are the last column."""

    shared = []  # noqa: RUF012

    def fit(self, X, y):
        self.sites_ = set(np.asarray(X)[:, 2].tolist())
        return super().fit(X, y)

    def predict(self, X):
        self.shared.append(self.sites_ & set(np.asarray(X)[:, 2].tolist()))
        return super().predict(X)


def test_models_do_not_know_the_group():
    SiteRecorder.shared.clear()
    policy = ConstrainedPolicy(SiteRecorder(), None, CAP, confidence_level=0.5, random_state=0)
    policy.fit(np.column_stack([X, SITE]), LOG, groups=SITE)
    assert sum(not sites for sites in SiteRecorder.shared) == 5 * 3  # folds and actions


@pytest.mark.thorough
def test_few_groups_and_one():
    warns(r"groups has 6 group\(s\)", fitted, CAP, level=0.5, groups=SITE % 6)
    with pytest.warns(UserWarning) as told:
        policy = fitted(CAP, groups=np.zeros(N))
    assert any("there is no interval" in str(warning.message) for warning in told)
    assert policy.constraint_report_[["ci_low", "ci_high"]].isna().all(axis=None)
    assert policy.objective_report_[["ci_low", "ci_high"]].isna().all(axis=None)
    assert policy.confidence_level_ == 0.5
    with (
        pytest.warns(UserWarning, match="no interval"),
        pytest.raises(InfeasibleConstraintsError, match="with a margin of inf"),
    ):
        fitted(CAP, level=0.9, groups=np.zeros(N))


@pytest.mark.thorough
@pytest.mark.parametrize("groups", [None, SITE])
def test_an_outcome_never_seen_follows_the_rule_of_three(groups):
    """None of n events like those chosen: rates above -log(tail)/n are as rare as the tail."""
    policy = fitted(outcome("harm") <= 0.5, level=0.9, groups=groups)
    row, chosen = policy.constraint_report_.iloc[0], policy.predict(X)
    n = (chosen == LOG["action"].to_numpy()).sum() if groups is None else SITES
    assert row["value"] == pytest.approx(0, abs=1e-9)
    assert row["margin"] == pytest.approx(np.log(10) / n, rel=0.15)
    assert row["ci_high"] == pytest.approx(np.log(40) / n, rel=0.15)
    report = policy.constraint_report(X, LOG, groups=groups)
    assert report["ci_high"][0] == pytest.approx(np.log(40) / n, rel=0.15)
    with pytest.raises(InfeasibleConstraintsError, match="with a margin of"):
        fitted(outcome("harm") <= 0.5 / n, level=0.9, groups=groups)


@pytest.mark.thorough
def test_an_outcome_often_seen_has_its_standard_error():
    x, log = visits(3, harm=0.1)
    row = fitted(outcome("harm") <= 0.5, x, log, level=0.9).constraint_report_.iloc[0]
    weighted = np.sqrt(3 * 0.1 / N)  # of rewards of weight 3 in a third of the rows
    assert row["margin"] == pytest.approx(norm.ppf(0.9) * weighted, rel=0.15)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("goal", "level"),
    [
        (positive_rate(of="call") <= 0, None),
        (positive_rate(of="call") <= 0, 0.99),
        (positive_rate(of=any_of("mail", "none")) >= 1, 0.9),
        (cost({"call": 2.0, "mail": 0, "none": 0}) <= 0, 0.9),
        (cost({"call": "minutes", "mail": 0, "none": 0}) <= 0, 0.9),
    ],
)
def test_a_bound_of_0_bars(goal, level):
    people = {"minutes": np.where(np.arange(N) % 2, 3.0, 0.0)}
    policy = fitted(goal, level=level, attributes=people)
    row = policy.constraint_report_.iloc[0]
    ends = row[["value", "ci_low", "ci_high"]].to_numpy(dtype=float)
    np.testing.assert_allclose(ends, row["bound"], atol=1e-12)
    assert row["satisfied"]
    assert abs(row["unconstrained"] - row["bound"]) > 0.1
    assert row["price"] > 0
    new, _ = visits(11, sites=100)
    new["site"] += 30.0  # beyond all that training saw
    minutes = np.where(np.arange(len(new)) % 3, 3.0, 0.0)
    chosen = policy.predict(new, attributes={"minutes": minutes})
    assert not (chosen[minutes > 0] == "call").any()
    assert ("minutes" in repr(goal)) == (chosen[minutes == 0] == "call").all()
    # the last resort
    few = {"available": [["call"]] * 2, "attributes": {"minutes": minutes[:2]}}
    assert policy.predict(new[:2], **few).tolist() == ["call", "call"]


@pytest.mark.thorough
def test_a_bound_of_0_with_rows_that_have_no_other_arm():
    alone = np.arange(N) < 5
    log = LOG.assign(action=np.where(alone, "call", LOG["action"]))
    log["propensity"] = np.where(alone, 1.0, 1 / 3)
    log["available"] = [("call",) if few else tuple(ARMS.tolist()) for few in alone]
    with pytest.raises(InfeasibleConstraintsError):
        fitted(positive_rate(of="call") <= 0, log=log, level=0.9)


@pytest.mark.thorough
def test_refunds_pay_for_spends():
    """A bound of 0 on amounts of both signs is a budget as any other."""
    amounts = np.where(np.arange(N) % 2, 1.0, -1.0)
    goal = cost({"call": "net", "mail": 0, "none": 0}) <= 0
    with pytest.warns(UserWarning, match="a negative amount pays for others"):
        policy = fitted(goal, attributes={"net": amounts})
        chosen = policy.predict(X, attributes={"net": amounts})
    assert (chosen[amounts > 0] == "call").any()


@pytest.mark.thorough
def test_levels_hold_on_new_sites():
    """40 fits at .9: below .75 once in a hundred; rows taken as independent keep about .6."""
    goal = cost({"none": 0, "mail": 0.3, "call": 1.0}) <= 0.3
    new = visits(1, sites=20_000, per=1)[0]
    kept = []
    for seed in range(40):
        x, log = visits(100 + seed)
        try:
            chosen = fitted(goal, x, log, 0.9, SITE).predict(new)
        except InfeasibleConstraintsError:
            continue
        kept.append(((chosen == "call") + 0.3 * (chosen == "mail")).mean() <= 0.3)
    assert np.mean(kept) > 0.75
    assert len(kept) > 20
