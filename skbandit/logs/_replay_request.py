"""Protocol by which a policy may replay a log itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skbandit.logs._log import Log


@dataclass(frozen=True)
class ReplayRequest:
    """Events to replay, and how."""

    X: Any  # contexts, rows in the order of `log`
    log: Log  # without `pools`, all of its arms are available
    rows: np.ndarray  # (n_rows,), positions in the log in the order of the replay
    keep: np.ndarray  # (n_rows,), False skips the event without showing it to the policy
    deployment: np.ndarray  # (n_rows,), True plays `predict` and learns nothing
    rule: str  # "select" or "predict": the choice played outside the deployment bucket
    learn: bool
    max_accepted: int | None  # stop after accepting this many outside the deployment bucket


class ReplaysLogs(Protocol):
    """A policy with a replay of its own, faster than event by event."""

    def _replay_log(self, request: ReplayRequest) -> tuple[np.ndarray, int] | None:
        """Replay a log, changing the policy as it learns.

        Decisions must be those of the policy's `select`, `predict` and `partial_fit`. Return the
        positions in `request.rows` of the accepted events and the number of rows consumed, or
        None, with the policy unchanged, to be replayed event by event.
        """
        ...
