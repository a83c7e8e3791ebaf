"""How CPU seconds and memory grow with each size of each part, and the size at which it ends.

    python -m benchmarks.sizes [part ...] [--limit SECONDS] [--keep]

Parts and their sizes are in `PARTS`. A size grows fourfold until one call takes longer than the
limit, and no less than twice. The slope is that of the logarithm of CPU seconds over the last
growth: 1 is proportional. A part ends where a call would take `PATIENCE` seconds or `ROOM`
megabytes. With parts, `--keep` replaces their rows, and leaves the others as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from benchmarks._kept import is_kept, keep, results
from benchmarks._measure import THREADS, measure
from skbandit import (
    ConstrainedPolicy,
    ConstrainedRampClassifier,
    ConstrainedReduction,
    ConstrainedThreshold,
    GLMUCBPolicy,
    OffPolicyClassifier,
    RateScorer,
    RegressionSetSelector,
    ReplayScorer,
    SetSelectClassifier,
    assign,
    constraint_report,
    off_policy_value,
    rate_report,
    replay,
)
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy, make_policy_pipeline
from skbandit.constrained import RampClassifier, constraint_path
from skbandit.datasets import read_parquet_log, read_slate_log, read_vw_dsjson, read_yahoo_r6
from skbandit.evaluation import (
    GoalMonitor,
    OffPolicyScorer,
    off_policy_blocks,
    rate_report_blocks,
    replay_blocks,
    replay_slates,
    slate_ips,
    slate_pseudo_inverse,
)
from skbandit.export import to_onnx
from skbandit.inspection import (
    ArmSharesDisplay,
    ConstraintReportDisplay,
    GoalMonitorDisplay,
    RateReportDisplay,
    ReplayDisplay,
    TradeoffDisplay,
    save_report,
)
from skbandit.logs import join_rewards
from skbandit.rates import cost, each, error_rate, positive_rate, ratio, recall
from skbandit.selection import PopularitySetSelector, logged_costs

FACTOR, LIMIT = 4, 1.0
"""By how much a size grows, and CPU seconds from which on it grows no more."""

LEAST, LONGEST = 3, 10.0
"""Calls that show growth, unless one takes so many times the limit."""

PATIENCE, ROOM = 600.0, 8000.0
"""CPU seconds and megabytes at which a part ends."""

BEYOND = {"rows": 1e12}
"""Rows that nobody has; a million of other sizes."""

FEW_SECONDS, FEW_MEGABYTES = 0.05, 20.0
"""What is less tells nothing of growth."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of one call."""

    rows: int = 2000
    features: int = 6
    classes: int = 2
    goals: int = 1
    groups: int = 4
    arms: int = 4
    items: int = 8
    blocks: int = 4
    bounds: int = 2


MOST = {
    "features": 1024, "classes": 64, "goals": 64, "groups": 64, "arms": 64, "items": 2048,
    "bounds": 64,
}  # fmt: skip
"""Sizes beyond which nobody goes, or that are refused, as pairs of more groups are."""

Call = Callable[[], Any]


