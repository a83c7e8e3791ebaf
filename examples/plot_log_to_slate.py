"""
From a raw log to a chosen slate
================================

You have only yesterday's log: who came, which of 12 ads was shown, with what probability, and
whether it was clicked. Which three ads should a visitor see today? And to whom is the best of them
to be shown at all? Everything below is learned from the log's first half and judged on its second,
by off-policy estimates; the log is made, so that the truth stands beside them.
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


def favourites(X, available=None):
    """An old rule's probabilities: mostly at random, for the rest by taste."""
    taste = np.random.default_rng(0).normal(size=(X.shape[1], N_ADS))
    return 0.6 / N_ADS + 0.4 * softmax(2 * X.to_numpy() @ taste, axis=1)


log = make_bandit_log(
    200_000, n_arms=N_ADS, n_features=5, base_rate=0.06, context_effect=0.8, logging=favourites,
    random_state=1,
)  # fmt: skip
log.y["action"] = log.y["action"].map(lambda k: f"ad {k}")
ads = [f"ad {k}" for k in log.arms]
learn, judge = slice(0, 100_000), slice(100_000, 200_000)
X, y = log.X[learn], log.y[learn]
X_new, y_new = log.X[judge].reset_index(drop=True), log.y[judge].reset_index(drop=True)
truth = log.expected_reward[judge]
print(y[["action", "reward", "propensity"]].head(4).to_string(index=False))

# %%
# Sets from a log of single ads
# -----------------------------
# A set selector wants the cost of *every* ad. The log has one per row; `logged_costs` estimates
# all of them without bias, by the probability with which it was shown and a model of the clicks.

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
# A bandit policy learns from the same log. Its slate: the three ads of the highest expected reward.

policy = GLMUCBPolicy(alpha=0.3, random_state=0).fit(X, y)
best_first = np.argsort(-policy.predict_reward(X_new), axis=1)
slates["GLMUCBPolicy"] = policy.arms_[best_first[:, :M]]

# %%
# What would they earn?
# ---------------------
# A slate, with a visitor who looks at one of its ads at random, is a policy: its probabilities are
# 1/m on each of the slate's ads. So the estimators for policies judge slates, too, as long as a
# click on one ad does not depend on those beside it.


def probabilities(slate):
    """A column an ad: the probability that a visitor looks at it."""
    shown = (slate[:, :, None] == np.array(ads, dtype=object)).any(axis=1)
    return pd.DataFrame(shown / slate.shape[1], columns=ads)


found = {}
for name, slate in slates.items():
    for top in (slate[:, :1], slate):
        looked_at = probabilities(top)
        estimates = [
            off_policy_value(looked_at, X_new, y_new, method=method, random_state=0)
            for method in ("ips", "snips", "dr")
        ]
        figures = {one.estimator: one.mean_reward for one in estimates}
        figures["its error"] = estimates[-1].standard_error
        figures["truth"] = (looked_at.to_numpy() * truth).sum(axis=1).mean()
        found[name, top.shape[1]] = figures
table = pd.DataFrame(found).T.rename_axis(["", "ads"])
print(f"\nClicks per ad viewed; the log itself has {y_new['reward'].mean():.4f}:\n")
print(table.to_string(float_format="{:.4f}".format))

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
styles = {1: ("o", "#0072B2", "the first ad", -0.12), M: ("s", "#D55E00", f"all {M} ads", 0.12)}
for n_ads, (marker, color, label, shift) in styles.items():
    part = table.xs(n_ads, level="ads")
    height = np.arange(len(part)) + shift
    ax.errorbar(
        part["dr"], height, xerr=1.96 * part["its error"],
        fmt=marker, color=color, capsize=3, label=f"{label}, doubly robust",
    )  # fmt: skip
    ax.plot(part["truth"], height, "k|", markersize=14, label="the truth" if n_ads == M else None)
ax.axvline(y_new["reward"].mean(), color="0.4", linestyle=":", label="the log itself")
ax.set_yticks(range(len(slates)), slates)
ax.invert_yaxis()
ax.set(xlabel="clicks per ad viewed, with 95 % intervals")
ax.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, 1.18), ncols=2)

# %%
# And if it went on learning?
# ---------------------------
# A policy that learns while it serves needs replay. Two of them on the second half: one knows
# nothing, one goes on from what it learned on the first.

starts = {"from nothing": GLMUCBPolicy(alpha=0.3, random_state=0), "from the first half": policy}
replays = {
    name: replay(start, X_new, y_new, subsample=0.5, n_repeats=10, random_state=0)
    for name, start in starts.items()
}
print("\nOne ad per visitor, learning from every click or none:\n")
for name, result in replays.items():
    low, high = result.interval(0.95)
    print(
        f"{name:>20}: {result.mean_reward:.4f} (95 % interval {low:.4f} to {high:.4f}) over the "
        f"first {result.horizon:,} visitors"
    )
ReplayDisplay.from_result(replays)

# %%
# Whom to show it to
# ------------------
# One ad is to be shown to as few visitors as possible, and yet to 90 % of those who would click it.
# Who would click is known only of those to whom the old rule showed it, and here it had favourites:
# they are not like the others. Counted by 1/propensity they stand for all; counted equally they
# promise what does not hold. But so many rows then say less than as many equal ones: `effective_n`
# of the report is how many equal ones would say as much, and its intervals rest on that. (A goal
# set at 90 % of the rows trained on is met a little worse by new ones: ``confidence_level=`` allows
# for it.)

ad = "ad 2"


def shown_to(X, y):
    """The visitors who saw the ad, whether they clicked, and how many others each stands for."""
    rows = (y["action"] == ad).to_numpy()
    weight = 1 / y["propensity"][rows]
    return X[rows], y["reward"][rows], pd.DataFrame({"weight": weight, "equal": 1.0})


judged_X, judged_y, judged_by = shown_to(X_new, y_new)
clicks = truth[:, ads.index(ad)]
print(f"\n{ad!r} for 90 % of those who would click it, and for few others:")
for column in ("equal", "weight"):
    goal = recall(weight=column) >= 0.9
    fitted_X, fitted_y, by = shown_to(X, y)
    model = ConstrainedRampClassifier(false_positive_rate(weight=column), goal)
    model.fit(fitted_X, fitted_y, attributes=by)
    report = model.constraint_report(judged_X, judged_y, attributes=judged_by)
    chosen = model.predict(X_new) == 1
    columns = ["constraint", "n_rows", "effective_n", "value", "ci_low", "ci_high"]
    print("\n" + report[columns].to_string(index=False, float_format="{:.3f}".format))
    kept = clicks[chosen].sum() / clicks.sum()
    print(f"In truth {kept:.3f} of the clicks, from {chosen.mean():.1%} of all visitors.")

plt.show()
