"""Unbiased costs of all ads (or arms) per row, from the costs of those shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LoggedSlates:
    """The ads shown in a log, one entry per row and ad.

    Parameters
    ----------
    row, ad : ndarray of int, shape (n_shown,)
        Row and position of the ad; no ad occurs twice in a row.
    cost, propensity : ndarray of shape (n_shown,)
        f, and the probability pi_a(x) of showing the ad in that row.
    n_rows, n_ads : int
        Numbers of rows and ads.
    available : ndarray of bool, shape (n_rows, n_ads), or None
        Which ads could be shown; None means all.
    """

    row: np.ndarray
    ad: np.ndarray
    cost: np.ndarray
    propensity: np.ndarray
    n_rows: int
    n_ads: int
    available: np.ndarray | None = None

    @property
    def n_available(self) -> np.ndarray:
        """Number of rows in which each ad could be shown."""
        if self.available is None:
            return np.full(self.n_ads, self.n_rows)
        return self.available.sum(axis=0)

    def weight_available(self, row_weight: np.ndarray) -> np.ndarray:
        """Total weight of the rows in which each ad could be shown."""
        if self.available is None:
            return np.full(self.n_ads, row_weight.sum())
        return row_weight @ self.available

    def in_matrix(self, values: np.ndarray) -> np.ndarray:
        """A matrix (n_rows, n_ads) with the values of the entries, and 0 elsewhere."""
        matrix = np.zeros((self.n_rows, self.n_ads))
        matrix[self.row, self.ad] = values
        return matrix


def ips_costs(slates: LoggedSlates) -> np.ndarray:
    """1[a shown] f_a / pi_a: inverse propensity scoring."""
    return slates.in_matrix(slates.cost / slates.propensity)


def snips_costs(slates: LoggedSlates, row_weight: np.ndarray | None = None) -> np.ndarray:
    """As `ips_costs`, with the weights of each ad divided by their mean over its rows.

    Its rows are those in which it could be shown; in them, 1[a shown] / pi has expectation 1. The
    mean of a column over these rows is then a weighted mean of the ad's observed costs. Rows may
    count for several, or a part, by `row_weight` (n_rows,).
    """
    weight = 1 / slates.propensity
    if row_weight is None:
        total, n = np.bincount(slates.ad, weight, minlength=slates.n_ads), slates.n_available
    else:
        own = row_weight[slates.row]
        total = np.bincount(slates.ad, weight * own, minlength=slates.n_ads)
        n = slates.weight_available(row_weight)
    mean = total / np.where(n > 0, n, 1.0)
    return slates.in_matrix(slates.cost * weight / np.where(mean > 0, mean, 1.0)[slates.ad])


def dr_costs(slates: LoggedSlates, mu: np.ndarray, shrinkage: float = np.inf) -> np.ndarray:
    """mu_a + 1[a shown] w (f_a - mu_a), with out-of-fold predictions mu (n_rows, n_ads).

    The weight w is 1 / pi_a, or with a finite shrinkage lambda the smaller lambda w / (w^2 +
    lambda) of Su et al. (2020), "Doubly robust off-policy evaluation with shrinkage".
    """
    residual = slates.cost - mu[slates.row, slates.ad]
    return mu + slates.in_matrix(residual * shrunk_weights(1 / slates.propensity, shrinkage))


def shrunk_weights(weight: np.ndarray, shrinkage: float) -> np.ndarray:
    """λ w / (w² + λ), for λ from 0 (no weights) to infinity (all of w); at most √λ / 2."""
    if np.isinf(shrinkage):
        return weight
    # w² may overflow: with v = w / √λ, it is √λ v / (v² + 1) = √λ / (v + 1/v)
    root = np.sqrt(shrinkage)
    if root == 0:
        return np.zeros_like(weight)
    v = weight / root
    positive = v > 0
    return root * np.where(positive, 1 / (v + 1 / np.where(positive, v, 1.0)), 0.0)


def offset_costs(slates: LoggedSlates) -> np.ndarray:
    """1[a shown] (f_a - offset) / pi_a, where the offset is the midrange of the costs.

    On these costs, the filter tree is the offset tree of Beygelzimer & Langford (2009), "The offset
    tree for learning with partial labels". There, a logged event (x, a, f, p) is an example for the
    match between ads l and r only if it shows one of them. The example has the weight
    |f - offset| / p; its label is a if f is below the offset, and the opponent otherwise. (For
    rewards in [0, 1] the offset is 1/2, with the least variance in the worst case.) In the filter
    tree, |c_l - c_r| is 0 in matches without a. In rounds, an event whose ad has been chosen is
    ignored, as that ad no longer competes.

    The expected costs are f* - offset for every ad: the true costs, shifted by a constant.
    """
    midrange = (slates.cost.min() + slates.cost.max()) / 2
    return slates.in_matrix((slates.cost - midrange) / slates.propensity)
