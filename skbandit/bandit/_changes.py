"""A check of rewards against predictions, after which a policy starts anew.

Of each arm, residuals of rewards from predictions made before they were learned are divided by
their own spread, clipped to ±`CLIP`, and taken from their own mean z̄ since the policy last started:
a lasting error of the model, as of one that is misspecified, changes nothing. Two sums follow,

    up ← max(0, up + z - z̄ - DRIFT),      down ← max(0, down - z + z̄ - DRIFT)

(Page, 1954). Rewards have changed once one of them is above `LIMIT`. While they do not change, that
happens once in about exp(2 DRIFT LIMIT) / (2 DRIFT²) events of an arm, which are millions; a rate
that falls from .3 to .1 shows within 150 events. Changes of arms that are not chosen are not seen.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.utils._compiled import called_exactly

DRIFT = 0.15
"""Change of the mean residual, in standard deviations, below which nothing adds up."""
LIMIT = 40.0
"""Sum at which rewards have changed."""
CLIP = 4.0
"""Largest residual, in standard deviations."""
FIRST_EVENTS, FIRST_OF_ARM = 300, 20
"""Events of all arms, and of one, whose predictions are too poor to be compared."""

N, MEAN, SQUARES, UP, DOWN = range(5)
"""Columns of `Posterior.check`."""
N_RESTARTS, RESTARTED_AT = 0, 1
"""Positions in `Posterior.restarts`."""


@called_exactly
def have_changed(k: int, residual: float, n_events: int, check: np.ndarray) -> bool:
    """Include the residual of a reward of arm k, after n events; return whether rewards changed."""
    of_arm = check[k]
    of_arm[N] += 1.0
    n = of_arm[N] - FIRST_OF_ARM
    of_arm[SQUARES] += (residual * residual - of_arm[SQUARES]) / of_arm[N]
    if n <= 0.0 or of_arm[SQUARES] <= 0.0:
        return False
    z = min(max(residual / math.sqrt(of_arm[SQUARES]), -CLIP), CLIP)
    away = z - of_arm[MEAN]
    of_arm[MEAN] += away / n
    if n_events <= FIRST_EVENTS:
        return False
    of_arm[UP] = max(0.0, of_arm[UP] + away - DRIFT)
    of_arm[DOWN] = max(0.0, of_arm[DOWN] - away - DRIFT)
    return max(of_arm[UP], of_arm[DOWN]) > LIMIT


@called_exactly
def begin_anew(
    check: np.ndarray, restarts: np.ndarray, evidence: np.ndarray, share: np.ndarray, n_events: int
) -> None:
    """Count a restart after n events, and forget residuals and the evidence of prior scales."""
    restarts[N_RESTARTS] += 1
    restarts[RESTARTED_AT] = n_events
    check[:] = 0.0
    evidence[:] = 0.0
    share[:] = 1.0 / len(share)
