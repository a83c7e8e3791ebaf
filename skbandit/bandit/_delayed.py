"""Checked events, and those that wait for their window of time to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skbandit.logs import check_in_order


@dataclass(frozen=True)
class Events:
    """What a policy learns from, in order."""

    X: np.ndarray  # (n_events, n_features)
    arms: np.ndarray  # (n_events,), labels
    reward: np.ndarray  # (n_events,)
    weight: np.ndarray  # (n_events,)
    window: np.ndarray  # (n_events,), number of the interval between updates that they are in

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: np.ndarray) -> Events:
        """Some of the events."""
        return Events(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def join(parts: Sequence[Events]) -> Events:
    """Events one part after the other."""
    names = Events.__dataclass_fields__
    return Events(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def windows_of(timestamp: np.ndarray | None, every: float) -> np.ndarray:
    """Numbers of the intervals of `every` seconds that times in order are in."""
    if timestamp is None:
        raise ValueError(
            "update_every needs to know when events happened: the log has no column 'timestamp'."
        )
    check_in_order(timestamp, "update_every")
    return np.floor(timestamp / every).astype(np.int64)


def check_rewards(link: str, reward: np.ndarray) -> None:
    """Require rewards of binary models to be shares of a success."""
    wrong = np.flatnonzero((reward < 0) | (reward > 1)) if link != "linear" else reward[:0]
    if len(wrong):
        raise ValueError(
            f"reward is {reward[int(wrong[0])]:g} on row {wrong[0]}: link={link!r} takes rewards "
            "from 0 to 1. Scale them, or take link='linear'."
        )
