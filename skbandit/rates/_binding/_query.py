"""Conditions on columns, written as strings: parsed, checked, then evaluated. Nothing is run.

The language is that part of a pandas query which cannot do harm: names of columns, literals,
comparisons, membership in a list of literals, arithmetic, ``and``, ``or`` and ``not``. The
values are those of ``DataFrame.eval(query, engine="python")``. Any other construction (a call,
an attribute, a subscript, ...) is an error before a column is read, so a string may come from a
configuration file.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

MAX_LENGTH = 10_000
"""Characters in a query, at most; longer ones are refused."""

MAX_DEPTH = 100
"""Nested operations in a query, at most; deeper ones are refused."""

MAX_EXPONENT = 100
"""Largest magnitude of an exponent, which must be a number; beyond it, powers are refused."""

_TOKEN = re.compile(
    r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?P<name>[^`]*)`|[&|@]"""
)

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_MEMBERSHIP = (ast.In, ast.NotIn)

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

_REFUSED: dict[type[ast.AST], str] = {
    ast.Call: "a call",
    ast.Attribute: "an attribute",
    ast.Subscript: "a subscript",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment",
    ast.IfExp: "an if expression",
    ast.JoinedStr: "an f-string",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.Starred: "a starred expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Is: "is",
    ast.IsNot: "is not",
}

ALLOWED = "names of columns, literals, comparisons, in, and, or, not, and arithmetic"


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
        >>> Query.parse("age > 30 & `born in` == 'CH'").columns
        ['age', 'born in']
        """
        if len(text) > MAX_LENGTH:
            raise QueryError(
                f"the query has {len(text)} characters, more than {MAX_LENGTH}: for a long list "
                "of values, write {column: [values]}"
            )
        source, names = _translated(text)
        try:
            with warnings.catch_warnings():  # about escapes such as "\d", which are kept as written
                warnings.simplefilter("ignore")
                tree = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise QueryError(_why_unparsed(text, error)) from error
        _check_depth(tree, text)
        _check(tree, text)
        found = {n.id: names.get(n.id, n.id) for n in ast.walk(tree) if isinstance(n, ast.Name)}
        if not found:
            raise QueryError(f"the query {text!r} names no column")
        return cls(text, tree, found)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order of appearance."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        found.sort(key=lambda name: (name.lineno, name.col_offset))
        return list(dict.fromkeys(self.names[name.id] for name in found))

    def evaluate(self, frame: pd.DataFrame) -> Any:
        """Value on a frame that holds all `columns`: one per row, not necessarily boolean."""
        columns = {name: frame[column] for name, column in self.names.items()}
        try:
            return _Evaluator(columns, self).value(self.tree)
        except QueryError:
            raise
        except Exception as error:  # operators of columns may raise anything
            raise QueryError(f"cannot evaluate the query {self.text!r}: {error}") from error


def _is(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return isinstance(node, kinds)


def _translated(text: str) -> tuple[str, dict[str, str]]:
    """Python source of a query, and the columns that its replaced identifiers stand for.

    As in pandas, ``&`` and ``|`` are ``and`` and ``or``, and `` `any name` `` is a column.
    """
    names: dict[str, str] = {}
    stem = "column"
    while stem in text:
        stem += "_"

    def replaced(found: re.Match[str]) -> str:
        token = found.group()
        if token == "@":
            raise QueryError(
                "a query cannot refer to Python variables with @, which are out of "
                "scope at fit: write the value, or pass a function"
            )
        if token[0] == "`":
            name = f"{stem}{len(names)}"
            names[name] = found.group("name")
            return f" {name} "
        return {"&": " and ", "|": " or "}.get(token, token)

    return _TOKEN.sub(replaced, " ".join(text.splitlines())), names


def _why_unparsed(text: str, error: BaseException) -> str:
    bare = _TOKEN.sub("", text)
    if re.search(r"(?<![=<>!:])=(?!=)", bare):
        return f"the query {text!r} is an assignment: compare with =="
    if isinstance(error, RecursionError | MemoryError):
        return f"the query {text!r} is nested too deeply"
    reason = error.msg if isinstance(error, SyntaxError) else error
    return f"cannot evaluate the query {text!r}: {reason}"


def _check_depth(tree: ast.expr, text: str) -> None:
    """Refuse deep trees, without recursion."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise QueryError(f"the query {text!r} is nested more than {MAX_DEPTH} levels deep")


