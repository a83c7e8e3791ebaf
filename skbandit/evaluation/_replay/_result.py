"""The result of a replay: mean reward, standard error, intervals and history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._difference import (
    PolicyDifference,
    least_error,
    refuse_difference,
    refuse_other_kind,
)
from skbandit.evaluation._guaranteed import Range, clipped_interval, natural_range, quantile_of
from skbandit.evaluation._policy_protocol import check_not_learned, check_rule
from skbandit.evaluation._score import Moments, Sides, Spread, mean_sides, sides_of
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import Log, is_far, warn_without_pools
from skbandit.utils._trials import Dependence, dependence
from skbandit.utils._validation import check_level, warn

_BUCKETS = ("learning", "deployment")

FEW, FEW_OF_MANY = 10, 100
"""Kept events per run below which a `ReplayCoverageWarning` is raised: of any log, and of one of
which next to nothing is kept."""

NEXT_TO_NOTHING = 0.01
"""Acceptance below which a log is hardly used."""

_SAME_HORIZON = 1.2
"""Ratio of horizons up to which replays are compared: those of one log differ by chance only."""


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `replay`, validated."""

    learn: bool = True
    rule: str = "select"
    deployment_share: float = 0.0
    acceptance: float | None = None
    max_accepted: int | None = None
    n_repeats: int = 1
    shuffle: bool = False
    subsample: float | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        if not (isinstance(self.deployment_share, Real) and 0 <= self.deployment_share < 1):
            raise ValueError(
                f"deployment_share must be in [0, 1), got {self.deployment_share!r}: without a "
                "learning bucket, use learn=False and rule='predict'."
            )
        for name in ("acceptance", "subsample"):
            share = getattr(self, name)
            if share is not None and not (isinstance(share, Real) and 0 < share <= 1):
                raise ValueError(f"{name} must be None or in (0, 1], got {share!r}.")
        for name in ("n_repeats", "max_accepted"):
            number = getattr(self, name)
            if name == "max_accepted" and number is None:
                continue
            if not (isinstance(number, Integral) and number >= 1):
                raise ValueError(f"{name} must be a positive integer, got {number!r}.")

    def check_policy(self, policy: Any) -> None:
        """Require a policy with the methods that the options need."""
        if isinstance(policy, type):
            raise TypeError(f"{policy.__name__} is a class: pass {policy.__name__}(...).")
        if not hasattr(policy, self.rule):
            other = "predict" if self.rule == "select" else "select"
            if not hasattr(policy, other):
                raise TypeError(
                    f"{type(policy).__name__} is no policy: it has neither select nor predict."
                )
            raise TypeError(f"{type(policy).__name__} has no {self.rule}: choose rule={other!r}.")
        if self.deployment_share and not hasattr(policy, "predict"):
            raise TypeError(f"{type(policy).__name__} has no predict for the deployment bucket.")

    def learns(self, policy: Any) -> bool:
        """Return whether the policy learns in the replay."""
        return self.learn and hasattr(policy, "partial_fit")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The events that one run kept, in the order of the replay."""

    event: np.ndarray  # (n_accepted,), position in the log
    action: np.ndarray  # (n_accepted,), index of the arm
    reward: np.ndarray  # (n_accepted,)
    deployment: np.ndarray  # (n_accepted,), whether it is in the deployment bucket
    n_seen: np.ndarray  # (n_accepted,), events replayed up to and including this one
    n_events: int  # replayed in total

    def columns(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""
        return {name: values for name, values in vars(self).items() if name != "n_events"}

    def take(self, bucket: str) -> np.ndarray:
        """Return positions of a bucket's events among the kept events."""
        return np.flatnonzero(self.deployment == (bucket == "deployment"))

    def until(self, horizon: int) -> Trajectory:
        """Return the trajectory stopped after `horizon` events of the learning bucket."""
        n_seen = int(self.n_seen[self.take("learning")[horizon - 1]])
        kept = slice(int(np.searchsorted(self.n_seen, n_seen, side="right")))
        columns = {name: values[kept] for name, values in self.columns().items()}
        return Trajectory(**columns, n_events=n_seen)


