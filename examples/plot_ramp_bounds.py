"""
A ramp and its convex bounds
============================

Rates are counts of answers, steps that no gradient sees. Training replaces a step by the ramp, the
probability of a positive answer if answers are drawn at random near the boundary, and the ramp by
a convex function that lies above it and touches it at the present score f' (Figure 1 of Goh,
Cotter, Gupta & Friedlander, NIPS 2016). Whatever lowers the bound lowers the ramp; then the bound
is drawn anew.
"""

import matplotlib.pyplot as plt
import numpy as np

f = np.linspace(-1.5, 1.5, 301)


def ramp(f):
    """Probability of a positive answer."""
    return np.clip(0.5 + f, 0, 1)


def bound(f, present):
    """Its hinge while the present score is at most 1/2, else the constant 1."""
    return np.maximum(0, 0.5 + f) if present <= 0.5 else np.ones_like(f)


# %%
# Left, a row that should be answered negative. At f' = -0.2 the hinge pushes its score down. At
# f' = 1 the row is given up: its bound is flat, and no outlier, however far, weighs more than 1.
#
# Right, the mirror image: a row that should be positive.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, sign, name in zip(axes, (1, -1), ("positive", "negative"), strict=True):
    ax.plot(f, (sign * f > 0).astype(float), color="0.7", lw=1, label="answer")
    ax.plot(f, ramp(sign * f), color="black", lw=2, label="ramp")
    for present, colour in ((-0.2, "#0072B2"), (1.0, "#D55E00")):
        at = sign * present
        ax.plot(f, bound(sign * f, present), "--", color=colour, label=f"bound at f' = {at:g}")
        ax.plot(at, ramp(present), "o", color=colour)
    ax.set(xlabel="score f", title=f"cost of a {name} answer", ylim=(-0.1, 2.1))
    ax.legend(frameon=False)
plt.show()
