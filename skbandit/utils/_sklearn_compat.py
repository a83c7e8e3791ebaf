"""The only imports of scikit-learn's private modules, and of what its older versions lack."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_method_params as params_of_rows
from sklearn.utils.validation import _get_feature_names as feature_names
from sklearn.utils.validation import _num_samples as count_rows

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "count_rows",
    "feature_names",
    "fit_context",
    "params_of_rows",
    "rows_of",
]
