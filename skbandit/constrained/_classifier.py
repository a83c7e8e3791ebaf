"""ConstrainedRampClassifier: the estimator around `train`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.constrained._fit_rows import (
    Classes,
    ExtraData,
    class_factors,
    join_extra,
    read_extra,
    read_rows,
    stack_rows,
)
from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained._report import (
    add_intervals,
    cross_fitted_report,
    missed,
    plain_columns,
    report_table,
)
from skbandit.constrained._tolerances import INACCURATE, MET
from skbandit.constrained.cross_fitting._cross_fit import CrossFitted, SharedWork, cross_fit
from skbandit.constrained.cross_fitting._folds import (
    NEWTON_ROWS_PER_COLUMN,
    CrossFitOptions,
    is_wide,
)
from skbandit.constrained.solvers import Solver
from skbandit.constrained.solvers._registry import NAMES, choose_solver
from skbandit.constrained.training._mm import Step
from skbandit.constrained.training._problem import (
    Point,
    RampProblem,
    RowSpan,
    compile_problem,
    ramp,
    row_span,
)
from skbandit.constrained.training._starts import in_words, relaxation_advice
from skbandit.constrained.training._train import (
    Trained,
    TrainingOptions,
    number_of_perturbations,
    train,
)
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.rates._columns import Data
from skbandit.utils._fitting import atomic_fit, one_blas_thread
from skbandit.utils._progress import fit_task, report_progress
from skbandit.utils._sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)
from skbandit.utils._validation import check_squares, finite

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


PAPER_ALPHA = 1e-3
"""The alpha of alpha="auto" where nothing is left out that could judge it."""


@dataclass(frozen=True)
class _Training:
    """What `fit` has read.

    Attributes
    ----------
    design : ndarray or csr_array
        All rows, extra ones below.
    goals : Goals
        On all rows.
    declared : Declared
        The goals without data.
    factors : ndarray
        Factors of the weights of the rows of X in the objective.
    """

    design: Any
    goals: Goals
    declared: Declared
    factors: np.ndarray


class ConstrainedRampClassifier(ConstrainedClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Linear classifier trained to meet declared goals on rates, on new rows.

    It minimises (or maximises) one rate expression under bounds on others. By default whatever
    is chosen is judged by rows that were left out of training: directions are trained without
    each fold in turn, by logistic regression, by majorisation-minimisation on the ramp loss (Goh,
    Cotter, Gupta & Friedlander, NIPS 2016, Algorithm 1) and by prices of the constraints, and the
    best of them and of their mixtures wins, at the exact best threshold that meets the
    constraints with some room for chance.

    Parameters
    ----------
    objective : Rate, default=None
        Rate to optimise, in the direction in which it is better; None is `error_rate()`.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    alpha : float or "auto", default="auto"
        The paper's lambda, in units of the mean objective. "auto" judges a path of ramps, at 0.1
        and 0.01, out of fold; where nothing is left out (`threshold`), it is 0.001.
    fit_intercept : bool, default=True
        Whether there is an (unpenalised) intercept. Without one there is no threshold to choose.
    max_iter : int, default=100
        Maximum number of majorisation-minimisation steps; at most 8 per alpha and fold if
        ``threshold="cross_fit"``.
    tol : float, default=1e-5
        Training stops when a step lowers the objective by less; by less than 0.0003 at least if
        ``threshold="cross_fit"``.
    solver : str or Solver, default="auto"
        Solver of the convex problem in each step. "newton" is the fast one: it is
        "smoothed_newton" for up to 1,000 features, "augmented_lagrangian" for more; of features
        more numerous than the rows (up to 2,000), only the span of the rows counts. "cvxpy" is
        the reference: interior points, exact, and slow beyond some thousand rows.
        "cutting_plane" is the paper's Algorithm 2, one weighted SVM after the other. All solve
        the same convex problems, but training is local: where rounding and tolerances differ,
        it may end at another local optimum. "auto"
        is newton, or augmented_lagrangian with fewer than five rows per feature; with another
        `threshold` than "cross_fit" it is newton, or cvxpy for at most 500 rows and
        500 features, where that is as fast. Also an instance from
        `skbandit.constrained.solvers`, such as ``SmoothedNewtonSolver(max_iter=50)``, or any
        object that follows `Solver` there.
    solver_options : dict, default=None
        Parameters of a solver given by name. For cvxpy: the arguments of
        ``cvxpy.Problem.solve``, as in ``{"solver": "CLARABEL"}``; by default PIQP if installed,
        else Clarabel. For newton: ``max_iter``, maximum steps per convex problem.
    threshold : {"cross_fit", "train"} or None, default="cross_fit"
        By which rows bounds, direction and threshold are judged. "cross_fit": by rows left out
        of training. "train": by the training rows; the paper's machine, with the intercept
        moved to the best threshold whose hard training rates meet the constraints. It meets
        bounds on the rows that it was fitted to and often misses them on new ones. None: as
        "train", with the intercept left where training ended.
    pos_label : label, default=None
        The positive class of all rates. Required for labels other than {0, 1}, {-1, 1} and bool,
        unless all rates are the same for either class, as `error_rate` and `churn` are.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective; constraints are not affected.
    warm_start : bool, default=False
        Whether to start from the previous fit. Without effect if ``threshold="cross_fit"``: the
        previous fit has seen the rows that are left out.
    random_state : int, RandomState instance or None, default=None
        Used by `sample_predict`, and for `n_perturbations`; for the latter None is seed 0, so
        that training is reproducible.
    verbose : int, default=0
        1 reports every step in one line: printed, or logged if logging is configured to show
        INFO records of "skbandit". With scikit-learn 1.9 or newer,
        ``set_callbacks(sklearn.callback.ProgressBar())`` shows a progress bar.
    confidence_level : float in [0.5, 1) or None, default=None
        Probability, about, that all constraints hold in the population that the rows are drawn
        from. None is for 0.8, or less where that is out of reach or worsens the objective by more
        than 0.05; a number that is out of reach is an error. Only with
        ``threshold="cross_fit"``.
    n_perturbations : int or "auto", default="auto"
        Random changes of the weights that are tried if ``threshold="train"``, each with its
        exactly best threshold, in search of a better deterministic rule: on few rows the ramp's
        local optima are far from the best one. "auto" is 600 for up to 1,000 rows, and none
        beyond. The solution without constraints and its best threshold are tried too, and ramp
        bounds are relaxed where hard rates leave slack unused. 0 does none of this, draws no
        random numbers, and is the machine of the paper.
    start : {"search", "zeros"}, default="search"
        Where training starts if there is no previous fit: "search" compares constant predictions
        and the solution without constraints, at several scales; "zeros" is the paper's w = 0,
        b = 0. Without effect if ``threshold="cross_fit"``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights; positive scores favour ``classes_[1]``.
    intercept_ : ndarray of shape (1,)
        Intercept of the deterministic rule (minus the paper's b).
    ramp_intercept_ : ndarray of shape (1,)
        Intercept of the randomised rule: that with which training ended or, if cross-fitted,
        with which the ramp of the chosen direction does best on the training rows.
    alpha_ : float
        The alpha of the ramp that was trained. If cross-fitted, that of the ramp in the chosen
        direction, or of the ramp that does best if another direction was chosen; it refers to
        columns in units of their deviation.
    direction_ : str
        The direction that was chosen: "logistic", "ramp", "lagrangian" or a mixture such as
        "0.5 logistic + 0.5 ramp".
    classes_ : ndarray of shape (2,)
        Class labels.
    n_iter_ : int
        Number of steps; if cross-fitted, the largest one of a fold at `alpha_`.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices >= 0, one per row of `constraint_report_`: the improvement of the
        objective per unit by which a bound, as declared, is relaxed: in the last convex problem
        or, if cross-fitted, of the out-of-fold objective, where that bound alone gives way by two
        standard errors, and direction and threshold are chosen anew. nan for groups that were
        skipped; if cross-fitted, nan too where no threshold is inside.
        Of a `ratio` or `difference` of more than six groups, only the ordered pairs that training
        has needed have an entry; that of the others is 0.
    objective_path_ : ndarray of shape (n_iter_,)
        Regularised ramp objective after each step, signed so that lower is better; if
        cross-fitted, the mean over the folds' ramps at `alpha_`. (If no useful threshold is
        found, bounds are tightened for a few more steps, which are not included.)
    constraint_report_ : DataFrame
        One row per constraint (see `multipliers_`), on the training data: `constraint`, `on`,
        `n_rows`, `effective_n` (see `constraint_report`), `bound`, `expected` (of the randomised
        rule), `value` (of the deterministic one), `slack`, `satisfied`, `multiplier`. If
        cross-fitted, `cross_fitted` after `value` is the rate of out-of-fold predictions, which
        new rows can be expected to show, with its interval of 95 %, `ci_low` and `ci_high`;
        `effective_n`, `slack` and `satisfied` refer to it. `unconstrained` is the out-of-fold rate
        of logistic regression without constraints. With a `confidence_level`, `margin`
        is the slack that it takes for each constraint alone, and `satisfied` means a slack of at
        least that.
    confidence_level_ : float
        The level that is reached, if cross-fitted; 0.5 is for rates that are inside their bounds
        without any margin.
    feasible_ : bool
        Whether every constraint is satisfied, by the deterministic rule on its training rows
        and, if cross-fitted, out of fold.
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

    A linear rule does better on its training rows than on new ones, the more so the more
    features there are. So rows are left out of training in five folds, or in three where they
    are many. Directions of the folds' models are standardised, so that one threshold suits the
    scores of all, and each row is scored by the model that has not seen it. The rates of
    these predictions must be inside their bounds, and with some room: the risk that the
    population misses one, by Wilson's limits, combined by MOVER for differences and ratios, may
    be 0.2, or 1 minus the `confidence_level`, for which rates of fewer than 10 effective rows have
    exact limits. Where no threshold of any direction allows 0.2, or
    it is too dear, the room is halved up to three times, in the end to none. The plain logistic
    direction stays unless another one is ahead by more than half a standard error. The final
    direction is the mean of the folds' ones; for a large number of rows each is fitted to a
    sample of them, and thresholds are still chosen on all. Columns are used in units of their
    deviations, so their units do not matter.

    The limits are for a rule fixed in advance, and many directions and thresholds are tried on
    the same rows; folds' models stand in for the final one, and rows must be independent. So a
    level holds approximately. `ConstrainedThreshold` gives an exact guarantee on rows set aside
    for it.

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
    ...     objective=false_positive_rate(), constraints=recall() >= 0.97, pos_label=0
    ... )
    >>> clf.fit(scale(X), y).constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.97   0.97       True
    """

    _shared_work: SharedWork | None = None
    """What fits under other bounds on the same rows have left behind, while a path is fitted."""

    _plain: tuple[np.ndarray, float] | None
    """Weights and intercept of logistic regression without constraints, if cross-fitted."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "objective": "no_validation",
        "constraints": "no_validation",
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(NAMES)), HasMethods("solve")],
        "solver_options": [dict, None],
        "threshold": [StrOptions({"cross_fit", "train"}), None],
        "pos_label": "no_validation",
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
        "n_perturbations": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "start": [StrOptions({"search", "zeros"})],
    }

    def __init__(
        self,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        alpha: float | str = "auto",
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 1e-5,
        solver: str | Solver = "auto",
        solver_options: dict[str, Any] | None = None,
        threshold: str | None = "cross_fit",
        pos_label: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        confidence_level: float | None = None,
        n_perturbations: int | str = "auto",
        start: str = "search",
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
        self.start = start

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

        Warns
        -----
        ConstrainedFitWarning
            If the constraints cost much of the objective, or hold with less confidence than 0.8.
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
        alpha, tol = self._read_alpha(), finite(self.tol, "tol")
        self._check_threshold()
        previous = vars(self).copy() if self.warm_start else {}
        read = self._read_training(X, y, sample_weight, attributes, extra)
        if self.threshold == "cross_fit":
            self._cross_fit(read, self._cross_fit_options(read.design, alpha, tol, step_done))
        else:
            alpha = PAPER_ALPHA if alpha is None else alpha
            self._train(read.design, read.goals, alpha, tol, previous, step_done)

    def _train_directions(
        self,
        work: SharedWork,
        X: Any,
        y: Any,
        sample_weight: Any,
        attributes: Any,
        extra: ExtraData | None,
    ) -> None:
        """Train directions that fits under other bounds may choose, too; fit nothing else."""
        self._validate_params()
        alpha, tol = self._read_alpha(), finite(self.tol, "tol")
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit for these bounds will tell
            read = self._read_training(X, y, sample_weight, attributes, extra)
            options = self._cross_fit_options(read.design, alpha, tol, lambda _: None)
            work.train(read.design, read.goals, read.declared, read.factors, options)

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any, attributes: Any, extra: ExtraData | None
    ) -> _Training:
        """Validate the arguments of `fit`, and bind the goals to them."""
        declared = Declared.read(self.objective, self.constraints)
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
        declared.require_pos_label(classes, self.pos_label, data)
        factors = class_factors(self.class_weight, classes.labels, y, train_rows.weight)
        goals = declared.bind(data, factors)
        return _Training(stack_rows(X, X_extra), goals, declared, factors)

    def _read_alpha(self) -> float | None:
        """The number of `alpha`, None for "auto"."""
        return None if isinstance(self.alpha, str) else finite(self.alpha, "alpha")

    def _check_threshold(self) -> None:
        if self.confidence_level is not None and self.threshold != "cross_fit":
            raise ValueError(
                f"confidence_level={self.confidence_level} is judged on rows that were left out "
                f"of training, which threshold={self.threshold!r} does not do: choose "
                "threshold='cross_fit', or confidence_level=None."
            )

    def _cross_fit_options(
        self, design: Any, alpha: float | None, tol: float, step_done: Callable[[str], None]
    ) -> CrossFitOptions:
        """Settings of `cross_fit`."""
        n, d = design.shape
        # fits are rough and many; options may be for what "auto" means otherwise
        rough = self.solver == "auto" and not self.solver_options
        name = "newton" if rough else self.solver
        if rough and n < NEWTON_ROWS_PER_COLUMN * d:
            name = "augmented_lagrangian"
        dimensions = n if is_wide(design) else d
        return CrossFitOptions(
            choose_solver(name, self.solver_options or {}, n, d, dimensions),
            self.max_iter,
            tol,
            alpha,
            self.fit_intercept,
            self.confidence_level,
            self._reporter(step_done),
        )

    def _cross_fit(self, read: _Training, options: CrossFitOptions) -> None:
        """Choose direction and threshold by rows left out; see `cross_fitting`."""
        design, goals = read.design, read.goals
        work = SharedWork() if self._shared_work is None else self._shared_work
        with one_blas_thread():
            found = cross_fit(design, goals, read.declared, read.factors, options, work)
            while found.choice.feasible and (wider := goals.widened(found.predictions)):
                goals = wider
                found = cross_fit(design, goals, read.declared, read.factors, options, work)
        self._take_constraints(goals)
        self.solver_ = options.solver.name
        sign = self._classes.orientation
        self.coef_ = sign * found.point.coef[None, :]
        self.intercept_ = np.array([-sign * found.cut])
        self.ramp_intercept_ = np.array([sign * found.point.intercept])
        self.alpha_, self.direction_ = found.alpha, found.direction_name
        self.confidence_level_ = found.choice.level
        self._plain = sign * found.plain.coef, sign * found.plain.intercept
        self.objective_path_, self.n_iter_ = np.array(found.path), len(found.path)
        self.multipliers_ = np.full(len(goals.is_measured), np.nan)
        self.multipliers_[goals.is_measured] = found.multipliers()
        own = self._report(self._linear(design), goals.data, goals.constraints)
        held_out = report_table(
            goals.constraints,
            goals.data,
            found.predictions,
            unconstrained=found.unconstrained,
        )
        held_out = add_intervals(held_out, goals.constraints, goals.data, found.predictions)
        report = cross_fitted_report(own, held_out, found.margins)
        self._report_columns = plain_columns(report)
        self.feasible_ = bool(report["satisfied"].fillna(True).all()) and found.choice.feasible
        self._judge_cross_fitted(found, goals)
        level = found.choice.level if self.confidence_level is None else None
        self._warn_of_weak_fit(
            read.declared.objective,
            goals,
            found.predictions,
            found.unconstrained,
            level,
            stacklevel=5,
        )

    def _train(
        self,
        design: Any,
        goals: Goals,
        alpha: float,
        tol: float,
        previous: dict[str, Any],
        step_done: Callable[[str], None],
    ) -> None:
        """Train on all rows, and judge by them: the paper's algorithm."""
        with one_blas_thread():
            span = row_span(design)
        (n, d), n_dimensions = design.shape, span.rows.shape[1]
        solver = choose_solver(self.solver, self.solver_options or {}, n, d, n_dimensions)
        self.solver_ = solver.name
        n_tried = number_of_perturbations(self.n_perturbations, len(goals.measured.rows))
        options = TrainingOptions(
            solver,
            self.max_iter,
            tol,
            choose_threshold=self.threshold == "train" and self.fit_intercept,
            report=self._reporter(step_done),
            n_perturbations=n_tried,
            seed=_drawn_seed(self.random_state) if n_tried else 0,
            from_zero=self.start == "zeros",
        )
        problem = compile_problem(span.rows, goals.measured, alpha, self.fit_intercept)
        trained = train(problem, options, self._previous_point(previous, span))
        self._take_constraints(goals)
        self._set_model(trained, problem, goals, span)
        self.alpha_, self.direction_ = alpha, "ramp"
        self._plain = None
        if hasattr(self, "confidence_level_"):
            del self.confidence_level_
        report = self._report(self._linear(design), goals.data, goals.constraints)
        self._report_columns = plain_columns(report)
        self.feasible_ = bool(report["satisfied"].fillna(True).all())
        positive = self._predicted_positive(self._linear(design))
        if self.feasible_ and (wider := goals.widened(positive)) is not None:
            return self._train(design, wider, alpha, tol, previous, step_done)
        # advice is a search of its own, for which the fast solver will do
        fast = choose_solver("newton", {}, n, d, n_dimensions)
        relax = partial(relaxation_advice, problem, trained.point, goals, fast)
        self._judge(trained, goals, relax)

    def _reporter(self, step_done: Callable[[str], None]) -> Callable[[Step], None]:
        """Report each MM step to callbacks and, if verbose, in one line."""

        def report(step: Step) -> None:
            if self.verbose:
                report_progress(f"[ConstrainedRampClassifier] {step}")
            step_done("MM step")

        return report

    def _previous_point(self, previous: dict[str, Any], span: RowSpan) -> Point | None:
        """Where the previous fit's ramp ended, if it had these features and classes."""
        coef = previous.get("coef_")
        if coef is None or coef.shape[1] != self.n_features_in_:
            return None
        if not np.array_equal(previous["classes_"], self.classes_):
            return None
        sign = self._classes.orientation
        end, b = sign * coef[0], sign * previous["ramp_intercept_"][0]
        if previous.get("_ramp_end") is not None and previous["_positive"] == self._positive:
            end, b = previous["_ramp_end"]
        return Point(span.coordinates(end), float(b))

    def _set_model(
        self, trained: Trained, problem: RampProblem, goals: Goals, span: RowSpan
    ) -> None:
        """Set the fitted attributes of the two rules, signed for ``classes_[1]``."""
        sign, point = self._classes.orientation, trained.point
        b = point.intercept if trained.threshold is None else -trained.threshold.cut
        self.coef_ = sign * span.weights(point.coef)[None, :]
        self.intercept_ = np.array([sign * b])
        # where the ramp's training ended: the threshold and its perturbations are hard on it
        self._ramp_end = (span.weights(trained.mm.point.coef), trained.mm.point.intercept)
        self.ramp_intercept_ = np.array([sign * point.intercept])
        self.objective_path_ = np.array(trained.mm.path)
        self.n_iter_ = len(trained.mm.path)
        expected = ramp(problem.scores(point))
        self.multipliers_ = np.full(len(goals.is_measured), np.nan)
        self.multipliers_[goals.is_measured] = problem.shadow_prices(trained.multipliers, expected)

    def _judge(self, trained: Trained, goals: Goals, relax: Callable[[], str]) -> None:
        """Raise if no rule meets the constraints; warn of what was not achieved."""
        if not self.feasible_:
            self._judge_infeasible(trained, goals, relax)
        if trained.mm.gap > INACCURATE:
            warnings.warn(
                f"The last convex problem has a duality gap of {trained.mm.gap:.1e}: raise the "
                "solver's limit (max_iter of the Newton solvers), or choose another solver.",
                ConvergenceWarning,
                stacklevel=6,
            )
        if not trained.mm.converged:
            warnings.warn(
                f"Training stopped after max_iter={self.max_iter} steps, the last of which "
                f"still gained more than tol={self.tol:g}: raise one of them.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _judge_infeasible(self, trained: Trained, goals: Goals, relax: Callable[[], str]) -> None:
        """Raise unless the randomised rule meets the constraints; else warn of the threshold.

        `relax` says which bounds to relax, at the cost of some more training.
        """
        report = self.constraint_report_
        faults = missed(report, goals.constraints)
        # N - tD >= 0 holds where D = 0, but a precision without positive predictions is not met
        defined = report["expected"][goals.is_measured].notna().all()
        randomised_holds = trained.mm.feasible and defined
        shifted = self.threshold == "train"
        if not randomised_holds:
            more = "" if trained.mm.converged else " More steps (max_iter) might help."
            raise InfeasibleConstraintsError(
                "No rule was found that meets the constraints together: "
                f"{faults}. {relax()}The closest model is in the error's closest_.{more}",
                self,
            )
        if shifted:
            warnings.warn(
                "The randomised rule (sample_predict) meets the constraints, no single threshold "
                f"does: {faults}.",
                UserWarning,
                stacklevel=7,
            )

    def _judge_cross_fitted(self, found: CrossFitted, goals: Goals) -> None:
        """Raise if no rule meets the constraints out of fold; warn if the final one does not."""
        report = self.constraint_report_
        if not self.feasible_:
            raise InfeasibleConstraintsError(
                f"{self._why_infeasible(found, report, goals)} {_advice(found, goals)}The closest "
                "model is in the error's closest_.",
                self,
            )
        own = goals.constraints.slack(report["value"].to_numpy())[goals.is_measured]
        if not (own >= -MET).all():
            self.feasible_ = False
            values = [f"{one['constraint']} is {one['value']:.4g}" for _, one in report.iterrows()]
            warnings.warn(
                "feasible_ is False: out of fold the constraints hold, but on its training rows "
                f"the final rule misses one: {'; '.join(values)}. Its features may be too weak "
                "for the constraints; try fewer of either.",
                UserWarning,
                stacklevel=6,
            )

    def _why_infeasible(self, found: CrossFitted, report: pd.DataFrame, goals: Goals) -> str:
        """Which constraints no direction meets on rows left out of its training."""
        faults = missed(report, goals.constraints)
        if self.confidence_level is None:
            return (
                "No rule was found that meets the constraints together on rows left out of its "
                f"training: {faults}."
            )
        n = len(goals.data)
        if np.isinf(found.rows_needed):
            more = "No number of rows would do: the rates themselves miss a bound."
        else:
            more = (
                f"It would take about {_rounded_up(found.rows_needed)} rows like these {n}, "
                "a lower level, or wider bounds."
            )
        goal = f": {faults}" if faults else f", of {'; '.join(report['constraint'])}"
        return (
            f"{n} rows do not support confidence_level={self.confidence_level} of the "
            f"constraints together{goal}. {more}"
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

    def _both_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = self._validated(X)
        scores = self._linear(rows)
        if self._plain is None:
            return np.column_stack([scores, np.full(len(scores), np.nan)])
        coef, intercept = self._plain
        plain = np.asarray(safe_sparse_dot(rows, coef, dense_output=True)).ravel()
        return np.column_stack([scores, plain + intercept])

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


def _advice(found: CrossFitted, goals: Goals) -> str:
    """Which bounds to relax, and how far, if no threshold is inside all."""
    if found.relaxations is None:
        return ""
    return in_words(found.relaxations, goals, "Out of fold")


def _rounded_up(number: float) -> int:
    """A number with two significant digits, not below it."""
    unit = 10 ** max(int(np.log10(max(number, 1.0))) - 1, 0)
    return int(np.ceil(number / unit)) * unit


def _drawn_seed(random_state: Any) -> int:
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
