"""Arms with features: a shared model compared with one model per arm.

    python -m benchmarks.arm_features [--first 100] [--seeds 12] [--events 3000] [--speed]

Worlds of four kinds, with rewards of 0 and 1:

- "new": 120 arms, of which some 24 are live at a time, and every 200 of 3,000 events some leave and
  others come. The reward depends on products of 10 features of the context and 8 of the arm, on the
  arm's features, and on an offset of the arm that nothing describes.
- "often": 20 arms, always available, with 5 features, 8 features of the context, and weights of
  each arm's own, that nothing describes.
- "drift": 20 arms, always available, with 5 features, and 5 features of the context. Their products
  have weights that turn towards others, by a full turn over all events.
- "categories": 10 of 200 arms are available to each event, described by 18 indicators; contexts are
  an age, a sex and one of 21 occupations.

Printed is the mean probability of a reward of the arm chosen, its difference from that of
`GLMUCBPolicy`, which sees no features of arms, with the standard error over worlds, and seconds.
"""

import argparse
import time

import numpy as np
import pandas as pd
from scipy.special import expit

from skbandit.bandit import GLMUCBPolicy, SharedGLMPolicy

KINDS = ("often", "new", "drift", "categories")


def made_world(kind, seed, n):
    """Contexts, features of arms, probabilities of a reward, and the live arms of each event."""
    rng = np.random.default_rng([11, seed])
    if kind == "often":
        n_arms, d, e = 20, 8, 5
        Z, X = rng.normal(size=(n_arms, e)), rng.normal(size=(n, d))
        B, own = rng.normal(size=(d, e)) / np.sqrt(d * e), rng.normal(size=(d, n_arms)) / np.sqrt(d)
        theta = rng.choice([0.3, 1]) * X @ B @ Z.T + X @ own * rng.choice([0.3, 1]) - 1.5
        theta += Z @ rng.normal(size=e) * 0.2 + rng.normal(size=n_arms) * rng.choice([0.3, 1])
        live = [np.arange(n_arms)] * n
    elif kind == "drift":
        n_arms, d, e = 20, 5, 5
        Z, X = rng.normal(size=(n_arms, e)), rng.normal(size=(n, d))
        here, there = (X @ rng.normal(size=(d, e)) @ Z.T / np.sqrt(d) for _ in range(2))
        angle = 2 * np.pi * np.arange(n)[:, None] / n
        theta = np.cos(angle) * here + np.sin(angle) * there - 1.5
        live = [np.arange(n_arms)] * n
    elif kind == "categories":
        n_arms, d, e = 200, 23, 18
        Z = (rng.random((n_arms, e)) < rng.uniform(0.03, 0.4, e)).astype(float)
        age, sex = rng.normal(size=(n, 1)), rng.random((n, 1)) < 0.3
        X = np.hstack([age, sex, np.eye(21)[rng.integers(21, size=n)]])
        x, z = (X - X.mean(0)) / X.std(0), (Z - Z.mean(0)) / np.maximum(Z.std(0), 0.1)
        B = rng.normal(size=(d, e)) / np.sqrt(d * e) * rng.choice([0.3, 0.7])
        theta = x @ B @ z.T + z @ rng.normal(size=e) * 0.15 + 0.3
        theta += rng.normal(size=n_arms) * rng.choice([0.5, 1])
        live = [rng.choice(n_arms, 10, replace=False) for _ in range(n)]
    else:
        n_arms, d, e = 120, 10, 8
        Z, X = rng.normal(size=(n_arms, e)), rng.normal(size=(n, d))
        B = rng.normal(size=(d, e)) / np.sqrt(d * e) * rng.choice([0.5, 1])
        theta = X @ B @ Z.T + Z @ rng.normal(size=e) * 0.2 - 1.5
        theta += rng.normal(size=n_arms) * rng.choice([0.2, 0.5])
        born = np.array([int(k * 17 / n_arms) - 2 for k in range(n_arms)])
        of_phase = [np.flatnonzero((born <= p) & (p < born + 3)) for p in range(15)]
        live = [of_phase[t * 15 // n] for t in range(n)]
    return X, pd.DataFrame(Z), expit(theta), live


def play(policy, X, P, live, seed):
    """Mean probability of a reward of the chosen arms."""
    chance, got = np.random.default_rng(seed).random(len(X)), np.empty(len(X))
    for t, pool in enumerate(live):
        arm = policy.select(X[t : t + 1], available=[tuple(pool.tolist())])[0]
        got[t] = P[t, arm]
        y = {"action": [arm], "reward": [float(chance[t] < P[t, arm])]}
        policy.partial_fit(X[t : t + 1], y)
    return got.mean()


POLICIES = {
    "GLMUCBPolicy": lambda Z: GLMUCBPolicy(random_state=0),
    "SharedGLMPolicy": lambda Z: SharedGLMPolicy(Z, random_state=0),
    "one prior scale": lambda Z: SharedGLMPolicy(Z, prior_scale=3, random_state=0),
    "forgetting=1": lambda Z: SharedGLMPolicy(Z, forgetting=1, random_state=0),
    "no own weights": lambda Z: SharedGLMPolicy(Z, own_variance=0.0, random_state=0),
}


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
    parser.add_argument("--first", type=int, default=100, help="seed of the first world")
    parser.add_argument("--seeds", type=int, default=12, help="worlds of each kind")
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--quick", action="store_true", help="2 worlds of 300 events")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    n_worlds, n_events = (2, 300) if options.quick else (options.seeds, options.events)
    rows = []
    for kind in options.kinds:
        for seed in range(options.first, options.first + n_worlds):
            X, Z, P, live = made_world(kind, seed, n_events)
            for name in options.policies:
                began = time.process_time()
                mean = play(POLICIES[name](Z), X, P, live, seed)
                rows.append((kind, seed, name, mean, time.process_time() - began))
    table = pd.DataFrame(rows, columns=["kind", "seed", "policy", "mean", "seconds"])
    of_glm = table[table["policy"] == "GLMUCBPolicy"].set_index(["kind", "seed"])["mean"]
    table = table.join(of_glm.rename("glm"), on=["kind", "seed"])
    table["ahead"] = table["mean"] - table.pop("glm")
    groups = table.groupby(["kind", "policy"], sort=False)
    found = groups[["mean", "ahead", "seconds"]].mean()
    found.insert(2, "error", groups["ahead"].sem())
    print(found.round(4).to_string())


if __name__ == "__main__":
    main()
