"""A shared model in compiled code: moments of arms in a context, and learning."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import N_EVENTS, Rule
from skbandit.bandit._units import count, show
from skbandit.bandit.links import step
from skbandit.bandit.shared._bilinear import (
    absorb,
    add_residual,
    arm_moments,
    change_units,
    contract,
    forget,
)
from skbandit.bandit.shared._state import (
    N_RANKED,
    SharedBeliefs,
    SharedPrior,
    Workspace,
    renew_if_due,
)
from skbandit.utils._compiled import called_exactly


@called_exactly
def look(X: np.ndarray, row: int, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Prepare for the moments of arms in the context of a row."""
    show(work.x, X, row, beliefs.units.centre, beliefs.units.rate)
    contract(work.x, beliefs.mean, beliefs.cov_factor, work.u, work.half, work.C)


@called_exactly
def fill_moments(arms: np.ndarray, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Write the moments of some arms in the context looked at to work.m and work.v."""
    full = beliefs.cov_factor.ndim == 3
    arm_moments(
        arms, work.u, work.C, full, beliefs.Z, beliefs.offset_mean, beliefs.offset_variance,
        work.block, work.m, work.v,
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
    _discount(k, prior.forgetting, beliefs, prior, work)
    work.arm[0] = k
    fill_moments(work.arm, beliefs, work)
    m, v = work.m[k], work.v[k]
    if prior.estimates_noise:
        add_residual(m, v, r, weight, beliefs.noise)
    if v > 0.0:
        g, h = step(m, weight * v, r, rule.link, prior.noise_variance)
        absorb(
            work.x, beliefs.Z[k], k, weight * g, weight * h, beliefs.mean, beliefs.cov_factor,
            beliefs.offset_mean, beliefs.offset_variance, work.half, work.a,
        )  # fmt: skip
    units = beliefs.units
    count(X, row, 1.0, units.mean, units.squares, units.seen)
    if renew_if_due(units, work.factor, work.shift):
        change_units(work.factor, work.shift, beliefs.mean, beliefs.cov_factor, prior.variance)


@called_exactly
def _discount(
    k: int, gamma: float | None, beliefs: SharedBeliefs, prior: SharedPrior, work: Workspace
) -> None:
    """Discount earlier evidence, and look at the context again."""
    if gamma is not None:  # else the compiler leaves the rest out
        forget(
            k, gamma, beliefs.mean, beliefs.cov_factor, prior.variance, prior.constant_variance,
            beliefs.offset_mean, beliefs.offset_variance, prior.offset_variance, work.a,
        )  # fmt: skip
        beliefs.noise[0] *= gamma
        beliefs.noise[1] *= gamma
        contract(work.x, beliefs.mean, beliefs.cov_factor, work.u, work.half, work.C)
