"""The m best of K scores, and the probability of each arm to be among them.

Arms whose score is -inf are not available. Every row has at least m others.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

MOST_QUANTILES, LEAST_QUANTILES = 31, 7
"""Quantiles of each arm's draw at which the number of larger draws is computed: fewer for many
arms, whose nodes serve one another. Between nodes it is interpolated: probabilities have an error
of at most .002, mostly below .0005."""

NODES = 1200
"""Number of nodes that the quantiles of all arms should not exceed by much."""

RANGE = 6.0
"""Standard deviations beyond which draws are neglected."""

LEAST_DEVIATION = 1e-9
"""Least standard deviation of a draw, relative to the range of draws: known arms become steep."""

ENTRIES = 2**21
"""Largest number of probabilities held at once (16 MB)."""


def best(scores: np.ndarray, m: int, u: np.ndarray | None) -> np.ndarray:
    """Columns of the m largest scores per row, best first.

    Ties go to the larger u, an array of the shape of the scores, else to the first column.
    """
    ties = np.broadcast_to(-np.arange(scores.shape[1]), scores.shape) if u is None else u
    return np.lexsort((-ties, -scores), axis=1)[:, :m]


def best_inclusion(scores: np.ndarray, m: int) -> np.ndarray:
    """Probability of each arm to be one of the m largest scores, if ties are broken at random."""
    threshold = -np.partition(-scores, m - 1, axis=1)[:, m - 1 : m]
    above, equal = scores > threshold, scores == threshold
    places = m - above.sum(axis=1, keepdims=True)
    return above + equal * places / equal.sum(axis=1, keepdims=True)


def epsilon_inclusion(scores: np.ndarray, m: int, epsilon: float) -> np.ndarray:
    """Inclusion of a slate that is uniform with probability ε, else the m best."""
    available = scores > -np.inf
    uniform = available * m / available.sum(axis=1, keepdims=True)
    return (1 - epsilon) * best_inclusion(scores, m) + epsilon * uniform


def largest_draws_inclusion(mean: np.ndarray, deviation: np.ndarray, m: int) -> np.ndarray:
    """Probability of each arm that its draw from N(mean, deviation²) is one of the m largest.

    Draws are independent. Let N₋ₖ(z) be the number of other draws above z, a sum of independent
    Bernoulli variables; then

        P(k is included) = ∫ P(N₋ₖ(z) < m) dΦₖ(z),

    where Φₖ is the distribution function of draw k. P(N₋ₖ < m) is computed at common nodes, from
    the distributions of the numbers of larger draws before k and after k, and taken to be linear
    in Φₖ between them. The sum over k, which is m, is imposed.

    Parameters
    ----------
    mean, deviation : ndarray of shape (n_rows, n_arms)
        The mean is -inf for arms that are not available.
    m : int
        Number of arms of a slate.

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
    """
    out = np.zeros(mean.shape)
    for row, (mu, s) in enumerate(zip(mean, deviation, strict=True)):
        there = np.flatnonzero(mu > -np.inf)
        out[row, there] = _one_row(mu[there] - mu[there].max(), s[there], m)
    return out


def _one_row(mu: np.ndarray, s: np.ndarray, m: int) -> np.ndarray:
    """Inclusion of available arms, whose largest mean is 0."""
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
    n_quantiles = min(MOST_QUANTILES, max(LEAST_QUANTILES, NODES // len(mu)))
    quantiles = np.arange(1, n_quantiles + 1) / (n_quantiles + 1)
    inner = (mu[:, None] + s[:, None] * ndtri(quantiles)).ravel()
    nodes = np.unique(np.concatenate([ends, inner]))
    found = np.zeros(len(mu))
    step = max(2, ENTRIES // (len(mu) * m))
    for first in range(0, len(nodes) - 1, step):
        z = nodes[first : first + step + 1]
        below = ndtr((z - mu[:, None]) / s[:, None])
        few = _fewer_than(m, 1.0 - below)
        found += ((few[:, 1:] + few[:, :-1]) / 2 * np.diff(below, axis=1)).sum(axis=1)
    probability[candidates] = np.clip(found, 0.0, 1.0)
    return _with_sum(probability, m)


def _fewer_than(m: int, above: np.ndarray) -> np.ndarray:
    """P(fewer than m of the others succeed), given probabilities of shape (n_arms, n_nodes)."""
    n_arms, n_nodes = above.shape
    before = np.empty((n_arms, m, n_nodes))  # P(i of the arms before k succeed), i < m
    count = np.zeros((m, n_nodes))
    count[0] = 1.0
    for k in range(n_arms):
        before[k] = count
        count = _with_one_more(count, above[k])
    out = np.empty((n_arms, n_nodes))
    count = np.zeros((m, n_nodes))
    count[0] = 1.0
    for k in range(n_arms - 1, -1, -1):
        at_most = np.cumsum(count, axis=0)  # P(at most i of the arms after k succeed)
        out[k] = (before[k] * at_most[::-1]).sum(axis=0)
        count = _with_one_more(count, above[k])
    return out


def _with_one_more(count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Distribution of a number of successes below m, after another trial."""
    more = count * (1.0 - p)
    more[1:] += count[:-1] * p
    return more


