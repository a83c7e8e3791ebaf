"""Evidence against goals on rates that is valid at every moment, from sums per period.

For S successes in n rows and a goal r >= b, the evidence is

    e(S, n; b) = int_{t<b} (t/b)^S ((1 - t)/(1 - b))^(n - S) dJ(t),                             (1)

where J is Beta(1/2, 1/2) restricted to t < b. Under every process whose conditional probability of
a success is at least b, each likelihood ratio in (1) is a nonnegative supermartingale that starts
at 1, and so is their mixture: P(e is ever at least 1/a) <= a (Ville 1939). Nothing is assumed of
how rows follow each other, nor of when one looks. (1) increases in b: the derivative in b of its
integrand, at t = b u, is nonnegative for each u.

Of a sum of rates c_1 r_1 + c_2 r_2 + ... >= b it is known that some values s_i of the rates satisfy
it, so that r_i >= s_i where c_i > 0 and r_i <= s_i elsewhere. The evidence is the infimum over all
such s of the product of the evidence of the rates, which by duality is at least

    max_m [m b - sum_i max_s (m c_i s - log e_i(s))].                                           (2)

Rates over common rows are not independent. Of theirs, the geometric mean takes the place of the
product, as it is at most the arithmetic mean, which is evidence, too. A ratio r_1/r_2 >= k is
r_1 - k r_2 >= 0.

One such process has a long memory. The sum over all periods j of w_j times the evidence of the rows
since j is again a supermartingale if the weights sum to at most 1, and reacts to a change after a
long good time (an e-detector: Shin, Ramdas & Rinaldo 2024). Half of the weight is that of the first
period, whose rows also tell of changes soon after. The other half is spread over all periods so
that those of the first years have about as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, gammaln, xlog1py

from skbandit.evaluation._guaranteed import BETS, WeightedShares

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LEAST_EXPANDED = 20.0
"""Count below which the logarithm of its factorial is not expanded."""

NEAR = 0.01
"""Relative distance below which a deviance is expanded."""

DEEP = 1e-280
"""Share of the Beta distribution below which its logarithm is not taken."""

STEPS = np.concatenate([np.linspace(0.0, 8.0, 161), 8.0 * 1.2 ** np.arange(1, 30)])
"""Distances from the observed rate, in standard errors, at which (2) evaluates each rate."""

SLOPES = np.geomspace(0.1, 20.0, 70)
"""Multipliers m of (2), in units of one over the standard error of the sum."""

MOST_WINDOWS = 6
"""Starts of a window that (2) is evaluated for at one moment; leaving out others is valid."""

SLACK = 1.0
"""How far the approximate evidence of a sum may be below what an alarm needs to be computed."""

MANY_PERIODS = 50.0
"""Number from which on the weight of a period as the beginning of a change falls."""

MOST_AT_ONCE = 200_000
"""Windows that are considered together."""

SHARE_ERROR = 1e-12
"""Of the ends of intervals."""


def log_evidence(successes: ArrayLike, trials: ArrayLike, bound: ArrayLike) -> np.ndarray:
    """Logarithm of (1), the evidence against a rate of at least `bound`.

    Parameters
    ----------
    successes, trials : array-like of whole numbers
    bound : array-like
        In [0, 1]; the arguments are broadcast.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> float(log_evidence(60, 100, 0.8).round(2))  # 60 of 100, where 80 were promised
    8.28
    """
    S, n, b = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (successes, trials, bound)))
    b = np.clip(b, 0.0, 1.0)
    F = n - S
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = betainc(S + 0.5, F + 0.5, b)
        deviance = _deviance(S, n * b) + _deviance(F, n * (1.0 - b))
        constant = np.log(2 * np.pi) + _half_factorial(S) + _half_factorial(F) - _factorial(n)
        log_e = deviance + constant + np.log(below) - np.log(2 * np.arcsin(np.sqrt(b)))
        # far below the observed rate: a lower bound by a geometric series
        ratio = (n + 1.0) * b / (S + 1.5)
        terms = np.ceil(40.0 / np.maximum(1.0 - ratio, 1e-9))
        ratio = (n + 1.0 + terms) * b / (S + 1.5 + terms)
        series = (1.0 - ratio**terms) / (1.0 - ratio)
        root = np.sqrt(b)
        prior = np.where(b > 0, np.arcsin(root) / np.where(b > 0, root, 1.0), 1.0)
        tail = np.log(np.sqrt(1.0 - b) * series / ((2.0 * S + 1.0) * prior))
    return np.where(below > DEEP, log_e, tail)


def _deviance(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return x log(x / mean) - x + mean, without cancellation (Loader 2000)."""
    d = np.divide(x - mean, mean, out=np.where(x > 0, np.inf, 0.0), where=mean > 0)
    near = np.abs(d) < NEAR
    e = np.where(near, d, 0.0)
    series = e**2 * (
        1 / 2 - e * (1 / 6 - e * (1 / 12 - e * (1 / 20 - e * (1 / 30 - e * (1 / 42 - e / 56)))))
    )
    shape = np.where(near, series, xlog1py(1.0 + d, d) - d)
    return np.where(mean > 0, mean * shape, np.where(x > 0, np.inf, 0.0))


