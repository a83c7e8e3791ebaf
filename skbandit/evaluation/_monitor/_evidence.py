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

Windows. A goal is tested on windows of whole weeks, each once. The null hypothesis is that in every
window the expected number of successes is at least b times the rows. If rows are independent, at
whatever rates, and S <= n b - 1, the chance of so few is at most P(Bin(n, b) <= S) (Hoeffding
1956), a p-value, of which the logarithm of one over it exceeds log(1/a) with a chance of at most a.
The levels of windows sum to `false_alarms` in a year, before `CREDIT`.

Sums of rates, amounts, and people. As a window is tested once, no mixture is needed: the likelihood
ratio of the best single bet decides. For counts it is L = n KL(S/n, s); for amounts x_i in [0, 1],
such as the mean shares of people, whose rows may depend in any way, it is the largest sum of
log(1 + l (s - x_i)/(1 - s)) over bets l, the empirical likelihood ratio with the ends of the range
in the support (Owen 2001; Honda & Takemura 2010). Of a sum of rates it is (2) with L in place of
log e. Its signed root, sqrt(2 L), is about normal, so that an alarm at a level a needs L >= z^2/2
at the normal quantile z. Half a row more counts as a success, a correction of continuity. This is
no theorem: by enumeration, two binomial rates of 20 to 700 rows at levels of 1e-2 to 1e-5 have an
error of at most .8 of the level; in simulations of amounts it was at most 1.3 of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaln, xlog1py, xlogy
from scipy.stats import norm

from skbandit.evaluation._guaranteed import WeightedShares

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DEEP = 1e-280
"""Share of the Beta distribution below which its logarithm is not taken."""

STEPS = np.concatenate([np.linspace(0.0, 8.0, 161), 8.0 * 1.2 ** np.arange(1, 30)])
"""Distances from the observed rate, in standard errors, at which (2) evaluates each rate."""

SLOPES = 0.1 * 200.0 ** (np.arange(90) / 69.0)
"""Multipliers m of (2), in units of one over the standard error of the sum."""

SCREEN = 0.25
"""Share of what an alarm needs from which on the likelihood ratio of a sum is computed: of rare
events in a small group it is several times the normal approximation."""

STAKES = 0.8 * 2.0 ** -np.arange(12)
"""Bets on amounts and people, as fractions of the capital."""

SINGLE_STAKES = 0.98 * 2.0 ** (-np.arange(24) / 2)
"""Those among which the best one is chosen, where a window is tested once."""

CREDIT, CREDIT_FALLS, CREDITED = 0.7, 0.15, 0.05
"""What is taken from what an alarm needs, as windows overlap: at an error of .05, how fast it falls
with the logarithm of the error, and that error. With it, .033 of years at a bound alarm, and by the
theorem at most .1."""

EARLY = 1.5
"""Before a first whole week, the odds of a failure must be so many times those at the bound."""

FEW_PAIRS, CLEAR = 21, 3.0
"""Pairs of periods that a dispersion needs, and standard errors beyond which it is no chance."""

SHARE_ERROR = 1e-12
"""Error of the ends of intervals."""


