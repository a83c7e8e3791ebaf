"""Replay of a policy that learns, and one choice served, compared with other libraries.

python -m benchmarks.replay [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from benchmarks._bandit_rivals import OURS, RIVALS, UNIT, BanditRival, bandit_sample
from benchmarks._measure import in_fresh_process, measure
from benchmarks._table import Column, print_table

WARM_UP_EVENTS = 1_000
SERVED = 200
"""Contexts chosen for, one by one."""

ALL = RIVALS | OURS

REPLAYED = (
    Column("method", 41),
    Column("events", 9, ",d"),
    Column("cpu s"),
    Column("events/s", 9, ",.0f"),
    Column("x fastest rival", 15, ".1f"),
    Column("kept", 7, ",.0f"),
    Column("lift", 5),
    Column("MB", 5, ".0f"),
)

CHOSEN = (Column("method", 41), Column("us a choice", 11, ".1f"))


def replay_row(name: str, quick: bool) -> dict[str, Any]:
    """One replay from a cold start; ours in turn with the fastest rival's."""
    rival, unit = ALL[name], RIVALS[UNIT]
    sample = bandit_sample(_events(rival, quick))
    rival.replay(sample.head(WARM_UP_EVENTS))()
    against = None
    if name in OURS and not unit.cure:
        against = unit.replay(sample.head(_events(unit, quick)))
    cost, kept = measure(rival.replay(sample), against, rounds=2 if quick else 5, seconds=60)
    return {
        "cpu s": cost.cpu,
        "events/s": len(sample.X) / cost.cpu,
        "x fastest rival": 1 / cost.least,
        "kept": kept.accepted,
        "lift": kept.mean_reward / sample.y["reward"].mean(),
        "MB": cost.megabytes,
        "note": cost.note,
    }


def choice_row(name: str, quick: bool) -> dict[str, Any]:
    """Choices for contexts that come one by one, after some events have been learned."""
    serve = ALL[name].serve
    assert serve is not None
    sample = bandit_sample(WARM_UP_EVENTS)
    choose = serve(sample)
    contexts = sample.arrays[0][:SERVED]
    choose(contexts[0])
    cost, _ = measure(
        lambda: [choose(context) for context in contexts], rounds=3 if quick else 20, seconds=10
    )
    return {"us a choice": cost.cpu / SERVED * 1e6, "note": cost.note}


def _events(rival: BanditRival, quick: bool) -> int:
    """The slower a library, the fewer events."""
    return rival.events // 10 if quick else rival.events


def replay_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """The rivals, then ours."""
    for name, rival in ALL.items():
        key: dict[str, Any] = {"method": name, "events": _events(rival, quick)}
        yield key | _measured(rival, replay_row, name, quick)


def choice_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """The same, where they serve."""
    for name, rival in ALL.items():
        if rival.serve is not None:
            yield {"method": name} | _measured(rival, choice_row, name, quick)


def _measured(rival: BanditRival, row: Any, *args: Any) -> dict[str, Any]:
    """A row measured in a new process, or what is missing for it."""
    return {"note": rival.cure} if rival.cure else in_fresh_process(row, *args)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    options = parser.parse_args()
    packages = ("skbandit", "numpy", "numba", *(rival.package for rival in RIVALS.values()))
    packages = tuple(dict.fromkeys(packages))
    title = "Replay of a learning policy: 20 arms, 6 features"
    print_table(title, REPLAYED, replay_rows(options.quick), packages)
    title = "One choice among 20 arms, 6 features"
    print_table(title, CHOSEN, choice_rows(options.quick), packages)


if __name__ == "__main__":
    main()
