"""Parts of fitting a `ConstrainedThreshold`: metadata, fitted classifiers, limits."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._fit_rows import Classes
from skbandit.constrained._goals import Goals, Limits, SeparateLimits, SharedRisk, allowed_error
from skbandit.rates import Rate
from skbandit.rates._binding import Data, confidence_limits, encode, score_limits
from skbandit.utils._folds import Splits
from skbandit.utils._sklearn_compat import params_of_rows, rows_of

USUAL = {"predict_proba": 0.5, "decision_function": 0.0}
"""Response methods, the preferred one first, and the threshold of `predict` on each."""


def response_of(estimator: Any, wanted: str) -> str:
    """The response method of a classifier: `wanted`, or the first of USUAL if "auto"."""
    methods = list(USUAL) if wanted == "auto" else [wanted]
    found = [method for method in methods if hasattr(estimator, method)]
    if not found:
        raise ValueError(f"{type(estimator).__name__} has no {' and no '.join(methods)}.")
    return found[0]


def out_of_fold_scores(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    params: dict[str, Any],
    splits: Splits,
    method: str,
    classes: Classes,
    n_jobs: int | None,
) -> np.ndarray:
    """Score each row by a clone fitted without it; nan for rows never tested."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fold_scores)(clone(estimator), X, y, params, train, test, method, classes)
        for train, test in splits
    )
    scores = np.full(len(y), np.nan)
    for (_, test), of_fold in zip(splits, found, strict=True):
        scores[test] = of_fold
    return scores


def _fold_scores(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    params: dict[str, Any],
    train: Any,
    test: Any,
    method: str,
    classes: Classes,
) -> np.ndarray:
    """Fit on a split's training rows, score its test rows."""
    if len(np.unique(y[train])) < 2:
        raise ValueError(
            "A cv split has training rows of one class only: choose fewer folds or a stratified cv."
        )
    # the extra dataset is not indexed by the rows of X
    whole = {n: value for n, value in params.items() if n == "extra" or n.endswith("_extra")}
    sliced = {name: value for name, value in params.items() if name not in whole}
    sliced = params_of_rows(X, sliced, indices=train)
    estimator.fit(rows_of(X, train), y[train], **sliced, **whole)
    return responses(estimator, rows_of(X, test), method, classes)


def responses(estimator: Any, X: Any, method: str, classes: Classes) -> np.ndarray:
    """Responses for the positive class, signed so that high favours ``classes.labels[1]``."""
    values = np.asarray(getattr(estimator, method)(X), dtype=float)
    if method == "predict_proba":
        column = np.asarray(estimator.classes_).tolist().index(classes.positive)
        values = classes.orientation * values[:, column]
    values = values.ravel()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{type(estimator).__name__}.{method} returns {values[row]} for row {row}: a "
            "threshold needs finite scores."
        )
    return values


SINGLE = "estimator"
"""Name of the only classifier, where no list was passed."""


def named_models(estimator: Any) -> list[tuple[str, Any]]:
    """Names and classifiers, without checking them.

    A plain list takes the names of the classes in lower case, numbered where they are equal, as
    in scikit-learn's `make_pipeline`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> named_models([GaussianNB(), GaussianNB(priors=[0.9, 0.1])])
    [('gaussiannb-1', GaussianNB()), ('gaussiannb-2', GaussianNB(priors=[0.9, 0.1]))]
    """
    if not isinstance(estimator, list):
        return [(SINGLE, estimator)]
    if all(isinstance(one, tuple) and len(one) == 2 for one in estimator):
        return [(name, model) for name, model in estimator]
    plain = [type(one).__name__.lower() for one in estimator]
    total, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(name if total[name] == 1 else f"{name}-{seen[name]}")
    return list(zip(names, estimator, strict=True))


def check_models(estimator: Any, reserved: set[str]) -> list[tuple[str, Any]]:
    """Names and classifiers; errors name what is wrong with a list.

    Parameters
    ----------
    estimator : classifier, list of classifiers, or list of (name, classifier)
        The parameter.
    reserved : set of str
        Names of the other parameters.
    """
    if isinstance(estimator, list) and not estimator:
        raise ValueError("estimator is an empty list: pass a classifier, or several.")
    models = named_models(estimator)
    for name, model in models if isinstance(estimator, list) else []:
        if not isinstance(name, str):
            raise TypeError(f"estimator: the name {name!r} must be a string.")
        if "__" in name or name in reserved:
            raise ValueError(
                f"estimator: the name {name!r} is that of a parameter, or has '__' in it: choose "
                "another."
            )
        if not hasattr(model, "fit") or not any(
            hasattr(model, method) for method in ("predict_proba", "decision_function")
        ):
            raise TypeError(
                f"estimator: {name!r} must be a classifier with predict_proba or "
                f"decision_function, got {model!r}."
            )
    twice = [name for name, times in Counter(name for name, _ in models).items() if times > 1]
    if twice:
        raise ValueError(f"estimator has two classifiers of the name {twice[0]!r}.")
    return models


class NamedModels(BaseEstimator):
    """Parameters of the classifiers in a list `estimator`, by their names."""

    estimator: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` those of the classifiers, too, by their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the classifiers.

        Returns
        -------
        dict
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.estimator, list):
            for name, model in named_models(self.estimator):
                params[name] = model
                if hasattr(model, "get_params"):
                    inner = model.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a name of a listed classifier replaces it.

        Parameters
        ----------
        **params
            Values by name, as in `get_params`.

        Returns
        -------
        self : estimator
        """
        if "estimator" in params:
            self.estimator = params.pop("estimator")
        if isinstance(self.estimator, list):
            models = named_models(self.estimator)
            if not params.keys().isdisjoint(name for name, _ in models):
                self.estimator = [(name, params.pop(name, model)) for name, model in models]
        super().set_params(**params)
        return self


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
