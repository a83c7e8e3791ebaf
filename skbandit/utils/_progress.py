"""Progress of long runs, reported to scikit-learn's callbacks or at intervals of time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.utils._sklearn_compat import begin_callbacks, forget_callbacks


@contextmanager
def fit_task(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Callable[[str], None]]:
    """Report a fit to scikit-learn's callbacks; call what is yielded with each step's name.

    The number of steps is not known in advance. `fit_context` sets callbacks up and tears them
    down on `estimator` itself, so pass the estimator, not the copy that `atomic_fit` yields.
    """
    task = begin_callbacks(estimator)
    if task is None:
        yield lambda name: None
        return
    metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
    fit = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    task.call_on_fit_task_begin(**fit)

    def step_done(name: str) -> None:
        step = task.subcontext(task_name=name)
        step.call_on_fit_task_begin(**fit)
        step.call_on_fit_task_end(**fit)

    try:
        yield step_done
    except InfeasibleConstraintsError as error:
        # this model was copied in the middle of the fit, and may be fitted again on its own
        forget_callbacks(error.closest_)
        raise
    task.call_on_fit_task_end(**fit, reconstruction_attributes={})


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
