"""Options of SetSelectClassifier as resolved by `settle_rounds`."""

from itertools import product

import pytest

from skbandit.selection._round_settings import settle_rounds
from skbandit.selection._rounds import MASKED, PUBLISHED_NEXT_BEST, PUBLISHED_RANDOM
from skbandit.selection.reductions._registry import REDUCTIONS

DEFAULTS = {
    "all_available": True,
    "reduction": "filter_tree",
    "method": "masked",
    "include_chosen": "auto",
    "cross_fit": 5,
    "dedup": "next_best",
    "holes": "auto",
    "n_rounds": None,
}


def settle(n_ads=6, n_select=2, **options):
    return settle_rounds(n_ads, n_select, **(DEFAULTS | options))


def test_defaults():
    settings = settle()
    assert settings.scheme is MASKED
    assert (settings.n_rounds, settings.max_select, settings.n_folds) == (2, 2, 5)
    assert settings.include_chosen
    assert not (settings.holes or settings.trained_once or settings.ranked_by_cost)


@pytest.mark.parametrize(
    ("method", "dedup", "scheme"),
    [
        ("masked", "next_best", MASKED),
        ("masked", "random", MASKED),
        ("published", "next_best", PUBLISHED_NEXT_BEST),
        ("published", "random", PUBLISHED_RANDOM),
    ],
)
def test_schemes(method, dedup, scheme):
    assert settle(method=method, dedup=dedup).scheme is scheme


@pytest.mark.parametrize(("all_available", "first"), [(True, 1), (False, 0)])
def test_the_mask_is_a_feature_once_it_says_something(all_available, first):
    assert settle(all_available=all_available).mask_features_from == first
    assert settle(all_available=all_available, include_chosen=False).mask_features_from is None


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("method", ["masked", "published"])
def test_automatic_mask_features_are_for_masked_problems_that_depend_on_the_mask(reduction, method):
    expected = method == "masked" and reduction == "filter_tree"
    assert settle(reduction=reduction, method=method).include_chosen == expected
    for include_chosen in (True, False):
        settings = settle(reduction=reduction, method=method, include_chosen=include_chosen)
        assert settings.include_chosen == include_chosen


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_fit_serves_all_masked_rounds_of_reductions_that_ignore_the_mask(reduction):
    other = reduction != "filter_tree"
    assert settle(reduction=reduction).trained_once == other
    assert settle(reduction=reduction).ranked_by_cost == (
        reduction in ("regression", "one_vs_rest")
    )
    for options in ({"method": "published"}, {"include_chosen": True}):
        settings = settle(reduction=reduction, **options)
        assert not (settings.trained_once or settings.ranked_by_cost)


@pytest.mark.parametrize("n_select", range(1, 7))
def test_automatic_holes_are_for_large_sets(n_select):
    settings = settle(n_select=n_select)
    assert settings.holes == (n_select > 3)
    assert settings.n_rounds == (max(1, 6 - n_select) if n_select > 3 else n_select)
    assert settings.max_select == n_select
    for options in (
        {"all_available": False},
        {"method": "published"},
        {"reduction": "regression"},
        {"n_rounds": 6},
        {"holes": False},
    ):
        assert not settle(n_select=n_select, **options).holes


def test_holes_on_request():
    assert settle(holes=True).holes
    assert settle(holes=True, method="published").holes
    assert not settle(holes=True, reduction="one_vs_rest").holes  # one fit, so nothing to gain


@pytest.mark.parametrize("cross_fit", [None, 2])
def test_published_rounds_are_cross_fitted_only_if_learners_see_the_mask(cross_fit):
    for method, include_chosen in product(["masked", "published"], [False, True]):
        helps = method == "masked" or include_chosen
        settings = settle(cross_fit=cross_fit, method=method, include_chosen=include_chosen)
        assert settings.n_folds == (cross_fit if helps else None)


def test_more_rounds_than_ads_to_choose():
    settings = settle(n_rounds=5)
    assert (settings.n_rounds, settings.max_select) == (5, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_select": 0}, "n_select=0 must be at least 1 and at most 6, the number of ads"),
        ({"n_select": 7}, "n_select=7 must be"),
        ({"n_rounds": 1}, "n_rounds=1 must be at least n_select=2 and at most 6, the number of"),
        ({"n_rounds": 7}, "n_rounds=7 must be"),
        ({"n_rounds": 3, "holes": True}, "n_rounds=3 has no meaning with holes=True"),
    ],
)
def test_contradictions_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        settle(**options)
