"""Sections of a page on the value of a policy or selector, against that of another rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from skbandit.evaluation._off_policy._off_policy_value import value_of_evaluated
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog
from skbandit.inspection import _page
from skbandit.inspection._case import TODAY, Case
from skbandit.inspection._page_sections import Section, how_many, of_whom
from skbandit.inspection._report_lines import ESTIMATES, estimates_table
from skbandit.logged._action_tables import REWARD, outcome_of_log
from skbandit.logs import Log
from skbandit.measure import atom_weights, flatten_constraints
from skbandit.rates import Rate
from skbandit.rates._kinds import OUTCOME, SPENT
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import first_few

if TYPE_CHECKING:
    from skbandit.logged._action_goals import ActionGoals

MEAN_COST = "mean cost"

HALF_WIDTH = float(ndtri(0.975))
"""Half the width of an interval of level 0.95, in standard errors."""


def values(case: Case) -> Iterable[Section]:
    """Show the value of a policy and of the rule of today on a log, less what they spend."""
    if case.is_classifier or case.is_table:
        return
    (evaluated, usual), goals = case.choices, getattr(case.fitted, "_goals", None)
    group = read_groups(case.groups, len(evaluated.log), case.X, case.y)
    about = "the one that made the log." if case.today is None else "given, and estimated from it."
    body = _page.paragraph(f"{TODAY.capitalize()} is {about}", "soft")
    objective = None if goals is None else goals.declared
    spends = _spends(case, objective)
    for rate in [rate for _, rate in spends] + ([] if objective is None else [objective]):
        _require_costs(rate, usual)
    name = ESTIMATES
    if goals is not None and objective is not None:
        name = ESTIMATES if repr(objective) == f"outcome({REWARD!r})" else repr(objective)
        amounts = _amounts(goals, objective, case, evaluated.log, evaluated.log.arms.tolist())
        reward = amounts[np.arange(len(amounts)), evaluated.log.action]
        log = replace(evaluated.log, reward=reward)
        evaluated, usual = replace(evaluated, log=log), replace(usual, log=log)
    body += _values(name, evaluated, usual, group)
    for spent, rate in spends:
        assert goals is not None  # or there are none
        body += _less_spent(case, goals, (spent, rate), name, (evaluated, usual), group)
    yield f"Value against {TODAY}", body


def mean_costs(case: Case) -> Iterable[Section]:
    """Show the mean cost of chosen sets against those of today, or the cheapest on average."""
    if not case.is_table:
        return
    costs, labels = _costs_of_rows(case), case.labels
    place = {label: k for k, label in enumerate(labels.tolist())}
    rows = np.reshape(case.decided, (len(costs), -1)).tolist()
    sets = np.array([[place[label] for label in row] for row in rows])
    if case.today is None:
        rule, action = "most popular", "by choosing the most popular"
        mean = pd.DataFrame(costs).mean().fillna(np.inf).to_numpy()
        cheapest = np.sort(np.argsort(mean, kind="stable")[: sets.shape[1]])
        named = ", ".join(str(labels[k]) for k in cheapest)
        about = _page.paragraph(f"The cheapest on average over these rows: {named}.")
        others = np.broadcast_to(cheapest, sets.shape)
    else:
        rule, action, about = TODAY, f"by {TODAY}", ""
        others = _sets_of_today(case, place, sets.shape)
    if share := np.isnan(costs).mean():
        costs = _doubly_robust(case, costs)
        about += _page.paragraph(
            f"{share:.1%} of the costs are missing. Mean costs are doubly robust estimates: the "
            "predictions of the model, corrected by the costs that are known, as if an item's cost "
            "were missing in rows drawn at random.", "soft",
        )  # fmt: skip
    row_costs = np.take_along_axis(costs, sets, axis=1).sum(axis=1)
    usual = np.take_along_axis(costs, others, axis=1).sum(axis=1)
    estimates = {
        "this selector": row_costs, rule: usual, "difference": row_costs - usual,
    }  # fmt: skip
    report = pd.DataFrame([_mean_row(name, values) for name, values in estimates.items()])
    changed = (np.sort(sets, axis=1) != np.sort(others, axis=1)).any(axis=1)
    against = "the most popular" if case.today is None else TODAY
    yield f"Mean cost against {against}", about + _page.bars(report)
    yield "What is decided differently", how_many(changed, action) + of_whom(case, changed)


def _costs_of_rows(case: Case) -> np.ndarray:
    """Return the validated table of costs, a column per label."""
    y = case.y.reindex(columns=case.labels) if isinstance(case.y, pd.DataFrame) else case.y
    costs = np.asarray(y, dtype=float)
    if len(costs) != len(case.decided):
        raise ValueError(f"y has {len(costs)} rows, X has {len(case.decided)}.")
    if np.isinf(costs).any():
        row = int(np.argwhere(np.isinf(costs))[0][0])
        raise ValueError(f"y has an infinite cost in row {row}: pass nan for what is not known.")
    return costs


def _doubly_robust(case: Case, costs: np.ndarray) -> np.ndarray:
    """Return predicted costs, corrected where they are known over the share of such rows."""
    is_known = ~np.isnan(costs)
    share = is_known.mean(axis=0)
    if not share.all():
        label = case.labels[share.argmin()]
        raise ValueError(f"y has no cost of {label!r} in any row: pass a table with some.")
    if case.has_goals:
        predicted = case.fitted.expected_costs(case.rows, attributes=case.attributes)
    elif hasattr(case.fitted, "predict_costs"):
        predicted = case.fitted.predict_costs(case.rows)
    else:
        predicted = np.broadcast_to(np.nanmean(costs, axis=0), costs.shape)
    predicted = np.asarray(predicted, dtype=float)
    return predicted + np.where(is_known, (costs - predicted) / share, 0.0)


def _sets_of_today(case: Case, place: Mapping[Any, int], shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of the items that the rule of today chooses."""
    assert case.usual is not None  # as today is given
    usual = case.usual.reshape(shape[0], -1)
    if usual.shape != shape:
        raise ValueError(f"today chooses {usual.shape[1]} per row, and the model {shape[1]}.")
    if strange := [label for label in pd.unique(usual.ravel()).tolist() if label not in place]:
        raise ValueError(f"today chooses {first_few(strange)}, which have no costs in y.")
    return np.array([[place[label] for label in row] for row in usual.tolist()])


