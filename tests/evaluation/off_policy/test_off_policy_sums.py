"""Sums of off-policy estimates: parts add up, and their errors are right."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st

from skbandit.evaluation._off_policy._sums import METHODS, EventSums, WeightedEvents, switch_weights
from skbandit.logs import shrunk_weights
from tests.tiers import examples


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
@examples(60)
def test_parts_add_up(name, data):
    n = data.draw(st.integers(2, 20))
    number = st.floats(-1e3, 1e3)
    reward, q, q_policy = (
        np.array(data.draw(st.lists(number, min_size=n, max_size=n))) for _ in range(3)
    )
    weights = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    weight = np.array(data.draw(st.lists(weights, min_size=n, max_size=n)))
    cut = data.draw(st.integers(1, n - 1))
    sums = [
        METHODS[name].sums(WeightedEvents(reward[part], weight[part], 1e3, q[part], q_policy[part]))
        for part in (slice(None), slice(cut), slice(cut, None))
    ]
    size = 1 + abs(weight).max() * (abs(reward).max() + abs(q).max()) + abs(q_policy).max()
    for whole, one, two in zip(*sums, strict=True):
        for parts in (one + two, two + one):
            assert parts.n == whole.n
            for field in vars(EventSums(*[0] * 13)):
                power = 2 if field in ("ee", "ed", "eu", "uu") else 1
                tolerance = 1e-9 * size**power
                wanted = getattr(whole, field)
                assert getattr(parts, field) == pytest.approx(wanted, rel=1e-9, abs=tolerance)


def sums_of(method, *columns):
    (sums,) = METHODS[method].sums(WeightedEvents(*columns))
    return sums


def test_many_parts_of_rewards_far_from_zero():
    rng = np.random.default_rng(0)
    reward, weight = 1e9 + rng.normal(size=1000), rng.uniform(0.5, 2, size=1000)
    parts = [sums_of("snips", reward[k : k + 1], weight[k : k + 1]) for k in range(1000)]
    total = sum(parts[1:], parts[0])
    residual = weight * (reward - 1e9 - np.average(reward - 1e9, weights=weight))
    error = np.sqrt((residual**2).sum() * 1000 / 999) / weight.sum()
    assert total.standard_error == pytest.approx(error, rel=1e-5)
    assert total.value == pytest.approx(np.average(reward, weights=weight), rel=1e-13)
    assert parts[0].standard_error is np.nan


def test_the_delta_method_agrees_with_leaving_events_out():
    rng = np.random.default_rng(0)
    reward, weight = rng.normal(size=500), rng.exponential(size=500)
    sums = sums_of("snips", reward, weight)
    total, weights = weight @ reward, weight.sum()
    without = (total - weight * reward) / (weights - weight)
    jackknife = np.sqrt(((without - without.mean()) ** 2).sum() * 499 / 500)
    assert sums.standard_error == pytest.approx(jackknife, rel=0.02)


def test_the_delta_method_of_self_normalized_corrections_agrees_with_leaving_events_out():
    rng = np.random.default_rng(1)
    reward, weight, q, q_policy = rng.normal(size=(4, 500))
    weight = np.exp(weight)
    q_policy = 2 * q_policy + weight * (reward - q)  # so that both parts covary
    sums = sums_of("sndr", reward, weight, weight.max(), q, q_policy)
    total, weights, base = weight @ (reward - q), weight.sum(), q_policy.sum()
    assert sums.value == pytest.approx(base / 500 + total / weights)
    without = (base - q_policy) / 499 + (total - weight * (reward - q)) / (weights - weight)
    jackknife = np.sqrt(((without - without.mean()) ** 2).sum() * 499 / 500)
    assert sums.standard_error == pytest.approx(jackknife, rel=0.02)


def test_weights_that_are_cut_or_shrunk():
    w = np.array([0.0, 0.5, 2.0, 100.0, 1e100])
    for setting in (0.25, 4.0, 1e4):
        assert shrunk_weights(w[:4], setting) == pytest.approx(
            setting * w[:4] / (w[:4] ** 2 + setting)
        )
        assert (shrunk_weights(w, setting) <= np.sqrt(setting) / 2).all()
        assert (shrunk_weights(w, setting) <= w).all()
    assert shrunk_weights(w, np.inf).tolist() == switch_weights(w, np.inf).tolist() == w.tolist()
    assert not shrunk_weights(w, 0.0).any()
    assert not switch_weights(w, 0.0).any()
    assert switch_weights(w, 2.0).tolist() == [0.0, 0.5, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("spread", [0.0, 0.01, 3.0])
def test_the_error_of_the_mean_weight_is_its_standard_error(spread):
    rng = np.random.default_rng(0)
    weight = 2 + spread * rng.exponential(size=400)
    sums = sums_of("snips", np.zeros(400), weight)
    assert sums.mean_weight == pytest.approx(weight.mean())
    assert sums.mean_weight_error == pytest.approx(weight.std() / 20, abs=1e-8)
