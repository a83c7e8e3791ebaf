"""GoalMonitor: counts are those of reports, in any order; late labels; persons; JSON."""

import json
import os
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedThreshold
from skbandit.bandit import ConstrainedPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import GoalMonitor, rate_report
from skbandit.evaluation._monitor._units import read_goal
from skbandit.rates import (
    accuracy,
    any_of,
    churn,
    confusion,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    g_mean_at_least,
    mean,
    negative_rate,
    outcome,
    positive_rate,
    precision,
    ratio,
    recall,
    worst,
)

T0 = pd.Timestamp("2026-03-01")
DAY = pd.Timedelta("1D")
BEGIN = pd.Timestamp("2025-03-03")

GOALS = [
    recall() >= 0.8,
    precision("age > 30") >= 0.8,
    f1() >= 0.8,
    abs(positive_rate() - 0.5) <= 0.05,
    each(recall, by="sex") >= 0.8,
    worst(accuracy, by="sex") >= 0.8,
    ratio(positive_rate, by="sex") >= 0.8,
    difference(error_rate, by="sex") <= 0.05,
    mean(recall, of="classes") >= 0.8,
    each(recall, by="sex") >= recall() - 0.05,
    confusion(1, 0) <= 0.2,
    churn("before") <= 0.4,
    cost({0: {0: 0, 1: 1}, 1: {0: 5, 1: 0}}) <= 1,
    cost({0: 0, 1: "amount"}) <= 1.5,
    recall(weight="amount") >= 0.8,
    positive_rate("sex == 'F'") >= 0.8 * positive_rate("sex == 'M'") - 0.05,
]
RANGES = {"amount": (0, 5)}
N = 1200


