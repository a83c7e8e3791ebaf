"""Periods by calendar, times as they are written, and the windows that a monitor tests."""

from __future__ import annotations

import math
import re
import time as clock
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.logs import read_times
from skbandit.utils._validation import finite, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CLOCK_ERROR = 60.0
"""Seconds by which clocks may differ."""

DAY, WEEK = 86400.0, 7 * 86400.0

WEEKDAYS = ("W-MON", "W-TUE", "W-WED", "W-THU", "W-FRI", "W-SAT", "W-SUN")
"""Weeks that begin on a day; 1970-01-05 was a Monday."""

MONDAY = 4

YEAR = 364 * DAY
"""52 weeks, for which `false_alarms` is promised."""

LENGTHS = (1, 2, 4, 8, 13, 26)
"""Lengths of windows in weeks, or in periods longer than a week."""

LOOKS = 7
"""Windows of one length overlap: each is tested about this often before it has passed."""

FIRST_SHARE = 0.05
"""Share of the error that is for the days before a first whole week."""

CENTURY = 946684800.0, 4102444800.0
"""Seconds since 1970 of the years 2000 and 2100."""

LOOKS_LIKE = (
    (1900, 2101, "years: pass pandas.to_datetime(time, format='%Y')"),
    (10_000, 35_000, "days since 1970: pass pandas.to_datetime(time, unit='D')"),
    (35_000, 80_000, "days of Excel: pass pandas.to_datetime(time, unit='D', origin='1899-12-30')"),
    (19e6, 21.1e6, "dates as yyyymmdd: pass pandas.to_datetime(time, format='%Y%m%d')"),
    (1e11, 1e13, "milliseconds: pass pandas.to_datetime(time, unit='ms')"),
    (1e14, 1e16, "microseconds: pass pandas.to_datetime(time, unit='us')"),
    (1e17, 1e19, "nanoseconds: pass pandas.to_datetime(time, unit='ns')"),
)
"""Numbers that are no seconds since 1970, and what they may be."""

LENGTH = re.compile(
    r"\s*\d+(\.\d+)?\s*(s|sec|seconds?|min|minutes?|h|hours?|d|D|days?|W|weeks?)\s*"
)


def read_length(value: Any, name: str) -> float:
    """Return a length of time in seconds; a number is of seconds."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.timedelta64):
        return finite(value, name)
    try:
        if isinstance(value, str) and not LENGTH.fullmatch(value):
            raise ValueError("text is a number with one of the units s, min, h, D and W")
        return float(pd.Timedelta(value).total_seconds())
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}={value!r} is no length of time, such as '1D', '60D' or seconds ({error})."
        ) from error


@dataclass(frozen=True)
class Calendar:
    """Numbered periods.

    Attributes
    ----------
    period : float or str
        Seconds, a day on which weeks begin, such as "W-MON", or "MS" for months.
    zone : str or None
        The time zone in which days begin; None is UTC.
    """

    period: float | str
    zone: str | None = None

    @classmethod
    def read(cls, period: Any, zone: str | None) -> Calendar:
        """Read parameters, with an error that names what is allowed."""
        if not isinstance(period, str) or period not in (*WEEKDAYS, "MS"):
            period = read_length(period, "period")
            if not period > 0:
                raise ValueError(f"period={period!r} must be positive.")
        try:
            pd.Timestamp(0, tz=zone)
        except Exception as error:
            raise ValueError(f"tz={zone!r} is no time zone, such as 'Europe/Paris'.") from error
        return cls(period, zone)

    @property
    def length(self) -> float:
        """Seconds of a period; of a month, a twelfth of a year."""
        if isinstance(self.period, str):
            return YEAR / 12 if self.period == "MS" else WEEK
        return self.period

    @property
    def unit(self) -> int:
        """Periods that are a week, or one that is longer."""
        return max(1, math.ceil(WEEK / self.length))

    @property
    def _shift(self) -> float:
        """When period 0 begins."""
        return (MONDAY + WEEKDAYS.index(self.period)) * DAY if self.period in WEEKDAYS else 0.0

    def number(self, at: ArrayLike) -> np.ndarray:
        """Return the periods of times in seconds since 1970."""
        local = np.asarray(at, dtype=float)
        if self.zone is not None:
            times = pd.to_datetime(np.floor(local).astype(np.int64), unit="s", utc=True)
            naive = times.tz_convert(self.zone).tz_localize(None)
            local = (naive - pd.Timestamp(0)) / pd.Timedelta("1s") + local % 1
        if self.period == "MS":
            return np.asarray(local, "datetime64[s]").astype("datetime64[M]").astype(np.int64)
        return np.floor((np.asarray(local) - self._shift) / self.length).astype(np.int64)

    def beginning(self, number: int) -> pd.Timestamp:
        """Return when a period begins, in the time of the zone."""
        if self.period == "MS":
            return pd.Timestamp(np.datetime64(number, "M"))
        return pd.Timestamp(number * self.length + self._shift, unit="s")

    def week(self, number: int) -> int:
        """Return the first period of a week, from Monday on."""
        shift = 0 if self.unit == 1 else round(MONDAY * DAY / self.length)
        return number - (number - shift) % self.unit

    def looks(self, weeks: int, *, by_week: bool) -> tuple[int, float]:
        """Return the periods between windows of a length, and the logarithm of their weight."""
        step = self.unit * max(1, weeks // LOOKS) if by_week else max(1, weeks * self.unit // LOOKS)
        n_looks = math.ceil(YEAR / (step * self.length) - 1e-9)
        return step, math.log((1 - FIRST_SHARE) / len(LENGTHS) / n_looks)

    def windows(
        self, first: int, last: int, *, by_week: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the windows that begin at `first` or later, and end before `last` or earlier.

        Parameters
        ----------
        first, last : int
            Periods; windows end before the period of their end.
        by_week : bool
            Whether they are of calendar weeks.

        Returns
        -------
        start, end, log_weight : ndarray of shape (n_windows,)
            In order of their ends. The weights of a year sum to at most 1 - `FIRST_SHARE`.
        """
        parts = []
        for weeks in LENGTHS:
            length, (step, weight) = weeks * self.unit, self.looks(weeks, by_week=by_week)
            offset = self.week(0)
            begin = first + length
            end = np.arange(begin + (offset - begin) % step, last + 1, step)
            parts.append(np.array([end - length, end, np.full(len(end), weight)]))
        start, end, weight = (table := np.concatenate(parts, axis=1))[
            :, np.argsort(table[1], kind="stable")
        ]
        return start.astype(np.int64), end.astype(np.int64), weight


