"""Figures of rates and constraints at given predictions: all that reports print."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from skbandit.rates._binding._confidence import effective_rows
from skbandit.rates._binding._data import Data
from skbandit.rates._binding._forms import MET
from skbandit.rates._binding._metric import count
from skbandit.rates._expression import Rate

SMALL_DENOMINATOR = 20
"""Effective number of rows in a denominator below which a warning names the rate.

With fewer, the standard error of a rate of .8 exceeds .09.
"""


def value_and_rows(rate: Rate, data: Data, positive: np.ndarray) -> tuple[float, float]:
    """Value of a rate without open slots, nan if undefined, and the effective number of rows.

    Parameters
    ----------
    rate : Rate
        Expression whose denominators hold rows for some predictions.
    data : Data
        The n rows it is measured on.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1.
    """
    return count(rate, data, positive), effective_rows(rate, data, positive)


def satisfied(slack: np.ndarray, measured: np.ndarray) -> pd.Series:
    """Whether slacks are nonnegative up to rounding; missing if not measured."""
    return pd.Series(pd.array(slack >= -MET, dtype="boolean")).where(measured)


def warn_of_few(labels: Sequence[str], effective: Iterable[float], stacklevel: int) -> None:
    """Name, in one warning, the rates that few rows decide."""
    few = [
        f"{label} ({rows:.3g})"
        for label, rows in zip(labels, effective, strict=True)
        if 0 < rows < SMALL_DENOMINATOR
    ]
    if few:
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        warnings.warn(
            f"Fewer than {SMALL_DENOMINATOR} rows are in the denominator of {', '.join(few[:5])}"
            f"{more} (effective number in parentheses): on new rows the value may differ much; "
            "see the interval.",
            UserWarning,
            stacklevel=stacklevel,
        )
