"""Choosing the penalty of the ridge regressions of many ads: which rows and ads, at what price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh

from skbandit.selection._costs import CostMatrix
from skbandit.selection._ridge import RidgeFactor
from skbandit.selection._ridge_penalty import (
    generalised,
    left_out_factors,
    left_out_weight,
    mean_factors,
    penalties,
    squared_residuals,
)
from skbandit.selection._tridiagonal import TRIDIAGONAL_FROM, Middle, diagonalised, reduced

LEAVE_ONE_OUT_WORK = 3 * 10**8
"""Multiplications up to which rows are left out exactly, about 10 ms; where a fit takes more, as
many as that. Beyond it, generalised cross-validation chooses."""

RESIDUALS, MOST_LEFT_OUT = 20_000, 2_000
"""Number of costs, in rows spread evenly, whose leverages are computed, and of these rows. There
are as many rows as features, up to the second number."""

MOST_COSTS = 10**9
"""Number of ads observed together, times the square of their rows or features, up to which all of
them are used."""

TUNING_WORK = 5 * 10**7
"""Multiplications to spend on ads that have their own rows: about 10 ms. Where the fit itself takes
more, the tuning may take as much as the fit."""

ENOUGH_COSTS = 500_000
"""Number of costs of ads that have their own rows, beyond which no more such ads are used."""

FEWEST_ADS = 8
"""Number of ads, spread evenly over the columns, that are always used; if they would take more
than four times the work allowed, each on part of its rows, spread evenly too."""

CALLS_COST = 4 * 10**6
"""Work of the calls for an ad, whatever its size, in multiplications."""

EIGEN_COST, REFLECTION_COST = 10, 4
"""Work of the eigenvectors of a matrix of size q, and of making it tridiagonal, in units of q^3
multiplications."""

NO_PENALTY_KNOWN = 1.0
"""The penalty where data cannot tell, since X is constant or no ad was observed twice."""


@dataclass(frozen=True)
class Ads:
    """Ads observed in the same rows.

    Parameters
    ----------
    s, u : ndarray of shape (n,)
        Weights of these rows, and what is left out of them.
    F : ndarray of shape (n, K)
        Costs, centred.
    M : Middle
    B : callable
        Maps positions among the n rows to rows of B.
    r : ndarray of shape (p, K)
    share : float
        How much the errors of these ads and rows count.
    """

    s: np.ndarray
    u: np.ndarray
    F: np.ndarray
    M: Middle
    B: Callable[[np.ndarray], np.ndarray]
    r: np.ndarray
    share: float

    @classmethod
    def of(
        cls, rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray, share: float
    ) -> Ads:
        """Prepare ads of costs F (n, K) in the rows `seen`; s are the weights of all rows."""
        weight = s[seen]
        F = F - weight @ F / weight.sum()
        reduce = _by_rows if len(seen) < rows.design.shape[1] - 1 else _by_features
        return cls(weight, left_out_weight(weight), F, *reduce(rows, weight, seen, F), share)

    def generalised(self, alphas: np.ndarray) -> np.ndarray:
        """Errors by generalised cross-validation, (L,)."""
        total = float(self.s @ np.einsum("ij,ij->i", self.F, self.F))
        return self.share * generalised(self.M, self.r, total, self._n_copies, alphas)

    def errors(self, alphas: np.ndarray) -> np.ndarray:
        """Errors by exact leave-one-out, if that is not too dear, (L,).

        They differ from the generalised ones in the leverages, not in the residuals within the fit:
        so the difference is known well from some of the rows.
        """
        approximate = self.generalised(alphas)
        p, n_ads = self.r.shape
        some = _spread(np.arange(len(self.s)), _n_left_out(p, n_ads))
        work = len(some) * p * (2 * p + 3 * (2 * n_ads + self.M.cost))
        if work > max(LEAVE_ONE_OUT_WORK, len(self.s) * p**2):
            return approximate
        B, s, total = self.B(some), self.s[some], float(self.s.sum())
        factors = left_out_factors(self.M, B, self.u[some], total, alphas)
        factors -= mean_factors(self.M, self._n_copies, alphas)
        squares = squared_residuals(self.M, B, self.r, self.F[some], alphas)
        difference = np.einsum("i,ij,ij->j", s, factors, squares)
        return approximate + self.share * total / s.sum() * difference

    @property
    def _n_copies(self) -> float:
        """Number of rows, or of copies of rows, that are left out in turn."""
        return float((self.s / self.u).sum())


def tuned_penalty(rows: RidgeFactor, costs: CostMatrix) -> float:
    """The penalty of least squared error of costs left out, summed over ads and their rows.

    Generalised cross-validation finds it up to some half decades, and exact leave-one-out goes on
    from there.

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
    n, p = rows.design.shape[0], rows.design.shape[1] - 1
    n_observed = costs.n_observed()
    if not p or n_observed.max() < 2:
        return NO_PENALTY_KNOWN
    s = _dense(rows.weighted[:, [-1]]).ravel()
    complete = np.flatnonzero(n_observed == n)
    used = []
    if len(complete):
        ads = _spread(complete, _most_ads(n, p))
        F = _dense(costs.values if len(ads) == costs.shape[1] else costs.values[:, ads])
        used.append(Ads.of(rows, s, np.arange(n), F.astype(float), len(complete) / len(ads)))
        largest = used[0].M.d[-1]
    else:
        largest = eigvalsh(_centred(rows.gram), subset_by_index=[p - 1, p - 1])[0]
    if largest <= 0.0:
        return NO_PENALTY_KNOWN
    used.extend(_incomplete(rows, s, costs, n_observed))
    alphas = penalties(largest)
    best = int(np.sum([ads.generalised(alphas) for ads in used], axis=0).argmin())
    found: dict[int, float] = {}
    while True:  # downhill from there; the errors rarely have a second minimum
        near = [k for k in (best - 1, best, best + 1) if 0 <= k < len(alphas)]
        new = [k for k in near if k not in found]
        errors = np.sum([ads.errors(alphas[new]) for ads in used], axis=0)
        found.update(zip(new, errors.tolist(), strict=True))
        lowest = min(near, key=found.__getitem__)
        if lowest == best:
            return float(alphas[best])
        best = lowest


