"""Progress: told to scikit-learn's callbacks (1.9 and newer, experimental there), or by time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skbandit.exceptions import InfeasibleConstraintsError


@contextmanager
def fit_task(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Callable[[str], None]]:
    """A fit as a task; calling what is handed out tells of a finished step, by name.

    How many steps there will be is not known in advance. Callbacks are set up and torn down
    on `estimator` itself, by `fit_context`, so it must not be a draft that an error discards.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield lambda name: None
        return
    task = estimator._init_callback_context(max_subtasks=None)
    metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
    told = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    task.call_on_fit_task_begin(**told)

    def done(name: str) -> None:
        step = task.subcontext(task_name=name)
        step.call_on_fit_task_begin(**told)
        step.call_on_fit_task_end(**told)

    try:
        yield done
    except InfeasibleConstraintsError as error:
        # a copy from the middle of the fit, which may be fitted again outside of it
        for name in ("_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx"):
            vars(error.closest_).pop(name, None)
        raise
    task.call_on_fit_task_end(**told, reconstruction_attributes={})


def iter_with_progress(
    steps: Sequence[int], report: Callable[[float], None], every: float = 10.0
) -> Iterator[int]:
    """Iterate over `steps`, calling `report(share_done)` every `every` seconds."""
    last = time.perf_counter()
    for number, step in enumerate(steps):
        yield step
        now = time.perf_counter()
        if now - last >= every:
            last = now
            report((number + 1) / len(steps))


_LOGGER = logging.getLogger("skbandit")


def report_progress(message: str) -> None:
    """Report one line of a verbose run.

    As in scikit-learn it is printed, unless the application has configured logging to show
    INFO records of the logger "skbandit": then it is logged instead, not both.
    """
    if _LOGGER.hasHandlers() and _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.info(message)
    else:
        print(message, flush=True)
