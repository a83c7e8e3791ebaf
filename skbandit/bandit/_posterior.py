"""Posterior of an arm's weights, w ~ N(mean, Σ): moments of θ = wᵀx, and updates by a step on θ.

Li, Chu, Langford, Moon & Wang (2012), eqs. 8-9 (eq. 8 prints xᵀΣ for Σx):

    mean ← mean + g Σx          Σ ← Σ - h Σx xᵀΣ      (only the diagonal of a diagonal Σ)

A full Σ is stored as L with Σ = L Lᵀ (Potter's square-root filter), which rounding cannot make
indefinite. `cov_factor` is the diagonal or L; the number of axes distinguishes them at compile
time. Each arm k has such a posterior for every prior scale e.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import numpy as np

from skbandit.bandit import _state, _units
from skbandit.bandit._merge import combine, pooled_moments
from skbandit.bandit._state import ArmWorkspace, ChoiceRule, Posterior, Prior
from skbandit.bandit._units import FIRST_RENEWAL
from skbandit.bandit.links import _linear as linear
from skbandit.bandit.links import (
    deviation,
    log_evidence,
    mean_index,
    mean_of_certain,
    mean_reward,
    step,
)
from skbandit.utils._changes import N_RESTARTS, RESTARTED_AT, begin_anew, have_changed
from skbandit.utils._compiled import (
    allocating_exactly,
    called_exactly,
    compiled_exactly,
    inlined_exactly,
)

WELL_KNOWN = 10
"""Events per arm, on average, from which arms without events start from the others."""

REACH = 6.0
"""Distances between the best arm and the average in a standard deviation of later arms' constant:
upper bounds, `alpha` = .2 of it above the average, are above the best arm."""

FEW_WEIGHTS = 12
"""Weights up to which the columns of a full Σ's factor are read faster than its rows."""

# Several prior scales side by side, mixed by evidence.
#
# Every arm learns one posterior per prior scale. Before scale e learns an event, its log
# predictive likelihood of the reward is added to its evidence: the prequential log likelihood of
# all rewards so far (Dawid, 1984), which for exact updates is the log marginal likelihood. With
# equal odds at first, Bayes' rule weighs the scales by the softmax of their evidence,
#
#     w_e ∝ exp(evidence_e),    m = Σ_e w_e m_e,    v = Σ_e w_e (v_e + (m_e - m)²),
#
# where m and v are the moments of the mixture of the N(m_e, v_e): Bayesian model averaging
# (Hoeting, Madigan, Raftery & Volinsky, 1999).


@compiled_exactly
def renew_shares(evidence: np.ndarray, share: np.ndarray) -> None:
    """Write the softmax of the evidence, with shares below `LEAST_SHARE` set to 0."""
    best = evidence[0]
    for e in range(1, len(evidence)):
        best = max(best, evidence[e])
    total = 0.0
    for e in range(len(evidence)):
        share[e] = math.exp(evidence[e] - best)
        total += share[e]
    kept = 0.0
    for e in range(len(evidence)):
        if share[e] < _state.LEAST_SHARE * total:
            share[e] = 0.0
        kept += share[e]
    for e in range(len(evidence)):
        share[e] /= kept


@inlined_exactly
def largest_lasting(evidence: np.ndarray, forgetting: np.ndarray) -> float:
    """Return largest evidence among the models that forget nothing."""
    best = -math.inf
    for e in range(len(evidence)):
        if forgetting[e] == 1.0:
            best = max(best, evidence[e])
    return best


@inlined_exactly
def mixed(
    w: float, m: float, v: float, origin: float, away: float, square: float, within: float
) -> tuple[float, float, float]:
    """Include a part N(m, v) of weight w in sums for `of_mixture`, taken about an origin.

    Any of the means serves as origin: then a single part keeps its moments to the bit, and little
    is lost by subtraction.
    """
    d = m - origin
    return away + w * d, square + w * d * d, within + w * v


@inlined_exactly
def of_mixture(origin: float, away: float, square: float, within: float) -> tuple[float, float]:
    """Return mean and variance of a mixture whose weights sum to 1."""
    return origin + away, within + max(square - away * away, 0.0)


