"""Base class of the constrained classifiers: decisions by signed scores, and reports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skbandit import measure
from skbandit.constrained._goals import Goals
from skbandit.constrained._report import (
    INTERVAL_LEVEL,
    cross_fitted_report,
    objective_row,
    plain_columns,
    report_table,
    with_margins,
)
from skbandit.constrained.fits._fit_rows import (
    Classes,
    Extra,
    read_extra,
    read_labels,
    read_rows,
    with_dependent,
)
from skbandit.constrained.fits._partitions import columns_read, computed, from_partitions
from skbandit.constrained.fits._weighted_fits import stacked
from skbandit.constrained.rules._advice import known_rows_advice
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.prices._dual import ShadowPrices
from skbandit.rates import Constraint
from skbandit.utils._fitted_rows import FittedRows, share_fitted, warn_of_fitted_rows
from skbandit.utils._validation import check_level, silenced, text_of_shares, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TOLD_OF_SCORER: set[str] = set()
"""Objectives and constraints of which a warning told that `score` ignores them."""


class ConstrainedClassifierMixin(ClassifierMixin):
    """Predicts ``classes_[1]`` where a score plus `_shift` is positive, and reports on it.

    Subclasses set `classes_`, `_positive` (the positive class), `_constraints` (one-sided, groups
    filled in) and `_every` (with all pairs of groups), and define `_scores`, `_both_scores` and
    `_shift`; those with a randomized rule also `_expected` and `multipliers_`.
    """

    # Rows that travel with X: users need no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
        "X_extra": True,
        "y_extra": True,
        "attributes_extra": True,
        "sample_weight_extra": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sample_weight": True}

    classes_: np.ndarray
    _positive: Any
    _other_decisions: tuple[Any, ...] = ()
    _constraints: tuple[Constraint, ...]
    _every: tuple[Constraint, ...]
    _declared_constraints: tuple[Constraint, ...]
    _fitted_rows: FittedRows | None
    _report_columns: dict[str, Any]  # of constraint_report_
    _shares: list[Any]  # each decision, its share, and that without constraints
    _objective_row: dict[str, Any]  # of objective_report_
    multipliers_: np.ndarray
    _dropped: np.ndarray  # what each constraint costs the objective
    _free: float  # the objective without constraints, lower is better
    _tighter: list[Any] | None = None  # choices under tighter bounds of a `constraint_path`

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy, which ignores the constraints: a search should take `RateScorer`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        float
        """
        self._tell_of_scorer()
        return float(super().score(X, y, sample_weight))

    def _tell_of_scorer(self) -> None:
        """Warn once in a process that a search by `score` does not know these constraints."""
        if self._declared_constraints:
            declared = self.get_params(deep=False)
            rates = f"{declared['objective']!r}, {declared['constraints']!r}"
            if rates in _TOLD_OF_SCORER:
                return
            _TOLD_OF_SCORER.add(rates)
            warn(
                "score is the accuracy, which ignores the constraints. To rank models by them in a "
                f"search, pass scoring=RateScorer({rates}); to measure them, use "
                "constraint_report.",
                UserWarning,
            )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Show parameters and, if fitted, the share of each decision in the fit."""
        text, shares = super().__repr__(N_CHAR_MAX), vars(self).get("_shares")
        return f"{text}\n{text_of_shares(shares)}" if shares else text

    def _scores(self, X: Any) -> np.ndarray:
        """Scores before the threshold is applied; higher favors ``classes_[1]``."""
        raise NotImplementedError

    def _both_scores(self, X: Any) -> np.ndarray:
        """Return the scores, and those of the classifier without constraints, of shape (n, 2).

        The latter are positive where it predicts ``classes_[1]``, and nan if there is none.
        """
        raise NotImplementedError

    def _both_decided(
        self, both: np.ndarray, data: measure.Data
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Decisions by `_both_scores` with and without constraints, and `_expected` ones."""
        scores, plain = both.T
        without = None if np.isnan(plain).all() else self._positive_where(plain > 0)
        return self._predicted_positive(scores), without, self._expected(scores)

    @property
    def _shift(self) -> float:
        """Offset added to scores so that the decision threshold is 0."""
        return 0.0

    def _expected(self, scores: np.ndarray) -> np.ndarray | None:
        """Probabilities of a positive prediction by the randomized rule; None without one."""
        return None

    @property
    def constraint_report_(self) -> pd.DataFrame:
        """One row per constraint, on the training data; a new DataFrame each time."""
        self._require_fitted("constraint_report_", "_report_columns")
        report = pd.DataFrame(columns := self._report_columns)
        report["satisfied"] = pd.array(columns["satisfied"], dtype="boolean")
        return measure.Report.of(self._constraints, vars(self).get("_shares", ())).attached(report)

    @property
    def objective_report_(self) -> pd.DataFrame:
        """One row on the objective: what it is, and what it is without constraints.

        `objective`; `value` on the training rows; `cross_fitted` out of fold, the value to expect
        on new data, with its 95% interval from `ci_low` to `ci_high`, of `value` if it is missing;
        `unconstrained`, that of the classifier which the column of `constraint_report_` is of, the
        plain one at its usual threshold; `best_unconstrained`, that of the best rule without
        constraints among the models trained. What all constraints cost is relative to the latter.
        """
        self._require_fitted("objective_report_", "_objective_row")
        return pd.DataFrame([self._objective_row])

    def _require_fitted(self, name: str, by: str = "classes_") -> None:
        """Raise an error if an attribute is read before `fit` has set another one."""
        if by not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")

    @property
    def _classes(self) -> Classes:
        return Classes(self.classes_, self._positive, self._other_decisions)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores; positive for ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive exactly where `predict` returns ``classes_[1]``.
        """
        check_is_fitted(self)
        return self._scores(X) + self._shift

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels by the deterministic rule.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def constraint_report(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        groups: ArrayLike | None = None,
        groups_extra: ArrayLike | None = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Report on the constraints on any data, with confidence intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows. Of a DataFrame or array of Dask, scores are computed partition by partition, and
            only these and the columns that goals name come to the client.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries are unlabeled.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            As in `fit`.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            Rows for rates with ``on="extra"`` or ``"all"``, as in `fit`.
        groups, groups_extra : array-like, default=None
            Rows with the same value are dependent, such as those of one person; None means that
            all are independent. Intervals and `effective_n` count it, and `n_groups` is reported.
        confidence_level : float, default=0.95
            Level of each interval: Clopper-Pearson for a single rate, MOVER for anything else.
            Only the first never falls below its level; all are approximate if weights are
            unequal.

        Returns
        -------
        DataFrame
            The columns of `constraint_report_`, then `ci_low` and `ci_high` for `value`, and
            `verdict`: "met" or "violated" if the whole interval is, else "undecided". `on` is
            "given" for the rows of X, and `unconstrained` is the rate of the classifier without
            constraints on these rows. A constraint that they cannot measure has ``n_rows`` 0, with
            a warning. Of a `ratio` or `difference` of more than six groups, the 30 pairs with the
            least slack. Rows with unequal weights, such as 1/propensity, carry less information
            than their number suggests, and so do dependent ones: intervals are based on
            `effective_n`, the number of independent rows of equal weight in the denominator of
            `value` that would tell as much, the smallest if it combines several rates.

        Warns
        -----
        UserWarning
            If a fifth of the rows or more were in the fit.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        extra = Extra.read(X_extra, y_extra, attributes_extra, sample_weight_extra)
        y, sample_weight, attributes, groups = map(computed, (y, sample_weight, attributes, groups))
        rates = [goal.rate for goal in self._declared_constraints]
        table, scores = from_partitions(
            X, columns_read(rates, getattr(self, "by", None), X), self._both_scores
        )

        def read(rows: Any) -> np.ndarray:
            return scores if rows is table else self._both_scores(rows)

        X, (both, data) = table, self._read(table, y, sample_weight, attributes, extra, read)
        if y is not None:
            warn_of_fitted_rows(share_fitted(self._fitted_rows, X, data.train.label))
        data = with_dependent(data, groups, (X, y), groups_extra, X_extra)
        decided, plain, expected = self._both_decided(both, data)
        others = {"plain": plain, "expected": expected}
        kept = pd.DataFrame({name: part for name, part in others.items() if part is not None})
        with suppress(measure.UnknownColumnError):  # its constraint is named below
            data, decided, kept = measure.merge_equal(rates, data, decided, kept)
        plain, expected = (
            None if part is None else kept[name].to_numpy() for name, part in others.items()
        )
        goals = measure.bind_constraints(self._deciding(data, decided), data, allow_empty=True)
        table = self._report(decided, data, goals, plain, expected, confidence_level)
        table["on"] = [on.replace("train", "given") for on in table["on"]]
        ends, bound = table[["ci_low", "ci_high"]].to_numpy(), table["bound"].to_numpy()
        return table.assign(verdict=measure.verdicts(ends, bound, goals.sign))

    def _predict_both(self, X: Any, attributes: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Decisions with and without constraints; None without such a classifier."""
        both, data = self._read(X, None, None, attributes, None, self._both_scores)
        decided, plain, _ = self._both_decided(both, data)
        labels = self._classes.by_code
        return labels[decided.astype(int)], None if plain is None else labels[plain.astype(int)]

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: Extra | None,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, measure.Data]:
        """Return ``read_X(X)``, stacked on that of the extra rows, and the data of all rows."""
        classes, values = self._classes, read_X(X)
        label = read_labels(y, values.shape[0], classes, "y")
        rows = read_rows(X, label, sample_weight, attributes, y=y)
        named = hasattr(self, "feature_names_in_")
        values_extra, extra_rows = read_extra(extra, classes, X_is_named=named, read_X=read_X)
        return stacked(values, values_extra), classes.data(rows, extra_rows)

    def _report(
        self,
        decided: np.ndarray,
        data: measure.Data,
        goals: measure.BoundConstraints,
        unconstrained: np.ndarray | None = None,
        expected: np.ndarray | None = None,
        level: float | None = None,
    ) -> pd.DataFrame:
        """Report on the constraints of the fit, bound to data."""
        prices = ShadowPrices(self.multipliers_, self._dropped)
        if goals.constraints is not self._constraints:
            # labels may be alike
            names = [(constraint.label, constraint.text) for constraint in self._constraints]
            price_of = dict(zip(names, prices.per_unit, strict=True))
            numbers = measure.numbers_of_goals(self._constraints).tolist()
            dropped = dict(zip(numbers, prices.dropped, strict=True))
            # 0 for pairs of groups that training did not need, nan for groups that it had not
            price_of = {(pair.label, pair.text): 0.0 for pair in self._every} | price_of
            per_unit = [
                price_of.get((constraint.label, constraint.text), np.nan)
                for constraint in goals.constraints
            ]
            of_goals = [dropped[k] for k in measure.numbers_of_goals(goals.constraints).tolist()]
            prices = ShadowPrices(np.array(per_unit), np.array(of_goals))
        table = report_table(goals, data, decided, prices, expected, unconstrained, level)
        rules, total = (decided, unconstrained), data.weight.sum()
        shares = [
            [str(label)]
            + [None if rule is None else float(data.weight @ (rule == k) / total) for rule in rules]
            for k, label in enumerate(data.decisions)
        ]
        return measure.Report.of(goals.constraints, shares).attached(table)

    def _set_reports(
        self,
        goals: Goals,
        decided: np.ndarray,
        plain: np.ndarray | None,
        margins: np.ndarray | None,
        final: np.ndarray | None = None,
        data: measure.Data | None = None,
    ) -> pd.DataFrame:
        """Set the reports on the objective and the constraints, and return the latter.

        Parameters
        ----------
        goals : Goals
        decided, plain : ndarray of shape (n,)
            Codes of the decisions that everything was chosen by, and of those without constraints.
        margins : ndarray or None
            Of the measured constraints, if a level was asked for.
        final : ndarray of shape (n,) or None
            Decisions of the final rule on its training rows, if it is another.
        data : Data or None
            Those rows.
        """
        level = None if final is None else INTERVAL_LEVEL
        report = self._report(decided, goals.data, goals.constraints, plain, level=level)
        self._shares = measure.Report.read(report).decisions
        if final is None or data is None:
            self._objective_row = objective_row(goals, goals.data, decided, None, plain, self._free)
            if margins is not None:
                report = with_margins(report, goals.is_measured, margins)
        else:
            self._objective_row = objective_row(goals, data, final, decided, plain, self._free)
            with silenced():  # the report out of fold has warned
                table = self._report(final, data, goals.constraints)
            report = cross_fitted_report(table, report, margins)
        self._report_columns = plain_columns(report)
        return measure.Report.of(self._constraints, self._shares).attached(report)

    def _refuse(
        self, why: str, report: pd.DataFrame, goals: Goals, *, proven: bool = False
    ) -> NoReturn:
        """Raise the error of constraints that no rule meets."""
        raise InfeasibleConstraintsError(
            f"{why} {known_rows_advice(report, goals.constraints)}The closest model is in the "
            "error's closest_.",
            self,
            proven=proven,
        )

    def _take_constraints(self, goals: Goals) -> None:
        """Keep the constraints of a fit, for reports."""
        self._constraints, self._every = goals.constraints.constraints, goals.every
        self._declared_constraints = tuple(goals.declared.constraints)

    def _set_prices(self, goals: Goals, measured: ShadowPrices) -> None:
        """Set `multipliers_` and what each constraint costs, nan for those that were skipped."""
        self.multipliers_, self._dropped = np.full((2, len(goals.is_measured)), np.nan)
        self.multipliers_[goals.is_measured] = measured.per_unit
        self._dropped[goals.is_measured] = measured.dropped
        self._free = measured.free

    def _deciding(self, data: measure.Data, decided: np.ndarray) -> list[Constraint]:
        """Return the constraints, with the pairs of groups that are the worst at decisions."""
        names, every = {(goal.label, goal.text) for goal in self._every}, [*self._every]
        with suppress(ValueError):  # fewer groups than are compared
            given = measure.expand(self._declared_constraints, data)
            every += [goal for goal in given if (goal.label, goal.text) not in names]
        return [every[k] for k in measure.worst_pairs(every, data, decided)]

    def _predicted_positive(self, scores: np.ndarray) -> np.ndarray:
        """1.0 where the deterministic rule predicts the positive class."""
        return self._positive_where(scores + self._shift > 0)

    def _positive_where(self, second: np.ndarray) -> np.ndarray:
        """1.0 where the positive class is predicted, given where ``classes_[1]`` is."""
        return (second == (self._classes.orientation > 0)).astype(float)
