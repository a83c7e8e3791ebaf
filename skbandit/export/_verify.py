"""Verify a graph before it is returned: on the rows at hand, and on ones made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import shortened

ROUNDING = 1e-5
"""Relative margin up to which decisions of float32 and of float64 may differ."""

ROUNDED = 1e-3
"""Share of rows whose decision may change as their numbers become float32."""

MADE = 200
"""Rows that are changed at a time, and columns."""

UNSEEN = "a value that no row has"

Rows = tuple[Any, Any]
"""X and attributes."""

CURES = (
    "skl2onnx converts it to something else. Fill missing values before with an imputer without "
    "indicators, give encoders all categories, or take another learner: the table on the page "
    '"Run a rule elsewhere" says what is equal.'
)


def rounded(X: Any) -> Any:
    """Return rows whose numbers are those of a graph, of float32."""
    if not hasattr(X, "columns"):
        numbers = np.asarray(X).dtype.kind == "f"
        return np.asarray(X, dtype=np.float32).astype(np.asarray(X).dtype) if numbers else X
    X = X.copy()
    for name in X.select_dtypes("float").columns:
        X[name] = X[name].astype("float32").astype(X[name].dtype)
    return X


def guarded_columns(exported: Any, session: Any, rows: Rows) -> list[Any]:
    """Return the columns in which a missing value is to be an error of a graph.

    Those in which `predict` refuses one, and those without any that the graph decides otherwise.
    """
    X, attributes = rounded(rows[0]), rows[1]
    if np.ndim(X) != 2:
        return []
    few = _part(X, slice(0, MADE)), _part(attributes, slice(0, MADE))

    def is_equal(asked: Rows) -> bool:
        try:
            return not len(_beyond_rounding(exported.differences(session, asked)))
        except Exception:  # of whatever type a runtime raises
            return False

    guarded = []
    for name in _names(X):
        values = X[name] if hasattr(X, "columns") else np.asarray(X)[:, name]
        for missing in _missing(X, name):
            asked = _changed(few[0], name, missing), few[1]
            is_new = not pd.isna(values).any()
            if not _runs(exported, asked) or (is_new and not is_equal(asked)):
                guarded.append(name)
    return guarded


def _beyond_rounding(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that differ by more than float32 does."""
    return table[table["margin"] > ROUNDING * np.maximum(table["scale"], 1.0)]


def made_rows(rows: Rows, refused: list[Any]) -> Iterator[tuple[str, Rows]]:
    """Yield what is asked, and rows: with missing and unseen values, and borders of float32."""
    X, attributes = rows
    yield "of X", rows
    if np.ndim(X) != 2:
        return
    few = _part(X, slice(0, MADE)), _part(attributes, slice(0, MADE))
    n = count_rows(few[0])
    for name in _names(X):
        values = X[name] if hasattr(X, "columns") else np.asarray(X)[:, name]
        for missing in [] if name in refused else _missing(X, name):
            yield f"with a missing {name!r}", (_changed(few[0], name, missing), few[1])
        if pd.api.types.is_float_dtype(values):
            distinct = np.unique(np.asarray(values, dtype=float)[np.isfinite(values)])
            if len(distinct) > 1:
                between = np.float32((distinct[1:] + distinct[:-1]) / 2)
                steps = [
                    between,
                    *(np.nextafter(between, np.float32(x)) for x in (-np.inf, np.inf)),
                ]
                ends = np.resize(np.concatenate(steps, dtype=float), n)
                yield f"between two values of {name!r}", (_changed(few[0], name, ends), few[1])
        elif values.dtype == object or isinstance(values.dtype, pd.StringDtype):
            yield f"with an unseen {name!r}", (_changed(few[0], name, UNSEEN), few[1])


def _names(X: Any) -> list[Any]:
    return list(X.columns if hasattr(X, "columns") else range(np.shape(X)[1]))[:MADE]


def _part(X: Any, rows: slice) -> Any:
    if isinstance(X, dict):
        return {name: _part(column, rows) for name, column in X.items()}
    if X is None:
        return None
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]


def _missing(X: Any, name: Any) -> list[Any]:
    """Return the missing value of a column, or nothing if it cannot have one."""
    values = X[name] if hasattr(X, "columns") else np.asarray(X)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return [np.nan] if pd.api.types.is_float_dtype(values.dtype) else []
    return [pd.NA if isinstance(values.dtype, pd.StringDtype) else None]


def _changed(X: Any, name: Any, value: Any) -> Any:
    if hasattr(X, "columns"):
        X = X.copy()
        X[name] = pd.Series(value, index=X.index, dtype=X[name].dtype)
        return X
    X = np.array(X)
    X[:, name] = value
    return X


def _runs(exported: Any, rows: Rows) -> bool:
    try:
        exported.predict(rows)
    except Exception:  # of whatever type a step raises
        return False
    return True


def require_equal(exported: Any, session: Any, rows: Rows, refused: list[Any]) -> None:
    """Raise a ValueError where a graph decides otherwise than its model, beyond rounding.

    Parameters
    ----------
    exported : Exported
        The model.
    session : object
        A runtime of the graph.
    rows : Rows
    refused : list
        Columns in which a missing value is an error of the graph.
    """
    n, exact = count_rows(rows[0]), (rounded(rows[0]), rows[1])
    for what, asked in made_rows(exact, refused):
        if not _runs(exported, asked):
            continue
        try:
            beyond = _beyond_rounding(exported.differences(session, asked))
        except Exception as error:
            raise ValueError(
                f"{exported.differing_step(exact[0])}: the graph does not run on rows {what}, "
                f"which predict takes: {shortened(str(error), 200)}. {CURES}"
            ) from error
        if len(beyond):
            raise ValueError(
                f"{exported.differing_step(asked[0])}: the graph decides otherwise than predict in "
                f"{len(beyond)} of {count_rows(asked[0])} rows {what}, such as row "
                f"{beyond['row'].iloc[0]}: {CURES}"
            )
    if (changed := int((exported.predict(rows) != exported.predict(exact)).sum())) > ROUNDED * n:
        raise ValueError(
            f"the decisions of {changed} of {n} rows change as numbers become float32, of seven "
            "digits: subtract a constant, or pass whole numbers as such in a DataFrame."
        )
