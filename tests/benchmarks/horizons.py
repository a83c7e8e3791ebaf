"""What rules of exploration cost over short and long horizons, and what their logs are worth.

    python -m tests.benchmarks.horizons [--quick] [--keep]

Synthetic worlds with 10 arms and 10 features, rewards of 0 and 1 with a mean near .05 or .3.
Printed are the regret per event, the mean reward of the best arm of each context less what was
earned, and for logs of 3,000 events as how many events each counts in the estimate of the uniform
policy: its effective sample size, in percent. The log of a deterministic rule has propensities of
1, and says nothing of other arms: it counts as none.
"""

import argparse
import time

import numpy as np
import pandas as pd

from skbandit.bandit import GLMUCBPolicy
from tests.benchmarks._kept import keep
from tests.benchmarks._online import play
from tests.benchmarks.bandit_defaults import made

SHORT, MIDDLE, LONG, LOGGED = 1000, 10_000, 100_000, 3000

RULES = {
    "ucb, alpha=.2 (default)": {},
    "ucb, alpha=.5": {"alpha": 0.5},
    "ucb, alpha=1": {"alpha": 1.0},
    "greedy": {"exploration": "greedy"},
    "thompson, alpha=.2": {"exploration": "thompson"},
    "thompson, alpha=.5": {"exploration": "thompson", "alpha": 0.5},
    "thompson, alpha=1": {"exploration": "thompson", "alpha": 1.0},
    "squarecb, alpha=.2": {"exploration": "squarecb"},
    "squarecb, alpha=.5": {"exploration": "squarecb", "alpha": 0.5},
    "epsilon_greedy, epsilon=.05": {"exploration": "epsilon_greedy", "epsilon": 0.05},
    "epsilon_greedy, epsilon=.1": {"exploration": "epsilon_greedy", "epsilon": 0.1},
}


def world(seed, n):
    """Contexts, mean rewards, and rewards drawn."""
    base = (0.05, 0.3)[seed % 2]
    problem = made(seed, n, n_arms=10, n_features=10, base=base, arm_effect=0.5, context_effect=1.0)
    drawn = np.random.default_rng([3, seed]).random(problem.reward.shape) < problem.reward
    return np.ascontiguousarray(problem.X), problem.reward, drawn.astype(np.float64)


def logged(policy, X, reward):
    """Propensities with which a policy chose while it learned."""
    policy.set_params(arms=range(reward.shape[1]))
    p = np.empty(len(X))
    for t in range(len(X)):
        arm, p[t : t + 1] = policy.select(X[t : t + 1], return_proba=True)
        policy.partial_fit(X[t : t + 1], {"action": arm, "reward": [reward[t, arm[0]]]})
    return p


def rows(seeds, horizons, n_logged):
    """A row per horizon, world and rule."""
    for seed in seeds:
        X, mean, drawn = world(seed, max(horizons))
        best = mean.max(axis=1)
        for rule, settings in RULES.items():
            got = play(GLMUCBPolicy(random_state=seed, **settings), X, drawn)
            found = {"unit": f"world {seed}", "method": rule}
            for n in horizons:
                regret = best[:n].mean() - got[:n].mean()
                yield {"part": f"{n:,} events", **found, "regret": regret}
            policy = GLMUCBPolicy(random_state=seed, **settings)
            p = logged(policy, X[:n_logged], drawn)
            weight = (p < 1) / p  # an arm that was certain tells of no other
            size = weight.sum() ** 2 / max((weight**2).sum(), 1e-9) / n_logged
            yield {"part": "what the log is worth", **found, "counts as %": 100 * size}


def main():
    """Print the means, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two worlds, short horizons")
    parser.add_argument("--keep", action="store_true", help="write results/horizons.csv")
    options = parser.parse_args()
    seeds, horizons, n_logged = range(300, 308), (SHORT, MIDDLE, LONG), LOGGED
    if options.quick:
        seeds, horizons, n_logged = range(300, 302), (200, SHORT), 200
    began = time.process_time()
    frame = pd.DataFrame(list(rows(seeds, horizons, n_logged)))
    seconds = time.process_time() - began
    means = frame.groupby(["part", "method"], sort=False)[["regret", "counts as %"]].agg(
        ["mean", "sem"]
    )
    print(means.round(4).to_string())
    if options.keep and not options.quick:
        keep("horizons", frame, seconds, worlds=len(seeds))


if __name__ == "__main__":
    main()
