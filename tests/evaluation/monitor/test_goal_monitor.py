"""GoalMonitor: counts are those of reports, in any order; late labels; persons; JSON."""

import json
import os

import numpy as np
import pandas as pd
import pytest

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
    """Rows of earlier days that come late weaken its evidence: it was taken back in silence."""
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
        assert report["note"][0].startswith("reported before rows of earlier periods")
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


@pytest.mark.thorough
def test_false_alarms_over_all_goals():
    alarms = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = 10 * 60
        y = rng.integers(0, 2, n)
        decided = np.where(rng.random(n) < 0.2, 1 - y, y)
        table = {"site": rng.choice(list("abcd"), n)}
        goals = [each(recall, by="site") >= 0.8, difference(recall, by="site") <= 0.02]
        monitor = GoalMonitor(goals, by=None)
        monitor.update(decided, y, attributes=table, time=T0 + DAY * np.repeat(np.arange(10), 60))
        alarms += (monitor.report()["verdict"] == "violated").any()
    assert alarms <= 2


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
    with pytest.warns(UserWarning, match="1 of 1 ids"):
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
    with pytest.raises(ValueError, match="3 rows are in two monitors, such as id 'b'"):
        monitor.merge(again)
    monitor.update([1], id=["d"], time=now)
    monitor.update([1], [0], id=["e"], time=now)  # what is remembered is of bounded size
    assert list(monitor._past) == ["e"]


def test_an_id_may_come_again_after_two_periods():
    monitor = GoalMonitor(accuracy() >= 0.5)
    for day in range(3):
        monitor.update([1], [1], id=["a"], time=T0 + 10 * day * DAY)
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
        together.update(decided[part], y[part], time=T0, groups=person[part])
    (of_rows,), (of_people,) = (m.report().to_dict("records") for m in (apart, together))
    assert of_rows["value"] == pytest.approx(of_people["value"])
    assert of_rows["verdict"] == "violated" and of_people["verdict"] == "undecided"
    saved = GoalMonitor.from_dict(json.loads(json.dumps(together.to_dict())))
    assert saved.to_dict() == together.to_dict()
    saved.update([1], [1], time=T0 + DAY, groups=["x"])
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
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

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


def test_columns_in_another_order_warn():
    decided = pd.Series([0, 1], index=["a", "b"])
    monitor = GoalMonitor(accuracy() >= 0.5)
    with pytest.warns(UserWarning, match="in different orders"):
        monitor.update(decided, decided[::-1], time=T0)


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
        lambda d: d.update({"skbandit.GoalMonitor": 1}),
        lambda d: d.pop("counts"),
        lambda d: d["settings"].update(nope=1),
        lambda d: d["settings"].update(false_alarms=2),
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


def test_values_that_json_does_not_hold_are_named():
    monitor = GoalMonitor(each(positive_rate, by="day") <= 0.5)
    monitor.update([1], attributes={"day": [T0]}, time=T0)
    with pytest.raises(TypeError, match="JSON does not hold"):
        monitor.to_dict()
    monitor = GoalMonitor(accuracy() >= 0.5)
    monitor.update([1], id=[("a", 1)], time=T0)
    with pytest.raises(TypeError, match="not tuples"):
        monitor.to_dict()
