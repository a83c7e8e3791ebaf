"""CPU seconds of a user's first calls in a fresh installation, which compile: one after another.

python -m tests.benchmarks.waits [--quick]

One process runs all ways in this order with no machine code on disk, so each waits for what
those before it have not compiled. Then each runs alone in a process that finds it all on disk.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.benchmarks._measure import in_fresh_process
from tests.benchmarks._table import Column, print_table

N_EVENTS, N_ARMS, N_FEATURES = 300, 5, 4

COLUMNS = (Column("way", 38), Column("compiles", 8), Column("loads", 8))


def live(policy: Any, X: np.ndarray, y: Any) -> None:
    """Learn a log, then choose and learn one by one."""
    policy.fit(X, y)
    for row in range(3):
        policy.partial_fit(
            X[row : row + 1], {"action": policy.select(X[row : row + 1]), "reward": [1]}
        )


def replayed(policy: Any, X: np.ndarray, y: Any) -> None:
    """Replay a log."""
    from skbandit.evaluation import replay

    replay(policy, X, y, random_state=0)


def logged(policy: Any, X: np.ndarray, y: Any) -> None:
    """Learn a log, then choose with probabilities."""
    policy.fit(X, y).select(X, return_proba=True)


WAYS: dict[str, tuple[Callable[..., None], str, dict[str, Any]]] = {
    "logistic: fit, select, partial_fit": (live, "GLMUCBPolicy", {}),
    "logistic: replay": (replayed, "GLMUCBPolicy", {}),
    "linear: fit, select, partial_fit": (live, "GLMUCBPolicy", {"link": "linear"}),
    "probit: fit, select, partial_fit": (live, "GLMUCBPolicy", {"link": "probit"}),
    "linear, thompson: replay": (
        replayed, "GLMUCBPolicy", {"link": "linear", "exploration": "thompson"}
    ),
    "epsilon_greedy: replay": (replayed, "GLMUCBPolicy", {"exploration": "epsilon_greedy"}),
    "squarecb: select with probabilities": (logged, "GLMUCBPolicy", {"exploration": "squarecb"}),
    "full covariance: replay": (replayed, "GLMUCBPolicy", {"covariance": "full"}),
    "shared: fit, select, partial_fit": (live, "SharedGLMPolicy", {}),
    "shared, linear: replay": (replayed, "SharedGLMPolicy", {"link": "linear"}),
}  # fmt: skip
"""The first six are the common ones: independent weights per arm."""

QUICK = 6


def seconds(ways: list[str]) -> dict[str, Any]:
    """CPU seconds of some ways in this process."""
    import skbandit.bandit
    from skbandit.datasets import make_bandit_log

    log = make_bandit_log(N_EVENTS, n_arms=N_ARMS, n_features=N_FEATURES, random_state=0)
    X, took = log.X.to_numpy(), {}
    y = {"action": log.y["action"].to_numpy(), "reward": log.y["reward"].to_numpy()}
    for name in ways:
        run, policy, parameters = WAYS[name]
        start = time.process_time()
        run(getattr(skbandit.bandit, policy)(random_state=0, **parameters), X, y)
        took[name] = time.process_time() - start
    return took


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Every way, and the sum of the common ones."""
    ways = list(WAYS)[: QUICK if quick else None]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        first = in_fresh_process(seconds, ways)
        if "note" in first:
            raise RuntimeError(first["note"])
        for name in ways:
            yield {"way": name, "compiles": first[name], **_loads(name)}
    yield {"way": "sum of the first six", "compiles": sum(first[name] for name in ways[:QUICK])}


def _loads(name: str) -> dict[str, float]:
    return {"loads": in_fresh_process(seconds, [name]).get(name, np.nan)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.waits", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the common ways only")
    options = parser.parse_args()
    print_table("First calls, CPU seconds", COLUMNS, rows(options.quick))


if __name__ == "__main__":
    main()
