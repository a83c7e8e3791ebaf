"""Costs as labels and weights; which rows are fitted and scored; how weights reach `fit`."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.constrained.fits._fit_rows import Classes
from skbandit.constrained.fits._weighted_fits import Learner, Task, folds_of_all, stacked
from skbandit.measure import Columns, Rows
from skbandit.utils._sklearn_compat import weight_parameter

RNG = np.random.default_rng(0)


def test_the_weighted_error_is_the_cost_but_for_a_constant():
    costs, answers = RNG.normal(size=50), RNG.integers(0, 2, (50, 20))
    task = Task.of_costs(costs, np.ones(50))
    error = task.gain.sum(axis=1) @ (answers != task.gain.argmax(axis=1)[:, None])
    cost = costs @ answers
    factor = np.ptp(error) / np.ptp(cost)
    np.testing.assert_allclose(error - error[0], factor * (cost - cost[0]), atol=1e-9)


def test_the_total_weight_of_the_rows_that_cost_anything_is_kept():
    costs = np.array([0.3, -0.1, 0.0, 1e-17, -0.6])
    task = Task.of_costs(costs, np.array([1.0, 2.0, 50.0, 70.0, 3.0]))
    expected = [[1.8, 0.0], [0.0, 0.6], [0.0, 0.0], [0.0, 0.0], [0.0, 3.6]]
    np.testing.assert_allclose(task.gain, expected)
    assert not Task.of_costs(np.zeros(3), np.ones(3)).gain.any()


def test_near_tasks_would_repeat_a_fit():
    costs = RNG.normal(size=30)
    task = Task.of_costs(costs, np.ones(30))
    assert task.is_near(Task.of_costs(3.0 * costs, np.ones(30)))
    moved = costs.copy()
    moved[0] += 0.1
    assert not task.is_near(Task.of_costs(moved, np.ones(30)))
    assert not task.is_near(Task(task.gain[:, ::-1]))


def test_extra_rows_are_assigned_to_the_folds():
    """Evenly within each label, and copies of rows of X with the original."""
    splits = [(np.array([1, 2]), np.array([0])), (np.array([0]), np.array([1, 2]))]
    extra = Rows(Columns.read(None, None, 5), np.array([1, 1, -1, -1, 0]), np.ones(5))
    folds = folds_of_all(splits, np.array([0, 1, 2, 3, 4, 5, 6, 0]), extra)
    (train, test), (other_train, other_test) = (map(sorted, split) for split in folds)
    assert (train, test) == (other_test, other_train)
    assert {0, 7} <= set(test) and {1, 2} <= set(train)
    assert sum(row in test for row in (3, 4)) == sum(row in test for row in (5, 6)) == 1


def test_a_task_has_both_labels_where_rows_of_both_weigh():
    rows, label = np.array([1, 2]), np.array([1, 0, 1])
    assert Task.of_labels(label, 2, np.ones(3)).has_both_labels(rows)
    assert not Task.of_labels(label, 2, np.array([1.0, 1, 0])).has_both_labels(rows)


class Spy(LogisticRegression):
    """Keeps what it was fitted to."""

    def fit(self, X, y, sample_weight=None, amounts=None, X_extra=None):
        self.seen_ = len(y), sample_weight, amounts, X_extra
        return super().fit(X, y, sample_weight)


def test_a_learner_slices_what_belongs_to_rows_and_replaces_their_weights():
    X, y = RNG.normal(size=(6, 2)), np.array(["n", "y"] * 3)
    classes = Classes(np.array(["n", "y"]), "n")
    params = {"sample_weight": np.arange(1.0, 7), "amounts": np.arange(6), "X_extra": "whole"}
    learner = Learner(Spy(), classes, params, "sample_weight")
    rows = np.array([0, 1, 3, 5])
    fitted = learner.fitted(X, y, rows, None)
    n, weight, amounts, whole = fitted.seen_
    assert (n, whole, amounts.tolist()) == (4, "whole", [0, 1, 3, 5])
    assert weight.tolist() == [1, 2, 4, 6]
    task = Task.of_labels(np.array([1, 0, 1, 1, 1, 1]), 2, np.array([3.0, 2, 1, 0, 1, 5]))
    fitted = learner.fitted(X, y, rows, task)
    n, weight, amounts, _ = fitted.seen_
    assert (n, amounts.tolist(), weight.tolist()) == (3, [0, 1, 5], [3, 2, 5])
    assert fitted.predict_proba(X).shape == (6, 2)


def test_parameters_for_the_rows_of_X_do_not_reach_extra_rows_in_silence():
    X, y = RNG.normal(size=(6, 2)), np.array([0, 1, 0, 1])
    learner = Learner(
        Spy(), Classes(np.array([0, 1]), 1), {"amounts": np.arange(4)}, "sample_weight"
    )
    task = Task.of_labels(np.arange(6) % 2, 2, np.ones(6))
    with pytest.raises(ValueError, match="amounts has an entry for each of the 4 rows of X"):
        learner.fitted(X, y, np.arange(6), task)


def test_weights_reach_the_last_step():
    tree = HistGradientBoostingClassifier()
    assert weight_parameter(tree) == "sample_weight"
    assert weight_parameter(GridSearchCV(tree, {})) == "sample_weight"
    pipeline = make_pipeline(
        StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())
    )
    assert weight_parameter(pipeline) == "pipeline__logisticregression__sample_weight"
    with sklearn.config_context(enable_metadata_routing=True):
        assert weight_parameter(pipeline) == "pipeline__logisticregression__sample_weight"
        last = LogisticRegression().set_fit_request(sample_weight=True)
        assert weight_parameter(make_pipeline(StandardScaler(), last)) == "sample_weight"


def test_a_resampler_before_a_learner_that_takes_weights_is_refused():
    class Oversampler(BaseEstimator):
        def fit_resample(self, X, y):
            return X, y

    with pytest.raises(ValueError, match="step 'oversampler' of the Pipeline changes the rows"):
        weight_parameter(make_pipeline(Oversampler(), LogisticRegression()))


def test_a_learner_that_takes_no_weights_is_refused():
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit accepts no sample_weight"):
        weight_parameter(KNeighborsClassifier())


def test_rows_of_all_formats_are_stacked():
    X, more = np.arange(6.0).reshape(3, 2), np.array([[7.0, 8.0]])
    expected = np.vstack([X, more])
    assert stacked(X, None) is X
    np.testing.assert_array_equal(stacked(X, more), expected)
    np.testing.assert_array_equal(stacked(X.tolist(), more.tolist()), expected)
    np.testing.assert_array_equal(stacked(sparse.csr_array(X), more).toarray(), expected)
    frame = pd.DataFrame(X, columns=["a", "b"], index=[5, 6, 7])
    found = stacked(frame, pd.DataFrame(more, columns=["a", "b"])[["b", "a"]])
    np.testing.assert_array_equal(found, expected)
    assert found.columns.tolist() == ["a", "b"]
