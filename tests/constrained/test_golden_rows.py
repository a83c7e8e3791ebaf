"""Known rows on which the final model must be right: the recipe, and the errors that name it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier, ConstrainedReduction, ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import accuracy, difference, error_rate
from tests.tiers import first

ADVICE = 'see "Examples that must be right" in the user guide. The closest'


def moderation(seed, n):
    """A deployed model, and 30 golden rows near the boundary, whose labels features do not tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = 1.5 * X[:, 0] + X[:, 1] - 0.8 * X[:, 2] + 0.5 * X[:, 3]
    y = (rng.random(n) < 1 / (1 + np.exp(-5 * score))).astype(int)
    deployed = (score + 0.3 * rng.normal(size=n) > 0.1).astype(int)
    golden = np.zeros(n, dtype=bool)
    golden[rng.choice(np.flatnonzero(np.abs(score) < 1), 30, replace=False)] = True
    y[golden] = rng.random(30) < 0.5
    return X, y, pd.DataFrame({"golden": golden, "deployed": deployed})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model",
    first(
        1,
        [
            ConstrainedThreshold(LogisticRegression()),
            ConstrainedReduction(LogisticRegression(), max_iter=2),
            ConstrainedRampClassifier(),
        ],
    ),
    ids=lambda one: type(one).__name__,
)
def test_the_error_names_the_recipe(model):
    X, y, rows = moderation(0, 300)
    y = np.where(rows["golden"], 1 - y, y)  # which no model is right on unseen
    for impossible in (accuracy("golden") >= 1, error_rate("golden") <= 0):
        both = [impossible, accuracy("not golden") >= 0.8]
        with pytest.raises(InfeasibleConstraintsError) as caught:
            model.set_params(constraints=both).fit(X, y, attributes=rows)
        said = str(caught.value)
        value = caught.value.closest_.constraint_report_["value"][0]
        assert ADVICE in said and f"on its training rows the final model has {value:.4g}" in said
    for other in (
        accuracy("golden") >= 0.9,  # for new rows, too
        accuracy() >= 1,
        difference(accuracy, by="golden") <= 0,
    ):
        with pytest.raises(InfeasibleConstraintsError) as caught:
            both = [other, accuracy("not golden") >= 0.8, accuracy() >= 0.9]
            model.set_params(constraints=both).fit(X, y, attributes=rows)
        assert "must be right" not in str(caught.value)
