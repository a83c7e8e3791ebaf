"""Costs of all ads, from logs that show only what the chosen ones cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit.logs import Codes, code_labels, cross_fitted_rewards, label_array
from skbandit.selection._costs import HUGE
from skbandit.selection.reductions._offset_tree import offset_costs
from skbandit.utils._sklearn_compat import count_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Shown:
    """The ads that a log shows, one entry each.

    Parameters
    ----------
    row, ad : ndarray of int, shape (n_shown,)
        In which row, and the number of the ad; no ad twice in a row.
    cost, propensity : ndarray of shape (n_shown,)
        f, and the probability pi_a(x) with which the ad was to be shown there.
    n_rows, n_ads : int
        How many rows and ads there are.
    """

    row: np.ndarray
    ad: np.ndarray
    cost: np.ndarray
    propensity: np.ndarray
    n_rows: int
    n_ads: int

    def in_matrix(self, values: np.ndarray) -> np.ndarray:
        """Values of the entries, each in its place of a matrix (n_rows, n_ads) of zeros."""
        matrix = np.zeros((self.n_rows, self.n_ads))
        matrix[self.row, self.ad] = values
        return matrix


def ips(shown: Shown) -> np.ndarray:
    """1[a shown] f_a / pi_a: inverse propensity scoring."""
    return shown.in_matrix(shown.cost / shown.propensity)


def snips(shown: Shown) -> np.ndarray:
    """The same, with the weights 1 / pi of each ad divided by their mean over all rows.

    So the mean of a column is a weighted mean of the ad's own costs.
    """
    weight = 1 / shown.propensity
    mean = np.bincount(shown.ad, weight, minlength=shown.n_ads) / shown.n_rows
    return shown.in_matrix(shown.cost * weight / mean[shown.ad])


def doubly_robust(shown: Shown, mu: np.ndarray) -> np.ndarray:
    """mu_a + 1[a shown] (f_a - mu_a) / pi_a, with mu (n_rows, n_ads) predicted out of fold."""
    surprise = shown.cost - mu[shown.row, shown.ad]
    return mu + shown.in_matrix(surprise / shown.propensity)


def logged_costs(
    action: ArrayLike,
    cost: ArrayLike,
    propensity: ArrayLike,
    *,
    method: str = "ips",
    X: Any = None,
    model: Any = None,
    cv: Any = 5,
    ads: Sequence[Any] | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Estimate the costs of all ads from a log that shows those of the chosen ones.

    The estimates are right on average over the random choices of the logging policy, so every
    set selector can learn from them in the place of costs observed in full.

    Parameters
    ----------
    action : array-like of shape (n_samples,) or (n_samples, n_slots)
        Labels of the ads that were shown, one or a slate; in empty slots None or nan.
    cost : array-like of the shape of `action`
        What each of them cost; lower is better, so pass ``-reward``.
    propensity : array-like of the shape of `action`
        Probability in (0, 1], given the row, with which the ad was to be shown. For slates,
        that of being in the slate at all (the marginal inclusion probability), in whatever slot.
    method : {"ips", "snips", "dr", "offset"}, default="ips"
        See Notes.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), default=None
        What `model` predicts from; for "dr" only, where it is needed.
    model : regressor or classifier with predict_proba, default=None
        For "dr": cloned for every ad and fold, it predicts costs; None is `Ridge`.
    cv : int, cross-validation generator or iterable, default=5
        For "dr": the folds; rows are predicted by models that have not seen them.
    ads : sequence of labels, default=None
        All ads, in the order of columns wanted. None is those of the log, sorted.
    random_state : int, RandomState or None, default=None
        For "dr": shuffles rows into folds, if `cv` is a number.

    Returns
    -------
    DataFrame of shape (n_samples, n_ads)
        Costs, a column an ad.

    Raises
    ------
    ValueError
        If shapes differ, a propensity is not in (0, 1], a cost is missing, or an ad comes twice
        in a row or is not among `ads`.

    See Also
    --------
    skbandit.selection.SetSelectClassifier : Chooses sets by cost-sensitive classifiers.

    Notes
    -----
    With f the cost, p the propensity, f* the expected cost given the row:

    - "ips", f / p for what was shown and 0 elsewhere: unbiased if every ad has a positive
      probability wherever it may be chosen; the variance grows with 1 / p.
    - "snips": the weights 1 / p of each ad are divided by their mean. Less variance where
      costs are far from 0; the bias vanishes as the number of rows grows.
    - "dr", doubly robust: predictions mu, corrected by (f - mu) / p for what was shown.
      Unbiased as "ips" is, with the less variance the better mu is.
    - "offset", (f - midrange) / p for what was shown and 0 elsewhere: f* less a constant which
      is the same for all ads, and so as good to choose by. With `FilterTreeClassifier` this is
      the offset tree of Beygelzimer & Langford (2009).

    Such costs are noisy, whichever way: a single one may lie far outside the range of costs. So
    they must not be shifted below 0 by their maximum, as ``SetSelectClassifier(method="post")``
    would; its masked rounds, and regression, need no shift.

    Pass `available` to the selector, if not every ad could be shown in every row. A mean of
    the returned costs of chosen ads, as in ``score(X, logged_costs(...))``, is the usual
    estimate of what the chosen sets cost.

    Examples
    --------
    >>> from skbandit.selection import logged_costs
    >>> logged_costs(["a", "b", "a"], [-1.0, 0.0, -0.5], [0.5, 0.5, 0.25])
         a    b
    0 -2.0  0.0
    1  0.0  0.0
    2 -2.0  0.0

    Slates of two ads out of three, each ad in two slates of three:

    >>> logged_costs([["a", "b"], ["c", "a"]], [[-1, 0], [-3, -1]], [[2 / 3, 2 / 3]] * 2)
         a    b    c
    0 -1.5  0.0  0.0
    1 -1.5  0.0 -4.5
    """
    shown, labels = _read_shown(action, cost, propensity, ads)
    index = action.index if isinstance(action, pd.Series | pd.DataFrame) else None
    if method == "ips":
        costs = ips(shown)
    elif method == "snips":
        costs = snips(shown)
    elif method == "offset":
        costs = shown.in_matrix(offset_costs(shown.cost, shown.propensity))
    elif method == "dr":
        costs = doubly_robust(shown, _predicted(shown, X, model, cv, random_state))
    else:
        raise ValueError(f'method={method!r} must be one of "ips", "snips", "dr", "offset".')
    return pd.DataFrame(costs, columns=labels, index=index)


