"""Fits: all or nothing, on one BLAS thread, with seeds from `random_state`, reporting progress."""

from __future__ import annotations

import logging
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.utils._validation import told_once, warn

T = TypeVar("T")

_controller = cache(ThreadpoolController)

TABLE = "table"
"""The only key of a dict that stands for a table in a saved state."""

_LOGGER = logging.getLogger("skbandit")

# Empty, or entropy of a process that was forked: it shares NumPy's global state with its siblings.
_forked = b""


@contextmanager
def atomic_fit(estimator: Any) -> Iterator[Any]:
    """Yield a draft that shares the estimator's attributes, and commit its own on success.

    After an error, or an interrupt of a long fit, the estimator is unchanged. The commit is a
    single assignment, so no interrupt and no other thread ever sees a half-fitted estimator.
    """
    draft = object.__new__(type(estimator))  # not a copy, which may draw a random seed of its own
    vars(draft).update(vars(estimator))
    yield draft
    estimator.__dict__ = dict(vars(draft))  # CPython 3.13.0 may clear one that two objects share


def standardized(model: Any, X: Any) -> Pipeline:
    """Put a scaler, which keeps sparse X sparse, before a learner: units do not matter."""
    return make_pipeline(StandardScaler(with_mean=not issparse(X)), model)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread within a ``with`` block.

    Solving many small systems (about 100 unknowns) in sequence is several times slower with
    several threads, which must be woken and synchronized for each.
    """
    return _controller().limit(limits=1, user_api="blas")


def in_parallel(calls: Iterable[Callable[[], T]], n_jobs: int | None = None) -> list[T]:
    """Return the results of calls, made by joblib, with the warnings of its processes.

    Those would appear on the standard error of a process, and escape filters and tests.
    """
    done = Parallel(n_jobs=n_jobs)(delayed(_with_warnings)(call, os.getpid()) for call in calls)
    with told_once():
        for _, warned in done:
            for message, category in warned:
                warn(message, category)
    return [result for result, _ in done]


def _with_warnings(
    call: Callable[[], T], process: int
) -> tuple[T, list[tuple[str, type[Warning]]]]:
    """Return the result of a call and, if it is made in another process, its warnings."""
    if os.getpid() == process:
        return call(), []
    with warnings.catch_warnings(record=True) as caught:
        result = call()
    return result, [(str(warning.message), warning.category) for warning in caught]


def _draw_entropy() -> None:
    global _forked
    _forked = secrets.token_bytes(16)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_draw_entropy)


def process_entropy() -> bytes:
    """Bytes that differ between the forks of a process."""
    return _forked


def seed_for(purpose: str, random_state: Any) -> int:
    """Draw a seed from 0 to 2⁶³ - 1 for one purpose, of at most 16 bytes.

    Seeds for different purposes are unrelated, even of equal `random_state`, so that a stream never
    coincides with one that serves something else. None draws from NumPy's global state, as
    everywhere in scikit-learn; in forked processes it is mixed with entropy of their own.
    """
    words = check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32)
    entropy = words.astype("<u4").tobytes()
    if random_state is None or random_state is np.random:
        entropy += _forked
    digest = blake2b(entropy, digest_size=8, person=purpose.encode()).digest()
    return int.from_bytes(digest, "little") >> 1


def seeded(estimator: Any, seed: int) -> Any:
    """Clone of an estimator in which random states that are None, also those of parts, are set."""
    estimator = clone(estimator)
    unset = [
        name
        for name, value in estimator.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(sorted(unset), seed)) if unset else estimator


@contextmanager
def fit_task(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Callable[[str], None]]:
    """Report a fit to scikit-learn's callbacks; call what is yielded with each step's name.

    The number of steps is not known in advance. `fit_context` sets callbacks up and tears them
    down on `estimator` itself, so pass the estimator, not the copy that `atomic_fit` yields.
    """
    if not hasattr(estimator, "_init_callback_context"):  # before scikit-learn 1.9
        yield lambda name: None
        return
    task = estimator._init_callback_context(max_subtasks=None)
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
        for name in ("_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx"):
            vars(error.closest_).pop(name, None)
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


def report_progress(message: str) -> None:
    """Report one line of a verbose run.

    As in scikit-learn it is printed, unless the application has configured logging to show
    INFO records of the logger "skbandit": then it is logged instead, not both.
    """
    if _LOGGER.hasHandlers() and _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.info(message)
    else:
        print(message, flush=True)


def plain_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an object with its DataFrames as lists: skops refuses types of pandas."""
    plain = dict(state)
    for name, table in state.items():
        if isinstance(table, pd.DataFrame):
            entries = table.astype(object).where(table.notna(), None).to_dict("tight")
            plain[name] = {TABLE: [entries, [str(dtype) for dtype in table.dtypes]]}
    return plain


def restored_state(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state whose `plain_state` it is."""
    state = dict(plain)
    for name, saved in plain.items():
        if isinstance(saved, dict) and list(saved) == [TABLE]:
            entries, types = saved[TABLE]
            table = pd.DataFrame.from_dict(entries, orient="tight")
            state[name] = table.astype(dict(zip(table.columns, types, strict=True)))
    return state
