"""A check of rewards against predictions, after which a policy starts anew.

Of each arm, residuals e of rewards from predictions made before they were learned have a running
mean ē since the policy last started, and a standard deviation s, or that of the model if that is
larger: of rare rewards, the first ones have hardly any. Predictions are those of models that forget
nothing: one that forgets follows a change within a few hundred events, and so would hide it.
Two sums of z = (e - ē)/s, clipped to
±`CLIP`, less `DRIFT` and the standard error of ē,

    up ← max(0, up + z - drift),      down ← max(0, down - z - drift),      drift = DRIFT + 1/√n

(Page, 1954), tell that rewards have changed once one of them is above `LIMIT`: while they do not
change, about once in exp(2 DRIFT LIMIT) / (2 DRIFT²) events of an arm, which are millions. A rate
that falls from .3 to .1 shows within 150 events. Changes of arms that are not chosen are not seen.

A lasting error of the model, as of one that is misspecified, is in ē and adds nothing. Nor do
outliers: E(z - c)₊ ≤ (√(1 + c²) - c)/2 for a z of mean 0 and variance 1, so clipping at 4 moves its
mean by at most .062, whatever the distribution. An error that wanes slowly, as under a narrow
prior, may start a policy anew, but not for ever: after r restarts the limit is (1 + r) `LIMIT`.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.utils._compiled import called_exactly

DRIFT = 0.15
"""Change of the mean residual, in standard deviations, below which nothing adds up."""
LIMIT = 40.0
"""Sum at which rewards have changed, for the first time."""
CLIP = 4.0
"""Largest residual, in standard deviations."""
FIRST_EVENTS, FIRST_OF_ARM = 300, 100
"""Events of all arms, and of one, whose predictions are too poor to be compared: near the prior's
they err by about 1/n after n events, which in the spread of rare rewards is much."""
FIRST_OF_SPREAD = 20
"""Residuals from which their mean and spread are known."""
N, MEAN, SQUARES, UP, DOWN = range(5)
"""Columns of `Posterior.check`."""
N_RESTARTS, RESTARTED_AT = 0, 1
"""Positions in `Posterior.restarts`."""


@called_exactly
def have_changed(
    k: int, residual: float, least: float, n_events: int, check: np.ndarray, restarts: np.ndarray
) -> bool:
    """Include the residual of a reward of arm k, after n events; return whether rewards changed.

    `least` is the standard deviation of rewards according to the model.
    """
    of_arm = check[k]
    of_arm[N] += 1.0
    n = of_arm[N] - FIRST_OF_ARM
    if n <= 0.0:
        return False
    away = residual - of_arm[MEAN]
    of_arm[MEAN] += away / n
    of_arm[SQUARES] += away * (residual - of_arm[MEAN])
    spread = max(math.sqrt(of_arm[SQUARES] / n), least)
    if n_events <= FIRST_EVENTS or n <= FIRST_OF_SPREAD or spread == 0.0:
        return False
    z = min(max((residual - of_arm[MEAN]) / spread, -CLIP), CLIP)
    drift = DRIFT + 1.0 / math.sqrt(n)
    of_arm[UP] = max(0.0, of_arm[UP] + z - drift)
    of_arm[DOWN] = max(0.0, of_arm[DOWN] - z - drift)
    return max(of_arm[UP], of_arm[DOWN]) > LIMIT * (1 + restarts[N_RESTARTS])


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
