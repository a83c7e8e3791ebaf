"""What the page of benchmarks runs: four boards, each a table of repetitions.

A row of a board is one repetition (`unit`: a split, a permutation, a synthetic one, a round) of one
method on one problem (`part`), with what was measured. Repetitions of the same name are the same
data for all methods, so that methods are compared pair by pair.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from benchmarks import bandit_defaults, goals, selection
from benchmarks._bandit_rivals import OURS as OUR_REPLAYS
from benchmarks._bandit_rivals import RIVALS as REPLAY_RIVALS
from benchmarks._bandit_rivals import bandit_sample
from benchmarks._data import Sample, adult
from benchmarks._goal_data import SETS, SHAPES, absent
from benchmarks._goals import GOALS
from benchmarks._online import play
from benchmarks._policy_rivals import RIVALS as POLICY_RIVALS
from benchmarks._rivals import RIVALS as FAIR_RIVALS
from benchmarks._rivals import Rule, parity
from benchmarks._selection_rivals import ALL as SELECTORS
from benchmarks._selection_rivals import DATA, GONE, SelectionRival, skbandit
from skbandit import ConstrainedRampClassifier, RegressionSetSelector, SetSelectClassifier
from skbandit.bandit import GLMUCBPolicy
from skbandit.constrained import RampClassifier

Row = dict[str, Any]


@dataclass(frozen=True)
class Board:
    """A comparison.

    Parameters
    ----------
    run : callable
        From a size between 0 and 1 to rows.
    measures : dict
        1 where more is better, -1 where less is, 0 where neither, by measure.
    references : tuple of str
        Our defaults, which others are compared with: the first one that takes part.
    ours : tuple of str
        Beginnings of the names of our methods.
    """

    run: Callable[[float], Iterator[Row]]
    measures: dict[str, int]
    references: tuple[str, ...]
    ours: tuple[str, ...]


# --- goals on new rows ---------------------------------------------------------------------

GOAL_METHODS = {
    "ConstrainedRampClassifier": "ramp",
    "ConstrainedRampClassifier, level .9": "ramp, level .9",
    "ConstrainedReduction, logistic": "reduction",
    "ConstrainedThreshold": "threshold",
    "ConstrainedThreshold, by group": "threshold per group",
    "fairlearn ExponentiatedGradient": "fairlearn ExponentiatedGradient",
    "fairlearn ExponentiatedGradient, tightened": "fairlearn ExponentiatedGradient, tightened",
    "fairlearn GridSearch": "fairlearn GridSearch",
    "fairlearn ThresholdOptimizer": "fairlearn ThresholdOptimizer",
}
"""Names on the page, and in `goals.METHODS`."""

FIRST_SPLIT = 70
"""Seeds from here on were used for nothing else."""

N_SPLITS = {"German credit": 4, "Adult": 3}


CALIBRATED = "calibrated at level .8"
"""What a level of .8 that the population keeps exactly would show on test sets of this size."""


def share_shown(level: float, n_train: int, n_new: int) -> float:
    """Share of test sets that meet a bound which holds at a level: see docs/how_to/reports.md."""
    return float(ndtr(ndtri(level) / np.sqrt(1 + n_train / n_new)))


def goal_rows(size: float) -> Iterator[Row]:
    """Means over the goals, on each split of two real sets and on nine synthetic problems."""
    for name in SETS:
        if absent(name):
            continue
        n = max(1, round(size * N_SPLITS.get(name, 1)))
        for seed in range(FIRST_SPLIT, FIRST_SPLIT + n):
            found = goals.runs(name, list(GOALS), list(GOAL_METHODS.values()), [seed])
            split = SETS[name](seed)
            expected = share_shown(0.8, len(split.train.y), len(split.new.y))
            of_set = ("synthetic", name) if name in SHAPES else (name, f"split {seed}")
            for shown, method in GOAL_METHODS.items():
                for kind in ("all", "fairness"):
                    asked = [g for g in GOALS if kind == "all" or GOALS[g].fairlearn]
                    its = [found.get(f"{goal}\n{method}") for goal in asked]
                    its = [one for one in its if one is not None and not isinstance(one, str)]
                    if len(its) < len(asked):  # cannot be asked for them all
                        continue
                    summary = goals.summary([run for one in its for run in one])
                    goals_of = f"{len(asked)} {'goals' if kind == 'all' else 'fairness goals'}"
                    key = {"part": f"{of_set[0]}, {goals_of}", "unit": of_set[1]}
                    yield key | {
                        "method": shown,
                        "goals met": summary["met"],
                        "objective": summary["objective"],
                        "cpu s": summary["cpu s"],
                    }
                    if method == "ramp":
                        yield key | {"method": CALIBRATED, "goals met": expected}


ONLY_AMONG_GOALS = ("fairlearn GridSearch", "fairlearn ExponentiatedGradient, tightened")
EIGHTY_METHODS = {
    **{name: method for name, method in GOAL_METHODS.items() if name not in ONLY_AMONG_GOALS},
    "LogisticRegression, no goal": "no goal",
}
EIGHTY = "parity, ratio .8"
"""Of `GOALS`: positives to women at least 80% as often as to men."""


def eighty_rows(size: float) -> Iterator[Row]:
    """The 80% rule on splits of Adult: errors, women's positive rate over men's, rule kept."""
    for seed in range(FIRST_SPLIT, FIRST_SPLIT + max(1, round(8 * size))):
        found = goals.runs("Adult", [EIGHTY], list(EIGHTY_METHODS.values()), [seed])
        for shown, method in EIGHTY_METHODS.items():
            its = found[f"{EIGHTY}\n{method}"]
            if isinstance(its, str):  # not installed, or it failed
                continue
            yield {
                "part": "Adult, 10,000 people",
                "unit": f"split {seed}",
                "method": shown,
                "error": its[0]["objective"],
                "women / men": GOALS[EIGHTY].bound - its[0]["missed by"],
                "rule kept": float(its[0]["missed by"] <= 1e-9),
                "cpu s": its[0]["cpu s"],
            }


# --- policies ------------------------------------------------------------------------------

POLICIES = {
    "GLMUCBPolicy": {},
    "GLMUCBPolicy, Thompson": bandit_defaults.DEFAULTS["thompson"],
    "GLMUCBPolicy, published settings": bandit_defaults.DEFAULTS["paper"],
}
EVENTS = 3000
FIRST_MADE = 500
"""Synthetic problems from this seed on were used for nothing else."""


def policy_rows(size: float) -> Iterator[Row]:
    """Mean reward per event of each policy, on permuted real rows and synthetic problems."""
    n = max(1, round(8 * size))
    real = [
        (name, f"permutation {seed}", load, seed)
        for name, load in bandit_defaults.REAL.items()
        for seed in range(FIRST_SPLIT, FIRST_SPLIT + max(1, round(4 * size)))
    ]
    made = [
        ("synthetic", name.partition(":")[0], lambda problem=problem: problem, 0)
        for name, problem in bandit_defaults.made_problems(FIRST_MADE, n)
    ]
    best: dict[str, dict[str, Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part, unit, load, seed in real + made:
            try:
                problem = load()
            except (KeyError, OSError):  # its file is not there
                continue
            X, reward = problem.shuffled(seed, EVENTS)
            where = part if part in bandit_defaults.REAL else unit
            if where not in best:
                best[where] = _best_cell(problem)
            key = {"part": part, "unit": unit}
            for name, settings in POLICIES.items():
                got = play(GLMUCBPolicy(random_state=seed, **settings), X, reward)
                yield key | {"method": name, "mean reward": got.mean()}
            hindsight = play(GLMUCBPolicy(random_state=seed, **best[where]), X, reward)
            yield key | {
                "method": "best of 25 settings, in hindsight", "mean reward": hindsight.mean()
            }  # fmt: skip
            for name, rival in POLICY_RIVALS.items():
                yield key | {"method": name, "mean reward": rival(X, reward, seed).mean()}
            constant = reward.mean(axis=0).max()
            yield key | {"method": "best constant arm, in hindsight", "mean reward": constant}


def _best_cell(problem: bandit_defaults.Problem) -> dict[str, Any]:
    """Of the grid, by another permutation than those that are reported."""
    cells = bandit_defaults.grid().values()
    return max(
        cells, key=lambda s: bandit_defaults.earned(problem, s, range(100, 101), EVENTS).mean()
    )


# --- sets ----------------------------------------------------------------------------------

SELECTED: dict[str, SelectionRival] = {
    "RegressionSetSelector": skbandit(RegressionSetSelector()),
    'RegressionSetSelector("stack")': skbandit(RegressionSetSelector("stack")),
    "SetSelectClassifier": skbandit(SetSelectClassifier(random_state=0)),
    "PopularitySetSelector": SELECTORS["popularity"],
    "MultiOutputRegressor(Ridge), argpartition": SELECTORS[
        "MultiOutputRegressor(Ridge), argpartition"
    ],
    "LightGBM rank_xendcg": SELECTORS["LightGBM rank_xendcg"],
    "LightGBM regression per ad": SELECTORS["LightGBM regression per ad"],
    "VW csoaa_ldf": SELECTORS["VW csoaa_ldf"],
    "costsensitive WeightedAllPairs": SELECTORS["costsensitive WeightedAllPairs"],
}


def set_rows(size: float) -> Iterator[Row]:
    """The share of the best sets' value, and the time of a fit, on splits of two data sets."""
    warm = DATA["synthetic"]().rows(slice(200))
    for data, load in DATA.items():
        for gone in GONE:
            sample = load().without(gone)
            for name, rival in SELECTED.items():
                if rival.cure:
                    continue
                rival.choose(rival.fit(rival.read(warm)), rival.read(warm))
                for seed in range(FIRST_SPLIT, FIRST_SPLIT + max(1, round(3 * size))):
                    train, test = sample.split(seed)
                    table = rival.read(train)
                    before = time.process_time()
                    model = rival.fit(table)
                    spent = time.process_time() - before
                    yield {
                        "part": f"{data}, {'all ads there' if gone == 0 else '30% gone'}",
                        "unit": f"split {seed}",
                        "method": name,
                        "share": test.share(rival.choose(model, rival.read(test))),
                        "fit s": spent,
                    }


