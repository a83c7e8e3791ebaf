"""Choosing the penalty of the ridge regressions of many ads: which rows and ads, at what price."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from skbandit.selection._costs import CostMatrix
from skbandit.selection._ridge import RidgeFactor
from skbandit.selection._ridge_penalty import (
    generalised,
    leave_one_out,
    left_out_weight,
    penalties,
    spectrum,
)

LEAVE_ONE_OUT_WORK = 10**9
"""Multiplications up to which the errors of ads observed in every row are left-one-out exactly:
about a fifth of a second. Beyond it there are so many rows that leverages are small, and
generalised cross-validation chooses the same penalty."""

TUNING_WORK = 10**8
"""Multiplications to spend on ads that have their own rows: about 20 ms. Where the fit itself takes
more, the tuning may take 1.5 times as much as the fit."""

FEWEST_ADS = 8
"""Number of ads, spread evenly over the columns, that are always used; if they would take more
than four times the work allowed, each on part of its rows, spread evenly too."""

EIGEN_COST = 10
"""Work of the eigenvectors of a matrix of size q, in units of q^3 multiplications."""

NO_PENALTY_KNOWN = 1.0
"""The penalty where data cannot tell, since X is constant or no ad was observed twice."""


def tuned_penalty(rows: RidgeFactor, costs: CostMatrix) -> float:
    """The penalty of least squared error of costs left out, summed over ads and their rows.

    Parameters
    ----------
    rows : RidgeFactor
        The rows, with an intercept and any penalty.
    costs : CostMatrix
        Costs of the same rows. Each ad is left out and predicted within the rows where its cost was
        observed.

    Returns
    -------
    float
    """
    gram, n_rows = rows.gram, costs.shape[0]
    centre = gram[:-1, -1] / gram[-1, -1]
    d, V = eigh(gram[:-1, :-1] - np.outer(centre, gram[:-1, -1]))
    d = np.maximum(d, 0.0)
    n_observed = costs.n_observed()
    partial = np.flatnonzero((n_observed > 1) & (n_observed < n_rows))
    complete = np.flatnonzero(n_observed == n_rows) if n_rows > 1 else partial[:0]
    if not len(d) or d[-1] <= 0.0 or not len(partial) + len(complete):
        return NO_PENALTY_KNOWN
    alphas = penalties(d[-1])
    s = _dense(rows.weighted[:, [-1]]).ravel()
    errors = _errors_on_own_rows(rows, s, costs, partial, n_observed, alphas)
    if not len(complete):
        return float(alphas[errors.argmin()])

    p = len(d)
    ads = _spread(complete, max(FEWEST_ADS, LEAVE_ONE_OUT_WORK // max(n_rows, p) ** 2))
    F = _dense(costs.values if len(ads) == costs.shape[1] else costs.values[:, ads])
    F = F - s @ F / s.sum()
    share = len(complete) / len(ads)
    # F is centred, so that rows need not be
    r = V.T @ _dense(rows.weighted[:, :-1].T @ F)
    n_left_out = float((s / left_out_weight(s)).sum())
    total = float(s @ np.einsum("ij,ij->i", F, F))
    approximate = errors + share * generalised(d, (r**2).sum(axis=1), total, n_left_out, alphas)
    best = int(approximate.argmin())
    if n_rows * p * (p + 3 * len(ads)) > LEAVE_ONE_OUT_WORK:
        return float(alphas[best])
    U = _dense(rows.design[:, :-1] @ V) - centre @ V
    found: dict[int, float] = {}
    while True:  # downhill from there; the errors rarely have a second minimum
        near = [k for k in (best - 1, best, best + 1) if 0 <= k < len(alphas)]
        new = [k for k in near if k not in found]
        exact = errors[new] + share * leave_one_out(U, d, s, F, alphas[new])
        found.update(zip(new, exact.tolist(), strict=True))
        lowest = min(near, key=found.__getitem__)
        if lowest == best:
            return float(alphas[best])
        best = lowest


def tuned_on_part(X: Any, costs: CostMatrix, weight: np.ndarray | None, n_rows: int) -> float:
    """The penalty chosen on `n_rows` rows spread evenly over X."""
    used = _spread(np.arange(costs.shape[0]), n_rows)
    part = RidgeFactor.unpenalised(X[used], None if weight is None else weight[used])
    return tuned_penalty(part, costs.of_rows(used))


def _errors_on_own_rows(
    rows: RidgeFactor,
    s: np.ndarray,
    costs: CostMatrix,
    ads: np.ndarray,
    n_observed: np.ndarray,
    alphas: np.ndarray,
) -> np.ndarray:
    """Errors left out of ads with rows of their own, (L,), scaled up from the ads that are used."""
    errors = np.zeros(len(alphas))
    if not len(ads):
        return errors
    p = rows.design.shape[1] - 1
    n = n_observed[ads].astype(float)
    fitting = (np.minimum(n, costs.shape[0] - n) * p**2 + p**3 / 3).sum()
    allowed = max(TUNING_WORK, 1.5 * fitting)
    # a fit left out takes the products for the smaller of two matrices, its eigenvectors, and U
    work = (2 * n * p * np.minimum(n, p) + EIGEN_COST * np.minimum(n, p) ** 3).mean()
    used = _spread(ads, max(FEWEST_ADS, int(allowed / max(work, 1.0))))
    most = allowed / len(used)
    n_used = 0
    for j in used:
        seen, paid = costs.of_ad(int(j))
        fewer = _fewest_within(most, p, len(seen))
        kept = _spread(np.arange(len(seen)), fewer)
        seen, paid = seen[kept], paid[kept].astype(float)
        U, d = spectrum(_dense(rows.design[seen, :-1]), s[seen])
        errors += leave_one_out(U, d, s[seen], paid[:, None], alphas) / len(kept) * n_observed[j]
        n_used += n_observed[j]
    return errors * n.sum() / n_used


def _fewest_within(work: float, p: int, n: int) -> int:
    """Number of rows, from 2 to n, whose fits left out take at most four times `work`."""
    while n > 2 and 2 * n * p * min(n, p) + EIGEN_COST * min(n, p) ** 3 > 4 * work:
        n = max(2, n // 2)
    return n


def _spread(items: np.ndarray, n: int) -> np.ndarray:
    """At most n of the items, evenly spaced."""
    if n >= len(items):
        return items
    return items[np.linspace(0, len(items) - 1, n).round().astype(int)]


def _dense(matrix: Any) -> np.ndarray:
    """The matrix as an array, whether sparse or dense."""
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