def labeled(s: Sizes) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, np.ndarray]:
    """Features, labels, groups and predictions, right in 70 % of the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(s.rows, s.features))
    y = np.argmax(X[:, :1] * np.arange(s.classes) + rng.gumbel(size=(s.rows, s.classes)), axis=1)
    predicted = np.where(rng.random(s.rows) < 0.7, y, rng.integers(s.classes, size=s.rows))
    number = np.arange(s.rows)
    parts = rng.integers(MOST["goals"], size=s.rows)
    return X, y, pd.DataFrame({"g": number % s.groups, "part": parts}), predicted


def goals_of(s: Sizes) -> list[Any]:
    """Goals that are easy to keep: of classes, of groups, or of so many rows."""
    if s.classes > 2:
        return [each(recall, of="classes") >= 0.01 / s.classes]
    if s.goals > 1:
        return [recall(f"part % {s.goals} == {k}") >= 0.2 for k in range(s.goals)]
    return [each(recall, by="g") >= 0.2]


def fitted(estimator: Any) -> Callable[[Sizes], Call]:
    """A fit to labels under goals."""

    def of_size(s: Sizes) -> Call:
        X, y, groups, _ = labeled(s)
        clf = estimator(X, y, goals_of(s))
        return lambda: clf.fit(X, y, attributes=groups)

    return of_size


def threshold(X: np.ndarray, y: np.ndarray, goals: list[Any], **options: Any) -> Any:
    """Thresholds of a classifier that is fitted."""
    inner = LogisticRegression(max_iter=50).fit(X[:1000], y[:1000])
    return ConstrainedThreshold(inner, error_rate(), goals, cv="prefit", **options)


def ramp(X: np.ndarray, y: np.ndarray, goals: list[Any]) -> Any:
    """A linear classifier under goals."""
    return ConstrainedRampClassifier(error_rate(), goals, solver="newton")


def report_of_classifier(s: Sizes) -> Call:
    """A report on goals of a fitted classifier."""
    X, y, groups, _ = labeled(s)
    few = slice(0, 4000)
    clf = threshold(X, y, goals_of(s)).fit(X[few], y[few], attributes=groups[few])
    return lambda: constraint_report(clf, X, y, attributes=groups)


def page(s: Sizes) -> Call:
    """The same as a page to sign."""
    X, y, groups, _ = labeled(s)
    few = slice(0, 4000)
    clf = threshold(X, y, goals_of(s)).fit(X[few], y[few], attributes=groups[few])

    def run() -> None:
        with TemporaryDirectory() as folder:
            save_report(clf, X, y, Path(folder) / "page.html", attributes=groups, by="g")

    return run


def path(s: Sizes) -> Call:
    """Fits at several bounds."""
    X, y, _, _ = labeled(s)
    clf = ConstrainedRampClassifier(error_rate(), recall() >= 0.5, solver="newton")
    return lambda: constraint_path(clf, X, y, bounds=np.linspace(0.5, 0.7, s.bounds))


def report(s: Sizes) -> Call:
    """Rates of predictions, by group."""
    _, y, groups, predicted = labeled(s)
    return lambda: rate_report(y, predicted, goals_of(s), by="g", attributes=groups)


def pairs(s: Sizes) -> Call:
    """The ratio of each two groups."""
    _, y, groups, predicted = labeled(s)
    return lambda: rate_report(y, predicted, ratio(recall, by="g") >= 0.5, attributes=groups)


def report_by_block(s: Sizes) -> Call:
    """Rates of predictions, by group, from blocks."""
    _, y, groups, predicted = labeled(s)
    table = groups.assign(y=y, p=predicted)
    size = math.ceil(s.rows / s.blocks)
    blocks = [table[start : start + size] for start in range(0, s.rows, size)]
    names = {"y_true": "y", "y_pred": "p", "by": "g"}
    return lambda: rate_report_blocks(blocks, goals_of(s), **names)


def monitor(s: Sizes) -> Call:
    """A day of decisions, and what it says of goals."""
    _, y, groups, predicted = labeled(s)

    def run() -> None:
        daily = GoalMonitor(goals_of(s))
        daily.update(predicted, y, attributes=groups, time=np.datetime64("2026-03-01"))
        daily.report()

    return run


def late_labels(s: Sizes) -> Call:
    """A hundred labels, one by one, while so many rows wait for theirs."""
    _, y, groups, predicted = labeled(s)
    names, day = np.arange(s.rows), np.datetime64("2026-03-01")
    daily = GoalMonitor(goals_of(s), within="3650D")
    daily.update(predicted, attributes=groups, time=day, id=names)
    left = iter(range(s.rows))

    def run() -> None:
        for k in [next(left) for _ in range(100)]:
            daily.update_labels(names[k : k + 1], y[k : k + 1], time=day)

    return run


def score(s: Sizes) -> Call:
    """The score of a fitted classifier under goals."""
    X, y, groups, _ = labeled(s)
    clf = LogisticRegression(max_iter=50).fit(X[:1000], y[:1000])
    scorer = RateScorer(error_rate(), goals_of(s))
    return lambda: scorer.score(clf, X, y, attributes=groups)


def graph(s: Sizes) -> Call:
    """Thresholds, of groups if there are two classes, as a graph."""
    X, y, groups, _ = labeled(s)
    by = {"by": "g"} if s.classes == 2 else {}
    clf = threshold(X, y, goals_of(s), **by).fit(X, y, attributes=groups)
    return lambda: to_onnx(clf, X, attributes=groups if by else None)


def drawn(display: Callable[[], Any]) -> Call:
    """A figure, drawn and closed."""

    def run() -> None:
        display().figure_.canvas.draw()
        plt.close("all")

    return run


def drawn_constraints(s: Sizes) -> Call:
    """A report on goals."""
    X, y, groups, _ = labeled(s)
    clf = threshold(X, y, goals_of(s)).fit(X, y, attributes=groups)
    table = constraint_report(clf, X, y, attributes=groups)
    return drawn(lambda: ConstraintReportDisplay.from_report(table))


def drawn_rates(s: Sizes) -> Call:
    """A report on rates, by group."""
    table = report(s)()
    return drawn(lambda: RateReportDisplay.from_report(table))


def drawn_path(s: Sizes) -> Call:
    """Fits at several bounds."""
    fits = path(s)()
    return drawn(lambda: TradeoffDisplay.from_path(fits))


def drawn_days(s: Sizes) -> Call:
    """A goal over so many days."""
    n = max(s.rows, 20 * s.blocks)
    _, y, _, predicted = labeled(replace(s, rows=n))
    days = np.datetime64("2006-03-01") + np.arange(n) * s.blocks // n
    daily = GoalMonitor(recall() >= 0.2)
    daily.update(predicted, y, time=days)
    return drawn(lambda: GoalMonitorDisplay.from_monitor(daily))


def drawn_shares(s: Sizes) -> Call:
    """The arms of a log."""
    _, log = logged(s)
    return drawn(lambda: ArmSharesDisplay.from_log(log))


def drawn_replay(s: Sizes) -> Call:
    """The replay of a policy that learns."""
    result = replayed(s)()
    return drawn(lambda: ReplayDisplay.from_result(result))


def costs_of(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Features, and costs of all items."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(s.rows, s.features))
    noise = rng.normal(size=(s.rows, s.items))
    return X, X @ rng.normal(size=(s.features, s.items)) + noise


def selector(estimator: Callable[[], Any]) -> Callable[[Sizes], Call]:
    """A fit to costs of all items."""

    def of_size(s: Sizes) -> Call:
        X, costs = costs_of(s)
        return lambda: estimator().fit(X, costs)

    return of_size


def chosen(s: Sizes) -> Call:
    """Items for all rows, by a fitted selector."""
    X, costs = costs_of(s)
    ads = RegressionSetSelector().fit(X[:1000], costs[:1000])
    return lambda: ads.predict(X)


def assigned(s: Sizes) -> Call:
    """Items with as many places as half of the rows ask for, each."""
    _, costs = costs_of(s)
    return lambda: assign(costs, max(2 * s.rows // s.items, 1))


def estimated_costs(s: Sizes) -> Call:
    """Costs of all items, from a log of the one shown."""
    _, log = logged(replace(s, arms=s.items))
    return lambda: logged_costs(log["action"], -log["reward"], log["propensity"])


def logged(s: Sizes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A log of uniform choices with rewards 0 and 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(s.rows, s.features))
    arm = rng.permutation(np.arange(s.rows) % s.arms)
    scores = X @ rng.normal(size=(s.features, s.arms))
    reward = scores[np.arange(s.rows), arm] + rng.normal(size=s.rows) > 0
    log = pd.DataFrame({"action": arm, "reward": reward.astype(float), "propensity": 1 / s.arms})
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(s.features)]), log


def learned(policy: Callable[[Sizes], Any]) -> Callable[[Sizes], Call]:
    """A fit to a log."""

    def of_size(s: Sizes) -> Call:
        X, log = logged(s)
        return lambda: policy(s).fit(X, log)

    return of_size


def budgets(s: Sizes) -> Any:
    """A policy under goals on what actions cost, and on how often they are taken."""
    spend = cost({k: k / s.arms for k in range(s.arms)}) <= 0.45
    shares = [positive_rate(of=k % s.arms) <= 0.9 for k in range(1, s.goals)]
    return ConstrainedPolicy(None, None, [spend, *shares], confidence_level=0.8, random_state=0)


def hundred_rows(policy: Callable[[Sizes], Any], choose: str) -> Callable[[Sizes], Call]:
    """A hundred choices for one row each, by a method of a policy."""

    def of_size(s: Sizes) -> Call:
        X, log = logged(replace(s, rows=50 * s.arms))
        method = getattr(policy(s).fit(X, log), choose)
        rows = [X[k : k + 1] for k in range(100)]
        return lambda: [method(row) for row in rows]

    return of_size


def shared(s: Sizes) -> Any:
    """A policy that knows features of arms."""
    arms = pd.DataFrame(np.random.default_rng(1).normal(size=(s.arms, 3)))
    return SharedGLMPolicy(arms.rename(columns=str), random_state=0)


def slates(s: Sizes) -> Call:
    """A fit to slates of two."""
    X, log = slate_log(s)
    return lambda: SlatePolicy(n_select=2, random_state=0).fit(X, log)


def slate_log(s: Sizes) -> tuple[np.ndarray, pd.DataFrame]:
    """Uniform slates of two of the items."""
    rng = np.random.default_rng(0)
    shown = rng.random((s.rows, s.items)).argsort(axis=1)[:, :2]
    clicks = (rng.random(shown.shape) < 0.3).astype(float)
    log = {"action": [*map(tuple, shown.tolist())], "reward": [*map(tuple, clicks.tolist())]}
    return rng.normal(size=(s.rows, s.features)), pd.DataFrame(log)


def value_of_slates(estimate: Callable[..., Any]) -> Callable[[Sizes], Call]:
    """The value of one slate for all."""

    def of_size(s: Sizes) -> Call:
        _, log = slate_log(s)
        if estimate is slate_pseudo_inverse:  # of the sum of a slate
            log["reward"] = log["reward"].map(sum)
        return lambda: estimate([[0, 1]] * s.rows, None, log)

    return of_size


def replayed_slates(s: Sizes) -> Call:
    """The replay of a policy that learns from slates."""
    X, log = slate_log(s)
    return lambda: replay_slates(SlatePolicy(n_select=2, random_state=0), X, log)


def long_table(s: Sizes) -> Call:
    """Slates from a table with a row per item shown."""
    X, log = slate_log(s)
    parts = {"slate": np.repeat(np.arange(s.rows), 2), "position": np.tile([0, 1], s.rows)}
    parts |= {name: np.concatenate(log[name].tolist()) for name in log}
    table = pd.DataFrame(parts | {f"x{k}": X[:, k].repeat(2) for k in range(s.features)})
    columns = {"slate": "slate", "item": "action", "position": "position", "reward": "reward"}
    return lambda: read_slate_log(table, **columns)


def value(s: Sizes) -> Call:
    """The value of a policy that does not learn."""
    X, log = logged(s)
    policy = GLMUCBPolicy(random_state=0).fit(X[:1000], log[:1000])
    return lambda: off_policy_value(policy, X, log, rule="predict")


def value_by_block(s: Sizes) -> Call:
    """The same from blocks."""
    X, log = logged(s)
    policy = GLMUCBPolicy(random_state=0).fit(X[:1000], log[:1000])
    blocks = log_blocks(X, log, s.blocks)
    given = {"arms": range(s.arms), "reward_model": policy, "rule": "predict"}
    return lambda: off_policy_blocks(policy, blocks, **given)


def replayed(s: Sizes) -> Call:
    """The replay of a policy that learns."""
    X, log = logged(s)
    return lambda: replay(GLMUCBPolicy(random_state=0), X, log)


def replayed_by_block(s: Sizes) -> Call:
    """The same from blocks."""
    X, log = logged(s)
    blocks = log_blocks(X, log, s.blocks)
    policy = GLMUCBPolicy(random_state=0)
    return lambda: replay_blocks(policy, blocks, acceptance=1 / s.arms, arms=range(s.arms))


def scored(scorer: Any) -> Callable[[Sizes], Call]:
    """The score of a fitted policy."""

    def of_size(s: Sizes) -> Call:
        X, log = logged(s)
        policy = GLMUCBPolicy(random_state=0).fit(X[:1000], log[:1000])
        return lambda: scorer.score(policy, X, log)

    return of_size


def pipeline(s: Sizes) -> Any:
    """A policy that learns, behind a transformer."""
    return make_policy_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))


def joined(s: Sizes) -> Call:
    """Records of choices, with rewards."""
    X, log = logged(s)
    shared = {"available": [*range(s.arms)], "propensity": 1 / s.arms, "version": 0}
    contexts, arms = X.to_dict("records"), log["action"].tolist()
    choices = zip(contexts, arms, strict=True)
    records = [
        {"id": f"{k:032x}", "time": float(k), "context": context, "arm": arm, **shared}
        for k, (context, arm) in enumerate(choices)
    ]
    ids = [record["id"] for record in records]
    rewards = pd.DataFrame({"id": ids, "reward": log["reward"], "time": np.arange(s.rows) + 5.0})
    given = {"within": 60, "missing": 0, "now": math.inf}
    return lambda: join_rewards(records, rewards[::2], **given)


def read_from(read: Callable[[Path, Sizes], Any], write: Callable[[Sizes, Path], None]) -> Any:
    """Blocks of a log in a file, one after another."""

    def of_size(s: Sizes) -> Call:
        folder = TemporaryDirectory()  # removed with the call
        write(s, path := Path(folder.name) / "log.parquet")

        def run(_: Any = folder) -> None:
            for _ in read(path, s):
                pass

        return run

    return of_size


def parquet(s: Sizes, path: Path) -> None:
    """A log in Parquet."""
    pd.concat(logged(s), axis=1).to_parquet(path)


def dsjson(s: Sizes, path: Path) -> None:
    """A log of Vowpal Wabbit."""
    X, log = logged(s)
    contexts, arms = X.to_dict("records"), log["action"].tolist()
    actions = [{"_tag": f"a{k}"} for k in range(s.arms)]
    with path.open("w", encoding="utf-8") as file:
        for context, arm, reward in zip(contexts, arms, log["reward"], strict=True):
            order = [arm + 1, *(k + 1 for k in range(s.arms) if k != arm)]
            event = {
                "_label_cost": -reward, "_label_probability": 1 / s.arms, "_label_Action": arm + 1,
                "_labelIndex": arm, "a": order, "p": [1 / s.arms] * s.arms,
                "c": {"User": context, "_multi": actions},
            }  # fmt: skip
            file.write(json.dumps(event) + "\n")


def yahoo(s: Sizes, path: Path) -> None:
    """A log in the format of Yahoo!'s R6B, whose pool changes every hundred events."""
    _, log = logged(s)
    with path.open("w", encoding="utf-8") as file:
        for k, (arm, reward) in enumerate(zip(log["action"], log["reward"], strict=True)):
            first = k // 100
            pool = " ".join(f"|id-{first + other}" for other in range(s.arms))
            file.write(f"{1317513291 + k} id-{first + arm} {reward:.0f} |user 1 9 11 {pool}\n")


