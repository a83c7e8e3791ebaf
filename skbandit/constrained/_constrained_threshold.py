"""ConstrainedThreshold: the decisions of any classifier, moved to meet constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained._goals import Goals
from skbandit.constrained._moved_decisions import PARAMETERS, MovedDecisionsMixin
from skbandit.constrained.fits._fit_rows import Classes, prefix_error_with_extra, read_prefit
from skbandit.constrained.fits._given_scores import given_scores
from skbandit.constrained.fits._partitions import (
    columns_read,
    computed,
    from_partitions,
    is_partitioned,
)
from skbandit.constrained.fits._weighted_fits import (
    USUAL,
    OutOfFold,
    Prefit,
    responses,
    stacked,
    warn_of_saturated,
)
from skbandit.constrained.rules._choose import Chosen
from skbandit.measure import Data
from skbandit.rates import Constraint, Rate
from skbandit.utils._fitting import report_progress
from skbandit.utils._folds import SEED
from skbandit.utils._sklearn_compat import HasMethods, StrOptions, available_if


def _estimator_has(method: str) -> Callable[[Any], bool]:
    def check(self: ConstrainedThreshold) -> bool:
        getattr(vars(self).get("estimator_", self.estimator), method)  # its own AttributeError
        return True

    return check


class ConstrainedThreshold(MovedDecisionsMixin, BaseEstimator):
    """Move the decisions of any classifier so that they meet constraints on rates.

    With two classes, it finds the threshold with the best objective among all that meet every
    constraint, exactly; with `by`, one threshold per group. With several classes, or with
    `other_decisions` such as "review", it finds a table of costs, and decides by the least expected
    cost.

    Parameters
    ----------
    estimator : classifier or None, default=None
        With `predict_proba` or, for two classes, `decision_function`. None if X is scores that
        exist already: of two classes one column that favors the positive class (probabilities or,
        by `response_method`, margins), else a DataFrame with a column of probabilities per class,
        named by its label. Nothing is trained, and `cv` is not used: the rows should be new to the
        model, as for ``cv="prefit"``.
    objective : Rate, default=None
        Rate to optimize. None means `error_rate()`. Recall and the like are maximized, the error
        rate and the like minimized. ``worst(error_rate, by="region")`` optimizes the worst group.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    cv : int, cross-validation generator, iterable or "prefit", default=None
        How the rows are scored. None means 5-fold cross-validation: each row is scored by a clone
        fitted without it, and `estimator_` is then fitted to all rows. If None or a number, folds
        are stratified, rows are assigned to them in random order, and copies or the rows of one of
        the `groups` share a fold. Of a generator or iterable, a row may be tested at most once;
        rows that are never tested do not count in any rate. With "prefit", the fitted
        `estimator` scores X, which should be rows that it has not seen; X and what goes with it may
        be collections of Dask, of which scores are computed partition by partition.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The scores. "auto" is `predict_proba` if available, else `decision_function`.
    pos_label : label, default=None
        The class of rates that name none with `of`. Required for two labels other than {0, 1},
        {-1, 1} and bool, unless all rates are the same for either class, as `error_rate` and
        `churn` are.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    confidence_level : float in [0.5, 1) or None, default=None
        Approximate probability that all constraints hold in the population. None weighs it against
        its price: of 0.9, 0.8, 0.7, 0.6 and 0.5, it takes the level with the lowest objective plus
        0.12 times (1 - level), so that a violation counts as much as 12 errors in 100 rows. The
        level taken is `confidence_level_`. If a number cannot be reached, `fit` raises an error.
        0.5 leaves no margin: a binding constraint is then violated about every second time.
    by : str or list of str, default=None
        Columns of `attributes`, or of X, whose values (or combinations of values) are groups with a
        threshold each. `predict` then needs these columns, too: see Notes.
    unseen : {"error", "overall"}, default="error"
        With `by`, how `predict` treats rows of a group that was not in `fit`, or of no group.
        "error" raises an error that names the group; "overall" uses `threshold_`, the best
        threshold for all rows.
    other_decisions : sequence of labels, default=()
        Decisions besides the classes, such as ``["review"]``, of the type of the labels. They are
        never right: see `skbandit.rates.error_rate`.
    random_state : int, RandomState instance or None, default=None
        Deals the rows to folds, if `cv` is None or a number. None is for the same folds each time.
    verbose : int, default=0
        1 reports the seconds of the fits and of the search, and what was chosen.

    Attributes
    ----------
    estimator_ : classifier
        The classifier that predicts: fitted to all rows, or as passed with "prefit".
    threshold_ : float
        Of two classes, without `by` or with ``unseen="overall"``: the response above which the
        positive class is predicted (that of `decision_function` is negated if this is
        ``classes_[0]``).
    thresholds_ : Series
        Of two classes, with `by`: the threshold of each group.
    costs_ : DataFrame
        Cost of each decision (columns) by label (rows); with `by`, by group and label. `predict`
        returns the decision with the least of ``predict_proba(X) @ costs_``, after
        `recalibration_`: see `expected_costs`. The least cost of each label is 0; of several
        classes, the largest of all is 1. A threshold
        on probabilities is such a table, too.
    recalibration_ : object or None
        With several classes and a level above 0.5, `temperature` and `constants` (by class or by
        group and class): ``log(predict_proba(X)) / temperature + constants``, made to add up to 1,
        takes the place of the probabilities before `costs_`. Else None.
    decisions_ : ndarray
        The classes, then `other_decisions`.
    group_estimator_ : classifier
        If goals of several classes select groups and `by` does not name them: a classifier of
        group and label together, by whose probabilities `costs_` has a row per group and label.
    duality_gap_ : float
        No thresholds improve the objective on these rows by more than this; 0 if they are proven
        to be the best. nan with more than two decisions.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices, one per row of `constraint_report_`: how much the objective improves per
        unit by which a bound is relaxed; 0 if it does not bind, nan if the constraint was skipped.
    response_method_ : {"predict_proba", "decision_function"}
        The response to which thresholds apply.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    constraint_report_ : DataFrame
        One row per constraint; of a `ratio` or `difference` of more than six groups, one row per
        pair of groups that the search needed. Columns: `constraint`, `on`, `n_rows`,
        `effective_n`, `bound`, `value`, `unconstrained` (by the usual threshold), `slack`,
        `satisfied`. With cross-validation, `value` is that of `estimator_` on its training rows;
        `cross_fitted`, from `ci_low` to `ci_high`, and the other columns are out of fold. With a
        `confidence_level`, `margin` is the slack that it requires.
        `price` is how much better the objective would be without the declared constraint, of which
        the row may be a part, among the models trained.
    objective_report_ : DataFrame
        One row: `objective`; its `value`, `cross_fitted`, `ci_low`, `ci_high` and `unconstrained`,
        as in `constraint_report_`; `best_unconstrained`, of the best rule without constraints.
    confidence_level_ : float
        The level that was reached; 0.5 if the rates meet their bounds without a margin, nan if
        they miss them, in an error's `closest_`.
    feasible_ : bool
        Whether all constraints are satisfied; False only in an error's `closest_`.
    n_features_in_ : int
        Number of features, if `estimator_` has the attribute.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `estimator_` has the attribute.

    See Also
    --------
    skbandit.ConstrainedRampClassifier : Trains a linear classifier under constraints.
    sklearn.model_selection.TunedThresholdClassifierCV : The best threshold for one metric.
    skbandit.evaluation.RateScorer : Scores any classifier by the same declarations.

    Notes
    -----
    With `by`, a decision depends on the group as well as the score, which may be illegal: see "One
    threshold per group" in the how-to guides. `predict`, `decision_function` and `score` read the
    columns from `attributes` or X. scikit-learn's searches pass no attributes to `predict`: use
    their `best_estimator_`.

    Costs of several classes are prices of the constraints. At a level of 0.5 they are searched as
    measured out of fold: no rule that was looked at, such as each constant decision, the usual one
    and the linear program's, meets the constraints at a better objective. What the objective leaves
    open is decided by the error rate. A bound on a sum of ratios such as macro F1 can be measured,
    not trained; as an objective it can.

    With a `confidence_level` c there are three kinds of promise:

    - With more than two classes or decisions, c is a share found by simulation: probabilities are
      recalibrated out of fold (`recalibration_`), every bound is moved inwards by 1.6 times its
      margin, and the rule of the linear program is taken unless a rate out of fold misses its
      bound. Where that is dear, the report shows it: compare with ``confidence_level=0.5``.
    - With two classes, ``cv="prefit"`` and constraints on single rates, the Clopper-Pearson limit
      of each rate, at level 1 - (1 - c)/m for m constraints, must meet its bound. For independent
      rows of equal weight that the model has not seen, this is exact for rates that are monotone in
      one threshold: recall, positive rate, false positive rate and their complements, overall or,
      with `by`, in the groups that have the thresholds. Choosing among thresholds does not
      invalidate it. For precision, F1 and accuracy it is approximate.
    - Otherwise, with two classes, it is approximate: Wilson's limits (Clopper-Pearson for fewer
      than 10 rows) are combined by MOVER, with (1 - c)/A for an expression of A rates, and the
      risks of violating each constraint must add up to at most 1 - c.

    Scores of the folds' models have one scale: those of a linear model are shifted and scaled
    to the mean and the deviation, over the training rows, of the scores of `estimator_`. This
    needs probabilities below 1: for ``SGDClassifier(loss="modified_huber")``, set
    `response_method` to "decision_function". Scores of a single decision tree, a support vector
    machine or a small network differ so much from fit to fit that a level of 0.9 kept 0.67 to
    0.93 (docs/benchmarks.md): use "prefit", or a forest. Pass rows of one person by
    `groups`: without, a level counts dependent rows as if they were people, and is far too
    high. A level is about all fits: of those of a bound at the edge of what is possible, many
    raise an error, and the others keep it less often. Scores that differ by rounding errors
    only, such as probabilities next to 1, count as equal.

    `decision_function` is the response minus the threshold or, of several classes, the negative
    expected costs. `predict_proba` is that of `estimator_`, so it stays calibrated, and is not 1/2
    at the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skbandit.constrained import ConstrainedThreshold
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=10, random_state=0)
    >>> clf = ConstrainedThreshold(
    ...     forest, false_positive_rate(), recall() >= 0.95, pos_label=0
    ... ).fit(X, y)
    >>> clf.constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.95   0.95       True

    With a confidence level of 0.9, the bound holds on new data about nine times in ten:

    >>> clf = clf.set_params(confidence_level=0.9).fit(X, y)
    >>> clf.constraint_report_[["bound", "cross_fitted", "slack", "margin"]].round(3)
       bound  cross_fitted  slack  margin
    0   0.95         0.972  0.022   0.019

    One threshold per group:

    >>> import numpy as np
    >>> from skbandit.rates import difference
    >>> groups = {"site": np.where(X[:, 1] > 19, "north", "south")}
    >>> constraints = difference(recall, by="site") <= 0.1
    >>> clf = ConstrainedThreshold(forest, constraints=constraints, by="site")
    >>> clf.fit(X, y, attributes=groups).thresholds_.index.tolist()
    ['north', 'south']
    >>> clf.predict(X[:1], attributes={"site": ["south"]}).shape
    (1,)

    Several classes, of which some rows go to a person:

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skbandit.rates import error_rate, positive_rate
    >>> X, y = load_wine(return_X_y=True)
    >>> names = np.array(["barolo", "grignolino", "barbera"])
    >>> clf = ConstrainedThreshold(
    ...     GaussianNB(),
    ...     None,
    ...     [error_rate(without="person") <= 0.15, positive_rate(of="person") <= 0.3],
    ...     other_decisions=["person"],
    ... ).fit(X[:, :6], names[y])
    >>> clf.decisions_.tolist()
    ['barbera', 'barolo', 'grignolino', 'person']
    >>> clf.constraint_report_["satisfied"].tolist(), clf.costs_.shape
    ([True, True], (3, 4))
    """

    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = {"attributes": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        **PARAMETERS,
        "cv": ["cv_object", StrOptions({"prefit"})],
        "response_method": [StrOptions({"auto", *USUAL})],
    }

    def __init__(
        self,
        estimator: Any = None,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        cv: Any = None,
        response_method: str = "auto",
        pos_label: Any = None,
        n_jobs: int | None = None,
        confidence_level: float | None = None,
        by: str | Sequence[str] | None = None,
        unseen: str = "error",
        other_decisions: Sequence[Any] = (),
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.constraints = constraints
        self.cv = cv
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.confidence_level = confidence_level
        self.by = by
        self.unseen = unseen
        self.other_decisions = other_decisions
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, metadata: dict[str, Any], fit_params: dict[str, Any]) -> None:
        """Fit the classifier unless it is prefit, score the rows, and choose the thresholds."""
        if self.estimator is not None and not isinstance(self.cv, str):
            super()._fit(X, y, metadata, fit_params)
            return
        if fit_params:
            raise ValueError(
                f"{', '.join(sorted(fit_params))}: parameters for the fit of estimator, and "
                "nothing is fitted. Remove them, or choose an estimator and another cv."
            )
        parts, declared, estimator = X, self._declared(), self.estimator
        if estimator is None and is_partitioned(X):
            raise TypeError("estimator=None takes scores in memory: pass X.compute().")

        def read(y: np.ndarray) -> tuple[Classes, np.ndarray]:
            nonlocal estimator
            if estimator is None:
                estimator = given_scores(X, y, self.response_method, self.pos_label)
            return read_prefit(y, estimator, self.pos_label, self.other_decisions)

        if is_partitioned(X):
            if metadata["X_extra"] is not None:
                raise TypeError("X_extra cannot be combined with Dask collections: pass one table.")
            y, metadata = computed(y), {name: computed(x) for name, x in metadata.items()}
            rates = declared.objective, *(goal.rate for goal in declared.constraints)
            X, _ = from_partitions(X, columns_read(rates, self.by, X))
        rows = self._read_rows(X, y, metadata, read)
        goals, group = declared.bind(rows.data), self._find_groups(rows.data)
        method, scores = self._response_method(estimator), None
        if is_partitioned(parts):
            respond = partial(responses, estimator, method=method, classes=rows.classes)
            _, scores = from_partitions(parts, [], respond)
        with prefix_error_with_extra():
            X_all = stacked(rows.X, rows.X_extra)
        fits = Prefit(estimator, X_all, method, rows.classes, scores)
        self._choose(fits, goals, rows.data, group)

    @property
    def _fold_seed(self) -> Any:
        return SEED if self.random_state is None else self.random_state

    def _choose(
        self, fits: OutOfFold | Prefit, goals: Goals, data: Data, group: np.ndarray | None
    ) -> None:
        """Choose the best thresholds on one score."""
        prefit, start = isinstance(fits, Prefit), perf_counter()
        self.estimator_ = fits.fitted()
        self._take_features(self.estimator_)
        scores, _ = fits.scores()
        warn_of_saturated(self.estimator_, fits.method, scores)
        if isinstance(fits, OutOfFold):
            scores = self._find_unknown_groups(fits, goals, data, scores)
        signed, scored = self._classes.orientation * scores, perf_counter()

        def choose(goals: Goals) -> Chosen:
            rows = signed[goals.measured.rows]
            chooser = self._chooser(fits, goals, group, scores)
            chooser, choice = chooser.settled(rows, goals)
            prices = partial(chooser.shadow_prices, rows)
            return Chosen(chooser, choice, prices, scores=rows)

        goals, chosen = self._best_chosen(goals, choose)
        choice = chosen.choice
        if self.verbose:
            report_progress(
                f"[ConstrainedThreshold] {len(scores)} rows scored in {scored - start:.1f} s, "
                f"searched in {perf_counter() - scored:.1f} s: objective "
                f"{abs(choice.objective):.4g} at level {choice.level:.2g}"
            )
        self.duality_gap_ = getattr(choice.rule, "gap", np.nan)
        train_scores = None if prefit else self._scores(fits.X)
        self._conclude(chosen, (scores, scores), train_scores, goals, data, group)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Probabilities of `estimator_`, unaffected by the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            As `predict` takes them; not needed here.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return self._by_class(self.estimator_.predict_proba(X))

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Logarithms of the probabilities of `estimator_`, unaffected by the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            As `predict` takes them; not needed here.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return self._by_class(self.estimator_.predict_log_proba(X))

    def _by_class(self, values: np.ndarray) -> np.ndarray:
        """Columns of `estimator_`, which may list its classes in another order, in that of ours."""
        listed = np.asarray(self.estimator_.classes_).tolist()
        order = [listed.index(label) for label in self.classes_.tolist()]
        return values if order == sorted(order) else np.asarray(values)[:, order]

    def _scores(self, X: Any) -> np.ndarray:
        scores = responses(self.estimator_, X, self.response_method_, self._classes)
        return self._of_groups(X, scores)