@dataclass(frozen=True)
class LogTotals:
    """Totals over the events of a log; those of consecutive blocks add up."""

    rewards: Moments
    reward_range: Range  # smallest and largest
    n_clipped: int  # events with p < c
    smallest: float  # p

    @classmethod
    def of(cls, log: Log, c: float) -> LogTotals:
        """Return totals of a log, or of a block of one."""
        reward, p = log.reward, log.probability
        return cls(
            Moments.of(reward),
            (float(reward.min()), float(reward.max())),
            int((p < c).sum()),
            float(p.min()),
        )

    def __add__(self, other: LogTotals) -> LogTotals:
        (a, b), (c, d) = self.reward_range, other.reward_range
        return LogTotals(
            self.rewards + other.rewards,
            (min(a, c), max(b, d)),
            self.n_clipped + other.n_clipped,
            min(self.smallest, other.smallest),
        )


@dataclass(frozen=True, eq=False)
class ReplayMetadata:
    """The log and the options shared by all runs of a replay."""

    arms: np.ndarray  # (n_arms,), labels
    totals: LogTotals
    c: float  # a match is kept with probability min(1, c/p)
    learns: bool
    bounds: Range | None = None  # of all possible rewards, if known
    options: ReplayOptions = ReplayOptions()
    group: np.ndarray | None = None  # (n_events,), code of each event; None if independent

    @property
    def range(self) -> Range:
        """Smallest and largest possible reward, as given or as observed."""
        return self.bounds or natural_range(np.array(self.totals.reward_range))

    @property
    def clipped(self) -> float:
        """Share of the events with p < c."""
        return self.totals.n_clipped / self.totals.rewards.n


