"""The weighted SVM: other solvers, metamorphic relations, and the certificate."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.svm import SVC

from skbandit.constrained.paper._cutting_plane import WeightedSVM, ascend, solve_svm, sparse_rows
from skbandit.constrained.solvers import ConvexProblem, CvxpySolver, HingeDuals
from tests.tiers import examples, first

theorem = examples(40)


def random_svm(seed, n=60, d=4, alpha=0.05, fit_intercept=True, both=0.3):
    """Rows of which a share `both` costs something whatever the answer."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    positive = X[:, 0] + rng.normal(size=n) > 0
    p, q = rng.uniform(0.2, 2, (2, n)) / n
    one_sided = rng.random(n) >= both
    p[one_sided & positive] = 0.0
    q[one_sided & ~positive] = 0.0
    return WeightedSVM(sparse_rows(X), p, q, alpha, fit_intercept)


def by_cvxpy(svm):
    """Problem 3 without constraints is the same problem."""
    P, Q = csr_array(svm.p[None]), csr_array(svm.q[None])
    problem = ConvexProblem(svm.X, P, Q, np.zeros(1), svm.alpha, svm.fit_intercept)
    return CvxpySolver().solve(problem, np.inf, 1e-10)


def with_costs(svm, p, q):
    return WeightedSVM(svm.X, p, q, svm.alpha, svm.fit_intercept)


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_agrees_with_libsvm(seed):
    """max(0, 1/2 + f) is half of max(0, 1 + 2 f): SVC's w is twice ours, its C is 2 cost/alpha."""
    svm = random_svm(seed, both=0.0)
    X, y = svm.X.toarray(), np.where(svm.q > 0, 1, -1)
    other = SVC(kernel="linear", C=1.0, tol=1e-5)
    other.fit(X, y, sample_weight=2 * (svm.p + svm.q) / svm.alpha)
    found = solve_svm(svm, 1e-12)
    np.testing.assert_allclose(found.coef, other.coef_[0] / 2, atol=1e-4)
    assert found.intercept == pytest.approx(other.intercept_[0] / 2, abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 5.0])
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_agrees_with_cvxpy(seed, alpha, fit_intercept):
    svm = random_svm(seed, alpha=alpha, fit_intercept=fit_intercept)
    found, exact = solve_svm(svm, 1e-10), by_cvxpy(svm)
    assert found.primal - found.dual <= 1e-10
    assert found.primal == pytest.approx(exact.primal, abs=2e-10)
    np.testing.assert_allclose(found.coef, exact.coef, atol=2 * np.sqrt(1e-10 / alpha))


@theorem
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 4.0, 30.0]), st.booleans())
def test_the_optimum_is_between_the_bounds_however_little_was_done(seed, epochs, fit_intercept):
    svm = random_svm(seed % 3, fit_intercept=fit_intercept)
    exact = by_cvxpy(svm).primal
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0, 0.05, (2, 60))
    near = solve_svm(with_costs(svm, *costs), 1e-2) if seed % 2 else None
    found = solve_svm(svm, 1e-12, near, max_epochs=epochs)
    assert found.dual <= exact + 1e-12
    assert found.primal >= exact - 1e-12
    f = svm.X @ found.coef + found.intercept
    np.testing.assert_allclose(found.scores, f, atol=1e-12)
    assert found.primal == pytest.approx(svm.primal(found.coef, f), abs=1e-14)
    assert found.dual == pytest.approx(svm.dual(found.theta), abs=1e-14)
    assert np.all(found.theta <= svm.q) and np.all(found.theta >= -svm.p)
    if fit_intercept:
        assert found.theta.sum() == pytest.approx(0, abs=1e-12)


@theorem
@given(st.integers(0, 10**6))
def test_any_feasible_theta_is_a_lower_bound(seed):
    rng = np.random.default_rng(seed)
    svm = random_svm(seed % 3)
    theta = svm.feasible(rng.normal(0, rng.choice([0.001, 0.01, 1.0]), 60))
    assert theta.sum() == pytest.approx(0, abs=1e-12)
    assert svm.dual(theta) <= by_cvxpy(svm).primal + 1e-12
    # the two duals of each row: in their boxes, theta apart, and worth what the dual says
    duals = HingeDuals.of(theta, svm.p, svm.q)
    for side, box in [(duals.up, svm.p), (duals.down, svm.q)]:
        assert np.all(side >= -1e-15) and np.all(side <= box + 1e-15)
    np.testing.assert_allclose(duals.down - duals.up, theta, atol=1e-15)
    turned = svm.X.T @ theta
    value = 0.5 * (duals.up + duals.down).sum() - turned @ turned / (2 * svm.alpha)
    assert svm.dual(theta) == pytest.approx(value, abs=1e-12)


