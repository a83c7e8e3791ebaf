"""scikit-learn's own checks on every estimator, and those that it never yields itself."""

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbandit import ConstrainedRampClassifier
from skbandit.rates import error_rate, f1, positive_rate

ESTIMATORS = [
    ConstrainedRampClassifier(),
    ConstrainedRampClassifier(constraints=[error_rate() <= 0.6, positive_rate() <= 0.9]),
    ConstrainedRampClassifier(f1(), threshold=None),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_param_validation",
        "check_inplace_ensure_writeable",
    ],
)
def test_sklearn_never_yields(estimator, name):
    getattr(estimator_checks, name)(type(estimator).__name__, estimator)
