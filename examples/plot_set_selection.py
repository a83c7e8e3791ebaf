"""
Choose m of n occupations
=========================

This example compares two methods of choosing *m* of *n* candidates from their costs, both from
Mineiro, "Choosing m Advertisements from n Candidates" (2010). The first predicts all costs and
chooses the *m* lowest. The second runs *m* rounds of a cost-sensitive classifier, which chooses one
candidate in each. The rounds as published may choose a candidate twice, and replace duplicates at
random. Masked rounds exclude the candidates already chosen.

The data are people of the census sample and their occupations, 12 in all. A job board shows *m*
occupations to a person, and succeeds if the person's own is among them. The features are education,
employer, age, hours and capital gains, but neither sex nor race. The baseline is the set of the *m*
most frequent occupations.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import load_adult
from skbandit.selection import PopularitySetSelector

people = load_adult(subset="train").frame
rare = ["Armed-Forces", "Priv-house-serv"]  # 158 people of 30,718
people = people[people["occupation"].notna() & ~people["occupation"].isin(rare)]
people = people.sample(6000, random_state=0)
works = pd.get_dummies(people["occupation"].astype(str))
costs = -works.astype(float)

X = pd.get_dummies(people[["workclass", "education"]], dtype=float)
X = X.assign(
    age=people["age"],
    hours=people["hours_per_week"],
    gain=np.log1p(people["capital_gain"]),
)
X = X.loc[:, X.std() > 0]
X = (X - X.mean()) / X.std()
print(f"{len(X):,} people, {X.shape[1]} features, {costs.shape[1]} occupations")

# %%
# Each node of the filter tree is a logistic regression, which compares two occupations.

SELECTORS = {
    "popularity": PopularitySetSelector(),
    "regression": RegressionSetSelector(),
    "filter tree, masked rounds": SetSelectClassifier(reduction="filter_tree", random_state=0),
    "filter tree, as published": SetSelectClassifier(method="published", random_state=0),
    "Ridge, as published": SetSelectClassifier(
        Ridge(), reduction="regression", method="published", random_state=0
    ),
}
SPLITS = list(ShuffleSplit(3, test_size=2000, random_state=0).split(X))


def shares(selector, m, available):
    """Per split, the share of people whose own occupation is chosen, if it is available."""
    selector.set_params(n_select=m)
    for train, test in SPLITS:
        # without a mask, rounds may exclude candidates instead of choosing them
        masks = [None, None] if available.all() else [available[train], available[test]]
        selector.fit(X.iloc[train], costs.iloc[train], available=masks[0])
        score = selector.score(X.iloc[test], costs.iloc[test], available=masks[1])
        yield score / (works.iloc[test] & available[test]).to_numpy().sum(axis=1).mean()


def mask(gone, m):
    """Remove a random share of occupations per person, but leave at least m."""
    lots = np.random.default_rng(0).random(works.shape)
    return (lots >= gone) | (lots.argsort(axis=1).argsort(axis=1) >= works.shape[1] - m)


def compare(settings):
    """Means over splits, with one row per selector and one column per setting."""
    means = {
        (name, title): np.mean(list(shares(selector, m, mask(gone, m))))
        for name, selector in SELECTORS.items()
        for title, m, gone in settings
    }
    return pd.Series(means).unstack().loc[list(SELECTORS), [title for title, _, _ in settings]]


# %%
# Sets of one to eight occupations. With m = 8 of 12, masked rounds choose the four to exclude,
# which has the better theoretical bound.

SIZES = [1, 2, 3, 5, 8]
by_size = compare([(f"m = {m}", m, 0.0) for m in SIZES])
print("Share of people whose own occupation is chosen\n")
print(by_size.to_string(float_format="%.3f"))

COLORS = dict(zip(SELECTORS, ["0.5", "#0072B2", "#009E73", "#E69F00", "#D55E00"], strict=True))


def plot(table, x, xlabel):
    """Draw one line per selector."""
    _, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for name, color in COLORS.items():
        ax.plot(x, table.loc[name], "o-", color=color, label=name)
    ax.set(xlabel=xlabel, ylabel="share with own occupation chosen", ylim=(0, 1))
    ax.legend(frameon=False, loc="lower right")


# %%
# What to see: with m = 1, all selectors are right more than twice as often as popularity. For
# larger m, regression is best, and published rounds are below masked ones because of duplicates.
# The standard error of a share is about .006.

plot(by_size, SIZES, "occupations chosen, m")

# %%
# Next, choose three occupations if some have no vacancies.

GONE = [0.0, 0.3, 0.5]
by_gone = compare([(f"{gone:.0%} gone", 3, gone) for gone in GONE])
print("\nm = 3, some occupations without vacancies\n")
print(by_gone.to_string(float_format="%.3f"))

# %%
# What to see: if half of the occupations have no vacancies, popularity is nearly as good as the
# published rounds of the filter tree.

plot(by_gone, np.multiply(GONE, 100), "occupations without vacancies, %")
plt.show()