# --- speed ---------------------------------------------------------------------------------


def _ramp(ramp: Any) -> Callable[..., Rule]:
    def fit(X: Any, y: np.ndarray, men: np.ndarray) -> Rule:
        clf = ramp.set_params(constraints=parity(0.8))
        clf.fit(X, y, attributes=pd.DataFrame({"men": men}))
        return lambda X, men: clf.predict(X) > 0

    return fit


FITS: dict[str, Callable[..., Rule]] = {
    "ConstrainedRampClassifier": _ramp(ConstrainedRampClassifier()),
    "RampClassifier": _ramp(RampClassifier()),
    "ConstrainedThreshold": partial(FAIR_RIVALS["skbandit ConstrainedThreshold"].fit, kappa=0.8),
    "LinearSVC, no goal": FAIR_RIVALS["LinearSVC C=1"].fit,
    "LogisticRegression, no goal": FAIR_RIVALS["LogisticRegression"].fit,
    "covariance bound in cvxpy, c = -20": partial(
        FAIR_RIVALS["Zafar et al. in cvxpy"].fit, c=-20.0
    ),
}
if not FAIR_RIVALS["fairlearn ExponentiatedGradient"].cure:
    FITS["fairlearn ExponentiatedGradient"] = partial(
        FAIR_RIVALS["fairlearn ExponentiatedGradient"].fit, kappa=0.8
    )
    FITS["fairlearn ThresholdOptimizer, equal rates"] = FAIR_RIVALS[
        "fairlearn ThresholdOptimizer"
    ].fit
