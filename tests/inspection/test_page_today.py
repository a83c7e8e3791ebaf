"""save_report: against the rule of today, the rates behind gaps, classes, files and sheets."""

import html
import os
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedThreshold, GLMUCBPolicy, RegressionSetSelector
from skbandit.bandit import ConstrainedPolicy
from skbandit.evaluation import off_policy_value, rate_report
from skbandit.inspection import save_report
from skbandit.inspection._report_lines import axis_of, panels_of, rows_of
from skbandit.rates import (
    cost,
    difference,
    each,
    error_rate,
    outcome,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.worlds import refuses

RNG = np.random.default_rng(8)
N = 1200
X = RNG.normal(size=(2 * N, 2))
Y = (X.sum(axis=1) + RNG.normal(size=2 * N) > 0).astype(int)
PEOPLE = pd.DataFrame(
    {
        "origin": np.where(X[:, 0] > 0.6, "", RNG.choice(["north", "south"], 2 * N)),
        "sex": RNG.choice(["F", "M"], 2 * N),
        "minutes": RNG.uniform(1, 4, 2 * N),
    }
)
TRAIN, NEW = slice(0, N), slice(N, 2 * N)
ARMS = np.array(["none", "letter", "call"])
ACTION = RNG.integers(0, 3, 2 * N)
GAIN = np.column_stack([np.zeros(2 * N), 0.5 + 0.8 * X[:, 0], 1.5 + 1.5 * X[:, 1]])
LOG = pd.DataFrame(
    {
        "action": ARMS[ACTION],
        "reward": GAIN[np.arange(2 * N), ACTION] + RNG.normal(size=2 * N),
        "propensity": 1 / 3,
    }
)
SPEND = cost({"none": 0, "letter": 0.7, "call": "minutes"})
RULE = np.where(X[:, 1] > 1, "call", "none")


def spent(decided, rows):
    minutes = PEOPLE["minutes"][rows].to_numpy()
    return np.select([decided == "letter", decided == "call"], [0.7, minutes], 0.0)


def saved(folder, model, X, y, **options):
    """The page, and its text by section."""
    path = folder / "report.html"
    save_report(model, X, y, path, **options)
    page = path.read_text(encoding="utf-8")
    sections = {}
    for part in re.findall(r"<section>(.*?)</section>", page, flags=re.DOTALL):
        head, body = re.match(r"<h2>(.*?)</h2>(.*)", part, flags=re.DOTALL).groups()
        text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)))
        sections[html.unescape(head)] = text
    return page, sections


def figures(row):
    return f"{row['value']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]"


@pytest.fixture(scope="module")
def threshold():
    goals = [ratio(positive_rate, by="origin") >= 0.4, difference(recall, by="sex") <= 0.1]
    model = ConstrainedThreshold(LogisticRegression(), constraints=[*goals, precision() >= 0.6])
    return model.fit(X[TRAIN], Y[TRAIN], attributes=PEOPLE[TRAIN])


@pytest.fixture(scope="module")
def policy():
    goals = [SPEND <= 0.6, difference(positive_rate(of="call"), by="sex") <= 0.1]
    fitted = ConstrainedPolicy(None, None, goals, random_state=0)
    return fitted.fit(X[TRAIN], LOG[TRAIN], attributes=PEOPLE[TRAIN])


# --- policies ------------------------------------------------------------------------------


def snips_by_hand(decided, reward, rows):
    """Means of rewards over events whose action is decided, with their spends taken off exactly."""
    matches = (decided == LOG["action"][rows]).to_numpy()
    return reward[matches].mean()


