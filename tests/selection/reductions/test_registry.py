"""Registered reductions: requirements on learners."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from skbandit.selection.reductions._registry import (
    REDUCTIONS,
    WITH_COSTS,
    bind_learner,
    default_learner,
)
from skbandit.selection.reductions._rule import Examples


def test_default_learners():
    for name in REDUCTIONS:
        expected = Ridge if name == "regression" else LogisticRegression
        assert type(default_learner(name)) is expected
        assert default_learner(name) is not default_learner(name)
    assert type(default_learner("no reduction")) is LogisticRegression


def test_reductions_that_predict_costs():
    assert set(WITH_COSTS) == {"regression", "one_vs_rest"}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_learners_of_the_wrong_kind_are_refused(name):
    examples = Examples(np.eye(2), np.eye(2), np.ones((2, 2), bool), np.ones(2))

    def bind(learner):
        return bind_learner(name, learner, examples, np.random.RandomState(0))

    if name == "regression":
        bind(Ridge())
        bind(LogisticRegression())
        return
    with pytest.raises(ValueError, match=f'Ridge is a regressor, but the reduction "{name}" needs'):
        bind(Ridge())
    if name == "one_vs_rest":
        with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
            bind(LinearSVC())
    else:
        bind(LinearSVC())
