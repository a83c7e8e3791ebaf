"""
The 80% rule on Adult
======================

A model predicts who earns more than 50,000 dollars, on the census data of 1994. The 80% rule of
US law requires that it says "yes" to women at least 80% as often as to men. This example trains
a classifier under that rule in a pandas pipeline. Training needs the sex of each person, and
prediction does not.
"""

import time

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.datasets import load_adult
from skbandit.rates import error_rate, positive_rate, ratio

RICH = ">50K"

train, test = load_adult(subset="train"), load_adult(subset="test")
X = train.data.drop(columns=["sex", "fnlwgt"])

# %%
# The features do not include sex. This is not enough to satisfy the rule, because other columns
# reveal it: ``relationship``, for example, has the values "Husband" and "Wife".


def pipeline(classifier):
    """One-hot encode categories, standardize numbers, then classify."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(encode, classifier)


parity = ratio(positive_rate, by="sex")
rows = []


def evaluate(name, model):
    """Add the rates of a fitted model on both datasets to the table."""
    for subset, data in (("train", train), ("test", test)):
        predicted = model.predict(data.data)
        rates = [
            positive_rate({"sex": sex}).value(None, predicted, data.data, pos_label=RICH)
            for sex in ("Female", "Male")
        ]
        error = error_rate().value(data.target, predicted, pos_label=RICH)
        fair = parity.value(None, predicted, data.data, pos_label=RICH)
        rows.append((name, subset, error, *rates, fair))


evaluate("unconstrained", pipeline(LogisticRegression(max_iter=1000)).fit(X, train.target))

for bound in (0.5, 0.8, 0.95):
    classifier = ConstrainedRampClassifier(constraints=parity >= bound, pos_label=RICH)
    model = pipeline(classifier)
    started = time.perf_counter()
    model.fit(X, train.target, constrainedrampclassifier__attributes=train.data[["sex"]])
    seconds = time.perf_counter() - started
    print(f"\n{classifier.constraints}: {seconds:.0f} s")
    print(classifier.constraint_report_.drop(columns=["on", "constraint"]).to_string())
    evaluate(f"ratio >= {bound}", model)

# %%
# The ratio meets each bound on the training rows and on the test rows.

table = pd.DataFrame(
    rows, columns=["model", "rows", "error", "yes to women", "yes to men", "ratio"]
).set_index(["rows", "model"])
print("\n" + table.sort_index(level="rows", sort_remaining=False).to_string(float_format="%.3f"))

# %%
# What to see: each step toward equal rates costs accuracy, on training and test rows alike. The
# dotted line is the 80% rule.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for subset, fill in (("train", "#0072B2"), ("test", "white")):
    part = table.loc[subset]
    ax.plot(
        part["ratio"], part["error"], "o-", color="#0072B2", markerfacecolor=fill,
        label=f"{subset} rows",
    )  # fmt: skip
for name, point in table.loc["test"].iterrows():
    ax.annotate(
        name, (point["ratio"], point["error"]), xytext=(-8, 4), textcoords="offset points",
        ha="right", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip
ax.axvline(0.8, color="0.4", linestyle=":", zorder=0)
ax.set(
    xlabel="positive rate of women / positive rate of men",
    ylabel="error rate",
    title="The cost of the 80% rule on Adult",
    xlim=(0, 1.05),
)
ax.margins(y=0.1)
ax.legend(frameon=False, loc="upper left")
plt.show()
