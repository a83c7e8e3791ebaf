"""Dependent events: standard errors and intervals of policies' values count groups."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from skbandit.bandit import OffPolicyClassifier, SlatePolicy
from skbandit.evaluation import (
    OffPolicyScorer,
    off_policy_blocks,
    off_policy_value,
    replay,
    replay_slates,
)
from tests.worlds import refuses, warns

PEOPLE, VISITS = 100, 8
N = PEOPLE * VISITS
PERSON = np.repeat(np.arange(PEOPLE), VISITS)


def visits(seed=0, people=PEOPLE):
    """A log whose rewards depend on the person, and probabilities of its actions."""
    rng = np.random.default_rng(seed)
    n = people * VISITS
    kind = np.repeat(rng.normal(size=people), VISITS)
    action = rng.integers(2, size=n)
    reward = kind + action + 0.3 * rng.normal(size=n)
    log = pd.DataFrame({"action": action, "reward": reward, "propensity": 0.5})
    return pd.DataFrame({"x": rng.normal(size=n)}), log


X, LOG = visits()
TABLE = np.tile([0.3, 0.7], (N, 1))
OTHER = np.tile([0.6, 0.4], (N, 1))
WEIGHT = np.where(LOG["action"] == 1, 0.7, 0.3) / 0.5
METHODS = ["snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"]
SETTINGS = {name: {} if name in ("snips", "ips") else {"random_state": 0} for name in METHODS}


def clustered(influence, size, person):
    """Standard error of a mean with these influences, and Kish's number of groups."""
    sums, sizes = np.bincount(person, influence), np.bincount(person, size)
    groups = sizes.sum() ** 2 / (sizes**2).sum()
    rows = size.sum() ** 2 / (size**2).sum()
    n = len(influence)
    of_rows = (influence**2).sum() / ((n - 1) * n)
    deff = (sums**2).sum() / (influence**2).sum() * (1 - 1 / rows) / (1 - 1 / groups)
    return np.sqrt(of_rows * deff), groups


