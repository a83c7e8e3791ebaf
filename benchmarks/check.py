"""Fail where time grew: ours relative to a plain reference, in turn, on small sizes.

python -m benchmarks.check [--keep]

CPU time of one thread. A ratio that is more than `WORSE` times the kept one fails, and so
does one that could not be measured. `--keep` writes the ratios of today to
`benchmarks/results` and into `docs/benchmarks_tables.md`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._kept import is_kept, keep, results
from benchmarks._measure import in_fresh_process, measure
from benchmarks._table import Column, print_table

WORSE = 1.5
COLUMNS = (Column("ratio", 61), Column("kept", 5), Column("now", 5))


def _least(task: Callable[[], Any], unit: Callable[[], Any]) -> float:
    task()
    unit()
    return measure(task, unit, rounds=7, seconds=30)[0].least


def replay(size: float, **options: Any) -> float:
    """A replay from DataFrames to the result, relative to the bare loop over arrays."""
    from benchmarks._bandit_rivals import N_ARMS, bandit_sample, skbandit
    from benchmarks._bare_replay import bare_replay

    sample = bandit_sample(int(200_000 * size))
    X, actions, rewards = sample.arrays
    X = np.column_stack([np.ones(len(X)), X])
    walk, _ = skbandit(**options)
    bare = partial(bare_replay, X, actions, rewards.astype(float), N_ARMS, 1.0)
    return _least(walk(sample), bare)


def fit(size: float) -> float:
    """A default fit under the 80% rule, relative to LinearSVC."""
    from benchmarks._data import adult
    from benchmarks._page_boards import FITS
    from benchmarks._rivals import linear_svc

    sample = adult("train", int(32_561 * size))
    rows = sample.X, sample.y, sample.group == 1
    return _least(partial(FITS["ConstrainedRampClassifier"], *rows), partial(linear_svc, *rows))


def choose(size: float) -> float:
    """The ten cheapest of 10,000 ads, relative to the matrix product of their costs."""
    from benchmarks.selection import predict

    task, product = predict(10_000, 100, int(500 * size), np.float64, "predict")
    assert product is not None
    return _least(task, product)


def modules(size: float) -> float:
    """What `import skbandit` loads beyond pandas and scikit-learn, relative to these."""

    def loaded(names: str) -> int:
        code = f"import sys, {names}; print(len(sys.modules))"
        return int(subprocess.check_output([sys.executable, "-c", code]))

    others = "pandas, sklearn.ensemble, sklearn.linear_model"
    return loaded(f"{others}, skbandit") / loaded(others) - 1


RATIOS: dict[str, Callable[[float], float]] = {
    "replay, published settings / the bare compiled loop": partial(
        replay, prior_variance=1.0, standardize=False, alpha=1.0
    ),
    "replay, default settings / the bare compiled loop": replay,
    "fit on Adult, ratio of positive rates >= .8 / LinearSVC": fit,
    "10 of 10,000 ads by 100 features / the matrix product": choose,
    "modules that import skbandit adds / pandas and scikit-learn": modules,
}
"""What is watched, from a share of the size to a ratio; less is better."""


def row(name: str, size: float) -> dict[str, Any]:
    """One ratio."""
    return {"now": RATIOS[name](size)}


def rows(size: float = 1.0) -> list[dict[str, Any]]:
    """Each ratio as it is kept and as it is now, with a note where it fails."""
    kept = dict(results("check").to_numpy().tolist()) if is_kept("check") else {}
    lines = []
    for name in RATIOS:
        line = {"ratio": name, "kept": kept.get(name)} | in_fresh_process(row, name, size)
        if name not in kept:
            line.setdefault("note", "not kept: run with --keep")
        elif not line.get("now", np.nan) <= WORSE * kept[name]:  # nan fails, too
            line["note"] = line.get("note") or f"more than {WORSE} times the kept one"
        lines.append(line)
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a ratio fails, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--keep", action="store_true", help="the ratios of today are the right ones"
    )
    options = parser.parse_args(arguments)
    lines = rows()
    print_table("Ratios that must not grow", COLUMNS, lines)
    if not options.keep:
        return int(any(line.get("note") for line in lines))
    from benchmarks._page_tables import write_pages

    missing = [line["ratio"] for line in lines if "now" not in line]
    if missing:
        print(f"Nothing is kept: not measured: {'; '.join(missing)}")
        return 1
    frame = pd.DataFrame({"ratio": list(RATIOS), "value": [line["now"] for line in lines]})
    keep("check", frame, sum(os.times()[:4]))  # its own and its children's
    write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main())
