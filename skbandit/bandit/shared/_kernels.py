"""A shared model in compiled code: moments of arms in a context, and learning."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._posterior import mixed, of_mixture, renew_shares
from skbandit.bandit._state import N_EVENTS, Rule
from skbandit.bandit._units import count, show
from skbandit.bandit.links import log_predictive, step
from skbandit.bandit.shared._bilinear import (
    absorb,
    add_residual,
    arm_moments,
    contract,
    forget,
    noise_scale,
    residual_evidence,
)
from skbandit.bandit.shared._state import (
    N_RANKED,
    SharedBeliefs,
    SharedPrior,
    Workspace,
    renew_units,
)
from skbandit.utils._compiled import called_exactly


@called_exactly
def look(X: np.ndarray, row: int, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Prepare for the moments of arms in the context of a row."""
    show(work.x, X, row, beliefs.units.center, beliefs.units.rate)
    for e in range(len(beliefs.share)):
        if beliefs.share[e] > 0.0:
            _contract(e, beliefs, work)


@called_exactly
def _contract(e: int, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Prepare for moments under one prior scale."""
    contract(work.x, beliefs.mean[0, e], beliefs.cov_factor[e], work.u[e], work.half[e], work.C[e])


@called_exactly
def fill_moments(arms: np.ndarray, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Write the moments of some arms in the context looked at to work.m and work.v."""
    for e in range(len(beliefs.share)):
        if beliefs.share[e] > 0.0:
            _fill_moments(arms, e, beliefs, work)
    _mix(arms, beliefs, work)


@called_exactly
def _mix(arms: np.ndarray, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Write the moments of some arms under the mixture of prior scales."""
    share, sigma = beliefs.share, noise_scale(beliefs.noise)
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
def _fill_moments(arms: np.ndarray, e: int, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Write the moments of some arms under one prior scale."""
    full = beliefs.cov_factor.ndim == 4
    arm_moments(
        arms, work.x, work.u[e], work.C[e], full, beliefs.Z, beliefs.own_mean[:, e],
        beliefs.own_variance[:, e], work.block, work.m_of_scale[e], work.v_of_scale[e],
    )  # fmt: skip


@called_exactly
def learn(
    X: np.ndarray, row: int, k: int, r: float, weight: float, beliefs: SharedBeliefs,
    prior: SharedPrior, rule: Rule, work: Workspace,
) -> None:  # fmt: skip
    """Learn reward r of arm k in the context of a row, which was looked at."""
    counters = beliefs.counters
    if beliefs.tie_order[k] >= len(beliefs.tie_order):  # a new arm follows the known ones
        beliefs.tie_order[k] = counters[N_RANKED]
        counters[N_RANKED] += 1
    beliefs.n_updates[k] += 1
    counters[N_EVENTS] += 1
    work.arm[0] = k
    evidence, n_scales = beliefs.evidence, len(beliefs.evidence)
    for e in range(n_scales):
        _discount(k, e, prior.forgetting, beliefs, prior, work)
        if prior.forgetting is not None or beliefs.share[e] == 0.0:
            _contract(e, beliefs, work)
        _fill_moments(work.arm, e, beliefs, work)
    for e in range(n_scales):
        m, v = work.m_of_scale[e, k], work.v_of_scale[e, k]
        if n_scales > 1 and prior.estimates_noise:
            evidence[e] += residual_evidence(m, v, r, weight, beliefs.noise)
        elif n_scales > 1:
            evidence[e] += weight * log_predictive(m, v, r, rule.link, prior.noise_variance)
        if v > 0.0:
            g, h = step(m, weight * v, r, rule.link, prior.noise_variance)
            absorb(
                work.x, beliefs.Z[k], k, weight * g, weight * h, beliefs.mean[0, e],
                beliefs.cov_factor[e], beliefs.own_mean[:, e], beliefs.own_variance[:, e],
                work.half[e], work.a,
            )  # fmt: skip
    if prior.estimates_noise:
        _mix(work.arm, beliefs, work)
        add_residual(work.m[k], work.v[k], r, weight, beliefs.noise)
    if n_scales > 1:
        renew_shares(evidence, beliefs.share)
    units = beliefs.units
    count(X, row, 1.0, units.mean, units.squares, units.seen)
    renew_units(beliefs, prior, work.factor, work.shift)


@called_exactly
def _discount(
    k: int, e: int, gamma: float | None, beliefs: SharedBeliefs, prior: SharedPrior,
    work: Workspace,
) -> None:  # fmt: skip
    """Discount earlier evidence under one prior scale, and once that about the noise."""
    if gamma is not None:  # else the compiler leaves the rest out
        forget(
            k, gamma, beliefs.mean[0, e], beliefs.cov_factor[e], prior.variance[e],
            prior.constant_variance[e], beliefs.own_mean[:, e], beliefs.own_variance[:, e],
            prior.own_variance[e], work.a,
        )  # fmt: skip
        if e == 0:
            beliefs.noise[0] *= gamma
            beliefs.noise[1] *= gamma
