"""Weighted classification out of fold: costs of rows become labels and weights for any learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse, vstack
from scipy.special import expit, logit
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from skbandit.constrained.fits._fit_rows import Classes
from skbandit.measure import MISSING, Rows
from skbandit.utils._examples import logistic_of_gains, weighted_examples
from skbandit.utils._fitting import in_parallel
from skbandit.utils._folds import Splits, folds_of_extra
from skbandit.utils._sklearn_compat import count_rows, params_of_rows, routes_weights, rows_of
from skbandit.utils._validation import explained_entries, first_few, warn

WEIGHT = "sample_weight"

CANCELLATION = 1e-12
"""Costs that are smaller, relative to the largest, are rounding errors of sums that cancel."""

SAME = 1e-3
"""Weights of rows that differ by less, relative to the largest, make the same problem."""


TAIL = 0.025
"""Share of rows on either side that a scale does not extend to: one may be far from all others."""

SATURATED = 2.0**-53
"""Smallest distance of a probability from 0 and 1 in its logit: next to 1, floats end there."""

MOSTLY_SATURATED = 0.5
"""Share of probabilities of 0 or 1 above which other scores are advised."""

USUAL = {"predict_proba": 0.5, "decision_function": 0.0}
"""Response methods, the preferred one first, and the threshold of `predict` on each."""

PARTS = 5
"""Parts of the rows that a prefit classifier has not seen."""


def response_of(estimator: Any, wanted: str, classes: Classes) -> str:
    """Return the response method of a classifier: `wanted`, or the first of USUAL if "auto".

    More decisions than two classes need probabilities.
    """
    methods = list(USUAL) if wanted == "auto" else [wanted]
    name, cure = type(estimator).__name__, ""
    if learns_costs(estimator):
        if classes.of_two:
            raise ValueError(
                f"{name} learns costs of several decisions, and there are two: pass a classifier."
            )
        methods = ["predict_costs", "predict_indicator"]
    elif not classes.of_two:
        if wanted == "decision_function":
            raise ValueError(
                f"response_method={wanted!r} is for two classes: decisions among "
                f"{len(classes.decisions)} need probabilities, so leave it out."
            )
        methods = methods[:1]
        cure = (
            f", which decisions among {len(classes.decisions)} need: wrap it, as in "
            f"CalibratedClassifierCV({name}())"
        )
    candidates = [method for method in methods if hasattr(estimator, method)]
    if not candidates:
        kind = ""
        if len(classes.labels) > 2:  # as scikit-learn's checks of tags expect it
            kind = "Only binary classification is supported. The type of the target is multiclass: "
        raise ValueError(f"{kind}{name} has no {' and no '.join(methods)}{cure}.")
    return candidates[0]


def warn_of_saturated(estimator: Any, method: str, scores: np.ndarray) -> None:
    """Warn if most probabilities of two classes are 0 or 1, and other scores tell rows apart."""
    if method != "predict_proba" or scores.ndim > 1 or not hasattr(estimator, "decision_function"):
        return
    share = float(np.mean(np.minimum(np.abs(scores), 1.0 - np.abs(scores)) <= SATURATED))
    if share > MOSTLY_SATURATED:
        warn(
            f"{share:.0%} of the probabilities of {type(estimator).__name__} are 0 or 1, so that "
            f"few thresholds differ ({len(np.unique(scores))} values): pass "
            "response_method='decision_function'.",
            UserWarning,
        )


def _by_decision(
    estimator: Any, values: np.ndarray, classes: Classes, *, costs: bool
) -> np.ndarray:
    """Probabilities in the order of the decisions, or the share of each in the predicted gains.

    Decisions that the estimator does not know have none.
    """
    is_selector, decisions = learns_costs(estimator), classes.decisions.tolist()
    labels = np.asarray(estimator.ads_ if is_selector else estimator.classes_).tolist()
    shares = np.zeros((len(values), len(decisions)))
    shares[:, [decisions.index(label) for label in labels]] = values
    if is_selector:
        shares = np.maximum(-shares if costs else shares, 0.0)
        total = shares.sum(axis=1, keepdims=True)
        shares = np.divide(
            shares, total, out=np.full_like(shares, 1 / len(labels)), where=total > 0
        )
    return shares


def responses(estimator: Any, X: Any, method: str, classes: Classes) -> np.ndarray:
    """Responses for the positive class, signed so that high favors ``classes.labels[1]``.

    With more decisions than two classes, probabilities of all decisions, of shape (n, D).
    """
    with explained_entries(X, type(estimator).__name__):
        values = np.asarray(getattr(estimator, method)(X), dtype=float)
    if len(values) != (n := count_rows(X)):
        raise ValueError(
            f"{type(estimator).__name__}.{method} returns {len(values)} for {n} rows: a vectorizer "
            "of texts takes the names of a table's columns for texts, so pass the column of texts."
        )
    if not classes.of_two:
        values = _by_decision(estimator, values, classes, costs=method == "predict_costs")
    elif method == "predict_proba":
        column = np.asarray(estimator.classes_).tolist().index(classes.positive)
        values = classes.orientation * values[:, column]
    elif np.asarray(getattr(estimator, "classes_", classes.labels))[1] != classes.labels[1]:
        values = -values  # a classifier may list its classes in another order
    values = values.ravel() if classes.of_two else values
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(
            f"{type(estimator).__name__}.{method} returns {values[row]} for row {row}: a "
            "decision needs finite scores."
        )
    return values


@dataclass(frozen=True)
class Task:
    """A cost-sensitive classification problem over N rows and D decisions, as `Data` codes them.

    Attributes
    ----------
    gain : ndarray of shape (N, D)
        What each decision gains over the worst one for that row; rows without any are excluded.
    """

    gain: np.ndarray

    @classmethod
    def of_labels(cls, label: np.ndarray, n_decisions: int, weight: np.ndarray) -> Task:
        """Return the task of weighted rows as they are."""
        return cls((label[:, None] == np.arange(n_decisions)) * weight[:, None])

    @classmethod
    def of_costs(cls, costs: np.ndarray, row_weight: np.ndarray) -> Task:
        """Return the task whose weighted error is proportional to the cost of the decisions.

        Parameters
        ----------
        costs : ndarray of shape (N,) or (N, D)
            Of deciding a row positive rather than negative, or of each decision.
        row_weight : ndarray of shape (N,)
            Weights of the rows themselves. The total weight of the rows that cost anything is
            as it was, so that a penalty of the learner means the same.
        """
        costs = np.column_stack([np.zeros(len(costs)), costs]) if costs.ndim == 1 else costs
        gain = costs.max(axis=1, keepdims=True) - costs
        gain[gain <= CANCELLATION * gain.max(initial=0.0)] = 0.0
        total = gain.sum(axis=1).sum()
        factor = row_weight[gain.any(axis=1)].sum() / total if total > 0 else 0.0
        return cls(factor * gain)

    def is_near(self, other: Task) -> bool:
        """Return whether a fit to the other task would only be repeated."""
        return bool((np.abs(self.gain - other.gain) <= SAME * self.gain.max(initial=0.0)).all())

    def has_both_labels(self, rows: np.ndarray) -> bool:
        """Return whether two decisions, at least, gain something in some of the rows."""
        return int((self.gain[rows] > 0).any(axis=0).sum()) >= 2

    def examples(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, codes and weights of examples of decisions: see `weighted_examples`."""
        row, decision, weight = weighted_examples(self.gain[rows])
        return rows[row], decision, weight


