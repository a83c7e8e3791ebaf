"""SetSelectClassifier: sets that are optimal, valid, alike for a seed."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection.reductions._filter_tree import learn_filter_tree
from skbandit.selection.reductions._rule import Examples
from tests.tiers import first
from tests.worlds import LEARNER, lowest, masks, population, refuses

REDUCTIONS = ["filter_tree", "weighted_all_pairs", "regression", "one_vs_rest"]
VARIANTS = {"masked": {}, "in sample": {"cross_fit": None}}


def learner(reduction):
    return DecisionTreeRegressor(random_state=0) if reduction == "regression" else LEARNER


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("m", first(1, [2, 1, 4, 5]))
def test_optimal_where_its_learners_are(reduction, variant, m):
    """Every cell of (context, ads chosen) is learned by heart, so each set is the best one.

    Folds see other means than f* unless the costs of a context are all alike.
    """
    rng = np.random.default_rng(m)
    X, costs, f = population(rng, 12, 5, each=10)
    contexts = np.arange(12.0)[:, None]
    if VARIANTS[variant].get("cross_fit", 5) is not None:
        costs = f.repeat(10, axis=0)
    selector = SetSelectClassifier(
        learner(reduction), m, reduction=reduction, random_state=0, **VARIANTS[variant]
    ).fit(X, costs)
    chosen = selector.predict(contexts)
    expected = lowest(f, np.ones_like(f, bool), m)
    assert (np.sort(chosen, axis=1) == np.sort(expected, axis=1)).all()
    if reduction != "filter_tree" or m <= 2:  # not by leaving ads out
        assert (chosen == expected).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_optimal_among_the_ads_available(reduction):
    rng = np.random.default_rng(0)
    X, costs, f = population(rng, 40, 5)
    available = masks(rng, 40, 5, at_least=3)
    selector = SetSelectClassifier(learner(reduction), 3, reduction=reduction, cross_fit=None).fit(
        X, costs, available=available[X[:, 0].astype(int)]
    )
    chosen = selector.predict(np.arange(40.0)[:, None], available=available)
    assert (np.sort(chosen, axis=1) == np.sort(lowest(f, available, 3), axis=1)).all()


def test_the_filter_tree_sees_which_ads_compete():
    """Who wins the final depends on who is available, and X says nothing of that."""
    every_mask = np.array(list(product([False, True], repeat=4)))[1:]
    f = np.array([0.0, 10.0, 5.0, 20.0])
    X, costs = np.zeros((len(every_mask), 1)), np.tile(f, (len(every_mask), 1))
    best = lowest(costs, every_mask, 1)

    selector = SetSelectClassifier(
        LEARNER, reduction="filter_tree", cross_fit=None, random_state=1
    ).fit(X, costs, available=every_mask)
    assert (selector.predict(X, available=every_mask) == best).all()
    blind = learn_filter_tree(
        Examples(X, costs, every_mask, np.ones(len(X))), learner=LEARNER, order=np.arange(4)
    )
    assert (blind.choose(blind.respond(X), every_mask) != best[:, 0]).any()


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    n, n_ads = draw(st.integers(2, 14)), draw(st.integers(1, 5))
    costs = rng.integers(-2, 3, size=(n, n_ads)).astype(float)  # ties
    m = draw(st.integers(1, n_ads))
    options = {
        "reduction": draw(st.sampled_from(REDUCTIONS)),
        "method": draw(st.sampled_from(["masked", "published"])),
        "cross_fit": draw(st.sampled_from([None, 2, 5])),
        "random_state": seed,
    }
    some = rng.random((n, n_ads)) < 0.8
    some[rng.integers(n)] = True  # each ad is there once
    return rng.normal(size=(n, 2)), costs, m, options, some if draw(st.booleans()) else None


@pytest.mark.thorough
@given(problems())
def test_sets_have_no_duplicate_and_no_unavailable_ad_and_are_alike_for_a_seed(problem):
    X, costs, m, options, available = problem
    tree = DecisionTreeRegressor if options["reduction"] == "regression" else DecisionTreeClassifier
    selector = SetSelectClassifier(tree(max_depth=2, random_state=0), m, **options)
    chosen = selector.fit(X, costs, available=available).predict(X, available=available, fill=-1)
    allowed = np.ones(costs.shape, bool) if available is None else available
    for row, may in zip(chosen.tolist(), allowed, strict=True):
        ads = [ad for ad in row if ad != -1]
        assert len(ads) == len(set(ads)) == min(m, may.sum())
        assert row[: len(ads)] == ads
        assert may[ads].all()
    again = sklearn.clone(selector).fit(X, costs, available=available)
    assert (again.predict(X, available=available, fill=-1) == chosen).all()
    assert (selector.predict(X, available=available, fill=-1) == chosen).all()


@pytest.mark.thorough
def test_the_filter_tree_does_not_favor_columns():
    """Over seeds, equal ads in other columns are chosen as often: a chi-square test of level 1e-4.

    The costs are noise, so that the place in the tournament decides.
    """
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(60, 2)), rng.normal(size=(60, 5))
    n_seeds = 80

    def counts(columns):
        total = np.zeros(5)
        for seed in range(n_seeds):
            tree = SetSelectClassifier(
                LogisticRegression(), reduction="filter_tree", random_state=seed, cross_fit=None
            )
            chosen = tree.fit(X, costs[:, columns]).predict(X[:1])[0, 0]
            total[columns[chosen]] += 1
        return total

    one, other = counts(np.arange(5)), counts(np.array([3, 0, 4, 1, 2]))
    met = one + other > 0
    statistic = ((one - other)[met] ** 2 / (one + other)[met]).sum()
    assert statistic < chi2.isf(1e-4, max(1, met.sum() - 1))
    assert met.sum() > 1  # the order matters for a single seed


def test_auto_chooses_a_reduction_by_learner_and_number_of_ads(data):
    X, costs = data
    rng = np.random.default_rng(0)

    def chosen(n_ads=6, estimator=None, **options):
        y = costs if n_ads == 6 else rng.normal(size=(80, n_ads))
        return SetSelectClassifier(estimator, cross_fit=2, **options).fit(X, y).reduction_

    assert chosen() == chosen(n_ads=21) == "one_vs_rest"
    assert chosen(estimator=LEARNER) == "weighted_all_pairs"
    assert chosen(estimator=LEARNER, n_ads=21) == "one_vs_rest"
    assert chosen(estimator=LinearSVC(), n_ads=21) == "filter_tree"
    assert chosen(method="published") == "filter_tree"
    assert chosen(reduction="regression") == "regression"
    assert not hasattr(SetSelectClassifier(LEARNER).fit(X, costs), "predict_costs")


@pytest.mark.thorough
@pytest.mark.parametrize("reduction", ["one_vs_rest", "weighted_all_pairs"])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_default_penalty_is_close_to_the_best(seed, reduction):
    """Of 7 penalties, on 1000 new rows: at least 95% of the best one's gain over popularity."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(1200, 12)), rng.normal(size=(12, 5))
    expected = 0.2 * X @ W + rng.normal(0, 0.3, size=5)
    costs, test = expected + rng.normal(size=expected.shape), slice(200, None)
    popular = expected[test, costs[:200].mean(axis=0).argmin()].mean()

    def gain(learner):
        selector = SetSelectClassifier(learner, reduction=reduction)
        return selector.fit(X[:200], costs[:200]).score(X[test], expected[test]) + popular

    best = max(gain(LogisticRegression(C=C)) for C in np.logspace(-4, 2, 7))
    assert gain(None) > 0.95 * best


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(80, 6))


