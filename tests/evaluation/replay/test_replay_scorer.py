"""ReplayScorer: its numbers are those of replay, and scikit-learn's model selection can use it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplaySplit, replay
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import Always, EpsilonGreedy, QuickEpsilonGreedy
from tests.tiers import first

FOLDS = TimeSeriesSplit(2)


@pytest.fixture(scope="module")
def log():
    """Three arms, the first logged twice as often, with the propensities of that."""
    return make_bandit_log(
        1500,
        3,
        2,
        base_rate=0.4,
        logging=lambda X, available: np.tile([0.5, 0.25, 0.25], (len(X), 1)),
        random_state=0,
    )


def policies():
    return [
        pytest.param(GLMUCBPolicy(random_state=0), id="plain"),
        pytest.param(make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)), id="pipeline"),
    ]


def expected_scores(model, X, y, folds=FOLDS, *, start="cold", **options):
    """Mean rewards of every fold, without the scorer."""
    scores = []
    for train, test in folds.split(X, y):
        fitted = clone(model).fit(X.iloc[train], y.iloc[train])
        rows, policy = X.iloc[test], fitted
        if hasattr(model, "steps"):
            rows, policy = fitted[0].transform(rows), fitted[-1]
        policy = clone(policy) if start == "cold" else policy
        scores.append(replay(policy, rows, y.iloc[test], random_state=0, **options).mean_reward)
    return scores


# --- the numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["cold", "fitted"])
@pytest.mark.parametrize(
    "options", [{}, {"learn": False}, {"rule": "predict"}, {"acceptance": 0.1}]
)
@pytest.mark.parametrize("model", policies())
def test_it_is_replay_on_every_fold(model, start, options, log):
    scorer = ReplayScorer(start=start, random_state=0, **options)
    found = cross_val_score(model, log.X, log.y, scoring=scorer, cv=FOLDS, error_score="raise")
    expected = expected_scores(model, log.X, log.y, start=start, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_repeats(log):
    model = GLMUCBPolicy(random_state=0)
    for subsample, options in ((None, {"shuffle": True}), (0.5, {"subsample": 0.5})):
        scorer = ReplayScorer(n_repeats=3, subsample=subsample, random_state=0)
        expected = replay(model, log.X, log.y, n_repeats=3, random_state=0, **options)
        assert scorer(model, log.X, log.y) == pytest.approx(expected.mean_reward, rel=1e-12)
        assert expected.runs["mean_reward"].nunique() > 1


def test_lift(log):
    model = GLMUCBPolicy(random_state=0)
    mean = ReplayScorer(random_state=0)(model, log.X, log.y)
    lift = ReplayScorer(metric="lift", random_state=0)(model, log.X, log.y)
    assert lift == pytest.approx(mean / log.y["reward"].mean())


def test_start():
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"action": rng.integers(3, size=600)})
    y["reward"] = (y["action"] == 2).astype(int)
    X = np.zeros((600, 1))
    policy = EpsilonGreedy(0.0).fit(X, y)
    before = pickle.dumps(policy)
    assert ReplayScorer(start="fitted")(policy, X, y) == 1.0
    cold = ReplayScorer(random_state=0)(policy, X, y)
    assert cold == replay(EpsilonGreedy(0.0), X, y).mean_reward < 1
    assert pickle.dumps(policy) == before


def test_exploration_can_be_tuned_from_a_cold_start_only():
    rng = np.random.default_rng(0)
    n = 4000
    y = pd.DataFrame({"action": rng.integers(10, size=n)})
    y["reward"] = (rng.random(n) < np.where(y["action"] == 9, 0.9, 0.5)).astype(int)
    X = np.zeros((n, 1))
    grid = {"epsilon": [0.0, 0.1]}
    best = {}
    for start in ("cold", "fitted"):
        scorer = ReplayScorer(start=start, random_state=0, n_repeats=5)
        policy = QuickEpsilonGreedy(optimism=0.0)
        search = GridSearchCV(policy, grid, scoring=scorer, cv=ReplaySplit(1))
        best[start] = search.fit(X, y).best_params_["epsilon"]
    assert best == {"cold": 0.1, "fitted": 0.0}


def test_weights_of_events():
    rng = np.random.default_rng(1)
    y = pd.DataFrame({"action": rng.integers(2, size=200), "reward": rng.random(200)})
    X, weight = np.zeros((200, 1)), rng.uniform(0, 3, 200)
    kept = y["action"] == 1
    expected = np.average(y["reward"][kept], weights=weight[kept])
    scorer = ReplayScorer(learn=False)
    assert scorer(Always(1), X, y, sample_weight=weight) == pytest.approx(expected)
    lift = ReplayScorer(metric="lift")(Always(1), X, y, sample_weight=weight)
    assert lift == pytest.approx(expected / np.average(y["reward"], weights=weight))
    ones = scorer(Always(1), X, y, sample_weight=np.full(200, 7))
    assert ones == pytest.approx(scorer(Always(1), X, y))
    assert np.isnan(scorer(Always(1), X, y, sample_weight=1 - kept))


# --- too few kept --------------------------------------------------------------------------


def test_too_few():
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"action": rng.integers(3, size=24), "reward": 1})
    X = np.zeros((24, 1))
    kept = int((y["action"] == 1).sum())
    assert 5 < kept < 10
    with pytest.warns(ReplayCoverageWarning, match=f"{kept} of 24 events kept.*The score is nan"):
        assert np.isnan(ReplayScorer()(Always(1), X, y))
    assert ReplayScorer(min_accepted=kept)(Always(1), X, y) == 1
    # never a number from nothing
    with pytest.warns(ReplayCoverageWarning, match="none of 1 events"):
        assert np.isnan(ReplayScorer(min_accepted=0, acceptance=1e-9)(Always(0), X[:1], y[:1]))


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.filterwarnings("ignore:Always chose arms")
def test_a_search_ranks_what_is_not_covered_last():
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"action": rng.integers(3, size=300), "reward": rng.random(300) - 5})
    search = GridSearchCV(
        Always(), {"arm": ["nowhere", 1]}, scoring=ReplayScorer(random_state=0), cv=ReplaySplit(2)
    )
    search.fit(np.zeros((300, 1)), y)
    assert search.best_params_ == {"arm": 1}
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]


# --- in scikit-learn's model selection -----------------------------------------------------


@pytest.mark.parametrize("model", policies())
@pytest.mark.parametrize("n_jobs", first(1, [None, 2]))
def test_frames_need_no_configuration(model, n_jobs, log):
    expected = expected_scores(model, log.X, log.y)
    scorer = ReplayScorer(random_state=0)
    name = "alpha" if not hasattr(model, "steps") else "glmucbpolicy__alpha"
    search = GridSearchCV(
        model, {name: [0.2, 50.0]}, scoring=scorer, cv=FOLDS, n_jobs=n_jobs, error_score="raise"
    ).fit(log.X, log.y)
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(expected))
    assert search.cv_results_["std_test_score"][0] == pytest.approx(np.std(expected))
    assert search.score(log.X, log.y) == scorer(search, log.X, log.y)
    assert search.score(log.X, log.y) == scorer(search.best_estimator_, log.X, log.y)
    many = {"cold": scorer, "warm": ReplayScorer(start="fitted", random_state=0)}
    found = cross_validate(
        model, log.X, log.y, scoring=many, cv=FOLDS, n_jobs=n_jobs, error_score="raise"
    )
    np.testing.assert_allclose(found["test_cold"], expected)
    warm = expected_scores(model, log.X, log.y, start="fitted")
    np.testing.assert_allclose(found["test_warm"], warm)


@pytest.mark.parametrize("model", policies())
@pytest.mark.parametrize("alone", [True, False])
def test_routed_parts(model, alone, log):
    expected = expected_scores(model, log.X, log.y)
    scorer = ReplayScorer(random_state=0)
    scoring = scorer if alone else {"replay": scorer, "lift": ReplayScorer(metric="lift")}
    parts = {name: log.y[name].to_numpy() for name in ("reward", "propensity", "timestamp")}
    parts["available"] = [(0, 1, 2)] * len(log.y)
    y = log.y["action"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            model, {}, scoring=scoring, refit=alone or "replay", cv=FOLDS, error_score="raise"
        ).fit(log.X, y, **parts)
        found = cross_validate(
            model, log.X, y, scoring=scoring, cv=FOLDS, params=parts, error_score="raise"
        )
    assert search.best_score_ == pytest.approx(np.mean(expected))
    np.testing.assert_allclose(found["test_score" if alone else "test_replay"], expected)


@pytest.mark.parametrize("routing", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_weights_in_a_search(routing, alone, log):
    class Weighted(EpsilonGreedy):
        __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012

        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y)

    scorer = ReplayScorer(random_state=0)
    scoring = scorer if alone else {"replay": scorer, "lift": ReplayScorer(metric="lift")}
    weight = np.random.default_rng(0).uniform(0.1, 5, len(log.y))
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            Weighted(), {}, scoring=scoring, refit=alone or "replay", cv=FOLDS, error_score="raise"
        ).fit(log.X, log.y, sample_weight=weight)
    assert np.isfinite(search.best_score_)
    if routing:
        scores = [
            scorer(Weighted(), log.X.iloc[test], log.y.iloc[test], sample_weight=weight[test])
            for _, test in FOLDS.split(log.X)
        ]
        assert search.best_score_ == pytest.approx(np.mean(scores))


def test_parts_that_are_not_sliced(log):
    scorer = ReplayScorer()
    fold = log.X[:500], log.y[["action", "reward"]][:500]
    for name in ("propensity", "timestamp"):
        with pytest.raises(ValueError, match=f"{name} has 1500 entries for 500 events"):
            scorer(EpsilonGreedy(), *fold, **{name: log.y[name].to_numpy()})
    with pytest.raises(ValueError, match="available has 1500 entries for 500"):
        scorer(EpsilonGreedy(), *fold, available=[(0, 1, 2)] * 1500)
    with pytest.raises(ValueError, match="1500 entries for 500"):
        scorer(EpsilonGreedy(), *fold, sample_weight=np.ones(1500))
    with pytest.raises(ValueError, match="reward"):
        scorer(EpsilonGreedy(), log.X[:500], log.y["action"][:500], reward=log.y["reward"])


@pytest.mark.filterwarnings("ignore:run 0 kept")
def test_columns_of_a_boolean_available_are_the_fitted_arms(log):
    policy = GLMUCBPolicy(arms=[0, 1, 2], random_state=0).fit(log.X, log.y)
    table = np.ones((len(log.y), 3), dtype=bool)
    table[:, 2] = log.y["action"] == 2  # arm 2 mostly away
    y = log.y[["action", "reward"]]
    with pytest.warns(UserWarning, match="not chosen uniformly"):
        ReplayScorer()(policy, log.X, y, available=table)
    with pytest.raises(ValueError, match="not among the available arms"):
        ReplayScorer()(policy, log.X, y, available=table[:, ::-1])
    backwards = GLMUCBPolicy(arms=[2, 1, 0], random_state=0).fit(log.X, log.y)
    with pytest.raises(ValueError, match="could be read in two ways"):
        ReplayScorer()(backwards, log.X, y, available=table)


# --- an estimator-like object --------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metric": "ctr"}, "metric must be in .* got 'ctr'"),
        ({"start": "warm"}, "start must be in .* got 'warm'"),
        ({"n_repeats": 0}, "n_repeats"),
    ],
)
def test_wrong_options(options, match, log):
    with pytest.raises(ValueError, match=match):
        ReplayScorer(**options)(EpsilonGreedy(), log.X, log.y)


def test_no_policy(log):
    with pytest.raises(TypeError, match="LogisticRegression has no select"):
        ReplayScorer()(LogisticRegression(), log.X, log.y)


def test_clone_pickle_params(log):
    scorer = ReplayScorer(metric="lift", n_repeats=2, random_state=3)
    assert repr(scorer) == "ReplayScorer(metric='lift', n_repeats=2, random_state=3)"
    policy = GLMUCBPolicy(random_state=0)
    expected = scorer(policy, log.X, log.y)
    for copy in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
        assert repr(copy) == repr(scorer)
        assert copy(policy, log.X, log.y) == copy.score(policy, log.X, log.y) == expected
    assert "ReplayScorer" in scorer._repr_html_()
    with pytest.raises(TypeError):
        ReplayScorer("lift")


def test_requests():
    requests = ReplayScorer().get_metadata_routing().score.requests
    names = ["reward", "propensity", "available", "timestamp", "sample_weight"]
    assert requests == dict.fromkeys(names, True)
