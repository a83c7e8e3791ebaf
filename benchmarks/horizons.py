"""What rules of exploration cost over short and long horizons and under drift; their logs' worth.

    python -m benchmarks.horizons [--changes] [--quick] [--keep]

Synthetic worlds with 10 arms and 10 features, rewards of 0 and 1 with a mean near .05 or .3.
Printed are the regret per event, the mean reward of the best arm of each context less what was
earned, and for logs of 3,000 events as how many events each counts in the estimate of the uniform
policy: its effective sample size, in percent. The log of a deterministic rule has propensities of
1, and says nothing of other arms: it counts as none.

For drift, the weights of all arms turn towards others, in worlds of 3 to 20 arms and 3 to 30
features: not at all, by a quarter turn over all events, by a full one, or by a quarter at once in
the middle. Printed is the regret of a policy in percent of that of uniform choices.

With --changes, three arms have rates that change, or do not, over 12,000 events in batches of 50;
contexts tell nothing of them, except in the last stream. Printed is the mean rate of the arms
chosen in the last 3,000 events, beside rivals that are installed.
"""

import argparse
import time
import warnings
from importlib.util import find_spec

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


def slow_drift(s):
    """Rates that move in a circle, each a third of it behind the other."""
    return 0.2 + 0.1 * np.cos(2 * np.pi * (s + np.arange(3) / 3))


TASTE = np.random.default_rng(7).normal(size=(2, 3)) * 0.7

STREAMS = {
    "stationary": lambda s: [0.3, 0.2, 0.1],
    "one change": lambda s: [0.3, 0.2, 0.1] if s < 0.25 else [0.1, 0.2, 0.3],
    "two changes": lambda s: (
        [0.3, 0.2, 0.1] if s < 0.25 else [0.1, 0.2, 0.3] if s < 0.5 else [0.1, 0.3, 0.1]
    ),
    "slow drift": slow_drift,
    "new arm": lambda s: [0.3, 0.2] if s < 0.25 else [0.3, 0.2, 0.4],
    "an unplayed arm rises": lambda s: [0.3, 0.2, 0.1] if s < 0.25 else [0.3, 0.2, 0.6],
    "stationary, by context": None,
}
"""Rates of the arms that are there, after a share of the events."""

RULES_OF_FOLLOWERS = {
    "ucb, alpha=.2": {},
    "ucb, alpha=.4": {"alpha": 0.4},
    "thompson": {"exploration": "thompson"},
    "squarecb": {"exploration": "squarecb"},
    "epsilon_greedy": {"exploration": "epsilon_greedy"},
}

FOLLOWERS = {
    f"{link}, {rule}": {"link": link, **settings}
    for link in ("logistic", "linear")
    for rule, settings in RULES_OF_FOLLOWERS.items()
} | {
    "probit, ucb, alpha=.2": {"link": "probit"},
    "logistic, ucb, forgetting=1": {"forgetting": 1.0},
    "logistic, ucb, forgetting=.99": {"forgetting": 0.99},
}


class Ours:
    """GLMUCBPolicy behind the methods that all players have."""

    def __init__(self, seed, settings):
        self.policy = GLMUCBPolicy(random_state=seed, **settings)

    def choose(self, X, n_arms):
        """Arms of a batch."""
        return self.policy.select(X[:, :2], available=list(range(n_arms))).astype(int)

    def learn(self, X, arm, reward):
        """Rewards of a batch."""
        self.policy.partial_fit(X[:, :2], arm, reward=reward)


class Mabwiser:
    """mabwiser's LinUCB or LinTS; it begins with a batch of random choices."""

    def __init__(self, seed, name):
        from mabwiser.mab import MAB, LearningPolicy

        self.mab = MAB([0], getattr(LearningPolicy, name)(), seed=seed)
        self.rng, self.n_arms, self.fitted = np.random.default_rng(seed), 1, False

    def choose(self, X, n_arms):
        """Arms of a batch."""
        for arm in range(self.n_arms, n_arms):
            self.mab.add_arm(arm)
        self.n_arms = n_arms
        if not self.fitted:
            return self.rng.integers(n_arms, size=len(X))
        return np.array(self.mab.predict(X))

    def learn(self, X, arm, reward):
        """Rewards of a batch."""
        (self.mab.partial_fit if self.fitted else self.mab.fit)(arm, reward, X)
        self.fitted = True


