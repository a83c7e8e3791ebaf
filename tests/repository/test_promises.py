"""What docstrings promise under "Raises" and "Warns" happens; warnings point at the caller."""

import ast
import builtins
import inspect
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbandit
from skbandit import ConstrainedRampClassifier, GLMUCBPolicy, SetSelectClassifier, exceptions
from skbandit.bandit import ConstrainedPolicy, SlatePolicy, select
from skbandit.constrained import RampClassifier
from skbandit.constrained.solvers import (
    AugmentedLagrangianSolver,
    CvxpySolver,
    SolverError,
)
from skbandit.datasets import (
    make_bandit_log,
    read_parquet_log,
    read_slate_log,
    read_vw_dsjson,
    read_yahoo_r6,
)
from skbandit.evaluation import (
    GoalMonitor,
    off_policy_blocks,
    off_policy_value,
    rate_report,
    rate_report_blocks,
    replay,
    replay_blocks,
    replay_slates,
    slate_ips,
    slate_pseudo_inverse,
)
from skbandit.export import check, to_onnx
from skbandit.logs import join_rewards
from skbandit.rates import accuracy, each, error_rate, positive_rate, recall
from skbandit.selection import RegressionSetSelector, assign, logged_costs
from tests.constrained.paper.convex_problems import random_problem
from tests.policies import Always
from tests.problems import tightened

pytest.importorskip("numpydoc", reason="numpydoc is not installed")
from numpydoc.docscrape import ClassDoc, FunctionDoc

from tests.repository.test_public_api import CALLABLES

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(200, 2))
LABELS = (ROWS[:, 0] + rng.normal(size=200) > 0).astype(int)
LOG = make_bandit_log(200, n_arms=3, random_state=0)
UNEVEN = pd.DataFrame({"action": ["a"] * 300 + ["b"] * 100, "reward": 1.0})
NEVER = pd.DataFrame({0: np.zeros(200), 1: 0.0, 2: 0.0, 3: 1.0})
SLATES = pd.DataFrame({"action": [[0, 1], [1, 0]] * 20, "reward": [[1.0, 0.0]] * 40})

EXAMPLES = {}
"""Calls by what is called and what is promised, in a folder of their own."""


def example(address, promised):
    """Register a call that keeps a promise."""

    def register(call):
        EXAMPLES[address, promised.__name__] = call
        return call

    return register


# --- readers -----------------------------------------------------------------------------


@example("skbandit.datasets.read_parquet_log", ValueError)
def _(folder):
    LOG.X.to_parquet(folder / "log.parquet")
    read_parquet_log(folder, ["no such column"])


@example("skbandit.datasets.read_parquet_log", UserWarning)
def _(folder):
    (folder / "n=1").mkdir()
    UNEVEN.assign(n=2).to_parquet(folder / "n=1" / "log.parquet")
    list(read_parquet_log(folder, ["n"]))


@example("skbandit.datasets.read_parquet_log", OSError)
def _(folder):
    read_parquet_log(folder / "nowhere", ["x"])


@example("skbandit.datasets.read_parquet_log", ImportError)
def _(folder):
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
            patch.setitem(sys.modules, name, None)
        read_parquet_log(folder, ["x"])


@example("skbandit.datasets.read_slate_log", ValueError)
def _(folder):
    table = pd.DataFrame({"s": [1], "arm": ["a"], "at": [0]})
    read_slate_log(table, slate="s", item="arm", position="at", reward="no such column")


@example("skbandit.datasets.read_vw_dsjson", ValueError)
def _(folder):
    (folder / "log.json").write_text(json.dumps({"_label_cost": -1}))
    list(read_vw_dsjson(folder / "log.json"))


@example("skbandit.datasets.read_yahoo_r6", ValueError)
def _(folder):
    (folder / "log").write_text("no event\n")
    list(read_yahoo_r6(folder / "log"))


@example("skbandit.datasets.read_vw_dsjson", OSError)
def _(folder):
    read_vw_dsjson(folder / "nowhere")


@example("skbandit.datasets.read_yahoo_r6", OSError)
def _(folder):
    read_yahoo_r6(folder / "nowhere")


@example("skbandit.logs.join_rewards", ValueError)
def _(folder):
    record = GLMUCBPolicy(arms=["a"]).record([0.0], "a", 1.0)
    join_rewards([record, {**record, "time": record["time"] + 1}], {record["id"]: 1.0})


@example("skbandit.logs.join_rewards", UserWarning)
def _(folder):
    join_rewards([GLMUCBPolicy(arms=["a"]).record([0.0], "a", 1.0)], {"unknown": 1.0})


