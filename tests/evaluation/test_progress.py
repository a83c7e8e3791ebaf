"""Long replays tell how far they are, where they are asked to, and decide the same."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from skbandit.evaluation._replay import _engine
from skbandit.inspection import ReplayDisplay
from skbandit.utils._fitting import iter_with_progress

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


class AlwaysOne:
    """Played event by event, as it learns (nothing)."""

    def select(self, X, *, available=None):
        return np.ones(len(X), dtype=int)

    def partial_fit(self, X, y):
        return self


def test_a_generic_pass_reports_its_share(capsys, monkeypatch):
    monkeypatch.setattr(_engine, "iter_with_progress", partial(iter_with_progress, every=0.0))
    told = replay(AlwaysOne(), LOG.X[:50], LOG.y[:50], random_state=0, verbose=1)
    *during, last = capsys.readouterr().out.splitlines()
    shares = [
        int(re.fullmatch(r"\[replay\] run 1 of 1: (\d+)% of the log, \d+\.\d s", line)[1])
        for line in during
    ]
    assert shares == sorted(shares) and shares[-1] == 100 and len(shares) > 10
    assert "kept" in last
    quiet = replay(AlwaysOne(), LOG.X[:50], LOG.y[:50], random_state=0)
    assert capsys.readouterr().out == ""
    pd.testing.assert_frame_equal(told.history, quiet.history)


def test_progress_is_reported_by_time(monkeypatch):
    seconds = iter([0.0, 4.0, 8.0, 12.0, 13.0, 21.0, 23.0])
    monkeypatch.setattr("skbandit.utils._fitting.time.perf_counter", lambda: next(seconds))
    shares = []
    assert [*iter_with_progress(range(6), shares.append, every=10.0)] == [0, 1, 2, 3, 4, 5]
    assert shares == [3 / 6, 6 / 6]


def test_displays_pass_it_on(capsys):
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed").switch_backend(
        "Agg"
    )
    ReplayDisplay.from_estimator(
        GLMUCBPolicy(), LOG.X, LOG.y, n_repeats=2, random_state=0, verbose=1
    ).figure_.clear()
    assert len(capsys.readouterr().out.splitlines()) == 2
