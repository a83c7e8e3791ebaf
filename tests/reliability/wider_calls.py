"""More public calls: logs in blocks and in files, paths over a bound, and displays."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy
from skbandit.constrained import constraint_path
from skbandit.datasets import read_parquet_log
from skbandit.evaluation import off_policy_blocks, replay, replay_blocks
from skbandit.inspection import (
    ArmSharesDisplay,
    ConstraintReportDisplay,
    ReplayDisplay,
    TradeoffDisplay,
)
from tests.reliability.public_calls import (
    GOALS,
    GROUP,
    LABEL,
    LOG,
    OWN_X,
    WEIGHT,
    N,
    PublicCall,
    fitted_policy,
)

# As an input, `...` stands for something that is built on first use.
TABLE = OWN_X.join(LOG).assign(chance=0.5)
SHARES = pd.DataFrame({"u": [0.5, 0.25], "v": [0.5, 0.75]}).set_axis(
    pd.IntervalIndex.from_breaks([1, 9, 18], closed="left")
)
CURVES = pd.DataFrame(
    {"policy": "own", "bucket": "learning", "horizon": [1, 2], "mean_reward": [0.3, 0.5],
     "low": 0.2, "high": 0.9, "logged_mean": 0.4}
)  # fmt: skip
REPORT = pd.DataFrame(
    {"constraint": ["recall() >= 0.5", "error_rate() <= 0.1"], "n_rows": 9, "bound": [0.5, 0.1],
     "value": [0.6, 0.2], "slack": [0.1, -0.1], "satisfied": [True, False],
     "ci_low": [0.4, 0.1], "ci_high": [0.8, 0.3]}
)  # fmt: skip
PATH = pd.DataFrame(
    {"bound": [0.5, 0.6], "value": [0.6, 0.7], "objective": [0.1, 0.2], "feasible": [True, False]}
)
MEASURED = PATH.assign(objective_low=0.05, objective_high=0.3).drop(columns="feasible")
_FOLDER = tempfile.TemporaryDirectory()  # gone with the process
# Tables whose columns are replaced one by one, too.
BY_COLUMN = [TABLE, SHARES, CURVES, REPORT, PATH, MEASURED]

# --- a log in two blocks, the second one given -----------------------------------------------


def replayed_in_blocks(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    result = replay_blocks(own, [(OWN_X, LOG), (X, y)], random_state=0, **options)
    return [result.mean_reward, result.n_accepted]


def judged_in_blocks(X, y, blocks, reward_model, **options):
    blocks = [(OWN_X, LOG), (X, y)] if blocks is ... else blocks
    reward_model = fitted_policy() if reward_model is ... else reward_model
    return _values(off_policy_blocks(fitted_policy(), blocks, reward_model=reward_model, **options))


def judged_tables(table, policy, features):
    return _values(off_policy_blocks(policy, [TABLE, table], features=features))


def _values(estimates):
    return [estimate.mean_reward for estimate in estimates.values()]


def parquet_log(source, features, names, block_size):
    source = _parquet() if source is ... else source
    blocks = list(read_parquet_log(source, features, names=names, block_size=block_size))
    y = pd.concat([block.y for block in blocks])
    return [len(y), y["reward"].sum(), sum(block.X.shape[1] for block in blocks)]


@functools.cache
def _parquet():
    place = Path(_FOLDER.name, "log.parquet")
    TABLE.to_parquet(place)
    return place


# --- paths ---------------------------------------------------------------------------------------


def path(X, y, attributes, sample_weight, **options):
    clf = ConstrainedRampClassifier(constraints=GOALS, solver="newton")
    found = constraint_path(
        clf, X, y, attributes=attributes, sample_weight=sample_weight, **options
    )
    return found.table.drop(columns="seconds").to_numpy(dtype=float)


def path_measured(X, y, attributes, sample_weight, confidence_level):
    told = {"attributes": attributes, "sample_weight": sample_weight}
    table = _path().measure(X, y, **told, confidence_level=confidence_level)
    return table["objective"]


@functools.cache
def _path():
    clf = ConstrainedRampClassifier(constraints=GOALS, solver="newton")
    return constraint_path(clf, OWN_X, LABEL, attributes=GROUP, bounds=[0.5, 0.6], constraint=0)


# --- pictures ------------------------------------------------------------------------------------


def drawn(make, *args, **options):
    """A display that is drawn to the end; nothing is on the axes where it is refused."""
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    try:
        display = make(*args, ax=axes, **options)
    except Exception:
        assert not axes.has_data(), "half a picture"
        raise
    axes.figure.canvas.draw()
    return display


def shares_of_log(y, **options):
    return drawn(ArmSharesDisplay.from_log, y, **options).shares


def shares_of_replay(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    return drawn(
        ArmSharesDisplay.from_estimator, own, X, y, n_repeats=2, random_state=0, **options
    ).shares


@functools.cache
def _result():
    return replay(GLMUCBPolicy(), OWN_X, LOG, n_repeats=2, subsample=0.5, random_state=0)


def shares_of_result(result, arms):
    result = _result() if result is ... else result
    return drawn(ArmSharesDisplay.from_result, result, arms=arms).shares


def shares_plotted(shares, label, arms):
    return len(drawn(ArmSharesDisplay(shares, label=label).plot, arms=arms).areas_)


def curves_of_replay(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    display = drawn(ReplayDisplay.from_estimator, own, X, y, n_repeats=2, random_state=0, **options)
    return display.curves["mean_reward"]


def curves_of_result(result, confidence_level):
    result = {"own": _result()} if result is ... else result
    display = drawn(ReplayDisplay.from_result, result, confidence_level=confidence_level)
    return display.curves["mean_reward"]


def curves_plotted(curves, line_kw):
    return len(drawn(ReplayDisplay(curves).plot, line_kw=line_kw).lines_)


def report_of_classifier(X, y, attributes, sample_weight, confidence_level):
    display = drawn(
        ConstraintReportDisplay.from_estimator, _path().estimators[0], X, y,
        attributes=attributes, sample_weight=sample_weight, confidence_level=confidence_level,
    )  # fmt: skip
    return display.report["value"]


def report_plotted(report):
    return len(drawn(ConstraintReportDisplay.from_report, report).ax_.get_yticks())


def tradeoff_of_path(path, test, x, line_kw):
    path = _path() if path is ... else path
    return len(drawn(TradeoffDisplay.from_path, path, test, x=x, line_kw=line_kw).lines_)


def tradeoff_plotted(train, test, label, sense, objective_label):
    options = {"label": label, "sense": sense, "objective_label": objective_label}
    return len(drawn(TradeoffDisplay(train, test, **options).plot).lines_)


_LOGGED = {"X": OWN_X, "y": LOG}
_LABELED = {"X": OWN_X, "y": LABEL, "attributes": GROUP, "sample_weight": WEIGHT}

CALLS = [
    PublicCall(
        "replayed_in_blocks",
        replayed_in_blocks,
        {
            **_LOGGED,
            "acceptance": 0.3,
            "arms": range(3),
            "deployment_share": 0.25,
            "max_accepted": 1000,
        },
    ),
    PublicCall(
        "judged_in_blocks",
        judged_in_blocks,
        {**_LOGGED, "blocks": ..., "arms": range(3), "reward_model": ..., "rule": "select"},
    ),
    PublicCall(
        "judged_tables",
        judged_tables,
        {"table": TABLE, "policy": "chance", "features": ["a", "b", "c"]},
    ),
    PublicCall(
        "parquet_log",
        parquet_log,
        {"source": ..., "features": ["a"], "names": None, "block_size": 25},
        "pyarrow",
    ),
    PublicCall("path", path, {**_LABELED, "bounds": [0.5, 0.6], "constraint": 0}),
    PublicCall("path_measured", path_measured, {**_LABELED, "confidence_level": 0.9}),
    *(
        PublicCall(call.__name__, call, inputs, "matplotlib")
        for call, inputs in [
            (shares_of_log, {"y": LOG, "timestamp": np.arange(N), "arms": [0, 1]}),
            (shares_of_replay, {**_LOGGED, "subsample": 0.5, "arms": [0, 1]}),
            (shares_of_result, {"result": ..., "arms": [0, 1]}),
            (shares_plotted, {"shares": SHARES, "label": "event", "arms": ["u"]}),
            (curves_of_replay, {**_LOGGED, "confidence_level": 0.9, "name": "own"}),
            (curves_of_result, {"result": ..., "confidence_level": 0.9}),
            (curves_plotted, {"curves": CURVES, "line_kw": {"color": "red"}}),
            (report_of_classifier, {**_LABELED, "confidence_level": 0.9}),
            (report_plotted, {"report": REPORT}),
            (tradeoff_of_path, {"path": ..., "test": MEASURED, "x": "value", "line_kw": None}),
            (
                tradeoff_plotted,
                {
                    "train": PATH,
                    "test": MEASURED,
                    "label": "recall()",
                    "sense": ">=",
                    "objective_label": "error_rate()",
                },
            ),
        ]
    ),
]