@pytest.mark.parametrize("method", ["snips", "ips"])
def test_values_by_the_formula(method):
    estimate = off_policy_value(TABLE, None, LOG, method=method, groups=PERSON)
    size = WEIGHT if method == "snips" else np.ones(N)
    earned = WEIGHT * LOG["reward"].to_numpy()
    influence = (earned - earned.sum() / size.sum() * size) / size.mean()
    error, groups = clustered(influence, size, PERSON)
    assert estimate.standard_error == pytest.approx(error, rel=1e-9)
    assert estimate.freedom == pytest.approx(groups - 1)
    naive = off_policy_value(TABLE, None, LOG, method=method)
    assert estimate.mean_reward == naive.mean_reward
    assert estimate.standard_error > 2 * naive.standard_error
    low, high = estimate.interval(0.9)  # of many events: the normal one, nearly
    assert (high - low) / 2 == pytest.approx(student.ppf(0.95, groups - 1) * error, rel=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_groups_of_one_event_change_nothing(method):
    plain, grouped = (
        off_policy_value(TABLE, X, LOG, method=method, groups=groups, **SETTINGS[method])
        for groups in (None, np.arange(N))
    )
    assert grouped.standard_error == plain.standard_error
    assert grouped.interval() == plain.interval()
    by_person = off_policy_value(TABLE, X, LOG, method=method, groups=PERSON, **SETTINGS[method])
    assert by_person.standard_error > 2 * plain.standard_error


def test_rewards_never_seen():
    """A group without variation is one trial: 100 of them have the interval of 100 events."""
    none = LOG.assign(reward=0.0)
    certain = np.tile([0.5, 0.5], (N, 1))
    grouped = off_policy_value(certain, None, none, method="ips", groups=PERSON)
    single = off_policy_value(certain[:PEOPLE], None, none[:PEOPLE], method="ips")
    assert grouped.standard_error == pytest.approx(single.standard_error)
    assert grouped.interval()[1] == pytest.approx(single.interval()[1], rel=0.05)


def test_blocks_are_the_log_in_memory():
    log = LOG.assign(pi=WEIGHT * 0.5, person=[f"p{k}" for k in PERSON])
    blocks = [log[k : k + 137] for k in range(0, N, 137)]
    found = off_policy_blocks("pi", blocks, features=[], groups="person")
    for method in ("snips", "ips"):
        whole = off_policy_value(TABLE, None, LOG, method=method, groups=PERSON)
        assert found[method].standard_error == pytest.approx(whole.standard_error)
        assert found[method].interval() == pytest.approx(whole.interval())
    refuses(
        "groups='site' is not a column", off_policy_blocks, "pi", blocks, features=[], groups="site"
    )


def test_differences_are_paired_by_person():
    first, second = (
        off_policy_value(table, None, LOG, method="ips", groups=PERSON) for table in (TABLE, OTHER)
    )
    away = (TABLE - OTHER)[np.arange(N), LOG["action"]] / 0.5 * LOG["reward"].to_numpy()
    error, groups = clustered(away - away.mean(), np.ones(N), PERSON)
    difference = first - second
    assert difference.standard_error == pytest.approx(error)
    assert difference.freedom == pytest.approx(groups - 1)
    naive = off_policy_value(OTHER, None, LOG, method="ips")
    refuses("the groups of these differ", lambda: first - naive)
    one_each = [
        off_policy_value(table, None, LOG, method="ips", groups=np.arange(N))
        for table in (TABLE, OTHER)
    ]
    plain = off_policy_value(TABLE, None, LOG, method="ips") - naive
    assert (one_each[0] - one_each[1]).interval() == plain.interval()


def test_reward_models_do_not_know_the_person():
    seen = []

    class Recorder(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            self.people_ = set(np.asarray(X)[:, 1].tolist())
            return super().fit(X, y)

        def predict(self, X):
            seen.append(self.people_ & set(np.asarray(X)[:, 1].tolist()))
            return super().predict(X)

    rows = np.column_stack([X["x"], PERSON])
    for cv in (5, GroupKFold(4)):
        settings = {"method": "dr", "reward_model": Recorder(), "cv": cv}
        off_policy_value(TABLE, rows, LOG, groups=PERSON, **settings)
    OffPolicyClassifier(reward_model=Recorder(), random_state=0).fit(rows, LOG, groups=PERSON)
    assert seen
    assert not set().union(*seen)
    few = OffPolicyClassifier(reward_model=Recorder(), random_state=0)
    few.fit(rows, LOG, groups=PERSON % 3)  # as many folds as groups


def test_replay_by_the_formula():
    chosen = np.ones(N, dtype=int)
    plain = replay(chosen, X, LOG, random_state=0)
    result = replay(chosen, X, LOG, groups=PERSON, random_state=0)
    assert result.mean_reward == plain.mean_reward
    event = result.history["event"].to_numpy()
    reward = LOG["reward"].to_numpy()[event]
    sums = np.bincount(PERSON[event], reward - reward.mean())
    counts = np.bincount(PERSON[event])
    n, groups = len(event), counts.sum() ** 2 / (counts**2).sum()
    squares = ((reward - reward.mean()) ** 2).sum()
    deff = (sums**2).sum() / squares * (1 - 1 / n) / (1 - 1 / groups)
    assert result.standard_error == pytest.approx(plain.standard_error * np.sqrt(deff))
    low, high = result.interval(0.9)
    wide = student.ppf(0.95, groups - 1) * result.standard_error
    assert (high - low) / 2 == pytest.approx(wide, rel=0.06)


@pytest.mark.parametrize("runs", [{}, {"subsample": 0.5, "n_repeats": 6}])
def test_replay_of_groups_of_one_event_changes_nothing(runs):
    chosen, other = np.ones(N, dtype=int), np.zeros(N, dtype=int)
    plain, grouped, by_person = (
        [replay(arm, X, LOG, random_state=0, groups=groups, **runs) for arm in (chosen, other)]
        for groups in (None, np.arange(N), PERSON)
    )
    assert grouped[0].interval() == plain[0].interval()
    assert (grouped[0] - grouped[1]).interval() == (plain[0] - plain[1]).interval()
    assert by_person[0].standard_error > 1.5 * plain[0].standard_error
    # a person's visits in both arms cancel
    away = by_person[0] - by_person[1]
    assert away.standard_error < 1.5 * (plain[0] - plain[1]).standard_error
    refuses("the groups of these differ", lambda: by_person[0] - plain[1])


@pytest.mark.thorough
def test_slates_by_the_formula():
    rng = np.random.default_rng(0)
    slates = [tuple(rng.permutation(["a", "b", "c"])[:2].tolist()) for _ in range(240)]
    person = np.repeat(np.arange(40), 6)
    likes = np.repeat(rng.random(40) < 0.5, 6)
    rewards = [tuple(float(likes[k]) for _ in slate) for k, slate in enumerate(slates)]
    log = pd.DataFrame({"action": slates, "reward": rewards})
    policy, rows = SlatePolicy(n_select=2, random_state=0), np.zeros((240, 1))
    plain, single, grouped = (
        replay_slates(policy, rows, log, learn=False, random_state=0, groups=groups)
        for groups in (None, np.arange(240), person)
    )
    assert single.interval() == plain.interval()
    assert grouped.mean_reward == plain.mean_reward
    error, groups = clustered(grouped.parts.influence, np.ones(240), person)
    assert grouped.standard_error == pytest.approx(error)
    assert grouped.freedom == pytest.approx(groups - 1)


def test_the_scorer_takes_groups():
    policy = OffPolicyClassifier(method="ips").fit(X, LOG.assign(reward=LOG["reward"] > 0))
    scorer = OffPolicyScorer(confidence_level=0.9)
    lower = off_policy_value(policy, X, LOG, rule="predict", groups=PERSON).interval(0.9)[0]
    assert scorer.score(policy, X, LOG, groups=PERSON) == lower
    assert lower < scorer.score(policy, X, LOG)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            policy, X, LOG, scoring=scorer, cv=GroupKFold(4), params={"groups": PERSON}
        )
    train, test = next(GroupKFold(4).split(X, groups=PERSON))
    fold = OffPolicyClassifier(method="ips").fit(X.iloc[train], LOG.iloc[train])
    rows = X.iloc[test], LOG.iloc[test]
    assert scores[0] == pytest.approx(scorer.score(fold, *rows, groups=PERSON[test]))


def test_a_series_has_the_order_of_x():
    rows = X.set_axis([f"r{k}" for k in range(N)])
    log, person = LOG.set_axis(rows.index), pd.Series(PERSON, index=rows.index)
    moved = person.sample(frac=1, random_state=0)
    for tables in ((rows, log), (None, log), (rows.to_numpy(), log)):
        with pytest.warns(UserWarning, match="groups has the row labels .* different order"):
            given = off_policy_value(TABLE, *tables, groups=moved)
        assert given.standard_error == (
            off_policy_value(TABLE, *tables, groups=PERSON).standard_error
        )


def test_few_groups_and_one():
    chosen = np.ones(N, dtype=int)
    calls = (
        lambda groups: off_policy_value(TABLE, None, LOG, groups=groups),
        lambda groups: off_policy_blocks(
            "pi", [LOG.assign(pi=0.5, g=groups)], features=[], groups="g"
        )["snips"],
        lambda groups: replay(chosen, X, LOG, random_state=0, groups=groups),
    )
    for call in calls:
        warns(r"groups has 5 group\(s\)", call, PERSON % 5)
        with pytest.warns(UserWarning, match=r"1 group\(s\).*there is no interval"):
            single = call(np.zeros(N))
        assert np.isnan(single.standard_error)
        assert np.isnan(single.interval()).all()
    with pytest.warns(UserWarning, match="no interval"):
        single = calls[0](np.zeros(N))
    assert np.isnan((single - single).interval()).all()


def test_what_groups_are_refused():
    value = off_policy_value(TABLE, None, LOG, groups=PERSON, reward_range=(-9, 9))
    refuses("kind='sequence' is for independent", value.interval, kind="sequence")
    alone = off_policy_value(TABLE, None, LOG, groups=np.arange(N), reward_range=(-9, 9))
    assert alone.interval(kind="sequence")[0] < alone.mean_reward
    for message, groups in {
        "3 entries for 800 rows": [1, 2, 3],
        "missing in row 2": [1.0, 2.0, np.nan, *range(N - 3)],
        "one value per row": "person",
    }.items():
        refuses(message, off_policy_value, TABLE, None, LOG, groups=groups)
