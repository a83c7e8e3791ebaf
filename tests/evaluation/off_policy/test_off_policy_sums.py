"""Sums of off-policy estimates: parts add up, and their errors are right."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

from skbandit.evaluation._off_policy._sums import ESTIMATORS, SNIPS, EventSums, WeightedEvents


@pytest.mark.parametrize("name", ESTIMATORS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_parts_add_up(name, data):
    n = data.draw(st.integers(2, 20))
    number = st.floats(-1e3, 1e3)
    reward, q, q_policy = (
        np.array(data.draw(st.lists(number, min_size=n, max_size=n))) for _ in range(3)
    )
    weights = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    weight = np.array(data.draw(st.lists(weights, min_size=n, max_size=n)))
    cut = data.draw(st.integers(1, n - 1))
    columns = reward, weight, q, q_policy
    whole, one, two = (
        ESTIMATORS[name].sums(WeightedEvents(*(column[part] for column in columns)))
        for part in (slice(None), slice(cut), slice(cut, None))
    )
    for parts in (one + two, two + one):
        assert parts.n == whole.n
        size = 1 + abs(weight).max() * (abs(reward).max() + abs(q).max()) + abs(q_policy).max()
        for field in vars(EventSums(*[0] * 9)):
            power = 2 if field in ("ee", "ed") else 1
            wanted = getattr(whole, field)
            assert getattr(parts, field) == pytest.approx(wanted, rel=1e-9, abs=1e-9 * size**power)


def test_many_parts_of_rewards_far_from_zero():
    rng = np.random.default_rng(0)
    reward, weight = 1e9 + rng.normal(size=1000), rng.uniform(0.5, 2, size=1000)
    parts = [SNIPS.sums(WeightedEvents(reward[k : k + 1], weight[k : k + 1])) for k in range(1000)]
    total = sum(parts[1:], parts[0])
    residual = weight * (reward - 1e9 - np.average(reward - 1e9, weights=weight))
    error = np.sqrt((residual**2).sum() * 1000 / 999) / weight.sum()
    assert total.standard_error == pytest.approx(error, rel=1e-5)
    assert total.value == pytest.approx(np.average(reward, weights=weight), rel=1e-13)
    assert parts[0].standard_error is np.nan


def test_the_delta_method_agrees_with_leaving_events_out():
    rng = np.random.default_rng(0)
    reward, weight = rng.normal(size=500), rng.exponential(size=500)
    sums = SNIPS.sums(WeightedEvents(reward, weight))
    total, weights = weight @ reward, weight.sum()
    without = (total - weight * reward) / (weights - weight)
    jackknife = np.sqrt(((without - without.mean()) ** 2).sum() * 499 / 500)
    assert sums.standard_error == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("spread", [0.0, 0.01, 3.0])
def test_the_error_of_the_mean_weight_is_its_standard_error(spread):
    rng = np.random.default_rng(0)
    weight = 2 + spread * rng.exponential(size=400)
    sums = SNIPS.sums(WeightedEvents(np.zeros(400), weight))
    assert sums.mean_weight == pytest.approx(weight.mean())
    assert sums.mean_weight_error == pytest.approx(weight.std() / 20, abs=1e-8)
