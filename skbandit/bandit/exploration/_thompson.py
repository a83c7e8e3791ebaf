"""Thompson sampling: draw θ of every arm from its posterior, and play the largest.

The posterior N(m, v) is narrowed or widened to N(m, α²v): α = 1 draws from the posterior itself
(Thompson, 1933); less explores less, which often earns more (Chapelle & Li, 2011).

Probabilities are integrals over the largest draw. Let Φ_k be the distribution function of arm k's
draw, and F = Π_k Φ_k that of the largest. Then

    P(k is best) = ∫ Π_{j≠k} Φ_j dΦ_k = ∫ F d log Φ_k,        Σ_k d log Φ_k = d log F.

All arms share one grid. A cell of it, from a to b, gives arm k the part (F(b) - F(a)) w_k, where
w_k = [log Φ_k(b) - log Φ_k(a)] / [log F(b) - log F(a)]: exact in sum, and for each arm if the
ratio of the hazards is constant in the cell. Cells are chosen from left to right so that F grows by
little in each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._greedy import count_best
from skbandit.bandit.exploration._random import standard_normal
from skbandit.bandit.exploration._sets import SetRule, best, best_inclusion, choose_best
from skbandit.utils._compiled import called_exactly, inlined_exactly

NODES = np.arange(-8.0, 6.0 + 1 / 32, 1 / 16)
"""Standard deviations from the mean at which log Φ and its slope are tabulated; between them it is
a cubic, with an error below 1e-7. Beyond 6, Φ is 1 to nine digits."""
LOG_PHI = log_ndtr(NODES)
SLOPE = np.exp(-0.5 * NODES**2 - 0.5 * np.log(2.0 * np.pi) - LOG_PHI)

MOST_GAIN = 0.04
"""Probability F(b) - F(a) of a cell, at most; an eighth of it, in the few cells in which one arm's
hazard takes over from another's, bounds the error of an arm's probability."""
GAIN_GROWTH = 0.3
"""Growth of the gain relative to F(a), as log F is steep where F is small."""
LEAST_GAIN = 0.002
"""Least gain where F(a) is near 0."""

RANGE = 6.0
"""Standard deviations beyond which draws are neglected."""

LEAST_DEVIATION = 1e-9
"""Least standard deviation of a draw, relative to the range of draws: known arms become steep."""

# Quantiles of each arm's draw at which the number of larger draws is computed: fewer for many
# arms, whose nodes serve one another. Between nodes it is interpolated: probabilities have an error
# of at most .002, mostly below .0005.
MOST_QUANTILES, LEAST_QUANTILES = 31, 7

MOST_NODES = 1200
"""Number of nodes that the quantiles of all arms should not exceed by much."""

MOST_PROBABILITIES = 2**21
"""Largest number of probabilities held at once (16 MB)."""


@called_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    """Draw from N(m, α²v)."""
    return m + alpha * math.sqrt(v) * standard_normal(rule.seed, t, key)


@called_exactly
def draw_probabilities(
    pool: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    alpha: float,
    buffer: np.ndarray,
    out: np.ndarray,
) -> None:
    """Return probability of each arm that its draw from N(m, α²v) is the largest.

    `buffer` has three rows of n_arms.
    """
    s, before, after = buffer[0], buffer[1], buffer[2]
    top = -math.inf
    for k in pool:
        top = max(top, m[k])
    low, high = -math.inf, -math.inf  # from here on relative to the largest mean
    for k in pool:
        out[k] = 0.0
        s[k] = alpha * math.sqrt(v[k])
        low = max(low, m[k] - top - RANGE * s[k])
        high = max(high, m[k] - top + RANGE * s[k])
    least = LEAST_DEVIATION * (high - low)
    if not 0.0 < least < math.inf:  # the best arms are known
        n_best = count_best(top, pool, m)
        for k in pool:
            out[k] = 1.0 / n_best if m[k] == top else 0.0
        return
    low -= RANGE * least
    log_f = 0.0
    for k in pool:
        if m[k] - top + RANGE * s[k] < low:
            s[k] = 0.0  # never the best
        else:
            s[k] = max(s[k], least)
            before[k] = _log_phi((low - (m[k] - top)) / s[k])
            log_f += before[k]
    f, step = math.exp(log_f), (high - low) / 32.0
    while f < 1.0 - 1e-6 and low < high:
        new_log_f = 0.0
        for k in pool:
            if s[k] > 0.0:
                after[k] = _log_phi((low + step - (m[k] - top)) / s[k])
                new_log_f += after[k]
        gain = math.exp(new_log_f) - f
        allowed = max(LEAST_GAIN, min(MOST_GAIN, GAIN_GROWTH * f))
        if gain > allowed and step > 0.01 * least:
            step *= max(0.1, min(0.8, 0.9 * allowed / gain))
            continue
        if gain > 0.0:
            for k in pool:
                if s[k] > 0.0:
                    out[k] += gain * (after[k] - before[k]) / (new_log_f - log_f)
        for k in pool:
            before[k] = after[k]
        low, f, log_f = low + step, f + gain, new_log_f
        allowed = max(LEAST_GAIN, min(MOST_GAIN, GAIN_GROWTH * f))
        step *= min(2.0, max(1.0, 0.9 * allowed / max(gain, LEAST_GAIN)))
    total = 0.0
    for k in pool:
        total += out[k]  # not less than any of them: that of the gains may be
    for k in pool:
        out[k] /= total


@inlined_exactly
def _log_phi(z: float) -> float:
    """Return Log Φ(z) by the table; 0 beyond it, and its asymptote below."""
    if z >= RANGE:
        result = 0.0
    elif z < NODES[0]:
        result = -0.5 * z * z - math.log(-z) - 0.5 * math.log(2.0 * math.pi)
    else:
        place = (z - NODES[0]) * 16.0
        i = min(int(place), len(LOG_PHI) - 2)
        u, rise = place - i, LOG_PHI[i + 1] - LOG_PHI[i]
        left, right = SLOPE[i] / 16.0, SLOPE[i + 1] / 16.0
        bend = 3.0 * rise - 2.0 * left - right + u * (left + right - 2.0 * rise)
        result = LOG_PHI[i] + u * (left + u * bend)
    return result


def largest_draws_inclusion(moments: tuple[np.ndarray, np.ndarray], m: int) -> np.ndarray:
    """Probability of each arm that its draw from N(mean, deviation²) is one of the m largest.

    Draws are independent. Let N₋ₖ(z) be the number of other draws above z, a sum of independent
    Bernoulli variables; then

        P(k is included) = ∫ P(N₋ₖ(z) < m) dΦₖ(z),

    where Φₖ is the distribution function of draw k. P(N₋ₖ < m) is computed at common nodes, from
    the distributions of the numbers of larger draws before k and after k, and taken to be linear
    in Φₖ between them. The sum over k, which is m, is imposed.

    Parameters
    ----------
    moments : tuple of two ndarray of shape (n_rows, n_arms)
        Means and standard deviations of the draws. Means of arms that are not available are -inf.
    m : int
        Number of arms of a slate.

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
    """
    out = np.zeros(moments[0].shape)
    for row, (mu, s) in enumerate(zip(*moments, strict=True)):
        there = np.flatnonzero(mu > -np.inf)
        out[row, there] = _one_row(mu[there] - mu[there].max(), s[there], m)
    return out


def _one_row(mu: np.ndarray, s: np.ndarray, m: int) -> np.ndarray:
    """Return inclusion of available arms, whose largest mean is 0."""
    low, high = mu - RANGE * s, mu + RANGE * s
    least = LEAST_DEVIATION * float(high.max() - low.min())
    if m >= len(mu) or not 0.0 < least < np.inf or not s.any():
        return best_inclusion(mu[None], min(m, len(mu)))[0]
    s = np.maximum(s, least)
    order = np.sort(low)[::-1]
    candidates = np.flatnonzero(high >= order[m - 1])  # others never reach the m-th largest
    probability = np.zeros(len(mu))
    n_certain = int((low > np.sort(high)[::-1][m]).sum()) if len(mu) > m else 0
    if n_certain == m:  # the m best overlap with no other arm
        return best_inclusion(mu[None], m)[0]
    mu, s = mu[candidates], s[candidates]
    ends = np.array([(mu - RANGE * s).min(), (mu + RANGE * s).max()])
    n_quantiles = min(MOST_QUANTILES, max(LEAST_QUANTILES, MOST_NODES // len(mu)))
    quantiles = np.arange(1, n_quantiles + 1) / (n_quantiles + 1)
    inner = (mu[:, None] + s[:, None] * ndtri(quantiles)).ravel()
    nodes = np.unique(np.concatenate([ends, inner]))
    chances = np.zeros(len(mu))
    step = max(2, MOST_PROBABILITIES // (len(mu) * m))
    for first in range(0, len(nodes) - 1, step):
        z = nodes[first : first + step + 1]
        below = ndtr((z - mu[:, None]) / s[:, None])
        few = _fewer_than(m, 1.0 - below)
        chances += ((few[:, 1:] + few[:, :-1]) / 2 * np.diff(below, axis=1)).sum(axis=1)
    probability[candidates] = np.clip(chances, 0.0, 1.0)
    for _ in range(20):  # scaled to the sum m, none above 1
        free = probability < 1.0
        total = probability[free].sum()
        missing = m - (~free).sum()
        if not total > 0 or abs(total - missing) < 1e-12:
            break
        probability = np.where(free, np.minimum(probability * (missing / total), 1.0), 1.0)
    return probability


def _fewer_than(m: int, above: np.ndarray) -> np.ndarray:
    """P(fewer than m of the others succeed), given probabilities of shape (n_arms, n_nodes)."""
    n_arms, n_nodes = above.shape
    before = np.empty((n_arms, m, n_nodes))  # P(i of the arms before k succeed), i < m
    count = np.zeros((m, n_nodes))
    count[0] = 1.0
    for k in range(n_arms):
        before[k] = count
        count = _add_trial(count, above[k])
    out = np.empty((n_arms, n_nodes))
    count = before[0]
    for k in range(n_arms - 1, -1, -1):
        at_most = np.cumsum(count, axis=0)  # P(at most i of the arms after k succeed)
        out[k] = (before[k] * at_most[::-1]).sum(axis=0)
        count = _add_trial(count, above[k])
    return out


def _add_trial(count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return distribution of a number of successes below m, after another trial."""
    more = count * (1.0 - p)
    more[1:] += count[:-1] * p
    return more


def _choose(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    if not models.alpha:
        return choose_best(models, m, seed, t)
    return best(models.scores(seed, t), m, None)  # draws have no ties


SETS = SetRule(lambda models, m: largest_draws_inclusion(models.moments(), m), _choose)