def log_evidence(successes: ArrayLike, trials: ArrayLike, bound: ArrayLike) -> np.ndarray:
    """Return logarithm of (1), the evidence against a rate of at least `bound`.

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
        prior = betaln(S + 0.5, F + 0.5) + np.log(below) - np.log(2.0 * np.arcsin(np.sqrt(b)))
        log_e = prior - xlogy(S, b) - xlog1py(F, -b)
        # far below the observed rate: a lower bound by a geometric series
        ratio = (n + 1.0) * b / (S + 1.5)
        terms = np.ceil(40.0 / np.maximum(1.0 - ratio, 1e-9))
        ratio = (n + 1.0 + terms) * b / (S + 1.5 + terms)
        series = (1.0 - ratio**terms) / (1.0 - ratio)
        root = np.sqrt(b)
        angle = np.where(b > 0, np.arcsin(root) / np.where(b > 0, root, 1.0), 1.0)
        tail = np.log(np.sqrt(1.0 - b) * series / ((2.0 * S + 1.0) * angle))
    return np.where(below > DEEP, log_e, tail)


def log_tail(successes: np.ndarray, trials: np.ndarray, bound: float) -> np.ndarray:
    """Return -log P(Bin(n, b) <= S), 0 where independent rows of other rates may have fewer.

    Examples
    --------
    >>> float(log_tail(np.array(1.0), np.array(10.0), 0.5).round(4))  # -log(11 / 1024)
    4.5336
    """
    S, n = np.broadcast_arrays(successes, trials)
    few = n * bound - 1.0 >= S
    with np.errstate(divide="ignore"):
        below = np.log(betainc(np.where(few, n - S, 1.0), np.where(few, S, 0.0) + 1.0, 1.0 - bound))
    return np.where(few, -below, 0.0)


@dataclass(frozen=True, eq=False)
class Window:
    """Counts of one rate in a window.

    Attributes
    ----------
    successes, trials : float
        Rows of equal weight that are successes or not.
    amounts : WeightedShares or None
        Other rows, or people: shares in [0, 1], of weights of at most 1.
    """

    successes: float
    trials: float
    amounts: WeightedShares | None = None

    @cached_property
    def mirrored(self) -> Window:
        """The rate of failures."""
        amounts = self.amounts and self.amounts.mirrored()
        return Window(self.trials - self.successes, self.trials, amounts)

    @cached_property
    def sums(self) -> np.ndarray:
        """Successes, trials, and their variance in units of that of as many successes."""
        sums = np.array([self.successes, self.trials, self.trials], dtype=float)
        if self.amounts is not None:
            count, w, ws = self.amounts.totals
            squares = w**2 / count
            # of even odds, so that equal rows are no certainty
            row = max(float(squares.sum() / w.sum()), 1e-100)
            share = (ws.sum() + 0.5 * row) / (w.sum() + row)
            size = float((squares * (ws / w - share) ** 2).sum() + 0.25 * row**2)
            sums += ws.sum(), w.sum(), size / (share * (1.0 - share))
        return sums

    def against(self, bounds: np.ndarray) -> np.ndarray:
        """Return the logarithm of the evidence against a rate of at least each bound."""
        log_e = log_evidence(self.successes, self.trials, bounds)
        if self.amounts is None:
            return log_e
        bets = log_capital(self.amounts, bounds)
        return log_e + np.logaddexp.reduce(bets, axis=-1) - np.log(len(STAKES))

    def likelihood(self, bounds: np.ndarray) -> np.ndarray:
        """Return the log likelihood ratio of the best bet against a rate of at least each bound."""
        S, F = self.successes + 0.5, max(self.trials - self.successes - 0.5, 0.0)
        if self.amounts is not None:
            gains = log_capital(self.amounts, bounds, SINGLE_STAKES)
            return best_bet(gains, np.array([S]), np.array([F]), bounds)
        share = S / (S + F)
        with np.errstate(divide="ignore"):
            rest = (S + F) * (xlogy(share, bounds) + xlog1py(1.0 - share, -bounds))
            log_ratio = (S + F) * (xlogy(share, share) + xlog1py(1.0 - share, -share)) - rest
        return np.where(share < bounds, log_ratio, 0.0)

    @cached_property
    def rates(self) -> np.ndarray:
        """Rates in ascending order, at which evidence is computed."""
        share, variance = moments(self.sums)
        width = np.sqrt(np.maximum(variance, 1e-18)) / (2.0 * np.sqrt(share * (1.0 - share)))
        steps = np.concatenate([-STEPS[::-1], STEPS[1:]])
        angle = np.clip(np.arcsin(np.sqrt(share)) + width * steps, 0.0, np.pi / 2)
        return np.unique(np.concatenate([[0.0], np.sin(angle) ** 2, [1.0]]))

    @cached_property
    def evidence(self) -> dict[bool, np.ndarray]:
        """Evidence against at least each of `rates`: valid at all times, or (True) once."""
        return {False: self.against(self.rates), True: self.likelihood(self.rates)}


def moments(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rates, and variances of their estimates, from `Window.sums`."""
    S, n, squares = sums
    n = np.maximum(n, 0.0)
    # what a row counts, so that one more of even odds weighs as much as the others
    size = np.divide(squares, n, out=np.ones_like(n), where=n > 0)
    size = np.maximum(size, 1e-12 * n + np.finfo(float).tiny)
    share = np.clip((S + 0.5 * size) / (n + size), 0.0, 1.0)
    return share, share * (1.0 - share) * size / (n + size)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of one rate in each of T periods; those of disjoint rows add up.

    Attributes
    ----------
    successes, trials : ndarray of shape (T,)
        Rows of equal weight that are successes or not.
    amounts : tuple of (WeightedShares or None), T of them
        Other rows: shares in [0, 1], of weights of at most 1.
    people : ndarray of shape (4, n)
        Of persons in periods: number of the period and of the person, sum of shares, and rows.
    """

    successes: np.ndarray
    trials: np.ndarray
    amounts: tuple[WeightedShares | None, ...] = ()
    people: np.ndarray = field(default_factory=partial(np.zeros, (4, 0)))

    @cached_property
    def mirrored(self) -> Tally:
        """The rate of failures."""
        amounts = tuple(part and part.mirrored() for part in self.amounts)
        at, who, S, n = self.people
        people = np.array([at, who, n - S, n])
        return Tally(self.trials - self.successes, self.trials, amounts, people)

    @cached_property
    def sums(self) -> np.ndarray:
        """`Window.sums` before each period, (3, T + 1)."""
        each = [
            Window(*row).sums
            for row in zip(self.successes, self.trials, self._amounts, strict=True)
        ]
        return np.concatenate(
            [np.zeros((3, 1)), np.reshape(each, (-1, 3)).T.cumsum(axis=1)], axis=1
        )

    @property
    def _amounts(self) -> tuple[WeightedShares | None, ...]:
        return self.amounts or (None,) * len(self.trials)

    def dispersion(self, periods: np.ndarray, week: int) -> float:
        """Return how much shares a week apart differ, relative to independent rows; 1 by chance.

        It is the mean of chi-squared of the pairs, which has a variance of at most 3 by their
        number, as each period is in two. Seasons of a week do not count in it, nor does a fall, as
        the week of pairs that differ most is left out.
        """
        later = np.searchsorted(periods, periods + week)
        first = np.flatnonzero(np.append(periods, -1)[later] == periods + week)
        (S, s), (n, m) = (x[np.array([first, later[first]])] for x in (self.successes, self.trials))
        mean = (S + s) / np.maximum(n + m, 1.0)
        inside = (np.minimum(n, m) > 0) & (mean > 0) & (mean < 1)
        if inside.sum() < FEW_PAIRS + week:
            return 1.0
        S, s, n, m, mean = (x[inside] for x in (S, s, n, m, mean))
        squares = (S / n - s / m) ** 2 / (mean * (1.0 - mean) * (1.0 / n + 1.0 / m))
        squares = np.sort(squares * (1.0 - 1.0 / (n + m)))[:-week]
        factor = float(squares.mean())
        return factor if factor > 1.0 + CLEAR * np.sqrt(3.0 / len(squares)) else 1.0

    def window(self, start: int, end: int) -> Window:
        """Return what is known of the periods from `start` to before `end`."""
        at, who, S, n = self.people[:, (self.people[0] >= start) & (self.people[0] < end)]
        amounts = [part for part in self._amounts[start:end] if part is not None]
        if len(at):
            _, number = np.unique(who, return_inverse=True)
            share = np.bincount(number, S) / np.bincount(number, n)
            amounts.append(WeightedShares.of(np.ones(len(share)), np.clip(share, 0.0, 1.0)))
        S, n = self.successes[start:end].sum(), self.trials[start:end].sum()
        return Window(S, n, reduce(add, amounts) if amounts else None)

    def moments(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return those of windows."""
        if self.people.size:
            windows = [self.window(*pair).sums for pair in zip(start, end, strict=True)]
            return moments(np.reshape(windows, (-1, 3)).T)
        return moments(self.sums[:, end] - self.sums[:, start])

    def against(self, bound: float, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return how much speaks against a rate of at least `bound`, by window."""
        at = np.array([bound])
        if self.people.size:
            pairs = zip(start, end, strict=True)
            return np.array([self.window(*pair).likelihood(at)[0] for pair in pairs])
        rows = np.array([self.successes, self.trials], dtype=float).cumsum(axis=1)
        rows = np.concatenate([np.zeros((2, 1)), rows], axis=1)
        S, n = rows[:, end] - rows[:, start]
        if not self.amounts:
            return log_tail(S, n, bound)
        nothing = np.zeros(len(SINGLE_STAKES))
        gains = [
            nothing if part is None else log_capital(part, at, SINGLE_STAKES)[0]
            for part in self.amounts
        ]
        capital = np.cumsum([nothing, *gains], axis=0)
        return best_bet(capital[end] - capital[start], S + 0.5, np.maximum(n - S - 0.5, 0.0), at)


def best_bet(gains: np.ndarray, S: np.ndarray, F: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the largest log capital of `SINGLE_STAKES`, with successes and failures besides."""
    odds = bounds / np.clip(1.0 - bounds, 1e-12, 1.0)
    lost = S[:, None] * np.log1p(-SINGLE_STAKES)
    won = F[:, None] * np.log1p(SINGLE_STAKES * odds[:, None])
    return np.maximum((gains + lost + won).max(axis=1), 0.0)


def log_capital(
    amounts: WeightedShares, bounds: np.ndarray, stakes: np.ndarray = STAKES
) -> np.ndarray:
    """Return log capital of bets against a mean of at least each bound, (n_bounds, n_bets).

    With weights w of at most 1 and shares s, a bet of a fraction l multiplies the capital by
    1 + l w (b - s) / (1 - b) at every row: a supermartingale while the weighted mean of shares is
    at least b, given the past (Waudby-Smith & Ramdas 2024). Of rows of similar weight and share,
    their sums and extremes bound it from below.
    """
    failures = amounts.mirrored()
    capital = np.empty((len(bounds), len(stakes)))
    for k, m in enumerate(np.clip(1.0 - np.asarray(bounds, dtype=float), 1e-12, 1.0)):
        gaps, numbers = failures.weighted_gaps(m)
        capital[k] = np.log1p(stakes[:, None] * np.maximum(gaps / m, -1.0)) @ numbers
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
        """Return the rate at a share of successes."""
        rate = 2.0 * share / (1.0 + share) if self.of_f1 else share
        return self.low + (self.high - self.low) * rate

    def conjugate(
        self, window: Window, slopes: np.ndarray, *, upward: bool, once: bool
    ) -> np.ndarray:
        """Return upper bounds of max_s (m s - log e(s)) for slopes m of one sign, (n_slopes,).

        The evidence is against at least each value if `upward`; the claims grow along the curve.
        Between two points it is at least that of the first, and the claim at most that of the
        second.
        """
        side = window if upward else window.mirrored
        q, log_e = side.rates, side.evidence[once]
        values = self.value(q if upward else 1.0 - q)[1:]
        beyond = np.where(np.isfinite(log_e[:-1]), log_e[:-1], np.inf)
        return (slopes[:, None] * values - beyond).max(axis=1)

    def share(self, value: float) -> float:
        """Return the share of successes at a rate, in [0, 1]."""
        rate = np.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)
        return float(rate / (2.0 - rate) if self.of_f1 else rate)