def log_blocks(X: pd.DataFrame, log: pd.DataFrame, n: int) -> list[tuple[Any, Any]]:
    """A log in so many parts."""
    size = math.ceil(len(X) / n)
    starts = range(0, len(X), size)
    return [(X[start : start + size], log[start : start + size]) for start in starts]


def reduction(X: np.ndarray, y: np.ndarray, goals: list[Any]) -> Any:
    """Rounds of cost-sensitive fits."""
    return ConstrainedReduction(LogisticRegression(max_iter=50), error_rate(), goals)


PARTS: dict[str, tuple[Callable[[Sizes], Call], tuple[str, ...]]] = {
    "RampClassifier": (
        fitted(lambda X, y, goals: RampClassifier(error_rate(), goals, solver="newton")),
        ("rows", "features"),
    ),
    "ConstrainedRampClassifier": (fitted(ramp), ("rows", "features", "goals", "groups")),
    "ConstrainedThreshold": (fitted(threshold), ("rows", "classes", "goals", "groups")),
    "ConstrainedThreshold(by=)": (
        fitted(lambda X, y, goals: threshold(X, y, goals, by="g")),
        ("rows", "groups"),
    ),
    "ConstrainedReduction": (fitted(reduction), ("rows", "features", "classes", "groups")),
    "constraint_path": (path, ("rows", "features", "bounds")),
    "constraint_report": (report_of_classifier, ("rows", "goals", "groups")),
    "save_report": (page, ("rows", "groups")),
    "rate_report": (report, ("rows", "classes", "goals", "groups")),
    "rate_report, ratio": (pairs, ("rows", "groups")),
    "rate_report_blocks": (report_by_block, ("rows", "groups", "blocks")),
    "RateScorer": (score, ("rows", "classes", "goals", "groups")),
    "GoalMonitor": (monitor, ("rows", "goals", "groups")),
    "GoalMonitor.update_labels, 100 rows": (late_labels, ("rows",)),
    "to_onnx": (graph, ("features", "classes", "groups")),
    "RegressionSetSelector": (selector(RegressionSetSelector), ("rows", "features", "items")),
    "RegressionSetSelector.predict": (chosen, ("rows", "items")),
    "SetSelectClassifier": (selector(SetSelectClassifier), ("rows", "features", "items")),
    "PopularitySetSelector": (selector(PopularitySetSelector), ("rows", "items")),
    "assign": (assigned, ("rows", "items")),
    "logged_costs": (estimated_costs, ("rows", "items")),
    "GLMUCBPolicy": (
        learned(lambda s: GLMUCBPolicy(random_state=0)),
        ("rows", "features", "arms"),
    ),
    "GLMUCBPolicy.select, 100 rows": (
        hundred_rows(lambda s: GLMUCBPolicy(random_state=0), "select"),
        ("features", "arms"),
    ),
    "SharedGLMPolicy": (learned(shared), ("rows", "features", "arms")),
    "OraclePolicy": (
        learned(lambda s: OraclePolicy(LogisticRegression(), random_state=0)),
        ("rows", "arms"),
    ),
    "SlatePolicy": (slates, ("rows", "items")),
    "OffPolicyClassifier": (
        learned(lambda s: OffPolicyClassifier(random_state=0)),
        ("rows", "features", "arms"),
    ),
    "ConstrainedPolicy": (learned(budgets), ("rows", "features", "goals", "arms")),
    "ConstrainedPolicy.predict, 100 rows": (
        hundred_rows(budgets, "predict"),
        ("features", "arms"),
    ),
    "off_policy_value": (value, ("rows", "arms")),
    "off_policy_blocks": (value_by_block, ("rows", "blocks")),
    "slate_ips": (value_of_slates(slate_ips), ("rows", "items")),
    "slate_pseudo_inverse": (value_of_slates(slate_pseudo_inverse), ("rows", "items")),
    "replay": (replayed, ("rows", "arms")),
    "replay_blocks": (replayed_by_block, ("rows", "blocks")),
    "replay_slates": (replayed_slates, ("rows", "items")),
    "OffPolicyScorer": (scored(OffPolicyScorer()), ("rows", "arms")),
    "ReplayScorer": (scored(ReplayScorer(random_state=0)), ("rows", "arms")),
    "PolicyPipeline": (learned(pipeline), ("rows", "features", "arms")),
    "PolicyPipeline.select, 100 rows": (
        hundred_rows(pipeline, "select"),
        ("features", "arms"),
    ),
    "join_rewards": (joined, ("rows", "features", "arms")),
    "read_parquet_log": (
        read_from(lambda p, s: read_parquet_log(p, [f"x{k}" for k in range(s.features)]), parquet),
        ("rows", "features"),
    ),
    "read_vw_dsjson": (
        read_from(lambda p, s: read_vw_dsjson(p), dsjson),
        ("rows", "features", "arms"),
    ),
    "read_yahoo_r6": (read_from(lambda p, s: read_yahoo_r6(p), yahoo), ("rows", "arms")),
    "read_slate_log": (long_table, ("rows", "features")),
    "ConstraintReportDisplay": (drawn_constraints, ("goals", "groups")),
    "RateReportDisplay": (drawn_rates, ("goals", "groups")),
    "TradeoffDisplay": (drawn_path, ("bounds",)),
    "GoalMonitorDisplay, blocks are days": (drawn_days, ("blocks",)),
    "ArmSharesDisplay": (drawn_shares, ("rows", "arms")),
    "ReplayDisplay": (drawn_replay, ("rows",)),
}
"""How each part is called, and with what it may grow."""


