"""Compiled scan for the lowest costs per row. Importing this module imports numba."""

from __future__ import annotations

import numpy as np

from skbandit.utils._compiled import compiled

LANES = 16
"""Number of comparisons that vectorize together; four such groups are tested at a time."""


@compiled
def scan(costs: np.ndarray, allowed: np.ndarray, chosen: np.ndarray) -> None:
    """Fill each row of `chosen` with the columns of its lowest allowed costs, lowest first.

    Ties go to the first column; -1 where no other allowed cost is below infinity. An `allowed`
    without columns allows everything.

    The m lowest so far are kept in order. After a few hundred columns, most others are rejected by
    comparison with the highest of these, 64 at a time.
    """
    m = chosen.shape[1]
    best = np.empty(m, costs.dtype)
    for i in range(len(costs)):
        best[:] = np.inf
        chosen[i] = -1
        for start in range(0, costs.shape[1], 4 * LANES):
            part = costs[i, start : start + 4 * LANES]
            if len(part) == 4 * LANES:
                highest, entering = best[m - 1], 0
                for k in range(LANES):
                    entering += (
                        (part[k] < highest)
                        | (part[k + LANES] < highest)
                        | (part[k + 2 * LANES] < highest)
                        | (part[k + 3 * LANES] < highest)
                    )
                if entering == 0:
                    continue
            for k in range(len(part)):
                cost = part[k]
                if cost < best[m - 1] and (allowed.shape[1] == 0 or allowed[i, start + k]):
                    place = m - 1
                    while place > 0 and best[place - 1] > cost:
                        best[place] = best[place - 1]
                        chosen[i, place] = chosen[i, place - 1]
                        place -= 1
                    best[place] = cost
                    chosen[i, place] = start + k
