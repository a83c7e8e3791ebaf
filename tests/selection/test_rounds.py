"""Rounds: their training, settings, search and progress."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector, logged_costs
from skbandit.selection._costs import estimated_costs
from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED,
    draw_lots,
    last_to_first,
    replace_duplicates,
    run_rounds,
    settle_rounds,
    train_rounds,
)
from skbandit.selection.reductions import NO_AD, REDUCTIONS
from tests.tiers import first
from tests.worlds import refuses, warns

# === Rounds as functions of arrays: the problem, the input and the picks of each ================


@dataclass
class Ranking:
    """A rule that knows what it was trained on, and ranks ads by fixed scores."""

    rows: np.ndarray  # the first feature of the rows that it was trained on
    scores: np.ndarray  # (K,)

    def respond(self, X):
        return np.asarray(X[:, [0]].toarray() if issparse(X) else X[:, :1])

    def choose(self, answers, allowed):
        lowest = np.where(allowed, self.scores, np.inf).argmin(axis=1)
        return np.where(allowed.any(axis=1), lowest, NO_AD)


@dataclass
class Learner:
    """Hands out rankings in turn, and keeps what it was given."""

    rankings: list

    def __post_init__(self):
        self.given = []

    def __call__(self, X, costs, allowed, weight):
        self.given.append((X, costs, allowed, weight))
        scores = np.asarray(self.rankings[(len(self.given) - 1) % len(self.rankings)], dtype=float)
        return Ranking(X[:, 0], scores)


def train(learner, costs, scheme, **options):
    n, n_ads = costs.shape
    options = {"n_rounds": 3, "mask_features_from": None, "folds": None} | options
    rows = options.pop("X", np.arange(n, dtype=float)[:, None])
    available = options.pop("available", np.ones((n, n_ads), dtype=bool))
    n_choices = options.pop("n_choices", np.full(n, options["n_rounds"]))
    weight = np.arange(1.0, n + 1)
    return train_rounds(rows, costs, available, weight, n_choices, learner, scheme, **options)


COSTS = np.array([[1.0, -2.0, 3.0, 0.5], [4.0, 5.0, 6.0, 7.0], [-1.0, -2.0, -3.0, -4.0]])


def test_masked_rounds_leave_out_what_was_chosen():
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3], [0, 0, 0, 0]])
    train(learner, COSTS, MASKED)
    for _, costs, _, weight in learner.given:
        assert (costs == COSTS).all()  # no shift
        assert (weight == [1, 2, 3]).all()
    masks = [allowed[0].tolist() for _, _, allowed, _ in learner.given]
    assert masks == [[True] * 4, [True, False, True, True], [False, False, True, True]]


def test_masked_rounds_stay_within_what_is_available():
    learner = Learner([[0, 1, 2, 3]] * 3)
    available = np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    train(learner, COSTS, MASKED, available=available)
    last = learner.given[-1][2]
    assert last.tolist() == [[False] * 4, [False, False, True, True], [False] * 4]


def test_rows_leave_after_the_number_of_rounds_they_need():
    learner = Learner([[0, 1, 2, 3]] * 3)
    train(learner, COSTS, MASKED, n_choices=np.array([1, 3, 2]))
    taking_part = [allowed.any(axis=1).tolist() for _, _, allowed, _ in learner.given]
    assert taking_part == [[True, True, True], [False, True, True], [False, True, False]]


def test_published_rounds_make_duplicates_worthless_and_the_rest_worth_something():
    learner = Learner([[3, 2, 1, 0], [3, 2, 1, 0], [0, 1, 1, 1]])
    train(learner, COSTS, PUBLISHED)
    shifted = COSTS - [[3.0], [7.0], [0.0]]  # the least shift that leaves nothing positive
    for (_, costs, allowed, _), chosen in zip(learner.given, ([], [3], [3]), strict=True):
        expected = shifted.copy()
        expected[:, chosen] = 0.0
        assert (costs == expected).all()
        assert allowed.all()


def test_an_unobserved_cost_stays_so():
    costs = np.array([[np.nan, 2.0, 1.0], [np.nan, -1.0, 0.0]])
    learner = Learner([[0, 1, 2]])
    train(learner, costs, PUBLISHED, n_rounds=1)
    np.testing.assert_array_equal(learner.given[0][1], [[np.nan, 0, -1], [np.nan, -1, 0]])


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_chosen_ads_are_features_of_later_rounds(kind):
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3], [0, 0, 0, 0]])
    rows = kind(np.arange(3.0)[:, None])
    rules = train(learner, COSTS, MASKED, mask_features_from=1, X=rows)
    seen = [X.toarray() if issparse(X) else X for X, *_ in learner.given]
    assert [X.shape[1] for X in seen] == [1, 5, 5]
    assert (seen[1][:, 1:] == [0, 1, 0, 0]).all()
    assert (seen[2][:, 1:] == [1, 1, 0, 0]).all()
    picks = run_rounds(rules, rows, np.ones((3, 4), bool), MASKED, mask_features_from=1)
    assert (picks == [1, 0, 2]).all()


def test_ads_that_are_not_available_are_features_too():
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3]])
    available = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=bool)
    rules = train(learner, COSTS, MASKED, mask_features_from=0, available=available, n_rounds=2)
    first, second = (X[:, 1:] for X, *_ in learner.given)
    assert (first == ~available).all()
    assert (second == ~available | np.array([0, 1, 0, 0], dtype=bool)).all()
    picks = run_rounds(rules, np.zeros((3, 1)), available, MASKED, mask_features_from=0)
    assert (picks[:, 0] == 1).all()


def test_cross_fitted_choices_are_made_by_rules_that_have_not_seen_the_row():
    n, folds = 12, np.arange(12) % 3
    # whole, and then without fold 0, 1, 2: each prefers another ad
    learner = Learner([[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0]])
    costs = np.random.default_rng(0).normal(size=(n, 4))
    train(learner, costs, MASKED, folds=folds, n_rounds=2)
    assert len(learner.given) == 1 + 3 + 1  # the last round chooses nothing
    for j in range(3):
        assert (learner.given[1 + j][0][:, 0] == np.flatnonzero(folds != j)).all()
    of_second_round = learner.given[4][2]
    assert (~of_second_round == np.eye(4, dtype=bool)[[1, 2, 3]][folds]).all()


def test_without_folds_a_round_chooses_for_its_own_rows():
    learner = Learner([[0, 1, 2, 3]] * 3)
    train(learner, COSTS, MASKED)
    assert len(learner.given) == 3


def rule(scores):
    return Ranking(None, np.asarray(scores, dtype=float))


def test_what_the_schemes_pick():
    X, all_of_three = np.zeros((1, 1)), np.ones((1, 3), dtype=bool)
    rules = [rule([0, 1, 2]), rule([0, 2, 1]), rule([0, 1, 2])]

    def run(scheme):
        return run_rounds(rules, X, all_of_three, scheme, mask_features_from=None).tolist()

    assert run(MASKED) == [[0, 2, 1]]
    assert run(PUBLISHED) == [[0, 0, 0]]


def test_no_ad_is_picked_when_all_are_chosen():
    available = np.array([[True, False, True], [False] * 3])
    rules = [rule([0, 1, 2])] * 3
    picks = run_rounds(rules, np.zeros((2, 1)), available, MASKED, mask_features_from=None)
    assert picks.tolist() == [[0, 2, NO_AD], [NO_AD] * 3]


# --- duplicates replaced ---------------------------------------------------------------------


def test_distinct_picks_come_first_and_then_the_others_by_their_lots():
    picks = np.array([[2, 2, 0], [1, NO_AD, NO_AD], [3, 1, 0]])
    available = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    found = replace_duplicates(picks, available, 3, np.array([2, 0, 3, 1]))
    assert found.tolist() == [[2, 0, 3], [1, 2, NO_AD], [3, 1, 0]]
    filled = replace_duplicates(
        np.full((1, 2), 1), np.ones((1, 4), bool), 4, np.array([2, 0, 3, 1])
    )
    assert filled.tolist() == [[1, 3, 0, 2]]


def test_lots_belong_to_the_row_and_favor_no_ad():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * (rng.random((3000, 2)) < 0.9)
    X, keys = X[X.any(axis=1)], rng.integers(2**63, size=4, dtype=np.uint64)
    lots = draw_lots(X, keys)
    np.testing.assert_array_equal(draw_lots(csr_matrix(X[:50]), keys), lots[:50])
    picks = np.zeros((len(X), 2), dtype=int)
    found = replace_duplicates(picks, np.ones(lots.shape, bool), 2, lots)
    assert np.bincount(found[:, 1]).tolist() == pytest.approx([0, *[len(X) / 3] * 3], rel=0.1)


def test_last_to_first():
    ranking = np.array([[3, 1, 2], [0, NO_AD, NO_AD], [2, 1, NO_AD]])
    assert last_to_first(ranking).tolist() == [[2, 1, 3], [0, NO_AD, NO_AD], [1, 2, NO_AD]]


# === Settings of the rounds, as `settle_rounds` derives them ====================================

DEFAULTS = {"all_available": True, "reduction": "filter_tree", "method": "masked", "cross_fit": 5}


def settle(n_ads=6, n_select=2, **options):
    return settle_rounds(n_ads, n_select, **(DEFAULTS | options))


def test_defaults():
    settings = settle()
    assert settings.method == MASKED
    assert (settings.n_rounds, settings.max_select, settings.n_folds) == (2, 2, 5)
    assert not (settings.leaves_out or settings.trained_once or settings.ranked_by_cost)
    assert settle(method="published").method == PUBLISHED


@pytest.mark.parametrize(("all_available", "first"), [(True, 1), (False, 0)])
def test_the_mask_is_a_feature_once_it_says_something(all_available, first):
    assert settle(all_available=all_available).mask_features_from == first


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("method", ["masked", "published"])
def test_mask_features_are_for_masked_problems_that_depend_on_the_mask(reduction, method):
    expected = method == "masked" and reduction == "filter_tree"
    sees = settle(reduction=reduction, method=method).mask_features_from is not None
    assert sees == expected


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_fit_serves_all_masked_rounds_of_reductions_that_ignore_the_mask(reduction):
    other = reduction != "filter_tree"
    assert settle(reduction=reduction).trained_once == other
    assert settle(reduction=reduction).ranked_by_cost == (
        reduction in ("regression", "one_vs_rest")
    )
    published = settle(reduction=reduction, method="published")
    assert not (published.trained_once or published.ranked_by_cost)


@pytest.mark.parametrize("n_select", range(1, 7))
def test_large_sets_are_chosen_by_leaving_ads_out(n_select):
    settings = settle(n_select=n_select)
    assert settings.leaves_out == (n_select > 3)
    assert settings.n_rounds == (max(1, 6 - n_select) if n_select > 3 else n_select)
    assert settings.max_select == n_select
    for options in ({"all_available": False}, {"method": "published"}, {"reduction": "regression"}):
        assert not settle(n_select=n_select, **options).leaves_out


@pytest.mark.parametrize("cross_fit", [None, 2])
def test_published_rounds_are_not_cross_fitted(cross_fit):
    assert settle(cross_fit=cross_fit).n_folds == cross_fit
    assert settle(cross_fit=cross_fit, method="published").n_folds is None


@pytest.mark.parametrize("n_select", [0, 7])
def test_impossible_sizes_are_named(n_select):
    refuses(f"n_select={n_select} must be at least 1 and at most 6", settle, n_select=n_select)


# === Searches over costs that are complete, observed in part, or estimated from logs ============

X, COSTS_SEARCH, EXPECTED = make_set_selection(400, 5, 6, random_state=0)
RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random(COSTS_SEARCH.shape) < 0.4, np.nan, COSTS_SEARCH)
SHOWN = RNG.integers(6, size=400)
PAID = COSTS_SEARCH[np.arange(400), SHOWN]
KINDS = {
    "complete": COSTS_SEARCH,
    "observed in part": HOLES,
    "logged": logged_costs(SHOWN, PAID, np.full(400, 1 / 6), ads=range(6)),
    "one a row": np.where(np.arange(6) == SHOWN[:, None], PAID[:, None], np.nan),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", first(2, KINDS))
def test_searches_need_no_configuration(kind):
    y = KINDS[kind]
    learners = [None, Ridge(1e7)]
    search = GridSearchCV(RegressionSetSelector(n_select=2), {"estimator": learners}, cv=3)
    search.set_params(error_score="raise").fit(X, y)
    assert search.best_params_["estimator"] is None or kind == "one a row"
    grid = [
        {"reduction": ["one_vs_rest"], "estimator": [LogisticRegression()],
         "estimator__C": [0.01, 1.0]},
        {"reduction": ["weighted_all_pairs", "regression"]},
    ]  # fmt: skip
    rounds = GridSearchCV(SetSelectClassifier(n_select=2), grid, cv=3, error_score="raise")
    rounds.fit(X, y)
    assert np.isfinite(rounds.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_score_is_unbiased(seed):
    """Ads missing in different shares: 200 draws of what is observed, within 4.5 deviations."""
    rng = np.random.default_rng(seed)
    selector = RegressionSetSelector(n_select=2).fit(X, HOLES)
    truth = selector.score(X, COSTS_SEARCH)
    share = np.linspace(0.3, 0.9, 6)
    scores = []
    for _ in range(200):
        scores.append(
            selector.score(
                X, np.where(rng.random(COSTS_SEARCH.shape) < share, COSTS_SEARCH, np.nan)
            )
        )
    assert abs(np.mean(scores) - truth) < 4.5 * np.std(scores) / np.sqrt(200)


def test_what_is_unknown_earns_nothing():
    """An ad hardly ever observed is as good as its mean, not free."""
    y = np.tile([-1.0, 0.0], (50, 1))
    y[1:, 1] = np.nan
    chooses_unknown = PopularitySetSelector().fit(X[:50], y + np.array([0.0, -5.0]))
    assert (chooses_unknown.predict(X[:50]) == 1).all()
    assert chooses_unknown.score(X[:50], y) == pytest.approx(0.0, abs=1e-12)
    assert PopularitySetSelector().fit(X[:50], y).score(X[:50], y) == 1.0


def test_estimates_are_the_costs_where_all_were_observed():
    np.testing.assert_allclose(
        estimated_costs(COSTS_SEARCH, RNG.random(400)), COSTS_SEARCH, atol=1e-12
    )
    assert np.isnan(estimated_costs(np.array([[1.0, np.nan]]), np.ones(1))[0, 1])


def test_what_cannot_be_estimated():
    hidden = HOLES.copy()
    hidden[:, 2] = np.nan
    selector = RegressionSetSelector(n_select=6).fit(X, HOLES)
    refuses(r"not observed .*logged_costs", selector.score, X, hidden)
    assert np.isfinite(selector.score(X, HOLES))
    surprised = RegressionSetSelector(n_select=6).fit(X, COSTS_SEARCH)  # nothing was missing then
    refuses(r"not observed .*logged_costs", surprised.score, X, HOLES)


def test_unavailable_ads_are_no_missing_costs():
    mask = RNG.random(COSTS_SEARCH.shape) < 0.7
    mask[:, :2] = True
    y = np.where(mask, COSTS_SEARCH, np.nan)
    selector = RegressionSetSelector(n_select=2).fit(X, y, available=mask)
    refuses("enable_metadata_routing", selector.score, X, y)
    assert selector.score(X, y, available=mask) == pytest.approx(
        RegressionSetSelector(n_select=2).fit(X, y, available=mask)
        .set_params(n_select=2).score(X, np.where(mask, y, 1e6), available=mask)
    )  # fmt: skip
    partly = np.where(RNG.random(y.shape) < 0.8, y, np.nan)
    selector.fit(X, partly, available=mask)
    assert np.isfinite(selector.score(X, partly, available=mask))
    assert np.isfinite(cross_val_score(RegressionSetSelector(n_select=2), X, HOLES)).all()


SELECTORS = [RegressionSetSelector(), SetSelectClassifier(), PopularitySetSelector()]
STOCK = RNG.random(COSTS_SEARCH.shape) < 0.7
STOCK[:, :2] = True
FORGOTTEN = r"score was not, .*available=list\(selector.ads_\).*enable_metadata_routing=True"


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
def test_score_is_not_told_what_was_available(selector):
    selector = clone(selector).fit(X, COSTS_SEARCH, available=STOCK)
    with pytest.warns(UserWarning, match=FORGOTTEN):
        unrestricted = selector.score(X, COSTS_SEARCH)
    assert unrestricted == selector.score(X, COSTS_SEARCH, available=list(selector.ads_))
    assert selector.score(X, COSTS_SEARCH, available=STOCK) < unrestricted
    pipeline = make_pipeline(StandardScaler(), selector)
    name = pipeline.steps[-1][0]
    pipeline.fit(X, COSTS_SEARCH, **{f"{name}__available": STOCK})
    with pytest.warns(UserWarning, match=FORGOTTEN):
        pipeline.score(
            X, COSTS_SEARCH, available=STOCK
        )  # which scikit-learn ignores without routing
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, COSTS_SEARCH, available=STOCK).score(X, COSTS_SEARCH, available=STOCK)


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
def test_score_without_anything_unavailable(selector):
    for available in (None, np.ones_like(STOCK), sp.csr_array(np.ones_like(STOCK))):
        clone(selector).fit(X, COSTS_SEARCH, available=available).score(X, COSTS_SEARCH)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["alone", "in a Pipeline"])
def test_a_search_needs_routing_to_know_what_was_available(steps):
    """Two best sellers are seldom in stock; the intercept tells them apart from the others."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 6))
    chance = 1 / (1 + np.exp(1.5 - rows @ rng.normal(size=(6, 8))))
    chance[:, :2] = 0.9
    stock = np.ones(chance.shape, dtype=bool)
    stock[:, :2] = rng.random((600, 2)) < 0.2
    costs = -((rng.random(chance.shape) < chance) & stock).astype(float)
    pipeline = make_pipeline(*steps, RegressionSetSelector(Ridge(), n_select=2))
    grid = {"regressionsetselector__estimator__fit_intercept": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3)
    warns(FORGOTTEN, search.fit, rows, costs, regressionsetselector__available=stock)
    assert not search.best_params_.popitem()[1]
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(rows, costs, available=stock)
    assert search.best_params_.popitem()[1]


