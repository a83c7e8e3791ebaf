"""scikit-learn's own checks on every estimator, and those that it never yields itself."""

import numpy as np
import pytest
import sklearn
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.bandit import OffPolicyClassifier, OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, RampClassifier
from skbandit.rates import accuracy, error_rate, recall
from skbandit.selection import PopularitySetSelector
from tests.tiers import first


def nightly(estimator):
    return pytest.param(estimator, marks=pytest.mark.nightly)


def widened(y):
    """Costs of four ads, whose order changes with that of a single one."""
    if y is None:
        return y
    cost = np.asarray(y)
    if np.iscomplexobj(cost):
        return cost
    cost = cost.astype(float).reshape(len(cost), -1)[:, :1]
    return np.hstack([cost, 1.5 - cost, 0.3 * cost**2, 0.5 + 0.1 * cost])


class Widened:
    """Takes a single cost for those of four ads; comes before a selector's class."""

    def fit(self, X, y=None, *, available=None, sample_weight=None):
        return super().fit(X, widened(y), available=available, sample_weight=sample_weight)

    def score(self, X, y, *, available=None, sample_weight=None):
        return super().score(X, widened(y), available=available, sample_weight=sample_weight)


class WidenedRegression(Widened, RegressionSetSelector):
    pass


class WidenedPopularity(Widened, PopularitySetSelector):
    pass


class WidenedSetSelect(Widened, SetSelectClassifier):
    pass