def test_rounds_of_regression_are_the_regression_selector(data):
    X, costs = data
    rounds = SetSelectClassifier(n_select=3, reduction="regression").fit(X, costs)
    regression = RegressionSetSelector(n_select=3).fit(X, costs)
    assert (rounds.predict(X) == regression.predict(X)).all()
    np.testing.assert_allclose(rounds.predict_costs(X), regression.predict_costs(X))


@pytest.mark.parametrize("method", ["masked", "published"])
def test_fewer_ads_are_the_first_of_more(data, method):
    X, costs = data
    selector = SetSelectClassifier(
        n_select=3, reduction="filter_tree", method=method, random_state=0
    )
    chosen = selector.fit(X, costs).predict(X)
    for m in (1, 2):
        assert (selector.predict(X, n_select=m) == chosen[:, :m]).all()


def test_large_sets_leave_out_the_same_ads_for_any_number_of_them(data):
    X, costs = data
    selector = SetSelectClassifier(n_select=5, reduction="filter_tree", random_state=0)
    selector.fit(X, costs)
    assert selector.n_rounds_ == 1
    chosen = selector.predict(X)
    assert (selector.predict(X, n_select=2) == chosen[:, :2]).all()
    # best first: what comes first is cheaper on average
    paid = np.take_along_axis(costs, chosen, axis=1).mean(axis=0)
    assert paid[:2].mean() < paid[-2:].mean()


