"""Adult under a bound on the ratio of positive rates, by every method.

python -m benchmarks.adult [--quick] [--only NAME ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from benchmarks._data import Sample, adult
from benchmarks._measure import in_fresh_process, measure
from benchmarks._rivals import RIVALS, linear_svc
from benchmarks._table import COSTS, Column, costs, print_table

QUICK_ROWS = 4_000
WARM_UP_ROWS = 300
"""First a fit of so many: imports and compiled code are not what is measured."""

COLUMNS = (
    Column("method", 31),
    Column("setting", 24),
    *COSTS,
    Column("error", 6, ".4f"),
    Column("men/women", 9, ".2f"),
)


def row(name: str, setting: dict[str, float], quick: bool) -> dict[str, Any]:
    """One method with one setting."""
    fit = RIVALS[name].fit
    train, test = adult("train", QUICK_ROWS if quick else None), adult("test")
    fit(*_arguments(train.head(WARM_UP_ROWS)), **setting)
    arguments = _arguments(train)
    unit = partial(linear_svc, *arguments)
    task = partial(fit, *arguments, **setting)
    cost, rule = measure(task, unit, rounds=2 if quick else 5)

    men = test.group == 1
    positive = np.asarray(rule(test.X, men))
    return costs(cost) | {
        "error": np.mean(positive != test.y),
        "men/women": positive[men].mean() / positive[~men].mean(),
    }


def _arguments(sample: Sample) -> tuple[Any, np.ndarray, np.ndarray]:
    return sample.X, sample.y, sample.group == 1


def rows(names: list[str], quick: bool) -> Iterator[dict[str, Any]]:
    """One row a method and setting; of a method that is not installed, how to install it."""
    for name in names:
        rival = RIVALS[name]
        settings = list(ParameterGrid(dict(rival.grid)))
        if quick:
            settings = settings[-1:]
        if rival.cure:
            yield {"method": name, "setting": "", "note": rival.cure}
            continue
        for setting in settings:
            shown = ", ".join(f"{key}={value:.2g}" for key, value in setting.items())
            measured = in_fresh_process(row, name, setting, quick)
            yield {"method": name, "setting": shown} | measured


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adult", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, one setting a method")
    parser.add_argument("--only", nargs="+", choices=RIVALS, metavar="NAME", default=list(RIVALS))
    options = parser.parse_args()
    adult("all")  # downloaded once, before other processes ask for it
    title = "Adult: positive rate of men <= positive rate of women / kappa"
    print_table(title, COLUMNS, rows(options.only, options.quick))


if __name__ == "__main__":
    main()
