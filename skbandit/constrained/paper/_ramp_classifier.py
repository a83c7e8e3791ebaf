"""RampClassifier: majorization-minimization on the ramp loss, evaluated on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skbandit.constrained._goals import Goals
from skbandit.constrained._linear import BaseRampClassifier
from skbandit.constrained._report import objective_row, plain_columns
from skbandit.constrained.fits._fit_rows import OF_ROWS, refuse_keywords
from skbandit.constrained.paper._interface import Solver
from skbandit.constrained.paper._problem import (
    RampProblem,
    RowSpan,
    compile_problem,
    ramp,
    row_span,
)
from skbandit.constrained.paper._registry import NAMES, choose_solver
from skbandit.constrained.paper._starts import relaxation_advice
from skbandit.constrained.paper._tolerances import INACCURATE
from skbandit.constrained.paper._train import Trained, TrainingOptions, train
from skbandit.constrained.rounds._multipliers import (
    MAX_THRESHOLDS,
    Rules,
    dropped_prices_of_rules,
    rules_of_curve,
)
from skbandit.constrained.rules._advice import missed
from skbandit.constrained.rules._curve import Curve
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.prices._dual import ShadowPrices
from skbandit.rates import Constraint, Rate
from skbandit.utils._fitting import atomic_fit, fit_task, one_blas_thread
from skbandit.utils._sklearn_compat import HasMethods, Interval, StrOptions, fit_context
from skbandit.utils._validation import finite, warn

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class RampClassifier(BaseRampClassifier):
    """Linear classifier that meets constraints on rates on its training rows.

    Algorithm 1 of Goh, Cotter, Gupta & Friedlander (NIPS 2016): majorization-minimization on the
    ramp loss. Its constraints hold on the training rows and are often violated on new data. For
    new data use `ConstrainedRampClassifier`.

    Parameters
    ----------
    objective : Rate, default=None
        Rate to optimize. None means `error_rate()`. Recall and the like are maximized, the error
        rate and the like minimized.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    alpha : float, default=1e-3
        Strength of the L2 penalty (the paper's lambda), relative to the mean objective.
    fit_intercept : bool, default=True
        Whether to fit an unpenalized intercept. Without one there is no threshold to choose.
    max_iter : int, default=100
        Maximum number of majorization-minimization steps.
    tol : float, default=1e-5
        Training stops when a step lowers the objective by less than this.
    solver : str or Solver, default="auto"
        Solver of the convex problem in each step. All solve the same problems, but training is
        local, so different rounding can lead to another local optimum.

        - "newton" or "augmented_lagrangian", the fastest. If there are more features than rows (up
          to 2,000), only the span of the rows counts.
        - "cvxpy", the reference: interior points, accurate, and slow for more than a few thousand
          rows.
        - "cutting_plane": the paper's Algorithm 2, a sequence of weighted SVMs.
        - "auto": "cvxpy" for at most 500 rows and 500 features, otherwise "newton".
        - An instance from `skbandit.constrained.solvers`, such as
          ``AugmentedLagrangianSolver(max_iter=50)``, or any object that follows `Solver` there.
    solver_options : dict, default=None
        Parameters of a solver given by name. For cvxpy, the arguments of ``cvxpy.Problem.solve``,
        such as ``{"solver": "CLARABEL"}``; the default is PIQP if installed, else Clarabel. For
        newton, ``max_iter``, the maximum number of steps per convex problem.
    init : {"search", "zeros"}, default="search"
        "zeros" starts at w = 0, b = 0, as in the paper. "search" starts from the best of constant
        predictions and the unconstrained solution at several scales, relaxes ramp bounds if hard
        rates leave slack unused, and returns the unconstrained solution if that has the better
        threshold.
    threshold : bool, default=True
        Whether to move the intercept to the best threshold whose hard training rates meet the
        constraints.
    pos_label : label, default=None
        The positive class. Required for labels other than {0, 1}, {-1, 1} and bool, unless all
        rates are the same for either class, as `error_rate` and `churn` are.
    class_weight : dict, "balanced" or None, default=None
        Class weights in the objective. They do not affect constraints.
    random_state : int, RandomState instance or None, default=None
        Used by `sample_predict` only.
    verbose : int, default=0
        1 prints one line per training step, or logs it if INFO records of "skbandit" are shown.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights. Positive scores are predicted as ``classes_[1]``.
    intercept_ : ndarray of shape (1,)
        Intercept of the deterministic rule (minus the paper's b).
    ramp_intercept_ : ndarray of shape (1,)
        Intercept of the randomized rule of `sample_predict`, with which training ended.
    classes_ : ndarray of shape (2,)
        Class labels.
    n_iter_ : int
        Number of training steps.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices, one per row of `constraint_report_`: how much the objective of the last
        convex problem improves per unit by which a bound is relaxed; 0 if it does not bind, nan if
        the constraint was skipped.
    objective_path_ : ndarray of shape (n_iter_,)
        Regularized ramp objective after each step; lower is better. If no useful threshold is
        found, bounds are tightened for a few more steps, which are not included.
    constraint_report_ : DataFrame
        One row per constraint, on the training data; of a `ratio` or `difference` of more than six
        groups, one row per pair of groups that training needed. Columns: `constraint`, `on`,
        `n_rows`, `effective_n`, `bound`, `expected` (of the randomized rule), `value` (of the
        deterministic rule), `slack`, `satisfied`, `multiplier`.
        `price` is how much better the objective would be without the declared constraint, of which
        the row may be a part, among the models trained.
    objective_report_ : DataFrame
        One row: `objective`, its `value` on the training rows with its interval from `ci_low` to
        `ci_high`; `unconstrained` and `best_unconstrained`, the best without constraints among the
        directions trained; `cross_fitted` is missing.
    feasible_ : bool
        Whether the deterministic rule satisfies every constraint.
    solver_ : str
        Name of the solver used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    skbandit.ConstrainedRampClassifier : Selects directions and thresholds out of fold.

    Notes
    -----
    Predictions are deterministic. `predict_proba` is the score clipped to [0, 1], not a calibrated
    probability.

    The settings of the paper are ``init="zeros", threshold=False``, with `sample_predict`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit.constrained import RampClassifier
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = RampClassifier(false_positive_rate(), recall() >= 0.97, pos_label=0)
    >>> clf.fit(scale(X), y).constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.97   0.97       True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRampClassifier._parameter_constraints,
        "solver": [StrOptions(set(NAMES)), HasMethods("solve")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"search", "zeros"})],
        "threshold": ["boolean"],
        "random_state": ["random_state"],
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
        init: str = "search",
        threshold: bool = True,
        pos_label: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.constraints = constraints
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.solver_options = solver_options
        self.init = init
        self.threshold = threshold
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.random_state = random_state
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
            A second dataset, with the same features, that counts only in rates with
            ``on="extra"`` or ``"all"``; `y_extra` None or missing entries are unlabeled. In a
            Pipeline pass ``transform_input=["X_extra"]``; under cross-validation wrap each in a
            tuple of one, as in ``(X_extra,)``, which is never sliced.
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
        ConvergenceWarning
            If training stopped after `max_iter` steps, or the solver before it was accurate.
        UserWarning
            If the randomized rule meets the constraints, but no single threshold does.
        """
        refuse_keywords(self, unknown)
        extra = X_extra, y_extra, attributes_extra, sample_weight_extra
        metadata = dict(zip(OF_ROWS, (sample_weight, attributes, *extra), strict=False))
        with fit_task(self, X, y, sample_weight) as step_done, atomic_fit(self) as draft:
            design, goals, _ = draft._read_training(X, y, metadata)
            draft._fit(design, goals, step_done)
        return self

    def sample_predict(self, X: Any, random_state: Any = None) -> np.ndarray:
        """Predict by the paper's randomized rule, whose expected rates are the ramp's.

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

    def _expected(self, scores: np.ndarray) -> np.ndarray:
        return ramp(self._classes.orientation * (scores + self.ramp_intercept_[0]))

    def _fit(self, design: Any, goals: Goals, step_done: Callable[[str], None]) -> None:
        """Train on all rows until no pair of groups outside the working set is the worst."""
        goals.declared.require_one_rate("RampClassifier")
        alpha, tol = finite(self.alpha, "alpha"), finite(self.tol, "tol")
        # an intercept makes up for the means; far from 0, columns are nearly dependent on it
        center = None
        if self.fit_intercept and not issparse(design):
            center = np.average(design, axis=0, weights=goals.data.weight)
        with one_blas_thread():
            span = row_span(design if center is None else design - center)
        n, d = design.shape
        solver = choose_solver(self.solver, self.solver_options or {}, n, d)
        self.solver_ = solver.name
        options = TrainingOptions(
            solver,
            self.max_iter,
            tol,
            choose_threshold=self.threshold and self.fit_intercept,
            report=self._reporter(step_done),
            from_zero=self.init == "zeros",
        )
        working: Goals | None = goals
        while working is not None:
            goals = working
            problem = compile_problem(span.rows, goals.measured, alpha, self.fit_intercept)
            trained = train(problem, options)
            self._take_constraints(goals)
            self._set_model(trained, problem, goals, span, center)
            scores = self._linear(design)
            positive, expected = self._predicted_positive(scores), self._expected(scores)
            report = self._report(positive, goals.data, goals.constraints, expected=expected)
            self._report_columns = plain_columns(report)
            self._objective_row = objective_row(goals, goals.data, positive, None, None, self._free)
            self.feasible_ = bool(report["satisfied"].fillna(True).all())
            working = goals.widened(positive)
            if not self.feasible_:
                break
        # advice is a search of its own, for which the fast solver will do
        fast = choose_solver("newton", {}, n, d)
        relax = partial(relaxation_advice, problem, trained.point, goals, fast)
        self._check_trained(trained, goals, relax)

    def _set_model(
        self,
        trained: Trained,
        problem: RampProblem,
        goals: Goals,
        span: RowSpan,
        center: np.ndarray | None,
    ) -> None:
        """Set the fitted attributes of the two rules, signed for ``classes_[1]``."""
        sign, point = self._classes.orientation, trained.point
        b = point.intercept if trained.threshold is None else -trained.threshold.value
        weights = span.weights(point.coef)
        moved = 0.0 if center is None else float(center @ weights)
        self.coef_ = sign * weights[None, :]
        self.intercept_ = np.array([sign * (b - moved)])
        self.ramp_intercept_ = np.array([sign * (point.intercept - moved)])
        self.objective_path_ = np.array(trained.mm.path)
        self.n_iter_ = len(trained.mm.path)
        scores, positive = problem.scores(point), problem.scores(replace(point, intercept=b)) > 0
        score_vectors = [scores] if trained.free is None else [scores, problem.X @ trained.free]
        curves = [Curve.of(vector).spread(MAX_THRESHOLDS) for vector in score_vectors]
        rules = Rules.joined([rules_of_curve(curve, goals.measured) for curve in curves])
        per_unit = problem.shadow_prices(trained.multipliers, ramp(scores))
        objective = goals.measured.objective_value(positive)
        dropped = dropped_prices_of_rules(rules, goals.measured, objective)
        free = float(np.fmin(rules.free_value(), objective))
        self._set_prices(goals, ShadowPrices(per_unit, dropped, free))

    def _check_trained(self, trained: Trained, goals: Goals, relax: Callable[[], str]) -> None:
        """Raise an error if no rule meets the constraints; warn if some are not met."""
        if not self.feasible_:
            self._check_infeasible(trained, goals, relax)
        if trained.mm.gap > INACCURATE:
            warn(
                f"The last convex problem has a duality gap of {trained.mm.gap:.1e}: raise the "
                "solver's max_iter, or choose another solver.",
                ConvergenceWarning,
            )
        if not trained.mm.converged:
            warn(
                f"Training stopped after max_iter={self.max_iter} steps, the last of which "
                f"still gained more than tol={self.tol:g}: raise one of them.",
                ConvergenceWarning,
            )

    def _check_infeasible(self, trained: Trained, goals: Goals, relax: Callable[[], str]) -> None:
        """Raise unless the randomized rule meets the constraints; else warn of the threshold.

        `relax` says which bounds to relax, at the cost of some more training.
        """
        report = self.constraint_report_
        faults = missed(report, goals.constraints)
        # N - tD >= 0 holds where D = 0, but a precision without positive predictions is not met
        defined = report["expected"][goals.is_measured].notna().all()
        randomized_holds = trained.mm.feasible and defined
        if not randomized_holds:
            more = "" if trained.mm.converged else " More steps (max_iter) might help."
            raise InfeasibleConstraintsError(
                "No rule was found that meets the constraints together: "
                f"{faults}.{relax()} The closest model is in the error's closest_.{more}",
                self,
            )
        if self.threshold:
            warn(
                "The randomized rule (sample_predict) meets the constraints, no single threshold "
                f"does: {faults}.",
                UserWarning,
            )
