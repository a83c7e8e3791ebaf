"""Groups of rows with a threshold each: found at fit, looked up at prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.rates._binding import Columns, Data
from skbandit.utils._messages import first_few

UNKNOWN = -1
"""Code of a row whose group was not found at fit."""


@dataclass(frozen=True)
class Grouping:
    """The groups that have a threshold.

    Attributes
    ----------
    columns : tuple of str
        Attribute columns whose values, or combinations of values, are the groups.
    groups : tuple of tuple
        The values of each group, in the order of `columns`. All None, the last one, is for rows
        with a missing value, if fit had some.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[Any, ...], ...]

    @classmethod
    def find(cls, by: Any, data: Data, *, missing: bool = True) -> Grouping:
        """Find the groups on the rows of positive weight.

        Parameters
        ----------
        by : str or sequence of str
            The parameter of the estimator.
        data : Data
            The rows of X, and of X_extra if passed.
        missing : bool
            Whether rows with a missing value, if there are some, share a threshold of their own.
        """
        names = read_by(by)
        ons = {"train"} if data.extra is None else {"all"}
        found = data.groups(names, ons, f"by={by!r}")  # type: ignore[arg-type]
        groups = tuple(group.values for group in found)
        if missing and data.without_group(names, ons, f"by={by!r}"):  # type: ignore[arg-type]
            groups += ((None,) * len(names),)
        return cls(names, groups)

    def codes(self, columns: Columns) -> np.ndarray:
        """Number of the group of each row; UNKNOWN for values not found at fit."""
        known = {values: code for code, values in enumerate(self.groups)}
        joint, distinct = _distinct(columns.several(self.columns, self._context))
        none = known.get((None,) * len(self.columns), UNKNOWN)
        code = np.array(
            [none if None in values else known.get(values, UNKNOWN) for values in distinct],
            dtype=np.int64,
        )
        return code[joint]

    def known_codes(self, columns: Columns) -> np.ndarray:
        """Number of the group of each row; an error names rows without a known group."""
        codes = self.codes(columns)
        if (codes == UNKNOWN).any():
            self._blame(columns, codes == UNKNOWN)
        return codes

    def check_present(self, columns: Columns, counted: np.ndarray, name: str) -> None:
        """Require a group for each of the rows `counted` at fit."""
        missing = columns.several(self.columns, self._context).isna().to_numpy() & counted[:, None]
        if missing.any():
            self._blame_missing(missing, name)

    def index(self) -> pd.Index:
        """The groups as an index."""
        if len(self.columns) == 1:
            return pd.Index([values[0] for values in self.groups], name=self.columns[0])
        return pd.MultiIndex.from_tuples(self.groups, names=self.columns)

    @property
    def _context(self) -> str:
        return f"by={self.columns[0] if len(self.columns) == 1 else list(self.columns)!r}"

    def _blame(self, columns: Columns, unknown: np.ndarray) -> None:
        frame = columns.several(self.columns, self._context)
        missing = frame.isna().to_numpy()
        if missing.any():
            self._blame_missing(missing, "")
        row = int(np.flatnonzero(unknown)[0])
        _, distinct = _distinct(frame.iloc[[row]])
        raise ValueError(
            f"{self._context}: row {row} is of group {_named(self.columns, distinct[0])}, which "
            f"has no threshold: fit saw only {self._listed()}. Fit with rows of that group, or "
            "give rare groups one value in common before fit and predict."
        )

    def _blame_missing(self, missing: np.ndarray, name: str) -> None:
        row, column = map(int, np.argwhere(missing)[0])
        raise ValueError(
            f"{self._context}: column {self.columns[column]!r}{name} is missing in "
            f"{int(missing.any(axis=1).sum())} rows, row {row} first, and each row needs a group: "
            "give missing values one of their own, such as 'unknown', before fit and predict."
        )

    def _listed(self) -> str:
        shown = [one[0] if len(one) == 1 else one for one in self.groups]
        return first_few(shown, most=10)


def read_by(by: Any) -> tuple[str, ...]:
    """Names of columns, from the parameter `by`."""
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, Sequence) or not names:
        raise TypeError(f"by must be a column or a list of columns, got {by!r}.")
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"by must name columns by strings, got {by!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"by={by!r} names a column twice.")
    return tuple(names)


def _distinct(frame: pd.DataFrame) -> tuple[np.ndarray, list[tuple[Any, ...]]]:
    """Code of each row, and the combination of values that each code stands for."""
    joint = np.zeros(len(frame), dtype=np.int64)
    parts: list[list[Any]] = []
    for name in frame.columns:
        codes, values = pd.factorize(frame[name], use_na_sentinel=True)
        parts.append([*pd.Index(values).tolist(), None])  # the code of missing values is -1
        joint = joint * len(parts[-1]) + np.where(codes < 0, len(parts[-1]) - 1, codes)
    occurring, joint = np.unique(joint, return_inverse=True)
    combinations = []
    for code in occurring.tolist():
        chosen: list[Any] = []
        for part in reversed(parts):
            code, place = divmod(code, len(part))
            chosen.insert(0, part[place])
        combinations.append(tuple(chosen))
    return joint, combinations


def _named(columns: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(columns, values, strict=True))
