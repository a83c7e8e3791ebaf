"""
Limit errors on the rows that matter most
=========================================

Some rows matter more than others, and a boolean column says which. On the census data a logistic
regression finds three in ten of the unmarried people who earn more than 50,000 dollars: they are
few, and being married tells so much about incomes. As a constraint, "answer at least half of these
rows correctly" is one line. What does it cost, and does it hold for people who are new?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.datasets import load_adult
from skbandit.rates import accuracy, error_rate

RICH, DEMANDS = ">50K", np.array([0.0, 0.4, 0.5, 0.6, 0.7, 0.8])

people, income = load_adult(subset="all", return_X_y=True)
named = pd.DataFrame(
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
# One model per demand. The label is part of the column, so the column exists only where labels do:
# it is needed to train and to measure, and never to predict.

of_named = accuracy("egregious")
rows = []
for demand in DEMANDS:
    model = ConstrainedRampClassifier(constraints=of_named >= demand, pos_label=RICH)
    model.fit(X, income[known], attributes=named[known])
    answers = model.predict(X_new)
    report = model.constraint_report_.iloc[0]
    rows.append(
        {
            "demand": demand,
            "promised": report["cross_fitted"],
            "low": report["ci_low"],
            "high": report["ci_high"],
            "new people": of_named.value(income[new], answers, named[new], pos_label=RICH),
            "error": error_rate().value(income[new], answers, pos_label=RICH),
            "price": report["multiplier"],
        }
    )
table = pd.DataFrame(rows)
print(table.to_string(index=False, float_format="{:.3f}".format))

# %%
# Left, the named rows: demanded, promised out of fold with a 95 % interval, and found among new
# people. Right, the errors on all people that this costs. The first steps cost little.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot([0, 0.9], [0, 0.9], color="0.6", linestyle=":", linewidth=1)
spans = np.abs(table[["low", "high"]].to_numpy().T - table["promised"].to_numpy())
left.errorbar(
    DEMANDS, table["promised"], spans, fmt="o", color="#0072B2", markerfacecolor="white",
    label="promised, out of fold",
)  # fmt: skip
left.plot(DEMANDS, table["new people"], "s", color="#D55E00", label="new people")
left.set(xlabel="share demanded", ylabel="share answered correctly", title="The named rows")
left.legend(frameon=False)
right.plot(table["new people"], table["error"], "o-", color="#D55E00")
right.set(
    xlabel="named rows answered correctly, new people", ylabel="error rate, new people",
    title="What it costs on all rows", ylim=(0.14, None),
)  # fmt: skip
plt.show()