@inlined_exactly
def moments(
    x: np.ndarray, mean: np.ndarray, cov_factor: np.ndarray, k: int, e: int, a: np.ndarray
) -> tuple[float, float]:
    """Mean and variance of θ = wᵀx for arm k under prior scale e; a full Σ leaves Lᵀx in `a`."""
    d = len(x)
    m = 0.0
    v = 0.0
    if cov_factor.ndim == 3:
        for i in range(d):
            m += x[i] * mean[e, k, i]
            v += x[i] * x[i] * cov_factor[e, k, i]
        return m, v
    if d > FEW_WEIGHTS:
        return _moments_of_many(x, mean, cov_factor, k, e, a)
    for i in range(d):
        m += x[i] * mean[e, k, i]
    whole = d - d % 4
    for j in range(0, whole, 4):  # columns side by side, without a way through memory
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(d):
            s0 += cov_factor[e, k, i, j] * x[i]
            s1 += cov_factor[e, k, i, j + 1] * x[i]
            s2 += cov_factor[e, k, i, j + 2] * x[i]
            s3 += cov_factor[e, k, i, j + 3] * x[i]
        a[j], a[j + 1], a[j + 2], a[j + 3] = s0, s1, s2, s3
        v = (((v + s0 * s0) + s1 * s1) + s2 * s2) + s3 * s3
    for j in range(whole, d):
        s = 0.0
        for i in range(d):
            s += cov_factor[e, k, i, j] * x[i]
        a[j] = s
        v += s * s
    return m, v


@called_exactly
def _moments_of_many(
    x: np.ndarray, mean: np.ndarray, cov_factor: np.ndarray, k: int, e: int, a: np.ndarray
) -> tuple[float, float]:
    """Return mean and variance by sums along the rows of L, as they lie in memory."""
    d = len(x)
    m = 0.0
    v = 0.0
    for j in range(d):
        a[j] = 0.0
    for i in range(d):
        m += x[i] * mean[e, k, i]
        for j in range(d):
            a[j] += cov_factor[e, k, i, j] * x[i]
    for j in range(d):
        v += a[j] * a[j]
    return m, v


@inlined_exactly
def mixed_moments(
    x: np.ndarray, posterior: Posterior, k: int, a: np.ndarray
) -> tuple[float, float]:
    """Mean and variance of θ for arm k under the mixture of prior scales; `a` is a buffer."""
    origin, away, square, within = 0.0, 0.0, 0.0, 0.0
    for e in range(len(posterior.share)):
        w = posterior.share[e]
        if w > 0.0:
            m, v = moments(x, posterior.mean, posterior.cov_factor, k, e, a)
            if w == 1.0:
                return m, v
            if within == 0.0:
                origin = m
            away, square, within = mixed(w, m, v, origin, away, square, within)
    return of_mixture(origin, away, square, within)


