"""
Five figures, a line of code each
=================================

The displays of ``skbandit.inspection``: what a constraint costs, what holds on new rows, rates by
group, what a policy earns while it learns, and what it plays.
"""

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
from skbandit.rates import each, error_rate, false_positive_rate, positive_rate, recall

RICH = ">50K"
people, income = load_adult(subset="all", return_X_y=True)
X = StandardScaler().fit_transform(people.select_dtypes("number").drop(columns="fnlwgt"))
known, new = slice(0, 4000), slice(4000, 12_000)

# %%
# What a constraint costs: the more of the rich are to be found, the more others are taken for rich.

model = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.8, pos_label=RICH)
TradeoffDisplay.from_estimator(
    model, X[known], income[known], bounds=[0.5, 0.6, 0.7, 0.8, 0.9],
    X_test=X[new], y_test=income[new],
)  # fmt: skip
plt.show()

# %%
# What holds on new rows: the slack of each constraint. A cross marks one that is missed.

by_sex = (each(recall, by="sex") >= 0.6).named("recall")
model = ConstrainedRampClassifier(false_positive_rate(), by_sex, pos_label=RICH)
model.fit(X[known], income[known], attributes=people[["sex"]][known])
ConstraintReportDisplay.from_estimator(model, X[new], income[new], attributes=people[["sex"]][new])
plt.show()

# %%
# Rates by group, of the answers of any classifier. Of groups with few rows a warning says so.

answers = LogisticRegression().fit(X[known], income[known]).predict(X[new])
goals = {"errors": error_rate(), "found": recall() >= 0.5, "yes": positive_rate()}
RateReportDisplay.from_predictions(
    income[new], answers, goals, by="race", attributes=people[new], pos_label=RICH
)
plt.show()

# %%
# What policies earn while they learn, over ten replays of random halves of a log.

log = make_bandit_log(30_000, n_arms=5, n_features=5, base_rate=0.1, random_state=0)
settings = {"random_state": 0, "n_repeats": 10, "subsample": 0.5}
results = {
    f"alpha={alpha}": replay(GLMUCBPolicy(alpha=alpha), log.X, log.y, **settings)
    for alpha in (0.2, 5.0)
}
ReplayDisplay.from_result(results)
plt.show()

# %%
# What one of them plays.

ArmSharesDisplay.from_result(results["alpha=0.2"])
plt.show()
