"""Several prior scales side by side, mixed by evidence.

Every arm learns one posterior per prior scale. Before scale e learns an event, its log predictive
likelihood of the reward is added to its evidence: the prequential log likelihood of all rewards so
far (Dawid, 1984), which for exact updates is the log marginal likelihood. With equal odds at first,
Bayes' rule weighs the scales by the softmax of their evidence,

    w_e ∝ exp(evidence_e),    m = Σ_e w_e m_e,    v = Σ_e w_e (v_e + (m_e - m)²),

where m and v are the moments of the mixture of the N(m_e, v_e): Bayesian model averaging (Hoeting,
Madigan, Raftery & Volinsky, 1999).

A scale of 0 leaves the features out: its arms are constants. Where features tell nothing of the
rewards, its evidence grows fast, by some (d/2) log n per arm, and arms are then compared as such.
Two settings (`skbandit.bandit._parameters`) keep it from winning where features tell little at
first, as of rare rewards, and from staying with one arm. It starts with odds of `CONSTANTS_ODDS`;
and its weights count an event as `CONSTANTS_COUNT` events, as in the generalised Bayes of Grünwald
& van Ommen (2017) for models that may be wrong: narrow posteriors of constants would end the
exploration from which the other scales learn.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._state import LEAST_SHARE
from skbandit.utils._compiled import called_exactly, inlined_exactly


@called_exactly
def renew_shares(evidence: np.ndarray, share: np.ndarray) -> None:
    """Write the softmax of the evidence, with shares below `LEAST_SHARE` set to 0."""
    best = evidence[0]
    for e in range(1, len(evidence)):
        best = max(best, evidence[e])
    total = 0.0
    for e in range(len(evidence)):
        share[e] = math.exp(evidence[e] - best)
        total += share[e]
    kept = 0.0
    for e in range(len(evidence)):
        if share[e] < LEAST_SHARE * total:
            share[e] = 0.0
        kept += share[e]
    for e in range(len(evidence)):
        share[e] /= kept


@inlined_exactly
def mixed(
    w: float, m: float, v: float, origin: float, away: float, square: float, within: float
) -> tuple[float, float, float]:
    """Include a part N(m, v) of weight w in sums for `of_mixture`, taken about an origin.

    Any of the means serves as origin: then a single part keeps its moments to the bit, and little
    is lost by subtraction.
    """
    d = m - origin
    return away + w * d, square + w * d * d, within + w * v


@inlined_exactly
def of_mixture(origin: float, away: float, square: float, within: float) -> tuple[float, float]:
    """Mean and variance of a mixture whose weights sum to 1."""
    return origin + away, within + max(square - away * away, 0.0)
