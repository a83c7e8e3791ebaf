"""
The 80 % rule on Adult
======================

Who earns more than 50,000 dollars? A model that answers "yes" for women less than 80 % as
often as for men breaks the 80 % rule of US law. Here it is declared as a constraint, on the
census data of 1994, in a pandas pipeline.
The sex of a person is needed to train under the constraint, not to predict.
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
# Sex is left out of the features. Leaving it out is not enough: what a person does, and
# whether as husband or wife, gives it away.


def pipeline(classifier):
    """One-hot categories, standardised numbers, then the classifier."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(encode, classifier)


parity = ratio(positive_rate, by="sex")
rows = []


def measure(name, model):
    """Add the figures of a fitted model on both datasets to the table."""
    for where, data in (("train", train), ("test", test)):
        answers = model.predict(data.data)
        rates = [
            positive_rate({"sex": sex}).value(None, answers, data.data, pos_label=RICH)
            for sex in ("Female", "Male")
        ]
        error = error_rate().value(data.target, answers, pos_label=RICH)
        fair = parity.value(None, answers, data.data, pos_label=RICH)
        rows.append((name, where, error, *rates, fair))


measure("unconstrained", pipeline(LogisticRegression(max_iter=1000)).fit(X, train.target))

for bound in (0.5, 0.8, 0.95):
    classifier = ConstrainedRampClassifier(constraints=parity >= bound, pos_label=RICH)
    model = pipeline(classifier)
    started = time.perf_counter()
    model.fit(X, train.target, constrainedrampclassifier__attributes=train.data[["sex"]])
    seconds = time.perf_counter() - started
    print(f"\n{classifier.constraints}: {classifier.n_iter_} steps, {seconds:.0f} s")
    print(classifier.constraint_report_.drop(columns=["on", "constraint"]).to_string())
    measure(f"ratio >= {bound}", model)

# %%
# The table: the bound holds exactly on the training rows, and closely on the test rows.

table = pd.DataFrame(
    rows, columns=["model", "rows", "error", "yes to women", "yes to men", "ratio"]
).set_index(["rows", "model"])
print("\n" + table.sort_index(level="rows", sort_remaining=False).to_string(float_format="%.3f"))

# %%
# What fairness costs

fig, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
for where, marker, fill in (("train", "o", "#0072B2"), ("test", "o", "white")):
    part = table.loc[where]
    ax.plot(part["ratio"], part["error"], color="#0072B2", linewidth=1)
    ax.plot(
        part["ratio"], part["error"], marker, color="#0072B2", markerfacecolor=fill, label=where
    )
for name, point in table.loc["test"].iterrows():
    ax.annotate(
        name,
        (point["ratio"], point["error"]),
        xytext=(-6, 6),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
ax.axvline(0.8, color="0.4", linestyle=":", linewidth=1)
ax.set(xlabel=repr(parity), ylabel=repr(error_rate()), title="Error against the 80 % rule on Adult")
ax.margins(x=0.18)
ax.legend(frameon=False)
plt.show()