def _with_sum(probability: np.ndarray, m: int) -> np.ndarray:
    """Probabilities scaled to the sum m, none above 1."""
    for _ in range(20):
        free = probability < 1.0
        total = probability[free].sum()
        missing = m - (~free).sum()
        if not total > 0 or abs(total - missing) < 1e-12:
            break
        probability = np.where(free, np.minimum(probability * (missing / total), 1.0), 1.0)
    return probability


# Inverse gap weighting of single arms, for slates of m.
#
# For the mean rewards y of K arms, the inclusion probabilities π are those that maximise
#
#     Σ π_a y_a + (1/γ) Σ log π_a      over 0 < π_a ≤ 1, Σ π_a = m,
#
# which is π_a = min(1, 1/(γ (λ - y_a))) for the λ at which they sum to m. For m = 1 this is the
# log-barrier form of SquareCB (Foster, Gentile, Mohri & Zimmert, 2020, "Adapting to
# misspecification in contextual bandits"), in which all probabilities, the best arm's too, are
# inverse to a gap.
#
# For true mean rewards f and the slate S of the m best, optimality of π gives ⟨1_S - π, y⟩ ≤ (K -
# Σ_S 1/π_a)/γ, and for d = f - y, d_a ≤ 1/(γ π_a) + (γ/4) π_a d_a². Together
#
#     Σ_S f_a - Σ π_a f_a ≤ (K + m)/γ + (γ/2) Σ π_a (f_a - y_a)²,
#
# so that over T slates, each of whose rewards is seen, γ = √(K T/R) bounds the regret by a
# multiple of √(K T R), where R is the sum of the squared errors on the arms shown.


_HALVINGS = 80


def inverse_gap_inclusion(rewards: np.ndarray, m: int, gamma: np.ndarray) -> np.ndarray:
    """Inclusion probabilities π of shape (n_rows, n_arms), with one γ per row; infinity is greedy.

    Rewards are -inf for arms that are not available. Under γ = inf, ties share their probability.
    """
    available = rewards > -np.inf
    top = -np.partition(-rewards, m - 1, axis=1)[:, m - 1 : m]
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(available, gamma[:, None] * (rewards - top), -np.inf)
    excess[np.isnan(excess)] = 0.0  # inf times 0
    # the m-th best arm has 0, so that l = γ (λ - top) is between 1 and the number K - m + 1 of
    # arms that are not better, which then share one place
    low, high = np.ones(len(rewards)), available.sum(axis=1) - m + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _capped(middle, excess).sum(axis=1) > m
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return _capped((low + high) / 2, excess)


def _capped(level: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """min(1, 1/(l - e)), and 1 where l - e is not above 1."""
    return 1.0 / np.maximum(level[:, None] - excess, 1.0)


def systematic_sample(inclusion: np.ndarray, m: int, u: np.ndarray) -> np.ndarray:
    """Draw m different columns per row, each with its inclusion probability.

    Arms are laid end to end in random order, each as long as its probability, and every one that
    holds a point of v, v + 1, ..., v + m - 1 is taken (Madow, 1949).

    Parameters
    ----------
    inclusion : ndarray of shape (n_rows, n_arms)
        At most 1, with rows that sum to m.
    m : int
        Number of columns to draw.
    u : ndarray of shape (n_rows, n_arms + 1)
        Uniform numbers from [0, 1): one per arm for the order, and v.

    Returns
    -------
    ndarray of shape (n_rows, m)
        In no particular order.
    """
    order = np.argsort(u[:, :-1], axis=1)
    length = np.take_along_axis(inclusion, order, axis=1)
    end = np.cumsum(length, axis=1)
    end *= m / end[:, -1:]
    # number of points before the end of each arm; rounding must not lose the last
    points = np.ceil(end - u[:, -1:]).clip(0, m)
    points[:, -1] = m
    points = np.maximum.accumulate(points, axis=1)
    taken = np.diff(points, axis=1, prepend=0.0) > 0
    short = np.flatnonzero(taken.sum(axis=1) != m)
    for row in short:  # an arm of length 1 that rounding made hold two points
        missing = m - taken[row].sum()
        spare = np.flatnonzero(~taken[row])
        taken[row, spare[np.argsort(-length[row, spare], kind="stable")[:missing]]] = True
    places = np.nonzero(taken)[1].reshape(len(inclusion), m)
    return np.take_along_axis(order, places, axis=1)