@dataclass(frozen=True, eq=False)
class Sum:
    """A claim on a sum of rates, sum_i above_i r_i + constant >= bound (sum_i below_i r_i + rest).

    With the sign -1 it is <=.

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
    bound: float = np.nan
    sign: float = 1.0

    @property
    def of_people(self) -> bool:
        """True if rows of persons count."""
        return any(term.tally.people.size for term in self.terms)

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the largest numerator."""
        ends = np.array([term.value(np.array([0.0, 1.0])) for term in self.terms])
        least, most = np.sort(self.above[:, None] * ends, axis=1).sum(axis=0) + self.constant
        return float(least), float(most)

    def windows(self, start: int, end: int | None = None) -> list[Window]:
        """Return the window of each term."""
        end = len(self.terms[0].tally.trials) if end is None else end
        return [term.tally.window(start, end) for term in self.terms]

    def value(self, windows: Sequence[Window]) -> float:
        """Return the value in a window; nan if undefined."""
        sums = np.array([window.sums[:2] for window in windows])
        if not (sums[:, 1] > 0).all():
            return np.nan
        rates = np.array([term.value(S / n) for term, (S, n) in zip(self.terms, sums, strict=True)])
        divisor = self.below @ rates + self.rest
        return float((self.above @ rates + self.constant) / divisor) if divisor > 0 else np.nan

    @property
    def _claim(self) -> tuple[np.ndarray, float]:
        """Coefficients and bound of the claim sum_i c_i r_i >= b."""
        c = self.sign * (self.above - self.bound * self.below)
        return c, self.sign * (self.bound * self.rest - self.constant)

    @property
    def _single(self) -> tuple[bool, float]:
        """True if a claim on one rate is upward, and the share that it then requires at least."""
        (c,), b = self._claim
        share = self.terms[0].share(b / c) if c else 0.0
        return (True, share) if c >= 0 else (False, 1.0 - share)

    def against(self, windows: Sequence[Window], *, once: bool = False) -> float:
        """Return the evidence against the claim."""
        if len(self.terms) == 1:
            upward, share = self._single
            window = windows[0] if upward else windows[0].mirrored
            return float(window.against(np.array([share]))[0])
        c, b = self._claim
        variance = [
            (ci * (term.high - term.low)) ** 2 * moments(window.sums)[1]
            for ci, term, window in zip(c, self.terms, windows, strict=True)
        ]
        slopes = SLOPES / float(np.sqrt(sum(variance)))
        lost = sum(
            term.conjugate(window, slopes * ci, upward=ci > 0, once=once)
            for ci, term, window in zip(c, self.terms, windows, strict=True)
            if ci != 0
        )
        return float((slopes * b - lost).max()) / (1 if self.apart else np.count_nonzero(c))

    def alarm(
        self, needed: np.ndarray, start: np.ndarray, end: np.ndarray, *, early: bool = False
    ) -> tuple[int, int] | None:
        """Return since when a window raised an alarm, and the end of the first one; None without.

        Parameters
        ----------
        needed : ndarray of shape (n_windows,)
            Of what speaks against the goal; see `Tally.against`.
        start, end : ndarray of shape (n_windows,)
            Numbers of periods, ends in ascending order.
        early : bool
            Whether one rate must be beyond the bound by `EARLY`.
        """
        score = self._likely(start, end, early)
        tally = self.terms[0].tally
        if len(self.terms) > 1 or tally.amounts or tally.people.size:  # counts do not tell all
            needed = likelihood_needed(needed)
        last = np.inf
        for k in np.flatnonzero(score >= SCREEN * needed) if len(self.terms) > 1 else []:
            if end[k] > last:  # the first alarm is known
                break
            windows = self.windows(int(start[k]), int(end[k]))
            score[k] = self.against(windows, once=True)
            last = end[k] if score[k] >= needed[k] else last
        alarms = np.flatnonzero((score >= needed) & (end <= last))
        if not len(alarms):
            return None
        last = end[alarms[0]]
        begin = np.arange(start[alarms[end[alarms] == last]].min(), last)
        best = np.argmax(self._likely(begin, np.full(len(begin), last)))
        return int(begin[best]), int(last)

    def _likely(self, start: np.ndarray, end: np.ndarray, early: bool = False) -> np.ndarray:
        """Return what speaks against a claim on one rate, or about the most evidence, by window."""
        if len(self.terms) == 1:
            upward, share = self._single
            share = share / (share + EARLY * (1.0 - share)) if early else share
            tally = self.terms[0].tally
            return (tally if upward else tally.mirrored).against(share, start, end)
        c, b = self._claim
        total, variance = np.zeros((2, len(start)))
        for ci, term in zip(c, self.terms, strict=True):
            shares, error = term.tally.moments(start, end)
            total += ci * term.value(shares)
            variance += (ci * (term.high - term.low)) ** 2 * error
        return np.maximum(b - total, 0.0) ** 2 / (2.0 * np.maximum(variance, 1e-300))

    def seen(self, needed: float, windows: Sequence[Window], rows: float) -> float:
        """Return the value beyond the bound that a window needs for an alarm; nan if there is none.

        `windows` have a share `rows` of those that it will have. If the value is that, half of the
        windows raise an alarm, as estimates are about normal.
        """
        sums = np.array([window.sums for window in windows])
        if not (sums[:, 1] > 0).all():
            return np.nan
        level = 2.0 * float(likelihood_needed(np.array(needed)))
        if len(self.terms) == 1:
            (upward, claimed), (_, n, squares) = self._single, sums[0]
            fallen = claimed
            for _ in range(20):  # the variance is that of a share between the two
                middle = (claimed + fallen) / 2.0
                variance = middle * (1.0 - middle) * squares * rows / n**2
                fallen = max(claimed - float(np.sqrt(level * variance)), 0.0)
            share = np.array(fallen if upward else 1.0 - fallen)
            value = self.above[0] * self.terms[0].value(share) + self.constant
            return float(value) if fallen > 0 else np.nan
        c, _ = self._claim
        level *= 1 if self.apart else np.count_nonzero(c)
        shares, variances = zip(*map(moments, sums), strict=True)
        rates = [term.value(share) for term, share in zip(self.terms, shares, strict=True)]
        widths = np.array([term.high - term.low for term in self.terms])
        away = np.sqrt(level * rows * ((c * widths) ** 2 @ np.array(variances)))
        divisor, (least, most) = float(self.below @ rates + self.rest), self._ends
        if divisor <= 0:
            return np.nan
        value = self.bound - self.sign * float(away) / divisor
        possible = least <= value <= most if not self.below.any() else value >= min(least, 0.0)
        return value if possible else np.nan

    def interval(
        self, error: float, windows: Sequence[Window], n_weeks: int
    ) -> tuple[float, float]:
        """Return the values that neither direction has evidence of 2/error against.

        People count once: each week has evidence of its own, at 1/(k (k + 1)) of the error.
        """
        if np.isnan(self.value(windows)):
            return np.nan, np.nan
        if self.of_people:
            error /= n_weeks * (n_weeks + 1)
        return self._limit(-1.0, error, windows), self._limit(1.0, error, windows)

    def _limit(self, sign: float, error: float, windows: Sequence[Window]) -> float:
        """Return the upper limit of the interval if sign is 1, else the lower one."""
        of_ratio, (least, most) = self.below.any(), self._ends

        def value(q: float) -> float:
            if of_ratio:
                return q / (1.0 - q) if least >= 0 else float(np.tan(np.pi * (q - 0.5)))
            return least + (most - least) * q

        needed = np.log(2.0 / error)

        def excess(q: float) -> float:  # it grows
            claim = replace(self, bound=value(q if sign > 0 else 1.0 - q), sign=sign)
            return float(np.clip(claim.against(windows) - needed, -needed, needed))

        share, last = SHARE_ERROR, 1.0 - SHARE_ERROR
        if excess(last) < 0:
            share = 1.0
        elif excess(share) < 0:
            share += float(brentq(excess, share, last, xtol=SHARE_ERROR))
        share = share if sign > 0 else 1.0 - share
        if of_ratio and not 1e-9 < share < 1.0 - 1e-9:  # nothing is known of this end
            return np.inf if share > 0.5 else 0.0 if least >= 0 else -np.inf
        return float(value(share))


def likelihood_needed(needed: np.ndarray) -> np.ndarray:
    """Return the log likelihood ratio that an alarm takes instead of -log of a p-value."""
    return np.asarray(norm.isf(np.exp(-needed)) ** 2 / 2.0)


def needed(threshold: float, log_weight: np.ndarray) -> np.ndarray:
    """Return what must speak against a goal in windows, at the logarithm of one over its error."""
    credit = CREDIT - CREDIT_FALLS * (threshold + np.log(CREDITED))
    return threshold - np.clip(credit, 0.0, CREDIT) - log_weight
