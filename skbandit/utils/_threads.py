"""Number of BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread within a ``with`` block.

    Solving many small systems (about 100 unknowns) in sequence is several times slower with
    several threads, which must be woken and synchronised for each.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
