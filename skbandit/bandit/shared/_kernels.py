"""A shared model in compiled code: moments of arms in a context, and learning."""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._posterior import mixed, of_mixture, rank_new_arm, renew_shares
from skbandit.bandit._state import N_EVENTS, ChoiceRule
from skbandit.bandit._units import FIRST_RENEWAL, any_has_grown, count_row, show
from skbandit.bandit.links import deviation, log_evidence, mean_index, mean_reward, step
from skbandit.bandit.shared import _bilinear, _state
from skbandit.bandit.shared._bilinear import noise_scale
from skbandit.bandit.shared._state import SharedPosterior, SharedPrior, Workspace
from skbandit.utils._changes import RESTARTED_AT, have_changed
from skbandit.utils._compiled import called_exactly


@called_exactly
def look(X: np.ndarray, row: int, posterior: SharedPosterior, work: Workspace) -> None:
    """Prepare for the moments of arms in the context of a row."""
    show(work.x, X, row, posterior.units.center, posterior.units.rate)
    for e in range(len(posterior.share)):
        if posterior.share[e] > 0.0:
            _contract(e, posterior, work)


@called_exactly
def _contract(e: int, posterior: SharedPosterior, work: Workspace) -> None:
    """Prepare for moments under one prior scale."""
    _bilinear.contract(
        work.x, posterior.mean[0, e], posterior.cov_factor[e], work.u[e], work.half[e], work.C[e]
    )


@called_exactly
def fill_moments(arms: np.ndarray, posterior: SharedPosterior, work: Workspace) -> None:
    """Write the moments of some arms in the context looked at to work.m and work.v."""
    for e in range(len(posterior.share)):
        if posterior.share[e] > 0.0:
            _fill_moments(arms, e, posterior, work)
    _mix(arms, posterior.share, posterior.noise, work)


@called_exactly
def _mix(arms: np.ndarray, share: np.ndarray, noise: np.ndarray, work: Workspace) -> None:
    """Write the moments of some arms under the mixture of prior scales."""
    sigma = noise_scale(noise)
    if sigma == 0.0:
        sigma = 1.0
    for k in arms:
        origin, away, square, within = 0.0, 0.0, 0.0, 0.0
        for e in range(len(share)):
            if share[e] > 0.0:
                m, v = work.m_of_scale[e, k], work.v_of_scale[e, k]
                if within == 0.0:
                    origin = m
                # variances are multiples of that of the noise
                d = (m - origin) / sigma
                away, square, within = mixed(share[e], d, v, 0.0, away, square, within)
        away, work.v[k] = of_mixture(0.0, away, square, within)
        work.m[k] = origin + sigma * away


@called_exactly
def _fill_moments(arms: np.ndarray, e: int, posterior: SharedPosterior, work: Workspace) -> None:
    """Write the moments of some arms under one prior scale."""
    full = posterior.cov_factor.ndim == 4
    _bilinear.arm_moments(
        arms, work.x, work.u[e], work.C[e], full, posterior.Z, posterior.own_mean[:, e],
        posterior.own_variance[:, e], work.block, work.m_of_scale[e], work.v_of_scale[e],
    )  # fmt: skip


