"""
Limit errors on the rows that matter most
=========================================

A boolean column marks the rows that matter most. On the census data, logistic regression finds
three in ten of the unmarried people who earn more than 50,000 dollars. They are few, and marriage
is a strong predictor of income. A constraint of one line requires that at least half of these rows
are predicted correctly. This example shows its cost, and whether it holds on new data.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.datasets import load_adult
from skbandit.rates import accuracy, error_rate

RICH, BOUNDS = ">50K", np.array([0.0, 0.4, 0.5, 0.6, 0.7, 0.8])

people, income = load_adult(subset="all", return_X_y=True)
marked = pd.DataFrame(
    {"egregious": (people["marital_status"] != "Married-civ-spouse") & (income == RICH)}
)
known, new = slice(0, 6000), slice(6000, None)
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
X = encode.fit_transform(people[known].drop(columns=["sex", "fnlwgt"]))
X_new = encode.transform(people[new])

# %%
# Fit a model per bound. The column depends on the label, so it exists only for labeled rows.
# Training and evaluation need it, and prediction does not.

marked_accuracy = accuracy("egregious")
rows = []
for bound in BOUNDS:
    model = ConstrainedRampClassifier(constraints=marked_accuracy >= bound, pos_label=RICH)
    model.fit(X, income[known], attributes=marked[known])
    predicted = model.predict(X_new)
    report = model.constraint_report_.iloc[0]
    rows.append(
        {
            "bound": bound,
            "out of fold": report["cross_fitted"],
            "low": report["ci_low"],
            "high": report["ci_high"],
            "new data": marked_accuracy.value(income[new], predicted, marked[new], pos_label=RICH),
            "error": error_rate().value(income[new], predicted, pos_label=RICH),
            "multiplier": report["multiplier"],
        }
    )
table = pd.DataFrame(rows)
print(table.to_string(index=False, float_format="{:.3f}".format))

# %%
# What to see: on new data the accuracy on the marked rows is above each bound (the dotted line),
# and within or above the 95% interval of its out-of-fold estimate.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.plot([0, 0.9], [0, 0.9], color="0.6", linestyle=":")
spans = np.abs(table[["low", "high"]].to_numpy().T - table["out of fold"].to_numpy())
ax.errorbar(
    BOUNDS, table["out of fold"], spans, fmt="o", color="#0072B2", markerfacecolor="white",
    label="out of fold, with 95% interval",
)  # fmt: skip
ax.plot(BOUNDS, table["new data"], "s", color="#D55E00", label="new data")
ax.set(xlabel="bound", ylabel="accuracy on the marked rows", title="A bound on marked rows")
ax.legend(frameon=False)

# %%
# What to see: the first steps cost little, and the last ones cost several percent of all rows.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.plot(table["new data"], table["error"], "o-", color="#D55E00")
ax.set(xlabel="accuracy on the marked rows", ylabel="error rate on all rows", ylim=(0.14, None))
ax.set_title("The cost on all rows of new data")
plt.show()