@dataclass(frozen=True, eq=False, repr=False)
class ReplayResult:
    """The result of a replay: a policy's mean reward, its uncertainty, and the kept events.

    Returned by `replay`, not meant to be constructed. All figures are those of the learning
    bucket, where the policy plays and learns; `deployment` has those of the deployment bucket.

    ``a - b`` is the difference of two policies replayed on one log, by the same options and number
    of runs, with its paired interval: a `PolicyDifference`. With the same `random_state`, run k of
    both replays has the same events in the same order.

    Parameters
    ----------
    trajectories : tuple
        Internal: the kept events of each run.
    metadata : object
        Internal: the log and the options shared by all runs.
    bucket : {"learning", "deployment"}, default="learning"
        The bucket of all figures.

    See Also
    --------
    replay : Returns such a result.

    Notes
    -----
    With B runs that kept n events on average, the squared standard error is sd²/B + s²q/n. The
    first term is due to the order and choice of events, sd² being the variance of the runs'
    means; the second is due to the log itself. There s² is the variance of the kept rewards (the
    log's own variance counts as one more observation, as a few equal rewards do not prove zero
    variance), and q is the share of the available events that a run replayed: 1/2 with
    ``subsample=0.5``. Intervals are score intervals, which have width and cover even if rewards are
    rare, with quantiles of Student's t of Welch-Satterthwaite degrees of freedom.

    With `groups` of dependent events, the second term is larger by the design effect, the variance
    of sums over groups relative to that of as many independent events, and its degrees of freedom
    are those of the groups.

    A learning policy takes a different path in every run, and rewards along a path are dependent.
    A single run yields only s²/n: it holds for this path, but as an interval for the policy's
    expected reward it covers far too rarely, 30 to 75% instead of 95% in simulations of several
    policies. Shuffled or subsampled runs show how paths vary: intervals from ten such runs
    covered 91 to 97%.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.evaluation import replay
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame({"action": rng.integers(2, size=400)})
    >>> log["reward"] = rng.random(400) < 0.2 + 0.3 * log["action"]
    >>> class AlwaysOne:
    ...     def select(self, X):
    ...         return np.ones(len(X), dtype=int)
    >>> result = replay(AlwaysOne(), np.zeros((400, 1)), log)
    >>> result
    <ReplayResult: mean reward 0.4299 ± 0.033, 1.28 x the log's, at horizon 221; kept 221 of 400
    events, c = 0.5>
    >>> print("{:.3f} to {:.3f}".format(*result.interval(0.95)))
    0.366 to 0.496
    """

    trajectories: tuple[Trajectory, ...]
    metadata: ReplayMetadata
    bucket: str = "learning"

    @property
    def mean_reward(self) -> float:
        """Mean reward per kept event, averaged over runs; nan if no event was kept."""
        means = [rewards.mean() for rewards in self._rewards]
        return float(np.mean(means)) if means else np.nan

    @property
    def lift(self) -> float:
        """`mean_reward` divided by `logged_mean`; nan if the latter is not positive."""
        return self.mean_reward / self.logged_mean if self.logged_mean > 0 else np.nan

    @property
    def logged_mean(self) -> float:
        """Mean reward of all events of the log."""
        return float(self.metadata.totals.rewards.mean[0])

    @property
    def n_events(self) -> int:
        """Number of events replayed, over all runs and both buckets."""
        return sum(trajectory.n_events for trajectory in self.trajectories)

    @property
    def n_accepted(self) -> int:
        """Number of events kept, over all runs."""
        return sum(len(rewards) for rewards in self._rewards)

    @property
    def horizon(self) -> int:
        """T, the mean number of events that a run kept in the learning bucket.

        This is the experience of the policy at the end. Compare results at similar horizons only.
        """
        return round(np.mean([len(run.take("learning")) for run in self.trajectories]))

    @property
    def efficiency(self) -> float:
        """`n_accepted` divided by `n_events`."""
        return self.n_accepted / self.n_events

    @property
    def acceptance(self) -> float:
        """c: a match logged with probability p is kept with probability min(1, c/p)."""
        return self.metadata.c

    @property
    def expected(self) -> float:
        """Expectation of `n_accepted` for any policy, if no p is below c."""
        share = self.metadata.options.deployment_share
        in_bucket = 1 - share if self.bucket == "learning" else share
        return self.metadata.c * self.n_events * in_bucket

    @property
    def standard_error(self) -> float:
        """Standard error of `mean_reward`; see Notes."""
        error = self._error[0]
        if self._rewards and not any(np.ptp(rewards) for rewards in self._rewards):
            error = max(error, self._spread.error(self.mean_reward))  # others may differ
        return error

    @property
    def deployment(self) -> ReplayResult | None:
        """The result of the deployment bucket; None if ``deployment_share=0``.

        There the greedy choice is played and nothing is learned.
        """
        if not self.metadata.options.deployment_share:
            return None
        return replace(self, bucket="deployment")

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run: `n_events`, `n_accepted` and `mean_reward`.

        With a deployment bucket, also ``deployment_n_accepted`` and ``deployment_mean_reward``.
        """
        columns: dict[str, list[float]] = {"n_events": [run.n_events for run in self.trajectories]}
        for bucket in _BUCKETS if self.metadata.options.deployment_share else _BUCKETS[:1]:
            prefix = "" if bucket == "learning" else f"{bucket}_"
            rewards = [run.reward[run.take(bucket)] for run in self.trajectories]
            columns[f"{prefix}n_accepted"] = [len(values) for values in rewards]
            columns[f"{prefix}mean_reward"] = [
                float(values.mean()) if len(values) else np.nan for values in rewards
            ]
        return pd.DataFrame(columns).rename_axis("run")

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per kept event of either bucket.

        Columns: `run`, `event` (row of X), `bucket`, `step` (1, 2, ... per run and bucket),
        `action`, `reward` and the running `mean_reward`.
        """
        frames = []
        for run, kept in enumerate(self.trajectories):
            step, mean = np.empty(len(kept.event), dtype=np.int64), np.empty(len(kept.event))
            for bucket in _BUCKETS:
                positions = kept.take(bucket)
                step[positions] = np.arange(1, len(positions) + 1)
                mean[positions] = np.cumsum(kept.reward[positions]) / step[positions]
            columns = {
                "run": run,
                "event": kept.event,
                "bucket": pd.Categorical.from_codes(
                    kept.deployment.astype(np.int8), pd.Index(_BUCKETS)
                ),
                "step": step,
                "action": self.metadata.arms[kept.action],
                "reward": kept.reward,
                "mean_reward": mean,
            }
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def interval(
        self, confidence_level: float = 0.95, *, kind: str = "normal"
    ) -> tuple[float, float]:
        """Return confidence interval of the mean reward, within the range of the rewards.

        For a policy that learned in a single run it covers this path only, and warns: see Notes
        of the class.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Nominal coverage, in (0, 1).
        kind : {"normal"}, default="normal"
            A score interval, see Notes of the class.

        Returns
        -------
        low, high : float
            nan if no event was kept, or events are of one group.

        Raises
        ------
        ValueError
            If `kind` is another one.
        """
        check_level(confidence_level)
        if kind != "normal":
            raise ValueError(
                f"kind={kind!r}, but a replay has intervals of kind 'normal' only: for a policy "
                "that does not learn, off_policy_value(...).interval(kind='sequence') covers at "
                "its level for any number of events."
            )
        if self.metadata.learns and len(self.trajectories) == 1 and self.n_accepted:
            warn(
                "the policy learned in a single run, so the interval covers this path only and is "
                "too narrow for the policy's expected reward: replay with n_repeats=10 and "
                "shuffle=True or subsample=0.5.",
                UserWarning,
            )
        error, freedom = self._error
        quantile = quantile_of(confidence_level, freedom)
        if np.isnan(quantile):  # no event, or one group of them
            return np.nan, np.nan
        limits = self._spread.limits(self.mean_reward, error, quantile)
        return clipped_interval(*limits, self.metadata.range)

    def at(self, horizon: int) -> ReplayResult:
        """Truncate the result to a horizon, to compare policies at equal T.

        Parameters
        ----------
        horizon : int
            Number of events that every run has kept in the learning bucket.

        Returns
        -------
        ReplayResult
            The result of ``replay(..., max_accepted=horizon)``.
        """
        shortest = min(len(run.take("learning")) for run in self.trajectories)
        if not 1 <= horizon <= shortest:
            raise ValueError(
                f"horizon must be from 1 to {shortest}, the length of the shortest run, got "
                f"{horizon}."
            )
        return replace(self, trajectories=tuple(run.until(horizon) for run in self.trajectories))

    def __sub__(self, other: Any) -> PolicyDifference:
        if not isinstance(other, ReplayResult):
            refuse_other_kind(other)
            return NotImplemented
        _check_comparable(self, other)
        runs = [
            _paired(mine, theirs, self.metadata)
            for mine, theirs in zip(self._kept(), other._kept(), strict=True)
        ]
        away, squares, of_runs, clusters = zip(*runs, strict=True)
        n = min(self.n_accepted, other.n_accepted) - len(runs) + 1
        deff, freedom = _of_groups(clusters, self._reuse, n)
        error, freedom = _combined(
            float(np.mean(squares)) * self._reuse * deff, freedom, np.array(away)
        )
        sides = [side.widened(deff) for side in of_runs]
        of_all = mean_sides(sides, self._reuse).of_error(error)
        error = least_error(error, of_all)
        return PolicyDifference(float(np.mean(away)), error, self.n_events, None, freedom, of_all)

    def _kept(self) -> list[pd.DataFrame]:
        """Return action and reward of the kept events of each run."""
        frames = []
        for run in self.trajectories:
            positions = run.take(self.bucket)
            columns = {
                "action": self.metadata.arms[run.action[positions]],
                "reward": run.reward[positions],
            }
            frames.append(pd.DataFrame(columns, index=run.event[positions]))
        return frames

    @cached_property
    def _rewards(self) -> list[np.ndarray]:
        """Kept rewards per run, without runs that kept none."""
        rewards = [run.reward[run.take(self.bucket)] for run in self.trajectories]
        return [values for values in rewards if len(values)]

    @property
    def _error(self) -> tuple[float, float]:
        """Standard error of the mean reward, and its degrees of freedom."""
        if not self._rewards:
            return np.nan, np.nan
        n_runs, n = len(self._rewards), self.n_accepted
        squares = float(
            np.sum([((rewards - rewards.mean()) ** 2).sum() for rewards in self._rewards])
        )
        n_free = n - n_runs + 1
        variance = self.metadata.totals.rewards.variance[0]
        of_log = (squares + variance) / n_free * self._reuse * n_runs / n
        means = np.array([rewards.mean() for rewards in self._rewards])
        deff, freedom = self._design_effect
        return _combined(of_log * deff, freedom, means)

    @cached_property
    def _design_effect(self) -> tuple[float, float]:
        """By what factor groups raise the log's part of the variance, and degrees of freedom."""
        clusters = []
        for run in self.trajectories:
            positions = run.take(self.bucket)
            if len(positions):
                reward = run.reward[positions]
                clusters.append(
                    _clusters(reward - reward.mean(), run.event[positions], self.metadata)
                )
        return _of_groups(clusters, self._reuse, self.n_accepted - len(self._rewards) + 1)

    @property
    def _spread(self) -> Spread:
        """How the variance of the mean reward depends on it."""
        rewards = self.metadata.totals.rewards
        effective = self.n_accepted / len(self._rewards) / self._reuse
        spread = Spread.of(self.metadata.range, rewards.mean[0], rewards.variance[0], effective)
        return spread.widened(self._design_effect[0])

    @property
    def _reuse(self) -> float:
        """Share of the available events that a run replayed."""
        if self.metadata.options.shuffle:
            return self.n_events / len(self.trajectories) / self.metadata.totals.rewards.n
        return self.metadata.options.subsample or 1.0

    def __repr__(self) -> str:
        if keeps_too_few(self):
            return f"<{type(self).__name__}: {too_few(self)}>"
        of = "" if self.bucket == "learning" else "deployment bucket, "
        runs = "" if len(self.trajectories) == 1 else f"{len(self.trajectories)} runs, "
        lift = "" if np.isnan(self.lift) else f", {self.lift:.2f} x the log's"
        biased = (
            f" (biased: above {self.metadata.clipped:.1%} of the p)"
            if self.metadata.clipped
            else ""
        )
        path = (
            "; ± of this path only" if self.metadata.learns and len(self.trajectories) == 1 else ""
        )
        return (
            f"<{type(self).__name__}: {of}{runs}mean reward {self.mean_reward:.4g} ± "
            f"{self.standard_error:.2g}{lift}, at horizon {self.horizon:,}; kept "
            f"{self.n_accepted:,} of {self.n_events:,} events, c = {self.acceptance:.3g}{biased}"
            f"{path}>"
        )


