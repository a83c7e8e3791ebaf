"""Estimated costs of all ads, from logs that hold only the costs of the ads shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit import logs
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import at_most_1, refuse_lazy, warn_if_reordered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def logged_costs(
    action: ArrayLike,
    cost: ArrayLike,
    propensity: ArrayLike,
    *,
    method: str = "ips",
    X: Any = None,
    reward_model: Any = None,
    cv: Any = 5,
    ads: Sequence[Any] | None = None,
    available: Any = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Estimate the costs of all ads from a log of the ads shown.

    The estimates are unbiased over the random choices of the logging policy, so every set selector
    can learn from them in place of fully observed costs.

    Parameters
    ----------
    action : array-like of shape (n_samples,) or (n_samples, n_slots)
        Labels of the ads shown, a single ad or a slate per row; None or nan in empty slots.
    cost : array-like of the shape of `action`
        Cost of each of these ads; lower is better, so pass ``-reward``.
    propensity : array-like of the shape of `action`
        Probability in (0, 1] of showing the ad, given the row. For slates, the marginal inclusion
        probability: that of showing the ad in any slot.
    method : {"ips", "snips", "dr", "offset"}, default="ips"
        See Notes.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), default=None
        Rows from which `reward_model` predicts; required for "dr".
    reward_model : regressor or classifier with predict_proba, default=None
        For "dr": predicts costs, in one clone per ad and fold; None means `Ridge`.
    cv : int, cross-validation generator or iterable, default=5
        For "dr": folds; each row is predicted by models that have not seen it.
    ads : sequence of labels, default=None
        All ads, in the order of the columns to return. None means those of the log and of
        `available`, sorted.
    available : array-like, table or collection of labels, default=None
        Which ads could be shown: a boolean table with columns in the order of `ads` or, for a
        DataFrame, matched by label; a collection of labels per row; or one for all rows. None
        means all ads in every row.
    random_state : int, RandomState or None, default=None
        For "dr": assigns rows to folds, if `cv` is a number.

    Returns
    -------
    DataFrame of shape (n_samples, n_ads)
        Costs, one column per ad; nan where the ad was not available.

    Raises
    ------
    ValueError
        If shapes differ, a propensity is not in (0, 1] or so small that estimates overflow, a
        cost is missing, or an ad occurs twice in a row, was not available or is not in `ads`.

    Warns
    -----
    UserWarning
        If the weights 1 / p of an ad do not have the mean 1 that they should have, up to chance,
        over the rows where it was available.

    See Also
    --------
    skbandit.selection.SetSelectClassifier : Chooses sets by cost-sensitive classifiers.

    Notes
    -----
    With f the cost, p the propensity and f* the expected cost given the row:

    - "ips": f / p for ads shown and 0 elsewhere. Unbiased if every ad that may be chosen has a
      positive probability; the variance grows with 1 / p.
    - "snips": as "ips", with the weights 1 / p of each ad divided by their mean over the rows
      where it was available. Less variance if costs are far from 0; the bias vanishes as the
      number of rows grows.
    - "dr", doubly robust: predictions mu, corrected by (f - mu) / p for ads shown. Unbiased under
      the conditions of "ips"; the better mu, the lower the variance.
    - "offset": (f - midrange) / p for ads shown and 0 elsewhere. Its expectation is f* minus a
      constant common to all ads, which does not affect choices. With the filter tree this is
      the offset tree of Beygelzimer & Langford (2009).

    All these estimates are noisy: a single one may lie far outside the range of costs. So they must
    not be shifted by their maximum, as in ``SetSelectClassifier(method="published")``. Masked
    rounds and regression need no shift.

    If not every ad could be shown in every row, pass `available` here: otherwise "snips" divides
    by a mean weight that is too small, and the zeros of rows where an ad was missing are taken
    for its costs. Pass it to the selector, too. The mean of the
    returned costs of the chosen ads, as in ``score(X, logged_costs(...))``, is the usual estimate
    of the cost of the chosen sets.

    Examples
    --------
    >>> from skbandit.selection import logged_costs
    >>> logged_costs(["a", "b", "a"], [-1.0, 0.0, -0.5], [0.5, 0.5, 0.25])
         a    b
    0 -2.0  0.0
    1  0.0  0.0
    2 -2.0  0.0

    Slates of two of three ads, where each ad is in two of three slates:

    >>> logged_costs([["a", "b"], ["c", "a"]], [[-1, 0], [-3, -1]], [[2 / 3, 2 / 3]] * 2)
         a    b    c
    0 -1.5  0.0  0.0
    1 -1.5  0.0 -4.5
    """
    tables = {"action": action, "cost": cost, "propensity": propensity, "X": X}
    refuse_lazy({**tables, "available": available})
    warn_if_reordered(tables)
    available = logs.align_rows(available, action)
    slates, labels = _read_slates(action, cost, propensity, ads, available)
    logs.check_weights(slates, labels, "ad")
    logs.warn_if_rewards(slates.cost, "cost", cost)
    index = action.index if isinstance(action, pd.Series | pd.DataFrame) else None
    if method == "ips":
        costs = logs.ips_costs(slates)
    elif method == "snips":
        costs = logs.snips_costs(slates)
    elif method == "offset":
        costs = logs.offset_costs(slates)
    elif method == "dr":
        if X is None:
            raise ValueError('method="dr" predicts costs from X: pass X=, or choose method="ips".')
        if count_rows(X) != slates.n_rows:
            raise ValueError(f"X has {count_rows(X)} rows, action has {slates.n_rows}.")
        events, folds = (slates.ad, slates.cost, slates.n_ads), {"cv": cv, "row": slates.row}
        folds["random_state"] = random_state
        costs = logs.dr_costs(slates, logs.cross_fitted_rewards(reward_model, X, *events, **folds))
    else:
        raise ValueError(f'method={method!r} must be one of "ips", "snips", "dr", "offset".')
    if slates.available is not None:
        costs[~slates.available] = np.nan
    return pd.DataFrame(costs, columns=labels, index=index)


