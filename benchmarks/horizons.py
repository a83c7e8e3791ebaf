"""What rules of exploration cost over short and long horizons and under drift; their logs' worth.

    python -m benchmarks.horizons [--quick] [--keep]

Synthetic worlds with 10 arms and 10 features, rewards of 0 and 1 with a mean near .05 or .3.
Printed are the regret per event, the mean reward of the best arm of each context less what was
earned, and for logs of 3,000 events as how many events each counts in the estimate of the uniform
policy: its effective sample size, in percent. The log of a deterministic rule has propensities of
1, and says nothing of other arms: it counts as none.

For drift, the weights of all arms turn towards others, in worlds of 3 to 20 arms and 3 to 30
features: not at all, by a quarter turn over all events, by a full one, or by a quarter at once in
the middle. Printed is the regret of a policy in percent of that of uniform choices.
"""

import argparse
import time

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks._kept import keep
from benchmarks._online import play
from benchmarks.bandit_defaults import made
from skbandit.bandit import GLMUCBPolicy

SHORT, MIDDLE, LONG, LOGGED = 1000, 10_000, 100_000, 3000

DRIFTING = 20_000

TURNS = {
    "no drift": lambda t: 0.0 * t,
    "quarter turn": lambda t: np.pi / 2 * t,
    "full turn": lambda t: 2 * np.pi * t,
    "jump": lambda t: np.pi / 2 * (t > 0.5),
}
"""Angle of the weights at a time from 0 to 1."""

MEMORIES = {
    "forgetting='auto' (default)": {},
    "forgetting=1": {"forgetting": 1},
    "forgetting=.995": {"forgetting": 0.995},
}

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


def turning(seed, n, turn):
    """Contexts, mean rewards and rewards drawn, of arms whose weights turn."""
    rng = np.random.default_rng([5, seed])
    n_arms, d, base = rng.choice([3, 10, 20]), rng.choice([3, 10, 30]), rng.choice([0.02, 0.1, 0.3])
    X, angle = rng.normal(size=(n, d)), turn(np.arange(n) / n)[:, None]
    effect = rng.choice([0.5, 1.0, 2.0]) / np.sqrt(d)
    here, there = (
        effect * X @ rng.normal(size=(d, n_arms)) + rng.normal(scale=0.5, size=n_arms)
        for _ in range(2)
    )
    eta = np.cos(angle) * here + np.sin(angle) * there
    mean = expit(eta + np.log(base / (1 - base)))
    return X, mean, (rng.random(mean.shape) < mean).astype(np.float64)


def drift_rows(seeds, n):
    """A row per drift, world and memory."""
    for seed in seeds:
        for name, turn in TURNS.items():
            X, mean, drawn = turning(seed, n, turn)
            best = mean.max(axis=1).mean()
            for memory, settings in MEMORIES.items():
                got = play(GLMUCBPolicy(random_state=seed, **settings), X, drawn)
                share = (best - got.mean()) / (best - mean.mean())
                found = {"part": name, "unit": f"world {seed}", "method": memory}
                yield {**found, "% of regret": 100 * share}


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
    turned, n_drifting = range(800, 840), DRIFTING
    if options.quick:
        seeds, horizons, n_logged = range(300, 302), (200, SHORT), 200
        turned, n_drifting = range(800, 802), SHORT
    began = time.process_time()
    found = [*rows(seeds, horizons, n_logged), *drift_rows(turned, n_drifting)]
    frame = pd.DataFrame(found)
    seconds = time.process_time() - began
    measures = ["regret", "counts as %", "% of regret"]
    means = frame.groupby(["part", "method"], sort=False)[measures].agg(["mean", "sem"])
    print(means.round(4).to_string())
    if options.keep and not options.quick:
        keep("horizons", frame, seconds, worlds=len(seeds))


if __name__ == "__main__":
    main()