def stream(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    decided = np.where(rng.random(N) < 0.12, 1 - y, y)
    table = pd.DataFrame({"sex": rng.choice(["F", "M"], N), "age": rng.integers(20, 60, N)})
    table["before"] = np.where(rng.random(N) < 0.3, 1 - decided, decided)
    table["amount"] = rng.integers(0, 6, N).astype(float)
    return decided, y, table, T0 + DAY * np.sort(rng.integers(0, 8, N))


def watch(goals=GOALS, **parameters):
    return GoalMonitor(goals, ranges=RANGES, **parameters)


def update(monitor, rows, part=slice(None), **more):
    decided, y, table, time = rows
    monitor.update(decided[part], y[part], attributes=table.iloc[part], time=time[part], **more)


# --- counts ------------------------------------------------------------------------------


@pytest.mark.thorough
def test_values_are_those_of_a_report():
    rows = stream()
    monitor = watch()
    update(monitor, rows)
    decided, y, table, _ = rows
    expected = rate_report(y, decided, GOALS, attributes=table)
    report = monitor.report()
    np.testing.assert_allclose(report["value"], expected["value"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(report["bound"], expected["bound"], atol=1e-12)
    assert (report["ci_low"] <= report["value"]).all()
    assert (report["value"] <= report["ci_high"]).all()
    # at all times, intervals are wider than for one look, but for costs, of which there are none
    simple = report["goal"].str.match(r"^(recall\(\)|f1|precision)")
    wider = report["ci_high"] - report["ci_low"] > expected["ci_high"] - expected["ci_low"]
    assert wider[simple.to_numpy()].all()


@pytest.mark.thorough
def test_rows_in_one_call_or_several_servers_or_one_by_one():
    rows = stream()
    once = watch()
    update(once, rows)
    server = np.random.default_rng(1).integers(0, 3, N)
    parts = [watch() for _ in range(3)]
    for k, part in enumerate(parts):
        for half in (slice(0, N // 2), slice(N // 2, N)):
            update(part, rows, np.flatnonzero(server[half] == k) + (half.start or 0))
    for order in ([0, 1, 2], [2, 0, 1]):
        merged = parts[order[0]].merge(parts[k] for k in order[1:])
        pd.testing.assert_frame_equal(merged.report(), once.report(), check_exact=True)
    few, single = watch(GOALS[:8]), watch(GOALS[:8])
    update(few, rows, slice(0, 40))
    for k in range(40):
        update(single, rows, [k])
    pd.testing.assert_frame_equal(single.report(), few.report(), check_exact=True)


LATER = [
    each(positive_rate, of="decisions") <= 0.9,
    each(false_positive_rate, of="classes") <= 0.9,
    mean(recall, of="classes") >= 0.1,
    ratio(negative_rate, of="classes") >= 0.1,
]


@pytest.mark.thorough
@pytest.mark.parametrize("people", [False, True])
def test_a_class_that_comes_later_counts_from_the_beginning(people):
    decided = np.array(list("ab" * 10 + "cacb" * 5))
    y = np.array(list("aabb" * 5 + "cbac" * 5))
    site = pd.DataFrame({"site": np.tile(["n", "s", "s"], 14)[:40]})
    who = np.arange(40) // 2
    parts = [slice(0, 20), slice(20, 30), slice(30, 40)]

    def counted(monitor, *rows):
        for part in rows:
            groups = who[part] if people else None
            monitor.update(decided[part], y[part], attributes=site[part], time=T0, groups=groups)
        return monitor

    once, several, *servers = (GoalMonitor(LATER, by="site") for _ in range(5))
    expected = counted(once, slice(0, 40)).report()
    on_all = expected[expected["on"].isin(list("abc"))].iloc[:3]
    np.testing.assert_allclose(on_all["value"], [0.375, 0.375, 0.25])
    counted(several, *parts)
    for k, server in enumerate(servers):
        counted(server, parts[k])
    restored = [GoalMonitor.from_dict(json.loads(json.dumps(m.to_dict()))) for m in servers]
    for order in ([0, 1, 2], [2, 1, 0]):
        merged = restored[order[0]].merge(restored[k] for k in order[1:])
        for monitor in (several, merged):
            report = monitor.report().sort_values(["goal", "on"], ignore_index=True)
            wanted = expected.sort_values(["goal", "on"], ignore_index=True)
            pd.testing.assert_frame_equal(report, wanted, rtol=1e-9)  # sums in another order


@pytest.mark.thorough
def test_json_round_trip():
    rows = stream()
    monitor = watch(by="sex", within="30D", labels=[0, 1])
    update(monitor, rows)
    decided, _, table, time = rows
    monitor.update(
        decided[:5], attributes=table[:5], time=time[-1], id=[f"i{k}" for k in range(5)],
        groups=list("aabbc"),
    )  # fmt: skip
    text = json.dumps(monitor.to_dict(), allow_nan=False)
    again = GoalMonitor.from_dict(json.loads(text))
    assert again.to_dict() == monitor.to_dict()
    pd.testing.assert_frame_equal(again.report(), monitor.report(), check_exact=True)
    again.update_labels(["i1"], [1], time=time[-1])
    assert len(again.to_dict()["open"]["rows"]) == 4
    closed = json.dumps({k: v for k, v in monitor.to_dict().items() if k != "open"})
    assert "i1" not in closed and "before" not in closed.replace("churn('before')", "")


def test_groups_of_by():
    rows = stream()
    monitor = watch([recall() >= 0.8, each(precision, by="sex") >= 0.5], by="sex")
    update(monitor, rows)
    report = monitor.report()
    assert report["on"].tolist() == ["all", "F", "M", "F", "M"]
    assert monitor.report(by="sex")["on"].tolist() == ["F", "M"]
    decided, y, table, _ = rows
    women = (table["sex"] == "F").to_numpy()
    expected = recall().value(y[women], decided[women])
    assert report["value"][1] == pytest.approx(expected)
    with pytest.raises(ValueError, match="of the monitor"):
        monitor.report(by="age")


def test_a_goal_without_rows_is_there():
    monitor = GoalMonitor([recall() >= 0.8, positive_rate() <= 0.5])
    assert monitor.report()["n_rows"].tolist() == [0, 0]
    monitor.update([0, 1], time=T0)
    report = monitor.report()
    assert report["verdict"].tolist() == ["undecided"] * 2 and report["n_labeled"][0] == 0
    assert report["n_labeled"].isna().tolist() == [False, True]


def test_a_billion_rows():
    monitor = GoalMonitor([recall() >= 0.8, positive_rate() <= 0.5])
    d = monitor.to_dict()
    d["classes"] = d["decisions"] = [0, 1]
    for unit, S in ((0, 799_980_000), (1, 500_200_000)):
        d["counts"].append(["rows", [unit, None, [], []], [[20_000, [S, 10**9]]]])
        d["counts"].append(["seen", [unit, None, [], []], [[[20_000, 1], [10**9, 10**9]]]])
    report = GoalMonitor.from_dict(d).report()
    assert report["verdict"].tolist() == ["undecided", "violated"]
    width = report["ci_high"] - report["ci_low"]
    assert (width < 2e-4).all() and (width > 5e-5).all()


# --- alarms ------------------------------------------------------------------------------


@pytest.mark.thorough
def test_an_alarm_that_was_reported_stays():
    """Rows of earlier days that come late weaken it: it was taken back in silence."""
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(40), 30)
    found = (rng.random(len(day)) < np.where(day < 20, 0.85, 0.55)).astype(int)
    seen, unseen = GoalMonitor(recall() >= 0.8), GoalMonitor(recall() >= 0.8)
    for monitor in (seen, unseen):
        monitor.update(found, np.ones(len(day)), time=T0 + DAY * day)
    first = seen.report()
    assert first["verdict"][0] == "violated" and abs((first["since"][0] - T0).days - 20) <= 4
    late = [1] * 9000, [1] * 9000
    days = T0 + DAY * np.repeat(np.arange(15, 40), 360)
    for monitor in (seen, unseen):
        monitor.update(*late, time=days)
    assert unseen.report()["verdict"][0] == "met"
    saved = GoalMonitor.from_dict(json.loads(json.dumps(seen.to_dict())))
    for monitor in (seen, saved, unseen.merge(GoalMonitor(recall() >= 0.8)).merge(seen_only(seen))):
        report = monitor.report()
        assert report["verdict"][0] == "violated" and report["since"][0] == first["since"][0]
        assert monitor.history()["alarm"].tolist() == seen.history()["alarm"].tolist()
        assert monitor.history().attrs["since"] == first["since"][0]
    assert 20 <= seen.history()["alarm"].argmax() < 40


def seen_only(monitor):
    """A monitor without rows that reported the same alarms."""
    d = GoalMonitor(monitor.goals).to_dict() | {"alarms": monitor.to_dict()["alarms"]}
    return GoalMonitor.from_dict(d)


@pytest.mark.thorough
def test_an_alarm_names_goal_group_and_day():
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(60), 60)
    table = pd.DataFrame({"site": rng.choice(["n", "s"], len(day))})
    y = rng.integers(0, 2, len(day))
    slips = (table["site"] == "s").to_numpy() & (day >= 30) & (rng.random(len(day)) < 0.4)
    decided = np.where(slips | (rng.random(len(day)) < 0.05), 1 - y, y)
    monitor = GoalMonitor([each(recall, by="site") >= 0.85, precision() >= 0.5])
    monitor.update(decided, y, attributes=table, time=T0 + DAY * day)
    report = monitor.report().set_index("on")
    assert report["verdict"].to_dict() == {"n": "met", "s": "violated", "all": "met"}
    assert abs((report["since"]["s"] - T0).days - 30) <= 4
    assert "refit" in report["note"]["s"] and report["since"].isna()["n"]
    history = monitor.history("each(recall, by='site') >= 0.85", "s")
    assert len(history) == 60 and history["alarm"].iloc[-1]
    assert not history["alarm"].iloc[:30].any()
    ends = ["value", "ci_low", "ci_high"]
    assert history.iloc[-1][ends].tolist() == report.loc["s", ends].tolist()


# --- labels ------------------------------------------------------------------------------


def test_late_labels_count_when_they_come():
    monitor = GoalMonitor([recall() >= 0.8, precision() >= 0.5, positive_rate() <= 0.9])
    monitor.update([1, 0, 1, 1], id=[1, 2, 3, 4], time=T0)
    assert monitor.report()["n_labeled"][:2].tolist() == [0, 0]
    monitor.update_labels([1, 2, 3], [1, 1, 0], time=T0 + 60 * DAY)
    report = monitor.report()
    np.testing.assert_allclose(report["value"], [1 / 2, 1 / 2, 3 / 4])
    assert report["n_rows"].tolist() == [4, 3, 4]
    assert report["n_labeled"].tolist()[:2] == [3, 2]
    at_once = GoalMonitor(recall() >= 0.8)
    at_once.update([1, 0, 1], [1, 1, 0], time=T0 + 60 * DAY)
    late = GoalMonitor(recall() >= 0.8)
    late.update([1, 0, 1], id=[1, 2, 3], time=T0)
    late.update_labels([1, 2, 3], [1, 1, 0], time=T0 + 60 * DAY)
    assert late._counts.rows == at_once._counts.rows


def test_strange_labels_warn_with_their_number():
    monitor = GoalMonitor(recall() >= 0.8)
    monitor.update([1, 0], id=["a", "b"], time=T0)
    with pytest.warns(UserWarning, match="2 of 3 ids are unknown, repeated"):
        monitor.update_labels(["a", "a", "x"], [1, 0, 1], time=T0)
    with pytest.warns(UserWarning, match=r"such as \['a'\], waiting \['b'\]"):
        monitor.update_labels(["a"], [0], time=T0)
    with pytest.warns(UserWarning, match="came before their decisions"):
        monitor.update_labels(["b"], [1], time=T0 - DAY)
    assert monitor.report()["value"][0] == 0.5
    assert monitor._counts.periods == [(T0 - pd.Timestamp(0)).days]


def test_repeated_ids_count_once():
    monitor = GoalMonitor(positive_rate() <= 0.9)
    labeled = GoalMonitor(recall() >= 0.5)
    for watcher in (monitor, labeled):
        with pytest.warns(UserWarning, match="1 of 3 ids are repeated"):
            watcher.update([1, 1, 0], id=["a", "a", "b"], time=T0)
    assert monitor.report()["n_rows"][0] == 2
    with pytest.warns(UserWarning, match="ids are repeated"):
        labeled.update([1], id=["a"], time=T0)
    assert labeled.report()["n_rows"][0] == 2


@pytest.mark.parametrize("name", ["y_true", "attributes", "id", "sample_weight", "groups"])
def test_rows_in_another_order_are_told(name):
    rows = pd.DataFrame({"y_true": [1, 1, 0], "id": list("abc"), "sample_weight": 1.0})
    rows["groups"] = list("ppq")
    passed = dict(rows) | {"attributes": rows[["id"]]}
    passed[name] = passed[name].iloc[::-1]
    monitor = GoalMonitor(recall() >= 0.8, ranges={"sample_weight": (0, 1)})
    with pytest.warns(UserWarning, match=f"{name} .* different order"):
        monitor.update(rows["y_true"], **passed)


def test_ids_are_remembered_after_their_label():
    now = pd.Timestamp.now("UTC").floor("1D")
    monitor = GoalMonitor(accuracy() >= 0.5)
    monitor.update([1, 0], id=["a", "b"], time=now - 60 * DAY)
    monitor.update_labels(["a"], [1], time=now - 3 * DAY)
    monitor.update([1], [1], id=["c"], time=now - 3 * DAY)  # its label is known at once
    again = GoalMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    for watcher in (monitor, again):
        with pytest.warns(UserWarning, match="3 of 3 ids are repeated, such as 'a'"):
            watcher.update([1, 0, 1], [0, 0, 0], id=["a", "b", "c"], time=now - 3 * DAY)
        assert watcher.report().loc[0, ["n_rows", "n_labeled", "value"]].tolist() == [3, 2, 1.0]
    monitor.update([1], id=["d"], time=now)
    monitor.update([1], [0], id=["e"], time=now)  # what is remembered is of bounded size
    assert list(monitor._past) == ["e"]


def test_an_id_may_come_again_after_two_periods():
    monitor = GoalMonitor(accuracy() >= 0.5)
    monitor.update([1], [1], id=["a"], time=T0)
    with pytest.warns(UserWarning, match="1 ids return in a later period, such as 'a'.*groups="):
        monitor.update([1], [1], id=["a"], time=T0 + 10 * DAY)
    monitor.update([1], [1], id=["a"], time=T0 + 20 * DAY)  # it is told once
    assert monitor.report()["n_rows"][0] == 3


def test_rows_without_id_and_label_cannot_fail_in_time():
    monitor = GoalMonitor(accuracy() >= 0.5, within="5D")
    with pytest.raises(ValueError, match=r"1 of 3 rows have neither a label nor an id.*pass id="):
        monitor.update([1, 1, 0], [None, None, 1], id=["a", None, None], time=T0)
    assert monitor.report()["n_rows"][0] == 0
    GoalMonitor(positive_rate() <= 0.5, within="5D").update([1, 0], time=T0)  # needs no label


def test_rows_without_group_are_told():
    monitor = GoalMonitor(each(accuracy, by="g") >= 0.5)
    with pytest.warns(UserWarning, match="no group, as 'g' is missing there.*fillna"):
        monitor.update([1, 1, 0], [1, 1, 1], attributes={"g": ["a", "b", None]}, time=T0)
    assert monitor.report()["on"].tolist() == ["a", "b"]


def test_rows_without_id_are_no_repeats():
    monitor = GoalMonitor(accuracy() >= 0.5)
    monitor.update([1, 1, 1, 0], [None, 1, 1, 1], id=["a", None, np.nan, None], time=T0)
    assert monitor.report().loc[0, ["n_rows", "n_labeled"]].tolist() == [4, 3]
    assert list(monitor._open) == ["a"]


def test_a_clock_of_the_future_gives_up_no_label():
    monitor = GoalMonitor(accuracy() >= 0.5, within="10D")
    monitor.update([1] * 5, id=range(5), time=pd.Timestamp.now("UTC") - DAY)
    with pytest.warns(UserWarning, match="in the future"):
        monitor.update([1], id=["z"], time="2099-01-01")
    assert len(monitor._open) == 6 and monitor.report()["n_labeled"][0] == 0


def test_labels_that_do_not_come_in_time_are_failures():
    goals = [accuracy() >= 0.5, error_rate() <= 0.5, precision() >= 0.5, recall() >= 0.5]
    monitor = GoalMonitor(goals, within="10D")
    monitor.update([1, 1, 0, 0], id=list("abcd"), time=T0)
    monitor.update_labels(["a", "c"], [1, 0], time=T0 + DAY)
    monitor.update([1], id=["e"], time=T0 + 12 * DAY)
    # b is no success, d is a miss
    np.testing.assert_allclose(monitor.report()["value"], [2 / 4, 2 / 4, 1 / 2, 1 / 2])
    with pytest.warns(UserWarning, match="1 of 1 ids"):
        monitor.update_labels(["b"], [1], time=T0 + 12 * DAY)


def test_labels_that_never_come_are_no_number():
    rng = np.random.default_rng(0)
    decided = rng.choice(["granted", "refused"], 200)
    y = np.where(decided == "granted", rng.choice(["granted", "refused"], 200), None)
    goals = [accuracy() >= 0.2, precision(of="granted") >= 0.2, positive_rate(of="refused") <= 0.9]
    monitor = GoalMonitor(goals)
    monitor.update(decided, y, time=T0)
    report = monitor.report()
    assert report["verdict"].tolist() == ["unknown", "met", "met"]
    assert report.loc[0, ["value", "ci_low", "ci_high"]].isna().all()
    assert report["note"][0] == "cannot be known: no label for rows decided 'refused'"
    # of 2 of 4 rows, labels are by chance of one decision: 1 in 6; of 5 of 10: 1 in 252
    for n, verdict in ((2, "undecided"), (5, "unknown")):
        few = GoalMonitor(accuracy() >= 0.2)
        few.update([1] * n + [0] * n, [1] * n + [None] * n, time=T0)
        assert few.report()["verdict"][0] == verdict
    # while none has come, all may still come
    waits = GoalMonitor(goals)
    waits.update(decided, id=range(200), time=T0)
    assert waits.report()["verdict"].tolist() == ["undecided", "undecided", "met"]


def test_sampled_labels_are_weighted():
    rng = np.random.default_rng(0)
    n = 20_000
    y, odd = rng.integers(0, 2, n), rng.random(n) < 0.5
    decided = np.where(rng.random(n) < np.where(odd, 0.4, 0.1), 1 - y, y)
    chance = np.where(odd, 0.1, 0.5)
    label = np.where(rng.random(n) < chance, y, None)
    monitor = GoalMonitor(error_rate() <= 0.3, ranges={"sample_weight": (0, 10)})
    monitor.update(decided, label, sample_weight=1 / chance, time=T0)
    report = monitor.report()
    assert abs(report["value"][0] - 0.25) < 0.02
    assert report["ci_low"][0] < 0.25 < report["ci_high"][0]
    with pytest.raises(ValueError, match="sample_weight"):
        GoalMonitor(recall() >= 0.5).update([1], [1], sample_weight=[2.0])
    with pytest.raises(ValueError, match="above its end in ranges"):
        monitor.update([1], [1], sample_weight=[11.0])


def test_weighted_amounts_at_the_end_of_their_range():
    monitor = GoalMonitor(
        cost({0: 0, 1: "amount"}) <= 4, ranges={"amount": (0, 5), "sample_weight": (0, 5)}
    )
    weight = np.random.default_rng(0).uniform(0.1, 5, 200)
    monitor.update([1] * 200, attributes={"amount": [5.0] * 200}, sample_weight=weight, time=T0)
    report = monitor.report()
    assert report["value"][0] == pytest.approx(5) and report["verdict"][0] == "violated"


def test_rows_of_a_person_count_as_one():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(100), 20)
    bad = np.repeat(rng.random(100) < 0.3, 20)
    decided = (~bad).astype(int)
    y = np.ones(2000, dtype=int)
    apart, together = GoalMonitor(recall() >= 0.8), GoalMonitor(recall() >= 0.8)
    apart.update(decided, y, time=T0)
    for part in (slice(0, 990), slice(990, 2000)):
        together.update(decided[part], y[part], time=T0 - 400 * DAY, groups=person[part])
    (of_rows,), (of_people,) = (m.report().to_dict("records") for m in (apart, together))
    assert of_rows["value"] == pytest.approx(of_people["value"])
    assert of_rows["verdict"] == "violated" and of_people["verdict"] == "undecided"
    saved = GoalMonitor.from_dict(json.loads(json.dumps(together.to_dict())))
    assert saved.to_dict() == together.to_dict()
    saved.update([1], [1], time=T0, groups=["x"])
    saved.report()  # people are kept for a year
    assert len(saved.to_dict()["open"]["people"][0][2]) == 1


# --- of policies and models --------------------------------------------------------------


def test_outcomes_and_spends():
    n = 400
    action = np.tile(["email", "none"], n // 2)
    complaint = np.where(np.arange(n) % 20 == 0, 1.0, np.where(np.arange(n) % 3, 0.0, np.nan))
    goals = [
        outcome("complaint") <= 0.1,
        cost({"email": 1.0, "none": 0.0}) <= 0.4,
        positive_rate(of="email") <= 0.9,
    ]
    monitor = GoalMonitor(goals, ranges={"complaint": (0, 1)})
    monitor.update(action, time=T0, outcomes={"complaint": complaint})
    report = monitor.report()
    expected = [np.nanmean(complaint), 0.5, 0.5]
    np.testing.assert_allclose(report["value"], expected, atol=1e-6)
    assert report["verdict"].tolist()[1:] == ["violated", "met"]
    assert report["n_labeled"].isna().all()
    with pytest.raises(ValueError, match="outside of its range"):
        monitor.update(["email"], time=T0, outcomes={"complaint": [2.0]})
    with pytest.raises(ValueError, match="pass ranges="):
        GoalMonitor(outcome("complaint") <= 0.1)


def test_of_a_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    model = ConstrainedThreshold(
        LogisticRegression(), error_rate(), recall() >= 0.7, pos_label="yes", cv=3
    )
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    monitor = GoalMonitor.of(model, false_alarms=0.1)
    assert monitor.labels == ("no", "yes") and monitor.pos_label == "yes"
    monitor.update(model.predict(X), y, time=T0)
    assert monitor.report()["value"][0] == recall().value(y, model.predict(X), pos_label="yes")
    with pytest.raises(ValueError, match="no constraints to watch"):
        GoalMonitor.of(LogisticRegression())


def test_of_a_policy():
    log = make_bandit_log(1500, n_arms=3, random_state=0)
    policy = ConstrainedPolicy(constraints=[positive_rate(of=0) <= 0.3]).fit(log.X, log.y)
    monitor = GoalMonitor.of(policy)
    monitor.update(policy.predict(log.X), time=T0)
    assert monitor.report()["value"][0] == np.mean(policy.predict(log.X) == 0)


# --- input -------------------------------------------------------------------------------


def test_a_class_that_nobody_declared():
    monitor = GoalMonitor([recall() >= 0.5, error_rate() <= 0.5], labels=[0, 1])
    monitor.update([0, 1], [0, 1], time=T0)
    before = monitor.to_dict()
    with pytest.raises(ValueError, match=r"there is 'review', not among labels=\[0, 1\]"):
        monitor.update([0, "review"], [0, 1], time=T0)
    assert monitor.to_dict() == before
    free = GoalMonitor([recall() >= 0.5, error_rate() <= 0.5])
    free.update([0, 1], [0, 1], time=T0)
    free.update([1, "review"], [0, 1], time=T0)
    np.testing.assert_allclose(free.report()["value"], [1 / 2, 2 / 4])


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"y_true": [1]}, "y_true has 1 entries for 3 rows"),
        ({"y_true": [1, 0, 1, 0]}, "y_true has 4 entries for 3 rows"),
        ({"id": ["a", "b"]}, "id has 2 entries for 3 rows"),
        ({"id": "abc"}, "id must be a list of labels, got 'abc'"),
        ({"y_true": 1}, "y_true must be a list of labels, got 1"),
        ({"time": [T0, T0]}, "2 entries for 3"),
    ],
)
def test_rows_are_as_many_in_each_column(columns, message):
    monitor = GoalMonitor(accuracy() >= 0.5)
    with pytest.raises((TypeError, ValueError), match=message):
        monitor.update([1, 0, 1], **columns)
    assert monitor.report()["n_rows"][0] == 0


