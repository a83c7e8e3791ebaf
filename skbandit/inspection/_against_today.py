"""Sections of a page that compare a model with the rule of today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.evaluation import rate_report
from skbandit.evaluation._off_policy._off_policy_value import value_of_evaluated
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog, policy_of, read_evaluated
from skbandit.evaluation._rate_report import read_verdicts, sum_up
from skbandit.inspection import _page
from skbandit.inspection._report_lines import ESTIMATES, estimates_table
from skbandit.logged._action_tables import REWARD, outcome_of_log
from skbandit.logs import Log, columns_of
from skbandit.measure import Columns, atom_weights, flatten_constraints
from skbandit.rates import Rate
from skbandit.rates._kinds import OUTCOME, SPENT
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import warn_if_reordered

if TYPE_CHECKING:
    from skbandit.logged._action_goals import ActionGoals

TODAY = "today's rule"

Section = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """What the user passed: `fitted` is the last step of `model`, `rows` are X as it sees them."""

    model: Any
    fitted: Any
    X: Any
    rows: Any
    y: Any
    attributes: Any
    columns: Columns
    groups: pd.DataFrame | None
    dependent: Any = None
    today: Any = None

    @property
    def dependence(self) -> dict[str, Any]:
        """The groups of dependent rows, as an argument, if there are any."""
        return {} if self.dependent is None else {"groups": self.dependent}


def decisions_of(today: Any, X: Any, attributes: Any) -> np.ndarray:
    """What the rule of today, a model or its decisions, decides on rows."""
    if hasattr(today, "predict"):
        takes = attributes is not None and "attributes" in signature(today.predict).parameters
        return np.asarray(today.predict(X, **({"attributes": attributes} if takes else {})))
    warn_if_reordered({"X": X, "today": today})
    decided, n = np.asarray(today), count_rows(X)
    if decided.shape[:1] != (n,):
        raise ValueError(
            f"today has the shape {decided.shape}, and X has {n} rows: pass a model that has "
            "predict, or one decision per row."
        )
    return decided


def goals_of_both(
    decided: np.ndarray, usual: np.ndarray, y_true: Any, goals: Sequence[Any], **rows: Any
) -> Section:
    """The objective and the goals of a classifier, measured for both rules."""
    ours, theirs = (rate_report(y_true, rule, goals, **rows) for rule in (decided, usual))
    text = ""
    if "bound" in theirs:
        report = theirs.assign(verdict=read_verdicts(theirs))
        summary = sum_up(report, lambda name: escape(str(name)), "<strong>Violated</strong>")
        text = f"<p>{TODAY.capitalize()}, on the same goals: {summary}</p>"
    both = _side_by_side({"this classifier": ours, TODAY: theirs})
    return f"Against {TODAY}", text + _page.bars(both)


def _side_by_side(reports: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Reports of rules on the same goals as one, with the rules below each goal."""
    goals = [goal for report in reports.values() for goal in report.attrs["goals"]]
    frames = []
    for name, report in reports.items():
        frames.append(pd.DataFrame(report))
        frames[-1].attrs = {}
        frames[-1].insert(report.columns.tolist().index("n_rows"), "rule", name)
    order = sorted(range(len(goals)), key=lambda k: goals[k][1])
    table = pd.concat(frames, ignore_index=True).iloc[order].reset_index(drop=True)
    table.attrs["goals"] = [goals[k] for k in order]
    return table


def value_of_both(
    case: Case, decided: np.ndarray | None, today: Any
) -> tuple[list[Section], np.ndarray | None]:
    """The value of a policy and of the rule of today, less what they spend; and its decisions.

    Without `decided`, the policy is what it draws. The decisions of the rule of today are None if
    only the probabilities of logged actions are known.
    """
    evaluated, usual, goals = _choices(case, decided, today)
    group = read_groups(case.dependent, len(evaluated.log), case.X, case.y)
    about = "the one that made the log." if today is None else "given, and estimated from the log."
    intro = _page.paragraph(f"{TODAY.capitalize()} is {about}", "soft")
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
    body = intro + _values(name, evaluated, usual, group)
    for spent, rate in spends:
        assert goals is not None  # or there are none
        body += _less_spent(case, goals, (spent, rate), name, (evaluated, usual), group)
    decisions = _decisions(usual) if today is not None else evaluated.log.arms[evaluated.log.action]
    return [(f"Value against {TODAY}", body)], decisions


def _choices(
    case: Case, decided: np.ndarray | None, today: Any
) -> tuple[EvaluatedLog, EvaluatedLog, ActionGoals | None]:
    """The choices of a policy and of the rule of today on one log, and the goals of the policy."""
    goals = getattr(case.fitted, "_goals", None)
    options: dict[str, Any] = {"columns": case.fitted.columns or {}}
    has_reward = "reward" in (columns_of(case.y, case.fitted.columns) or {})
    if goals is not None and goals.declared is not None and not has_reward:
        options["reward"] = np.zeros(count_rows(case.X))  # the objective takes its place
    if decided is None:
        evaluated = read_evaluated(case.model, case.X, case.y, rule="select", **options)
    else:
        evaluated = read_evaluated(decided, None, case.y, rule="select", **options)
    if today is None:
        given = evaluated.log.probability
        return evaluated, EvaluatedLog(evaluated.log, given, None, evaluated.arms), goals
    rule, policy = "select", policy_of(today)
    if policy is not None:
        rule = "select" if hasattr(policy, "select") else "predict"
        if "attributes" in signature(getattr(policy, rule)).parameters:
            options["attributes"] = case.attributes
    usual = read_evaluated(today, case.X, case.y, rule=rule, **options)
    return evaluated, replace(usual, log=evaluated.log), goals


def _decisions(usual: EvaluatedLog) -> np.ndarray | None:
    """The action of each row that is chosen, or most often."""
    if usual.of_arms is None:
        return None
    arms = np.empty(len(usual.arms), dtype=object)
    arms[:] = usual.arms
    return np.asarray(arms[usual.of_arms.argmax(axis=1)].tolist())


def _values(
    name: str,
    evaluated: EvaluatedLog,
    usual: EvaluatedLog,
    group: np.ndarray | None,
    certain: Sequence[np.ndarray | None] = (None, None),
) -> str:
    """Bars of the mean rewards of two policies and of their difference.

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
    """What is bounded of what decisions spend, unless the objective counts it already."""
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
    """What both rules spend, and the values less that."""
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
    """What each action counts in a sum of means, per event; outcomes are those of the event."""
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