def learns_costs(estimator: Any) -> bool:
    """Return whether an estimator is fitted to costs of all decisions, as selectors are."""
    return hasattr(estimator, "predict_indicator")


@dataclass(frozen=True)
class Learner:
    """A classifier, and what its `fit` receives besides X, y and weights of costs.

    Attributes
    ----------
    estimator : classifier
        Cloned for each fit.
    classes : Classes
    params : dict
        Parameters for its `fit`. What has an entry per row is sliced; the weights of the task,
        if there is one, take the place of those of the rows.
    weight_name : str
        The parameter of `fit` that takes weights.
    """

    estimator: Any
    classes: Classes
    params: dict[str, Any]
    weight_name: str

    def fitted(self, X: Any, y: np.ndarray, rows: np.ndarray, task: Task | None) -> Any:
        """Fit a clone to some rows of X: as they are, or with labels and weights of a task.

        Without a task only rows with an entry in y are fitted, those of the extra dataset are not.
        """
        if task is None:
            rows = rows[rows < len(y)]
            return self._fit(X, y[rows], rows, {}, len(y))
        if learns_costs(self.estimator):
            rows = rows[task.gain[rows].any(axis=1)]
            costs = pd.DataFrame(-task.gain[rows], columns=self.classes.decisions)
            return clone(self.estimator).fit(rows_of(X, rows), costs)
        if not self.params:
            given = rows_of(X, rows), task.gain[rows], self.classes.by_code
            fitted = logistic_of_gains(self.estimator, *given, scaled_by_weight=False)
            if fitted is not None:
                return fitted
        rows, code, weight = task.examples(rows)
        labels = self.classes.by_code[code]
        return self._fit(X, labels, rows, {self.weight_name: weight}, len(y))

    def _fit(self, X: Any, y: np.ndarray, rows: np.ndarray, weights: dict[str, Any], n: int) -> Any:
        # the extra dataset is not indexed by the rows of X
        whole = {k: part for k, part in self.params.items() if k.endswith("_extra")}
        sliced = {k: part for k, part in self.params.items() if k not in whole and k not in weights}
        for name, values in sliced.items() if (rows >= n).any() else ():
            if hasattr(values, "__len__") and not isinstance(values, str) and len(values) == n:
                raise ValueError(
                    f"{name} has an entry for each of the {n} rows of X, but rows of X_extra have "
                    f"costs too and are fitted with them, and {type(self.estimator).__name__} "
                    f"would get none for them: leave {name} out, or measure every rate on the "
                    "rows of X."
                )
        sliced = params_of_rows(np.empty((n, 0)), sliced, indices=rows)
        routing = config_context(enable_metadata_routing=routes_weights(self.estimator))
        with routing, explained_entries(X, type(self.estimator).__name__):
            return clone(self.estimator).fit(rows_of(X, rows), y, **sliced, **whole, **weights)


