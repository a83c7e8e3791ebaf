"""The shape of Figures 1 to 3 of Li et al. (2012), on logs with arms that arrive and retire.

Their log cannot be shipped, so figures are means over four simulated logs, each with its own arms.
A policy's figure is the expected reward of the events that replay kept, relative to the best arm's,
which is free of click noise. Worlds differ a lot, so most of the paper's ranking holds only on
average; findings that are not reproduced are named. Seeds are fixed; with others, every statement
holds with a margin of at least two standard errors (from 16 worlds).
"""

import numpy as np
import pytest

from skbandit.bandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.policies import PAPER

pytestmark = pytest.mark.nightly

N_FEATURES = 3
LINKS = ["linear", "logistic", "probit"]
# Expects clicks half the time, as N(0, I) does for the other links (section 5.3).
OPTIMISTIC = (0.0, 0.0, 0.0, 0.5), (1.0, 1.0, 1.0, 0.01)


def of_world(policies, seed):
    """Share of the optimum that each policy earns in the learning and the deployment bucket."""
    log = make_bandit_log(
        500_000, 20, N_FEATURES, n_available=10, arm_effect=1.5, random_state=seed
    )
    X = log.X.to_numpy() / np.sqrt(N_FEATURES)
    share = log.expected_reward / np.nanmax(log.expected_reward, axis=1).mean()
    found = {}
    for name, parameters in policies.items():
        policy = GLMUCBPolicy(random_state=0, **PAPER | parameters)
        kept = replay(policy, X, log.y, deployment_share=0.3, random_state=seed).history
        kept["share"] = share[kept["event"], kept["action"].astype(int)]
        mean = kept.groupby("bucket", observed=True)["share"].mean()
        found[name] = mean["learning"], mean["deployment"]
    return found


@pytest.fixture(scope="module")
def figures():
    """(learning, deployment) of each policy, each an array with one figure per world."""
    by_chance = {"exploration": "epsilon_greedy"}
    start = dict(zip(("prior_mean", "prior_variance"), OPTIMISTIC, strict=True))
    policies = {}
    for link in LINKS:
        for epsilon in (0.0, 0.05):
            policies[link, "epsilon", epsilon] = {"link": link, "epsilon": epsilon, **by_chance}
        for alpha in (0.2, 1.0, 2.0):
            policies[link, "alpha", alpha] = {"link": link, "alpha": alpha}
    for epsilon in (0.0, 0.05):
        policies["optimistic", "epsilon", epsilon] = {
            "link": "linear", "epsilon": epsilon, **by_chance, **start
        }  # fmt: skip
    policies["optimistic", "alpha", 0.2] = {"link": "linear", "alpha": 0.2, **start}
    for alpha in (0.05, 0.2, 1.0):
        for ucb in ("U0", "U1", "U2", "U3"):
            policies[ucb, "alpha", alpha] = {"ucb": ucb, "alpha": alpha}
    for mean in ("M0", "M1", "M2", "M3"):
        policies[mean, "alpha", 1.0] = {"mean": mean}
    worlds = [of_world(policies, seed) for seed in range(4)]
    return {name: np.transpose([world[name] for world in worlds]) for name in policies}


def best(figures, name, exploration, bucket=0):
    """Figures at the amount of exploration that is best over all worlds."""
    own = [found[bucket] for key, found in figures.items() if key[:2] == (name, exploration)]
    return max(own, key=np.mean)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_models_of_clicks_are_above_the_linear_one(figures, link):
    """At equal exploration; the linear model comes close, or level, at its own best alpha."""

    def gain(name, amounts, bucket=0):
        own, linear = (
            np.mean([figures[model, name, amount][bucket] for amount in amounts], axis=0)
            for model in (link, "linear")
        )
        return own - linear

    for bucket in (0, 1):
        assert gain("epsilon", [0.0, 0.05], bucket).mean() > 0.02
    assert gain("alpha", [1.0, 2.0]).min() > 0.0  # in every world
    assert gain("alpha", [1.0, 2.0]).mean() > 0.03
    for bucket in (0, 1):
        at_best = best(figures, link, "alpha", bucket) - best(figures, "linear", "alpha", bucket)
        assert at_best.mean() > -0.002


@pytest.mark.parametrize("link", LINKS)
def test_bounds_explore_at_less_cost_than_chance(figures, link):
    saved = best(figures, link, "alpha") - figures[link, "epsilon", 0.05][0]
    assert saved.mean() > 0.01


def test_deployment_gains_by_exploration(figures):
    """Random exploration gains little under an optimistic prior, which explores enough."""
    for link in ("logistic", "probit"):
        low, middle, high = (figures[link, "alpha", alpha][1] for alpha in (0.2, 1.0, 2.0))
        assert middle.mean() > low.mean()
        assert high.mean() > middle.mean()
    none, some = (figures["linear", "epsilon", epsilon][1] for epsilon in (0.0, 0.05))
    assert (some - none).mean() > 0.02


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_an_optimistic_start_earns_as_much_as_bounds(figures, link):
    """N(0, I) is optimistic for these links, as clicks are rare."""
    assert (best(figures, link, "alpha") - figures[link, "epsilon", 0.0][0]).mean() < 0.03


def test_an_optimistic_start_is_enough_for_the_linear_model(figures):
    """Further exploration only costs, and no world fails."""
    greedy = figures["optimistic", "epsilon", 0.0][0]
    for more in (("epsilon", 0.05), ("alpha", 0.2)):
        assert (greedy - figures["optimistic", *more][0]).mean() > 0.003
    assert greedy.min() > 0.8


def test_the_linear_model_fails_without_exploration_or_optimism(figures):
    """It settles on the arm clicked first; the loss depends on the world."""
    greedy = figures["linear", "epsilon", 0.0][0]
    assert greedy.min() < 0.8  # which the optimistic model exceeds in every world
    for better in (best(figures, "linear", "alpha"), figures["logistic", "epsilon", 0.0][0]):
        assert (better - greedy).mean() > 0.04
    assert figures["optimistic", "epsilon", 0.0][0].mean() > greedy.mean()


def test_every_upper_bound_works_and_u3_needs_a_very_small_alpha(figures):
    """The paper finds U1 less satisfactory than the others, which is not reproduced."""
    at = {
        ucb: [figures[ucb, "alpha", alpha][0].mean() for alpha in (0.05, 0.2, 1.0)]
        for ucb in ("U0", "U1", "U2", "U3")
    }
    assert np.ptp([max(shares) for shares in at.values()]) < 0.02
    assert at["U3"][0] > at["U3"][1] + 0.01 > at["U3"][2] + 0.15
    for ucb in ("U0", "U1", "U2"):
        assert at[ucb][2] > max(at[ucb]) - 0.03


def test_means_of_clicks_do_not_matter(figures):
    """Provided alpha lets new arms be tried soon; M2 and M3 always rank arms identically."""
    means = [figures[mean, "alpha", 1.0][1] for mean in ("M0", "M1", "M2", "M3")]
    assert np.ptp(means, axis=0).max() < 0.015
    np.testing.assert_array_equal(means[2], means[3])