def test_one_label_or_group_that_is_written_in_two_ways():
    monitor = GoalMonitor(each(accuracy, by="site") >= 0.5, by="age")

    def more(decided=1, y=1, site="3", age=30):
        monitor.update([decided], [y], attributes={"site": [site], "age": [age]}, time=T0)

    more()
    with pytest.raises(ValueError, match="1 and '1', which would be two labels"):
        more(decided="1")
    with pytest.raises(ValueError, match="'site' holds '3' and 3, which would be two groups"):
        more(site=3)
    with pytest.raises(ValueError, match="'age' holds 30 and '30', which would be two groups"):
        more(age="30")
    other = GoalMonitor(each(accuracy, by="site") >= 0.5, by="age")
    other.update(["1"], ["1"], attributes={"site": ["3"], "age": [30]}, time=T0)
    with pytest.raises(ValueError, match="two labels"):
        monitor.merge(other)
    ages = {"site": ["3"] * 60, "age": np.linspace(20, 50.5, 60)}
    with pytest.raises(ValueError, match=r"holds \d+ different numbers"):
        monitor.update([1] * 60, [1] * 60, attributes=ages, time=T0)
    assert monitor.report()["n_rows"].tolist() == [1, 1]


def test_clocks():
    monitor = GoalMonitor(positive_rate() <= 0.5)
    with pytest.warns(UserWarning, match="in the future"):
        monitor.update([1], time="2099-01-01")
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="not in seconds since 1970"):
        monitor.update([1], time=[1.7e12])
    with pytest.raises(ValueError, match="missing"):
        monitor.update([1], time=[pd.NaT])
    monitor.update([0, 1], time=[1.7e9 + 86400, 1.7e9])  # not in order
    monitor.update([1])
    assert len(monitor._counts.periods) == 4


