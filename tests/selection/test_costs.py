"""Costs as they are read, and the models that learn them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.logs import read_mask
from skbandit.selection._cost_models import weight_params
from skbandit.selection._costs import check_every_ad_observed, read_cost_matrix
from tests.worlds import refuses

# === Costs and availability in all the forms they are given in, and what is refused =============

pl = pytest.importorskip("polars", reason="polars is not installed")

VALUES = np.array([[1.0, 0.0, -2.0], [np.nan, 3.0, 0.0]])
AVAILABLE = np.array([[True, False, True], [True, True, False]])
NAMES = ["a", "b", "c"]

Y = {
    "array": (VALUES, [0, 1, 2]),
    "float32": (VALUES.astype(np.float32), [0, 1, 2]),
    "lists": (VALUES.tolist(), [0, 1, 2]),
    "pandas": (pd.DataFrame(VALUES, columns=NAMES), NAMES),
    "nullable": (pd.DataFrame(VALUES, columns=NAMES).astype("Int64"), NAMES),
    "polars": (pl.DataFrame(VALUES, schema=NAMES), NAMES),
    "csr": (sp.csr_matrix(VALUES), [0, 1, 2]),
    "coo": (sp.coo_array(VALUES), [0, 1, 2]),
}
MASKS = {
    "none": None,
    "array": AVAILABLE,
    "lists": AVAILABLE.tolist(),
    "csr": sp.csr_array(AVAILABLE),
    "coo": sp.coo_matrix(AVAILABLE),
}


def read(y, mask):
    costs = read_cost_matrix(y)
    return costs.where_available(read_mask(mask, costs.ads, costs.shape[0]))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("form", Y)
def test_costs_and_masks_mean_the_same_in_every_form(form, mask):
    """What is not available is not observed."""
    y, names = Y[form]
    costs = read(y, MASKS[mask])
    expected = VALUES if mask == "none" else np.where(AVAILABLE, VALUES, np.nan)
    assert costs.ads.tolist() == names
    assert costs.shape == (2, 3)
    np.testing.assert_array_equal(costs.dense(), expected)
    np.testing.assert_array_equal(costs.n_observed(), (~np.isnan(expected)).sum(axis=0))
    np.testing.assert_array_equal(costs.of_rows(np.array([1])).dense(), expected[[1]])
    filled = costs.with_zeros()
    filled = filled.toarray() if sp.issparse(filled) else filled
    np.testing.assert_array_equal(filled, np.nan_to_num(expected))
    for j in range(3):
        rows, paid = costs.of_ad(j)
        np.testing.assert_array_equal(rows, np.flatnonzero(~np.isnan(expected[:, j])))
        np.testing.assert_array_equal(paid, expected[rows, j])


def test_costs_that_are_read_are_not_written_to():
    y, mask = VALUES.copy(), AVAILABLE.copy()
    y.setflags(write=False)
    read(y, mask).with_zeros()
    np.testing.assert_array_equal(y, VALUES)
    np.testing.assert_array_equal(mask, AVAILABLE)


def test_sparse_costs_may_store_zeros_and_repeat_entries():
    y = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(read_cost_matrix(y).dense(), [[0, 3], [0, 0]])
    y = sp.csc_array((np.array([0.0, 1.0, 2.0]), [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    np.testing.assert_array_equal(read_cost_matrix(y).dense(), [[0, 3], [0, 0]])
    assert y.data.tolist() == [0.0, 1.0, 2.0]
    assert y.indptr.tolist() == [0, 1, 3]


def test_nullable_availability_must_be_complete():
    table = pd.DataFrame(AVAILABLE, columns=NAMES).astype("boolean")
    np.testing.assert_array_equal(read_mask(table, np.array(NAMES), 2), AVAILABLE)
    table.loc[1, "b"] = pd.NA
    refuses(r"boolean table .* got <NA> in row 1", read_mask, table, np.array(NAMES), 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0], r"its shape is \(2,\). Reshape it to \(-1, 1\)"),
        (np.zeros((2, 2, 2)), "Found array with dim 3|its shape is"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        ([[0, 1], [2, np.inf]], "inf in row 1: a cost and its square must be finite"),
        (sp.csr_matrix([[0, 1], [2, -np.inf]]), "-inf in row 1: a cost and its square must"),
        ([["x", "y"]], "could not convert string .*: y must hold numbers, costs with one column"),
        (["offer3", "offer1"], r"one column per ad: if it says which .*logged_costs\(action"),
        ([("a", "b"), ("b",)], r"y must hold numbers, .*logged_costs\(action"),
        ([3, 1], r"if it names the ad shown in each row, estimate costs by skbandit\.selection"),
        (
            pd.DataFrame({"action": [3, 1], "reward": [0.0, 1.0]}),
            "columns 'action', 'reward' of a log, not costs with one column per ad: .*logged_costs",
        ),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "called 'a': rename one"),
        (np.array([[1 + 2j]]), "Complex"),
    ],
)
def test_costs_refused(y, message):
    refuses(message, read_cost_matrix, y)


@pytest.mark.parametrize(
    ("available", "message"),
    [
        (AVAILABLE[:1], r"shape \(1, 3\), expected \(2, 3\)"),
        (AVAILABLE[:, :2], r"shape \(2, 2\), expected \(2, 3\)"),
        (AVAILABLE[0], "one boolean per row or arm"),
        (AVAILABLE + 0.5, "got 1.5 in row 0"),
        (sp.csr_array(2.0 * AVAILABLE), "got 2.0"),
        (np.where(AVAILABLE, "yes", "no"), "row 0 names unknown ads: 'yes', 'no'"),
        (pd.DataFrame(AVAILABLE, columns=["a", "b", "z"]), "available has 'z', too: pass a col"),
        (pd.DataFrame(AVAILABLE[:, :2], columns=["a", "b"]), "available lacks 'c'"),
        (pd.DataFrame(AVAILABLE), "available has 0, 1, 2, too"),
    ],
)
def test_availability_refused(available, message):
    refuses(message, read_mask, available, np.array(NAMES), 2)


@pytest.mark.parametrize(
    ("y", "mask", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]}), None, "No cost of ad 'b' was"),
        (VALUES, [[True, False, True]] * 2, "No cost of ad 1 was observed"),
        (np.full((2, 9), np.nan), None, "ad 0, 1, 2, 3, 4, ... was"),
    ],
)
def test_an_ad_never_observed_is_named(y, mask, message):
    check_every_ad_observed(read_cost_matrix(VALUES))
    refuses(message, check_every_ad_observed, read(y, mask))


def test_costs_as_objects_may_be_missing():
    frame = pd.DataFrame(VALUES, columns=NAMES).astype(object)
    for missing in (pd.NA, None, np.nan):
        given = frame.copy()
        given.iloc[1, 0] = missing
        for form in (given, given.to_numpy(), given.to_numpy().tolist()):
            np.testing.assert_array_equal(read_cost_matrix(form).values, VALUES)
    refuses("y must hold numbers", read_cost_matrix, [["x", pd.NA]])


# === Cost models ================================================================================

W = np.array([1.0, 2.0])


CHAIN = make_pipeline(StandardScaler(), LogisticRegression())


@pytest.mark.parametrize(
    ("learner", "weight", "names"),
    [
        (KNeighborsClassifier(), None, []),
        (KNeighborsClassifier(), np.ones(2), []),
        (CHAIN, W, ["logisticregression__sample_weight"]),
        (
            make_pipeline(StandardScaler(), CHAIN),
            W,
            ["pipeline__logisticregression__sample_weight"],
        ),
    ],
)
def test_weights_are_passed_to_the_last_step_unless_all_are_one(learner, weight, names):
    assert list(weight_params(learner, weight)) == names


def test_weights_are_routed_where_they_are_requested(routing):
    last = LogisticRegression().set_fit_request(sample_weight=True)
    assert list(weight_params(make_pipeline(StandardScaler(), last), W)) == ["sample_weight"]


def test_a_learner_without_weights_is_named():
    chain = make_pipeline(StandardScaler(), KNeighborsClassifier())
    refuses(r"KNeighborsClassifier\.fit takes no sample_weight", weight_params, chain, W)


# --- learners that were fitted before --------------------------------------------------------

OLD_X = np.random.default_rng(0).normal(size=(60, 3))
OLD_Y = OLD_X @ np.random.default_rng(1).normal(size=(3, 6))


WRAPPERS = {
    "alone": lambda frozen: frozen,
    "in a Pipeline": lambda frozen: make_pipeline(StandardScaler(), frozen),
    "in a bag": lambda frozen: BaggingClassifier(frozen, 2),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
@pytest.mark.parametrize("learner", [LogisticRegression(), Ridge()], ids=repr)
def test_frozen_learners_are_refused(learner, wrap):
    """All ads or rounds would get the same model."""
    frozen = wrap(FrozenEstimator(learner.fit(OLD_X, np.arange(60) % 2)))
    for selector in (RegressionSetSelector(frozen), SetSelectClassifier(frozen)):
        for options in ({}, {"ad_features": np.eye(6)}):
            message = f"{type(learner).__name__} is frozen, so it cannot learn costs: pass"
            refuses(message, selector.fit, OLD_X, np.sign(OLD_Y), **options)


def test_calibration_of_a_frozen_classifier_learns():
    frozen = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 2))
    RegressionSetSelector(CalibratedClassifierCV(frozen)).fit(OLD_X, np.sign(OLD_Y))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda selector: selector,
        lambda selector: make_pipeline(StandardScaler(), selector),
        lambda selector: GridSearchCV(selector, {"n_select": [1]}),
    ],
    ids=["alone", "in a Pipeline", "in a search"],
)
def test_a_selector_is_refused_as_a_learner_of_costs(wrap):
    inner = wrap(RegressionSetSelector(n_select=6))  # as many labels as ads
    for outer in (RegressionSetSelector(inner), SetSelectClassifier(inner, reduction="regression")):
        refuses("needs a learner of costs, but its estimator chooses", outer.fit, OLD_X, OLD_Y)