def folds_of_all(splits: Splits, unit: np.ndarray, extra: Rows | None) -> Splits:
    """Return splits of X, to whose folds the extra rows are assigned, copies with the original.

    Rows to fit and rows to score are indices of the stacked rows.
    """
    label = np.empty(0, dtype=int) if extra is None else extra.label
    of_X = np.full(len(unit) - len(label), -1)
    for k, (_, test) in enumerate(splits):
        of_X[test] = k
    fold = folds_of_extra(of_X, len(splits), label - MISSING, unit)
    rows, added = np.arange(len(of_X)), len(of_X) + np.arange(len(label))
    return [
        (np.append(rows[train], added[fold != k]), np.append(rows[test], added[fold == k]))
        for k, (train, test) in enumerate(splits)
    ]


def is_linear(fitted: Any) -> bool:
    """Return whether a fitted classifier, behind transformers or wrappers, has coefficients."""
    if isinstance(fitted, Pipeline):
        return is_linear(fitted.steps[-1][1])
    for name in ("best_estimator_", "estimator_"):
        if hasattr(fitted, name):
            return is_linear(getattr(fitted, name))
    if len(several := getattr(fitted, "estimators_", [])) == 1:
        return is_linear(several[0])
    return hasattr(fitted, "coef_")


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of a linear classifier's scores, or of logits.

    The fewer the rows that separate the classes, the wider, so that a threshold on the scores of
    one fit does not suit those of another.

    Attributes
    ----------
    mean, deviation : float
    method : {"predict_proba", "decision_function"}
        Of the responses.
    has_logits : bool
        Whether probabilities are read from `decision_function`, which is not rounded next to 1.
    classes : Classes
    weight : ndarray of shape (N,)
        Of all rows.
    """

    mean: float
    deviation: float
    method: str
    has_logits: bool
    classes: Classes
    weight: np.ndarray

    @classmethod
    def of(
        cls, fitted: Any, X: Any, method: str, classes: Classes, weight: np.ndarray
    ) -> Scale | None:
        """Return the one of a classifier fitted to all rows X; None if it is not linear."""
        if not is_linear(fitted):
            return None
        has_logits = method == "predict_proba" and hasattr(fitted, "decision_function")
        if has_logits:  # or other scores
            values, logits = [responses(fitted, X, name, classes) for name in USUAL]
            sign = classes.orientation
            has_logits = bool(np.allclose(sign * expit(sign * logits), values))
        unknown = cls(np.nan, np.nan, method, has_logits, classes, weight)
        mean, deviation = _clipped_moments(unknown._unbounded(fitted, X), weight)
        return replace(unknown, mean=mean, deviation=deviation)

    def responses(self, fitted: Any, X: Any, rows: np.ndarray) -> np.ndarray:
        """Responses of another fit to some of all rows X, spread as those of the first one."""
        scores, sign = self._unbounded(fitted, X), self.classes.orientation
        mean, deviation = _clipped_moments(scores, self.weight)
        flat = min(self.deviation, deviation) <= CANCELLATION * np.abs(scores).max()
        ratio = 1.0 if flat else self.deviation / deviation
        scores = self.mean + ratio * (scores[rows] - mean)
        return scores if self.method != "predict_proba" else sign * expit(sign * scores)

    def _unbounded(self, fitted: Any, X: Any) -> np.ndarray:
        """Responses; of probabilities their logits."""
        classes, sign = self.classes, self.classes.orientation
        if self.has_logits:
            return responses(fitted, X, "decision_function", classes)
        values = responses(fitted, X, self.method, classes)
        if self.method != "predict_proba":
            return values
        return sign * logit(np.clip(sign * values, SATURATED, 1.0 - SATURATED))


def _clipped_moments(scores: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Mean and deviation, with scores beyond the tails' quantiles clipped at them."""
    order = np.argsort(scores)
    rank = np.cumsum(weight[order]) / weight.sum()
    ends = np.searchsorted(rank, [TAIL, 1.0 - TAIL]).clip(max=len(scores) - 1)
    scores = scores.clip(*scores[order[ends]])
    mean = float(np.average(scores, weights=weight))
    return mean, float(np.sqrt(np.average((scores - mean) ** 2, weights=weight)))


