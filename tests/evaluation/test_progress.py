"""Long replays tell how far they are, where they are asked to, and decide the same."""

import re

import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from skbandit.inspection import ReplayDisplay

LOG = make_bandit_log(2000, n_arms=4, n_features=2, base_rate=0.2, random_state=0)
THRICE = {"subsample": 0.5, "n_repeats": 3, "random_state": 0}


def test_verbose_is_a_line_a_run(capsys):
    told = replay(GLMUCBPolicy(), LOG.X, LOG.y, **THRICE, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for k, (line, n_accepted) in enumerate(zip(lines, told.runs["n_accepted"], strict=True)):
        assert re.fullmatch(
            rf"\[replay\] run {k + 1} of 3: kept {n_accepted} of 1,000 events, \d+\.\d s", line
        )
    quiet = replay(GLMUCBPolicy(), LOG.X, LOG.y, **THRICE)
    assert capsys.readouterr().out == ""
    pd.testing.assert_frame_equal(told.history, quiet.history)


def test_displays_pass_it_on(capsys):
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed").switch_backend(
        "Agg"
    )
    ReplayDisplay.from_estimator(
        GLMUCBPolicy(), LOG.X, LOG.y, n_repeats=2, random_state=0, verbose=1
    ).figure_.clear()
    assert len(capsys.readouterr().out.splitlines()) == 2
