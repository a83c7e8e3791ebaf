"""
Items that come and go: one model of all of them
================================================

Of 200 articles some 50 are there at a time: every 1,000 visits some leave and others come. Whether
a visitor reads one depends on what both are like, and on something of the article that no feature
tells. `SharedGLMPolicy` learns one model of all articles from their features; `GLMUCBPolicy` learns
one model per article, and has to begin anew with each of them. The visitors are made, so that the
best choice is known.
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
# Contexts come one at a time: the policy selects among the articles that are there, and learns from
# what happens. Its features need no scaling.

policies = {
    "one model of all": SharedGLMPolicy(articles, random_state=0),
    "without features": SharedGLMPolicy(random_state=0),
    "one model each": GLMUCBPolicy(random_state=0),
}
luck = rng.random(N_VISITS)
earned = {"the best article": np.array([chance[t, live[p]].max() for t, p in enumerate(phase)])}
for name, policy in policies.items():
    got = np.empty(N_VISITS)
    for t in range(N_VISITS):
        visitor = visitors[t : t + 1]
        shown = policy.select(visitor, available=articles.index[live[phase[t]]])
        got[t] = chance[t, articles.index.get_loc(shown[0])]
        policy.partial_fit(visitor, {"action": shown, "reward": [float(luck[t] < got[t])]})
    earned[name] = got
earned["at random"] = np.array([chance[t, live[p]].mean() for t, p in enumerate(phase)])

table = pd.DataFrame({name: got for name, got in earned.items()})
print(table.mean().round(3).to_string())

# %%
# New articles cost a model of all of them next to nothing, as it knows what they are about:

soon = [t for t in range(N_VISITS) if phase[t] and t - N_VISITS * phase[t] // N_PHASES < 200]
print(table.loc[soon].mean().round(3).to_string())

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
table.rolling(300).mean().plot(ax=ax)
for t in range(1, N_PHASES):
    ax.axvline(N_VISITS * t // N_PHASES, color="lightgrey", linestyle=":")
ax.set(xlabel="visits (articles change at dotted lines)", ylabel="probability of reading")
ax.legend(loc="lower right", fontsize="small")

# %%
# What it has learned
# -------------------
# `coef_` holds the products: how much each feature of a visitor adds per unit of each topic. It is
# close to the truth, in the units of the features as they were given.

learned = policies["one model of all"].coef_[:-1, :-1]
print(f"correlation with the true taste: {np.corrcoef(learned.ravel(), taste.ravel())[0, 1]:.2f}")

plt.show()