ROUNDS = 3
REPLAYED = 200_000


def speed_rows(size: float) -> Iterator[Row]:
    """CPU time of three tasks, by several methods in turn."""
    train, test = adult("train", None if size == 1 else 4_000), adult("test")
    small = _arguments(train.head(300))
    part = f"fit on Adult ({len(train.y):,} rows x 126), ratio of positive rates at least .8"
    for fit in FITS.values():
        _timed(partial(fit, *small))
    for round_ in range(ROUNDS):
        for name, fit in FITS.items():
            spent, rule = _timed(partial(fit, *_arguments(train)))
            men = test.group == 1
            positive = np.asarray(rule(test.X, men), dtype=float)
            yield {
                "part": part,
                "unit": f"round {round_}",
                "method": name,
                "cpu s": spent,
                "test error": np.mean((positive > 0) != test.y),
                "men / women": positive[men].mean() / positive[~men].mean(),
            }
    yield from _replays(size)
    yield from _serving(size)
    yield from _choices(size)


def _replays(size: float) -> Iterator[Row]:
    """A learning policy replayed; slow libraries on fewer events."""
    walks = {name: one for name, one in (REPLAY_RIVALS | OUR_REPLAYS).items() if not one.cure}
    n = {name: int(min(one.events, REPLAYED) * max(size, 0.1)) for name, one in walks.items()}
    logs = {k: bandit_sample(k) for k in set(n.values())}
    for name, one in walks.items():
        one.replay(logs[n[name]].head(1_000))()
    for round_ in range(ROUNDS):
        for name, one in walks.items():
            spent, _ = _timed(one.replay(logs[n[name]]))
            key = {"part": "replay of a learning policy, 20 arms, 6 features"}
            yield key | {
                "unit": f"round {round_}", "method": name, "µs per event": 1e6 * spent / n[name],
            }  # fmt: skip


