"""The filter tree: a knock-out tournament among the ads, each match decided by a classifier.

Beygelzimer, Langford & Ravikumar (2009), "Error-correcting tournaments": the match at a node is
between the winners of the two nodes below; its classifier is trained with weight |c_left -
c_right| of the two ads that reach the node; its label is the cheaper one; and the winner *as
predicted* goes up. So the regret of the ad that wins is at most the sum of the importance-weighted
regrets of the matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skbandit.selection.reductions._binary import learn_preference, says_first
from skbandit.selection.reductions._rule import NOBODY


@dataclass(frozen=True)
class FilterTree:
    """A learned tournament among K ads.

    Parameters
    ----------
    matches : tuple of classifiers
        K - 1 of them, round by round from the leaves on, in the order of the ads.
    """

    matches: tuple[Any, ...]

    def respond(self, X: Any) -> np.ndarray:
        """Where the left side of each match wins, bool (n, K - 1)."""
        answers = np.empty((X.shape[0], len(self.matches)), dtype=bool)
        for j, match in enumerate(self.matches):
            answers[:, j] = says_first(match, X)
        return answers

    def choose(self, answers: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Play the tournament among the ads allowed."""
        field, played = _leaves(allowed), 0
        while field.shape[1] > 1:
            matches = field.shape[1] // 2
            field = _play(field, answers[:, played : played + matches])
            played += matches
        return field[:, 0]


def learn_filter_tree(
    X: Any,
    costs: np.ndarray,
    allowed: np.ndarray,
    weight: np.ndarray,
    *,
    learner: Any,
    n_jobs: int | None = None,
) -> FilterTree:
    """Learn the matches, from the leaves to the root.

    `allowed` (n, K) says which ads take part in a row. An ad without an opponent goes up.
    """
    field = _leaves(allowed)
    rows = np.arange(len(field))
    matches: list[Any] = []
    while field.shape[1] > 1:
        left, right = _sides(field)
        met = (left != NOBODY) & (right != NOBODY)
        learned = Parallel(n_jobs=n_jobs)(
            delayed(learn_preference)(
                learner,
                X,
                np.where(met[:, j], costs[rows, right[:, j]] - costs[rows, left[:, j]], 0.0),
                weight,
            )
            for j in range(left.shape[1])
        )
        field = _play(field, FilterTree(tuple(learned)).respond(X))
        matches += learned
    return FilterTree(tuple(matches))


def _leaves(allowed: np.ndarray) -> np.ndarray:
    """The ads that start, in each row, (n, K)."""
    return np.where(allowed, np.arange(allowed.shape[1]), NOBODY)


def _sides(field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right sides of the matches; of an odd number the last one has none."""
    paired = field.shape[1] // 2 * 2
    return field[:, 0:paired:2], field[:, 1:paired:2]


def _play(field: np.ndarray, left_wins: np.ndarray) -> np.ndarray:
    """Who is left after a round."""
    left, right = _sides(field)
    winner = np.where((right == NOBODY) | (left_wins & (left != NOBODY)), left, right)
    return np.hstack([winner, field[:, 2 * left.shape[1] :]])