def _check(node: ast.AST, text: str) -> None:
    """Raise an error unless a node and all nodes below it are allowed."""
    if isinstance(node, ast.Constant):
        _check_literal(node, text)
        return
    if _is(node, ast.Name, ast.Load):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if isinstance(node.op, ast.Pow):
            _check_exponent(node.right, text)
        _check_all([node.left, node.right], text)
        return
    if isinstance(node, ast.UnaryOp | ast.BoolOp):
        _check_all(node.values if isinstance(node, ast.BoolOp) else [node.operand], text)
        return
    if isinstance(node, ast.Compare):
        _check_compare(node, text)
        return
    if _is(node, ast.List, ast.Tuple):
        raise _refused("a list outside of a comparison by in, ==, or their opposites", text)
    name = _REFUSED.get(type(node))
    if name is None and isinstance(node, ast.BinOp):
        name = f"the operator {_symbol(node.op)}"
    raise _refused(name or f"{type(node).__name__}", text)


def _check_all(nodes: list[ast.expr], text: str) -> None:
    for node in nodes:
        _check(node, text)


def _symbol(op: ast.operator) -> str:
    known = {ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@"}
    return known.get(type(op), type(op).__name__)


def _refused(what: str, text: str) -> QueryError:
    return QueryError(
        f"the query {text!r} holds {what}; a query may hold {ALLOWED}. For anything else, pass a "
        "function of the attributes: where=lambda attributes: ..."
    )


def _check_literal(node: ast.Constant, text: str) -> None:
    value = node.value
    if isinstance(value, bytes | complex) or value is Ellipsis:
        raise _refused(f"{type(value).__name__} {value!r}", text)
    if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
        raise QueryError(f"the query {text!r} holds a number beyond the range of floats")


def _check_exponent(node: ast.expr, text: str) -> None:
    value = _literal(node)
    # bool is an int
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > MAX_EXPONENT:
        raise _refused(
            f"an exponent other than a number from -{MAX_EXPONENT} to {MAX_EXPONENT}", text
        )


def _check_compare(node: ast.Compare, text: str) -> None:
    """Check a chain of comparisons; lists must hold literals."""
    sides = [node.left, *node.comparators]
    for left, op, right in zip(sides, node.ops, node.comparators, strict=False):
        if type(op) not in _COMPARISONS and not isinstance(op, _MEMBERSHIP):
            raise _refused(_REFUSED[type(op)], text)
        if isinstance(op, _MEMBERSHIP) and not (_listed(right) or _is_text(right)):
            if not (_is_text(left) and _is(right, ast.Name)):
                raise QueryError(
                    f"the query {text!r}: {'not in' if _is(op, ast.NotIn) else 'in'} must be "
                    "followed by a list of literals, such as in ['a', 'b']"
                )
        if not isinstance(op, (*_MEMBERSHIP, ast.Eq, ast.NotEq)) and (
            _is(left, ast.List, ast.Tuple) or _is(right, ast.List, ast.Tuple)
        ):
            raise _refused("a list outside of a comparison by in, ==, or their opposites", text)
    for side in sides:
        if isinstance(side, ast.List | ast.Tuple):
            for element in side.elts:
                if _literal(element) is _NOT_LITERAL:
                    raise _refused("a list of anything but literals", text)
                _check(element, text)
        else:
            _check(side, text)


_NOT_LITERAL = object()


def _literal(node: ast.expr) -> Any:
    """Value of a literal, with a sign or not."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and _is(node.op, ast.USub, ast.UAdd):
        value = _literal(node.operand)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if _is(node.op, ast.USub) else value
    return _NOT_LITERAL


def _listed(node: ast.expr) -> bool:
    return _is(node, ast.List, ast.Tuple)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@dataclass(frozen=True)
class _Evaluator:
    """Values of checked trees."""

    columns: dict[str, pd.Series]
    query: Query

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.columns[node.id]
        if isinstance(node, ast.Compare):
            return self._chain(node)
        if isinstance(node, ast.BoolOp):
            return self._all_or_any(node)
        if isinstance(node, ast.UnaryOp):
            return self._signed(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.List | ast.Tuple):
            return [_literal(element) for element in node.elts]
        raise AssertionError(f"{ast.dump(node)} passed the check")  # no such node does

    def _chain(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        links = zip(sides, node.ops, node.comparators, strict=False)
        return self._joined(operator.and_, (self._compared(*link) for link in links), node)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        a, b = self.value(left), self.value(right)
        if isinstance(op, _MEMBERSHIP) or self._reads_as_member(left, op, right):
            among = self._member(a, b)
            return _opposite(among) if isinstance(op, ast.NotIn | ast.NotEq) else among
        return _COMPARISONS[type(op)](a, b)

    @staticmethod
    def _reads_as_member(left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        """Whether == and != with a text or a list mean membership, as in pandas."""
        terms = all(
            _is(side, ast.Name, ast.Constant, ast.List, ast.Tuple) for side in (left, right)
        )
        special = any(_listed(side) or _is_text(side) for side in (left, right))
        return isinstance(op, ast.Eq | ast.NotEq) and terms and special

    def _member(self, a: Any, b: Any) -> Any:
        column, values = (a, b) if isinstance(a, pd.Series) else (b, a)
        if not isinstance(column, pd.Series):
            raise QueryError(f"the query {self.query.text!r} compares two literals")
        if isinstance(values, pd.Series):  # a column among the values of another
            raise QueryError(f"the query {self.query.text!r}: in must be followed by a list")
        return self._among(column, values if isinstance(values, list) else [values])

    def _among(self, column: pd.Series, values: list[Any]) -> pd.Series:
        """Whether each value is listed: None matches missing values, text matches dates."""
        known = [value for value in values if value is not None]
        if pd.api.types.is_datetime64_any_dtype(column):
            known = [self._date(value, column) for value in known]
        found = column.isin(known)
        return found | column.isna() if len(known) < len(values) else found

    def _date(self, value: Any, column: pd.Series) -> pd.Timestamp:
        try:
            date = pd.Timestamp(value)
            return date if date.tzinfo is not None else date.tz_localize(column.dt.tz)
        except (TypeError, ValueError) as error:
            raise QueryError(
                f"the query {self.query.text!r} compares the dates of {column.name!r} with "
                f"{value!r}, which is not a date: write, for example, '2024-01-31'"
            ) from error

    def _all_or_any(self, node: ast.BoolOp) -> Any:
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return self._joined(join, map(self.value, node.values), node)

    def _joined(self, join: Callable[[Any, Any], Any], values: Iterator[Any], node: ast.AST) -> Any:
        joined = None
        for value in values:
            self._check_boolean(value, node)
            joined = value if joined is None else join(joined, value)
        return joined

    def _check_boolean(self, value: Any, node: ast.AST) -> None:
        if not (isinstance(value, bool | np.bool_) or pd.api.types.is_bool_dtype(value)):
            what = f"{value.dtype} values" if isinstance(value, pd.Series) else repr(value)
            raise QueryError(
                f"the query {self.query.text!r} takes {what} for conditions: and, or and not "
                "join comparisons and boolean columns"
            )

    def _signed(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not | ast.Invert):
            self._check_boolean(value, node)
            return _opposite(value)
        self._check_numeric(value)
        return operator.neg(value) if isinstance(node.op, ast.USub) else operator.pos(value)

    def _arithmetic(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        joins_texts = isinstance(node.op, ast.Add) and _texts(a) and _texts(b)
        if not joins_texts:
            self._check_numeric(a)
            self._check_numeric(b)
        value = _ARITHMETIC[type(node.op)](a, b)
        if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
            raise QueryError(f"the query {self.query.text!r} leaves the range of floats")
        return value

    def _check_numeric(self, value: Any) -> None:
        """Refuse texts, which Python multiplies and formats, and objects."""
        if isinstance(value, pd.Series):
            kind = pd.api.types.infer_dtype(value, skipna=True)
            if kind in _NUMBERS:
                return
            shown = f"a column of {kind} values"
        elif isinstance(value, int | float):  # and bool
            return
        else:
            shown = repr(value)
        raise QueryError(f"the query {self.query.text!r} calculates with {shown}: use numbers")


_NUMBERS = (
    "integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty",
    "datetime64", "datetime", "timedelta64", "timedelta",
)  # fmt: skip


def _texts(value: Any) -> bool:
    if isinstance(value, pd.Series):
        return bool(pd.api.types.infer_dtype(value, skipna=True) == "string")
    return isinstance(value, str)


def _opposite(value: Any) -> Any:
    return not value if isinstance(value, bool | np.bool_) else ~value
