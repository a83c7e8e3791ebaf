"""Default policies compared with a grid of settings, on full-information problems.

Each row of a problem is a context with the reward of every arm; a policy sees that of the arm it
chose, learns it, and goes on to the next row. `python -m benchmarks.bandit_defaults`
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.datasets import load_digits

from benchmarks._online import play
from benchmarks._table import Column, print_table
from skbandit.bandit import GLMUCBPolicy
from skbandit.datasets import load_adult
from tests.policies import PAPER

SCALES = (0.3, 1.0, 3.0, 10.0, 30.0)
ALPHAS = (0.0, 0.1, 0.2, 0.5, 1.0)
"""The grid that the default competes with: prior scales by amounts of exploration."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "ucb": {},
    "thompson": {"exploration": "thompson"},
    "thompson .1": {"exploration": "thompson", "alpha": 0.1},
    "squarecb": {"exploration": "squarecb"},
    "epsilon .05": {"exploration": "epsilon_greedy", "epsilon": 0.05},
    "full": {"covariance": "full"},
    "full thompson": {"covariance": "full", "exploration": "thompson"},
    "paper": PAPER,
}


@dataclass(frozen=True)
class Problem:
    """Contexts, and the reward of every arm: a table, or its mean where rewards are drawn."""

    X: np.ndarray
    reward: np.ndarray  # (n_rows, n_arms)
    is_mean: bool = field(default=False)

    def shuffled(self, seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Contexts and rewards in random order; for synthetic problems, rewards drawn anew."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.X))[:n_rows]
        reward = self.reward[order]
        if self.is_mean:
            reward = (rng.random(reward.shape) < reward).astype(np.float64)
        return np.ascontiguousarray(self.X[order]), np.ascontiguousarray(reward)


def digits() -> Problem:
    """Images of digits; the arm that names the digit earns 1."""
    X, y = load_digits(return_X_y=True)
    return Problem(X, np.eye(10)[y])


def job() -> Problem:
    """People of Adult; the arm that names their occupation earns 1."""
    people = load_adult(subset="train").data
    people = people[people["occupation"].notna()]
    names, number = np.unique(people["occupation"].astype(str), return_inverse=True)
    X = pd.get_dummies(people.drop(columns=["occupation", "native_country"]))
    return Problem(X.to_numpy(np.float64), np.eye(len(names))[number])


def yeast() -> Problem:
    """Genes; each arm earns 1 for genes of its class."""
    table = pd.read_csv(Path(os.environ["SKBANDIT_DATA"]) / "yeast" / "yeast.csv.gz").to_numpy(
        np.float64
    )
    return Problem(table[:, :103], table[:, 103:])


def cal500() -> Problem:
    """Songs; each arm earns 1 for songs with its label."""
    with np.load(Path(os.environ["SKBANDIT_DATA"]) / "set_selection" / "cal500.npz") as arrays:
        return Problem(arrays["X"].astype(np.float64), -arrays["costs"].astype(np.float64))


REAL: dict[str, Callable[[], Problem]] = {
    "digits": digits, "job": job, "yeast": yeast, "cal500": cal500,
}  # fmt: skip


def made(
    seed: int,
    n: int = 6000,
    *,
    n_arms: int,
    n_features: int,
    base: float,
    arm_effect: float,
    context_effect: float,
    kind: str = "normal",
) -> Problem:
    """A logistic problem: mean reward near `base`, standard deviations of effects on the logit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    if kind == "units":
        raw = X * 10.0 ** rng.uniform(-3, 3, n_features) + rng.normal(size=n_features) * 100
    elif kind == "binary":
        raw = X = (rng.random(X.shape) < rng.uniform(0.02, 0.5, n_features)).astype(np.float64)
    elif kind == "heavy":
        raw = X = np.exp(X)
    else:
        raw = X
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    weights = rng.normal(size=(n_features, n_arms))
    if kind == "few":  # three features matter
        weights[rng.permutation(n_features)[3:]] = 0.0
    eta = standard @ weights
    eta *= context_effect / max(eta.std(), 1e-9)
    eta += arm_effect * rng.normal(size=n_arms)
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(eta + middle).mean() < base else (low, middle)
    return Problem(raw, expit(eta + low), is_mean=True)


def made_problems(first: int, n: int) -> Iterator[tuple[str, Problem]]:
    """Problems drawn at random; those of different seeds differ in everything."""
    for seed in range(first, first + n):
        rng = np.random.default_rng([7, seed])
        settings: dict[str, Any] = {
            "n_arms": int(rng.choice([2, 5, 10, 20, 50])),
            "n_features": int(rng.choice([2, 6, 16, 50, 100])),
            "base": float(rng.choice([0.01, 0.05, 0.1, 0.3, 0.5, 0.7])),
            "arm_effect": float(rng.choice([0.2, 0.5, 1.0])),
            "context_effect": float(rng.choice([0.3, 1.0, 2.0])),
            "kind": str(rng.choice(["normal", "units", "binary", "heavy", "few"])),
        }
        yield f"synthetic {seed}: {settings}", made(seed, **settings)


def earned(problem: Problem, settings: dict[str, Any], seeds: range, n_rows: int) -> np.ndarray:
    """Mean reward in each permutation."""
    means = []
    for seed in seeds:
        X, reward = problem.shuffled(seed, n_rows)
        policy = GLMUCBPolicy(random_state=seed, **settings)
        means.append(play(policy, X, reward).mean())
    return np.array(means)


def grid(covariance: str = "diagonal") -> dict[str, dict[str, Any]]:
    """Settings of the grid by name."""
    return {
        f"{scale:g}, {alpha:g}": {
            "prior_scale": scale, "alpha": alpha, "covariance": covariance,
        }
        for scale, alpha in itertools.product(SCALES, ALPHAS)
    }  # fmt: skip


def compare(
    name: str, problem: Problem, candidates: dict[str, dict[str, Any]], seeds: int, n_rows: int
) -> dict[str, Any]:
    """One row: the best cell, selected on other permutations than it is scored on."""
    judged, picked = range(seeds), range(100, 100 + seeds)
    cells = {cell: earned(problem, s, picked, n_rows).mean() for cell, s in grid().items()}
    best = max(cells, key=lambda cell: cells[cell])
    constant = problem.reward.mean(axis=0).max()
    row: dict[str, Any] = {"problem": name, "constant": f"{constant:.4f}", "cell": best}
    own = earned(problem, grid()[best], judged, n_rows)
    row["best cell"] = f"{own.mean():.4f} ± {own.std(ddof=1) / len(own) ** 0.5:.4f}"
    for candidate, settings in candidates.items():
        its = earned(problem, settings, judged, n_rows)
        away = its - own
        error = away.std(ddof=1) / len(own) ** 0.5
        row[candidate] = f"{its.mean():.4f} ({away.mean():+.4f} ± {error:.4f})"
    return row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few events and permutations")
    parser.add_argument("--seeds", type=int, default=5, help="permutations of each problem")
    parser.add_argument("--rows", type=int, default=6000, help="events of each permutation")
    parser.add_argument("--made", type=int, default=6, help="number of synthetic problems")
    parser.add_argument("--first", type=int, default=0, help="seed of the first synthetic problem")
    parser.add_argument("--only", nargs="*", help="names of problems, or 'made'")
    parser.add_argument("--rules", nargs="*", default=list(DEFAULTS), help="columns")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds, n_rows = (2, 500) if options.quick else (options.seeds, options.rows)
    problems: list[tuple[str, Callable[[], Problem]]] = list(REAL.items())
    for name, problem in made_problems(options.first, options.made):
        problems.append((name, lambda problem=problem: problem))  # type: ignore[misc]
    if options.only is not None:
        problems = [(n, p) for n, p in problems if n.split()[0] in options.only]
    candidates = {rule: DEFAULTS[rule] for rule in options.rules}
    columns = [Column("problem", 8), Column("constant", 8), Column("cell", 8)]
    columns += [Column("best cell", 15), *(Column(rule, 26) for rule in candidates)]
    rows = (compare(name, load(), candidates, seeds, n_rows) for name, load in problems)
    print_table("Mean reward, and its difference from the best cell", columns, rows)


if __name__ == "__main__":
    main()
