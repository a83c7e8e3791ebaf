"""
From linear to boosted, under the same goal
===========================================

Who earns more than 50,000 dollars? Acceptance rates are to be equalised between women and
men. How often may they differ, and what does that cost? ``ConstrainedReduction`` asks the same
of a linear model and of boosted trees, on the census data of 1994 that comes with the package.
All figures are of rows that were not trained on.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit.constrained import ConstrainedReduction
from skbandit.datasets import load_adult
from skbandit.rates import difference, error_rate, positive_rate

RICH = ">50K"
BOUNDS = (0.1, 0.05, 0.02)

people, target = load_adult(subset="all", return_X_y=True)
features = people.drop(columns=["sex", "fnlwgt"])
encode = make_column_transformer(
    (
        OneHotEncoder(handle_unknown="ignore", min_frequency=20, sparse_output=False),
        make_column_selector(dtype_exclude="number"),
    ),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
X = encode.fit_transform(features)
train, test = train_test_split(range(len(X)), train_size=4000, random_state=0, stratify=target)

# %%
# Two learners, unconstrained and under three bounds. The sex is needed to train, not to predict.

LEARNERS = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "boosted trees": HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
gap = difference(positive_rate, by="sex")
curves = {}
for name, learner in LEARNERS.items():
    curves[name] = []
    for bound in (1.0, *BOUNDS):
        model = ConstrainedReduction(learner, constraints=gap <= bound, pos_label=RICH, cv=3)
        model.fit(X[train], target.iloc[train], attributes=people[["sex"]].iloc[train])
        answers = model.predict(X[test])
        attained = gap.value(None, answers, people.iloc[test], pos_label=RICH)
        error = error_rate().value(target.iloc[test], answers, pos_label=RICH)
        curves[name].append((attained, error))
        print(f"{name:20} gap <= {bound:<4}: on new rows {attained:.3f}, error {error:.4f}")

# %%
# The trees are better without a goal and stay so under each.

fig, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
for (name, curve), colour in zip(curves.items(), ("#0072B2", "#D55E00"), strict=True):
    attained, error = zip(*curve, strict=True)
    ax.plot(attained, error, "o-", color=colour, linewidth=1)
    ax.annotate(
        name, (attained[0], error[0]), xytext=(8, -16), textcoords="offset points", ha="right"
    )
for bound in BOUNDS:
    ax.axvline(bound, color="0.6", linestyle=":", linewidth=1)
ax.set(
    xlabel="Difference of positive rates, women and men (dotted: the bounds)",
    ylabel="Error rate",
    title="What parity costs two learners, on new rows",
)
plt.show()
