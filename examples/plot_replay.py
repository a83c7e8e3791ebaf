"""
Evaluate policies on a log by replay
====================================

*Replay* evaluates a policy that learns on a log of uniformly random actions (Li et al., 2012). It
passes over the events in order, and lets the policy select an arm for each. If the arm is the
logged one, replay accepts the event: the policy learns from it, and its reward counts. All other
events are skipped.

This example shows the learning curves, the selected arms, the reward after deployment, and the
estimators for policies that do not learn. The log is synthetic, so the true rewards are known. It
has 200,000 events and about 4% clicks. 8 of 12 arms are available at a time, and an arm that
retires does not return.
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
# Each policy is replayed on ten random halves of the log. Replay accepts different numbers of
# events for different policies, and a policy learns from each of them. ``result.at(T)`` restricts a
# result to the first T accepted events, so that policies can be compared.

policies = {
    "UCB": GLMUCBPolicy(alpha=0.3, random_state=0),
    "linear, greedy": GLMUCBPolicy("linear", exploration="greedy", random_state=0),
    "random": GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, random_state=0),
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
# `ReplayDisplay` draws the results over T. What to see: UCB earns more than twice as much as the
# log, and the random policy as much as the log.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ReplayDisplay.from_result(results, ax=ax)
ax.set_title("Mean of ten replays, with its 95% interval")

# %%
# Selected arms
# -------------
# What to see: the log (left) selects each available arm equally often. UCB (right) concentrates on
# a few arms, and tries others when one of them retires. Colors are the same in both panels, and the
# arms that retire first share one color.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
arms = list(range(5, 12))
ArmSharesDisplay.from_log(log.y, arms=arms, ax=left)
left.get_legend().remove()
left.set_xticks(np.arange(0, 25, 6) * 3600, np.arange(0, 25, 6))
left.set(title="the log", xlabel="hour of the day")
ArmSharesDisplay.from_result(results["UCB"], arms=arms, ax=right)
right.set_title("UCB")

# %%
# The deployment bucket
# ---------------------
# Exploration costs reward while the policy learns. With ``deployment_share=0.3``, a random 30% of
# the events form the deployment bucket. There the policy selects greedily and does not learn, so
# its mean reward estimates the reward after deployment.

explorer = GLMUCBPolicy(alpha=2.0, random_state=0)
both = replay(
    explorer, log.X, log.y, deployment_share=0.3, subsample=0.5, n_repeats=10, random_state=0
)
print(f"\nMuch exploration (alpha = 2), after {both.horizon:,} training events:")
for name, bucket in {"learning": both, "deployment": both.deployment}.items():
    low, high = bucket.interval(0.95)
    print(f"{name:>12}: {bucket.mean_reward:.4f} (95% interval {low:.4f} to {high:.4f})")

# %%
# What to see: with alpha = 2 the mean reward in deployment (dashed) is above that in learning.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ReplayDisplay.from_result({"alpha = 2": both, "alpha = 0.3": results["UCB"]}, ax=ax)
ax.set_title("The cost of exploration")

# %%
# Policies that do not learn
# --------------------------
# A fitted policy that does not learn needs no replay. `off_policy_value` uses all events and
# weights each by the ratio of its action's probabilities under the policy and under the log. The
# second log has 100,000 events and prefers arms with likely clicks. Replay must then reject most
# matches, to make the accepted events uniform, so its standard error is large.

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
print(f"\nThe fitted policy, whose true mean reward is {truth:.4f}:\n")
for name, estimate in estimates.items():
    low, high = estimate.interval(0.95)
    print(
        f"{name:>15}: {estimate.mean_reward:.4f} ± {estimate.standard_error:.4f} "
        f"(95% interval {low:.4f} to {high:.4f})"
    )

plt.show()