def test_rows_that_cannot_count_are_refused():
    monitor = GoalMonitor(each(recall, by="sex") >= 0.5)
    with pytest.raises(ValueError, match="unknown column 'sex'"):
        monitor.update([1], [1], time=T0)
    with pytest.raises(ValueError, match="every row needs a decision"):
        monitor.update([None], [1], attributes={"sex": ["F"]}, time=T0)
    with pytest.raises(ValueError, match="choose it with pos_label="):
        monitor.update(["x"], ["y"], attributes={"sex": ["F"]}, time=T0)
    assert monitor.to_dict()["counts"] == []


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"goals": []}, "no constraints"),
        ({"goals": recall()}, "not a constraint"),
        ({"false_alarms": 0}, "between 0 and 1"),
        ({"period": "fortnight"}, "no length of time"),
        ({"period": 0}, "must be positive"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        GoalMonitor(**{"goals": recall() >= 0.5} | parameters)


def test_monitors_of_other_goals_do_not_merge():
    with pytest.raises(ValueError, match="differ in goals"):
        GoalMonitor(recall() >= 0.5).merge(GoalMonitor(recall() >= 0.6))
    a, b = GoalMonitor(recall() >= 0.5), GoalMonitor(recall() >= 0.5)
    for monitor in (a, b):
        monitor.update([1], id=["same"], time=T0)
    with pytest.raises(ValueError, match="in two monitors"):
        a.merge(b)


# --- JSON from elsewhere -----------------------------------------------------------------


@pytest.mark.parametrize(
    "goal",
    [
        *GOALS,
        *g_mean_at_least(0.8),
        ratio(recall, by=["sex", "age"]) >= 0.8,
        precision(of=any_of("a", "b")) >= 0.5,
        mean(f1, of=["a", "b"]) >= 0.5,
        negative_rate({"sex": ["F", "M"]}, weight="amount") / 2 >= -0.25,
        recall() / recall("x") >= 0.5,
    ],
    ids=str,
)
def test_goals_are_read_as_they_are_written(goal):
    again = read_goal(goal.text)
    assert again.text == goal.text and again.bound == goal.bound
    assert [atom.key for atom in again.rate.atoms] == [atom.key for atom in goal.rate.atoms]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').mkdir('evil')",
        "recall(lambda table: table) >= 0.5",
        "recall.__class__ >= 0.5",
        "[recall() >= 0.5 for _ in 'a']",
        "recall() >= 0.5 >= 0.1",
        "recall()",
        "(" * 500,
        "abs(-1) >= 2",
        "9**9**9 >= recall()",
    ],
)
def test_other_text_is_not_evaluated(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    d = GoalMonitor(recall() >= 0.5).to_dict()
    d["settings"]["goals"] = [[text, None]]
    with pytest.raises(ValueError, match="goal"):
        GoalMonitor.from_dict(d)
    assert not os.listdir(tmp_path)


def saved():
    monitor = watch([recall() >= 0.5, recall(weight="amount") >= 0.5])
    update(monitor, stream())
    monitor.update([1], attributes={"amount": [1.0]}, time=T0, id=["a"], groups=["p"])
    return json.loads(json.dumps(monitor.to_dict()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.clear(),
        lambda d: d.update({"skbandit.GoalMonitor": 2}),
        lambda d: d.pop("counts"),
        lambda d: d["settings"].update(nope=1),
        lambda d: d["settings"].update(false_alarms=2),
        lambda d: d["settings"].update(pos_label=[1]),
        lambda d: d["counts"].append(["rows", [0, None, [], []], [[1, [5, 3]]]]),
        lambda d: d["counts"].append(["rows", [0, None, [], []], [[1, [-1, 3]]]]),
        lambda d: d["counts"].append(["rows", [9, None, [], []], [[1, [1, 3]]]]),
        lambda d: d["counts"].append(["rows", [0, None, [], []], [[1, [1, float("inf")]]]]),
        lambda d: d["counts"].append(["__class__", [0, None, [], []], []]),
        lambda d: d["counts"].append(["amounts", [0, None, [], []], [[1, [[3], [[1]]]]]]),
        lambda d: d["open"]["rows"].append(["b", {"time": "x"}]),
        lambda d: d["open"].update(rows=3),
        lambda d: d["open"].update(past=[["a", "x"]]),
        lambda d: d.update(classes=[[1]]),
        lambda d: d["counts"].append(["seen", [0, None, [None], []], [[[1, 1], [1, 1]]]]),
    ],
)
def test_other_json_is_refused(spoil):
    d = saved()
    GoalMonitor.from_dict(d)
    spoil(d)
    with pytest.raises(ValueError):
        GoalMonitor.from_dict(d)


@pytest.mark.parametrize("name", [uuid.UUID(int=1), b"a", ("a", 1), np.inf])
@pytest.mark.parametrize("place", ["id", "groups", "attributes"])
def test_what_cannot_be_saved_is_refused_before_it_counts(name, place):
    monitor = GoalMonitor(each(positive_rate, by="g") <= 0.5)
    names = np.empty(1, object)
    names[0] = name
    rows = {"attributes": {"g": ["a"]}, "time": T0, place: names}
    rows[place] = {"g": names} if place == "attributes" else names
    with pytest.raises(TypeError, match="which cannot be saved: pass text"):
        monitor.update([1], **rows)
    assert json.loads(json.dumps(monitor.to_dict()))["counts"] == []


@pytest.mark.parametrize(
    "values, text",
    [
        (pd.cut(pd.Series([20, 70]), [0, 50, 100]), ["(0, 50]", "(50, 100]"]),
        (
            pd.to_datetime(["2026-01-01", "2026-01-02"]),
            ["2026-01-01 00:00:00", "2026-01-02 00:00:00"],
        ),
        (pd.period_range("2026-01", periods=2, freq="M"), ["2026-01", "2026-02"]),
        (pd.Series(["x", "y"], dtype="category"), ["x", "y"]),
    ],
)
def test_dates_and_intervals_are_kept_as_text(values, text):
    monitor = GoalMonitor(each(positive_rate, by="g") <= 0.9)
    monitor.update([1, 0], attributes={"g": values}, time=T0, id=["a", "b"], groups=values)
    again = GoalMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert again.report()["on"].tolist() == text


# --- what an alarm is of -----------------------------------------------------------------


def test_two_goals_of_one_name_have_alarms_of_their_own():
    y, decided = np.repeat([1, 0], [1000, 100]), np.repeat([1, 0], [480, 620])
    monitor = GoalMonitor({"quality": [recall() >= 0.8, precision() >= 0.5]}, labels=[0, 1])
    monitor.update(decided, y, time=T0)
    for watcher in (monitor, GoalMonitor.from_dict(monitor.to_dict())):
        report = watcher.report()
        assert report["verdict"].tolist() == ["violated", "met"]
        assert report["value_since"][0] == 0.48 and np.isnan(report["value_since"][1])
        assert [watcher.history(k)["alarm"].any() for k in (0, 1)] == [True, False]


@pytest.mark.parametrize("name", ["all", "", "(empty)"])
def test_a_group_that_reads_like_all_rows(name):
    site = np.tile(["b", name], 1000)
    decided = np.where(site == "b", np.arange(2000) % 10 < 3, True).astype(int)
    monitor = GoalMonitor(recall() >= 0.8, by="site", labels=[0, 1])
    monitor.update(decided, np.ones(2000), attributes={"site": site}, time=T0)
    report = monitor.merge(GoalMonitor(monitor.goals, by="site", labels=[0, 1])).report()
    assert report["on"].is_unique and report["on"][0] == "all"
    assert report["verdict"][report["value"] == 1].tolist() == ["met"]
    assert report["verdict"][report["value"] < 1].tolist() == ["violated"] * 2


def test_groups_whose_texts_join_alike():
    table = {"x": np.repeat(["a, b", "a"], 1000), "z": np.repeat(["c", "b, c"], 1000)}
    decided = np.r_[np.arange(1000) % 2, np.ones(1000, int)]
    monitor = GoalMonitor(each(recall, by=["x", "z"]) >= 0.8, labels=[0, 1])
    monitor.update(decided, np.ones(2000), attributes=table, time=T0)
    monitor.report()
    report = monitor.report().set_index("on")
    assert report["verdict"].to_dict() == {"'a', 'b, c'": "met", "'a, b', 'c'": "violated"}


def test_a_monitor_does_not_merge_with_an_older_copy():
    monitor, other = GoalMonitor(recall() >= 0.8), GoalMonitor(recall() >= 0.8)
    monitor.merge(monitor)  # it has counted nothing
    monitor.update([1], [1], time=T0)
    copy = GoalMonitor.from_dict(monitor.to_dict())
    monitor.update([1], [1], time=T0)
    other.update([0], [1], time=T0)
    for others in (monitor, copy, [other, copy]):
        with pytest.raises(ValueError, match="merged with itself, or with a copy"):
            monitor.merge(others)
    total = copy.merge(other)
    with pytest.raises(ValueError, match="merged with itself"):
        total.merge(monitor)
    assert total.report()["value"][0] == 0.5


def test_a_goal_of_many_signs_is_refused():
    d = GoalMonitor(recall() >= 0.5).to_dict()
    d["settings"]["goals"] = [["-" * 100_000 + "recall() >= 0.8", None]]
    with pytest.raises(ValueError, match="100015 characters"):
        GoalMonitor.from_dict(d)


def test_repr_has_three_lines():
    monitor = GoalMonitor(recall() >= 0.8, labels=[0, 1])
    assert repr(monitor).splitlines()[1:] == ["  0 rows in 0 periods", "  0 alarms"]
    monitor.update([0] * 50, [1] * 50, time=T0)
    monitor.report()
    assert repr(monitor).splitlines() == [
        "GoalMonitor of recall() >= 0.8, false_alarms=0.05 a year",
        "  50 rows in 1 periods: 2026-03-01 to 2026-03-01",
        "  1 alarms: recall() >= 0.8",
    ]


def test_costs_of_decisions_that_are_no_class():
    costs = {"a": {"a": 0, "b": 1, "ask": 0.5}, "b": {"a": 2, "b": 0, "ask": 0.5}}
    monitor = GoalMonitor(cost(costs) <= 1, labels=["a", "b", "ask"])
    monitor.update(["a", "b", "ask"], time=T0, id=[1, 2, 3])
    monitor.update_labels([1, 2, 3], ["a", "b", "b"], time=T0)
    assert monitor.report()["value"][0] == pytest.approx(0.5 / 3, abs=1e-5)


def test_outcomes_are_refused_outside_of_both_ends_of_their_range():
    monitor = GoalMonitor(outcome("z") <= 5, ranges={"z": (2, 6)})
    for value in (1.9, 6.1):
        with pytest.raises(
            ValueError, match=rf"is {value} in row 1, outside of its range \(2, 6\)"
        ):
            monitor.update(["u", "u"], time=T0, outcomes={"z": [2.0, value]})
    monitor.update(["u", "u", "v"], time=T0, outcomes={"z": [2.0, 6.0, 5.5]})
    assert monitor.report()["value"][0] == pytest.approx(4.5)


def test_of_takes_the_second_of_two_classes_as_positive():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] > 19, "b", "a")
    model = ConstrainedThreshold(LogisticRegression(), error_rate(), recall(of="b") >= 0.5, cv=2)
    with pytest.raises(NotFittedError, match="call fit first"):
        GoalMonitor.of(model)
    monitor = GoalMonitor.of(model.fit(X, y))
    assert monitor.pos_label == "b"


