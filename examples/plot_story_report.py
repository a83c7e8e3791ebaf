"""
From a raw table to a report for sign-off
=========================================

A bank wants to offer a premium account to people who probably earn more than 50,000 dollars. Before
training, it sets two constraints and an objective:

1. At most 5% of the people who earn less get the offer (a bound on the false positive rate).
2. The recall of women and of men differs by at most 10 points (equal opportunity).
3. Within these limits, recall is as high as possible.

Whoever signs off the model needs the expected rates, their confidence, and the rates on held-out
data. This example goes from the table to that report, on the census data of 1994.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import constraint_report
from skbandit.datasets import load_adult
from skbandit.evaluation import rate_report, to_model_card
from skbandit.inspection import RateReportDisplay
from skbandit.rates import difference, false_positive_rate, positive_rate, precision, recall

RICH = ">50K"

# %%
# The table
# ---------
# The model is trained on 15,000 of 48,842 people, and tested on the others. Training needs the sex
# of each person for the second constraint. It is not a feature, so prediction does not need it.

people, income = load_adult(subset="all", return_X_y=True)
known, new = train_test_split(people.index, train_size=15_000, random_state=0, stratify=income)
features = people.drop(columns=["sex", "fnlwgt"])
sex = people[["sex"]]
print(people[["age", "education", "occupation", "sex", "hours_per_week"]].head(4).to_string())

# %%
# The constraints
# ---------------

few_false_offers = (false_positive_rate() <= 0.05).named("false offers")
equal_opportunity = (difference(recall, by="sex") <= 0.1).named("equal opportunity")
constraints = [few_false_offers, equal_opportunity]

# %%
# Two pipelines
# -------------
# Train logistic regression as a baseline, and a linear model under the constraints. With
# ``confidence_level=0.9``, all constraints together hold for the population with a probability of
# about 90%.


def with_columns(classifier):
    """One-hot encode categories, standardize numbers, then classify."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(encode, classifier)


plain = with_columns(LogisticRegression(max_iter=1000))
plain.fit(features.loc[known], income.loc[known])
model = with_columns(
    ConstrainedRampClassifier(recall(), constraints, confidence_level=0.9, pos_label=RICH)
)
model.fit(
    features.loc[known], income.loc[known], constrainedrampclassifier__attributes=sex.loc[known]
)

# %%
# The report from training data
# -----------------------------
# ``cross_fitted`` is the out-of-fold estimate, with its interval. Training keeps a margin between
# it and the bound, as the confidence level requires.

expected = model[-1].constraint_report_
columns = ["constraint", "n_rows", "bound", "cross_fitted", "ci_low", "ci_high", "satisfied"]
print(expected[columns].to_string(index=False, float_format="{:.3f}".format))

# %%
# The report on held-out data
# ---------------------------
# Both constraints are satisfied. A difference has one row per direction in the report.

held_out = constraint_report(model, features.loc[new], income.loc[new], attributes=sex.loc[new])
columns = ["constraint", "n_rows", "bound", "value", "ci_low", "ci_high", "satisfied"]
print(held_out[columns].to_string(index=False, float_format="{:.3f}".format))

# %%
# Compared with this model, logistic regression has a higher recall and violates both constraints.

measures = {
    "recall": recall(),
    "false offers": false_positive_rate(),
    "difference of recalls": difference(recall, by="sex"),
}
models = {"logistic regression": plain, "constrained": model}
predictions = {name: one.predict(features.loc[new]) for name, one in models.items()}
table = pd.DataFrame(
    {
        name: [
            rate.value(income.loc[new], predicted, sex.loc[new], pos_label=RICH)
            for rate in measures.values()
        ]
        for name, predicted in predictions.items()
    },
    index=list(measures),
)
print(table.to_string(float_format="{:.3f}".format))

# %%
# Expected and observed rates
# ---------------------------
# What to see: the out-of-fold estimates and the held-out rates are below the bounds, and their 95%
# intervals end near them. The rates of logistic regression are above the bounds.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.axvline(1, color="0.3", linestyle=":")
for row, plain_value, color, name in (
    (0, table.iloc[1, 0], "#0072B2", "false offers"),
    (2, table.iloc[2, 0], "#D55E00", "difference of recalls, men - women"),
):
    bound, shift = expected["bound"][row], 0.1 * (row - 1)
    for height, report, column in ((0, expected, "cross_fitted"), (1, held_out, "value")):
        low, high, value = report.loc[row, ["ci_low", "ci_high", column]] / bound
        ax.plot([low, high], [height + shift] * 2, color=color, linewidth=2)
        ax.plot(value, height + shift, "o", color=color)
    ax.plot(plain_value / bound, 2 + shift, "o", color=color, label=name)
ax.set_yticks([0, 1, 2], ["out of fold", "held-out rows", "logistic\nregression"])
ax.set(xlabel="rate / bound", xlim=(0, 1.6), ylim=(2.5, -0.5))
fig.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# Rates by group
# --------------
# `rate_report` estimates any rates of any predictions, by group, with or without a bound. What to
# see: the false positive rate of men is above the bound (cross).

rates = {
    "false offers": few_false_offers,
    "recall": recall(),
    "offers": positive_rate(),
    "precision": precision(),
}
report = rate_report(
    income.loc[new],
    predictions["constrained"],
    rates,
    by="sex",
    attributes=sex.loc[new],
    pos_label=RICH,
)
display = RateReportDisplay.from_report(report)
display.figure_.suptitle("33,842 held-out rows")
plt.show()

# %%
# The bound holds for all people together and for women, but not for men alone. The constraint did
# not require that. `each(false_positive_rate, by="sex") <= 0.05` does.
#
# The model card
# --------------
# A model card (Mitchell et al. 2019) has the table, and the facts that only its authors know.

card = to_model_card(
    report,
    title="Premium account offers",
    goal="Selects customers for an offer by mail. Not for credit decisions.",
    data="33,842 people of the 1994 census (Adult, CC BY 4.0) that took no part in training.",
    limits="The labels are incomes of 1994. The bound of 5% holds for all people together, and is "
    "exceeded among men. Repeat the evaluation every quarter on new customers.",
)
print(card)
