"""Values that users pass by mistake, in the place of a table, of a column or of an option."""

import datetime
import decimal

import numpy as np
import pandas as pd
import scipy.sparse as sp


def _with(value, n_rows, n_columns, dtype=object):
    table = np.ones((n_rows, n_columns), dtype=dtype)
    table[n_rows // 2, 0] = value
    return table


def tables(good):
    """Hostile tables beside one that is good, by name."""
    frame = pd.DataFrame(good).reset_index(drop=True)
    n, d = frame.shape
    numbers = np.arange(n * d, dtype=float).reshape(n, d) % 7
    labels = list(frame.columns)
    nested = pd.MultiIndex.from_product([["x"], range(d)])
    return {
        "none": None,
        "number": 3,
        "text": "table",
        "dict": {"a": 1},
        "class": dict,
        "generator": (row for row in numbers),
        "empty list": [],
        "ragged": [[1.0], [1.0, 2.0]] * (n // 2),
        "no rows": frame.iloc[:0],
        "no columns": frame.iloc[:, :0],
        "one row less": frame.iloc[1:],
        "one row": frame.iloc[:1],
        "one column more": np.hstack([numbers, numbers[:, :1]]),
        "one column less": numbers[:, 1:],
        "flat": numbers[:, 0],
        "scalar array": np.array(1.0),
        "cube": numbers[:, :, None],
        "strings": np.full((n, d), "x"),
        "bytes": np.full((n, d), b"x"),
        "numbers as strings": numbers.astype(str),
        "objects": np.full((n, d), object()),
        "a list in a cell": _with([1, 2], n, d),
        "None in a cell": _with(None, n, d),
        "NA in a cell": _with(pd.NA, n, d),
        "text in a cell": _with("x", n, d),
        "decimals": _with(decimal.Decimal("0.5"), n, d),
        "nan": _with(np.nan, n, d, float),
        "inf": _with(np.inf, n, d, float),
        "-inf": _with(-np.inf, n, d, float),
        "huge": _with(1e308, n, d, float),
        "all huge": numbers * 1e306,
        "all tiny": numbers * 5e-324,
        "a huge int": _with(10**400, n, d),
        "constant": np.zeros((n, d)),
        "complex": numbers + 1j,
        "dates": np.full((n, d), np.datetime64("2026-01-01")),
        "a date": _with(datetime.date(2026, 1, 1), n, d),
        "durations": np.full((n, d), np.timedelta64(1, "s")),
        "categories": pd.DataFrame(numbers, columns=labels).astype(str).astype("category"),
        "nullable with NA": pd.DataFrame(
            {name: pd.array([1, None] * (n // 2), dtype="Int64") for name in labels}
        ),
        "twice the same name": pd.DataFrame(numbers, columns=["same"] * d),
        "other names": pd.DataFrame(numbers, columns=[f"other {k}" for k in range(d)]),
        "mixed names": pd.DataFrame(numbers, columns=[0, "one", *range(2, d)][:d]),
        "nested names": pd.DataFrame(numbers, columns=nested),
        "reversed names": frame[labels[::-1]],
        "sparse": sp.csr_array(numbers),
        "sparse, nan": sp.csr_array(_with(np.nan, n, d, float)),
        "sparse, by columns": sp.csc_matrix(numbers),
        "sparse, of objects' shape": sp.coo_array(numbers[:, :1]),
        "structured": np.zeros(n, dtype=[("x", float), ("y", float)]),
        "masked": np.ma.masked_less(numbers, 2),
    }


def columns(good):
    """Hostile columns beside one that is good, by name."""
    good = np.asarray(good)
    n = len(good)
    numbers = np.arange(n, dtype=float) % 7
    return {
        "none": None,
        "number": 3,
        "text": "column",
        "dict": {"a": 1},
        "class": dict,
        "generator": (value for value in good),
        "empty list": [],
        "one row less": good[1:],
        "one row": good[:1],
        "table": np.column_stack([good, good]),
        "scalar array": np.array(1.0),
        "strings": np.full(n, "x"),
        "numbers as strings": numbers.astype(str),
        "objects": np.full(n, object()),
        "a list in a cell": _with([1, 2], n, 1)[:, 0],
        "None in a cell": _with(None, n, 1)[:, 0],
        "NA in a cell": _with(pd.NA, n, 1)[:, 0],
        "NaT in a cell": _with(pd.NaT, n, 1)[:, 0],
        "text in a cell": _with("x", n, 1)[:, 0],
        "nan": _with(np.nan, n, 1, float)[:, 0],
        "inf": _with(np.inf, n, 1, float)[:, 0],
        "huge": _with(1e308, n, 1, float)[:, 0],
        "all huge": numbers * 1e306,
        "a huge int": _with(10**400, n, 1)[:, 0],
        "negative": -1 - numbers,
        "zeros": np.zeros(n),
        "thirds": numbers / 3,
        "complex": numbers + 1j,
        "dates": np.full(n, np.datetime64("2026-01-01")),
        "durations": np.full(n, np.timedelta64(1, "s")),
        "categories": pd.Series(good).astype(str).astype("category"),
        "categories with NA": pd.Series([1, None] * (n // 2)).astype("category"),
        "nullable with NA": pd.array([1, None] * (n // 2), dtype="Int64"),
        "nullable booleans with NA": pd.array([True, None] * (n // 2), dtype="boolean"),
        "sparse": sp.csr_array(numbers[None]),
        "set": set(numbers),
    }


def options():
    """Hostile options, by name."""
    return {
        "none": None,
        "text": "some text",
        "no text": "",
        "bytes": b"some bytes",
        "zero": 0,
        "one": 1,
        "two": 2,
        "negative": -1,
        "half": 0.5,
        "three halves": 1.5,
        "nan": np.nan,
        "inf": np.inf,
        "NA": pd.NA,
        "a huge int": 10**400,
        "complex": 1j,
        "a date": datetime.date(2026, 1, 1),
        "true": True,
        "number of numpy": np.float64(0.5),
        "empty list": [],
        "numbers": [0.5, 0.25],
        "texts": ["x", "y"],
        "the same twice": ["a", "a"],
        "nested": [[1], [2, 3]],
        "none in a list": [None],
        "nan in a list": [np.nan],
        "pair": (1, 2),
        "dict": {"a": 1},
        "no dict": {},
        "set": {"a"},
        "array": np.arange(3.0),
        "table": np.eye(3),
        "scalar array": np.array(1.0),
        "frame": pd.DataFrame({"a": [1.0, 2.0]}),
        "series": pd.Series([1.0, 2.0]),
        "sparse": sp.csr_array(np.eye(3)),
        "object": object(),
        "class": dict,
        "class of tables": pd.DataFrame,
        "function": lambda value: value,
        "generator": (value for value in [1, 2]),
    }