def _clusters(
    influence: np.ndarray, event: np.ndarray, metadata: ReplayMetadata
) -> Dependence | None:
    """Return the effect of dependence on a mean over events; None without groups."""
    if metadata.group is None:
        return None
    scale = float(np.abs(metadata.range).max()) or 1.0
    return dependence(influence / scale, np.ones(len(event)), metadata.group[event])


def _of_groups(
    clusters: Sequence[Dependence | None], reuse: float, n_free: float
) -> tuple[float, float]:
    """Return design effect and degrees of freedom over runs that each use a share of one log.

    A share q of the events has a share of those of each group, and so of what they add: the effect
    in the whole log, by which q times the variance is to be multiplied, is 1 + (deff - 1) / q.
    """
    several = [cluster for cluster in clusters if cluster is not None]
    if not several:
        return 1.0, n_free
    deff = 1.0 + (float(np.mean([cluster.deff for cluster in several])) - 1.0) / reuse
    return deff, min(n_free, float(np.mean([cluster.freedom for cluster in several])))


def _combined(of_log: float, freedom: float, means: np.ndarray) -> tuple[float, float]:
    """Return the standard error of the mean over runs, and its degrees of freedom."""
    if freedom <= 0:  # one group
        return np.nan, freedom
    if len(means) == 1:
        return math.sqrt(of_log), freedom
    of_runs = float(np.var(means, ddof=1)) / len(means)
    total = of_log + of_runs
    if not total:
        return 0.0, freedom
    return math.sqrt(total), total**2 / (of_log**2 / freedom + of_runs**2 / (len(means) - 1))