def _fold_scores(
    learner: Learner,
    X: Any,
    y: np.ndarray,
    task: Task | None,
    method: str,
    scale: Scale | None,
    train: np.ndarray,
    test: np.ndarray,
) -> np.ndarray:
    if task is None and len(np.unique(y[train[train < len(y)]])) < 2:
        raise ValueError(
            "A cv split has training rows of one class only: choose fewer folds or a stratified cv."
        )
    fitted = learner.fitted(X, y, train, task)
    if scale is not None:
        return scale.responses(fitted, X, test)
    return responses(fitted, rows_of(X, test), method, learner.classes)


@dataclass(frozen=True)
class OutOfFold:
    """Fits of a learner to all rows, and scores of each row by fits without it.

    Attributes
    ----------
    learner : Learner
    X : indexable of N rows
        Those of the extra dataset stand below the others.
    y : ndarray of shape (n,)
    folds : list of tuple of two ndarray of int
    method : {"predict_proba", "decision_function"}
    weight : ndarray of shape (N,)
    n_jobs : int or None
    """

    learner: Learner
    X: Any
    y: np.ndarray
    folds: Splits
    method: str
    weight: np.ndarray
    n_jobs: int | None

    def supports(self, task: Task) -> bool:
        """Return whether rows of both labels are fitted in every fold."""
        return all(task.has_both_labels(train) for train, _ in self.folds)

    def fold_of_rows(self, n: int) -> np.ndarray:
        """Fold in which each of n rows is scored, -1 if in none."""
        fold = np.full(n, -1)
        for k, (_, test) in enumerate(self.folds):
            fold[test] = k
        return fold

    def fitted(self, task: Task | None = None) -> Any:
        """Return a fit to all rows, as they are or with labels and weights of a task."""
        if task is None:
            return self._plain
        return self.learner.fitted(self.X, self.y, np.arange(len(self.weight)), task)

    @cached_property
    def _plain(self) -> Any:
        return self.learner.fitted(self.X, self.y, np.arange(len(self.weight)), None)

    def scores(self, task: Task | None = None) -> tuple[np.ndarray, Any]:
        """Scores of all rows, nan where never tested; and the fit to all rows if it was needed.

        Linear classifiers have the scale of that fit.
        """
        return self._scores_of_labels if task is None else self._scores_of(task)

    @cached_property
    def _scores_of_labels(self) -> tuple[np.ndarray, Any]:
        return self._scores_of(None)

    def _scores_of(self, task: Task | None) -> tuple[np.ndarray, Any]:
        linear = self.learner.classes.of_two and is_linear(self._plain)
        fit, scale = self.fitted(task) if linear else None, None
        if fit is not None:
            scale = Scale.of(fit, self.X, self.method, self.learner.classes, self.weight)
        of_split = partial(_fold_scores, self.learner, self.X, self.y, task, self.method, scale)
        splits = self.folds
        fold_scores = in_parallel((partial(of_split, *split) for split in splits), self.n_jobs)
        scores = np.full((count_rows(self.X), *fold_scores[0].shape[1:]), np.nan)
        for (_, test), of_fold in zip(splits, fold_scores, strict=True):
            scores[test] = of_fold
        return scores, fit


