"""
Cap the false positive rate
===========================

Neyman-Pearson classification maximizes recall under a cap on the false positive rate. The usual
solution is to move the threshold of a classifier until the cap holds on the training rows. This
example compares that solution with three others on new data, on the census data that comes with the
package.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import load_adult
from skbandit.rates import false_positive_rate, recall

RICH, CAPS, N_SPLITS = ">50K", (0.01, 0.05), 5

people, income = load_adult(subset="all", return_X_y=True)
encode = make_column_transformer(
    (
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20),
        make_column_selector(dtype_include="category"),
    ),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)

# %%
# Compare four methods, each with 2,000 training rows. The last one trains on half of them and sets
# the threshold on the other half. Its confidence level is exact.


def classifiers(cap, X, y):
    """Name and fitted classifier of each method."""
    goal = (recall(), false_positive_rate() <= cap)
    half = len(y) // 2
    logistic = LogisticRegression(max_iter=2000)
    on_all, on_half = clone(logistic).fit(X, y), clone(logistic).fit(X[:half], y[:half])
    at_95 = {"pos_label": RICH, "confidence_level": 0.95}
    return {
        "threshold from\ntraining rows": ConstrainedThreshold(
            on_all, *goal, cv="prefit", pos_label=RICH, confidence_level=0.5
        ).fit(X, y),
        "constrained\ntraining": ConstrainedRampClassifier(*goal, pos_label=RICH).fit(X, y),
        "constrained training,\nconfidence .95": ConstrainedRampClassifier(*goal, **at_95).fit(
            X, y
        ),
        "threshold from held-\nout rows, .95": ConstrainedThreshold(
            on_half, *goal, cv="prefit", **at_95
        ).fit(X[half:], y[half:]),
    }


rows = []
splits = ShuffleSplit(N_SPLITS, train_size=2000, random_state=0)
for known, new in splits.split(people):
    X = encode.fit_transform(people.iloc[known].drop(columns=["sex", "fnlwgt"]))
    X_new = encode.transform(people.iloc[new])
    for cap in CAPS:
        for name, model in classifiers(cap, X, income.iloc[known]).items():
            predicted = model.predict(X_new)
            flagged = false_positive_rate().value(income.iloc[new], predicted, pos_label=RICH)
            true_positives = recall().value(income.iloc[new], predicted, pos_label=RICH)
            rows.append((cap, name, flagged, true_positives, flagged <= cap))

results = pd.DataFrame(rows, columns=["cap", "model", "false positives", "recall", "cap met"])
table = results.replace("\n", " ", regex=True).groupby(["cap", "model"], sort=False).mean()
print(f"New data, means over {N_SPLITS} splits\n")
print(table.to_string(float_format="{:.3f}".format))

# %%
# What to see: a threshold from the training rows exceeds the cap on nearly every split (one dot per
# split). Its higher recall in the table comes from this violation. The confidence level of the
# trained classifier is approximate. The exact level of the last method costs recall, because it has
# half of the rows to train on.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.axvspan(0, 1, color="#009E73", alpha=0.1, linewidth=0)
ax.axvline(1, color="0.3", linestyle=":")
names = list(results["model"].unique())
for shift, cap, style in ((-0.12, CAPS[0], "o"), (0.12, CAPS[1], "s")):
    of_cap = results[results["cap"] == cap]
    heights = [names.index(name) + shift for name in of_cap["model"]]
    color = "#0072B2" if style == "o" else "#D55E00"
    ratio = of_cap["false positives"] / cap
    ax.plot(ratio, heights, style, color=color, alpha=0.7, label=f"cap {cap:.0%}")
ax.set_yticks(range(len(names)), names)
ax.invert_yaxis()
ax.set(xlabel="false positive rate / cap, new data", xlim=(0, None), title="Is the cap met?")
ax.legend(frameon=False, loc="lower right")
plt.show()
