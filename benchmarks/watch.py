"""False alarms in a year at the bound, and days until a fall is found, beside plain rules.

    python -m benchmarks.watch [--quick] [--keep]

Streams of 365 days with 20 rows a day, or 40 of a campaign, and 30 and 70 of two groups. At the
bound a goal holds for the whole year, and any alarm is false. Falls are from inside the goal to
outside of it, on day 5 or 180: printed are the days until the alarm, or until the end of the year
without one, and the share of years without one, of the years without an alarm before the fall.
Every rule sees the same rows at the end of each day, and alarms once.

"tuned" rules know what no user knows, the size of the fall, and have a limit by simulation that
gives 5 % of false alarms in a year at the bound.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, norm

from benchmarks._kept import keep
from skbandit.evaluation import GoalMonitor
from skbandit.rates import cost, positive_rate, ratio

DAYS, ERROR = 365, 0.05
FIRST = pd.Timestamp("2025-01-01")
BOUND, INSIDE, OUTSIDE, SMALL = 0.8, 0.83, 0.74, 0.77
"""Of one rate."""

MOST = 4.0
"""Of what one grant of the campaign spends, on average 2."""

Day = tuple[np.ndarray, np.ndarray]
"""Sums and rows until the end of each day, with 0 before the first, (DAYS + 1,)."""


def _first(alarms: np.ndarray) -> float:
    """The first day with an alarm; nan without."""
    return float(np.argmax(alarms)) if alarms.any() else np.nan


def _below(S: np.ndarray, n: np.ndarray, error: float) -> np.ndarray:
    """Whether the exact upper limit of a rate is below the bound."""
    return np.where(n > 0, beta.ppf(1 - error, S + 1, np.maximum(n - S, 1e-9)), 1.0) < BOUND


def _window(sums: Day, days: int) -> Day:
    """Sums and rows of the last days."""
    ends = np.arange(1, DAYS + 1)
    S, n = (x[ends] - x[np.maximum(ends - days, 0)] for x in sums)
    return S, n


def tested(days: int, tests: int, sums: Day) -> float:
    """A test of the rows of the last days, repeated daily."""
    return _first(_below(*_window(sums, days), ERROR / tests))


def monthly(sums: Day) -> float:
    """An exact test of the rows of each 30 days, with Bonferroni over a year."""
    below = _below(*_window(sums, 30), ERROR / (DAYS // 30))
    return _first(below & (np.arange(1, DAYS + 1) % 30 == 0))


def weekly(margin: float, sums: Day) -> float:
    """The rate of the last week below a fixed threshold."""
    S, n = _window(sums, 7)
    return _first((S / n < BOUND - margin) & (np.arange(DAYS) >= 6))


def cusum(sums: Day) -> np.ndarray:
    """Page's sum of log likelihood ratios of the fallen rate and the bound, by day."""
    S, n = np.diff(sums[0]), np.diff(sums[1])
    gain = S * np.log(OUTSIDE / BOUND) + (n - S) * np.log((1 - OUTSIDE) / (1 - BOUND))
    walk = np.concatenate([[0.0], gain.cumsum()])
    return walk[1:] - np.minimum.accumulate(walk)[1:]


@cache
def limit() -> float:
    """Of `cusum`, for `ERROR` a year at the bound."""
    rng = np.random.default_rng(1)
    most = [cusum(counts(rng, np.full(DAYS, BOUND))).max() for _ in range(4000)]
    return float(np.quantile(most, 1 - ERROR))


def tuned_cusum(sums: Day) -> float:
    """CUSUM with that limit."""
    return _first(cusum(sums) > limit())


def page_hinkley(rng: np.random.Generator, sums: Day) -> float:
    """Of errors, row by row, with the constants that are usual: .005, 50 and .9999."""
    S, n = (np.diff(x).astype(int) for x in sums)
    level, mean, total, least = 0.9999, 0.0, 0.0, 0.0
    seen = 0
    for day in range(DAYS):
        for error in rng.permutation(np.arange(n[day]) >= S[day]):
            seen += 1
            mean += (error - mean) / seen
            total = level * total + error - mean - 0.005
            least = min(least, total)
        if seen > 30 and total - least > 50:
            return float(day)
    return np.nan