@inlined_exactly
def learn_row(
    X: np.ndarray, row: int, k: int, r: float, weight: float, posterior: Posterior, prior: Prior,
    rule: ChoiceRule, work: ArmWorkspace,
) -> None:  # fmt: skip
    """Learn reward r of arm k in the context of a row, and renew units that are due.

    The likelihood is raised to the power `weight`. `work.x` are the features of the row in present
    units; its buffer is overwritten.
    """
    mean, cov_factor, evidence = posterior.mean, posterior.cov_factor, posterior.evidence
    x, workspace, link = work.x, work.buffer, rule.link
    if len(posterior.reward):
        r = _units.reward_in_units(r, weight, posterior)
    if posterior.n_updates[k] == 0:
        begin(k, posterior, prior, link)
        posterior.learned[posterior.counters[_state.N_LEARNED_ARMS]] = k
        rank_new_arm(k, posterior.tie_order)
        posterior.counters[_state.N_LEARNED_ARMS] += 1
    posterior.n_updates[k] += 1
    posterior.counters[_state.N_EVENTS] += 1
    n_scales = len(evidence)
    origin, away, square, within, total = 0.0, 0.0, 0.0, 0.0, 0.0
    best = largest_lasting(evidence, prior.forgetting)
    for e in range(n_scales):
        _forget(k, e, mean, cov_factor, prior, workspace)
        m, v = moments(x, mean, cov_factor, k, e, workspace[0])
        if prior.checks and prior.forgetting[e] == 1.0:  # one that forgets follows a change
            w = math.exp(evidence[e] - best)
            total += w
            origin = m if within == 0.0 else origin
            away, square, within = mixed(w, m, v, origin, away, square, within)
        if n_scales > 1:
            evidence[e] += log_evidence(link, m, v, r, weight, prior.noise_variance)
        if v > 0.0:
            g, h = step(link, m, weight * v, r, prior.noise_variance)
            _absorb(x, k, e, weight * g, weight * h, v, mean, cov_factor, workspace)
    if n_scales > 1:
        renew_shares(evidence, posterior.share)
    if prior.checks:
        m, v = of_mixture(origin, away / total, square / total, within / total)
        expected = mean_reward(mean_index(m, v, rule), rule)
        least = deviation(link, expected, prior.noise_variance)
        n_events = posterior.counters[_state.N_EVENTS] - posterior.restarts[RESTARTED_AT]
        if have_changed(k, r - expected, least, n_events, posterior.check, posterior.restarts):
            start_anew(posterior, prior)
    _adapt(posterior, prior, prior.adaptive_mean, workspace)
    seen = posterior.seen_mean, posterior.seen_squares, posterior.seen_weight
    _units.count_row(X, row, weight, *seen)
    if prior.renews and _units.is_due(posterior):
        change_units(posterior, prior, prior.adaptive_mean, workspace)
    elif posterior.counters[_state.N_EVENTS] > FIRST_RENEWAL and _units.any_has_grown(
        posterior.rate, posterior.seen_squares, posterior.seen_weight[0], 1.0
    ):
        if _units.renew_late(
            X, row, posterior.center, posterior.rate, posterior.seen_mean, posterior.seen_squares,
            posterior.seen_weight[0], 1.0, workspace[0], workspace[1],
        ):  # fmt: skip
            _carry_all_over(posterior, prior, workspace)
            _adapt(posterior, prior, prior.adaptive_mean, workspace)


@called_exactly
def rank_new_arm(k: int, tie_order: np.ndarray) -> None:
    """Let an arm that a replay has ranked behind all follow those known by now."""
    if tie_order[k] >= len(tie_order):
        n_known = 0
        for order in tie_order:
            n_known += order < len(tie_order)
        tie_order[k] = n_known


@called_exactly
def start_anew(posterior: Posterior, prior: Prior) -> None:
    """Put all arms at their prior, as rewards have changed; units of features and rewards stay."""
    for e in range(len(posterior.mean)):
        for k in range(posterior.mean.shape[1]):
            for i in range(posterior.mean.shape[2]):
                _place(
                    k, e, i, prior.mean[i], prior.variance[e, i], posterior.mean,
                    posterior.cov_factor,
                )  # fmt: skip
    begin_anew(
        posterior.check, posterior.restarts, posterior.evidence, posterior.share,
        posterior.counters[_state.N_EVENTS],
    )  # fmt: skip


@called_exactly
def _absorb(
    x: np.ndarray, k: int, e: int, g: float, h: float, v: float, mean: np.ndarray,
    cov_factor: np.ndarray, workspace: np.ndarray,
) -> None:  # fmt: skip
    """Update weights by a step (g, h) on θ, right after `moments` with the buffer workspace[0]."""
    d = len(x)
    if cov_factor.ndim == 3:
        for i in range(d):
            sx = cov_factor[e, k, i] * x[i]
            mean[e, k, i] += g * sx
            cov_factor[e, k, i] *= 1.0 - h * sx * x[i]
        return
    # with a = Lᵀx: L ← L - c L a aᵀ, where (1 - c v)² = 1 - h v
    a = workspace[0]
    c = h / (1.0 + math.sqrt(max(0.0, 1.0 - h * v)))
    for i in range(d):
        sx = 0.0
        for j in range(d):
            sx += cov_factor[e, k, i, j] * a[j]
        mean[e, k, i] += g * sx
        for j in range(d):
            cov_factor[e, k, i, j] -= c * sx * a[j]


