"""The classifier's default on data of awkward shapes: it fits without a warning, or says why not.

Warnings are errors in these tests.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

from skbandit import ConstrainedRampClassifier
from skbandit.constrained.linear import _folds
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import difference, each, false_positive_rate, positive_rate, recall
from tests.tiers import first


def people(n, d, seed=0):
    """Columns, labels of which two in five are positive, and a group that the last one tells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * rng.logistic(size=n)
    y = (score > np.quantile(score, 0.6)).astype(int)
    group = np.where(X[:, -1] + rng.normal(size=n) > 0, "a", "b")
    return X, y, pd.DataFrame({"group": group})


X, Y, TABLE = people(200, 3)
GOALS = {
    "none": (None, ()),
    "recall": (false_positive_rate(), recall() >= 0.6),
    "parity": (None, difference(positive_rate, by="group") <= 0.3),
}


def columns_of_one_value(value):
    rows = X.copy()
    rows[:, 1] = value
    return rows, Y, TABLE


def one_row_many_times():
    rows, y, table = people(100, 3)
    return np.tile(rows, (3, 1)), np.tile(y, 3), pd.concat([table] * 3, ignore_index=True)


def few_values():
    return np.repeat(X[:3], 100, axis=0), np.tile([0, 1, 1], 100), people(300, 1)[2]


def few_positives():
    y = np.zeros(200, dtype=int)
    y[[3, 90, 150]] = 1
    return X, y, TABLE


def outlier():
    rows = X.copy()
    rows[0] = 1e6
    return rows, Y, TABLE


SHAPES = {
    "many columns": lambda: people(150, 400),
    "one column": lambda: people(200, 1),
    "two columns": lambda: people(200, 2),
    "a constant column": lambda: columns_of_one_value(5.0),
    "a column of zeros": lambda: columns_of_one_value(0.0),
    "nothing but constants": lambda: (np.full((200, 3), 3.3), Y, TABLE),
    "20 rows": lambda: people(20, 3),
    "8 rows": lambda: people(8, 2),
    "sparse, 1000 columns": lambda: (
        csr_array(random_sparse(200, 1000, 0.02, random_state=0)),
        *people(200, 3)[1:],
    ),
    "sparse without entries": lambda: (csr_array((200, 5)), Y, TABLE),
    "rows many times": one_row_many_times,
    "three different rows": few_values,
    "columns many times": lambda: (np.hstack([X, X, X]), Y, TABLE),
    "separable": lambda: (np.column_stack([2.0 * Y - 1, X]), Y, TABLE),
    "three positives": few_positives,
    "units apart": lambda: (X * [1e-8, 1.0, 1e8], Y, TABLE),
    "huge": lambda: (X * 1e150, Y, TABLE),
    "tiny": lambda: (X * 1e-150, Y, TABLE),
    "far from zero": lambda: (X + 1e8, Y, TABLE),
    "an outlier": outlier,
    "single precision": lambda: (X.astype(np.float32), Y, TABLE),
    "integers": lambda: ((3 * X).astype(int), Y, TABLE),
}


OFTEN = [
    "many columns", "a constant column", "20 rows", "sparse, 1000 columns", "rows many times",
    "separable", "three positives", "units apart",
]  # fmt: skip


@pytest.mark.parametrize("goal", first(1, list(GOALS)[::-1]))
@pytest.mark.parametrize("shape", first(len(OFTEN), sorted(SHAPES, key=lambda s: s not in OFTEN)))
def test_a_shape(shape, goal):
    rows, y, table = SHAPES[shape]()
    groups = np.arange(300) if shape == "rows many times" else None
    objective, constraints = GOALS[goal]
    clf = ConstrainedRampClassifier(objective, constraints)
    clf.fit(rows, y, attributes=table, groups=groups)
    assert clf.feasible_
    assert np.isfinite(clf.coef_).all() and np.isfinite(clf.intercept_).all()
    assert clf.constraint_report_["satisfied"].all()
    assert np.isfinite(clf.constraint_report_["value"]).all()
    positive = clf.predict(rows)
    if goal == "recall":
        assert positive[y == 1].mean() == pytest.approx(clf.constraint_report_["value"][0])


def weights(kind):
    rng = np.random.default_rng(1)
    return {
        "zeros": np.where(np.arange(200) % 3, 1.0, 0.0),
        "long tails": rng.pareto(1.0, 200) + 1e-3,
        "tiny": np.full(200, 1e-12),
        "huge": np.full(200, 1e12),
    }[kind]


