"""BLAS in one thread for a while."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from skbandit.utils._fitting import one_blas_thread


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


def test_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before