@pytest.mark.thorough
@pytest.mark.parametrize("given", ["decisions", "policy"])
def test_a_policy_against_the_rule_of_today_with_what_both_spend(policy, tmp_path, given):
    usual, today = RULE[NEW], RULE[NEW]
    if given == "policy":
        today = ConstrainedPolicy(None, None, SPEND <= 0.3, random_state=0)
        today.fit(X[TRAIN], LOG[TRAIN], attributes=PEOPLE[TRAIN])
        usual = today.predict(X[NEW], attributes=PEOPLE[NEW])
    options = {"attributes": PEOPLE[NEW], "today": today}
    _, sections = saved(tmp_path, policy, X[NEW], LOG[NEW], **options)
    text = sections["Value against today's rule"]
    decided = policy.predict(X[NEW], attributes=PEOPLE[NEW])
    reward = LOG["reward"][NEW].to_numpy()
    ours, theirs = (snips_by_hand(rule, reward, NEW) for rule in (decided, usual))
    assert f"this policy {ours:.3f} [" in text and f"today's rule {theirs:.3f} [" in text
    gain = off_policy_value(decided, None, LOG[NEW]) - off_policy_value(usual, None, LOG[NEW])
    low, high = gain.interval()
    assert f"difference {gain.mean_reward:.3f} [{low:.3f}, {high:.3f}]" in text
    of_us, of_them = (spent(rule, NEW).mean() for rule in (decided, usual))
    assert f"this policy {of_us:.3f} [" in text and f"today's rule {of_them:.3f} [" in text
    net = text.split("mean reward less ", 1)[1]
    assert f"this policy {ours - of_us:.3f} [" in net
    assert f"today's rule {theirs - of_them:.3f} [" in net
    assert f"difference {ours - of_us - theirs + of_them:.3f} [" in net
    differs = (decided != usual).sum()
    assert f"{differs} of 1,200 rows" in sections["What is decided differently"].replace(
        f"{differs:,}", str(differs)
    )


@pytest.mark.thorough
def test_the_interval_of_a_net_value_covers(policy, tmp_path):
    """Of 100 logs of one rule, against its value less its spend in all rows of the world."""
    r, hits, decided = np.random.default_rng(3), 0, RULE[NEW]
    truth = np.where(decided == "call", GAIN[NEW, 2], 0.0).mean() - spent(decided, NEW).mean()
    from skbandit.evaluation._off_policy._off_policy_value import value_of_evaluated
    from skbandit.evaluation._off_policy._target_policy import read_evaluated

    for _ in range(100):
        rows = r.integers(0, N, N)
        action = r.integers(0, 3, N)
        gain = GAIN[NEW][rows, action] + r.normal(size=N)
        logged = pd.DataFrame({"action": ARMS[action], "reward": gain, "propensity": 1 / 3})
        minutes = PEOPLE["minutes"][NEW].to_numpy()[rows]
        table = {"none": 0 * minutes, "letter": 0 * minutes + 0.7, "call": minutes}
        logged["reward"] -= np.select([action == 1, action == 2], [0.7, minutes], 0.0)
        evaluated = read_evaluated(decided[rows], None, logged, rule="select")
        known = -np.column_stack([table[arm] for arm in evaluated.arms])
        low, high = value_of_evaluated(evaluated, known, None).interval()
        hits += low <= truth <= high
    assert norm.sf((0.95 - hits / 100) / np.sqrt(0.95 * 0.05 / 100)) > 0.001


def test_the_log_is_today_unless_another_rule_is_given(policy, tmp_path):
    _, sections = saved(tmp_path, policy, X[NEW], LOG[NEW], attributes=PEOPLE[NEW])
    text = sections["Value against today's rule"]
    action, reward = LOG["action"][NEW].to_numpy(), LOG["reward"][NEW]
    paid = spent(action, NEW).mean()
    assert "Today's rule is the one that made the log." in text
    assert f"today's rule {paid:.3f} [" in text
    assert f"today's rule {reward.mean() - paid:.3f} [" in text.split("mean reward less ")[1]