# --- times -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "time, looks",
    [
        ([20260301, 20260302], "yyyymmdd.*format='%Y%m%d'"),
        ([20513, 20514], "days since 1970"),
        ([46082.0, 46083.5], "days of Excel"),
        ([2025, 2026], "years"),
        ([1.76e12, 1.76e12], "milliseconds"),
        (pd.to_datetime([20260301, 20260302]), "yyyymmdd"),
        ([-1.0, 5.0], "in seconds since 1970 of this century"),
    ],
)
def test_numbers_that_are_no_seconds_are_named(time, looks):
    monitor = GoalMonitor(positive_rate() <= 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=looks):
            monitor.update([1, 0], time=time)
    assert monitor.to_dict()["counts"] == []


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_lengths_in_any_unit(unit):
    days = np.timedelta64(60, "D").astype(f"timedelta64[{unit}]")
    assert GoalMonitor(recall() >= 0.5, within=days).within == 60 * 86400


@pytest.mark.parametrize("period", ["86400", "P1M", "1M", "M", "W", np.timedelta64(1, "M"), True])
def test_periods_that_read_as_something_else(period):
    with pytest.raises(ValueError, match="no length of time"):
        GoalMonitor(recall() >= 0.5, period=period)


@pytest.mark.parametrize(
    "period, tz, expected",
    [
        ("1D", None, ["2026-03-28", "2026-03-29", "2026-04-01"]),
        ("1D", "Europe/Paris", ["2026-03-29", "2026-03-30", "2026-04-01"]),
        ("W-MON", None, ["2026-03-23", "2026-03-23", "2026-03-30"]),
        ("W-SUN", "Europe/Paris", ["2026-03-29", "2026-03-29", "2026-03-29"]),
        ("MS", None, ["2026-03-01", "2026-03-01", "2026-04-01"]),
        ("7D", None, ["2026-03-26", "2026-03-26", "2026-03-26"]),
    ],
)
def test_periods_begin_by_the_calendar(period, tz, expected):
    monitor = GoalMonitor(positive_rate() <= 0.5, period=period, tz=tz)
    times = pd.to_datetime(["2026-03-28 23:30", "2026-03-29 22:30", "2026-04-01 12:00"], utc=True)
    monitor.update([0, 1, 0], time=times)
    again = GoalMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    begins = again.history()["time"].dt.strftime("%Y-%m-%d").tolist()
    assert begins == list(dict.fromkeys(expected))


