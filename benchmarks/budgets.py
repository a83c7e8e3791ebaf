"""Policies under budgets on synthetic logs with known truth: value on new rows, and goals kept.

python -m benchmarks.budgets [--quick] [--keep]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from benchmarks._kept import keep
from benchmarks._table import Column, print_table
from skbandit.bandit import ConstrainedPolicy
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, cost, difference, each, outcome, positive_rate

LOGS = {2000: 4, 20_000: 1}
"""Logs of each kind, by their rows."""

N_NEW, N_PROGRAM = 100_000, 3000
"""New rows, and those of them for which a linear program is solved."""

LEARNERS = {
    "ridge": None,
    "trees": HistGradientBoostingRegressor(max_iter=40, random_state=0),
    "tree": DecisionTreeRegressor(max_leaf_nodes=8, random_state=0),
}
LEVELS = (0.8, 0.9)
COLUMNS = (
    Column("rows", 6, ",d"),
    Column("actions", 7, "d"),
    Column("logged", 8),
    Column("goals", 6),
    Column("learner", 7),
    Column("level", 5, ".1f"),
    Column("kept", 5, ".2f"),
    Column("refused", 7, ".2f"),
    Column("value", 7, ".3f"),
    Column("thinned", 7, ".3f"),
    Column("hindsight", 9, ".3f"),
    Column("program", 7, ".3f"),
    Column("program kept", 12, ".2f"),
    Column("cpu s", 6, ".1f"),
)


@dataclass(frozen=True)
class World:
    """Contexts, and what each action would lead to."""

    X: pd.DataFrame
    people: pd.DataFrame
    reward: np.ndarray
    harm: np.ndarray
    arms: np.ndarray


def world(n: int, n_arms: int, seed: int) -> World:
    """A world whose parameters do not depend on the seed of its people."""
    fixed, rng = np.random.default_rng(100 + n_arms), np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    women = rng.random(n) < 0.5
    X[:, 5] += 0.5 * women
    tilt = fixed.normal(size=(6, n_arms)) * 0.5
    reward = X @ tilt + 0.4 * np.maximum(X[:, [0]], 0) * fixed.normal(size=n_arms)
    reward += np.linspace(0, 1, n_arms)
    harm = 0.04 + 0.12 * np.linspace(0, 1, n_arms) / (1 + np.exp(-X[:, [1]]))
    minutes = rng.exponential(5.0, n)
    people = pd.DataFrame({"sex": np.where(women, "F", "M"), "minutes": minutes})
    arms = np.array([f"a{k}" for k in range(n_arms)])
    return World(pd.DataFrame(X).add_prefix("x"), people, reward, harm, arms)


def logged(made: World, kind: str, seed: int) -> pd.DataFrame:
    """One event per row."""
    rng, (n, K) = np.random.default_rng(1000 + seed), made.reward.shape
    if kind == "uniform":
        p = np.full((n, K), 1 / K)
    else:
        tilted = np.exp(
            0.8 * made.X[["x0", "x2"]].to_numpy() @ np.ones((2, K)) * np.linspace(-1, 1, K)
        )
        p = 0.7 * tilted / tilted.sum(axis=1, keepdims=True) + 0.3 / K
    action = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    rows = np.arange(n)
    return pd.DataFrame(
        {
            "action": made.arms[action],
            "reward": made.reward[rows, action] + rng.normal(size=n),
            "harm": (rng.random(n) < made.harm[rows, action]).astype(float),
            "propensity": p[rows, action],
        }
    )


def goals_of(kind: str, arms: np.ndarray) -> list[Constraint]:
    """One cap, or six goals of all kinds."""
    last, middle = arms[-1], arms[len(arms) // 2]
    if kind == "one":
        return [positive_rate(of=last) <= 0.15]
    spend = {one: 0.0 for one in arms} | {middle: 1.0, last: "minutes"}
    return [
        positive_rate(of=last) <= 0.15,
        cost(spend) <= 0.7,
        outcome("harm") <= 0.09,
        each(positive_rate, of="decisions") >= 0.02,
        difference(positive_rate, by="sex", of=[last]) <= 0.03,
    ]


def used(made: World, kind: str, share: np.ndarray) -> list[float]:
    """True excess of each goal at shares of actions."""
    K, women = len(made.arms), (made.people["sex"] == "F").to_numpy()
    of_arm = share.mean(axis=0)
    found = [of_arm[-1] - 0.15]
    if kind == "one":
        return found
    minutes = made.people["minutes"].to_numpy()
    found.append((share[:, K // 2] + minutes * share[:, -1]).mean() - 0.7)
    found.append((share * made.harm).sum(axis=1).mean() - 0.09)
    found.append(0.02 - of_arm.min())
    gap = share[women, -1].mean() - share[~women, -1].mean()
    return [*found, abs(gap) - 0.03]


def rows_of_goals(made: World, kind: str) -> tuple[np.ndarray, list[float]]:
    """What each action of a row adds to the goals, (goals, n, K), and their bounds from above."""
    n, K = made.harm.shape
    women = (made.people["sex"] == "F").to_numpy()
    last = np.eye(K)[-1]
    rows, bound = [np.tile(last, (n, 1))], [0.15]
    if kind == "six":
        minutes = made.people["minutes"].to_numpy()[:, None]
        rows.append(np.eye(K)[K // 2] + minutes * last)
        rows.append(made.harm)
        rows += [-np.tile(one, (n, 1)) for one in np.eye(K)]
        gap = (women / women.mean() - ~women / (~women).mean())[:, None] * last
        rows += [gap, -gap]
        bound += [0.7, 0.09, *[-0.02] * K, 0.03, 0.03]
    return np.array(rows), bound


def program(made: World, kind: str, costs: np.ndarray) -> Any:
    """The best randomized rule on these rows by predicted costs, by HiGHS."""
    n, K = costs.shape
    rows, bound = rows_of_goals(made, kind)
    table = csr_array(rows.reshape(len(rows), -1) / n)
    one_each = csr_array(kron(eye_array(n), np.ones((1, K))))
    return linprog(costs.ravel() / n, table, bound, one_each, np.ones(n), method="highs")


def hindsight(made: World, kind: str, costs: np.ndarray) -> float:
    """The value of the best rule on new rows by the same predictions, and the true harm."""
    found = program(made, kind, costs)
    if found.x is None:
        return np.nan
    return float((found.x.reshape(costs.shape) * made.reward).sum(axis=1).mean())


def first(made: World) -> World:
    """The rows for which a program is solved."""
    few = slice(0, N_PROGRAM)
    return World(made.X[few], made.people[few], made.reward[few], made.harm[few], made.arms)


def harm_by_models(made: World, learner: str, log: pd.DataFrame, others: World) -> list[World]:
    """Both worlds with the harm that a model per action predicts."""
    model = LEARNERS[learner] or Ridge()
    parts = [(log["action"] == arm).to_numpy() for arm in made.arms]
    models = [clone(model).fit(made.X[part], log["harm"][part]) for part in parts]
    return [
        replace(world, harm=np.column_stack([one.predict(world.X) for one in models]))
        for world in (made, others)
    ]


def thinned(made: World, kind: str, best: np.ndarray) -> float:
    """What people do: rows of a budget's actions get the first action at random until it holds."""
    K, rng = len(made.arms), np.random.default_rng(0)
    share = np.eye(K)[best]
    for keep_share in np.linspace(1, 0, 101):
        off = (best != 0) & (rng.random(len(best)) > keep_share)
        tried = share.copy()
        tried[off] = np.eye(K)[0]
        if max(used(made, kind, tried)[: 3 if kind == "six" else 1]) <= 0:
            return float((tried * made.reward).sum(axis=1).mean())
    return np.nan


