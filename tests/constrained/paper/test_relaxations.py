"""Infeasible bounds: the amounts that are told suffice, and are not much more than needed."""

import re

import numpy as np
import pytest

from skbandit.constrained import RampClassifier
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.paper._starts import relaxations
from skbandit.constrained.rules._advice import Relaxations
from skbandit.constrained.solvers import CvxpySolver
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    difference,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.problems import compiled
from tests.tiers import first

SOLVER = CvxpySolver({"solver": "CLARABEL"})


def one_score(seed, n=60):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x[:, None], (x + rng.normal(size=n) > 0).astype(int)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(5)))
def test_with_one_feature_the_relaxations_are_the_least(seed):
    """Every rule is a threshold from one side: all are tried by brute force."""
    X, y = one_score(seed)
    goals = [recall() >= 0.9, false_positive_rate() <= 0.1]
    problem = compiled(X, y, None, error_rate(), goals)
    thresholds = np.concatenate([[-9.0], np.sort(X[:, 0]) + 1e-9])
    rules = [side * X[:, 0] > side * threshold for threshold in thresholds for side in (1, -1)]
    missed = np.array([[0.9 - r[y == 1].mean(), r[y == 0].mean() - 0.1] for r in rules])
    missed = np.maximum(np.round(missed, 12), 0)
    assert (missed.sum(axis=1) > 0).all()
    found = relaxations(problem, Point(np.ones(1), 0.0), [np.array([0]), np.array([1])], SOLVER)
    alone = [missed[missed[:, 1 - k] == 0, k].min() for k in (0, 1)]
    np.testing.assert_allclose(found.alone, alone)
    assert found.together.sum() == pytest.approx(missed.sum(axis=1).min())


def test_only_several_bounds_that_move_together_are_told_as_several():
    X, y = one_score(0)
    clf = RampClassifier(constraints=[recall() >= 0.9, false_positive_rate() <= 0.1])
    _, goals, _ = clf._read_training(X, y, {})
    alone = np.array([0.2, np.inf])
    first_only = " On these rows it is about enough to relax recall() >= 0.9 to 0.7."
    assert Relaxations(alone, np.array([0.2, 0.0])).in_words(goals) == first_only
    assert Relaxations(alone, np.array([0.15, 0.05])).in_words(goals) == (
        f"{first_only} Relaxing several, it is about enough to move recall() >= 0.9 to 0.75 and "
        "false_positive_rate() <= 0.1 to 0.15."
    )


def told(error, label):
    """The bounds that a message says suffice for a constraint."""
    return [float(text) for text in re.findall(re.escape(label) + r" to (-?[\d.]+\d)", str(error))]


@pytest.mark.thorough
def test_what_the_error_tells_suffices():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    group = np.where(X[:, 1] + rng.normal(size=400) > 0, "a", "b")
    y = (X[:, 0] + (group == "a") + rng.normal(size=400) > 0.5).astype(int)

    def fit(parity, share, rate):
        goals = [difference(positive_rate, by="g") <= parity, precision() >= share]
        clf = RampClassifier(constraints=[*goals, recall() >= rate], alpha=1e-3, solver="newton")
        return clf.fit(X, y, attributes={"g": group})

    with pytest.raises(InfeasibleConstraintsError, match="it is about enough to relax") as error:
        fit(0.02, 0.85, 0.9)
    labels = [
        "difference(positive_rate, by='g') <= 0.02", "precision() >= 0.85", "recall() >= 0.9"
    ]  # fmt: skip
    first_told = [told(error.value, label)[:1] for label in labels]
    assert first_told[1] and first_told[2]
    assert first_told[1][0] < 0.85 and first_told[2][0] < 0.9
    # the rule found is among those that training compares, so it is found again
    assert fit(0.02, first_told[1][0] - 0.01, 0.9).feasible_
    assert fit(0.02, 0.85, first_told[2][0] - 0.01).feasible_


@pytest.mark.thorough
def test_constraints_of_like_names_are_relaxed_one_by_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=150) > 0.3).astype(int)
    g = np.array(["a", "b"])[rng.integers(0, 2, 150)]
    constraints = [
        (recall({"g": "a"}) >= 0.97).named("recall [a]"),
        (recall({"g": "b"}) >= 0.3).named("recall [b]"),
        positive_rate() <= 0.2,
    ]
    said = []
    for order in ([0, 1, 2], [1, 0, 2]):
        clf = RampClassifier(constraints=[constraints[k] for k in order], solver="newton")
        with pytest.raises(InfeasibleConstraintsError) as error:
            clf.fit(X, y, attributes={"g": g})
        said.append([told(error.value, name) for name in ("recall [a]", "recall [b]", "recall")])
    assert said[0] == said[1] and said[0][0] and not said[0][1] and not said[0][2]
