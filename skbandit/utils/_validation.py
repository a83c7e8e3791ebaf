"""Input checks, text for their messages, and warnings."""

from __future__ import annotations

import math
import re
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from itertools import islice
from numbers import Real
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn import pipeline
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel

_PASSED = {"skbandit", "sklearn", "joblib", "contextlib", "functools"}
"""Packages between a user's line and a warning."""

ROUNDING = 1e-12
"""Rounding error of a sum, as of costs, or of probabilities that add up to 1."""

RATE_TOL = 1e-9
"""Rounding error allowed in a rate: a bound missed by more than this is violated. Objectives, and
relative differences of sums that are the same but for rounding, too."""

MOST_EQUAL_ROWS = 2**53
"""Number of equal rows beyond which weights count none: floats are no longer exact."""

TOO_FEW_ROWS = 20
"""Rows below which none is said to be far from all others."""

SAMPLED = 500
"""Rows by which columns with a wild value are sought."""

ALONE = 1000.0
"""Distance from the median, relative to that of all others, that makes a value wild."""

_OF_WORKERS = {"threading", "concurrent", "multiprocessing", "runpy"}
"""Packages that begin the stack of a joblib worker."""

TOLD_AGAIN = frozenset(10**k for k in range(1, 10))
"""Numbers of fits of one search at which a warning that they share is shown again."""

_alike: WeakKeyDictionary[Parallel, Counter[tuple[str, type[Warning]]]] = WeakKeyDictionary()
_told: ContextVar[set[tuple[str, type[Warning]]] | None] = ContextVar("told", default=None)
_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line: the first one outside skbandit and what it is called through.

    In a thread of joblib, it is the line of the main thread, which waits there. Other processes
    do not know it, so there it is the line in this package. In the fits of one search, texts that
    differ in their numbers only are given once, and again after 10, 100, ... fits.
    """
    if issubclass(category, _silenced.get()):
        return
    told = _told.get()
    if told is not None:
        if (message, category) in told:
            return
        told.add((message, category))
    caller = sys._getframe(1)
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    n_alike = _count_alike(message, category, caller, main)
    if n_alike > 1:
        if n_alike not in TOLD_AGAIN:
            return
        message = f"{message} ({n_alike} fits of this search so far.)"
    frame = _line_of_user(caller) or _line_of_user(main) or caller
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__") or "<string>",
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _count_alike(message: str, category: type[Warning], *stacks: FrameType | None) -> int:
    """Return how often fits of one search, or of one cross-validation, warned like this; else 1.

    The search is its `Parallel` of joblib, of which each one makes another.
    """
    for frame in stacks:
        in_fold = False
        while frame is not None:
            in_fold = in_fold or frame.f_code.co_name == "_fit_and_score"
            parallel = frame.f_locals.get("self") if in_fold else None
            if isinstance(parallel, Parallel):
                alike = _alike.setdefault(parallel, Counter())
                kind = (re.sub(r"-?\d[\d.,]*(e[-+]\d+)?", "#", message), category)
                alike[kind] += 1
                return alike[kind]
            frame = frame.f_back
    return 1


def _line_of_user(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside of what warnings pass; None without any."""
    while frame is not None:
        module = frame.f_globals.get("__package__") or frame.f_globals.get("__name__") or ""
        package = module.partition(".")[0]
        if package not in _PASSED | _OF_WORKERS:
            return frame
        frame = frame.f_back
    return None


def called_by(*rooms: str) -> bool:
    """Return whether code of some rooms of this package is on the stack, such as a fit of folds."""
    frame: FrameType | None = sys._getframe(1)
    names = tuple(f"skbandit.{room}" for room in rooms)
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(names):
        frame = frame.f_back
    return frame is not None


@contextmanager
def told_once() -> Iterator[None]:
    """Give each warning of this package once, however often a loop repeats what causes it."""
    token = _told.set(set())
    try:
        yield
    finally:
        _told.reset(token)


