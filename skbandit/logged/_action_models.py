"""Models of what each action leads to, from a table in which some entries are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from skbandit import logs
from skbandit.logged._off_policy_classifier import RewardsByClassifier
from skbandit.utils._fitting import standardized
from skbandit.utils._folds import splits_of_folds
from skbandit.utils._sklearn_compat import count_rows, rows_of

NAME = "ConstrainedPolicy"
"""Whose errors on text columns name the cure."""

PENALTIES = np.logspace(-1, 5, 13)
"""Penalties of ridge regression among which cross-validation chooses."""

MOSTLY = 0.5
"""Share of a table that is not known of a log: other tables show what actions have in common."""


@dataclass(frozen=True)
class FittedActions:
    """Fitted models of all actions.

    Attributes
    ----------
    models : RewardsByArm, or selector with `predict_costs`
    ends : (float, float)
        Smallest and largest value that they were fitted to.
    """

    models: Any
    ends: tuple[float, float]

    @property
    def shown(self) -> Any:
        """The selector, or the list with the models of the actions."""
        return self.models.by_arm if isinstance(self.models, logs.RewardsByArm) else self.models

    @property
    def described(self) -> str:
        """Sharing among actions, in words."""
        if not isinstance(self.models, logs.RewardsByArm):
            return type(self.models).__name__
        of_all = "one model of all actions" if self.models.in_one else "a model of each action"
        return of_all + (" above a common part" if self.models.common else "")


@dataclass(frozen=True)
class ActionModels:
    """How models of D actions are fitted and predict.

    Attributes
    ----------
    estimator : regressor, classifier, selector with `predict_costs`, or None
        One for each action, or a selector for all; None is ridge regression.
    arms : ndarray of shape (D,)
        Labels of the actions.
    with_events : ndarray of bool, shape (D,)
        The actions that have examples.
    """

    estimator: Any
    arms: np.ndarray
    with_events: np.ndarray

    def fitted(
        self, X: Any, table: np.ndarray, weight: np.ndarray, like: FittedActions | None = None
    ) -> FittedActions:
        """Models fitted to the entries of a table that are not nan.

        What they share is as in `like`, or chosen here.
        """
        weighted = not (weight == 1).all()
        row, arm = np.nonzero(~np.isnan(table) & (weight > 0)[:, None])
        values, row_weight = table[row, arm], weight[row] if weighted else None
        ends = logs.range_of(values if len(values) else np.zeros(1))
        if hasattr(self.estimator, "predict_costs"):
            costs = pd.DataFrame(table, columns=self.arms).loc[:, self.with_events]
            weights = {"sample_weight": weight} if weighted else {}
            return FittedActions(clone(self.estimator).fit(X, costs, **weights), ends)
        model = self._model(X)
        events = logs.ArmEvents(X, row, arm, values, row_weight, len(self.arms), NAME)
        sharing = logs.APART
        if like is not None and isinstance(like.models, logs.RewardsByArm):
            if like.models.common:
                sharing = logs.Sharing(logs.halves_of_rows(events), like.models.in_one)
        elif self.estimator is not None and np.isnan(table).mean() >= MOSTLY:
            sharing = logs.sharing_of(model, events)
        return FittedActions(logs.RewardsByArm.fitted(model, events, sharing), ends)

    def _model(self, X: Any) -> Any:
        """Return the model of one action."""
        if self.estimator is None:
            return standardized(RidgeCV(PENALTIES), X)
        if hasattr(self.estimator, "predict_proba"):
            return RewardsByClassifier(self.estimator)
        return self.estimator

    def predicted(self, fitted: FittedActions, X: Any) -> np.ndarray:
        """Predictions for all actions, (n, D); nan without a model."""
        return logs.within_range(self._predicted(fitted, X), fitted.ends)

    def _predicted(self, fitted: FittedActions, X: Any) -> np.ndarray:
        if isinstance(fitted.models, logs.RewardsByArm):
            return fitted.models.predicted(X, NAME)
        predictions = np.full((count_rows(X), len(self.arms)), np.nan)
        predictions[:, self.with_events] = np.asarray(fitted.models.predict_costs(X), dtype=float)
        return predictions

    def held_out(
        self,
        X: Any,
        table: np.ndarray,
        weight: np.ndarray,
        fold: np.ndarray,
        like: FittedActions | None = None,
    ) -> np.ndarray:
        """Predictions for each row by models fitted without its fold, (n, D)."""
        predictions = np.full(table.shape, np.nan)
        for train, test in splits_of_folds(fold):
            models = self.fitted(rows_of(X, train), table[train], weight[train], like)
            raw = self._predicted(models, rows_of(X, test))
            predictions[test] = logs.within_range(raw, models.ends, test)
        return np.where(np.isnan(predictions), np.nanmean(table), predictions)