def _mean_row(name: str, values: np.ndarray) -> dict[str, Any]:
    """Return a mean with its normal interval of level .95, as a row of a report."""
    n, mean = len(values), float(values.mean())
    wide = HALF_WIDTH * float(values.std(ddof=1)) / np.sqrt(n)
    row = {"goal": MEAN_COST, "rule": name, "n_rows": n, "effective_n": n, "value": mean}
    return {**row, "ci_low": mean - wide, "ci_high": mean + wide}


def _values(
    name: str,
    evaluated: EvaluatedLog,
    usual: EvaluatedLog,
    group: np.ndarray | None,
    certain: Sequence[np.ndarray | None] = (None, None),
) -> str:
    """Return bars of the mean rewards of two policies and of their difference.

    `certain` are parts of the rewards that are certain of each action.
    """
    ours, theirs = (
        value_of_evaluated(rule, None if rule.of_arms is None else part, group)
        for rule, part in zip((evaluated, usual), certain, strict=True)
    )
    estimates = {"this policy": ours, TODAY: theirs, "difference": ours - theirs}
    return _page.bars(_as_report(estimates, name))


def _as_report(estimates: Mapping[str, Any], goal: str) -> pd.DataFrame:
    """Estimates as a report on a goal, which is an amount, also if all are between 0 and 1."""
    table = estimates_table(estimates, 0.95).assign(goal=goal)
    form = "" if goal == ESTIMATES else "amount"
    table.attrs["goals"] = [[goal, 0, goal, "", False, form]] * len(table)
    return table


