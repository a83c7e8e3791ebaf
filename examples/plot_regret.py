"""
How regret grows
================

Regret is the difference between the reward of a policy and the reward of the best arm, summed over
all events so far. The regret of a policy that explores a fixed share of the time T is proportional
to T. For policies that explore uncertain arms it grows more slowly. The best guarantee for linear
models is about sqrt(T). Li, Chu, Langford, Moon & Wang (2012) leave proofs for generalized linear
models to future work. This example estimates the growth on eight synthetic problems with five arms.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay

HORIZON = 10_000
POLICIES = {
    "epsilon-greedy, 20%": {"exploration": "epsilon_greedy", "epsilon": 0.2},
    "UCB, alpha = 1": {"alpha": 1.0},
    "UCB, alpha = 0.2 (default)": {},
    "Thompson sampling": {"exploration": "thompson"},
}


def regret(log, settings):
    """Expected regret after each event that replay accepted, by the true expected rewards."""
    policy = GLMUCBPolicy(covariance="full", random_state=0, **settings)
    accepted = replay(policy, log.X, log.y, max_accepted=HORIZON, random_state=0).history
    truth = np.asarray(log.expected_reward)[accepted["event"]]
    earned = truth[np.arange(len(accepted)), accepted["action"].astype(int)]
    return np.cumsum(truth.max(axis=1) - earned)


logs = [
    make_bandit_log(11 * HORIZON // 2, n_arms=5, n_features=3, base_rate=0.3, random_state=seed)
    for seed in range(8)
]
curves = {name: np.array([regret(log, s) for log in logs]) for name, s in POLICIES.items()}

# %%
# On logarithmic axes a power of T is a line, and its slope is the power.
#
# What to see: the regret of UCB with alpha = 1 grows more slowly than sqrt(T), that of Thompson
# sampling about like sqrt(T), and that of epsilon-greedy nearly like T. The default, alpha = 0.2,
# explores less. On some of these problems it settles on the second best arm, and its regret at the
# end is three times that of alpha = 1. If you expect many events and few arms, choose a larger
# alpha or Thompson sampling.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
steps = np.arange(1, HORIZON + 1)
for color, (name, curve) in zip(
    ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), curves.items(), strict=True
):
    mean = curve.mean(axis=0)
    ax.plot(steps[99:], mean[99:], color=color, label=name)
    slope = np.log(mean[-1] / mean[999]) / np.log(HORIZON / 1000)
    print(f"{name:27} regret {mean[-1]:6.1f}, from the 1,000th event on like T^{slope:.2f}")
ax.plot(steps[99:], 1.2 * np.sqrt(steps[99:]), ":", color="0.5", label="slope of sqrt(T)")
ax.set(xscale="log", yscale="log", xlabel="events T", ylabel="regret, mean of 8 problems")
ax.set_title("Regret of four policies")
ax.legend(frameon=False)
plt.show()
