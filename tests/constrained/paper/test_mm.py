"""Algorithm 1: what a run of MM promises, on small problems."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skbandit.constrained._goals import Declared
from skbandit.constrained.paper._mm import AccuracySchedule, ElasticPenalty, majorize_minimize
from skbandit.constrained.paper._problem import Iterate, Point, compile_problem
from skbandit.constrained.paper._tolerances import (
    FEASIBLE,
    FINER,
    FIRST_PENALTY,
    LAST_PENALTY,
    RAISE_PENALTY,
)
from skbandit.constrained.solvers import (
    AugmentedLagrangianSolver,
    CvxpySolver,
    Solution,
    SolverError,
)
from skbandit.measure import Columns, Data, Rows
from skbandit.rates import (
    difference,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.problems import compiled, sample
from tests.tiers import first

SOLVER = CvxpySolver({"solver": "CLARABEL"})
ZERO = Point(np.zeros(3), 0.0)
A, B = {"g": "a"}, {"g": "b"}


def run(problem, start=ZERO, solver=SOLVER, max_iter=15, tol=1e-6):
    steps = []
    found = majorize_minimize(
        problem, start, solver, max_iter=max_iter, tol=tol, report=steps.append
    )
    return found, steps


class Scripted:
    """Returns given solutions in turn; an exception is raised. Remembers the penalties."""

    name, rough, exact = "scripted", 1e-10, 1e-10

    def __init__(self, *script):
        self.script, self.penalties = list(script), []

    def solve(self, problem, penalty, tol, warm=None):
        self.penalties.append(penalty)
        move = self.script.pop(0)
        if isinstance(move, Exception):
            raise move
        coef, v = move
        return Solution(np.asarray(coef, float), 0.0, np.asarray(v, float), 0.0, 0.0)


GOALS = {
    "false positives": (error_rate(), [false_positive_rate() <= 0.5]),
    "parity": (error_rate(), [abs(positive_rate(A) - positive_rate(B)) <= 0.05]),
    "f1": (f1(), [positive_rate() <= 0.5]),
    "precision": (precision(), [recall() >= 0.5]),
    "recall": (recall(), [precision() >= 0.2, false_positive_rate() <= 0.5]),
}


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_from_a_feasible_start_the_path_descends_and_stays_feasible(name, seed):
    X, y, group = sample(seed, n=60)
    problem = compiled(X, y, group, *GOALS[name])
    before = problem.evaluate(ZERO)
    assert before.violations.max() <= 1e-12
    found, steps = run(problem)
    path = [before.objective, *found.path]
    assert (np.diff(path) <= 0).all()
    assert path[-1] < before.objective
    assert all(step.violation <= FEASIBLE for step in steps)
    assert [step.objective for step in steps] == list(found.path)
    end = problem.evaluate(found.point)
    assert (end.objective, end.violations.max()) == (found.path[-1], found.violation)
    assert found.feasible and found.converged


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_an_infeasible_first_bound_does_not_make_the_problem_infeasible(seed):
    """Recall >= .8 and FPR <= .2 with outliers: hinges pay for their distance, ramps do not."""
    X, y, group = sample(seed, n=60, noise=0.2)
    X[:3, 0], y[:3] = X[:3, 0] + 3, 0
    X[3:6, 0], y[3:6] = X[3:6, 0] - 3, 1
    problem = compiled(X, y, group, error_rate(), [recall() >= 0.8, false_positive_rate() <= 0.2])
    with pytest.raises(SolverError, match="infeasible"):
        SOLVER.solve(problem.majorize_at(ZERO), np.inf, 1e-10)
    found, steps = run(problem)
    assert steps[0].violation > FEASIBLE
    assert found.feasible
    inside = [step.violation <= FEASIBLE for step in steps]
    first = inside.index(True)
    assert all(inside[first:])  # once inside it stays inside, and descends
    assert (np.diff(found.path[first:]) <= 0).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_impossible_constraints_are_reported_as_missed(fit_intercept):
    """Rows without features: recall and false positive rate are one number."""
    _, y, _ = sample(0, n=60)
    goals = [recall() >= 0.8, false_positive_rate() <= 0.2]
    problem = compiled(np.zeros((60, 3)), y, None, error_rate(), goals, fit_intercept=fit_intercept)
    found, steps = run(problem)
    assert not found.feasible
    assert found.converged  # no step is of any use
    assert found.violation >= 0.3 - 1e-6  # in normalized rows: .8 and .2 are .6 apart
    assert found.multipliers.max() <= LAST_PENALTY * 5
    assert len(steps) <= 10


@pytest.mark.thorough
def test_the_penalty_rises_while_it_is_too_low():
    """Recall costs more errors than the first penalty pays for."""
    X, y, group = sample(0, n=60, noise=3.0)
    problem = compiled(X, y, group, 20 * false_positive_rate(), [recall() >= 0.9])

    class Recorder:
        name, rough, exact, penalties = "recorder", SOLVER.rough, SOLVER.exact, []

        def solve(self, convex, penalty, tol, warm=None):
            self.penalties.append(penalty)
            return SOLVER.solve(convex, penalty, tol)

    found, _ = run(problem, solver=Recorder())
    penalties = np.array(Recorder.penalties)
    elastic = penalties[np.isfinite(penalties)]
    assert elastic[0] == FIRST_PENALTY
    assert elastic[-1] > FIRST_PENALTY
    assert (np.diff(elastic) >= 0).all()
    assert found.feasible
    assert found.multipliers.max() > FIRST_PENALTY


def test_the_penalty_stays_while_violations_shrink():
    """Multipliers are at the cap in every step; the miss is .4, .22, .07, .04, then little less."""
    X, y, group = sample(0, n=60)
    problem = compiled(X, y, group, error_rate(), [recall() >= 0.9])
    script = [([c, 0, 0], [FIRST_PENALTY]) for c in (0.2, 0.4, 0.5, 0.55, 0.7)]
    solver = Scripted(*script)
    run(problem, solver=solver, max_iter=5)
    shrinking, slow = solver.penalties[:4], solver.penalties[4:]
    assert shrinking == [FIRST_PENALTY] * 4
    assert slow == [FIRST_PENALTY * 5]  # .5 to .55 brought little


def test_first_step_from_zero_is_the_svm_and_two_rows_end_by_hand():
    """x = +-1 with the right labels: w = 1/2 = min(1/2, 1/alpha), objective alpha/8."""
    problem = compiled(np.array([[1.0, 0, 0], [-1.0, 0, 0]]), np.array([1, 0]), None, error_rate())
    found, _ = run(problem)
    np.testing.assert_allclose(found.point.coef, [0.5, 0, 0], atol=1e-9)
    assert found.path[-1] == pytest.approx(0.05 / 8)


def test_a_step_that_gains_nothing_or_leaves_the_bounds_is_not_taken():
    X = np.eye(3)
    problem = compiled(X, np.array([1, 0, 0]), None, error_rate(), [positive_rate() <= 0.6])
    start = Point(np.array([0.2, -0.2, -0.2]), 0.0)
    worse = Scripted(([-3.0, 1, 1], [0.0]))
    found, steps = run(problem, start, worse, max_iter=1)
    assert found.point is start
    assert steps[0].objective == problem.evaluate(start).objective
    outside = Scripted(([0.6, 0.5, 0.5], [0.0]))
    found, _ = run(replace(problem, objective=problem.objective.negated()), start, outside, 1)
    assert found.point is start


def test_a_failed_hard_solve_gives_the_constraints_a_hair():
    problem = compiled(np.eye(3), np.array([1, 0, 0]), None, error_rate(), [positive_rate() <= 0.6])
    start = Point(np.array([0.2, -0.2, -0.2]), 0.0)
    solver = Scripted(SolverError("infeasible"), ([0.3, -0.3, -0.3], [0.7]))
    found, _ = run(problem, start, solver, max_iter=1)
    assert solver.penalties == [np.inf, LAST_PENALTY]
    np.testing.assert_array_equal(found.multipliers, [0.7])
    np.testing.assert_array_equal(found.point.coef, [0.3, -0.3, -0.3])
    with pytest.raises(SolverError):  # an elastic problem is always feasible
        outside = Point(np.array([1.0, 1.0, 1.0]), 0.0)
        run(problem, outside, Scripted(SolverError("broken")), max_iter=1)


def test_max_iter_ends_it_unconverged():
    X, y, group = sample(2, n=60)
    found, steps = run(compiled(X, y, group, error_rate()), max_iter=1, tol=0.0)
    assert len(steps) == len(found.path) == 1
    assert not found.converged


def test_without_constraints_nothing_is_violated():
    X, y, group = sample(3, n=60)
    found, steps = run(compiled(X, y, group, error_rate()))
    assert found.violation == -np.inf
    assert found.feasible and found.multipliers.shape == (0,)
    assert (np.diff(found.path) <= 0).all() and len(steps) > 1


def test_steps_print_in_one_line():
    X, y, group = sample(0, n=60)
    _, steps = run(compiled(X, y, group, error_rate()))
    assert str(steps[0]).startswith("step  1  objective 0.") and "\n" not in str(steps[0])


# --- the elastic penalty -------------------------------------------------------------------


def at(objective, *violations):
    return Iterate(ZERO, objective, np.array(violations))


OUTSIDE, INSIDE = at(1.0, 0.5, -0.1), at(1.0, FEASIBLE, -0.1)
LOOSE, CAPPED = np.zeros(2), np.array([0.0, FIRST_PENALTY])


def test_constraints_are_hard_from_feasible_points_only():
    assert ElasticPenalty().at(OUTSIDE) == FIRST_PENALTY
    assert ElasticPenalty().at(INSIDE) == np.inf
    assert ElasticPenalty().at(at(1.0)) == np.inf  # without constraints


def test_a_penalized_objective_counts_positive_violations():
    assert at(1.0, 0.5, -0.1, 0.25).penalized(4.0) == 4.0
    assert at(1.0, 0.5).penalized(np.inf) == 1.0  # hard constraints are not paid for


@pytest.mark.parametrize(
    ("reached", "multipliers", "stalled", "factor"),
    [
        (at(0.9, 0.45, 0.0), LOOSE, True, RAISE_PENALTY),  # no gain at this penalty
        (at(0.9, 0.45, 0.0), LOOSE, False, 1.0),  # no multiplier asks for more
        (at(0.9, 0.45, 0.0), CAPPED, False, RAISE_PENALTY),
        (at(0.9, 0.45, 0.0), np.array([0.0, 0.9995 * FIRST_PENALTY]), False, RAISE_PENALTY),
        (at(0.9, 0.45, 0.0), np.array([0.0, 0.99 * FIRST_PENALTY]), False, 1.0),
        (at(0.9, 0.30, 0.0), CAPPED, False, 1.0),  # violations shrink quickly
        (INSIDE, CAPPED, True, 1.0),  # feasible: constraints are hard from now on
    ],
)
def test_the_penalty_rises_if_a_step_stalls_or_is_capped(reached, multipliers, stalled, factor):
    after = ElasticPenalty().after(OUTSIDE, reached, multipliers, stalled)
    assert after.value == FIRST_PENALTY * factor


def test_the_penalty_stops_rising():
    last = ElasticPenalty(LAST_PENALTY)
    assert last.after(OUTSIDE, OUTSIDE, LOOSE, True) is last


@pytest.mark.parametrize(
    ("left", "reached", "penalty", "final"),
    [
        (INSIDE, INSIDE, FIRST_PENALTY, True),
        (OUTSIDE, INSIDE, FIRST_PENALTY, False),  # elastic so far, hard from now on
        (OUTSIDE, OUTSIDE, FIRST_PENALTY, False),  # a higher penalty may help
        (OUTSIDE, OUTSIDE, LAST_PENALTY, True),
    ],
)
def test_a_run_may_end_where_the_next_problem_is_the_same(left, reached, penalty, final):
    assert ElasticPenalty(penalty).is_final(left, reached) == final


# --- accuracies ----------------------------------------------------------------------------


class Range:
    """A solver's gaps, if the objective's costs sum to 1."""

    name, rough, exact = "range", 1e-2, 1e-6


def test_accuracies_start_rough_and_end_exact():
    schedule = AccuracySchedule.begin(Range(), 2.0, tol=1e-5)
    assert (schedule.gap, schedule.exact) == (2e-2, 2e-6)
    assert not schedule.is_exact and schedule.at_last().is_exact
    assert schedule.after(0.0, stalled=True) == schedule.at_last()


def test_a_small_expected_decrease_starts_finer():
    assert AccuracySchedule.begin(Range(), 2.0, 1e-5, expected=1e-3).gap == FINER * 1e-3
    assert AccuracySchedule.begin(Range(), 2.0, 1e-5, expected=1e-9).gap == 2e-6


@pytest.mark.parametrize(("tol", "exact"), [(1e-7, 1e-6), (1e-5, 1e-6), (2e-5, 4e-6), (1e-2, 1e-5)])
def test_a_loose_tol_loosens_the_last_gap_to_a_limit(tol, exact):
    assert AccuracySchedule.begin(Range(), 1.0, tol).exact == pytest.approx(exact)


def test_gaps_follow_the_decrease_and_never_grow():
    schedule = AccuracySchedule.begin(Range(), 1.0, tol=1e-5)
    assert schedule.after(1e-3, stalled=False).gap == FINER * 1e-3
    assert schedule.after(1.0, stalled=False).gap == schedule.gap
    assert schedule.after(1e-9, stalled=False).is_exact


def test_rough_gaps_are_in_units_of_the_penalized_objective():
    schedule = AccuracySchedule(gap=1e-3, exact=1e-6)
    assert schedule.gap_under(10.0) == 1e-2
    assert schedule.gap_under(np.inf) == 1e-3
    assert schedule.at_last().gap_under(10.0) == 1e-6


def test_twenty_one_sided_bounds_are_met_soon_from_far_outside():
    """Five groups within .02 of one another, from a rule that is .1 to .2 apart: no stalls."""
    rng = np.random.default_rng(0)
    group = rng.choice(5, 2000, p=[0.35, 0.3, 0.2, 0.1, 0.05])
    features = rng.normal(size=(2000, 4))
    features[:, 0] += 0.5 * (group == 1) - 0.6 * (group == 3) + 0.9 * (group == 4)
    odds = features @ [0.8, 0.6, 0.4, 0.2]
    label = (rng.random(2000) < 1 / (1 + np.exp(-odds))).astype(np.int8)
    columns = Columns.read(pd.DataFrame({"g": group.astype(str)}), None, 2000, "attributes")
    data = Data(Rows(columns, label, np.ones(2000)), None, 1, [0, 1])
    goal = difference(positive_rate, by="g") <= 0.02
    goals = Declared.read(error_rate(), goal).bind(data).measured
    problem = compile_problem(features, goals, 1e-3, True)
    start = Point(np.array([0.8, 0.6, 0.4, 0.2]), 0.0)
    assert len(problem.rhs) == 20 and problem.evaluate(start).worst > 0.05
    found, steps = run(problem, start, AugmentedLagrangianSolver(), max_iter=60, tol=1e-5)
    violations = np.array([step.violation for step in steps])
    assert violations[:15].min() <= FEASIBLE, "feasible within fifteen steps"
    outside = violations[: np.flatnonzero(violations <= FEASIBLE)[0]]
    assert (np.diff(outside) < 0).all(), "and nearer with every step"
    assert max(step.gap for step in steps) < 0.02
    assert found.converged and found.feasible and found.gap < 1e-4