class River:
    """river's LinUCB, one model per arm."""

    def __init__(self, seed, alpha):
        from river.bandit import LinUCBDisjoint

        self.bandit = LinUCBDisjoint(alpha=alpha, seed=seed)

    def choose(self, X, n_arms):
        """Arms of a batch."""
        rows = [dict(enumerate(x)) for x in X]
        return np.array([self.bandit.pull(list(range(n_arms)), context=x) for x in rows])

    def learn(self, X, arm, reward):
        """Rewards of a batch."""
        for x, k, r in zip(X, arm.tolist(), reward.tolist(), strict=True):
            self.bandit.update(k, dict(enumerate(x)), r)


class VowpalWabbit:
    """VW's exploration with features of actions, crossed with those of contexts."""

    def __init__(self, seed, options):
        from vowpalwabbit import Workspace

        self.vw = Workspace(f"--cb_explore_adf {options} -q sa --quiet --random_seed {seed}")
        self.rng = np.random.default_rng(seed)

    def _example(self, x, n_arms, told=None):
        shared = "shared |s " + " ".join(f"{k}:{value:.5g}" for k, value in enumerate(x))
        arms = [f"|a {k}" for k in range(n_arms)]
        if told is not None:
            arm, cost, p = told
            arms[arm] = f"0:{cost}:{p} {arms[arm]}"
        return [shared, *arms]

    def choose(self, X, n_arms):
        """Arms of a batch."""
        self.n_arms = n_arms
        p = np.array([self.vw.predict(self._example(x, n_arms)) for x in X])
        p /= p.sum(axis=1, keepdims=True)
        arm = np.array([self.rng.choice(n_arms, p=row) for row in p])
        self.p = p[np.arange(len(X)), arm]
        return arm

    def learn(self, X, arm, reward):
        """Rewards of a batch."""
        for x, k, r, p in zip(X, arm.tolist(), reward.tolist(), self.p.tolist(), strict=True):
            self.vw.learn(self._example(x, self.n_arms, (k, -r, p)))


RIVALS = {
    "mabwiser LinUCB, alpha=1": ("mabwiser", lambda seed: Mabwiser(seed, "LinUCB")),
    "mabwiser LinTS, alpha=1": ("mabwiser", lambda seed: Mabwiser(seed, "LinTS")),
    "river LinUCBDisjoint, alpha=1": ("river", lambda seed: River(seed, 1.0)),
    "VW squarecb": ("vowpalwabbit", lambda seed: VowpalWabbit(seed, "--squarecb")),
    "VW epsilon=.05": ("vowpalwabbit", lambda seed: VowpalWabbit(seed, "--epsilon 0.05")),
}


def rate_at_the_end(player, rates, seed, n, batch=50):
    """Mean rate of the arms that a player chooses in the last quarter of a stream.

    The last column of contexts is constant, for rivals that have no intercept.
    """
    rng, got = np.random.default_rng(seed), []
    for first in range(0, n, batch):
        X = np.column_stack([rng.normal(size=(batch, 2)), np.ones(batch)])
        mean = (
            expit(X[:, :2] @ TASTE - 1) if rates is None else np.tile(rates(first / n), (batch, 1))
        )
        arm = player.choose(X, mean.shape[1])
        mean = mean[np.arange(batch), arm]
        player.learn(X, arm, (rng.random(batch) < mean).astype(float))
        got.append(mean.mean())
    return float(np.mean(got[-(len(got) // 4) :]))


def changing_rows(parts, n_seeds, n_of_rivals, n):
    """A row per stream, seed and method."""
    for part in parts:
        players = {
            name: (n_seeds, lambda seed, k=kept: Ours(seed, k)) for name, kept in FOLLOWERS.items()
        }
        for name, (module, make) in RIVALS.items():
            if find_spec(module):
                players[name] = n_of_rivals, make
        for method, (n_runs, make) in players.items():
            for seed in range(n_runs):
                rate = rate_at_the_end(make(seed), STREAMS[part], seed, n)
                yield {"part": part, "unit": f"seed {seed}", "method": method, "rate": rate}


def board_of_changes(options):
    """Print the board of changes, and keep its rows."""
    began, sizes = time.process_time(), (2, 1, 1000) if options.quick else (6, 2, 12_000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rewards have changed")
        frame = pd.DataFrame(changing_rows(STREAMS, *sizes))
    of_method = frame.groupby(["method", "part"], sort=False)["rate"].agg(["mean", "min"])
    print(of_method.round(3).unstack().to_string())
    if options.keep and not options.quick:
        keep(
            "changes", frame, time.process_time() - began, seeds=sizes[0], seeds_of_rivals=sizes[1]
        )


def main():
    """Print the means, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", action="store_true", help="the board of changes only")
    parser.add_argument("--quick", action="store_true", help="two worlds, short horizons")
    parser.add_argument("--keep", action="store_true", help="write results/horizons.csv")
    options = parser.parse_args()
    if options.changes:
        return board_of_changes(options)
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