SERVED = 200
"""Contexts chosen for, one by one."""


def _serving(size: float) -> Iterator[Row]:
    """One choice for one context, after 1,000 events."""
    sample, serve = bandit_sample(1_000), {}
    for name, one in (REPLAY_RIVALS | OUR_REPLAYS).items():
        if one.serve and not one.cure:
            serve[name] = one.serve(sample)
    contexts = sample.arrays[0][: int(SERVED * max(size, 0.1))]
    for round_ in range(-1, ROUNDS):
        for name, choose in serve.items():
            spent, _ = _timed(lambda choose=choose: [choose(context) for context in contexts])
            if round_ < 0:  # imports and compiled code do not count
                continue
            yield {
                "part": "one choice among 20 arms by 6 features",
                "unit": f"round {round_}",
                "method": name,
                "µs per choice": 1e6 * spent / len(contexts),
            }


def _choices(size: float) -> Iterator[Row]:
    """Ten of 10,000 ads for each row, by linear costs of 100 features."""
    n_rows = int(2_000 * max(size, 0.1))
    tasks = {
        name: selection.predict(10_000, 100, n_rows, np.float64, kind)
        for name, kind in (
            ("RegressionSetSelector.predict", "predict"),
            ("matrix product and argpartition", "product + argpartition"),
        )
    }
    product = next(iter(tasks.values()))[1]
    assert product is not None
    timed: dict[str, Callable[[], Any]] = {name: task for name, (task, _) in tasks.items()}
    timed["matrix product alone"] = product
    for task in timed.values():
        task()
    for round_ in range(ROUNDS):
        for name, task in timed.items():
            spent, _ = _timed(task)
            yield {
                "part": "choosing 10 of 10,000 ads by 100 features",
                "unit": f"round {round_}",
                "method": name,
                "µs per row": 1e6 * spent / n_rows,
            }


def _timed(task: Callable[[], Any]) -> tuple[float, Any]:
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = task()
    return time.process_time() - before, result


def _arguments(sample: Sample) -> tuple[Any, np.ndarray, np.ndarray]:
    return sample.X, sample.y, sample.group == 1


BOARDS = {
    "eighty_percent": Board(
        eighty_rows,
        {"error": -1, "women / men": 0, "rule kept": 1, "cpu s": -1},
        ("ConstrainedRampClassifier",),
        ("Constrained",),
    ),
    "goals": Board(
        goal_rows,
        {"goals met": 1, "objective": -1, "cpu s": -1},
        ("ConstrainedRampClassifier",),
        ("Constrained",),
    ),
    "policies": Board(policy_rows, {"mean reward": 1}, ("GLMUCBPolicy",), ("GLMUCBPolicy",)),
    "sets": Board(
        set_rows,
        {"share": 1, "fit s": -1},
        ("RegressionSetSelector",),
        ("RegressionSetSelector", "SetSelectClassifier", "PopularitySetSelector"),
    ),
    "speed": Board(
        speed_rows,
        {
            "cpu s": -1,
            "test error": -1,
            "men / women": 0,
            "µs per event": -1,
            "µs per choice": -1,
            "µs per row": -1,
        },
        (
            "ConstrainedRampClassifier",
            "GLMUCBPolicy logistic, diagonal",
            "RegressionSetSelector.predict",
        ),
        ("Constrained", "GLMUCBPolicy", "RampClassifier", "RegressionSetSelector"),
    ),
}
"""The tables of the page, in its order."""