# --- evaluation --------------------------------------------------------------------------


@example("skbandit.inspection.save_report", TypeError)
def _(folder):
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    skbandit.inspection.save_report(model, [[0.0]], [0], folder / "report.html")


@example("skbandit.inspection.save_report", ValueError)
def _(folder):
    model = RegressionSetSelector().fit([[0.0], [1.0]] * 10, [[0.0, 1.0]] * 20)
    skbandit.inspection.save_report(model, [[0.0]], [[np.nan, 1.0]], folder / "report.html")


@example("skbandit.evaluation.rate_report_blocks", ValueError)
def _(folder):
    rate_report_blocks([], recall(), y_true="y", y_pred="p")


@example("skbandit.evaluation.rate_report_blocks", UserWarning)
def _(folder):
    table = pd.DataFrame({"y": [0, 1], "p": [0, 1]})
    rate_report_blocks([table], recall(), y_true="y", y_pred="p")


@example("skbandit.rate_report", UserWarning)
def _(folder):
    rate_report([0, 1], [0, 1], each(accuracy, by="g") >= 0.5, attributes={"g": ["a", None]})


@example("skbandit.evaluation.GoalMonitor.update", ValueError)
def _(folder):
    GoalMonitor(recall() >= 0.5, labels=[0, 1]).update([2], [1])


@example("skbandit.evaluation.GoalMonitor.update", TypeError)
def _(folder):
    GoalMonitor(recall() >= 0.5).update([1], id=[b"a"])


@example("skbandit.evaluation.GoalMonitor.merge", ValueError)
def _(folder):
    monitor = GoalMonitor(recall() >= 0.5)
    monitor.update([1], [1])
    monitor.merge(monitor)


@example("skbandit.evaluation.GoalMonitor.update", UserWarning)
def _(folder):
    GoalMonitor(recall() >= 0.5).update([0, 1], id=["a", "a"])


@example("skbandit.evaluation.GoalMonitor.update_labels", UserWarning)
def _(folder):
    GoalMonitor(recall() >= 0.5).update_labels(["a"], [1])


@example("skbandit.evaluation.GoalMonitor.from_dict", ValueError)
def _(folder):
    GoalMonitor.from_dict({})


