"""Models of what each action leads to: fitted, out of fold, and the noise that breaks ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from skbandit import logs
from skbandit.logged._action_tables import REWARD
from skbandit.logged._off_policy_classifier import RewardsByClassifier
from skbandit.utils._fitting import standardized
from skbandit.utils._folds import hashes_of_contexts, splits_of_folds
from skbandit.utils._sklearn_compat import count_rows, rows_of

NAME = "ConstrainedPolicy"
"""Whose errors on text columns name the cure."""

PENALTIES = np.logspace(-1, 5, 13)
"""Penalties of ridge regression among which cross-validation chooses."""

MOSTLY = 0.5
"""Share of a table that is not known of a log: other tables show what actions have in common."""

DITHER, FEW_COSTS = 0.02, 0.2
"""Spread of the noise that breaks ties, in units of the costs' spread: without it a share jumps by
all rows that tie. It is added where there are fewer different rows of costs than this share of the
rows, as of a tree with few leaves."""


LAST = 0.05
"""Share of that noise where rewards break ties: it decides what these leave open."""


@dataclass(frozen=True)
class FittedActions:
    """Fitted models of all actions for one outcome.

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
class OutcomeModels:
    """Models of D actions for each outcome: fit and predict.

    Attributes
    ----------
    estimator : regressor, classifier, selector with `predict_costs`, or None
        One for each action, or a selector for all; None is ridge regression.
    arms : ndarray of shape (D,)
        Labels of the actions.
    with_events : ndarray of bool, shape (D,)
        The actions that have examples.
    fitted : dict of str to FittedActions
        By outcome.
    spread : float
        Width of the noise that breaks ties; 0 without ties.
    """

    estimator: Any
    arms: np.ndarray
    with_events: np.ndarray
    fitted: Mapping[str, FittedActions] = field(default_factory=dict)
    spread: float = 0.0

    def fit(self, X: Any, tables: Mapping[str, np.ndarray], weight: np.ndarray) -> OutcomeModels:
        """Fit models to the entries of each table (n, D) that are not nan."""
        fitted = {name: self._fit_one(X, table, weight) for name, table in tables.items()}
        return replace(self, fitted=fitted)

    def predict(self, X: Any) -> dict[str, np.ndarray]:
        """Predict each outcome of all actions, (n, D); 0 without a model."""
        return {
            name: np.nan_to_num(logs.within_range(self._predict_one(fitted, X), fitted.ends))
            for name, fitted in self.fitted.items()
        }

    def held_out(
        self, X: Any, tables: Mapping[str, np.ndarray], weight: np.ndarray, fold: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Predict each row by models fitted without its fold, (n, D), that share what these do."""
        predictions = {name: np.full(table.shape, np.nan) for name, table in tables.items()}
        for name, table in tables.items():
            for train, test in splits_of_folds(fold):
                given = rows_of(X, train), table[train], weight[train], self.fitted[name]
                models = self._fit_one(*given)
                raw = self._predict_one(models, rows_of(X, test))
                predictions[name][test] = logs.within_range(raw, models.ends, test)
            lacking = np.isnan(predictions[name])
            predictions[name][lacking] = np.nanmean(table)
        return predictions

    def _fit_one(
        self, X: Any, table: np.ndarray, weight: np.ndarray, like: FittedActions | None = None
    ) -> FittedActions:
        """Fit models to a table; what they share is as in `like`, or chosen here."""
        weighted = not (weight == 1).all()
        row, arm = np.nonzero(~np.isnan(table) & (weight > 0)[:, None])
        values, row_weight = table[row, arm], weight[row] if weighted else None
        ends = logs.range_of(values if len(values) else np.zeros(1))
        model = self.estimator
        if hasattr(model, "predict_costs"):
            costs = pd.DataFrame(table, columns=self.arms).loc[:, self.with_events]
            weights = {"sample_weight": weight} if weighted else {}
            return FittedActions(clone(model).fit(X, costs, **weights), ends)
        if model is None:
            model = standardized(RidgeCV(PENALTIES), X)
        elif hasattr(model, "predict_proba"):
            model = RewardsByClassifier(model)
        events = logs.ArmEvents(X, row, arm, values, row_weight, len(self.arms), NAME)
        sharing = logs.APART
        if like is not None:
            if like.models.common:
                sharing = logs.Sharing(logs.halves_of_rows(events), like.models.in_one)
        elif self.estimator is not None and np.isnan(table).mean() >= MOSTLY:
            sharing = logs.sharing_of(model, events)
        return FittedActions(logs.RewardsByArm.fitted(model, events, sharing), ends)

    def _predict_one(self, fitted: FittedActions, X: Any) -> np.ndarray:
        if isinstance(fitted.models, logs.RewardsByArm):
            return fitted.models.predicted(X, NAME)
        predictions = np.full((count_rows(X), len(self.arms)), np.nan)
        predictions[:, self.with_events] = np.asarray(fitted.models.predict_costs(X), dtype=float)
        return predictions

    def with_ties_of(self, costs: np.ndarray) -> OutcomeModels:
        """Return the models with the noise that costs (n, D) need: none if they tell rows apart."""
        costs = costs[:, self.with_events]
        table = np.where(np.isfinite(costs), costs, np.nan)
        unit = float(np.nanmean(np.nanmax(table, axis=1) - np.nanmin(table, axis=1)))
        apart = table - np.nanmean(table, axis=1, keepdims=True)
        distinct = len(np.unique((apart / (unit or 1.0)).round(9), axis=0))
        tied = distinct < FEW_COSTS * len(table)
        tied |= np.nanstd(apart, axis=0).max() < 2 * DITHER * unit
        if table.shape[1] > 1:
            covariance = np.cov(np.nan_to_num(apart).T)
            variance = np.diag(covariance)
            of_pairs = variance[:, None] + variance - 2 * covariance
            np.fill_diagonal(of_pairs, np.inf)
            tied |= np.sqrt(max(of_pairs.min(), 0.0)) < 0.5 * DITHER * unit
        return replace(self, spread=DITHER * unit if tied else 0.0)

    @property
    def tell_rewards(self) -> bool:
        """True if the rewards of a log are predicted, and differ."""
        return REWARD in self.fitted and self.fitted[REWARD].ends[0] < self.fitted[REWARD].ends[1]

    def noise(self, X: Any, reward: np.ndarray | None = None) -> Any:
        """Return what breaks ties in contexts: uniform around 0, and the same for equal rows.

        Predicted rewards (n, D) decide before that, if passed.
        """
        if not self.spread:
            return 0.0
        seeds = hashes_of_contexts(X)[:, None] * np.arange(1, 2 * len(self.arms), 2).astype(
            np.uint64
        )
        seeds ^= seeds >> np.uint64(31)
        noise = (seeds >> np.uint64(11)).astype(float) / 2.0**53 - 0.5
        if reward is None or not self.tell_rewards:
            return self.spread * noise
        low, high = self.fitted[REWARD].ends
        return self.spread * (np.clip((high - reward) / (high - low), 0.0, 1.0) + LAST * noise)
