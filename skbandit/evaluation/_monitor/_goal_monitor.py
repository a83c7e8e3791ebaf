"""GoalMonitor: whether declared goals still hold, at every moment after deployment."""

from __future__ import annotations

import time as clock
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.evaluation._guaranteed import read_range
from skbandit.evaluation._monitor._counts import Counts, as_period, places_of, plain
from skbandit.evaluation._monitor._lines import GoalLine, Watched
from skbandit.evaluation._monitor._rows import (
    CLOCK_ERROR,
    as_records,
    as_rows,
    listed,
    read_records,
    read_rows,
    read_when,
    require_ids,
    require_json,
    seconds,
    warn_of_repeated,
)
from skbandit.evaluation._monitor._units import read_claims, read_goal
from skbandit.evaluation._rate_report import ALL
from skbandit.measure import (
    MISSING,
    Columns,
    Data,
    Rows,
    check_classes,
    check_groups,
    columns_of_selections,
    distinct,
    encode_classes,
    flatten_constraints,
    positive_is_known,
    refuse_alike,
    warn_of_no_group,
)
from skbandit.utils._trials import labels_of_groups
from skbandit.utils._validation import (
    as_labels,
    check_row_weights,
    finite,
    first_few,
    warn,
    warn_if_reordered,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

REPORTED = (
    "goal", "on", "n_rows", "n_labeled", "value", "ci_low", "ci_high", "bound", "verdict", "since",
    "note",
)  # fmt: skip
"""Columns of a report."""

TYPES = {"n_rows": "int64", "n_labeled": "Int64", "since": "datetime64[ns]"} | dict.fromkeys(
    ("value", "ci_low", "ci_high", "bound"), "float64"
)
"""Of columns that are not text."""

VERSION = 2
"""Of the state as JSON."""


class GoalMonitor:
    """Watch whether declared goals still hold, with few false alarms at every moment.

    Rows enter as they are decided, and labels as they come. `report` may be called at any time and
    as often as one likes: while all goals hold, the probability that it ever reports one as
    violated is at most `false_alarms`.

    Parameters
    ----------
    goals : constraint, (nested) list of constraints, or dict of str to constraint
        Any that can be declared: see `skbandit.rates`. The keys of a dict name them.
    false_alarms : float, default=0.05
        Probability, at most, of an alarm ever, over all goals, while all hold. Each goal has the
        same part of it, and so has each of its groups or pairs.
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
    period : str or timedelta, default="1D"
        Counts are kept per period. An alarm says since which one a goal is violated.
    ranges : dict, default=None
        Smallest and largest possible value of columns that goals name as amounts or weights, and
        of "sample_weight".

    See Also
    --------
    rate_report : Rates of rows at hand, with intervals for one look.
    skbandit.inspection.GoalMonitorDisplay : A goal over time.

    Notes
    -----
    The evidence is a supermartingale while the goal holds given the past, for each row. Goals on
    several rates, such as ratios of groups, take each rate as constant while it holds. Rows of one
    person are dependent: pass `groups`, and send a person to one server. A label is known on the
    server that has its decision.

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
    ) -> None:
        if isinstance(goals, Mapping):
            named = [(name, flatten_constraints(goal)) for name, goal in goals.items()]
            goals = [goal.named(str(name)) for name, part in named for goal in part]
        self.goals = tuple(flatten_constraints(goals))
        if not self.goals:
            raise ValueError("goals has no constraints: pass some, such as recall() >= 0.9.")
        if not 0 < finite(false_alarms, "false_alarms") < 1:
            raise ValueError(f"false_alarms={false_alarms!r} must be between 0 and 1.")
        self.false_alarms = float(false_alarms)
        self.by = (by,) if isinstance(by, str) else tuple(by or ())
        self.pos_label = plain(pos_label)
        self.labels = None if labels is None else tuple(map(plain, np.asarray(labels, object)))
        self.within = None if within is None else seconds(within, "within")
        self.period = seconds(period, "period")
        if not self.period > 0:
            raise ValueError(f"period={period!r} must be positive.")
        bounds = {name: read_range(pair) for name, pair in (ranges or {}).items()}
        self.ranges = {name: pair for name, pair in bounds.items() if pair is not None}
        self._units, self._claims = read_claims(self.goals, self.ranges)
        self._counts = Counts()
        self._open: dict[Any, dict[str, Any]] = {}
        self._past: OrderedDict[Any, float] = OrderedDict()
        self._classes: list[Any] = []
        self._decisions: list[Any] = list(self.labels or ())
        self._now = -np.inf
        self._alarms: dict[tuple[str, str], tuple[int, int]] = {}

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
        goals = flatten_constraints(getattr(model, "constraints", None))
        if not goals:
            raise ValueError(f"{type(model).__name__} has no constraints to watch: pass goals.")
        for name in ("decisions_", "classes_", "arms_"):
            if "labels" not in parameters and hasattr(model, name):
                parameters["labels"] = getattr(model, name)
        parameters.setdefault("pos_label", getattr(model, "pos_label", None))
        monitor = cls(goals, **parameters)
        monitor._classes = list(map(plain, getattr(model, "classes_", ())))
        if monitor.pos_label is None and len(monitor._classes) == 2:
            monitor.pos_label = monitor._classes[1]
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
            Rows of one value are dependent, as those of one person: those in one period count as
            one, by their mean.
        sample_weight : array-like of shape (n_rows,), default=None
            Such as one over the probability that the label is looked for. At most its end of
            `ranges`.
        outcomes : DataFrame or dict of arrays, default=None
            Columns of `skbandit.rates.outcome`; missing values do not count.

        Raises
        ------
        ValueError
            If a decision or label is not among `labels`, a value is outside of `ranges`, a column
            is missing, or with `within` a row has neither label nor id. Then no row counts.

        Warns
        -----
        UserWarning
            If ids are repeated, which count once, times are in the future, or rows have no group
            in a goal by groups.
        """
        tables = {"decided": decided, "y_true": y_true, "attributes": attributes, "time": time}
        tables |= {"id": id, "sample_weight": sample_weight, "outcomes": outcomes}
        warn_if_reordered(tables)
        choices = listed(decided, "decided")
        n = len(choices)
        at = read_when(time, n)
        table = Columns.read(attributes, None, n).frame
        if outcomes is not None:
            table = table.assign(**Columns.read(outcomes, None, n, "outcomes").frame)
        people = labels_of_groups(groups, n, decided, y_true, attributes)
        weight = None
        if sample_weight is not None:
            weight = check_row_weights(sample_weight, n, "sample_weight") if n else np.zeros(0)
        rows = read_rows(choices, y_true, id, at, people, weight)
        if self.within is not None and any(unit.needs_label for unit in self._units):
            require_ids(rows)
        self._expire(float(at.max(initial=-np.inf)))
        self._forget((), self._now)
        again = rows["id"].notna() & (rows["id"].duplicated() | rows["id"].map(self._knows))
        warn_of_repeated(rows["id"], again)
        rows, table = (part[~again.to_numpy()].reset_index(drop=True) for part in (rows, table))
        self._take(rows, table, arrival=None)
        closed = (name for name in rows["id"].dropna() if name not in self._open)
        self._forget(closed, float(at.max(initial=-np.inf)))

    def _knows(self, name: Any) -> bool:
        """Whether a name is remembered."""
        return name in self._open or name in self._past

    def _forget(self, names: Iterable[Any], when: float) -> None:
        """Keep names, of rows that are closed, for two more periods only."""
        for name in names:
            self._open.pop(name, None)
            self._past.setdefault(name, when)
        while self._past and next(iter(self._past.values())) < self._now - 2 * self.period:
            self._past.popitem(last=False)

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
        warn_if_reordered({"id": id, "y_true": y_true, "time": time})
        ids = listed(id, "id")
        labels = listed(y_true, "y_true", len(ids))
        at = read_when(time, len(ids))
        self._expire(float(at.max(initial=-np.inf)))
        first: dict[Any, dict[str, Any]] = {}
        for name, label, when in zip(ids, labels, at.tolist(), strict=True):
            if label is not None and name in self._open and name not in first:
                first[name] = self._open[name] | {"label": label, "came": when}
        if strange := sum(label is not None for label in labels) - len(first):
            warn(
                f"{strange} of {len(ids)} ids are unknown, repeated, or were labeled before: their "
                "labels are left out.",
                UserWarning,
            )
        early = [i for i, row in first.items() if row["came"] < row["time"] - CLOCK_ERROR]
        if early:
            warn(
                f"{len(early)} labels came before their decisions, such as that of id "
                f"{early[0]!r}: they count as of the decision.",
                UserWarning,
            )
        if first:
            arrival = np.array([max(row["came"], row["time"]) for row in first.values()])
            self._take(*as_rows(list(first.values())), arrival=arrival)
            self._forget(first, float(arrival.max()))

    def _expire(self, now: float) -> None:
        """Count rows as failures whose time for a label has passed, by no clock of the future."""
        self._now = max(self._now, min(now, clock.time() + CLOCK_ERROR))
        if self.within is None:
            return
        late = [i for i, row in self._open.items() if row["time"] + self.within < self._now]
        if late:
            rows, table = as_rows([self._open[name] for name in late])
            self._take(rows, table, arrival=rows["time"].to_numpy() + self.within, failed=True)
            self._forget(late, self._now)

    def _take(
        self,
        rows: pd.DataFrame,
        table: pd.DataFrame,
        *,
        arrival: np.ndarray | None,
        failed: bool = False,
    ) -> None:
        """Count rows; with `arrival` the labels of rows that were counted before."""
        if not len(rows):
            return
        first = arrival is None
        when = rows["time"].to_numpy(dtype=float) if arrival is None else arrival
        period = np.floor(when / self.period).astype(np.int64)
        of_decision = np.floor(rows["time"].to_numpy(dtype=float) / self.period).astype(np.int64)
        if rows["decided"].isna().any():
            raise ValueError("decided has missing values: every row needs a decision.")
        classes, decisions = self._with_labels(
            distinct(rows["label"], "label"), distinct(rows["decided"], "decided")
        )
        data, decided = self._data(rows, table, classes, decisions)
        for names in sorted({unit.columns for unit in self._units if unit.columns and first}):
            warn_of_no_group(names, data.train)
        if [classes, decisions] != [self._classes, self._decisions]:
            self._begin(self._counts, data)
        weighted = rows["weight"].notna().any()
        person = rows["person"].to_numpy() if rows["person"].notna().any() else None
        new, places = Counts(), data.train.columns
        for number, unit in enumerate(self._units):
            if not (first or unit.needs_label):
                continue
            columns = places.several([*unit.columns, *self.by], repr(unit.atom))
            where = places_of(columns, unit.columns, self.by, period)
            largest = 1.0
            for name in [unit.atom.weight, "sample_weight" if weighted else None]:
                largest *= self._largest(name) if name else 1.0
            counted = unit.counted and not weighted and unit.atom.weight is None
            for of in unit.classes(data):
                share, weight = (unit.failures if failed else unit.shares)(of, data, decided)
                if weight.max(initial=0.0) > largest:
                    raise ValueError(
                        f"{unit.atom!r}: a weight of {weight.max():g} is above its end in ranges=."
                    )
                new.add(number, of, share, weight / largest, where, counted=counted, person=person)
            seen = unit.selected(data)
            labeled = seen & (failed | (data.train.label != MISSING)) & unit.needs_label
            made = decided, data.decisions
            if first:
                new.add_seen(number, where, seen, made, 0)
            else:
                where = places_of(columns, unit.columns, self.by, of_decision)
            new.add_seen(number, where, labeled, made, 1)
        self._check_groups(new)
        if first:
            self._keep_open(rows, table)
        self._classes, self._decisions = classes, decisions
        self._counts.absorb(new)
        if person is not None:
            self._counts.close(int(period.max()))

    def _begin(self, counts: Counts, data: Data) -> None:
        """Count rows so far for the classes that are new, of which they are not."""
        if self._decisions:
            before = self._known(self._classes, self._decisions)
            for number, unit in enumerate(self._units):
                for label in unit.classes(data):
                    if label not in unit.classes(before):
                        counts.begin(number, label)

    def _known(self, classes: list[Any], decisions: list[Any]) -> Data:
        """No rows, with these classes and decisions."""
        empty = pd.DataFrame({"decided": [], "label": [], "weight": []}, dtype=object)
        return self._data(empty, pd.DataFrame(), classes, decisions)[0]

    def _check_groups(self, new: Counts) -> None:
        """Refuse groups by amounts, and one that is written in two ways."""
        if new.seen.keys() <= self._counts.seen.keys():
            return
        keys = list(self._counts.seen | new.seen)
        for number, unit in enumerate(self._units):
            groups = dict.fromkeys(key[2] for key in keys if key[0] == number)
            check_groups(unit.columns, groups, repr(unit.atom))
        check_groups(self.by, dict.fromkeys(key[3] for key in keys if key[3]), "by")

    def _largest(self, name: str) -> float:
        if name not in self.ranges:
            raise ValueError(
                f"rows are weighted by {name!r}: pass ranges={{{name!r}: (0, largest possible "
                "weight)}."
            )
        return self.ranges[name][1]

    def _with_labels(
        self, classes: Iterable[Any], decisions: Iterable[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Classes and decisions so far, with those of new rows."""
        merged = [
            list(dict.fromkeys([*part, *map(plain, new)]))
            for part, new in ((self._classes, classes), (self._decisions, decisions))
        ]
        every = list(dict.fromkeys(merged[0] + merged[1]))
        if strange := [x for x in every if self.labels and x not in self.labels]:
            raise ValueError(
                f"there is {strange[0]!r}, not among labels=[{first_few(self.labels or ())}]."
            )
        refuse_alike(every, "decided and y_true have", "which would be two labels")
        return merged[0], merged[1]

    def _data(
        self, rows: pd.DataFrame, table: pd.DataFrame, classes: list[Any], decisions: list[Any]
    ) -> tuple[Data, np.ndarray]:
        """Rows as rates read them, and the codes of their decisions."""
        every = list(dict.fromkeys([*classes, *decisions]))
        if len(every) <= 2 or not classes:
            classes = every
        others = [label for label in every if label not in classes]
        positive = self._positive(every)
        weight = rows["weight"].to_numpy(dtype=float)
        weight = np.where(np.isnan(weight), 1.0, weight)
        unlabeled = Rows(Columns.read(table, None, len(rows)), np.full(len(rows), MISSING), weight)
        data = Data(unlabeled, None, positive, classes, others, self.labels is not None)
        if data.closed:
            check_classes([atom for unit in self._units for _, atom in unit.terms], data)
        codes = [encode_classes(rows[name], data.decisions, name) for name in ("decided", "label")]
        return replace(data, train=replace(unlabeled, label=codes[1])), codes[0]

    def _positive(self, labels: list[Any]) -> Any:
        """The positive class; one of two labels if either may be it."""
        if self.pos_label is not None:
            return self.pos_label
        numbers = [label for label in labels if not isinstance(label, str)]
        if numbers and positive_is_known(numbers):
            return 1
        for unit in self._units:
            if unit.counted and unit.atom.needs_pos_label:
                raise ValueError(
                    f"{unit.atom!r} is the rate of one class, and the labels are "
                    f"[{first_few(labels)}]: choose it with pos_label=."
                )
        return labels[0] if labels else None

    def _keep_open(self, rows: pd.DataFrame, table: pd.DataFrame) -> None:
        """Keep what the labels of rows will need."""
        waiting = (rows["id"].notna() & rows["label"].isna()).to_numpy()
        if not waiting.any() or not any(unit.needs_label for unit in self._units):
            return
        atoms = [atom for unit in self._units if unit.needs_label for _, atom in unit.terms]
        names = columns_of_selections(atoms, Columns.read(table, None, len(table)))
        columns = list(table.columns) if names is None else [*names, *self.by]
        columns += [name for atom in atoms for name in (atom.weight, atom.amount) if name]
        kept = table[list(dict.fromkeys(columns))][waiting]
        self._open |= as_records(rows[waiting], kept)

    def merge(self, others: GoalMonitor | Iterable[GoalMonitor]) -> GoalMonitor:
        """Add what monitors of other servers counted.

        Parameters
        ----------
        others : GoalMonitor or iterable of these
            Of the same goals and settings, each of other rows.

        Returns
        -------
        GoalMonitor
            A new one; these are not changed.
        """
        others = [others] if isinstance(others, GoalMonitor) else list(others)
        total = deepcopy(self)
        for other in others:
            mine, theirs = (monitor._settings() for monitor in (self, other))
            for name in [name for name in mine if mine[name] != theirs[name]][:1]:
                raise ValueError(
                    f"the monitors differ in {name}: {mine[name]!r:.200} and {theirs[name]!r:.200}."
                )
            if twice := [name for name in (*other._open, *other._past) if total._knows(name)]:
                raise ValueError(
                    f"{len(twice)} rows are in two monitors, such as id {twice[0]!r}: send each "
                    "row to one."
                )
            labels = total._with_labels(other._classes, other._decisions)
            total._check_groups(other._counts)
            more = deepcopy(other._counts)
            if labels[1]:
                total._begin(total._counts, data := total._known(*labels))
                other._begin(more, data)
            total._counts.absorb(more)
            total._open |= other._open
            total._past |= other._past
            total._alarms = other._alarms | total._alarms
            total._classes, total._decisions = labels
            total._now = max(total._now, other._now)
        periods = total._counts.periods
        if periods:
            total._counts.close(periods[-1])
        return total

    def _settings(self) -> dict[str, Any]:
        return {
            "goals": [[goal.text, goal.name] for goal in self.goals],
            "false_alarms": self.false_alarms,
            "by": list(self.by),
            "pos_label": self.pos_label,
            "labels": None if self.labels is None else list(self.labels),
            "within": self.within,
            "period": self.period,
            "ranges": {name: list(pair) for name, pair in self.ranges.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON.

        Returns
        -------
        dict
            Settings and counts, without any row. Under "open", rows that wait for a label and
            people of the last period.
        """
        d = {
            "skbandit.GoalMonitor": VERSION,
            "settings": self._settings(),
            "classes": list(self._classes),
            "decisions": list(self._decisions),
            "now": None if self._now == -np.inf else self._now,
            "counts": self._counts.to_list(["rows", "seen", "amounts"]),
            "alarms": [[*line, *periods] for line, periods in self._alarms.items()],
            "open": {
                "rows": [[name, dict(row)] for name, row in self._open.items()],
                "people": self._counts.to_list(["people"]),
                "past": list(map(list, self._past.items())),
            },
        }
        require_json(d)
        return d

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
                read = [(read_goal(text), name) for text, name in texts]
                goals = [goal if name is None else goal.named(name) for goal, name in read]
            monitor = cls(goals, **settings)
            if monitor._settings()["goals"] != [list(pair) for pair in texts]:
                raise ValueError("the goals are others.")
            monitor._classes = as_labels(d["classes"], "classes")
            monitor._decisions = as_labels(d["decisions"], "decisions")
            monitor._now = -np.inf if d["now"] is None else finite(d["now"], "now")
            monitor._open |= read_records(d["open"]["rows"])
            past = d["open"].get("past", ())
            monitor._past.update((name, finite(when, "past")) for name, when in past)
            for goal, on, *periods in d.get("alarms", ()):
                raised, since = map(as_period, periods)
                monitor._alarms[str(goal), str(on)] = raised, since
            monitor._counts = Counts.from_list([*d["counts"], *d["open"]["people"]])
            n_units = len(monitor._units)
            for table in vars(monitor._counts).values():
                if any(not 0 <= key[0] < n_units for key in table):
                    raise ValueError("counts are of other goals.")
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
            - `value`, and `ci_low` and `ci_high`, between which it is with a confidence of 1 -
              `false_alarms` at all times.
            - `bound`.
            - `verdict`: "violated" (an alarm; once reported it stays, even if rows of earlier
              periods come late), "met" (the interval is), "undecided", or "unknown" if labels of
              some decisions never come.
            - `since`: the beginning of the period since when a violated goal is violated.
            - `note`: why it is unknown, or what to do.
        """
        wanted = (by,) if isinstance(by, str) else tuple(by or ())
        if wanted and wanted != self.by:
            raise ValueError(f"by={by!r} must be by={list(self.by)} of the monitor.")
        lines = self._lines()
        rows = [self._row(*line) for line in lines if line[0].by or not wanted]
        empty = {"on": ALL, "n_rows": 0, "verdict": "undecided", "note": "no row counts in it yet"}
        begun = {line.claim for line, _ in lines}
        for goal in [claim.constraint for claim in self._claims if claim not in begun]:
            rows.append({"goal": goal.label, "bound": goal.bound} | empty)
        return pd.DataFrame(rows, columns=list(REPORTED)).astype(TYPES)

    def _lines(self) -> list[tuple[GoalLine, float]]:
        """All that is watched, with the evidence that an alarm needs."""
        if not self._decisions:
            return []
        data = self._known(self._classes, self._decisions)
        watched = Watched(self._units, self._claims, self._counts, data)
        lines = watched.lines()
        return list(zip(lines, watched.thresholds(lines, self.false_alarms), strict=True))

    def _row(self, line: GoalLine, threshold: float) -> dict[str, Any]:
        claim = line.claim
        bound, sign = claim.constraint.bound, claim.sign
        value, (low, high) = line.sum.value(), line.sum.interval(self.false_alarms)
        since: Any = pd.NaT
        note, verdict = line.unknown, "undecided"
        alarm, is_weaker = self._alarm(line, threshold)
        if alarm is not None:
            since, verdict = self._beginning(alarm[1]), "violated"
            note = f"refit, or reprice, on rows since {since:%Y-%m-%d}; then begin a new monitor"
            if is_weaker:
                note = f"reported before rows of earlier periods or other groups came; {note}"
        elif line.unknown:
            verdict, value, low, high = "unknown", np.nan, np.nan, np.nan
        elif sign * ((low if sign > 0 else high) - bound) >= 0:
            verdict = "met"
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
            "note": note,
        }

    def _alarm(self, line: GoalLine, threshold: float) -> tuple[tuple[int, int] | None, bool]:
        """The periods in and since which an alarm is raised, and whether it was reported only.

        Whoever saw an alarm counts on it: rows that come late do not take it back.
        """
        claim, name = line.claim, (line.claim.constraint.label, line.on)
        alarm = line.sum.alarm(claim.constraint.bound, claim.sign, threshold)
        if alarm is not None:
            raised, since = (self._counts.periods[number] for number in alarm)
            self._alarms[name] = raised, since
        return self._alarms.get(name), alarm is None

    def history(self, goal: str | None = None, on: str | None = None) -> pd.DataFrame:
        """Report a goal at the end of each period, on all rows until then.

        Parameters
        ----------
        goal, on : str, default=None
            As in `report`; None is the first there.

        Returns
        -------
        DataFrame
            A row per period: its beginning as `time`, `value`, `ci_low`, `ci_high`, `bound`, and
            whether there was an `alarm` by then. ``attrs["since"]`` is since when the goal is
            violated.
        """
        lines = [
            (line, threshold)
            for line, threshold in self._lines()
            if goal in (None, line.claim.constraint.label) and on in (None, line.on)
        ]
        if not lines:
            raise ValueError(f"no row counts in goal={goal!r} on={on!r}: see report().")
        (line, threshold), rows = lines[0], []
        bound = line.claim.constraint.bound
        alarm, _ = self._alarm(line, threshold)
        for number, period in enumerate(self._counts.periods):
            value = line.sum.value(number + 1)
            interval = line.sum.interval(self.false_alarms, number + 1)
            raised = alarm is not None and alarm[0] <= period
            rows.append((self._beginning(period), value, *interval, bound, raised))
        table = pd.DataFrame(rows, columns=["time", "value", "ci_low", "ci_high", "bound", "alarm"])
        since = None if alarm is None else self._beginning(alarm[1])
        table.attrs = {"goal": line.claim.constraint.label, "on": line.on, "since": since}
        return table

    def _beginning(self, period: int) -> pd.Timestamp:
        return pd.Timestamp(period * self.period, unit="s")
