"""Policies that learned apart, and the policy that combines their learning."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skbandit.logs import label_order
from skbandit.utils._validation import first_few

CHOOSING = {
    "alpha", "arm_features", "arms", "columns", "epsilon", "exploration", "mean", "new_arms",
    "random_state", "ucb",
}  # fmt: skip
"""Parameters that do not change what is learned from an event."""

THIS = "this policy"

Path = tuple[tuple[bytes, int], ...]
"""History of learning as stretches, each with a random name and its number of calls.

A copy has the path of its original, and begins a new stretch as soon as it learns. Therefore two
policies have learned the same as far as their paths agree, whatever objects they are, and policies
that learned apart have different paths, even of equal events.
"""

MOST_STRETCHES = 1000
"""Stretches that a path keeps, the latest ones: a policy that is loaded for each batch has one per
batch."""

CUT = (
    f"{{name}} was loaded, and learned, {MOST_STRETCHES - 1} times or more, and does not know what "
    "it learned before: pass as base a later state, of which all policies were copies."
)

Moments = tuple[np.ndarray, np.ndarray]
"""Means, and variances of that shape or matrices L with Σ = L Lᵀ."""

Counted = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Means, sums of squared deviations from them, and the weight of the rows, of shape (1,)."""

LARGEST_LOSS = 1e-6
"""Share of a precision that rounding may lose."""


def extended(path: Path, goes_on: bool) -> Path:
    """Path after another call, of a policy that goes on with its last stretch or begins one."""
    if goes_on and path:
        *before, (name, n) = path
        return (*before, (name, n + 1))
    return (*path[1 - MOST_STRETCHES :], (secrets.token_bytes(8), 1))


def contains(path: Path, earlier: Path) -> bool:
    """Return whether a path leads through the end of another one, which is not empty."""
    name, n = earlier[-1]
    return dict(path).get(name, 0) >= n


def merged_policy(policy: Any, policies: Sequence[Any], base: Any) -> Any:
    """Return a policy that knows what `policy` and others learned since a base."""
    base = copy.copy(base)
    if not base.__sklearn_is_fitted__():
        template = next((worker for worker in policies if worker.__sklearn_is_fitted__()), policy)
        check_is_fitted(template)
        names = getattr(template, "feature_names_in_", None)
        base._begin(pd.DataFrame(np.zeros((1, template.n_features_in_)), columns=names))
    given = {id(worker): (f"policies[{k}]", worker) for k, worker in enumerate(policies)}
    if policy.__sklearn_is_fitted__():
        given[id(policy)] = THIS, policy
    workers = {name: copy.copy(worker) for name, worker in given.values()}
    for name, worker in workers.items():
        check_ancestor(base, worker, name)
    grown = {
        name: worker
        for name, worker in workers.items()
        if len(worker._codes) > len(base._codes) or worker._n_learned() > base._n_learned()
    }
    grown = learned_apart(base, grown)
    merged = copy.copy(*grown.values()) if len(grown) == 1 else copy.copy(base)
    if len(grown) > 1:
        new = {label for worker in grown.values() for label in worker._codes}
        added = sorted(new - base._codes.keys(), key=label_order)
        merged._sum_up(copy.copy(base), grown, [*base._codes, *added])
        merged._sort_arms()
        # a new beginning, the same wherever these are merged: the base of later merges
        paths = repr(sorted(worker._path for worker in grown.values()))
        merged._path = ((blake2b(paths.encode(), digest_size=8).digest(), 1),)
    states = [base, *workers.values()]
    merged._latest = max(
        (state._latest for state in states if state._latest is not None), default=None
    )
    merged._stream = copy.copy(workers.get(THIS, base)._stream)
    made = sum(worker._stream.n_choices - base._stream.n_choices for worker in workers.values())
    merged._stream.n_choices = max(merged._stream.n_choices, base._stream.n_choices + made)
    return merged.set_params(**policy.get_params(deep=False))


def learned_apart(base: Any, workers: dict[str, Any]) -> dict[str, Any]:
    """Workers without copies and earlier states of others; they must share no events since base."""
    apart: dict[str, Any] = {}
    for name, worker in workers.items():
        path = worker._path
        if len(workers) > 1 and not base._path and len(path) == MOST_STRETCHES:
            raise ValueError(CUT.format(name=name))
        if path and any(contains(other._path, path) for other in apart.values()):
            continue
        earlier = [k for k, other in apart.items() if other._path and contains(path, other._path)]
        apart = {k: other for k, other in apart.items() if k not in earlier} | {name: worker}
    before = dict(base._path)
    for (name, worker), (other_name, other) in combinations(apart.items(), 2):
        of_other = dict(other._path)  # beyond the base, paths must not agree
        shared = [
            min(n, of_other.get(stretch, 0)) > before.get(stretch, 0) for stretch, n in worker._path
        ]
        if any(shared):
            raise ValueError(
                f"{name} and {other_name} have learned some of the same events since base: pass as "
                "base the state that they have in common."
            )
    return apart


