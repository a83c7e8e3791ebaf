"""Small datasets, row by row."""

import numpy as np

from skbandit.measure import Columns, Data, Rows


def make_rows(label, weight=None, **columns):
    """Rows with labels 1, 0 and -1 (missing)."""
    label = np.array(label, dtype=np.int8)
    weight = np.ones(len(label)) if weight is None else np.array(weight, dtype=float)
    return Rows(Columns.read(columns, None, len(label)), label, weight)


def make_data(label, weight=None, **columns):
    """The same as the only dataset."""
    return Data(make_rows(label, weight, **columns), None, 1, [0, 1])