@pytest.mark.thorough
def test_a_log_without_reward_has_the_value_of_the_objective(tmp_path):
    log = LOG.rename(columns={"reward": "revenue"}).assign(dropouts=1.0 * (LOG["reward"] < 0))
    goal = SPEND <= 0.6
    rows = X[NEW], log[NEW]
    for objective, value in {
        outcome("revenue") - 0.5 * outcome("dropouts"): log["revenue"] - 0.5 * log["dropouts"],
        outcome("revenue") - SPEND: log["revenue"] - spent(log["action"].to_numpy(), slice(None)),
    }.items():
        model = ConstrainedPolicy(None, objective, goal, random_state=0)
        model.fit(X[TRAIN], log[TRAIN], attributes=PEOPLE[TRAIN])
        _, sections = saved(tmp_path, model, *rows, attributes=PEOPLE[NEW], today=RULE[NEW])
        text = sections["Value against today's rule"]
        theirs = snips_by_hand(RULE[NEW], value[NEW].to_numpy(), NEW)
        assert f"{objective!r} this policy" in text
        assert f"today's rule {theirs:.3f} [" in text
        counted = "SPENT" if objective.atoms[-1].kind.name == "cost" else "less"
        assert ("What is spent" in text) == (counted == "less"), "once, in the objective"


def test_probabilities_of_today(policy, tmp_path):
    shares = pd.DataFrame({"none": 0.5, "letter": 0.25, "call": 0.25}, index=range(N))
    _, sections = saved(tmp_path, policy, X[NEW], LOG[NEW], attributes=PEOPLE[NEW], today=shares)
    text = sections["Value against today's rule"]
    minutes = PEOPLE["minutes"][NEW].mean()
    assert f"today's rule {0.25 * 0.7 + 0.25 * minutes:.3f} [" in text
    value = off_policy_value(shares, None, LOG[NEW]).mean_reward
    assert f"today's rule {value:.3f} [" in text


@pytest.mark.filterwarnings("ignore:the weights 1/propensity of arm 'Call'")
@pytest.mark.parametrize("of_log", [False, True])
def test_today_decides_nothing_without_a_cost(policy, tmp_path, of_log):
    """What it spends there would count as 0."""
    log, people = LOG[NEW], PEOPLE[NEW]
    rule = None if of_log else np.where(X[NEW, 1] > 1, "Call", "none")
    if of_log:
        log = log.assign(action=np.where(np.arange(N) < 3, "Call", log["action"]))
    message = "no costs of the decision 'Call' of today's rule; its decisions are"
    path = tmp_path / "page.html"
    refuses(message, save_report, policy, X[NEW], log, path, attributes=people, today=rule)
    assert not path.exists()


def test_a_policy_without_goals_against_another(tmp_path):
    log = LOG.assign(reward=1.0 * (LOG["reward"] > 0))
    model, today = (
        GLMUCBPolicy(random_state=k).fit(X[a:N], log[a:N]) for k, a in ((0, 0), (1, 900))
    )
    _, sections = saved(tmp_path, model, X[NEW], log[NEW], today=today)
    text = sections["Value against today's rule"]
    value = off_policy_value(today, X[NEW], log[NEW]).mean_reward
    assert f"today's rule {value:.3f} [" in text and "spent" not in text


# --- classifiers and selectors -------------------------------------------------------------


@pytest.mark.thorough
def test_a_classifier_against_the_rule_of_today(threshold, tmp_path):
    plain = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    for today in (plain, plain.predict(X[NEW])):
        options = {"attributes": PEOPLE[NEW], "today": today}
        _, sections = saved(tmp_path, threshold, X[NEW], Y[NEW], **options)
        text = sections["The same for today's rule"]
        goals = [error_rate(), *threshold.constraints]
        usual = plain.predict(X[NEW])
        theirs = rate_report(Y[NEW], usual, goals, attributes=PEOPLE[NEW])
        assert f"error_rate() {figures(theirs.iloc[0])}" in text
        worst = theirs[theirs["goal"].str.startswith("ratio")].sort_values("slack").iloc[0]
        assert f"{figures(worst)} bound 0.4 {worst['verdict']}" in text
        differs = (usual != threshold.predict(X[NEW])).sum()
        assert f"{differs} of 1,200 rows" in sections["What is decided differently"]


def test_a_selector_against_the_sets_of_today(tmp_path):
    costs = pd.DataFrame(-GAIN + 0.1 * RNG.normal(size=GAIN.shape), columns=ARMS)
    model = RegressionSetSelector(n_select=2).fit(X[TRAIN], costs[TRAIN])
    usual = np.tile(["letter", "call"], (N, 1))
    _, sections = saved(tmp_path, model, X[NEW], costs[NEW], today=usual)
    mean = costs[NEW][["letter", "call"]].sum(axis=1).mean()
    assert f"today's rule {mean:.3f} [" in sections["Mean cost against today's rule"]
    refuses("'fax'", saved, tmp_path, model, X[NEW], costs[NEW], today=np.full((N, 2), "fax"))
    refuses("1 per row", saved, tmp_path, model, X[NEW], costs[NEW], today=usual[:, 0])


