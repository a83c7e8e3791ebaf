"""What of the documentation is no test, or none without an optional dependency."""

import importlib.util
import os

os.environ.setdefault("MPLBACKEND", "Agg")  # no snippet waits for a window to be closed

NEEDED = {
    "how_to/after_the_first_day.md": "matplotlib",
    "how_to/cluster.md": "distributed",
    "how_to/export.md": "onnxruntime",
    "how_to/figures.md": "matplotlib",
    "how_to/large_logs.md": "pyarrow",
    "how_to/reports.md": "matplotlib",
    "getting_started/compare_policies.md": "matplotlib",
    "getting_started/your_data.md": "matplotlib",
}

collect_ignore = ["conf.py", "gallery_order.py"]
collect_ignore += [page for page, name in NEEDED.items() if importlib.util.find_spec(name) is None]