def _paired(
    mine: pd.DataFrame, theirs: pd.DataFrame, metadata: ReplayMetadata
) -> tuple[float, float, Sides, Dependence | None]:
    """Difference of the mean rewards of two runs, its variance due to the log, sides and groups.

    Events that both kept count once, so that equal choices have no variance. As in a single
    result, the log's variance counts as one more observation of each policy's further events.
    """
    parts = [(run["reward"] - run["reward"].mean()) / len(run) for run in (mine, theirs)]
    away = parts[0].sub(parts[1], fill_value=0.0)
    shared = mine.index.intersection(theirs.index)
    if not mine.loc[shared].equals(theirs.loc[shared]):
        refuse_difference("but an event has another action or reward in the other one")
    totals = metadata.totals
    further = sum(1 / len(run) ** 2 for run in (mine, theirs) if len(run) > len(shared))
    squares = away.to_numpy() ** 2
    factors = [pd.Series(1 / len(run), index=run.index) for run in (mine, theirs)]
    factor = factors[0].sub(factors[1], fill_value=0.0)
    reward = mine["reward"].combine_first(theirs["reward"])
    moments = metadata.range, totals.rewards.mean[0], totals.rewards.variance[0]
    sides = sides_of(factor.to_numpy(), reward.to_numpy(), squares, *moments)
    return (
        float(mine["reward"].to_numpy().mean() - theirs["reward"].to_numpy().mean()),
        float(squares.sum()) + totals.rewards.variance[0] * further,
        sides,
        _clusters(away.to_numpy() * len(mine), away.index.to_numpy(), metadata),
    )