def row(part: str, size: str, limit: float) -> dict[str, Any]:
    """How one part grows with one size."""
    make, _ = PARTS[part]
    make(Sizes(rows=300))()
    found: list[tuple[int, float, float]] = []
    most, note = MOST.get(size, math.inf), ""
    number = getattr(Sizes(), size)
    while number <= most:
        try:
            call = make(replace(Sizes(), **{size: number}))
            measured, _ = measure(call, rounds=2, seconds=LONGEST * limit)
        except Exception as error:  # what ends a part is its result
            note = f"{type(error).__name__} at {number:,}"
            break
        found.append((number, measured.cpu, measured.megabytes))
        is_long = len(found) >= LEAST or measured.cpu > LONGEST * limit
        if measured.cpu > limit and is_long:
            break
        number *= FACTOR
    if not found:
        return {"note": note}
    largest, cpu, megabytes = found[-1]
    slope = math.nan
    if len(found) > 1 and cpu > FEW_SECONDS:
        before, less, _ = found[-2]
        slope = math.log(cpu / max(less, FEW_SECONDS / FACTOR)) / math.log(largest / before)
    figures = {"up to": largest, "CPU s": cpu, "slope": slope, "MB": megabytes}
    return {**figures, "ends at": end_of(size, figures), "note": note}