def _predicted(shown: Shown, X: Any, model: Any, cv: Any, random_state: Any) -> np.ndarray:
    """Costs of all ads, by models an ad that have not seen the row."""
    if X is None:
        raise ValueError('method="dr" predicts costs from X: pass X=, or choose method="ips".')
    if count_rows(X) != shown.n_rows:
        raise ValueError(f"X has {count_rows(X)} rows, action has {shown.n_rows}.")
    return cross_fitted_rewards(
        model,
        X,
        shown.ad,
        shown.cost,
        shown.n_ads,
        row=shown.row,
        cv=cv,
        random_state=random_state,
    )


def _read_shown(
    action: Any, cost: Any, propensity: Any, ads: Sequence[Any] | None
) -> tuple[Shown, np.ndarray]:
    """Check a log; its entries, and the labels of the ads."""
    names = _table(action, "action")
    if not names.size:
        raise ValueError("The log is empty: action has no entries.")
    numbers = [_numbers(cost, names, "cost"), _numbers(propensity, names, "propensity")]
    filled = ~names.isna().to_numpy()
    row = np.nonzero(filled)[0]
    if not len(row):
        raise ValueError("The log is empty: action is missing everywhere.")
    f, p = (table[filled] for table in numbers)
    bad = ~(np.abs(f) <= HUGE)
    if bad.any():
        raise ValueError(f"cost is {f[bad][0]} in row {row[bad][0]} for an ad that was shown.")
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        raise ValueError(
            f"propensity must be in (0, 1], the probability that the ad was to be shown: row "
            f"{row[bad][0]} has {p[bad][0]:g}."
        )
    codes: Codes = {} if ads is None else {label: k for k, label in enumerate(ads)}
    n_known = len(codes)
    ad = code_labels(pd.Series(names.to_numpy(dtype=object)[filled], dtype=object), codes)
    labels = label_array(codes)
    if ads is None:
        labels, ad = _sorted(labels, ad)
    elif len(codes) > n_known:
        where = row[np.flatnonzero(ad >= n_known)[0]]
        raise ValueError(f"Row {where} shows {labels[n_known]!r}, which is not among ads.")
    first = np.unique(row * len(labels) + ad, return_index=True)[1]
    if len(first) < len(row):
        again = np.setdiff1d(np.arange(len(row)), first)[0]
        raise ValueError(f"Row {row[again]} shows ad {labels[ad[again]]!r} twice.")
    return Shown(row, ad, f, p, len(names), len(labels)), labels


def _table(values: Any, name: str) -> pd.DataFrame:
    """A column, or one a slot."""
    if not isinstance(values, pd.Series | pd.DataFrame):
        if not isinstance(values, Iterable) or isinstance(values, type) or issparse(values):
            raise TypeError(f"{name} must be an array with one row a sample, got {values!r}.")
        values = np.asarray(values) if hasattr(values, "__array__") else list(values)
    if np.ndim(values) not in (1, 2):
        raise ValueError(f"{name} must have one row a sample, and one column a slot at most.")
    return pd.DataFrame(values)


def _numbers(values: Any, names: pd.DataFrame, name: str) -> np.ndarray:
    """Numbers of the shape of `names`."""
    table = _table(values, name)
    if table.shape != names.shape:
        raise ValueError(f"{name} has shape {table.shape}, action {names.shape}: one for each ad.")
    try:
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from error


def _sorted(labels: np.ndarray, ad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels in ascending order, if they have one, and the numbers that go with it."""
    try:
        order = np.argsort(labels, kind="stable")
    except TypeError:  # of different kinds
        return labels, ad
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return labels[order], place[ad]
