"""
Open Bandit: items described by their context
=============================================

The Open Bandit sample is a log of a fashion shop: 10,000 items shown at random, 34 of them, and a
table that describes each item by a number and three categories. With 46 clicks there is little to
learn about any single item. `SharedGLMPolicy` learns from all of them what users click on, and
`GridSearchCV` tells on the log itself whether it pays to describe items.

The sample is installed with the package, see `load_open_bandit`. It is small: take the figures for
what their errors say.
"""

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
# Features of items, and of users
# -------------------------------
# Categories become zeros and ones. The most frequent level of each is enough here; rare ones would
# be offsets of single items, which the model has anyway.

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
# Does describing items pay?
# --------------------------
# Candidates are replayed on random parts of the log. `None` leaves all differences between items
# to their own weights.

search = GridSearchCV(
    SharedGLMPolicy(random_state=0),
    {"arm_features": [None, items[["item_feature_0"]], items], "own_variance": [0.1, 0.5]},
    scoring=ReplayScorer(n_repeats=5, subsample=0.9, random_state=0),
    cv=ReplaySplit(5, subsample=0.8, random_state=0),
)
search.fit(X, log.y)
tried = pd.DataFrame(search.cv_results_)
described = tried["param_arm_features"].map(lambda table: 0 if table is None else table.shape[1])
for row in tried.assign(described=described).itertuples():
    print(
        f"{row.described:2d} features, own variance {row.param_own_variance}: "
        f"{row.mean_test_score:.4f} ± {row.std_test_score / np.sqrt(5):.4f} clicks"
    )

# %%
# The differences are within their errors: 46 clicks do not tell. What can be said is that
# describing items costs nothing.
#
# What users click on
# -------------------
# The last row of `coef_` holds the main effects of the items' features, per unit.

policy = SharedGLMPolicy(items, random_state=0).fit(X, log.y)
effects = pd.Series(policy.coef_[-1, :-1], index=items.columns)
for name in effects.abs().sort_values(ascending=False).index[:4]:
    print(f"{effects[name]:+.2f} for {name[:23]}")

# %%
# An item that is new tomorrow is judged by them, whatever becomes of it later:

new = (items.mean() + effects / effects.abs().max()).to_frame("new item").T
clicks = policy.describe_arms(new).predict_reward(X)
rank = (clicks[:, :-1].mean(axis=0) > clicks[:, -1].mean()).sum() + 1
print(f"The new item would be number {rank} of {len(policy.arms_)}.")