def test_today_has_one_decision_per_row(threshold, policy, tmp_path):
    options = {"attributes": PEOPLE[NEW], "today": [1, 0]}
    refuses("1200 rows", saved, tmp_path, threshold, X[NEW], Y[NEW], **options)
    refuses(
        "2 labels", saved, tmp_path, policy, X[NEW], LOG[NEW], **options | {"today": ["call"] * 2}
    )


# --- groups and classes --------------------------------------------------------------------


@pytest.mark.thorough
def test_the_rates_behind_a_gap(threshold, policy, tmp_path):
    _, sections = saved(tmp_path, threshold, X[NEW], Y[NEW], attributes=PEOPLE[NEW])
    text, decided = sections["Rates by group"], threshold.predict(X[NEW])
    rows = {"attributes": PEOPLE[NEW]}
    for rate, column in ((positive_rate(), "origin"), (recall(), "sex")):
        for row in rate_report(Y[NEW], decided, rate, by=column, **rows).to_dict("records"):
            name = repr(rate) if row[column] == "all" else row[column] or "(empty)"
            assert f"{name} {figures(row)} rows" in text
    _, sections = saved(tmp_path, policy, X[NEW], LOG[NEW], attributes=PEOPLE[NEW])
    called = policy.predict(X[NEW], attributes=PEOPLE[NEW]) == "call"
    for sex in ("F", "M"):
        share = called[PEOPLE["sex"][NEW] == sex].mean()
        assert f"{sex} {share:.3f} [" in sections["Rates by group"]


@pytest.mark.thorough
def test_the_rates_behind_a_gap_in_each_class(tmp_path):
    c = RNG.integers(0, 3, 2 * N)
    rows, labels = np.eye(3)[c] * 2 + RNG.normal(size=(2 * N, 3)), np.array(["a", "b", "c"])[c]
    goal = difference(recall, by="sex", of="classes") <= 0.3
    model = ConstrainedThreshold(LogisticRegression(), constraints=goal)
    model.fit(rows[TRAIN], labels[TRAIN], attributes=PEOPLE[TRAIN])
    _, sections = saved(tmp_path, model, rows[NEW], labels[NEW], attributes=PEOPLE[NEW])
    decided, sex = model.predict(rows[NEW]), PEOPLE["sex"][NEW]
    for one in "abc":
        for group in "FM":
            of_both = (labels[NEW] == one) & (sex == group)
            share = (decided[of_both] == one).mean()
            assert f"{one}, {group} {share:.3f} [" in sections["Rates by group"]
    text = sections["Classes"]
    for one in "abc":
        called = decided == one
        assert f"{one} {(labels[NEW][called] == one).mean():.3f} [" in text
        assert f"rows {called.sum()} " in text


@pytest.mark.thorough
def test_what_a_table_of_changes_leaves_out_is_counted(tmp_path):
    c = RNG.integers(0, 12, 2 * N)
    rows, labels = (
        np.eye(12)[c] * 2 + RNG.normal(size=(2 * N, 12)),
        np.array(list("abcdefghijkl"))[c],
    )
    model = ConstrainedThreshold(LogisticRegression(), constraints=recall(of="a") >= 0.9)
    model.fit(rows[TRAIN], labels[TRAIN])
    today = np.roll(labels[NEW], 1)
    _, sections = saved(tmp_path, model, rows[NEW], labels[NEW], today=today)
    text, decided = sections["What is decided differently"], model.predict(rows[NEW])
    pairs = pd.DataFrame({"then": today, "now": decided})[decided != today].value_counts()
    rest = pairs.iloc[12:]
    assert f"{rest.sum():,} more rows are of {len(rest)} rarer pairs." in text
    wrong = pd.DataFrame({"then": labels[NEW], "now": decided})[decided != labels[NEW]]
    first = wrong.value_counts().iloc[[0]]
    assert "The most frequent errors: class decided as rows" in sections["Classes"]
    assert f"{first.iloc[0]}" in sections["Classes"]


