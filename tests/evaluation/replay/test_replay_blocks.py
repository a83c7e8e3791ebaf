"""replay_blocks decides as replay does on the whole log, however it is cut."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay, replay_blocks
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import PAPER, Always, EpsilonGreedy
from tests.tiers import examples, first

pl = pytest.importorskip("polars", reason="polars is not installed")

few = pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")


class OneByOne(GLMUCBPolicy):
    """The same policy; as a subclass it is not known to decide alike, so it takes no short cut."""

    def select(self, X, *, available=None):
        return super().select(X, available=available)


def cut(X, y, *places):
    """Blocks of a log, which ends at these places."""
    edges = [0, *sorted(places), len(y)]
    return [(X[a:b], y[a:b]) for a, b in pairwise(edges)]


def changing_log(n=900):
    """Arms arrive and retire, propensities vary, and many arms are equals."""
    log = make_bandit_log(n, n_arms=8, n_features=3, n_available=4, base_rate=0.3, random_state=0)
    y = log.y.copy()
    y["propensity"] = np.random.default_rng(1).choice([0.2, 0.25, 0.5], n)
    return (log.X.to_numpy() > 0).astype(float), y


def assert_same(one, other):
    pd.testing.assert_frame_equal(one.history, other.history, check_dtype=False)
    pd.testing.assert_frame_equal(one.runs, other.runs)
    if (
        one.metadata.totals.rewards.n < other.metadata.totals.rewards.n
    ):  # it ended before the last block
        return
    for name in ("logged_mean", "standard_error", "lift", "efficiency"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12), name


SETTINGS = {
    "default": {},
    "seed drawn": {"random_state": None},
    "full": {"covariance": "full"},
    "epsilon": {"exploration": "epsilon_greedy", "epsilon": 0.3},
    "thompson": {"exploration": "thompson", "covariance": "full"},
    "greedy": {"exploration": "greedy"},
    "adaptive": {"prior_mean": "adaptive", "prior_variance": "adaptive"},
    "arms known": {"arms": [7, 5, 3, 1], "prior_mean": "adaptive"},
    "forgetting": {"forgetting": 0.97},
    "growing": {"alpha": np.log1p},
    "waiting": {"update_every": 500.0},
    "waiting long": {"update_every": 20_000.0, "prior_mean": "adaptive"},
}


@few
@pytest.mark.parametrize(
    "options",
    first(
        1,
        [{"deployment_share": 0.3, "max_accepted": 60}, {}, {"rule": "predict"}, {"learn": False}],
    ),
    ids=str,
)
@pytest.mark.parametrize("told", first(8, SETTINGS))
def test_blocks_are_the_whole(told, options):
    X, y = changing_log()
    policy = GLMUCBPolicy(**{"random_state": 3} | SETTINGS[told])
    whole = replay(policy, X, y, random_state=1, **options)
    assert whole.n_accepted > 20
    for places in ([1, 2, 100, 101, 400, 899], range(50, 900, 50)):
        options["acceptance"] = 0.2
        parts = replay_blocks(policy, cut(X, y, *places), random_state=1, **options)
        assert_same(parts, whole)


@few
@given(
    places=st.lists(st.integers(1, 299), unique=True, max_size=20),
    every=st.sampled_from([None, 300.0, 3000.0]),
    learned=st.integers(0, 60),
)
@examples(25)
def test_any_cut_and_any_start(places, every, learned):
    X, y = changing_log(400)
    policy = GLMUCBPolicy(random_state=0, update_every=every, exploration="thompson")
    if learned:
        policy.fit(X[:learned], y[:learned])
    X, y = X[100:], y[100:]
    whole = replay(policy, X, y, random_state=0)
    parts = replay_blocks(policy, cut(X, y, *places), acceptance=0.2, random_state=0)
    assert_same(parts, whole)


@pytest.mark.thorough
@few
@pytest.mark.parametrize(
    "told", first(2, ["default", "waiting", "thompson", "growing", "adaptive"])
)
def test_the_compiled_pass_leaves_what_was_learned(told, monkeypatch):
    """The copy that was replayed is as if it had chosen and learned event by event."""
    from skbandit.evaluation._replay import _engine as module

    X, y = changing_log()
    begun = []
    monkeypatch.setattr(
        module, "prepared_copy", lambda policy, streams, keep_seed: begun.append(policy) or policy
    )
    for kind in (GLMUCBPolicy, OneByOne):
        policy = kind(**{"random_state": 3} | SETTINGS[told])
        replay_blocks(policy, cut(X, y, 300), acceptance=0.2, random_state=0)
    fast, slow = begun
    for _ in range(2):  # before and after it learned what waits
        assert fast.arms_.tolist() == slow.arms_.tolist()
        for name in ("coef_", "covariance_", "n_updates_"):
            np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
        np.testing.assert_array_equal(fast.select(X[:50]), slow.select(X[:50]))
        fast.advance()
        slow.advance()


@pytest.mark.parametrize("deployment_share", [0.0, 0.3])
def test_any_policy(deployment_share):
    X, y = changing_log(600)
    options = {"deployment_share": deployment_share, "random_state": 2}
    for policy in (EpsilonGreedy(0.3), EpsilonGreedy(0.3, None)):
        whole = replay(policy, X, y, **options)
        assert_same(replay_blocks(policy, cut(X, y, 10, 200), acceptance=0.2, **options), whole)
    if deployment_share:
        parts = replay_blocks(policy, cut(X, y, 10, 200), acceptance=0.2, **options)
        assert parts.deployment.n_accepted > 10


def test_arms_of_the_log():
    """Where nothing says what was available, every arm is, also before it was logged."""
    log = make_bandit_log(3000, n_arms=3, random_state=0)
    first = log.y["action"].to_numpy() != 2
    order = np.r_[np.flatnonzero(first), np.flatnonzero(~first)]  # arm 2 in the end only
    X, y = log.X.iloc[order], log.y.drop(columns="timestamp").iloc[order]
    policy = GLMUCBPolicy(random_state=0, **PAPER)
    parts = cut(X, y, 500, 1500)
    with pytest.warns(ReplayCoverageWarning, match="for any policy"):
        whole = replay(policy, X, y)
    with pytest.warns(ReplayCoverageWarning, match="for any policy"):
        assert_same(replay_blocks(policy, parts, acceptance=1 / 3, arms=[2, 0, 1]), whole)
    with pytest.raises(ValueError, match=r"pass them as arms=\[...\]"):
        replay_blocks(policy, parts, acceptance=1 / 3)
    with pytest.raises(ValueError, match=r"arms that are not in arms=: \[2\]") as caught:
        replay_blocks(policy, parts, acceptance=1 / 3, arms=[0, 1])
    assert caught.value.__notes__ == ["In block 2, counted from 0."]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the policy has learned an event")
def test_behind_transformers_and_forms_of_blocks():
    log = make_bandit_log(800, n_arms=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    pipeline.fit(log.X[::-1], log.y[::-1].drop(columns="timestamp", errors="ignore"))
    whole = replay(pipeline, log.X, log.y)
    table = pd.concat([log.X, log.y], axis=1)
    names = list(log.X.columns)
    options = {"acceptance": 1 / 3, "arms": range(3)}
    assert_same(replay_blocks(pipeline, cut(log.X, log.y, 399), **options), whole)
    frames = (table[a : a + 400] for a in range(0, 1200, 400))  # the last is empty
    assert_same(replay_blocks(pipeline, frames, features=names, **options), whole)
    assert pipeline[-1].n_updates_.sum() == 800  # a copy was replayed
    policy = EpsilonGreedy()
    slices = pl.DataFrame(table.to_dict("list")).iter_slices(300)
    whole = replay(policy, log.X, log.y)
    assert_same(replay_blocks(policy, slices, features=names, **options), whole)


@few
def test_no_block_is_read_after_the_last_event():
    X, y = changing_log()
    read = []

    def blocks():
        for number, block in enumerate(cut(X, y, *range(100, 900, 100))):
            read.append(number)
            yield block

    options = {"max_accepted": 30, "random_state": 0}
    result = replay_blocks(EpsilonGreedy(), blocks(), acceptance=0.2, **options)
    assert result.n_accepted == 30
    whole = replay(EpsilonGreedy(), X, y, **options)
    assert result.n_events == whole.n_events
    assert read == list(range(result.n_events // 100 + 1))


def test_warnings_are_of_the_whole():
    X, y = changing_log(600)
    with pytest.warns(UserWarning, match=r"acceptance=0.25 is above .* \(smallest: 0.2\)") as seen:
        parts = replay_blocks(EpsilonGreedy(), cut(X, y, 100, 300), acceptance=0.25)
    assert seen[0].filename == __file__
    assert "(biased: above" in repr(parts)
    clipped = (y["propensity"] < 0.25).mean()
    assert parts.metadata.clipped == pytest.approx(clipped)

    class Never(Always):
        def select(self, X, *, available=None):
            return super().select(X, available=[(99,)] * len(X))

    with pytest.warns() as seen:
        replay_blocks(Never(99), cut(X, y, 100, 300), acceptance=0.2)
    own = [one for one in seen if one.category is ReplayCoverageWarning]
    assert {one.filename for one in own} == {__file__}
    assert "none of 600 events kept" in str(own[-1].message)


@pytest.mark.parametrize(
    ("blocks", "options", "error", "message"),
    [
        ([], {}, ValueError, "blocks contains no event"),
        (3, {}, TypeError, r"blocks must be an iterable of blocks, got int: for a single block"),
        (pd.DataFrame(), {}, TypeError, r"got DataFrame: for a single block, pass \[block\]"),
        ([3], {}, TypeError, r"a block must be a table, a pair \(X, y\), .* got int"),
        (None, {"acceptance": None}, ValueError, "acceptance must be a number"),
        (None, {"acceptance": 2}, ValueError, r"acceptance must be None or in \(0, 1\]"),
        (None, {"rule": "best"}, ValueError, "rule must be"),
        ("no propensity", {}, ValueError, "needs a column 'propensity'"),
        ("table", {}, ValueError, r"name their columns, features=\[...\]"),
        (
            "table",
            {"features": ["x9"]},
            ValueError,
            "features contains 'x9', which is not a column",
        ),
        ("table", {"features": "x9"}, TypeError, "features must be a list of labels, got 'x9'"),
        ("table", {"arms": "abc"}, TypeError, "arms must be a list of labels, got 'abc'"),
        (np.array(1.0), {}, TypeError, r"blocks must be an iterable of blocks, got ndarray"),
        ([pd.DataFrame], {}, TypeError, r"a block must be a table, .* got type"),
    ],
)
def test_what_is_refused(blocks, options, error, message):
    X, y = changing_log(50)
    if blocks is None:
        blocks = [(X, y)]
    elif isinstance(blocks, str) and blocks == "no propensity":
        blocks = [(X, y.drop(columns="propensity"))]
    elif isinstance(blocks, str):
        blocks = [y]
    with pytest.raises(error, match=message):
        replay_blocks(EpsilonGreedy(), blocks, **{"acceptance": 0.2} | options)


def test_a_horizon_longer_than_any_number():
    """The compiled pass counts in 64 bits."""
    X, y = changing_log(1000)
    told = {"acceptance": 0.2, "random_state": 0}
    expected = replay_blocks(GLMUCBPolicy(), [(X, y)], **told)
    with pytest.warns(ReplayCoverageWarning, match="for this shorter horizon"):
        result = replay_blocks(GLMUCBPolicy(), [(X, y)], max_accepted=10**30, **told)
    pd.testing.assert_frame_equal(result.history, expected.history)


def test_arms_may_come_one_by_one():
    log = make_bandit_log(1000, n_arms=5, random_state=0)
    told = {"acceptance": 0.2, "random_state": 0}
    one, other = (
        replay_blocks(GLMUCBPolicy(), [(log.X, log.y)], arms=arms, **told)
        for arms in (range(5), (arm for arm in range(5)))
    )
    pd.testing.assert_frame_equal(one.history, other.history)
