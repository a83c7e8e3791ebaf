"""The classifier's default: what is chosen by rows left out, and what it does not depend on."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit, TimeSeriesSplit

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.constrained.linear import _cross_fit, _folds, _ramp_cv
from skbandit.constrained.linear._directions import FEW_COLUMNS, fit_logistic
from skbandit.constrained.linear._folds import LinearFolds
from skbandit.constrained.paper._problem import RowSpan
from skbandit.constrained.solvers import AugmentedLagrangianSolver
from skbandit.rates import difference, false_positive_rate, positive_rate, ratio, recall
from skbandit.utils._folds import folds_of_classes
from tests.tiers import first
from tests.worlds import refuses

RNG = np.random.default_rng(3)
N = 400
X = RNG.normal(size=(N, 5))
GROUP = np.where(X[:, 1] + RNG.normal(size=N) > 0, "a", "b")
Y = (X[:, 0] + 0.5 * X[:, 1] + 0.7 * RNG.logistic(size=N) > 0.3).astype(int)
TABLE = pd.DataFrame({"group": GROUP})
GOAL = difference(positive_rate, by="group") <= 0.15


def fit(constraints=GOAL, groups=None, **settings):
    return ConstrainedRampClassifier(constraints=constraints, **settings).fit(
        X, Y, attributes=TABLE, groups=groups
    )


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_what_was_chosen_is_told(fitted):
    assert fitted.alpha_ == 0.1
    assert set(fitted.direction_.split()) & {"logistic", "ramp", "cost-sensitive"}
    report = fitted.constraint_report_
    assert report["satisfied"].all() and fitted.feasible_
    np.testing.assert_allclose(report["slack"], report["bound"] - report["cross_fitted"])
    positive = fitted.predict(X)
    gap = positive[GROUP == "a"].mean() - positive[GROUP == "b"].mean()
    np.testing.assert_allclose(report["value"], [gap, -gap])


def test_units_of_columns_do_not_matter(fitted):
    units = np.array([1e-4, 1.0, 3.0, 1e5, 10.0])
    clf = ConstrainedRampClassifier(constraints=GOAL).fit(X * units, Y, attributes=TABLE)
    np.testing.assert_array_equal(clf.predict(X * units), fitted.predict(X))
    np.testing.assert_allclose(clf.coef_ * units, fitted.coef_, rtol=1e-3)


def test_rows_of_weight_zero_do_not_matter(fitted):
    doubled = np.concatenate([X, X + 5.0])
    weight = np.repeat([1.0, 0.0], N)
    clf = ConstrainedRampClassifier(constraints=GOAL)
    clf.fit(
        doubled, np.append(Y, 1 - Y), sample_weight=weight, attributes=pd.concat([TABLE, TABLE])
    )
    np.testing.assert_array_equal(clf.predict(X), fitted.predict(X))


def test_sparse_rows_give_about_the_same(fitted):
    clf = ConstrainedRampClassifier(constraints=GOAL).fit(csr_array(X), Y, attributes=TABLE)
    assert (clf.predict(X) == fitted.predict(X)).mean() > 0.95


def test_more_features_than_rows():
    wide = np.hstack([X[:80], RNG.normal(size=(80, 300))])
    clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.5)
    clf.fit(wide, Y[:80])
    assert clf.coef_.shape == (1, 305)
    row = clf.constraint_report_.iloc[0]
    assert row["value"] == pytest.approx(recall().value(Y[:80], clf.predict(wide)))
    assert row["cross_fitted"] >= 0.5


def test_never_worse_than_a_moved_threshold_beyond_noise():
    """On new rows of the same kind, with goals met by either."""
    rng = np.random.default_rng(9)
    new = rng.normal(size=(20_000, 5))
    wanted = new[:, 0] + 0.5 * new[:, 1] + 0.7 * rng.logistic(size=20_000) > 0.3
    goals = false_positive_rate(), recall() >= 0.7
    ramp = ConstrainedRampClassifier(*goals).fit(X, Y)
    moved = ConstrainedThreshold(LogisticRegression(), *goals).fit(X, Y)
    for clf in (ramp, moved):
        clf.positive_ = clf.predict(new)
    assert recall().value(wanted, ramp.positive_, pos_label=1) >= 0.66  # a standard error: .03
    costs = [false_positive_rate().value(wanted, c.positive_, pos_label=1) for c in (ramp, moved)]
    assert costs[0] <= costs[1] + 0.05


def test_a_class_of_one_row_cannot_be_left_out():
    y = np.zeros(30, dtype=int)
    y[3] = 1
    with pytest.raises(ValueError, match="class of 1 row"):
        ConstrainedRampClassifier().fit(X[:30], y)


def test_unused_extra_rows_do_not_matter(fitted):
    clf = ConstrainedRampClassifier(constraints=GOAL)
    clf.fit(X, Y, attributes=TABLE, X_extra=RNG.normal(size=(50, 5)) + 3.0)
    np.testing.assert_allclose(clf.coef_, fitted.coef_)


def test_preselection_on_a_sample_ends_at_the_same_rule(fitted, monkeypatch):
    monkeypatch.setattr(_cross_fit, "SELECTION_ROWS", 190)
    clf = fit()
    assert clf.constraint_report_["satisfied"].all()
    assert (clf.predict(X) == fitted.predict(X)).mean() > 0.85


def test_the_convex_problems_have_no_constraints():
    rows_of = []

    class Noted(AugmentedLagrangianSolver):
        def solve(self, problem, penalty, tol, warm=None):
            rows_of.append(problem.P.shape[0])
            return super().solve(problem, penalty, tol, warm)

    fit(constraints=recall() >= 0.9, solver=Noted())
    assert set(rows_of) == {1}  # the objective


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:feasible_ is False")  # a higher level costs too much for some
@pytest.mark.parametrize("seed", first(1, [0, 1, 9, 3, 4]))
def test_rare_positives_do_not_make_parity_cost_most_of_the_accuracy(seed):
    """Nearly nobody or nearly everybody positive is parity, too.

    Ramps ended in one prediction for all rows, and fits were still far from the best rule.
    """
    rng = np.random.default_rng(seed)
    group = (rng.random(2000) < 0.35).astype(int)
    rows = rng.normal(size=(2000, 8))
    rows[:, 1::2] -= group[:, None]
    odds = rows @ np.array([1, 0.9, -0.4, 0.8, 0.6, 0.7, -1, 0.6])
    noise, other = rng.logistic(size=(2, 2000))
    rare = odds + noise > np.quantile(odds + other, 0.93)
    clf = ConstrainedRampClassifier(constraints=ratio(positive_rate, by="group") >= 0.8)
    clf.fit(rows, rare, attributes={"group": group})
    assert np.mean(clf.predict(rows) != rare) < 0.2


@pytest.mark.thorough
@pytest.mark.parametrize("d", [FEW_COLUMNS, FEW_COLUMNS + 1])
def test_only_newton_steps_begin_where_another_fold_ended(monkeypatch, d):
    """L-BFGS, for more columns, would remember rows that are left out."""
    starts = []

    def noted(*args, start=None, **settings):
        starts.append(start)
        return fit_logistic(*args, start=start, **settings)

    monkeypatch.setattr(_folds, "fit_logistic", noted)
    wide = np.hstack([X, RNG.normal(size=(N, d - X.shape[1]))])
    ConstrainedRampClassifier().fit(wide, Y)
    assert len(starts) == _ramp_cv.FOLDS
    assert sum(start is None for start in starts) == (1 if d <= FEW_COLUMNS else _ramp_cv.FOLDS)


def folds_of(weight, **settings):
    """Fold of each row that the classifier is trained by."""
    clf = ConstrainedRampClassifier(**settings)
    design, goals, _ = clf._read_training(X, Y, {"sample_weight": weight})
    return clf._folds(design, goals.data, None)


def test_folds_share_the_labels_and_skip_unused_rows():
    used = RNG.random(N) < 0.8
    fold = folds_of(used.astype(float))
    for label in (0, 1):
        counts = np.bincount(fold[used & (label == Y)], minlength=5)
        assert np.ptp(counts) <= 1
    assert (fold[~used] == -1).all()
    np.testing.assert_array_equal(fold[used], folds_of_classes(Y[used], 5, np.arange(used.sum())))


@pytest.mark.thorough
def test_rows_of_one_group_are_in_one_fold():
    group = np.arange(N) // 3
    fold = folds_of_classes(Y, 4, group)
    by_cv = fit(cv=4, groups=group)
    by_hand = fit(cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)])
    np.testing.assert_array_equal(by_cv.coef_, by_hand.coef_)


@pytest.mark.thorough
@pytest.mark.parametrize("routes", first(1, [True, False]))
def test_groups_reach_the_splitter(routes):
    group = np.arange(N) // 7
    by_hand = fit(cv=list(GroupKFold(4).split(X, groups=group)))
    with sklearn.config_context(enable_metadata_routing=routes):
        clf = fit(cv=GroupKFold(4), groups=group)
        np.testing.assert_array_equal(clf.coef_, by_hand.coef_)
        refuses(r"GroupKFold needs groups .*: pass groups=\.\.\. to fit", fit, cv=GroupKFold(4))


def test_the_folds_of_cv_are_left_out_in_turn():
    of_X = np.arange(N) // 7 % 4
    splits = [(np.flatnonzero(of_X != k), np.flatnonzero(of_X == k)) for k in range(4)]
    np.testing.assert_array_equal(folds_of(None, cv=splits), of_X)


@pytest.mark.parametrize(
    ("cv", "message"),
    [(TimeSeriesSplit(3), "cv does not test row 0, .* such as StratifiedKFold"),
     (ShuffleSplit(9, random_state=0), "cv tests row .* times")],
)  # fmt: skip
def test_each_row_is_tested_once(cv, message):
    refuses(message, fit, cv=cv)


def test_very_many_rows_are_sampled():
    fold, share = np.arange(60_000) % 3, np.ones(60_000)
    share[::7] = 0.0
    rows = np.zeros((60_000, 10))
    kept = LinearFolds(RowSpan(rows, rows), None, np.ones(10), share, fold, True).rows_to_fit(1)
    assert len(kept) == len(set(kept)) == 8000
    assert (fold[kept] != 1).all() and share[kept].all()
