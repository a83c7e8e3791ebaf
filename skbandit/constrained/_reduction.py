"""ConstrainedReduction: the estimator around rounds of weighted fits, for any classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from skbandit.constrained._goals import Goals
from skbandit.constrained._moved_decisions import PARAMETERS, MovedDecisionsMixin
from skbandit.constrained.fits._weighted_fits import (
    OutOfFold,
    Prefit,
    Task,
    learns_costs,
    responses,
)
from skbandit.constrained.rounds._cost_rounds import TableRounds, costs_of_decisions
from skbandit.constrained.rounds._rounds import (
    Costs,
    Criterion,
    ThresholdRounds,
    best_round,
    rounds,
)
from skbandit.constrained.rules._choose import Chosen
from skbandit.constrained.rules._cost_tables import CostCriterion
from skbandit.measure import Data
from skbandit.rates import Constraint, Rate
from skbandit.utils._fitting import report_progress
from skbandit.utils._sklearn_compat import HasMethods, Interval


class ConstrainedReduction(MovedDecisionsMixin, BaseEstimator):
    """Meet constraints on rates with any classifier that accepts sample weights.

    The classifier is refitted to reweighted and relabeled rows in a few rounds (Agarwal et al.,
    ICML 2018). The result is one deterministic rule: the best fit, or the mean of two, with the
    best threshold. With several classes, or with `other_decisions`, it is the best fit with the
    best table of costs.

    Parameters
    ----------
    estimator : classifier, or selector
        Classifier with `predict_proba` or, for two classes, `decision_function`, whose `fit`
        accepts `sample_weight`, such as boosted trees, or a Pipeline that ends with one. With more
        than two decisions also a `SetSelectClassifier` or `RegressionSetSelector`, which is fitted
        to the costs of all decisions.
    objective : Rate, default=None
        Rate to optimize. None means `error_rate()`. Recall and the like are maximized, the error
        rate and the like minimized. ``worst(error_rate, by="region")`` optimizes the worst group.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    confidence_level : float in [0.5, 1) or None, default=None
        Approximate probability that all constraints hold in the population. None weighs it against
        its price: of 0.9, 0.8, 0.7, 0.6 and 0.5, it takes the level with the lowest objective plus
        0.12 times (1 - level), so that a violation counts as much as 12 errors in 100 rows. The
        level taken is `confidence_level_`. If a number cannot be reached, `fit` raises an error.
        0.5 leaves no margin.
    cv : int, cross-validation generator or iterable, default=None
        Folds: each row is scored by a model fitted without it. None means 5, or 3 if there are at
        least 5,000 rows. If None or a number, folds are stratified, rows are assigned to them in
        random order, and copies or the rows of one of the `groups` share a fold. Of a generator or
        iterable, a row may be tested at most once; rows that are never tested are used for fitting
        only.
    max_iter : int, default=7
        Maximum number of rounds. The first fits the rows as they are. Each round takes as many
        fits as there are folds.
    tol : float, default=1e-3
        The rounds end when the objective can improve by at most this much.
    pos_label : label, default=None
        The class of rates that name none with `of`. Required for two labels other than {0, 1},
        {-1, 1} and bool, unless all rates are the same for either class, as `error_rate` and
        `churn` are.
    random_state : int, RandomState instance or None, default=None
        Seeds `estimator` and its parts whose own `random_state` is None, with the same seed in
        every fit.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    verbose : int, default=0
        1 prints one line per round, or logs it if INFO records of "skbandit" are shown.
    by : str or list of str, default=None
        Columns of `attributes`, or of X, whose values (or combinations of values) are groups with a
        threshold each. `predict` then needs these columns, too: see Notes.
    unseen : {"error", "overall"}, default="error"
        With `by`, how `predict` treats rows of a group that was not in `fit`, or of no group.
        "error" raises an error that names the group; "overall" uses `threshold_`, the best
        threshold for all rows.
    other_decisions : sequence of labels, default=()
        Decisions besides the classes, such as ``["review"]``, of the type of the labels.

    Attributes
    ----------
    estimators_ : list of classifier
        The classifier that predicts, or two whose mean response does.
    threshold_ : float
        Of two classes, without `by` or with ``unseen="overall"``: the response above which the
        positive class is predicted.
    thresholds_ : Series
        Of two classes, with `by`: the threshold of each group.
    costs_ : DataFrame
        Cost of each decision (columns) by label (rows); with `by`, by group and label. Of a round
        after the first, the rows are decisions, as its fit is to costs: its shares of them take the
        place of probabilities.
    decisions_ : ndarray
        The classes, then `other_decisions`.
    group_estimator_ : classifier
        As of `ConstrainedThreshold`, if the best round is the first.
    response_method_ : str
        The response to which thresholds or costs apply: `predict_proba` if there is one, else
        `decision_function`; of a selector `predict_costs`, else `predict_indicator`.
    best_rounds_ : tuple of int
        The rounds that `estimators_` are from; 0 is the fit to the rows as they are.
    n_iter_ : int
        Number of rounds.
    multipliers_ : ndarray of shape (n_constraints,)
        Shadow prices, one per row of `constraint_report_`: how much the objective improves per
        unit by which a bound is relaxed, in the best mixture of the rules found in the rounds, of
        which the classifier is one; 0 if it does not bind, nan if the constraint was skipped.
    confidence_level_ : float
        The level that was reached; 0.5 if the rates meet their bounds without a margin, nan if
        they miss them, in an error's `closest_`.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    constraint_report_ : DataFrame
        One row per constraint; of a `ratio` or `difference` of more than six groups, one row per
        pair of groups that training needed. Columns: `constraint`, `on`, `n_rows`, `effective_n`,
        `bound`; `value` of `estimators_` on their training rows; `cross_fitted`, the out-of-fold
        value to expect on new data, with its interval from `ci_low` to `ci_high`;
        `unconstrained`, that of the first round; `slack` and `satisfied`, by `cross_fitted`. With
        a `confidence_level`, `margin` is the slack that it requires.
        `price` is how much better the objective would be without the declared constraint, of which
        the row may be a part, among the models trained.
    objective_report_ : DataFrame
        One row: `objective`; its `value`, `cross_fitted`, `ci_low`, `ci_high` and `unconstrained`,
        as in `constraint_report_`; `best_unconstrained`, of the best rule without constraints.
    feasible_ : bool
        Whether all constraints are satisfied; False only in an error's `closest_`.
    n_features_in_ : int
        Number of features, if `estimator` has the attribute.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `estimator` has the attribute.

    See Also
    --------
    skbandit.ConstrainedRampClassifier : Trains a linear classifier under constraints.
    skbandit.constrained.ConstrainedThreshold : Moves the threshold only, and needs no weights.

    Notes
    -----
    For given multipliers of the constraints, objective and constraints add up to a cost per row of
    predicting it positive. Minimizing the cost is classification, with the sign of the cost as
    label and its size as weight; of several decisions, each that is better than the worst one is an
    example, with the difference as weight. A bound t on a ratio N/D becomes N - tD <= 0, and an
    objective that is a ratio has its value as one more multiplier (Dinkelbach's method).

    - There is no `predict_proba`: a classifier fitted to costs does not estimate class
      probabilities.
    - With `by`, the multipliers cover only what thresholds per group cannot achieve.
      Whether a decision may use the group can be a legal question: see "One threshold per group"
      in the how-to guides.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skbandit.constrained import ConstrainedReduction
    >>> from skbandit.rates import difference, positive_rate
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": rng.choice(["F", "M"], 600)})
    >>> X = rng.normal(size=(600, 3))
    >>> X[:, 0] += 0.5 * (people["sex"] == "M")
    >>> y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=600) > 1
    >>> tree = DecisionTreeClassifier(min_samples_leaf=40, random_state=0)
    >>> clf = ConstrainedReduction(
    ...     tree, constraints=difference(positive_rate, by="sex") <= 0.1, max_iter=2
    ... ).fit(X, y, attributes=people)
    >>> clf.constraint_report_[["bound", "satisfied"]]
       bound  satisfied
    0    0.1       True
    1    0.1       True

    With one threshold per group:

    >>> clf = clf.set_params(by="sex").fit(X, y, attributes=people)
    >>> clf.thresholds_.index.tolist(), clf.predict(X[:1], attributes={"sex": ["F"]}).shape
    (['F', 'M'], (1,))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_indicator"]),
        ],
        **PARAMETERS,
        "cv": ["cv_object"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }
    _rows_for_few_folds = 5_000
    _trains_on_weights = True

    def __init__(
        self,
        estimator: Any,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        confidence_level: float | None = None,
        cv: Any = None,
        max_iter: int = 7,
        tol: float = 1e-3,
        pos_label: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        by: str | Sequence[str] | None = None,
        unseen: str = "error",
        other_decisions: Sequence[Any] = (),
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.constraints = constraints
        self.confidence_level = confidence_level
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.by = by
        self.unseen = unseen
        self.other_decisions = other_decisions

    def _choose(
        self, fits: OutOfFold | Prefit, goals: Goals, data: Data, group: np.ndarray | None
    ) -> None:
        """Run the rounds, and choose thresholds or tables of costs on what they fitted."""
        assert isinstance(fits, OutOfFold)
        choose = self._by_thresholds if self._classes.of_two else self._by_costs
        goals, chosen = self._best_chosen(goals, partial(choose, fits, data, group))
        names, done = chosen.choice.name, chosen.rounds
        self.best_rounds_, self.n_iter_ = names, len(done)
        if names != (0,):
            self._unknown_groups = None
        self._plain = fits.fitted(done[0].task)
        fitted = {k: done[k].output[1] for k in names} | {0: self._plain}
        self.estimators_ = [
            fits.fitted(done[k].task) if fitted[k] is None else fitted[k] for k in names
        ]
        self._take_features(self.estimators_[0])
        scores = np.mean([done[k].output[0] for k in names], axis=0), done[0].output[0]
        self._conclude(chosen, scores, self._scores(fits.X), goals, data, group)

    def _by_thresholds(
        self, fits: OutOfFold, data: Data, group: np.ndarray | None, goals: Goals
    ) -> Chosen:
        """Choose among the fits to weights, and means of two, by thresholds."""
        costs, rows = Costs.of(goals, data), goals.measured.rows
        orientation = self._classes.orientation
        criterion = self._chooser(fits, goals, group, fits.scores()[0])
        assert isinstance(criterion, Criterion)
        known_rules = criterion.no_rules()

        def score(task: Task | None) -> tuple[np.ndarray, tuple[np.ndarray, Any]]:
            output = fits.scores(task)
            return orientation * output[0][rows], output

        kind = ThresholdRounds(criterion, known_rules, costs, score, fits.supports, self.tol)
        done = self._run(kind, costs.plain)
        choice = best_round(done, criterion, known_rules)
        if goals.data.dependent is not None:
            scores = np.mean([done[k].output[0] for k in choice.name], axis=0)
            criterion, rule = criterion.settled(orientation * scores[rows], goals)
            choice = replace(rule, name=choice.name)
        prices = partial(criterion.shadow_prices_of, known_rules)
        return Chosen(criterion, choice, prices, tuple(done))

    def _by_costs(
        self, fits: OutOfFold, data: Data, group: np.ndarray | None, goals: Goals
    ) -> Chosen:
        """Choose among the fits to costs of decisions by tables of costs."""
        costs, rows = costs_of_decisions(goals, data), goals.measured.rows
        first = costs.plain if learns_costs(self.estimator) else None
        scores, fit = fits.scores(first)
        scores = self._find_unknown_groups(fits, goals, data, scores)
        criterion = self._chooser(fits, goals, group, scores)
        assert isinstance(criterion, CostCriterion)

        def score(task: Task | None) -> tuple[np.ndarray, Any]:
            return (scores, fit) if task is first else fits.scores(task)

        kind = TableRounds(criterion, costs, rows, score, fits.supports, self.tol)
        done = self._run(kind, costs.plain, first)
        k = max(k for k, each in enumerate(done) if each is kind.best)
        choice, prices = replace(done[k].choice, name=(k,)), partial(done[k].shadow_prices, rows)
        return Chosen(done[k].criterion, choice, prices, tuple(done))

    def _run(self, kind: Any, plain: Task, first: Task | None = None) -> list[Any]:
        """Fit all rounds of a kind, and report on them."""
        done: list[Any] = []
        for each in rounds(kind.evaluate, kind.next_task, plain, first, max_iter=self.max_iter):
            if self.verbose:
                report_progress(f"[ConstrainedReduction] round {len(done)}: {each}")
            done.append(each)
        return done

    @property
    def _of_fits(self) -> str:  # type: ignore[override]
        return f" on any of the {self.n_iter_} fits"

    @property
    def _n_labels(self) -> int:
        return len(self.classes_) if self.best_rounds_ == (0,) else len(self.decisions_)

    def _scores(self, X: Any) -> np.ndarray:
        method, classes = self.response_method_, self._classes
        scores = [responses(estimator, X, method, classes) for estimator in self.estimators_]
        return self._of_groups(X, np.mean(scores, axis=0))

    def _plain_scores(self, X: Any) -> np.ndarray:
        return responses(self._plain, X, self.response_method_, self._classes)