def _check_comparable(left: ReplayResult, right: ReplayResult) -> None:
    """Require replays of one log by the same options, and about as long."""
    logs = []
    for totals in (left.metadata.totals, right.metadata.totals):
        rewards = [part.tolist() for part in (totals.rewards.mean, totals.rewards.products)]
        logs.append((totals.rewards.n, rewards, totals.reward_range, totals.smallest))
    if logs[0] != logs[1]:
        n_events, means = zip(*((n, rewards[0][0]) for n, rewards, *_ in logs), strict=True)
        refuse_difference(
            f"but these are of {n_events[0]:,} events with the mean reward {means[0]:.4g} and of "
            f"{n_events[1]:,} with {means[1]:.4g}"
        )
    group, other = (np.asarray(result.metadata.group) for result in (left, right))
    if not np.array_equal(group, other):
        refuse_difference("but the groups of these differ")
    if any(len(result._rewards) < len(result.trajectories) for result in (left, right)):
        raise ValueError("a run kept no event, so there is no difference: replay a longer log.")
    pairs = {
        "n_repeats": (len(left.trajectories), len(right.trajectories)),
        "bucket": (left.bucket, right.bucket),
        **{
            name: (getattr(left.metadata.options, name), getattr(right.metadata.options, name))
            for name in ("deployment_share", "shuffle", "subsample")
        },
    }
    for name, (mine, theirs) in pairs.items():
        if mine != theirs:
            raise ValueError(
                f"these replays have {name}={mine!r} and {theirs!r}: replay both policies by the "
                "same options."
            )
    short, long = sorted((left.horizon, right.horizon))
    if long > _SAME_HORIZON * short and (left.metadata.learns or right.metadata.learns):
        raise ValueError(
            f"these replays have the horizons {left.horizon:,} and {right.horizon:,}, on which the "
            "rewards of a policy that learns depend: compare them at equal horizons, as in "
            "a.at(1000) - b.at(1000)."
        )


