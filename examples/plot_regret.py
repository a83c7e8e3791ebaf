"""
How regret grows
================

Regret is what a policy has lost so far against one that always knows the best arm. A policy that
explores a fixed share of the time loses in proportion to the time T. Policies that explore what
they do not know lose less and less: the best that can be promised for linear models is about
sqrt(T). Li, Chu, Langford, Moon & Wang (2012) leave proofs for generalised linear models to future
work; here is what is seen, in eight made worlds with five arms each.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay

HORIZON = 10_000
POLICIES = {
    "random, 20 %": {"exploration": "epsilon_greedy", "epsilon": 0.2},
    "UCB, alpha = 1": {"alpha": 1.0},
    "UCB, alpha = 0.2 (default)": {},
    "Thompson sampling": {"exploration": "thompson"},
}


def regret(log, settings):
    """Expected regret after each of the events that replay kept, by the truth behind the log."""
    policy = GLMUCBPolicy(covariance="full", random_state=0, **settings)
    kept = replay(policy, log.X, log.y, max_accepted=HORIZON, random_state=0).history
    truth = np.asarray(log.expected_reward)[kept["event"]]
    earned = truth[np.arange(len(kept)), kept["action"].astype(int)]
    return np.cumsum(truth.max(axis=1) - earned)


logs = [
    make_bandit_log(11 * HORIZON // 2, n_arms=5, n_features=3, base_rate=0.3, random_state=seed)
    for seed in range(8)
]
curves = {name: np.array([regret(log, s) for log in logs]) for name, s in POLICIES.items()}

# %%
# On logarithmic axes a power of T is a line, and its slope is the power: towards 1 for random
# exploration, 1/2 or so for UCB with alpha = 1 and for Thompson sampling. The default explores
# less: in some of these worlds it settles on the second best arm, and pays for it in the long run.
# Where millions of events and few arms are to come, a larger alpha is worth its price.

figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
steps = np.arange(1, HORIZON + 1)
for colour, (name, found) in zip(
    ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), curves.items(), strict=True
):
    mean = found.mean(axis=0)
    ax.plot(steps[99:], mean[99:], color=colour, label=name)
    slope = np.log(mean[-1] / mean[999]) / np.log(HORIZON / 1000)
    print(f"{name:27} regret {mean[-1]:6.1f}, from the 1,000th event on like T^{slope:.2f}")
ax.plot(steps[99:], 1.2 * np.sqrt(steps[99:]), ":", color="0.5", label="slope of sqrt(T)")
ax.set(xscale="log", yscale="log", xlabel="events T", ylabel="regret, mean of 8 worlds")
ax.legend(frameon=False)
plt.show()
