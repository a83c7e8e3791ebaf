"""Base of the selectors by cost-sensitive reductions: reading input, choosing in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import gen_batches, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.logs import align_rows, read_mask
from skbandit.selection._cost_models import warn_of_separate_fits
from skbandit.selection._costs import (
    check_every_ad_observed,
    dense_rows,
    read_costs,
)
from skbandit.selection._m_lowest import REGRESSOR_BLOCK_BYTES
from skbandit.selection._mixin import SetSelectorMixin, labelled_costs
from skbandit.selection.reductions._registry import WITH_COSTS, default_learner
from skbandit.selection.reductions._rule import CostSensitiveRule, Examples
from skbandit.utils._validation import check_row_weights, warn_if_reordered


def _has_costs(selector: ReductionMixin) -> bool:
    """Whether `selector` predicts costs; raise AttributeError otherwise."""
    if selector._predicts_costs:
        return True
    raise AttributeError(
        f"{type(selector).__name__} predicts costs only if its reduction does and one fit serves "
        f"all rounds, unlike with these parameters: {selector!r}."
    )


class ReductionMixin(SetSelectorMixin, MetaEstimatorMixin):
    """Chooses by the reduction `_reduction` to the learner `estimator`.

    Subclasses set `_rules` in `fit`, and define `_reduction` and `_ranked`.
    """

    estimator: Any
    _rules: tuple[CostSensitiveRule, ...]

    @property
    def _reduction(self) -> str:
        """Name of the reduction."""
        raise NotImplementedError

    @property
    def _predicts_costs(self) -> bool:
        """Whether costs are predicted, rather than compared."""
        return self._reduction in WITH_COSTS

    def _ranked(self, X: Any, available: np.ndarray, n_select: int) -> np.ndarray:
        """Positions of the chosen ads, (n_rows, n_select), best first; NO_AD if there are fewer."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def _learner(self) -> Any:
        """The learner as passed, or the default of the reduction."""
        return default_learner(self._reduction) if self.estimator is None else self.estimator

    def _read_X(self, X: Any, reset: bool) -> Any:
        """Check rows of numbers."""
        finite = not get_tags(self._learner()).input_tags.allow_nan
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=finite,
        )

    def _read_examples(self, X: Any, y: Any, available: Any, sample_weight: Any) -> Examples:
        """Check the training data and set `ads_`."""
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        X = self._read_X(X, reset=True)
        costs = read_costs(y)
        n_rows = costs.shape[0]
        if X.shape[0] != n_rows:
            raise ValueError(f"X has {X.shape[0]} rows, y has {n_rows}.")
        allowed = read_mask(available, costs.ads, n_rows, self.unknown_ads)
        costs = costs.where_available(allowed)
        self._note_missing(costs, allowed)
        if self._reduction == "regression":
            warn_of_separate_fits(self.estimator, costs, allowed)
        weight = check_row_weights(sample_weight, n_rows, "sample_weight")
        used = np.flatnonzero(weight)  # rows of weight 0 count as absent
        costs = costs.of_rows(used)
        check_every_ad_observed(costs)
        self.ads_ = costs.ads
        everything = np.ones(costs.shape, dtype=bool)
        mask = everything if allowed is None else dense_rows(allowed, slice(None))[used]
        return Examples(X[used], costs.dense(), mask, weight[used])

    def _choose(
        self, X: Any, available: np.ndarray | sp.csr_array | None, n_select: int
    ) -> np.ndarray:
        """Choose block by block, to bound the memory of dense masks and responses."""
        X = self._read_X(X, reset=False)
        n_rows, n_ads = X.shape[0], len(self.ads_)
        chosen = np.empty((n_rows, n_select), dtype=np.intp)
        for rows in gen_batches(n_rows, max(1, REGRESSOR_BLOCK_BYTES // (8 * n_ads))):
            part = X[rows]
            everything = np.ones((part.shape[0], n_ads), dtype=bool)
            allowed = everything if available is None else dense_rows(available, rows)
            chosen[rows] = self._ranked(part, allowed, n_select)
        return chosen

    @available_if(_has_costs)
    def predict_costs(self, X: Any) -> np.ndarray | pd.DataFrame:
        """Predict the cost of each ad.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        DataFrame or ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`: an array if these are 0, 1, ..., a DataFrame if ads have
            other labels.
        """
        check_is_fitted(self)
        costs = self._rules[0].respond(self._read_X(X, reset=False))
        return labelled_costs(costs, self.ads_, X)

    @available_if(_has_costs)
    def decision_function(self, X: Any) -> np.ndarray:
        """Predict the negative costs: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_ads)
            Columns in the order of `ads_`.
        """
        return -np.asarray(self.predict_costs(X))
