"""The model and rows of a page, and what is decided there by it and by other rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained import constraint_report
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog, policy_of, read_evaluated
from skbandit.inspection._report_lines import of_goals
from skbandit.logs import columns_of, holds_slates, is_log
from skbandit.measure import Columns
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import in_memory, warn_if_reordered

TODAY, PLAIN = "today's rule", "without constraints"


@dataclass(frozen=True)
class Case:
    """A fitted model on rows; `fitted` is the last step of `model`, `rows` are X as it sees them.

    `parts` are the groups that rates are reported of, `groups` those of dependent rows. A
    classifier decides classes, a selector selects items by a table of costs; goals can be declared
    of a classifier or policy.
    """

    model: Any
    fitted: Any
    X: Any
    rows: Any
    y: Any
    attributes: Any
    columns: Columns
    parts: pd.DataFrame | None
    groups: Any
    today: Any
    is_classifier: bool
    is_selector: bool
    has_goals: bool

    @classmethod
    def read(cls, model: Any, X: Any, y: Any, attributes: Any, by: Any, *others: Any) -> Case:
        """Read the arguments of `save_report`."""
        X, y, attributes, groups, today = map(in_memory, (X, y, attributes, *others))
        fitted, rows = behind_transformers(model, X)
        check_is_fitted(fitted)
        columns = Columns.read(attributes, X, count_rows(X))
        names = [by] if isinstance(by, str) else list(() if by is None else by)
        if not all(isinstance(name, str) for name in names):
            raise TypeError("by= must be names of columns: pass groups as columns of attributes.")
        parts = columns.several(names, f"by={by!r}") if names else None
        methods = "_predict_both", "predict_indicator", "constraint_report_"
        kinds = [hasattr(fitted, method) for method in methods]
        case = cls(model, fitted, X, rows, y, attributes, columns, parts, groups, today, *kinds)
        if not (case.is_classifier or case.is_selector or hasattr(fitted, "arms_")):
            raise TypeError(
                f"{type(fitted).__name__} has no declared constraints, and is no policy and no "
                "selector: pass one of these. For other classifiers use "
                "skbandit.evaluation.rate_report and to_model_card."
            )
        if not case.is_classifier and holds_slates(y, getattr(fitted, "columns", None)):
            raise ValueError(
                "y is a log of slates, whose value is not reported: pass a log of one action per "
                "row, or a table of costs; skbandit.evaluation.slate_pseudo_inverse estimates the "
                "value."
            )
        return case

    @cached_property
    def is_table(self) -> bool:
        """True if `y` has the cost of each action in each row."""
        is_policy = self.has_goals and not self.is_classifier
        return self.is_selector or (is_policy and not is_log(self.y, self.fitted.columns))

    @cached_property
    def labels(self) -> Any:
        """All possible decisions."""
        if self.is_classifier:
            return self.fitted._classes.decisions
        return self.fitted.ads_ if self.is_selector else self.fitted.arms_

    @cached_property
    def options(self) -> dict[str, Any]:
        """Further arguments of `rate_report`."""
        frame = self.columns.frame if self.columns.frame.shape[1] else None
        options = {"attributes": frame, "labels": self.labels}
        options |= {"pos_label": self.fitted._positive} if self.is_classifier else {}
        return options | ({} if self.groups is None else {"groups": self.groups})

    @cached_property
    def offers(self) -> dict[str, Any]:
        """Further arguments of predictions of a policy."""
        offers = {"attributes": self.attributes} if self.has_goals else {}
        without = self.is_table or self.is_classifier
        names = {} if without else columns_of(self.y, self.fitted.columns) or {}
        return offers | ({"available": self.y[names["available"]]} if "available" in names else {})

    @cached_property
    def decided(self) -> np.ndarray:
        """The decisions of the model."""
        if self.is_classifier:
            return np.asarray(self._both[0])
        return np.asarray(self.fitted.predict(self.rows, **self.offers))

    @cached_property
    def _both(self) -> tuple[np.ndarray, np.ndarray | None]:
        both: tuple[np.ndarray, np.ndarray | None]
        both = self.fitted._predict_both(self.rows, self.attributes)
        return both

    @cached_property
    def plain(self) -> np.ndarray | None:
        """The decisions without constraints, if they are known."""
        if self.is_classifier:
            return self._both[1]
        if not self.has_goals or "available" in self.offers or self.decided.ndim > 1:
            return None
        costs = self.fitted.expected_costs(self.rows, attributes=self.attributes)
        return np.asarray(self.labels[costs.fillna(np.inf).to_numpy().argmin(axis=1)])

    @cached_property
    def confusion(self) -> pd.DataFrame | None:
        """Numbers of rows by label and decision, if labels are known."""
        if not self.is_classifier or self.y is None:
            return None
        y_true = np.asarray(self.y, dtype=object).ravel()
        is_known, labels = ~pd.isna(y_true), list(self.labels)
        counts = pd.crosstab(y_true[is_known], self.decided[is_known])
        index = [label for label in labels if label in counts.index]
        return counts.reindex(index=index, columns=labels, fill_value=0)

    @cached_property
    def choices(self) -> tuple[EvaluatedLog, EvaluatedLog]:
        """The choices of a policy, and of the rule of today, on one log."""
        goals, today = getattr(self.fitted, "_goals", None), self.today
        options: dict[str, Any] = {"columns": self.fitted.columns or {}}
        has_reward = "reward" in (columns_of(self.y, self.fitted.columns) or {})
        if goals is not None and goals.declared is not None and not has_reward:
            options["reward"] = np.zeros(count_rows(self.X))  # the objective takes its place
        given, X = (self.decided, None) if self.has_goals else (self.model, self.X)
        evaluated = read_evaluated(given, X, self.y, rule="select", **options)
        if today is None:
            log = evaluated.log
            return evaluated, EvaluatedLog(log, log.probability, None, evaluated.arms)
        rule, policy = "select", policy_of(today)
        if policy is not None:
            rule = "select" if hasattr(policy, "select") else "predict"
            if "attributes" in signature(getattr(policy, rule)).parameters:
                options["attributes"] = self.attributes
        usual = read_evaluated(today, self.X, self.y, rule=rule, **options)
        return evaluated, replace(usual, log=evaluated.log)

    @cached_property
    def usual(self) -> np.ndarray | None:
        """The decisions of the rule of today, if they are known."""
        if self.is_classifier or self.is_table:
            return self._decisions_of_today()
        evaluated, usual = self.choices
        if self.today is None:
            return np.asarray(evaluated.log.arms[evaluated.log.action])
        if usual.of_arms is None:
            return None
        arms = np.empty(len(usual.arms), dtype=object)
        arms[:] = usual.arms
        return np.asarray(arms[usual.of_arms.argmax(axis=1)].tolist())

    def _decisions_of_today(self) -> np.ndarray | None:
        """Return the decisions of a model, or those given, if any."""
        today, n = self.today, count_rows(self.X)
        if today is None:
            return None
        if hasattr(today, "predict"):
            given = {} if self.attributes is None else {"attributes": self.attributes}
            takes = "attributes" in signature(today.predict).parameters
            return np.asarray(today.predict(self.X, **(given if takes else {})))
        warn_if_reordered({"X": self.X, "today": today})
        decided = np.asarray(today)
        if decided.shape[:1] != (n,):
            raise ValueError(
                f"today has the shape {decided.shape}, and X has {n} rows: pass a model that has "
                "predict, or one decision per row."
            )
        return decided

    @cached_property
    def report(self) -> pd.DataFrame:
        """The constraints on these rows."""
        names = ("attributes", "groups") if self.is_classifier else ()
        rows = {name: self.options[name] for name in names if name in self.options}
        report = constraint_report(self.model, self.X, self.y, **rows or self.offers)
        return of_goals(report)
