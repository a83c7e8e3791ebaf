"""
A ramp and its convex bounds
============================

The rate of positive predictions is a step function of the scores, so it has no useful gradient.
Training replaces the step by a ramp: the probability of a positive prediction if predictions near
the boundary are random. It then replaces the ramp by a convex function that lies above it and
touches it at the present score f' (Figure 1 of Goh, Cotter, Gupta & Friedlander, NIPS 2016). A
point that lowers this bound also lowers the ramp. Training alternates between minimizing the bound
and updating it.
"""

import matplotlib.pyplot as plt
import numpy as np

f = np.linspace(-1.5, 1.5, 301)


def ramp(f):
    """Probability of a positive prediction."""
    return np.clip(0.5 + f, 0, 1)


def bound(f, present):
    """The hinge if the present score is at most 1/2, else the constant 1."""
    return np.maximum(0, 0.5 + f) if present <= 0.5 else np.ones_like(f)


# %%
# What to see: for a negative row at f' = -0.2, the bound is a hinge, which pushes the score down.
# At f' = 1 the bound is flat, so training no longer tries to change the row. No outlier costs more
# than 1. The bounds for a positive row are the mirror image.

fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.plot(f, (f > 0).astype(float), color="0.7", lw=1, label="prediction")
ax.plot(f, ramp(f), color="black", lw=2, label="ramp")
for present, color in ((-0.2, "#0072B2"), (1.0, "#D55E00")):
    ax.plot(f, bound(f, present), "--", color=color, label=f"bound at f' = {present:g}")
    ax.plot(present, ramp(present), "o", color=color)
ax.set(xlabel="score f", ylabel="cost", title="Cost of a positive prediction", ylim=(-0.1, 2.1))
ax.legend(frameon=False)
plt.show()
