"""How many threads BLAS uses."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS work in one thread for a while.

    Systems of a hundred unknowns, one after the other, take several times longer when threads
    have to be woken and waited for each time.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
