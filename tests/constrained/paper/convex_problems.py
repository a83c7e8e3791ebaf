"""Convex problems that every solver is tried on."""

import numpy as np
from scipy.sparse import csr_array

from skbandit.constrained.paper._interface import hinge
from skbandit.constrained.solvers import ConvexProblem


def random_problem(seed, n=40, d=3, m=2, slack=0.05, alpha=0.1, fit_intercept=True):
    """Noisy labels; each constraint can be met with `slack` left by some random (w, b)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signed = rng.uniform(-1, 1, (1 + m, n))
    signed[0] = -np.sign(X[:, 0] + 0.5 * rng.normal(size=n)) * rng.uniform(0.5, 1.5, n)
    signed /= np.abs(signed).sum(axis=1, keepdims=True)
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    f = X @ rng.normal(0, 0.3, d) + (0.2 * rng.normal() if fit_intercept else 0.0)
    gamma = P @ hinge(f) + Q @ hinge(-f) + slack
    gamma[0] = rng.normal()
    return ConvexProblem(X, P, Q, gamma, alpha, fit_intercept)


def known_optimum(seed, n=30, d=6, violation=None):
    """A problem made backwards from its solution (w, b, v).

    Scores and duals are chosen so that complementarity holds: rows off the kinks have their
    duals at an end, three rows sit on a kink with duals inside. A last row makes the duals
    sum to 0; then X is built with X w + b = f and X'(down - up) = alpha w.
    """
    rng = np.random.default_rng(seed)
    w, b, v = rng.normal(size=d), rng.normal(), np.array([1.0, 0.4, 0.2, 0.0])
    signed = rng.uniform(-1, 1, (4, n)) / n
    signed[:, :2], signed[:, 2] = np.abs(signed[:, :2]), -np.abs(signed[:, 2])
    signed[1:] *= 0.3
    signed[1:, -1] = 0.0
    f = -np.sign(v @ signed) * rng.uniform(-0.05, 0.8, n)
    f[:3] = -0.5, -0.5, 0.5
    p, q = v @ np.maximum(signed, 0), v @ np.maximum(-signed, 0)
    theta = np.where(f < 0.5, q, 0) - np.where(f > -0.5, p, 0)
    theta[:3] = rng.uniform(0.2, 0.8, 3) * [-p[0], -p[1], q[2]]
    rest = theta[:-1].sum()  # the last row evens it out, on the side of its label
    signed[0, -1], f[-1], theta[-1] = rest, -0.4 * np.sign(rest), -rest
    along = theta @ f / (w @ w)
    assert along > 0
    Z = rng.normal(size=(n, d))
    Z -= np.outer(Z @ w, w) / (w @ w)
    Z -= np.outer(theta, theta @ Z) / (theta @ theta)
    X = np.outer(f - b, w) / (w @ w) + Z
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    gamma = P @ hinge(f) + Q @ hinge(-f)
    gamma[0] = 0.3
    gamma[3] += 0.05  # not active
    if violation is not None:
        gamma[1] -= violation
    return ConvexProblem(X, P, Q, gamma, along), w, b, v[1:]


def penalized(problem, w, b, penalty):
    rows = problem.rows(problem.X @ w + b)
    return rows[0] + problem.alpha / 2 * w @ w + penalty * np.maximum(rows[1:], 0).sum()


KINDS = ("normal", "binary", "rare", "repeated", "scaled", "empty")


def awkward_problem(seed):
    """A feasible problem of the kinds that solvers stumble over.

    Few rows or many features, rare, repeated, badly scaled or empty columns, dense or sparse,
    constraints that leave hardly any room or oppose one another, lambda from 1e-7 to 10.
    """
    rng = np.random.default_rng(seed)
    n, d, m = (
        int(rng.choice(sizes)) for sizes in ([5, 20, 60, 200], [1, 2, 5, 20, 60], [0, 1, 2, 5])
    )
    kind = rng.choice(KINDS)
    X = rng.normal(size=(n, d))
    if kind == "binary":
        X = (X > 0).astype(float)
    elif kind == "rare":
        X = X * (rng.random((n, d)) < 0.05)
    elif kind == "repeated":
        X = X[rng.integers(0, max(2, n // 3), n)]
    elif kind == "scaled":
        X = X * 10.0 ** rng.integers(-2, 3, d)
    elif kind == "empty":
        X[:, ::2] = 0
    signed = rng.uniform(-1, 1, (1 + m, n)) * (rng.random((1 + m, n)) < rng.choice([0.3, 1.0]))
    noise = rng.choice([0, 0.5]) * rng.normal(size=n)  # without it: separable
    signed[0] = -np.sign(X[:, 0] + noise + 1e-9) * rng.uniform(0.5, 1.5, n)
    if m >= 2 and rng.random() < 0.5:
        signed[2] = -signed[1]
    signed /= np.maximum(np.abs(signed).sum(axis=1, keepdims=True), 1e-300)
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    fit_intercept = bool(rng.random() < 0.8)
    size = np.maximum(1, np.abs(X).max(axis=0) * np.sqrt(d))
    f = X @ rng.normal(0, 0.3 / size) + (0.2 * rng.normal() if fit_intercept else 0.0)
    gamma = P @ hinge(f) + Q @ hinge(-f) + rng.choice([1e-3, 0.05])
    gamma[0] = rng.normal()
    alpha = 10.0 ** rng.uniform(-7, 1)
    return ConvexProblem(
        csr_array(X) if rng.random() < 0.5 else X, P, Q, gamma, alpha, fit_intercept
    )
