"""Private parts of scikit-learn, public ones that older versions lack, and optional packages."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.validation import _check_method_params as params_of_rows
from sklearn.utils.validation import _get_feature_names as feature_names
from sklearn.utils.validation import _num_samples as count_rows

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


def begin_callbacks(estimator: Any) -> Any:
    """Return the callback context of a fit (experimental in scikit-learn 1.9), None before 1.9."""
    if not hasattr(estimator, "_init_callback_context"):
        return None
    return estimator._init_callback_context(max_subtasks=None)


def forget_callbacks(estimator: Any) -> None:
    """Drop what a running fit leaves on its estimator for callbacks."""
    for name in ("_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx"):
        vars(estimator).pop(name, None)


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "LinearClassifierMixin",
    "StrOptions",
    "available_if",
    "begin_callbacks",
    "count_rows",
    "feature_names",
    "fit_context",
    "forget_callbacks",
    "params_of_rows",
    "rows_of",
]


def import_optional(module: str, needed_by: str) -> Any:
    """Import a module, or raise an error that names who needs its package and how to install it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:  # the package is installed, but one of its dependencies is not
            raise
        raise ImportError(f"{needed_by} needs {package}: pip install {package}") from error
