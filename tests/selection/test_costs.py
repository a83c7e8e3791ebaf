"""Costs as they are read, and the models that learn them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.logs import read_mask
from skbandit.selection._cost_models import weight_params
from skbandit.selection._costs import (
    check_enough_available,
    check_every_ad_observed,
    check_n_select,
    read_cost_matrix,
)
from skbandit.selection.reductions import REDUCTIONS
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
    "array": AVAILABLE,
    "lists": AVAILABLE.tolist(),
    "csr": sp.csr_array(AVAILABLE),
    "coo": sp.coo_matrix(AVAILABLE),
}


@pytest.mark.parametrize("form", Y)
def test_all_forms_mean_the_same(form):
    y, names = Y[form]
    costs = read_cost_matrix(y)
    assert costs.ads.tolist() == names
    assert costs.shape == (2, 3)
    np.testing.assert_array_equal(costs.dense(), VALUES)
    np.testing.assert_array_equal(costs.n_observed(), [1, 2, 2])
    known = costs.with_zeros()
    known = known.toarray() if sp.issparse(known) else known
    np.testing.assert_array_equal(known, np.nan_to_num(VALUES))
    rows, paid = costs.of_ad(0)
    assert (rows.tolist(), paid.tolist()) == ([0], [1.0])
    np.testing.assert_array_equal(costs.of_rows(np.array([1])).dense(), VALUES[[1]])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("form", Y)
def test_what_is_not_available_is_not_observed(form, mask):
    y, _ = Y[form]
    costs = read_cost_matrix(y, MASKS[mask])
    expected = np.where(AVAILABLE, VALUES, np.nan)
    np.testing.assert_array_equal(costs.dense(), expected)
    np.testing.assert_array_equal(costs.n_observed(), [1, 1, 1])
    np.testing.assert_array_equal(np.concatenate([block for _, block in costs.blocks(8)]), expected)
    np.testing.assert_array_equal(costs.of_rows(np.array([1])).dense(), expected[[1]])
    known = costs.with_zeros()
    known = known.toarray() if sp.issparse(known) else known
    np.testing.assert_array_equal(known, np.nan_to_num(expected))
    for j in range(3):
        rows, paid = costs.of_ad(j)
        np.testing.assert_array_equal(rows, np.flatnonzero(~np.isnan(expected[:, j])))
        np.testing.assert_array_equal(paid, expected[rows, j])


def test_what_is_read_is_not_written_to():
    y, mask = VALUES.copy(), AVAILABLE.copy()
    y.setflags(write=False)
    costs = read_cost_matrix(y, mask)
    costs.with_zeros()
    np.testing.assert_array_equal(y, VALUES)
    np.testing.assert_array_equal(mask, AVAILABLE)


def test_precision_is_kept():
    assert read_cost_matrix(VALUES.astype(np.float32)).values.dtype == np.float32
    assert read_cost_matrix(VALUES.astype(np.float32), AVAILABLE).values.dtype == np.float32
    assert read_cost_matrix(np.array([[1, 2]])).values.dtype == np.float64


def test_stored_zeros_and_repeated_entries_of_sparse_costs():
    y = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(read_cost_matrix(y).dense(), [[0, 3], [0, 0]])
    y = sp.csc_array((np.array([0.0, 1.0, 2.0]), [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    np.testing.assert_array_equal(read_cost_matrix(y).dense(), [[0, 3], [0, 0]])
    assert y.data.tolist() == [0.0, 1.0, 2.0]
    assert y.indptr.tolist() == [0, 1, 3]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_available_are_matched_by_label(frame):
    table = frame({"c": [True, False], "a": [True, True], "b": [False, True]})
    read = read_mask(table, np.array(NAMES), 2)
    np.testing.assert_array_equal(read, AVAILABLE)


def test_nullable_availability():
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
        (AVAILABLE[:1], "available has 1 rows, X has 2"),
        (AVAILABLE[:, :2], "2 columns for 3 ads"),
        (AVAILABLE[0], "one boolean per row or arm"),
        (AVAILABLE + 0.5, "got 1.5 in row 0"),
        (sp.csr_array(2.0 * AVAILABLE), "got 2.0"),
        (np.where(AVAILABLE, "yes", "no"), "row 0 names unknown ads: 'yes', 'no'"),
        (pd.DataFrame(AVAILABLE, columns=["a", "b", "z"]), "columns for unknown ads: 'z'"),
        (pd.DataFrame(AVAILABLE[:, :2], columns=["a", "b"]), "has no column for ad 'c'"),
        (pd.DataFrame(AVAILABLE), "columns for unknown ads: 0, 1, 2"),
    ],
)
def test_availability_refused(available, message):
    refuses(message, read_mask, available, np.array(NAMES), 2)


def test_an_ad_never_observed_is_named():
    check_every_ad_observed(read_cost_matrix(VALUES))
    y = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})
    refuses("No cost of ad 'b' was observed", check_every_ad_observed, read_cost_matrix(y))
    with pytest.raises(ValueError, match="No cost of ad 1 was observed"):
        check_every_ad_observed(
            read_cost_matrix(VALUES, [[True, False, True], [True, False, True]])
        )
    never = np.full((2, 9), np.nan)
    refuses("ad 0, 1, 2, 3, 4 and 4 more was", check_every_ad_observed, read_cost_matrix(never))


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_a_row_with_too_few_ads_is_named(form):
    mask = np.ones((4, 50), dtype=bool)
    mask[2, :48] = False
    check_enough_available(form(mask), 2)
    refuses("Row 2 has 2 available ads, but n_select is 3", check_enough_available, form(mask), 3)


@pytest.mark.parametrize("n_select", [0, -1, 4])
def test_n_select_is_checked(n_select):
    refuses(f"n_select={n_select} must be at least 1 and at most 3", check_n_select, n_select, 3)


def test_missing_costs_among_objects():
    frame = pd.DataFrame(VALUES, columns=NAMES).astype(object)
    for missing in (pd.NA, None, np.nan):
        given = frame.copy()
        given.iloc[1, 0] = missing
        for form in (given, given.to_numpy(), given.to_numpy().tolist()):
            np.testing.assert_array_equal(read_cost_matrix(form).values, VALUES)
    refuses("y must hold numbers", read_cost_matrix, [["x", pd.NA]])


# === Cost models ================================================================================

W = np.array([1.0, 2.0])


@pytest.mark.parametrize("weight", [None, np.ones(3)])
def test_no_weights_are_not_passed(weight):
    assert weight_params(KNeighborsClassifier(), weight) == {}


def test_last_step_of_pipelines():
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    assert list(weight_params(inner, W)) == ["logisticregression__sample_weight"]
    outer = make_pipeline(StandardScaler(), inner)
    assert list(weight_params(outer, W)) == ["pipeline__logisticregression__sample_weight"]


def test_pipelines_with_routing():
    last = LogisticRegression()
    with sklearn.config_context(enable_metadata_routing=True):
        last.set_fit_request(sample_weight=True)
        assert list(weight_params(make_pipeline(StandardScaler(), last), W)) == ["sample_weight"]


def test_a_learner_without_weights_is_named():
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        weight_params(make_pipeline(StandardScaler(), KNeighborsClassifier()), W)


# --- learners that were fitted before --------------------------------------------------------

OLD_X = np.random.default_rng(0).normal(size=(60, 3))
OLD_Y = OLD_X @ np.random.default_rng(1).normal(size=(3, 6))


def trained_on(n_ads, y=OLD_Y):
    return FrozenEstimator(Ridge().fit(OLD_X, y[:, :n_ads] if n_ads > 1 else y[:, 0]))


def with_a_hole(y):
    return np.where(np.arange(y.size).reshape(y.shape) == 7, np.nan, y)


@pytest.mark.parametrize("selector", [RegressionSetSelector, SetSelectClassifier])
@pytest.mark.parametrize("n_ads", [1, 3, 5])
def test_a_frozen_learner_of_other_ads(selector, n_ads):
    selector = selector(trained_on(n_ads), n_select=2)
    if isinstance(selector, SetSelectClassifier):
        selector.set_params(reduction="regression")
    available = np.arange(60)[:, None] % 9 != np.arange(4)
    for y, options in (
        (OLD_Y[:, :4], {}),
        (OLD_Y[:, :4], {"available": available}),
        (with_a_hole(OLD_Y[:, :4]), {}),
    ):
        refuses(f"predicts {n_ads} costs per row, .* passed 4:", selector.fit, OLD_X, y, **options)
    selector.set_params(estimator=make_pipeline(StandardScaler(), selector.estimator))
    with pytest.raises(ValueError, match=f"Pipeline predicts {n_ads} costs per row, .* passed 4:"):
        selector.fit(OLD_X, OLD_Y[:, :4])


@pytest.mark.parametrize("y", [OLD_Y[:, :4], with_a_hole(OLD_Y[:, :4])], ids=["all", "a hole"])
def test_a_frozen_learner_of_the_same_ads(y):
    frozen = trained_on(4)
    selector = RegressionSetSelector(frozen, n_select=2).fit(OLD_X, y)
    np.testing.assert_array_equal(selector.predict_costs(OLD_X), frozen.predict(OLD_X))


@pytest.mark.parametrize("ad_effect", [0.0, 1.0])
def test_a_frozen_learner_of_pairs_predicts_one_cost(ad_effect):
    features = np.eye(4)
    pairs = np.repeat(OLD_X, 4, axis=0), np.tile(features, (60, 1))
    two = Ridge().fit(np.hstack(pairs), np.ones((240, 2)))
    selector = RegressionSetSelector(FrozenEstimator(two), ad_effect=ad_effect)
    with pytest.raises(ValueError, match="predicts 2 costs per row, but its fit was passed 1"):
        selector.fit(OLD_X, OLD_Y[:, :4], ad_features=features)


@pytest.mark.parametrize("reduction", ["filter_tree", "weighted_all_pairs", "one_vs_rest"])
def test_a_frozen_classifier_of_other_classes(reduction):
    frozen = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 3))
    message = "has the classes 0, 1, 2, but its fit was passed 0, 1:"
    refuses(message, SetSelectClassifier(frozen, reduction=reduction).fit, OLD_X, OLD_Y)
    refuses(message, RegressionSetSelector(frozen).fit, OLD_X, np.sign(OLD_Y))


WRAPPERS = {
    "alone": lambda frozen: frozen,
    "in a Pipeline": lambda frozen: make_pipeline(StandardScaler(), frozen),
    "in a bag": lambda frozen: (BaggingClassifier if is_classifier(frozen) else BaggingRegressor)(
        frozen, 2
    ),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
@pytest.mark.parametrize("reduction", [*sorted(REDUCTIONS.keys() - {"regression"})])
def test_a_frozen_classifier_cannot_learn_rounds(reduction, wrap):
    """Nor if it knows the classes 0 and 1, by chance."""
    frozen = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 2))
    with pytest.raises(ValueError, match="frozen, so it cannot learn the labels of each round: "):
        SetSelectClassifier(wrap(frozen), reduction=reduction).fit(OLD_X, OLD_Y)
    pairs = FrozenEstimator(LogisticRegression().fit(OLD_Y @ np.ones((6, 9)), np.arange(60) % 2))
    with pytest.raises(ValueError, match="frozen, so it cannot learn the labels of each round: "):
        SetSelectClassifier(wrap(pairs)).fit(OLD_X, OLD_Y, ad_features=np.eye(6))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=list(WRAPPERS))
def test_one_frozen_model_cannot_learn_several_ads(wrap):
    """All ads would get the same costs."""
    classifier = FrozenEstimator(LogisticRegression().fit(OLD_X, np.arange(60) % 2))
    learners = [wrap(classifier), MultiOutputRegressor(wrap(trained_on(1)))]
    for learner in learners:
        for y in (np.sign(OLD_Y), with_a_hole(np.sign(OLD_Y))):
            with pytest.raises(ValueError, match="is frozen, so it cannot learn the costs of ea"):
                RegressionSetSelector(learner).fit(OLD_X, y)
        RegressionSetSelector(learner).fit(OLD_X, np.sign(OLD_Y[:, :1]))
    calibrated = CalibratedClassifierCV(classifier)
    RegressionSetSelector(calibrated).fit(OLD_X, np.sign(OLD_Y))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda selector: selector,
        lambda selector: make_pipeline(StandardScaler(), selector),
        lambda selector: GridSearchCV(selector, {"n_select": [1]}),
        lambda selector: FrozenEstimator(selector.fit(OLD_X, OLD_Y)),
    ],
    ids=["alone", "in a Pipeline", "in a search", "frozen"],
)
def test_a_selector_is_no_learner_of_costs(wrap):
    inner = wrap(RegressionSetSelector(n_select=6))  # as many labels as ads
    for outer in (RegressionSetSelector(inner), SetSelectClassifier(inner, reduction="regression")):
        refuses("needs a learner of costs, but its estimator chooses", outer.fit, OLD_X, OLD_Y)
