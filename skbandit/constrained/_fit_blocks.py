"""Fitting to blocks of rows: a sample for the model, one pass over all rows for thresholds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from skbandit.constrained._cell_counts import CellCounts, Cells, atoms_of
from skbandit.constrained._declared import Declared, MeasuredGoals
from skbandit.constrained._extra_rows import read_rows
from skbandit.constrained._grouping import Grouping, read_by
from skbandit.constrained._out_of_fold import responses
from skbandit.constrained._report import cost_of_constraints, missed, plain_columns
from skbandit.constrained._rules import best_rule
from skbandit.constrained._table_blocks import TableBlocks
from skbandit.constrained._threshold import cuts_between
from skbandit.exceptions import ConstrainedFitWarning, EmptyRateError
from skbandit.logs import in_block
from skbandit.rates import Constraint
from skbandit.rates._binding import Columns, Data, Rows, encode, expand, satisfied

if TYPE_CHECKING:
    from skbandit.constrained._constrained_threshold import ConstrainedThreshold

FEW = 1000
"""Rows of a group in the sample below which thresholds between those of all rows are tried, too."""


def fit_to_blocks(
    clf: ConstrainedThreshold, source: TableBlocks, sample_size: Any, random_state: Any
) -> None:
    """Fit a `ConstrainedThreshold` in two passes; see its `fit_blocks`."""
    if isinstance(sample_size, bool) or not isinstance(sample_size, int | np.integer):
        raise TypeError(f"sample_size must be an integer, got {sample_size!r}.")
    if sample_size < 2:
        raise ValueError(f"sample_size={sample_size} must be at least 2.")
    if clf.confidence_level is not None:
        raise ValueError(
            f"confidence_level={clf.confidence_level} is not supported by fit_blocks: on so many "
            "rows limits and rates are all but equal. Use fit, or set confidence_level=None."
        )
    declared = Declared.read(clf.objective, clf.constraints)
    first = _FirstPass.read(source, declared, clf.by, int(sample_size), random_state)
    X, y, attributes, weight = source.parts(first.sample)
    metadata = dict.fromkeys(("extra", "X_extra", "y_extra", "attributes_extra"))
    metadata |= {"sample_weight": weight, "attributes": attributes, "sample_weight_extra": None}
    try:
        trained = clf._train(X, y, metadata, {})
    except EmptyRateError as error:
        if first.n_rows > len(first.sample):
            error.add_note("This is the sample: a larger sample_size may hold such rows.")
        raise
    if first.n_rows == len(first.sample):
        clf._judge(trained)
        return
    unknown = [one for one in first.labels if one not in clf.classes_.tolist()]
    if unknown:
        raise ValueError(
            f"column {source.label!r} has the label {unknown[0]!r}, which is not in the sample: "
            "its classes are "
            f"{clf.classes_.tolist()}."
        )
    counting = _Counting.of(clf, declared, first, trained.scores)
    others = counting.of_others(source, first)
    held_out = others + counting.count(X, y, attributes, weight, trained.scores)
    positive = _set_thresholds(clf, counting, held_out)
    plain = counting.unconstrained(held_out)
    report = counting.report(held_out, positive, plain)
    if trained.own is not None:
        own = others + counting.count(X, y, attributes, weight, trained.own)
        report = report.rename(columns={"value": "cross_fitted"})
        at = report.columns.tolist().index("cross_fitted")
        report.insert(at, "value", counting.report(own, positive, plain)["value"])
    clf._report_columns = plain_columns(report)
    clf.feasible_ = bool(report["satisfied"].fillna(True).all())
    if not clf.feasible_:
        bound, _ = held_out.goals(counting.constraints, counting.sign)
        raise clf._infeasible(missed(report, bound))
    forms, maximise = held_out.forms(declared.objective), declared.objective.greater_is_better
    told = cost_of_constraints(repr(declared.objective), forms, maximise, positive, plain)
    if told is not None:
        warnings.warn(told, ConstrainedFitWarning, stacklevel=4)


@dataclass(frozen=True)
class _FirstPass:
    """A uniform sample of the rows, in their order, and what all rows tell.

    Attributes
    ----------
    sample : DataFrame
    places : ndarray of int
        Numbers of the sampled rows.
    n_rows : int
        Of all blocks.
    labels : list
        All labels that occur.
    groups : DataFrame
        For each list of columns that defines groups, its combinations of values; the other
        columns are missing there.
    """

    sample: pd.DataFrame
    places: np.ndarray
    n_rows: int
    labels: list[Any]
    groups: pd.DataFrame

    @classmethod
    def read(
        cls,
        source: TableBlocks,
        declared: Declared,
        by: Any,
        size: int,
        random_state: Any,
    ) -> _FirstPass:
        """Keep the rows with the smallest of uniform random keys."""
        rng = check_random_state(random_state)
        columns = {one.rate.grouped_by[0] for one in declared.constraints if one.rate.grouped_by}
        columns |= set() if by is None else {read_by(by)}
        combinations: dict[tuple[str, ...], dict[tuple[Any, ...], None]]
        combinations = {tuple(some): {} for some in columns}
        labels: dict[Any, None] = {}
        kept: list[pd.DataFrame] = []
        keys, places = np.zeros(0), np.zeros(0, dtype=np.int64)
        n_rows, largest = 0, 1.0
        for number, table in source.tables():
            with in_block(number):
                labels |= dict.fromkeys(table[source.label].unique().tolist())
                X, _, attributes, weight = source.parts(table)
                named = Columns.read(attributes, X, len(table))
                counted = np.ones(len(table), bool) if weight is None else weight.to_numpy() > 0
                for some, found in combinations.items():
                    distinct = named.several(some, f"by={list(some)}")[counted].dropna()
                    distinct = distinct.drop_duplicates()
                    rows = zip(*(distinct[name].tolist() for name in some), strict=True)
                    found |= dict.fromkeys(rows)
            drawn = rng.uniform(size=len(table))
            chosen = np.flatnonzero(drawn < largest)
            if len(chosen):
                kept.append(table.iloc[chosen])
                keys = np.append(keys, drawn[chosen])
                places = np.append(places, n_rows + chosen)
            n_rows += len(table)
            if len(keys) > 2 * size:
                keys, places, kept = _smallest(keys, places, kept, size)
                largest = float(keys.max())
        if not n_rows:
            raise ValueError("blocks hold no rows.")
        keys, places, kept = _smallest(keys, places, kept, size)
        parts = [
            pd.DataFrame(list(found), columns=list(some), dtype=object)
            for some, found in combinations.items()
        ]
        groups = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        return cls(kept[0], places, n_rows, list(labels), groups)

    def of_groups(self, positive: Any, labels: list[Any]) -> Data:
        """One row per combination of group values."""
        n = len(self.groups)
        columns = Columns.read(self.groups if n else None, None, n)
        return Data(Rows(columns, np.zeros(n, dtype=np.int8), np.ones(n)), None, positive, labels)


@dataclass(frozen=True)
class _Counting:
    """How rows are counted: goals, groups, cells, and the fitted model."""

    clf: ConstrainedThreshold
    declared: Declared
    constraints: tuple[Constraint, ...]
    cells: Cells

    @classmethod
    def of(
        cls,
        clf: ConstrainedThreshold,
        declared: Declared,
        first: _FirstPass,
        scores: np.ndarray,
    ) -> _Counting:
        data = first.of_groups(clf._positive, clf.classes_.tolist())
        constraints = expand(declared.constraints, data)
        for atom in atoms_of(declared.objective, constraints).values():
            if atom.on != "train":
                raise ValueError(f"{atom!r}: fit_blocks takes no extra rows; use fit.")
        group = np.zeros(len(first.sample), dtype=np.int64)
        n_groups = 1
        if clf.by is not None:
            clf._grouping = Grouping.find(clf.by, data)
            group = clf._grouping.codes(Columns.read(first.sample, None, len(first.sample)))
            n_groups = len(clf._grouping.groups)
        known = np.isfinite(scores)
        if not known.all():
            raise ValueError(
                f"cv={clf.cv!r} leaves rows of the sample untested: fit_blocks needs a score out "
                "of fold for each."
            )
        signed = clf._classes.orientation * scores
        common = _middles(signed)
        cuts = []
        for g in range(n_groups):
            own = signed[group == g]
            of_group = _middles(own) if len(own) else np.zeros(0)
            if len(own) < FEW and n_groups > 1:
                of_group = np.append(of_group, common[:: max(1, len(common) // FEW)])
            cuts.append(np.unique(np.append(of_group, clf._usual)))
        return cls(clf, declared, constraints, Cells(tuple(cuts)))

    @property
    def sign(self) -> np.ndarray:
        return np.array([1.0 if one.sense == "<=" else -1.0 for one in self.constraints])

    def count(self, X: Any, y: Any, attributes: Any, weight: Any, scores: np.ndarray) -> CellCounts:
        """Count rows with given scores for ``classes_[1]``."""
        clf = self.clf
        label = encode(y, clf._positive, clf.classes_.tolist(), "y")
        rows = read_rows(X, label, weight, attributes)
        data = Data(rows, None, clf._positive, clf.classes_.tolist())
        group = np.zeros(len(label), dtype=np.int64)
        if clf._grouping is not None:
            clf._grouping.check_present(rows.columns, rows.weight > 0, "")
            group = clf._grouping.codes(rows.columns)
        signed = clf._classes.orientation * scores
        cell = self.cells.of_rows(signed, np.maximum(group, 0))
        n_cells = int(self.cells.starts[-1])
        goals = self.declared.objective, self.constraints
        return CellCounts.of_rows(*goals, data, signed, cell, n_cells)

    def of_others(self, source: TableBlocks, first: _FirstPass) -> CellCounts:
        """Count the rows that are not in the sample."""
        clf, total, n_rows = self.clf, None, 0
        for number, table in source.tables():
            inside = slice(*np.searchsorted(first.places, [n_rows, n_rows + len(table)]))
            kept = np.ones(len(table), dtype=bool)
            kept[first.places[inside] - n_rows] = False
            n_rows += len(table)
            if not kept.any():
                continue
            with in_block(number):
                X, y, attributes, weight = source.parts(table[kept])
                scores = responses(clf.estimator_, X, clf.response_method_, clf._classes)
                counted = self.count(X, y, attributes, weight, scores)
            total = counted if total is None else total + counted
        if n_rows != first.n_rows or total is None:
            raise ValueError(
                f"blocks held {first.n_rows} rows when read first and {n_rows} the second time: "
                "they must be the same tables in the same order."
            )
        return total

    def unconstrained(self, counts: CellCounts) -> np.ndarray:
        """Predictions per cell of the classifier itself."""
        scores = self.cells.scores(counts.lowest, counts.highest)
        usual = np.full(len(self.cells.cuts), self.clf._usual)
        return self.cells.positive(self.cells.below(scores, usual))

    def report(self, counts: CellCounts, positive: np.ndarray, plain: np.ndarray) -> pd.DataFrame:
        """The report on all rows, at predictions per cell."""
        goals, _ = counts.goals(self.constraints, self.sign)
        values = goals.values(positive)
        slack = goals.slack(values)
        return pd.DataFrame(
            {
                "constraint": [one.label for one in self.constraints],
                "on": ["train" for _ in self.constraints],
                "n_rows": goals.n_rows,
                "effective_n": [counts.effective(one.rate, positive) for one in self.constraints],
                "bound": goals.bound,
                "value": values,
                "unconstrained": goals.values(plain),
                "slack": slack,
                "satisfied": satisfied(slack, goals.n_rows > 0),
            }
        )


def _set_thresholds(
    clf: ConstrainedThreshold, counting: _Counting, counts: CellCounts
) -> np.ndarray:
    """Search the thresholds between cells on the counts of all rows; return the predictions."""
    bound, skipped = counts.goals(counting.constraints, counting.sign)
    if skipped:
        warnings.warn(" ".join(skipped[:3]), UndefinedMetricWarning, stacklevel=5)
    objective = counts.forms(counting.declared.objective)
    if counting.declared.objective.greater_is_better:
        objective = objective.negated()
    cells, ends = counting.cells, (counts.lowest, counts.highest)
    scores = cells.scores(*ends)
    goals = MeasuredGoals(objective, bound.subset(bound.n_rows > 0), np.arange(len(scores)))
    group = None if clf.by is None else cells.group
    rule = best_rule(scores, goals, clf._usual, None, group, len(cells.cuts))
    below = cells.below(scores, rule.cuts)
    clf._set_rule(replace(rule, cuts=cells.thresholds(below, *ends)))
    clf._constraints = counting.constraints
    return cells.positive(below)


def _middles(scores: np.ndarray) -> np.ndarray:
    """Thresholds midway between neighbouring scores, ascending."""
    return cuts_between(np.sort(scores)[::-1])[0][1:-1][::-1]


def _smallest(
    keys: np.ndarray, places: np.ndarray, kept: list[pd.DataFrame], size: int
) -> tuple[np.ndarray, np.ndarray, list[pd.DataFrame]]:
    """Keep the rows with the `size` smallest keys, in their order."""
    together = pd.concat(kept, ignore_index=True) if len(kept) > 1 else kept[0]
    if len(keys) > size:
        chosen = np.sort(np.argpartition(keys, size - 1)[:size])
        keys, places, together = keys[chosen], places[chosen], together.iloc[chosen]
    return keys, places, [together.reset_index(drop=True)]
