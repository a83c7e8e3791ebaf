"""Bootstrap: the best arm of a model drawn at random from several, for models of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.bandit.exploration._sets import SetRule, best_inclusion


def _include(models: Any, m: int) -> np.ndarray:
    """Return share of the replicates in which an arm is among the best.

    Playing the best arm of a replicate drawn at random approximates Thompson sampling
    (Eckles & Kaptein, 2014; Osband & Van Roy, 2015).
    """
    return np.mean([best_inclusion(rewards, m) for rewards in models.replicates()], axis=0)


SETS = SetRule(_include)