def adwin(sums: Day) -> float:
    """Bifet & Gavalda (2007) with delta .05, on days: an alarm where a newer part is lower."""
    (S, n), start = sums, 0
    for end in range(2, DAYS + 1):
        cut = np.arange(start + 1, end)
        old, new = ((n[cut] - n[start]), (n[end] - n[cut]))
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = (S[cut] - S[start]) / old - (S[end] - S[cut]) / new
            total = n[end] - n[start]
            mean = (S[end] - S[start]) / total
            m, log = 1 / (1 / old + 1 / new), np.log(2 * np.log(max(total, 3)) / ERROR)
            apart = np.sqrt(2 / m * mean * (1 - mean) * log) + 2 / (3 * m) * log
        if (gap > apart).any():
            return float(end - 1)
        if (gap < -apart).any():
            start = int(cut[gap < -apart].max())
    return np.nan


def watched(goal: Any, decided: np.ndarray, day: np.ndarray, table: Any = None) -> float:
    """Return the first day with an alarm of GoalMonitor, which judges each day once."""
    monitor = GoalMonitor(goal, false_alarms=ERROR, ranges={"spent": (0, MOST)})
    monitor.update(decided, attributes=table, time=FIRST + pd.Timedelta("1D") * day)
    monitor.report()
    first = (FIRST - pd.Timestamp(0)).days
    return min((float(alarm[-2] - first) for alarm in monitor.to_dict()["alarms"]), default=np.nan)


def counts(rng: np.random.Generator, rate: np.ndarray, per_day: float = 20) -> Day:
    """Sums of a stream."""
    n = rng.poisson(per_day, DAYS)
    S, total = rng.binomial(n, rate).cumsum(), n.cumsum()
    return np.concatenate([[0], S]), np.concatenate([[0], total])


def as_rows(sums: Day) -> tuple[np.ndarray, np.ndarray]:
    """Rows with these sums, and their days."""
    S, n = (np.diff(x).astype(int) for x in sums)
    right = np.concatenate([np.arange(size) < one for one, size in zip(S, n, strict=True)])
    return right.astype(int), np.repeat(np.arange(DAYS), n)


RULES: dict[str, Callable[[Day], float]] = {
    "the day's rows, daily": partial(tested, 1, 1),
    "all rows so far, daily": partial(tested, DAYS, 1),
    "the last 30 days, daily": partial(tested, 30, 1),
    "the day's rows, Bonferroni": partial(tested, 1, DAYS),
    "all rows so far, Bonferroni": partial(tested, DAYS, DAYS),
    "the last 30 days, Bonferroni": partial(tested, 30, DAYS),
    "exact test each month, Bonferroni": monthly,
    "the last week beyond the bound": partial(weekly, 0.0),
    "the last week .1 beyond the bound": partial(weekly, 0.1),
    "ADWIN": adwin,
    "CUSUM, tuned to this fall": tuned_cusum,
}


def one_rate(seed: int, rate: np.ndarray) -> Iterator[tuple[str, float]]:
    """Of every rule the day of its alarm."""
    rng = np.random.default_rng(seed)
    sums = counts(rng, rate)
    yield "GoalMonitor", watched(positive_rate() >= BOUND, *as_rows(sums))
    for name, rule in RULES.items():
        yield name, rule(sums)
    yield "Page-Hinkley", page_hinkley(rng, sums)


def two_groups(seed: int, of_rate: np.ndarray) -> Iterator[tuple[str, float]]:
    """The 80 % rule: a group of 30 rows a day, whose rate is a share of that of 70 others."""
    rng = np.random.default_rng(seed)
    groups = counts(rng, 0.3 * of_rate, 30), counts(rng, np.full(DAYS, 0.3), 70)
    parts = [as_rows(sums) for sums in groups]
    decided, day = (np.concatenate(x) for x in zip(*parts, strict=True))
    names = np.repeat(["few", "many"], [len(part[0]) for part in parts])
    goal = ratio(positive_rate, by="group") >= BOUND
    yield "GoalMonitor", watched(goal, decided, day, {"group": names})
    for days, tests in ((30, 1), (30, DAYS), (DAYS, 1), (DAYS, DAYS)):
        (a, n), (b, m) = (_window(sums, days) for sums in groups)
        a, b = a + 0.5, b + 0.5  # of the logarithm of a ratio
        spread = np.sqrt(np.maximum(1 / a - 1 / (n + 1) + 1 / b - 1 / (m + 1), 0))
        away = np.log(a / (n + 1) / (b / (m + 1))) + norm.ppf(1 - ERROR / tests / 2) * spread
        rows = "all rows so far" if days == DAYS else f"the last {days} days"
        name = f"{rows}, {'daily' if tests == 1 else 'Bonferroni'}"
        yield name, _first(away < np.log(BOUND))
    (a, n), (b, m) = (_window(sums, 7) for sums in groups)
    yield "the last week beyond the bound", _first((a * m < BOUND * b * n) & (np.arange(DAYS) >= 6))