@called_exactly
def _forget(
    k: int, e: int, mean: np.ndarray, cov_factor: np.ndarray, prior: Prior, workspace: np.ndarray
) -> None:
    """Discount the evidence of arm k: Λ ← γ Λ + (1 - γ) Λ₀ for its precision, likewise Λ mean.

    Of a full Σ that is Σ ← Σ/γ, followed by an observation of each coordinate's prior mean with
    precision (1 - γ)/variance.
    """
    gamma, d = prior.forgetting[e], mean.shape[2]
    if gamma == 1.0:
        return
    if cov_factor.ndim == 3:
        for i in range(d):
            if cov_factor[e, k, i] > 0.0:
                kept = gamma / cov_factor[e, k, i]
                total = kept + (1.0 - gamma) / prior.variance[e, i]
                mean[e, k, i] += (1.0 - kept / total) * (prior.mean[i] - mean[e, k, i])
                cov_factor[e, k, i] = 1.0 / total
        return
    unit = workspace[2]
    for i in range(d):
        unit[i] = 0.0
        for j in range(d):
            cov_factor[e, k, i, j] /= math.sqrt(gamma)
    for i in range(d):
        unit[i] = 1.0
        m, v = moments(unit, mean, cov_factor, k, e, workspace[0])
        if v > 0.0:
            g, h = linear.step(m, v, prior.mean[i], prior.variance[e, i] / (1.0 - gamma))
            _absorb(unit, k, e, g, h, v, mean, cov_factor, workspace)
        unit[i] = 0.0


@called_exactly
def _adapt(
    posterior: Posterior, prior: Prior, adaptive_mean: bool | None, workspace: np.ndarray
) -> None:
    """Adapt arms without events to the others, if the prior is adaptive."""
    if adaptive_mean is not None:
        n = posterior.counters[_state.N_LEARNED_ARMS]
        if n < posterior.mean.shape[1]:
            learned = posterior.learned[:n]
            for e in range(len(posterior.share)):
                renew_prior(
                    posterior.mean, posterior.cov_factor, e, posterior.n_updates, learned, prior,
                    workspace,
                )  # fmt: skip


@compiled_exactly
def change_units(
    posterior: Posterior, prior: Prior, adaptive_mean: bool | None, workspace: np.ndarray
) -> None:
    """Renew the units of rewards and features, and express all posterior in them."""
    if len(posterior.reward):
        _units.renew_reward(posterior, prior)
    _units.renew(
        posterior.center, posterior.rate, posterior.seen_mean, posterior.seen_squares,
        posterior.seen_weight[0], 1.0, workspace[0], workspace[1],
    )  # fmt: skip
    _carry_all_over(posterior, prior, workspace)
    _adapt(posterior, prior, adaptive_mean, workspace)


@called_exactly
def _carry_all_over(posterior: Posterior, prior: Prior, workspace: np.ndarray) -> None:
    """Express the weights of all arms in new units, by f and s in the first rows of a buffer."""
    mean, factor, shift = posterior.mean, workspace[0], workspace[1]
    n_features, centered = len(posterior.rate), len(posterior.center) > 0
    for e in range(len(mean)):
        for k in range(mean.shape[1]):
            if posterior.n_updates[k] > 0:
                _units.carry_over(
                    k, e, mean, posterior.cov_factor, prior, factor, shift, n_features, centered
                )


