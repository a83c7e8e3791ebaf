"""Sections of a page on the value of a policy or selector, against that of another rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from skbandit.evaluation._off_policy._off_policy_value import value_of_evaluated
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog
from skbandit.inspection import _page
from skbandit.inspection._case import TODAY, Case
from skbandit.inspection._page_sections import Section, differences
from skbandit.inspection._report_lines import ESTIMATES, estimates_table
from skbandit.logged._action_tables import REWARD, outcome_of_log
from skbandit.logged._unknown_groups import rows_for_goals
from skbandit.logs import Log
from skbandit.measure import Report, flatten_constraints
from skbandit.rates import Rate
from skbandit.rates._kinds import OUTCOME, SPENT
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import first_few

MEAN_COST, WHO = "mean cost", ("this policy", TODAY)

HALF_WIDTH = float(ndtri(0.975))
"""Half the width of an interval of level 0.95, in standard errors."""


def values(case: Case) -> Iterable[Section]:
    """Show the value of a policy and of the rule of today on a log, less what they spend."""
    if case.is_classifier or case.is_table:
        return
    rules, goals = dict(zip(WHO, case.choices, strict=True)), getattr(case.fitted, "_goals", None)
    log = rules[WHO[0]].log
    group = read_groups(case.groups, len(log), case.X, case.y)
    about = "the one that made the log." if case.today is None else "given, and estimated from it."
    body = _page.paragraph(f"{TODAY.capitalize()} is {about}", "soft")
    objective = None if goals is None else goals.declared
    spends = _spends(case, objective)
    for rate in [rate for _, rate in spends] + ([] if objective is None else [objective]):
        _require_costs(rate, rules[TODAY])

    def bars(
        reward: np.ndarray, goal: str, certain: Any = (None, None), of_log: bool = True
    ) -> str:
        """Return bars of mean rewards, of which `certain` parts are known of each action."""
        estimates: dict[str, Any] = {
            who: value_of_evaluated(
                replace(rule, log=replace(log, reward=reward)),
                None if rule.of_arms is None else part,
                group,
            )
            for (who, rule), part in zip(rules.items(), certain, strict=True)
        }
        if of_log:
            estimates["difference"] = estimates[WHO[0]] - estimates[TODAY]
        table = estimates_table(estimates, 0.95).assign(goal=goal)
        # an amount, also if all are between 0 and 1
        form = "" if goal == ESTIMATES else "amount"
        table = Report([[goal, 0, goal, "", False, form, ""]] * len(table)).attached(table)
        return _page.bars(table if of_log else table.assign(effective_n=table["n_rows"]))

    name, reward, events = ESTIMATES, log.reward, (np.arange(len(log)), log.action)
    if objective is not None:
        name = ESTIMATES if repr(objective) == f"outcome({REWARD!r})" else repr(objective)
        reward = _amounts(goals, objective, case, log, log.arms.tolist())[events]
    body += bars(reward, name)
    for spent, rate in spends:
        certain = [_amounts(goals, rate, case, log, rule.arms) for rule in rules.values()]
        paid = certain[0][events]
        more = objective is None or objective.greater_is_better
        word, sign = ("less", 1.0) if more else ("plus", -1.0)
        body += _page.paragraph(f"What is spent, and the value {word} that, if both have one unit:")
        body += bars(paid, spent, certain, of_log=False)
        net = [-sign * amounts for amounts in certain]
        body += bars(reward - sign * paid, f"{name} {word} {spent}", net)
    yield f"Value against {TODAY}", body


def mean_costs(case: Case) -> Iterable[Section]:
    """Show the mean cost of chosen sets against those of today, or the cheapest on average."""
    if not case.is_table:
        return
    costs, labels = _costs_of_rows(case), case.labels
    place = pd.Index(labels, tupleize_cols=False)
    sets = place.get_indexer(pd.Index(np.ravel(case.decided))).reshape(len(costs), -1)
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
    sample = {"this selector": row_costs, rule: usual, "difference": row_costs - usual}
    mean, wide = (pd.DataFrame(sample).agg(of).to_numpy() for of in ("mean", "sem"))
    table = {"goal": MEAN_COST, "rule": list(sample), "n_rows": len(costs), "value": mean}
    ends = {"ci_low": mean - HALF_WIDTH * wide, "ci_high": mean + HALF_WIDTH * wide}
    report = pd.DataFrame(table | {"effective_n": len(costs)} | ends)
    changed = (np.sort(sets, axis=1) != np.sort(others, axis=1)).any(axis=1)
    against = "the most popular" if case.today is None else TODAY
    yield f"Mean cost against {against}", about + _page.bars(report)
    yield "What is decided differently", differences(case, changed, action)


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


def _sets_of_today(case: Case, place: pd.Index, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of the items that the rule of today chooses."""
    assert case.usual is not None  # as today is given
    usual = case.usual.reshape(shape[0], -1)
    if usual.shape != shape:
        raise ValueError(f"today chooses {usual.shape[1]} per row, and the model {shape[1]}.")
    sets = place.get_indexer(pd.Index(usual.ravel())).reshape(shape)
    if (sets < 0).any():
        strange = pd.unique(usual[sets < 0]).tolist()
        raise ValueError(f"today chooses {first_few(strange)}, which have no costs in y.")
    return sets


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


def _amounts(goals: Any, rate: Rate, case: Case, log: Log, arms: Sequence[Any]) -> np.ndarray:
    """Return what each action adds to a sum of means, per event, with the outcomes of the event."""
    n, rows = len(log), rows_for_goals(case.rows, case.attributes)
    outcomes = {
        atom.amount: np.broadcast_to(
            outcome_of_log(case.y, log, atom.amount)[:, None], (n, len(arms))
        )
        for atom in rate.atoms
        if atom.kind == OUTCOME and atom.amount is not None
    }
    alone = replace(goals.without_sums(), arms=tuple(arms), objective=rate.terms).scaled(rows)
    amounts = np.full((n, len(arms)), rate.constant)
    for coefficient, atom in rate.terms:
        alone.use(atom, rows, outcomes).add_to(amounts, coefficient)
    return amounts
