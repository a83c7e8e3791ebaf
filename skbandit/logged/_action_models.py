"""Models of what each action leads to, from a table in which some entries are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from skbandit.logged._off_policy_classifier import RewardsByClassifier
from skbandit.utils._fitting import standardized
from skbandit.utils._folds import splits_of_folds
from skbandit.utils._sklearn_compat import count_rows, fit_weighted, rows_of
from skbandit.utils._validation import explained_entries

NAME = "ConstrainedPolicy"
"""Whose errors on text columns name the cure."""

PENALTIES = np.logspace(-1, 5, 13)
"""Penalties of ridge regression among which cross-validation chooses."""


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

    def fitted(self, X: Any, table: np.ndarray, weight: np.ndarray) -> Any:
        """A selector, or a list of models, fitted to the entries of a table that are not nan."""
        weighted = not (weight == 1).all()
        if hasattr(self.estimator, "predict_costs"):
            costs = pd.DataFrame(table, columns=self.arms).loc[:, self.with_events]
            weights = {"sample_weight": weight} if weighted else {}
            return clone(self.estimator).fit(X, costs, **weights)
        model = self._model(X)
        models: list[Any] = []
        for values in table.T:
            rows = np.flatnonzero(~np.isnan(values) & (weight > 0))
            if not len(rows):
                models.append(None)
                continue
            row_weight = weight[rows] if weighted else None
            with explained_entries(X, NAME):
                models.append(
                    fit_weighted(clone(model), rows_of(X, rows), values[rows], row_weight)
                )
        return models

    def _model(self, X: Any) -> Any:
        """The model of one action."""
        if self.estimator is None:
            return standardized(RidgeCV(PENALTIES), X)
        if hasattr(self.estimator, "predict_proba"):
            return RewardsByClassifier(self.estimator)
        return self.estimator

    def predicted(self, models: Any, X: Any) -> np.ndarray:
        """Predictions for all actions, (n, D); nan without a model."""
        predictions = np.full((count_rows(X), len(self.arms)), np.nan)
        if hasattr(models, "predict_costs"):
            predictions[:, self.with_events] = np.asarray(models.predict_costs(X), dtype=float)
            return predictions
        for j, model in enumerate(models):
            if model is not None:
                with explained_entries(X, NAME):
                    predictions[:, j] = np.asarray(model.predict(X), dtype=float).ravel()
        return predictions

    def held_out(
        self, X: Any, table: np.ndarray, weight: np.ndarray, fold: np.ndarray
    ) -> np.ndarray:
        """Predictions for each row by models fitted without its fold, (n, D)."""
        predictions = np.full(table.shape, np.nan)
        for train, test in splits_of_folds(fold):
            models = self.fitted(rows_of(X, train), table[train], weight[train])
            predictions[test] = self.predicted(models, rows_of(X, test))
        return np.where(np.isnan(predictions), np.nanmean(table), predictions)