# --- the file and the sheets ---------------------------------------------------------------


@pytest.mark.thorough
def test_a_file_is_replaced_as_a_whole(threshold, tmp_path, monkeypatch):
    path, rows = tmp_path / "page.html", (X[NEW], Y[NEW])
    options = {"attributes": PEOPLE[NEW]}
    save_report(threshold, *rows, path, title="Q3 \ud800 report", **options)
    assert "Q3 \\ud800 report" in path.read_text(encoding="utf-8")
    before = path.read_bytes()
    path.chmod(0o640)

    def fails(*args):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fails)
        refuses("no space", save_report, threshold, *rows, path, error=OSError, **options)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["page.html"]
    save_report(threshold, *rows, path, **options)
    assert path.read_bytes() != before and path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.html"
    link.symlink_to(path)
    save_report(threshold, *rows, link, title="Through a link", **options)
    assert link.is_symlink() and "Through a link" in path.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_every_sheet_has_title_number_and_page(threshold, tmp_path):
    rows, title = (X[NEW], Y[NEW]), 'A "title" \\ </style> {of} all;'
    options = {"attributes": PEOPLE[NEW]}
    page, sections = saved(tmp_path, threshold, *rows, title=title, **options)
    number = re.search(r"This is report ([0-9a-f]{12}),", sections["Approval"]).group(1)
    style = re.search(r"<style>(.*?)</style>", page, flags=re.DOTALL).group(1)
    sheet = style[style.index("@page") :]
    assert f'@top-right{{content:"report {number}"}}' in sheet
    assert 'content:"page " counter(page) " of " counter(pages)' in sheet
    written = re.search(r'@top-left\{content:"([^"]*)"\}', sheet).group(1)
    assert re.sub(r"\\([0-9a-f]+) ", lambda c: chr(int(c.group(1), 16)), written) == title
    _, again = saved(tmp_path, threshold, *rows, title=title, **options)
    assert number in again["Approval"]
    others = Y[NEW].copy()
    others[0] = 1 - others[0]
    _, of_others = saved(tmp_path, threshold, X[NEW], others, title=title, **options)
    assert number not in of_others["Approval"]


def test_many_groups_are_in_order_and_name_their_goal_on_each_sheet():
    state = np.repeat([f"s{k:02}" for k in range(30)], 40)
    chosen = (np.arange(1200) % 40 < (np.arange(1200) // 40 * 7) % 30 + 3).astype(int)
    rows = {"attributes": {"state": state}, "by": "state"}
    report = rate_report(None, chosen, positive_rate(), **rows)
    shown = rows_of(*panels_of(report).values())
    values = report["value"].iloc[shown].tolist()
    assert shown[0] == 0 and values[1:] == sorted(values[1:], reverse=True)
    goal = each(positive_rate, by="state") >= 0.4
    report = rate_report(None, chosen, goal, attributes={"state": state})
    verdicts = report["verdict"].iloc[rows_of(*panels_of(report).values())].tolist()
    assert verdicts == sorted(verdicts, key=["violated", "undecided", "met"].index)
    few = rate_report(None, chosen[:400], positive_rate(), by=state[:400])
    assert rows_of(*panels_of(few).values()) == list(range(11)), "in the order of their names"


@pytest.mark.parametrize(
    ("values", "ends"),
    [([-0.0719, 0.0815], (-0.1, 0.1)), ([0.0, 1.127], (0.0, 1.5)), ([-1.26, -0.14], (-1.5, 0.0)),
     ([0, 0], (0, 1)), ([2.3e6, 7.1e6], (0.0, 8e6)), ([-3e-5, 1e-5], (-3e-5, 1e-5))],
)  # fmt: skip
def test_the_ends_of_an_axis_are_round(values, ends):
    report = pd.DataFrame({"value": values})
    assert axis_of("an amount", report) == pytest.approx(ends)
