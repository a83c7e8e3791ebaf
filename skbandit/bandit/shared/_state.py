"""State of a shared model as plain arrays, the form compiled code takes."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from skbandit.bandit._merge import combine, pooled_moments, pooled_sums
from skbandit.bandit._posterior import WELL_KNOWN, forget_before_restart, sum_evidence
from skbandit.bandit._state import N_EVENTS, NO_CHECK, with_arms_of, with_room
from skbandit.bandit._units import FIRST_RENEWAL, renew, renew_late
from skbandit.bandit.shared._bilinear import BLOCK, change_units, noise_scale
from skbandit.utils._changes import begin_anew
from skbandit.utils._compiled import called_exactly, compiled_exactly

WIDE = 1e4
"""Prior variance of the constant if the noise of rewards is estimated, in multiples of it: a mean
reward of a few hundred standard deviations is no surprise."""


class Units(NamedTuple):
    """Units of features (`skbandit.bandit._units`), of √d standard deviations: |x|² is about 1.

    They are renewed when the number of rows has doubled, and updated in place.
    """

    center: np.ndarray  # (d,)
    rate: np.ndarray  # (d,), 0 for features that do not count
    mean: np.ndarray  # (d,)
    squares: np.ndarray  # (d,), sums of squared deviations
    seen: np.ndarray  # (2,): rows seen, and the number at which a renewal is due


def new_units(d: int, standardize: bool, first_renewal: float = FIRST_RENEWAL) -> Units:
    """Return units before the first row, or those in which features stay as they are."""
    rate, due = (0.0, first_renewal) if standardize else (1.0, np.inf)
    return Units(np.zeros(d), np.full(d, rate), np.zeros(d), np.zeros(d), np.array([0.0, due]))


@compiled_exactly
def renew_if_due(units: Units, factor: np.ndarray, shift: np.ndarray) -> bool:
    """Renew units that are due, and write the change: x = factor x' + shift for the new x'."""
    center, rate, mean, squares, seen = units
    if seen[0] < seen[1]:
        return False
    seen[1] = 2.0 * seen[0]
    norm = math.sqrt(len(rate))
    renew(center, rate, mean, squares, seen[0], norm, factor, shift)
    return True


class SharedPosterior(NamedTuple):
    """Posteriors of B and of the arms' own weights, and all else that learning updates in place."""

    mean: np.ndarray  # (1, n_scales, dx, dz): as of arms, of which this is one model of all
    cov_factor: np.ndarray  # (n_scales, dx, dz, dx dz), or (n_scales, dx, dz) if diagonal
    units: Units  # of the features of contexts
    Z: np.ndarray  # (n_arms, dz), features of arms in their units, the constant last; fixed
    own_mean: np.ndarray  # (n_arms, n_scales, dx), of weights that are the arm's own
    own_variance: np.ndarray  # (n_arms, n_scales, dx)
    n_updates: np.ndarray  # (n_arms,), events learned
    tie_order: np.ndarray  # (n_arms,), breaks ties of greedy choices: the smallest wins
    rng_key: np.ndarray  # (n_arms,), keys of the arms' random streams; fixed
    counters: np.ndarray  # (2,): events learned, exploring choices made
    noise: np.ndarray  # (2,): squared residuals over their variances, their weight; or 1, 1
    evidence: np.ndarray  # (n_scales,), prequential log likelihoods
    share: np.ndarray  # (n_scales,), weights in the mixture, which sum to 1
    reward: np.ndarray = np.empty(0)  # (1,), origin of rewards; (0,) if noise is not estimated
    check: np.ndarray = NO_CHECK  # (n_arms, 5), as of `Posterior`
    restarts: np.ndarray = np.zeros(2, np.int64)

    def copy(self) -> SharedPosterior:
        """Return copy that may be learned in place."""
        changing = set(self._fields) - {"units", "Z", "rng_key"}
        copies: dict[str, Any] = {name: getattr(self, name).copy() for name in changing}
        return self._replace(units=Units(*(array.copy() for array in self.units)), **copies)

    def keep_arms(self, arms: np.ndarray) -> SharedPosterior:
        """Return posterior about the arms of these numbers, in this order."""
        return with_arms_of(self, arms)

    def workspace(self) -> Workspace:
        """Return buffers of compiled passes."""
        (_, n_scales, dx, dz), n_arms = self.mean.shape, len(self.Z)
        p = dx * dz if self.cov_factor.ndim == 4 else 1
        return Workspace(
            x=np.ones(dx),
            u=np.empty((n_scales, dz)),
            half=np.empty((n_scales, dz, p)),
            C=np.empty((n_scales, dz, dz)),
            block=np.empty((dz + 3, BLOCK)),
            a=np.empty(p),
            factor=np.empty(dx - 1),
            shift=np.empty(dx - 1),
            arm=np.empty(1, dtype=np.int64),
            m=np.empty(n_arms),
            v=np.empty(n_arms),
            m_of_scale=np.empty((n_scales, n_arms)),
            v_of_scale=np.empty((n_scales, n_arms)),
            share=np.empty(n_scales),
        )


