"""
A new model that does not upset what works
==========================================

A deployed model is to be replaced by a better one, but every answer that changes costs
something: a complaint, a review, a broken habit. The demands, as in Section 4.2 of Goh, Cotter,
Gupta & Friedlander (NIPS 2016): few errors, recall no worse than the deployed model's, and
*churn*, the share of answers that change, below a target. Their data is proprietary; here a
logistic regression on 3,000 people of the Adult census is deployed, one that cares for recall,
and three more data sets arrive:

- D1, labelled, picked by active sampling: the deployed model was unsure about them;
- D2, labelled, drawn at random: recall is measured on these;
- D3, drawn at random and *not* labelled: churn needs no labels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.sparse import vstack
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, constraint_path
from skbandit.datasets import load_a9a
from skbandit.rates import churn, error_rate, false_positive_rate, recall

ALPHA = 1e-4
parts = [load_a9a(subset=subset) for subset in ("train", "test")]
X = vstack([part.data for part in parts], format="csr")
y = np.concatenate([part.target for part in parts])

# %%
# Splitting: 80 % of each data set to train on, 20 % to see how it holds.

rows = np.random.default_rng(0).permutation(len(y))
deployed = LogisticRegression(C=0.01, max_iter=500, class_weight={-1: 1, 1: 2}).fit(
    X[rows[:3000]], y[rows[:3000]]
)
unsure = np.abs(deployed.decision_function(X[rows[3000:25000]]))
d1 = rows[3000:25000][np.argsort(unsure)[:9000]]
d2, d3 = rows[25000:37000], rows[37000:]


def split(d):
    """The first 80 % and the rest, in a random order."""
    d = np.random.default_rng(1).permutation(d)
    return d[: int(0.8 * len(d))], d[int(0.8 * len(d)) :]


def told(*labelled):
    """What constraints name: which rows are of D1 and of D2, and the deployed model's answers."""
    rows = np.concatenate(labelled)
    return pd.DataFrame(
        {
            "d1": np.arange(len(rows)) < len(labelled[0]),
            "d2": np.arange(len(rows)) >= len(labelled[0]),
            "deployed": deployed.predict(X[rows]),
        }
    )


(d1, d1_test), (d2, d2_test), (d3, d3_test) = split(d1), split(d2), split(d3)
labelled, labelled_test = np.concatenate([d1, d2]), np.concatenate([d1_test, d2_test])
attributes, attributes_test = told(d1, d2), told(d1_test, d2_test)
answers, answers_test = (pd.DataFrame({"deployed": deployed.predict(X[d])}) for d in (d3, d3_test))

# %%
# Errors on D1 and false alarms on D2, per row, under two constraints. One of them varies.

negatives = np.sum(y[d2] < 0)
costs = (len(d1) * error_rate("d1") + negatives * false_positive_rate("d2")) / len(labelled)
as_good = recall("d2") >= recall("d2").value(y[labelled], attributes["deployed"], attributes)
targets = np.array([0.02, 0.03, 0.04, 0.05, 0.06])
path = constraint_path(
    ConstrainedRampClassifier(costs, [as_good, churn("deployed", on="extra") <= 0.05], alpha=ALPHA),
    X[labelled],
    y[labelled],
    bounds=targets,
    constraint=1,
    attributes=attributes,
    X_extra=X[d3],
    attributes_extra=answers,
)

# %%
# The rival: an SVM on the same labels, and then the threshold that meets the recall. It knows
# nothing of churn.

svm = LinearSVC(loss="hinge", C=1 / (ALPHA * len(labelled)), max_iter=50_000, random_state=0)
svm.fit(X[labelled], y[labelled])
rival = ConstrainedThreshold(svm, costs, as_good, cv="prefit", confidence_level=0.5)
rival.fit(X[labelled], y[labelled], attributes=attributes)

# %%
# What came of it, on the rows trained on and on the others.


def figures(name, target, model):
    """One row of the table: churn on D3, errors and recall on the labelled rows."""
    found = {"model": name, "churn target": target}
    sets = [("train", labelled, attributes, d3), ("test", labelled_test, attributes_test, d3_test)]
    for where, told_of, columns, unlabelled in sets:
        predicted = model.predict(X[told_of])
        found[f"churn, {where}"] = np.mean(
            model.predict(X[unlabelled]) != deployed.predict(X[unlabelled])
        )
        found[f"error, {where}"] = np.mean(predicted != y[told_of])
        found[f"recall, {where}"] = recall("d2").value(y[told_of], predicted, columns)
    return found


table = pd.DataFrame(
    [figures("constrained", t, m) for t, m in zip(targets, path.estimators, strict=True)]
    + [figures("thresholded SVM", np.nan, rival), figures("deployed", np.nan, deployed)]
)
print(table.to_string(index=False, float_format="%.4f"))
randomised = [m.constraint_report_["expected"].iloc[1] for m in path.estimators]
print("churn of the randomised rules on D3:", np.round(randomised, 4))

# %%
# Left, churn follows its target; right, what it costs in errors.
#
# *The paper* (Figure 3) reports lower churn and better accuracy than the thresholded SVM's at every
# target, with recall kept. *Seen here*: lower churn and recall as demanded, but not better accuracy
# at every target. The deployed model is often wrong (22 % on new rows), and who may change 2 % of
# its answers cannot mend much; near the SVM's own churn both have as many errors, to a standard
# error of .006. ``python -m tests.benchmarks.published --only churning`` repeats the experiment
# with the settings of the paper, over several splits, for both rules: there, too, errors are fewer
# from a target of .05 on only.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ours, baseline = table[table.model == "constrained"], table[table.model == "thresholded SVM"]
for ax, what in zip(axes, ("churn", "error"), strict=True):
    for where, line in (("train", ":"), ("test", "--")):
        column = f"{what}, {where}"
        ax.plot(targets, ours[column], "o" + line, color="#0072B2", label=f"constrained, {where}")
        level = baseline[column].item()
        ax.axhline(level, ls=line, color="#009E73", label=f"thresholded SVM, {where}")
    ax.set(xlabel="churn target", ylabel={"churn": "churn on D3", "error": "error rate"}[what])
axes[0].plot(targets, targets, color="0.6", lw=1, label="as asked for")
axes[0].legend(frameon=False)
plt.show()