@contextmanager
def without(package):
    """Make a package unknown."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [package, *(x for x in sys.modules if x.partition(".")[0] == package)]:
            patch.setitem(sys.modules, name, None)
        yield


@example("skbandit.export.to_onnx", ImportError)
def _(folder):
    with without("onnx"):
        to_onnx(ConstrainedRampClassifier().fit(ROWS, LABELS), ROWS)


@example("skbandit.export.to_onnx", ValueError)
def _(folder):
    pytest.importorskip("onnx", reason="onnx is not installed")
    to_onnx(LogisticRegression().fit(ROWS, LABELS), ROWS)


@example("skbandit.export.check", TypeError)
def _(folder):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    check(LogisticRegression(), b"", ROWS)


@example("skbandit.export.check", ImportError)
def _(folder):
    with without("onnxruntime"):
        check(b"", LogisticRegression().fit(ROWS, LABELS), ROWS)


@example("skbandit.off_policy_value", ValueError)
def _(folder):
    off_policy_value(Always(0), LOG.X, LOG.y, method="ips", shrinkage=1.0)


@example("skbandit.off_policy_value", exceptions.ReplayCoverageWarning)
def _(folder):
    off_policy_value(NEVER, LOG.X, LOG.y.assign(available=[range(4)] * 200))


@example("skbandit.off_policy_value", UserWarning)
def _(folder):
    off_policy_value(np.full((400, 2), 0.5), np.zeros((400, 1)), UNEVEN)


@example("skbandit.evaluation.off_policy_blocks", ValueError)
def _(folder):
    off_policy_blocks(Always(0), [])


@example("skbandit.evaluation.off_policy_blocks", exceptions.ReplayCoverageWarning)
def _(folder):
    off_policy_blocks("p", [(LOG.X, LOG.y.assign(p=0.0))])


@example("skbandit.evaluation.off_policy_blocks", UserWarning)
def _(folder):
    log = LOG.y.assign(p=LOG.y["propensity"], person=np.arange(200) % 5)
    off_policy_blocks("p", [(LOG.X, log)], groups="person")


@example("skbandit.evaluation.OffPolicyEstimate.interval", ValueError)
def _(folder):
    off_policy_value(np.full((200, 3), 1 / 3), LOG.X, LOG.y).interval(kind="sequence")


@example("skbandit.replay", exceptions.ReplayCoverageWarning)
def _(folder):
    replay(Always(0), LOG.X[:12], LOG.y[:12])


@example("skbandit.replay", UserWarning)
def _(folder):
    replay(Always(0), LOG.X, LOG.y, n_repeats=2)


@example("skbandit.evaluation.replay_blocks", ValueError)
def _(folder):
    replay_blocks(Always(0), [], acceptance=1 / 3)


@example("skbandit.evaluation.replay_blocks", exceptions.ReplayCoverageWarning)
def _(folder):
    replay_blocks(Always(0), [(LOG.X[:12], LOG.y[:12])], acceptance=1 / 3, arms=range(3))


@example("skbandit.evaluation.replay_blocks", UserWarning)
def _(folder):
    replay_blocks(Always(0), [(LOG.X, LOG.y)], acceptance=0.9, arms=range(3))


@example("skbandit.evaluation.replay_slates", exceptions.ReplayCoverageWarning)
def _(folder):
    replay_slates(SlatePolicy(n_select=2, random_state=0), np.zeros((4, 1)), SLATES[:4])


@example("skbandit.evaluation.replay_slates", UserWarning)
def _(folder):
    policy = SlatePolicy(n_select=2, random_state=0)
    replay_slates(policy, np.zeros((40, 1)), SLATES, groups=np.arange(40) % 5)


@example("skbandit.evaluation.ReplayResult.interval", ValueError)
def _(folder):
    replay(Always(0), LOG.X, LOG.y, groups=np.arange(200) // 2).interval(kind="sequence")


@example("skbandit.evaluation.slate_ips", exceptions.ReplayCoverageWarning)
def _(folder):
    slate_ips([[0, 1]] * 4, None, SLATES[:4])


@example("skbandit.evaluation.slate_pseudo_inverse", exceptions.ReplayCoverageWarning)
def _(folder):
    slate_pseudo_inverse([[0, 1]] * 4, None, SLATES[:4].assign(reward=1.0))


# --- policies and selectors --------------------------------------------------------------


@example("skbandit.bandit.select", AttributeError)
def _(folder):
    select(make_pipeline(StandardScaler(), StandardScaler()).fit(ROWS), ROWS)


@example("skbandit.SlatePolicy.select", ValueError)
def _(folder):
    SlatePolicy(GLMUCBPolicy(arms=["a", "b"]), n_select=2).select(ROWS[:1], available=[("a",)])


@example("skbandit.assign", ValueError)
def _(folder):
    assign(np.zeros((3, 2)), 1)


@example("skbandit.selection.logged_costs", ValueError)
def _(folder):
    logged_costs(["a", "b"], [-1.0, -1.0], [0.0, 0.5])


@example("skbandit.selection.logged_costs", UserWarning)
def _(folder):
    logged_costs(["a", "b"] * 250, [-1.0, 0.0] * 250, np.full(500, 0.1))


@example("skbandit.SetSelectClassifier.fit", ValueError)
def _(folder):
    SetSelectClassifier(n_select=3).fit(ROWS, rng.normal(size=(200, 2)))


# --- constrained classifiers -------------------------------------------------------------

IMPOSSIBLE = [positive_rate() >= 0.9, positive_rate() <= 0.1]


@example("skbandit.ConstrainedRampClassifier.fit", exceptions.InfeasibleConstraintsError)
def _(folder):
    ConstrainedRampClassifier(constraints=IMPOSSIBLE).fit(ROWS, LABELS)


@example("skbandit.ConstrainedRampClassifier.fit", exceptions.ConstrainedFitWarning)
def _(folder):
    ConstrainedRampClassifier(error_rate(), constraints=recall() >= 0.99).fit(ROWS, LABELS)


@example("skbandit.ConstrainedRampClassifier.fit", UserWarning)
def _(folder):
    copies = np.r_[np.arange(200), np.arange(20)]
    ConstrainedRampClassifier().fit(ROWS[copies], LABELS[copies])


@example("skbandit.ConstrainedPolicy.fit", exceptions.InfeasibleConstraintsError)
def _(folder):
    log = pd.DataFrame({"action": np.arange(200) % 2, "reward": 1.0 * LABELS, "propensity": 0.5})
    goals = [positive_rate(of=1) >= 0.9, positive_rate(of=1) <= 0.1]
    ConstrainedPolicy(None, None, goals).fit(ROWS, log)


@example("skbandit.ConstrainedPolicy.fit", UserWarning)
def _(folder):
    log = pd.DataFrame({"action": np.arange(200) % 2, "reward": 1.0 * LABELS, "propensity": 0.5})
    ConstrainedPolicy().fit(ROWS, log, groups=np.arange(200) % 5)


@example("skbandit.RampClassifier.fit", exceptions.InfeasibleConstraintsError)
def _(folder):
    RampClassifier(constraints=IMPOSSIBLE, solver="newton").fit(ROWS, LABELS)


@example("skbandit.RampClassifier.fit", ConvergenceWarning)
def _(folder):
    RampClassifier(constraints=recall() >= 0.9, solver="newton", max_iter=1).fit(ROWS, LABELS)


@example("skbandit.RampClassifier.fit", UserWarning)
def _(folder):
    """One binary feature: thresholds answer 0%, 50% or 100%, the ramp anything between."""
    column, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.arange(40) % 4 % 3 % 2
    goals = [positive_rate() >= 0.2, positive_rate() <= 0.3]
    RampClassifier(constraints=goals, alpha=1e-3, solver="newton").fit(column, y)


@example("skbandit.constrained.solvers.AugmentedLagrangianSolver.solve", SolverError)
def _(folder):
    AugmentedLagrangianSolver(max_iter=1).solve(random_problem(0, slack=0.0), np.inf, 1e-9)


@example("skbandit.constrained.solvers.CvxpySolver.solve", SolverError)
def _(folder):
    CvxpySolver().solve(tightened(random_problem(0), np.full(2, 10.0)), np.inf, 1e-8)


# --- rooms that promise no warning ----------------------------------------------------------


def warn_in_rates(folder):
    recall().value([0, 0], [0, 1])


def warn_in_datasets(folder):
    event = '{"_label_cost": -1, "_label_probability": 1, "_label_Action": 1, "a": [1], '
    event += '"p": [1], "c": {"x": 1.0, "_multi": [{"id": "a"}]}}'
    (folder / "log.json").write_text(f"{event}\nno event\n")
    list(read_vw_dsjson(folder / "log.json", malformed="skip"))


def warn_in_bandit(folder):
    GLMUCBPolicy().fit(ROWS, ["a", "b"] * 100)


def warn_in_selection(folder):
    SetSelectClassifier().fit(ROWS, pd.DataFrame({"a": LABELS > 1, "b": ROWS[:, 0] > 1.5}))


def warn_in_workers(folder):
    """Through a pipeline and joblib."""
    model = make_pipeline(StandardScaler(), GLMUCBPolicy())
    Parallel(1)(delayed(model.fit)(ROWS, LABELS) for _ in range(2))


# --- all promises ------------------------------------------------------------------------


def promises():
    """Pairs of what is called and what it is said to raise or to warn of."""
    for address, obj in CALLABLES.items():
        doc = ClassDoc(obj) if inspect.isclass(obj) else FunctionDoc(obj)
        for section in ("Raises", "Warns"):
            for entry in doc[section]:
                yield address, entry.type or entry.name


PROMISES = list(promises())


def test_each_promise_has_an_example():
    assert sorted(EXAMPLES) == sorted(PROMISES), "write an example of each promise into this file"


def named(name):
    """The class of an exception or warning."""
    for module in (builtins, exceptions, skbandit.constrained.solvers, sys.modules[__name__]):
        if hasattr(module, name):
            return getattr(module, name)
    raise NameError(f"{name} is neither built in nor in skbandit.exceptions")


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("address", "name"), PROMISES)
def test_a_promise_is_kept(address, name, tmp_path):
    """Warnings of the very class, at the line of the call."""
    promised, call = named(name), EXAMPLES[address, name]
    if not issubclass(promised, Warning):
        with pytest.raises(promised):
            call(tmp_path)
        return
    with pytest.warns(promised) as caught:
        call(tmp_path)
    places = {one.filename for one in caught if one.category is promised}
    assert places == {__file__}


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    "call", [warn_in_rates, warn_in_datasets, warn_in_bandit, warn_in_selection, warn_in_workers]
)
def test_a_warning_points_at_the_line_of_the_user(call, tmp_path):
    with pytest.warns() as caught:
        call(tmp_path)
    lines, first = inspect.getsourcelines(call)
    for one in caught:
        assert one.filename == __file__
        assert first < one.lineno < first + len(lines)


@pytest.mark.thorough
def test_nobody_counts_frames():
    """`warn` of utils finds the line of the user."""
    counted = []
    for path in Path(skbandit.__file__).parent.rglob("*.py"):
        if path.parts[-2:] == ("utils", "_validation.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (
                ast.unparse(node.func).startswith("warnings.warn")
                or any(word.arg == "stacklevel" for word in node.keywords)
            ):
                counted.append(f"{path}:{node.lineno}")
    assert not counted, "warn by skbandit.utils._validation.warn"
