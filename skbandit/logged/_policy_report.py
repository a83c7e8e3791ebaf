"""A policy's report on any rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logged._action_goals import ActionGoals
from skbandit.logged._action_measure import ActionMeasure
from skbandit.logged._action_tables import LoggedOutcomes, read_action_log
from skbandit.logs import align_rows
from skbandit.measure import flatten_constraints, verdicts
from skbandit.prices._problem import Prices
from skbandit.utils._fitted_rows import events_of_log, share_fitted, warn_of_fitted_rows
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._trials import of_several_rows, read_groups
from skbandit.utils._validation import check_row_weights, in_memory, warn_if_reordered


def report_on(
    policy: Any,
    X: Any,
    y: Any,
    attributes: Any,
    available: Any,
    sample_weight: Any,
    groups: Any,
    confidence_level: float,
) -> pd.DataFrame:
    """See `ConstrainedPolicy.constraint_report`; `policy` is fitted."""
    X, y, attributes = map(in_memory, (X, y, attributes))
    tables = X, y
    warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
    bounded = policy._goals.bounded_outcomes
    log = (
        None
        if y is None
        else read_action_log(y, count_rows(X), align_rows(available, X), policy.columns, X)
    )
    if bounded and log is None:
        raise ValueError(f"outcome({bounded[0]!r}) is known from a log only: pass it as y.")
    if log is not None and bounded:
        fitted = getattr(policy, "_fitted_rows", None)
        warn_of_fitted_rows(share_fitted(fitted, X, *events_of_log(log)))
    if log is not None and log.pools is not None:
        available = log.available_labels()
    policy._check_pools(available, "available")
    contexts = policy._read_new(X, available, attributes)
    weight = check_row_weights(sample_weight, count_rows(X), "sample_weight")
    contexts = replace(contexts, rows=replace(contexts.rows, weight=weight))
    predicted, events = policy._models.predict(X), None
    if log is not None:
        events = LoggedOutcomes.of(y, log, bounded, policy._arms)
    robust = events.doubly_robust({name: predicted[name] for name in bounded}) if events else {}
    base = policy._problem(contexts, predicted).base
    # groups are those of these rows
    declared = policy._goals.declared, flatten_constraints(policy.constraints)
    goals = ActionGoals.bind(*declared, contexts.rows, policy._goals.arms)
    problem = goals.problem(contexts, predicted, base, policy.n_select)
    group = of_several_rows(read_groups(groups, len(weight), *tables))
    measure = ActionMeasure(goals, problem, robust, None, None, group, events)
    attained = measure(problem.decide(Prices(np.ones(1), policy.multipliers_)))
    table = measure.report(attained, confidence_level)
    of_fit = {(goal.label, goal.text): k for k, goal in enumerate(policy._goals.constraints)}
    names = [(goal.label, goal.text) for goal in goals.constraints]  # labels may be alike
    place = np.array([of_fit.get(name, -1) for name in names], dtype=int)
    for name, values in (("multiplier", policy.multipliers_), ("price", policy._dropped)):
        table[name] = np.append(values, np.nan)[place]  # of groups that the fit had not
    ends = table[["ci_low", "ci_high"]].to_numpy()
    return table.assign(verdict=verdicts(ends, goals.declared_bound, goals.sign))
