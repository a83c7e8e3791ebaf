"""
Items that come and go: one shared model
========================================

A site has 200 articles, and shows about 50 of them at a time. Every 1,000 visits, some articles
leave and others arrive. A visitor's probability of reading an article depends on the features of
both, and on a property of the article that no feature describes. `SharedGLMPolicy` learns one model
of all articles from their features. `GLMUCBPolicy` learns a separate model per article, and starts
from scratch for each new one. The data are synthetic, so the best choice is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbandit import GLMUCBPolicy
from skbandit.bandit import SharedGLMPolicy

N_VISITS, N_ARTICLES, N_PHASES = 6000, 200, 6
rng = np.random.default_rng(0)
topics = [f"topic {k}" for k in range(5)]
articles = pd.DataFrame(
    rng.normal(size=(N_ARTICLES, 5)), columns=topics, index=[f"a{k}" for k in range(N_ARTICLES)]
)
visitors = rng.normal(size=(N_VISITS, 6))
taste = rng.normal(size=(6, 5)) / 4
theta = -2.5 + visitors @ taste @ articles.to_numpy().T + 0.4 * rng.normal(size=N_ARTICLES)
chance = 1 / (1 + np.exp(-theta))

phase = np.arange(N_VISITS) * N_PHASES // N_VISITS
live = [range(max(0, 34 * t - 20), 34 * t + 30) for t in range(N_PHASES)]
print(articles.head(3).round(2).to_string())

# %%
# Online, visit by visit
# ----------------------
# Each policy selects one of the available articles for each visitor, and learns from the reward.
# The features need no scaling. The second policy is a shared model without the articles' features.

policies = {
    "shared model": SharedGLMPolicy(articles, random_state=0),
    "shared, no features": SharedGLMPolicy(random_state=0),
    "one model per article": GLMUCBPolicy(random_state=0),
}
uniform = rng.random(N_VISITS)
earned = {"best article": np.array([chance[t, live[p]].max() for t, p in enumerate(phase)])}
for name, policy in policies.items():
    got = np.empty(N_VISITS)
    for t in range(N_VISITS):
        visitor = visitors[t : t + 1]
        shown = policy.select(visitor, available=articles.index[live[phase[t]]])
        got[t] = chance[t, articles.index.get_loc(shown[0])]
        policy.partial_fit(visitor, {"action": shown, "reward": [float(uniform[t] < got[t])]})
    earned[name] = got
earned["random"] = np.array([chance[t, live[p]].mean() for t, p in enumerate(phase)])

table = pd.DataFrame({name: got for name, got in earned.items()})
print(table.mean().round(3).to_string())

# %%
# The shared model predicts the rewards of new articles from their features. These are the means
# over the first 200 visits after each change:

soon = [t for t in range(N_VISITS) if phase[t] and t - N_VISITS * phase[t] // N_PHASES < 200]
print(table.loc[soon].mean().round(3).to_string())

# %%
# What to see: the shared model stays close to the best article when articles change (dotted lines).
# The models per article fall back after most changes.

fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
table.rolling(300).mean().plot(ax=ax, color=["k", "#0072B2", "#009E73", "#D55E00", "0.6"])
for t in range(1, N_PHASES):
    ax.axvline(N_VISITS * t // N_PHASES, color="0.8", linestyle=":")
ax.set(xlabel="visits", ylabel="probability of reading, mean of 300 visits", ylim=(0, None))
fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
ax.get_legend().remove()

# %%
# The learned coefficients
# ------------------------
# Entry (i, j) of `coef_` is the effect of feature i of the visitor per unit of topic j. It is in
# the original units of the features, and close to the true value.

learned = policies["shared model"].coef_[:-1, :-1]
print(f"correlation with the true taste: {np.corrcoef(learned.ravel(), taste.ravel())[0, 1]:.2f}")

plt.show()