def one(n: int, K: int, log_kind: str, goal_kind: str, learner: str, seed: int) -> list[Any]:
    """Both levels on one log."""
    warnings.simplefilter("ignore")
    old, new = world(n, K, seed), world(N_NEW, K, 500 + seed)
    log = logged(old, log_kind, seed)
    found = []
    predicted, expected = harm_by_models(old, learner, log, new)
    for level in LEVELS:
        started, refused = time.process_time(), 0.0
        policy = ConstrainedPolicy(
            LEARNERS[learner], None, goals_of(goal_kind, old.arms), confidence_level=level
        )
        try:
            policy.fit(old.X, log, attributes=old.people)
        except InfeasibleConstraintsError as error:
            policy, refused = error.closest_, 1.0
        cpu = time.process_time() - started
        chosen = policy.predict(new.X, attributes=new.people)
        share = (chosen[:, None] == new.arms).astype(float)
        costs = policy.expected_costs(new.X).to_numpy()
        planned = program(
            first(predicted), goal_kind, policy.expected_costs(old.X).to_numpy()[:N_PROGRAM]
        )
        priced = np.full(costs.shape, np.nan)
        if planned.x is not None:
            rows, _ = rows_of_goals(expected, goal_kind)
            priced = costs - np.tensordot(planned.ineqlin.marginals, rows, 1)
        by_program = np.eye(K)[priced.argmin(axis=1)]
        found.append(
            {
                "rows": n,
                "actions": K,
                "logged": log_kind,
                "goals": goal_kind,
                "learner": learner,
                "level": level,
                "seed": seed,
                "kept": np.nan if refused else float(max(used(new, goal_kind, share)) <= 0),
                "refused": refused,
                "value": float((share * new.reward).sum(axis=1).mean()),
                "thinned": thinned(new, goal_kind, costs.argmin(axis=1)),
                "hindsight": hindsight(first(new), goal_kind, costs[:N_PROGRAM]),
                "program": float((by_program * new.reward).sum(axis=1).mean()),
                "program kept": float(max(used(new, goal_kind, by_program)) <= 0),
                "cpu s": cpu,
            }
        )
    return found


