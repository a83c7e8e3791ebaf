"""ReplaySplit: what trains lies before what is tested."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, check_cv, cross_val_score

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplaySplit
from tests.policies import EpsilonGreedy


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
def test_wrong_options(options, match):
    with pytest.raises(ValueError, match=match):
        list(ReplaySplit(**options).split(np.zeros(12)))


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
