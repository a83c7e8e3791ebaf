"""
Tune a policy on a log, serve it, save it, go on
================================================

Which reward model, how much exploration, which prior? A grid search answers on yesterday's log:
`ReplayScorer` replays each candidate on it, cold, so that a candidate pays for what it explores
and profits from what it finds. (A policy that starts warm has explored already: whatever it still
tries looks like waste, and the search would always choose to try nothing.)

The log is made, so that the truth is known: 200,000 events, 20 arms of which 12 are there at a
time, some 3 % clicks, logged uniformly over what was there.
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
# Ten random halves of yesterday's log are replayed with each candidate; the spread over them shows
# which differences mean something.

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

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
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
ax.annotate("the log itself", (0, base_rate), va="bottom", color="0.4")
ax.set_xticks(range(len(part)), [f"{alpha:g}" for alpha in part["alpha"]])
ax.set(
    xlabel="alpha: how far above its expectation an arm is judged",
    ylabel="click rate, learning from nothing",
    title=f"Mean and spread over {FOLDS} random halves of the log",
)
ax.legend(frameon=False)

# %%
# Was it worth it? Today's log tells, to which nothing was tuned.

best = GLMUCBPolicy(random_state=0, **search.best_params_)
print(f"\nOn today's log, with {log.y['reward'][today].mean():.4f} clicks per event:\n")
for name, policy in {
    "the best": best,
    "it, never exploring": GLMUCBPolicy(random_state=0, **search.best_params_ | {"alpha": 0.0}),
    "at random": GLMUCBPolicy(exploration="epsilon_greedy", epsilon=1.0, random_state=0),
}.items():
    result = replay(policy, log.X[today], log.y[today], subsample=0.5, n_repeats=10, random_state=0)
    low, high = result.interval(0.95)
    print(f"{name:>20}: {result.mean_reward:.4f} (95 % interval {low:.4f} to {high:.4f})")

# %%
# Serving
# -------
# The policy has learned from all of yesterday. It answers one visitor after the other, each with
# the arms that are there, and learns from each click or none. Saved in the middle of the day and
# loaded again, it goes on as if nothing had been: the same choices, to the last bit.

policy = best.fit(log.X[yesterday], log.y[yesterday])
visitors = range(100_000, 101_000)
luck = np.random.default_rng(1).random(log.expected_reward.shape[0])
column = {arm: k for k, arm in enumerate(log.arms)}


def serve(policy, visitors):
    """Choose and learn, one visitor after the other; which arms were shown, and how many clicks."""
    shown, clicks = [], 0
    for t in visitors:
        visitor, there = log.X.iloc[t : t + 1], log.available.iloc[t : t + 1]
        arm = policy.select(visitor, available=there)
        clicked = luck[t] < log.expected_reward[t, column[arm[0]]]
        policy.partial_fit(visitor, pd.DataFrame({"action": arm, "reward": [clicked]}))
        shown.append(arm[0])
        clicks += clicked
    return shown, clicks


with TemporaryDirectory() as folder:
    place = Path(folder) / "policy.joblib"
    serve(policy, visitors[:500])
    joblib.dump(policy, place)
    shown, clicks = serve(policy, visitors[500:])
    again, _ = serve(joblib.load(place), visitors[500:])
print(f"\nServed 1,000 visitors of today; of the last 500, {clicks} clicked.")
print(f"Saved after 500 and resumed, it shows the same arms: {shown == again}.")

plt.show()
