"""Cross-validation splits of a log in time: training events precede test events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable

from skbandit.logs import check_in_order, column_names, read_times
from skbandit.utils._fitting import seed_for


class ReplaySplit(BaseCrossValidator):
    """Split a log in time, so that all training events precede the test events.

    The first events, the warmup, are used for training only. Without `subsample`, the others form
    consecutive blocks of equal length, one per split: each is tested after training on all
    earlier events. With `subsample`, each split is a random subsample of the whole log, in the
    log's order: its warmup events train and its other events are tested, as in the experiments
    of Li et al. (2012). The spread of the scores is then that of a policy's whole path over
    samples of the log.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits, at least 1.
    warmup : float in (0, 1) or int, default=0.2
        Share or number of events before the first test event.
    subsample : float in (0, 1], default=None
        Share of the events in each split.
    random_state : int, RandomState instance or None, default=None
        Draws the subsamples.

    See Also
    --------
    ReplayScorer : Scores a policy on the tested events.
    sklearn.model_selection.TimeSeriesSplit : Without warmup and subsamples.

    Notes
    -----
    Events must be in order of time, as only their number is used. A column timestamp of `y` is
    checked; one of another name is checked by those who know it, the policy and `ReplayScorer`.

    A policy that starts cold (see `ReplayScorer`) replays the test events only, so its horizon is
    proportional to their number: `subsample`, or few splits, make it long.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.evaluation import ReplaySplit
    >>> X = np.zeros((10, 1))
    >>> for train, test in ReplaySplit(2, warmup=4).split(X):
    ...     print(train, test)
    [0 1 2 3] [4 5 6]
    [0 1 2 3 4 5 6] [7 8 9]
    >>> for train, test in ReplaySplit(2, warmup=4, subsample=0.5, random_state=0).split(X):
    ...     print(train, test)
    [0 2] [4 5 8]
    [0 2] [4 5 6]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        warmup: float = 0.2,
        subsample: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.warmup = warmup
        self.subsample = subsample
        self.random_state = random_state

    @property
    def shuffle(self) -> bool:
        """Whether splits are drawn at random, as successive halving asks."""
        return self.subsample is not None

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training and test rows of each split.

        Parameters
        ----------
        X : array-like of shape (n_events, n_features)
            Contexts; only their number is used.
        y : DataFrame or array-like, default=None
            The log. A column timestamp must be nondecreasing.
        groups : object
            Ignored, exists for compatibility.

        Yields
        ------
        train : ndarray
            Rows to learn from, ascending.
        test : ndarray
            Rows to score on, ascending, all later than `train`.
        """
        X, y = indexable(X, y)
        n_events = np.shape(X)[0]
        n_warmup = self._check(n_events)
        _check_in_order(y)
        if self.subsample is None:
            edges = np.linspace(n_warmup, n_events, self.n_splits + 1).round().astype(int)
            for start, stop in pairwise(edges):
                yield np.arange(start), np.arange(start, stop)
            return
        rng = np.random.default_rng(seed_for("replay split", self.random_state))
        rows = np.arange(n_events)
        for _ in range(self.n_splits):
            train, test = (
                _part(part, self.subsample, rng) for part in (rows[:n_warmup], rows[n_warmup:])
            )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object
            Ignored, exist for compatibility.

        Returns
        -------
        int
        """
        return self.n_splits

    def _check(self, n_events: int) -> int:
        """Validate the options and return the number of warmup events."""
        if not (isinstance(self.n_splits, Integral) and self.n_splits >= 1):
            raise ValueError(f"n_splits must be a positive integer, got {self.n_splits!r}.")
        share = self.subsample
        if share is not None and not (isinstance(share, Real) and 0 < share <= 1):
            raise ValueError(f"subsample must be None or in (0, 1], got {share!r}.")
        counted = isinstance(self.warmup, Integral)
        if not (isinstance(self.warmup, Real) and 0 < self.warmup < (n_events if counted else 1)):
            raise ValueError(
                f"warmup must be a share in (0, 1), or a number of events below {n_events}, got "
                f"{self.warmup!r}."
            )
        n_warmup = int(self.warmup) if counted else max(1, round(self.warmup * n_events))
        needed = self.n_splits if share is None else 1
        if n_events - n_warmup < needed:
            raise ValueError(
                f"{n_warmup} of {n_events} events are warmup, which leaves {n_events - n_warmup} "
                f"for n_splits={self.n_splits}: choose fewer splits or a shorter warmup."
            )
        return n_warmup


def _part(rows: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A random subsample of rows, ascending."""
    return np.sort(rng.permutation(rows)[: max(1, round(share * len(rows)))])


def _check_in_order(y: Any) -> None:
    """Require nondecreasing timestamps, if the log has any."""
    if "timestamp" in (column_names(y) or ()):
        check_in_order(read_times(y["timestamp"], len(y)), "a split in time")
