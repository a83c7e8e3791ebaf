"""One value per event: labels of the chosen arms, or probabilities of the logged actions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs import Codes, code_labels
from skbandit.utils._messages import first_few

# How pandas calls numbers stored as objects that are not all integers.
_FLOATING = ("floating", "mixed-integer-float", "decimal")


def are_labels(values: pd.Series | np.ndarray, arms: Collection[Any]) -> bool:
    """Whether one value per event is the label of the chosen arm, not a probability.

    Parameters
    ----------
    values : Series or ndarray of shape (n_events,)
        Only floats can be probabilities; integers, booleans, strings, categories and all other
        values are labels.
    arms : collection of labels
        Arms of the log.

    Returns
    -------
    bool
        Floats are labels if each is an arm and they do not all lie in [0, 1].

    Raises
    ------
    ValueError
        If the floats could be either: each is an arm of the log, and all lie in [0, 1]; or if
        the array is structured.
    """
    names = getattr(values.dtype, "names", None)
    if names is not None:
        raise ValueError(
            f"probabilities is a structured array with fields {first_few(names)}: pass "
            "pandas.DataFrame(probabilities), with one column per arm."
        )
    series = pd.Series(values)
    if not _has_floats(series):
        return True
    distinct = series.dropna().unique().tolist()
    known = set(arms)
    if not distinct or not all(value in known for value in distinct):
        return False
    if all(0 <= value <= 1 for value in distinct):
        raise ValueError(
            f"the values {first_few(sorted(distinct))} are both arms of the log and numbers in "
            "[0, 1]: for labels of the chosen arms, pass integers, strings or a pandas "
            "Categorical; for probabilities, pass a table with one column per arm."
        )
    return True


def require_probabilities(values: pd.Series | np.ndarray, name: str) -> None:
    """Require floats for a column that is said to hold probabilities."""
    if not _has_floats(pd.Series(values)):
        found = pd.Series(values)
        raise ValueError(
            f"column {name!r} holds {found.dtype} values such as {found.iloc[0]!r}, which look "
            "like labels of chosen arms: pass a column with the probabilities of the logged "
            "actions, as floats."
        )


def certain(labels: pd.Series | np.ndarray, n_events: int, codes: Codes) -> np.ndarray:
    """Probabilities (n_events, n_arms) of a policy that is certain to choose the given labels.

    Labels that are not arms of the log extend `codes`.
    """
    if len(labels) != n_events:
        raise ValueError(
            f"there are {len(labels)} labels of chosen arms for {n_events} events: pass one "
            "label per event."
        )
    arms = list(codes)
    choice = code_labels(labels, codes, "the label of the chosen arm")
    if (choice >= len(arms)).all():
        new = list(codes)[len(arms) :]
        raise ValueError(
            f"none of the chosen labels, {first_few(new)}, is an arm of the log, "
            f"{first_few(arms)}: pass labels as the log writes them, or floats for the "
            "probabilities of the logged actions."
        )
    of_arms = np.zeros((n_events, len(codes)))
    of_arms[np.arange(n_events), choice] = 1.0
    return of_arms


def _has_floats(series: pd.Series) -> bool:
    """Whether the values are floats, also if stored as objects."""
    if series.dtype == object:
        return pd.api.types.infer_dtype(series, skipna=True) in _FLOATING
    return bool(pd.api.types.is_float_dtype(series.dtype))
