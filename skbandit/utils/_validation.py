"""Checks of input that several rooms share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array


def check_row_weights(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Nonnegative finite weights of shape (n_rows,); None means ones."""
    if values is None:
        return np.ones(n_rows)
    weights = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name=name, ensure_min_samples=0
    )
    if weights.ndim != 1:
        raise ValueError(f"{name} must be 1D with one weight a row, got shape {weights.shape}.")
    if len(weights) != n_rows:
        raise ValueError(f"{name} has {len(weights)} entries for {n_rows} rows.")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"{name} must not be negative: row {row} has {weights[row]:g}.")
    if not weights.any():
        raise ValueError(f"{name} must not be zero for every row.")
    return weights
