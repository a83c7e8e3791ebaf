"""
Quickstart: constraints, bandits and sets
=========================================

**One.** A classifier predicts who earns more than 50,000 dollars. The 80% rule requires that it
says yes to women at least 80% as often as to men. Train a classifier that satisfies the rule on
new data, and that does not use sex to predict.

**Two.** A log has random guesses of the digit on an image, and whether each was right. From this
log alone, tune a policy that learns while it serves, and estimate its reward.

**Three.** Choose up to three candidates per image, so that one of them is the digit.
"""

from pathlib import Path
from warnings import filterwarnings, simplefilter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    ReplayScorer,
    SetSelectClassifier,
)
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import load_adult
from skbandit.evaluation import ReplaySplit
from skbandit.exceptions import ConstrainedFitWarning
from skbandit.rates import error_rate, positive_rate, ratio
from skbandit.selection import PopularitySetSelector, logged_costs

# %%
# One: declare a constraint and fit
# ---------------------------------

GOAL = ratio(positive_rate, by="sex") >= 0.8
N_SPLITS = 8

people, income = load_adult(subset="all", return_X_y=True)
X, sex = people.drop(columns=["sex", "fnlwgt"]), people[["sex"]]
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)

# %%
# The baselines are plain logistic regression, and logistic regression with a threshold that
# satisfies the rule.

logistic = LogisticRegression(max_iter=1000)
MODELS = {
    "logistic regression": logistic,
    "moved threshold": ConstrainedThreshold(
        logistic, error_rate(), GOAL, pos_label=">50K", confidence_level=0.5
    ),
    "constrained training": ConstrainedRampClassifier(error_rate(), GOAL, pos_label=">50K"),
    "... with confidence .9": ConstrainedRampClassifier(
        error_rate(), GOAL, pos_label=">50K", confidence_level=0.9
    ),
}
simplefilter("ignore", ConstrainedFitWarning)  # the moved threshold has a high error: see below

rows = []
splits = ShuffleSplit(N_SPLITS, train_size=10_000, random_state=0)
for known, new in splits.split(X):
    encoder = clone(encode).fit(X.iloc[known])
    features, unseen = encoder.transform(X.iloc[known]), encoder.transform(X.iloc[new])
    for name, model in MODELS.items():
        for_groups = {} if model is logistic else {"attributes": sex.iloc[known]}
        model.fit(features, income.iloc[known], **for_groups)
        predicted = model.predict(unseen)
        error = error_rate().value(income.iloc[new], predicted, pos_label=">50K")
        fair = GOAL.rate.value(None, predicted, sex.iloc[new], pos_label=">50K")
        rows.append((name, error, fair, fair >= GOAL.bound))

results = pd.DataFrame(rows, columns=["model", "error", "women / men", "rule satisfied"])
table = results.groupby("model", sort=False).mean()
satisfied = [f"{share:.0%} of splits" for share in table["rule satisfied"]]
print("ONE. Say yes to women at least 80% as often as to men\n")
print(f"10,000 training rows, 38,842 test rows, means over {N_SPLITS} random splits:\n")
shown = table.assign(**{"rule satisfied": satisfied})
print(shown.to_string(float_format="{:.3f}".format))

# %%
# The report of the fitted model
# ------------------------------
# `value` is the rate on the training rows. `cross_fitted` is the out-of-fold estimate, the value to
# expect on new data.

report = MODELS["constrained training"].constraint_report_
print("\nThe report of constrained training, from the 10,000 training rows alone:\n")
columns = ["constraint", "bound", "value", "cross_fitted", "satisfied"]
print(report[columns].to_string(index=False, float_format="{:.3f}".format))

# %%
# Error and ratio per split
# -------------------------
# What to see: constrained training satisfies the rule at a small cost in error. With a moved
# threshold, the error is above one half.

COLORS = dict(zip(MODELS, ("0.45", "#E69F00", "#009E73", "#0072B2"), strict=True))
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.axvspan(GOAL.bound, 1.05, color="#009E73", alpha=0.08, linewidth=0)
ax.axvline(GOAL.bound, color="0.3", linestyle=":", linewidth=1)
ax.text(GOAL.bound + 0.01, 0.585, "satisfied", color="0.3", va="top")
for (name, color), marker in zip(COLORS.items(), "osD^", strict=True):
    of_model = results[results["model"] == name]
    ax.plot(of_model["women / men"], of_model["error"], marker, color=color, alpha=0.75, label=name)
ax.set(
    xlim=(0.2, 1.0),
    ylim=(0.1, 0.6),
    xlabel="positive rate of women / positive rate of men, test rows",
    ylabel="error rate, test rows",
    title="The 80% rule on Adult, one point per split",
)
ax.legend(loc="upper left", frameon=False)
path = Path("quickstart.png")
fig.savefig(path, dpi=150)
print(f"\nFigure: {path.resolve().name}")

