"""Random changes of w: ranks are exact, and a search ends at or near the best linear rule."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.constrained._tolerances import PERTURBATIONS, PERTURBED_ROWS
from skbandit.constrained.thresholds._candidates import best_threshold
from skbandit.constrained.training._train import (
    MISSED,
    HardGoals,
    number_of_perturbations,
    search_perturbations,
)
from skbandit.rates import (
    difference,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.problems import compiled
from tests.tiers import first

GOALS = {
    "parity": (error_rate(), [difference(positive_rate, by="g") <= 0.02]),
    "equalised odds": (
        error_rate(),
        [difference(recall, by="g") <= 0.05, difference(false_positive_rate, by="g") <= 0.05],
    ),
    "precision": (false_negative_rate(), [precision() >= 0.85]),
    "recall": (false_positive_rate(), [recall() >= 0.95]),
    "f1": (f1(), [positive_rate() <= 0.4]),
}


def draw(seed, n=110, d=2):
    """Rows of two overlapping classes whose groups differ in the first feature."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.45
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.7 * group
    y = X[:, :2] @ [1, 0.6] + 0.3 * group + 1.2 * rng.normal(size=n) > 0.3
    return X, y.astype(int), np.where(group, "a", "b")


def problem_of(seed, name, **settings):
    X, y, group = draw(seed, **settings)
    return compiled(X, y, group, *GOALS[name], alpha=1e-3)


def goals_of(problem):
    return HardGoals(problem.objective, problem.goals)


def enumerated_optimum(problem):
    """The best hard objective of all lines: the order of rows changes at n (n - 1) angles only."""
    X = problem.X
    one, other = np.triu_indices(len(X), 1)
    across = X[one] - X[other]
    angles = np.mod(np.arctan2(across[:, 1], across[:, 0]) + np.pi / 2, np.pi)
    angles = np.sort(np.concatenate([angles, angles + np.pi]))
    middles = 0.5 * (angles + np.append(angles[1:], angles[0] + 2 * np.pi))
    directions = np.column_stack([np.cos(middles), np.sin(middles)])
    return goals_of(problem).ranks(directions @ X.T).min()


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks_are_those_of_the_exact_threshold_search(name, ties):
    X, y, group = draw(3, n=60)
    rng = np.random.default_rng(4)
    X = np.round(X) if ties else X
    problem = compiled(X, y, group, *GOALS[name], rng.integers(1, 4, 60).astype(float))
    directions = np.vstack([rng.integers(-2, 3, (30, 2)), np.zeros(2)]).astype(float)
    scores = directions @ problem.X.T
    expected = []
    for some in scores:
        found = best_threshold(some, problem.objective, problem.goals, preferred=0.0)
        expected.append(found.objective if found.feasible else MISSED - found.slack)
    ranks = goals_of(problem).ranks(scores)
    np.testing.assert_allclose(ranks, expected, rtol=1e-9, atol=1e-9)
    assert (ranks < MISSED).any()


def test_directions_that_miss_are_ranked_by_how_much():
    X, y, group = draw(0, n=60)
    bounds = [recall() >= 0.9, false_positive_rate() <= 0.02]
    problem = compiled(X, y, group, error_rate(), bounds)
    ranks = goals_of(problem).ranks(np.array([[0.0, 1.0], [1.0, 0.6], [-1.0, -0.6]]) @ X.T)
    assert (ranks > MISSED).all()
    assert ranks.argsort().tolist() == [1, 0, 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_search_never_loses_its_starts_and_depends_on_its_seed_only(sparse):
    problem = problem_of(1, "parity", d=6)
    goals, X = goals_of(problem), csr_array(problem.X) if sparse else problem.X
    starts = [np.eye(6)[0], np.zeros(6), np.ones(6)]

    def search(seed, n=60):
        return search_perturbations(X, goals, starts, n, np.random.default_rng(seed))

    before = goals.ranks(np.array([starts[0], starts[2]]) @ problem.X.T).min()
    after = goals.ranks((problem.X @ search(0))[None, :])[0]
    assert after < before
    np.testing.assert_array_equal(search(0), search(0))
    assert (search(0) != search(1)).any()
    kept = goals.ranks((problem.X @ search(0, n=0))[None, :])[0]
    assert kept == before


def test_a_search_does_not_depend_on_the_units_of_features():
    problem = problem_of(1, "parity", d=3)
    unit = np.array([1.0, 1024.0, 2.0**-10])
    start = np.array([1.0, 0.5, 0.0])

    def search(X, start):
        found = search_perturbations(X, goals_of(problem), [start], 60, np.random.default_rng(0))
        return X @ found

    np.testing.assert_allclose(search(problem.X * unit, start / unit), search(problem.X, start))


def test_few_rows_are_searched_by_default():
    assert number_of_perturbations("auto", PERTURBED_ROWS) == PERTURBATIONS
    assert number_of_perturbations("auto", PERTURBED_ROWS + 1) == 0
    assert number_of_perturbations(7, 10**6) == 7
    assert number_of_perturbations(0, 5) is None


def reached_and_optimum(seed, name, **settings):
    """The objective on the training rows, and the best that any line can reach on them."""
    X, y, group = draw(seed)
    clf = ConstrainedRampClassifier(
        *GOALS[name], alpha=1e-3, threshold="train", solver="newton", **settings
    )
    predicted = clf.fit(X, y, attributes={"g": group}).predict(X)
    assert clf.feasible_
    reached = GOALS[name][0].value(y, predicted, {"g": group})
    optimum = enumerated_optimum(problem_of(seed, name))
    assert reached >= optimum - 1e-9
    return reached, optimum


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_finds_the_optimum_of_a_tiny_problem():
    reached, optimum = reached_and_optimum(0, "equalised odds")
    assert reached == pytest.approx(optimum)
    alone, _ = reached_and_optimum(0, "equalised odds", n_perturbations=0)
    assert alone > optimum + 1e-9


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_finds_most_optima_of_tiny_problems():
    names = ["parity", "equalised odds", "precision", "recall"]
    found = [reached_and_optimum(seed, name) for seed in range(8) for name in names]
    exact = [reached <= optimum + 1e-9 for reached, optimum in found]
    assert sum(exact) >= 28
    assert max(reached - optimum for reached, optimum in found) < 0.05


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_training_is_never_worse_than_the_unconstrained_direction_with_its_best_threshold(seed):
    X, y, _ = draw(seed, n=300, d=5)
    goals = GOALS["recall"]
    clf = ConstrainedRampClassifier(*goals, alpha=1e-3, threshold="train", solver="newton").fit(
        X, y
    )
    moved = ConstrainedThreshold(LogisticRegression(), *goals, cv=None).fit(X, y)
    assert clf.feasible_
    reached, other = (goals[0].value(y, one.predict(X)) for one in (clf, moved))
    assert reached <= other + 1e-9
