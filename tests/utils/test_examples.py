"""A logistic regression on gains, against the same on an example per row and choice."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skbandit.utils._examples import logistic_of_gains, weighted_examples
from skbandit.utils._sklearn_compat import fit_weighted, rows_of
from tests.worlds import warns


def gains(seed, n=200, d=4, n_choices=5):
    """Contexts, and what choices gain; some gain nothing, in five rows none does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.gamma(2.0, 1.0, d) + rng.normal(size=d)
    gain = np.maximum(X @ rng.normal(size=(d, n_choices)) + rng.normal(size=(n, n_choices)), 0.0)
    gain[:5] = 0.0
    return X, gain


CLASSIFIERS = {
    "plain": LogisticRegression(C=0.3),
    "without an intercept": LogisticRegression(fit_intercept=False),
    "standardized": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "without a penalty": make_pipeline(StandardScaler(), LogisticRegression(C=np.inf)),
}


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, np.float32])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_fit_of_gains_agrees_with_that_of_weighted_examples(name, form):
    X, gain = gains(0)
    X, classifier, numbers = form(X), clone(CLASSIFIERS[name]), np.arange(5)
    if form is csr_matrix and name not in ("plain", "without an intercept"):
        classifier.set_params(standardscaler__with_mean=False)
    ours = logistic_of_gains(classifier, X, gain, numbers, scaled_by_weight=True)
    row, choice, weight = weighted_examples(gain)
    theirs = fit_weighted(clone(classifier), rows_of(X, row), choice, weight)
    near = 1e-2 if form is np.float32 else 1e-6
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.n_features_in_ == theirs.n_features_in_
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=near)
    model, other = (fit[-1] if hasattr(fit, "steps") else fit for fit in (ours, theirs))
    assert (model.coef_.dtype, model.coef_.shape) == (X.dtype, other.coef_.shape)


def test_scalers_count_examples_or_weigh_them():
    X, gain = gains(3)
    classifier, numbers = make_pipeline(StandardScaler(), LogisticRegression()), np.arange(5)
    row, choice, weight = weighted_examples(gain)
    counted = logistic_of_gains(classifier, X, gain, numbers, scaled_by_weight=False)
    expected = clone(classifier).fit(X[row], choice, logisticregression__sample_weight=weight)
    assert counted[0].mean_ == pytest.approx(expected[0].mean_)
    assert counted.predict_proba(X) == pytest.approx(expected.predict_proba(X), abs=1e-6)
    weighed = logistic_of_gains(classifier, X, gain, numbers, scaled_by_weight=True)
    assert weighed[0].mean_ == pytest.approx(np.average(X[row], axis=0, weights=weight))


def test_choices_that_gain_nothing_are_no_classes_and_labels_are_sorted():
    X, gain = gains(4)
    gain[:, 1] = 0.0
    labels = np.array(["d", "none", "a", "c", "b"])
    fitted = logistic_of_gains(LogisticRegression(), X, gain, labels, scaled_by_weight=True)
    row, choice, weight = weighted_examples(gain)
    expected = LogisticRegression().fit(X[row], labels[choice], weight)
    assert fitted.classes_.tolist() == expected.classes_.tolist() == ["a", "b", "c", "d"]
    assert fitted.predict_proba(X) == pytest.approx(expected.predict_proba(X), abs=1e-6)


@pytest.mark.parametrize(
    ("classifier", "n_choices"),
    [
        (LogisticRegression(class_weight="balanced"), 5),
        (LogisticRegression(solver="newton-cg"), 5),
        (make_pipeline(MinMaxScaler(), LogisticRegression()), 5),
        (type("Other", (LogisticRegression,), {})(), 5),
        (LogisticRegression(), 2),
    ],
)
def test_gains_are_left_to_examples_for_other_learners_and_two_choices(classifier, n_choices):
    X, gain = gains(5, n_choices=n_choices)
    labels = np.arange(n_choices)
    assert logistic_of_gains(classifier, X, gain, labels, scaled_by_weight=True) is None


def test_a_fit_of_gains_that_ends_early_is_warned_of():
    X, gain = gains(7)
    early = LogisticRegression(max_iter=2), X, gain, np.arange(5)
    message = "did not converge in 2 iterations"
    warns(message, logistic_of_gains, *early, scaled_by_weight=True, warning=ConvergenceWarning)
