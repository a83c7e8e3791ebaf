"""Conditions on columns, written as strings: parsed, checked, then evaluated. Nothing is run.

The language is the part of a pandas query that cannot do harm, with the values of
``DataFrame.eval(query, engine="python")``. Any other syntax (a call, an attribute, a subscript,
...) is refused before a column is read, so a string may come from a configuration file. Operators
are applied here, as `DataFrame.eval` of pandas 2 cannot calculate with nullable columns and that of
pandas 3 finds no date equal to a text.
"""

from __future__ import annotations

import ast
import numbers
import operator
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

MAX_LENGTH = 10_000
"""Characters in a query, at most; longer ones are refused."""

MAX_DEPTH = 100
"""Nested operations in a query, at most; deeper ones are refused."""

_TOKEN = re.compile(
    r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?P<name>[^`]*)`|[&|@]"""
)

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}

_ALLOWED = (
    *(ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple, ast.Compare, ast.In, ast.NotIn),
    *(ast.BoolOp, ast.UnaryOp, ast.Not, ast.Invert, ast.USub, ast.UAdd, *_OPERATORS),
)

_NUMBER_KINDS = (
    *("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"),
    *("datetime64", "datetime", "timedelta64", "timedelta"),
)

_NARROW = (np.float16, np.float32)

_PARSED = {
    "datetime64": ("dates", "2024-01-31"),
    "timedelta64": ("durations", "2 days"),
    "period": ("periods", "2024-01"),
    "time": ("times of day", "14:30"),
}
"""Kinds of columns as which a text is read: what they hold, and an example."""


class QueryError(ValueError):
    """A query that is malformed, refused, or does not fit the columns."""


@dataclass(frozen=True)
class Query:
    """A checked condition.

    Attributes
    ----------
    text : str
        As written.
    tree : ast.expr
        Its syntax tree, of allowed nodes only.
    names : dict of str to str
        Column that each identifier of the tree stands for.
    """

    text: str
    tree: ast.expr
    names: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Check a query without data.

        Examples
        --------
        >>> list(Query.parse("age > 30 & `born in` == 'CH'").names.values())
        ['age', 'born in']
        """
        if len(text) > MAX_LENGTH:
            raise QueryError(
                f"the query has {len(text)} characters, more than {MAX_LENGTH}: for a long list "
                "of values, write {column: [values]}"
            )
        source, quoted = _translate(text)
        try:
            with warnings.catch_warnings():  # about escapes such as "\d", which are kept as written
                warnings.simplefilter("ignore")
                tree = ast.parse(source.strip(), mode="eval").body
            _check(tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error
            if why is not error and re.search(r"(?<![=<>!:])=(?!=)", _TOKEN.sub("", text)):
                why = "it is an assignment: compare with =="
            raise QueryError(f"cannot evaluate the query {text!r}: {why}") from error
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        if not nodes:
            raise QueryError(f"the query {text!r} names no column")
        nodes.sort(key=lambda name: (name.lineno, name.col_offset))
        return cls(text, tree, {name.id: quoted.get(name.id, name.id) for name in nodes})

    @property
    def is_equality(self) -> bool:
        """True if it is one comparison by ==, which selects no row if no value is equal."""
        return isinstance(self.tree, ast.Compare) and isinstance(self.tree.ops[0], ast.Eq)

    @property
    def is_local(self) -> bool:
        """True if it holds a time without an offset, which is one of the zone of its column."""
        texts = (getattr(node, "value", None) for node in ast.walk(self.tree))
        return any(map(_is_local, texts))

    def texts(self) -> list[tuple[str, str]]:
        """Return columns and the texts that they are said to be equal to, or among, or not.

        Examples
        --------
        >>> Query.parse("age > 30 & sex in ['F', 'M']").texts()
        [('sex', 'F'), ('sex', 'M')]
        """
        texts = []
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                if isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                    names = [side.id for side in (left, right) if isinstance(side, ast.Name)]
                    values = [part for side in (left, right) for part in ast.walk(side)]
                    texts += [
                        (self.names[name], literal.value)
                        for name in names
                        for literal in values
                        if isinstance(literal, ast.Constant) and isinstance(literal.value, str)
                    ]
        return texts

    def evaluate(self, frame: pd.DataFrame) -> Any:
        """Return the value on a frame that holds all columns: one per row, of any type."""
        try:
            columns = {name: _plain_column(frame[column]) for name, column in self.names.items()}
            return _value(self.tree, columns)
        except Exception as error:  # operators of columns may raise anything
            raise QueryError(f"cannot evaluate the query {self.text!r}: {error}") from error


def _plain_column(column: pd.Series) -> pd.Series:
    """Return the column in nullable types of pandas; narrow floats stay in those of NumPy.

    With nullable types, ~(age > 30) is missing (rather than True) where age is missing.
    """
    if (dtype := _numpy_type(column)) in _NARROW:  # whose precision a conversion would hide
        return column.astype(dtype)
    try:
        column = column.convert_dtypes()
    except KeyError:  # Arrow's dates, durations, decimals and dictionaries
        column = column.array.__arrow_array__().to_pandas().rename(column.name).convert_dtypes()
    return column.astype("datetime64[s]") if _kind(column) == "date" else column


def _translate(text: str) -> tuple[str, dict[str, str]]:
    """Return Python source of a query, and the columns that its replaced identifiers stand for.

    As in pandas, ``&`` and ``|`` are ``and`` and ``or``, and `` `any name` `` is a column.
    """
    names: dict[str, str] = {}
    stem = "column"
    while stem in text:
        stem += "_"

    def translate(match: re.Match[str]) -> str:
        token = match.group()
        if token == "@":
            raise QueryError(
                "a query cannot refer to Python variables with @, which are out of "
                "scope at fit: write the value, or pass a function"
            )
        if token[0] == "`":
            name = f"{stem}{len(names)}"
            names[name] = match.group("name")
            return f" {name} "
        return {"&": " and ", "|": " or "}.get(token, token)

    return _TOKEN.sub(translate, " ".join(text.splitlines())), names


def _check(tree: ast.expr) -> None:
    """Refuse all syntax but the allowed one, and whatever could be large; without recursion."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        for node in level:
            signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd)
            if isinstance(node, ast.BinOp) or (signed and not _is_literal(node)):
                raise QueryError(
                    "arithmetic is refused: make the column first, as by attributes['new'] = ..., "
                    "and compare it"
                )
            if not isinstance(node, _ALLOWED):
                raise QueryError(
                    f"{type(node).__name__} is refused. A query may hold names of columns, "
                    "literals, comparisons, in, and, or and not; for anything else, pass a "
                    "function of the attributes: where=lambda attributes: ..."
                )
            if isinstance(node, ast.Constant):
                if not isinstance(node.value, str | int | float | None):
                    raise QueryError(f"{node.value!r} is refused: write a text or a number")
                if isinstance(node.value, int | float):
                    if not abs(node.value) <= sys.float_info.max:
                        raise QueryError("a number is beyond the range of floats")
            if isinstance(node, ast.List | ast.Tuple) and not all(map(_is_literal, node.elts)):
                raise QueryError("lists must hold literals")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise QueryError(f"it is nested more than {MAX_DEPTH} levels deep")


def _is_literal(node: ast.AST) -> bool:
    """Return if a node is a literal, with a sign or not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
        return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return isinstance(node, ast.Constant)


def _value(node: ast.expr, columns: dict[str, pd.Series]) -> Any:
    """Return the value of a checked tree: a Series, a literal or a list of literals."""
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.Constant | ast.List | ast.Tuple):
        return ast.literal_eval(node)
    if isinstance(node, ast.Compare):
        sides = [_value(side, columns) for side in (node.left, *node.comparators)]
        return reduce(operator.and_, map(_compare, sides, node.ops, sides[1:]))
    if isinstance(node, ast.BoolOp):
        return reduce(
            _OPERATORS[type(node.op)],
            [_condition(_value(operand, columns)) for operand in node.values],
        )
    assert isinstance(node, ast.UnaryOp)  # no other node passes the check
    if isinstance(node.op, ast.Not | ast.Invert):
        return _condition(_value(node.operand, columns)) ^ True
    return ast.literal_eval(node)


def _numpy_type(column: pd.Series | pd.Index) -> Any:
    return getattr(column.dtype, "numpy_dtype", column.dtype)


def _compare(a: Any, op: ast.cmpop, b: Any) -> Any:
    """Compare two sides; ``==`` and ``!=`` with a text or a list mean membership, as in pandas."""
    equal = isinstance(op, ast.Eq | ast.NotEq)
    listed = any(isinstance(side, str | list | tuple) for side in (a, b))
    if isinstance(op, ast.In | ast.NotIn) or (equal and listed):
        column, values = (a, b) if isinstance(a, pd.Series) else (b, a)
        if not listed or not isinstance(column, pd.Series):
            raise QueryError("in must follow a column, and a list of literals follow it")
        is_member = find_among(column, [values] if isinstance(values, str) else list(values))
        return ~is_member if isinstance(op, ast.NotIn | ast.NotEq) else is_member
    if any(isinstance(side, list | tuple) for side in (a, b)):
        raise QueryError("only in and == compare with a list")
    a, b = _beside(a, b, _kind(b)), _beside(b, a, _kind(a))
    try:
        return _OPERATORS[type(op)](_nullable(a), _nullable(b))
    except TypeError as error:
        for side, other in ((a, b), (b, a)):
            if isinstance(side, pd.Series) and not pd.api.types.is_numeric_dtype(side):
                if isinstance(other, int | float) or _kind(other) in _NUMBER_KINDS:
                    raise QueryError(
                        f"column {side.name!r} holds {_kind(side)} values, which have no order "
                        f"among numbers: convert it, as by "
                        f"pd.to_numeric(attributes[{side.name!r}], errors='coerce')"
                    ) from error
        raise


def find_among(column: pd.Series, values: list[Any]) -> pd.Series:
    """Return if each value of a column is listed: None matches missing values, a text dates."""
    if (kind := _kind(column)) != "string":  # whose conversion takes longer than all else
        column = _plain_column(column)
    held: Any = column
    if isinstance(column.dtype, pd.CategoricalDtype):
        held = column.cat.categories.rename(column.name)
    kind = kind if kind == "string" else _kind(held)
    targets = [
        _as_held(value, held, kind)
        for value in values
        if not (pd.api.types.is_scalar(value) and pd.isna(value))
    ]
    is_listed = _nullable(column).isin(targets)
    return is_listed | column.isna() if len(targets) < len(values) else is_listed


def _as_held(value: Any, held: pd.Series | pd.Index, kind: str) -> Any:
    """Return a listed value as a column holds it: `isin` finds none of another type."""
    if kind in _PARSED:
        try:
            if isinstance(value, numbers.Number):  # pandas would count nanoseconds
                raise TypeError
            return _parse_time(value, kind, held.dtype)
        except (TypeError, ValueError) as error:
            kinds, example = _PARSED[kind]
            raise QueryError(
                f"{held.name!r} holds {kinds} and {value!r} is not one: write, for example, "
                f"{example!r}"
            ) from error
    if isinstance(value, numbers.Number):
        return _beside(value, held, kind)
    is_mixed = kind.startswith("mixed") and any(isinstance(element, str) for element in held)
    if isinstance(value, str) and not (is_mixed or kind in ("string", "empty")):
        raise QueryError(
            f"{held.name!r} holds {kind} values and {value!r} is a text: write a value of that "
            "type, or pass a function of the attributes"
        )
    return value


def _parse_time(value: Any, kind: str, dtype: Any) -> Any:
    """Return a value, often a text, as a date, duration, period or time."""
    if kind == "time":
        return value if isinstance(value, time) else time.fromisoformat(value)
    if kind == "datetime64":
        parsed: Any = pd.Timestamp(value)
        zone = getattr(dtype, "tz", None)
        if parsed.tzinfo is not None and zone is None:
            raise TypeError  # an instant equals no date without a zone
        parsed = parsed if parsed.tzinfo is not None else parsed.tz_localize(zone)
    else:
        parsed = pd.Period(value, dtype.freq) if kind == "period" else pd.Timedelta(value)
    if parsed is pd.NaT:  # of ''
        raise ValueError
    return parsed


def _is_local(value: Any) -> bool:
    """Return if a text is a time without an offset."""
    try:
        return isinstance(value, str) and pd.Timestamp(value).tzinfo is None
    except ValueError:
        return False


def _beside(side: Any, other: Any, kind: str) -> Any:
    """Return a number as the column on the other side holds it; anything else as it is."""
    if not kind or not isinstance(side, numbers.Number):
        return side
    if kind in _PARSED and kind != "timedelta64":  # pandas compares a duration with 0
        return _as_held(side, other, kind)
    if kind == "string":
        raise QueryError(
            f"{other.name!r} holds texts, which do not compare with the number {side!r}: write "
            f"{str(side)!r}, or convert the column by pd.to_numeric"
        )
    if kind == "decimal":
        return Decimal(str(side)) if isinstance(side, float) else side
    if (dtype := _numpy_type(other)) not in _NARROW:
        return side
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(side, dtype=float).astype(dtype))
    return side if np.isinf(rounded) else rounded


def _nullable(side: Any) -> Any:
    """Return a column of narrow floats as one in which missing values are not compared."""
    is_narrow = isinstance(side, pd.Series) and side.dtype in _NARROW
    return side.astype("Float64") if is_narrow else side


def _condition(value: Any) -> Any:
    if isinstance(value, bool) or pd.api.types.is_bool_dtype(value):
        return value
    shown = f"{value.dtype} values" if isinstance(value, pd.Series) else repr(value)
    raise QueryError(f"and, or and not join comparisons and boolean columns, not {shown}")


def _kind(value: Any) -> str:
    is_column = isinstance(value, pd.Series | pd.Index)
    return pd.api.types.infer_dtype(value, skipna=True) if is_column else ""
