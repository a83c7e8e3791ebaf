"""
Slates learned online
=====================

A page shows three of twelve articles. Which three a reader likes is not known at first, so the page
has to explore while it serves. What it can learn from depends on what it sees: a click or none on
each article, only the first click of a reader who goes from the top down, or no more than how often
the page as a whole was clicked. The readers are made, so that the best slates are known.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from skbandit import GLMUCBPolicy
from skbandit.bandit import SlatePolicy
from skbandit.evaluation import slate_ips, slate_pseudo_inverse

N_ARTICLES, M, N_FEATURES = 12, 3, 5
rng = np.random.default_rng(0)
taste = rng.normal(scale=0.8, size=(N_FEATURES, N_ARTICLES))
appeal = rng.normal(-1.5, 0.5, size=N_ARTICLES)


def chances(X):
    """The probability of a click on each article."""
    return expit(X @ taste + appeal)


# %%
# Three kinds of feedback
# -----------------------
# The default policy is Thompson sampling: it draws from what it believes of each article, and shows
# the three largest draws. Readers come in groups of 25, and the policy learns after each group.
# The fourth line takes articles below the first click for failures. They were not looked at, and
# the more an article is shown below good ones, the worse it seems.


def first_clicks(clicks):
    """Clicks of readers who stop at the first one, as they look without a cascade in mind."""
    return clicks * (np.cumsum(clicks, axis=1) <= 1)


seen = {
    "each click": ("semi_bandit", lambda clicks: clicks),
    "the first click": ("cascade", first_clicks),
    "clicks of the page": ("slate", lambda clicks: clicks.sum(axis=1)),
    "the first click,\nthe rest as 0": ("semi_bandit", first_clicks),
}
n_groups, size = 80, 25
share, policies = {}, {}
for name, (feedback, answer) in seen.items():
    readers = np.random.default_rng(1)
    policy = SlatePolicy(n_select=M, feedback=feedback, random_state=0)
    earned = []
    for _ in range(n_groups):
        X = readers.normal(size=(size, N_FEATURES))
        p = chances(X)
        slates = policy.select(X, available=range(N_ARTICLES))
        of_slate = np.take_along_axis(p, slates, axis=1)
        clicks = (readers.random((size, M)) < of_slate).astype(float)
        policy.partial_fit(X, slates, answer(clicks))
        best = np.sort(p, axis=1)[:, -M:].sum(axis=1)
        even = M * p.mean(axis=1)
        earned.append((of_slate.sum(axis=1) - even).sum() / (best - even).sum())
    share[name], policies[name] = np.array(earned), policy
    print(f"{name!r}: {np.mean(earned[-20:]):.2f} of the way from random to the best slates")

# %%
# What would its slates earn?
# ---------------------------
# A log of random slates answers that without showing one of the policy's: from a reward per
# article, or from one per slate. The latter says less, so its estimates need more events.

policy = policies["each click"]
sizes = np.array([250, 500, 1000, 2000, 4000])
X = rng.normal(size=(sizes[-1], N_FEATURES))
logged = rng.permuted(np.tile(np.arange(N_ARTICLES), (len(X), 1)), axis=1)[:, :M]
clicks = (rng.random(logged.shape) < np.take_along_axis(chances(X), logged, axis=1)).astype(float)
shown = policy.predict(X)
truth = np.take_along_axis(chances(X), shown, axis=1).sum(axis=1).mean()
by_article = [slate_ips(shown[:n], None, logged[:n], reward=clicks[:n]) for n in sizes]
by_slate = [
    slate_pseudo_inverse(shown[:n], None, logged[:n], reward=clicks[:n].sum(axis=1)) for n in sizes
]
print(f"\n{by_article[-1]}\n{by_slate[-1]}\ntruth: {truth:.3f}")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
colors = ["#0072B2", "#009E73", "#D55E00", "0.5"]
at = size * np.arange(5, n_groups + 1)
for (name, values), color in zip(share.items(), colors, strict=True):
    smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
    left.plot(at[: len(smooth)], smooth, color=color, label=name)
left.axhline(1, color="k", linewidth=0.8, linestyle=":")
left.set(xlabel="readers", ylabel="from random (0) to the best slates (1)", ylim=(0, 1.05))
left.legend(frameon=False, fontsize="small", loc="lower right", title="what is seen")
for shift, (label, found), color in (
    (0.96, ("a reward per article: slate_ips", by_article), colors[0]),
    (1.04, ("one per slate: slate_pseudo_inverse", by_slate), colors[2]),
):
    right.errorbar(
        shift * sizes, [one.mean_reward for one in found],
        yerr=[1.96 * one.standard_error for one in found],
        fmt="o", markersize=4, capsize=3, color=color, label=label,
    )  # fmt: skip
right.axhline(truth, color="k", linewidth=0.8, label="truth")
right.set_xscale("log")
right.set_xticks(sizes, [str(n) for n in sizes])
right.minorticks_off()
right.set(xlabel="logged random slates", ylabel="clicks a slate, with 95 % intervals")
right.legend(frameon=False, fontsize="small", loc="lower right")
plt.show()

# %%
# Exploring by draws spreads over all articles that may be among the best. A rule whose choices have
# exact probabilities, all positive, is inverse gap weighting; its slates make logs from which other
# policies can be judged later.

logging = SlatePolicy(GLMUCBPolicy(exploration="squarecb", alpha=0.5), M, random_state=0)
logging.fit(X[:1000], logged[:1000], clicks[:1000])
included = logging.select_proba(X[1000:])
print(f"least probability of an article: {included.min():.4f}")
