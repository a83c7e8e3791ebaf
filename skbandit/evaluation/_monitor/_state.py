"""The state of a monitor as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skbandit.evaluation._monitor._batch import read_records
from skbandit.evaluation._monitor._counts import Counts, as_period
from skbandit.evaluation._monitor._units import read_goal
from skbandit.utils._validation import as_labels, finite

VERSION = 3
"""Version of the JSON state."""


def write_state(monitor: Any) -> dict[str, Any]:
    """Return the state as JSON."""
    return {
        "skbandit.GoalMonitor": VERSION,
        "settings": monitor._settings(),
        "classes": list(monitor._labels.classes),
        "decisions": list(monitor._labels.decisions),
        "now": None if monitor._now < 0 else monitor._now,
        "counts": monitor._counts.to_list(["rows", "seen", "amounts"]),
        "alarms": json.loads(json.dumps([[*key, *at] for key, at in monitor._alarms.items()])),
        "judged": [monitor._tested, monitor._n_looks],
        "instances": sorted(monitor._instances),
        "zoned": monitor._zoned,
        "open": {
            "rows": [[name, dict(row)] for name, row in monitor._open.items()],
            "people": monitor._counts.to_list(["people"]),
            "past": list(map(list, monitor._past.items())),
            "names": [monitor._warned, *monitor._names],
        },
    }


def read_state(cls: Any, d: Mapping[str, Any], goals: Any) -> Any:
    """Return the monitor that `write_state` saved; anything else is a ValueError."""
    if not isinstance(d, Mapping) or d.get("skbandit.GoalMonitor") != VERSION:
        raise ValueError(f"this is no GoalMonitor of version {VERSION}: {d!r:.80}.")
    try:
        settings = dict(d["settings"])
        texts = settings.pop("goals")
        if goals is None:
            read = [(read_goal(text), name) for text, name in texts]
            goals = [goal if name is None else goal.named(name) for goal, name in read]
        monitor = cls(goals, **settings)
        if monitor._settings()["goals"] != texts:
            raise ValueError("the goals are others.")
        labels = as_labels(d["classes"], "classes"), as_labels(d["decisions"], "decisions")
        monitor._labels = monitor._labels.more(*labels)
        monitor._now = monitor._now if d["now"] is None else finite(d["now"], "now")
        monitor._open |= read_records(d["open"]["rows"])
        monitor._past |= {name: finite(when, "past") for name, when in d["open"]["past"]}
        warned, *names = d["open"]["names"]
        monitor._warned, monitor._names = bool(warned), dict.fromkeys(names)
        monitor._tested, monitor._n_looks = map(as_period, d["judged"])
        monitor._zoned = d["zoned"]
        monitor._counts = Counts.from_list([*d["counts"], *d["open"]["people"]])
        for table in vars(monitor._counts).values():
            if any(not 0 <= key[0] < len(monitor._units) for key in table):
                raise ValueError("counts are of other goals.")
        monitor._fresh = bool(monitor._counts.periods)
        monitor._instances = set(map(str, d["instances"]))
        for number, of, group, by, *periods in d["alarms"]:
            raised, since = map(as_period, periods)
            key = as_period(number), *map(_as_tuples, (of, group, by))
            monitor._claims[key[0]]
            monitor._alarms[key] = raised, since
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"this is not what a GoalMonitor saves: {error!r}.") from error
    return monitor


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
