"""The representer theorem: training in the span of the rows is the same problem."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from skbandit.constrained import RampClassifier
from skbandit.constrained.paper import _problem, _ramp_classifier
from skbandit.constrained.paper._problem import RowSpan, row_span
from skbandit.constrained.solvers import CvxpySolver
from skbandit.rates import churn, false_positive_rate, recall
from tests.constrained.paper.convex_problems import random_problem
from tests.tiers import first

RNG = np.random.default_rng(5)
DENSE = RNG.normal(size=(12, 40))
WIDE = {
    "dense": DENSE,
    "sparse": csr_array(random_array((12, 40), density=0.2, rng=np.random.default_rng(1))),
    "uncentered": DENSE + 1e3,
    "one column more": DENSE[:, :13],
    "repeated rows": DENSE[RNG.integers(0, 5, 12)],
    "opposite rows": np.concatenate([DENSE[:6], -DENSE[:6]]),
    "rows of zeros": DENSE * (np.arange(12) < 4)[:, None],
    "tiny": 1e-150 * DENSE,
    "of very different scales": DENSE * np.append(1e7, np.ones(39)),
    "differing by little": DENSE[[0]] + 1e-6 * DENSE,
}


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


@pytest.mark.parametrize("name", WIDE)
def test_coordinates_in_an_orthonormal_basis_of_the_span(name):
    X = WIDE[name]
    span = row_span(X)
    n, r = span.rows.shape
    assert n == 12 and r == np.linalg.matrix_rank(dense(X))
    rng = np.random.default_rng(0)
    u = rng.normal(size=r)
    w = span.weights(u)
    np.testing.assert_allclose(w @ w, u @ u, rtol=1e-6)
    size = np.abs(dense(X)).max()
    np.testing.assert_allclose(X @ w / size, span.rows @ u / size, atol=1e-6)
    # in the span: a combination of the rows
    combination = np.linalg.lstsq(dense(X).T, w, rcond=None)[0]
    np.testing.assert_allclose(dense(X).T @ combination, w, atol=1e-6)


@pytest.mark.parametrize("X", [DENSE[:, :12], DENSE[:, :3], np.zeros((3, 9)), DENSE[:1, :1]])
def test_tall_rows_and_zeros_are_left_alone(X):
    span = row_span(X)
    assert span.rows is X and span.combinations is None
    w = np.arange(X.shape[1])
    assert span.weights(w) is w


def test_many_rows_are_left_alone(monkeypatch):
    monkeypatch.setattr(_problem, "MAX_ROWS", 11)
    assert row_span(DENSE).rows is DENSE


def test_sparse_rows_of_very_different_scales_are_left_alone():
    X = csr_array(WIDE["of very different scales"])
    assert row_span(X).rows is X


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_the_convex_problem_has_the_same_optimum(seed, kind, penalty, fit_intercept):
    problem = random_problem(seed, n=12, d=30, slack=0.02, fit_intercept=fit_intercept)
    if kind == "sparse":
        X = problem.X * (np.random.default_rng(seed).random((12, 30)) < 0.3)
        problem = replace(problem, X=csr_array(X))
    solver = CvxpySolver({"solver": "CLARABEL"})
    if kind == "sparse" and np.isinf(penalty):
        penalty = 100.0  # the random point that the bounds allow for was for dense rows
    direct = solver.solve(problem, penalty, 1e-10)
    span = row_span(problem.X)
    found = solver.solve(replace(problem, X=span.rows), penalty, 1e-10)
    np.testing.assert_allclose(span.weights(found.coef), direct.coef, atol=1e-6)
    assert found.intercept == pytest.approx(direct.intercept, abs=1e-6)
    assert found.primal == pytest.approx(direct.primal, abs=1e-9)
    np.testing.assert_allclose(found.multipliers, direct.multipliers, atol=1e-5)


@pytest.fixture
def wide():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 150))
    y = (X[:, :4].sum(axis=1) + rng.normal(size=60) > 0).astype(int)
    return X, y


GOALS = dict(objective=false_positive_rate(), constraints=recall() >= 0.8, alpha=0.5)


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "fit_intercept"), [("dense", True), ("sparse", False)])
def test_the_classifier_is_the_same(wide, kind, fit_intercept, monkeypatch):
    X, y = wide
    if kind == "sparse":
        X = csr_array(X * (np.abs(X) > 1))
    options = GOALS | {"solver": "newton", "fit_intercept": fit_intercept, "tol": 1e-9}
    clf = RampClassifier(**options, max_iter=50).fit(X, y)
    monkeypatch.setattr(_ramp_classifier, "row_span", lambda design: RowSpan(design, design))
    direct = RampClassifier(**options, max_iter=50).fit(X, y)
    np.testing.assert_allclose(clf.coef_, direct.coef_, atol=2e-3 * np.abs(direct.coef_).max())
    assert clf.objective_path_[-1] == pytest.approx(direct.objective_path_[-1], rel=1e-4)
    np.testing.assert_array_equal(clf.predict(X), direct.predict(X))
    combination = np.linalg.lstsq(dense(X).T, clf.coef_[0], rcond=None)[0]
    np.testing.assert_allclose(dense(X).T @ combination, clf.coef_[0], atol=1e-10)


def test_extra_rows_widen_the_span(wide):
    X, y = wide
    extra = np.random.default_rng(4).normal(size=(30, 150))
    deployed = {"deployed": (extra[:, 0] > 0).astype(int)}
    goals = [recall() >= 0.8, churn("deployed", on="extra") <= 0.3]
    clf = RampClassifier(false_positive_rate(), goals)
    clf.fit(X, y, X_extra=extra, attributes_extra=deployed)
    assert clf.feasible_
    changed = clf.predict(extra) != deployed["deployed"]
    assert changed.mean() == pytest.approx(clf.constraint_report_["value"].iloc[1])
    assert changed.mean() <= 0.3
    residual = clf.coef_[0] - X.T @ np.linalg.lstsq(X.T, clf.coef_[0], rcond=None)[0]
    assert np.linalg.norm(residual) > 0.1 * np.linalg.norm(clf.coef_)
