"""Pages show the results that are kept; each benchmark runs, on few rows."""

import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks._page_tables import HAND, PAGE, PAPERS, TABLES, written

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", [*HAND, PAGE, TABLES, PAPERS], ids=lambda page: page.stem)
def test_a_page_has_the_figures_that_were_found(page):
    text = page.read_text(encoding="utf-8")
    assert written(text) == text
    assert page not in (TABLES, PAPERS) or text.count("<!-- table of") >= 4


@pytest.mark.parametrize("page", HAND, ids=lambda page: page.stem)
def test_no_figure_of_the_prose_is_by_hand(page):
    text = page.read_text(encoding="utf-8")
    marked = r"^```.*?^```$|`[^`\n]*`|<!-- figure.*?<!-- end -->"
    unit = r"(?:µs|ms|seconds|MB|GB|events per second|times (?:as|faster)|points of|%\s(?:of|and))"
    by_hand = re.findall(
        rf"(?<![\w.])0?\.\d\d+\b|\b\d[\d.,]*\s{unit}",
        re.sub(marked, "", text, flags=re.M | re.S),
    )
    assert not by_hand, "measured by hand? Let benchmarks.page write it between marks"


def census(n=300):
    return import_module("benchmarks._data").census(n, d=20)


def run_adult(adult, folder):
    rival = adult.RIVALS["skbandit ConstrainedThreshold"]
    sample, setting = census(), {key: values[0] for key, values in rival.grid.items()}
    rival.fit(sample.X, sample.y, sample.group == 1, **setting)(sample.X, sample.group == 1)


def run_arm_features(arm_features, folder):
    X, Z, P, live = arm_features.made_world("new", 0, 100)
    arm_features.play(arm_features.POLICIES["SharedGLMPolicy"](Z), X, P, live, 0)


def run_bandit_defaults(defaults, folder):
    _, problem = next(defaults.made_problems(0, 1))
    defaults.compare("synthetic", problem, {"ucb": {}}, 2, 50)


def run_budgets(budgets, folder):
    budgets.one(300, 3, "uniform", "one", next(iter(budgets.LEARNERS)), 0)


def run_check(check, folder):
    assert check.row(next(iter(check.RATIOS)), 0.02)["now"] > 0


def run_churn(churn, folder):
    data = churn.deployment((300, 150, 150), 100)
    next(iter(churn.TASKS.values()))(data, 1e-3)()


def run_classes(classes, folder):
    classes.DATA["synthetic"] = (300, 500)
    classes.one("synthetic", "floors", next(iter(classes.LEARNERS)), 0)


def run_export(export, folder):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    kind = next(iter(export.draw(9, 0)[0]))
    assert export.outcome(kind, export.LEARNERS["logistic regression"], 50) == "equal"


def run_goals(goals, folder):
    data = import_module("benchmarks._goal_data")
    split = data.made(data.SHAPES["few rows"], 0)
    goals.run("threshold", goals.GOALS["parity, difference .05"], split)


def run_group_thresholds(group_thresholds, folder):
    if not os.environ.get("SKBANDIT_DATA"):
        pytest.skip("real data: the environment variable SKBANDIT_DATA is not set")
    goal = next(iter(group_thresholds.GOALS))
    train, _ = group_thresholds.split(100, 500)
    group_thresholds.fitted("one threshold", goal, train)


def run_growth(growth, folder):
    sample, goals = growth.problem("rows", 300, quick=True)
    next(iter(growth.METHODS.values()))(sample, goals)()


def run_horizons(horizons, folder):
    assert list(horizons.rows([300], (50,), 50)) and list(horizons.drift_rows([800], 50))
    assert list(horizons.changing_rows(["new arm"], 1, 0, 200))


def run_intervals(intervals, folder):
    intervals.row(next(iter(intervals.LOGS)), 0.02, 64, n_logs=5)
    intervals.row_of_rates("4 rows a person", 80, n_samples=2)


