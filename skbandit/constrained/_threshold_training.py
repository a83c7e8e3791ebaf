"""Parts of fitting a `ConstrainedThreshold`: metadata, fitted classifiers, limits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._classes import Classes
from skbandit.constrained._declared import Goals, allowed_error
from skbandit.constrained._limits import Limits, SeparateLimits, SharedRisk
from skbandit.rates import Rate
from skbandit.rates._binding import Data, confidence_limits, encode, score_limits


@dataclass(frozen=True)
class Trained:
    """What judges the thresholds of a fitted model.

    Attributes
    ----------
    objective : Rate
        As declared.
    scores : ndarray of shape (n,)
        Those that the thresholds were chosen on.
    own : ndarray of shape (n,) or None
        Those of the fitted model on the rows that it was fitted to, if these differ.
    goals : Goals
        Bound to the rows that count.
    limits : Limits or None
    data : Data
        All rows.
    group : ndarray of int, shape (n,), or None
        Group of each row.
    """

    objective: Rate
    scores: np.ndarray
    own: np.ndarray | None
    goals: Goals
    limits: Limits | None
    data: Data
    group: np.ndarray | None


def read_prefit(
    y: np.ndarray, models: list[tuple[str, Any]], pos_label: Any
) -> tuple[Classes, np.ndarray]:
    """Return the fitted classifiers' classes, and y encoded by them."""
    for _, model in models:
        try:
            check_is_fitted(model)
        except NotFittedError as error:
            raise NotFittedError(
                f"cv='prefit' requires a fitted estimator, and this {type(model).__name__}"
                " is not fitted: fit it first, or choose another cv."
            ) from error
    check_classification_targets(y)
    first, *others = [np.asarray(model.classes_) for _, model in models]
    for (name, _), labels in zip(models[1:], others, strict=True):
        if not np.array_equal(labels, first):
            raise ValueError(
                f"estimator: {name!r} was fitted on the classes {labels.tolist()}, and "
                f"{models[0][0]!r} on {first.tolist()}: fit all on the same labels."
            )
    classes = Classes.of(first, pos_label)
    unknown = [label for label in np.unique(y).tolist() if label not in classes.labels.tolist()]
    if unknown:
        raise ValueError(
            f"y contains {unknown}, which estimator was not fitted on: its classes are "
            f"{classes.labels.tolist()}."
        )
    return classes, encode(y, classes.positive, classes.labels.tolist(), "y")


def metadata_for(
    clf: Any,
    models: list[tuple[str, Any]],
    metadata: dict[str, Any],
    fit_params: dict[str, Any],
    prefit: bool,
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the metadata for the `fit` of each classifier, and for the splitter."""
    if prefit:
        if fit_params:
            raise ValueError(
                f"{', '.join(sorted(fit_params))}: parameters for the fit of estimator, "
                "which cv='prefit' does not fit. Remove them, or choose another cv."
            )
        return {}, {}
    given = {name: value for name, value in metadata.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(clf, "fit", **given, **fit_params)
        return {name: dict(routed[name].fit) for name, _ in models}, dict(routed.splitter.split)
    taken = {}
    for name, model in models:
        own = {n: value for n, value in given.items() if has_fit_parameter(model, n)}
        taken[name] = own | fit_params
        if "sample_weight" in given and not any(n.endswith("sample_weight") for n in taken[name]):
            warnings.warn(
                f"{type(model).__name__}.fit accepts no sample_weight: the weights are "
                "used in the rates, not in its training. (For a step of a Pipeline pass "
                "<step>__sample_weight as well, or enable metadata routing.)",
                UserWarning,
                stacklevel=5,
            )
    return taken, {}


def limits_at(level: float | None, goals: Goals, prefit: bool, n_models: int) -> Limits | None:
    """Limits at the level; each constraint's own where that is an exact promise."""
    if level is None:
        return None
    rows = goals.measured.rows
    single = all(len(one.rate.atoms) == 1 for one in goals.measured.constraints.constraints)
    if prefit and single:
        error = allowed_error(level) or 0.0
        # each of the models may be chosen, so each takes its share of the error
        exact = confidence_limits(goals.constraints, goals.data, error / n_models)
        of_rows = tuple(limit.columns(rows) for limit in exact)
        return SeparateLimits(goals.measured.constraints, of_rows)
    limits = score_limits(goals.constraints, goals.data).columns(rows).exact_for_few()
    return SharedRisk(limits, level)
