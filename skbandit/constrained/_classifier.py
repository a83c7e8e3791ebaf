"""ConstrainedRampClassifier: the estimator around `train`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.constrained._classes import Classes
from skbandit.constrained._declared import Declared, Goals, allowed_error
from skbandit.constrained._extra_rows import (
    ExtraData,
    class_factors,
    join_extra,
    read_extra,
    read_rows,
    stack_rows,
)
from skbandit.constrained._mixin import ConstrainedClassifierMixin
from skbandit.constrained._report import (
    add_margins,
    cross_fitted_report,
    missed,
    plain_columns,
    report_table,
)
from skbandit.constrained._tolerances import INACCURATE, MET
from skbandit.constrained.solvers import Solver
from skbandit.constrained.solvers._registry import NAMES, choose_solver
from skbandit.constrained.training._margin_training import (
    CrossFitted,
    leave_folds_out,
    train_with_margins,
)
from skbandit.constrained.training._mm import Step
from skbandit.constrained.training._perturbations import number_of_perturbations
from skbandit.constrained.training._problem import Point, RampProblem, compile_problem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._row_span import RowSpan, row_span
from skbandit.constrained.training._train import Trained, TrainingOptions, train
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import Data
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._progress import fit_task, report_progress
from skbandit.utils._sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)
from skbandit.utils._threads import one_blas_thread
from skbandit.utils._validation import check_squares, finite

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


class ConstrainedRampClassifier(ConstrainedClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Linear classifier that meets declared goals on rates.

    It minimises (or maximises) one rate expression under bounds on others,

        objective(w, b) + alpha/2 |w|^2   subject to   every constraint,

    by majorisation-minimisation on the ramp loss (Goh, Cotter, Gupta & Friedlander, NIPS
    2016, Algorithm 1), and then moves the threshold to the best one whose *hard* training
    rates meet the constraints.

    Parameters
    ----------
    objective : Rate, default=None
        Rate to optimise, in the direction in which it is better; None is `error_rate()`.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    alpha : float, default=1e-3
        The paper's lambda, in units of the mean objective.
    fit_intercept : bool, default=True
        Whether there is an (unpenalised) intercept. Without one there is no threshold to
        move.
    max_iter : int, default=100
        Maximum number of majorisation-minimisation steps.
    tol : float, default=1e-5
        Training stops when a step lowers the objective by less.
    solver : str or Solver, default="auto"
        Solver of the convex problem in each step. "newton" is the fast one: it is
        "smoothed_newton" for up to 1,000 features, "augmented_lagrangian" for more; of features
        more numerous than the rows (up to 2,000), only the span of the rows counts. "cvxpy" is
        the reference: interior points, exact, and slow beyond some thousand rows.
        "cutting_plane" is the paper's Algorithm 2, one weighted SVM after the other. All solve
        the same convex problems, but training is local: where rounding and tolerances differ,
        it may end at another local optimum. "auto"
        is cvxpy for at most 500 rows and 500 features, where it is as fast, else newton. Also
        an instance from `skbandit.constrained.solvers`, such as
        ``SmoothedNewtonSolver(max_iter=50)``, or any object that follows `Solver` there.
    solver_options : dict, default=None
        Parameters of a solver given by name. For cvxpy: the arguments of
        ``cvxpy.Problem.solve``, as in ``{"solver": "CLARABEL"}``; by default PIQP if installed,
        else Clarabel. For newton: ``max_iter``, maximum steps per convex problem.
    threshold : {"shift"} or None, default="shift"
        Whether to move the intercept to the best threshold that meets the constraints.
    pos_label : label, default=None
        The positive class of all rates; None is ``classes_[1]``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective; constraints are not affected.
    warm_start : bool, default=False
        Whether to start from the previous fit.
    random_state : int, RandomState instance or None, default=None
        Used by `sample_predict`, and for perturbations in training; for the latter None is
        seed 0, so that training is reproducible.
    verbose : int, default=0
        1 reports every step in one line: printed, or logged if logging is configured to show
        INFO records of "skbandit". With scikit-learn 1.9 or newer,
        ``set_callbacks(sklearn.callback.ProgressBar())`` shows a progress bar.
    confidence_level : float in [0.5, 1) or None, default=None
        Probability, at least, that all constraints met in training also hold in the
        population that the rows are drawn from. None takes training rates at face value: a
        binding constraint is then violated more often than not. Takes some 6 to 18 times as
        long; see Notes.

    n_perturbations : int or "auto", default="auto"
        Random changes of the weights that are tried where the threshold is chosen on training
        rows, each with its exactly best threshold, in search of a better deterministic rule: on
        few rows the ramp's local optima are far from the best one. "auto" is 600 for up to 1,000
        rows, and none beyond. The solution without constraints and its best threshold are tried
        too. 0 tries nothing, draws no random numbers, and is the machine of the paper. Without a
        `confidence_level` only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights; positive scores favour ``classes_[1]``.
    intercept_ : ndarray of shape (1,)
        Intercept of the deterministic rule (minus the paper's b).
    ramp_intercept_ : ndarray of shape (1,)
        Intercept of the randomised rule, with which training ended.
    classes_ : ndarray of shape (2,)
        Class labels.
    n_iter_ : int
        Number of steps.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices >= 0, one per row of `constraint_report_`: the improvement of the
        objective per unit by which a bound, as declared, is relaxed, in the last convex
        problem. nan for groups that were skipped.
    objective_path_ : ndarray of shape (n_iter_,)
        Regularised ramp objective after each step, signed so that lower is better. (If no
        useful threshold is found, bounds are tightened for a few more steps, which are not
        included.)
    constraint_report_ : DataFrame
        One row per constraint, on the training data: `constraint`, `on`, `n_rows`,
        `effective_n` (see `constraint_report`), `bound`, `expected` (of the randomised
        rule), `value` (of the deterministic one), `slack`, `satisfied` (by the latter; the
        two rules rarely disagree), `multiplier`. With a `confidence_level`, `expected` and
        `value` are still rates of the final rules on their training rows; `cross_fitted` after
        them is the rate of out-of-fold predictions, to which `effective_n` and `slack` refer;
        `margin` is the slack that the level requires. `satisfied` means a slack of at least
        that, and a `value` inside the bound.
    feasible_ : bool
        Whether every constraint is satisfied: by the deterministic rule on the training data
        and, with a `confidence_level`, out of fold with the required margin.
    solver_ : str
        Name of the solver used: "cvxpy", "smoothed_newton", "augmented_lagrangian",
        "cutting_plane", or the `name` of an instance of your own.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    skbandit.constrained.ConstrainedThreshold : The threshold alone, for any classifier.
    skbandit.evaluation.RateScorer : Scores any classifier by the same declarations.

    Notes
    -----
    `predict`, `decision_function` and `predict_proba` are deterministic and agree; no group
    is needed at prediction. `predict_proba` is the score clipped to [0, 1], not a calibrated
    probability.

    With ``confidence_level=c``, the one-sided confidence limit of every bounded expression,
    at level 1 - (1 - c)/m for m constraints, must be inside its bound: Clopper and
    Pearson's for a single rate, combined cautiously for expressions of several (for a
    difference between two groups some 1.3 times as far as for a rule fixed in advance, as
    the choice costs something). A linear rule does better on its training rows than on new
    ones, the more so the more features there are; so limits are based on out-of-fold rates
    of models trained in the same way without a fifth of the rows each. Bounds move inwards
    by the limit's width and that optimism, all models are trained again, and the threshold
    is the best one within all limits. The guarantee assumes independent rows and folds'
    models that resemble the final one: it holds asymptotically, not exactly for few rows.
    Measured at level 0.9: of 100 samples of 300 rows with 8 features, 11 violated a bound
    on recall; of 40 samples of 2,000 rows of Adult with 123 features, 4; without a
    confidence level, 36 of 40 and 4 of 8. `ConstrainedThreshold` gives an exact guarantee
    on rows set aside for it.

    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedRampClassifier(
    ...     objective=false_positive_rate(), constraints=recall() >= 0.99, pos_label=0
    ... )
    >>> clf.fit(scale(X), y).constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.99   0.99       True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "objective": "no_validation",
        "constraints": "no_validation",
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(NAMES)), HasMethods("solve")],
        "solver_options": [dict, None],
        "threshold": [StrOptions({"shift"}), None],
        "pos_label": "no_validation",
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
        "n_perturbations": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        alpha: float = 1e-3,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 1e-5,
        solver: str | Solver = "auto",
        solver_options: dict[str, Any] | None = None,
        threshold: str | None = "shift",
        pos_label: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        confidence_level: float | None = None,
        n_perturbations: int | str = "auto",
    ) -> None:
        self.objective = objective
        self.constraints = constraints
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.solver_options = solver_options
        self.threshold = threshold
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.confidence_level = confidence_level
        self.n_perturbations = n_perturbations

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
    ) -> ConstrainedRampClassifier:
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
        extra : ExtraData, default=None
            Rows that count only in rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one. In a Pipeline use these, with
            ``transform_input=["X_extra"]``; under cross-validation wrap each in a tuple of
            one, as in ``(X_extra,)``, which is never sliced.

        Returns
        -------
        self : ConstrainedRampClassifier

        Raises
        ------
        InfeasibleConstraintsError
            If no rule is found that meets the constraints; the closest model is in its
            `closest_`, and this estimator is left as it was.
        """
        extra = join_extra(extra, X_extra, y_extra, attributes_extra, sample_weight_extra)
        with fit_task(self, X, y, sample_weight) as step_done, atomic_fit(self) as draft:
            draft._fit(X, y, sample_weight, attributes, extra, step_done)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        attributes: Any,
        extra: ExtraData | None,
        step_done: Callable[[str], None],
    ) -> None:
        declared = Declared.read(self.objective, self.constraints)
        alpha, tol = finite(self.alpha, "alpha"), finite(self.tol, "tol")
        previous = vars(self).copy() if self.warm_start else {}

        given, y_given = X, y
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_squares(X)
        classes = Classes.read(y, self.pos_label)
        self.classes_, self._positive = classes.labels, classes.positive
        label = (y == classes.positive).astype(np.int8)
        train_rows = read_rows(given, label, sample_weight, attributes, y=y_given)
        X_extra, extra_rows = read_extra(
            extra,
            classes.positive,
            classes.labels,
            X_is_named=hasattr(self, "feature_names_in_"),
            read_X=self._validated,
        )
        data = Data(train_rows, extra_rows, classes.positive, classes.labels.tolist())
        factors = class_factors(self.class_weight, classes.labels, y, train_rows.weight)

        goals = declared.bind(data, factors, allowed_error(self.confidence_level))
        self._constraints = goals.constraints.constraints
        design = stack_rows(X, X_extra)
        with one_blas_thread():
            span = row_span(design)
        (n, d), n_dimensions = design.shape, span.rows.shape[1]
        solver = choose_solver(self.solver, self.solver_options or {}, n, d, n_dimensions)
        self.solver_ = solver.name
        options = TrainingOptions(
            solver,
            self.max_iter,
            tol,
            choose_threshold=self.threshold == "shift" and self.fit_intercept,
            report=self._reporter(step_done),
        )
        problem = compile_problem(span.rows, goals.measured, alpha, self.fit_intercept)
        warm = self._previous_point(previous, span)
        if self.confidence_level is None:
            n_tried = number_of_perturbations(self.n_perturbations, len(goals.measured.rows))
            seed = _drawn_seed(self.random_state) if n_tried else 0
            searching = replace(options, n_perturbations=n_tried, seed=seed)
            trained = train(problem, searching, warm)
            self._set_model(trained, problem, goals, span)
            report = self._report(self._linear(design), goals.data, goals.constraints)
        else:
            folds = leave_folds_out(declared, goals, factors)
            found = train_with_margins(span.rows, goals, folds, problem, options, warm)
            trained = found.trained
            self._set_model(trained, problem, goals, span)
            report = self._cross_fitted_report(design, found, goals)
        self._report_columns = plain_columns(report)
        self.feasible_ = bool(report["satisfied"].fillna(True).all())
        self._judge(trained, goals)

    def _reporter(self, step_done: Callable[[str], None]) -> Callable[[Step], None]:
        """Report each MM step to callbacks and, if verbose, in one line."""

        def report(step: Step) -> None:
            if self.verbose:
                report_progress(f"[ConstrainedRampClassifier] {step}")
            step_done("MM step")

        return report

    def _previous_point(self, previous: dict[str, Any], span: RowSpan) -> Point | None:
        coef = previous.get("coef_")
        if coef is None or coef.shape[1] != self.n_features_in_:
            return None
        if not np.array_equal(previous["classes_"], self.classes_):
            return None
        sign = self._classes.orientation
        return Point(sign * span.coordinates(coef[0]), float(sign * previous["ramp_intercept_"][0]))

    def _set_model(
        self, trained: Trained, problem: RampProblem, goals: Goals, span: RowSpan
    ) -> None:
        """Set the fitted attributes of the two rules, signed for ``classes_[1]``."""
        sign, point = self._classes.orientation, trained.point
        b = point.intercept if trained.threshold is None else -trained.threshold.cut
        self.coef_ = sign * span.weights(point.coef)[None, :]
        self.intercept_ = np.array([sign * b])
        self.ramp_intercept_ = np.array([sign * point.intercept])
        self.objective_path_ = np.array(trained.mm.path)
        self.n_iter_ = len(trained.mm.path)
        expected = ramp(problem.scores(point))
        self.multipliers_ = np.full(len(goals.is_measured), np.nan)
        self.multipliers_[goals.is_measured] = problem.shadow_prices(trained.multipliers, expected)

    def _cross_fitted_report(self, design: Any, found: CrossFitted, goals: Goals) -> pd.DataFrame:
        """Report on the final rule itself and on out-of-fold predictions, with their margins."""
        own = self._report(self._linear(design), goals.data, goals.constraints)
        held_out = report_table(goals.constraints, goals.data, found.predictions)
        held_out = add_margins(held_out, goals.constraints, goals.limits, found.predictions)
        return cross_fitted_report(own, held_out)

    def _judge(self, trained: Trained, goals: Goals) -> None:
        """Raise if no rule meets the constraints; warn of what was not achieved."""
        if not self.feasible_:
            self._judge_infeasible(trained, goals)
        if trained.mm.gap > INACCURATE:
            warnings.warn(
                f"The last convex problem has a duality gap of {trained.mm.gap:.1e}: raise the "
                "solver's limit (max_iter of the Newton solvers), or choose another solver.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not trained.mm.converged:
            warnings.warn(
                f"Training stopped after max_iter={self.max_iter} steps, the last of which "
                f"still gained more than tol={self.tol:g}: raise one of them.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _judge_infeasible(self, trained: Trained, goals: Goals) -> None:
        """Raise unless the randomised rule meets the constraints; else warn of the threshold."""
        report = self.constraint_report_
        faults = missed(report, goals.constraints)
        # N - tD >= 0 holds where D = 0, but a precision without positive predictions is not met
        defined = report["expected"][goals.is_measured].notna().all()
        randomised_holds = trained.mm.feasible and defined
        shifted = self.threshold == "shift"
        out_of_fold_misses = False
        if self.confidence_level is not None:
            enough = report["slack"] >= report["margin"] - MET
            out_of_fold_misses = not enough[goals.is_measured].all()
        if not randomised_holds or (out_of_fold_misses and shifted):
            more = "" if trained.mm.converged else " More steps (max_iter) might help."
            raise InfeasibleConstraintsError(
                "No rule was found that meets the constraints together: "
                f"{faults}. The closest model is in the error's closest_.{more}",
                self,
            )
        if shifted and self.confidence_level is not None:
            warnings.warn(
                "feasible_ is False: out of fold the constraints hold, but on its training rows "
                f"the final rule misses them: {faults}. Its features may be too weak for the "
                "constraints; try fewer of either, or threshold=None and sample_predict.",
                UserWarning,
                stacklevel=6,
            )
        elif shifted:
            warnings.warn(
                "The randomised rule (sample_predict) meets the constraints, no single threshold "
                f"does: {faults}.",
                UserWarning,
                stacklevel=6,
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Scores clipped to [0, 1]; not calibrated probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`; `predict` returns the one above 1/2.
        """
        positive = ramp(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`; -inf where that is 0.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def sample_predict(self, X: Any, random_state: Any = None) -> np.ndarray:
        """Predict by the paper's randomised rule, whose expected rates are the ramp's.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        random_state : int, RandomState instance or None, default=None
            None uses the estimator's own.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels, drawn with the ramp's probabilities.
        """
        rng = check_random_state(self.random_state if random_state is None else random_state)
        probability = ramp(self._scores(X) + self.ramp_intercept_[0])
        return self.classes_[(rng.uniform(size=len(probability)) < probability).astype(int)]

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._linear(self._validated(X))

    @property
    def _shift(self) -> float:
        return float(self.intercept_[0])

    def _expected(self, scores: np.ndarray) -> np.ndarray:
        return ramp(self._classes.orientation * (scores + self.ramp_intercept_[0]))

    def _validated(self, X: Any) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _read_design(
        self, X: Any, y: Any, sample_weight: Any, attributes: Any, extra: ExtraData | None
    ) -> tuple[Any, Data]:
        """Validate rows, extra rows below, once for several models with the same features."""
        return self._read(X, y, sample_weight, attributes, extra, self._validated)

    def _predictions(self, design: Any) -> tuple[np.ndarray, np.ndarray]:
        """Positive predictions and their expectation, by the two rules, on validated rows."""
        scores = self._linear(design)
        return self._predicted_positive(scores), self._expected(scores)

    def _linear(self, X: Any) -> np.ndarray:
        return np.asarray(safe_sparse_dot(X, self.coef_[0], dense_output=True)).ravel()


def _drawn_seed(random_state: Any) -> int:
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
