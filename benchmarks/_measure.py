"""Time in units of another task that runs in turn with it, and memory, in a fresh process."""

from __future__ import annotations

import logging
import math
import os
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from sklearn.exceptions import ConvergenceWarning

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Cost:
    """What a task costs.

    Parameters
    ----------
    cpu, wall : float
        Processor and elapsed seconds, each the least of all rounds.
    least : float
        `cpu` over that of the unit. (Not the least ratio: that rewards a slow unit.)
    median : float
        The median of the rounds' ratios.
    megabytes : float
        Memory at its peak in the first round, over what was resident before; nan where there
        is no /proc.
    note : str
        What it said of not having converged.
    """

    cpu: float
    wall: float
    least: float
    median: float
    megabytes: float
    note: str = ""


def measure(
    task: Callable[[], Any],
    unit: Callable[[], Any] | None = None,
    *,
    rounds: int = 5,
    seconds: float = 10.0,
) -> tuple[Cost, Any]:
    """Run a task and its unit in turn, for some rounds or until they took so many seconds.

    Returns the cost, and what the task returned in the first round. That round comes before the
    first run of the unit, so that memory is the task's own.
    """
    own: list[tuple[float, float]] = []
    units: list[float] = []
    before, result = _restart_peak(), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while len(own) < rounds and sum(cpu for cpu, _ in own) + sum(units) < seconds:
            returned, cpu, wall = _timed(task)
            if not own:
                result, megabytes = returned, resident_peak() - before
            own.append((cpu, wall))
            if unit is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    units.append(_timed(unit)[1])
    cpus = [cpu for cpu, _ in own]
    ratios = [cpu / each for cpu, each in zip(cpus, units, strict=True)] if units else [math.nan]
    said = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return Cost(
        cpu=min(cpus),
        wall=min(wall for _, wall in own),
        least=min(cpus) / min(units) if units else math.nan,
        median=median(ratios),
        megabytes=megabytes,
        note="; ".join(dict.fromkeys(re.split(r"[,.:(] ", text)[0] for text in said)),
    ), result


def in_fresh_process(function: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """One row of a table, by a module's function in a new process with one thread.

    Whatever goes wrong there is the row's note: a table does not end with its first failure.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read when the new process loads numpy
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, function, args))
    process.start()
    theirs.close()  # so that the end of the process is the end of what is to be received
    try:
        return ours.recv()
    except EOFError:
        return {"note": "the process died: out of memory?"}
    finally:
        process.join()


def _send(to: Connection, function: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
    warnings.simplefilter("ignore")  # tables are read, not logs; `measure` notes what matters
    logging.disable(logging.WARNING)
    try:
        to.send(function(*args))
    except Exception as error:
        to.send({"note": f"{type(error).__name__}: {error}".partition("\n")[0][:80]})


def _timed(task: Callable[[], Any]) -> tuple[Any, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = task()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _restart_peak() -> float:
    """Start the peak anew at what is resident now, and return it.

    Not `resource.getrusage`: its ru_maxrss starts at what the parent process had, and keeps
    what building the data took.
    """
    if _CLEAR.exists():
        _CLEAR.write_text("5")
    return resident_peak()


def resident_peak() -> float:
    """The most megabytes ever resident since then."""
    if not _STATUS.exists():
        return math.nan
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
