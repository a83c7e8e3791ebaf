"""
Coupons under a budget
======================

A shop can send each customer a coupon of 5, 10 or 20 percent, or none. The coupons may cost a given
amount per customer. Women and men must get the largest coupon alike. Each coupon must go to at
least 5% of the customers, so that the next log still shows all of them. ``ConstrainedPolicy``
learns from a log of coupons that were sent at random. The data are synthetic, so the true revenue
of each coupon is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbandit.bandit import ConstrainedPolicy
from skbandit.rates import cost, difference, each, positive_rate

COUPONS = np.array([0, 5, 10, 20])


def customers(n, seed):
    """Features, columns that constraints name, and the expected revenue of each coupon."""
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    X = pd.DataFrame(
        {
            "visits": rng.gamma(2, 1, n) + 0.7 * woman,
            "months_away": rng.gamma(2, 1, n),
            "basket": rng.gamma(3, 10, n),
        }
    )
    people = pd.DataFrame({"sex": np.where(woman, "F", "M")})
    for percent in COUPONS[1:]:
        people[f"cost_{percent}"] = X["basket"] * percent / 100
    gain = 2 + 2.5 * X["visits"] - 1.5 * X["months_away"]
    effect = np.array([0, 0.4, 0.7, 1.0]) * gain.to_numpy()[:, None]
    return X, people, X[["basket"]].to_numpy() / 2 + effect


X, people, revenue = customers(6000, seed=1)
new, new_people, new_revenue = customers(30_000, seed=2)
rng = np.random.default_rng(0)
sent, row = rng.integers(0, 4, len(X)), np.arange(len(X))
log = pd.DataFrame(
    {
        "action": COUPONS[sent],
        "reward": revenue[row, sent] + rng.normal(scale=5, size=len(X)),
        "propensity": 0.25,
    }
)

# %%
# Three kinds of constraints
# --------------------------
# A coupon costs its percentage of the basket, so the costs are columns. All amounts are dollars per
# customer.

spend = cost({0: 0, 5: "cost_5", 10: "cost_10", 20: "cost_20"})
parity = difference(positive_rate, by="sex", of=[20]) <= 0.05
exposure = each(positive_rate, of="decisions") >= 0.05

policy = ConstrainedPolicy(
    constraints=[spend <= 1.5, parity, exposure], confidence_level=0.9, random_state=0
)
policy.fit(X, log, attributes=people)
columns = ["constraint", "bound", "value", "margin", "satisfied", "multiplier"]
print(policy.constraint_report_[columns].round(3).to_string(index=False))


def rates_of(coupon):
    """True revenue, spend, smallest share and gap of the largest coupon on new customers."""
    earned = new_revenue[np.arange(len(new)), np.searchsorted(COUPONS, coupon)].mean()
    spent = spend.value(None, coupon, new_people, labels=COUPONS)
    share = min((coupon == one).mean() for one in COUPONS)
    return earned, spent, share, parity.rate.value(None, coupon, new_people)


free = ConstrainedPolicy(random_state=0).fit(X, log)
nothing = new_revenue[:, 0].mean()
for name, coupon in {
    "without constraints": free.predict(new),
    "with constraints": policy.predict(new, attributes=new_people),
}.items():
    earned, spent, share, gap = rates_of(coupon)
    print(
        f"{name:20} earns {earned - nothing:.2f} more than no coupons, spends {spent:.2f}, "
        f"smallest share {share:.2f}, gap {gap:.3f}"
    )

# %%
# Revenue against budget
# ----------------------
# What many do: choose the best coupon for each customer, and send it to a random part of them, so
# that the budget is kept. The multipliers spend the same budget on the customers for whom a dollar
# gains most.

BUDGETS = [0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]
curves = {"budget": [], "budget, parity and exposure": []}
multipliers = []
for budget in BUDGETS:
    for name, others in zip(curves, ([], [parity, exposure]), strict=True):
        model = ConstrainedPolicy(
            constraints=[spend <= budget, *others], confidence_level=0.9, random_state=0
        ).fit(X, log, attributes=people)
        earned, spent, *_ = rates_of(model.predict(new, attributes=new_people))
        curves[name].append((spent, earned - nothing))
        print(f"{name}: {budget:.2f} allowed, {spent:.2f} spent, {earned - nothing:.2f} gained")
    report = model.constraint_report_
    kind = report["constraint"].str.extract(r"^(\w+)", expand=False)
    multipliers.append(report.groupby(kind)["multiplier"].sum())

earned, spent, *_ = rates_of(free.predict(new))
share = np.linspace(0, 1, 11)
thinned = np.column_stack([share * spent, share * (earned - nothing)])

# %%
# What to see: on the left, half of the budget that the best coupons need gains 4 of the 5 dollars,
# and thinning at random gains 2.5 with it. Parity and exposure cost next to nothing, since both
# curves coincide. On the right are the multipliers: what one more unit of each bound gains. With a
# budget of 0.75 dollars, one more cent gains 1.9 cents. From about 1.75 dollars on, a cent gains
# less than it costs, so a larger budget does not pay. Exposure costs something only if the budget
# is large, because few customers should then get a coupon of 10 percent.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot(*thinned.T, color="0.5", ls="--", label="thinned at random")
styles = [("-", "#0072B2"), ("s", "#D55E00")]
for (name, points), (marker, color) in zip(curves.items(), styles, strict=True):
    axes[0].plot(*np.transpose(points), marker, color=color, label=name)
axes[0].set(xlabel="dollars spent per customer", ylabel="dollars gained per customer")
axes[0].set(title="Revenue on new customers", xlim=(0, None), ylim=(0, None))
axes[0].legend(frameon=False)

units = {
    "cost": "one cent more budget",
    "difference": "one point more difference of groups",
    "each": "one point less exposure",
}
table = pd.DataFrame(multipliers, index=BUDGETS)
for (kind, label), marker in zip(units.items(), ("o-", "s-", "^-"), strict=True):
    axes[1].plot(table.index, table[kind], marker, label=label)
axes[1].set(xlabel="budget (dollars per customer)", ylabel="cents gained per customer")
axes[1].set(title="Multipliers", ylim=(0, None))
axes[1].legend(frameon=False)
plt.show()