@contextmanager
def silenced(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings, which do not count as given in `told_once`."""
    token = _silenced.set((*_silenced.get(), category))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category)
            yield
    finally:
        _silenced.reset(token)


def check_squares(X: Any, name: str = "X") -> None:
    """Require a finite sum of squares of an array or sparse matrix."""
    entries = np.asarray(X.data if issparse(X) else X, dtype=np.float64)
    if not math.isfinite(np.vdot(entries, entries)):
        raise ValueError(
            f"{name} has entries as large as {np.abs(entries).max():g}, whose squares overflow: "
            "rescale them."
        )


def no_score(cure: str) -> property:
    """Return what stands for `score` in a policy: an error that says what to search by.

    A search asks for `score` by `hasattr` in scikit-learn's `check_scoring`, which hides the text
    of an AttributeError; a Pipeline in between hides that of any error, and a warning tells it.
    """

    def score(policy: Any) -> Any:
        """No method: the value of a policy depends on a log, and is estimated by a scorer."""
        message = (
            f"{type(policy).__name__} has no score: the value of a policy is estimated from a "
            f"log. In a search, pass {cure}."
        )
        asking = sys._getframe(1)
        if asking.f_code.co_name == "check_scoring":
            raise TypeError(message)
        if asking.f_code.co_filename == pipeline.__file__:
            warn(message, UserWarning)
        raise AttributeError(message)

    return property(score)


def warn_if_blanks_differ(labels: Iterable[Any], name: str) -> None:
    """Warn of labels that are apart by blanks around them only."""
    written: dict[str, str] = {}
    for label in labels:
        if isinstance(label, str) and (first := written.setdefault(label.strip(), label)) != label:
            warn(
                f"{name} has the labels {first!r} and {label!r}, which count as two: if they are "
                "one, strip the blanks, as by str.strip().",
                UserWarning,
            )
            return


def warn_of_wild_row(X: Any, names: Sequence[Any] | None = None) -> None:
    """Warn of a row so far from all others that it sets the scale of a linear model.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Finite numbers; a sparse matrix is not looked at.
    names : sequence, default=None
        Names of the columns.
    """
    if issparse(X) or len(X) < TOO_FEW_ROWS or not X.shape[1]:
        return
    rows = np.asarray(X)
    sample = rows[:: max(len(rows) // SAMPLED, 1)]
    middle = np.median(sample, axis=0)
    usual = np.quantile(np.abs(sample - middle), 0.99, axis=0, method="lower")
    away = np.maximum(rows.max(axis=0) - middle, middle - rows.min(axis=0))
    for column in np.flatnonzero(away > ALONE * usual).tolist():
        distance = np.abs(rows[:, column] - middle[column])
        farthest = distance[distance > 1e-9 * abs(middle[column])]  # others differ by rounding
        few = min(max(len(farthest) // 100, 2), len(farthest))
        farthest = np.sort(np.partition(farthest, len(farthest) - few)[len(farthest) - few :])
        times = (farthest[1:] / farthest[:-1]).max(initial=0.0)
        if times >= ALONE:
            row = int(distance.argmax())
            warn(
                f"row {row}: column {column if names is None else names[column]!r} holds "
                f"{rows[row, column]:.3g}, {times:.1g} times as far from the median as all but a "
                "few rows. It sets the scale by which linear models see the others, whose "
                "decisions suffer: check it for another unit, or drop the row.",
                UserWarning,
            )
            return


def finite(value: Any, name: str) -> float:
    """Return a real number as a float, which must be finite: 10**400 is not."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}={value!r} must be a number.") from error
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite and at most 1.8e308: {name} is beyond.")
    return number


def at_most_1(probabilities: Any) -> np.ndarray:
    """Probabilities, of which those above 1 by a rounding error of their sum are 1."""
    p = np.asarray(probabilities, dtype=np.float64)
    return np.where((p > 1.0) & (p <= 1.0 + ROUNDING), 1.0, p)