class SharedPrior(NamedTuple):
    """Variances of the prior, and of the noise of linear rewards.

    If the noise is estimated, they are multiples of it, and its own is 1.
    """

    variance: np.ndarray  # (n_scales,), of main effects and products
    constant_variance: np.ndarray  # (n_scales,)
    own_variance: np.ndarray  # (n_scales,), of the weights that are an arm's own
    noise_variance: float
    estimates_noise: bool  # else `noise_variance` is in the unit of the reward
    forgetting: np.ndarray  # (n_scales,), as in `Prior`
    checks: bool = False  # likewise


class Workspace(NamedTuple):
    """Buffers of compiled passes."""

    x: np.ndarray  # (dx,), ends with the constant 1
    u: np.ndarray  # (n_scales, dz)
    half: np.ndarray  # (n_scales, dz, p)
    C: np.ndarray  # (n_scales, dz, dz)
    block: np.ndarray  # (dz + 3, BLOCK)
    a: np.ndarray  # (p,)
    factor: np.ndarray  # (dx - 1,)
    shift: np.ndarray  # (dx - 1,)
    arm: np.ndarray  # (1,)
    m: np.ndarray  # (n_arms,)
    v: np.ndarray  # (n_arms,)
    m_of_scale: np.ndarray  # (n_scales, n_arms)
    v_of_scale: np.ndarray  # (n_scales, n_arms)
    share: np.ndarray  # (n_scales,)


@compiled_exactly
def renew_units(
    posterior: SharedPosterior, prior: SharedPrior, factor: np.ndarray, shift: np.ndarray,
    X: np.ndarray, row: int,
) -> None:  # fmt: skip
    """Renew the units of contexts that are due after the event of a row, and carry weights over.

    X may be empty.
    """
    units = posterior.units
    changed = renew_if_due(units, factor, shift)
    if not changed and len(X) and FIRST_RENEWAL < units.seen[1] < math.inf:
        changed = renew_late(
            X, row, units.center, units.rate, units.mean, units.squares, units.seen[0],
            math.sqrt(len(units.rate)), factor, shift,
        )  # fmt: skip
    if changed:
        for e in range(len(posterior.share)):
            change_units(
                factor, shift, posterior.mean[0, e], posterior.cov_factor[e], prior.variance[e]
            )
            if prior.own_variance[e] > 0.0:
                change_units(
                    factor, shift, posterior.own_mean[:, e].T, posterior.own_variance[:, e].T,
                    prior.own_variance[e],
                )  # fmt: skip


@called_exactly
def _own_start(
    e: int, i: int, posterior: SharedPosterior, prior: SharedPrior
) -> tuple[float, float]:
    """Return mean and variance of an own weight of arms without events.

    Once the others are well known, these are as in `_posterior._renew_start`: the own weights of
    all arms hold a part of what they have in common, too, such as a low rate of rewards.
    """
    n, total, square = 0, 0.0, prior.own_variance[e]
    for k in range(len(posterior.n_updates)):
        if posterior.n_updates[k] > 0:
            n += 1
            total += posterior.own_mean[k, e, i]
    if n == 0 or posterior.counters[N_EVENTS] < WELL_KNOWN * n:
        return 0.0, square
    sigma = noise_scale(posterior.noise)  # variances are multiples of that of the noise
    for k in range(len(posterior.n_updates)):
        if posterior.n_updates[k] > 0 and sigma > 0.0:
            away = (posterior.own_mean[k, e, i] - total / n) / sigma
            square += away * away
    return total / n, square / n


