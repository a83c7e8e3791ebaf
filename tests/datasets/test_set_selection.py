"""make_set_selection: the truth is as it is told."""

import numpy as np
import pytest

from skbandit.datasets import make_set_selection


def test_shapes_and_seed():
    X, y, expected, Z = make_set_selection(
        50, 4, 7, n_ad_features=3, return_ad_features=True, random_state=3
    )
    assert X.shape == (50, 4)
    assert y.shape == expected.shape == (50, 7)
    assert Z.shape == (7, 3)
    assert Z.index.tolist() == list(range(7))
    again = make_set_selection(50, 4, 7, n_ad_features=3, random_state=3)
    assert len(again) == 3
    np.testing.assert_array_equal(y, again[1])
    assert (make_set_selection(50, 4, 7, n_ad_features=3, random_state=4)[1] != y).any()


def test_costs_are_clicks_of_the_expected_probability():
    """The z-score of a sum of 10^6 clicks; another seed fails with probability 1e-6."""
    _, y, expected = make_set_selection(20_000, n_ads=50, random_state=0)
    assert set(np.unique(y)) == {-1.0, 0.0}
    assert ((-1 < expected) & (expected < 0)).all()
    p = -expected
    for weight in (np.ones_like(p), p - p.mean()):
        z = (weight * (y - expected)).sum() / np.sqrt((weight**2 * p * (1 - p)).sum())
        assert abs(z) < 4.9


def test_what_each_part_does():
    def logit(**options):
        _, _, expected = make_set_selection(4000, n_ads=40, random_state=1, **options)
        return np.log(-expected / (1 + expected))

    flat = logit(signal=0, popularity=0, own=0, click_rate=0.3)
    np.testing.assert_allclose(flat, np.log(0.3 / 0.7))
    for_everyone = logit(signal=0, own=0, popularity=2.0)
    np.testing.assert_allclose(for_everyone, np.broadcast_to(for_everyone[0], (4000, 40)))
    assert 1 < for_everyone[0].std() < 3
    # linear in as many directions as ads have features, or in all that rows have
    assert np.linalg.matrix_rank(logit(popularity=0, own=0, n_ad_features=2, click_rate=0.5)) == 2
    own = logit(popularity=0, signal=0, own=0.7, n_features=6, click_rate=0.5)
    assert np.linalg.matrix_rank(own) == 6
    assert 0.5 < own.std() < 0.9


@pytest.mark.parametrize("click_rate", [0, 1, -0.2])
def test_click_rate_is_a_probability(click_rate):
    with pytest.raises(ValueError, match=f"click_rate={click_rate} must lie between 0 and 1"):
        make_set_selection(click_rate=click_rate)
