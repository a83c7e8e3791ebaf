"""ConstrainedRampClassifier: what a user sees of it, one dataset at a time."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.utils import check_random_state

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    accuracy,
    churn,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    negative_rate,
    positive_rate,
    precision,
    recall,
)
from tests.tiers import first

X, Y = make_classification(
    120, 4, n_informative=3, n_redundant=1, weights=[0.6], flip_y=0.15, random_state=0
)
RNG = np.random.default_rng(0)
DEPLOYED = (X @ [1, 0.5, -0.5, -1] + RNG.normal(size=120) > 0.5).astype(int)
ATTRIBUTES = pd.DataFrame({"deployed": DEPLOYED, "group": np.arange(120) % 3})

LABELS = {
    "ints": np.array([0, 1]),
    "signs": np.array([-1, 1]),
    "strings": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "bools": np.array([False, True]),
}


def missed_by(constraint, y, answers, attributes):
    """By how much answers miss a one-sided constraint; a group form counts by its worst group."""
    value = constraint.rate.value(y, answers, attributes)
    return (value - constraint.bound) * (1 if constraint.sense == "<=" else -1)


# --- the deterministic rule ----------------------------------------------------------------


@pytest.mark.parametrize("first_is_positive", first(1, [True, False]))
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_predict_decision_function_and_predict_proba_agree(labels, first_is_positive):
    pos_label = labels.tolist()[0 if first_is_positive else 1]
    clf = RampClassifier(constraints=recall() >= 0.8, pos_label=pos_label, solver="newton")
    clf.fit(X, labels[Y])
    scores, proba, answers = clf.decision_function(X), clf.predict_proba(X), clf.predict(X)
    np.testing.assert_array_equal(clf.classes_, labels)
    assert answers.dtype == labels.dtype and scores.shape == (120,) and proba.shape == (120, 2)
    np.testing.assert_allclose(scores, X @ clf.coef_[0] + clf.intercept_[0], rtol=1e-12)
    np.testing.assert_array_equal(answers, labels[(scores > 0).astype(int)])
    np.testing.assert_array_equal(answers, labels[(proba[:, 1] > 0.5).astype(int)])
    np.testing.assert_allclose(proba[:, 1], np.clip(0.5 + scores, 0, 1))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(answers, clf.predict(X))
    assert clf.score(X, labels[Y]) == np.mean(answers == labels[Y])
    positive = labels[0 if first_is_positive else 1]
    assert np.mean(answers[labels[Y] == positive] == positive) >= 0.8


@pytest.mark.thorough
def test_positive_class_first_is_the_relabeled_problem():
    goals = [recall() >= 0.8, positive_rate() <= 0.8]
    turned = ConstrainedRampClassifier(precision(), goals, pos_label=0, solver="newton").fit(X, Y)
    plain = ConstrainedRampClassifier(precision(), goals, solver="newton").fit(X, 1 - Y)
    np.testing.assert_array_equal(turned.predict(X), 1 - plain.predict(X))
    np.testing.assert_allclose(turned.coef_, -plain.coef_)
    np.testing.assert_allclose(turned.intercept_, -plain.intercept_)
    np.testing.assert_allclose(turned.multipliers_, plain.multipliers_)
    pd.testing.assert_frame_equal(turned.constraint_report_, plain.constraint_report_)


@pytest.mark.thorough
def test_stored_predictions_may_be_the_labels_or_zeros_and_ones():
    stored = pd.DataFrame({"deployed": LABELS["strings"][DEPLOYED]})
    text = RampClassifier(constraints=churn("deployed") <= 0.2, solver="newton")
    text.fit(X, LABELS["strings"][Y], attributes=stored)
    number = clone(text)
    with pytest.raises(ValueError, match=r"'deployed'.* 'no' and 'yes': .* pos_label"):
        number.fit(X, LABELS["strings"][Y], attributes=ATTRIBUTES)  # is 1 yes or no?
    number.set_params(pos_label="yes").fit(X, LABELS["strings"][Y], attributes=ATTRIBUTES)
    np.testing.assert_allclose(text.coef_, number.coef_)
    changed = np.mean(text.predict(X) != stored["deployed"])
    assert text.constraint_report_["value"].iloc[0] == pytest.approx(changed)


# --- the randomized rule -------------------------------------------------------------------


@pytest.mark.parametrize("pos_label", [0, 1])
def test_drawn_rates_are_the_expected_ones(pos_label):
    """Each of 6 comparisons (3 rates, 2 labels) is at 5 standard errors: 6e-7 false alarms."""
    goals = [recall() >= 0.7, positive_rate() <= 0.6, error_rate() <= 0.45]
    clf = RampClassifier(constraints=goals, alpha=0.3, pos_label=pos_label, solver="newton")
    clf.fit(X, Y)
    draws, rng = 500, np.random.default_rng(0)
    sampled = np.array([clf.sample_predict(X, rng.integers(2**31)) for _ in range(draws)])
    share = np.clip(0.5 + X @ clf.coef_[0] + clf.ramp_intercept_[0], 0, 1)
    assert np.mean((share > 0) & (share < 1)) > 0.3, "the rule must be random to be tested"
    rows = [Y == pos_label, np.full(120, True), np.full(120, True)]
    hits = [sampled == pos_label, sampled == pos_label, sampled != Y]
    for k, (chosen, hit) in enumerate(zip(rows, hits, strict=True)):
        error = np.sqrt((share * (1 - share))[chosen].sum() / draws) / chosen.sum()
        expected = clf.constraint_report_["expected"].iloc[k]
        assert abs(hit[:, chosen].mean() - expected) < 5 * error


def test_random_state_of_sample_predict():
    clf = RampClassifier(alpha=0.3, random_state=3).fit(X, Y)
    drawn = clf.sample_predict(X)
    np.testing.assert_array_equal(drawn, clf.sample_predict(X))
    np.testing.assert_array_equal(drawn, clf.sample_predict(X, random_state=3))
    assert (drawn != clf.sample_predict(X, random_state=4)).any()
    shared = np.random.RandomState(3)
    np.testing.assert_array_equal(drawn, clf.sample_predict(X, shared))
    assert (drawn != clf.sample_predict(X, shared)).any(), "an instance goes on drawing"
    np.testing.assert_array_equal(clf.predict(X), clf.predict(X))


# --- threshold, intercept, regularization --------------------------------------------------

DEMANDS = {
    "recall": [recall() >= 0.85],
    "false positives": [false_positive_rate() <= 0.05],
    "band": [positive_rate() >= 0.3, positive_rate() <= 0.45],
    "abs": [abs(positive_rate() - 0.4) <= 0.02],
    "precision": [precision() >= 0.75],
    "groups": [each(recall, by="group") >= 0.7],
    "churn": [churn("deployed") <= 0.45, recall() >= 0.5],
}


@pytest.mark.parametrize("seed", first(1, range(3)))
@pytest.mark.parametrize("demand", DEMANDS)
def test_shifted_threshold_meets_hard_training_constraints(demand, seed):
    data, y = make_classification(90, 5, n_informative=2, flip_y=0.2, random_state=seed)
    rng = np.random.default_rng(seed)
    wrong = rng.uniform(size=90) < 0.2
    stored = {"deployed": np.where(wrong, 1 - y, y), "group": rng.integers(0, 3, 90)}
    clf = RampClassifier(constraints=DEMANDS[demand], solver="newton")
    report = clf.fit(data, y, attributes=stored).constraint_report_
    assert clf.feasible_ and report["satisfied"].all()
    answers = clf.predict(data)
    for side in (side for goal in DEMANDS[demand] for side in goal.one_sided()):
        assert missed_by(side, y, answers, stored) <= 1e-9, side


@pytest.mark.thorough
def test_threshold_none_leaves_the_intercept_of_the_ramp():
    goal = recall() >= 0.9
    left = RampClassifier(constraints=goal, threshold=False).fit(X, Y)
    assert left.intercept_ == left.ramp_intercept_
    assert left.constraint_report_["expected"].iloc[0] >= 0.9 - 1e-6
    shifted = RampClassifier(constraints=goal).fit(X, Y)
    assert shifted.intercept_ != shifted.ramp_intercept_
    assert shifted.ramp_intercept_ == left.ramp_intercept_


def test_no_intercept():
    for estimator in (ConstrainedRampClassifier, RampClassifier):
        clf = estimator(constraints=recall() >= 0.3, fit_intercept=False).fit(X, Y)
        np.testing.assert_allclose(clf.intercept_, 0, atol=1e-12)
        np.testing.assert_allclose(clf.decision_function(np.zeros((2, 4))), 0, atol=1e-12)
    assert clf.ramp_intercept_ == 0
    assert clf.constraint_report_["expected"].iloc[0] >= 0.3 - 1e-6


def test_larger_alpha_means_smaller_weights():
    """Without a search: the scale of another direction is that of its randomized rule."""
    clf = RampClassifier(solver="newton", init="zeros")
    norms = [
        np.linalg.norm(clf.set_params(alpha=alpha).fit(X, Y).coef_)
        for alpha in (1e-3, 1e-2, 0.1, 1.0, 10.0)
    ]
    assert all(np.diff(norms) < 0), norms


# --- objectives ----------------------------------------------------------------------------

ONE, ONE_Y = make_classification(
    80, 1, n_informative=1, n_redundant=0, n_clusters_per_class=1, flip_y=0.3, random_state=5
)
ONE_DEPLOYED = {"deployed": np.where(RNG.uniform(size=80) < 0.25, 1 - ONE_Y, ONE_Y)}


@pytest.mark.parametrize("pos_label", [0, 1])
def test_a_score_of_exactly_zero_is_the_first_class(pos_label):
    """Where the paper's indicators count neither answer (Goh et al. 2016, eq. 1)."""
    clf = RampClassifier(fit_intercept=False, threshold=False, pos_label=pos_label)
    clf.fit(X, Y)
    nothing = np.zeros((3, 4))
    np.testing.assert_array_equal(clf.decision_function(nothing), 0.0)
    np.testing.assert_array_equal(clf.predict(nothing), clf.classes_[0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("objective", "constraints"),
    first(
        3,
        [
            (None, []),
            (accuracy(), recall() >= 0.8),
            (recall(), false_positive_rate() <= 0.1),  # Neyman and Pearson
            (false_negative_rate(), false_positive_rate() <= 0.1),
            (f1(), []),
            (precision(), recall() >= 0.6),
            (false_positive_rate(), recall() >= 0.9),
            (churn("deployed"), recall() >= 0.85),
            (positive_rate(), recall() >= 0.7),
            (recall() - 2 * false_positive_rate(), positive_rate() <= 0.5),
        ],
    ),
    ids=repr,
)
def test_one_feature_reaches_the_best_of_all_rules(objective, constraints):
    """With one feature every rule is a threshold and a side: all of them can be tried."""
    goal = error_rate() if objective is None else objective
    constraints = constraints if isinstance(constraints, list) else [constraints]
    scores = np.sort(ONE[:, 0])
    thresholds = np.concatenate([[-np.inf], (scores[1:] + scores[:-1]) / 2, [np.inf]])
    rules = [side * (ONE[:, 0] - threshold) > 0 for threshold in thresholds for side in (-1, 1)]
    allowed = [
        rule
        for rule in rules
        if all(missed_by(c, ONE_Y, rule, ONE_DEPLOYED) <= 1e-9 for c in constraints)
    ]
    sign = 1 if goal.greater_is_better else -1
    best = max(sign * goal.value(ONE_Y, rule, ONE_DEPLOYED) for rule in allowed)
    clf = RampClassifier(objective, constraints, solver="newton")
    clf.fit(ONE, ONE_Y, attributes=ONE_DEPLOYED)
    assert sign * goal.value(ONE_Y, clf.predict(ONE), ONE_DEPLOYED) == pytest.approx(best)


@pytest.mark.thorough
def test_what_is_maximized_is_its_opposite_minimized():
    bound = false_positive_rate() <= 0.1
    for estimator in (ConstrainedRampClassifier, RampClassifier):
        up = estimator(recall(), bound).fit(X, Y)
        down = estimator(false_negative_rate(), bound).fit(X, Y)
        # rounding of the constant 1 may end a subproblem a step sooner, within its tolerance
        np.testing.assert_allclose(up.coef_, down.coef_, rtol=1e-2)
        np.testing.assert_array_equal(up.predict(X), down.predict(X))
    np.testing.assert_allclose(up.objective_path_ + 1, down.objective_path_, atol=1e-8)


def test_class_weight_is_a_row_weight_of_the_objective():
    by_class = ConstrainedRampClassifier(class_weight={0: 1.0, 1: 4.0}).fit(X, Y)
    by_row = ConstrainedRampClassifier().fit(X, Y, sample_weight=np.where(Y, 4.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_)
    np.testing.assert_allclose(by_class.intercept_, by_row.intercept_)


@pytest.mark.thorough
def test_class_weight_does_not_touch_constraints():
    goals = [error_rate() <= 0.4, positive_rate() <= 0.7]
    clf = ConstrainedRampClassifier(constraints=goals, class_weight={0: 0.1, 1: 9.0}).fit(X, Y)
    answers, report = clf.predict(X), clf.constraint_report_
    assert report["value"].tolist() == pytest.approx([np.mean(answers != Y), np.mean(answers)])
    assert report["satisfied"].all()
    plain = ConstrainedRampClassifier(constraints=goals).fit(X, Y)
    assert recall().value(Y, answers) > recall().value(Y, plain.predict(X))


def test_balanced_means_equal_total_weight():
    weight = RNG.exponential(size=120)
    totals = np.bincount(Y, weight)
    factors = dict(enumerate(weight.sum() / (2 * totals)))
    balanced = ConstrainedRampClassifier(constraints=recall() >= 0.7, class_weight="balanced")
    explicit = ConstrainedRampClassifier(constraints=recall() >= 0.7, class_weight=factors)
    balanced.fit(X, Y, sample_weight=weight)
    explicit.fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(balanced.coef_, explicit.coef_)


# --- the course of training ----------------------------------------------------------------


def test_path_does_not_rise_and_its_length_is_n_iter():
    goals = [recall() >= 0.8, precision() >= 0.6]
    clf = RampClassifier(constraints=goals).fit(X, Y)
    assert clf.objective_path_.shape == (clf.n_iter_,) and clf.n_iter_ <= clf.max_iter
    assert (np.diff(clf.objective_path_) <= 1e-9).all()


@pytest.mark.thorough
def test_verbose_prints_a_line_a_step(capsys):
    clf = RampClassifier(constraints=recall() >= 0.9, threshold=False).fit(X, Y)
    assert capsys.readouterr().out == ""
    clf.set_params(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == clf.n_iter_
    for number, (line, value) in enumerate(zip(lines, clf.objective_path_, strict=True), 1):
        assert line.startswith(f"[RampClassifier] step {number:2d}")
        assert f"objective {value:.6f}" in line


def test_verbose_prints_rounds_and_steps_of_the_cross_fitted_ramp(capsys):
    ConstrainedRampClassifier(constraints=recall() >= 0.9, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[ConstrainedRampClassifier] round 0: multipliers [0], best")
    assert lines[-1].startswith("[ConstrainedRampClassifier] step ")


def test_too_few_steps_warn_where_the_user_called():
    clf = RampClassifier(constraints=recall() >= 0.9, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1") as caught:
        clf.fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    assert clf.n_iter_ == 1 and clf.feasible_


# --- multipliers ---------------------------------------------------------------------------


def test_multipliers_are_nonnegative_and_those_of_the_report():
    goals = [recall() >= 0.95, positive_rate() <= 0.99, negative_rate() >= 0.01]
    clf = RampClassifier(constraints=goals, alpha=0.01).fit(X, Y)
    assert clf.multipliers_.shape == (3,) and (clf.multipliers_ >= 0).all()
    np.testing.assert_array_equal(clf.multipliers_, clf.constraint_report_["multiplier"])
    assert clf.multipliers_[0] > 1e-3, "recall is binding"
    np.testing.assert_allclose(clf.multipliers_[1:], 0, atol=1e-6)


def test_multipliers_skip_with_their_groups():
    """Group 1 has no positives, so its recall is skipped in the middle of the report."""
    group = np.where(Y == 1, np.arange(120) % 2 * 2, np.arange(120) % 3)
    clf = ConstrainedRampClassifier(
        constraints=[each(recall, by="group") >= 0.95, positive_rate() <= 0.9], alpha=0.01
    )
    with pytest.warns(UndefinedMetricWarning, match=r"\[1\] is not measured: .* no positives"):
        clf.fit(X, Y, attributes={"group": group})
    report = clf.constraint_report_
    np.testing.assert_array_equal(np.isnan(clf.multipliers_), [False, True, False, False])
    np.testing.assert_array_equal(report["multiplier"], clf.multipliers_)
    assert report["n_rows"].tolist() == [
        np.sum((group == 0) & (Y == 1)), 0, np.sum((group == 2) & (Y == 1)), 120,
    ]  # fmt: skip
    assert report["satisfied"].isna().tolist() == [False, True, False, False]
    assert np.isnan(report.loc[1, ["value", "slack"]].astype(float)).all()
    assert clf.feasible_, "a skipped group does not count as missed"


# --- solvers -------------------------------------------------------------------------------

GOALS = [recall() >= 0.9, false_positive_rate() <= 0.7]


@pytest.mark.parametrize(
    ("ramp", "solver", "used"),
    [
        (RampClassifier, "auto", "cvxpy"),
        pytest.param(RampClassifier, "cvxpy", "cvxpy", marks=pytest.mark.thorough),
        pytest.param(ConstrainedRampClassifier, "cvxpy", "cvxpy", marks=pytest.mark.thorough),
        (ConstrainedRampClassifier, "auto", "augmented_lagrangian"),
    ],
)
def test_solver_names(ramp, solver, used):
    clf = ramp(constraints=GOALS, solver=solver)
    assert clf.fit(X, Y).solver_ == used


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    first(
        1,
        [
            {"solver": "clarabel", "max_iter": 100},
            {"verbose": False},
            {"solver": "CLARABEL"},
            {"solver": "OSQP"},
            {"solver": "SCS", "eps": 1e-7},
        ],
    ),
    ids=str,
)
def test_solver_options_go_through(options):
    before = dict(options)
    clf = RampClassifier(constraints=GOALS, solver_options=options, threshold=False)
    clf.fit(X, Y)
    reference = RampClassifier(constraints=GOALS, threshold=False).fit(X, Y)
    assert options == before and clf.solver_options is options
    assert clf.objective_path_[-1] == pytest.approx(reference.objective_path_[-1], abs=2e-3)
    assert (clf.constraint_report_["expected"] >= [0.9 - 1e-5, 0]).all()


def test_verbose_solver_talks(capfd):
    options = {"solver": "CLARABEL", "verbose": True}
    RampClassifier(solver_options=options, max_iter=50).fit(X, Y)
    assert "Clarabel" in capfd.readouterr().out


def test_training_draws_no_random_numbers_and_leaves_its_input_alone():
    data, y, weight, frame = X.copy(), Y.copy(), np.ones(120), ATTRIBUTES.copy()
    for array in (data, y, weight):
        array.flags.writeable = False
    shared = check_random_state(None)  # NumPy's global one
    before = shared.get_state(legacy=False)["state"]
    clf = ConstrainedRampClassifier(constraints=[churn("deployed") <= 0.3])
    clf.fit(data, y, sample_weight=weight, attributes=frame)
    after = shared.get_state(legacy=False)["state"]
    assert after["pos"] == before["pos"]
    np.testing.assert_array_equal(after["key"], before["key"])
    pd.testing.assert_frame_equal(frame, ATTRIBUTES)


def test_a_deterministic_fit_takes_no_random_state():
    with pytest.raises(TypeError, match="unexpected keyword argument 'random_state'"):
        ConstrainedRampClassifier(random_state=0)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:feasible_ is False. out of fold the constraints hold")
def test_what_is_infeasible_out_of_fold_comes_with_advice():
    """Refitted at any bound that is said to suffice, and a little more, it is feasible out of fold.

    On few rows the final rule, the mean of the folds' ones, may be a little worse than they are.
    """
    goals = {"positive_rate() <= 0.3": positive_rate, "recall() >= 0.95": recall}
    share, floor = positive_rate() <= 0.3, recall() >= 0.95
    with pytest.raises(InfeasibleConstraintsError, match="On these rows it is about") as caught:
        ConstrainedRampClassifier(constraints=[share, floor]).fit(X, Y)
    said = str(caught.value).split("On these rows it is about enough to relax ")[1]
    alone = dict(re.findall(r"(\w+\(\) [<>]= \S+) to (\d\.\d+)", said.split(". Relaxing")[0]))
    assert set(alone) == set(goals)
    wider = positive_rate() <= float(alone["positive_rate() <= 0.3"]) + 0.03
    lower = recall() >= float(alone["recall() >= 0.95"]) - 0.03
    for relaxed in ([wider, floor], [share, lower]):
        held_out = ConstrainedRampClassifier(constraints=relaxed).fit(X, Y).constraint_report_
        assert held_out["satisfied"].all()
