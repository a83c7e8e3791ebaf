"""replay: logs of many kinds, what it warns of, and what it refuses."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, check_cv, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.bandit import select
from skbandit.datasets import load_open_bandit, make_bandit_log
from skbandit.evaluation import ReplayScorer, ReplaySplit, replay, replay_blocks
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import Always, EpsilonGreedy, Recorder
from tests.worlds import NOTHING, Y, generic, refuses, uneven_log, uniform_log, warns

# === replay: logs of many kinds, what it warns of, and what it refuses ==========================

# --- data of many kinds ------------------------------------------------------------------


def test_forms_of_a_log():
    X, y = uneven_log(300)
    expected = replay(EpsilonGreedy(), X, y, random_state=0).history
    structured = y.to_records(index=False)
    parts = {name: y[name].tolist() for name in ("reward", "propensity")}
    actions = y["action"]
    for log, more in ((structured, {}), (actions.to_numpy(), parts), (actions.tolist(), parts)):
        assert replay(EpsilonGreedy(), X, log, random_state=0, **more).history.equals(expected)
    polars = pytest.importorskip("polars")
    found = replay(EpsilonGreedy(), polars.DataFrame(X), polars.DataFrame(y), random_state=0)
    assert found.history.equals(expected)


@pytest.mark.parametrize("kind", [pd.DataFrame, csr_array, np.asarray, list])
def test_rows_keep_their_type(kind):
    X, y = uniform_log(60)
    diary = []
    replay(Recorder(diary=diary), kind(X), y)
    assert {type(rows) for _, rows, _ in diary} == {type(kind(X))}


def test_classifiers_without_available():
    X, y = uniform_log(300)

    class Classifier:
        def predict(self, X):
            return np.where(X[:, 0] > 0, "a", "b")

    result = replay(Classifier(), X, y, rule="predict")
    assert (
        result.history["event"].tolist()
        == np.flatnonzero(np.where(X[:, 0] > 0, "a", "b") == y["action"]).tolist()
    )


@pytest.mark.filterwarnings("ignore:the policy has learned an event")
@pytest.mark.filterwarnings("ignore:the policy was fitted to this very log:UserWarning")
def test_behind_transformers_and_in_a_search():
    log = make_bandit_log(2000, 4, 2, base_rate=0.3, random_state=0)
    scaler = StandardScaler().fit(log.X)
    policy = GLMUCBPolicy(random_state=0)
    expected = replay(policy, scaler.transform(log.X), log.y).history
    model = make_pipeline(scaler, policy)
    assert replay(model, log.X, log.y).history.equals(expected)
    search = GridSearchCV(model, {}, scoring=ReplayScorer(random_state=0), cv=2).fit(log.X, log.y)
    best = search.best_estimator_
    expected = replay(best[-1], best[0].transform(log.X), log.y).history
    for one in (search, best, make_pipeline(FunctionTransformer(), best)):
        assert replay(one, log.X, log.y).history.equals(expected)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        replay(make_pipeline(StandardScaler(), policy), log.X, log.y)


def test_select_behind_transformers():
    X, y = uniform_log(100)
    policy = EpsilonGreedy(0.0).fit(X, y)
    model = make_pipeline(StandardScaler().fit(X), policy)
    assert select(model, X[:5]).tolist() == policy.select(X[:5]).tolist()
    assert select(model, X[:2], available=[("a",), ("b",)]).tolist() == ["a", "b"]
    with pytest.raises(AttributeError, match="select"):
        select(make_pipeline(StandardScaler(), StandardScaler()).fit(X), X)


def test_open_bandit_logged_by_thompson_sampling():
    X, y = load_open_bandit("bts", return_X_y=True)
    with pytest.warns(ReplayCoverageWarning, match=r"keeps 1\.65 .*off_policy_value") as caught:
        result = replay(Always(y["action"][0]), X, y, random_state=0)
    assert len(caught) == 1
    assert result.expected == pytest.approx(1.65, abs=0.01)
    assert result.n_accepted < 10
    assert "off_policy_value" in repr(result)
    assert "of 10,000 events" in repr(result)


# --- warnings ----------------------------------------------------------------------------


def test_nothing_kept():
    class Elsewhere:
        def select(self, X):
            return np.full(len(X), "z")

    with (
        pytest.warns(UserWarning, match="not available on 12 events, first 'z' on row 0"),
        pytest.warns(
            ReplayCoverageWarning, match="none of 12 events kept, where c = 0.333 keeps 4"
        ),
    ):
        result = replay(Elsewhere(), NOTHING, Y)
    assert np.isnan([result.mean_reward, result.lift, result.standard_error]).all()
    assert np.isnan(result.interval()).all()
    assert result.history.empty


def test_few_kept():
    with pytest.warns(ReplayCoverageWarning, match=r"4 of 12 events kept.*too few"):
        replay(Always("b"), NOTHING, Y)


def test_next_to_nothing_kept_of_a_long_log():
    """As of a log by squarecb: 10 and more events, and no conclusion."""
    rng = np.random.default_rng(0)
    X, rare = np.zeros((20_000, 1)), rng.random(20_000) < 0.002
    y = {"action": np.where(rare, "a", "b"), "reward": rng.random(20_000) < 0.4}
    y = pd.DataFrame(y).assign(propensity=np.where(rare, 0.002, 0.998))
    message = r"\d\d of 20,000 events kept, where c = 0\.002 .*off_policy_value uses every event"
    with pytest.warns(ReplayCoverageWarning, match=message):
        result = replay(Always("b"), X, y, random_state=0)
    assert 20 < result.n_accepted < 100
    assert "too few for any conclusion" in repr(result)
    blocks = [(X, y)]
    with pytest.warns(ReplayCoverageWarning, match=message):
        replay_blocks(Always("b"), blocks, acceptance=0.002, arms=["a", "b"], random_state=0)


@pytest.mark.thorough
def test_actions_that_are_not_uniform():
    X, y = uneven_log(2000)
    with pytest.warns(UserWarning, match="no propensities, but its actions were not chosen unif"):
        replay(EpsilonGreedy(), X, y[["action", "reward"]])
    pools = [(0, 1, 2, 3) if k % 2 else (0, 1) for k in range(2000)]
    rng = np.random.default_rng(0)
    y["action"] = [pool[rng.integers(len(pool))] for pool in pools]
    replay(EpsilonGreedy(), X, y[["action", "reward"]], available=pools)
    with (
        pytest.warns(UserWarning, match=r"[01] on \d+ events, where 500 are expected"),
        pytest.warns(ReplayCoverageWarning, match="for any policy"),
    ):
        replay(Always(3), X, y[["action", "reward"]])


def test_kept_events_that_cannot_be_chance():
    X, y = uneven_log(2000)
    wrong = y.assign(propensity=1 / 3)
    with pytest.warns(ReplayCoverageWarning, match=r"run 0 kept \d+ of 2,000 events.*667 ± 21"):
        replay(Always(1), X, wrong)
    replay(Always(1), X, y, random_state=0)


def test_runs_that_do_not_differ():
    X, y = uniform_log(200)
    warns("3 runs are identical", replay, EpsilonGreedy(0.0), X, y, n_repeats=3)


def test_log_ends_before_the_horizon():
    X, y = uniform_log(200)
    with pytest.warns(ReplayCoverageWarning, match="before max_accepted=1,000"):
        replay(EpsilonGreedy(), X, y, max_accepted=1000)


# --- refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rule": "explore"}, "rule must be 'select' or 'predict', got 'explore'"),
        (
            {"rule": np.array(["select", "predict"])},
            "rule must be 'select' or 'predict', got array",
        ),
        ({"deployment_share": 1.0}, r"deployment_share must be in \[0, 1\), got 1.0"),
        ({"acceptance": 0.0}, r"acceptance must be None or in \(0, 1\], got 0.0"),
        ({"acceptance": 2}, r"acceptance must be None or in \(0, 1\], got 2"),
        ({"subsample": -0.5}, r"subsample must be None or in \(0, 1\], got -0.5"),
        ({"n_repeats": 0}, "n_repeats must be a positive integer, got 0"),
        ({"max_accepted": 2.5}, "max_accepted must be a positive integer, got 2.5"),
    ],
)
def test_wrong_options(options, match):
    refuses(match, replay, EpsilonGreedy(), NOTHING, Y, **options)


POOLS = Y.assign(available=[("a", "b", "c")] * 12)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"reward": [1, 0]}, "2 entries for 12|differs from the column"),
        ({"propensity": [0.5] * 11}, "propensity has 11 entries for 12 events"),
        ({"available": [("a", "b", "c")] * 7}, "available has 7 entries for 12"),
        ({"available": np.ones((12, 5), dtype=bool)}, r"shape \(12, 5\), expected \(12, 3\)"),
        ({"available": np.full((12, 3), 2)}, "boolean table .* got 2 in row 0"),
        ({"timestamp": np.arange(5)}, "timestamp has 5 entries for 12"),
        (
            {"y": POOLS, "available": np.ones((12, 3), dtype=bool)},
            "available= differs from the column",
        ),
        (
            {"y": POOLS, "available": np.ones((12, 2), dtype=bool)},
            "available= differs from the column",
        ),
    ],
)
def test_wrong_parts(parts, match):
    refuses(match, replay, EpsilonGreedy(), NOTHING, **{"y": Y} | parts)


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("compiled", [True, False])
def test_rewards_that_the_policy_refuses(link, compiled):
    X, y = uniform_log(50)
    policy = GLMUCBPolicy(link, random_state=0).fit(X[:10], y[:10])
    policy = policy if compiled else generic(policy)
    before = pickle.dumps(policy) if compiled else None
    refuses("reward is 3", replay, policy, X, y.assign(reward=3))
    assert not compiled or pickle.dumps(policy) == before


def test_what_is_no_policy():
    with pytest.raises(TypeError, match=r"expected a fitted policy .*, got StandardScaler"):
        replay(StandardScaler(), NOTHING, Y)
    refuses("EpsilonGreedy is a class", replay, EpsilonGreedy, NOTHING, Y, error=TypeError)
    refuses("GLMUCBPolicy is a class", replay, GLMUCBPolicy, NOTHING, Y, error=TypeError)

    class Explorer:
        def select(self, X):
            return np.full(len(X), "a")

    with pytest.raises(TypeError, match="Explorer has no predict for the deployment bucket"):
        replay(Explorer(), NOTHING, Y, deployment_share=0.1)

    class Sets:
        def select(self, X, available):
            return np.array([pool[:2] for pool in available])

    refuses(re.escape("shape (8192, 2) for 8192 rows"), replay, Sets(), *uniform_log(9000))


# === ReplaySplit: what trains lies before what is tested ========================================


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(
    n_events=st.integers(30, 300),
    n_splits=st.integers(1, 6),
    warmup=st.one_of(st.floats(0.01, 0.8), st.integers(1, 20)),
    subsample=st.one_of(st.none(), st.floats(0.01, 1)),
    seed=st.integers(0, 5),
)
def test_nothing_is_tested_before_it_could_be_known(n_events, n_splits, warmup, subsample, seed):
    splitter = ReplaySplit(n_splits, warmup=warmup, subsample=subsample, random_state=seed)
    X = np.zeros((n_events, 1))
    splits = list(splitter.split(X))
    assert len(splits) == splitter.get_n_splits() == n_splits
    for train, test in splits:
        assert len(train) and len(test)
        assert train.max() < test.min()
        for rows in (train, test):
            assert (np.diff(rows) > 0).all() and 0 <= rows[0] and rows[-1] < n_events
    for (train, test), (again, once_more) in zip(splits, splitter.split(X), strict=True):
        assert train.tolist() == again.tolist() and test.tolist() == once_more.tolist()
    first = splits[0][1].min() if subsample is None else None
    if first is not None:
        tested = np.concatenate([test for _, test in splits])
        assert tested.tolist() == list(range(first, n_events))  # each once, in order
        assert all(len(train) == test[0] for train, test in splits)  # all that came before


def test_by_hand():
    blocks = list(ReplaySplit(2, warmup=0.4).split(np.zeros(10)))
    assert [(train.tolist(), test.tolist()) for train, test in blocks] == [
        ([0, 1, 2, 3], [4, 5, 6]),
        ([0, 1, 2, 3, 4, 5, 6], [7, 8, 9]),
    ]


def test_the_share_of_a_subsample_is_kept_on_both_sides():
    splits = list(ReplaySplit(3, warmup=100, subsample=0.3, random_state=0).split(np.zeros(500)))
    assert [(len(train), len(test)) for train, test in splits] == [(30, 120)] * 3
    assert len({tuple(test) for _, test in splits}) == 3


def test_like_time_series_split():
    X = np.zeros((60, 1))
    own = ReplaySplit(5, warmup=10).split(X)
    for (train, test), (other, tested) in zip(own, TimeSeriesSplit(5).split(X), strict=True):
        assert train.tolist() == other.tolist() and test.tolist() == tested.tolist()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_splits": 0}, "n_splits must be a positive integer, got 0"),
        ({"n_splits": 2.0}, "n_splits must be a positive integer, got 2.0"),
        ({"warmup": 0.0}, "warmup must be a share .* got 0.0"),
        ({"warmup": 1.5}, "warmup must be a share .* got 1.5"),
        ({"warmup": 12}, "number of events below 12, got 12"),
        ({"warmup": "half"}, "got 'half'"),
        ({"subsample": 0}, r"subsample must be None or in \(0, 1\], got 0"),
        ({"subsample": 2.5}, r"subsample must be None or in \(0, 1\], got 2.5"),
        ({"warmup": 9}, "9 of 12 events are warmup, which leaves 3 for n_splits=5"),
    ],
)
def test_wrong_options_of_splits(options, match):
    refuses(match, list, ReplaySplit(**options).split(np.zeros(12)))


@pytest.mark.parametrize("unit", ["seconds", "datetimes", "zoned", "structured"])
def test_log_that_is_not_in_order(unit):
    seconds = pd.Series([0.0, 10.0, 5.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0])
    times = seconds
    if unit in ("datetimes", "zoned"):
        times = pd.to_datetime(seconds, unit="s", utc=unit == "zoned")
    y = pd.DataFrame({"action": 1, "reward": 1, "timestamp": times})
    fine = y.sort_values("timestamp")
    if unit == "structured":
        y, fine = y.to_records(index=False), fine.to_records(index=False)
    with pytest.raises(ValueError, match="timestamp goes back on row 2, from 10 s to 5 s"):
        list(ReplaySplit(2).split(np.zeros(10), y))
    assert len(list(ReplaySplit(2).split(np.zeros(10), fine))) == 2


def test_as_scikit_learn_has_splitters():
    splitter = ReplaySplit(3, warmup=0.3, subsample=0.5, random_state=1)
    shown = " ".join(repr(splitter).split())
    assert shown == ("ReplaySplit(n_splits=3, random_state=1, subsample=0.5, warmup=0.3)")
    assert check_cv(splitter) is splitter
    assert repr(clone(splitter, safe=False)) == repr(splitter)
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"action": rng.integers(2, size=400), "reward": rng.random(400)})
    X = np.zeros((400, 1))
    scorer = ReplayScorer(random_state=0)
    scores = cross_val_score(EpsilonGreedy(), X, y, cv=splitter, scoring=scorer)
    assert scores.shape == (3,) and np.isfinite(scores).all()
    search = GridSearchCV(EpsilonGreedy(), {"epsilon": [0.1]}, cv=splitter, scoring=scorer)
    assert search.fit(X, y).best_score_ == pytest.approx(scores.mean())


@pytest.mark.parametrize("subsample", [None, 0.5])
def test_successive_halving(subsample):
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    log = make_bandit_log(600, n_arms=2, base_rate=0.4, random_state=0)
    y = log.y.drop(columns="timestamp")  # halving takes rows in random order
    search = HalvingGridSearchCV(
        GLMUCBPolicy(random_state=0),
        {"alpha": [0.1, 1.0]},
        scoring=ReplayScorer(random_state=0),
        cv=ReplaySplit(2, subsample=subsample),
        random_state=0,
        min_resources=300,
        refit=False,
    )
    order_is_lost = pytest.warns(UserWarning, match="rows in random order, so that policies replay")
    if subsample is None:  # the splits are the same each time
        with order_is_lost:
            assert len(search.fit(log.X, y).cv_results_["params"]) == 2
        return
    with order_is_lost, pytest.raises(ValueError, match="must yield consistent folds"):
        search.fit(log.X, y)
