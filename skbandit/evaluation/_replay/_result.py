"""What a replay found: a mean reward, how sure it is, and what it rests on."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import t as student

_BUCKETS = ("learning", "deployment")

# Fewer kept events say next to nothing.
FEW = 10


@dataclass(frozen=True, eq=False)
class Walk:
    """What one walk through the log kept, in its order."""

    event: np.ndarray  # (n_accepted,), position in the log
    action: np.ndarray  # (n_accepted,), number of the arm
    reward: np.ndarray  # (n_accepted,)
    deployment: np.ndarray  # (n_accepted,), bool
    n_seen: np.ndarray  # (n_accepted,), events walked up to and with this one
    n_events: int  # walked in all

    def take(self, bucket: str) -> np.ndarray:
        """Positions among the kept events of those in a bucket."""
        return np.flatnonzero(self.deployment == (bucket == "deployment"))

    def until(self, horizon: int) -> Walk:
        """The walk as it would have been, had it ended when it learned from so many events."""
        n_seen = int(self.n_seen[self.take("learning")[horizon - 1]])
        kept = slice(int(np.searchsorted(self.n_seen, n_seen, side="right")))
        return Walk(
            self.event[kept],
            self.action[kept],
            self.reward[kept],
            self.deployment[kept],
            self.n_seen[kept],
            n_seen,
        )


@dataclass(frozen=True, eq=False)
class Terms:
    """The log, and what all walks through it have in common."""

    arms: np.ndarray  # (n_arms,), labels
    n_events: int
    logged_mean: float  # reward of all events
    logged_variance: float
    c: float  # a match is kept with probability min(1, c/p)
    clipped: float  # share of the events with p < c
    learns: bool
    deployment_share: float
    shuffle: bool
    subsample: float | None


@dataclass(frozen=True, eq=False, repr=False)
class ReplayResult:
    """What a policy would have earned, and learned from, on a log of another one's decisions.

    Made by `replay`. All figures are of the learning bucket, where the policy plays and learns;
    `deployment` has those of the other.

    Parameters
    ----------
    walks : tuple
        What each run kept.
    terms : object
        What all runs have in common.
    bucket : {"learning", "deployment"}, default="learning"
        The bucket that the figures are of.

    Attributes
    ----------
    mean_reward : float
        Reward per kept event, averaged over runs; nan where nothing was kept.
    lift : float
        `mean_reward` over the log's own mean reward; nan where that is not positive.
    logged_mean : float
        The log's own mean reward, of all of its events.
    n_events : int
        Events walked, in all runs together and in both buckets.
    n_accepted : int
        Events kept, in all runs together.
    horizon : int
        T, the events kept in one run of the learning bucket (in the mean): the experience that
        the policy had in the end. Only results of about equal horizon can be compared.
    efficiency : float
        `n_accepted` / `n_events`.
    acceptance : float
        c: a choice logged with probability p is kept with probability min(1, c/p).
    expected : float
        The mean of `n_accepted` if no p is below c: then c of the events are kept, whatever the
        policy.
    standard_error : float
        Of `mean_reward`; see Notes.
    deployment : ReplayResult or None
        The same of the deployment bucket, where the greedy choice is played and nothing is
        learned; None if no share of the events was given to it.
    runs : DataFrame
        One row a run: `n_events`, `n_accepted`, `mean_reward`, and with a deployment bucket
        its `deployment_n_accepted`, `deployment_mean_reward`.
    history : DataFrame
        One row a kept event of either bucket: `run`, `event` (row of X), `bucket`, `step` (1,
        2, ... of the run in the bucket), `action`, `reward` and the running `mean_reward`.

    See Also
    --------
    replay : Makes one.

    Notes
    -----
    With B runs that kept n events in the mean, the squared standard error is sd²/B + s²q/n:
    what the order and choice of events adds, sd² being the variance of the runs' means, and what
    the log itself adds. There s² is the variance of kept rewards (with the log's own variance
    counted as one more observation, as a few equal rewards do not show that there is none), and
    q the share of the available events that a run walked: 1/2 with ``subsample=0.5``. Intervals
    use Student's distribution with Welch and Satterthwaite's degrees of freedom.

    A policy that learns takes a path of its own in every run, and rewards along a path depend on
    one another. From a single run s²/n is all that is known: it holds for this path, and covers
    what the policy earns in the mean far less often than it says: in simulations of several
    policies 30 to 75 % instead of 95 % of the time. Runs that are shuffled or subsampled show
    how paths vary: there intervals from ten runs cover 91 to 97 %.

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
    0.364 to 0.496
    """

    walks: tuple[Walk, ...]
    terms: Terms
    bucket: str = "learning"

    @property
    def mean_reward(self) -> float:
        return float(np.mean([own.mean() for own in self._rewards])) if self._rewards else np.nan

    @property
    def lift(self) -> float:
        return self.mean_reward / self.logged_mean if self.logged_mean > 0 else np.nan

    @property
    def logged_mean(self) -> float:
        return self.terms.logged_mean

    @property
    def n_events(self) -> int:
        return sum(walk.n_events for walk in self.walks)

    @property
    def n_accepted(self) -> int:
        return sum(len(own) for own in self._rewards)

    @property
    def horizon(self) -> int:
        return round(np.mean([len(walk.take("learning")) for walk in self.walks]))

    @property
    def efficiency(self) -> float:
        return self.n_accepted / self.n_events

    @property
    def acceptance(self) -> float:
        return self.terms.c

    @property
    def expected(self) -> float:
        share = self.terms.deployment_share
        return self.terms.c * self.n_events * (1 - share if self.bucket == "learning" else share)

    @property
    def standard_error(self) -> float:
        return self._error[0]

    @property
    def deployment(self) -> ReplayResult | None:
        if not self.terms.deployment_share:
            return None
        return replace(self, bucket="deployment")

    @property
    def runs(self) -> pd.DataFrame:
        columns: dict[str, list[float]] = {"n_events": [walk.n_events for walk in self.walks]}
        for bucket in _BUCKETS if self.terms.deployment_share else _BUCKETS[:1]:
            prefix = "" if bucket == "learning" else f"{bucket}_"
            rewards = [walk.reward[walk.take(bucket)] for walk in self.walks]
            columns[f"{prefix}n_accepted"] = [len(own) for own in rewards]
            columns[f"{prefix}mean_reward"] = [
                float(own.mean()) if len(own) else np.nan for own in rewards
            ]
        return pd.DataFrame(columns).rename_axis("run")

    @cached_property
    def history(self) -> pd.DataFrame:
        return pd.concat(
            [self._history_of(run, walk) for run, walk in enumerate(self.walks)],
            ignore_index=True,
        )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mean reward.

        For a policy that learned in a single run it is about this path only, and a warning says
        so: see Notes of the class.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        low, high : float
            Its ends, not clipped to the range of rewards; nan where nothing was kept.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        if self.terms.learns and len(self.walks) == 1 and self.n_accepted:
            warnings.warn(
                "the policy learned in a single run, so the interval is of this path only and "
                "too narrow for what the policy earns in the mean: replay it with n_repeats=10 "
                "and shuffle=True or subsample=0.5.",
                UserWarning,
                stacklevel=2,
            )
        error, freedom = self._error
        half = float(student.ppf((1 + level) / 2, freedom)) * error
        return self.mean_reward - half, self.mean_reward + half

    def at(self, horizon: int) -> ReplayResult:
        """The result as it was when the policy had a given experience, to compare at equal T.

        Parameters
        ----------
        horizon : int
            The events of the learning bucket that every run has kept by then.

        Returns
        -------
        ReplayResult
            As of ``replay(..., max_accepted=horizon)``.
        """
        shortest = min(len(walk.take("learning")) for walk in self.walks)
        if not 1 <= horizon <= shortest:
            raise ValueError(
                f"horizon must be from 1 to {shortest}, what the shortest run kept, got {horizon}."
            )
        return replace(self, walks=tuple(walk.until(horizon) for walk in self.walks))

    @cached_property
    def _rewards(self) -> list[np.ndarray]:
        """Kept rewards of each run that has any."""
        rewards = [walk.reward[walk.take(self.bucket)] for walk in self.walks]
        return [own for own in rewards if len(own)]

    @property
    def _error(self) -> tuple[float, float]:
        """Standard error of the mean reward, and its degrees of freedom."""
        if not self._rewards:
            return np.nan, np.nan
        n_runs, n = len(self._rewards), self.n_accepted
        squares = sum(float(((own - own.mean()) ** 2).sum()) for own in self._rewards)
        freedom = n - n_runs + 1
        of_log = (squares + self.terms.logged_variance) / freedom * self._reuse * n_runs / n
        if n_runs == 1:
            return math.sqrt(of_log), freedom
        of_runs = float(np.var([own.mean() for own in self._rewards], ddof=1)) / n_runs
        total = of_log + of_runs
        if not total:
            return 0.0, freedom
        return math.sqrt(total), total**2 / (of_log**2 / freedom + of_runs**2 / (n_runs - 1))

    @property
    def _reuse(self) -> float:
        """A run's share of the events that it could have walked."""
        if self.terms.shuffle:
            return self.n_events / len(self.walks) / self.terms.n_events
        return self.terms.subsample or 1.0

    def _history_of(self, run: int, walk: Walk) -> pd.DataFrame:
        """The rows of `history` for one run."""
        step = np.empty(len(walk.event), dtype=np.int64)
        mean = np.empty(len(walk.event))
        for bucket in _BUCKETS:
            own = walk.take(bucket)
            step[own] = np.arange(1, len(own) + 1)
            mean[own] = np.cumsum(walk.reward[own]) / step[own]
        return pd.DataFrame(
            {
                "run": run,
                "event": walk.event,
                "bucket": pd.Categorical.from_codes(
                    walk.deployment.astype(np.int8), pd.Index(_BUCKETS)
                ),
                "step": step,
                "action": self.terms.arms[walk.action],
                "reward": walk.reward,
                "mean_reward": mean,
            }
        )

    def __repr__(self) -> str:
        if self.n_accepted < FEW * len(self.walks):
            return f"<{type(self).__name__}: {too_few(self)}>"
        of = "" if self.bucket == "learning" else "deployment bucket, "
        runs = "" if len(self.walks) == 1 else f"{len(self.walks)} runs, "
        lift = "" if np.isnan(self.lift) else f", {self.lift:.2f} x the log's"
        biased = f" (biased: above {self.terms.clipped:.1%} of the p)" if self.terms.clipped else ""
        path = "; ± of this path only" if self.terms.learns and len(self.walks) == 1 else ""
        return (
            f"<{type(self).__name__}: {of}{runs}mean reward {self.mean_reward:.4g} ± "
            f"{self.standard_error:.2g}{lift}, at horizon {self.horizon:,}; kept "
            f"{self.n_accepted:,} of {self.n_events:,} events, c = {self.acceptance:.3g}{biased}"
            f"{path}>"
        )


def too_few(result: ReplayResult) -> str:
    """Why so few kept events allow no conclusion, and what to do."""
    kept = f"{result.n_accepted:,}" if result.n_accepted else "none"
    rule = f"c = {result.acceptance:.3g}"
    if not result.terms.clipped:
        rule += f" keeps {result.expected:.3g} in the mean"
    known = (
        f"too few for any conclusion (mean reward {result.mean_reward:.4g} ± "
        f"{result.standard_error:.2g})"
        if result.n_accepted
        else "there is no estimate"
    )
    return (
        f"{kept} of {result.n_events:,} events kept, where {rule}: {known}. "
        "skbandit.evaluation.snips uses every event, for policies that do not learn; replay needs "
        "a longer or more evenly explored log, or a larger acceptance=, which keeps more and "
        "biases the estimate"
    )
