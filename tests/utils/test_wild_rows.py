"""A row in another unit is named by what is scaled by it; long tails are left in peace."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    OffPolicyClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
    SharedGLMPolicy,
)
from skbandit.utils._validation import warn_of_wild_row


def wild(n=400):
    """Contexts of which row 7 is in another unit, what two arms earn there, and a log of these."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    gain = np.column_stack([X[:, 0], X[:, 1]])
    action = rng.integers(2, size=n)
    won = (rng.random(n) < 1 / (1 + np.exp(-gain[np.arange(n), action]))) * 1.0
    X[7] *= 1e6
    return X, gain, pd.DataFrame({"action": action, "reward": won, "propensity": 0.5})


@pytest.mark.parametrize(
    "model",
    [
        GLMUCBPolicy("linear"),
        GLMUCBPolicy("logistic"),
        SharedGLMPolicy(),
        OffPolicyClassifier(),
        OffPolicyClassifier(method="ips"),
        OffPolicyClassifier(DecisionTreeClassifier(max_depth=2), reward_model=Ridge()),
        RegressionSetSelector(),
        SetSelectClassifier(),
        ConstrainedRampClassifier(),
    ],
    ids=lambda model: repr(model)[:60],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_wild_row_of_the_fit_is_named(model, named):
    """It makes the others look equal: the default policies then earned a quarter of the best."""
    X, gain, log = wild()
    y = log
    if isinstance(model, RegressionSetSelector | SetSelectClassifier):
        y = -gain
    elif isinstance(model, ConstrainedRampClassifier):
        y = (gain[:, 0] > gain[:, 1]).astype(int)
    X = pd.DataFrame(X, columns=["age", "income", "visits"]) if named else X
    named_so = f"column {'age' if named else 0!r} holds .*e\\+0., .* as far from the median"
    with pytest.warns(UserWarning, match=f"row 7: (a model predicts|{named_so})"):
        clone(model).fit(X, y)


@pytest.mark.parametrize("kind", ["lognormal", "pareto", "rare", "counts", "dates", "constant"])
def test_long_tails_are_no_wild_rows(kind):
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = {
            "lognormal": rng.lognormal(0, 3, (1000, 10)),
            "pareto": rng.pareto(1, (1000, 10)),
            "rare": (rng.random((1000, 10)) < 0.001) * 1.0,
            "counts": rng.poisson(0.01, (1000, 10)) * 1.0,
            "dates": 1.7e9 + rng.random((1000, 10)),
            "constant": np.full((1000, 10), 0.1) + np.eye(1000, 10) * 1e-17,
        }[kind]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_wild_row(X)