def check_ancestor(base: Any, worker: Any, name: str) -> None:
    """Require that a worker may have learned from the base on."""
    if type(worker) is not type(base):
        raise TypeError(
            f"{name} is a {type(worker).__name__}, and base a {type(base).__name__}: merge "
            "policies of one type."
        )
    if not worker.__sklearn_is_fitted__():
        raise ValueError(f"{name} is not fitted: leave it out.")
    ours, theirs = base.get_params(deep=False), worker.get_params(deep=False)
    for parameter in sorted(ours.keys() - CHOOSING):
        if not np.array_equal(ours[parameter], theirs[parameter]):
            raise ValueError(
                f"{name} learns with {parameter}={theirs[parameter]!r}, and base with "
                f"{ours[parameter]!r}: merge policies with equal parameters of learning."
            )
    before, after = (
        dict(zip(state._codes, state.n_updates_.tolist(), strict=True)) for state in (base, worker)
    )
    for label, n in before.items():
        if after.get(label, -1) < n:
            contrast = f"has {after[label]}" if label in after else "lacks the arm"
            raise ValueError(
                f"base is not an earlier state of {name}: it has {n} events of arm {label!r}, and "
                f"{name} {contrast}."
            )
    if base._path and not contains(worker._path, base._path):
        if len(worker._path) == MOST_STRETCHES:
            raise ValueError(CUT.format(name=name))
        raise ValueError(
            f"{name} began with another event than base, or with an earlier or merged state: pass "
            "as base the state of which all workers were copies, after a merge the merged policy."
        )
    features, others = (
        list(getattr(state, "feature_names_in_", range(state.n_features_in_)))
        for state in (base, worker)
    )
    if features != others:
        raise ValueError(
            f"{name} has the features {first_few(others)}, and base {first_few(features)}: merge "
            "policies of equal features."
        )
    if base._waiting or worker._waiting:
        raise ValueError(f"{name} or base has delayed events: call advance() before merge.")


# Sums of the learning of several policies since a common state.
#
# A Gaussian posterior N(μ, Σ) has the natural parameters Λ = Σ⁻¹ and η = Λ μ, to which each event
# adds a term of its own: exactly, for linear rewards and a full Σ, and otherwise as steps
# approximate it. What policy i has learned since the common state b is the difference of its
# parameters, and the posterior of all events is
#
#     Λ = Λ_b + Σ_i (Λ_i - Λ_b),     η = η_b + Σ_i (η_i - η_b).
#
# Evidence does not add up like that, as each policy predicts without the events of the others. A
# Gaussian integral has log Z = (ηᵀμ - log |Λ|)/2, and the log likelihood of the events of i is that
# of a Gaussian factor, plus log Z_i - log Z_b; so, with Z of the sum, that of all events is
#
#     Σ_i [(evidence_i - evidence_b) - (log Z_i - log Z_b)] + log Z - log Z_b
#
# above the evidence of b, and sums of squared residuals have ηᵀμ in the place of -2 log Z.
#
# With forgetting, n events of an arm leave γⁿ of what the data told before. Events of several
# policies are taken to have come in turn, evenly. M new events of an arm count as Σ_{j < M} γʲ, of
# which the n_i of policy i are the part n_i/M: what it has learned, which counts as Σ_{j < n_i} γʲ,
# is scaled to that.


Gaussians = tuple[np.ndarray, np.ndarray]
"""Natural parameters of Gaussians, of any leading shape: Λ, (..., d), or (..., d, d) if full; η."""