def has_zone(values: Any) -> bool | None:
    """Return if datetimes have a time zone; None for numbers."""
    series = pd.Series(values)
    if pd.api.types.is_numeric_dtype(series.dtype):
        return None
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return True
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return False
    zones = {getattr(x, "tzinfo", None) is not None for x in series if hasattr(x, "tzinfo")}
    if len(zones) == 2:
        raise ValueError("time has datetimes with a zone and without one: pass one kind.")
    return zones.pop() if zones else None


def read_when(time: Any, n: int, zone: str | None = None) -> np.ndarray:
    """Return seconds since 1970 of each row; datetimes without a zone are of `zone`, or UTC."""
    if time is None:
        return np.full(n, clock.time())
    single = isinstance(time, str) or np.ndim(time) == 0
    values = [pd.Timestamp(time)] if isinstance(time, str) else [time] if single else time
    aware = has_zone(values) if n else None
    if zone is not None and aware is False and not pd.isna(pd.Series(values)).any():
        local = pd.DatetimeIndex(pd.Series(values).astype("datetime64[ns]"))
        values = local.tz_localize(
            zone, ambiguous=np.ones(len(local), bool), nonexistent="shift_forward"
        )
    at = read_times(values, 1 if single else n) if n else np.zeros(0)
    at = np.broadcast_to(at, n).astype(float)
    early, late = CENTURY if aware is None else (DAY * 366, 2 * CENTURY[1])
    if len(strange := at[(at < early) | (at > late)]):
        value = float(strange[0]) if aware is None else float(strange[0]) * 1e9
        looks = [f" They look like {text}." for a, b, text in LOOKS_LIKE if a <= abs(value) < b]
        raise ValueError(
            f"time {value:.15g} is not in seconds since 1970 of this century, as {len(strange)} of "
            f"{len(at)} rows.{''.join(looks[:1])}"
        )
    ahead = at.max(initial=-np.inf) - clock.time()
    if ahead > CLOCK_ERROR:
        warn(
            f"times are up to {pd.Timedelta(ahead, 's')} in the future: check that they are in "
            "seconds since 1970, or datetimes, which are read in UTC without a time zone.",
            UserWarning,
        )
    return at
