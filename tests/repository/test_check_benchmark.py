"""The check of speed fails where time grew, and its reference is the same algorithm."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks import _kept, check
from skbandit.bandit import GLMUCBPolicy

KEPT = pd.DataFrame({"ratio": ["a", "b"], "value": [2.0, 0.5]})


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Set what is measured now; KEPT is what is kept."""
    monkeypatch.setattr(_kept, "RESULTS", tmp_path)
    _kept.keep("check", KEPT, 1.0)
    monkeypatch.setattr(check, "in_fresh_process", lambda row, name, size: row(name, size))

    def set_ratios(**ratios):
        monkeypatch.setattr(check, "RATIOS", {k: lambda size, v=v: v for k, v in ratios.items()})

    return set_ratios


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("now", "failing"),
    [
        ({"a": 2.0, "b": 0.5}, ""),
        ({"a": 2.99, "b": 0.1}, ""),
        ({"a": 3.01, "b": 0.5}, "a"),
        ({"a": 2.0, "b": 0.76}, "b"),
        ({"a": math.nan, "b": 0.5}, "a"),
        ({"a": 2.0, "b": 0.5, "c": 1.0}, "c"),  # nothing is known of it
    ],
)
def test_a_ratio_half_as_much_again_fails(now, failing, measured, capsys):
    measured(**now)
    assert check.main([]) == bool(failing)
    notes = [line["ratio"] for line in check.rows() if line.get("note")]
    assert notes == [*failing]
    assert "Ratios" in capsys.readouterr().out


@pytest.mark.thorough
def test_what_cannot_be_measured_fails_and_is_not_kept(measured, monkeypatch, capsys):
    measured(a=2.0, b=0.5)
    died = {"note": "the process died: out of memory?"}
    monkeypatch.setattr(check, "in_fresh_process", lambda row, name, size: died)
    assert check.main([]) == 1
    assert check.main(["--keep"]) == 1
    pd.testing.assert_frame_equal(_kept.results("check"), KEPT)
    assert "a; b" in capsys.readouterr().out


@pytest.mark.thorough
def test_todays_ratios_are_kept(measured, monkeypatch):
    pages = []
    monkeypatch.setattr("benchmarks._page_tables.write_pages", lambda: pages.append(1))
    measured(a=7.0)
    assert check.main(["--keep"]) == 0
    assert _kept.results("check").to_numpy().tolist() == [["a", 7.0]]
    assert pages and check.main([]) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("name", check.RATIOS)
def test_ratios(name):
    assert 0 < check.row(name, 0.02)["now"] < math.inf


@pytest.mark.thorough
def test_the_bare_loop_learns_what_the_policy_learns():
    """One arm: all events are accepted, and no tie is broken."""
    from benchmarks._bare_replay import bare_replay

    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.normal(size=(300, 3)) * [1.0, 10.0, 0.1]])
    actions, rewards = np.zeros(300, dtype=int), (rng.random(300) < 0.3).astype(float)
    policy = GLMUCBPolicy(
        prior_variance=1.0, standardize=False, alpha=1.0, fit_intercept=False, arms=[0]
    ).fit(X, actions, reward=rewards)
    n_accepted, earned, means, variances = bare_replay(X, actions, rewards, 1, 1.0)
    assert (n_accepted, earned) == (300, rewards.sum())
    np.testing.assert_allclose(means, policy.coef_, rtol=1e-8)
    np.testing.assert_allclose(variances, policy.covariance_, rtol=1e-8)


@pytest.mark.thorough
def test_the_bare_loop_accepts_what_it_would_have_chosen():
    """Chosen by a policy of before: the arm of the largest upper bound, the first at a tie."""
    from benchmarks._bare_replay import bare_replay

    rng = np.random.default_rng(1)
    X, actions = rng.normal(size=(200, 2)), rng.integers(3, size=200)
    rewards = (rng.random(200) < 0.5).astype(float)
    seen = 0
    for t in range(200):
        before, _, means, variances = bare_replay(X[:t], actions[:t], rewards[:t], 3, 0.7)
        upper = means @ X[t] + 0.7 * np.sqrt(variances @ X[t] ** 2)
        after, *_ = bare_replay(X[: t + 1], actions[: t + 1], rewards[: t + 1], 3, 0.7)
        assert after - before == (upper.argmax() == actions[t])
        seen += after - before
    assert 40 < seen < 100
