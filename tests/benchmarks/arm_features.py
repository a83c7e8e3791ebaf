"""Arms described by features: a shared model beside one model per arm.

    python -m tests.benchmarks.arm_features [--seeds 3] [--events 30000] [--speed]

300 arms, of which some 53 are live at a time: every 2,000 events some leave and others come. The
reward depends on products of 10 features of the context and 8 of the arm, on the arm's features,
and on an offset of the arm that nothing describes; the units of the context differ by up to 1,000.
Printed is the mean probability of a reward of the arm chosen, of all events and of the first 300
after arms changed.
"""

import argparse
import time

import numpy as np
import pandas as pd

from skbandit.bandit import GLMUCBPolicy, SharedGLMPolicy


def made_problem(seed, n_events, n_arms=300, n_phases=15, offset_sd=0.4):
    """Contexts, arm features, true probabilities, and the live arms of each phase."""
    rng = np.random.default_rng(seed)
    Z, X = rng.normal(size=(n_arms, 8)), rng.normal(size=(n_events, 10))
    B = rng.normal(size=(10, 8)) / np.sqrt(80)
    main = rng.normal(size=8) * 0.2
    theta = X @ B @ Z.T + Z @ main + rng.normal(size=n_arms) * offset_sd - 3
    born = [int(k * (n_phases + 2) / n_arms) - 2 for k in range(n_arms)]
    live = [[k for k in range(n_arms) if born[k] <= t < born[k] + 3] for t in range(n_phases)]
    units = 10 ** np.linspace(-1.5, 1.5, 10)
    return 5 + X * units, pd.DataFrame(Z), 1 / (1 + np.exp(-theta)), live


def play(policy, X, P, live, seed=1):
    """Mean probabilities of a reward: of all events, and of the first 300 of later phases."""
    chance, got = np.random.default_rng(seed).random(len(X)), np.empty(len(X))
    length = -(-len(X) // len(live))
    for t in range(len(X)):
        pool = live[t // length]
        if policy is None:
            arm = pool[int(chance[-t] * len(pool))]
        elif isinstance(policy, str):
            arm = pool[int(np.argmax(P[t, pool]))]
        else:
            arm = policy.select(X[t : t + 1], available=[pool])[0]
        got[t] = P[t, arm]
        if policy is not None and not isinstance(policy, str):
            y = pd.DataFrame({"action": [arm], "reward": [float(chance[t] < P[t, arm])]})
            policy.partial_fit(X[t : t + 1], y)
    fresh = np.concatenate([got[k * length : k * length + 300] for k in range(1, len(live))])
    return got.mean(), fresh.mean()


def policies(Z, per_arm):
    """Policies by name."""
    yield "random", None
    yield "best by the truth", "oracle"
    yield "shared", SharedGLMPolicy(Z, random_state=0)
    yield "shared, diagonal", SharedGLMPolicy(Z, covariance="diagonal", random_state=0)
    yield "shared, no offsets", SharedGLMPolicy(Z, offset_variance=0.0, random_state=0)
    if per_arm:
        yield "GLMUCBPolicy", GLMUCBPolicy(random_state=0)


def speed():
    """Processor milliseconds of one choice among 10,000 arms with 20 features."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame(rng.normal(size=(10_000, 20)))
    for d in (5, 10, 20):
        X = rng.normal(size=(1000, d))
        policy = SharedGLMPolicy(Z, random_state=0)
        policy.partial_fit(X, pd.DataFrame({"action": np.arange(1000), "reward": X[:, 0] > 0}))
        policy.select(X[:1])
        began = time.process_time()
        for row in range(100):
            policy.select(X[row : row + 1])
        choice = (time.process_time() - began) / 100
        began = time.process_time()
        for row in range(100):
            y = pd.DataFrame({"action": [row], "reward": [1.0]})
            policy.partial_fit(X[row : row + 1], y)
        learned = (time.process_time() - began) / 100
        print(
            f"{d:3d} features of contexts: "
            f"choice {1e3 * choice:.2f} ms, event {1e3 * learned:.2f} ms"
        )


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--events", type=int, default=30_000)
    parser.add_argument("--per-arm", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    rows = []
    for seed in range(options.seeds):
        X, Z, P, live = made_problem(seed, options.events)
        for name, policy in policies(Z, options.per_arm):
            began = time.process_time()
            mean, fresh = play(policy, X, P, live)
            seconds = time.process_time() - began
            rows.append({"policy": name, "all": mean, "after": fresh, "seconds": seconds})
    print(pd.DataFrame(rows).groupby("policy", sort=False).mean().round(3))


if __name__ == "__main__":
    main()
