"""What all set selectors share: m labels a row, best first, and the cost of the set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbandit.selection._costs import (
    check_enough_available,
    check_n_select,
    column_names,
    read_available,
    read_costs,
)
from skbandit.selection._m_lowest import choose, set_costs
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import check_row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class SetSelectorMixin:
    """Chooses `n_select` of the ads `ads_` in each row.

    Subclasses have a parameter `n_select`, set `ads_` in `fit`, and define `_choose`; those
    that cannot choose as many ads as there are, `_largest_set`.
    """

    # Rows that travel with X: users need no set_fit_request.
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
    }

    n_select: int
    ads_: np.ndarray

    def _choose(self, X: Any, available: Any, n_select: int) -> np.ndarray:
        """Positions in `ads_`, best first, -1 where a row has too few available ads."""
        raise NotImplementedError

    @property
    def _largest_set(self) -> int:
        """How many ads can be chosen at most."""
        return len(self.ads_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def _over(self, ad_features: Any) -> SetSelectorMixin:
        """A selector that has the described ads to choose from; itself if None."""
        if ad_features is None:
            return self
        raise ValueError(
            f"{type(self).__name__} takes no ad_features: it knows ads by their labels only. "
            "RegressionSetSelector, fitted with ad_features, can choose new ads."
        )

    def predict(
        self,
        X: Any,
        *,
        available: Any = None,
        n_select: int | None = None,
        ad_features: Any = None,
        fill: Any = None,
    ) -> np.ndarray:
        """Choose a set of ads for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads may be chosen, in the order of `ads_` or, a DataFrame, by column label;
            None is all.
        n_select : int, default=None
            How many, if not `n_select` of the constructor.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, others than in `fit` among them; only where `fit` had
            `ad_features`. Then these take the place of `ads_`, here and in the result.
        fill : label, default=None
            What stands in the place of an ad where fewer than n_select are available; None
            makes that an error.

        Returns
        -------
        ndarray of shape (n_samples, n_select)
            Labels of ads, best first, each at most once in a row.

        Raises
        ------
        ValueError
            If a row has too few available ads and there is no `fill`.
        """
        check_is_fitted(self)
        selector = self._over(ad_features)
        chosen = selector._chosen(X, available, n_select, allow_short=fill is not None)
        return _labelled(chosen, selector.ads_, fill)

    def predict_indicator(
        self,
        X: Any,
        *,
        available: Any = None,
        n_select: int | None = None,
        ad_features: Any = None,
    ) -> np.ndarray:
        """Mark the chosen ads: the sets of `predict` without their order.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads may be chosen; in rows with fewer than n_select, all of them are.
        n_select : int, default=None
            How many, if not `n_select` of the constructor.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, others than in `fit` among them; only where `fit` had
            `ad_features`. Then these take the place of `ads_`, here and in the result.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_ads)
            True is chosen; columns in the order of `ads_`.
        """
        check_is_fitted(self)
        selector = self._over(ad_features)
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
    ) -> float:
        """Measure the sets that `predict` chooses by minus their mean cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
            Costs, in the order of `ads_` or, a DataFrame, by column label. The costs of the
            chosen ads must be there.
        available : array-like, DataFrame or sparse matrix of bool, (n_samples, n_ads), default=None
            Which ads may be chosen; None is all.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads to choose from, others than in `fit` among them; only where `fit` had
            `ad_features`. Then these take the place of `ads_`, here and in the result.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        float
            Minus the weighted mean of the sum of costs over a set; higher is better.

        Raises
        ------
        ValueError
            If the cost of a chosen ad was not observed.
        """
        check_is_fitted(self)
        selector = self._over(ad_features)
        chosen = selector._chosen(X, available, None, allow_short=False)
        costs = read_costs(y)
        if column_names(y) is not None:
            costs = costs.in_order_of(selector.ads_)
        if costs.shape != (len(chosen), len(selector.ads_)):
            raise ValueError(
                f"y has shape {costs.shape}, and there are {len(chosen)} rows of X and "
                f"{len(selector.ads_)} ads."
            )
        weight = check_row_weights(sample_weight, len(chosen), "sample_weight")
        total = set_costs(costs, chosen)
        unseen = np.isnan(total)
        if unseen.any():
            row = np.flatnonzero(unseen)[0]
            raise ValueError(
                f"The set chosen for row {row}, {selector.ads_[chosen[row]].tolist()}, holds an ad "
                "whose cost was not observed (nan in y), so it has no known cost. Pass "
                "available= if the ad could not be chosen there, or make costs of what a log "
                "observed by skbandit.selection.logged_costs."
            )
        return -float(np.average(total, weights=weight))

    def _chosen(
        self, X: Any, available: Any, n_select: int | None, allow_short: bool
    ) -> np.ndarray:
        """Checked, then chosen: positions in `ads_`."""
        m = self.n_select if n_select is None else n_select
        check_n_select(m, self._largest_set)
        allowed = read_available(available, self.ads_, count_rows(X))
        if not allow_short:
            check_enough_available(allowed, m)
        chosen = self._choose(X, allowed, m)
        if not allow_short and (chosen < 0).any():
            row = np.flatnonzero((chosen < 0).any(axis=1))[0]
            raise ValueError(f"The costs predicted for row {row} are not finite.")
        return chosen


class CostModelMixin(SetSelectorMixin):
    """Chooses by predicted costs.

    Subclasses set `_model` and define `_read_X`. A model has ``costs(X)``; ``by_rows(X)``, a
    function of a slice of rows that gives their costs, to be overwritten; and `block_bytes`, how
    much it is best asked for at a time.
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"ad_features": True}

    _model: Any

    def _read_X(self, X: Any, reset: bool) -> Any:
        """Rows as the model takes them."""
        raise NotImplementedError

    def _choose(self, X: Any, available: Any, n_select: int) -> np.ndarray:
        X = self._read_X(X, reset=False)
        shape = count_rows(X), len(self.ads_)
        return choose(self._model.by_rows(X), shape, n_select, available, self._model.block_bytes)

    def predict_costs(self, X: Any, *, ad_features: Any = None) -> np.ndarray:
        """Predict what each ad costs.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads in question, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`, or of `ad_features`.
        """
        check_is_fitted(self)
        selector: Any = self._over(ad_features)
        return selector._model.costs(selector._read_X(X, reset=False))

    def decision_function(self, X: Any, *, ad_features: Any = None) -> np.ndarray:
        """Predict minus the costs: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        ad_features : DataFrame or array with a row for each ad, default=None
            The ads in question, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`, or of `ad_features`.
        """
        return -self.predict_costs(X, ad_features=ad_features)


def _labelled(chosen: np.ndarray, ads: np.ndarray, fill: Any) -> np.ndarray:
    """Labels at positions, the filler at -1."""
    if fill is None:
        return ads[chosen]
    if fill in ads.tolist():
        raise ValueError(f"fill={fill!r} is the label of an ad: choose another marker.")
    filler = np.array([fill])
    alike = filler.dtype.kind == ads.dtype.kind or {filler.dtype.kind, ads.dtype.kind} <= set("iuf")
    dtype = np.result_type(filler, ads) if alike else object
    return np.where(chosen < 0, np.array(fill, dtype=dtype), ads.astype(dtype)[chosen])
