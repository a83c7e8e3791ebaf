"""Scorers of policies: by replay and off policy, and the scores of rates as numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedPolicy, GLMUCBPolicy, ReplayScorer, SlatePolicy
from skbandit.bandit import OffPolicyClassifier
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    OffPolicyScorer,
    ReplaySplit,
    off_policy_blocks,
    off_policy_value,
    replay,
    slate_ips,
)
from skbandit.evaluation._score import Spread
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.measure._score_limits import wilson_score
from tests.policies import Always, EpsilonGreedy, QuickEpsilonGreedy
from tests.tiers import first
from tests.worlds import refuses, snips, warns

# === ReplayScorer: its numbers are those of replay, and scikit-learn's model selection can use it

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


@pytest.mark.thorough
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
    refuses("1500 entries for 500", scorer, EpsilonGreedy(), *fold, sample_weight=np.ones(1500))
    with pytest.raises(ValueError, match="reward"):
        scorer(EpsilonGreedy(), log.X[:500], log.y["action"][:500], reward=log.y["reward"])


@pytest.mark.filterwarnings("ignore:run 0 kept")
def test_columns_of_a_boolean_available_are_the_fitted_arms(log):
    policy = GLMUCBPolicy(arms=[0, 1, 2], random_state=0).fit(log.X, log.y)
    table = np.ones((len(log.y), 3), dtype=bool)
    table[:, 2] = log.y["action"] == 2  # arm 2 mostly away
    y = log.y[["action", "reward"]]
    warns("not chosen uniformly", ReplayScorer(), policy, log.X, y, available=table)
    with pytest.raises(ValueError, match="not among the available arms"):
        ReplayScorer()(policy, log.X, y, available=table[:, ::-1])
    backwards = GLMUCBPolicy(arms=[2, 1, 0], random_state=0).fit(log.X, log.y)
    refuses("could be read in two ways", ReplayScorer(), backwards, log.X, y, available=table)


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
    refuses(match, ReplayScorer(**options), EpsilonGreedy(), log.X, log.y)


def test_no_policy(log):
    with pytest.raises(TypeError, match="LogisticRegression has no select"):
        ReplayScorer()(LogisticRegression(), log.X, log.y)


@pytest.mark.parametrize(
    ("policy", "cure"),
    [
        (GLMUCBPolicy(), "pass scoring=ReplayScorer"),
        (OffPolicyClassifier(), "pass scoring=OffPolicyScorer"),
        (ConstrainedPolicy(), r"pass scoring=OffPolicyScorer\(constrained=True\)"),
        (SlatePolicy(), "a function that returns slate_ips"),
    ],
)
def test_search_without_scoring_names_the_scorer_of_a_policy(policy, cure, log):
    with pytest.raises(TypeError, match=cure):
        GridSearchCV(policy, {}).fit(log.X, log.y)
    with pytest.raises(AttributeError, match=cure):
        policy.score(log.X, log.y)
    assert not hasattr(policy, "score")


def test_search_of_a_pipeline_without_scoring_names_the_scorer_of_its_policy(log):
    search = GridSearchCV(make_pipeline(StandardScaler(), GLMUCBPolicy()), {})
    with pytest.warns(UserWarning, match="ReplayScorer"), pytest.raises(TypeError, match="score"):
        search.fit(log.X, log.y)


# === OffPolicyScorer: what it scores, and that searches find what is good on other events =======


LOG = make_bandit_log(2400, n_arms=3, n_features=3, base_rate=0.3, random_state=0)
X, Y = LOG.X[1200:], LOG.y[1200:]
POLICY = OffPolicyClassifier(LogisticRegression(), random_state=0).fit(LOG.X[:1200], LOG.y[:1200])


@pytest.mark.parametrize("method", ["snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"])
def test_scores_are_estimates(method):
    options = {"method": method, "reward_range": (0, 1), "random_state": 0}
    estimate = off_policy_value(POLICY, X, Y, rule="predict", **options)
    scorer = OffPolicyScorer(**options)
    assert scorer(POLICY, X, Y) == estimate.mean_reward
    for kind in ("normal", "sequence"):
        low = clone(scorer, safe=False).set_params(confidence_level=0.8, kind=kind)
        assert low(POLICY, X, Y) == estimate.interval(0.8, kind=kind)[0]
    assert clone(scorer).get_params() == pickle.loads(pickle.dumps(scorer)).get_params()


def test_rules():
    policy = GLMUCBPolicy(exploration="epsilon_greedy", epsilon=0.5, random_state=0)
    policy = policy.fit(LOG.X[:1200], LOG.y[:1200])
    assert OffPolicyScorer(rule="select")(policy, X, Y) == snips(policy, X, Y).mean_reward
    assert OffPolicyScorer()(policy, X, Y) == snips(policy, X, Y, rule="predict").mean_reward


class Recalls(BaseEstimator):
    """Knows by heart which actions were rewarded; what it has not seen is arm 0."""

    def __init__(self, by_heart=True):
        self.by_heart = by_heart

    def fit(self, X, y):
        good = y["reward"] > 0
        rows = map(tuple, np.asarray(X)[good])
        self.known_ = dict(zip(rows, y["action"][good], strict=True)) if self.by_heart else {}
        return self

    def predict(self, X):
        return np.array([self.known_.get(tuple(row), 0) for row in np.asarray(X)])


# on the training folds the weights tell: their mean is far from 1
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.parametrize("method", ["snips", "dr"])
def test_what_is_learned_by_heart_wins_nothing(method):
    search = GridSearchCV(
        Recalls(), {"by_heart": [True, False]}, scoring=OffPolicyScorer(method, random_state=0),
        cv=3, return_train_score=True,
    ).fit(LOG.X, LOG.y)  # fmt: skip
    train, test = (search.cv_results_[f"mean_{name}_score"] for name in ("train", "test"))
    assert train[0] > train[1] + 0.2
    assert test[0] == test[1]


def test_several_scorers_and_routed_columns():
    found = cross_validate(
        OffPolicyClassifier(method="ips"),
        LOG.X,
        LOG.y,
        scoring={"snips": OffPolicyScorer(), "low": OffPolicyScorer(confidence_level=0.9)},
        cv=2,
    )
    assert (found["test_low"] < found["test_snips"]).all()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(
            OffPolicyClassifier(method="ips"),
            LOG.X,
            LOG.y["action"],
            params={"reward": LOG.y["reward"], "propensity": LOG.y["propensity"]},
            scoring=OffPolicyScorer(),
            cv=2,
        )
    assert routed["test_score"] == pytest.approx(found["test_snips"])


def test_an_unknown_method():
    with pytest.raises(ValueError, match=r"method must be in \('snips', 'ips', 'dr'.*got 'dm'"):
        OffPolicyScorer("dm")(POLICY, X, Y)


# === Score intervals: of proportions, of rewards in any range, and of differences ===============

Z = 1.959963984540054


def wilson(share, n):
    low = float(wilson_score(np.array(share), np.array(n), Z))
    return low, 1 - float(wilson_score(1 - np.array(share), np.array(n), Z))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_proportions_have_wilsons_limits(share):
    spread = Spread.of((0.0, 1.0), 0.2, 0.16, 50)
    error = np.sqrt(share * (1 - share) / 50)
    assert spread.limits(share, error, Z) == pytest.approx(wilson(share, 50))
    # in another unit, and counted from the other end
    scaled = Spread.of((-3.0, 7.0), -1.0, 16.0, 50)
    wanted = -3 + 10 * np.array(wilson(share, 50))
    assert scaled.limits(-3 + 10 * share, 10 * error, Z) == pytest.approx(wanted)
    mirrored = 1 - np.array(spread.limits(1 - share, error, Z))[::-1]
    assert mirrored == pytest.approx(wilson(share, 50))


def test_many_events_have_normal_limits():
    spread = Spread.of((0.0, 1.0), 0.3, 0.02, 1e9)
    assert spread.limits(0.3, 0.01, Z) == pytest.approx((0.3 - 0.01 * Z, 0.3 + 0.01 * Z), rel=1e-6)
    # rewards that never differ in the log
    constant = Spread.of((0.0, 1.0), 0.5, 0.0, 10)
    assert constant.limits(0.5, 0.0, Z) == (0.5, 0.5)


def uniform(n=6000, arms=20):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"action": rng.integers(arms, size=n), "reward": 0.0, "propensity": 1 / arms}
    )


@pytest.mark.parametrize("elsewhere", [0.0, 1.0])
def test_no_reward_seen(elsewhere):
    """Zero is not certain: the limits of no success in about 300 trials."""
    log = uniform()
    log.loc[log.index[log["action"] == 3][:60], "reward"] = elsewhere
    n = int((log["action"] == 7).sum())
    for method in ("snips", "ips"):
        estimate = off_policy_value([7] * 6000, None, log, method=method)
        assert estimate.interval() == pytest.approx(wilson(0.0, n))
        assert estimate.standard_error == pytest.approx(1 / (n + 1))
        assert "mean reward 0 ± 0.003" in repr(estimate)
    estimate = off_policy_value([7] * 6000, np.zeros((6000, 1)), log, method="dr", random_state=0)
    assert estimate.interval()[1] > 0.005
    other = off_policy_value([8] * 6000, None, log)
    one = off_policy_value([7] * 6000, None, log)
    m = int((log["action"] == 8).sum())
    low, high = (one - other).interval()
    assert (low, high) == pytest.approx((-wilson(0.0, m)[1], wilson(0.0, n)[1]))
    assert "± 0.003" in repr(one - other)
    assert (one - one).interval() == (0, 0)
    replayed = [replay(Always(arm), np.zeros((6000, 1)), log, random_state=0) for arm in (7, 8)]
    assert replayed[0].interval()[1] == pytest.approx(wilson(0.0, n)[1], rel=0.05)
    assert replayed[0].standard_error == pytest.approx(1 / (n + 1), rel=0.01)
    low, high = (replayed[0] - replayed[1]).interval()
    assert -low == pytest.approx(wilson(0.0, m)[1], rel=0.05)
    assert high == pytest.approx(wilson(0.0, n)[1], rel=0.05)


def test_blocks_and_slates_without_rewards():
    log = uniform()
    blocks = [log[:100].assign(p=1.0), log[100:].assign(p=1.0)]
    found = off_policy_blocks("p", [part.assign(p=1.0 * (part["action"] == 7)) for part in blocks])
    whole = off_policy_value([7] * 6000, None, log)
    assert found["snips"].interval() == pytest.approx(whole.interval())
    slates = pd.DataFrame({"action": log["action"].tolist(), "reward": 0.0})
    estimate = slate_ips([[7]] * 6000, None, slates)
    assert estimate.interval() == pytest.approx(whole.interval())


def test_revenue_scales():
    """Limits are equivariant: in cents or euros, from 0 or from 100."""
    rng = np.random.default_rng(0)
    log = uniform()
    log["reward"] = (rng.random(6000) < 0.02) * rng.lognormal(3, size=6000)
    low, high = off_policy_value([7] * 6000, None, log).interval()
    more = log.assign(reward=100 + 5 * log["reward"])
    scaled = off_policy_value([7] * 6000, None, more).interval()
    assert scaled == pytest.approx((100 + 5 * low, 100 + 5 * high))


def test_rare_rewards_that_were_not_seen():
    """At 0, the middle of the range, the log's variance p counts 5 to the n p expected."""
    n, p = 400, 0.01
    spread = Spread.of((-1.0, 1.0), 0.0, p, n)
    half = Z**2 * p / (2 * n)
    wanted = Z * np.sqrt(5 / (5 + n * p) * p / n / (1 + 2 * half))
    assert spread.limits(0.0, 0.0, Z) == pytest.approx((-wanted, wanted))
    # what is predicted without error has no variance
    assert Spread.of((-1.0, 1.0), 0.0, 0.0, n).limits(0.0, 0.0, Z) == (0.0, 0.0)
    # nor do rare rewards matter that would have been seen
    many = Spread.of((-1.0, 1.0), 0.0, p, 1e9)
    assert many.limits(0.0, 1e-7, Z) == pytest.approx((-1e-7 * Z, 1e-7 * Z), rel=0.01)


def test_predicted_rewards_need_no_allowance_for_rare_ones():
    """The limits of dr are by the errors of predictions, so that their gain remains."""
    rng = np.random.default_rng(0)
    X, action = (rng.random((3000, 1)) < 0.02).astype(float), rng.integers(10, size=3000)
    y = pd.DataFrame({"action": action, "reward": np.where(action == 9, 300 * X[:, 0], X[:, 0])})
    y["reward"] += 0.01 * rng.normal(size=3000)
    options = {"method": "dr", "reward_model": LinearRegression(), "random_state": 0}
    one, two = (off_policy_value([arm] * 3000, X, y, **options) for arm in (1, 2))
    for estimate in (one, one - two):
        low, high = estimate.interval()
        assert high - low == pytest.approx(2 * Z * estimate.standard_error, rel=0.05)
