"""One option from each set: the optimum, its certificate and infeasibility, by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from skbandit.constrained.rules import _multiple_choice
from skbandit.constrained.rules._multiple_choice import MultipleChoice, Options, minimize
from skbandit.utils._validation import ROUNDING
from tests.tiers import first


def drawn(seed, quotient):
    """Up to four sets of up to seven options under up to three bounds, many of them tight."""
    rng = np.random.default_rng(seed)
    n_bounds = rng.integers(0, 4)
    sets = []
    for _ in range(rng.integers(1, 5)):
        m = rng.integers(1, 8)
        below = rng.random(m) if quotient else np.zeros(m)
        uses = rng.normal(size=(n_bounds, m))
        sets.append(Options(rng.normal(size=m).cumsum(), below, np.arange(n_bounds), uses))
    bound = 0.8 * rng.normal(size=n_bounds)
    return MultipleChoice(tuple(sets), 0.1, 0.0 if quotient else 1.0, bound)


def enumerated(problem):
    """The best value of a feasible choice, and the smallest excess of any."""
    best = least = math.inf
    for choice in itertools.product(*(range(len(one)) for one in problem.sets)):
        excess = problem.excess(np.array(choice))
        least = min(least, excess)
        if excess <= ROUNDING:
            best = min(best, problem.value(np.array(choice)))
    return best, least


@pytest.mark.parametrize("quotient", [False, True])
@pytest.mark.parametrize("seeds", first(1, [range(20), range(20, 400)]), ids=repr)
def test_equals_enumeration(quotient, seeds):
    infeasible = 0
    for seed in seeds:
        problem = drawn(seed, quotient)
        best, least = enumerated(problem)
        found = minimize(problem, np.zeros(len(problem.sets), dtype=int))
        assert found.value == problem.value(found.options)
        assert found.excess == problem.excess(found.options)
        if math.isinf(best):
            infeasible += 1
            assert found.excess == pytest.approx(least, abs=1e-9)
            assert found.lowest == math.inf  # proven
        else:
            assert found.excess <= ROUNDING
            assert found.value == pytest.approx(best, abs=1e-8)
            assert found.lowest == pytest.approx(best, abs=1e-8)
    assert 1 < infeasible < len(seeds) - 1


@pytest.mark.parametrize(
    ("quotient", "value", "bound"), [(False, -6 / 2, (-5 - 10 / 3) / 2), (True, -6 / 3, -2 - 1 / 2)]
)
def test_a_search_cut_short_is_bounded_by_fractions_of_options(quotient, value, bound, monkeypatch):
    """Gains of 6, 5 and 5 take 4, 3 and 3 of 5: one fits.

    Of fractions, 5 and 2/3 of 5 do, divided by 2. Divided by 2 and the number of options taken,
    one yields 6/3 = 2; less 2 per option and twice 2, fractions gain 5 - 4 = 1, which is divided by
    2 at least.
    """
    sets = tuple(
        Options(
            np.array([0.0, -gain]), np.array([0.0, quotient]), np.arange(1), np.array([[0, use]])
        )
        for gain, use in ((6.0, 4.0), (5.0, 3.0), (5.0, 3.0))
    )
    problem = MultipleChoice(sets, 0.0, 2.0, np.array([5.0]))
    whole = minimize(problem, np.zeros(3, dtype=int))
    assert (whole.value, whole.lowest) == pytest.approx((value, value))
    for name, n in (("ENUMERATED", 0), ("BOXES", 1), ("MORE_BOXES", 1)):
        monkeypatch.setattr(_multiple_choice, name, n)
    short = minimize(problem, np.zeros(3, dtype=int))
    assert (short.value, short.lowest) == pytest.approx((value, bound))


def test_no_bounds_take_the_best_of_each_set():
    rng = np.random.default_rng(0)
    none = np.zeros(0, dtype=int)
    sets = tuple(Options(rng.random(9), np.zeros(9), none, np.zeros((0, 9))) for _ in range(30))
    found = minimize(MultipleChoice(sets, 0.0, 1.0, np.zeros(0)), np.zeros(30, dtype=int))
    assert found.options.tolist() == [int(np.argmin(one.numerator)) for one in sets]


def test_a_solver_that_fails_leaves_the_optimum_to_branching(monkeypatch):
    monkeypatch.setattr(_multiple_choice, "linprog", lambda *_, **__: OptimizeResult(x=None))
    for seed in range(10):
        problem = drawn(seed, False)
        best, _ = enumerated(problem)
        found = minimize(problem, np.zeros(len(problem.sets), dtype=int))
        assert math.isinf(best) or found.value == pytest.approx(best, abs=1e-8)
