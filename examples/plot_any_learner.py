"""
Linear models and boosted trees under the same constraint
=========================================================

``ConstrainedReduction`` trains any classifier that accepts sample weights under constraints. Here
it bounds the difference between the positive rates of women and men for logistic regression and
for boosted trees, on the census data of 1994. All rates are of held-out rows.
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
# Fit both learners unconstrained and under three bounds. Training needs the sex of each person, and
# prediction does not.

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
        predicted = model.predict(X[test])
        attained = gap.value(None, predicted, people.iloc[test], pos_label=RICH)
        error = error_rate().value(target.iloc[test], predicted, pos_label=RICH)
        curves[name].append((attained, error))
        print(f"{name:20} gap <= {bound:<4}: held-out gap {attained:.3f}, error {error:.4f}")

# %%
# What to see: boosted trees have the lower error without a constraint, and under each of the three
# bounds (dotted lines).

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for (name, curve), color in zip(curves.items(), ("#0072B2", "#D55E00"), strict=True):
    attained, error = zip(*curve, strict=True)
    ax.plot(attained, error, "o-", color=color, label=name)
for bound in BOUNDS:
    ax.axvline(bound, color="0.6", linestyle=":", linewidth=1)
ax.set(
    xlabel="difference of positive rates, women and men",
    ylabel="error rate",
    title="The cost of parity for two learners",
)
ax.legend(frameon=False)
plt.show()