# === Rounds of a set selector tell when they are learned: in lines, and to callbacks ============

X_PROGRESS, Y, _ = make_set_selection(200, n_ads=5, random_state=0)


class Recorder:
    """Notes every call as (hook, task name, task id)."""

    def __init__(self):
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(("end", context.task_name, context.task_id))


def selector(**options):
    return SetSelectClassifier(n_select=2, cross_fit=2, random_state=0, **options)


def test_verbose_is_a_line_a_round(capsys):
    told = selector(verbose=1).fit(X_PROGRESS, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"[SetSelectClassifier] round {k} of 2" for k in (1, 2)]
    quiet = selector().fit(X_PROGRESS, Y)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(told.predict(X_PROGRESS), quiet.predict(X_PROGRESS))


def test_rounds_of_ads_to_leave_out_are_told_as_well(capsys):
    fitted = SetSelectClassifier(
        n_select=3, reduction="filter_tree", cross_fit=2, random_state=0, verbose=1
    ).fit(X_PROGRESS, Y)
    assert len(capsys.readouterr().out.splitlines()) == fitted.n_rounds_ == 2


def test_callbacks_get_a_task_a_round():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brought callbacks")
    recorder = Recorder()
    watched = selector().set_callbacks(recorder).fit(X_PROGRESS, Y)
    rounds = [(hook, "round", k) for k in range(2) for hook in ("begin", "end")]
    assert recorder.calls == [
        ("setup", "fit", 0), ("begin", "fit", 0), *rounds, ("end", "fit", 0), ("teardown", "fit", 0)
    ]  # fmt: skip
    np.testing.assert_array_equal(
        watched.predict(X_PROGRESS), selector().fit(X_PROGRESS, Y).predict(X_PROGRESS)
    )
    recorder.calls.clear()
    refuses("NaN", watched.fit, np.full_like(X_PROGRESS, np.nan), Y)
    assert recorder.calls == [("setup", "fit", 0), ("begin", "fit", 0), ("teardown", "fit", 0)]
    assert set(vars(watched)) - set(vars(selector().fit(X_PROGRESS, Y))) == {"_skl_callbacks"}
