"""
Requests to language models
===========================

Requests go to one of four language models, of which the dearest costs 30 times as much as the
cheapest, and a judge accepts more of its answers. ``ConstrainedPolicy`` learns from a log of
requests that went to models at random: it pays as little as possible while the judge accepts a
given share of the answers of each kind. :doc:`A case study </case_studies/router>` compares it with
thresholds and cascades, serves it, and watches it. The data are synthetic.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbandit import ConstrainedPolicy
from skbandit.rates import cost, outcome

MODELS = pd.DataFrame(
    {"price": [0.2, 0.6, 1.5, 6.0], "skill": [0.0, 0.8, 1.7, 2.8]},
    index=["mini", "small", "medium", "huge"],
)
FLOORS = {"chat": 0.85, "code": 0.70}


def requests(n, seed):
    """Requests, and whether the judge would accept each model's answer."""
    rng = np.random.default_rng(seed)
    code = rng.random(n) < 0.4
    X = pd.DataFrame({"chat": ~code * 1.0, "code": code * 1.0, "hard": rng.normal(size=n)})
    ease = np.where(code, -0.4, 1.4) - 1.1 * X["hard"]
    chance = 1 / (1 + np.exp(-ease.to_numpy()[:, None] - MODELS["skill"].to_numpy()))
    return X, (rng.random(chance.shape) < chance).astype(float)


X, accepted = requests(12_000, seed=0)
drawn = np.random.default_rng(1).integers(len(MODELS), size=len(X))
log = pd.DataFrame({"action": MODELS.index[drawn], "propensity": 1 / len(MODELS)})
log["quality"] = accepted[np.arange(len(X)), drawn]

# %%
# Floors of quality, and the price as objective
# ---------------------------------------------
# The price of an answer is known; whether the judge accepts it is estimated from the log.

price = cost(MODELS["price"].to_dict())
goals = [
    (outcome("quality", f"{kind} == 1") >= floor).named(kind) for kind, floor in FLOORS.items()
]
router = ConstrainedPolicy(None, price, goals, confidence_level=0.8, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # for some requests, two models cost nearly the same
    router = router.fit(X, log)
columns = ["constraint", "bound", "value", "margin", "satisfied", "multiplier"]
print(router.constraint_report_[columns].round(2).to_string(index=False))

# %%
# What it costs, and what is accepted
# -----------------------------------
# On new requests, beside each model for all of them. Only the two dearest models keep both floors;
# the router keeps them for less, as it sends requests that look easy to cheap models.

new, accepted_new = requests(20_000, seed=2)
chosen = MODELS.index.get_indexer(router.predict(new))
rules = {name: np.full(len(new), k) for k, name in enumerate(MODELS.index)} | {"router": chosen}
rows = {}
for name, rule in rules.items():
    good = accepted_new[np.arange(len(new)), rule]
    shares = {kind: good[new[kind] == 1].mean() for kind in FLOORS}
    rows[name] = {"price": MODELS["price"].to_numpy()[rule].mean(), **shares}
table = pd.DataFrame(rows).T
print(table.round(2).to_string())

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
edges = np.linspace(-2, 2, 17)
place = np.digitize(new["hard"], edges)
middle = (edges[1:] + edges[:-1]) / 2
shade = plt.colormaps["viridis"](np.linspace(0.9, 0.1, len(MODELS)))
shares = [[(chosen[place == b] == k).mean() for b in range(1, 17)] for k in range(len(MODELS))]
axes[0].stackplot(middle, shares, labels=MODELS.index, colors=shade)
axes[0].set(xlabel="how hard a request looks", ylabel="share of requests", ylim=(0, 1))
axes[0].legend(loc="upper right")
for kind, color in zip(FLOORS, ["C0", "C1"], strict=True):
    single = table.drop("router")
    axes[1].plot(single["price"], single[kind], "o-", color=color, label=f"one model, {kind}")
    axes[1].plot(*table.loc["router", ["price", kind]], "*", color=color, ms=14)
    axes[1].axhline(FLOORS[kind], color=color, ls=":", lw=1)
axes[1].plot([], [], "*", color="gray", ms=12, label="router")
axes[1].set(xscale="log", xlabel="price of a request, cents", ylabel="accepted answers")
axes[1].set_xticks(MODELS["price"], MODELS["price"].astype(str))
axes[1].minorticks_off()
axes[1].legend(loc="lower right")
plt.show()
