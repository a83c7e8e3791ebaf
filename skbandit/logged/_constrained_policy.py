"""ConstrainedPolicy: decisions under budgets, learned from a log or from costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit import logs
from skbandit import measure as rates_on_rows
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.logged import _action_tables, _policy_rule
from skbandit.logged._action_goals import ActionGoals, prices_by_selection
from skbandit.logged._action_measure import ActionMeasure, Correction, MeasuredCosts
from skbandit.logged._action_tables import COST, REWARD, LoggedOutcomes
from skbandit.logged._outcome_models import OutcomeModels
from skbandit.logged._policy_report import report_on
from skbandit.logged._unknown_groups import (
    Contexts,
    EstimatedGroups,
    in_known_groups,
    rows_for_goals,
)
from skbandit.prices._calibrate import representative
from skbandit.prices._dual import ShadowPrices, dropped_prices
from skbandit.prices._levels import level_of
from skbandit.prices._problem import Prices, Problem, stacked
from skbandit.rates import Constraint, Rate, outcome
from skbandit.utils import _fitted_rows
from skbandit.utils._fitting import (
    atomic_fit,
    plain_state,
    report_progress,
    restored_state,
    seed_for,
)
from skbandit.utils._folds import SEED, folds_of_rows
from skbandit.utils._sklearn_compat import (
    HasMethods,
    Interval,
    count_rows,
    feature_names,
    fit_context,
)
from skbandit.utils._trials import groups_of_both, of_several_rows
from skbandit.utils._validation import (
    check_level,
    check_row_weights,
    first_few,
    no_score,
    refuse_lazy,
    text_of_shares,
    warn,
    warn_if_reordered,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class ConstrainedPolicy(MetaEstimatorMixin, BaseEstimator):
    """Choose actions under budgets, learned from a log or from a table of costs.

    Models predict what each action earns. Constraints get prices; the policy takes the action with
    the lowest predicted cost plus prices of what it uses, row by row.

    Parameters
    ----------
    estimator : regressor, classifier, or selector with `predict_costs`, default=None
        A regressor, or a classifier of numeric rewards, is fitted once per action. A selector, such
        as ``RegressionSetSelector("stack")``, is fitted to all. None is ridge regression with a
        penalty chosen by cross-validation.
    objective : Rate, default=None
        ``outcome("revenue")`` is maximized, ``cost({...})`` minimized; sums of both are possible.
        None is the reward of the log or, of a table of costs, the mean cost. Where spends and
        shares alone tell few decisions apart, what they leave open within 2 % of their spread goes
        to the actions of the highest predicted reward of the log.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Made of shares, ``positive_rate(of="call")``; of spends,
        ``cost({"none": 0, "letter": 0.7, "call": "call_minutes"})``, where a column is one of the
        attributes; and of ``outcome("discount")``, columns of the log. See `skbandit.rates`.
    n_select : int, default=1
        Number of actions per row.
    confidence_level : float in [0.5, 1) or None, default=None
        Approximate probability that all constraints hold in the population. None weighs it against
        its price, of 0.9, 0.8, 0.7, 0.6 and 0.5. If a number cannot be reached, `fit` raises an
        error.
    batch_size : int, default=None
        Constraints are to hold for so many new rows. None is for their long-run means.
    cv : int, default=None
        Number of folds of out-of-fold predictions. None means 5.
    columns : dict, default=None
        Names of a log's columns that differ, as in ``{"action": "arm_id"}``.
    exploration : float in [0, 1], default=0.0
        Share of rows for which `select` chooses uniformly among the available actions, so that its
        log tells what each leads to. `predict` and reports are without it; `fit` warns of
        constraints that `select` misses because of it.
    random_state : int, RandomState instance or None, default=None
        Assigns rows to folds, and draws what is explored.
    verbose : int, default=0
        1 prints what models of actions share and one line per level that is tried, or logs it if
        INFO records of "skbandit" are shown.

    Attributes
    ----------
    arms_ : ndarray of shape (n_arms,)
        Labels of the actions, sorted if they can be; of a table, its columns.
    estimator_ : object
        The selector fitted, or a list with the models of the actions.
    multipliers_ : ndarray of shape (n_constraints,)
        How much the objective improves per unit by which a bound is relaxed, one per row of
        `constraint_report_`.
    prices_ : DataFrame
        Price of each action (rows) by the rows of data that it is for (columns).
    constraint_report_ : DataFrame
        One row per constraint: `constraint`, `bound`, `value` with its interval from `ci_low` to
        `ci_high`, `slack`, `satisfied`, `multiplier`, `price`; with a `confidence_level`, `margin`.
        `price` is how much better the objective would be without the declared constraint, of which
        the row may be a part, as predicted.
    objective_report_ : DataFrame
        One row: `objective`; `value` of the final policy on the training rows; `cross_fitted`, that
        of out-of-fold models with the same multipliers, the value to expect on new data, with its
        interval from `ci_low` to `ci_high`; `unconstrained`, the same without multipliers. Doubly
        robust on a log. After `reprice`, `value` and `unconstrained` as predicted.
    confidence_level_ : float
        The level that was reached; nan in an error's `closest_`.
    attributes_ : dict
        The columns of `attributes` that goals name, and up to 20 values that each had in `fit`.
    feasible_ : bool
        Whether all constraints are satisfied; False only in an error's `closest_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if all column names of `X` are strings.

    See Also
    --------
    OffPolicyClassifier : Without constraints.
    skbandit.evaluation.off_policy_value : Estimates what the policy earns on other events.
    skbandit.selection.assign : The exact assignment of one batch to capacities.

    Notes
    -----
    Shares and spends need no labels: they are measured on what the final models do, on `X_extra` if
    it is passed, else on the log's own contexts. Of a table of costs they are measured out of fold,
    and the margin covers the spread between folds. Outcomes are measured doubly robust, for the
    decisions of out-of-fold models: final models would choose the rows that they know by luck.

    Of one or two goals on outcomes, `value` and `margin` together are within the bound wherever a
    grid of prices has such a rule. Of more, bounds are moved inside by margins, as predicted, and
    `value` may use up a part of them.

    An outcome that no event like the chosen ones had may still occur: its margin and interval
    follow the rule of three. A bound that is the least possible use, such as 0 on a spend, bars
    the decisions that use more, in new rows too, and needs no margin.

    An action that the log never chose has no model and is never taken. With two actions and a bound
    on the share of one, the policy takes it where its predicted gain per cost is above a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.bandit import ConstrainedPolicy
    >>> from skbandit.rates import cost, positive_rate
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["age", "visits"])
    >>> action = rng.choice(["none", "letter", "call"], 3000)
    >>> gain = {"none": 0.0, "letter": 0.3, "call": 0.8}
    >>> revenue = pd.Series(action).map(gain) * (1 + X["visits"]) + rng.normal(size=3000)
    >>> log = pd.DataFrame({"action": action, "reward": revenue, "propensity": 1 / 3})
    >>> spend = cost({"none": 0, "letter": 0.7, "call": 5})
    >>> policy = ConstrainedPolicy(None, None, [spend <= 1, positive_rate(of="call") <= 0.1])
    >>> policy = policy.fit(X, log)
    >>> policy.constraint_report_[["bound", "satisfied"]]
       bound  satisfied
    0    1.0       True
    1    0.1       True
    >>> policy.predict(X[:3]).shape, policy.prices_.index.tolist()
    ((3,), ['call', 'letter', 'none'])
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "attributes": True,
        "available": True,
        "X_extra": True,
        "attributes_extra": True,
        "available_extra": True,
        "sample_weight": True,
        "groups": True,
        "groups_extra": True,
    }
    __metadata_request__predict: ClassVar[dict[str, bool]] = {
        "available": True,
        "attributes": True,
    }
    score = no_score(
        "scoring=OffPolicyScorer(constrained=True): constraints first, then the objective's value "
        "(ReplayScorer() knows no constraints)"
    )

    _arms: np.ndarray
    _correction: Correction | None
    _models: OutcomeModels
    _unknown: EstimatedGroups | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [
            HasMethods(["fit", "predict"]),
            HasMethods(["fit", "predict_costs"]),
            None,
        ],
        "objective": "no_validation",
        "constraints": "no_validation",
        "n_select": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "cv": [Interval(Integral, 2, None, closed="left"), None],
        "columns": [dict, None],
        "exploration": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        n_select: int = 1,
        confidence_level: float | None = None,
        batch_size: int | None = None,
        cv: int | None = None,
        columns: dict[str, Any] | None = None,
        exploration: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.constraints = constraints
        self.n_select = n_select
        self.confidence_level = confidence_level
        self.batch_size = batch_size
        self.cv = cv
        self.columns = columns
        self.exploration = exploration
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        attributes: Any = None,
        available: Any = None,
        X_extra: Any = None,
        attributes_extra: Any = None,
        available_extra: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        groups_extra: ArrayLike | None = None,
    ) -> Self:
        """Learn from a log, or from a table of costs.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        y : DataFrame
            A log with the columns action, reward and propensity, and outcomes that goals name; or
            a table of costs, with a column per action. Without propensities, actions are taken as
            chosen uniformly.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name, unless X has them.
        available : array-like, default=None
            Actions available to each row, if not a column of `y`: tuples of labels, or a boolean
            table with a column per action.
        X_extra : {array-like, sparse matrix, DataFrame}, default=None
            Contexts without outcomes, such as today's traffic, on which shares and spends are
            measured.
        attributes_extra : DataFrame or dict of arrays, default=None
            The same columns of `X_extra`.
        available_extra : array-like, default=None
            Actions available to each row of `X_extra`, as in `available`; required if some row of
            `X` lacks an action. None makes all of them available.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in all means, in any unit. Margins take a row for one, whatever its
            weight: pass independent rows that are equal as rows of their own.
        groups : array-like of shape (n_samples,), default=None
            Rows of one value, such as those of a person, a site or a day, are dependent: they
            share a fold, and margins and intervals count groups. A Series is put in the order of
            X by its index. None makes each row independent.
        groups_extra : array-like of shape (n_extra,), default=None
            The same of the rows of `X_extra`, where a value of `groups` is the same group.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleConstraintsError
            If the constraints cannot hold together; it names those in conflict, and the closest
            policy is in its `closest_`.

        Warns
        -----
        UserWarning
            If there are fewer than 20 groups. Of one group there is no interval, and no level above
            0.5 can be reached.
        """
        tables = {"X": X, "y": y, "attributes": attributes, "sample_weight": sample_weight}
        extra = {"X_extra": X_extra, "attributes_extra": attributes_extra}
        pools = {"available": available, "available_extra": available_extra}
        refuse_lazy(tables | extra | pools, "; off_policy_blocks then evaluates it on all rows")
        warn_if_reordered(tables)
        warn_if_reordered(extra)
        with atomic_fit(self) as draft:
            given = attributes, logs.align_rows(available, X), sample_weight
            logged, log, y = draft._read_outcomes(X, y, *given)
            traffic = draft._read_traffic(X_extra, attributes_extra, available_extra, logged)
            counted = logged.rows.weight > 0
            codes = groups_of_both(groups, (X, y), groups_extra, X_extra, counted)
            draft._fit(logged, traffic, log, y, codes)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Show parameters and, if fitted, the share of each action in the traffic."""
        text, shares = super().__repr__(N_CHAR_MAX), vars(self).get("_shares")
        return f"{text}\n{text_of_shares(shares)}" if shares else text

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy, without pandas types: skops refuses them."""
        return plain_state(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().__setstate__(restored_state(state))

    def _has_learned(self, X: Any, log: Any) -> bool:
        """Tell whether it was fitted to rows of this log: see `skbandit.evaluation`."""
        fitted, events = getattr(self, "_fitted_rows", None), _fitted_rows.events_of_log(log)
        return _fitted_rows.share_fitted(fitted, X, *events) >= _fitted_rows.SHARE_TOLD

    def _fit(
        self, logged: Contexts, traffic: Contexts, log: logs.Log | None, y: Any, codes: Any
    ) -> None:
        """Fit models, pose the problem on the traffic, measure it, and price it."""
        goals = self._goals = self._bound_goals(log, y, traffic.rows)
        self.attributes_ = goals.examples_of(traffic.rows.columns)
        events = None if log is None else LoggedOutcomes.of(y, log, goals.modeled, self._arms)
        costs, held_out, fold = self._fit_models(logged, events, y, codes[0])
        # shares and spends are those of the final models; outcomes are of decisions for rows that
        # took no part in the models, which else would choose their luckiest rows
        predicted = held_out if events is None else self._models.predict(logged.X)
        self._models = self._models.with_ties_of(self._problem(logged, predicted).base)
        on_logged = self._problem(logged, predicted)
        unseen = on_logged if events is None else self._problem(logged, held_out)
        today = on_logged if traffic is logged else self._problem(traffic)
        measure = self._measure(today, unseen, events, held_out, codes)
        if events is None and traffic is logged:
            measure = replace(measure, fold=fold)
        self._unknown = self._correction = None  # of the closest policy, in an error
        group = None if measure.group is None else codes[0]
        self._conclude(
            measure, MeasuredCosts(goals.declared, costs, on_logged, unseen, group), held_out
        )
        self._estimate_groups(measure, logged, traffic, held_out, fold)

    def _estimate_groups(
        self, measure: ActionMeasure, logged: Contexts, traffic: Contexts, held_out: Any, fold: Any
    ) -> None:
        """Learn the groups that new rows may lack, and prices for such rows."""
        unknown = EstimatedGroups.find(self._goals.bounded, logged, self.estimator, fold)
        if unknown is None:
            return
        self._unknown, estimated = unknown
        guessed = unknown[0].estimated(traffic)
        of_fold = estimated if traffic is logged else guessed
        final = held_out if measure.fold is not None else self._models.predict(traffic.X)
        pair = [self._problem(contexts, final) for contexts in (of_fold, guessed)]
        if self._goals.bounded_outcomes:
            unseen = self._problem(estimated, held_out)
            pair = [stacked(problem, unseen) for problem in pair]
        self._conclude_without_groups(pair[0], pair[1], measure)

    def _read_outcomes(
        self, X: Any, y: Any, attributes: Any, available: Any, sample_weight: Any
    ) -> tuple[Contexts, logs.Log | None, Any]:
        """Return the rows with outcomes, their log if they have one, and y as it is read."""
        (X,) = indexable(X)
        validate_data(self, X, skip_check_array=True)
        n = count_rows(X)
        weight = check_row_weights(sample_weight, n, "sample_weight")
        weight = weight / weight[weight > 0].mean()  # the models' penalties have no unit
        if logs.holds_slates(y, self.columns):
            y, available = _action_tables.costs_of_slates(y, n, available, self.columns)
        log = _action_tables.read_action_log(y, n, available, self.columns, X)
        self._arms = log.arms if log is not None else _action_tables.arms_of_table(y)
        self._fitted_rows = None
        if log is not None:
            self._fitted_rows = _fitted_rows.fitted_rows(X, *_fitted_rows.events_of_log(log))
        if log is not None and self.n_select > 1:
            raise ValueError(
                f"n_select={self.n_select}: this log tells what one action per row leads to. Pass "
                "a log of slates, with a reward per action, a table of costs, or n_select=1."
            )
        mask = self._mask(available, n) if log is None else log.available_mask(len(self._arms))
        self._has_pools = not mask.all()
        return Contexts(X, replace(rows_for_goals(X, attributes), weight=weight), mask), log, y

    def _read_traffic(
        self, X_extra: Any, attributes_extra: Any, available_extra: Any, logged: Contexts
    ) -> Contexts:
        """Rows without outcomes, or those of the log."""
        if X_extra is None and available_extra is not None:
            raise ValueError("available_extra is of the rows of X_extra: pass these, too.")
        if X_extra is None:
            return logged
        if feature_names(X_extra) is not None and not hasattr(self, "feature_names_in_"):
            raise ValueError(
                "X_extra has column names and X has none, so X was transformed and X_extra was "
                'not: pass transform_input=["X_extra"] to the Pipeline (with metadata routing '
                "enabled), or transform it."
            )
        self._check_pools(available_extra, "available_extra")
        return self._read_new(X_extra, available_extra, attributes_extra)

    def _check_pools(self, available: Any, name: str) -> None:
        """Require which actions rows may get if some row of the fit might not get all."""
        if available is None and self._has_pools:
            raise ValueError(logs.POOLS_UNKNOWN.format(name))

    def _bound_goals(self, log: logs.Log | None, y: Any, rows: Any) -> ActionGoals:
        """Return the goals over rows, checked, and the objective; None is the costs of a table."""
        constraints = rates_on_rows.flatten_constraints(self.constraints)
        objective = None if self.objective is None else rates_on_rows.read_objective(self.objective)
        if not isinstance(objective, Rate | None):
            raise ValueError(f"objective={objective} has no direction: bound it as a constraint.")
        if log is not None and objective is None:
            if "reward" not in (logs.columns_of(y, self.columns) or {}):
                raise ValueError(
                    "the log has no reward: name what to maximize, as in "
                    "objective=outcome('revenue')."
                )
            objective = outcome(REWARD)
        goals = ActionGoals.bind(objective, constraints, rows, self._arms.tolist())
        if self.n_select > 1:
            goals.check_sums()
        rates_on_rows.warn_of_groups(constraints, None, rates_on_rows.Data(rows))
        if log is None and goals.outcomes:
            raise ValueError(
                f"outcome({goals.outcomes[0]!r}) is a column of a log, and y is a table of costs."
            )
        return goals

    def _fit_models(
        self, logged: Contexts, events: LoggedOutcomes | None, y: Any, group: np.ndarray | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        """Fit models of all outcomes; return costs as measured, predictions, and their folds.

        Predictions (n, D), by outcome, are by models without the row. Costs are doubly robust, or
        given.
        """
        arms, weight = self._arms, logged.rows.weight
        if events is None:
            tables = {COST: _action_tables.read_costs(y, len(weight), arms)}
            with_events = ~np.isnan(tables[COST]).all(axis=0)
        else:
            tables = events.tables(len(arms))
            with_events = np.bincount(events.place[weight > 0], minlength=len(arms)) > 0
        logs.warn_of_shared_columns(logged.X, y, self.columns, self._goals.outcomes)
        if not with_events.all():
            never = first_few(arms[~with_events].tolist())
            warn(f"No event has the actions [{never}]: they are never taken.", UserWarning)
        if with_events.sum() < self.n_select:
            raise ValueError(f"n_select={self.n_select} of {with_events.sum()} known actions.")
        models = OutcomeModels(self.estimator, arms, with_events).fit(logged.X, tables, weight)
        self._models, shown = models, list(models.fitted.items())
        self.estimator_ = shown[0][1].shown if shown else None
        for name, fitted in shown if self.verbose else ():
            report_progress(f"[ConstrainedPolicy] {name}: {fitted.described}")
        given = self.cv or 5, SEED if self.random_state is None else self.random_state
        fold = folds_of_rows(logged.X, np.zeros(len(weight)), *given, group)
        self._draws = np.random.default_rng(seed_for("exploration", self.random_state))
        self._n_rows = len(weight)
        held_out = models.held_out(logged.X, tables, weight, fold)
        if self._goals.objective:
            robust = events.doubly_robust(held_out) if events else {}
            alone = self._goals.without_sums()
            return alone.problem(logged, robust, None, self.n_select).base, held_out, fold
        costs = tables[COST]
        return np.where(np.isnan(costs), held_out[COST], costs), held_out, fold

    def _problem(self, contexts: Contexts, predicted: Any = None) -> Problem:
        """Return the problem in contexts, by predictions of outcomes or costs, or final ones."""
        predicted = self._models.predict(contexts.X) if predicted is None else predicted
        allowed = contexts.mask & self._models.with_events
        few = np.flatnonzero(allowed.sum(axis=1) < self.n_select)
        if len(few):
            raise ValueError(
                f"available: row {few[0]} has fewer actions with events in fit than "
                f"n_select={self.n_select}."
            )
        given = predicted, None if self._goals.objective else predicted.get(COST), self.n_select
        problem = self._goals.problem(replace(contexts, mask=allowed), *given)
        value = predicted.get(REWARD) if self._goals.value_breaks_ties else None
        return replace(problem, base=problem.base + self._models.noise(contexts.X, value))

    def _measure(
        self,
        today: Problem,
        unseen: Problem,
        events: LoggedOutcomes | None,
        held_out: dict[str, np.ndarray],
        codes: tuple[np.ndarray | None, np.ndarray | None],
    ) -> ActionMeasure:
        """Return what measures decisions: outcomes on logged events, all else on the traffic."""
        dependent, group = codes[0], codes[codes[1] is not None]
        if of_several_rows(dependent) is None and of_several_rows(group) is None:
            dependent = group = None  # rows are independent
        robust = events.doubly_robust(held_out) if events else {}
        measure = ActionMeasure(self._goals, today, robust, self.batch_size, None, group, events)
        return measure.above(unseen, dependent) if self._goals.bounded_outcomes else measure

    def _mask(self, available: Any, n: int) -> np.ndarray:
        """Return which actions each row may get."""
        given = logs.read_mask(available, self._arms, n, unknown=None)
        if given is None:
            return np.ones((n, len(self._arms)), dtype=bool)
        mask = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=bool)
        few = np.flatnonzero(mask.sum(axis=1) < self.n_select)
        if len(few):
            raise ValueError(
                f"available: row {few[0]} has fewer actions than n_select={self.n_select}."
            )
        return mask

    def _conclude(
        self,
        measure: ActionMeasure,
        measured: MeasuredCosts,
        held_out: dict[str, np.ndarray] | None = None,
    ) -> None:
        """Choose prices, and set what follows from them.

        If outcomes are logged, what was predicted of them without the row gets its correction.
        """
        goals, problem = self._goals, measure.tightened(measure.problem)
        goals.warn_of_units(problem)
        level, by_value = self.confidence_level, goals.value_breaks_ties
        spread = 0.0 if by_value and self._models.tell_rewards else self._models.spread
        rule, z = _policy_rule.rule_at_level(problem, measure, level, self.verbose)
        _policy_rule.warn_of_rule(problem, measure, rule, spread, z, level is None)
        if rule.feasible and self.exploration:
            _policy_rule.warn_of_exploration(problem, measure, rule.decided, self.exploration)
        if held_out is not None and goals.bounded_outcomes:
            self._correction = measure.corrected(rule.decided, held_out)
        declared = rates_on_rows.numbers_of_goals(goals.constraints)
        counted = problem.rows(np.flatnonzero(problem.weight > 0))
        priced = representative(counted.tightened(rule.moved))
        prices = ShadowPrices(rule.prices.goals, dropped_prices(priced, rule.prices, declared))
        self.multipliers_, self._dropped = prices.per_unit, prices.dropped
        self.prices_ = prices_by_selection(goals, self.multipliers_)
        report = measure.report(measure(rule.decided), z=None if level is None else z)
        tables = rule.decided, problem.unconstrained()
        shares = [np.average(table, axis=0, weights=problem.weight) for table in tables]
        pairs = zip(self._arms, np.transpose(shares).tolist(), strict=True)
        self._shares = [[str(arm), *of_arm] for arm, of_arm in pairs]
        report = report.assign(multiplier=prices.per_unit, price=prices.dropped)
        of_rows = rates_on_rows.Report.of(goals.constraints, self._shares)
        self.constraint_report_ = of_rows.attached(report)
        self._objective_row = measured.row(rule.prices, rule.moved)
        self.confidence_level_ = level_of(z) if rule.feasible else np.nan
        self.feasible_ = rule.feasible
        if not rule.feasible:
            raise InfeasibleConstraintsError(
                f"{_policy_rule.why_infeasible(counted, self.constraint_report_, goals, level)}"
                " The closest policy is in the error's closest_.",
                self,
            )

    def _conclude_without_groups(
        self, expected: Problem, final: Problem, measure: ActionMeasure
    ) -> None:
        """Choose multipliers for rows whose groups are not known.

        They are found by out-of-fold estimates of groups, and must do with those of the final
        models, too.
        """
        rule, _ = _policy_rule.rule_at_level(expected, measure, self.confidence_level_)
        measured = measure(final.decide(rule.prices))
        holds = rule.feasible and (measured.excess <= measured.errors).all()
        self._multipliers_without_groups = rule.prices.goals if holds else None
        self.constraint_report_["groups_unknown"], _ = measure.values(measured)

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the actions."""
        check_is_fitted(self)
        return self._arms.copy()

    @property
    def objective_report_(self) -> pd.DataFrame:
        """One row: the objective, as measured, and what it would be without constraints."""
        check_is_fitted(self)
        return pd.DataFrame([self._objective_row])

    def constraint_report(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        available: Any = None,
        groups: ArrayLike | None = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Report on the constraints on any rows, with confidence intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        y : DataFrame, default=None
            Their log, which constraints on outcomes need.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            Columns that constraints name, unless X has them.
        available : array-like, default=None
            As in `predict`, if not a column of `y`.
        groups : array-like of shape (n_samples,), default=None
            Rows of one value are dependent, as in `fit`: intervals count groups.
        confidence_level : float, default=0.95
            Level of each interval.

        Returns
        -------
        DataFrame
            The columns of `constraint_report_`, without `margin`, and `verdict`: "met" or
            "violated" if the whole interval is, else "undecided". Outcomes are doubly robust.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        given = X, y, attributes, available, sample_weight, groups
        return report_on(self, *given, confidence_level)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "multipliers_")

    def expected_costs(self, X: Any, *, attributes: Any = None) -> pd.DataFrame:
        """Predicted cost of each action, prices not included.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        attributes : DataFrame or dict of arrays, default=None
            Columns that the objective names, unless X has them.

        Returns
        -------
        DataFrame of shape (n_samples, n_arms)
            Rewards have negative costs. An action without a model has nan. The index is that of X.
        """
        check_is_fitted(self)
        contexts, predicted = self._read_new(X, None, attributes), self._models.predict(X)
        costs = None if self._goals.objective else predicted[COST]
        base = self._goals.without_sums().problem(contexts, predicted, costs, self.n_select).base
        base[:, ~self._models.with_events] = np.nan
        return pd.DataFrame(base, index=getattr(X, "index", None), columns=self._arms)

    def predict(self, X: Any, *, available: Any = None, attributes: Any = None) -> np.ndarray:
        """Choose the actions of the lowest predicted costs plus prices, row by row.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            Available actions: a boolean table with a column per action, or labels per row. None
            makes all of them available, with a warning if some row of `fit` lacked an action.
        attributes : DataFrame or dict of arrays, default=None
            Columns that constraints name, unless X has them.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_select) if that is more than one
            Labels, the best first.
        """
        best, _ = self._best(X, available, attributes)
        return self._labels(best)

    def select(
        self, X: Any, *, available: Any = None, attributes: Any = None, return_proba: bool = False
    ) -> Any:
        """Choose as `predict`, but for the share `exploration` of uniform choices.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            As in `predict`.
        attributes : DataFrame or dict of arrays, default=None
            As in `predict`.
        return_proba : bool, default=False
            Whether to return the probabilities of the choices, too, those of `select_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_select), or a pair of them
        """
        chosen, mask = self._best(X, available, attributes)
        chance = self._chances(chosen, mask)
        if self.exploration:
            explored = np.where(mask, self._draws.random(mask.shape), 2.0).argsort(axis=1)
            explores = self._draws.random((len(chosen), 1)) < self.exploration
            chosen = np.where(explores, explored[:, : self.n_select], chosen)
        if not return_proba:
            return self._labels(chosen)
        of_chosen = np.take_along_axis(chance, chosen, axis=1)
        return self._labels(chosen), of_chosen[:, 0] if self.n_select == 1 else of_chosen

    def select_proba(self, X: Any, *, available: Any = None, attributes: Any = None) -> Any:
        """Return the probability that `select` chooses each action.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts.
        available : array-like, default=None
            As in `predict`.
        attributes : DataFrame or dict of arrays, default=None
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; rows sum to `n_select`. If the columns of a table of costs were not
            in the order of their labels, a DataFrame whose columns name them.
        """
        chance = self._chances(*self._best(X, available, attributes))
        arms = self._arms.tolist()
        in_order = logs.ascending(arms) in (None, arms)
        return chance if in_order else pd.DataFrame(chance, columns=arms)

    def record(
        self, X_row: Any, arm: Any, propensity: Any, *, available: Any = None
    ) -> dict[str, Any]:
        """Describe a choice by a dict for JSON, to which its reward is joined later.

        Parameters
        ----------
        X_row : {array-like, sparse matrix, DataFrame} of shape (1, n_features), or a row of it
            Context of the choice, which may hold text if transformers encode it.
        arm : label, or array of labels
            What `select` returned for the row.
        propensity : float, array-like or None
            Probability with which `select` returned it; None if it is not known.
        available : array-like, default=None
            Actions that were available, as in `select`, for one row.

        Returns
        -------
        dict
            As of `GLMUCBPolicy.record`, for `skbandit.logs.join_rewards`; version is the number of
            rows that `fit` learned from.
        """
        check_is_fitted(self)
        arms, n_select = self._arms.tolist(), self.n_select
        return logs.make_record(X_row, arm, propensity, available, arms, self._n_rows, n_select > 1)

    def _best(self, X: Any, available: Any, attributes: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (n, n_select) of the best actions of each row, and which it may get."""
        check_is_fitted(self)
        logs.warn_without_pools(self, available)
        contexts = self._read_new(X, available, attributes)
        order = np.argsort(self._priced(contexts), axis=1, kind="stable")
        return order[:, : self.n_select], contexts.mask

    def _chances(self, best: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Probabilities (n, D) of the actions to be among those chosen."""
        chance = (self.exploration * self.n_select / mask.sum(axis=1))[:, None] * mask
        np.put_along_axis(
            chance, best, np.take_along_axis(chance, best, axis=1) + 1 - self.exploration, axis=1
        )
        return chance

    def _labels(self, chosen: np.ndarray) -> np.ndarray:
        """Labels of the numbers (n, n_select) of actions."""
        return self._arms[chosen[:, 0] if self.n_select == 1 else chosen]

    def reprice(self, X: Any, *, attributes: Any = None, available: Any = None) -> Self:
        """Set new prices for new traffic, without outcomes and without a refit.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Contexts, such as tomorrow's.
        attributes : DataFrame or dict of arrays, default=None
            Columns that constraints name, unless X has them.
        available : array-like, default=None
            Actions available to each row, as in `predict`; required if some row of `fit` lacked an
            action. None makes all of them available.

        Returns
        -------
        self
            `multipliers_`, `prices_` and `constraint_report_` are those on these rows. Bounded
            outcomes are as predicted, plus what those of the log exceeded predictions by in `fit`,
            with the error of these.
        """
        check_is_fitted(self)
        with atomic_fit(self) as draft:
            draft._check_pools(available, "available")
            traffic = draft._read_new(X, available, attributes)
            goals = draft._goals = draft._goals.scaled(traffic.rows)
            predicted = draft._models.predict(X)
            problem = draft._problem(traffic, predicted)
            given = goals, problem, predicted, draft.batch_size
            measure = ActionMeasure(*given, correction=draft._correction)
            draft._conclude(measure, MeasuredCosts(goals.declared, problem.base, problem, None))
            if draft._unknown is not None:
                guessed = draft._problem(draft._unknown.estimated(traffic), predicted)
                expected = measure.tightened(guessed)
                draft._conclude_without_groups(expected, expected, measure)
        return self

    def _priced(self, contexts: Contexts) -> np.ndarray:
        """Predicted costs plus multipliers, (n, D); groups that are not known are estimated."""
        unknown, predicted = self._unknown, self._models.predict(contexts.X)
        is_known = in_known_groups(contexts.rows, self._goals.members, unknown)
        unit, costs = np.ones(1), np.empty(contexts.mask.shape)
        if is_known.any() or unknown is None:
            problem = self._problem(contexts, predicted)
            costs = problem.decision_costs(Prices(unit, self.multipliers_))
        if is_known.all() or unknown is None:
            return costs
        if self._multipliers_without_groups is None:
            raise ValueError(
                f"{(~is_known).sum()} rows lack {first_few(unknown.columns)}, or have values that "
                "no row of fit had, and no policy was found that meets the constraints without "
                "knowing them: pass the values in attributes."
            )
        estimated = self._problem(unknown.estimated(contexts), predicted)
        prices = Prices(unit, self._multipliers_without_groups)
        return np.where(is_known[:, None], costs, estimated.decision_costs(prices))

    def _read_new(self, X: Any, available: Any, attributes: Any) -> Contexts:
        """Return new rows, and which actions each may get."""
        warn_if_reordered({"X": X, "attributes": attributes})
        validate_data(self, X, reset=False, skip_check_array=True)
        mask = self._mask(logs.align_rows(available, X), count_rows(X))
        return Contexts(X, rows_for_goals(X, attributes), mask)
