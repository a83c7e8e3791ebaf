"""The rates of Goh et al. (2016), Tables 1 and 2, each as two 2-by-2 tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from skbandit.utils._validation import shortened

Where = str | Mapping[str, Any] | Callable[[Any], Any] | None
"""Row selection: None (all rows), a column or query, ``{column: value}``, or a function."""

On = Literal["train", "extra", "all"]
"""Dataset of a rate: the rows of X, those of X_extra, or both."""

Table = tuple[tuple[float, float], tuple[float, float]]
"""Contribution of a row: ``table[actual][predicted]``, 0 = negative and 1 = positive."""

_EVERY_ROW: Table = ((1, 1), (1, 1))
_NEGATIVES: Table = ((1, 1), (0, 0))
_POSITIVES: Table = ((0, 0), (1, 1))


@dataclass(frozen=True)
class Kind:
    """One kind of rate, numerator over denominator.

    Row j adds ``numerator[a][p]`` and ``denominator[a][p]``, times its weight, where p says
    whether its prediction is the class of the rate, and a whether its true label is, or the
    stored prediction of a reference model. Of a kind `of_pairs` the class is the one of the label:
    only whether label and prediction are equal counts. Kinds that compare with nothing have tables
    whose two rows are equal. If the columns of the denominator are equal, it does not depend on
    the predictions and the rate is linear in them; otherwise the rate is linear-fractional
    (precision, NPV, F1).

    Rows with a positive denominator are trials, and those with a positive numerator are
    successes. All successes have the same two cells, and all failures the same denominator,
    so the rate is an increasing function of the share of successes: see `of_share`. One success
    adds `success` to numerator and denominator, one failure adds `failure` to the denominator, and
    `fractional` says whether the denominator depends on the predictions.
    """

    name: str
    compares_with: Literal["nothing", "label", "reference"]
    numerator: Table
    denominator: Table
    greater_is_better: bool | None
    of_pairs: bool = False
    fractional: bool = field(init=False, repr=False, compare=False)
    success: tuple[float, float] = field(init=False, repr=False, compare=False)
    failure: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cells = [
            pair
            for above, below in zip(self.numerator, self.denominator, strict=True)
            for pair in zip(above, below, strict=True)
        ]
        successes = {(above, below) for above, below in cells if above > 0}
        failures = {below for above, below in cells if above == 0 and below > 0}
        if len(successes) != 1 or len(failures) > 1:
            raise ValueError(
                f"Kind {self.name!r}: confidence limits need one weight for all successes, not "
                f"{sorted(successes)}, and one for all failures, not {sorted(failures)}."
            )
        varies = any(negative != positive for negative, positive in self.denominator)
        object.__setattr__(self, "fractional", varies)
        object.__setattr__(self, "success", *successes)
        object.__setattr__(self, "failure", max(failures, default=1.0))

    @property
    def mirrored(self) -> Kind | None:
        """The kind that this one becomes if the classes change places, None if it has no name."""
        swapped = [tuple(row[::-1] for row in t[::-1]) for t in (self.numerator, self.denominator)]
        tables = {(k.numerator, k.denominator, k.compares_with): k for k in KINDS.values()}
        return tables.get((*swapped, self.compares_with))  # type: ignore[arg-type]

    def of_share(self, q: Any) -> Any:
        """Return the rate at a share q of successes among trials: q itself, except for F1.

        Parameters
        ----------
        q : float or ndarray
            Share of successes.

        Returns
        -------
        float or ndarray
        """
        (above, below), failure = self.success, self.failure
        return above * q / (below * q + failure - failure * q)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("positive_rate", "nothing", ((0, 1), (0, 1)), _EVERY_ROW, None),
        Kind("negative_rate", "nothing", ((1, 0), (1, 0)), _EVERY_ROW, None),
        Kind("recall", "label", ((0, 0), (0, 1)), _POSITIVES, True),
        Kind("true_negative_rate", "label", ((1, 0), (0, 0)), _NEGATIVES, True),
        Kind("false_positive_rate", "label", ((0, 1), (0, 0)), _NEGATIVES, False),
        Kind("false_negative_rate", "label", ((0, 0), (1, 0)), _POSITIVES, False),
        Kind("error_rate", "label", ((0, 1), (1, 0)), _EVERY_ROW, False, of_pairs=True),
        Kind("accuracy", "label", ((1, 0), (0, 1)), _EVERY_ROW, True, of_pairs=True),
        Kind("precision", "label", ((0, 0), (0, 1)), ((0, 1), (0, 1)), True),
        Kind("negative_predictive_value", "label", ((1, 0), (0, 0)), ((1, 0), (1, 0)), True),
        Kind("f1", "label", ((0, 0), (0, 2)), ((0, 1), (1, 2)), True),
        Kind("churn", "reference", ((0, 1), (1, 0)), _EVERY_ROW, False, of_pairs=True),
    )
}

COST_BY_LABEL = Kind("cost", "label", ((0, 0), (0, 1)), _EVERY_ROW, False)
"""Share of rows in some cells of the confusion matrix, which a cost multiplies."""

OUTCOME = Kind("outcome", "nothing", _EVERY_ROW, _EVERY_ROW, True)
"""Mean of a column that follows from the decision: known of logged decisions only."""

SPENT = Kind("cost", "nothing", ((0, 1), (0, 1)), _EVERY_ROW, False)
"""Cost of some decisions, whatever the label."""

CONFUSIONS: dict[str, Kind] = {
    normalize: Kind("confusion", "label", ((0, 0), (0, 1)), below, False)
    for normalize, below in (
        ("true", _POSITIVES),
        ("pred", ((0, 1), (0, 1))),
        ("all", _EVERY_ROW),
    )
}
"""Shares of one cell of the confusion matrix, by scikit-learn's `normalize`."""


