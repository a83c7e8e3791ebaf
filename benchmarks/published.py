"""The experiments of Goh et al. (2016), section 4, and of Li et al. (2012), with their settings.

python -m benchmarks.published [--only EXPERIMENT ...] [--runs N] [--quick] [--keep]

Prints means over runs, ± standard deviations. With `--keep`, what was found goes to
`benchmarks/results`, its figures to `docs/_static`, and its tables into `docs/papers.md`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks import _published_bandits, _published_goals
from benchmarks._kept import keep, results
from benchmarks._page_tables import means, write_pages
from benchmarks._table import Column, print_table


@dataclass(frozen=True)
class Experiment:
    """A published figure: its title, how often the paper repeats it, and what runs it."""

    title: str
    runs: int
    run: Callable[[int, bool], Iterator[dict[str, Any]]]


EXPERIMENTS = {
    "fairness": Experiment(
        "Goh et al. (2016), Figure 2: men's positive rate <= women's / kappa",
        100,
        _published_goals.fairness,
    ),
    "churning": Experiment(
        "Goh et al. (2016), Figure 3: recall as the deployed model's, churn on D3",
        10,
        _published_goals.churning,
    ),
    "rewards": Experiment(
        "Li et al. (2012), Figure 1: click rate over the log's", 5, _published_bandits.rewards
    ),
    "optimism": Experiment(
        "Li et al. (2012), Figure 2: optimistic start", 5, _published_bandits.optimism
    ),
    "approximations": Experiment(
        "Li et al. (2012), Figure 3: upper bounds and means", 5, _published_bandits.approximations
    ),
}


def draw(name: str, frame: pd.DataFrame) -> None:
    """Draw an experiment into docs/_static."""
    from benchmarks import _published_figures
    from benchmarks._page_figures import save

    save(getattr(_published_figures, name)(frame), f"published_{name}")


def main() -> None:
    """Print the tables; keep and draw what they are made of, if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.published",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = list(EXPERIMENTS)
    parser.add_argument("--only", nargs="+", choices=names, metavar="EXPERIMENT", default=names)
    parser.add_argument("--runs", type=int, default=1, help="the papers have 100, 10 and 5")
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--keep", action="store_true", help="results, figures and tables")
    parser.add_argument("--no-run", action="store_true", help="draw and write what is kept")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs {options.runs}: at least one run is needed")
    if options.keep and options.quick:
        parser.error("--keep --quick: figures of few rows are not kept")
    for name in options.only:
        before = time.process_time()
        if options.no_run:
            frame = results(f"published_{name}")
        else:
            frame = pd.DataFrame(EXPERIMENTS[name].run(options.runs, options.quick))
        table = means(frame)
        columns = [Column(column, 24 if column == "rule" else 15) for column in table]
        print_table(EXPERIMENTS[name].title, columns, table.to_dict("records"))
        if options.keep:
            keep(f"published_{name}", frame, time.process_time() - before, runs=options.runs)
        if options.keep or options.no_run:
            draw(name, frame)
    if options.keep or options.no_run:
        write_pages()


if __name__ == "__main__":
    main()
