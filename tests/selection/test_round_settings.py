"""Settings of the rounds, as `settle_rounds` derives them."""

import pytest

from skbandit.selection._rounds import MASKED, PUBLISHED, settle_rounds
from skbandit.selection.reductions._registry import REDUCTIONS

DEFAULTS = {"all_available": True, "reduction": "filter_tree", "method": "masked", "cross_fit": 5}


def settle(n_ads=6, n_select=2, **options):
    return settle_rounds(n_ads, n_select, **(DEFAULTS | options))


def test_defaults():
    settings = settle()
    assert settings.method == MASKED
    assert (settings.n_rounds, settings.max_select, settings.n_folds) == (2, 2, 5)
    assert not (settings.leaves_out or settings.trained_once or settings.ranked_by_cost)
    assert settle(method="published").method == PUBLISHED


@pytest.mark.parametrize(("all_available", "first"), [(True, 1), (False, 0)])
def test_the_mask_is_a_feature_once_it_says_something(all_available, first):
    assert settle(all_available=all_available).mask_features_from == first


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("method", ["masked", "published"])
def test_mask_features_are_for_masked_problems_that_depend_on_the_mask(reduction, method):
    expected = method == "masked" and reduction == "filter_tree"
    sees = settle(reduction=reduction, method=method).mask_features_from is not None
    assert sees == expected


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_fit_serves_all_masked_rounds_of_reductions_that_ignore_the_mask(reduction):
    other = reduction != "filter_tree"
    assert settle(reduction=reduction).trained_once == other
    assert settle(reduction=reduction).ranked_by_cost == (
        reduction in ("regression", "one_vs_rest")
    )
    published = settle(reduction=reduction, method="published")
    assert not (published.trained_once or published.ranked_by_cost)


@pytest.mark.parametrize("n_select", range(1, 7))
def test_large_sets_are_chosen_by_leaving_ads_out(n_select):
    settings = settle(n_select=n_select)
    assert settings.leaves_out == (n_select > 3)
    assert settings.n_rounds == (max(1, 6 - n_select) if n_select > 3 else n_select)
    assert settings.max_select == n_select
    for options in ({"all_available": False}, {"method": "published"}, {"reduction": "regression"}):
        assert not settle(n_select=n_select, **options).leaves_out


@pytest.mark.parametrize("cross_fit", [None, 2])
def test_published_rounds_are_not_cross_fitted(cross_fit):
    assert settle(cross_fit=cross_fit).n_folds == cross_fit
    assert settle(cross_fit=cross_fit, method="published").n_folds is None


@pytest.mark.parametrize("n_select", [0, 7])
def test_impossible_sizes_are_named(n_select):
    with pytest.raises(ValueError, match=f"n_select={n_select} must be at least 1 and at most 6"):
        settle(n_select=n_select)