def test_datetimes_with_and_without_a_zone_do_not_mix():
    monitor = GoalMonitor(positive_rate() <= 0.5, tz="Europe/Paris")
    monitor.update([0], time=pd.Timestamp("2026-03-02 00:30"))  # of Paris
    assert monitor.history()["time"].tolist() == [pd.Timestamp("2026-03-02")]
    with pytest.raises(ValueError, match="with a zone, and those before were without"):
        monitor.update([0], time=pd.Timestamp("2026-03-02", tz="UTC"))
    with pytest.raises(ValueError, match="with a zone and without one"):
        monitor.update(
            [0, 0], time=[pd.Timestamp("2026-03-02"), pd.Timestamp("2026-03-02", tz="UTC")]
        )


def test_a_row_of_the_future_ends_no_forgetting():
    monitor = GoalMonitor(recall() >= 0.8, labels=[0, 1])
    with pytest.warns(UserWarning, match="in the future"):
        monitor.update([1], [1], id=["first"], time="2099-01-01")
    for day in range(20):
        monitor.update([1] * 5, [1] * 5, id=[f"{day}-{k}" for k in range(5)], time=T0 + day * DAY)
    assert len(monitor._past) == 1 + 15
    with pytest.warns(UserWarning, match="times go back by up to 41[89] days"):
        monitor.update([1], [1], time=T0 - 400 * DAY)


