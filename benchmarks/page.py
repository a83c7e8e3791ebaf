"""Run the benchmarks of the documentation's page, keep what was found, draw it, write its tables.

python -m benchmarks.page [--only BOARD ...] [--size SIZE] [--no-run]

Everything runs in one process with one thread. Results go to `benchmarks/results`, figures to
`docs/_static`, tables and figures of the prose between the marks of README.md and of the pages;
what is written about them is by hand.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks._measure import THREADS


def run(name: str, size: float) -> None:
    """Run one board, and keep its rows and where they were measured."""
    import pandas as pd

    from benchmarks._kept import keep
    from benchmarks._page_boards import BOARDS

    before, rows = time.process_time(), []
    for row in BOARDS[name].run(size):
        rows.append(row)
        print(f"{name}: {row['part']}, {row['unit']}, {row['method']}", flush=True)
    keep(name, pd.DataFrame(rows), time.process_time() - before, size=size)


def main() -> None:
    """Run, draw, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ("eighty_percent", "goals", "policies", "sets", "speed")
    parser.add_argument("--only", nargs="+", choices=known, metavar="BOARD", default=list(known))
    parser.add_argument("--size", type=float, default=1.0, help="share of the repetitions")
    parser.add_argument("--no-run", action="store_true", help="from the results that are kept")
    options = parser.parse_args()
    if not options.size > 0:
        parser.error(f"--size {options.size}: must be above 0, 1 is the page's")
    if not options.no_run:
        if any(os.environ.get(one) != "1" for one in THREADS):  # read when numpy is loaded
            os.environ.update(dict.fromkeys(THREADS, "1"))
            os.execv(sys.executable, [sys.executable, "-m", "benchmarks.page", *sys.argv[1:]])
        for name in options.only:
            run(name, options.size)
    from benchmarks._page_figures import draw
    from benchmarks._page_tables import write_pages

    for name in options.only:
        draw(name)
    write_pages()


if __name__ == "__main__":
    main()
