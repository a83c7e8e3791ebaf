"""Probabilities of Thompson sampling against quadrature, and draws of any width."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit.exploration._thompson import probabilities
from tests.tiers import first


def computed(m, s, alpha=1.0):
    m, s = np.asarray(m, dtype=float), np.asarray(s, dtype=float)
    out = np.zeros(len(m))
    probabilities(np.arange(len(m)), m, s**2, alpha, np.empty((3, len(m))), out)
    return out


def integrated(m, s):
    """∫ F d log Φ_k by the trapezoidal rule on the nodes of all arms together."""
    t = np.unique(m[:, None] + s[:, None] * np.linspace(-9, 9, 4001))
    t = t[(t >= (m - 9 * s).max()) & (t <= (m + 9 * s).max())]
    log_phi = log_ndtr((t[:, None] - m) / s)
    f = np.exp(log_phi.sum(axis=1))
    p = ((f[1:] + f[:-1]) / 2) @ np.diff(log_phi, axis=0)
    return p / p.sum()


@pytest.mark.parametrize("seed", first(8, range(200)))
def test_the_error_is_below_two_thousandths(seed):
    """Few and many arms, of equal and of very different widths, near and apart."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.choice([2, 3, 5, 20, 50]))
    m = rng.normal(size=n_arms) * rng.choice([0.01, 0.3, 1, 3]) + rng.choice([0, 1e4])
    s = np.exp(rng.normal(size=n_arms) * rng.choice([0, 0.5, 2, 4])) * rng.choice([0.03, 0.3, 1])
    got = computed(m, s)
    assert got.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(got, integrated(m, s), atol=0.002)


def test_two_arms_are_known_in_closed_form():
    for gap in (0.0, 0.5, 2.0, 7.0):
        expected = ndtr(gap / np.hypot(0.6, 1.3))
        np.testing.assert_allclose(
            computed([gap, 0.0], [0.6, 1.3]), [expected, 1 - expected], atol=0.001
        )


def test_arms_that_are_known_exactly():
    np.testing.assert_array_equal(computed([1.0, 2.0, 2.0], [0.0, 0.0, 0.0]), [0, 0.5, 0.5])
    np.testing.assert_array_equal(computed([1.0, 2.0, 0.0], [5.0, 1.0, 9.0], alpha=0.0), [0, 1, 0])
    # two known arms and one that is above them when its draw is above one deviation
    above = 1 - ndtr(1.0)
    expected = [(1 - above) / 2, above, (1 - above) / 2]
    np.testing.assert_allclose(computed([0.0, -0.1, 0.0], [0.0, 0.1, 0.0]), expected, atol=0.001)
    # what is known to be worse is never chosen
    assert computed([0.0, -0.7], [0.1, 0.1])[1] < 1e-6


def test_it_depends_on_leads_and_widths_only():
    m, s = np.array([0.3, 0.1, -0.4]), np.array([0.2, 0.5, 1.0])
    np.testing.assert_allclose(computed(m + 1e6, s), computed(m, s), atol=1e-8)
    np.testing.assert_allclose(computed(m * 1e-9, s * 1e-9), computed(m, s), atol=1e-12)


def test_alpha_is_the_width_of_draws():
    """Scores are m + α √v z with the z of α = 1; probabilities are those of the draws."""
    rng = np.random.default_rng(0)
    X, action = rng.normal(size=(400, 3)), rng.integers(4, size=400)
    policy = GLMUCBPolicy(exploration="thompson", random_state=0)
    policy.fit(X, action, reward=(rng.random(400) < 0.3).astype(float))
    mean = policy.decision_function(X)
    whole = policy.set_params(alpha=1.0).select_scores(X) - mean
    narrow = policy.set_params(alpha=0.2).select_scores(X) - mean
    np.testing.assert_allclose(narrow, 0.2 * whole, atol=1e-12)
    assert whole.std() > 0.1
    likely = policy.set_params(alpha=0.5).select_proba(X[:1])[0]
    choices = policy.select(np.repeat(X[:1], 20_000, axis=0))
    counts = np.array([(choices == arm).sum() for arm in policy.arms_])
    seen = likely > 1e-4
    assert counts[~seen].sum() < 20
    # false alarms of another seed: 2 in a million
    rest = likely[seen] / likely[seen].sum()
    assert stats.chisquare(counts[seen], rest * counts[seen].sum()).pvalue > 2e-6