def tuned_on_part(X: Any, costs: CostMatrix, weight: np.ndarray | None, n_rows: int) -> float:
    """The penalty chosen on `n_rows` rows spread evenly over X."""
    used = _spread(np.arange(costs.shape[0]), n_rows)
    part = RidgeFactor.unpenalised(X[used], None if weight is None else weight[used])
    return tuned_penalty(part, costs.of_rows(used))


def _incomplete(
    rows: RidgeFactor, s: np.ndarray, costs: CostMatrix, n_observed: np.ndarray
) -> list[Ads]:
    """Ads with rows of their own: those used, each counting for others, too."""
    n_rows, p = rows.design.shape[0], rows.design.shape[1] - 1
    groups = [ads for ads in costs.observed_together() if n_observed[ads[0]] > 1]
    if not groups:
        return []
    n = np.array([n_observed[ads[0]] for ads in groups], dtype=float)
    size = np.array([len(ads) for ads in groups])
    allowed = max(TUNING_WORK, (np.minimum(n, n_rows - n) * p**2 + p**3 / 3).sum())
    work = CALLS_COST + np.mean([_work(n_rows, p, int(k)) for k in n])
    enough = min(allowed / work, ENOUGH_COSTS / (n * size).mean())
    used = _spread(np.arange(len(groups)), max(FEWEST_ADS, int(enough)))
    counts_for = (n * size).sum() / (n * size)[used].sum()
    found = []
    for g in used:
        seen, _ = costs.of_ad(int(groups[g][0]))
        kept = _spread(seen, _fewest_within(allowed / len(used), n_rows, p, len(seen)))
        ads = _spread(groups[g], _most_ads(len(kept), p))
        F = _dense(costs.values[:, ads])[kept].astype(float)
        share = counts_for * len(groups[g]) / len(ads) * len(seen) / len(kept)
        found.append(Ads.of(rows, s, kept, F, share))
    return found


def _by_features(
    rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray
) -> tuple[Middle, Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """M, B and r of rows `seen`, which are not fewer than features."""
    n_rows = rows.design.shape[0]
    gram = rows.gram if len(seen) == n_rows else rows.gram_of(seen)
    centre = gram[:-1, -1] / gram[-1, -1]
    M, turn = reduced(_centred(gram), F.shape[1])
    everywhere = F
    if len(seen) < n_rows:
        everywhere = np.zeros((n_rows, F.shape[1]))
        everywhere[seen] = F
    # F is centred, so that rows need not be
    r = turn(_dense(rows.weighted[:, :-1].T @ everywhere).T).T
    return M, lambda some: turn(_dense(rows.design[seen[some], :-1]) - centre), r


def _by_rows(
    rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray
) -> tuple[Middle, Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """M, B and r of rows `seen`, which are fewer than features, by their inner products."""
    root = np.sqrt(s)[:, None]
    X = _dense(rows.design[seen, :-1])
    X = (X - s @ X / s.sum()) * root
    M, turn = diagonalised(X @ X.T)
    B = turn(np.eye(len(X))) * np.sqrt(M.d) / root
    return M, lambda some: B[some], B.T @ (F * root**2)


def _centred(gram: np.ndarray) -> np.ndarray:
    """X'SX of centred rows, given A'SA, A = [X, 1]."""
    return gram[:-1, :-1] - np.outer(gram[:-1, -1], gram[:-1, -1]) / gram[-1, -1]


def _most_ads(n: int, p: int) -> int:
    """Number of ads observed together in n rows that suffices."""
    return max(FEWEST_ADS, MOST_COSTS // max(n, p) ** 2)


def _n_left_out(p: int, n_ads: int) -> int:
    """Number of rows of that many ads that suffices."""
    return min(MOST_LEFT_OUT, max(p, RESIDUALS // n_ads))


def _work(n_rows: int, p: int, n: int) -> float:
    """Multiplications to tune on an ad observed in n rows."""
    if n < p:
        return n**2 * p + EIGEN_COST * n**3
    reduction = (EIGEN_COST if p < TRIDIAGONAL_FROM else REFLECTION_COST) * p**3
    products = min(n, n_rows - n) + 2 * min(n, _n_left_out(p, 1))
    return products * p**2 + reduction


def _fewest_within(work: float, n_rows: int, p: int, n: int) -> int:
    """Number of rows, from 2 to n, whose errors take at most four times that `work`."""
    while n > 2 and _work(n_rows, p, n) > 4 * work:
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
