"""The worst group's rate as an objective, against enumerated thresholds and the mean objective."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, RampClassifier
from skbandit.rates import each, error_rate, positive_rate, recall, worst
from tests.tiers import first

WORST_ERROR = worst(error_rate, by="region")


def sample(seed, n):
    """Three regions, in each of which another column tells the label, the last one rare."""
    rng = np.random.default_rng(seed)
    region = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    X = rng.normal(size=(n, 4))
    score = X[np.arange(n), region] * np.array([1.5, 1.5, 1.2])[region] + 0.3 * X[:, :3].sum(axis=1)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * score))).astype(int)
    return X, y, pd.DataFrame({"region": np.array(["north", "south", "east"])[region]})


X, Y, REGION = sample(0, 2000)
X_NEW, Y_NEW, REGION_NEW = sample(1, 20_000)


def worst_error(model):
    return WORST_ERROR.value(Y_NEW, model.predict(X_NEW), REGION_NEW)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("objective", "constraints"),
    first(1, [(WORST_ERROR, []), (worst(recall, by="region"), [positive_rate() <= 0.4])]),
    ids=["least error", "most recall"],
)
@pytest.mark.filterwarnings("ignore:Fewer than 20 rows:UserWarning")
def test_the_threshold_is_the_best_of_all(objective, constraints):
    X, y, region = sample(2, 200)
    plain = LogisticRegression().fit(X, y)
    model = ConstrainedThreshold(plain, objective, constraints, cv="prefit", confidence_level=0.5)
    model.fit(X, y, attributes=region)
    scores = plain.decision_function(X)
    values = {}
    for threshold in (*np.unique(scores), np.inf):
        positive = (scores >= threshold).astype(int)
        if not constraints or positive.mean() <= 0.4:
            values[threshold] = objective.value(y, positive, region)
    best = max(values.values()) if objective.greater_is_better else min(values.values())
    assert objective.value(y, model.predict(X), region) == pytest.approx(best, abs=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model",
    first(
        2,
        [
            ConstrainedRampClassifier(WORST_ERROR, recall() >= 0.7),
            ConstrainedReduction(LogisticRegression(), WORST_ERROR),
            ConstrainedRampClassifier(WORST_ERROR),
        ],
    ),
    ids=["ramp with a constraint", "reduction", "ramp"],
)
def test_the_worst_group_gains_on_new_rows(model):
    # .37 against .28 to .31 over ten seeds, each with a standard error of about .012
    mean = ConstrainedRampClassifier(error_rate()).fit(X, Y)
    assert worst_error(model.fit(X, Y, attributes=REGION)) < worst_error(mean) - 0.03


def test_a_group_that_some_fold_lacks_is_no_obstacle():
    few = REGION.copy()
    few.loc[:1, "region"] = "west"
    with pytest.warns(UserWarning, match=r"Fewer than 20 rows.*\[west\] \(2\)"):
        model = ConstrainedRampClassifier(WORST_ERROR).fit(X, Y, attributes=few)
    assert np.isfinite(model.coef_).all()


def test_a_group_without_positives_has_no_recall_to_optimize():
    y = np.where(REGION["region"] == "east", 0, Y)
    model = ConstrainedThreshold(
        LogisticRegression(), worst(recall, by="region"), positive_rate() <= 0.3
    )
    with pytest.warns(UserWarning, match="not measured"):
        model.fit(X, y, attributes=REGION)
    positive = model.predict(X_NEW).mean()
    assert 0.15 < positive < 0.35


def test_in_a_constraint_it_is_each():
    model = ConstrainedThreshold(LogisticRegression(), None, worst(recall, by="region") >= 0.6)
    model.fit(X, Y, attributes=REGION)
    other = ConstrainedThreshold(LogisticRegression(), None, each(recall, by="region") >= 0.6)
    other.fit(X, Y, attributes=REGION)
    assert model.threshold_ == other.threshold_
    assert eval(repr(WORST_ERROR), {"worst": worst, "error_rate": error_rate}).text == repr(
        WORST_ERROR
    )


def test_what_it_is_not_for_is_refused():
    with pytest.raises(ValueError, match="RampClassifier optimizes one rate"):
        RampClassifier(WORST_ERROR).fit(X, Y, attributes=REGION)
    with pytest.raises(ValueError, match="pass by=None"):
        ConstrainedThreshold(LogisticRegression(), WORST_ERROR, by="region").fit(
            X, Y, attributes=REGION
        )