def test_published_rounds_fill_up_with_other_ads(data):
    """With one constant prediction in every round there is one ad, and others in any order."""
    costs = np.tile([-1.0, -5.0, -1.0, -1.0, -1.0, -1.0], (80, 1))
    published = SetSelectClassifier(n_select=2, method="published", random_state=0)
    chosen = published.fit(data[0], costs).predict(data[0])
    assert (chosen[:, 0] == 1).all()
    assert set(chosen[:, 1]) <= {0, 2, 3, 4, 5}


def test_published_rounds_need_no_sign_of_costs(data):
    """A shift common to all ads of a row changes nothing once costs are shifted."""
    X, costs = data
    published = SetSelectClassifier(n_select=3, method="published", random_state=0)
    up = published.fit(X, costs + 100).predict(X)
    more = published.fit(X, costs + 100 + np.abs(X[:, :1])).predict(X)
    assert (up == more).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("method", ["masked", "published"])
def test_costs_are_predicted_where_one_fit_serves_all_rounds(reduction, method):
    selector = SetSelectClassifier(n_select=2, reduction=reduction, method=method)
    expected = reduction in ("regression", "one_vs_rest") and method == "masked"
    assert hasattr(selector, "predict_costs") == expected
    assert hasattr(selector, "decision_function") == expected


def test_learners_see_missing_values_if_they_can(data):
    X, costs = data
    X[::7, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=3)
    assert SetSelectClassifier(boosting, 2, cross_fit=2).fit(X, costs).predict(X).shape == (80, 2)
    refuses("NaN", SetSelectClassifier().fit, X, costs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_select": 7}, "n_select=7 must be at least 1 and at most 6"),
        ({"n_select": 0}, "n_select"),
        ({"estimator": Ridge()}, "Ridge is a regressor"),
        ({"reduction": "csoaa"}, "reduction"),
        ({"method": "post"}, "'published'"),
        ({"cross_fit": 1}, "cross_fit"),
    ],
)
def test_refused_parameters_leave_the_fit_as_it_was(data, options, message):
    X, costs = data
    selector = SetSelectClassifier(n_select=2, random_state=0).fit(X, costs)
    before = selector.predict(X)
    refuses(message, selector.set_params(**options).fit, X, costs)
    assert (selector.predict(X, n_select=2) == before).all()


def test_set_select_classifier_refuses_data_of_other_shapes(data):
    X, costs = data
    selector = SetSelectClassifier(n_select=2, random_state=0).fit(X, costs)
    refuses("X has 80 rows, y has 79", selector.fit, X, costs[1:])
    there = np.ones(costs.shape, bool)
    refuses(r", 5\), expected \(.*, 6\)", selector.fit, X, costs, available=there[:, :5])
    there[3, 1:] = False
    refuses("Row 3 has 1 available ads, but n_select is 2", selector.predict, X, available=there)
    costs[5] = np.nan
    refuses(r"row 5.*logged_costs", selector.score, X, costs)
    refuses("takes no ad_features", selector.predict, X, ad_features=np.eye(6))


def test_choices_do_not_depend_on_the_means_of_features():
    """No intercept is penalized, so that the choices are the same, however large the means."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ np.array([[1, -1, 0], [2, -2, 0], [3, -3, 1.0]]) + 0.01 * rng.normal(size=(300, 3))
    near, far = SetSelectClassifier().fit(X, y), SetSelectClassifier().fit(X + 1e4, y)
    assert (near.predict(X) == far.predict(X + 1e4)).mean() > 0.98


@pytest.mark.parametrize("reduction", ["weighted_all_pairs", "filter_tree"])
def test_a_row_with_nearly_all_of_the_stakes_can_be_learned(reduction):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    y[0] = [1e18, -1e18, 2e18, 5e18]
    selector = SetSelectClassifier(reduction=reduction).fit(X, y)
    assert selector.predict(X).shape == (60, 1)


def test_pairs_of_described_ads_have_no_costs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 4))
    selector = SetSelectClassifier().fit(X, y)
    assert hasattr(selector, "predict_costs")
    selector.fit(X, y, ad_features=np.eye(4))
    assert selector.reduction_ == "weighted_all_pairs"
    assert not hasattr(selector, "predict_costs")
