"""
From a raw log to a chosen slate
================================

A log holds visitors, the one of 12 ads that each saw, its probability, and whether the visitor
clicked. This example learns from the log which three ads to show, and to whom to show a single ad.
It learns from the first half of the log and evaluates on the second half, by off-policy estimates.
The log is synthetic, so the estimates can be compared with the true values.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_value, replay
from skbandit.inspection import ReplayDisplay
from skbandit.rates import false_positive_rate, recall
from skbandit.selection import PopularitySetSelector, logged_costs

N_ADS, M = 12, 3


def logging_policy(X, available=None):
    """Probabilities of the ads: 60% uniform, 40% by a random linear score."""
    taste = np.random.default_rng(0).normal(size=(X.shape[1], N_ADS))
    return 0.6 / N_ADS + 0.4 * softmax(2 * X.to_numpy() @ taste, axis=1)


log = make_bandit_log(
    200_000, n_arms=N_ADS, n_features=5, base_rate=0.06, context_effect=0.8,
    logging=logging_policy, random_state=1,
)  # fmt: skip
log.y["action"] = log.y["action"].map(lambda k: f"ad {k}")
ads = [f"ad {k}" for k in log.arms]
train, test = slice(0, 100_000), slice(100_000, 200_000)
X, y = log.X[train], log.y[train]
X_new, y_new = log.X[test].reset_index(drop=True), log.y[test].reset_index(drop=True)
truth = log.expected_reward[test]
print(y[["action", "reward", "propensity"]].head(4).to_string(index=False))

# %%
# Sets from a log of single ads
# -----------------------------
# A set selector needs the cost of *every* ad, and the log has one per row. `logged_costs` gives an
# unbiased estimate of all costs, from the logged probabilities and a model of the clicks.

costs = logged_costs(
    y["action"], -y["reward"], y["propensity"], method="dr", X=X, ads=ads, random_state=0
)
selectors = {
    "most popular": PopularitySetSelector(n_select=M),
    "RegressionSetSelector": RegressionSetSelector(n_select=M),
    "SetSelectClassifier": SetSelectClassifier(
        LogisticRegression(), n_select=M, cross_fit=2, random_state=0
    ),
}
slates = {name: one.fit(X, costs).predict(X_new) for name, one in selectors.items()}

# %%
# A bandit policy learns from the same log. Its slate is the three ads with the highest predicted
# reward.

policy = GLMUCBPolicy(alpha=0.3, random_state=0).fit(X, y)
best_first = np.argsort(-policy.predict_reward(X_new), axis=1)
slates["GLMUCBPolicy"] = policy.arms_[best_first[:, :M]]

# %%
# Estimate the clicks of each slate
# ---------------------------------
# If a visitor looks at one of the m ads of a slate at random, the slate is a policy with
# probability 1/m on each of its ads. Off-policy estimators then apply, if clicks on an ad do not
# depend on the other ads of the slate.


def probabilities(slate):
    """The probability that a visitor looks at each ad, with one column per ad."""
    shown = (slate[:, :, None] == np.array(ads, dtype=object)).any(axis=1)
    return pd.DataFrame(shown / slate.shape[1], columns=ads)


values = {}
for name, slate in slates.items():
    for top in (slate[:, :1], slate):
        looked_at = probabilities(top)
        estimates = [
            off_policy_value(looked_at, X_new, y_new, method=method, random_state=0)
            for method in ("ips", "snips", "dr")
        ]
        row = {one.estimator: one.mean_reward for one in estimates}
        row["se of dr"] = estimates[-1].standard_error
        row["truth"] = (looked_at.to_numpy() * truth).sum(axis=1).mean()
        values[name, top.shape[1]] = row
table = pd.DataFrame(values).T.rename_axis(["", "ads"])
print(f"\nClicks per ad viewed; the log itself has {y_new['reward'].mean():.4f}:\n")
print(table.to_string(float_format="{:.4f}".format))

# %%
# What to see: the three learned slates earn more clicks than the most popular ads, and about
# equally many. The intervals of the doubly robust estimates contain the true values.

fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
styles = {1: ("o", "#0072B2", "first ad", -0.12), M: ("s", "#D55E00", f"all {M} ads", 0.12)}
for n_ads, (marker, color, label, shift) in styles.items():
    part = table.xs(n_ads, level="ads")
    height = np.arange(len(part)) + shift
    ax.errorbar(
        part["dr"], height, xerr=1.96 * part["se of dr"],
        fmt=marker, color=color, capsize=3, label=f"{label}, estimate",
    )  # fmt: skip
    ax.plot(part["truth"], height, "k|", markersize=14, label="true value" if n_ads == M else None)
ax.axvline(y_new["reward"].mean(), color="0.4", linestyle=":", label="the log")
ax.set_yticks(range(len(slates)), slates)
ax.invert_yaxis()
ax.set(xlabel="clicks per ad viewed, with 95% intervals", ylim=(len(slates) - 0.6, -0.4))
fig.legend(loc="outside upper center", ncols=2, frameon=False)

# %%
# Continue to learn
# -----------------
# To evaluate a policy that learns while it serves, use replay. One policy starts unfitted on the
# second half, and one continues from the first half.

starts = {"cold start": GLMUCBPolicy(alpha=0.3, random_state=0), "from the first half": policy}
replays = {
    name: replay(start, X_new, y_new, subsample=0.5, n_repeats=10, random_state=0)
    for name, start in starts.items()
}
print("\nOne ad per visitor, learning from each reward:\n")
for name, result in replays.items():
    low, high = result.interval(0.95)
    print(
        f"{name:>20}: {result.mean_reward:.4f} (95% interval {low:.4f} to {high:.4f}) over the "
        f"first {result.horizon:,} visitors"
    )
# %%
# What to see: the policy that continues from the first half earns more from the start.

ReplayDisplay.from_result(replays)

# %%
# Show one ad to selected visitors
# --------------------------------
# The task is to show an ad to few visitors, but to 90% of those who would click it. The log tells
# who clicked only for visitors who saw the ad, and the logging policy did not select them
# uniformly. With the weight 1/propensity these rows represent all visitors. With equal weights the
# estimate of recall is biased.
#
# Unequal weights increase the variance. The column `effective_n` of the report is the number of
# equally weighted rows with the same variance, and the intervals use it.

ad = "ad 2"


def shown_to(X, y):
    """The visitors who saw the ad, whether they clicked, and their weights."""
    rows = (y["action"] == ad).to_numpy()
    weight = 1 / y["propensity"][rows]
    return X[rows], y["reward"][rows], pd.DataFrame({"weight": weight, "equal": 1.0})


test_X, test_y, test_weights = shown_to(X_new, y_new)
clicks = truth[:, ads.index(ad)]
print(f"\n{ad!r} for 90% of those who would click it, and for few others:")
for column in ("equal", "weight"):
    goal = recall(weight=column) >= 0.9
    train_X, train_y, train_weights = shown_to(X, y)
    model = ConstrainedRampClassifier(false_positive_rate(weight=column), goal)
    model.fit(train_X, train_y, attributes=train_weights)
    report = model.constraint_report(test_X, test_y, attributes=test_weights)
    chosen = model.predict(X_new) == 1
    columns = ["constraint", "n_rows", "effective_n", "value", "ci_low", "ci_high"]
    print("\n" + report[columns].to_string(index=False, float_format="{:.3f}".format))
    true_recall = clicks[chosen].sum() / clicks.sum()
    print(f"True recall {true_recall:.3f}, with the ad shown to {chosen.mean():.1%} of visitors.")

plt.show()
