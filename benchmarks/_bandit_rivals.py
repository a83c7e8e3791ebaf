"""One small adapter a rival: its LinUCB, or what is nearest, replayed on a log and served.

`replay` takes a log, prepares it as the library wants it, and returns what is then timed: a
function without arguments that walks the log from a cold start and returns what was kept. `serve`
takes a log, learns it, and returns what chooses an arm for one context.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skbandit.bandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay

os.environ["TQDM_DISABLE"] = "1"  # some draw a bar for every batch

N_ARMS, N_FEATURES = 20, 6


@dataclass(frozen=True)
class Sample:
    """A log of uniform choices, as DataFrames; rivals take its arrays."""

    X: pd.DataFrame
    y: pd.DataFrame

    def head(self, n: int) -> Sample:
        """The first events."""
        return Sample(self.X[:n], self.y[:n])

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Contexts, actions, rewards."""
        X = np.ascontiguousarray(self.X.to_numpy())
        return X, self.y["action"].to_numpy(), self.y["reward"].to_numpy()


def bandit_sample(n_events: int) -> Sample:
    """A log with clicks on 5% of the events."""
    log = make_bandit_log(n_events, N_ARMS, N_FEATURES, random_state=0)
    return Sample(log.X, log.y[["action", "reward"]])


@dataclass(frozen=True)
class Kept:
    """What a walk earned per kept event, and how many these are, where this is told."""

    mean_reward: float
    accepted: float = np.nan


@dataclass(frozen=True)
class BanditRival:
    """Adapters, on how many events they are timed, and what must be installed for them."""

    replay: Callable[[Sample], Callable[[], Kept]]
    serve: Callable[[Sample], Callable[[np.ndarray], Any]] | None
    events: int
    module: str = "skbandit"
    package: str = "skbandit"

    @property
    def cure(self) -> str:
        """What to do before it can run; empty if nothing."""
        return "" if find_spec(self.module) else f"not installed: pip install {self.package}"


def skbandit(**options: Any) -> tuple[Any, Any]:
    """Ours, through the public call, from DataFrames."""
    policy = GLMUCBPolicy(random_state=0, **options)

    def walk(sample: Sample) -> Callable[[], Kept]:
        def run() -> Kept:
            result = replay(policy, sample.X, sample.y, random_state=0)
            return Kept(result.mean_reward, result.n_accepted)

        return run

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        X, action, reward = sample.arrays
        policy.fit(X, action, reward=reward)
        return lambda x: policy.select(x[None])[0]

    return walk, serve


def contextual_bandits(batch_size: int) -> tuple[Any, Any]:
    """contextualbandits: its own rejection sampling; within a batch nothing is learned."""

    def make() -> Any:
        from contextualbandits.online import LinUCB

        return LinUCB(N_ARMS, alpha=1.0, random_state=1)

    def walk(sample: Sample) -> Callable[[], Kept]:
        from contextualbandits.evaluation import evaluateRejectionSampling

        X, action, reward = sample.arrays

        def run() -> Kept:
            return Kept(
                *evaluateRejectionSampling(
                    make(), X, action, reward, partial_fit=True, start_point_online=0,
                    batch_size=batch_size,
                )
            )  # fmt: skip

        return run

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        policy = make().fit(*sample.arrays)
        return lambda x: policy.predict(x[None])[0]

    return walk, serve


def vowpal_wabbit(options: str) -> tuple[Any, Any]:
    """Vowpal Wabbit on a file in its format, which is written before; without cache.

    With `--explore_eval` it does rejection sampling; without, it learns from every event and
    tells its progressive estimate by inverse propensities.
    """
    options = f"{options} --cb_explore_adf -q sa --quiet"

    def walk(sample: Sample) -> Callable[[], Kept]:
        from vowpalwabbit import Workspace

        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder)
        data, metrics = folder / "log.txt", folder / "metrics.json"
        with data.open("w") as file:
            for x, action, reward in zip(*sample.arrays, strict=True):
                file.write(_in_words(x, f"0:{-reward}:{1 / N_ARMS} ", action) + "\n\n")

        def run() -> Kept:
            workspace = Workspace(f"{options} -d {data} --extra_metrics {metrics}")
            workspace.run_parser()
            mean = -workspace.get_sum_loss() / workspace.get_weighted_examples()
            workspace.finish()
            told = json.loads(metrics.read_text())
            if "explore_eval" not in told:
                return Kept(mean)
            kept = told["cb_explore_adf_greedy"]
            return Kept(-kept["cbea_sum_cost"] / kept["cbea_labeled_ex"], kept["cbea_labeled_ex"])

        return run

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        from vowpalwabbit import Workspace

        workspace = Workspace(options)
        for x, action, reward in zip(*sample.arrays, strict=True):
            workspace.learn(_in_words(x, f"0:{-reward}:{1 / N_ARMS} ", action))
        return lambda x: np.argmax(workspace.predict(_in_words(x)))

    return walk, serve


