"""Small problems that several test files train on."""

from dataclasses import replace

import numpy as np
import pandas as pd

from skbandit.constrained._goals import Declared, Goals, MeasuredGoals
from skbandit.constrained.paper._problem import compile_problem
from skbandit.constrained.rules._candidates import ThresholdSearch
from skbandit.constrained.rules._limits import Limits
from skbandit.measure import (
    Columns,
    Data,
    Rows,
    bind_constraints,
    bind_objective,
    expand,
    flatten_constraints,
    objective_rates,
    score_limits,
)


def sample(seed, n=40, d=3, noise=0.5, above=0.2):
    """Rows, noisy labels that the first feature tells, and groups a, b that the second tells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + noise * rng.normal(size=n) > above).astype(int)
    return X, y, np.where(X[:, 1] + rng.normal(size=n) > 0, "a", "b")


def goals_on_rows(y, group, objective, constraints, weight=None):
    """Goals bound to given rows; `group` is their column g."""
    weight = np.ones(len(y)) if weight is None else weight
    columns = Columns.read(None if group is None else pd.DataFrame({"g": group}), None, len(y))
    data = Data(Rows(columns, y.astype(np.int8), weight), None, 1, [0, 1])
    bound = bind_constraints(expand(flatten_constraints(constraints), data), data)
    rates, forms, _ = bind_objective(objective_rates(objective, data), data)
    declared, maximize = Declared(objective, ()), bool(objective.greater_is_better)
    return Goals(declared, forms, maximize, bound, data, np.ones(len(y)), rates=rates)


def bound_to_rows(y, group, objective, constraints, weight=None):
    """An objective, as declared, and constraints over given rows; `group` is their column g."""
    goals = goals_on_rows(y, group, objective, constraints, weight)
    return goals.objective, goals.constraints


def compiled(
    X, y, group, objective, constraints=(), weight=None, *, alpha=0.05, fit_intercept=True
):
    """The problem that training solves; without groups, `group` is None."""
    goals = goals_on_rows(y, group, objective, constraints, weight)
    return compile_problem(X, goals.measured, alpha, fit_intercept)


def tightened(convex, by):
    """A convex problem, every bound of its constraints moved inwards; not its objective."""
    return replace(convex, gamma=convex.gamma - np.append(0.0, by))


def exact_limits(goals, data, margin, decided=None):
    """Exact limits of single rates, one per constraint; `margin` is the error of all together."""
    return Limits(score_limits(goals, data, decided).exact(), 1 - margin, separate=True)


def ends_of(goals, data, margin, positive):
    """These limits themselves, in the units of the rates, at predictions."""
    limits = exact_limits(goals, data, margin, np.asarray(positive))
    measured = goals.n_rows > 0
    slack = limits.limits.at(positive, limits.quantile)
    return goals.bound[measured] - goals.sign[measured] * slack


def best_threshold(scores, objective, goals, preferred=0.0, limits=None):
    """The best threshold on scores of all rows."""
    goals = MeasuredGoals(objective, goals, np.arange(len(scores)))
    counted = None if limits is None else limits.rows
    return ThresholdSearch.of(scores, goals, counted).best(limits, preferred)
