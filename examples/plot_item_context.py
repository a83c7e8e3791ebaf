"""
Do item features help? The Open Bandit log
==========================================

The Open Bandit sample is a log of a fashion shop. It has 10,000 events, each with one of 34 items
shown at random. A table describes each item by a number and three categories. With 46 clicks, a
policy can learn little about any single item. `SharedGLMPolicy` learns from all items which
features users click on, and `GridSearchCV` estimates on the log whether these features help.

The sample is installed with the package, see `load_open_bandit`. It is small, so note the standard
errors.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ReplayScorer
from skbandit.bandit import SharedGLMPolicy
from skbandit.datasets import load_open_bandit
from skbandit.evaluation import ReplaySplit

log = load_open_bandit("random")
print(log.item_context.iloc[:3].to_string(float_format="%.2f", max_colwidth=12))

# %%
# Features of items and of users
# ------------------------------
# Categories are one-hot encoded. Rare levels share a column, because the model already has an
# offset for each single item.

encoder = OneHotEncoder(min_frequency=3, sparse_output=False, handle_unknown="infrequent_if_exist")
categories = log.item_context.drop(columns="item_feature_0").astype(str)
items = pd.DataFrame(
    np.column_stack([log.item_context["item_feature_0"], encoder.fit_transform(categories)]),
    index=log.item_context.index,
    columns=["item_feature_0", *encoder.get_feature_names_out()],
)
users = make_pipeline(TruncatedSVD(5, random_state=0), StandardScaler())
X = users.fit_transform(log.X)
print(f"{items.shape[1]} features of items, {X.shape[1]} of users")

# %%
# Search over item features
# -------------------------
# The search replays each candidate on random parts of the log. With `arm_features=None`, only the
# weights of single items can differ. `own_variance` is the prior variance of these weights.

search = GridSearchCV(
    SharedGLMPolicy(random_state=0),
    {"arm_features": [None, items[["item_feature_0"]], items], "own_variance": [0.1, 0.5]},
    scoring=ReplayScorer(n_repeats=5, subsample=0.9, random_state=0),
    cv=ReplaySplit(5, subsample=0.8, random_state=0),
)
search.fit(X, log.y)
tried = pd.DataFrame(search.cv_results_)
described = tried["param_arm_features"].map(lambda table: 0 if table is None else table.shape[1])
names = [
    f"{n} feature{'s' * (n != 1)}, own variance {variance}"
    for n, variance in zip(described, tried["param_own_variance"], strict=True)
]
rate, error = tried["mean_test_score"], tried["std_test_score"] / np.sqrt(5)
print(pd.DataFrame({"clicks": rate, "se": error}).set_index(pd.Index(names)).round(4).to_string())

# %%
# What to see: the intervals overlap, so 46 clicks cannot decide whether item features help. The
# candidates with features are not worse.

fig, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
ax.errorbar(rate, names, xerr=error, fmt="o", color="#0072B2", capsize=4)
ax.axvline(log.y["reward"].mean(), color="0.4", linestyle=":", label="the log")
ax.invert_yaxis()
ax.set(xlabel="click rate, mean ± standard error", xlim=(0, None), title="Item features in replay")
ax.legend(frameon=False, loc="lower left")

# %%
# The effects of item features
# ----------------------------
# The last row of `coef_` holds the main effects of the items' features, per unit.

policy = SharedGLMPolicy(items, random_state=0).fit(X, log.y)
effects = pd.Series(policy.coef_[-1, :-1], index=items.columns)
for name in effects.abs().sort_values(ascending=False).index[:4]:
    print(f"{effects[name]:+.2f} for {name[:23]}")

# %%
# The policy predicts the rewards of a new item from its features, before it is shown:

new = (items.mean() + effects / effects.abs().max()).to_frame("new item").T
clicks = policy.describe_arms(new).predict_reward(X)
rank = (clicks[:, :-1].mean(axis=0) > clicks[:, -1].mean()).sum() + 1
print(f"The new item would be number {rank} of {len(policy.arms_)}.")
plt.show()
