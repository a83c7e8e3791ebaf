"""The price of a kept constraint: objectives on new rows, relative to rivals, by kind of problem.

    python -m benchmarks.price [--quick] [--keep] [--seeds N]

The problems are the shapes of `_goal_data`, and others drawn at random, with 20,000 new rows each,
under every constraint of `_goals`. Printed are, with standard errors over problems:

- the objective of the default less that of a rival, and how much more often its constraints are
  met, on the same problems. fairlearn's methods support five of the eleven constraints, and those
  only are compared;
- the share of fits whose constraints are met on the new rows, at several levels, and the share that
  raised an error instead, as the level is out of reach. Above, such a fit counts by its closest
  rule.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from benchmarks import goals
from benchmarks._goal_data import SHAPES, drawn, made
from benchmarks._goals import GOALS
from benchmarks._kept import keep

FIRST_SEED, SEEDS = 300, 3
"""Seeds from here on were used for nothing else."""

RIVALS = {
    "ConstrainedReduction, logistic": "reduction",
    "ConstrainedThreshold": "threshold",
    "fairlearn ExponentiatedGradient": "fairlearn ExponentiatedGradient",
    "fairlearn ExponentiatedGradient, tightened": "fairlearn ExponentiatedGradient, tightened",
}
"""Names on the page, and in `goals.METHODS`."""

LEVELS = {
    "default": "ramp",
    "confidence_level=.8": "ramp, level .8",
    "confidence_level=.9": "ramp, level .9",
    "confidence_level=.95": "ramp, level .95",
}
"""The same of our levels."""

RANDOM = "drawn at random"
PER_RANDOM = 4
"""Problems drawn at random per seed."""


def problems(seed):
    """Names and splits of one seed."""
    for name, shape in SHAPES.items():
        yield name, made(shape, seed)
    for k in range(PER_RANDOM):
        number = PER_RANDOM * seed + k
        yield RANDOM, made(drawn(number), number)


def rows(seeds, names):
    """A row per comparison, problem and constraint."""
    for seed in seeds:
        for number, (shape, split) in enumerate(problems(seed)):
            for name in names:
                goal, unit = GOALS[name], f"{seed}.{number}, {name}"
                runs = {level: goals.run(method, goal, split) for level, method in LEVELS.items()}
                own = runs["default"]
                found = [
                    {
                        "part": level,
                        "share met": np.nan if run["refused"] else met(run),
                        "refused": run["refused"],
                    }
                    for level, run in runs.items()
                ]
                for rival, method in RIVALS.items():
                    if goals.applies(method, goal):
                        its = goals.run(method, goal, split)
                        found.append(
                            {
                                "part": f"less {rival}",
                                "objective": own["objective"] - its["objective"],
                                "constraints met": met(own) - met(its),
                            }
                        )
                for one in found:
                    yield {**one, "unit": unit, "method": shape}


def with_all(frame):
    """Rows of all problems together, below those of each shape."""
    return pd.concat([frame, frame.assign(method="all problems")])


def met(run):
    """1 if all constraints hold on the new rows, else 0."""
    return float(run["missed by"] <= 1e-9)


def main():
    """Print the means, and keep the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one seed, two constraints")
    parser.add_argument("--keep", action="store_true", help="write results/price.csv")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    seeds, names = range(FIRST_SEED, FIRST_SEED + options.seeds), list(GOALS)
    if options.quick:
        seeds, names = seeds[:1], names[:2]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits whose constraints are out of reach or costly
        frame = pd.DataFrame(rows(seeds, names))
    seconds = time.process_time() - began
    order = [*SHAPES, RANDOM]
    frame = frame.sort_values("method", key=lambda of: of.map(order.index), kind="stable")
    measures = ["objective", "constraints met", "share met", "refused"]
    means = with_all(frame).groupby(["part", "method"], sort=False)[measures].agg(["mean", "sem"])
    print(means.round(4).to_string())
    if options.keep and not options.quick:
        keep("price", frame[["part", "unit", "method", *measures]], seconds, seeds=len(seeds))


if __name__ == "__main__":
    main()
