"""Datasets: included, fetched and checked by hash, read from log files, or generated."""

from skbandit.datasets._adult import fetch_a9a, fetch_adult, load_a9a, load_adult
from skbandit.datasets._parquet import read_parquet_log
from skbandit.datasets._public_logs import fetch_open_bandit, load_open_bandit, read_yahoo_r6
from skbandit.datasets._slate_log import read_slate_log
from skbandit.datasets._synthetic import make_bandit_log, make_set_selection
from skbandit.datasets._vw_dsjson import read_vw_dsjson

__all__ = [
    "fetch_a9a",
    "fetch_adult",
    "fetch_open_bandit",
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