@compiled_exactly
def settle(posterior: SharedPosterior, prior: SharedPrior) -> None:
    """Reset unseen arms to the mean and spread of the learned arms."""
    n_arms, n_scales, dx = posterior.own_mean.shape
    for e in range(n_scales):
        for i in range(dx):
            m, v = _own_start(e, i, posterior, prior)
            for k in range(n_arms):
                if posterior.n_updates[k] == 0:
                    posterior.own_mean[k, e, i], posterior.own_variance[k, e, i] = m, v


@compiled_exactly
def begin(k: int, posterior: SharedPosterior, prior: SharedPrior) -> None:
    """Prepare for the first event of an arm: it keeps its mean, with the prior's variance."""
    _, n_scales, dx = posterior.own_mean.shape
    for e in range(n_scales):
        for i in range(dx):
            posterior.own_mean[k, e, i], _ = _own_start(e, i, posterior, prior)
            posterior.own_variance[k, e, i] = prior.own_variance[e]


@called_exactly
def _place_at_prior(cov_factor: np.ndarray, variance: float, constant_variance: float) -> None:
    """Set the covariance of B to that of the prior."""
    dx, dz = cov_factor.shape[:2]
    for i in range(dx):
        for j in range(dz):
            prior = constant_variance if i == dx - 1 and j == dz - 1 else variance
            if cov_factor.ndim == 3:
                cov_factor[i, j, :] = 0.0
                cov_factor[i, j, i * dz + j] = math.sqrt(prior)
            else:
                cov_factor[i, j] = prior


@called_exactly
def start_anew(posterior: SharedPosterior, prior: SharedPrior) -> None:
    """Put all weights at their prior, as rewards have changed."""
    posterior.mean[:] = 0.0
    posterior.own_mean[:] = 0.0
    for e in range(len(posterior.share)):
        posterior.own_variance[:, e] = prior.own_variance[e]
        _place_at_prior(posterior.cov_factor[e], prior.variance[e], prior.constant_variance[e])
    if prior.estimates_noise:
        posterior.noise[:] = 0.0
    begin_anew(
        posterior.check, posterior.restarts, posterior.evidence, posterior.share,
        posterior.counters[N_EVENTS],
    )  # fmt: skip


def prior_variances(dx: int, dz: int, prior: SharedPrior) -> np.ndarray:
    """Return prior variances of the entries of B, (n_scales, dx, dz)."""
    variance = np.tile(prior.variance[:, None, None], (1, dx, dz))
    variance[:, -1, -1] = prior.constant_variance
    return variance


def prior_posterior(units: Units, dz: int, full: bool, prior: SharedPrior) -> SharedPosterior:
    """Return posterior of a policy without arms."""
    dx = len(units.rate) + 1
    variance = prior_variances(dx, dz, prior)
    n_scales, p = len(variance), dx * dz
    root = None
    if full:
        root = np.sqrt(variance.reshape(n_scales, p, 1)) * np.eye(p)
        root = root.reshape(n_scales, dx, dz, p)
    return SharedPosterior(
        mean=np.zeros((1, n_scales, dx, dz)),
        cov_factor=variance if root is None else root,
        units=units,
        Z=np.empty((0, dz)),
        own_mean=np.empty((0, n_scales, dx)),
        own_variance=np.empty((0, n_scales, dx)),
        n_updates=np.empty(0, dtype=np.int64),
        tie_order=np.empty(0, dtype=np.int64),
        rng_key=np.empty(0, dtype=np.int64),
        counters=np.zeros(2, dtype=np.int64),
        noise=np.zeros(2) if prior.estimates_noise else np.ones(2),
        evidence=np.zeros(n_scales),
        share=np.full(n_scales, 1 / n_scales),
        reward=np.full(1 if prior.estimates_noise else 0, np.nan),
        check=NO_CHECK,
        restarts=np.zeros(2, np.int64),
    )