SETTINGS = ("rows", "actions", "logged", "goals", "learner", "level")


def rows(n_logs: dict[int, int], kept: list[pd.DataFrame]) -> Iterator[Any]:
    """Means over the logs; every one goes to `kept`."""
    for n, n_seeds in n_logs.items():
        for K in (3, 8):
            for log_kind in ("uniform", "skewed"):
                for goal_kind in ("one", "six"):
                    for learner in LEARNERS:
                        task = delayed(one)
                        tasks = (
                            task(n, K, log_kind, goal_kind, learner, k) for k in range(n_seeds)
                        )
                        found = pd.DataFrame([row for part in Parallel(2)(tasks) for row in part])
                        kept.append(found)
                        for key, part in found.groupby(list(SETTINGS)):
                            means = part.drop(columns="seed").mean(numeric_only=True)
                            yield means.to_dict() | dict(zip(SETTINGS, key, strict=True))


def as_kept(every: pd.DataFrame) -> pd.DataFrame:
    """A row per log and rule, as the page shows them."""
    part = every["rows"].map("{:,d} rows".format) + ", " + every["goals"] + " goals"
    unit = every[["actions", "logged", "learner", "seed"]].astype(str).agg(" ".join, axis=1)
    found = pd.DataFrame({"part": part, "unit": unit})
    found["method"] = "confidence_level=" + every["level"].astype(str)
    found["goals kept"], found["refused"] = every["kept"], every["refused"]
    found["% of hindsight"] = 100 * every["share of hindsight"]
    once = found[every["level"] == LEVELS[0]].assign(refused=np.nan)
    thinned = once.assign(method="thinned at random")
    thinned["goals kept"] = np.nan
    thinned["% of hindsight"] = 100 * every["thinned / hindsight"]
    program = once.assign(method="program on predictions")
    program["goals kept"] = every["program kept"]
    program["% of hindsight"] = 100 * every["program / hindsight"]
    return pd.concat([found, program, thinned])


def main() -> None:
    """Print the table."""
    name = "python -m benchmarks.budgets"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four logs of 2,000 rows each")
    parser.add_argument("--keep", action="store_true", help="write results/budgets.csv")
    chosen = parser.parse_args()
    n_logs = {2000: 4} if chosen.quick else LOGS
    kept: list[pd.DataFrame] = []
    started = time.perf_counter()
    print_table("Policies under budgets, on new rows", COLUMNS, rows(n_logs, kept))
    every = pd.concat(kept, ignore_index=True)
    every["share of hindsight"] = every["value"] / every["hindsight"]
    every["thinned / hindsight"] = every["thinned"] / every["hindsight"]
    every["program / hindsight"] = every["program"] / every["hindsight"]
    by = every.groupby(["rows", "goals", "level"])
    shares = [f"{name} / hindsight" for name in ("thinned", "program")]
    print(by[["kept", "refused", "program kept", "share of hindsight", *shares]].mean().round(3))
    if chosen.keep:
        keep("budgets", as_kept(every), time.perf_counter() - started)


if __name__ == "__main__":
    main()