# --- the world as it is ------------------------------------------------------------------


def people_of_30_days(rng, drop=1.0):
    """Four new people every third day, each daily for 30 days, whose rates differ."""
    begin = np.repeat(np.arange(-30, 365, 3), 4)
    day = (begin[:, None] + np.arange(30)).ravel()
    who = np.repeat(np.arange(len(begin)), 30)
    chance = np.repeat(rng.beta(4, 1, len(begin)), 30)
    inside = (day >= 0) & (day < 364)
    day, who, chance = (
        day[inside],
        who[inside],
        chance[inside] * np.where(day[inside] < 182, 1, drop),
    )
    return day, day, who, rng.random(len(day)) < chance


def people_all_year(rng):
    day, who = np.tile(np.arange(364), 60), np.repeat(np.arange(60), 364)
    return day, day, who, rng.random(len(day)) < rng.beta(4, 1, 60)[who]


def people_in_late_files(rng):
    """Six new people a day with 1 to 15 rows each, which are uploaded up to 4 days late."""
    size = rng.integers(1, 16, 364 * 6)
    who = np.repeat(np.arange(len(size)), size)
    day, chance = who // 6, rng.beta(1, 0.25, len(size))[who]
    return day, day + rng.integers(0, 5, len(day)), who, rng.random(len(day)) < chance


