"""A policy that records its own log, and the progress that replays report."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.bandit import OraclePolicy, SharedGLMPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_value, replay
from skbandit.evaluation._replay import _engine
from skbandit.utils._fitting import iter_with_progress
from tests.tiers import first
from tests.worlds import warns

# === A policy evaluated on the very log that it was fitted to: a warning, and none otherwise ====

LOG = make_bandit_log(600, n_arms=3, base_rate=0.3, random_state=0)
X, Y = LOG.X, LOG.y[["action", "reward"]]

POLICIES = {
    "arms": (GLMUCBPolicy(random_state=0), X),
    "array": (GLMUCBPolicy(random_state=0), X.to_numpy()),
    "sparse": (GLMUCBPolicy(random_state=0), csr_array(X)),
    "shared": (SharedGLMPolicy(random_state=0), X),
    "pipeline": (make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)), X),
    "oracle": (OraclePolicy(Ridge(), random_state=0), X),
}
WARM = ReplayScorer(start="fitted", random_state=0)
EVALUATIONS = {
    "replay": lambda policy, X, y: replay(policy, X, y, random_state=0),
    "fixed": lambda policy, X, y: replay(policy, X, y, learn=False, random_state=0),
    "snips": lambda policy, X, y: off_policy_value(policy, X, y, rule="predict"),
    "warm": lambda policy, X, y: WARM(policy, X, y),
}


@pytest.mark.parametrize("name", first(5, POLICIES))
@pytest.mark.parametrize("evaluation", first(2, EVALUATIONS))
def test_its_own_log(name, evaluation):
    policy, contexts = POLICIES[name]
    policy = clone(policy).fit(contexts, Y)
    evaluate = EVALUATIONS[evaluation]
    warns("fitted to this very log.*clone", evaluate, policy, contexts, Y)


@pytest.mark.parametrize("name", first(5, POLICIES))
@pytest.mark.parametrize("evaluation", first(1, EVALUATIONS))
def test_other_logs(name, evaluation):
    policy, contexts = POLICIES[name]
    evaluate, fitted = EVALUATIONS[evaluation], clone(policy).fit(contexts[:300], Y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(fitted, contexts[300:], Y[300:])
        evaluate(fitted, contexts[:300], Y[:300].assign(reward=1 - Y["reward"][:300]))
        evaluate(fitted, contexts[:300], Y[:300].assign(action=Y["action"][:300].to_numpy()[::-1]))
        cold = ReplayScorer(random_state=0)
        cold(clone(policy).fit(contexts, Y), contexts, Y)


def test_a_later_fit_replaces_the_log_and_contexts_may_say_nothing():
    nothing = np.zeros((600, 1))
    policy = GLMUCBPolicy(random_state=0).fit(nothing[:300], Y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replay(policy, nothing[300:], Y[300:], random_state=0)
        replay(clone(policy), nothing[:300], Y[:300], random_state=0)
        policy.fit(nothing[300:], Y[300:])
        replay(policy, nothing[:300], Y[:300], random_state=0)
    policy.partial_fit(nothing[:300], Y[:300])
    warns("fitted to this very log", replay, policy, nothing[300:], Y[300:], random_state=0)


# === Long replays tell how far they are, where they are asked to, and decide the same ===========

LOG_PROGRESS = make_bandit_log(2000, n_arms=4, n_features=2, base_rate=0.2, random_state=0)
THRICE = {"subsample": 0.5, "n_repeats": 3, "random_state": 0}


def test_verbose_is_a_line_a_run(capsys):
    told = replay(GLMUCBPolicy(), LOG_PROGRESS.X, LOG_PROGRESS.y, **THRICE, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for k, (line, n_accepted) in enumerate(zip(lines, told.runs["n_accepted"], strict=True)):
        assert re.fullmatch(
            rf"\[replay\] run {k + 1} of 3: kept {n_accepted} of 1,000 events, \d+\.\d s", line
        )
    quiet = replay(GLMUCBPolicy(), LOG_PROGRESS.X, LOG_PROGRESS.y, **THRICE)
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
    told = replay(AlwaysOne(), LOG_PROGRESS.X[:50], LOG_PROGRESS.y[:50], random_state=0, verbose=1)
    *during, last = capsys.readouterr().out.splitlines()
    shares = [
        int(re.fullmatch(r"\[replay\] run 1 of 1: (\d+)% of the log, \d+\.\d s", line)[1])
        for line in during
    ]
    assert shares == sorted(shares) and shares[-1] == 100 and len(shares) > 10
    assert "kept" in last
    quiet = replay(AlwaysOne(), LOG_PROGRESS.X[:50], LOG_PROGRESS.y[:50], random_state=0)
    assert capsys.readouterr().out == ""
    pd.testing.assert_frame_equal(told.history, quiet.history)


def test_progress_is_reported_by_time(monkeypatch):
    seconds = iter([0.0, 4.0, 8.0, 12.0, 13.0, 21.0, 23.0])
    monkeypatch.setattr("skbandit.utils._fitting.time.perf_counter", lambda: next(seconds))
    shares = []
    assert [*iter_with_progress(range(6), shares.append, every=10.0)] == [0, 1, 2, 3, 4, 5]
    assert shares == [3 / 6, 6 / 6]
