"""The same table, and the same column, in all forms in which users hold them."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pl = pytest.importorskip("polars", reason="polars is not installed")

# Of a DataFrame of small whole numbers with string names.
TABLES = {
    "list": lambda frame: frame.to_numpy().tolist(),
    "array": lambda frame: frame.to_numpy(dtype=np.float64),
    "float32": lambda frame: frame.to_numpy(dtype=np.float32),
    "float16": lambda frame: frame.to_numpy(dtype=np.float16),
    "int8": lambda frame: frame.astype(np.int8),
    "int64": lambda frame: frame.to_numpy(dtype=np.int64),
    "by columns": lambda frame: np.asfortranarray(frame.to_numpy(dtype=np.float64)),
    "strided": lambda frame: np.repeat(frame.to_numpy(dtype=np.float64), 2, axis=0)[::2],
    "backwards": lambda frame: frame.to_numpy(dtype=np.float64)[::-1].copy()[::-1],
    "read-only": lambda frame: _locked(frame.to_numpy(dtype=np.float64)),
    "big-endian": lambda frame: frame.to_numpy(dtype=">f8"),
    "objects": lambda frame: frame.astype(object),
    "nullable": lambda frame: frame.astype("Int64"),
    "nullable floats": lambda frame: frame.astype("Float64"),
    "pyarrow": lambda frame: frame.astype("int64[pyarrow]"),
    "each column its own": lambda frame: frame.astype(
        dict(zip(frame, ["int8", "float32", "Int64"], strict=True))
    ),
    "categories": lambda frame: frame.astype("category"),
    "other index": lambda frame: frame.set_axis(range(len(frame), 0, -1)),
    "index of one label": lambda frame: frame.set_axis([7] * len(frame)),
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
}
SPARSE = {
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "stored zeros": lambda frame: _with_zeros(sp.csr_array(frame)),
}

# Of an array of whole numbers.
COLUMNS = {
    "list": lambda values: values.tolist(),
    "tuple": lambda values: tuple(values.tolist()),
    "series": pd.Series,
    "shuffled index": lambda values: pd.Series(values, index=range(len(values), 0, -1)),
    "int8": lambda values: values.astype(np.int8),
    "float32": lambda values: values.astype(np.float32),
    "objects": lambda values: values.astype(object),
    "nullable": lambda values: pd.Series(values, dtype="Int64"),
    "pyarrow": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "read-only": lambda values: _locked(values.copy()),
    "polars": lambda values: pl.Series(values.tolist()),
}


if find_spec("pyarrow") is None:  # pandas asks for it
    del TABLES["pyarrow"], COLUMNS["pyarrow"]


def _locked(array):
    array.flags.writeable = False
    return array


def _with_zeros(matrix):
    stored = matrix.tolil().tocsr()
    return sp.csr_array(stored) + 0 * sp.csr_array(np.ones(stored.shape))