def append_arms(
    posterior: SharedPosterior, labels: list[Any], Z: np.ndarray, prior: SharedPrior
) -> SharedPosterior:
    """Return posterior about further arms, too, which have these features.

    They start where arms without events do.
    """
    larger, n_old = with_room(posterior, labels), len(posterior.Z)
    larger.Z[n_old:], larger.own_variance[n_old:] = Z, prior.own_variance[:, None]
    settle(larger, prior)
    return larger


def merged(
    base: SharedPosterior, workers: list[SharedPosterior], prior: SharedPrior
) -> tuple[SharedPosterior, np.ndarray]:
    """Return posterior by what workers have learned since a base, all of the same arms.

    See `_merge`. All are changed: they are expressed in units of the contexts that any
    of them has learned.

    Returns
    -------
    tuple of SharedPosterior and ndarray of shape (n_workers, n_arms)
        And whether a worker knows less than the base did.
    """
    learned = attrgetter(
        "mean", "cov_factor", "own_mean", "own_variance", "noise", "evidence", "units.center",
        "units.rate",
    )  # fmt: skip
    forget_before_restart(base, workers, prior, start_anew, learned)
    (_, n_scales, dx, dz), n_before = base.mean.shape, base.counters[N_EVENTS]
    p, full, states = dx * dz, base.cov_factor.ndim == 4, [base, *workers]
    runs = bool(np.isfinite(base.units.seen[1]))
    counted = ((state.units.mean, state.units.squares, state.units.seen[:1]) for state in states)
    pooled = pooled_moments(*counted)
    for state in states:
        state.units.mean[:], state.units.squares[:], state.units.seen[:1] = pooled
        if runs and state.units.seen[0] >= FIRST_RENEWAL:
            state.units.seen[1] = 0.0  # due
            renew_units(state, prior, np.empty(dx - 1), np.empty(dx - 1), np.empty((0, dx)), 0)
    origins = [state.reward for state in states if (state.reward == state.reward).any()]
    for state in states if origins else ():
        if (state.reward == state.reward).any():
            state.mean[0, :, -1, -1] += state.reward - origins[0]
    for state in states if origins else ():
        state.reward[:] = origins[0]
    variance = prior_variances(dx, dz, prior).reshape(n_scales, p)
    n_events = [np.array([[state.counters[N_EVENTS] - n_before]]) for state in workers]
    n_of_arms = [(state.n_updates - base.n_updates)[:, None] for state in workers]
    forgetting = prior.forgetting
    of_mean, of_factor = (1, n_scales, p), (1, n_scales, p, p) if full else (1, n_scales, p)
    start = np.sqrt(variance)[..., None] * np.eye(p) if full else variance
    first, *others = (
        (state.mean.reshape(of_mean), state.cov_factor.reshape(of_factor)) for state in states
    )
    (mean, cov_factor), quadratic, log_determinant, lost = combine(
        first, others, (np.zeros_like(variance), start), n_events, forgetting
    )
    result = base.copy()
    result.mean[:] = mean.reshape(base.mean.shape)
    result.cov_factor[:] = cov_factor.reshape(base.cov_factor.shape)
    quadratic, log_determinant = quadratic[0], log_determinant[0]
    if (prior.own_variance > 0.0).all():
        fresh = base.n_updates == 0
        for k in np.flatnonzero(fresh).tolist():  # from which workers' arms began, nearly
            begin(k, base, prior)
            for state in workers:
                if state.n_updates[k] == 0:
                    state.own_mean[k], state.own_variance[k] = (
                        base.own_mean[k],
                        base.own_variance[k],
                    )
        first, *others = ((state.own_mean, state.own_variance) for state in states)
        center = np.where(fresh[:, None, None], base.own_mean, 0.0)
        own_variance = np.broadcast_to(prior.own_variance[:, None], center.shape)
        sums, of_arms, log_of_arms, _ = combine(
            first, others, (center, own_variance), n_of_arms, forgetting
        )
        result.own_mean[:], result.own_variance[:] = sums
        quadratic, log_determinant = (
            quadratic + of_arms.sum(0),
            log_determinant + log_of_arms.sum(0),
        )
    if prior.estimates_noise:
        of_workers = [worker.noise for worker in workers]
        result.noise[:] = pooled_sums(
            base.noise, of_workers, [n.ravel() for n in n_events], forgetting[0]
        )
    sigma = noise_scale(result.noise) or 1.0
    common = (quadratic / sigma**2 - log_determinant) / 2
    sum_evidence(result, base, workers, common, forgetting)
    surplus = result.share @ quadratic
    if prior.estimates_noise and forgetting[0] == 1.0 and result.noise[0] > surplus:
        result.noise[0] -= surplus
    counters = base.counters.copy()
    counters[N_EVENTS] += np.sum(n_events)
    begun = n_before >= FIRST_RENEWAL or not runs
    result = result._replace(
        n_updates=base.n_updates + np.sum(n_of_arms, axis=0)[:, 0], counters=counters
    )
    settle(result, prior)
    return result, lost & begun