def _factorial(n: np.ndarray) -> np.ndarray:
    """Logarithm of n! without n log n - n."""
    m = np.maximum(n, LEAST_EXPANDED)
    series = 0.5 * np.log(2 * np.pi * m) + (1 / 12 - (1 / 360 - 1 / (1260 * m**2)) / m**2) / m
    few = np.minimum(n, LEAST_EXPANDED)
    return np.where(n < LEAST_EXPANDED, gammaln(few + 1.0) - _power(few), series)


def _half_factorial(n: np.ndarray) -> np.ndarray:
    """Logarithm of Gamma(n + 1/2) without n log n - n and half of log(2 pi)."""
    m = np.maximum(n, LEAST_EXPANDED)
    series = -(1 / 24 - (7 / 2880 - 31 / (40320 * m**2)) / m**2) / m
    few = np.minimum(n, LEAST_EXPANDED)
    exact = gammaln(few + 0.5) - _power(few) - 0.5 * np.log(2 * np.pi)
    return np.where(n < LEAST_EXPANDED, exact, series)


def _power(n: np.ndarray) -> np.ndarray:
    return n * np.log(np.where(n > 0, n, 1.0)) - n


@dataclass(frozen=True, eq=False)
class Tally:
    """What is known of one rate in each of T periods; disjoint rows add up.

    Attributes
    ----------
    successes, trials : ndarray of shape (T,)
        Rows of equal weight that are successes or not.
    amounts : tuple of (WeightedShares or None), T of them
        Other rows: shares in [0, 1], of weights of at most 1.
    """

    successes: np.ndarray
    trials: np.ndarray
    amounts: tuple[WeightedShares | None, ...] = ()

    @cached_property
    def mirrored(self) -> Tally:
        """The rate of failures."""
        amounts = tuple(part and part.mirrored() for part in self.amounts)
        return Tally(self.trials - self.successes, self.trials, amounts)

    @cached_property
    def sums(self) -> np.ndarray:
        """Of successes, trials, and their variance, (3, T + 1), before each period."""
        above, below = self.successes.astype(float), self.trials.astype(float)
        parts = np.array([above, below, below])
        for k, part in enumerate(self.amounts):
            if part is not None:
                _, w, ws = part.totals.sum(axis=1)
                parts[:, k] += ws, w, _squares(part)
        return np.concatenate([np.zeros((3, 1)), parts.cumsum(axis=1)], axis=1)

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Successes and trials before each period, (2, T + 1)."""
        counts = np.array([self.successes, self.trials], dtype=float)
        return np.concatenate([np.zeros((2, 1)), counts.cumsum(axis=1)], axis=1)

    def window(self, start: int, end: int) -> tuple[float, float, WeightedShares | None]:
        """Successes, trials and amounts of the periods from `start` to before `end`."""
        S, n = self.cumulative[:, end] - self.cumulative[:, start]
        return S, n, _total(self.amounts[start:end]) if start else self._totals[end]

    @cached_property
    def _totals(self) -> list[WeightedShares | None]:
        """The amounts before each period."""
        amounts = self.amounts or (None,) * len(self.trials)
        return [None, *accumulate(amounts, lambda *parts: _total(parts))]

    def moments(self, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rate, and variance of its estimate, by end and start of a window, (n_ends, T)."""
        S, n, squares = self.sums[:, ends, None] - self.sums[:, None, :-1]
        n = np.maximum(n, 0.0)
        share = np.clip((S + 0.5) / (n + 1.0), 0.0, 1.0)
        spread = np.divide(squares, n, out=np.ones_like(n), where=n > 0)
        return share, share * (1.0 - share) * np.maximum(spread, 0.0) / (n + 1.0)

    def counts(self, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Successes and trials by end and start of a window, (n_ends, T); 0 if it is empty."""
        S, n = np.maximum(self.cumulative[:, ends, None] - self.cumulative[:, None, :-1], 0.0)
        return S, n

    def against(self, bound: float, ends: np.ndarray) -> np.ndarray:
        """Evidence against a rate of at least `bound`, by end and start of a window."""
        log_e = log_evidence(*self.counts(ends), bound)
        if not self.amounts:
            return log_e
        capital = self._log_capital(bound)
        return log_e + log_mixture(capital[ends, None] - capital[:-1])

    def against_each(self, bounds: np.ndarray, start: int, end: int) -> np.ndarray:
        """Evidence of one window against a rate of at least each bound."""
        windows: dict[Any, Any] = self.__dict__.setdefault("_windows", {})
        if (start, end) not in windows:
            windows[start, end] = self.window(start, end)
        S, n, amounts = windows[start, end]
        log_e = log_evidence(S, n, bounds)
        return log_e if amounts is None else log_e + log_mixture(log_capital(amounts, bounds))

    def may_exceed(self, bound: float, ends: np.ndarray) -> np.ndarray:
        """An upper bound of `against`, computed faster if there are no amounts."""
        if self.amounts:
            return self.against(bound, ends)
        S, n = self.counts(ends)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = _deviance(S, n * bound) + _deviance(n - S, n * (1.0 - bound))
        return np.where(S < n * bound, deviance, 0.0)

    def _log_capital(self, bound: float) -> np.ndarray:
        """Logarithms of capital before each period, (T + 1, n_bets), of bets on amounts."""
        tables: dict[float, np.ndarray] = self.__dict__.setdefault("_capitals", {})
        if bound not in tables:
            gains = [
                np.zeros(len(BETS)) if part is None else log_capital(part, np.array([bound]))[0]
                for part in self.amounts
            ]
            tables[bound] = np.cumsum([np.zeros(len(BETS)), *gains], axis=0)
        return tables[bound]


def _total(parts: Iterable[WeightedShares | None]) -> WeightedShares | None:
    present = [part for part in parts if part is not None]
    return reduce(add, present) if present else None


def _squares(part: WeightedShares) -> float:
    """Variance of a sum of weighted shares, in units of that of as many successes."""
    count, w, ws = part.totals
    share = ws.sum() / w.sum()
    gap = ws / w - share
    size = float((w**2 / count * gap**2).sum())
    return size / max(share * (1.0 - share), 1e-12)


def log_weights(n_periods: int) -> np.ndarray:
    """Logarithms of the weights of periods as the beginning of a change."""
    left = 0.5 / np.sqrt(1.0 + np.arange(n_periods + 1) / MANY_PERIODS)
    weight = left[:-1] - left[1:]
    weight[:1] += 0.5
    return np.log(weight)


def log_mixture(log_capital_of_bets: np.ndarray) -> np.ndarray:
    """Logarithm of the mean over bets, the last axis."""
    return np.logaddexp.reduce(log_capital_of_bets, axis=-1) - np.log(len(BETS))


def log_capital(amounts: WeightedShares, bounds: np.ndarray) -> np.ndarray:
    """Logarithms of capital of bets against a mean of at least each bound, (n_bounds, n_bets).

    With weights w of at most 1 and shares s, a bet of a fraction l multiplies the capital by
    1 + l w (b - s) / (1 - b) at every row: a supermartingale while the weighted mean of shares is
    at least b, given the past (Waudby-Smith & Ramdas 2024). Of rows of similar weight and share,
    their sums and extremes bound it from below.
    """
    failures = amounts.mirrored()
    capital = np.empty((len(bounds), len(BETS)))
    for k, m in enumerate(np.clip(1.0 - np.asarray(bounds, dtype=float), 1e-12, 1.0)):
        gaps, numbers = failures.weighted_gaps(m)
        capital[k] = np.log1p(BETS[:, None] * np.maximum(gaps / m, -1.0)) @ numbers
    return capital


@dataclass(frozen=True, eq=False)
class Term:
    """One rate of a sum: its tally, and the value that a share of successes has.

    Attributes
    ----------
    tally : Tally
    low, high : float
        Values at shares 0 and 1.
    of_f1 : bool
        Whether the value is F1, which is 2q/(1 + q) at a share q.
    """

    tally: Tally
    low: float = 0.0
    high: float = 1.0
    of_f1: bool = False

    def value(self, share: np.ndarray) -> np.ndarray:
        """The rate at a share of successes."""
        rate = 2.0 * share / (1.0 + share) if self.of_f1 else share
        return self.low + (self.high - self.low) * rate

    def share(self, value: float) -> float:
        """The share of successes at a rate, in [0, 1]."""
        rate = np.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)
        return float(rate / (2.0 - rate) if self.of_f1 else rate)


@dataclass(frozen=True, eq=False)
class EvidenceCurve:
    """Evidence of one rate in one window, against at least (or at most) each of several values."""

    values: np.ndarray
    log_e: np.ndarray

    @classmethod
    def of(cls, term: Term, start: int, end: int, upward: bool) -> EvidenceCurve:
        """Evaluate it, against at least each value if `upward`; the claims grow along the curve."""
        tally = term.tally if upward else term.tally.mirrored
        share, variance = (x[0, start] for x in tally.moments(np.array([end])))
        width = np.sqrt(max(variance, 1e-18)) / (2.0 * np.sqrt(share * (1.0 - share)))
        steps = np.concatenate([-STEPS[::-1], STEPS[1:]])
        angle = np.clip(np.arcsin(np.sqrt(share)) + width * steps, 0.0, np.pi / 2)
        q = np.unique(np.concatenate([[0.0], np.sin(angle) ** 2, [1.0]]))
        values = term.value(q if upward else 1.0 - q)
        return cls(values, tally.against_each(q, start, end))

    def conjugate(self, slopes: np.ndarray) -> np.ndarray:
        """Upper bounds of max_s (m s - log e(s)) for slopes m of one sign, (n_slopes,).

        Between two points the evidence is at least that of the first, and the claim at most that of
        the second.
        """
        last = len(self.values) - 1
        beyond = np.where(np.isfinite(self.log_e[:last]), self.log_e[:last], np.inf)
        return (slopes[:, None] * self.values[1:] - beyond).max(axis=1)


@dataclass(frozen=True, eq=False)
class Sum:
    """A claim on a sum of rates, sum_i above_i r_i + constant >= bound (sum_i below_i r_i + rest).

    Attributes
    ----------
    terms : tuple of Term
    above, below : ndarray of shape (n_terms,)
        Coefficients of the numerator and of the denominator; without one, `below` is 0 and `rest`
        is 1.
    constant, rest : float
    apart : bool
        Whether no row can count in two of the rates.
    """

    terms: tuple[Term, ...]
    above: np.ndarray
    below: np.ndarray
    constant: float = 0.0
    rest: float = 1.0
    apart: bool = True

    @property
    def n_periods(self) -> int:
        """Number of periods."""
        return len(self.terms[0].tally.trials)

    def value(self, end: int = -1) -> float:
        """The value of all rows, or of those before a period; nan if undefined."""
        sums = np.array([term.tally.sums[:2, end] for term in self.terms])
        if not (sums[:, 1] > 0).all():
            return np.nan
        rates = np.array([term.value(S / n) for term, (S, n) in zip(self.terms, sums, strict=True)])
        divisor = self.below @ rates + self.rest
        return float((self.above @ rates + self.constant) / divisor) if divisor > 0 else np.nan

    def _claim(self, bound: float, sign: float) -> tuple[np.ndarray, float]:
        """Coefficients and bound of the linear claim sum_i c_i r_i >= b; sign -1 is for <=."""
        return (
            sign * (self.above - bound * self.below),
            sign * (bound * self.rest - self.constant),
        )

    def _single(self, bound: float, sign: float) -> tuple[Tally, float]:
        """The tally and the share that a claim on one rate requires at least."""
        (c,), b = self._claim(bound, sign)
        (term,) = self.terms
        share = term.share(b / c) if c else 0.0
        return (term.tally, share) if c >= 0 else (term.tally.mirrored, 1.0 - share)

    def against(
        self,
        bound: float,
        sign: float,
        start: int,
        end: int,
        store: dict[bytes, list[EvidenceCurve]] | None = None,
    ) -> float:
        """Evidence of one window against a value of at least (sign 1) or at most (-1) `bound`.

        Its curves, by their directions, are taken from a `store` and added to it.
        """
        if len(self.terms) == 1:
            tally, share = self._single(bound, sign)
            return float(tally.against_each(np.array([share]), start, end)[0])
        c, b = self._claim(bound, sign)
        store, upward = {} if store is None else store, c >= 0
        curves = store.get(upward.tobytes()) or [
            EvidenceCurve.of(term, start, end, up)
            for term, up in zip(self.terms, upward.tolist(), strict=True)
        ]
        store[upward.tobytes()] = curves
        scale = np.array(
            [ci * (term.high - term.low) for ci, term in zip(c, self.terms, strict=True)]
        )
        ends = np.array([end])
        variance = np.array([term.tally.moments(ends)[1][0, start] for term in self.terms])
        slopes = SLOPES / float(np.sqrt((scale**2 * variance).sum()))
        lost = sum(
            curve.conjugate(slopes * ci) for curve, ci in zip(curves, c, strict=True) if ci != 0
        )
        return float((slopes * b - lost).max()) / (1 if self.apart else np.count_nonzero(c))

    def alarm(self, bound: float, sign: float, threshold: float) -> tuple[int, int] | None:
        """First period whose rows raise an alarm, and the period since when; None without.

        Parameters
        ----------
        bound : float
        sign : float
            1 for a value of at least `bound`, -1 for at most.
        threshold : float
            Logarithm of the evidence that is needed.
        """
        weight = log_weights(self.n_periods)
        enough = threshold - (SLACK if len(self.terms) > 1 else 0.0)
        size = 1 + MOST_AT_ONCE // max(self.n_periods, 1)
        for first in range(1, self.n_periods + 1, size):
            ends = np.arange(first, min(first + size, self.n_periods + 1))
            for end in ends[self._total(bound, sign, ends, weight) >= enough]:
                chosen = np.arange(end)
                if len(self.terms) > 1:
                    likely = self._likely(bound, sign, np.array([end]))[0] + weight
                    order = np.argsort(-likely[chosen], kind="stable")
                    chosen = np.sort(order[:MOST_WINDOWS])
                log_e = weight[chosen] + self._exactly(bound, sign, chosen, int(end))
                if np.logaddexp.reduce(log_e) >= threshold:
                    return int(end) - 1, int(chosen[np.argmax(log_e)])
        return None

    def _total(self, bound: float, sign: float, ends: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """About the most evidence of all windows together, by their end."""
        if len(self.terms) == 1:
            tally, share = self._single(bound, sign)
            if tally.amounts and not tally.trials.any():
                capital = tally._log_capital(share)
                begun = np.logaddexp.accumulate(weight[:, None] - capital[:-1], axis=0)
                return log_mixture(capital[ends] + begun[ends - 1])
        inside = np.where(np.arange(self.n_periods) < ends[:, None], weight, -np.inf)
        return np.logaddexp.reduce(inside + self._likely(bound, sign, ends), axis=1)

    def _exactly(self, bound: float, sign: float, start: np.ndarray, end: int) -> np.ndarray:
        """Evidence of windows with one end."""
        if len(self.terms) == 1:
            tally, share = self._single(bound, sign)
            return tally.against(share, np.array([end]))[0, start]
        return np.array([self.against(bound, sign, int(j), end) for j in start])

    def _likely(self, bound: float, sign: float, ends: np.ndarray) -> np.ndarray:
        """About the most evidence, by end and start of a window."""
        if len(self.terms) == 1:
            tally, share = self._single(bound, sign)
            return tally.may_exceed(share, ends)
        c, b = self._claim(bound, sign)
        total, variance = np.zeros((2, len(ends), self.n_periods))
        for ci, term in zip(c, self.terms, strict=True):
            shares, error = term.tally.moments(ends)
            total += ci * term.value(shares)
            variance += (ci * (term.high - term.low)) ** 2 * error
        return np.maximum(b - total, 0.0) ** 2 / (2.0 * np.maximum(variance, 1e-300))

    def interval(self, error: float, end: int | None = None) -> tuple[float, float]:
        """Values that neither direction has evidence of 2/error against, of rows before `end`."""
        end = self.n_periods if end is None else end
        if np.isnan(self.value(end)):
            return np.nan, np.nan
        return self._limit(-1.0, error, end), self._limit(1.0, error, end)

    def _limit(self, sign: float, error: float, end: int) -> float:
        """The upper limit of the interval if sign is 1, else the lower one."""
        ends = np.array([term.value(np.array([0.0, 1.0])) for term in self.terms])
        least, most = np.sort(self.above[:, None] * ends, axis=1).sum(axis=0) + self.constant
        of_ratio = self.below.any()
        curves: dict[bytes, list[EvidenceCurve]] = {}

        def value(q: float) -> float:
            if of_ratio:
                return q / (1.0 - q) if least >= 0 else float(np.tan(np.pi * (q - 0.5)))
            return least + (most - least) * q

        def evidence(q: float) -> float:
            bound = value(q if sign > 0 else 1.0 - q)
            return self.against(bound, sign, 0, end, curves)

        share = _largest(evidence, np.log(2.0 / error))
        share = share if sign > 0 else 1.0 - share
        if of_ratio and not 1e-9 < share < 1.0 - 1e-9:  # nothing is known of this end
            return np.inf if share > 0.5 else 0.0 if least >= 0 else -np.inf
        return float(value(share))


def _largest(evidence: Callable[[float], float], threshold: float) -> float:
    """Largest share in [0, 1] against which the evidence, that grows, is below the threshold."""

    def excess(share: float) -> float:
        return float(np.clip(evidence(share) - threshold, -threshold, threshold))

    if excess(1.0 - SHARE_ERROR) < 0:
        return 1.0
    if excess(SHARE_ERROR) >= 0:
        return SHARE_ERROR
    root = brentq(excess, SHARE_ERROR, 1.0 - SHARE_ERROR, xtol=SHARE_ERROR)
    return float(root) + SHARE_ERROR