@dataclass(frozen=True)
class Prefit:
    """A fitted classifier in the place of `OutOfFold`: its scores of rows that it has not seen.

    `known_scores` are those that were computed before.
    """

    estimator: Any
    X: Any
    method: str
    classes: Classes
    known_scores: np.ndarray | None = None

    def fold_of_rows(self, n: int) -> np.ndarray:
        """Parts of n rows by which others are recalibrated."""
        return np.arange(n) % PARTS

    def fitted(self, task: Task | None = None) -> Any:
        """Return the classifier."""
        return self.estimator

    def scores(self, task: Task | None = None) -> tuple[np.ndarray, Any]:
        """Scores of all rows, and the classifier."""
        if self.known_scores is not None:
            return self.known_scores, self.estimator
        return responses(self.estimator, self.X, self.method, self.classes), self.estimator


def metadata_for(
    clf: Any, metadata: dict[str, Any], fit_params: dict[str, Any], weight_name: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata for the `fit` of the estimator inside, and for the splitter.

    `weight_name` is the parameter that weights are passed to even if `fit` does not name it.
    """
    given = {name: value for name, value in metadata.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        weights = {}
        if weight_name is not None and WEIGHT in given and not routes_weights(clf.estimator):
            weights[weight_name] = given.pop(WEIGHT)
        routed = process_routing(clf, "fit", **given, **fit_params)
        return dict(routed.estimator.fit) | weights, dict(routed.splitter.split)
    taken = {n: value for n, value in given.items() if has_fit_parameter(clf.estimator, n)}
    if weight_name is not None and "sample_weight" in given:
        taken[weight_name] = given["sample_weight"]
    taken |= fit_params
    if "sample_weight" in given and not any(name.endswith("sample_weight") for name in taken):
        warn(
            f"{type(clf.estimator).__name__}.fit accepts no sample_weight: the weights are "
            "used in the rates, not in its training. (For a step of a Pipeline pass "
            "<step>__sample_weight as well, or enable metadata routing.)",
            UserWarning,
        )
    return taken, {name: part for name, part in given.items() if name == "groups"}


def stacked(X: Any, X_extra: Any) -> Any:
    """Return the extra rows, if any, below the others, as an estimator takes them."""
    if X_extra is None:
        return X
    names, others = (list(getattr(part, "columns", ())) for part in (X, X_extra))
    if names and not others:
        raise ValueError("the columns of X are features with names, which those of X_extra lack.")
    if others and set(names) != set(others):
        differ = sorted(set(names) ^ set(others), key=str)
        raise ValueError(f"features that only one of the two has: {first_few(differ)}.")
    if (size := np.shape(X_extra)[1:]) != np.shape(X)[1:]:
        raise ValueError(f"it has features of shape {size}, and X has {np.shape(X)[1:]}.")
    if isinstance(X, pd.DataFrame) and isinstance(X_extra, pd.DataFrame):
        return pd.concat([X, X_extra[X.columns]], ignore_index=True)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(X, polars.DataFrame):
        return polars.concat([X, X_extra.select(X.columns)])
    if issparse(X) or issparse(X_extra):
        return vstack([X, X_extra], format="csr")
    return np.concatenate([np.asarray(X), np.asarray(X_extra)])
