"""ConstrainedRampClassifier: directions and thresholds chosen by out-of-fold rates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skbandit.constrained._goals import Goals
from skbandit.constrained._linear import BaseRampClassifier
from skbandit.constrained._report import INTERVAL_LEVEL, warn_of_weak_fit
from skbandit.constrained.fits._fit_rows import OF_ROWS, refuse_keywords
from skbandit.constrained.linear._cross_fit import CrossFitted, choose_mixture
from skbandit.constrained.linear._folds import CrossFitOptions, alpha_of, train_folds
from skbandit.constrained.paper._interface import Solver
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.paper._registry import NAMES, choose_solver
from skbandit.constrained.rules._advice import explain
from skbandit.constrained.rules._choose import best_on_path
from skbandit.measure import MISSING, RATE_TOL, Data, interval
from skbandit.rates import Constraint, Rate
from skbandit.utils._fitting import atomic_fit, fit_task, one_blas_thread
from skbandit.utils._folds import (
    FEW_FOLDS,
    FOLDS,
    default_folds,
    folds_of_extra,
    is_number,
    read_units,
    rows_tested,
    splits_of_classes,
)
from skbandit.utils._sklearn_compat import HasMethods, Interval, StrOptions, fit_context
from skbandit.utils._validation import finite, warn

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


MANY_ROWS, ROWS_PER_COLUMN = 3000, 150
"""FEW_FOLDS if there are MANY_ROWS rows and ROWS_PER_COLUMN per column, or more; else FOLDS."""


class ConstrainedRampClassifier(BaseRampClassifier):
    """Linear classifier that meets constraints on rates on new data.

    It optimizes one rate under bounds on others. Directions are trained by cross-fitting, that is,
    without each fold in turn: by logistic regression; by logistic regressions at costs per row,
    to which multipliers turn the constraints (Agarwal et al., ICML 2018); and by minimizing the
    ramp loss at these costs (Goh, Cotter, Gupta & Friedlander, NIPS 2016, Algorithm 1). The best of
    these and their mixtures is selected by out-of-fold rates, together with the best threshold that
    meets the constraints with a margin for sampling error.

    Parameters
    ----------
    objective : Rate, default=None
        Rate to optimize. None means `error_rate()`. Recall and the like are maximized, the error
        rate and the like minimized. ``worst(error_rate, by="region")`` optimizes the worst group.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    alpha : float or "auto", default="auto"
        Strength of the L2 penalty of the ramp (the paper's lambda), relative to the mean objective.
        "auto" means 0.1 for a single rate, and scales it for an objective that sums several.
    cv : int, cross-validation generator or iterable, default=None
        Folds. None means 5 folds, or 3 if there are at least 3,000 rows and 150 rows per feature.
        If None or a number, folds are stratified, rows are assigned to them in random order, and
        copies or the rows of one of the `groups` share a fold. Of a generator or iterable, every
        row must be in exactly one test fold and in all other training folds.
    confidence_level : float in [0.5, 1) or None, default=None
        Approximate probability that all constraints hold in the population. None weighs it against
        its price: of 0.9, 0.8, 0.7, 0.6 and 0.5, it takes the level with the lowest objective plus
        0.12 times (1 - level), so that a violation counts as much as 12 errors in 100 rows. The
        level taken is `confidence_level_`. If a number cannot be reached, `fit` raises an error.
        0.5 leaves no margin.
    fit_intercept : bool, default=True
        Whether to fit an unpenalized intercept. Without one there is no threshold to choose.
    solver : str or Solver, default="auto"
        Solver of the ramp's convex problems, weighted support vector machines without constraints:
        see `skbandit.constrained.RampClassifier`. "auto" is "newton".
    solver_options : dict, default=None
        Parameters of a solver given by name.
    pos_label : label, default=None
        The positive class. Required for labels other than {0, 1}, {-1, 1} and bool, unless all
        rates are the same for either class, as `error_rate` and `churn` are.
    class_weight : dict, "balanced" or None, default=None
        Class weights in the objective. They do not affect constraints.
    verbose : int, default=0
        1 prints one line per round of logistic regressions, as `ConstrainedReduction` does, and per
        training step of a ramp, or logs it if INFO records of "skbandit" are shown.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights. Positive scores are predicted as ``classes_[1]``.
    intercept_ : ndarray of shape (1,)
        Intercept.
    alpha_ : float
        `alpha` as used, for columns in units of their standard deviation.
    direction_ : str
        The selected direction: "logistic", "ramp", "cost-sensitive", or a mixture such as "0.5
        logistic + 0.5 ramp".
    classes_ : ndarray of shape (2,)
        Class labels.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices, one per row of `constraint_report_`: how much the out-of-fold objective
        improves per unit by which a bound is relaxed; 0 if it does not bind, nan if the constraint
        was skipped.
    constraint_report_ : DataFrame
        One row per constraint; of a `ratio` or `difference` of more than six groups, one row per
        pair of groups that training needed. Columns on the training rows: `constraint`, `on`,
        `n_rows`, `bound`, `value`, `multiplier`. Out-of-fold columns: `cross_fitted`, the value to
        expect on new data, with a 95% interval from `ci_low` to `ci_high`; `effective_n`, `slack`,
        `satisfied`; `unconstrained`, the rate of plain logistic regression. With a
        `confidence_level`, `margin` is the slack that it requires of each constraint, and
        `satisfied` means at least that.
        `price` is how much better the objective would be without the declared constraint, of which
        the row may be a part, among the models trained.
    objective_report_ : DataFrame
        One row: `objective`; its `value`, `cross_fitted`, `ci_low`, `ci_high` and `unconstrained`,
        as in `constraint_report_`; `best_unconstrained`, of the best rule without constraints.
    confidence_level_ : float
        The level that was reached; 0.5 if the rates meet their bounds without a margin, nan if
        they miss them, in an error's `closest_`.
    feasible_ : bool
        Whether all constraints are satisfied out of fold, and the final rule violates none on its
        training rows beyond a 95% interval.
    solver_ : str
        Name of the solver used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    skbandit.constrained.RampClassifier : The paper's algorithm, evaluated on its training rows.
    skbandit.constrained.ConstrainedThreshold : Moves the threshold of any classifier.
    skbandit.constrained.ConstrainedReduction : Meets constraints with any classifier.
    skbandit.evaluation.RateScorer : Scores any classifier by the same declarations.

    Notes
    -----
    Predictions are deterministic. `predict_proba` is the score clipped to
    [0, 1], not a calibrated probability.

    Each row is scored by the model of the fold that leaves it out. Scores are standardized per
    model, so that all share one threshold, and the final direction is the mean of the folds'
    directions. The rates of these out-of-fold predictions must meet their bounds with a margin.
    The margin is such that the population violates any bound with a probability of at most 1 minus
    the level, by Wilson's limits, which MOVER combines for differences and ratios. With a
    `confidence_level`, rates of fewer than 10 effective rows have exact limits, and all limits are
    wider, because the best of many rules is chosen.

    The level is approximate. The limits assume a rule fixed in advance and independent rows, but
    many directions and thresholds are tried on the same rows, and the folds' models stand in for
    the final one. `ConstrainedThreshold` with ``cv="prefit"`` gives an exact guarantee on rows set
    aside for it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedRampClassifier(
    ...     objective=false_positive_rate(), constraints=recall() >= 0.95, pos_label=0
    ... )
    >>> clf.fit(scale(X), y).constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.95   0.95       True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "groups_extra": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRampClassifier._parameter_constraints,
        "solver": [StrOptions(set(NAMES)), HasMethods("solve")],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "cv": ["cv_object"],
        "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
    }

    def __init__(
        self,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        alpha: float | str = "auto",
        cv: Any = None,
        confidence_level: float | None = None,
        fit_intercept: bool = True,
        solver: str | Solver = "auto",
        solver_options: dict[str, Any] | None = None,
        pos_label: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.constraints = constraints
        self.alpha = alpha
        self.cv = cv
        self.confidence_level = confidence_level
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        groups: ArrayLike | None = None,
        groups_extra: ArrayLike | None = None,
        **unknown: Any,
    ) -> Self:
        """Train under the declared constraints.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, in the objective and in every constraint.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name and the model need not see. Columns of X, if it is
            a DataFrame, can be named too. Cross-validation slices a DataFrame.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            A second dataset, as in the `fit` of `RampClassifier`.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together, such as those of one person: passed to the splitter `cv`
            or, if that is None or a number, kept in the same fold. Margins and intervals count
            them as dependent. None means that only equal rows are kept together, and that rows
            are independent.
        groups_extra : array-like of shape (n_extra,), default=None
            The same of the extra rows, where a value of `groups` is the same group.
        **unknown : dict
            Refused, with a hint for names of other libraries.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleConstraintsError
            If no rule is found that meets the constraints; the closest model is in its
            `closest_`, and this estimator is left as it was.

        Warns
        -----
        ConstrainedFitWarning
            If the constraints cost much of the objective, or hold with less confidence than 0.6.
        UserWarning
            If 1 % of the rows or more are copies of others.
        """
        refuse_keywords(self, unknown)
        told = fit_task(self, X, y, sample_weight)
        extra = X_extra, y_extra, attributes_extra, sample_weight_extra
        given = sample_weight, attributes, *extra, groups, groups_extra
        metadata = dict(zip(OF_ROWS, given, strict=True))
        with told as step_done, atomic_fit(self) as draft, one_blas_thread():
            design, goals, groups = draft._read_training(X, y, metadata)
            draft._choose(design, goals, draft._options(design, goals, groups, step_done))
        return self

    def _choose(self, design: Any, goals: Goals, options: CrossFitOptions) -> None:
        """Choose a direction and its threshold, and conclude.

        Again if other pairs of groups are worse at the choice; directions are trained again if
        other rows count then.
        """
        trained = train_folds(design, goals, options)
        while True:
            fitted = best_on_path(choose_mixture(trained, goals, options), self._tighter)
            wider = goals.widened(fitted.predictions) if fitted.choice.feasible else None
            if wider is None:
                break
            if not np.array_equal(wider.measured.rows, goals.measured.rows):
                trained = train_folds(design, wider, options)
            goals = wider
        if self._tighter is not None:
            self._tighter.append(fitted)
        self.solver_, self.alpha_ = options.solver.name, alpha_of(goals.measured, options)
        self._set_model(fitted, trained.plain_rule())
        self._conclude(design, goals, fitted, trained.plain_predictions())

    def _options(
        self, design: Any, goals: Goals, groups: Any, step_done: Callable[[str], None]
    ) -> CrossFitOptions:
        """Collect the options of training and choosing."""
        # of "auto": fits are rough and many
        name = "newton" if self.solver == "auto" and not self.solver_options else self.solver
        return CrossFitOptions(
            choose_solver(name, self.solver_options or {}, *design.shape),
            None if isinstance(self.alpha, str) else finite(self.alpha, "alpha"),
            self.fit_intercept,
            self.confidence_level,
            self._folds(design, goals.data, groups),
            report=self._reporter(step_done),
            tell=self._tell,
        )

    def _folds(self, design: Any, data: Data, groups: Any) -> np.ndarray:
        """Return the fold of each row, extra ones included; -1 for rows of weight 0."""
        train, n = data.train, len(data.train)
        unit = read_units(self.cv, design, train.label, train.weight, groups)
        rows, cv, params = np.arange(n), self.cv, {} if groups is None else {"groups": groups}
        if is_number(cv):
            rows, params = np.flatnonzero(train.weight > 0), {}
            many = len(data) >= max(MANY_ROWS, ROWS_PER_COLUMN * min(design.shape))
            cv = default_folds(FEW_FOLDS if many else FOLDS, unit[rows]) if cv is None else cv
        splits = splits_of_classes(cv, design[rows], train.label[rows], unit[rows], params)
        tested = rows_tested(splits, len(rows))
        if not tested.all():
            row = int(np.flatnonzero(~tested)[0])
            raise ValueError(
                f"cv does not test row {row}, but each row needs one score by a model that was "
                "fitted without it: choose a cv that tests each row once, such as StratifiedKFold."
            )
        fold, label = np.full(n, -1), np.empty(0, int) if data.extra is None else data.extra.label
        for k, (_, test) in enumerate(splits):
            fold[rows[test]] = k
        return np.append(fold, folds_of_extra(fold, len(splits), label - MISSING, unit))

    def _set_model(self, fitted: CrossFitted, plain: Point) -> None:
        """Set the fitted attributes of the rule, signed for ``classes_[1]``."""
        sign = self._classes.orientation
        self.coef_ = sign * fitted.point.coef[None, :]
        self.intercept_ = np.array([sign * fitted.point.intercept])
        self.direction_ = re.sub(r"(?<=cost-sensitive) \d+", "", fitted.choice.name)
        self.confidence_level_ = fitted.choice.level
        self._plain = sign * plain.coef, sign * plain.intercept

    def _conclude(
        self, design: Any, goals: Goals, fitted: CrossFitted, unconstrained: np.ndarray
    ) -> None:
        """Report on the rule, out of fold and on its training rows; raise or warn if it fails."""
        choice, criterion, margins = fitted.choice, fitted.chooser, None
        positive = self._predicted_positive(self._linear(design))
        if criterion.promised is not None:
            margins = criterion.promised.margins(goals.measured_indicators(choice.rule.decided))
        self._take_constraints(goals)
        self._set_prices(goals, fitted.prices)
        decisions = fitted.predictions, unconstrained
        report = self._set_reports(goals, *decisions, margins, positive, goals.data)
        self.feasible_ = bool(report["satisfied"].fillna(True).all()) and choice.feasible
        if not self.feasible_:
            settings = goals, criterion, choice, fitted.scores, report, None
            why, proven = explain(*settings, " on any of the directions")
            self._refuse(why, report, goals, proven=proven)
        violated = _surely_violated(goals, positive)
        if violated:
            self.feasible_ = False
            warn(
                "feasible_ is False: out of fold the constraints hold, but on its training rows "
                f"the final rule violates some: {'; '.join(violated)}. Consider fewer features or "
                "looser constraints.",
                UserWarning,
            )
        level = choice.level if self.confidence_level is None else None
        warn_of_weak_fit(goals, *decisions, level)


def _surely_violated(goals: Goals, positive: np.ndarray) -> list[str]:
    """List the constraints whose bounds are outside the intervals of the rates."""
    violated = []
    rules = goals.constraints
    values = rules.values(positive)
    for k in np.flatnonzero(goals.is_measured & ~(rules.slack(values) >= -RATE_TOL)):
        constraint = rules.constraints[k]
        low, high = interval(constraint.rate, goals.data, positive, INTERVAL_LEVEL)
        if not low <= rules.bound[k] <= high:
            violated.append(f"{constraint.label} is {values[k]:.4g}")
    return violated
