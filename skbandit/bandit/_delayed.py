"""Checked events, and the time windows that delay their learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from skbandit.logs import check_in_order


@dataclass(frozen=True)
class Events:
    """Events for a policy to learn, in order."""

    X: Any  # (n_events, n_features), array or CSR
    arms: np.ndarray  # (n_events,), labels
    reward: np.ndarray  # (n_events,)
    weight: np.ndarray  # (n_events,)
    window: np.ndarray  # (n_events,), number of the update window

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: np.ndarray) -> Events:
        """Select events by a mask or by position."""
        return Events(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def join(parts: Sequence[Events]) -> Events:
    """Concatenate events."""
    return Events(
        *(
            (joined if name == "X" else np.concatenate)([getattr(part, name) for part in parts])
            for name in Events.__dataclass_fields__
        )
    )


def joined(parts: list[Any]) -> Any:
    """Concatenate contexts; one sparse part makes all sparse."""
    if any(issparse(part) for part in parts):
        return vstack(parts, format="csr")
    return np.concatenate(parts)


def windows_of(timestamp: np.ndarray | None, every: float) -> np.ndarray:
    """Number of the window of `every` seconds that holds each of the ordered times."""
    if timestamp is None:
        raise ValueError(
            "update_every requires event times, but the log has no column 'timestamp'."
        )
    check_in_order(timestamp, "update_every")
    return np.floor(timestamp / every).astype(np.int64)
