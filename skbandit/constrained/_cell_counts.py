"""Rates at many thresholds from sums over cells of rows: additive, whatever the number of rows.

Thresholds t_1 < ... < t_C divide the scores of a group into C + 1 cells: a row is in cell k if k
thresholds are below its score. Every sum over rows that a rate needs, at every threshold, follows
from its sums over cells. Cells stand in for rows in `LinearFractionalForms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skbandit.exceptions import EmptyRateError
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import (
    Atom,
    BoundConstraints,
    Data,
    Form,
    LinearFractionalForms,
    atom_counts,
    combine_atoms,
)

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
