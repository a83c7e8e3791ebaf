"""Rounds as functions of arrays: the problem, the input and the picks of each."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED,
    draw_lots,
    last_to_first,
    replace_duplicates,
    run_rounds,
    train_rounds,
)
from skbandit.selection.reductions._rule import NO_AD


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
