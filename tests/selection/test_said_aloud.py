"""What selectors used to do in silence, or to refuse without naming the cure."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector, assign, logged_costs
from tests.worlds import refuses, warns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 8)) + 0.1 * RNG.normal(size=(60, 8))


@pytest.mark.thorough
def test_replacements_do_not_depend_on_the_batch():
    selector = SetSelectClassifier(n_select=4, method="published", random_state=0).fit(X, Y)
    together = selector.predict(X)
    alone = np.vstack([selector.predict(row[None]) for row in X])
    np.testing.assert_array_equal(together, alone)
    assert all(len(set(row)) == 4 for row in together.tolist())


@pytest.mark.parametrize("reduction", ["one_vs_rest", "regression", "weighted_all_pairs"])
def test_rules_that_rank_all_ads_choose_any_number(reduction):
    two = SetSelectClassifier(n_select=2, reduction=reduction).fit(X, Y)
    eight = SetSelectClassifier(n_select=8, reduction=reduction).fit(X, Y)
    for m in (1, 3, 8):
        np.testing.assert_array_equal(two.predict(X, n_select=m), eight.predict(X, n_select=m))
    refuses("n_select=9 must be at least 1 and at most 8, the number", two.predict, X, n_select=9)


def test_more_ads_than_rounds_names_the_rounds():
    selector = SetSelectClassifier(n_select=2, reduction="filter_tree", cross_fit=None)
    selector.fit(X, Y)
    refuses(
        r"n_select=3 is more than 2, .* of 8: fit it with a larger", selector.predict, X, n_select=3
    )


def test_a_joint_learner_that_cannot_learn_jointly():
    joint = ExtraTreesRegressor(n_estimators=2, random_state=0)
    holey = Y.copy()
    holey[3, 5] = np.nan
    RegressionSetSelector(joint).fit(X, Y)  # one fit, no warning
    with pytest.warns(UserWarning, match=r"ExtraTreesRegressor .* 1 of 480 costs .* 8 models"):
        RegressionSetSelector(joint).fit(X, holey)
    with pytest.warns(UserWarning, match=r"1 of 480 costs .* 8 models"):
        SetSelectClassifier(joint, reduction="regression").fit(X, holey)
    # a cost of an ad that was not available is not missing
    there = ~np.isnan(holey)
    RegressionSetSelector(joint).fit(X, holey, available=there)
    RegressionSetSelector(MultiOutputRegressor(joint)).fit(X, holey)  # as many models anyway
    # the same predictions and nearly the same time, so nothing to say
    RegressionSetSelector(Ridge()).fit(X, holey)
    RegressionSetSelector(Ridge(solver="lsqr")).fit(X, Y)


@pytest.mark.parametrize("selector", [RegressionSetSelector(), SetSelectClassifier()])
def test_parameters_of_no_estimator(selector):
    with pytest.raises(ValueError, match=r"estimator=None has no parameters: .*\(estimator=\w+"):
        selector.set_params(estimator__alpha=1.0)
    name = type(selector).__name__
    search = GridSearchCV(selector, {"estimator__alpha": [1.0]}, error_score="raise")
    refuses(f"{name}.estimator=", search.fit, X, Y)
    assert selector.set_params(estimator=Ridge(), estimator__alpha=3.0).estimator.alpha == 3.0
    selector.set_params(estimator=LogisticRegression(), estimator__C=2.0)
    selector.set_params(estimator=None)


def test_a_search_over_partly_observed_costs():
    mask = RNG.random(Y.shape) < 0.7
    mask[:, 0] = True
    costs = np.where(mask, Y, np.nan)
    search = GridSearchCV(
        RegressionSetSelector(Ridge()), {"estimator__alpha": [1.0]}, error_score="raise"
    )
    with pytest.raises(
        ValueError, match=r"only with sklearn.set_config.enable_metadata_routing=Tr"
    ):
        search.fit(X, costs, available=mask)
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, costs, available=mask)
    assert np.isfinite(search.best_score_)


def test_masked_costs():
    with pytest.raises(TypeError, match="y is a masked array"):
        RegressionSetSelector().fit(X, np.ma.masked_greater(Y, 1))
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        RegressionSetSelector().fit(X, Y, sample_weight=np.ma.ones(60))


@pytest.mark.parametrize(
    "joint",
    [
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=30, random_state=0),
        GridSearchCV(ExtraTreesRegressor(n_estimators=2, random_state=0), {"max_depth": [2]}, cv=2),
    ],
    ids=["MLPRegressor", "GridSearchCV"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_joint_learners_that_the_tag_denies(joint):
    """One fit of all ads, as of the learner by itself."""
    selector = RegressionSetSelector(joint).fit(X, Y)
    np.testing.assert_allclose(selector.predict_costs(X), clone(joint).fit(X, Y).predict(X))


# --- the sign of costs ---------------------------------------------------------------------


CLICKS = (np.random.default_rng(0).random((60, 4)) < 0.2).astype(float)
ROWS = np.random.default_rng(1).normal(size=(60, 2))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.astype])
@pytest.mark.parametrize(
    "selector",
    [RegressionSetSelector(), PopularitySetSelector(), SetSelectClassifier()],
    ids=lambda selector: type(selector).__name__,
)
def test_clicks_passed_as_costs(selector, form):
    y = CLICKS.astype(bool) if form is np.ndarray.astype else form(CLICKS)
    warns(r"y must be costs, .* of 240 are 1 .*pass -y", selector.fit, ROWS, y)


@pytest.mark.parametrize(
    "costs",
    [-CLICKS, CLICKS - 1.0, 1.0 - CLICKS, 2.0 * CLICKS, CLICKS[:, :1], 0.0 * CLICKS],
    ids=["minus clicks", "shifted", "no click", "prices", "a single ad", "zeros"],
)
def test_costs_that_may_be_meant(costs):
    PopularitySetSelector().fit(ROWS, costs)


def test_clicks_where_some_are_missing():
    y = np.where(np.random.default_rng(2).random(CLICKS.shape) < 0.5, np.nan, CLICKS)
    warns("pass -y if they are rewards", PopularitySetSelector().fit, ROWS, y)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (CLICKS[:, 0], "cost must be costs, .* cost - 1 leads to the same choices"),
        (pd.Series(5.0 * CLICKS[:, 0], name="reward"), "called 'reward': pass -cost .* rename it"),
        (pd.Series(-CLICKS[:, 0], name="reward"), None),
        (pd.Series(5.0 * CLICKS[:, 0], name="price"), None),
    ],
)
def test_rewards_passed_to_logged_costs(cost, message):
    action, propensity = np.arange(60) % 2, np.full(60, 0.5)
    if message is None:
        logged_costs(action, cost, propensity)
        return
    warns(message, logged_costs, action, cost, propensity)


# Tables of clicks by their form, with the dtype of an integer type or bool.
FORMS = {
    "array": lambda clicks, dtype: clicks.astype(dtype),
    "big-endian": lambda clicks, dtype: clicks.astype(np.dtype(dtype).newbyteorder(">")),
    "rows": lambda clicks, dtype: list(clicks.astype(dtype)),
    "sparse": lambda clicks, dtype: sp.csr_array(clicks.astype(dtype)),
    "DataFrame": lambda clicks, dtype: pd.DataFrame(clicks.astype(dtype)),
    "nullable": lambda clicks, dtype: pd.DataFrame(clicks.astype(dtype)).convert_dtypes(),
    "sparse DataFrame": lambda clicks, dtype: pd.DataFrame(clicks).astype(
        pd.SparseDtype(dtype, np.zeros((), dtype)[()])
    ),
    "polars": lambda clicks, dtype: pytest.importorskip("polars").DataFrame(clicks.astype(dtype)),
    "arrow": lambda clicks, dtype: pd.DataFrame(clicks.astype(dtype)).convert_dtypes(
        dtype_backend="pyarrow"
    ),
}


@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
@pytest.mark.parametrize("form", FORMS)
def test_clicks_negated_without_a_sign(form, dtype):
    wrapped = FORMS[form]((-CLICKS.astype(np.int64)).astype(dtype), dtype)
    cure = r"y holds \d+ as uint\d+, .*floats before, as in -y.astype\(float\)"
    for selector in (RegressionSetSelector(), SetSelectClassifier(), PopularitySetSelector()):
        warns(cure, selector.fit, ROWS, wrapped)


def test_one_column_negated_without_a_sign():
    costs = pd.DataFrame(-CLICKS)
    costs[2] = (-CLICKS[:, 2].astype(np.int64)).astype("uint8")
    costs[3] = np.arange(60, dtype="uint16") * 500  # up to 29500, which is meant
    warns("y holds 255 as uint8", PopularitySetSelector().fit, ROWS, costs)


def test_unsigned_costs_that_are_meant():
    costs = np.random.default_rng(0).integers(0, 128, (60, 4)).astype("uint8")
    for form in FORMS.values():
        PopularitySetSelector().fit(ROWS, form(costs, "uint8"))


def test_unsigned_costs_elsewhere():
    clicks = np.eye(4, dtype="uint8")
    warns("costs holds 255 as uint8", assign, -clicks, 1)
    with pytest.warns(UserWarning, match="y holds 255 as uint8"):
        PopularitySetSelector().fit(ROWS, -CLICKS).score(ROWS[:4], -clicks)
    warns("cost holds 255 as uint8", logged_costs, np.arange(4), -clicks[0], np.full(4, 0.25))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float"])
@pytest.mark.parametrize("form", FORMS)
def test_the_advice_about_clicks_works_as_typed(form, dtype):
    y = FORMS[form](CLICKS, dtype)
    with pytest.warns(UserWarning, match="pass .* if they are rewards") as caught:
        PopularitySetSelector().fit(ROWS, y)
    advice = re.search(
        r"pass (.*) if they are rewards; if they are costs, (.*) leads", str(caught[0])
    )
    negative, shifted = (eval(typed, {"np": np, "y": y}) for typed in advice.groups())
    for typed, costs in ((negative, -CLICKS), (shifted, CLICKS)):
        chosen = PopularitySetSelector(n_select=2).fit(ROWS, typed).predict_indicator(ROWS)
        expected = PopularitySetSelector(n_select=2).fit(ROWS, 2.0 * costs)
        np.testing.assert_array_equal(chosen, expected.predict_indicator(ROWS))


def test_texts_as_features_of_ads():
    features = pd.DataFrame({"color": ["red", "blue", "red", "green"]})
    with pytest.raises(ValueError, match=r"'red'\): encode the others, .*get_dummies"):
        RegressionSetSelector().fit(ROWS, -CLICKS, ad_features=features)


@pytest.mark.parametrize(
    "selector",
    [
        RegressionSetSelector(),
        RegressionSetSelector("stack"),
        RegressionSetSelector(ExtraTreesRegressor(2)),
        RegressionSetSelector(HuberRegressor()),
        SetSelectClassifier(),
        SetSelectClassifier(reduction="regression"),
    ],
)
def test_texts_in_rows(selector):
    rows = pd.DataFrame({"age": ROWS[:, 0], "city": "Basel"})
    message = r"X has strings in the column 'city', such as 'Basel': encode them, as by OneHotEnc"
    for table in (rows, rows.astype({"city": "category"})):
        refuses(message, selector.fit, table, -CLICKS)
    refuses("X has strings, such as 'Basel'", selector.fit, rows.to_numpy(), -CLICKS)
    numbers = rows[["age"]].assign(city=ROWS[:, 1])
    selector.fit(numbers, -CLICKS)
    if not isinstance(getattr(selector, "estimator", None), ExtraTreesRegressor | HuberRegressor):
        refuses(message, selector.predict, rows)


@pytest.mark.parametrize("selector", [SetSelectClassifier, RegressionSetSelector])
def test_features_of_unlike_scales_share_a_penalty(selector):
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(60, 2)), rng.normal(size=(60, 3))
    with pytest.warns(
        UserWarning, match=r"feature 0 is \d.*e\+0[45], that of feature 1 .*StandardScaler"
    ):
        selector().fit(X * [1e5, 1], costs)
    selector().fit(X * [100, 1], costs)
    selector(Ridge() if selector is RegressionSetSelector else LogisticRegression()).fit(
        X * [1e5, 1], costs
    )


@pytest.mark.parametrize("unit", ["datetime64[s]", "timedelta64[s]"])
@pytest.mark.parametrize("selector", [SetSelectClassifier, RegressionSetSelector])
def test_times_are_no_costs(selector, unit):
    costs = np.arange(120).reshape(60, 2).astype(unit)
    with pytest.raises(ValueError, match=r"y holds (datetime|timedelta)64\[s\]: pass numbers"):
        selector().fit(np.eye(60), costs)