def _in_words(x: np.ndarray, label: str = "", action: int = -1) -> str:
    """An event in the format of Vowpal Wabbit."""
    shared = "shared |s " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(x))
    arms = [f"{label if k == action else ''}|a {k}" for k in range(N_ARMS)]
    return "\n".join([shared, *arms])


def mabwiser() -> tuple[Any, Any]:
    """MABWiser's LinUCB in a plain loop."""

    def fitted(sample: Sample) -> Any:
        from mabwiser.mab import MAB, LearningPolicy

        X, action, reward = sample.arrays
        bandit = MAB(list(range(N_ARMS)), LearningPolicy.LinUCB(alpha=1.0))
        return bandit.fit(action, reward, X) or bandit

    def walk(sample: Sample) -> Callable[[], Kept]:
        X, action, reward = sample.arrays

        def run() -> Kept:
            bandit, earned = fitted(sample.head(1)), []  # it does not start without an event
            for k in range(len(X)):
                row = slice(k, k + 1)
                if bandit.predict(X[row]) == action[k]:
                    bandit.partial_fit(action[row], reward[row], X[row])
                    earned.append(reward[k])
            return Kept(float(np.mean(earned)), len(earned))

        return run

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        bandit = fitted(sample)
        return lambda x: bandit.predict(x[None])

    return walk, serve


def river() -> tuple[Any, Any]:
    """river's LinUCBDisjoint by its own offline evaluation."""
    arms = list(range(N_ARMS))

    def evaluated(sample: Sample) -> tuple[Any, Kept]:
        from river import bandit, stats

        policy = bandit.LinUCBDisjoint(alpha=1.0, seed=0)
        history = (
            (arms, dict(enumerate(x)), int(action), float(reward))
            for x, action, reward in zip(*sample.arrays, strict=True)
        )
        mean, accepted = bandit.evaluate_offline(policy, history, stats.Mean())
        return policy, Kept(mean.get(), accepted)

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        policy, _ = evaluated(sample)
        return lambda x: policy.pull(arms, context=dict(enumerate(x)))

    return lambda sample: lambda: evaluated(sample)[1], serve


def obp() -> tuple[Any, Any]:
    """Open Bandit Pipeline's LinUCB by its own simulation and replay estimator."""

    def make() -> Any:
        from obp.policy import LinUCB

        return LinUCB(dim=N_FEATURES, n_actions=N_ARMS, epsilon=1.0, random_state=0)

    def walk(sample: Sample) -> Callable[[], Kept]:
        from obp.ope import ReplayMethod
        from obp.simulator import run_bandit_simulation

        X, action, reward = sample.arrays
        position = np.zeros(len(X), dtype=int)
        feedback = {
            "n_rounds": len(X), "context": X, "action": action, "reward": reward,
            "position": position, "pscore": np.full(len(X), 1 / N_ARMS),
        }  # fmt: skip

        def run() -> Kept:
            chosen = run_bandit_simulation(feedback, make())
            mean = ReplayMethod().estimate_policy_value(reward, action, chosen, position)
            return Kept(mean, chosen[np.arange(len(X)), action, 0].sum())

        return run

    def serve(sample: Sample) -> Callable[[np.ndarray], Any]:
        policy = make()
        for x, action, reward in zip(*sample.arrays, strict=True):
            policy.update_params(action=action, reward=reward, context=x[None])
        return lambda x: policy.select_action(x[None])[0]

    return walk, serve


UNIT = "contextualbandits LinUCB, batches of 1000"
"""The fastest rival."""

_CB = ("contextualbandits", "contextualbandits")
_VW = ("vowpalwabbit", "vowpalwabbit")

RIVALS = {
    UNIT: BanditRival(*contextual_bandits(1000), 1_000_000, *_CB),
    "contextualbandits LinUCB, batches of 10": BanditRival(
        contextual_bandits(10)[0], None, 20_000, *_CB
    ),
    "VW explore_eval, epsilon .1": BanditRival(
        *vowpal_wabbit("--explore_eval --epsilon 0.1"), 50_000, *_VW
    ),
    "VW squarecb, no replay": BanditRival(*vowpal_wabbit("--squarecb"), 50_000, *_VW),
    "obp LinUCB": BanditRival(*obp(), 10_000, "obp", "obp"),
    "mabwiser LinUCB": BanditRival(*mabwiser(), 5_000, "mabwiser", "mabwiser"),
    "river LinUCBDisjoint": BanditRival(*river(), 3_000, "river", "river"),
}

OURS = {
    "GLMUCBPolicy logistic, diagonal": BanditRival(*skbandit(), 1_000_000),
    "GLMUCBPolicy logistic, full": BanditRival(*skbandit(covariance="full"), 1_000_000),
    "GLMUCBPolicy linear, full": BanditRival(
        *skbandit(link="linear", covariance="full"), 1_000_000
    ),
}
