"""
Tune a policy on a log, then serve and save it
==============================================

A grid search on yesterday's log selects the reward model, the amount of exploration and the prior
of a policy. `ReplayScorer` replays an unfitted copy of each candidate, so the score includes both
the cost and the benefit of exploring. (A fitted policy has explored already. More exploration would
only lower its score, and the search would always select none.)

The log is synthetic. It has 200,000 events, 20 arms of which 12 are available at a time, and about
3% clicks. The logged arm is uniform among the available arms.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplaySplit, replay

log = make_bandit_log(
    200_000, n_features=2, n_available=12, base_rate=0.03, arm_effect=1.0, random_state=0
)
yesterday, today = slice(0, 100_000), slice(100_000, 200_000)

# %%
# Tuning
# ------
# Each candidate is replayed on ten random halves of yesterday's log. Compare differences between
# candidates with the spread over the halves.

FOLDS = 10
search = GridSearchCV(
    GLMUCBPolicy(random_state=0),
    {
        "link": ["linear", "logistic"],
        "alpha": [0.0, 0.1, 0.3, 1.0, 3.0],
        "prior_variance": ["scaled", 1.0],
    },
    scoring=ReplayScorer(random_state=0),
    cv=ReplaySplit(FOLDS, subsample=0.5, random_state=0),
    refit=False,
)
search.fit(log.X[yesterday], log.y[yesterday])

tried = pd.DataFrame(search.cv_results_).rename(columns=lambda name: name.removeprefix("param_"))
tried = tried.rename(columns={"mean_test_score": "click rate", "std_test_score": "spread"})
tried["error"] = tried["spread"] / np.sqrt(FOLDS)
columns = ["link", "prior_variance", "alpha", "click rate", "spread", "error"]
base_rate = log.y["reward"][yesterday].mean()
print(f"The log has {base_rate:.4f} clicks per event. Replayed on ten halves of it:\n")
print(
    tried.sort_values("click rate", ascending=False)[columns].to_string(
        index=False, float_format="{:.4f}".format
    )
)

# %%
# What to see: little exploration is best, and more than alpha = 0.3 lowers the click rate. The
# logistic model is as good as the linear one or better at each alpha, and varies
# less for small alpha.

fig, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
styles = {
    ("linear", "scaled"): ("#D55E00", "s"), ("linear", 1.0): ("#E69F00", "o"),
    ("logistic", "scaled"): ("#0072B2", "d"), ("logistic", 1.0): ("#009E73", "^"),
}  # fmt: skip
for shift, ((link, variance), (color, marker)) in enumerate(styles.items()):
    part = tried[(tried["link"] == link) & (tried["prior_variance"] == variance)]
    ax.errorbar(
        np.arange(len(part)) + 0.05 * (shift - 1.5),
        part["click rate"],
        part["spread"],
        color=color,
        marker=marker,
        capsize=3,
        linewidth=1,
        label=f"{link}, prior variance {variance}",
    )
ax.axhline(base_rate, color="0.5", linestyle=":", linewidth=1)
ax.annotate("the log", (0, base_rate), va="bottom", color="0.4")
ax.set_xticks(range(len(part)), [f"{alpha:g}" for alpha in part["alpha"]])
ax.set(
    xlabel="alpha (amount of exploration)",
    ylabel="click rate of a cold start",
    title=f"Mean and spread over {FOLDS} halves of the log",
)
ax.legend(frameon=False, loc=(0.02, 0.17))

# %%
# Evaluate the best candidate on today's log, which the search has not used. The intervals with and
# without exploration overlap.

best = GLMUCBPolicy(random_state=0, **search.best_params_)
print(f"\nOn today's log, with {log.y['reward'][today].mean():.4f} clicks per event:\n")
for name, policy in {
    "best candidate": best,
    "same, alpha=0": GLMUCBPolicy(random_state=0, **search.best_params_ | {"alpha": 0.0}),
    "random": GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, random_state=0),
}.items():
    result = replay(policy, log.X[today], log.y[today], subsample=0.5, n_repeats=10, random_state=0)
    low, high = result.interval(0.95)
    print(f"{name:>20}: {result.mean_reward:.4f} (95% interval {low:.4f} to {high:.4f})")

# %%
# Serving
# -------
# Fit the policy on yesterday's log. For each visitor it selects one of the available arms and
# learns from the reward. After 500 visitors the policy is saved. The saved copy and the original
# then make the same choices.

policy = best.fit(log.X[yesterday], log.y[yesterday])
visitors = range(100_000, 101_000)
uniform = np.random.default_rng(1).random(log.expected_reward.shape[0])
column = {arm: k for k, arm in enumerate(log.arms)}


def serve(policy, visitors):
    """Select and learn per visitor, and return the arms and the number of clicks."""
    shown, clicks = [], 0
    for t in visitors:
        visitor, available = log.X.iloc[t : t + 1], log.available.iloc[t : t + 1]
        arm = policy.select(visitor, available=available)
        clicked = uniform[t] < log.expected_reward[t, column[arm[0]]]
        policy.partial_fit(visitor, pd.DataFrame({"action": arm, "reward": [clicked]}))
        shown.append(arm[0])
        clicks += clicked
    return shown, clicks


with TemporaryDirectory() as folder:
    path = Path(folder) / "policy.joblib"
    serve(policy, visitors[:500])
    joblib.dump(policy, path)
    shown, clicks = serve(policy, visitors[500:])
    shown_by_copy, _ = serve(joblib.load(path), visitors[500:])
same = sum(one == other for one, other in zip(shown, shown_by_copy, strict=True))
print(f"\nOf the last 500 visitors, {clicks} clicked. The saved copy shows the same arm to {same}.")

plt.show()
