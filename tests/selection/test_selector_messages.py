"""Selectors: input that is refused, input that is warned of, and input that may be meant."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.model_selection import GridSearchCV

from skbandit import RegressionSetSelector as Regression
from skbandit import SetSelectClassifier as Classifier
from skbandit.selection import PopularitySetSelector as Popularity
from skbandit.selection import assign, logged_costs
from tests.worlds import refuses, warns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 8)) + 0.1 * RNG.normal(size=(60, 8))
HOLEY = np.where(np.arange(480).reshape(60, 8) == 29, np.nan, Y)
THERE = (RNG.random(Y.shape) < 0.7) | (np.arange(8) == 0)
CLICKS = (np.random.default_rng(0).random((60, 4)) < 0.2).astype(float)
TEXTS = pd.DataFrame({"age": X[:, 0], "city": "Basel"})
HALF, ALTERNATE = np.full(60, 0.5), np.arange(60) % 2
SELECTORS = [Regression, Classifier, Popularity]


def unsigned(costs, dtype="uint8"):
    return costs.astype(np.int64).astype(dtype)


REFUSED = {
    "more ads than rounds": (
        lambda: Classifier(None, 2, reduction="filter_tree").fit(X, Y).predict(X, n_select=3),
        "n_select=3 is more than 2, .* of 8: fit it with a larger",
    ),
    "no estimator": (
        lambda: Regression().set_params(estimator__alpha=1.0),
        r"estimator=None has no parameters: .*\(estimator=\w+",
    ),
    "no estimator, search": (
        lambda: GridSearchCV(Classifier(), {"estimator__C": [1.0]}, error_score="raise").fit(X, Y),
        "SetSelectClassifier.estimator=",
    ),
    "available in a search": (
        lambda: GridSearchCV(
            Regression(Ridge()), {"estimator__alpha": [1]}, error_score="raise"
        ).fit(X, np.where(THERE, Y, np.nan), available=THERE),
        "only with sklearn.set_config.enable_metadata_routing=Tr",
    ),
    "masked costs": (
        lambda: Regression().fit(X, np.ma.masked_greater(Y, 1)),
        "y is a masked array",
    ),
    "masked weights": (
        lambda: Regression().fit(X, Y, sample_weight=np.ma.ones(60)),
        "weight is a masked array",
    ),
    "texts of ads": (
        lambda: Regression().fit(X, -CLICKS, ad_features=pd.DataFrame({"color": list("abac")})),
        r"'a'\): encode the others, .*get_dummies",
    ),
    **{
        f"texts of rows, {model}": (
            lambda model=model: model.fit(TEXTS, -CLICKS),
            "X has strings in the column 'city', such as 'Basel': encode them, as by OneHotEnc",
        )
        for model in (Regression(), Regression("stack"), Regression(HuberRegressor()), Classifier())
    },
    "texts in an array": (lambda: Regression().fit(TEXTS.to_numpy(), -CLICKS), "such as 'Basel'"),
    **{
        f"times as costs, {unit}": (
            lambda unit=unit: Classifier().fit(X, np.arange(120).reshape(60, 2).astype(unit)),
            r"y holds (datetime|timedelta)64\[s\]: pass numbers",
        )
        for unit in ("datetime64[s]", "timedelta64[s]")
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_selectors_refuse(case):
    call, message = REFUSED[case]
    refuses(message, call, error=(ValueError, TypeError))


WARNED = {
    "rewards": (
        lambda: logged_costs(ALTERNATE, CLICKS[:, 0], HALF),
        "cost - 1 leads to the same choices",
    ),
    "rewards by name": (
        lambda: logged_costs(ALTERNATE, pd.Series(5 * CLICKS[:, 0], name="reward"), HALF),
        "called 'reward': pass -cost .* rename it",
    ),
    "clicks, some missing": (
        lambda: Popularity().fit(X, np.where(Y[:, :4] > 0, np.nan, CLICKS)),
        "pass -y if they are",
    ),
    "one unsigned column": (
        lambda: Popularity().fit(X, pd.DataFrame(-CLICKS).assign(new=unsigned(-CLICKS[:, 0]))),
        "y holds 255 as uint8",
    ),
    "unsigned in assign": (
        lambda: assign(-np.eye(4, dtype="uint8"), 1),
        "costs holds 255 as uint8",
    ),
    "unsigned in score": (
        lambda: Popularity().fit(X, -CLICKS).score(X, unsigned(-CLICKS)),
        "y holds 255 as uint8",
    ),
    **{
        f"unlike scales, {kind.__name__}": (
            lambda kind=kind: kind().fit(X * [1e5, 1, 1], Y),
            r"feature 0 is \d.*e\+0[45], that of feature . .*StandardScaler",
        )
        for kind in (Regression, Classifier)
    },
}


@pytest.mark.parametrize("case", WARNED)
def test_selectors_warn(case):
    call, message = WARNED[case]
    warns(message, call)


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda c=c: Popularity().fit(X, c)
            for c in (-CLICKS, CLICKS - 1, 2 * CLICKS, 0 * CLICKS)
        ),
        lambda: Popularity().fit(X, CLICKS[:, :1]),
        lambda: Popularity().fit(X, np.random.default_rng(0).integers(0, 128, (60, 4), "uint8")),
        lambda: logged_costs(ALTERNATE, pd.Series(5 * CLICKS[:, 0], name="price"), HALF),
        *(lambda k=k: k().fit(X * [100, 1, 1], Y) for k in (Regression, Classifier)),
        lambda: Regression(Ridge()).fit(X * [1e5, 1, 1], Y),
    ],
)
def test_selectors_are_silent(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()


# Tables of clicks in the forms in which users hold them.
FORMS = {
    "array": lambda clicks, dtype: clicks.astype(dtype),
    "big-endian": lambda clicks, dtype: clicks.astype(np.dtype(dtype).newbyteorder(">")),
    "rows": lambda clicks, dtype: list(clicks.astype(dtype)),
    "sparse": lambda clicks, dtype: sp.csr_array(clicks.astype(dtype)),
    "DataFrame": lambda clicks, dtype: pd.DataFrame(clicks.astype(dtype)),
    "nullable": lambda clicks, dtype: pd.DataFrame(clicks.astype(dtype)).convert_dtypes(),
    "polars": lambda clicks, dtype: pytest.importorskip("polars").DataFrame(clicks.astype(dtype)),
}


@pytest.mark.parametrize("kind", SELECTORS)
@pytest.mark.parametrize("form", FORMS)
def test_clicks_as_costs_are_advised_to_be_negated(form, kind):
    """The advice works as typed; clicks negated without a sign have other advice."""
    for dtype in ("bool", "uint8", "float"):
        y = FORMS[form](CLICKS, dtype)
        with pytest.warns(UserWarning, match="y must be costs, .* of 240 are 1 ") as caught:
            kind().fit(X, y)
        advice = re.search(
            r"pass (.*) if they are rewards; if they are costs, (.*) leads", str(caught[0])
        )
        for typed, costs in zip(advice.groups(), (-CLICKS, 2 * CLICKS), strict=True):
            chosen = Popularity(2).fit(X, eval(typed, {"np": np, "y": y})).predict_indicator(X)
            np.testing.assert_array_equal(chosen, Popularity(2).fit(X, costs).predict_indicator(X))
    wrapped = FORMS[form](unsigned(-CLICKS, "uint64"), "uint64")
    warns(
        r"y holds \d+ as uint64, .*floats before, as in -y.astype\(float\)", kind().fit, X, wrapped
    )


@pytest.mark.parametrize("reduction", ["one_vs_rest", "regression", "weighted_all_pairs"])
def test_rules_that_rank_all_ads_choose_any_number(reduction):
    two, eight = (Classifier(n_select=m, reduction=reduction).fit(X, Y) for m in (2, 8))
    for m in (1, 3, 8):
        np.testing.assert_array_equal(two.predict(X, n_select=m), eight.predict(X, n_select=m))


def test_searches_score_costs_observed_in_part():
    search = GridSearchCV(Regression(Ridge()), {"estimator__alpha": [1.0]}, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, HOLEY, available=~np.isnan(HOLEY))
    assert np.isfinite(search.best_score_)
