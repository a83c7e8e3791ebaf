"""
What would another policy have earned?
======================================

A log knows one policy's choices and what came of them. *Replay* walks it with another one and keeps
the events on which both agree: on them the other policy is as if it had been at work itself, it
learns from them as it would have, and their rewards are its own (Li et al., 2012). Here are its
curve, the arms it plays, what users would get from it once it is deployed, and the estimators for
policies that do not learn, on the same log.

The log is made, so that the truth is known: 200,000 events, 12 arms of which 8 are there at a time,
each retiring for good, some 4 % clicks, logged uniformly over what was there.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_value, replay
from skbandit.inspection import ArmSharesDisplay, ReplayDisplay

log = make_bandit_log(
    200_000, n_arms=12, n_available=8, n_features=4, base_rate=0.04, arm_effect=1.0, random_state=0
)

# %%
# Three policies
# --------------
# Each walks ten random halves of the log. Not all keep equally many events, and a policy that has
# seen more knows more: ``result.at(T)`` cuts the results to the same experience.

policies = {
    "upper confidence": GLMUCBPolicy(alpha=0.3, random_state=0),
    "linear, greedy": GLMUCBPolicy("linear", exploration="greedy", random_state=0),
    "at random": GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, random_state=0),
}
results = {
    name: replay(policy, log.X, log.y, subsample=0.5, n_repeats=10, random_state=0)
    for name, policy in policies.items()
}
equal = min(result.runs["n_accepted"].min() for result in results.values())
rows = []
for name, result in results.items():
    for horizon in (equal // 10, equal):
        then = result.at(horizon)
        low, high = then.interval(0.95)
        rows.append((name, horizon, then.mean_reward, low, high, then.lift))
table = pd.DataFrame(rows, columns=["policy", "T", "mean reward", "from", "to", "x the log's"])
print(table.to_string(index=False, float_format="{:.4f}".format))

# %%
# `ReplayDisplay` draws what `at` says, over all T.

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ReplayDisplay.from_result(results, ax=ax)
ax.set_title("Mean of ten replays, with its 95 % interval")

# %%
# Which arms does it play?
# ------------------------
# The log plays what is there at random. The policy soon settles on few arms, and looks for others
# when one of these retires. The same arms have the same colours.

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
arms = list(range(5, 12))
ArmSharesDisplay.from_log(log.y, arms=arms, ax=left)
left.get_legend().remove()
left.set_title("the log")
ArmSharesDisplay.from_result(results["upper confidence"], arms=arms, ax=right)
right.set_title("the policy that learns")

# %%
# The deployment bucket
# ---------------------
# A policy that explores pays for it. On a share of the events, drawn at random, its greedy choice
# is played and nothing is learned: what users would get from what has been learned so far.

explorer = GLMUCBPolicy(alpha=2.0, random_state=0)
both = replay(
    explorer, log.X, log.y, deployment_share=0.3, subsample=0.5, n_repeats=10, random_state=0
)
print(f"\nExploring a lot (alpha = 2), to date {both.horizon:,} events learned from:")
for name, bucket in {"learning": both, "deployment": both.deployment}.items():
    low, high = bucket.interval(0.95)
    print(f"{name:>12}: {bucket.mean_reward:.4f} (95 % interval {low:.4f} to {high:.4f})")

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ReplayDisplay.from_result({"alpha = 2": both, "alpha = 0.3": results["upper confidence"]}, ax=ax)

# %%
# Policies that do not learn
# --------------------------
# Fitted and left as it is, a policy needs no replay: `off_policy_value` uses every
# event, each weighted by how much more probable its action is under the policy. On a log with
# favourites, here 100,000 events of the same world by a policy that plays likely clicks more often,
# replay has to keep as few matches of each arm as the rarest one allows. The truth is at hand.

uneven = make_bandit_log(
    100_000, n_arms=12, n_available=8, n_features=4, base_rate=0.04, arm_effect=1.0,
    logging="softmax", temperature=1.5, random_state=0,
)  # fmt: skip
fixed = GLMUCBPolicy(alpha=0.3, random_state=0).fit(log.X, log.y)
chosen = [list(log.arms).index(arm) for arm in fixed.predict(uneven.X, available=uneven.available)]
truth = uneven.expected_reward[np.arange(len(chosen)), chosen].mean()

estimates = {
    "replay": replay(fixed, uneven.X, uneven.y, rule="predict", learn=False, random_state=0),
}
for method in ("ips", "snips", "dr"):
    estimates[method] = off_policy_value(
        fixed, uneven.X, uneven.y, method=method, rule="predict", random_state=0
    )
print(f"\nThe fitted policy, left as it is; in truth it earns {truth:.4f} an event:\n")
for name, estimate in estimates.items():
    low, high = estimate.interval(0.95)
    print(
        f"{name:>15}: {estimate.mean_reward:.4f} ± {estimate.standard_error:.4f} "
        f"(95 % interval {low:.4f} to {high:.4f})"
    )

plt.show()
