"""Rounds: their training, settings, search and progress."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector
from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED,
    RoundSettings,
    draw_lots,
    replace_duplicates,
    run_rounds,
    train_rounds,
)
from skbandit.selection.reductions._rule import NO_AD, Examples
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

    def __call__(self, examples):
        X = examples.X
        self.given.append((X, examples.costs, examples.allowed, examples.weight))
        scores = np.asarray(self.rankings[(len(self.given) - 1) % len(self.rankings)], dtype=float)
        return Ranking(X[:, 0], scores)


def train(learner, costs, scheme, **options):
    n, n_ads = costs.shape
    settings = RoundSettings(
        scheme, 3, options.get("n_rounds", 3), options.get("mask_features_from")
    )
    rows = options.get("X", np.arange(n, dtype=float)[:, None])
    available = options.get("available", np.ones((n, n_ads), dtype=bool))
    n_choices = options.get("n_choices", np.full(n, settings.n_rounds))
    examples = Examples(rows, costs, available, np.arange(1.0, n + 1))
    return train_rounds(examples, n_choices, learner, settings, options.get("folds"))


COSTS = np.array([[1.0, -2.0, 3.0, 0.5], [4.0, 5.0, 6.0, 7.0], [-1.0, -2.0, -3.0, -4.0]])


def test_masked_rounds_leave_out_what_was_chosen():
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3], [0, 0, 0, 0]])
    train(learner, COSTS, MASKED)
    for _, costs, _, weight in learner.given:
        assert (costs == COSTS).all()  # no shift
        assert (weight == [1, 2, 3]).all()
    masks = [allowed[0].tolist() for _, _, allowed, _ in learner.given]
    assert masks == [[True] * 4, [True, False, True, True], [False, False, True, True]]


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


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_chosen_ads_are_features_of_later_rounds(kind):
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3], [0, 0, 0, 0]])
    rows = kind(np.arange(3.0)[:, None])
    rules = train(learner, COSTS, MASKED, mask_features_from=1, X=rows)
    seen = [X.toarray() if issparse(X) else X for X, *_ in learner.given]
    assert [X.shape[1] for X in seen] == [1, 5, 5]
    assert (seen[1][:, 1:] == [0, 1, 0, 0]).all()
    assert (seen[2][:, 1:] == [1, 1, 0, 0]).all()
    picks = run_rounds(rules, rows, np.ones((3, 4), bool), RoundSettings(MASKED, 3, 3, 1))
    assert (picks == [1, 0, 2]).all()


def test_ads_that_are_not_available_are_features_of_all_rounds():
    learner = Learner([[2, 1, 3, 4], [1, 0, 2, 3]])
    available = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=bool)
    train(learner, COSTS, MASKED, mask_features_from=0, available=available, n_rounds=2)
    first, second = (X[:, 1:] for X, *_ in learner.given)
    assert (first == ~available).all()
    assert (second == ~available | np.array([0, 1, 0, 0], dtype=bool)).all()


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


@pytest.mark.parametrize(
    ("scheme", "picks"),
    [(MASKED, [[0, 2, 1], [0, 2, NO_AD], [NO_AD] * 3]), (PUBLISHED, [[0] * 3] * 2 + [[NO_AD] * 3])],
    ids=["masked", "published"],
)
def test_rounds_pick_the_best_ad_that_is_left(scheme, picks):
    """Masked rounds leave out what was chosen, published ones do not."""
    rules = [Ranking(None, np.array(scores)) for scores in ([0.0, 1, 2], [0.0, 2, 1], [0.0, 1, 2])]
    available = np.array([[True] * 3, [True, False, True], [False] * 3])
    found = run_rounds(rules, np.zeros((3, 1)), available, RoundSettings(scheme, 3, 3, None))
    assert found.tolist() == picks


# --- duplicates replaced ---------------------------------------------------------------------


def test_distinct_picks_come_first_and_then_the_others_by_their_lots():
    picks = np.array([[2, 2, 0], [1, NO_AD, NO_AD], [3, 1, 0], [1, 1, 1]])
    available = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=bool)
    found = replace_duplicates(picks, available, 3, np.array([2, 0, 3, 1]))
    assert found.tolist() == [[2, 0, 3], [1, 2, NO_AD], [3, 1, 0], [1, 3, 0]]


def test_lots_belong_to_the_row_and_favor_no_ad():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) * (rng.random((3000, 2)) < 0.9)
    X, keys = X[X.any(axis=1)], rng.integers(2**63, size=4, dtype=np.uint64)
    lots = draw_lots(X, keys)
    np.testing.assert_array_equal(draw_lots(csr_matrix(X[:50]), keys), lots[:50])
    picks = np.zeros((len(X), 2), dtype=int)
    found = replace_duplicates(picks, np.ones(lots.shape, bool), 2, lots)
    assert np.bincount(found[:, 1]).tolist() == pytest.approx([0, *[len(X) / 3] * 3], rel=0.1)


# === Searches over costs that are complete, observed in part, or estimated from logs ============

X, COSTS_SEARCH, EXPECTED = make_set_selection(400, 5, 6, random_state=0)
RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random(COSTS_SEARCH.shape) < 0.4, np.nan, COSTS_SEARCH)
SELECTORS = [RegressionSetSelector(), SetSelectClassifier(), PopularitySetSelector()]
STOCK = RNG.random(COSTS_SEARCH.shape) < 0.7
STOCK[:, :2] = True
FORGOTTEN = r"score was not, .*available=list\(selector.ads_\).*enable_metadata_routing=True"


def test_the_score_of_costs_observed_in_part_is_unbiased():
    """Ads missing in different shares: 200 draws of what is observed, within 4.5 deviations."""
    rng = np.random.default_rng(0)
    selector = RegressionSetSelector(n_select=2).fit(X, HOLES)
    seen = rng.random((200, *COSTS_SEARCH.shape)) < np.linspace(0.3, 0.9, 6)
    scores = [selector.score(X, np.where(mask, COSTS_SEARCH, np.nan)) for mask in seen]
    error = np.mean(scores) - selector.score(X, COSTS_SEARCH)
    assert abs(error) < 4.5 * np.std(scores) / np.sqrt(200)


def test_an_ad_hardly_ever_observed_scores_its_mean():
    y = np.tile([-1.0, 0.0], (50, 1))
    y[1:, 1] = np.nan
    chooses_unknown = PopularitySetSelector().fit(X[:50], y + np.array([0.0, -5.0]))
    assert (chooses_unknown.predict(X[:50]) == 1).all()
    assert chooses_unknown.score(X[:50], y) == pytest.approx(0.0, abs=1e-12)
    assert PopularitySetSelector().fit(X[:50], y).score(X[:50], y) == 1.0


def test_score_refuses_costs_that_cannot_be_estimated():
    hidden = np.where(np.arange(6) == 2, np.nan, HOLES)
    selector = RegressionSetSelector(n_select=6).fit(X, HOLES)
    refuses(r"not observed .*logged_costs", selector.score, X, hidden)
    complete = selector.fit(X, COSTS_SEARCH)  # nothing was missing then
    refuses(r"not observed .*logged_costs", complete.score, X, HOLES)


def test_costs_of_unavailable_ads_are_not_missing():
    y = np.where(STOCK, COSTS_SEARCH, np.nan)
    selector = RegressionSetSelector(n_select=2).fit(X, y, available=STOCK)
    refuses("enable_metadata_routing", selector.score, X, y)
    score = selector.score(X, y, available=STOCK)
    assert score == selector.score(X, np.where(STOCK, y, 1e6), available=STOCK)
    partly = np.where(RNG.random(y.shape) < 0.8, y, np.nan)
    selector.fit(X, partly, available=STOCK)
    assert np.isfinite(selector.score(X, partly, available=STOCK))


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
def test_score_warns_if_it_is_not_told_what_was_available(selector):
    selector = clone(selector).fit(X, COSTS_SEARCH, available=STOCK)
    unrestricted = warns(FORGOTTEN, selector.score, X, COSTS_SEARCH)
    assert unrestricted == selector.score(X, COSTS_SEARCH, available=list(selector.ads_))
    assert selector.score(X, COSTS_SEARCH, available=STOCK) < unrestricted
    pipeline = make_pipeline(StandardScaler(), selector)
    pipeline.fit(X, COSTS_SEARCH, **{f"{pipeline.steps[-1][0]}__available": STOCK})
    # scikit-learn ignores it without routing
    warns(FORGOTTEN, pipeline.score, X, COSTS_SEARCH, available=STOCK)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(X, COSTS_SEARCH, available=STOCK).score(X, COSTS_SEARCH, available=STOCK)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_score_is_silent_if_all_was_available(form):
    selector = PopularitySetSelector().fit(X, COSTS_SEARCH, available=form(np.ones_like(STOCK)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector.score(X, COSTS_SEARCH)


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
    with (
        sklearn.config_context(enable_metadata_routing=True),
        warnings.catch_warnings(record=True) as told,
    ):
        search.fit(rows, costs, available=stock)
    # Old versions of scikit-learn do not route what scores of a Pipeline need: the user is told.
    assert search.best_params_.popitem()[1] != bool(told)


# === Rounds of a set selector tell when they are learned: in lines, and to callbacks ============

X_PROGRESS, Y, _ = make_set_selection(200, n_ads=5, random_state=0)


class Recorder:
    """Notes every call as (hook, task name, task id)."""

    def __init__(self):
        self.calls = []

    def note(self, hook, context):
        self.calls.append((hook, context.task_name, context.task_id))

    def setup(self, estimator, context):
        self.note("setup", context)

    def teardown(self, estimator, context):
        self.note("teardown", context)

    def on_fit_task_begin(self, estimator, context, **ignored):
        self.note("begin", context)

    def on_fit_task_end(self, estimator, context, **ignored):
        self.note("end", context)


def selector(**options):
    return SetSelectClassifier(**{"n_select": 2, "cross_fit": 2, "random_state": 0} | options)


@pytest.mark.parametrize(
    ("options", "ad_features"),
    [
        ({}, None),
        ({"n_select": 3, "reduction": "filter_tree"}, None),  # ads to leave out
        ({}, np.eye(5)),
    ],
)
def test_verbose_prints_a_line_a_round(options, ad_features, capsys):
    told = selector(verbose=1, **options).fit(X_PROGRESS, Y, ad_features=ad_features)
    lines = [f"[SetSelectClassifier] round {k} of 2" for k in (1, 2)]
    assert capsys.readouterr().out.splitlines() == lines
    quiet = selector(**options).fit(X_PROGRESS, Y, ad_features=ad_features)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(told.predict(X_PROGRESS), quiet.predict(X_PROGRESS))


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
