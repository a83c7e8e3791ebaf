"""The only imports of scikit-learn's private modules."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _get_feature_names as feature_names

__all__ = ["Interval", "StrOptions", "feature_names", "fit_context"]