def run_levels(levels, folder):
    cell = levels.CELLS[0]
    assert 0 <= levels.one(cell, levels.bounds_of(cell), 0)["violated"] <= 1


def run_mutants(mutants, folder):
    first, second = mutants.drawn({"rates"}, 2, 0)
    assert first.code.co_code != second.code.co_code


def run_page(page, folder):
    boards = import_module("benchmarks._page_boards").BOARDS
    assert {"error", "rule kept"} < set(next(iter(boards["eighty_percent"].run(0.01))))


def run_price(price, folder):
    _, split = next(price.problems(0))
    price.met(price.goals.run("ramp, level .8", price.GOALS["recall >= .9"], split))


def run_published(published, folder):
    next(iter(published.EXPERIMENTS["fairness"].run(1, True)))


def run_reduction(reduction, folder):
    reduction.runs("ConstrainedThreshold, trees", next(iter(reduction.GOALS)), 500, 5, (0,))


def run_replay(replay, folder):
    for rival in replay.OURS.values():
        rival.replay(replay.bandit_sample(300))()


def run_selection(selection, folder):
    task, _ = selection.predict(300, 3, 20, np.float64, next(iter(selection.PREDICTIONS)))
    assert task().shape == (20, selection.M)


def run_service(service, folder):
    """Nothing: test_service.py talks to the service."""


def run_set_logs(set_logs, folder):
    assert set_logs.earned(0, 1.0)["full"] > 0.5


def run_sizes(sizes, folder):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for part, (_, grown) in sizes.PARTS.items():
        assert sizes.PARTS[part][0](sizes.Sizes(rows=300))
        assert set(grown) <= vars(sizes.Sizes()).keys()
    line = sizes.row("rate_report", "groups", 0.01)
    assert line["up to"] >= 4
    assert line["note"] == ""


def run_steps(steps, folder):
    make, _ = next(iter(steps.TASKS.values()))
    make(census(), list(steps.GOALS[:2]), 1e-3)()


def run_stream(stream, folder):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert stream.row("replay, learning", list(stream.write_log(folder, 1000)))["events/s"] > 0


def run_tables(tables, folder):
    for name, (_, (_, _, n_classes)) in tables.TASKS.items():
        assert tables.row(name, 600, 3, min(n_classes, 3))["CPU s"] > 0


def run_uplift(uplift, folder):
    kind = uplift.Kind(300, 3, uplift.RIDGE, uplift.lines, more_goals=True)
    found = {row["method"]: row["excess of the worst goal, %"] for row in uplift.rows(kind, 0)}
    assert found["X-learner, ranked"] > found["ConstrainedPolicy"]
    gains = {row["method"]: row["% of the best gain"] for row in uplift.contrasts(kind, 0)}
    assert gains["ConstrainedPolicy"] > 50


def run_waits(waits, folder):
    assert waits.seconds(list(waits.WAYS)[:1])


def run_watch(watch, folder):
    alarms = dict(watch.campaign(0, np.full(watch.DAYS, 0.9)))
    assert alarms["GoalMonitor"] < 30


def run_wide(wide, folder):
    wide.row(60, 100, 1.0)


def run_history(history, folder):
    loops = inspect.getmembers(import_module("benchmarks.history.kernels"), inspect.isclass)
    for loop in (loop() for _, loop in loops if hasattr(loop, "setup")):
        loop.n = 400
        loop.setup()
        (name,) = (name for name in dir(loop) if name.startswith("time_"))
        getattr(loop, name)()


NAMES = sorted(
    path.stem
    for path in (ROOT / "benchmarks").iterdir()
    if not path.name.startswith("_") and path.suffix in ("", ".py") and path.stem != "results"
)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # few rows, few steps, and other people's deprecations
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, tmp_path):
    globals()[f"run_{name}"](import_module(f"benchmarks.{name}"), tmp_path)
