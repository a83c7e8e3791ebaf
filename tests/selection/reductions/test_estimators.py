"""What the four reductions have in common as estimators."""

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector
from skbandit.selection.reductions import (
    FilterTreeClassifier,
    OneVsRestCostClassifier,
    RegressionCostClassifier,
    WeightedAllPairsClassifier,
)
from tests.tiers import first

ALL = [
    FilterTreeClassifier(),
    WeightedAllPairsClassifier(),
    OneVsRestCostClassifier(),
    RegressionCostClassifier(),
]
COMPARING = ALL[:2]
PREDICTING = ALL[2:]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(120, 4))


each = pytest.mark.parametrize("model", ALL, ids=repr)


@each
def test_labels_of_a_frame(model, data):
    X, costs = data
    X, costs = pd.DataFrame(X, columns=list("uvw")), pd.DataFrame(costs, columns=list("abcd"))
    fitted = sklearn.clone(model).fit(X, costs)
    assert fitted.ads_.tolist() == list("abcd")
    assert fitted.feature_names_in_.tolist() == list("uvw")
    predicted = fitted.predict(X)
    assert predicted.shape == (120,)
    plain = sklearn.clone(model).fit(X.to_numpy(), costs.to_numpy()).predict(X.to_numpy())
    assert (predicted == np.array(list("abcd"), dtype=object)[plain]).all()
    available = pd.DataFrame({"d": True, "b": False, "a": True, "c": False}, index=range(120))
    assert set(fitted.predict(X, available=available)) == {"a", "d"}


@each
def test_score_is_minus_the_mean_cost(model, data):
    X, costs = data
    fitted = sklearn.clone(model).fit(X, costs)
    paid = costs[np.arange(120), fitted.predict(X)]
    assert fitted.score(X, costs) == pytest.approx(-paid.mean())
    assert paid.mean() < costs.mean(axis=0).min()  # better than the most popular ad


@each
def test_sparse_rows_and_costs(model, data):
    X, costs = data
    X, costs = np.where(X > 0, X, 0), np.where(costs > 0, costs, 0)
    dense = sklearn.clone(model).fit(X, costs).predict(X)
    for make in (csr_matrix, csr_array):
        found = sklearn.clone(model).fit(make(X), make(costs)).predict(make(X))
        assert (found == dense).mean() > 0.98  # solvers differ in the last digits


@each
def test_an_ad_of_one_and_rows_of_weight_zero(model, data):
    X, costs = data
    assert (sklearn.clone(model).fit(X, costs[:, :1]).predict(X) == 0).all()
    weight = np.r_[np.ones(80), np.zeros(40)]
    weighted = sklearn.clone(model).fit(X, costs, sample_weight=weight)
    fewer = sklearn.clone(model).fit(X[:80], costs[:80])
    assert (weighted.predict(X) == fewer.predict(X)).all()


@each
def test_nothing_to_learn(model):
    X = np.arange(4.0)[:, None]
    fitted = sklearn.clone(model).fit(X, np.ones((4, 3)))
    chosen = fitted.predict(X)
    assert (chosen == chosen[0]).all()
    if not hasattr(model, "random_state"):  # otherwise ties go to the first ad of a random order
        assert chosen[0] == 0
    assert fitted.predict(X[:1], available=[[False, True, False]]) == 1
    with pytest.raises(ValueError, match="Row 1 has 0 available ads"):
        fitted.predict(X[:2], available=[[True] * 3, [False] * 3])
    assert fitted.predict(X[:1], available=[[False] * 3], fill=-1) == -1


@pytest.mark.parametrize("backend", first(1, ["threading", "loky"]))
@each
def test_n_jobs_changes_nothing(model, backend, data):
    X, costs = data
    alone = sklearn.clone(model).fit(X, costs).predict(X)
    with joblib.parallel_config(backend):
        together = sklearn.clone(model).set_params(n_jobs=2).fit(X, costs).predict(X)
    assert (alone == together).all()


@each
def test_cross_validation_and_search(model, data):
    X, costs = data
    name = "alpha" if isinstance(model, RegressionCostClassifier) else "C"
    learner = Ridge() if name == "alpha" else LogisticRegression()
    chain = make_pipeline(StandardScaler(), sklearn.clone(model).set_params(estimator=learner))
    step = chain.steps[-1][0]
    search = GridSearchCV(chain, {f"{step}__estimator__{name}": [1e-9, 1e9]}, cv=3).fit(X, costs)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
    assert np.isfinite(cross_val_score(chain, X, costs, cv=3)).all()


@pytest.mark.parametrize("model", COMPARING, ids=repr)
def test_those_that_compare_predict_no_costs(model, data):
    fitted = sklearn.clone(model).fit(*data)
    assert not hasattr(fitted, "predict_costs")
    assert not hasattr(fitted, "decision_function")


@pytest.mark.parametrize("model", PREDICTING, ids=repr)
def test_those_that_predict_choose_the_lowest(model, data):
    X, costs = data
    fitted = sklearn.clone(model).fit(X, costs)
    assert (fitted.predict_costs(X).argmin(axis=1) == fitted.predict(X)).all()


def test_regression_is_the_selector_of_one(data):
    X, costs = data
    costs = np.where(np.random.default_rng(1).random(costs.shape) < 0.3, np.nan, costs)
    one, other = RegressionCostClassifier().fit(X, costs), RegressionSetSelector().fit(X, costs)
    np.testing.assert_allclose(one.predict_costs(X), other.predict_costs(X))
    assert (one.predict(X) == other.predict(X)[:, 0]).all()


@pytest.mark.parametrize("model", ALL[:3], ids=repr)
def test_regressors_are_refused(model, data):
    with pytest.raises(ValueError, match="Ridge is a regressor"):
        sklearn.clone(model).set_params(estimator=Ridge()).fit(*data)


@pytest.mark.parametrize("model", ALL[:3], ids=repr)
def test_learners_without_weights(model, data):
    X, costs = data
    model = sklearn.clone(model).set_params(estimator=KNeighborsClassifier())
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        model.fit(X, costs)
    assert model.fit(X, (costs > 0).astype(int)).predict(X).shape == (120,)


def test_a_failed_fit_leaves_the_model_as_it_was(data):
    X, costs = data
    model = FilterTreeClassifier().fit(X, costs)
    before = model.predict(X)
    with pytest.raises(ValueError, match="y contains inf in row 0"):
        model.fit(X, np.full((120, 2), np.inf))
    assert (model.predict(X) == before).all()


def test_an_ad_never_observed_is_named(data):
    X, costs = data
    costs[:, 2] = np.nan
    with pytest.raises(ValueError, match="No cost of ad 2 was observed"):
        FilterTreeClassifier().fit(X, costs)