@called_exactly
def learn(
    X: np.ndarray, row: int, k: int, r: float, weight: float, posterior: SharedPosterior,
    prior: SharedPrior, rule: ChoiceRule, work: Workspace,
) -> None:  # fmt: skip
    """Learn reward r of arm k in the context of a row, which was looked at."""
    counters = posterior.counters
    if len(posterior.reward):  # relative to the first one, so that their origin does not matter
        if posterior.reward[0] != posterior.reward[0]:
            posterior.reward[0] = r
        r -= posterior.reward[0]
    if posterior.n_updates[k] == 0:
        rank_new_arm(k, posterior.tie_order)
        _state.begin(k, posterior, prior)
    posterior.n_updates[k] += 1
    counters[N_EVENTS] += 1
    work.arm[0] = k
    evidence, n_scales = posterior.evidence, len(posterior.evidence)
    for e in range(n_scales):
        if _discount(k, e, posterior, prior, work) or posterior.share[e] == 0.0:
            _contract(e, posterior, work)
        _fill_moments(work.arm, e, posterior, work)
    if prior.checks:
        _mix_lasting(evidence, prior.forgetting, posterior.noise, work)
    elif prior.estimates_noise:
        _mix(work.arm, posterior.share, posterior.noise, work)
    for e in range(n_scales):
        m, v = work.m_of_scale[e, k], work.v_of_scale[e, k]
        if n_scales > 1 and prior.estimates_noise:
            evidence[e] += _bilinear.residual_evidence(m, v, r, weight, posterior.noise)
        elif n_scales > 1:
            evidence[e] += log_evidence(rule.link, m, v, r, weight, prior.noise_variance)
        if v > 0.0:
            g, h = step(rule.link, m, weight * v, r, prior.noise_variance)
            _bilinear.absorb(
                work.x, posterior.Z[k], k, weight * g, weight * h, posterior.mean[0, e],
                posterior.cov_factor[e], posterior.own_mean[:, e], posterior.own_variance[:, e],
                work.half[e], work.a,
            )  # fmt: skip
    if prior.estimates_noise:
        _bilinear.add_residual(work.m[k], work.v[k], r, weight, posterior.noise)
    if n_scales > 1:
        renew_shares(evidence, posterior.share)
    if prior.checks:
        _check(k, r, posterior, prior, rule, work)
    units = posterior.units
    count_row(X, row, 1.0, units.mean, units.squares, units.seen)
    n, due, norm = units.seen[0], units.seen[1], math.sqrt(len(units.rate))
    varies = FIRST_RENEWAL < due < math.inf and any_has_grown(units.rate, units.squares, n, norm)
    if n >= due or varies:
        _state.renew_units(posterior, prior, work.factor, work.shift, X, row)


@called_exactly
def _mix_lasting(
    evidence: np.ndarray, forgetting: np.ndarray, noise: np.ndarray, work: Workspace
) -> None:
    """Write the moments of an arm without a model that forgets, which follows a change."""
    for e in range(len(evidence)):
        work.share[e] = evidence[e] if forgetting[e] == 1.0 else -math.inf
    renew_shares(work.share, work.share)
    _mix(work.arm, work.share, noise, work)


@called_exactly
def _check(
    k: int, r: float, posterior: SharedPosterior, prior: SharedPrior, rule: ChoiceRule,
    work: Workspace,
) -> None:  # fmt: skip
    """Start anew if rewards of an arm are no longer what was predicted."""
    expected = mean_reward(mean_index(work.m[k], work.v[k], rule), rule)
    least = deviation(rule.link, expected, prior.noise_variance)
    if prior.estimates_noise:
        least = noise_scale(posterior.noise)
    n_events = posterior.counters[N_EVENTS] - posterior.restarts[RESTARTED_AT]
    if have_changed(k, r - expected, least, n_events, posterior.check, posterior.restarts):
        _state.start_anew(posterior, prior)


@called_exactly
def _discount(
    k: int, e: int, posterior: SharedPosterior, prior: SharedPrior, work: Workspace
) -> bool:
    """Discount earlier evidence of one model, and once that about the noise.

    Returns
    -------
    bool
        Whether the model of all arms has changed.
    """
    gamma = prior.forgetting[e]
    if gamma == 1.0:
        return False
    _bilinear.forget_own(
        k, gamma, posterior.own_mean[:, e], posterior.own_variance[:, e], prior.own_variance[e]
    )
    if e == 0:
        posterior.noise[0] *= gamma
        posterior.noise[1] *= gamma
    n = 1  # events after which evidence about B is discounted
    if posterior.cov_factor.ndim == 4 and gamma > _bilinear.LEAST_KEPT:
        n = int(math.log(_bilinear.LEAST_KEPT) / math.log(gamma))
    if posterior.counters[N_EVENTS] % n:
        return False
    _bilinear.forget(
        gamma**n, posterior.mean[0, e], posterior.cov_factor[e], prior.variance[e],
        prior.constant_variance[e], work.a,
    )  # fmt: skip
    return True
