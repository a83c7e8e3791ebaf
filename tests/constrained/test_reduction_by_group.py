"""ConstrainedReduction(by=...): trained by costs, one threshold per group."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.constrained._goals import Declared
from skbandit.constrained.rounds._rounds import Criterion
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.prices._levels import LEVELS, VIOLATION_COST, quantile_of
from skbandit.rates import (
    difference,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.constrained.rules.test_choose import made
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.tiers import first
from tests.worlds import refuses

RATE = LogisticRegression()
PARITY = difference(positive_rate, by="sex") <= 0.1


def fit(constraints=PARITY, by="sex", attributes=ATTRIBUTES, estimator=RATE, **parameters):
    metadata = parameters.pop("metadata", {})
    objective = parameters.pop("objective", None)
    clf = ConstrainedReduction(estimator, objective, constraints, by=by, cv=3, **parameters)
    return clf.fit(X, Y, attributes=attributes, **metadata)


# --- the best thresholds on the best scores --------------------------------------------------


def test_one_round_is_a_threshold_per_group():
    found = fit(max_iter=1, confidence_level=0.5)
    moved = ConstrainedThreshold(RATE, None, PARITY, by="sex", cv=3, confidence_level=0.5)
    moved.fit(X, Y, attributes=ATTRIBUTES)
    assert found.best_rounds_ == (0,) and not hasattr(found, "threshold_")
    pd.testing.assert_series_equal(found.thresholds_, moved.thresholds_)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(8)))
@pytest.mark.parametrize("by", [True, False])
def test_no_other_level_of_one_score_is_better_than_the_chosen_one(by, seed):
    score, _, data = made(120, seed)
    parity = difference(positive_rate, by="sex") <= 0.15
    goals = Declared.read(error_rate(), [parity, positive_rate() <= 0.3, recall() >= 0.3])
    goals = goals.bind(data)
    _, group = np.unique(data.train.columns.several(("sex",), "")["sex"], return_inverse=True)
    criterion = Criterion.of(goals, None, 0.0, group if by else None, 2 if by else 1)
    found = criterion.best_rule(score[goals.measured.rows])
    rules = [
        criterion.rule(criterion.search(score[goals.measured.rows]), quantile_of(one))
        for one in LEVELS
    ]
    costs = [
        one.objective + VIOLATION_COST * (1 - level) if one.feasible else np.inf
        for one, level in zip(rules, LEVELS, strict=True)
    ]
    assert found.level == LEVELS[np.argmin(costs)]
    assert found.rule.objective == rules[np.argmin(costs)].objective


@pytest.mark.thorough
def test_training_still_pays_where_thresholds_cannot_attain_a_goal():
    """Costs of precision change the order of scores, which thresholds per group do not."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1500, 3))
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 1500)})
    y = (rows[:, 0] + 2 * (rows[:, 1] > 1) - (rows[:, 2] > 1) > 1).astype(int)
    goals = [precision() >= 0.9, difference(recall, by="sex") <= 0.1]
    options = {"objective": recall(), "constraints": goals, "by": "sex"}
    options |= {"confidence_level": 0.8}
    clf = ConstrainedReduction(RATE, max_iter=3, **options).fit(rows, y, attributes=people)
    moved = ConstrainedThreshold(RATE, **options)
    moved.fit(rows, y, attributes=people)
    found = [recall().value(y, one.predict(rows, attributes=people)) for one in (clf, moved)]
    assert max(clf.best_rounds_) > 0
    assert found[0] > found[1]


# --- prediction ------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("pos_label", [0, 1])
def test_each_row_is_judged_by_the_threshold_of_its_group(pos_label):
    clf = fit(pos_label=pos_label, metadata=EXTRA, max_iter=3)
    thresholds = clf.thresholds_[ATTRIBUTES_EXTRA["sex"]].to_numpy()
    scores = np.mean([one.predict_proba(X_EXTRA)[:, pos_label] for one in clf.estimators_], axis=0)
    answers = clf.predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA)
    np.testing.assert_array_equal(answers == pos_label, scores > thresholds)
    decided = clf.decision_function(X_EXTRA, attributes=ATTRIBUTES_EXTRA)
    np.testing.assert_array_equal(decided > 0, answers == 1)
    right = np.mean(answers == Y_EXTRA)
    assert clf.score(X_EXTRA, Y_EXTRA, attributes=ATTRIBUTES_EXTRA) == pytest.approx(right)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA), answers)
    assert not hasattr(clone(clf), "thresholds_")
    own = clf.constraint_report(X, Y, attributes=ATTRIBUTES, **EXTRA)["value"]
    np.testing.assert_allclose(clf.constraint_report_["value"], own)


def test_rows_need_a_group_that_fit_has_seen():
    clf = fit(max_iter=1)
    with pytest.raises(
        ValueError, match="by='sex': row 1 is of group sex='X', which has no thresh"
    ):
        clf.predict(X[:2], attributes={"sex": ["F", "X"]})
    refuses("sex", clf.predict, X[:2])
    missing = ATTRIBUTES.assign(sex=ATTRIBUTES["sex"].where(np.arange(len(Y)) > 0))
    refuses("column 'sex' is missing in 1 rows", clf.predict, X, attributes=missing)


# --- levels and errors -----------------------------------------------------------------------


@pytest.mark.thorough
def test_goals_that_no_thresholds_meet_are_named():
    goals = [recall() >= 0.99, false_positive_rate() <= 0.01]
    with pytest.raises(
        InfeasibleConstraintsError, match=r"Found no thresholds by 'sex'.*missed by"
    ):
        fit(goals, max_iter=2)
    goals = [recall() >= 0.9, false_positive_rate() <= 0.22]
    message = r"These rows support a level of .*, not confidence_level=0.999"
    with pytest.raises(InfeasibleConstraintsError, match=message) as caught:
        fit(goals, max_iter=2, confidence_level=0.999)
    closest = caught.value.closest_
    assert closest.predict(X, attributes=ATTRIBUTES).shape == Y.shape
