"""
Choosing m of n
===============

Which *m* of *n* ads to show, functions of a gene to test, products to list? Two ways from costs
of every candidate to sets, both after Mineiro, "Choosing m Advertisements from n Candidates"
(2010): predict all costs and take the lowest; or let a cost-sensitive classifier choose one
candidate in each of *m* rounds. The post's own rounds answer again and again with what is chosen
already, and replace these duplicates at random; masked rounds never get to see it.

The data: 2,417 genes of yeast, each with some of 14 functions (Elisseeff & Weston, 2001). A set
is worth as much as there are functions of the gene in it. Beside all of them stands what ignores
the gene: the *m* most frequent functions.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector

if folder := os.environ.get("SKBANDIT_DATA"):
    table = pd.read_csv(Path(folder) / "yeast" / "yeast.csv.gz")
    X, has = table.filter(like="Att"), table.filter(like="Class").astype(bool)
else:
    X, has = fetch_openml("yeast", version=4, return_X_y=True, as_frame=True)
    has = has.apply(lambda column: column.astype(str).str.upper() == "TRUE")
costs = -has.astype(float)

# %%
# The filter tree asks logistic regression which of two functions is the more likely one. Its
# rounds as published are at their worst over Ridge, whose scores differ little between rounds.

SELECTORS = {
    "popularity": PopularitySetSelector(),
    "regression": RegressionSetSelector(),
    "filter tree, masked rounds": SetSelectClassifier(reduction="filter_tree", random_state=0),
    "filter tree, as published": SetSelectClassifier(
        method="published", dedup="random", random_state=0
    ),
    "Ridge, as published": SetSelectClassifier(
        Ridge(), reduction="regression", method="published", dedup="random", random_state=0
    ),
}
SPLITS = list(ShuffleSplit(3, test_size=0.3, random_state=0).split(X))


def shares(selector, m, available):
    """Value of the chosen sets beside that of the best ones, for each split."""
    selector.set_params(n_select=m)
    for train, test in SPLITS:
        # "no mask" is told from "all available": it lets rounds leave out instead of choose
        told = [None, None] if available.all() else [available[train], available[test]]
        selector.fit(X.iloc[train], costs.iloc[train], available=told[0])
        value = selector.score(X.iloc[test], costs.iloc[test], available=told[1])
        possible = np.where(available[test], has.iloc[test], 0.0)
        yield value / np.sort(possible, axis=1)[:, -m:].sum(axis=1).mean()


def mask(gone, m):
    """A share of functions that cannot be chosen, another one for each gene; m are left."""
    lots = np.random.default_rng(0).random(has.shape)
    return (lots >= gone) | (lots.argsort(axis=1).argsort(axis=1) >= has.shape[1] - m)


def compare(settings):
    """Means and standard deviations over splits: a line a selector, a column a setting."""
    found = {
        (name, title): list(shares(selector, m, mask(gone, m)))
        for name, selector in SELECTORS.items()
        for title, m, gone in settings
    }
    table = pd.DataFrame(found).agg(["mean", "std"]).T["mean"].unstack()
    return table.loc[list(SELECTORS), [title for title, _, _ in settings]]


# %%
# Sets of one to ten functions. With m = 10 of 14 masked rounds choose the four to leave out, which
# has the better bound; on these data it is better to choose all ten.

SIZES = [1, 3, 5, 10]
by_size = compare([(f"m = {m}", m, 0.0) for m in SIZES])
print("Share of the value of the best sets\n")
print(by_size.to_string(float_format="%.3f"))
all_ten = SetSelectClassifier(reduction="filter_tree", holes=False, random_state=0)
print(f"masked rounds, holes=False, m = 10: {np.mean(list(shares(all_ten, 10, mask(0, 10)))):.3f}")

# %%
# Five functions, while some of them cannot be chosen.

GONE = [0.0, 0.3, 0.5]
by_gone = compare([(f"{gone:.0%} gone", 5, gone) for gone in GONE])
print("\nm = 5, some functions unavailable\n")
print(by_gone.to_string(float_format="%.3f"))

# %%
# Published rounds lose to masked ones as duplicates pile up, and over Ridge to mere popularity.
# Where nearly all is chosen, or half of it cannot be, popularity is hard to beat.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
colors = dict(zip(SELECTORS, ["0.5", "#0072B2", "#009E73", "#E69F00", "#D55E00"], strict=True))
for name, color in colors.items():
    axes[0].plot(SIZES, by_size.loc[name], "o-", color=color, label=name)
    axes[1].plot(np.multiply(GONE, 100), by_gone.loc[name], "o-", color=color)
axes[0].set(xlabel="functions chosen, m", ylabel="share of the value of the best sets")
axes[1].set(xlabel="functions that cannot be chosen, %, for m = 5")
axes[0].legend(frameon=False)
plt.show()