# %%
# Two: a policy tuned on yesterday's log
# --------------------------------------
# Replay lets a policy select an action for each logged event. If it is the logged action, the event
# counts and the policy learns from it. All other events are skipped. The score includes the cost of
# exploration. To check these scores, the policies also run live, on images that are not in the log.

images, digit = load_digits(return_X_y=True)
of_log, of_test = train_test_split(np.arange(len(digit)), test_size=0.5, random_state=0)
rng = np.random.default_rng(0)
seen = rng.choice(of_log, 40_000)
log = pd.DataFrame({"action": rng.integers(10, size=len(seen))})
log["reward"] = (log["action"] == digit[seen]).astype(int)

features = make_pipeline(StandardScaler(), PCA(16, whiten=True, random_state=0))
search = GridSearchCV(
    make_pipeline(features, GLMUCBPolicy(random_state=0)),
    {
        "glmucbpolicy__link": ["linear", "logistic"],
        "glmucbpolicy__covariance": ["diagonal", "full"],
        "glmucbpolicy__alpha": [0.0, 0.2, 2.0],
    },
    scoring=ReplayScorer(random_state=0),
    cv=ReplaySplit(5, subsample=0.5, random_state=0),  # five random halves of the log
)
search.fit(images[seen], log)


def live(policy, n_events):
    """Mean reward of an unfitted policy on images that are not in the log."""
    rows = np.random.default_rng(1).choice(of_test, n_events)
    contexts = search.best_estimator_[:-1].transform(images[rows])
    earned = np.empty(n_events)
    for t in range(n_events):
        action = policy.select(contexts[t : t + 1], available=[range(10)])
        earned[t] = action[0] == digit[rows[t]]
        policy.partial_fit(contexts[t : t + 1], action, reward=earned[t : t + 1])
    return earned.mean()


tried = pd.DataFrame(search.cv_results_).rename(columns=lambda name: name.split("__")[-1])
tried = tried.rename(columns={"mean_test_score": "replay", "std_test_score": "spread"})
tried = tried.sort_values("replay", ascending=False)
accepted = int(len(log) / 2 / 10)  # half of the log, one guess in ten
places = [0, 1, len(tried) // 2, len(tried) - 2, len(tried) - 1]
shown = tried.iloc[places][["link", "covariance", "alpha", "replay", "spread"]]
shown["live"] = [
    live(
        clone(search.best_estimator_[-1]).set_params(link=link, covariance=kind, alpha=alpha),
        accepted,
    )
    for link, kind, alpha in shown[["link", "covariance", "alpha"]].to_numpy()
]
print("\n\nTWO. Tune a policy on yesterday's log\n")
print(
    f"The log has {len(log):,} guesses, {log['reward'].mean():.1%} of them right. The table shows\n"
    f"the mean reward of policies over their first {accepted:,} events, from a cold start:\n"
    "in replay on halves of the log (mean and spread of five), and live on other images.\n"
    "The candidates are the best two, the median and the worst two:\n"
)
print(shown.to_string(index=False, float_format="{:.3f}".format))

# %%
# Three: the best m of n
# ----------------------
# A set selector minimizes costs, here -1 for the right digit and 0 for the others. It learns them
# from labeled images, or from the log of guesses, which has one digit per row. `logged_costs` gives
# unbiased estimates of the other costs, from the probability 1/10 of each guess.

whole = pd.DataFrame(-np.eye(10)[digit])
guessed = logged_costs(
    log["action"], -log["reward"], np.full(len(log), 0.1), method="dr", X=images[seen],
    random_state=0,
)  # fmt: skip
logistic = make_pipeline(StandardScaler(), LogisticRegression())
SELECTORS = {
    ("popularity", "labels"): PopularitySetSelector,
    ("RegressionSetSelector", "guesses"): RegressionSetSelector,
    ("RegressionSetSelector", "labels"): RegressionSetSelector,
    ("RegressionSetSelector, logistic", "labels"): lambda n_select: RegressionSetSelector(
        logistic, n_select
    ),
    ("SetSelectClassifier", "labels"): lambda n_select: SetSelectClassifier(
        n_select=n_select, random_state=0
    ),
}
# Digits are no straight lines of pixels: logistic regression, two rows below, is the cure.
filterwarnings("ignore", "Trees predict")
shares = {}
for (name, source), make in SELECTORS.items():
    rows, costs = (of_log, whole.iloc[of_log]) if source == "labels" else (seen, guessed)
    shares[name, source] = [
        make(n_select=m).fit(images[rows], costs).score(images[of_test], whole.iloc[of_test])
        for m in (1, 2, 3)
    ]
shares = pd.DataFrame(shares, index=["1 candidate", "2", "3"]).T.rename_axis(["", "learned from"])
print("\n\nTHREE. Choose the best m of n\n")
print("Share of new images whose digit is among the candidates:\n")
print(shares.to_string(float_format="{:.3f}".format))
