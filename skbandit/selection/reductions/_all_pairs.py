"""Weighted all-pairs: one classifier per pair of ads; the ad that wins most often is chosen.

Beygelzimer, Dani, Hayes, Langford & Zadrozny (2005), "Error limiting reductions between
classification tasks". The examples of a pair have the weights |c_i - c_j|, plain differences. The
best prediction is then the ad of lower *expected* cost, whatever the distribution, so the best
classifiers agree with the order of all ads and serve every set size and every mask. (The paper's
transformed weights bound the error of the best ad only.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from skbandit.selection.reductions._rule import NO_AD, Examples, learn_preference, prefers_first
from skbandit.utils._fitting import in_parallel


@dataclass(frozen=True)
class AllPairs:
    """A learned round robin among K ads.

    Parameters
    ----------
    matches : tuple of classifiers
        One per pair i < j, in lexicographic order.
    """

    matches: tuple[Any, ...]

    def respond(self, X: Any) -> np.ndarray:
        """Mark where i beats j, bool (n, K (K - 1) / 2)."""
        return prefers_first(self.matches, X)

    def choose(self, responses: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Return the allowed ad that beats most of the others; ties go to the first."""
        wins = np.zeros(allowed.shape, dtype=np.int32)
        for (i, j), first_wins in zip(
            combinations(range(allowed.shape[1]), 2), responses.T, strict=True
        ):
            met = allowed[:, i] & allowed[:, j]
            wins[:, i] += met & first_wins
            wins[:, j] += met & ~first_wins
        most = np.where(allowed, wins, -1).argmax(axis=1)
        return np.where(allowed.any(axis=1), most, NO_AD)


def learn_all_pairs(examples: Examples, *, learner: Any, n_jobs: int | None = None) -> AllPairs:
    """Learn each pair from the rows where both ads are allowed."""
    matches = in_parallel(
        (
            partial(learn_preference, learner, examples, i, j)
            for i, j in combinations(range(examples.costs.shape[1]), 2)
        ),
        n_jobs,
    )
    return AllPairs(tuple(matches))
