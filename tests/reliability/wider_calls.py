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
from skbandit.inspection import ArmSharesDisplay, ConstraintReportDisplay, ReplayDisplay
from tests.reliability.public_calls import (
    GOALS,
    GROUP,
    LABEL,
    LOG,
    OWN_X,
    WEIGHT,
    N,
    called_with,
    fitted_policy,
)

# As an input, `...` stands for something that is built on first use.
TABLE = OWN_X.join(LOG).assign(chance=0.5)
BY_COLUMN = [TABLE]
"""Tables whose columns are replaced one by one, too."""
_FOLDER = tempfile.TemporaryDirectory()  # gone with the process

CALLS = []
_LOGGED = {"X": OWN_X, "y": LOG}
_LABELED = {"X": OWN_X, "y": LABEL, "attributes": GROUP, "sample_weight": WEIGHT}

# --- a log in two blocks, the second one given -----------------------------------------------


@called_with(
    CALLS,
    {
        **_LOGGED,
        "acceptance": 0.3,
        "arms": range(3),
        "deployment_share": 0.25,
        "max_accepted": 1000,
    },
)
def replayed_in_blocks(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    result = replay_blocks(own, [(OWN_X, LOG), (X, y)], random_state=0, **options)
    return [result.mean_reward, result.n_accepted]


@called_with(
    CALLS, {**_LOGGED, "blocks": ..., "arms": range(3), "reward_model": ..., "rule": "select"}
)
def judged_in_blocks(X, y, blocks, reward_model, **options):
    blocks = [(OWN_X, LOG), (X, y)] if blocks is ... else blocks
    reward_model = fitted_policy() if reward_model is ... else reward_model
    return _values(off_policy_blocks(fitted_policy(), blocks, reward_model=reward_model, **options))


@called_with(CALLS, {"table": TABLE, "policy": "chance", "features": ["a", "b", "c"]})
def judged_tables(table, policy, features):
    return _values(off_policy_blocks(policy, [TABLE, table], features=features))


def _values(estimates):
    return [estimate.mean_reward for estimate in estimates.values()]


@called_with(CALLS, {"source": ..., "features": ["a"], "names": None, "block_size": 25}, "pyarrow")
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


@called_with(CALLS, {**_LABELED, "bounds": [0.5, 0.6], "constraint": 0})
def path(X, y, attributes, sample_weight, **options):
    clf = ConstrainedRampClassifier(constraints=GOALS, solver="newton")
    found = constraint_path(
        clf, X, y, attributes=attributes, sample_weight=sample_weight, **options
    )
    return found.table.drop(columns="seconds").to_numpy(dtype=float)


@called_with(CALLS, {**_LABELED, "confidence_level": 0.9})
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


@called_with(CALLS, {"y": LOG, "timestamp": np.arange(N), "arms": [0, 1]}, "matplotlib")
def shares_of_log(y, **options):
    return drawn(ArmSharesDisplay.from_log, y, **options).shares


@called_with(CALLS, {**_LOGGED, "subsample": 0.5, "arms": [0, 1]}, "matplotlib")
def shares_of_replay(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    return drawn(
        ArmSharesDisplay.from_estimator, own, X, y, n_repeats=2, random_state=0, **options
    ).shares


@functools.cache
def _result():
    return replay(GLMUCBPolicy(), OWN_X, LOG, n_repeats=2, subsample=0.5, random_state=0)


@called_with(CALLS, {"result": ..., "arms": [0, 1]}, "matplotlib")
def shares_of_result(result, arms):
    result = _result() if result is ... else result
    return drawn(ArmSharesDisplay.from_result, result, arms=arms).shares


@called_with(CALLS, {**_LOGGED, "confidence_level": 0.9, "name": "own"}, "matplotlib")
def curves_of_replay(X, y, **options):
    own = GLMUCBPolicy(random_state=0)
    display = drawn(ReplayDisplay.from_estimator, own, X, y, n_repeats=2, random_state=0, **options)
    return display.curves["mean_reward"]


@called_with(CALLS, {"result": ..., "confidence_level": 0.9}, "matplotlib")
def curves_of_result(result, confidence_level):
    result = {"own": _result()} if result is ... else result
    display = drawn(ReplayDisplay.from_result, result, confidence_level=confidence_level)
    return display.curves["mean_reward"]


@called_with(CALLS, {**_LABELED, "confidence_level": 0.9}, "matplotlib")
def report_of_classifier(X, y, attributes, sample_weight, confidence_level):
    display = drawn(
        ConstraintReportDisplay.from_estimator, _path().estimators[0], X, y,
        attributes=attributes, sample_weight=sample_weight, confidence_level=confidence_level,
    )  # fmt: skip
    return display.report["value"]
