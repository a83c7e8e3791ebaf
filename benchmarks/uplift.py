"""Offers under a spend on synthetic logs with known truth, compared with what people do today.

    python -m benchmarks.uplift [--contrasts] [--quick] [--keep]

Rivals are written plainly with scikit-learn, with the same learner on the same log: models of the
uplift of each action over the first one, by a T-, an S- and an X-learner; on the new rows, each row
gets its action of most uplift per cost, and rows are ranked by it until the spend is used up. The
linear program knows the new rows and takes predictions of one model per action for the truth
(HiGHS). Thinning sends the best predicted action to a random part of the rows.

Gains are those above the first action for everybody, in percent of the most that any rule can have
that knows the truth and keeps all goals.

With --contrasts there are no goals, and boosted trees learn each action's reward beside a part that
all actions have in common: which action is best for whom? An X-learner, and a DR-learner, which
predicts doubly robust rewards less their mean over the actions, rank the actions of each row. Gains
are those above actions at random, in percent of the most that there is to gain.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV

from benchmarks._kept import keep
from skbandit.bandit import ConstrainedPolicy
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import cost, outcome, positive_rate

N_NEW, SEEDS, FIRST_SEED = 3000, 6, 700
"""New rows, logs of each kind, and a seed from which on they were used for nothing else."""

ROUNDING = 1e-3
"""Relative excess by which a program that uses a budget up may round it."""

RIDGE = RidgeCV(np.logspace(-1, 3, 9))
TREES = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8, random_state=0)


@dataclass(frozen=True)
class World:
    """Contexts, the mean reward of each action, and the chance of harm of each."""

    X: np.ndarray
    reward: np.ndarray
    harm: np.ndarray


@dataclass(frozen=True)
class Kind:
    """A kind of log: its events and actions, the learner of all methods, and the goals."""

    n: int
    n_actions: int
    learner: Any
    make: Callable[[np.ndarray, int], np.ndarray]
    noise: float | None = 1.0  # None for conversions
    more_goals: bool = False

    @property
    def arms(self) -> list[str]:
        return [f"a{k}" for k in range(self.n_actions)]

    @property
    def spends(self) -> np.ndarray:
        """The first action is free."""
        return np.linspace(0, 1, self.n_actions)

    @property
    def limits(self) -> list[float]:
        """Of the spend per row, of the share of the last action, and of harm."""
        return [0.2, 0.05, 0.036] if self.more_goals else [0.2]

    def used(self, share: np.ndarray, harm: np.ndarray) -> list[float]:
        """Spend, share of the last action and harm per row, of shares of actions in each row."""
        found = [(share @ self.spends).mean(), share[:, -1].mean(), (share * harm).sum(1).mean()]
        return found[: len(self.limits)]

    def goals(self) -> list[Any]:
        spend, cap, harm = self.arms, positive_rate(of=self.arms[-1]), outcome("harm")
        rates = [cost(dict(zip(spend, self.spends.tolist(), strict=True))), cap, harm]
        return [rate <= limit for rate, limit in zip(rates, self.limits, strict=False)]


def steps(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Effects that jump, beside a large part of the reward that all actions have in common."""
    common = 1.2 * X[:, 0] - X[:, 1] + 1.5 * np.abs(X[:, 2])
    effect = [0.3 + 0.6 * np.sign(X[:, 3 + k % 3]) + 0.2 * k for k in range(n_actions - 1)]
    return common[:, None] + np.column_stack([np.zeros(len(X)), *effect])


