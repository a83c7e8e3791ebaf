"""The model of the dual function: its maximum, its centers, and the mean of its cuts."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skbandit.constrained.paper._cutting_plane import (
    Cut,
    CutModel,
    analytic_center,
    maximize,
    mean_cut,
)
from skbandit.constrained.paper._interface import hinge
from tests.constrained.paper.convex_problems import random_problem
from tests.tiers import first


def random_model(seed, m, t=12):
    """Tangents of a concave parabola, shifted up a little: its maximum, 0, is at `top`."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.2, 0.8, m)
    at = rng.uniform(0, 1, (t, m))
    slopes = 2 * (top - at)
    offsets = -((at - top) ** 2).sum(axis=1) - (slopes * at).sum(axis=1) + rng.uniform(0, 0.01, t)
    return CutModel(offsets, slopes), top


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_maximum_and_mixture_certify_each_other(seed, m):
    h, _ = random_model(seed, m)
    top = maximize(h, 1.0)
    assert h(top.v) == pytest.approx(top.value, abs=1e-9)
    assert np.all((top.v >= 0) & (top.v <= 1))
    assert top.mixture.sum() == pytest.approx(1)
    offset, slope = top.mixture @ h.offsets, top.mixture @ h.slopes
    assert offset + np.maximum(slope, 0).sum() == pytest.approx(top.value, abs=1e-9)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_the_analytic_center_is_one(seed, m):
    """Against a general optimizer, and inside: above the lower bound with room to spare."""
    h, best = random_model(seed, m)
    lower, cap = h(best) - 0.05, 2.0
    top = maximize(h, cap)
    v = analytic_center(h, lower, cap, top)
    assert h(v) > lower
    assert np.all((v > 0) & (v < cap))

    def barrier(y):
        slack = np.concatenate([h.offsets + h.slopes @ y[:-1] - y[-1], y[:-1], cap - y[:-1]])
        if slack.min() <= 0 or y[-1] <= lower:
            return np.inf
        return -np.log(slack).sum() - len(h.offsets) * np.log(y[-1] - lower)

    start = np.append(v, (h(v) + lower) / 2)
    other = minimize(
        barrier, start, method="Nelder-Mead", options={"maxfev": 20000, "fatol": 1e-10}
    )
    width = 2 * np.sqrt(h(best) - lower)
    np.testing.assert_allclose(v, other.x[:-1], atol=0.1 * width)


def test_a_mean_is_at_most_its_mixture():
    problem = random_problem(0)
    rng = np.random.default_rng(0)
    cuts = []
    for _ in range(5):
        w, b = rng.normal(size=3), rng.normal()
        cuts.append(Cut.at(problem, w, b, problem.X @ w + b))
    mixture = rng.dirichlet(np.ones(5))
    point = mean_cut(problem, cuts, mixture)
    assert point.offset <= mixture @ [cut.offset for cut in cuts]
    assert np.all(point.g <= mixture @ [cut.g for cut in cuts])
    f = problem.X @ point.coef + point.intercept
    np.testing.assert_allclose(
        point.g, (problem.P @ hinge(f) + problem.Q @ hinge(-f))[1:] - problem.gamma[1:]
    )