def end_of(size: str, figures: dict[str, Any]) -> str:
    """Where a part ends, if its costs grow on with the slope, and at least with the size."""
    ends = [math.inf]
    if figures["CPU s"] > FEW_SECONDS:
        power = max(figures["slope"], 1.0) if figures["slope"] > 0 else 1.0
        ends.append(figures["up to"] * (PATIENCE / figures["CPU s"]) ** (1 / power))
    if figures["MB"] > FEW_MEGABYTES:
        ends.append(figures["up to"] * ROOM / figures["MB"])
    last = min(ends)
    return f"{float(f'{last:.0e}'):,.0f}" if last < BEYOND.get(size, 1e6) else ""


def rows(parts: list[str], limit: float) -> Iterator[dict[str, Any]]:
    """All parts with each of their sizes."""
    for part in parts:
        for size in PARTS[part][1]:
            yield {"part": part, "size": size} | row(part, size, limit)


def main() -> None:
    """Print how parts grow, and keep it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help="; ".join(PARTS))
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds of the last call")
    parser.add_argument("--keep", action="store_true", help="write results/sizes.csv")
    options = parser.parse_args()
    if any(os.environ.get(one) != "1" for one in THREADS):  # read when numpy is loaded
        os.environ.update(dict.fromkeys(THREADS, "1"))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.sizes", *sys.argv[1:]])
    warnings.simplefilter("ignore")
    lines = []
    for line in rows(options.parts or list(PARTS), options.limit):
        print(line, flush=True)
        lines.append(line)
    if options.keep:
        frame = pd.DataFrame(lines)
        if options.parts and is_kept("sizes"):
            kept = results("sizes")
            frame = pd.concat([kept[~kept["part"].isin(options.parts)], frame])
        frame = frame.sort_values("part", key=lambda part: part.map([*PARTS].index), kind="stable")
        keep("sizes", frame, frame["CPU s"].sum())


if __name__ == "__main__":
    main()
