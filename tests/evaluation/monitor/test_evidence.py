"""Evidence: what it is, that it seldom alarms while a claim holds, and soon when it does not."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

from skbandit.evaluation._guaranteed import WeightedShares
from skbandit.evaluation._monitor._calendar import Calendar
from skbandit.evaluation._monitor._evidence import (
    STAKES,
    Sum,
    Tally,
    Term,
    Window,
    log_evidence,
    log_tail,
    needed,
)
from tests.tiers import first

ALARM = np.log(20)


def tally(successes, trials):
    return Tally(np.asarray(successes, float), np.asarray(trials, float))


def rate(successes, trials, **kind):
    return Sum((Term(tally(successes, trials), **kind),), np.ones(1), np.zeros(1))


def at(claim, bound, sign):
    return replace(claim, bound=bound, sign=sign)


def ratio(Sa, na, Sb, nb):
    terms = Term(tally(Sa, na)), Term(tally(Sb, nb))
    return Sum(terms, np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.0, 0.0)


def difference(Sa, na, Sb, nb, apart=True):
    terms = Term(tally(Sa, na)), Term(tally(Sb, nb))
    return Sum(terms, np.array([1.0, -1.0]), np.zeros(2), apart=apart)


# --- the mixture -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "S, n, b",
    [
        *[(0, 0, 0.3), (3, 10, 0.5), (60, 100, 0.8), (0, 5, 0.2), (5, 5, 0.2), (799, 1000, 0.8)],
        *[(79_000, 100_000, 0.8), (10, 1000, 0.8), (21, 40, 0.5), (2, 3, 0.999)],
    ],
)
def test_evidence_is_the_mixture(S, n, b):
    with mpmath.workdps(30):
        S_, F, b_ = mpmath.mpf(S), mpmath.mpf(n - S), mpmath.mpf(b)

        def part(angle):  # t = b sin^2(angle), which takes the singularity of the prior away
            t = b_ * mpmath.sin(angle) ** 2
            likelihood = (t / b_) ** S_ * ((1 - t) / (1 - b_)) ** F
            return likelihood * mpmath.cos(angle) / mpmath.sqrt(1 - t)

        peak = mpmath.asin(mpmath.sqrt(min(S / max(n, 1) / b, 1)))
        points = sorted({mpmath.mpf(0), peak, mpmath.pi / 2})
        narrow = [p + k * mpmath.mpf(8) / mpmath.sqrt(n + 1) for p in points for k in (-1, 1)]
        points = sorted({p for p in [*points, *narrow] if 0 <= p <= mpmath.pi / 2})
        integral = mpmath.quad(part, points)
        prior = mpmath.quad(lambda a: mpmath.cos(a) / mpmath.sqrt(1 - b_ * mpmath.sin(a) ** 2),
                            [0, mpmath.pi / 2])  # fmt: skip
        expected = float(mpmath.log(integral / prior))
    assert float(log_evidence(S, n, b)) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_evidence_is_a_martingale_at_the_bound():
    # the mean of the next value is the value, so that no way of stopping gains
    S, n = np.arange(0, 31)[:, None], np.arange(0, 31)
    inside = n >= S
    for b in (0.1, 0.5, 0.93):
        e = np.exp(log_evidence(np.minimum(S, n), n, b))
        after = b * np.exp(log_evidence(np.minimum(S, n) + 1, n + 1, b))
        after += (1 - b) * np.exp(log_evidence(np.minimum(S, n), n + 1, b))
        np.testing.assert_allclose(after[inside], e[inside], rtol=1e-9)


# --- sums --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "Sa, na, Sb, nb", [(60, 300, 210, 700), (600, 3000, 2100, 7000), (0, 30, 210, 700)]
)
def test_evidence_of_a_ratio_is_below_its_infimum(Sa, na, Sb, nb):
    rho = np.linspace(1e-4, 1 - 1e-4, 100_001)
    infimum = (log_evidence(Sa, na, 0.8 * rho) + log_evidence(nb - Sb, nb, 1 - rho)).min()
    claim = ratio([Sa], [na], [Sb], [nb])
    log_e = at(claim, 0.8, 1.0).against(claim.windows(0))
    assert infimum - 0.5 < log_e <= infimum


def test_dependent_rates_have_the_geometric_mean():
    apart, together = (difference([60], [300], [210], [700], apart=x) for x in (True, False))
    log_e = [at(claim, -0.02, 1.0).against(claim.windows(0)) for claim in (apart, together)]
    assert log_e[1] == pytest.approx(log_e[0] / 2)


def constant(*values):
    """A difference of means of 100 equal amounts each."""
    tallies = (Tally(np.zeros(1), np.zeros(1), (equal(value),)) for value in values)
    return Sum(tuple(map(Term, tallies)), np.array([1.0, -1.0]), np.zeros(2))


def equal(value, weight=1.0):
    return WeightedShares.of(np.full(100, weight), np.full(100, value))


def test_amounts_that_are_all_equal_have_an_interval():
    """No variance is no certainty: 100 equal rows differ by at most a few of them."""
    for values in ((0.5, 0.5), (0.0, 0.0), (0.7, 0.4)):
        claim = constant(*values)
        low, high = claim.interval(0.05, claim.windows(0), 1)
        assert -0.3 < low - (values[0] - values[1]) < 0 < high - (values[0] - values[1]) < 0.3
        assert at(claim, 0.5, -1.0).seen(7.0, claim.windows(0), 1.0) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("weight", [1e-300, 1e-9, 0.01])
def test_rows_of_small_weight_are_no_evidence(weight):
    parts = [Tally(np.zeros(1), np.zeros(1), (equal(1.0, weight),)) for _ in range(2)]
    claim = Sum(tuple(map(Term, parts)), np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.0, 0.0)
    low, high = claim.interval(0.05, claim.windows(0), 1)
    assert low < 0.1 and high > 10


@pytest.mark.parametrize("claim", [rate([60], [100]), rate([60], [100], of_f1=True),
                                   difference([60], [300], [210], [700])])  # fmt: skip
def test_interval_ends_where_evidence_begins(claim):
    low, high = claim.interval(0.05, claim.windows(0), 1)
    assert low < claim.value(claim.windows(0)) < high
    assert at(claim, high, 1.0).against(claim.windows(0)) == pytest.approx(np.log(40), abs=1e-6)
    assert at(claim, low, -1.0).against(claim.windows(0)) == pytest.approx(np.log(40), abs=1e-6)


def test_interval_of_a_ratio_that_may_be_negative():
    terms = tuple(Term(tally([S], [n])) for S, n in ((60, 300), (210, 700), (270, 1000)))
    claim = Sum(terms, np.array([1.0, -1.0, 0.0]), np.array([0.0, 0.0, 1.0]), 0.0, 0.0)
    low, high = claim.interval(0.05, claim.windows(0), 1)
    assert (
        claim.value(claim.windows(0)) == pytest.approx(-0.1 / 0.27)
        and low < claim.value(claim.windows(0)) < high
    )
    assert at(claim, high, 1.0).against(claim.windows(0)) == pytest.approx(np.log(40), abs=1e-6)
    assert at(claim, low, -1.0).against(claim.windows(0)) == pytest.approx(np.log(40), abs=1e-6)


def test_f1_is_a_share():
    claim = rate([60], [100], of_f1=True)
    assert claim.value(claim.windows(0)) == pytest.approx(2 * 60 / (2 * 60 + 40))


# --- windows -----------------------------------------------------------------------------


def exact(S, n, rates):
    """P(at most S successes) of independent rows, by convolution."""
    chances = np.ones(1)
    for p in rates:
        chances = np.convolve(chances, [1 - p, p])
    return chances[: S + 1].sum()


@pytest.mark.parametrize("rates", [[0.5] * 12, [1.0] * 5 + [1 / 7] * 7, [0.9, 0.1] * 6])
def test_a_tail_bounds_that_of_rows_with_other_rates(rates):
    for S in range(12):
        bound = np.exp(-log_tail(np.array(float(S)), np.array(12.0), 0.5))
        assert exact(S, 12, rates) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("period", ["W-MON", "MS", 3600.0, 86400.0])
@pytest.mark.parametrize("by_week", [False, True])
def test_weights_of_the_windows_of_a_year_sum_to_one(period, by_week):
    calendar = Calendar(period)
    year = round(364 * 86400 / calendar.length)
    first = calendar.week(1000 * calendar.unit)
    start, end, weight = calendar.windows(first, first + 4 * year, by_week=by_week)
    one = (end > first + 2 * year) & (end <= first + 3 * year)
    assert 0.8 < np.exp(weight[one]).sum() <= 0.95 + 1e-9
    assert (np.diff(end) >= 0).all() and start.min() >= first
    assert ((end - start) % calendar.unit == 0).all()


def test_people_count_once_in_a_window():
    """Of 3 persons with shares 1, 1/2 and 0, by hand, whatever the number of their rows."""
    people = np.array([[0, 1, 0, 1, 2], [0, 0, 1, 1, 2], [2, 2, 1, 0, 0], [2, 2, 1, 1, 9.0]])
    window = Tally(np.zeros(3), np.zeros(3), (), people).window(0, 3)
    assert window.sums[:2].tolist() == [1.5, 3]
    gains = np.log1p(np.outer(STAKES, (0.8 - np.array([1, 0.5, 0])) / 0.2)).sum(axis=1)
    evidence = np.log(np.exp(gains).mean())
    assert window.against(np.array([0.8]))[0] == pytest.approx(evidence)
    # and half a person more who succeeds
    stakes = np.linspace(0, 0.98, 5001)[:, None]
    best = np.log1p(stakes * (0.8 - np.array([1, 0.5, 0])) / 0.2).sum(axis=1)
    best = (best + 0.5 * np.log1p(-stakes[:, 0])).max()
    assert window.likelihood(np.array([0.8]))[0] == pytest.approx(best, rel=0.02)


def test_the_likelihood_ratio_of_counts():
    """Of 30 of 100, and half a success more, by hand."""
    expected = 30.5 * np.log(0.305 / 0.5) + 69.5 * np.log(0.695 / 0.5)
    found = Window(30.0, 100.0).likelihood(np.array([0.5, 0.305, 0.2]))
    assert found == pytest.approx([expected, 0, 0])
    share = WeightedShares.of(np.ones(100), np.repeat([1.0, 0.0], [30, 70]))
    assert Window(0.0, 0.0, share).likelihood(np.array([0.5]))[0] == pytest.approx(
        expected, rel=0.02
    )


def test_the_value_that_would_be_seen_is_where_its_likelihood_ratio_is_needed():
    needed, of_all = 7.0, norm.isf(np.exp(-7.0)) ** 2 / 2
    for bound, sign, rows in ((0.8, 1.0, 1.0), (0.1, -1.0, 0.25)):
        claim = rate([180], [200])
        value = at(claim, bound, sign).seen(needed, claim.windows(0), rows)
        n = 200 / rows
        log_ratio = n * (value * np.log(value / bound)
                         + (1 - value) * np.log((1 - value) / (1 - bound)))  # fmt: skip
        assert sign * (bound - value) > 0
        assert log_ratio == pytest.approx(of_all, rel=0.06)
    gap = difference([60], [300], [210], [700])
    error = np.sqrt(0.201 * 0.799 / 301 + 0.3 * 0.7 / 701)
    value = at(gap, -0.2, 1.0).seen(needed, gap.windows(0), 1.0)
    assert value == pytest.approx(-0.2 - np.sqrt(2 * of_all) * error, rel=0.01)
    few = rate([3], [4])
    assert np.isnan(at(few, 0.5, 1.0).seen(needed, few.windows(0), 1.0))


N_FEW = 14


@pytest.fixture(scope="module")
def ratios():
    """What speaks against a ratio of at least .8, by the successes of both groups of 14 rows."""
    S = np.arange(N_FEW + 1)
    claims = [[ratio([a], [N_FEW], [b], [N_FEW]) for b in S] for a in S]
    return np.array(
        [[at(x, 0.8, 1.0).against(x.windows(0), once=True) for x in row] for row in claims]
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("level", [0.05, 0.01, 1e-3])
def test_a_window_of_two_rates_is_beyond_its_level_at_most_as_often(ratios, share, level):
    S = np.arange(N_FEW + 1)
    chance = np.outer(binom.pmf(S, N_FEW, 0.8 * share), binom.pmf(S, N_FEW, share))
    assert chance[ratios >= norm.isf(level) ** 2 / 2].sum() <= level
    assert ratios[0, N_FEW] > norm.isf(1e-4) ** 2 / 2


def test_dispersion_of_periods_beyond_that_of_independent_rows():
    """By hand: .8 in even weeks and .6 in odd ones, of 100 rows a day; a season, and a fall."""
    day = np.arange(56)
    rates = {
        "weeks": (np.where(day // 7 % 2, 60, 80), 0.04 / (0.7 * 0.3 * 0.02) * 199 / 200),
        "season": (np.where(day % 7 < 2, 60, 80), 1.0),
        "fall": (np.where(day < 30, 80, 60), 1.0),
    }
    for successes, expected in rates.values():
        one = tally(successes, np.full(56, 100))
        assert one.dispersion(day, 7) == pytest.approx(expected)
    assert tally(rates["weeks"][0][:28], np.full(28, 100)).dispersion(day[:28], 7) == 1  # few
    gaps = tally(rates["weeks"][0], np.where(day % 2, 0, 100))
    assert gaps.dispersion(day, 7) == 1


# --- alarms ------------------------------------------------------------------------------


def alarm(claim, bound, threshold=ALARM):
    """The first period that raises an alarm, and since when."""
    calendar = Calendar(86400.0)
    start, end, weight = calendar.windows(0, len(claim.terms[0].tally.trials), by_week=False)
    pair = at(claim, bound, 1.0).alarm(needed(threshold, weight), start, end)
    return pair and (pair[1] - 1, pair[0])


def alarms(make, bound, n, seed, threshold=ALARM):
    rng = np.random.default_rng(seed)
    return np.mean([alarm(make(rng), bound, threshold) is not None for _ in range(n)])


def at_bound(rng, T=60):
    n = rng.poisson(15, T)
    return rate(rng.binomial(n, 0.8), n)


def drifting(rng, T=60):
    n = rng.poisson(15, T) + 40 * (rng.random(T) < 0.1)  # unequal periods
    return rate(rng.binomial(n, 0.8 + 0.1 * np.sin(np.arange(T) / 5) ** 2), n)


def adversary(rng, T=60):
    """At the bound while evidence grows, and above it otherwise: an adversary sees the past."""
    S, n = np.zeros(T), np.full(T, 12.0)
    for t in range(T):
        before = S[:t].sum() / max(n[:t].sum(), 1)
        S[t] = rng.binomial(12, 0.8 if before < 0.8 else 0.85)
    return rate(S, n)


def shares(rng, T=40):
    parts = [rng.beta(2, 8, 15) for _ in range(T)]
    amounts = tuple(WeightedShares.of(np.ones(15), x) for x in parts)
    term = Term(Tally(np.zeros(T), np.zeros(T), amounts))
    return Sum((term,), np.ones(1), np.zeros(1))


@pytest.mark.parametrize(
    "make, bound",
    [(at_bound, 0.8), (drifting, 0.8), (adversary, 0.8), (shares, 0.2)],
)
@pytest.mark.parametrize("n", first(1, [100, 400]))
def test_false_alarms_of_one_rate(make, bound, n):
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert alarms(make, bound, n, seed=1) <= allowed


@pytest.mark.parametrize("rho", first(2, [0.1, 0.9, 0.5]))
@pytest.mark.parametrize("n", first(1, [40, 200]))
def test_false_alarms_of_ratios_and_differences(rho, n):
    def groups(rng, factor, shift, make):
        na, nb = rng.poisson(20, 40), rng.poisson(40, 40)
        return make(rng.binomial(na, factor * rho - shift), na, rng.binomial(nb, rho), nb)

    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert alarms(lambda rng: groups(rng, 0.8, 0, ratio), 0.8, n, 2) <= allowed
    assert alarms(lambda rng: groups(rng, 1, 0.05, difference), -0.05, n, 3) <= allowed


@pytest.mark.parametrize("day, late", [(5, 60), (120, 90)])
def test_falls_are_seen(day, late):
    rng, delays, since = np.random.default_rng(4), [], []
    for _ in range(20):
        n = rng.poisson(20, 240)
        S = rng.binomial(n, np.where(np.arange(240) < day, 0.83, 0.72))
        raised = alarm(rate(S, n), 0.8)
        delays.append(np.inf if raised is None else raised[0] - day)
        since.append(-1 if raised is None else raised[1])
    assert 0 <= np.median(delays) <= late
    assert abs(np.median(since) - day) <= 10


def test_a_gap_of_rare_rates_raises_an_alarm():
    """Of few rows beside many, the normal approximation is a third of the likelihood ratio."""
    gap = difference([12], [300], [1], [3000])
    log_ratio = at(gap, 0.0, -1.0).against(gap.windows(0), once=True)
    # 11.5 of 300 and 1.5 of 3000 against one rate of 13 in 3300
    expected = 11.5 * np.log(11.5 / 300) + 288.5 * np.log(288.5 / 300)
    expected += 1.5 * np.log(1.5 / 3000) + 2998.5 * np.log(2998.5 / 3000)
    expected -= 13 * np.log(13 / 3300) + 3287 * np.log(3287 / 3300)
    assert 0.88 * expected < log_ratio <= expected
    required = -norm.logsf(np.sqrt(2 * np.array([15.0])))
    assert at(gap, 0.0, -1.0).alarm(required, np.array([0]), np.array([1])) == (0, 1)


def test_ratio_that_falls_is_seen():
    rng = np.random.default_rng(5)
    na, nb = rng.poisson(60, 200), rng.poisson(140, 200)
    kept = np.where(np.arange(200) < 100, 0.9, 0.6)
    claim = ratio(rng.binomial(na, 0.3 * kept), na, rng.binomial(nb, 0.3), nb)
    period, since = alarm(claim, 0.8)
    assert 100 < period < 180 and abs(since - 100) <= 15