def year(rng, world, **parameters):
    """The day on which a monitor of the rows of a world, looked at weekly, has an alarm, or inf."""
    day, upload, who, success = world(rng)
    monitor = GoalMonitor(recall() >= 0.8, labels=[0, 1], **parameters)
    for end in range(7, 371, 7):
        for part in (end - 7, end - 4):  # files of three and four days
            file = (upload >= part) & (upload < (end - 4 if part < end - 4 else end))
            groups = None if who is None else who[file]
            y = np.ones(file.sum())
            monitor.update(
                success[file].astype(int), y, time=BEGIN + DAY * day[file], groups=groups
            )
        if monitor.report()["verdict"][0] == "violated":
            return end
    return np.inf


@pytest.mark.thorough
@pytest.mark.parametrize("world", [people_of_30_days, people_all_year, people_in_late_files])
def test_people_raise_few_false_alarms(world):
    alarms = [year(np.random.default_rng(seed), world) < np.inf for seed in range(10)]
    assert sum(alarms) <= 1  # of 10 years; 3 to 5 where a person counted anew in each period


@pytest.mark.thorough
def test_a_fall_among_people_who_return_is_seen():
    days = [
        year(np.random.default_rng(k), lambda rng: people_of_30_days(rng, 0.8)) for k in range(4)
    ]
    assert 182 < np.median(days) < 182 + 70


@pytest.mark.thorough
@pytest.mark.parametrize("begin", range(7))
def test_a_weekly_season_raises_no_alarm(begin):
    """.74 on two days of a week and .824 on five, with 300 rows a day: .98 of years had one."""

    def season(rng):
        day = np.repeat(np.arange(180), 300)
        chance = np.where((day + begin) % 7 >= 5, 0.74, 0.824)
        return day, day, None, rng.random(len(day)) < chance

    assert year(np.random.default_rng(begin), season) == np.inf


@pytest.mark.thorough
def test_late_labels_raise_few_false_alarms():
    alarms = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        monitor = GoalMonitor(recall() >= 0.8, labels=[0, 1])
        late = rng.integers(0, 61, (364, 20))
        success = (rng.random((364, 20)) < 0.8).astype(int)
        for day in range(364):
            ids = [f"{day}-{k}" for k in range(20)]
            monitor.update(success[day], id=ids, time=BEGIN + day * DAY)
            rows, k = np.nonzero(
                late[max(0, day - 60) : day + 1] == np.arange(min(day, 60), -1, -1)[:, None]
            )
            names = [f"{row + max(0, day - 60)}-{j}" for row, j in zip(rows, k, strict=True)]
            monitor.update_labels(names, np.ones(len(names)), time=BEGIN + day * DAY)
            if day % 91 == 0:
                monitor.report()
        alarms += monitor.report()["verdict"][0] == "violated"
    assert alarms <= 1