@theorem
@given(st.integers(0, 10**6))
def test_a_visit_maximizes_the_dual_in_one_variable(seed):
    """Against a grid; b moves along, as if it were the weight of a feature sqrt(pace alpha)."""
    rng = np.random.default_rng(seed)
    x, (p, q), alpha, pace = rng.normal(size=3), rng.exponential(1, 2), 0.5, 0.2
    p, q = p * (rng.random() > 0.3), q * (rng.random() > 0.3)
    w, b, start = rng.normal(size=3), rng.normal(), rng.uniform(-p, q)
    theta, moved = np.array([start]), w.copy()
    X = csr_array(x[None])
    curvature = np.array([x @ x / alpha + pace])
    costs = np.array([p]), np.array([q])
    rows = np.array([0])
    ascend(*(X.indptr, X.indices, X.data), curvature, *costs, alpha, pace, theta, moved, b, rows, 1)

    def dual(value):
        step = value - start
        gain = np.minimum(q - value / 2, p + value / 2)
        return gain - step * (x @ w + b) - 0.5 * step**2 * curvature[0]

    assert -p <= theta[0] <= q
    assert dual(theta[0]) >= dual(np.linspace(-p, q, 1001)).max() - 1e-12
    np.testing.assert_allclose(moved, w + (theta[0] - start) * x / alpha, atol=1e-12)


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_a_weight_of_two_is_a_row_twice(seed):
    svm = random_svm(seed)
    X, again = svm.X.toarray(), np.arange(0, 60, 3)
    twice = WeightedSVM(
        sparse_rows(np.vstack([X, X[again]])),
        np.append(svm.p, svm.p[again]),
        np.append(svm.q, svm.q[again]),
        svm.alpha,
    )
    factor = np.ones(60)
    factor[again] = 2.0
    weighted = with_costs(svm, factor * svm.p, factor * svm.q)
    one, other = solve_svm(weighted, 1e-12), solve_svm(twice, 1e-12)
    assert one.primal == pytest.approx(other.primal, abs=2e-12)
    np.testing.assert_allclose(one.coef, other.coef, atol=2e-5)
    assert one.intercept == pytest.approx(other.intercept, abs=1e-4)


@pytest.mark.parametrize("far", first(1, [1.0, 30.0]))
def test_moving_the_origin_moves_only_the_intercept(far):
    """So b is not penalized; and a far origin is only slower."""
    svm = random_svm(0)
    by = far * np.ones(4)
    moved = WeightedSVM(sparse_rows(svm.X.toarray() + by), svm.p, svm.q, svm.alpha)
    one, other = solve_svm(svm, 1e-11), solve_svm(moved, 1e-11)
    assert one.primal == pytest.approx(other.primal, abs=2e-11)
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-4)
    assert other.intercept == pytest.approx(one.intercept - by @ one.coef, abs=1e-3)


@pytest.mark.parametrize("tol", [1e-4, 1e-9])
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_warm_start_saves_work_and_changes_nothing(seed, tol):
    svm = random_svm(seed, n=300)
    rng = np.random.default_rng(seed)
    other = with_costs(svm, *(cost * rng.uniform(0.99, 1.01, 300) for cost in (svm.p, svm.q)))
    near = solve_svm(other, tol)
    cold, warm = solve_svm(svm, tol), solve_svm(svm, tol, near)
    assert warm.epochs < cold.epochs
    assert warm.primal == pytest.approx(cold.primal, abs=tol)
    assert solve_svm(svm, tol, cold).epochs <= 1  # w and theta are of different visits


def test_a_start_keeps_rows_at_the_ends_of_their_boxes():
    svm = random_svm(0)
    factor = 10 ** np.random.default_rng(0).uniform(-2, 2, (2, 60))
    other = with_costs(svm, factor[0] * svm.p, factor[1] * svm.q)
    theta = solve_svm(svm, 1e-6).theta
    scaled = other.scaled(theta, svm)
    np.testing.assert_allclose(scaled[theta == svm.q], other.q[theta == svm.q])
    np.testing.assert_allclose(scaled[theta == -svm.p], -other.p[theta == -svm.p])
    assert np.all(scaled <= other.q) and np.all(scaled >= -other.p)
    gone = with_costs(svm, 0 * svm.p, 0 * svm.q)
    np.testing.assert_array_equal(svm.scaled(gone.scaled(theta, svm), gone), np.zeros(60))


def test_a_known_ceiling_ends_the_search():
    svm = random_svm(1)
    exact = by_cvxpy(svm).primal
    found = solve_svm(svm, 1e-4, ceiling=exact)
    assert exact - found.dual <= 1e-4
    assert found.epochs <= solve_svm(svm, 1e-4).epochs
    assert solve_svm(svm, 1e-4, ceiling=0.0).epochs == 0


def test_without_features_the_intercept_decides():
    """Costs of both answers: the optimum is at one of the kinks b = -1/2, 1/2."""
    p, q = np.array([0.2, 0.1, 0.0]), np.array([0.0, 0.3, 0.3])
    found = solve_svm(WeightedSVM(sparse_rows(np.zeros((3, 2))), p, q, 0.1), 1e-12)
    values = [(p * max(0, 0.5 + b) + q * max(0, 0.5 - b)).sum() for b in (-0.5, 0.5)]
    assert found.primal == pytest.approx(min(values), abs=1e-12)
    assert found.dual == pytest.approx(min(values), abs=1e-12)