def check_not_masked(values: Any, name: str) -> None:
    """Refuse masked arrays: NumPy would pass on what is behind the mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array: drop the rows that are masked, or pass {name}.filled(...)."
        )


def method_that_loads(table: Any) -> str | None:
    """Return the method that loads a lazy table of Dask or polars; None for one in memory.

    It is one of the class, as a column may have the same name.
    """
    kind = type(table)
    if hasattr(kind, "to_delayed") and hasattr(kind, "divisions"):  # of Dask, not its arrays
        return "compute"
    return "collect" if hasattr(kind, "collect") and hasattr(kind, "columns") else None


def in_memory(table: Any) -> Any:
    """Return a table or column, loaded if it is a lazy one."""
    method = method_that_loads(table)
    return table if method is None else getattr(table, method)()


def refuse_lazy(
    tables: Mapping[str, Any], cure: str = "", methods: Collection[str] = ("compute", "collect")
) -> None:
    """Require tables in memory.

    Parameters
    ----------
    tables : mapping of str to object
        By the names of their parameters.
    cure : str
        End of the message, from a comma or semicolon on: what takes lazy tables.
    methods : collection of str
        See `method_that_loads`. By "compute" alone, Dask's tables are refused.
    """
    for name, table in tables.items():
        method = method_that_loads(table)
        if method in methods:
            raise TypeError(
                f"{name} is a lazy {type(table).__name__} of {type(table).__module__.split('.')[0]}"
                f": pass a sample that fits in memory, as by {method}(){cure}."
            )


def dtype_names(values: Any) -> list[str]:
    """Names of the dtypes of a table's columns, in lower case; of an array or list, of its one."""
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        dtypes = list(values.dtypes)
    else:
        dtypes = [values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype]
    return [str(getattr(dtype, "name", dtype)).lower() for dtype in dtypes]


def warn_if_wrapped(values: Any, numbers: Any, name: str) -> None:
    """Warn of unsigned integers in the upper half of their range, as by negation of small ones.

    Parameters
    ----------
    values : array-like, DataFrame or sparse matrix
        As passed, with the dtypes that conversion to float loses.
    numbers : ndarray or sparse array
        The same as floats, nan where missing; the columns are those of a table.
    name : str
        Name of the parameter.
    """
    if not ((numbers.data if issparse(numbers) else numbers) >= 2.0**7).any():
        return  # at once, as for an event in service
    dtypes = dtype_names(values)
    alike = len(set(dtypes)) == 1
    for k, dtype in enumerate(dtypes[:1] if alike else dtypes):
        bits = re.search(r"uint(8|16|32|64)", dtype)
        if bits is None:
            continue
        part = numbers if alike else numbers[:, k]
        part = part.data if issparse(part) else part
        high = part >= 2.0 ** (int(bits[1]) - 1)
        if high.any():
            warn(
                f"{name} holds {part[high][0]:.20g} as {bits[0]}, which has no negative numbers: "
                f"the negative of 1 is {2 ** int(bits[1]) - 1}. If {name} was negated, convert it "
                f"to floats before, as in -y.astype(float); if not, pass floats, without this "
                "warning.",
                UserWarning,
            )
            return


def as_contexts(X: Any) -> Any:
    """Contexts; a table without columns as an array, which checks can read."""
    if X is None:
        raise ValueError(
            "X is None: a policy needs contexts with one row per event; if there are none, pass "
            "np.empty((n_events, 0))."
        )
    none = hasattr(X, "columns") and np.shape(X)[1:] == (0,)
    return np.empty(np.shape(X)) if none else X


