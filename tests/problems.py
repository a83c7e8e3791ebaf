"""Small problems that several test files train on."""

from dataclasses import replace

import numpy as np
import pandas as pd

from skbandit.constrained._goals import Goals
from skbandit.constrained.paper._problem import compile_problem
from skbandit.rates._bind import (
    bind_constraints,
    bind_objective,
    expand,
    flatten_constraints,
    objective_rates,
)
from skbandit.rates._columns import Columns, Data, Rows


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
    return Goals(forms, bool(objective.greater_is_better), bound, data, rates=rates)


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