def combine(
    base: Moments,
    workers: list[Moments],
    prior: Moments,
    n: list[np.ndarray],
    forgetting: float | np.ndarray,
) -> tuple[Moments, np.ndarray, np.ndarray, np.ndarray]:
    """Return posteriors by all events of several workers since a base.

    Parameters
    ----------
    base, workers, prior : tuple of mean and cov_factor
        Means (n_models, ..., d), and variances of that shape or L with another axis of d.
    n : list of ndarray of shape (n_models,) or (n_models, 1)
        Number of events that each worker learned since the base.
    forgetting : float or ndarray of shape (n_scales,)
        Factor by which each event discounts earlier evidence; of the second axis if an array.

    Returns
    -------
    moments : tuple of mean and cov_factor
    quadratic, log_determinant : ndarray of shape (n_models, ...)
        ηᵀμ and log |Λ| of the sum, less the base's, less what workers have gained.
    lost : ndarray of shape (n_workers, n_models)
        Whether a worker knows less than the base, to which only forgetting leads.
    """
    started, zero = _gaussians(base), _gaussians(prior)
    full, total = base[1].ndim > base[0].ndim, np.sum(n, axis=0)
    kept = forgetting**total
    told = [a - b for a, b in zip(started, zero, strict=True)]  # by data before
    precision, natural = (_times(kept, part) for part in told)
    at_base = _log_integral(started, base[0])
    gained, lost = np.zeros_like(at_base), []
    for moments, events in zip(workers, n, strict=True):
        ended, before = _gaussians(moments), forgetting**events
        gain, tilt = (
            end - prior_part - _times(before, part)
            for end, prior_part, part in zip(ended, zero, told, strict=True)
        )
        precisions, gains = (
            np.diagonal(of, axis1=-2, axis2=-1) if full else of for of in (started[0], gain)
        )
        less = (gains < -LARGEST_LOSS * precisions) & (np.asarray(forgetting) == 1.0)[..., None]
        lost.append(less.any(axis=tuple(range(1, precisions.ndim))))
        share = _share_in_turn(forgetting, events, total)
        precision = precision + _times(share, _positive(gain, full))
        natural = natural + _times(share, tilt)
        gained = gained + _log_integral(ended, moments[0]) - at_base
    summed = zero[0] + precision, zero[1] + natural
    result = _moments(summed, full)
    quadratic, log_determinant = _log_integral(summed, result[0]) - at_base - gained
    return result, quadratic, log_determinant, np.array(lost)


def _gaussians(moments: Moments) -> Gaussians:
    mean, cov_factor = moments
    if cov_factor.ndim == mean.ndim:
        return 1.0 / cov_factor, mean / cov_factor
    inverse = np.linalg.inv(cov_factor)
    precision = np.swapaxes(inverse, -1, -2) @ inverse
    return precision, (precision @ mean[..., None])[..., 0]


def _moments(summed: Gaussians, full: bool) -> Moments:
    precision, natural = summed
    if not full:
        return natural / precision, 1.0 / precision
    factor = np.swapaxes(np.linalg.inv(np.linalg.cholesky(precision)), -1, -2)
    half = np.swapaxes(factor, -1, -2) @ natural[..., None]
    return (factor @ half)[..., 0], np.ascontiguousarray(factor)


def _log_integral(of: Gaussians, mean: np.ndarray) -> np.ndarray:
    """Return ηᵀμ and log |Λ|."""
    precision, natural = of
    full = precision.ndim > natural.ndim
    log_determinant = np.linalg.slogdet(precision)[1] if full else np.log(precision).sum(axis=-1)
    return np.stack([(natural * mean).sum(axis=-1), log_determinant])


def _positive(gain: np.ndarray, full: bool) -> np.ndarray:
    """Return the gain without what rounding, or units renewed since an arm began, made negative."""
    if not full:
        return np.maximum(gain, 0.0)
    values, vectors = np.linalg.eigh(gain)
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _times(share: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Scale an array along its first axis."""
    return share.reshape(share.shape + (1,) * (of.ndim - share.ndim)) * of


def _share_in_turn(forgetting: float | np.ndarray, n: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Share of what a worker learned from n events that counts among `total` events in turn."""
    n, total = np.maximum(n, 1), np.maximum(total, 1)
    lasting = np.asarray(forgetting) == 1.0
    gamma = np.where(lasting, 0.5, forgetting)
    return np.where(lasting, 1.0, n / total * (1.0 - gamma**total) / (1.0 - gamma**n))


def pooled_sums(
    base: np.ndarray, workers: list[np.ndarray], n: list[np.ndarray], forgetting: float
) -> np.ndarray:
    """Return sums over events, discounted as in `combine`; n has shape (1,)."""
    total = np.sum(n, axis=0)
    result = forgetting**total * base
    for of_worker, events in zip(workers, n, strict=True):
        share = _share_in_turn(forgetting, events, total)
        result = result + share * (of_worker - forgetting**events * base)
    return result


def pooled_moments(base: Counted, *workers: Counted) -> Counted:
    """Mean, sum of squared deviations and weight of the rows that a base or any worker counted.

    Without means (an empty array), sums are of squares.
    """
    origin, squares, weight = base
    offset, centered = np.zeros_like(origin), len(origin) > 0
    for mean, sums, seen in workers:
        away = mean - origin
        offset = offset + seen * away
        squares = squares + (sums - base[1]) + (seen * away * away if centered else 0.0)
        weight = weight + (seen - base[2])
    shift = offset / weight if weight > 0 else offset
    if centered:
        squares = np.maximum(squares - weight * shift * shift, 0.0)
    return origin + shift, squares, weight