def lines(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Linear effects, of other features for each action."""
    tilt = np.random.default_rng(n_actions).normal(size=(X.shape[1], n_actions)) * 0.4
    return X @ tilt + np.linspace(0, 0.6, n_actions)


def conversions(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Probabilities of some percent."""
    return 1 / (1 + np.exp(3.2 - 0.6 * lines(X, n_actions) - 0.6 * X[:, :1]))


def stepped(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Small effects that jump, beside a common part that varies 15 times as much."""
    common = 4 * np.sin(3 * X[:, 2]) + 3 * X[:, 3] ** 2 + 2 * (X[:, 4] > 0)
    effect = [0.5 * (X[:, k % 6] > 0.2 - 0.2 * (k % 2)) - 0.15 for k in range(n_actions - 1)]
    return common[:, None] + np.column_stack([np.zeros(len(X)), *effect])


def sloped(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Linear effects of single features, beside a linear common part."""
    effect = [0.6 * X[:, k % 6] - 0.1 * (k % 2) for k in range(n_actions - 1)]
    return (2 * X[:, 2] + X[:, 3])[:, None] + np.column_stack([np.zeros(len(X)), *effect])


def apart(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Nothing in common."""
    return np.column_stack([np.sin(3 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]])[:, :n_actions]


def large(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Effects that exceed the common part."""
    effect = [2 * np.sign(X[:, 0]), 2 * np.sign(X[:, 1] * X[:, 2])]
    return X[:, [2]] + np.column_stack([np.zeros(len(X)), *effect])[:, :n_actions]


def rates(X: np.ndarray, n_actions: int) -> np.ndarray:
    """Conversions with effects that jump."""
    return 1 / (1 + np.exp(1 - 0.8 * stepped(X, n_actions)))


BOOSTED = HistGradientBoostingRegressor(max_iter=80, random_state=0)

CONTRASTS = {
    "3 actions, steps": Kind(4000, 3, BOOSTED, stepped),
    "3 actions, slopes": Kind(4000, 3, BOOSTED, sloped),
    "3 actions, nothing in common": Kind(4000, 3, BOOSTED, apart),
    "3 actions, large effects": Kind(4000, 3, BOOSTED, large),
    "10 actions, slopes": Kind(8000, 10, BOOSTED, sloped),
    "3 actions, conversions": Kind(4000, 3, BOOSTED, rates, None),
    "10 actions, conversions, 500 events": Kind(500, 10, BOOSTED, rates, None),
}

KINDS = {
    "3 actions, steps, trees, 2,000 events": Kind(2000, 3, TREES, steps),
    "3 actions, steps, trees, 8,000 events": Kind(8000, 3, TREES, steps),
    "8 actions, linear, ridge, 2,000 events": Kind(2000, 8, RIDGE, lines),
    "3 actions, conversions, ridge, 8,000 events": Kind(8000, 3, RIDGE, conversions, None),
    "5 actions, three goals, ridge, 8,000 events": Kind(8000, 5, RIDGE, lines, 1.0, True),
}


def world(kind: Kind, n: int, rng: np.random.Generator) -> World:
    X = rng.normal(size=(n, 6))
    harm = 0.02 + 0.2 * np.linspace(0, 1, kind.n_actions) / (1 + np.exp(-2 * X[:, [1]]))
    return World(X, kind.make(X, kind.n_actions), harm)


def logged(kind: Kind, made: World, rng: np.random.Generator) -> pd.DataFrame:
    """Uniformly chosen actions, with rewards."""
    n = len(made.X)
    action = rng.integers(kind.n_actions, size=n)
    mean, harm = made.reward[np.arange(n), action], made.harm[np.arange(n), action]
    reward = rng.random(n) < mean if kind.noise is None else mean + kind.noise * rng.normal(size=n)
    log = pd.DataFrame({"action": np.array(kind.arms)[action], "reward": reward.astype(float)})
    return log.assign(harm=(rng.random(n) < harm) * 1.0, propensity=1 / kind.n_actions)


# --- uplift of each action over the first, by models of scikit-learn -----------------------------


def per_action(kind: Kind, X: np.ndarray, log: pd.DataFrame, value: str = "reward") -> list[Any]:
    """A model of each action's rows."""
    chosen = [(log["action"] == arm).to_numpy() for arm in kind.arms]
    return [clone(kind.learner).fit(X[rows], log[value][rows]) for rows in chosen]


def t_learner(kind: Kind, X: np.ndarray, log: pd.DataFrame, new: np.ndarray) -> np.ndarray:
    """Differences of one model per action."""
    mean = np.column_stack([model.predict(new) for model in per_action(kind, X, log)])
    return mean - mean[:, :1]


def s_learner(kind: Kind, X: np.ndarray, log: pd.DataFrame, new: np.ndarray) -> np.ndarray:
    """Differences of one model, which has the action as columns of 0 and 1."""
    columns = np.eye(kind.n_actions)
    code = pd.Categorical(log["action"], kind.arms).codes
    model = clone(kind.learner).fit(np.hstack([X, columns[code]]), log["reward"])
    asked = [np.hstack([new, np.tile(column, (len(new), 1))]) for column in columns]
    mean = np.column_stack([model.predict(rows) for rows in asked])
    return mean - mean[:, :1]


def x_learner(kind: Kind, X: np.ndarray, log: pd.DataFrame, new: np.ndarray) -> np.ndarray:
    """Models of imputed effects in the rows of the action and of the first one, averaged."""
    models, reward = per_action(kind, X, log), log["reward"].to_numpy()
    first = (log["action"] == kind.arms[0]).to_numpy()
    uplift = np.zeros((len(new), kind.n_actions))
    for k, arm in enumerate(kind.arms[1:], start=1):
        treated = (log["action"] == arm).to_numpy()
        of_treated = reward[treated] - models[0].predict(X[treated])
        of_first = models[k].predict(X[first]) - reward[first]
        effects = [
            clone(kind.learner).fit(X[rows], effect).predict(new)
            for rows, effect in ((treated, of_treated), (first, of_first))
        ]
        uplift[:, k] = np.mean(effects, axis=0)  # as both actions are logged equally often
    return uplift


def dr_learner(kind: Kind, X: np.ndarray, log: pd.DataFrame, new: np.ndarray) -> np.ndarray:
    """A model of each action's doubly robust rewards, less their mean, out of two folds."""
    code, reward = pd.Categorical(log["action"], kind.arms).codes, log["reward"].to_numpy()
    mean, half = np.zeros((len(X), kind.n_actions)), np.arange(len(X)) % 2
    for k in range(2):
        models = per_action(kind, X[half != k], log[half != k])
        mean[half == k] = np.column_stack([model.predict(X[half == k]) for model in models])
    at = np.arange(len(X)), code
    mean[at] += (reward - mean[at]) * kind.n_actions  # as all actions are logged equally often
    effects = (mean - mean.mean(axis=1, keepdims=True)).T
    return np.column_stack([clone(kind.learner).fit(X, effect).predict(new) for effect in effects])


# --- from uplifts to actions of the new rows -----------------------------------------------------


def ranked(kind: Kind, uplift: np.ndarray) -> np.ndarray:
    """The action of most uplift per cost of each row, from the best row on, as far as paid for."""
    per_cost = uplift[:, 1:] / kind.spends[1:]
    action = 1 + per_cost.argmax(axis=1)
    order = np.argsort(-per_cost.max(axis=1), kind="stable")
    spent = np.cumsum(kind.spends[action[order]])
    paid = (spent <= kind.limits[0] * len(uplift)) & (per_cost.max(axis=1)[order] > 0)
    share = np.zeros_like(uplift)
    share[:, 0] = 1.0
    share[order[paid]] = np.eye(kind.n_actions)[action[order[paid]]]
    return share


def thinned(kind: Kind, uplift: np.ndarray) -> np.ndarray:
    """The best action in a random part of the rows, as far as paid for; the first in all others."""
    best, order = uplift.argmax(axis=1), np.random.default_rng(0).permutation(len(uplift))
    paid = np.cumsum(kind.spends[best[order]]) <= kind.limits[0] * len(uplift)
    best[order[~paid]] = 0
    return np.eye(kind.n_actions)[best]


def program(kind: Kind, value: np.ndarray, harm: np.ndarray) -> np.ndarray:
    """Shares of actions in each row by HiGHS: most value, with all goals kept at this harm."""
    n, K = value.shape
    last = np.tile(np.eye(K)[-1], (n, 1))
    uses = [np.tile(kind.spends, (n, 1)), last, harm][: len(kind.limits)]
    table = csr_array(np.array([use.ravel() for use in uses]) / n)
    per_row = csr_array(kron(eye_array(n), np.ones((1, K))))
    solution = linprog(-value.ravel() / n, table, kind.limits, per_row, np.ones(n), method="highs")
    return solution.x.reshape(n, K)


def policies(kind: Kind, X: np.ndarray, log: pd.DataFrame, new: np.ndarray) -> Iterator[Any]:
    """Names and decisions of our policies; of a fit that is refused, its closest policy."""
    for level, name in ((None, "ConstrainedPolicy"), (0.9, "confidence_level=0.9")):
        settings = {"confidence_level": level, "random_state": 0}
        policy = ConstrainedPolicy(kind.learner, None, kind.goals(), **settings)
        try:
            policy.fit(X, log)
        except InfeasibleConstraintsError as error:
            policy = error.closest_
        chosen = policy.predict(new)
        yield name, (chosen[:, None] == np.array(kind.arms)).astype(float)
        if level is None:
            chosen = policy.reprice(new).predict(new)
            share = (chosen[:, None] == np.array(kind.arms)).astype(float)
            yield "ConstrainedPolicy, repriced", share


def rows(kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Each method on one log."""
    rng = np.random.default_rng(seed)
    old, new = world(kind, kind.n, rng), world(kind, N_NEW, rng)
    log = logged(kind, old, rng)
    ideal = program(kind, new.reward, new.harm)
    decided = list(policies(kind, old.X, log, new.X))
    uplifts = {
        "T-learner": t_learner(kind, old.X, log, new.X),
        "S-learner": s_learner(kind, old.X, log, new.X),
        "X-learner": x_learner(kind, old.X, log, new.X),
    }
    decided += [(f"{name}, ranked", ranked(kind, of)) for name, of in uplifts.items()]
    harm = np.column_stack([m.predict(new.X) for m in per_action(kind, old.X, log, "harm")])
    for name in ("T-learner", "X-learner"):
        share = program(kind, uplifts[name], harm)
        decided.append((f"linear program on {name}", share))
    decided.append(("T-learner, thinned", thinned(kind, uplifts["T-learner"])))
    best = ((ideal * new.reward).sum(axis=1) - new.reward[:, 0]).mean()
    for name, share in decided:
        used = np.array(kind.used(share, new.harm)) - kind.limits
        gain = ((share * new.reward).sum(axis=1) - new.reward[:, 0]).mean()
        yield {
            "method": name,
            "unit": seed,
            "% of the ideal gain": 100 * gain / best,
            "excess of the worst goal, %": 100 * (used / kind.limits).max(),
            "goals met": float((used / kind.limits).max() <= ROUNDING),
        }


def contrasts(kind: Kind, seed: int) -> Iterator[dict[str, Any]]:
    """Gain of each method on one log, without goals."""
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-1, 1, (kind.n, 6)), rng.uniform(-1, 1, (10_000, 6))
    log = logged(
        kind, World(X, kind.make(X, kind.n_actions), np.zeros((kind.n, kind.n_actions))), rng
    )
    policy = ConstrainedPolicy(kind.learner, random_state=0).fit(X, log.drop(columns="harm"))
    methods = {
        "a model of each action": t_learner,
        "X-learner": x_learner,
        "DR-learner": dr_learner,
    }
    effects = {name: method(kind, X, log, new) for name, method in methods.items()}
    truth = kind.make(new, kind.n_actions)
    most, at_random = truth.max(axis=1).mean(), truth.mean()
    ours = -policy.expected_costs(new)[kind.arms].to_numpy()
    for name, effect in {"ConstrainedPolicy": ours, **effects}.items():
        gain = truth[np.arange(len(new)), effect.argmax(axis=1)].mean() - at_random
        yield {"method": name, "unit": seed, "% of the best gain": 100 * gain / (most - at_random)}


def main() -> None:
    """Print the means, and keep the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contrasts", action="store_true", help="the board without goals only")
    parser.add_argument("--quick", action="store_true", help="one log of each kind")
    parser.add_argument("--keep", action="store_true", help="write the rows to results/")
    options = parser.parse_args()
    began = time.process_time()
    warnings.simplefilter("ignore")  # of constraints that cost much
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if options.quick else SEEDS))
    kinds, of_log = (CONTRASTS, contrasts) if options.contrasts else (KINDS, rows)
    frame = pd.DataFrame(
        {"part": name, **row}
        for name, kind in kinds.items()
        for seed in seeds
        for row in of_log(kind, seed)
    )
    measures = frame.columns.difference(["part", "method", "unit"], sort=False)
    print(
        frame.groupby(["part", "method"], sort=False)[measures]
        .agg(["mean", "sem"])
        .round(2)
        .to_string()
    )
    if options.keep and not options.quick:
        name = "contrasts" if options.contrasts else "uplift"
        keep(name, frame, time.process_time() - began, seeds=len(seeds))


if __name__ == "__main__":
    main()
