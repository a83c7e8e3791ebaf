"""Declared goals as claims on sums of units, each of which rows are counted for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import skbandit.rates
from skbandit.exceptions import EmptyRateError
from skbandit.measure import Data, atom_weights, rows_of_atom, tables, trials_of
from skbandit.rates import Constraint, Rate
from skbandit.rates._kinds import OUTCOME, SPENT, Atom, Cells, ClassSlot, Slot

Range = tuple[float, float]

NO_CLASS = "\0"
"""A class that no row has, and so what rows count for one that comes later."""

LONGEST_GOAL = 10_000
"""Characters of a goal that is read."""

OVERSHOOT = 1e-9
"""Rounding error by which weighted amounts may exceed their range, in units of it."""

_READABLE: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, eq=False)
class Unit:
    """One rate, of all groups and classes of a form, or the terms of one table of costs.

    Attributes
    ----------
    terms : tuple of (float, Atom)
        Of a row, the sum of its shares in the atoms, times these, is what the unit is the mean of.
    low, high : float
        Least and largest value of a row.
    """

    terms: tuple[tuple[float, Atom], ...]
    low: float = 0.0
    high: float = 1.0

    @property
    def atom(self) -> Atom:
        """An atom that selects the rows."""
        return self.terms[0][1]

    @property
    def counted(self) -> bool:
        """True if rows are successes or not, so that counts tell all."""
        return len(self.terms) == 1 and self.atom.amount is None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of its groups."""
        return self.atom.group.columns if isinstance(self.atom.group, Slot) else ()

    @property
    def needs_label(self) -> bool:
        """True if rows count when their label is known."""
        return self.atom.kind.compares_with == "label"

    def classes(self, data: Data) -> list[Any]:
        """Return the classes that it has a rate of, and None: all rows, or a class without any."""
        if not isinstance(of := self.atom.of, ClassSlot):
            return [None]
        labels = of.labels(data.classes, data.decisions)
        return [None, *(x for x in labels if x is not None and x in data.decisions)]

    def atoms(self, of: Any, data: Data) -> list[tuple[float, Atom]]:
        """Return coefficients and atoms, of one class, without groups."""
        if of is None:
            of = NO_CLASS if isinstance(self.atom.of, ClassSlot) else self.atom.of
        atoms = []
        for c, atom in self.terms:
            atom = replace(atom, group=None, of=of)
            if atom.kind == OUTCOME:  # known of the decisions that were made
                cells = Cells(tuple((None, d) for d in data.decisions), (), data.decisions)
                atom = replace(atom, kind=SPENT, cells=cells)
            atoms.append((c, atom))
        return atoms

    def selected(self, data: Data) -> np.ndarray:
        """Return if each row can count, whatever its decision and label."""
        return atom_weights(replace(self.atom, group=None), data.train) > 0

    def denominator(self, of: Any, data: Data) -> np.ndarray:
        """Return if rows count, by label and decision."""
        return tables(self.atoms(of, data)[0][1], data)[1] > 0

    def shares(self, of: Any, data: Data, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the share in [0, 1], and weight, of each row at its decision."""
        total, weight = np.zeros(len(decided)), np.zeros(len(decided))
        if self.atom.kind == OUTCOME:
            rows = data.train
            has_value = np.isfinite(rows.numbers(self.atom.amount or "", repr(self.atom)))
            data = replace(data, train=replace(rows, weight=rows.weight * has_value))
        try:
            if self.counted and self.atom.cells is None:
                trials = trials_of(self.atoms(of, data)[0][1], data, decided)
                total[trials.rows], weight[trials.rows] = trials.counted
                return total, weight
            for c, atom in self.atoms(of, data):
                counted = rows_of_atom(atom, data)
                above, below = (part[:, 0] for part in counted.counts(decided))
                weight = np.zeros(len(decided))
                weight[counted.rows] = below
                share = np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
                total[counted.rows] += c * share
        except EmptyRateError:
            return total, np.zeros(len(decided))
        width = self.high - self.low
        outside = (weight > 0) & (np.abs(total - self.low - width / 2) > width * (0.5 + OVERSHOOT))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"{self.atom!r} is {total[row]:g} in row {row}, outside of its range "
                f"({self.low:g}, {self.high:g}): correct ranges=, which is of all possible values."
            )
        return np.clip((total - self.low) / width, 0.0, 1.0), weight

    def failures(self, of: Any, data: Data, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and weights as with the label that is worst for each row."""
        bad = -1.0 if self.atom.kind.greater_is_better else 1.0
        worst, share, weight = np.zeros((3, len(decided)))
        for code in range(len(data.classes)):
            rows = replace(data.train, label=np.full(len(decided), code))
            x, w = self.shares(of, replace(data, train=rows), decided)
            harm = 1.0 + np.where(w > 0, bad * (x - 0.5), 0.0)
            worse = harm > worst
            share, weight, worst = (
                np.where(worse, new, old) for new, old in ((x, share), (w, weight), (harm, worst))
            )
        return share, weight


@dataclass(frozen=True, eq=False)
class Piece:
    """A unit in a claim: its coefficients above and below, and which group and class it is of."""

    unit: int
    above: float
    below: float
    group: int
    of: int


@dataclass(frozen=True, eq=False)
class Claim:
    """One side of a declared goal, by the numbers of the side and of the goal."""

    number: int
    goal: int
    constraint: Constraint
    pieces: tuple[Piece, ...]
    constant: float
    rest: float

    @property
    def rate(self) -> Rate:
        """The bounded expression."""
        return self.constraint.rate

    @property
    def sign(self) -> float:
        """1 for >=, -1 for <=."""
        return 1.0 if self.constraint.sense == ">=" else -1.0


def read_claims(
    goals: Iterable[Constraint], ranges: Mapping[str, Range]
) -> tuple[list[Unit], list[Claim]]:
    """Return units, each once, and the claims that are made of them."""
    units: dict[Any, Unit] = {}
    claims: list[Claim] = []

    def pieces(rate: Rate, below: bool) -> list[Piece]:
        parts: dict[Any, list[tuple[float, Atom]]] = {}
        for c, atom in rate.terms:
            if atom.kind == OUTCOME or atom.cells is not None:  # one amount per row
                what = atom.amount if atom.kind == OUTCOME else "cost"
                parts.setdefault((what, atom.condition, atom.weight, atom.group), []).append(
                    (c, atom)
                )
            else:
                parts[len(parts)] = [(c, atom)]
        listed = []
        for terms in parts.values():
            c, atom = terms[0]
            slots = (
                atom.group.index if isinstance(atom.group, Slot) else 0,
                atom.of.index if isinstance(atom.of, ClassSlot) else 0,
            )
            if atom.cells is None:
                terms = [(1.0, atom)]
            else:
                c = 1.0
            unit = _unit([(k, _first(part)) for k, part in terms], ranges)
            key = tuple((k, atom.key) for k, atom in unit.terms), unit.columns
            number = list(units).index(key) if key in units else len(units)
            units.setdefault(key, unit)
            listed.append(Piece(number, 0.0 if below else c, c if below else 0.0, *slots))
        return listed

    for number, goal in enumerate(goals):
        for side in goal.one_sided():
            rate = side.rate.map_atoms(lambda atom: replace(atom, on="train"))
            parts = pieces(replace(rate, denominator=None), below=False)
            divisor = rate.denominator
            if divisor is not None:
                parts += pieces(divisor, below=True)
            rest = 1.0 if divisor is None else divisor.constant
            of_side = side, tuple(parts), rate.constant, rest
            claims.append(Claim(len(claims), number, *of_side))
    return list(units.values()), claims


def _first(atom: Atom) -> Atom:
    """Return the atom in the first group or class of a form."""
    group = replace(atom.group, index=0) if isinstance(atom.group, Slot) else atom.group
    of = replace(atom.of, index=0) if isinstance(atom.of, ClassSlot) else atom.of
    return replace(atom, group=group, of=of)


def _unit(terms: list[tuple[float, Atom]], ranges: Mapping[str, Range]) -> Unit:
    """Return a unit with the range of a row's value: a row is in at most one cell of a table."""
    low, high = 0.0, 1.0
    if terms[0][1].cells is not None or terms[0][1].amount is not None:
        ends = [0.0]
        for c, atom in terms:
            if atom.amount is not None and atom.amount not in ranges:
                raise ValueError(
                    f"{atom!r} is in the unit of column {atom.amount!r}: pass "
                    f"ranges={{{atom.amount!r}: (smallest, largest possible value)}}."
                )
            ends += [c * end for end in (ranges[atom.amount] if atom.amount else (1.0,))]
        if terms[0][1].kind == OUTCOME:
            ends = ends[1:]
        low, high = min(ends), max(ends)
    for _, atom in terms:
        if atom.weight is not None and atom.weight not in ranges:
            raise ValueError(
                f"{atom!r} weights rows by column {atom.weight!r}: pass "
                f"ranges={{{atom.weight!r}: (0, largest possible weight)}}."
            )
    return Unit(tuple(terms), low, high if high > low else low + 1.0)


def read_goal(text: str) -> Constraint:
    """Return the constraint that its text declares, without evaluating anything else.

    Examples
    --------
    >>> read_goal("ratio(recall, by='sex') >= 0.8")
    ratio(recall, by='sex') >= 0.8
    """

    def read(node: ast.AST) -> Any:
        match node:
            case ast.Expression(body=body):
                return read(body)
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in skbandit.rates.__all__:
                return getattr(skbandit.rates, name)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                function = abs if name == "abs" else read(ast.Name(name))
                named = {word.arg: read(word.value) for word in keywords if word.arg}
                return function(*map(read, args), **named)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _READABLE:
                return _READABLE[type(op)](read(left), read(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -read(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _READABLE:
                return _READABLE[type(op)](read(left), read(right))
            case ast.List(elts=elements):
                return [read(element) for element in elements]
            case ast.Tuple(elts=elements):
                return tuple(map(read, elements))
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {read(k): read(v) for k, v in zip(keys, values, strict=True) if k}
        raise ValueError(f"{ast.unparse(node)!r} is not part of a goal.")

    try:
        if len(text) > LONGEST_GOAL:
            raise ValueError(f"it has {len(text)} characters, and {LONGEST_GOAL} are the most")
        goal = read(ast.parse(text, mode="eval"))
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the goal {text!r:.200} cannot be read: {error}") from error
    if not isinstance(goal, Constraint):
        raise ValueError(f"{text!r:.200} is not a goal, such as 'recall() >= 0.9'.")
    return goal
