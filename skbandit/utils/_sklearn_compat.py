"""Private parts of scikit-learn, public ones that older versions lack, and optional packages."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.validation import _check_method_params as params_of_rows
from sklearn.utils.validation import _get_feature_names as feature_names
from sklearn.utils.validation import _num_samples as count_rows
from sklearn.utils.validation import has_fit_parameter

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for scikit-learn's mixin."""


Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """scikit-learn's decorator of `fit`, which keeps the signature for type checkers."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """scikit-learn's decorator of optional methods, which keeps the signature as well."""
    return _available_if(check)


def routes_weights(estimator: Any) -> bool:
    """Return whether metadata are routed in a `fit` that receives the weights of rows.

    With metadata routing enabled, they are if some part of a Pipeline requests weights. If none
    does, its last step gets them, as without routing.
    """
    if not get_config()["enable_metadata_routing"]:
        return False
    if not isinstance(estimator, Pipeline):
        return True
    return bool(estimator.get_metadata_routing().consumes("fit", ["sample_weight"]))


def takes_weights(estimator: Any) -> bool:
    """Return whether `fit` takes sample_weight, or passes keyword arguments on, as searches do."""
    parameters = inspect.signature(estimator.fit).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return "sample_weight" in parameters or anything


def weight_parameter(estimator: Any) -> str:
    """Return the name of the parameter of `fit` that takes the weights of rows.

    For a Pipeline whose `fit` does not route them, it is that of the last step, as in
    ``"svc__sample_weight"``.
    """
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            if hasattr(step, "fit_resample"):
                raise ValueError(
                    f"The step {name!r} of the Pipeline changes the rows, and training is by their "
                    "weights: leave it out, as the weights also balance the classes, or use "
                    "ConstrainedThreshold."
                )
    if isinstance(estimator, Pipeline) and not routes_weights(estimator):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_parameter(last)}"
    if not takes_weights(estimator):
        raise ValueError(
            f"{type(estimator).__name__}.fit accepts no sample_weight, and training is by weights: "
            "choose an estimator that accepts them (ConstrainedThreshold needs none)."
        )
    return "sample_weight"


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Any = None) -> Any:
    """Fit an estimator with weights of rows, if any.

    All steps of a Pipeline that take weights get them, unless metadata are routed.
    """
    weights = {} if weight is None else {weight_parameter(estimator): weight}
    routed = routes_weights(estimator)
    if weights and isinstance(estimator, Pipeline) and not routed:
        for name, step in estimator.steps[:-1]:
            if has_fit_parameter(step, "sample_weight"):
                weights[f"{name}__sample_weight"] = weight
    with config_context(enable_metadata_routing=routed):
        return estimator.fit(X, y, **weights)


def import_optional(module: str, needed_by: str) -> Any:
    """Import a module, or raise an error that names who needs its package and how to install it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:  # the package is installed, but one of its dependencies is not
            raise
        raise ImportError(f"{needed_by} needs {package}: pip install {package}") from error