def _read_slates(
    action: Any, cost: Any, propensity: Any, ads: Sequence[Any] | None, available: Any
) -> tuple[logs.LoggedSlates, np.ndarray]:
    """Check a log; return its entries and the labels of the ads."""
    given = {"reward": cost, "propensity": propensity}
    arms = [] if ads is None else logs.plain_labels(ads)
    if ads is not None and available is not None:
        mask = logs.read_mask(available, logs.label_array(arms), count_rows(action))
        available = pd.DataFrame(mask.toarray() if issparse(mask) else mask, columns=arms)
    y = {"action": action}
    log = logs.read_slates(y, **given, available=available, arms=arms, gaps=True)
    if ads is None:
        log = log.with_sorted_arms()
    elif len(log.arms) > len(arms):
        new = int(np.flatnonzero((log.action >= len(arms)).any(axis=1))[0])
        raise ValueError(
            f"row {new} shows {log.arms[len(arms)]!r}, which is not in ads: add it, or drop the "
            "row."
        )
    row, place = np.nonzero(log.shown)
    f = log.of_arms(cost, "cost")[row, place]
    p = at_most_1(log.of_arms(propensity, "propensity")[row, place])
    if (bad := np.isnan(f)).any():
        raise ValueError(f"cost is nan in row {row[bad][0]}: every ad shown needs a finite cost.")
    if (bad := ~((p > 0) & (p <= 1))).any():
        raise ValueError(
            f"propensity must be in (0, 1], the probability of showing the ad: row "
            f"{row[bad][0]} has {p[bad][0]:g}."
        )
    if (bad := np.maximum(np.abs(f), 1.0) > logs.MAX_COST * p).any():
        raise ValueError(
            f"propensity is {p[bad][0]:g} in row {row[bad][0]}, with the cost {f[bad][0]:g}: the "
            f"estimate, their ratio, exceeds {logs.MAX_COST:g}. Correct the propensity, or drop "
            "the row."
        )
    mask = None if log.pools is None else log.available_mask(len(log.arms))
    events = row, log.action[row, place], f, p
    return logs.LoggedSlates(*events, len(log), len(log.arms), mask), log.arms