@dataclass(frozen=True)
class Slot:
    """Placeholder for a group in `each`, `ratio` and `difference`; filled at fit."""

    columns: tuple[str, ...]
    index: int


@dataclass(frozen=True)
class ClassSlot:
    """Placeholder for a class in a form over classes: all, all decisions, or those listed."""

    among: str | tuple[Any, ...]
    index: int

    def labels(self, classes: Sequence[Any], decisions: Sequence[Any]) -> list[Any]:
        """Return the label that it stands for among these."""
        if isinstance(self.among, tuple):
            return list(self.among)
        return list(classes if self.among == "classes" else decisions)


@dataclass(frozen=True)
class AnyOf:
    """Several classes that count as one: see `any_of`."""

    labels: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"any_of({', '.join(map(repr, self.labels))})"


@dataclass(frozen=True)
class Cells:
    """The cells of a table of costs that have one cost, and the axes of the table.

    Attributes
    ----------
    pairs : tuple of (label, decision)
        The label is None if costs do not depend on it. No set, which skops does not trust.
    labels, decisions : tuple
        All that the table has; no labels if costs do not depend on them.
    negative : bool
        Whether that cost is below zero.
    """

    pairs: tuple[tuple[Any, Any], ...]
    labels: tuple[Any, ...]
    decisions: tuple[Any, ...]
    negative: bool = field(default=False, compare=False)


def value_text(value: Any) -> str:
    """Return a group, a class or a decision as text that can be seen, also if it is blank.

    Examples
    --------
    >>> value_text("north"), value_text(""), value_text(" ")
    ('north', '(empty)', "' '")
    """
    text = str(value)
    return text if text.strip() else repr(text) if text else "(empty)"


@dataclass(frozen=True)
class Member:
    """A filled `Slot`: the rows with these `values` in the `columns`, one value per column."""

    columns: tuple[str, ...]
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(value_text, self.values))

    @property
    def described(self) -> str:
        """The values with the names of their columns."""
        pairs = zip(self.columns, self.values, strict=True)
        return ", ".join(f"{column!r} = {value!r}" for column, value in pairs)


