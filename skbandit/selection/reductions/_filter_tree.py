"""The filter tree: a knock-out tournament among the ads, each match decided by a classifier.

Beygelzimer, Langford & Ravikumar (2009), "Error-correcting tournaments". The match at a node is
between the winners of the two nodes below. Its classifier is trained with the weight |c_left -
c_right| of the two ads that reach the node and the cheaper one as label; the winner *as predicted*
moves up. So the regret of the chosen ad is at most the sum of the importance-weighted regrets of
the matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skbandit.selection.reductions._rule import NO_AD, Examples, learn_preference, prefers_first
from skbandit.utils._fitting import in_parallel


@dataclass(frozen=True)
class FilterTree:
    """A learned tournament among K ads.

    Parameters
    ----------
    matches : tuple of classifiers
        K - 1 of them, round by round from the leaves up.
    order : ndarray of shape (K,)
        The ads in the order of the leaves.
    """

    matches: tuple[Any, ...]
    order: np.ndarray

    def respond(self, X: Any) -> np.ndarray:
        """Mark where the left side wins each match, bool (n, K - 1)."""
        return prefers_first(self.matches, X)

    def choose(self, responses: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Play the tournament among the allowed ads."""
        field, played = _leaves(allowed[:, self.order]), 0
        while field.shape[1] > 1:
            matches = field.shape[1] // 2
            field = _play(field, responses[:, played : played + matches])
            played += matches
        leaf = field[:, 0]
        return np.where(leaf == NO_AD, NO_AD, self.order[leaf])


def learn_filter_tree(
    examples: Examples,
    *,
    learner: Any,
    n_jobs: int | None = None,
    order: np.ndarray | None = None,
) -> FilterTree:
    """Learn the matches, from the leaves to the root.

    Only the `allowed` ads (n, K) of a row take part. An ad without an opponent moves up. `order`
    (K,) is that of the ads at the leaves; None means as they come.
    """
    order = np.arange(examples.costs.shape[1]) if order is None else order
    allowed = examples.allowed[:, order]
    seated = replace(examples, costs=examples.costs[:, order], allowed=allowed)
    field = _leaves(allowed)
    matches: list[Any] = []
    while field.shape[1] > 1:
        left, right = _sides(field)
        learned = in_parallel(
            (
                partial(learn_preference, learner, seated, *sides)
                for sides in zip(left.T, right.T, strict=True)
            ),
            n_jobs,
        )
        field = _play(field, prefers_first(tuple(learned), examples.X))
        matches += learned
    return FilterTree(tuple(matches), order)


def _leaves(allowed: np.ndarray) -> np.ndarray:
    """Return the ads at the leaves per row, (n, K)."""
    return np.where(allowed, np.arange(allowed.shape[1]), NO_AD)


def _sides(field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right sides of the matches; if the number of ads is odd, the last has no match."""
    paired = field.shape[1] // 2 * 2
    return field[:, 0:paired:2], field[:, 1:paired:2]


def _play(field: np.ndarray, left_wins: np.ndarray) -> np.ndarray:
    """Return the ads that remain after a round of the tournament."""
    left, right = _sides(field)
    winner = np.where((right == NO_AD) | (left_wins & (left != NO_AD)), left, right)
    return np.hstack([winner, field[:, 2 * left.shape[1] :]])
