"""Tables in Markdown, printed row by row as they come."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks._measure import Cost

PACKAGES = ("skbandit", "scikit-learn", "numpy", "cvxpy", "piqp", "fairlearn", "scikit-lego")


@dataclass(frozen=True)
class Column:
    """A column: the key of its values, its width, and the format of numbers in it."""

    name: str
    width: int = 8
    number: str = ".2f"

    def show(self, value: Any) -> str:
        """A value, or a dash where there is none."""
        if isinstance(value, str):
            return value.ljust(self.width)
        if value is None or math.isnan(value):
            return "–".rjust(self.width)
        return format(value, self.number).rjust(self.width)


COSTS = (
    Column("cpu s"),
    Column("wall s"),
    Column("x SVM"),
    Column("median"),
    Column("MB", 7, ".0f"),
)
"""The columns that `costs` fills."""


def costs(cost: Cost) -> dict[str, Any]:
    """A `Cost` as values of a row."""
    return {
        "cpu s": cost.cpu,
        "wall s": cost.wall,
        "x SVM": cost.least,
        "median": cost.median,
        "MB": cost.megabytes,
        "note": cost.note,
    }


def print_table(
    title: str,
    columns: Iterable[Column],
    rows: Iterable[dict[str, Any]],
    packages: Iterable[str] = PACKAGES,
) -> None:
    """Print a title, where it was measured, and the rows, each as soon as there is one."""
    columns = [*columns, Column("note", 1)]
    print(f"\n## {title}\n\n{where(packages)}\n", flush=True)
    _print_row(column.name.ljust(column.width) for column in columns)
    _print_row("-" * column.width for column in columns)
    for row in rows:
        _print_row(column.show(row.get(column.name)) for column in columns)
    print(f"\nLoad average now {os.getloadavg()[0]:.1f}.", flush=True)


def where(packages: Iterable[str] = PACKAGES) -> str:
    """The machine, how busy it is, and the versions."""
    load = f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}"
    return f"{platform.system()} {platform.machine()}, {load}; Python {_versions(packages)}."


def _versions(packages: Iterable[str]) -> str:
    found = [platform.python_version()]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def _print_row(cells: Iterable[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)
