import numpy as np
import pytest
from sklearn.svm import LinearSVC

from skbandit import SetSelectClassifier
from tests.selection.tabular import LEARNER, masks, population


def one_vs_rest(learner=LEARNER):
    return SetSelectClassifier(learner, reduction="one_vs_rest")


def test_probabilities_are_read_back_as_expected_costs():
    X, costs, f = population(np.random.default_rng(0), 20, 5)
    model = one_vs_rest().fit(X, costs)
    contexts = np.arange(20.0)[:, None]
    np.testing.assert_allclose(model.predict_costs(contexts), f, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(contexts), -f, atol=1e-12)
    assert (model.predict(contexts)[:, 0] == f.argmin(axis=1)).all()


def test_each_ad_learns_from_rows_where_it_was_available_and_observed():
    rng = np.random.default_rng(1)
    X, costs, _ = population(rng, 15, 4, each=6)
    available = masks(rng, len(X), 4, at_least=3)
    seen = np.where(available, costs, np.nan)
    model = one_vs_rest().fit(X, costs, available=available)
    expected = np.nanmean(seen.reshape(15, 6, 4), axis=1)
    np.testing.assert_allclose(model.predict_costs(np.arange(15.0)[:, None]), expected, atol=1e-12)


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(2)
    X, costs, _ = population(rng, 10, 3)
    times = rng.integers(1, 4, size=len(X))
    weighted = one_vs_rest().fit(X, costs, sample_weight=times)
    repeated = one_vs_rest().fit(X.repeat(times, 0), costs.repeat(times, 0))
    np.testing.assert_allclose(weighted.predict_costs(X), repeated.predict_costs(X))


def test_a_cost_that_never_changes_is_predicted():
    X, costs, _ = population(np.random.default_rng(3), 10, 2)
    costs[:, 1] = -3.0
    assert (one_vs_rest().fit(X, costs).predict_costs(X)[:, 1] == -3.0).all()


def test_needs_probabilities():
    with pytest.raises(ValueError, match=r"LinearSVC has no predict_proba.*CalibratedClassifierCV"):
        one_vs_rest(LinearSVC()).fit([[0.0], [1.0]], [[0, 1], [1, 0]])
