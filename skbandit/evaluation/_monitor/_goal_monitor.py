"""GoalMonitor: do declared goals still hold, at every moment after deployment."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from skbandit import measure
from skbandit.evaluation._guaranteed import read_range
from skbandit.evaluation._monitor import _batch, _calendar, _counts, _lines, _units
from skbandit.evaluation._monitor._evidence import needed
from skbandit.evaluation._rate_report import ALL
from skbandit.utils import _validation
from skbandit.utils._trials import labels_of_groups
from skbandit.utils._validation import as_labels, finite, plain, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

REPORTED = (
    "goal", "on", "n_rows", "n_labeled", "value", "ci_low", "ci_high", "bound", "verdict", "since",
    "value_since", "seen_in_30_days", "note",
)  # fmt: skip
"""Columns of a report."""

TYPES = {"n_rows": "int64", "n_labeled": "Int64", "since": "datetime64[ns]"} | dict.fromkeys(
    ("value", "ci_low", "ci_high", "bound", "value_since", "seen_in_30_days"), "float64"
)
"""Types of the columns that are not text."""

SETTINGS = "false_alarms", "by", "pos_label", "labels", "within", "period", "ranges", "tz"
"""Others than goals."""

VERSION = 3
"""Version of the JSON state."""

MONTH = 4
"""Weeks in which a fall is to be seen, and of which rows are counted for it."""

BEFORE_ALL = -(2**62)
"""A period before all others."""

MANY_NAMES = 1000
"""First ids, which are kept to tell that they return."""


class GoalMonitor:
    """Watch declared goals, with few false alarms a year, however often one looks.

    The null hypothesis is that a goal holds in every window of whole weeks (`period`): given who
    came and how often, the expected rate of its rows is within the bound. In simulated years the
    probability that any goal was reported as violated was then at most `false_alarms`, for rows
    that are independent, or with `groups` for people who are. For one rate of rows a theorem bounds
    it by twice that; see Notes.

    Parameters
    ----------
    goals : constraint, (nested) list of constraints, or dict of str to constraint
        Any that can be declared: see `skbandit.rates`. The keys of a dict name them.
    false_alarms : float, default=0.05
        Probability of an alarm in a year, over all goals, while all hold. Each goal has the same
        part of it, and so has each of its groups or pairs.
    by : str or list of str, default=None
        Columns of attributes; goals without groups of their own are watched in each group, too.
    pos_label : label, default=None
        The class of rates without `of`; optional for labels {0, 1}, {-1, 1} and bool.
    labels : array-like, default=None
        All classes and decisions that may occur; others are then an error. None takes those that
        come.
    within : str, timedelta or float, default=None
        Time, or seconds, after which a decision without a label counts as a failure: as an error
        for rates of errors and costs, and as none for rates such as recall and precision. None
        waits forever.
    period : str, timedelta or seconds, default="1D"
        Counts are kept per period, and an alarm says since which one a goal is violated. "W-MON" is
        for weeks that begin on Mondays, "MS" for months, "7D" for weeks from Thursday on, the first
        day of 1970. Goals are tested on windows of whole weeks, or of longer periods: choose one in
        which each season of the rate passes.
    ranges : dict, default=None
        Smallest and largest possible value of columns that goals name as amounts or weights, and
        of "sample_weight".
    tz : str, default=None
        Time zone in which days begin and datetimes without a zone are, such as "Europe/Paris".
        None is UTC.

    See Also
    --------
    rate_report : Rates of rows at hand, with intervals for one look.
    skbandit.inspection.GoalMonitorDisplay : A goal over time.

    Notes
    -----
    Windows of 1, 2, 4, 8, 13 and 26 weeks are tested once each, about seven times while one passes,
    at levels that add up to twice `false_alarms` a year, or less for many goals. As windows
    overlap, .033 of simulated years at the bound had an alarm for the default. The test of a rate
    is the exact binomial one. Ratios and other sums of rates, amounts, and people have tests by
    likelihood ratios with normal quantiles, which are approximate: of simulated years at the bound
    at most .04 had an alarm. A person, whose rows may depend in any way, counts once in a window,
    by the mean of the rows. People or rows that depend on one another unnamed, as if each day had a
    rate of its own, and numbers of rows that depend on their outcomes break it. A first period is
    tested as it is, and before a first whole week has passed only a rate far beyond the bound, at
    odds 1.5 times those there, is reported. A yearly season around the bound is a violation.

    Intervals are for rates that stay as they are; with `groups`, at the ends of weeks. A label is
    known on the server that has its decision. Send a person to one server or to several: their rows
    meet in `merge`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.evaluation import GoalMonitor
    >>> from skbandit.rates import precision, recall
    >>> monitor = GoalMonitor([recall() >= 0.8, precision() >= 0.5])
    >>> day = np.repeat(np.arange("2026-03-01", "2026-03-11", dtype="datetime64[D]"), 40)
    >>> y_true = np.tile([1, 1, 0, 0], 100)
    >>> decided = np.where(np.arange(400) % 8 == 0, 0, y_true)  # finds 3 of 4
    >>> monitor.update(decided, y_true, time=day)
    >>> monitor.report()[["goal", "n_rows", "value", "verdict"]]
                     goal  n_rows  value    verdict
    0     recall() >= 0.8     400   0.75  undecided
    1  precision() >= 0.5     150   1.00        met
    """

    def __init__(
        self,
        goals: Any,
        false_alarms: float = 0.05,
        by: str | Sequence[str] | None = None,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
        within: Any = None,
        period: Any = "1D",
        ranges: Mapping[str, tuple[float, float]] | None = None,
        tz: str | None = None,
    ) -> None:
        if isinstance(goals, Mapping):
            named = [(name, measure.flatten_constraints(goal)) for name, goal in goals.items()]
            goals = [goal.named(str(name)) for name, part in named for goal in part]
        self.goals = tuple(measure.flatten_constraints(goals))
        if not self.goals:
            raise ValueError("goals has no constraints: pass some, such as recall() >= 0.9.")
        if not 0 < finite(false_alarms, "false_alarms") < 1:
            raise ValueError(f"false_alarms={false_alarms!r} must be between 0 and 1.")
        self.false_alarms = float(false_alarms)
        self.by = (by,) if isinstance(by, str) else tuple(by or ())
        self.pos_label = _counts.as_name(pos_label, "pos_label")
        if isinstance(labels, str):
            raise TypeError(f"labels={labels!r} must be a list of labels.")
        self.labels = None if labels is None else tuple(map(plain, np.asarray(labels, object)))
        self.within = None if within is None else _calendar.read_length(within, "within")
        self._calendar = _calendar.Calendar.read(period, tz)
        self.period, self.tz = self._calendar.period, tz
        bounds = {name: read_range(pair) for name, pair in (ranges or {}).items()}
        self.ranges = {name: pair for name, pair in bounds.items() if pair is not None}
        self._units, self._claims = _units.read_claims(self.goals, self.ranges)
        settled = self.labels, self.pos_label, (), self.labels or ()
        self._labels = _batch.Labels(self._units, *settled)
        self._counts = _counts.Counts()
        self._open: dict[Any, dict[str, Any]] = {}
        self._past: dict[Any, float] = {}
        self._names: dict[Any, None] = {}
        self._warned = self._fresh = False
        self._zoned: bool | None = None
        self._now = -np.inf
        self._tested = BEFORE_ALL
        self._n_looks = 0
        self._alarms: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._instances: set[str] = set()
        self._instance = ""

    def __repr__(self) -> str:
        """Show goals, rows and alarms, one line each."""
        periods = self._counts.periods
        seen = [sum(rows for rows, _ in part.values()) for part in self._counts.seen.values()]
        days = [f"{self._calendar.beginning(p):%Y-%m-%d}" for p in periods[:1] + periods[-1:]]
        alarms = [self._claims[key[0]].constraint.label for key in self._alarms]
        goals = ", ".join(dict.fromkeys(goal.label for goal in self.goals))
        return (
            f"GoalMonitor of {goals:.200}, false_alarms={self.false_alarms:g} a year\n"
            f"  {max(seen, default=0):g} rows in {len(periods)} periods{':' * bool(days)} "
            f"{' to '.join(days)}".rstrip()
            + f"\n  {len(alarms)} alarms"
            f"{':' * bool(alarms)} {', '.join(dict.fromkeys(alarms)):.200}".rstrip()
        )

    @classmethod
    def of(cls, model: Any, **parameters: Any) -> GoalMonitor:
        """Watch the goals of a fitted classifier or policy.

        Parameters
        ----------
        model : estimator with declared constraints, Pipeline that ends with one, or search
        **parameters : dict
            Others of the monitor.

        Returns
        -------
        GoalMonitor
            With the model's constraints, positive class, and classes and decisions or arms.
        """
        while (inner := getattr(model, "best_estimator_", None)) is not None:
            model = inner
        if hasattr(model, "steps"):
            return cls.of(model.steps[-1][1], **parameters)
        goals = measure.flatten_constraints(getattr(model, "constraints", None))
        if not goals:
            raise ValueError(f"{type(model).__name__} has no constraints to watch: pass goals.")
        names = [name for name in ("decisions_", "classes_", "arms_") if hasattr(model, name)]
        if not names:
            raise NotFittedError(f"{type(model).__name__} is not fitted: call fit first.")
        parameters.setdefault("labels", getattr(model, names[0]))
        parameters.setdefault("pos_label", getattr(model, "pos_label", None))
        classes = tuple(map(plain, getattr(model, "classes_", ())))
        if parameters["pos_label"] is None and len(classes) == 2:
            parameters["pos_label"] = classes[1]
        monitor = cls(goals, **parameters)
        monitor._labels = monitor._labels.more(classes, ())
        return monitor

    def update(
        self,
        decided: ArrayLike,
        y_true: ArrayLike | None = None,
        *,
        attributes: Any = None,
        time: Any = None,
        id: Any = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        outcomes: Any = None,
    ) -> None:
        """Count rows that were decided.

        Parameters
        ----------
        decided : array-like of shape (n_rows,)
            Predictions, decisions or actions.
        y_true : array-like of shape (n_rows,), default=None
            Labels as far as they are known; missing ones may follow by `update_labels`.
        attributes : DataFrame or dict of arrays, default=None
            Columns that goals and `by` name.
        time : datetime, number or array of these, default=None
            When rows were decided, in seconds since 1970 or datetimes; None is now.
        id : array-like of shape (n_rows,), default=None
            Names of rows, each text or a number; rows that have none are never repeated. A name is
            remembered until its label comes, and for two periods.
        groups : array-like of shape (n_rows,), default=None
            Rows of one value are dependent, as those of one person: in each window a person counts
            once, by the mean of the rows in it, in whatever order and calls they came.
        sample_weight : array-like of shape (n_rows,), default=None
            Such as one over the probability that the label is looked for. At most its end of
            `ranges`.
        outcomes : DataFrame or dict of arrays, default=None
            Columns of `skbandit.rates.outcome`; missing values do not count.

        Raises
        ------
        ValueError
            If a decision or label is not among `labels`, a value is outside of `ranges`, a column
            is missing, a time is none of this century, or with `within` a row has neither label nor
            id. Then no row counts.
        TypeError
            If ids, groups or labels are neither text nor finite numbers, so that they cannot be
            saved. Dates, times and intervals are kept as their text. Then no row counts.

        Warns
        -----
        UserWarning
            If ids are repeated, which count once, times are in the future or more than a year
            back, rows have no group in a goal by groups, or, once, ids return after two periods.
        """
        tables = {"decided": decided, "y_true": y_true, "attributes": attributes, "time": time}
        tables |= {"id": id, "sample_weight": sample_weight, "outcomes": outcomes}
        _validation.warn_if_reordered(tables)
        choices = _batch.listed(decided, "decided")
        n = len(choices)
        at = self._times(time, n)
        table = measure.Columns.read(attributes, None, n).frame
        if outcomes is not None:
            table = table.assign(**measure.Columns.read(outcomes, None, n, "outcomes").frame)
        people = labels_of_groups(groups, n, decided, y_true, attributes)
        weight = None
        if sample_weight is not None:
            check = _validation.check_row_weights
            weight = check(sample_weight, n, "sample_weight") if n else np.zeros(0)
        rows = _batch.read_rows(choices, y_true=y_true, id=id, groups=people)
        rows = rows.assign(time=at, weight=weight)
        nameless = int((rows["label"].isna() & rows["id"].isna()).sum())
        if self.within is not None and nameless and any(u.needs_label for u in self._units):
            raise ValueError(
                f"{nameless} of {n} rows have neither a label nor an id: with within=, pass id=, "
                "by which labels follow, so that rows without one count as failures in time."
            )
        self._expire(at)
        self._forget((), self._now)
        again = rows["id"].notna() & (rows["id"].duplicated() | rows["id"].map(self._knows))
        if again.any():
            warn(
                f"{again.sum()} of {n} ids are repeated, such as {rows['id'][again].iloc[0]!r}: "
                "the first row of each counts.",
                UserWarning,
            )
        rows, table = (part[~again.to_numpy()].reset_index(drop=True) for part in (rows, table))
        self._take(rows, table)
        self._zoned = self._zoned if time is None else _calendar.has_zone(time)
        self._warn_of_returning(rows)
        closed = (name for name in rows["id"].dropna() if name not in self._open)
        self._forget(closed, float(at.max(initial=-np.inf)))

    def _times(self, time: Any, n: int) -> np.ndarray:
        at = _calendar.read_when(time, n, self.tz)
        zoned = None if time is None else _calendar.has_zone(time)
        if None not in (zoned, self._zoned) and zoned != self._zoned:
            kinds = ("without a zone", "with a zone")
            raise ValueError(
                f"time has datetimes {kinds[bool(zoned)]}, and those before were "
                f"{kinds[bool(self._zoned)]}: pass one kind, as by dt.tz_localize."
            )
        if n and at.min() < self._now - _calendar.YEAR:
            warn(
                f"times go back by up to {(self._now - at.min()) / 86400:.0f} days: rows of more "
                "than a year ago count in values, and raise no alarm.",
                UserWarning,
            )
        return at

    def _warn_of_returning(self, rows: pd.DataFrame) -> None:
        """Warn once that ids come again after they were forgotten."""
        names = rows["id"].dropna()
        if not self._warned and rows["person"].isna().all():
            if len(back := names[names.isin(list(self._names))]):
                self._warned = True
                warn(
                    f"{len(back)} ids return in a later period, such as {back.iloc[0]!r}: if they "
                    "are of people, whose rows are dependent, pass groups=. It comes once.",
                    UserWarning,
                )
        for name in names.iloc[: MANY_NAMES - len(self._names)]:
            self._names.setdefault(name)

    def _knows(self, name: Any) -> bool:
        """Return if a name is remembered."""
        return name in self._open or name in self._past

    def _forget(self, names: Iterable[Any], when: float) -> None:
        """Keep names, of rows that are closed, for two more periods only."""
        for name in names:
            self._open.pop(name, None)
            self._past.setdefault(name, when)
        oldest = self._now - 2 * self._calendar.length
        if self._past and min(self._past.values()) < oldest:
            self._past = {name: at for name, at in self._past.items() if at >= oldest}

    def update_labels(self, id: Any, y_true: ArrayLike, *, time: Any = None) -> None:
        """Count labels of rows that were decided before.

        Parameters
        ----------
        id : array-like of shape (n_labels,)
            As in `update`.
        y_true : array-like of shape (n_labels,)
            Missing ones are left out.
        time : datetime, number or array of these, default=None
            When they came; None is now.

        Warns
        -----
        UserWarning
            If ids are unknown, repeated, or were labeled or given up before: their labels are left
            out. Or if labels came before their decisions: they count as of the decision.
        """
        _validation.warn_if_reordered({"id": id, "y_true": y_true, "time": time})
        ids = _batch.listed(id, "id")
        labels = _batch.listed(y_true, "y_true", len(ids))
        at = self._times(time, len(ids))
        self._expire(at)
        first: dict[Any, dict[str, Any]] = {}
        for name, label, when in zip(ids, labels, at.tolist(), strict=True):
            if label is not None and name in self._open and name not in first:
                came = max(when, self._open[name]["time"])
                first[name] = self._open[name] | {"label": label, "came": came, "at": when}
        if strange := sum(label is not None for label in labels) - len(first):
            warn(
                f"{strange} of {len(ids)} ids are unknown, repeated, or were labeled before: their "
                f"labels are left out. Given are such as {ids[:1]}, waiting {[*self._open][:1]}.",
                UserWarning,
            )
        early = [i for i, row in first.items() if row["at"] < row["time"] - _calendar.CLOCK_ERROR]
        if early:
            warn(
                f"{len(early)} labels came before their decisions, such as that of id "
                f"{early[0]!r}: they count as of the decision.",
                UserWarning,
            )
        if first:
            self._take(*_batch.as_rows(list(first.values())))
            self._forget(first, max(row["came"] for row in first.values()))

    def _expire(self, at: np.ndarray) -> None:
        """Count rows as failures whose time for a label has passed, by no clock of the future."""
        past = at[at <= clock.time() + _calendar.CLOCK_ERROR]
        self._now = max(self._now, past.max(initial=-np.inf))
        if self.within is None:
            return
        ends = {name: row["time"] + self.within for name, row in self._open.items()}
        late = [name for name, end in ends.items() if end < self._now]
        if late:
            self._take(*_batch.as_rows([self._open[name] | {"came": ends[name]} for name in late]))
            self._forget(late, self._now)

    def _take(self, rows: pd.DataFrame, table: pd.DataFrame) -> None:
        """Count rows, or labels of rows that were counted before: see `Batch`."""
        if not len(rows):
            return
        batch = _batch.Batch.read(rows, table, self._labels)
        new = batch.count(self.by, self._calendar, self.ranges)
        self._check_groups(new)
        if "came" not in rows:
            self._keep_open(rows, table)
        self._instance = self._instance or uuid4().hex
        self._instances.add(self._instance)
        self._add(new, batch.labels)

    def _add(self, counts: _counts.Counts, labels: _batch.Labels) -> None:
        """Add counts of rows, with all labels so far."""
        self._labels.begin(self._counts, labels)
        self._labels, self._fresh = labels, True
        self._counts.absorb(counts)

    def _check_groups(self, new: _counts.Counts) -> None:
        """Refuse groups by amounts, and one that is written in two ways."""
        if new.seen.keys() <= self._counts.seen.keys():
            return
        keys = list(self._counts.seen | new.seen)
        for number, unit in enumerate(self._units):
            groups = dict.fromkeys(key[2] for key in keys if key[0] == number)
            measure.check_groups(unit.columns, groups, repr(unit.atom))
        measure.check_groups(self.by, dict.fromkeys(key[3] for key in keys if key[3]), "by")

    def _keep_open(self, rows: pd.DataFrame, table: pd.DataFrame) -> None:
        """Keep what the labels of rows will need."""
        waiting = (rows["id"].notna() & rows["label"].isna()).to_numpy()
        if not waiting.any() or not any(unit.needs_label for unit in self._units):
            return
        atoms = [atom for unit in self._units if unit.needs_label for _, atom in unit.terms]
        names = measure.columns_of_selections(atoms, measure.Columns.read(table, None, len(table)))
        columns = list(table.columns) if names is None else [*names, *self.by]
        columns += [name for atom in atoms for name in (atom.weight, atom.amount) if name]
        kept = table[list(dict.fromkeys(columns))][waiting]
        self._open |= _batch.as_records(rows[waiting], kept)

    def merge(self, others: GoalMonitor | Iterable[GoalMonitor]) -> GoalMonitor:
        """Add what monitors of other servers counted.

        Parameters
        ----------
        others : GoalMonitor or iterable of these
            Of the same goals and settings, each of other rows. Look at the result only: each
            monitor that is looked at has `false_alarms` of its own.

        Returns
        -------
        GoalMonitor
            A new one; these are not changed.

        Raises
        ------
        ValueError
            If settings differ, or rows would count twice, as those of one monitor, or of an older
            copy of it, would.
        """
        others = [others] if isinstance(others, GoalMonitor) else list(others)
        total = deepcopy(self)
        for other in others:
            if not isinstance(other, GoalMonitor):
                raise TypeError(f"merge takes monitors, got {other!r:.80}.")
            mine, theirs = (monitor._settings() for monitor in (self, other))
            for name in [name for name in mine if mine[name] != theirs[name]][:1]:
                raise ValueError(
                    f"the monitors differ in {name}: {mine[name]!r:.200} and {theirs[name]!r:.200}."
                )
            if total._instances & other._instances:
                raise ValueError(
                    "a monitor is merged with itself, or with a copy of itself, whose rows would "
                    "count twice: merge the newest state of each server once."
                )
            if twice := [name for name in (*other._open, *other._past) if total._knows(name)]:
                raise ValueError(
                    f"{len(twice)} rows are in two monitors, such as id {twice[0]!r}: send each "
                    "row to one."
                )
            labels = total._labels.more(other._labels.classes, other._labels.decisions)
            total._check_groups(other._counts)
            more = deepcopy(other._counts)
            other._labels.begin(more, labels)
            total._add(more, labels)
            total._alarms = other._alarms | total._alarms
            for name in ("_open", "_past", "_names", "_instances"):
                getattr(total, name).update(getattr(other, name))
            for name in ("_now", "_n_looks", "_tested"):
                setattr(total, name, max(getattr(total, name), getattr(other, name)))
            total._instance = ""
        return total

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as JSON."""
        goals = [(goal.text, goal.name) for goal in self.goals]
        settings = {"goals": goals} | {name: getattr(self, name) for name in SETTINGS}
        return dict(json.loads(json.dumps(settings)))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON.

        Returns
        -------
        dict
            Settings and counts, without any row. Under "open", rows that wait for a label, names
            of rows, and sums per person and week of a year.
        """
        return {
            "skbandit.GoalMonitor": VERSION,
            "settings": self._settings(),
            "classes": list(self._labels.classes),
            "decisions": list(self._labels.decisions),
            "now": None if self._now < 0 else self._now,
            "counts": self._counts.to_list(["rows", "seen", "amounts"]),
            "alarms": json.loads(json.dumps([[*key, *at] for key, at in self._alarms.items()])),
            "judged": [self._tested, self._n_looks],
            "instances": sorted(self._instances),
            "zoned": self._zoned,
            "open": {
                "rows": [[name, dict(row)] for name, row in self._open.items()],
                "people": self._counts.to_list(["people"]),
                "past": list(map(list, self._past.items())),
                "names": [self._warned, *self._names],
            },
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], *, goals: Any = None) -> GoalMonitor:
        """Read the result of `to_dict`.

        Parameters
        ----------
        d : dict
            Possibly read from JSON. Nothing in it is evaluated but goals, as `skbandit.rates` has
            them.
        goals : list of constraints, default=None
            The same goals, needed if one has a function as `where`.

        Returns
        -------
        GoalMonitor

        Raises
        ------
        ValueError
            If it is not what a monitor of this version saves.
        """
        if not isinstance(d, Mapping) or d.get("skbandit.GoalMonitor") != VERSION:
            raise ValueError(f"this is no GoalMonitor of version {VERSION}: {d!r:.80}.")
        try:
            settings = dict(d["settings"])
            texts = settings.pop("goals")
            if goals is None:
                read = [(_units.read_goal(text), name) for text, name in texts]
                goals = [goal if name is None else goal.named(name) for goal, name in read]
            monitor = cls(goals, **settings)
            if monitor._settings()["goals"] != texts:
                raise ValueError("the goals are others.")
            labels = as_labels(d["classes"], "classes"), as_labels(d["decisions"], "decisions")
            monitor._labels = monitor._labels.more(*labels)
            monitor._now = monitor._now if d["now"] is None else finite(d["now"], "now")
            monitor._open |= _batch.read_records(d["open"]["rows"])
            monitor._past |= {name: finite(when, "past") for name, when in d["open"]["past"]}
            warned, *names = d["open"]["names"]
            monitor._warned, monitor._names = bool(warned), dict.fromkeys(names)
            monitor._tested, monitor._n_looks = map(_counts.as_period, d["judged"])
            monitor._zoned = d["zoned"]
            monitor._counts = _counts.Counts.from_list([*d["counts"], *d["open"]["people"]])
            for table in vars(monitor._counts).values():
                if any(not 0 <= key[0] < len(monitor._units) for key in table):
                    raise ValueError("counts are of other goals.")
            monitor._fresh = bool(monitor._counts.periods)
            monitor._instances = set(map(str, d["instances"]))
            for number, of, group, by, *periods in d["alarms"]:
                raised, since = map(_counts.as_period, periods)
                key = _counts.as_period(number), *map(_as_tuples, (of, group, by))
                monitor._claims[key[0]]
                monitor._alarms[key] = raised, since
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"this is not what a GoalMonitor saves: {error!r}.") from error
        return monitor

    def report(self, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Report what is known of each goal.

        Parameters
        ----------
        by : str or list of str, default=None
            The columns `by` of the monitor: rows of their groups only. None is for all that is
            watched.

        Returns
        -------
        DataFrame
            A row per goal and group or pair.

            - `goal`, and `on`: its group or pair, or "all".
            - `n_rows`: decisions that the value is about; `n_labeled`: those whose label is known,
              missing if none is needed.
            - `value`, of people of the last year if there are, and `ci_low` and `ci_high`, between
              which one that stays as it is lies with a confidence of 1 - `false_alarms`, at all
              times.
            - `bound`.
            - `verdict`: "violated" (an alarm; it stays, even if rows of earlier periods come late),
              "met" (the interval is), "undecided", or "unknown" if labels of some decisions never
              come.
            - `since`: the beginning of the period, inside the window that raised the alarm, since
              when most speaks against the goal, and `value_since` its value since then.
            - `seen_in_30_days`: the value that raises an alarm within 30 days in about half of all
              cases, if rows come as in the last four weeks; missing if none would.
            - `note`: why it is unknown, or what to do.
        """
        wanted = (by,) if isinstance(by, str) else tuple(by or ())
        if wanted and wanted != self.by:
            raise ValueError(f"by={by!r} must be by={list(self.by)} of the monitor.")
        lines = self._test()
        rows = [self._row(line) for line in lines if line.by or not wanted]
        empty = {"on": ALL, "n_rows": 0, "verdict": "undecided", "note": "no row counts in it yet"}
        begun = {line.claim.number for line in lines}
        for goal in [c.constraint for k, c in enumerate(self._claims) if k not in begun]:
            rows.append({"goal": goal.label, "bound": goal.bound} | empty)
        return pd.DataFrame(rows, columns=list(REPORTED)).astype(TYPES)

    def _test(self) -> list[_lines.GoalLine]:
        """Test the windows that ended since the last look; return all that is watched."""
        lines: list[_lines.GoalLine] = []
        if self._labels.decisions:
            data = self._labels.nobody
            watched = _lines.Watched(self._units, self._claims, self._counts, data)
            lines = watched.lines(self.false_alarms)
        if not (periods := self._counts.periods):
            return lines
        today = int(self._calendar.number(clock.time() + _calendar.CLOCK_ERROR))
        last = min(max(periods[0], *(p for p in periods if p <= today)), today)
        if self._now > -np.inf:
            last = max(last, int(self._calendar.number(self._now)))
        last += last < today  # periods of the past are over
        self._n_looks += self._fresh
        for line in lines:
            if line.key not in self._alarms and (alarm := self._alarm(line, last)):
                self._alarms[line.key] = alarm
        self._tested, self._fresh = max(self._tested, last), False
        self._counts.forget(last - int(_calendar.YEAR // self._calendar.length))
        return lines

    def _alarm(self, line: _lines.GoalLine, last: int) -> tuple[int, int] | None:
        """Return the periods in and since which an alarm is raised."""
        by_week = line.sum.of_people
        start, end, weight = self._calendar.windows(line.first, last, by_week=by_week)
        early, new = not len(end), end > self._tested
        if early and self._fresh:
            start, end = np.array([[self._calendar.week(line.first)], [last + 1]])
            weight = np.log([_calendar.FIRST_SHARE / (self._n_looks * (self._n_looks + 1))])
            new = np.array([True])
        if not new.any():
            return None
        periods, level = self._counts.periods, needed(line.threshold, weight[new])
        start, end = np.searchsorted(periods, [start[new], end[new]])
        alarm = line.sum.alarm(level, start, end, early=early and end[0] - start[0] > 1)
        return alarm and (periods[alarm[1] - 1], periods[alarm[0]])

    def _seen(self, line: _lines.GoalLine) -> float:
        """Return the value that an alarm within four weeks takes, with rows as in the last four."""
        n, periods = MONTH * self._calendar.unit, self._counts.periods
        if not periods:
            return np.nan
        start = int(np.searchsorted(periods, periods[-1] + 1 - n))
        share = min(1.0, (periods[-1] + 1 - min(periods[start], line.first)) / n)
        _, weight = self._calendar.looks(MONTH, by_week=line.sum.of_people)
        level = needed(line.threshold, np.array(weight))
        return line.sum.seen(float(level), line.sum.windows(start), share)

    def _row(self, line: _lines.GoalLine) -> dict[str, Any]:
        claim, windows = line.claim, line.sum.windows(0)
        bound, sign = claim.constraint.bound, claim.sign
        value, n_periods = line.sum.value(windows), len(self._counts.periods)
        low, high = line.sum.interval(self.false_alarms, windows, n_periods)
        since: Any = pd.NaT
        since_value, note, verdict = np.nan, line.unknown, "undecided"
        if (alarm := self._alarms.get(line.key)) is not None:
            since, verdict = self._calendar.beginning(alarm[1]), "violated"
            since_value = line.sum.value(line.sum.windows(self._counts.periods.index(alarm[1])))
            note = f"refit, or reprice, on rows since {since:%Y-%m-%d}; then begin a new monitor"
        elif line.unknown:
            verdict, value, low, high = "unknown", np.nan, np.nan, np.nan
        elif sign * ((low if sign > 0 else high) - bound) >= 0:
            verdict = "met"
        elif sign * ((high if sign > 0 else low) - bound) < 0:
            note = "beyond the bound so far: windows of whole weeks, or of longer periods, tell"
        periods, week = np.array(self._counts.periods), self._calendar.unit
        factor = max(term.tally.dispersion(periods, week) for term in line.sum.terms)
        if factor > 1.0:
            note += "; " * bool(note) + (
                f"periods differ {factor:.2g} times as much as with independent rows, so that "
                "alarms may be false: pass groups= with what rows have in common, such as the day"
            )
        return {
            "goal": claim.constraint.label,
            "on": line.on,
            "n_rows": int(line.n_rows),
            "n_labeled": pd.NA if np.isnan(line.n_labeled) else int(line.n_labeled),
            "value": value,
            "ci_low": low,
            "ci_high": high,
            "bound": bound,
            "verdict": verdict,
            "since": since,
            "value_since": since_value,
            "seen_in_30_days": self._seen(line),
            "note": note,
        }

    def history(self, goal: str | int | None = None, on: str | None = None) -> pd.DataFrame:
        """Report a goal at the end of each period, on all rows until then.

        Parameters
        ----------
        goal : str or int, default=None
            As in `report`, or the number of the row there; None is the first there.
        on : str, default=None
            As in `report`; None is the first there.

        Returns
        -------
        DataFrame
            A row per period: its beginning as `time`, `value`, `ci_low`, `ci_high`, `bound`, and
            whether there was an `alarm` by then. ``attrs["since"]`` is since when the goal is
            violated; ``attrs["value_since"]`` and ``attrs["seen_in_30_days"]`` are as in `report`.
        """
        lines = [
            line
            for number, line in enumerate(self._test())
            if goal in (None, line.claim.constraint.label, number) and on in (None, line.on)
        ]
        if not lines:
            raise ValueError(f"no row counts in goal={goal!r} on={on!r}: see report().")
        line, rows = lines[0], []
        bound, alarm = line.claim.constraint.bound, self._alarms.get(line.key)
        for number, period in enumerate(self._counts.periods):
            windows = line.sum.windows(0, number + 1)
            value = line.sum.value(windows)
            interval = line.sum.interval(self.false_alarms, windows, number + 1)
            raised = alarm is not None and alarm[0] <= period
            rows.append((self._calendar.beginning(period), value, *interval, bound, raised))
        table = pd.DataFrame(rows, columns=["time", "value", "ci_low", "ci_high", "bound", "alarm"])
        row = self._row(line)
        since = None if alarm is None else row["since"]
        table.attrs = {"goal": row["goal"], "on": line.on, "since": since}
        table.attrs |= {name: row[name] for name in ("value_since", "seen_in_30_days")}
        return table


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