@contextmanager
def explained_entries(X: Any, consumer: str, *, numbers: bool = False) -> Iterator[None]:
    """Name strings, lists or missing values of X, and the cure, in the error that they cause.

    With `numbers`, X is read as such: times would be counts of a unit that a file may change.
    """
    refuse_lazy({"X": X}, methods=["collect"])
    dates = (
        "X has dates{}: pass numbers, such as the days since one of them, or leave the column out."
    )
    if numbers and (times := _times_of(X)):
        raise ValueError(dates.format(times[0]))
    try:
        yield
    except TypeError as error:
        at = _column_where(
            X,
            lambda column: (
                pd.api.types.is_datetime64_any_dtype(column.dtype)
                or any(isinstance(value, date) for value in column.head(100))
            ),
        )
        if not at:
            raise
        raise ValueError(dates.format(at)) from error
    except ValueError as error:
        reason, where = str(error), f"in a Pipeline with {consumer}"
        if consumer.endswith("Pipeline"):
            where = "as a step of the Pipeline"
        causes = {
            "could not convert string to float": (
                "has strings{}, such as {value}: encode them, as by OneHotEncoder("
                "handle_unknown='ignore') {where}.",
                lambda column: not pd.api.types.is_numeric_dtype(column.dtype),
            ),
            "setting an array element with a sequence": (
                "has lists{}: pass a column per entry, as by pandas.DataFrame(lists.tolist()).",
                lambda column: len(column) > 0 and np.ndim(column.iloc[0]) > 0,
            ),
            "contains NaN": (
                "contains NaN{}: fill what is missing, as by SimpleImputer(add_indicator=True) "
                "{where}.",
                lambda column: column.hasnans,
            ),
        }
        value = reason.partition("float:")[2].strip().rstrip(".")
        for cause, (message, is_at_fault) in causes.items():
            if cause in reason:
                text = message.format(_column_where(X, is_at_fault), value=value, where=where)
                raise ValueError(f"X {text}") from error
        raise


def _times_of(X: Any) -> list[str]:
    """Say where a table or an array has times by its types, for a message."""
    if hasattr(X, "column_names"):  # of Arrow
        names, kinds = X.column_names, [str(kind) for kind in X.schema.types]
    else:
        names = getattr(X, "columns", [None])
        kinds = dtype_names(X) if hasattr(X, "dtype") or hasattr(X, "columns") else ["object"]
    return [
        "" if name is None else f" in the column {name!r}"
        for name, kind in zip(names, kinds, strict=True)
        if kind.startswith(("date", "time", "duration", "period"))
    ]


def _column_where(X: Any, condition: Callable[[pd.Series], bool]) -> str:
    """Name, for a message, of the first column of a DataFrame that meets a condition."""
    if not isinstance(X, pd.DataFrame):
        return ""
    return next((f" in the column {name!r}" for name, x in X.items() if condition(x)), "")


def same_columns(before: Iterable[Any], now: Iterable[Any], what: str, cure: str) -> list[int]:
    """Return where the columns before are now, in any order; refuse others, and repeated ones."""
    expected, names = dict.fromkeys(before), list(now)
    place = {name: k for k, name in enumerate(names)}
    faults = {
        "repeats {}": [name for k, name in enumerate(names) if place[name] != k],
        "has {}, too": [name for name in names if name not in expected],
        "lacks {}": [name for name in expected if name not in place],
    }
    for fault, wrong in faults.items():
        if wrong:
            raise ValueError(f"{what} {fault.format(first_few(wrong))}: {cure}")
    return [place[name] for name in expected]


def plain(value: Any) -> Any:
    """Return a scalar as a plain Python object, None if it is missing; others as they are."""
    value = value.item() if hasattr(value, "item") else value
    return None if value is None or value is pd.NA or value != value else value


def as_labels(values: Any, name: str) -> list[Any]:
    """Return a list of hashable labels; a string is a single label and is refused."""
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    flat = hasattr(values, "columns") or getattr(values, "ndim", 1) == 1
    if not (several and flat):
        raise TypeError(f"{name} must be a list of labels, got {values!r}.")
    labels = list(values)
    for label in labels:
        try:
            hash(label)
        except TypeError as error:
            raise TypeError(f"{name} must be labels, found {label!r}: {error}.") from error
    return labels


