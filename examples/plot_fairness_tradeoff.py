"""
What fairness costs on Adult
============================

Error against the fairness ratio s_p(men) / s_p(women), where s_p is the share of a group that
is answered "earns more than 50,000 dollars": Figure 2 of Goh, Cotter, Gupta & Friedlander
(NIPS 2016), on the same data. The constraint s_p(men) <= s_p(women) / kappa is declared for
1 / kappa from 1 to 6, once with the settings of the paper, once with the default ones, which leave
room for chance.

The rival is the covariance constraint of Zafar et al. (2015), a stand-in for the rates
themselves that keeps the training problem convex.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier, constraint_path
from skbandit.datasets import load_a9a
from skbandit.inspection import TradeoffDisplay
from skbandit.rates import positive_rate

train, test = load_a9a(subset="train"), load_a9a(subset="test")
sex, sex_test = (pd.DataFrame({"man": d.male, "woman": d.female}) for d in (train, test))

# %%
# The published settings: lambda = 1 / n, no intercept, training from w = 0, and no look at hard
# rates. The randomised rule answers positive with the ramp's probability; the deterministic
# one is the same w, cut at 0.

asked = np.array([1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0])


def goal(kappa):
    """The constraint as in the paper."""
    return positive_rate("man") <= positive_rate("woman") / kappa


def test_figures(p):
    """Error and ratio on the test rows, given each row's probability of a positive answer."""
    error = np.mean(np.where(test.target > 0, 1 - p, p))
    return error, p[test.male].mean() / p[test.female].mean()


paper = RampClassifier(
    alpha=1 / len(train.target), fit_intercept=False, init="zeros", threshold=False,
)  # fmt: skip
published = [
    clone(paper).set_params(constraints=goal(1 / x)).fit(train.data, train.target, attributes=sex)
    for x in asked
]
cut = np.array([test_figures(test.data @ m.coef_[0] > 0) for m in published])
drawn = np.array([test_figures(np.clip(0.5 + test.data @ m.coef_[0], 0, 1)) for m in published])

# %%
# The default settings; one call fits the whole curve.

path = constraint_path(
    ConstrainedRampClassifier(),
    train.data,
    train.target,
    bounds=1 / asked,
    constraint=goal,
    attributes=sex,
)
ours = np.array([test_figures(m.predict(test.data) > 0) for m in path.estimators])
columns = pd.MultiIndex.from_product(
    [["deterministic", "randomised", "default"], ["error", "ratio"]]
)
table = pd.DataFrame(np.hstack([cut, drawn, ours]), pd.Index(asked, name="1/kappa"), columns)
print(table.to_string(float_format="%.3f"))

# %%
# Zafar et al. (2015) bound the covariance of scores and sex: <w, gap> <= c, with gap the
# difference of the groups' means (eq. 8). The bound is one-sided: c = 0 makes mean scores equal,
# not the shares of positive answers, and a negative c goes on from there.

gap = np.asarray(train.data[train.male].mean(axis=0) - train.data[train.female].mean(axis=0))
n, d = train.data.shape
w, b, slack, c = cp.Variable(d), cp.Variable(), cp.Variable(n, nonneg=True), cp.Parameter()
svm = cp.Problem(
    cp.Minimize(cp.sum(slack) / n + 1e-3 / 2 * cp.sum_squares(w)),
    [slack >= 1 - cp.multiply(train.target, train.data @ w + b), gap.ravel() @ w <= c],
)


def covariance(bound):
    """Test error and ratio of an SVM under this bound."""
    c.value = bound
    svm.solve(solver="CLARABEL", tol_gap_rel=1e-6)
    return test_figures(test.data @ w.value + b.value > 0)


bounds = [2.0, 0.4, 0.0, -1.0, -2.0, -3.0]  # 2 is more than the SVM's own 1.2
zafar = np.array([covariance(bound) for bound in bounds])
svm_error, svm_ratio = zafar[0]
print(pd.DataFrame(zafar, bounds, ["error", "ratio"]).rename_axis("c").round(4))
by_ratio = zafar[np.argsort(zafar[:, 1])]
at_parity = np.interp(cut[0, 1], by_ratio[:, 1], by_ratio[:, 0])
print(f"at the ratio {cut[0, 1]:.2f}: {at_parity:.4f} by covariance, {cut[0, 0]:.4f} here")

# %%
# *The paper says* that its proposal is much more accurate than the covariance constraint at any
# fairness, that it reaches ratios which that cannot reach for any c, and that kappa is an
# effective proxy for the ratio.
#
# *Seen here*: kappa is what one gets, on new rows too, up to the SVM's own ratio; 1 / kappa beyond
# it no longer binds. The covariance constraint reaches every ratio, parity for c about -2.5. It is
# level down to a ratio of 1.8 and loses .003 of error at parity (a test error here has a standard
# error of .003, but both are measured on the same rows); and nobody knows beforehand which c
# gives which ratio. Deterministic and randomised answers hardly differ. The default settings
# leave room for chance and so end below 1 / kappa, where the paper's end on it.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for found, style, colour, label in (
    (cut, "o-", "#0072B2", "published, deterministic"),
    (drawn, "s--", "#D55E00", "published, randomised"),
    (ours, "d-", "#CC79A7", "default"),
):
    left.plot(found[:, 1], found[:, 0], style, color=colour, label=label)
    right.plot(asked, found[:, 1], style, color=colour, label=label)
left.plot(zafar[:, 1], zafar[:, 0], "^:", color="#009E73", label="covariance (Zafar et al.)")
left.axhline(svm_error, color="0.6", lw=1, label="unconstrained SVM")
left.set(xlabel="test ratio s_p(men) / s_p(women)", ylabel="test error")
right.plot(asked, asked, color="0.6", lw=1, label="as asked for")
right.set(xlabel="1 / kappa asked for in training", ylabel="test ratio")
for ax in (left, right):
    ax.legend(frameon=False)

# %%
# The same trade-off in one call, in the words of the constraint, with intervals.

share = positive_rate("woman") / positive_rate("man")
TradeoffDisplay.from_estimator(
    ConstrainedRampClassifier(constraints=share >= 0.8),
    train.data,
    train.target,
    bounds=[0.4, 0.6, 0.8, 1.0],
    attributes=sex,
    X_test=test.data,
    y_test=test.target,
    attributes_test=sex_test,
)
plt.show()
