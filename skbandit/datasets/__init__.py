"""Datasets: installed with the package, read from log files, or generated."""

from skbandit.datasets._adult import load_a9a, load_adult
from skbandit.datasets._parquet import read_parquet_log
from skbandit.datasets._public_logs import load_open_bandit, read_yahoo_r6
from skbandit.datasets._slate_log import read_slate_log
from skbandit.datasets._synthetic import make_bandit_log, make_set_selection
from skbandit.datasets._vw_dsjson import read_vw_dsjson

__all__ = [
    "load_a9a",
    "load_adult",
    "load_open_bandit",
    "make_bandit_log",
    "make_set_selection",
    "read_parquet_log",
    "read_slate_log",
    "read_vw_dsjson",
    "read_yahoo_r6",
]


def __getattr__(name: str) -> object:
    if name in ("fetch_a9a", "fetch_adult", "fetch_open_bandit"):
        loader = name.replace("fetch", "load")
        raise ImportError(f"{name} is gone: {loader}() loads the data installed with skbandit.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
