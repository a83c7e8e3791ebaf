"""
Learn a better policy from a log
================================

A log holds the rewards of the logged actions only. If it also holds their probabilities, you can
learn a better policy from it, and estimate the reward of that policy with a confidence interval.

The log is synthetic, so the true rewards are known. It has six arms and about 20% clicks. The
logging policy prefers better arms and gives each arm a positive probability.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skbandit.bandit import OffPolicyClassifier
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import OffPolicyScorer, off_policy_value

SIZES = [300, 1000, 3000, 10_000, 30_000]
log = make_bandit_log(
    50_000, n_arms=6, n_features=5, base_rate=0.2, logging="softmax", temperature=2, random_state=0
)
new = slice(30_000, None)


def earned(policy):
    """True mean reward on new events."""
    chosen = policy.predict(log.X[new])
    return log.expected_reward[new][np.arange(len(chosen)), chosen].mean()


# %%
# Learning curves
# ---------------
# `OffPolicyClassifier` estimates the rewards of all arms by one of three methods. The baseline
# "full information" is the same classifier, trained on the best arm of each event, which a log does
# not contain.
#
# What to see: the doubly robust method ("dr") learns fastest. With 30,000 events, all methods are
# within .005 of full information.

curves = {name: [] for name in ("dr", "ips", "snips", "full information")}
for n in SIZES:
    X, y, best = log.X[:n], log.y[:n], log.expected_reward[:n].argmax(axis=1)
    for method in ("dr", "ips", "snips"):
        policy = OffPolicyClassifier(method=method, random_state=0).fit(X, y)
        curves[method].append(earned(policy))
    curves["full information"].append(earned(LogisticRegression(max_iter=1000).fit(X, best)))

logged = log.y["reward"].mean()
fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for (name, values), style in zip(curves.items(), ["o-", "s-", "^-", "k:"], strict=True):
    ax.plot(SIZES, values, style, label=name)
ax.axhline(logged, color="0.5")
ax.annotate("the log", (SIZES[0], logged), xytext=(0, 4), textcoords="offset points", color="0.4")
ax.set(xscale="log", xlabel="events in the log", ylabel="mean reward on new events")
ax.set_title("Policies learned from a log")
ax.legend(frameon=False)

print(f"the log {logged:.3f}")
for name, values in curves.items():
    print(f"{name:17s}", *(f"{value:.3f}" for value in values))

# %%
# Tune the policy and estimate its reward
# ---------------------------------------
# The search scores each candidate by an off-policy estimate on the held-out fold. The score of the
# best candidate is optimistic, because it is the maximum of several estimates. Estimate its mean
# reward on later events.

search = GridSearchCV(
    OffPolicyClassifier(LogisticRegression(max_iter=1000), random_state=0),
    {"estimator__C": [1e-3, 1e-2, 1e-1, 1], "method": ["dr", "snips"]},
    scoring=OffPolicyScorer("dr", random_state=0),
    cv=3,
)
search.fit(log.X[:3000], log.y[:3000])
print(search.best_params_, f"score {search.best_score_:.3f}")

later = slice(30_000, 40_000)
for method in ("snips", "dr_shrinkage"):
    print(off_policy_value(search, log.X[later], log.y[later], method=method, random_state=0))
print(f"true mean reward {earned(search):.3f}")

# %%
# Intervals
# ---------
# The normal interval is an approximation for many events. The confidence sequence is valid for all
# numbers of events at once, so you may look at it after every event.
#
# What to see: both intervals contain the true mean reward, and the sequence is wider. With 3,000
# events or more, both exclude the mean reward of the log.

kinds = ("normal", "sequence")
fig, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for k, n in enumerate((300, 3000, 10_000)):
    part = slice(later.start, later.start + n)
    estimate = off_policy_value(search, log.X[part], log.y[part], reward_range=(0, 1))
    for j, kind in enumerate(kinds):
        low, high = estimate.interval(0.95, kind=kind)
        ax.plot([low, high], [k + 0.2 * (j - 0.5)] * 2, f"C{j}", lw=4, label=None if k else kind)
        print(f"{n:6d} events, {kind:8s} {low:.3f} to {high:.3f}")
ax.axvline(earned(search), color="k", ls=":", label="true mean reward")
ax.axvline(logged, color="0.5", label="the log")
ax.set(yticks=range(3), yticklabels=["300", "3,000", "10,000"], xlabel="mean reward")
ax.set(ylabel="events", xlim=(0, 1))
ax.legend(frameon=False, loc="upper right")
plt.show()
