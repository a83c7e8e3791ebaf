"""Linear-fractional forms in the decisions: all that training knows of a rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from skbandit.rates._expression import Constraint


def indicators(decided: np.ndarray, n_decisions: int) -> np.ndarray:
    """Return whether each of n rows gets each decision but the first, row by row.

    Of two decisions that is whether it is predicted positive, or the probability of it.

    Parameters
    ----------
    decided : ndarray of shape (n,)
        Codes of decisions, from 0 on.
    n_decisions : int

    Returns
    -------
    ndarray of shape (n * (n_decisions - 1),)

    Examples
    --------
    >>> indicators(np.array([0, 2, 1]), 3)
    array([0., 0., 0., 1., 1., 0.])
    """
    if n_decisions == 2:
        return decided
    return (decided[:, None] == np.arange(1, n_decisions)).astype(float).ravel()


@dataclass(frozen=True)
class Form:
    """The linear form ``coef @ pi + constant`` in N indicators pi: see `indicators`.

    Attributes
    ----------
    coef : csr_array of shape (1, N)
    constant : float
    """

    coef: csr_array
    constant: float

    @classmethod
    def fixed(cls, constant: float, n_indicators: int) -> Form:
        """Return a number, whatever the decisions."""
        return cls(csr_array((1, n_indicators)), constant)

    @classmethod
    def of_rows(
        cls,
        rows: np.ndarray,
        weight: np.ndarray,
        code: np.ndarray,
        by_code: np.ndarray,
        n_indicators: int,
        total: float = 1.0,
    ) -> Form:
        """Return the sum over m rows of their weights times an entry of a table, over a total.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            In order.
        weight : ndarray of shape (m,)
        code : ndarray of int, shape (m,)
        by_code : ndarray of shape (K, D)
            Entries by code and decision.
        n_indicators : int
        total : float
        """
        constant = float((weight * by_code[code, 0]).sum() / total)
        moved = csr_array(by_code[:, 1:] - by_code[:, :1].astype(float))
        if not moved.nnz:
            return cls.fixed(constant, n_indicators)
        entries = np.diff(moved.indptr)[code]
        inside = np.flatnonzero(entries)
        part, entries = moved[code[inside]], entries[inside]
        columns = np.repeat(rows[inside] * moved.shape[1], entries) + part.indices
        data = np.repeat(weight[inside], entries) * part.data / total
        return cls(csr_array((data, columns, [0, len(data)]), shape=(1, n_indicators)), constant)

    def __add__(self, other: Form) -> Form:
        return Form(csr_array(self.coef + other.coef), self.constant + other.constant)

    def __mul__(self, factor: float) -> Form:
        return Form(factor * self.coef, factor * self.constant)


@dataclass(frozen=True)
class LinearFractionalForms:
    """K expressions over the stacked rows, each a ratio of two linear forms.

    Value k at the N `indicators` pi (of two classes the positive predictions, in {0, 1}, or ramp
    probabilities) is ``(numerator[k] @ pi + numerator_constant[k]) / (denominator[k] @ pi +
    denominator_constant[k])``; a linear expression has the denominator 0 @ pi + 1.

    Attributes
    ----------
    numerator, denominator : csr_array of shape (K, N)
    numerator_constant, denominator_constant : ndarray of shape (K,)
    """

    numerator: csr_array
    numerator_constant: np.ndarray
    denominator: csr_array
    denominator_constant: np.ndarray

    @classmethod
    def stack(cls, pairs: list[tuple[Form, Form]], n_rows: int) -> LinearFractionalForms:
        """Stack (numerator, denominator) pairs."""
        return cls(
            stacked([numerator.coef for numerator, _ in pairs], n_rows),
            np.array([numerator.constant for numerator, _ in pairs]),
            stacked([denominator.coef for _, denominator in pairs], n_rows),
            np.array([denominator.constant for _, denominator in pairs]),
        )

    def fractions(self, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numerators and denominators, each of shape (K,)."""
        numerator = self.numerator @ positive + self.numerator_constant
        return numerator, self.denominator @ positive + self.denominator_constant

    def values(self, positive: np.ndarray) -> np.ndarray:
        """Values of shape (K,), nan if a denominator is empty."""
        numerator, denominator = self.fractions(positive)
        return self.quotients(numerator[:, None], denominator[:, None])[:, 0]

    def quotients(self, numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
        """Divide sums over the N rows, of shape (K, ...); nan if a denominator is empty."""
        # A denominator can cancel only against its constant; anything above this threshold is
        # not round-off.
        rounding = self.denominator.shape[1] * np.finfo(float).eps * self.denominator_constant
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(denominator > rounding[:, None], numerator / denominator, np.nan)

    def worst_at(self, positive: np.ndarray) -> LinearFractionalForms:
        """Return the form of the largest value at positive predictions."""
        single = len(self.numerator_constant) == 1
        return self[np.array([0 if single else np.argmax(self.values(positive))])]

    def __getitem__(self, kept: np.ndarray) -> LinearFractionalForms:
        """Keep some of the K expressions."""
        above = self.numerator[kept], self.numerator_constant[kept]
        return LinearFractionalForms(
            *above, self.denominator[kept], self.denominator_constant[kept]
        )

    def negated(self) -> LinearFractionalForms:
        """Forms with the opposite values."""
        return replace(self, numerator=-self.numerator, numerator_constant=-self.numerator_constant)

    def columns(self, rows: np.ndarray) -> LinearFractionalForms:
        """Keep some of the N rows."""
        return replace(
            self, numerator=self.numerator[:, rows], denominator=self.denominator[:, rows]
        )


@dataclass(frozen=True)
class BoundConstraints:
    """K one-sided constraints, without open group slots, bound to data.

    Attributes
    ----------
    constraints : tuple of Constraint
    forms : LinearFractionalForms
        The bounded expressions; all zero for a constraint that was skipped.
    bound, sign : ndarray of shape (K,)
        Constraint k is ``sign * (value - bound) <= 0``, sign = 1 for <= and -1 for >=.
    n_rows : ndarray of int, shape (K,)
        Number of rows that each constraint depends on; 0 if it was skipped.
    """

    constraints: tuple[Constraint, ...]
    forms: LinearFractionalForms
    bound: np.ndarray
    sign: np.ndarray
    n_rows: np.ndarray

    def values(self, decided: np.ndarray) -> np.ndarray:
        """Values of shape (K,) at the decisions of all rows, nan if undefined or skipped."""
        n_decisions = 1 + self.forms.numerator.shape[1] // len(decided)
        return np.where(
            self.n_rows > 0, self.forms.values(indicators(decided, n_decisions)), np.nan
        )

    def subset(self, chosen: np.ndarray) -> BoundConstraints:
        """Keep some of the constraints."""
        kept = np.flatnonzero(chosen)
        constraints = tuple(self.constraints[k] for k in kept)
        numbers = self.bound[kept], self.sign[kept], self.n_rows[kept]
        return BoundConstraints(constraints, self.forms[kept], *numbers)

    def slack(self, values: np.ndarray) -> np.ndarray:
        """Distance of each value from its bound; negative if the bound is violated."""
        return self.sign * (self.bound - values)


def weight_rows(
    forms: LinearFractionalForms, bound: np.ndarray, sign: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Signed rows S and right-hand sides: constraint k is ``S[k] @ pi <= rhs[k]``.

    With a constant bound t, N/D <= t is N - tD <= 0, for D > 0 (Goh et al. 2016, Table
    2 and Appendix B): exact for linear and for linear-fractional expressions.
    """
    denominator = forms.denominator.multiply((-sign * bound)[:, None])
    rows = csr_array(forms.numerator.multiply(sign[:, None]) + denominator)
    return rows, sign * (bound * forms.denominator_constant - forms.numerator_constant)


def nonnegative_rows(signed: csr_array, rhs: np.ndarray) -> tuple[csr_array, csr_array, np.ndarray]:
    """Split signed rows into P, Q >= 0 with ``P @ pi + Q @ (1 - pi) <= gamma`` (Problem 1).

    No entry is positive in both P and Q.
    """
    P = signed.maximum(0)
    Q = (-signed).maximum(0)
    return csr_array(P), csr_array(Q), rhs + np.asarray(Q.sum(axis=1)).ravel()


def stacked(rows: Sequence[csr_array | None], n_indicators: int) -> csr_array:
    """Rows of shape (1, N) as one array, without zeros; None is a row of zeros."""
    empty = np.zeros(0, dtype=int), np.zeros(0)
    entries = [empty if row is None else (row.indices, row.data) for row in rows]
    indices, data = (np.concatenate(part) for part in zip(empty, *entries, strict=True))
    indptr = np.cumsum([0, *(len(columns) for columns, _ in entries)])
    table = csr_array((data, indices, indptr), shape=(len(rows), n_indicators))
    table.eliminate_zeros()
    return table