@called_exactly
def _renew_start(e: int, posterior: Posterior, prior: Prior) -> None:
    """Let arms without events be chosen as an average of the others, once these are well known.

    As of n draws, and the prior as one more, each weight has the mean μ̄ of the arms' posterior
    means μ_k, and the variance [V + Σ_k (μ_k - μ̄)²]/n. In any context, the mean of θ is then an
    average, too, and never the largest. The constant's variance is at least so large that upper
    bounds, with the default `alpha`, reach the best arm's.
    """
    n, mean, start = posterior.counters[_state.N_LEARNED_ARMS], posterior.mean, posterior.start
    learned, last = posterior.learned, posterior.mean.shape[2] - 1
    n_features = len(posterior.rate)
    uses_arms = prior.averages and n > 0 and posterior.counters[_state.N_EVENTS] >= WELL_KNOWN * n
    for i in range(last + 1):
        start[_state.START_MEAN, e, i], start[_state.START_VARIANCE, e, i] = prior.mean[i], 0.0
        if uses_arms and (i >= n_features or posterior.rate[i] > 0.0):
            total, square, best = 0.0, prior.variance[e, i], -math.inf
            for j in range(n):
                total += mean[e, learned[j], i]
                best = max(best, mean[e, learned[j], i])
            for j in range(n):
                away = mean[e, learned[j], i] - total / n
                square += away * away
            start[_state.START_MEAN, e, i] = total / n
            start[_state.START_VARIANCE, e, i] = square / n
            if i == last and last == n_features:
                reach = REACH * (best - total / n)
                start[_state.START_VARIANCE, e, i] = max(square / n, reach * reach)


@compiled_exactly
def settle(posterior: Posterior, prior: Prior) -> None:
    """Reset unseen arms to the mean and spread of the learned arms."""
    if prior.averages:
        start, n_arms = posterior.start, posterior.mean.shape[1]
        for e in range(len(posterior.mean)):
            _renew_start(e, posterior, prior)
            for k in range(n_arms if posterior.counters[_state.N_LEARNED_ARMS] < n_arms else 0):
                if posterior.n_updates[k] == 0:
                    for i in range(posterior.mean.shape[2]):
                        variance = start[_state.START_VARIANCE, e, i]
                        if variance == 0.0:
                            variance = prior.variance[e, i]
                        _place(
                            k, e, i, start[_state.START_MEAN, e, i], variance, posterior.mean,
                            posterior.cov_factor,
                        )  # fmt: skip


@compiled_exactly
def begin(k: int, posterior: Posterior, prior: Prior, link: int) -> None:
    """Prepare for the first event of an arm, if those before it made its start an average.

    It keeps this mean, which a failure then lowers, and has the prior's variance: one that is
    chosen is tried some times, until it is known to be worse. The mean reward of a probit model
    includes that variance; the constant makes up for it.
    """
    if prior.averages:
        start, last = posterior.start, posterior.mean.shape[2] - 1
        for e in range(len(posterior.mean)):
            _renew_start(e, posterior, prior)
            v = 0.0
            for i in range(last + 1):
                center = start[_state.START_MEAN, e, i]
                if start[_state.START_VARIANCE, e, i] > 0.0:
                    v += prior.variance[e, i]
                    if i == last and last == len(posterior.rate):
                        center = mean_of_certain(link, center, v)
                _place(
                    k, e, i, center, prior.variance[e, i], posterior.mean, posterior.cov_factor
                )  # fmt: skip


@called_exactly
def _place(
    k: int, e: int, i: int, center: float, variance: float, mean: np.ndarray, cov_factor: np.ndarray
) -> None:
    """Set mean and variance of a weight, which then has no covariance."""
    mean[e, k, i] = center
    if cov_factor.ndim == 3:
        cov_factor[e, k, i] = variance
    else:
        for j in range(mean.shape[2]):
            cov_factor[e, k, i, j] = 0.0
        cov_factor[e, k, i, i] = math.sqrt(variance)


@called_exactly
def variance_in_mean(v: float, t: int, posterior: Posterior, rule: ChoiceRule) -> float:
    """Return Variance of an arm without events by which its mean reward is computed.

    None, if the arm starts from the average of others: by its uncertainty alone, a rare reward
    would seem less rare.
    """
    drawn = t >= 0 and _state.BY_SPREAD[rule.exploration]
    return v if v == 0.0 or drawn or posterior.start[_state.START_VARIANCE, 0, -1] == 0.0 else 0.0


