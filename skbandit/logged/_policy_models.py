"""Contexts of a policy, the models of what actions lead to in them, and the dual's problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.logged._action_goals import ActionGoals
from skbandit.logged._action_models import ActionModels
from skbandit.logged._action_tables import COST
from skbandit.logged._ties import noise_of_rows, spread_of_noise
from skbandit.logged._unknown_groups import EstimatedRows
from skbandit.measure import Rows
from skbandit.prices._problem import Problem


@dataclass(frozen=True)
class Contexts:
    """Rows that a policy decides.

    Attributes
    ----------
    X : as passed
        Features.
    rows : Rows
        What goals name.
    mask : ndarray of bool, shape (n, D)
        Which actions each row may get.
    """

    X: Any
    rows: Rows
    mask: np.ndarray


@dataclass(frozen=True)
class PolicyModels:
    """Models of outcomes or costs that are fitted, and the noise that breaks ties of them.

    Attributes
    ----------
    learner : ActionModels
    fitted : dict of str to object
        What the learner fitted, by outcome.
    spread : float
        Width of the noise; 0 without ties.
    """

    learner: ActionModels
    fitted: dict[str, Any]
    spread: float = 0.0

    def predicted(self, X: Any) -> dict[str, np.ndarray]:
        """Return what they predict, (n, D) by outcome."""
        return {
            name: np.nan_to_num(self.learner.predicted(models, X))
            for name, models in self.fitted.items()
        }

    def with_ties_of(self, problem: Problem) -> PolicyModels:
        """Return the models with the noise that a problem without noise needs."""
        return replace(self, spread=spread_of_noise(problem.base[:, self.learner.with_events]))

    def with_noise(self, problem: Problem, X: Any) -> Problem:
        """Return a problem in contexts X whose ties are broken."""
        base = problem.base
        if self.spread:
            base = base + noise_of_rows(X, base.shape[1], self.spread)
        return replace(problem, base=base)

    def problem(
        self,
        goals: ActionGoals,
        contexts: Contexts,
        predicted: dict[str, np.ndarray],
        n_select: int,
        estimated: EstimatedRows | None = None,
    ) -> Problem:
        """Return the dual's problem in contexts, by what is predicted of outcomes or costs there.

        `estimated` are the same rows where their groups are not known.
        """
        costs = None if goals.objective else predicted[COST]
        allowed = contexts.mask & self.learner.with_events
        few = np.flatnonzero(allowed.sum(axis=1) < n_select)
        if len(few):
            raise ValueError(
                f"available: row {few[0]} has fewer actions with events in fit than "
                f"n_select={n_select}."
            )
        rows = contexts.rows if estimated is None else estimated
        problem = goals.problem(rows, predicted, costs, allowed, n_select)
        return self.with_noise(problem, contexts.X)