def warn_if_reordered(tables: Mapping[str, Any]) -> None:
    """Warn about pandas objects that hold the same row labels in different orders.

    Rows are matched by position, so such objects are nearly always matched wrongly. The LazyFrames
    of polars, whose rows are not there yet, are refused.

    Parameters
    ----------
    tables : mapping of str to object
        Objects with one row per sample, by the names of their parameters; objects without a
        pandas index are ignored, and a dict stands for its columns.
    """
    refuse_lazy(tables, methods=["collect"])
    labels: list[tuple[str, pd.Index]] = []
    for name, table in tables.items():
        parts = {name: table}
        if isinstance(table, dict):
            parts = {f"{name}[{column!r}]": values for column, values in table.items()}
        for part, values in parts.items():
            if isinstance(values, pd.DataFrame | pd.Series):
                labels.append((part, values.index))
    for name, index in labels[1:]:
        other, reference = labels[0]
        if len(index) != len(reference) or index.equals(reference):
            continue
        codes, labels_of = reference.append(index).factorize(use_na_sentinel=False)
        both = codes.reshape(2, -1)
        counts, other_counts = (np.bincount(part, minlength=len(labels_of)) for part in both)
        if np.array_equal(counts, other_counts):  # the same labels, each as often
            row = int(np.flatnonzero(both[0] != both[1])[0])
            cure = "If the labels identify the rows, put both tables in one order first"
            if index.is_unique:
                cure = f"{cure}: pass {name.split('[')[0]}.reindex({other}.index)"
            warn(
                f"{name} and {other} have the same row labels in different orders (row {row} is "
                f"labeled {index[row]} and {reference[row]}), and rows are matched by "
                f"position. {cure}; if they do not, pass both with .reset_index(drop=True).",
                UserWarning,
            )
            return


def check_level(level: Any) -> None:
    """Require a confidence level strictly between 0 and 1."""
    is_number = isinstance(level, Real)
    if not (is_number and 0 < level < 1):
        raise ValueError(f"confidence_level={level!r} must lie between 0 and 1.")


def check_row_weights(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Return nonnegative finite weights of shape (n_rows,), ones for None."""
    if values is None:
        return np.ones(n_rows)
    check_not_masked(values, name)
    weights = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name=name, ensure_min_samples=0
    )
    if weights.ndim != 1:
        raise ValueError(f"{name} must be 1D with one weight per row, got shape {weights.shape}.")
    if len(weights) != n_rows:
        raise ValueError(f"{name} has {len(weights)} entries for {n_rows} rows.")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"{name} must not be negative: row {row} has {weights[row]:g}.")
    check_squares(weights, name)
    if not weights.any():
        raise ValueError(f"{name} must not be zero for every row.")
    return weights


def without_unit(weight: np.ndarray) -> np.ndarray:
    """Weights for learners, whose penalties have no unit.

    Whole numbers are numbers of equal rows, but for a common divisor. Others have a mean of 1, and
    are 1 to the last bit if they are equal.
    """
    if (weight == np.floor(weight)).all() and weight.max() < MOST_EQUAL_ROWS:
        return weight / int(np.gcd.reduce(weight.astype(np.int64)))
    weight = weight / weight.max()
    return weight / weight[weight > 0].mean()


def first_few(values: Iterable[Any], most: int = 5) -> str:
    """Return the first values, comma-separated, followed by "..." if some are left out.

    Examples
    --------
    >>> first_few(["a", "b", "c"], most=2)
    "'a', 'b', ..."
    """
    few = islice(values, most + 1)
    # NumPy's scalars as Python's, whose repr is shorter
    shown = [value.item() if hasattr(value, "item") else value for value in few]
    return ", ".join([*map(repr, shown[:most]), *["..."][: len(shown) - most]])


def shortened(text: str, most: int = 400) -> str:
    """Return the text without its middle if it is longer than `most` characters.

    Examples
    --------
    >>> shortened("recall('age > 30 and age < 40')", most=19)
    "recall( ... < 40')"
    """
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def text_of_shares(shares: list[Any], most: int = 12) -> str:
    """Return the share of each decision, and that without constraints, as a sentence.

    Examples
    --------
    >>> text_of_shares([["call", 0.2, 0.5], ["none", 0.8, 0.5]], most=1)
    'decided: none 80.0% (without constraints 50.0%), ...'
    """
    frequent = sorted(shares, key=lambda share: -share[1]) if len(shares) > most else shares
    parts = [
        f"{label} {share:.1%}" + ("" if plain is None else f" (without constraints {plain:.1%})")
        for label, share, plain in frequent[:most]
    ]
    return f"decided: {', '.join(parts)}{', ...' * (len(shares) > most)}"