@allocating_exactly
def renew_prior(
    mean: np.ndarray, cov_factor: np.ndarray, e: int, n_updates: np.ndarray, learned: np.ndarray,
    prior: Prior, workspace: np.ndarray,
) -> None:  # fmt: skip
    """Reset arms without events to the adaptive prior (section 5.2), under prior scale e.

    It has the mean μ̄ of the posterior means μ_k of the n arms with events, named
    by `learned`, and the covariance [Σ₀ + Σ_k (μ_k - μ̄)(μ_k - μ̄)ᵀ] / n, which counts the prior
    variance as one arm so that it cannot vanish. Before two arms have events, it is the prior
    given. `workspace` is the buffer of an `ArmWorkspace`.
    """
    n, d = len(learned), mean.shape[2]
    center, variance = workspace[2], workspace[3]
    adaptive_variance = prior.adaptive_variance and n >= 2
    for i in range(d):
        center[i] = 0.0
        for j in range(n):
            center[i] += mean[e, learned[j], i]
        center[i] /= max(n, 1)
        variance[i] = prior.variance[e, i]
        if adaptive_variance:
            for j in range(n):
                away = mean[e, learned[j], i] - center[i]
                variance[i] += away * away
            variance[i] /= n
    if cov_factor.ndim == 4:
        factor = np.zeros((d, d))
        for i in range(d):
            factor[i, i] = variance[i]
            for l in range(d):  # noqa: E741
                if adaptive_variance and l != i:
                    for j in range(n):
                        away = mean[e, learned[j], i] - center[i]
                        factor[i, l] += away * (mean[e, learned[j], l] - center[l])
                    factor[i, l] /= n
        root = np.linalg.cholesky(factor)
    for k in range(mean.shape[1]):
        if n_updates[k] == 0:
            for i in range(d):
                mean[e, k, i] = center[i] if prior.adaptive_mean and n >= 2 else prior.mean[i]
                if cov_factor.ndim == 3:
                    cov_factor[e, k, i] = variance[i]
                else:
                    for j in range(d):
                        cov_factor[e, k, i, j] = root[i, j]


def _prior_factor(prior: Prior, full: bool) -> np.ndarray:
    """Return `cov_factor` of an arm at its prior."""
    d = prior.variance.shape[1]
    return np.sqrt(prior.variance)[:, :, None] * np.eye(d) if full else prior.variance


def with_arms(posterior: Posterior, labels: list[Any], prior: Prior) -> Posterior:
    """Return a copy with new arms where they start; greedy choices prefer earlier arms."""
    larger = _state.with_room(posterior.copy(), labels)
    mean, cov_factor, n_updates = larger.mean, larger.cov_factor, larger.n_updates
    if prior.adaptive_mean is None:
        restart(larger, n_updates == 0, prior)
        settle(larger, prior)
    else:
        learned = larger.learned[: larger.counters[_state.N_LEARNED_ARMS]]
        workspace = larger.workspace().buffer
        for e in range(len(mean)):
            renew_prior(mean, cov_factor, e, n_updates, learned, prior, workspace)
    return larger


def restart(posterior: Posterior, arms: np.ndarray, at: Prior) -> None:
    """Put arms, by a mask or by numbers, at a prior."""
    mean = np.broadcast_to(at.mean, at.variance.shape)
    posterior.mean[:, arms] = mean[:, None]
    posterior.cov_factor[:, arms] = _prior_factor(at, posterior.cov_factor.ndim == 4)[:, None]


def forget_before_restart(
    base: Any, workers: list[Any], prior: Any, start_anew: Any, learned: Any
) -> None:
    """Put the base, and workers that did not start anew as others did, at the prior.

    `learned` returns the arrays of a state that hold what is forgotten, and the units in which it
    is. What contexts and rewards were seen is kept.
    """
    latest = max(state.restarts[N_RESTARTS] for state in workers)
    if latest > base.restarts[N_RESTARTS]:
        start_anew(base, prior)
        for state in workers:
            if state.restarts[N_RESTARTS] < latest:
                for array, of_base in zip(learned(state), learned(base), strict=True):
                    array[...] = of_base