class OneOutputRidge(Ridge):
    """Stands for regressors of which each ad needs its own."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


QUICK = {"cv": 2, "confidence_level": 0.5}
"""What the checks look at does not depend on the folds; the variants have other settings."""

ESTIMATORS = [  # one of each class
    # "auto" solves the few rows by cvxpy: "newton" ends within a tolerance that is wider than
    # what the checks of weights allow
    RampClassifier(constraints=[error_rate() <= 0.6], threshold=False, init="zeros"),
    ConstrainedThreshold(LogisticRegression(max_iter=1000), **QUICK),
    ConstrainedReduction(LogisticRegression(C=0.1, max_iter=1000), max_iter=2, **QUICK),
    # the checks make one ad
    RegressionSetSelector(),
    PopularitySetSelector(),
    SetSelectClassifier(),
    # labels are arms, each played with reward 1
    GLMUCBPolicy(),
    OffPolicyClassifier(),
    SharedGLMPolicy(),
    OraclePolicy(DecisionTreeRegressor(), refit=1, min_events=1),
    SlatePolicy(n_select=1),
]

VARIANTS = [
    ConstrainedRampClassifier(),
    RampClassifier(accuracy(), [error_rate() <= 0.6], init="zeros"),
    ConstrainedRampClassifier(
        constraints=[error_rate() <= 0.6, accuracy() >= 0.1], solver="newton"
    ),
    ConstrainedThreshold(
        RidgeClassifier(), accuracy(), [error_rate() <= 0.6, accuracy() >= 0.1], cv=3
    ),
    ConstrainedReduction(
        RidgeClassifier(), accuracy(), [error_rate() <= 0.6, accuracy() >= 0.1], cv=3
    ),
    # four ads: normal equations, one regressor for all, one for each
    WidenedRegression(n_select=3),
    WidenedRegression(Ridge(solver="lsqr"), n_select=3),
    WidenedRegression(OneOutputRidge(), n_select=2),
    WidenedRegression("stack", n_select=2),
    WidenedPopularity(n_select=2),
    WidenedSetSelect(n_select=2, cross_fit=2),
    WidenedSetSelect(n_select=3, cross_fit=None, reduction="filter_tree"),
    WidenedSetSelect(n_select=2, method="published", random_state=0),
    WidenedSetSelect(n_select=2, reduction="weighted_all_pairs"),
    OffPolicyClassifier(DecisionTreeClassifier(random_state=0), "snips"),
    GLMUCBPolicy("linear", covariance="full", exploration="thompson"),
    GLMUCBPolicy("probit", prior_mean="adaptive", prior_variance="adaptive"),
    SharedGLMPolicy(None, "linear", exploration="thompson", covariance="diagonal"),
    OraclePolicy(Ridge(), exploration="bootstrap", n_replicates=2),
]


# The checks fit a policy with labels alone, as its actions.
# Sparse rows of the checks are often 0, and those of their tiny tables equal.
COPIES = pytest.mark.filterwarnings("ignore:.*rows of X occur more than once:UserWarning")
NO_REWARDS = pytest.mark.filterwarnings("ignore:y has actions but no rewards:UserWarning")


_SEQUENTIAL = (GLMUCBPolicy, SharedGLMPolicy, OraclePolicy, SlatePolicy)
_POLICIES = (*_SEQUENTIAL, OffPolicyClassifier)


def weights(*kinds):
    """Names of the checks that compare rows of weight 2 with rows that occur twice."""
    return [f"check_sample_weight_equivalence_on_{kind}_data" for kind in kinds]


def expected_failures(estimator):
    """Why checks fail, by their names."""
    failures = {}
    # the check's rewards are all equal: of linear rewards and of oracles, nothing is learned then
    in_order = (
        not isinstance(estimator, OraclePolicy) and getattr(estimator, "link", "") != "linear"
    )
    if isinstance(estimator, _SEQUENTIAL) and in_order:
        # scikit-learn 1.6 also runs the sparse check, in vain, on estimators that refuse such rows
        kinds = ("dense", "sparse") if get_tags(estimator).input_tags.sparse else ("dense",)
        failures |= dict.fromkeys(weights(*kinds), "learns in order, but the check shuffles")
    if isinstance(estimator, _POLICIES):
        why = "without columns, a policy learns the mean rewards of arms"
        failures["check_estimators_empty_data_messages"] = why
    if isinstance(estimator, ConstrainedThreshold) and hasattr(estimator, "predict_proba"):
        # as scikit-learn declares of its own TunedThresholdClassifierCV
        why = "probabilities stay calibrated, so predict need not be where they are largest"
        failures["check_classifiers_train"] = why
    if isinstance(estimator, ConstrainedRampClassifier) or (
        getattr(estimator, "estimator", None) == "stack"
    ):
        # as scikit-learn declares of its own estimators with cross-validation inside
        why = "copies of a row fall into different folds, a row of weight 2 into one"
        failures |= dict.fromkeys(weights("dense", "sparse"), why)
    if isinstance(estimator, Widened) and get_tags(estimator).input_tags.sparse:
        why = "sparse X is fine, but the check expects an output for each column of its y"
        failures |= {f"check_estimator_sparse_{kind}": why for kind in ("array", "matrix")}
    elif parse_version(sklearn.__version__) < parse_version("1.7") and is_classifier(estimator):
        # To make y binary, 1.6 compares it with its first entry, after shuffling one of two copies.
        why = "scikit-learn 1.6 gives the two fits different labels"
        failures |= dict.fromkeys(weights("dense", "sparse"), why)
    return failures


# scikit-learn before 1.7 draws labels of which a class may have fewer rows than folds.
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@COPIES
@NO_REWARDS
@pytest.mark.parametrize("estimator", [*ESTIMATORS, *map(nightly, VARIANTS)], ids=repr)
def test_sklearn(estimator):
    expected = expected_failures(estimator)
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert len(results) > 30
    if parse_version(sklearn.__version__) >= parse_version("1.7"):  # before, some fail by chance
        assert not [r for r in results if r["expected_to_fail"] and r["status"] == "passed"]


@NO_REWARDS
@pytest.mark.parametrize("estimator", first(len(ESTIMATORS), [*ESTIMATORS, *VARIANTS]), ids=repr)
def test_sklearn_never_yields(estimator):
    for name in (
        "check_dataframe_column_names_consistency",
        "check_param_validation",
        "check_inplace_ensure_writeable",
    ):
        getattr(estimator_checks, name)(type(estimator).__name__, estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        ConstrainedThreshold(LogisticRegression(), error_rate(), recall(of=2) >= 0.6),
        ConstrainedReduction(
            LogisticRegression(), error_rate(), recall(of=2) >= 0.6, max_iter=2, **QUICK
        ),
        RegressionSetSelector(Ridge(), n_select=2),
        SetSelectClassifier(LogisticRegression(), n_select=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_weights_have_no_unit(estimator):
    """Nor do those that reach a learner with a penalty."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(120, 5)), rng.gamma(2, size=120)
    values = X @ rng.normal(size=(5, 3)) + 1.2 * rng.gumbel(size=(120, 3))
    y = values.argmax(axis=1) if is_classifier(estimator) else -values
    y = -values if isinstance(estimator, SetSelectClassifier) else y
    for times, unit in ((weight, 2.0**-17), (weight, 2.0**13), (rng.integers(1, 4, 120), 6)):
        one, other = (
            estimator.fit(X, y, sample_weight=given).predict(X) for given in (times, unit * times)
        )
        np.testing.assert_array_equal(one, other)
