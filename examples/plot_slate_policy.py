"""
Learn slates online
===================

A page shows a slate of three of twelve articles to each reader, and learns from the clicks which
articles each reader likes. `SlatePolicy` supports three kinds of feedback: a reward per article,
the first click of a reader who looks from the top down, and one reward per slate. The data are
synthetic, so the best slates are known.
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
# The default policy is Thompson sampling: it draws a reward per article from the posterior, and
# shows the articles with the three largest draws. The policy learns after each group of 25 readers.
# The third variant is a common mistake: it counts articles below the first click as failures,
# although the reader did not look at them.


def first_clicks(clicks):
    """Clicks of readers who stop at the first one, with zeros below it."""
    return clicks * (np.cumsum(clicks, axis=1) <= 1)


seen = {
    "each click": ("semi_bandit", lambda clicks: clicks),
    "the first click": ("cascade", first_clicks),
    "the first click,\nthe rest as 0": ("semi_bandit", first_clicks),
}
n_groups, size = 80, 25
share, policies = {}, {}
for name, (feedback, observe) in seen.items():
    readers = np.random.default_rng(1)
    policy = SlatePolicy(n_select=M, feedback=feedback, random_state=0)
    earned = []
    for _ in range(n_groups):
        X = readers.normal(size=(size, N_FEATURES))
        p = chances(X)
        slates = policy.select(X, available=range(N_ARTICLES))
        of_slate = np.take_along_axis(p, slates, axis=1)
        clicks = (readers.random((size, M)) < of_slate).astype(float)
        policy.partial_fit(X, slates, observe(clicks))
        best = np.sort(p, axis=1)[:, -M:].sum(axis=1)
        even = M * p.mean(axis=1)
        earned.append((of_slate.sum(axis=1) - even).sum() / (best - even).sum())
    share[name], policies[name] = np.array(earned), policy
    label = name.replace("\n", " ")
    print(f"{label}: {np.mean(earned[-20:]):.2f} (0: random slates, 1: best slates)")

# %%
# What to see: more detailed feedback leads to better slates. If unseen articles count as failures,
# first clicks are worth much less.

COLORS = ["#0072B2", "#009E73", "0.5"]
fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
at = size * np.arange(5, n_groups + 1)
for (name, values), color in zip(share.items(), COLORS, strict=True):
    smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
    ax.plot(at[: len(smooth)], smooth, color=color, label=name)
ax.axhline(1, color="k", linewidth=0.8, linestyle=":")
ax.set(xlabel="readers", ylabel="reward (0: random, 1: best slates)", ylim=(0, 1.05))
ax.legend(frameon=False, fontsize="small", loc="lower right", title="feedback")

# %%
# Estimate the reward of a policy's slates
# ----------------------------------------
# Off-policy estimators use a log of random slates. `slate_ips` needs a reward per article, and
# `slate_pseudo_inverse` one per slate. The latter has less information, so it needs more events.

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
print(f"\n{by_article[-1]}\n{by_slate[-1]}\ntrue mean reward: {truth:.3f}")

# %%
# What to see: with one reward per slate, the intervals are several times wider. With few events,
# both estimates are unreliable, as the warnings say.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for shift, label, estimates, color in (
    (0.96, "reward per article: slate_ips", by_article, COLORS[0]),
    (1.04, "reward per slate: slate_pseudo_inverse", by_slate, COLORS[2]),
):
    ax.errorbar(
        shift * sizes, [one.mean_reward for one in estimates],
        yerr=[1.96 * one.standard_error for one in estimates],
        fmt="o", markersize=4, capsize=3, color=color, label=label,
    )  # fmt: skip
ax.axhline(truth, color="k", linewidth=0.8, label="true mean reward")
ax.set_xscale("log")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.minorticks_off()
ax.set(xlabel="logged random slates", ylabel="clicks per slate, with 95% intervals")
ax.legend(frameon=False, fontsize="small", loc="lower right")
plt.show()

# %%
# Log useful propensities
# -----------------------
# With inverse gap weighting, the inclusion probabilities of articles are exact and positive. Logs
# of such a policy can be used to evaluate other policies later.

logging = SlatePolicy(GLMUCBPolicy(exploration="squarecb", alpha=0.5), M, random_state=0)
logging.fit(X[:1000], logged[:1000], clicks[:1000])
included = logging.select_proba(X[1000:])
print(f"least probability of an article: {included.min():.4f}")