def sum_evidence(
    result: Any, base: Any, workers: list[Any], common: np.ndarray, forgetting: np.ndarray
) -> None:
    """Add up the evidence of workers, and what merging adds by the terms in log Z of `_merge`.

    A model that forgets is taken to gain as those that do not.
    """
    result.check[:] = 0.0
    result.restarts[:] = max((state.restarts.tolist() for state in (base, *workers)), key=max)
    lasting = forgetting == 1.0
    for worker in workers:
        result.evidence[:] += worker.evidence - base.evidence
    if lasting.any():
        result.evidence[:] += np.where(lasting, common, common[lasting].mean())
    if len(result.share) > 1:
        renew_shares(result.evidence, result.share)


def merged(
    base: Posterior, workers: list[Posterior], prior: Prior, link: int
) -> tuple[Posterior, np.ndarray]:
    """Return posterior by what workers have learned since a base, all of the same arms.

    See `_merge`. All are changed: they are expressed in units of the contexts that any
    of them has learned.

    Returns
    -------
    tuple of Posterior and ndarray of shape (n_workers, n_arms)
        And whether a worker knows less of an arm than the base did.
    """
    names = attrgetter("mean", "cov_factor", "evidence", "center", "rate")
    forget_before_restart(
        base, workers, prior, start_anew, lambda of: (*names(of), of.reward[: _state.MEAN])
    )
    states, n_events = [base, *workers], base.counters[_state.N_EVENTS]
    total = n_events + sum(worker.counters[_state.N_EVENTS] - n_events for worker in workers)
    pooled = pooled_moments(
        *((state.seen_mean, state.seen_squares, state.seen_weight) for state in states)
    )
    if len(base.reward):
        *of_rewards, _ = pooled_moments(
            *(
                (state.reward[2:3] + 0, state.reward[3:] + 0, state.seen_weight + 0)
                for state in states
            )
        )
    for state in states:
        state.seen_mean[:], state.seen_squares[:], state.seen_weight[:] = pooled
        if len(state.reward):
            state.reward[[_state.MEAN]], state.reward[[_state.SQUARES]] = of_rewards
        if len(state.rate) and total >= FIRST_RENEWAL:
            change_units(state, prior, prior.adaptive_mean, state.workspace().buffer)
        elif len(state.reward):
            _units.renew_reward(state, prior)
    for k in np.flatnonzero(base.n_updates == 0).tolist():  # from which workers' arms began, nearly
        begin(k, base, prior, link)
        for state in workers:
            if state.n_updates[k] == 0:
                state.mean[:, k], state.cov_factor[:, k] = base.mean[:, k], base.cov_factor[:, k]
    n = [worker.n_updates - base.n_updates for worker in workers]
    moved = np.flatnonzero(np.sum(n, axis=0))
    start = _prior_factor(prior, base.cov_factor.ndim == 4)
    center = np.where((base.n_updates > 0)[:, None], prior.mean, base.mean)[:, moved]

    def of_arms(state: Posterior) -> tuple[np.ndarray, np.ndarray]:
        return state.mean[:, moved].swapaxes(0, 1), state.cov_factor[:, moved].swapaxes(0, 1)

    sums, quadratic, log_determinant, lost = combine(
        of_arms(base),
        [of_arms(worker) for worker in workers],
        (center.swapaxes(0, 1), np.broadcast_to(start, (len(moved), *start.shape))),
        [events[moved, None] for events in n],
        prior.forgetting,
    )
    result = base.copy()
    for array, of_moved in zip((result.mean, result.cov_factor), sums, strict=True):
        array[:, moved] = of_moved.swapaxes(0, 1)
    common = (quadratic - log_determinant).sum(axis=0) / 2
    sum_evidence(result, base, workers, common, prior.forgetting)
    fresh, n_known = moved[base.n_updates[moved] == 0], base.counters[_state.N_LEARNED_ARMS]
    result.learned[n_known : n_known + len(fresh)] = fresh
    result.n_updates[:] += np.sum(n, axis=0)
    result.counters[_state.N_LEARNED_ARMS] += len(fresh)
    result.counters[_state.N_EVENTS] = total
    settle(result, prior)
    begun = (base.n_updates > 0) & ((n_events >= FIRST_RENEWAL) | (len(base.rate) == 0))
    less = np.zeros((len(workers), len(begun)), dtype=bool)
    less[:, moved] = lost
    return result, less & begun
