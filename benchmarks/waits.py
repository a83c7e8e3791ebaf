"""CPU seconds that users wait: for first calls, which compile, and for searches and fits.

python -m benchmarks.waits [--quick]

One process runs all ways in this order with no machine code on disk, so each waits for what
those before it have not compiled. Then each runs alone in a process that finds it all on disk.
Of fits, the second column is what a rival, or half of the rows, takes in the same run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import in_fresh_process
from benchmarks._table import Column, print_table

N_EVENTS, N_ARMS, N_FEATURES = 300, 5, 4

COLUMNS = (Column("way", 38), Column("compiles", 8), Column("loads", 8))
FITS = (Column("way", 60), Column("seconds", 8), Column("rival", 8))


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


def _cpu(call: Callable[[], Any], times: int = 2) -> float:
    """The least CPU time of several calls."""
    took = []
    for _ in range(times):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took)


def people(n: int, n_groups: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Features, of which one tells the group, labels, and groups of different base rates."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, n_groups, n)
    X, away = rng.normal(size=(n, 4)), 0.5 * rng.normal(size=n_groups)
    y = (X[:, 0] + away[group] + rng.normal(size=n) > 0.8).astype(int)
    X[:, 1] += away[group]
    return X, y, {"g": group.astype(str)}


def fits(quick: bool) -> Iterator[dict[str, Any]]:
    """Thresholds per group at the default level, assignments, and a9a."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    from skbandit import ConstrainedRampClassifier
    from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
    from skbandit.datasets import load_a9a
    from skbandit.exceptions import ConstrainedFitWarning
    from skbandit.rates import difference, positive_rate, ratio, recall
    from skbandit.selection import assign

    warnings.simplefilter("ignore", ConstrainedFitWarning)  # goals are dear on few rows
    goals = {
        "ratio": ratio(positive_rate, by="g") >= 0.8,
        "difference": difference(recall, by="g") <= 0.1,
    }
    for n, n_groups in ((1000, 4), (1000, 6), (2400, 6)):
        X, y, groups = people(n, n_groups)
        plain = LogisticRegression().fit(X, y)
        for name, goal in goals.items():
            clf = ConstrainedThreshold(plain, constraints=goal, cv="prefit", by="g")
            yield {
                "way": f"threshold per group: {n:,} rows, {n_groups} groups, {name}",
                "seconds": _cpu(partial(clf.fit, X, y, attributes=groups)),
            }
    clf = ConstrainedReduction(LogisticRegression(), constraints=goals["ratio"], by="g")
    yield {
        "way": f"reduction, threshold per group: {n:,} rows, {n_groups} groups",
        "seconds": _cpu(partial(clf.fit, X, y, attributes=groups), 1),
    }
    costs = np.random.default_rng(0).random((4_000 if quick else 16_000, 20))
    half = costs[: len(costs) // 2]
    yield {
        "way": f"assign: {len(costs):,} rows, 20 ads; half of the rows",
        "seconds": _cpu(partial(assign, costs, capacity=len(costs) // 20)),
        "rival": _cpu(partial(assign, half, capacity=len(half) // 20)),
    }
    if "SKBANDIT_DATA" in os.environ:
        rows = load_a9a()
        goal = ConstrainedRampClassifier(constraints=recall() >= 0.6)
        goal.fit(rows.data[:3000], rows.target[:3000])
        yield {
            "way": "default fit on a9a; LinearSVC",
            "seconds": _cpu(partial(goal.fit, rows.data, rows.target)),
            "rival": _cpu(partial(LinearSVC().fit, rows.data, rows.target)),
        }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waits", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the common ways only")
    options = parser.parse_args()
    print_table("First calls, CPU seconds", COLUMNS, rows(options.quick))
    print_table("Searches and fits, CPU seconds", FITS, fits(options.quick))


if __name__ == "__main__":
    main()