def _spends(case: Case, objective: Rate | None) -> list[tuple[str, Rate]]:
    """Return bounded spends by name, unless the objective counts spends already."""
    if objective is not None and any(atom.kind == SPENT for atom in objective.atoms):
        return []
    constraints = flatten_constraints(getattr(case.fitted, "constraints", None))
    rates = [(limit.name or repr(limit.lhs), limit.lhs) for limit in constraints]
    return [
        (name, rate)
        for name, rate in rates
        if not (rate.is_form or rate.denominator is not None)
        and rate.atoms
        and all(atom.kind == SPENT for atom in rate.atoms)
    ]


def _require_costs(rate: Rate, usual: EvaluatedLog) -> None:
    """Require that a table of costs has those of what the rule of today decides."""
    log, times = usual.log, usual.of_arms
    logged = np.bincount(log.action, minlength=len(log.arms))
    sums = (logged if times is None else times.sum(axis=0)).tolist()
    chosen = [arm for arm, total in zip(usual.arms, sums, strict=False) if total > 0]
    for cells in [atom.cells for atom in rate.atoms if atom.kind == SPENT and atom.cells]:
        lacking = [arm for arm in chosen if arm not in cells.decisions]
        if cells.decisions and lacking:
            raise ValueError(
                f"cost: the table has no costs of the decision {lacking[0]!r} of {TODAY}; its "
                f"decisions are {list(cells.decisions)}. Write it as there, or add its cost to "
                "the goals and fit again."
            )


def _less_spent(
    case: Case,
    goals: ActionGoals,
    spend: tuple[str, Rate],
    name: str,
    rules: tuple[EvaluatedLog, EvaluatedLog],
    group: np.ndarray | None,
) -> str:
    """Return bars of what both rules spend, and of the values less that."""
    spent, rate = spend
    log = rules[0].log
    events = np.arange(len(log)), log.action
    certain = [_amounts(goals, rate, case, log, rule.arms) for rule in rules]
    means = {}
    for who, rule, amounts in zip(("this policy", TODAY), rules, certain, strict=True):
        of_rule = replace(rule, log=replace(log, reward=amounts[events]))
        part = None if rule.of_arms is None else amounts
        means[who] = value_of_evaluated(of_rule, part, group)
    spending = _as_report(means, spent)
    spending["effective_n"] = spending["n_rows"]  # what is spent is known of every row
    sign = 1.0 if goals.declared is None or goals.declared.greater_is_better else -1.0
    net = replace(log, reward=log.reward - sign * certain[0][events])
    ours, theirs = (replace(rule, log=net) for rule in rules)
    word = "less" if sign > 0 else "plus"
    head = _page.paragraph(f"What is spent, and the value {word} that, if both have one unit:")
    negative = [-sign * amounts for amounts in certain]
    return (
        head
        + _page.bars(spending)
        + _values(f"{name} {word} {spent}", ours, theirs, group, negative)
    )


def _amounts(
    goals: ActionGoals, rate: Rate, case: Case, log: Log, arms: Sequence[Any]
) -> np.ndarray:
    """Return what each action adds to a sum of means, per event, with the outcomes of the event."""
    n, rows = len(log), case.fitted._read_rows(case.rows, case.attributes)
    outcomes = {
        atom.amount: np.broadcast_to(
            outcome_of_log(case.y, log, atom.amount)[:, None], (n, len(arms))
        )
        for atom in rate.atoms
        if atom.kind == OUTCOME and atom.amount is not None
    }
    total = rows.weight.sum()
    # all rows over those that an atom counts
    scale = {a.key: float(total / atom_weights(a, rows).sum()) for a in rate.atoms}
    bound = replace(goals, arms=tuple(arms), scale=scale)
    amounts = np.full((n, len(arms)), rate.constant)
    for coefficient, use in bound.sum_of(rate.terms, rows, outcomes):
        use.add_to(amounts, coefficient)
    return amounts
