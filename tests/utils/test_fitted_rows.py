"""Reports on the rows of a fit say so, on whatever part of them, and on no others."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedPolicy, OffPolicyClassifier, off_policy_value
from skbandit.constrained import (
    ConstrainedRampClassifier,
    ConstrainedReduction,
    ConstrainedThreshold,
    RampClassifier,
    constraint_report,
)
from skbandit.rates import outcome, recall
from skbandit.utils._fitted_rows import MOST_HASHES, fitted_rows, share_fitted
from tests.worlds import warns

TOLD = "of these rows were in the fit, .* report on rows that had no part"


def table(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "age": rng.integers(18, 90, n)})
    X["city"] = rng.choice(["Oslo", "Rome"], n)
    return X, rng.integers(0, 2, n)


@pytest.mark.parametrize("n", [400, 5 * MOST_HASHES])
def test_the_share_of_rows_that_were_in_the_fit(n):
    (X, y), (new, of_new) = table(n, 0), table(n, 1)
    fitted, order = fitted_rows(X, y), np.random.default_rng(2).permutation(n)
    assert share_fitted(fitted, X, y) == 1
    assert share_fitted(fitted, X.iloc[order], y[order]) == 1
    assert share_fitted(fitted, X[: n // 3], y[: n // 3]) == 1
    assert share_fitted(fitted, new, of_new) == 0
    assert share_fitted(fitted, X, 1 - y) == 0
    half = pd.concat([X[: n // 2], new[: n // 2]]), np.append(y[: n // 2], of_new[: n // 2])
    assert share_fitted(fitted, *half) == pytest.approx(0.5, abs=0.07)
    numbers = X[["x", "age"]]
    for other in (numbers.to_numpy(), csr_array(numbers.to_numpy()), numbers[::-1][::-1]):
        assert share_fitted(fitted_rows(numbers, y), other, y) == 1


def test_rows_of_few_values_are_no_rows_of_the_fit():
    """Only the very same table is, in its order: new rows may equal others by chance."""
    X, y = table(400, 0)
    fitted = fitted_rows(X[["city"]], y)
    assert share_fitted(fitted, X[["city"]], y) == 1
    assert share_fitted(fitted, X[["city"]][:300], y[:300]) == 0
    assert fitted_rows([[1.0], [1.0, 2.0]]) is None
    assert share_fitted(None, X, y) == 0


@pytest.mark.parametrize(
    "clf",
    [
        ConstrainedThreshold(LogisticRegression(), None, recall() >= 0.5),
        ConstrainedThreshold(LogisticRegression(), None, recall() >= 0.5, cv="prefit"),
        ConstrainedReduction(LogisticRegression(), None, recall() >= 0.5, max_iter=2),
        ConstrainedRampClassifier(None, recall() >= 0.5),
        RampClassifier(None, recall() >= 0.5),
        make_pipeline(StandardScaler(), ConstrainedThreshold(LogisticRegression())),
    ],
    ids=repr,
)
def test_reports_of_classifiers_warn_of_rows_of_their_fit(clf):
    (X, y), (new, of_new) = (
        (part[["x", "age"]] / 50, label) for part, label in (table(300, 0), table(300, 1))
    )
    if getattr(clf, "cv", None) == "prefit":
        clf.estimator.fit(new, of_new)
    clf.fit(X, y)
    order = np.arange(300)[::-1]
    for rows in (np.arange(300), order, order[:100]):
        warns(f"100% {TOLD}", constraint_report, clf, X.iloc[rows], y[rows])
    constraint_report(clf, new, of_new)


def test_reports_of_policies_warn_of_rows_of_their_fit():
    def log(n, seed):
        rng = np.random.default_rng(seed)
        events = {"action": rng.choice(["a", "b"], n), "reward": rng.random(n)}
        return rng.normal(size=(n, 2)), pd.DataFrame({**events, "propensity": 0.5, "harm": 0.1})

    (X, y), (new, of_new) = log(300, 0), log(300, 1)
    for policy in (ConstrainedPolicy(), OffPolicyClassifier(LogisticRegression())):
        policy.fit(X, y)
        for rows in (slice(None), slice(None, None, -1), slice(100)):
            warns("fitted to this very log, or to rows", off_policy_value, policy, X[rows], y[rows])
        off_policy_value(policy, new, of_new)
    policy = ConstrainedPolicy(None, None, outcome("harm") <= 0.2).fit(X, y)
    warns(f"100% {TOLD}", policy.constraint_report, X, y)
    policy.constraint_report(new, of_new)