def keeps_too_few(result: ReplayResult) -> bool:
    """Return whether so few events are kept that the mean reward and its error tell nothing."""
    least = FEW_OF_MANY if result.acceptance < NEXT_TO_NOTHING else FEW
    return result.n_accepted < least * len(result.trajectories)


def too_few(result: ReplayResult) -> str:
    """Return a message: too few events were kept, why, and the cure."""
    kept = f"{result.n_accepted:,}" if result.n_accepted else "none"
    rule = f"c = {result.acceptance:.3g}"
    if not result.metadata.clipped:
        rule += f" keeps {result.expected:.3g} on average"
    conclusion = (
        f"too few for any conclusion (mean reward {result.mean_reward:.4g} ± "
        f"{result.standard_error:.2g})"
        if result.n_accepted
        else "there is no estimate"
    )
    return (
        f"{kept} of {result.n_events:,} events kept, where {rule}: {conclusion}. "
        "skbandit.evaluation.off_policy_value uses every event, for policies that do not learn; "
        "replay needs a longer or more evenly explored log, or a larger acceptance=, which keeps "
        "more and biases the estimate"
    )


def check_past(policy: Any, X: Any, log: Log, learns: bool) -> None:
    """Warn if the policy has learned this log, or its future if it `learns`, or lacks its pools."""
    warn_without_pools(policy, log.pools)
    if check_not_learned(policy, X, log) or not learns:
        return
    latest = getattr(policy, "last_timestamp_", None)
    if log.timestamp is None or latest is None:
        return
    if latest > log.timestamp[0]:
        warn(
            f"the policy has learned an event at {latest:.15g} s, later than the log's first, at "
            f"{log.timestamp[0]:.15g} s: it knows the future of the events it is evaluated on. Use "
            "folds in order of time, cv=ReplaySplit(...), or a policy that is not fitted.",
            UserWarning,
        )


def check_kept(result: ReplayResult, max_accepted: int | None) -> None:
    """Warn of a biased estimate, a short run, or identical runs."""
    c, clipped = result.acceptance, result.metadata.clipped
    if clipped:
        warn(
            f"acceptance={c:g} is above the propensity of {clipped:.2%} of the events (smallest: "
            f"{result.metadata.totals.smallest:.3g}): they are kept too rarely, which biases the "
            "estimate.",
            UserWarning,
        )
    for run, trajectory in enumerate(result.trajectories):
        expected = c * trajectory.n_events
        if not clipped and is_far(len(trajectory.event), expected, (1 - c) * expected):
            warn(
                f"run {run} kept {len(trajectory.event):,} of {trajectory.n_events:,} events, "
                f"where c = {c:.3g} keeps {expected:,.0f} ± {np.sqrt((1 - c) * expected):,.0f} for "
                "any policy. Either the propensities are wrong (or missing, and the log was not "
                "uniform), the policy chooses arms that were not available, or it draws the same "
                "random numbers as the policy that wrote the log: give it a seed of its own. The "
                "estimate is biased.",
                ReplayCoverageWarning,
            )
            break
    shortest = min(len(run.take("learning")) for run in result.trajectories)
    if max_accepted is not None and 0 < shortest < max_accepted:
        warn(
            f"the log ended when a run had kept {shortest:,} events, before max_accepted="
            f"{max_accepted:,}: the result is for this shorter horizon.",
            ReplayCoverageWarning,
        )
    first, *others = result.trajectories
    if others and all(np.array_equal(first.event, other.event) for other in others):
        warn(
            f"the {len(result.trajectories)} runs are identical, as nothing is drawn at random: "
            "pass shuffle=True or subsample=0.5.",
            UserWarning,
        )