# Units of arms' features: a renewal keeps what the data say, and states the prior anew.
#
# When arms are described that differ more than those known, the unit of a feature grows, and a
# prior variance that was right in the old unit would be far too wide in the new one. The data's
# part of the posterior is therefore carried over alone, and meets the prior in the new units: for
# linear rewards that is the posterior of a policy that had known all arms from the start.


def in_units(values: np.ndarray, units: Units) -> np.ndarray:
    """Return features in these units, followed by the constant."""
    return np.column_stack([(values - units.center) * units.rate, np.ones(len(values))])


def as_given(units: Units) -> np.ndarray:
    """Return T with (x, 1) = T (X, 1) for features x in these units, X as given."""
    d = len(units.rate)
    T = np.zeros((d + 1, d + 1))
    T[np.arange(d), np.arange(d)] = units.rate
    T[:d, d] = -units.rate * units.center
    T[d, d] = 1.0
    return T


def in_new_units(
    factor: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    cov_factor: np.ndarray,
    prior_variance: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior of B where the arms' old features were z = factor z' + shift.

    Parameters
    ----------
    factor, shift : ndarray of shape (dz - 1,)
        Change of units.
    mean : ndarray of shape (dx, dz)
        Posterior mean; the prior's is 0.
    cov_factor : ndarray of shape (dx, dz, dx dz) or (dx, dz)
        L with Σ = L Lᵀ, or the diagonal of Σ, of which then only the diagonal is carried over.
    prior_variance : ndarray of shape (dx, dz)
        Prior variances in old and in new units.

    Returns
    -------
    tuple of ndarray
        New mean and cov_factor.
    """
    dx, dz = mean.shape
    N = np.diag(np.append(1 / factor, 1.0))  # old weights = N new weights
    N[-1, :-1] = -shift / factor
    if cov_factor.ndim == 2:
        T = np.linalg.inv(N).T
        data = np.maximum(1 / cov_factor - 1 / prior_variance, 0.0)
        scale = np.append(factor, 1.0)
        return mean @ T, 1 / (1 / prior_variance + data / scale**2)
    p = dx * dz
    inverse = np.linalg.inv(cov_factor.reshape(p, p))
    precision = inverse.T @ inverse
    values, vectors = np.linalg.eigh(precision - np.diag(1 / prior_variance.ravel()))
    data = (vectors * np.maximum(values, 0.0)) @ vectors.T  # without what rounding made negative
    lift = np.kron(np.eye(dx), N)
    natural = lift.T @ (precision @ mean.ravel())
    new = lift.T @ data @ lift + np.diag(1 / prior_variance.ravel())
    L = np.linalg.inv(np.linalg.cholesky((new + new.T) / 2)).T
    return (L @ (L.T @ natural)).reshape(dx, dz), np.ascontiguousarray(L).reshape(dx, dz, p)
