"""
Figures of constraints and policies
===================================

This example shows the five displays of ``skbandit.inspection``. Each needs one line of code.
"""

# sphinx_gallery_thumbnail_number = 5
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy
from skbandit.datasets import load_adult, make_bandit_log
from skbandit.evaluation import replay
from skbandit.inspection import (
    ArmSharesDisplay,
    ConstraintReportDisplay,
    RateReportDisplay,
    ReplayDisplay,
    TradeoffDisplay,
)
from skbandit.rates import each, error_rate, false_positive_rate, positive_rate, ratio, recall

RICH = ">50K"
people, income = load_adult(subset="all", return_X_y=True)
X = StandardScaler().fit_transform(people.select_dtypes("number").drop(columns="fnlwgt"))
known, new = slice(0, 4000), slice(4000, 12_000)

# %%
# ``TradeoffDisplay`` shows the cost of a constraint. What to see: the test recall follows its bound
# (left), and the false positive rate rises with it (right).

model = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.8, pos_label=RICH)
TradeoffDisplay.from_estimator(
    model, X[known], income[known], bounds=[0.5, 0.6, 0.7, 0.8, 0.9],
    X_test=X[new], y_test=income[new],
)  # fmt: skip
plt.show()

# %%
# ``ConstraintReportDisplay`` shows each constraint on new data. What to see: the constraint for
# women is missed, but its interval contains the bound, so it is undecided (circle).

by_sex = (each(recall, by="sex") >= 0.6).named("recall")
model = ConstrainedRampClassifier(false_positive_rate(), by_sex, pos_label=RICH)
model.fit(X[known], income[known], attributes=people[["sex"]][known])
ConstraintReportDisplay.from_estimator(model, X[new], income[new], attributes=people[["sex"]][new])
plt.show()

# %%
# ``RateReportDisplay`` shows rates by group for the predictions of any classifier, and of ratios
# between groups the worst. What to see: the recall is below its bound of .5 for most groups, and
# the intervals of small groups are wide. A warning names groups with few rows.

predicted = LogisticRegression().fit(X[known], income[known]).predict(X[new])
rates = {"error": error_rate(), "recall": recall() >= 0.5, "positive": positive_rate()}
rates["80% rule"] = ratio(positive_rate, by="race") >= 0.8
RateReportDisplay.from_predictions(
    income[new], predicted, rates, by="race", attributes=people[new], pos_label=RICH
)
plt.show()

# %%
# ``ReplayDisplay`` shows the mean reward of policies while they learn, over ten replays of random
# halves of a log. What to see: less exploration earns more on this log.

log = make_bandit_log(30_000, n_arms=5, n_features=5, base_rate=0.1, random_state=0)
settings = {"random_state": 0, "n_repeats": 10, "subsample": 0.5}
results = {
    f"alpha={alpha}": replay(GLMUCBPolicy(alpha=alpha), log.X, log.y, **settings)
    for alpha in (0.2, 5.0)
}
ReplayDisplay.from_result(results)
plt.show()

# %%
# ``ArmSharesDisplay`` shows the arms that a policy selects. What to see: after a few hundred events
# the policy selects mostly arms 3 and 4.

ArmSharesDisplay.from_result(results["alpha=0.2"])
plt.show()
