"""The interface of a reduction, and the parts shared by several: costs, preferences, matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skbandit.selection._cost_models import constant, learn_costs, weight_params
from skbandit.selection._costs import CostMatrix

NO_AD = -1
"""Position that stands for no ad, where none may be chosen."""


@dataclass(frozen=True)
class Examples:
    """Training examples of a reduction.

    Parameters
    ----------
    X : ndarray or csr matrix of shape (n, d)
        Rows.
    costs : ndarray of shape (n, K)
        Lower is better; nan where not observed.
    allowed : ndarray of bool, shape (n, K)
        Which ads compete in each row.
    weight : ndarray of shape (n,)
        Positive row weights.
    """

    X: Any
    costs: np.ndarray
    allowed: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def targets(self) -> np.ndarray:
        """Costs, nan also where an ad does not compete."""
        return np.where(self.allowed, self.costs, np.nan)

    def take(self, rows: Any) -> Examples:
        """Take some of the rows."""
        return Examples(self.X[rows], self.costs[rows], self.allowed[rows], self.weight[rows])


class CostSensitiveRule(Protocol):
    """A learned reduction.

    The responses of its learners do not depend on which ads may be chosen. So the costly part,
    `respond`, is done once for any number of choices on the same rows.
    """

    def respond(self, X: Any) -> np.ndarray:
        """Responses of the learners, one row per row of X."""
        ...

    def choose(self, responses: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """One of the allowed ads (n, K) per row, given the responses; NO_AD if none is allowed."""
        ...


Reduction = Callable[[Examples], CostSensitiveRule]
"""Learns a rule."""


@dataclass(frozen=True)
class LowestCost:
    """The ad of lowest predicted cost; ties go to the first.

    Parameters
    ----------
    model : object with costs
        ``costs(X)`` has shape (n, K).
    """

    model: Any

    def respond(self, X: Any) -> np.ndarray:
        """Predicted costs."""
        return self.model.costs(X)

    def choose(self, responses: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Return the allowed ad of lowest cost."""
        lowest = np.where(allowed, responses, np.inf).argmin(axis=1)
        return np.where(allowed.any(axis=1), lowest, NO_AD)


@dataclass(frozen=True)
class SharedPenalty:
    """Logistic regressions with one penalty, taken from ridge regression of the costs.

    Near w = 0 the logistic loss of labels y of mean p is v / 2 (x'w - (y - p) / v)^2 plus a
    constant, v = p (1 - p). So with u = v w, C sum(loss) + ||w||^2 / 2 is, up to a factor, the
    ridge regression of labels sum(((y - p) - x'u)^2) + ||u||^2 / (C v): its penalty is
    alpha = 1 / (C v). The best alpha, noise over prior variance, is the same for costs, for the
    shares of "good" that are linear in them, and for differences of two costs with independent
    noise. So C = 1 / (alpha v) needs no search.

    Parameters
    ----------
    alpha : float
        Penalty of the ridge regression of costs.
    """

    alpha: float

    def fit(self, X: Any, label: np.ndarray, weight: np.ndarray) -> LogisticRegression:
        """Return the logistic regression of labels 0 and 1, both of which occur, with weights.

        Dense rows are centered, since L-BFGS stops far from the optimum where means are large.
        """
        v = np.average(label, weights=weight) * np.average(1 - label, weights=weight)
        shift = np.zeros(X.shape[1]) if issparse(X) else weight @ X / weight.sum()
        model = LogisticRegression(C=1.0 / (self.alpha * float(v)), max_iter=1000)
        model.fit(X if issparse(X) else X - shift, label, sample_weight=weight)
        model.intercept_ = model.intercept_ - model.coef_ @ shift
        return model


def fit_binary(learner: Any, X: Any, label: np.ndarray, weight: np.ndarray) -> Any:
    """Learn labels 0 and 1; with a single label, predict it, and with no rows predict 1."""
    if not len(label):
        return constant(1.0)
    if label.min() == label.max():
        return constant(float(label[0]))
    if isinstance(learner, SharedPenalty):
        return learner.fit(X, label, weight)
    return clone(learner).fit(X, label, **weight_params(learner, weight))


def learn_preference(learner: Any, examples: Examples, i: Any, j: Any) -> Any:
    """Learn which of two ads is better: label 1 for i, 0 for j, each an ad or one per row.

    Rows are weighted by the stake, the difference of the costs; rows without a stake, or with an
    unknown one (nan), or where an ad does not compete, are left out. Stakes are divided by their
    mean, so that the learner's hyperparameters (such as its regularization) do not depend on the
    unit of costs.
    """
    X, costs, weight, every = examples.X, examples.costs, examples.weight, np.arange(examples.n)
    met = (i != NO_AD) & examples.allowed[every, i] & (j != NO_AD) & examples.allowed[every, j]
    gain = np.where(met, costs[every, j] - costs[every, i], 0.0)  # of choosing i
    stake = np.abs(np.nan_to_num(gain))
    rows = np.flatnonzero(stake)
    stake, weight = stake[rows], weight[rows]
    if len(rows) and stake.min() < stake.max():
        weight = weight * stake / np.average(stake, weights=weight)
    return fit_binary(learner, X[rows], (gain[rows] > 0).astype(int), weight)


def prefers_first(matches: tuple[Any, ...], X: Any) -> np.ndarray:
    """Mark where each classifier of `learn_preference` prefers the first ad, (n, n_matches)."""
    first_wins = np.empty((X.shape[0], len(matches)), dtype=bool)
    for j, match in enumerate(matches):
        first_wins[:, j] = np.asarray(match.predict(X)) == 1
    return first_wins


def learn_regression(examples: Examples, *, learner: Any, n_jobs: int | None = None) -> LowestCost:
    """Learn costs; an ad without rows to learn from is predicted to cost the mean over all ads."""
    targets = examples.targets
    unseen = np.isnan(targets).all(axis=0)
    targets[:, unseen] = 0.0 if unseen.all() else np.nanmean(targets)
    matrix = CostMatrix(targets, None, np.arange(targets.shape[1]))
    weights = None if (examples.weight == 1.0).all() else examples.weight
    return LowestCost(learn_costs(learner, examples.X, matrix, weights, n_jobs))