@dataclass(frozen=True, eq=False, repr=False)
class Atom:
    """One kind of rate on one selection of rows."""

    kind: Kind
    where: Where
    on: On
    weight: str | None
    reference: str | None = None
    group: Slot | Member | None = None
    of: Any = None
    without: Any = None
    decided: Any = None
    cells: Cells | None = None
    amount: str | None = None

    def __post_init__(self) -> None:
        if not (
            self.where is None or isinstance(self.where, str | Mapping) or callable(self.where)
        ):
            raise TypeError(
                f"where={shortened(repr(self.where))} does not select rows: pass a column or query "
                "(str), {column: value}, a function of the attributes, or None for all rows."
            )
        if isinstance(self.where, Mapping):
            object.__setattr__(self, "where", {k: _plain_value(v) for k, v in self.where.items()})
        if self.on not in ("train", "extra", "all"):
            raise ValueError(f"on={self.on!r} must be 'train', 'extra' or 'all'.")
        if not (self.weight is None or isinstance(self.weight, str)):
            raise TypeError(
                f"weight={self.weight!r} must be the name of an attribute column; pass an array "
                "of row weights as fit(..., sample_weight=...)."
            )
        if self.kind.compares_with == "reference" and not isinstance(self.reference, str):
            raise TypeError(
                f"{self.kind.name}({self.reference!r}): pass the name of the attribute column "
                "that holds the predictions of the reference model."
            )

    @property
    def fractional(self) -> bool:
        """True if the denominator depends on the predictions."""
        return self.kind.fractional or self.without is not None

    @property
    def greater_is_better(self) -> bool | None:
        """True if a positive coefficient is to be maximized; None for rates without direction."""
        if self.kind.name == "confusion":
            return bool(self.of == self.decided)
        if self.cells is not None:  # the entry of a table is part of the coefficient
            return self.cells.negative
        return self.kind.greater_is_better

    @property
    def needs_pos_label(self) -> bool:
        """True if the class that it is of is the positive one."""
        return self.of is None and self.cells is None and not self.kind.of_pairs

    @property
    def named(self) -> tuple[Any, ...]:
        """The classes and decisions that it names."""
        parts: tuple[Any, ...] = (self.of, self.without, self.decided)
        if self.cells is not None:
            parts += (*self.cells.labels, *self.cells.decisions)
        return tuple(
            label
            for part in parts
            if part is not None and not isinstance(part, ClassSlot)
            for label in (part.labels if isinstance(part, AnyOf) else (part,))
        )

    @property
    def condition(self) -> Any:
        """Equal for atoms with the same `where`."""
        return id(self.where) if callable(self.where) else repr(self.where)

    def __getstate__(self) -> dict[str, Any]:
        """Without the key, as another process has other functions."""
        return {name: value for name, value in vars(self).items() if name != "key"}

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for atoms that select and count the same rows."""
        function = self.condition if callable(self.where) else None
        types = tuple(map(type, self.named))  # True, 1 and 1.0 are equal
        names = self.of, self.decided, self.cells, self.amount
        return repr(self), self.group, function, *names, types

    def __repr__(self) -> str:
        shown = [] if self.reference is None else [repr(self.reference)]
        shown += [repr(self.amount)] if self.kind == OUTCOME else []
        confusions = CONFUSIONS if self.kind.name == "confusion" else {}
        normalize = next((name for name, kind in confusions.items() if kind == self.kind), None)
        if normalize is not None:
            shown += [repr(self.of), repr(self.decided)]
        if callable(self.where):  # without its address, which differs from run to run
            name = getattr(self.where, "__name__", None)
            unnamed = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(self.where))
            shown.append(name if isinstance(name, str) else unnamed)
        elif self.where is not None:
            shown.append(repr(self.where))
        if normalize is not None:
            shown += [] if normalize == "true" else [f"normalize={normalize!r}"]
        elif self.of is not None and not isinstance(self.of, ClassSlot):
            shown.append(f"of={self.of!r}")
        if self.without is not None:
            shown.append(f"without={self.without!r}")
        if self.on != "train":
            shown.append(f"on={self.on!r}")
        if self.weight is not None:
            shown.append(f"weight={self.weight!r}")
        return f"{self.kind.name}({', '.join(shown)})"


def has_slots(atom: Atom) -> bool:
    return isinstance(atom.group, Slot) or isinstance(atom.of, ClassSlot)


def read_class(label: Any, what: str) -> Any:
    """Return a class that a rate names, as a plain Python object; errors quote `what`."""
    if isinstance(label, AnyOf):
        return label
    if isinstance(label, list | tuple | set | frozenset | Mapping) or np.ndim(label):
        listed = ", ".join(repr(_plain_value(element)) for element in label)
        if what not in KINDS or KINDS[what].of_pairs:
            raise TypeError(f"{what}: [{listed}] is no label: pass one, or any_of({listed}).")
        raise TypeError(
            f"{what}(of=[{listed}]) could mean two things: each({what}, of=[{listed}]), one rate "
            f"per class, or {what}(of=any_of({listed})), where confusions among them do not count."
        )
    if isinstance(label, float) and label != label:
        raise ValueError(f"{what}: a missing label names no class.")
    return _plain_value(label)


def _plain_value(value: Any) -> Any:
    """Convert a value of `where` to plain Python objects, independent of the caller's."""
    if hasattr(value, "tolist"):  # numpy scalars and arrays, pandas and polars columns
        value = value.tolist()
    elif hasattr(value, "to_list"):
        value = value.to_list()
    return list(value) if isinstance(value, list | tuple | set | frozenset) else value