@pytest.mark.parametrize("kind", first(2, ["zeros", "long tails", "tiny", "huge"]))
def test_weights(kind):
    weight = weights(kind)
    clf = ConstrainedRampClassifier(*GOALS["recall"]).fit(X, Y, sample_weight=weight)
    found = clf.predict(X)[Y == 1] @ weight[Y == 1] / weight[Y == 1].sum()
    assert clf.constraint_report_["value"][0] == pytest.approx(found)
    assert clf.feasible_


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_unit_of_weights_does_not_matter(factor):
    weight = weights("long tails")
    one, other = (
        ConstrainedRampClassifier(*GOALS["recall"]).fit(X, Y, sample_weight=w)
        for w in (weight, factor * weight)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_a_group_of_one_row():
    """The bound holds; a level does not, and the error says what these rows support."""
    table = pd.DataFrame({"group": np.where(np.arange(200) < 1, "b", "a")})
    goal = difference(positive_rate, by="group") <= 0.3
    clf = ConstrainedRampClassifier(constraints=goal)
    clf.fit(X, Y, attributes=table)
    assert clf.feasible_
    with pytest.raises(InfeasibleConstraintsError, match="These rows support a level of") as caught:
        clone(clf).set_params(confidence_level=0.9).fit(X, Y, attributes=table)
    assert set(caught.value.closest_.predict(X)) <= {0, 1}


def test_a_group_without_negatives_is_skipped_and_said_to_be():
    table = pd.DataFrame({"group": np.where(np.arange(200) == np.flatnonzero(Y)[0], "b", "a")})
    clf = ConstrainedRampClassifier(constraints=each(false_positive_rate, by="group") <= 0.5)
    with pytest.warns(UserWarning, match=r"\[b\] is not measured"):
        clf.fit(X, Y, attributes=table)
    assert clf.feasible_ and clf.constraint_report_["satisfied"][0]


@pytest.mark.parametrize(
    ("labels", "positive"),
    first(
        2, [(("yes", "no"), "yes"), ((-1, 1), None), ((False, True), None), (("no", "yes"), "yes")]
    ),
)
def test_labels(labels, positive):
    usual = ConstrainedRampClassifier(*GOALS["recall"]).fit(X, Y)
    clf = ConstrainedRampClassifier(*GOALS["recall"], pos_label=positive)
    clf.fit(X, np.array(labels)[Y])
    wanted = labels[1] if positive is None else positive
    answers = clf.predict(X)
    assert set(answers) <= set(labels)
    assert clf.constraint_report_["value"][0] == pytest.approx(
        (answers[np.array(labels)[Y] == wanted] == wanted).mean()
    )
    if wanted == labels[1]:
        np.testing.assert_array_equal(answers == wanted, usual.predict(X) == 1)


def test_frames_give_what_their_values_give():
    frame = pd.DataFrame(X, columns=list("uvw"), index=np.arange(200)[::-1])
    table = TABLE.set_index(frame.index)
    objective, constraints = GOALS["parity"]
    one = ConstrainedRampClassifier(objective, constraints)
    one.fit(frame, pd.Series(Y, index=frame.index), attributes=table)
    other = ConstrainedRampClassifier(objective, constraints).fit(X, Y, attributes=TABLE)
    np.testing.assert_allclose(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(frame), other.predict(X))
    assert list(one.feature_names_in_) == list("uvw")


def test_unlabeled_extra_rows_hold_a_bound():
    rng = np.random.default_rng(5)
    extra = rng.normal((1.0, 0.0, 0.0), size=(150, 3))
    goal = positive_rate(on="extra") <= 0.4
    clf = ConstrainedRampClassifier(constraints=goal).fit(X, Y, X_extra=extra)
    assert clf.predict(extra).mean() <= 0.4
    assert ConstrainedRampClassifier().fit(X, Y).predict(extra).mean() > 0.5
    again = rng.normal((1.0, 0.0, 0.0), size=(20_000, 3))
    assert clf.predict(again).mean() <= 0.43


def test_balanced_classes_weigh_the_objective():
    rare = np.concatenate([np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:25]])
    plain, balanced = (
        ConstrainedRampClassifier(class_weight=weight).fit(X[rare], Y[rare])
        for weight in (None, "balanced")
    )
    assert balanced.predict(X[rare]).mean() > plain.predict(X[rare]).mean()


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", first(1, [None, 2]))
def test_routed_through_searches_and_cross_validation(n_jobs):
    objective, constraints = GOALS["parity"]
    clf = ConstrainedRampClassifier(objective, constraints)
    given = {"attributes": TABLE, "sample_weight": weights("zeros")}
    clf.set_fit_request(sample_weight=True)
    tighter = difference(positive_rate, by="group") <= 0.2
    search = GridSearchCV(clf, {"constraints": [constraints, tighter]}, cv=2, n_jobs=n_jobs)
    search.fit(X, Y, **given)
    assert search.best_estimator_.feasible_
    found = cross_validate(clf, X, Y, params=given, cv=2, n_jobs=n_jobs, return_estimator=True)
    assert all(one.feasible_ for one in found["estimator"])
    assert found["test_score"].mean() > 0.6


def test_copies():
    objective, constraints = GOALS["parity"]
    clf = ConstrainedRampClassifier(objective, constraints).fit(X, Y, attributes=TABLE)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.predict(X), clf.predict(X))
    pd.testing.assert_frame_equal(copy.constraint_report_, clf.constraint_report_)
    again = clone(clf).fit(X, Y, attributes=TABLE)
    np.testing.assert_array_equal(again.coef_, clf.coef_)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("fitted", [False, True])
def test_an_interrupt_between_folds_leaves_it_as_it_was(monkeypatch, error, fitted):
    clf = ConstrainedRampClassifier(*GOALS["recall"])
    if fitted:
        clf.fit(X, Y)
    before, calls, trained = dict(vars(clf)), [], _folds._train_ramp

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 3:
            raise error
        return trained(*args)

    monkeypatch.setattr(_folds, "_train_ramp", interrupted)
    with pytest.raises(error):
        clf.fit(X[:, ::-1], 1 - Y)
    assert len(calls) == 3
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is before[name] for name in before)


@pytest.mark.parametrize("n", [4, 20])
def test_a_level_that_few_rows_cannot_support_is_told_with_the_rows_it_takes(n):
    rows, y, _ = people(n, 2)
    y[: n // 2], y[n // 2 :] = 0, 1
    clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.9, confidence_level=0.95)
    message = rf"{n} rows do not support confidence_level=0.95 .* recall\(\) >= 0.9"
    with pytest.raises(InfeasibleConstraintsError, match=message) as caught:
        clf.fit(rows, y)
    assert not hasattr(clf, "coef_")
    assert caught.value.closest_.predict(rows).shape == (n,)
