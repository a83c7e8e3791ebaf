"""Bootstrap: the best arm of a model drawn at random from several, for models of any kind.

That approximates Thompson sampling (Eckles & Kaptein, 2014; Osband & Van Roy, 2015).
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit.exploration._sets import SetRule, best_inclusion

# the share of the replicates in which an arm is among the best
SETS = SetRule(
    lambda models, m: np.mean(
        [best_inclusion(rewards, m) for rewards in models.replicates()], axis=0
    )
)
