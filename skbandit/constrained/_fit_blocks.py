"""Fitting to blocks of rows: a sample for the model, one pass over all rows for thresholds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from skbandit.constrained._fit_rows import Grouping, read_by, read_rows
from skbandit.constrained._goals import Declared, MeasuredGoals
from skbandit.constrained._report import cost_of_constraints, missed, plain_columns
from skbandit.constrained._threshold_training import responses
from skbandit.constrained.thresholds._candidates import cuts_between
from skbandit.constrained.thresholds._rules import best_rule
from skbandit.exceptions import ConstrainedFitWarning, EmptyRateError
from skbandit.logs import in_block
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import (
    Atom,
    BoundConstraints,
    Columns,
    Data,
    Form,
    LinearFractionalForms,
    Rows,
    atom_counts,
    combine_atoms,
    encode,
    expand,
    satisfied,
)
from skbandit.utils._optional import import_optional
from skbandit.utils._validation import as_labels

if TYPE_CHECKING:
    from skbandit.constrained._constrained_threshold import ConstrainedThreshold


BATCH = 2**17
"""Rows per block of Parquet files."""


@dataclass(frozen=True)
class TableBlocks:
    """Tables with named columns, which can be read more than once.

    Attributes
    ----------
    opened : callable
        Returns the tables, from the first on.
    features : list of str
    label : str
    sample_weight : str or None
    """

    opened: Callable[[], Iterable[Any]]
    features: list[str]
    label: str
    sample_weight: str | None

    @classmethod
    def read(cls, blocks: Any, features: Any, label: Any, sample_weight: Any) -> TableBlocks:
        """Check the arguments of `fit_blocks`."""
        names = as_labels(features, "features")
        if not names:
            raise ValueError("features is empty: name the columns to train on.")
        if label in names:
            raise ValueError(f"label={label!r} is among the features.")
        return cls(_opener(blocks), names, label, sample_weight)

    def tables(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """Each table with its number, in memory, with a fresh index."""
        for number, block in enumerate(self.opened()):
            with in_block(number):
                table = _as_frame(block)
                wanted = [*self.features, self.label]
                wanted += [] if self.sample_weight is None else [self.sample_weight]
                for name in wanted:
                    if name not in table.columns:
                        raise ValueError(f"no column {name!r} among {list(table.columns)}.")
                if table[self.label].isna().any():
                    row = int(np.flatnonzero(table[self.label].isna())[0])
                    raise ValueError(f"column {self.label!r} is missing in row {row}.")
            yield number, table

    def parts(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, Any]:
        """Features, labels, attributes and weights of a table."""
        others = table.columns.difference([*self.features, self.label], sort=False)
        weight = None if self.sample_weight is None else table[self.sample_weight]
        return table[self.features], table[self.label], table[others], weight


def _opener(blocks: Any) -> Callable[[], Iterable[Any]]:
    """A function that returns the blocks from the first on."""
    if isinstance(blocks, str | os.PathLike):
        datasets = import_optional("pyarrow.dataset", "fit_blocks")
        blocks = datasets.dataset(blocks, format="parquet")
    if hasattr(blocks, "partitions"):  # Dask
        return lambda: (part.compute() for part in blocks.partitions)
    if hasattr(blocks, "scanner"):  # a pyarrow Dataset; few batches are read ahead
        return lambda: blocks.to_batches(batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
    if callable(blocks):
        return blocks
    if hasattr(blocks, "columns") or not isinstance(blocks, Iterable):
        raise TypeError(
            f"blocks must hold tables, got {type(blocks).__name__}: for a single table, pass "
            "[table]."
        )
    if iter(blocks) is blocks:
        raise TypeError(
            f"blocks are read twice, and a {type(blocks).__name__} can be read once: pass a "
            "function that opens them, such as lambda: read_csv(path, chunksize=100_000)."
        )
    return lambda: blocks


def _as_frame(block: Any) -> pd.DataFrame:
    """A table in memory as a DataFrame with a fresh index."""
    for method in ("compute", "collect"):  # of Dask and polars
        if hasattr(block, method):
            raise TypeError(
                f"a block must be in memory, got a lazy {type(block).__name__}: call its "
                f"{method}()."
            )
    if hasattr(block, "replace_schema_metadata"):  # pyarrow; its metadata could set an index
        block = block.replace_schema_metadata()
    if hasattr(block, "to_pandas"):
        block = block.to_pandas()
    if not isinstance(block, pd.DataFrame):
        raise TypeError(
            f"a block must be a table of pandas, polars or pyarrow, got {type(block).__name__}."
        )
    return block.reset_index(drop=True)


SUMS = 8
"""Sums per atom and cell: numerator, denominator, trials and squared trials, predicted 0 and 1."""


@dataclass(frozen=True)
class Cells:
    """Cells of the scores of G groups, numbered through.

    Attributes
    ----------
    cuts : tuple of ndarray
        The thresholds of each group, ascending.
    """

    cuts: tuple[np.ndarray, ...]

    @property
    def starts(self) -> np.ndarray:
        """Number of the first cell of each group, and the number of cells; shape (G + 1,)."""
        return np.concatenate([[0], np.cumsum([len(cuts) + 1 for cuts in self.cuts])])

    def of_rows(self, scores: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Cell of each row."""
        found = np.empty(len(scores), dtype=np.int64)
        for g, (cuts, start) in enumerate(zip(self.cuts, self.starts[:-1], strict=True)):
            rows = group == g
            found[rows] = start + np.searchsorted(cuts, scores[rows], side="left")
        return found

    @property
    def group(self) -> np.ndarray:
        """Group of each cell."""
        return np.repeat(np.arange(len(self.cuts)), np.diff(self.starts))

    def scores(self, lowest: float, highest: float) -> np.ndarray:
        """A score inside each cell, increasing within a group; all are between the ends."""
        parts = []
        for cuts in self.cuts:
            low, high = min(lowest, cuts[0] - 1e-3), max(highest, cuts[-1] + 1e-3)
            parts.append(np.concatenate([[low], 0.5 * (cuts[1:] + cuts[:-1]), [high]]))
        return np.concatenate(parts)

    def below(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """Number of cells of each group whose score is below its cut."""
        return np.array([int(np.sum(scores[self.group == g] < cut)) for g, cut in enumerate(cuts)])

    def thresholds(self, below: np.ndarray, lowest: float, highest: float) -> np.ndarray:
        """The thresholds with the given numbers of cells below them; 1/2 beyond all scores."""
        found = []
        for cuts, n in zip(self.cuts, below, strict=True):
            ends = [min(lowest, cuts[0]) - 0.5, *cuts, max(highest, cuts[-1]) + 0.5]
            found.append(float(ends[n]))
        return np.array(found)

    def positive(self, below: np.ndarray) -> np.ndarray:
        """1.0 for the cells that are not below the threshold of their group."""
        place = np.arange(self.starts[-1]) - self.starts[self.group]
        return (place >= below[self.group]).astype(float)


@dataclass(frozen=True)
class CellCounts:
    """Sums over rows in cells; those of parts of the rows add up.

    Attributes
    ----------
    sums : dict of ndarray of shape (SUMS, n_cells)
        By the key of an atom.
    selected : dict of float
        Total weight of the rows that an atom selects.
    rows : ndarray of int, shape (K,)
        Rows that each constraint depends on.
    lowest, highest : float
        The smallest and the largest score.
    """

    sums: dict[object, np.ndarray]
    selected: dict[object, float]
    rows: np.ndarray
    lowest: float
    highest: float

    @classmethod
    def of_rows(
        cls,
        objective: Rate,
        constraints: Sequence[Constraint],
        data: Data,
        scores: np.ndarray,
        cell: np.ndarray,
        n_cells: int,
    ) -> CellCounts:
        """Count rows, one at least; an atom without rows among them counts as 0."""
        sums: dict[object, np.ndarray] = {}
        selected: dict[object, float] = {}
        counts = {}
        for atom in atoms_of(objective, constraints).values():
            counts[atom.key] = rows = _counted(atom, data)
            if rows is None:
                sums[atom.key], selected[atom.key] = np.zeros((SUMS, n_cells)), 0.0
                continue
            table, weight = rows
            kept = np.flatnonzero(table.any(axis=1))
            at = cell[kept]
            sums[atom.key] = np.stack(
                [np.bincount(at, weights=column, minlength=n_cells) for column in table[kept].T]
            )
            selected[atom.key] = float(weight.sum())
        behind = np.zeros(len(constraints), dtype=np.int64)
        for k, constraint in enumerate(constraints):
            found = [counts[atom.key] for atom in constraint.rate.atoms]
            masks = [(one[0][:, 2:4] > 0).any(axis=1) for one in found if one is not None]
            behind[k] = np.logical_or.reduce(masks).sum() if masks else 0
        return cls(sums, selected, behind, float(scores.min()), float(scores.max()))

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(
            {key: table + other.sums[key] for key, table in self.sums.items()},
            {key: total + other.selected[key] for key, total in self.selected.items()},
            self.rows + other.rows,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )

    def bound(self, atom: Atom) -> tuple[Form, Form, np.ndarray]:
        """Numerator, denominator and cells of one atom, as `bind_rate` has them of rows."""
        table = self.sums[atom.key]
        total = self.selected[atom.key] if atom.kind.fractional else table[3].sum()
        if not total > 0 or not table[2:4].any():
            raise EmptyRateError(f"{atom!r}: no block has rows in its denominator.")
        forms = [
            Form((table[p + 1] - table[p]) / total, float(table[p].sum() / total)) for p in (0, 2)
        ]
        return forms[0], forms[1], (table[2] > 0) | (table[3] > 0)

    def forms(self, rate: Rate) -> LinearFractionalForms:
        """One expression over the cells."""
        n = next(iter(self.sums.values())).shape[1]
        return LinearFractionalForms.stack([combine_atoms(rate, self.bound, n)[:2]], n)

    def goals(
        self, constraints: Sequence[Constraint], sign: np.ndarray
    ) -> tuple[BoundConstraints, list[str]]:
        """Constraints over the cells, and why groups without rows are not measured."""
        n = next(iter(self.sums.values())).shape[1]
        zero = Form(np.zeros(n), 0.0)
        pairs, skipped, rows = [], [], self.rows.copy()
        for k, constraint in enumerate(constraints):
            try:
                pairs.append(combine_atoms(constraint.rate, self.bound, n)[:2])
            except EmptyRateError as error:
                if not any(atom.group for atom in constraint.rate.atoms):
                    raise
                skipped.append(f"{constraint.label} is not measured: {error}")
                pairs.append((zero, zero))
                rows[k] = 0
        bound = np.array([one.bound for one in constraints], dtype=float)
        forms = LinearFractionalForms.stack(pairs, n)
        return BoundConstraints(tuple(constraints), forms, bound, sign, rows), skipped

    def effective(self, rate: Rate, positive: np.ndarray) -> float:
        """Kish's effective number of rows at predictions per cell; the smallest of any atom."""
        found = []
        for atom in rate.atoms:
            table = self.sums[atom.key]
            trial, squared = (
                float((table[p + 1] * positive + table[p] * (1.0 - positive)).sum()) for p in (4, 6)
            )
            found.append(trial**2 / squared if squared > 0 else 0.0)
        return min(found, default=0.0)


def atoms_of(objective: Rate, constraints: Sequence[Constraint]) -> dict[object, Atom]:
    """The different atoms of some goals."""
    rates = [objective, *(constraint.rate for constraint in constraints)]
    return {atom.key: atom for rate in rates for atom in rate.atoms}


def _counted(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray] | None:
    """The SUMS contributions of each row, and its weight; None if the atom has no rows here."""
    try:
        numerator, denominator, weight = atom_counts(atom, data)
    except EmptyRateError:
        return None
    per_trial = np.where(numerator > 0, atom.kind.success[1], atom.kind.failure)
    trial = denominator / per_trial
    return np.hstack([numerator, denominator, trial, trial**2]), weight


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
            clf._grouping = Grouping.find(clf.by, data, missing=False)
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
    clf._constraints = clf._every = counting.constraints
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
