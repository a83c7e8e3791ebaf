"""One classifier for all pairs of ads, of the features z of the ads: new ads can be chosen.

The classifier says from x and the difference z_a - z_b which of the ads a and b costs less, with
the weight |c_a - c_b|. Every pair comes in both orders.

linear      It learns from z_a - z_b and all its products with x, so that its scores are the
            differences w'phi(x, z_a) - w'phi(x, z_b) of one score for each ad: transitive, and no
            more than one product for each ad.
other       It learns from x and z_a - z_b. It need not be transitive: the ad that beats most others
            is chosen. A winner a beats the best ad b, or another ad that beats b (Landau 1953), so
            that the regret is at most that of these one or two matches, and at most the sum of the
            regrets of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import gen_batches

from skbandit.selection._cost_models import weight_params
from skbandit.selection._costs import append_columns
from skbandit.selection._ridge import Linear
from skbandit.selection.reductions._all_pairs import AllPairs
from skbandit.selection.reductions._rule import CostSensitiveRule, Examples, LowestCost
from skbandit.utils._sklearn_compat import LinearClassifierMixin

MAX_PAIRS, MAX_ENTRIES = 200_000, 2 * 10**7
"""Number of pairs to learn from, and of their features times pairs: 160 MB for each of two orders.
Of more, that many pairs are drawn."""

PAIRS_PER_CALL = 2**17
"""Number of pairs predicted at a time, which bounds the memory."""

RuleOfAds = Callable[[np.ndarray], CostSensitiveRule]
"""Maps features of ads, of shape (n_ads, n_ad_features), to the choice of one of them."""


@dataclass(frozen=True)
class PlayedPairs(AllPairs):
    """A round robin whose matches are all decided by one classifier.

    Parameters
    ----------
    classifier : object with predict
        Label 1: the first of two ads is better.
    Z : ndarray of shape (n_ads, n_ad_features)
        Features of the ads.
    """

    classifier: Any
    Z: np.ndarray

    def respond(self, X: Any) -> np.ndarray:
        """Mark where i beats j, bool (n, K (K - 1) / 2)."""
        i, j = np.triu_indices(len(self.Z), 1)
        wins = np.empty((X.shape[0], len(i)), dtype=bool)
        for rows in gen_batches(X.shape[0], max(1, PAIRS_PER_CALL // max(1, len(i)))):
            row = np.repeat(np.arange(rows.start, rows.stop), len(i))
            difference = np.tile(self.Z[i] - self.Z[j], (rows.stop - rows.start, 1))
            if len(row):
                margin = self._wins(X, row, difference) - self._wins(X, row, -difference)
                wins[rows] = (margin >= 0).reshape(-1, len(i))
        return wins

    def _wins(self, X: Any, row: np.ndarray, difference: np.ndarray) -> np.ndarray:
        """Preference for the first of each pair; the two orders need not agree."""
        pairs = append_columns(X[row], difference)
        if hasattr(self.classifier, "predict_proba"):
            # its classes, 0 and 1, may come in any order
            classes = np.asarray(getattr(self.classifier, "classes_", (0, 1)), float)
            return self.classifier.predict_proba(pairs) @ classes
        return np.asarray(self.classifier.predict(pairs), dtype=float)


def learn_pairwise(
    examples: Examples, Z: np.ndarray, learner: Any, alpha: float, random: np.random.RandomState
) -> RuleOfAds:
    """Learn to compare ads by their features.

    Parameters
    ----------
    examples : Examples
    Z : ndarray of shape (K, q)
        Features of the ads.
    learner : classifier or None
        None means logistic regression. Linear are scikit-learn's linear classifiers.
    alpha : float
        Penalty of ridge regressions of the costs, ad by ad; used if `learner` is None. A row of K
        ads has K times the squared differences that it has squared deviations of costs, and z gives
        the weights of an ad the prior variance |z|^2: hence the penalty of the default.
    random : RandomState
        Draws the pairs, if there are too many.

    Returns
    -------
    callable
        Maps the features of ads, known or new, to the choice of one of them.
    """
    X, costs, weight = examples.X, examples.targets, examples.weight
    i, j = np.triu_indices(costs.shape[1], 1)
    gain = costs[:, j] - costs[:, i]  # of choosing i
    row, pair = np.nonzero(np.nan_to_num(gain))
    n, q = X.shape[1], Z.shape[1]
    most = max(1, min(MAX_PAIRS, MAX_ENTRIES // ((n + 1) * max(q, 1))))
    share = min(1.0, most / max(1, len(row)))
    if share < 1.0:
        kept = np.sort(random.choice(len(row), most, replace=False))
        row, pair = row[kept], pair[kept]
    if not len(row):
        return partial(_lowest_score, np.zeros((n + 1, q)))
    stake = np.abs(gain[row, pair])
    s = weight[row] * stake / np.average(stake, weights=weight[row])
    label = (gain[row, pair] > 0).astype(int)
    difference = Z[i[pair]] - Z[j[pair]]
    # both orders: the labels are balanced, and a linear learner has no use for an intercept
    row, label, s = np.tile(row, 2), np.concatenate([label, 1 - label]), np.tile(s, 2)
    difference = np.concatenate([difference, -difference])
    if learner is None:
        size = alpha * max(float(Z.var(axis=0).sum()), np.finfo(float).tiny)
        C = 1.0 / (size * 2 * share * costs.shape[1] / 4)
        learner = LogisticRegression(C=C, fit_intercept=False, max_iter=1000)
    linear = isinstance(learner, LinearClassifierMixin)
    pairs = (crossed if linear else append_columns)(X[row], difference)
    fitted = clone(learner).fit(pairs, label, **weight_params(learner, s))
    if linear:
        return partial(_lowest_score, np.asarray(fitted.coef_).reshape(n + 1, q))
    return partial(PlayedPairs, (), fitted)


def _lowest_score(W: np.ndarray, Z: np.ndarray) -> LowestCost:
    """Choose by the scores ``[x, 1] @ W @ z`` of ads with features Z: the higher, the better."""
    return LowestCost(Linear(np.ascontiguousarray(-W @ Z.T)))


def crossed(X: Any, Z: np.ndarray) -> Any:
    """Products of each column of [X, 1] with each of Z, row by row, columns of Z the faster."""
    wide = append_columns(X, np.ones((X.shape[0], 1)))
    if sp.issparse(X):
        wide = sp.csr_array(wide)
        parts = [wide.multiply(Z[:, [k]]) for k in range(Z.shape[1])]
        p = wide.shape[1]
        order = np.arange(p * Z.shape[1]).reshape(Z.shape[1], p).T.ravel()
        return sp.csr_matrix(sp.hstack(parts, format="csc")[:, order])
    return (wide[:, :, None] * Z[:, None, :]).reshape(len(wide), -1)
