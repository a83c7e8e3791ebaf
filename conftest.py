"""Which examples of docstrings are left out where an optional package is not installed."""

from importlib.util import find_spec

collect_ignore = []
if find_spec("matplotlib") is None:
    collect_ignore += ["skbandit/inspection"]
if find_spec("pyarrow") is None:
    collect_ignore += [
        "skbandit/datasets/_parquet.py",
        "skbandit/evaluation/_replay/_blocks.py",
    ]