def campaign(seed: int, rate: np.ndarray) -> Iterator[tuple[str, float]]:
    """A budget of 1 a row: grants of half of 40 rows a day spend 2 each on average."""
    rng = np.random.default_rng(seed)
    granted, day = as_rows(counts(rng, rate, 40))
    spent = MOST * rng.beta(2, 2, len(granted))
    goal = cost({0: 0.0, 1: "spent"}) <= 1.0
    yield "GoalMonitor", watched(goal, granted, day, {"spent": spent})
    x = granted * spent
    n, S, Q = (np.bincount(day, w, DAYS).cumsum() for w in (np.ones(len(x)), x, x**2))
    sums = [np.concatenate([[0.0], part]) for part in (n, S, Q)]
    for days, tests in ((30, 1), (30, DAYS), (DAYS, 1), (DAYS, DAYS)):
        n, S = _window((sums[0], sums[1]), days)
        Q, _ = _window((sums[2], sums[0]), days)
        error = np.sqrt(np.maximum(Q / n - (S / n) ** 2, 0) / n)
        low = S / n - norm.ppf(1 - ERROR / tests) * error
        rows = "all rows so far" if days == DAYS else f"the last {days} days"
        yield f"{rows}, {'daily' if tests == 1 else 'Bonferroni'}", _first(low > 1.0)
    S, n = _window((sums[1], sums[0]), 7)
    yield "the last week beyond the bound", _first((S > n) & (np.arange(DAYS) >= 6))


WORLDS = {
    "one rate": (one_rate, BOUND, INSIDE, OUTSIDE),
    "one rate, small fall": (one_rate, BOUND, INSIDE, SMALL),
    "80 % rule": (two_groups, 0.8, 0.9, 0.65),
    "budget": (campaign, 0.5, 0.45, 0.58),
}
"""How the day of an alarm comes about, and the rates at the bound, inside and outside."""

SHARE_OF_FALLS = 0.3
"""Streams of a fall, for one at the bound."""


def rows(n: int) -> Iterator[dict[str, Any]]:
    """A row a world, stream and rule."""
    day = np.arange(DAYS)
    for world, (run, bound, inside, outside) in WORLDS.items():
        for change in (None, 5, 180):
            path = np.full(DAYS, bound)
            if change is not None:
                path = np.where(day < change, inside, outside)
            for seed in range(n if change is None else int(n * SHARE_OF_FALLS)):
                for method, alarm in run(seed, path):
                    row = {"part": world, "unit": f"{change} {seed}", "method": method}
                    if change is None:
                        yield row | {"false alarms at the bound": float(alarm >= 0)}
                        continue
                    false = alarm < change
                    late = np.nan if false else min(DAYS if np.isnan(alarm) else alarm, DAYS)
                    never = np.nan if false else float(np.isnan(alarm))
                    yield row | {
                        f"days, fall on {change}": late - change,
                        f"never, fall on {change}": never,
                    }


def main() -> None:
    """Print the means, and keep the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.watch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few streams")
    parser.add_argument("--keep", action="store_true", help="write results/watch.csv")
    options = parser.parse_args()
    began, n = time.process_time(), 10 if options.quick else 120
    frame = pd.DataFrame(rows(n))
    means = frame.groupby(["part", "method"], sort=False).mean(numeric_only=True)
    print(means.round(2).to_string())
    if options.keep and not options.quick:
        keep("watch", frame, time.process_time() - began, streams=n)


if __name__ == "__main__":
    main()
