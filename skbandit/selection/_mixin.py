"""Base of all set selectors: m labels per row, best first, and the cost of the set."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.logs import align_rows, read_mask, warn_if_rewards, warn_of_shared_columns
from skbandit.selection._ad_features import read_ad_features
from skbandit.selection._costs import (
    CostMatrix,
    check_enough_available,
    check_n_select,
    column_labels,
    estimated_costs,
    labeled_ads,
    read_cost_matrix,
    read_position_weights,
    to_dense,
)
from skbandit.selection._m_lowest import BLOCK_BYTES, m_lowest
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import (
    check_row_weights,
    explained_entries,
    first_few,
    warn,
    warn_if_reordered,
    without_unit,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

PREDICTS = "; predict then takes one partition at a time"
"""Advice for more rows than memory holds."""

UNLIKE_SCALES = 1000.0
"""Quotient of the standard deviations of two features above which one penalty cannot suit both."""


class SetSelectorMixin:
    """Chooses `n_select` of the ads `ads_` per row.

    Subclasses have parameters `n_select` and `unknown_ads`, set `ads_` in `fit`, and define
    `_rank`. Those whose sets cannot hold all ads also define `_largest_set`, and
    those that take ad features `_described` and `_describe`.
    """

    # Requested by default, so that users need no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"available": True, "sample_weight": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {
        "available": True,
        "n_select": True,
        "ad_features": True,
        "fill": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "available": True,
        "ad_features": True,
        "sample_weight": True,
        "position_weights": True,
    }

    _costs_missing = False  # whether costs of available ads were not observed in fit
    _had_availability = False  # whether ads were unavailable in fit

    n_select: int
    unknown_ads: Literal["error", "ignore"]
    ads_: np.ndarray

    def _rank(self, X: Any, allowed: np.ndarray | None, n_select: int) -> np.ndarray:
        """Positions in `ads_`, best first; -1 where a row has too few allowed ads."""
        raise NotImplementedError

    def _read_X(self, X: Any, reset: bool) -> Any:
        """Rows in the form that the model takes: any, unless it needs numbers."""
        validate_data(self, X, skip_check_array=True, reset=reset)
        return indexable(X)[0]

    def _read_numbers(self, X: Any, reset: bool, finite: bool = True) -> Any:
        """Rows as an array or csr matrix of floats, finite or not."""
        with explained_entries(X, type(self).__name__, numbers=True):
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=finite,
            )

    @property
    def _largest_set(self) -> int:
        """Size of the largest set that can be chosen."""
        return len(self.ads_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this selector, or of its estimator as ``estimator__<name>``.

        Parameters
        ----------
        **params : object
            Values by name.

        Returns
        -------
        self
        """
        nested = [name for name in params if name.startswith("estimator__")]
        estimator = params.get("estimator", getattr(self, "estimator", self))
        if nested and (estimator is None or isinstance(estimator, str)):
            default = self._learner() if hasattr(self, "_learner") else Ridge()
            raise ValueError(
                f"{nested[0]} cannot be set, as {estimator=} has no parameters: pass the "
                f"estimator itself, as in {type(self).__name__}(estimator={default!r})."
            )
        return super().set_params(**params)  # type: ignore[misc]

    def _with_ads(self, ad_features: Any) -> SetSelectorMixin:
        """Return a selector that chooses from the described ads; this one if None."""
        if ad_features is None:
            return self
        described = vars(self).get("_described")
        if described is None:
            raise ValueError(
                f"{type(self).__name__} takes no ad_features, unless its fit had them: this "
                "selector knows ads by label only."
            )
        features = read_ad_features(ad_features)
        tables = described.table, features.table
        before, now = (list(getattr(t, "columns", range(np.shape(t)[1]))) for t in tables)
        named = all(hasattr(table, "columns") for table in tables)
        if len(before) != len(now) or (named and before != now):
            raise ValueError(
                f"ad_features has the {len(now)} columns {first_few(now)}, unlike the "
                f"{len(before)} of fit, {first_few(before)}: pass the same, in the same order."
            )
        other: Any = copy.copy(self)
        other.ads_ = features.ads
        other._describe(features)
        return other

    def predict(
        self,
        X: Any,
        *,
        available: Any = None,
        n_select: int | None = None,
        ad_features: Any = None,
        fill: Any = None,
    ) -> np.ndarray:
        """Choose a set of ads per row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, table or collection of labels, default=None
            Which ads may be chosen: a boolean table, dense or sparse, with columns in the order of
            `ads_` or, for a DataFrame, matched by label; a collection of labels per row; or one
            for all rows. None means all.
        n_select : int, default=None
            Number of ads to choose; None means the parameter `n_select`.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, which may include new ones, if `fit` had `ad_features`. They
            replace `ads_`, both for the other parameters and in the result.
        fill : label, default=None
            Marker for the missing ads of rows with fewer than n_select available ads; with
            None, such rows are an error.

        Returns
        -------
        ndarray of shape (n_samples, n_select)
            Labels of ads, best first, without duplicates in a row.

        Raises
        ------
        ValueError
            If a row has too few available ads and `fill` is None.
        """
        if "ads_" not in vars(self):
            check_is_fitted(self)
        selector = self._with_ads(ad_features)
        chosen = selector._chosen(X, available, n_select, allow_short=fill is not None)
        return labeled_ads(chosen, selector.ads_, fill)

    def predict_indicator(
        self,
        X: Any,
        *,
        available: Any = None,
        n_select: int | None = None,
        ad_features: Any = None,
    ) -> np.ndarray:
        """Mark the chosen ads: the sets of `predict`, without their order.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, table or collection of labels, default=None
            Which ads may be chosen: a boolean table, dense or sparse, with columns in the order of
            `ads_` or, for a DataFrame, matched by label; a collection of labels per row; or one
            for all rows. None means all. Rows with fewer than n_select get all of them.
        n_select : int, default=None
            Number of ads to choose; None means the parameter `n_select`.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, which may include new ones, if `fit` had `ad_features`. They
            replace `ads_`, both for the other parameters and in the result.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_ads)
            True if chosen; columns in the order of `ads_`.
        """
        check_is_fitted(self)
        selector = self._with_ads(ad_features)
        chosen = selector._chosen(X, available, n_select, allow_short=True)
        marked = np.zeros((len(chosen), len(selector.ads_)), dtype=bool)
        rows, k = np.nonzero(chosen >= 0)
        marked[rows, chosen[rows, k]] = True
        return marked

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        available: Any = None,
        ad_features: Any = None,
        sample_weight: ArrayLike | None = None,
        position_weights: ArrayLike | None = None,
    ) -> float:
        """Compute the negative mean cost of the sets that `predict` chooses.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs; columns in the order of `ads_` or, for a DataFrame, matched by label. Those
            of chosen ads must be observed; if costs were missing in `fit`, too, they are
            estimated (see Notes).
        available : array-like, table or collection of labels, default=None
            Which ads may be chosen: a boolean table, dense or sparse, with columns in the order of
            `ads_` or, for a DataFrame, matched by label; a collection of labels per row; or one
            for all rows. None means all.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, which may include new ones, if `fit` had `ad_features`. They
            replace `ads_`, both for the other parameters and in the result.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        position_weights : array-like of shape (n_positions,), default=None
            Weight of the costs in the first position, the second, ..., such as the probability
            that a user looks at the position: finite, not negative, not rising. None means ones.

        Returns
        -------
        float
            Minus the weighted mean of the summed cost per set; higher is better.

        Raises
        ------
        ValueError
            If the cost of a chosen ad was not observed, unless that was so in `fit`, too; or if it
            cannot be estimated, since no cost of the ad was observed, or since `fit` was passed
            `available` and this is not.

        Warns
        -----
        UserWarning
            If `fit` was passed `available` and this is not: in a search, enable metadata routing.

        Notes
        -----
        If the cost of a chosen ad is nan, and costs were missing in `fit` as well, costs are
        estimated from the means of the ads, the row's other ads, and observed costs, weighted by
        the inverse of the share of rows in which the ad was observed. This is unbiased if costs
        are missing at random given the ad. If the ads were shown by a policy that depends on X,
        use `skbandit.selection.logged_costs` instead.
        """
        check_is_fitted(self)
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        selector = self._with_ads(ad_features)
        chosen = selector._chosen(X, available, None, allow_short=False)
        per_position = read_position_weights(position_weights, chosen.shape[1])
        counts = per_position > 0  # the first positions; what else is chosen need not be observed
        chosen, per_position = chosen[:, counts], per_position[counts]
        costs = read_cost_matrix(y)
        if column_labels(y) is not None:
            costs = costs.in_order_of(selector.ads_)
        if costs.shape != (len(chosen), len(selector.ads_)):
            raise ValueError(
                f"y has shape {costs.shape}, but there are {len(chosen)} rows of X and "
                f"{len(selector.ads_)} ads."
            )
        weight = check_row_weights(sample_weight, len(chosen), "sample_weight")
        total = (costs.at(chosen) * per_position).sum(axis=1)
        is_told = available is not None or not self._had_availability
        if np.isnan(total).any() and self._costs_missing and is_told:
            allowed = read_mask(available, selector.ads_, len(total), self.unknown_ads)
            values = np.asarray(costs.dense(), dtype=float)
            estimates = estimated_costs(values, weight, to_dense(allowed))
            total = np.take_along_axis(estimates, chosen, axis=1) @ per_position
        unobserved = np.isnan(total) & (weight > 0)
        if unobserved.any():
            row = np.flatnonzero(unobserved)[0]
            raise ValueError(
                f"The set chosen for row {row}, {selector.ads_[chosen[row]].tolist()}, contains an "
                "ad whose cost was not observed (nan in y), so the cost of the set is unknown. "
                "Pass available= if the ad could not be chosen, or estimate costs from a log by "
                "skbandit.selection.logged_costs. In a search or cross-validation, available= "
                "reaches score only with sklearn.set_config(enable_metadata_routing=True)."
            )
        if available is None and self._had_availability:
            warn(
                "fit was passed which ads were available, but score was not, so unavailable ones "
                "may have been chosen: pass available=, or available=list(selector.ads_) if all "
                "were. "
                "In a Pipeline, search or cross-validation, available= reaches score only with "
                "sklearn.set_config(enable_metadata_routing=True).",
                UserWarning,
            )
        return -float(np.average(total[weight > 0], weights=weight[weight > 0]))

    def _read_training(
        self, X: Any, y: Any, available: Any, sample_weight: Any
    ) -> tuple[Any, CostMatrix, Any, np.ndarray | None]:
        """Check the training data in `fit`, without rows of weight 0, which count as absent.

        Sets `ads_`, and remembers whether costs of available ads are missing.

        Returns
        -------
        tuple
            Rows, costs, a mask of the ads that were available (None for all), and row weights
            (None for ones).
        """
        self._check_learner()
        available = align_rows(available, X)
        given, X = X, self._read_X(X, reset=True)
        costs = read_cost_matrix(y)
        if getattr(self, "estimator", "stack") is None:
            warn_of_scales(X)
        allowed = read_mask(available, costs.ads, costs.shape[0], self.unknown_ads)
        costs = costs.where_available(allowed)
        n_rows, n_ads = costs.shape
        if n_ads > 1:  # else there is no choice
            warn_if_rewards(costs.values, "y", y)
            warn_of_shared_columns(given, y)
        if count_rows(X) != n_rows:
            raise ValueError(f"X has {count_rows(X)} rows, y has {n_rows}.")
        check_n_select(self.n_select, n_ads)
        self.ads_ = costs.ads
        self._had_availability = allowed is not None and int(allowed.sum()) < n_rows * n_ads
        weight = None
        if sample_weight is not None:
            weight = without_unit(check_row_weights(sample_weight, n_rows, "sample_weight"))
            used = np.flatnonzero(weight)
            X, costs, weight = rows_of(X, used), costs.of_rows(used), weight[used]
            allowed = None if allowed is None else allowed[used]
        n_needed = costs.shape[0] * n_ads if allowed is None else int(allowed.sum())
        n_observed = int(costs.n_observed().sum())
        if not n_observed:
            raise ValueError("No cost was observed: y is nan wherever an ad was available.")
        self._costs_missing = n_observed < n_needed
        return X, costs, allowed, weight

    def _check_learner(self) -> None:
        """Refuse an estimator that chooses ads, or is frozen, also within a Pipeline or wrapper.

        Every fit of a frozen one is the same model. Calibration learns even if its classifier is.
        """
        inside = getattr(self, "estimator", None)
        while inside is not None and not isinstance(inside, CalibratedClassifierCV):
            if isinstance(inside, FrozenEstimator):
                raise ValueError(
                    f"{type(inside.estimator).__name__} is frozen, so it cannot learn costs: pass "
                    "it without FrozenEstimator."
                )
            if isinstance(inside, SetSelectorMixin):
                raise ValueError(
                    f"{type(self).__name__} needs a learner of costs, but its estimator chooses "
                    "ads: pass the estimator of the inner selector, or that selector alone."
                )
            is_pipeline = isinstance(inside, Pipeline)
            inside = inside.steps[-1][1] if is_pipeline else getattr(inside, "estimator", None)

    def _chosen(
        self, X: Any, available: Any, n_select: int | None, allow_short: bool
    ) -> np.ndarray:
        """Check the input and choose: positions in `ads_`."""
        m = self.n_select if n_select is None else n_select
        check_n_select(m, len(self.ads_), self._largest_set)
        allowed = None
        if available is not None:
            n_rows = count_rows(X)
            allowed = available = align_rows(available, X)
            is_mask = type(available) is np.ndarray and available.dtype == bool  # no table to read
            if not (is_mask and available.shape == (n_rows, len(self.ads_))):
                allowed = read_mask(available, self.ads_, n_rows, self.unknown_ads)
            if not allow_short:
                check_enough_available(allowed, m)
        X = self._read_X(X, reset=False)
        take = X.__getitem__ if hasattr(X, "dtype") else partial(rows_of, X)
        n_rows = X.shape[0] if hasattr(X, "shape") else count_rows(X)
        chosen = np.empty((n_rows, m), dtype=np.intp)
        size = max(1, BLOCK_BYTES // (8 * len(self.ads_)))
        for start in range(0, n_rows, size):  # gen_batches checks its arguments for 0.03 ms
            rows = slice(start, min(start + size, n_rows))
            part = None if allowed is None else to_dense(allowed[rows])
            chosen[rows] = self._rank(take(rows), part, m)
        if not allow_short and (chosen < 0).any():
            row = np.flatnonzero((chosen < 0).any(axis=1))[0]
            raise ValueError(
                f"The costs predicted for row {row} are not finite: check the scale of X."
            )
        return chosen


class CostModelMixin(SetSelectorMixin):
    """Chooses by predicted costs.

    Subclasses set `_model`, which has ``costs(X)``, a new array.
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"ad_features": True}

    _model: Any

    def _rank(self, X: Any, allowed: np.ndarray | None, n_select: int) -> np.ndarray:
        return m_lowest(self._model.costs(X), n_select, allowed)

    def predict_costs(self, X: Any, *, ad_features: Any = None) -> np.ndarray | pd.DataFrame:
        """Predict the cost of each ad.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads whose costs to predict, as in `predict`.

        Returns
        -------
        DataFrame or ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`, or of `ad_features`: an array if these are 0, 1, ..., a
            DataFrame if ads have other labels.
        """
        check_is_fitted(self)
        selector: Any = self._with_ads(ad_features)
        costs = selector._model.costs(selector._read_X(X, reset=False))
        return labeled_costs(costs, selector.ads_, X, self.n_select)

    def decision_function(self, X: Any, *, ad_features: Any = None) -> np.ndarray:
        """Predict the negative costs: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads whose costs to predict, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`, or of `ad_features`.
        """
        return -np.asarray(self.predict_costs(X, ad_features=ad_features))


def labeled_costs(
    costs: np.ndarray, ads: np.ndarray, X: Any, n_select: int
) -> np.ndarray | pd.DataFrame:
    """Return costs as a DataFrame, unless the labels of the ads are the positions of the columns.

    Its attribute ``attrs["n_select"]`` tells `assign` how many ads each row gets.
    """
    if ads.dtype.kind in "iu" and np.array_equal(ads, np.arange(len(ads))):
        return costs
    table = pd.DataFrame(costs, X.index if isinstance(X, pd.DataFrame) else None, ads)
    table.attrs["n_select"] = n_select
    return table


def warn_of_scales(X: Any) -> None:
    """Warn of features whose spreads differ so much that one penalty cannot suit them all."""
    if not isinstance(X, np.ndarray | pd.DataFrame):  # sparse features are usually of one kind
        return
    spread = np.asarray(X, dtype=float).std(axis=0)
    varying = np.flatnonzero(spread > 0)
    if not len(varying):
        return
    least, most = varying[spread[varying].argmin()], varying[spread[varying].argmax()]
    if spread[most] > UNLIKE_SCALES * spread[least]:
        warn(
            f"the standard deviation of feature {most} is {spread[most]:.3g}, that of feature "
            f"{least} {spread[least]:.3g}, and they share a penalty, which is then right for the "
            "one or the other: put StandardScaler() before the selector in a Pipeline.",
            UserWarning,
        )
