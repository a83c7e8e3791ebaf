"""Regret of policies grows as sqrt(T) at most where they explore by what they do not know.

Li et al. (2012) leave bounds for generalized linear policies to future work. No theorem is checked
here, but the growth itself, over five made worlds with fixed arms: regret at 16 T over that at T
is 4 for sqrt(T), 16 for linear regret. Seeds are fixed.
"""

import numpy as np
import pytest

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay

HORIZON, TIMES = 1_000, 16


def regrets(seed, **settings):
    """Cumulative expected regret at `HORIZON` and at `TIMES` that, on a log of uniform choices."""
    log = make_bandit_log(5 * TIMES * HORIZON * 21 // 20, 5, 3, base_rate=0.3, random_state=seed)
    policy = GLMUCBPolicy(covariance="full", random_state=seed, **settings)
    result = replay(policy, log.X, log.y, max_accepted=TIMES * HORIZON, random_state=seed)
    kept = result.history
    truth = np.asarray(log.expected_reward)[kept["event"]]
    lost = truth.max(axis=1) - truth[np.arange(len(kept)), kept["action"].astype(int)]
    total = np.cumsum(lost)
    return total[HORIZON - 1], total[-1]


def growth(**settings):
    short, long = np.transpose([regrets(seed, **settings) for seed in range(5)])
    return long.sum() / short.sum()


@pytest.mark.parametrize(
    "settings", [{"alpha": 1.0}, {"exploration": "thompson"}], ids=["ucb", "thompson"]
)
def test_regret_grows_no_faster_than_the_root(settings):
    assert growth(**settings) < np.sqrt(TIMES)


def test_regret_of_the_default_grows_about_as_the_root():
    """alpha = 0.2 explores less, and in some world settles on the second best arm."""
    assert growth() < 1.5 * np.sqrt(TIMES)


def test_random_exploration_pays_in_proportion():
    assert growth(exploration="epsilon_greedy", epsilon=0.2) > 10
