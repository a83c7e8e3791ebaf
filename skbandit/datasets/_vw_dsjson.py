"""Read the decision logs of Vowpal Wabbit in its dsjson format, as blocks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.datasets._files import ContradictionError, quote, read_blocks
from skbandit.utils._validation import as_labels, finite, first_few, shortened

# Probabilities are logged in single precision; a smaller one was not logged.
_PROBABILITY_TOLERANCE = 1e-4
_SMALLEST_PROBABILITY = 2.0**-126

# An escaped half of a character beyond 16 bits, which the other half should accompany.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_EVENT_COLUMNS = ("action", "reward", "propensity", "available")


def _short(value: Any) -> str:
    """Return the repr of a value for a message, without its middle if it is long."""
    return shortened(repr(value), 60)


def read_vw_dsjson(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    features: Iterable[str] | None = None,
    action_id: str | None = None,
    action_features: bool = False,
    block_size: int = 100_000,
    malformed: Literal["raise", "skip"] = "raise",
) -> Iterator[Bunch]:
    """Read decisions logged by Vowpal Wabbit (dsjson lines), one block of events at a time.

    Parameters
    ----------
    paths : path or iterable of paths
        Files with one JSON object per line, plain or compressed with gzip (named ``*.gz``), in
        order of time.
    features : iterable of str, default=None
        Columns of X, by the names explained below. None means all that occur in the first block;
        another one in a later block is then an error.
    action_id : str, default=None
        Feature of the actions that holds their label, such as ``"Article.id"``. None means
        ``_tag`` or else ``i.id``, if the actions of the first event have it; otherwise their
        number in the list of actions, from 1, as also for ``""``.
    action_features : bool, default=False
        Whether to return the features of the actions.
    block_size : int, default=100_000
        Number of events per block; the last block may have fewer. Memory is needed for one block
        only.
    malformed : {"raise", "skip"}, default="raise"
        Whether an unreadable line is an error, or is skipped; each block, and a warning at the
        end, report the number of skipped lines.

    Yields
    ------
    Bunch
        With, one row per event,

        - ``X``: DataFrame of the shared context. Nested objects are flattened:
          ``{"User": {"age": 3}}`` is column ``User.age``, and entry 0 of an array of values gets
          the suffix ``.0``. Names that begin with an underscore, other than ``_text``, are not
          features. A feature that an event lacks is missing.
        - ``y``: DataFrame with ``action``, ``reward`` (minus the cost), ``propensity``,
          ``available``, a tuple of labels, and, if logged, ``timestamp`` (UTC) and ``id``, the
          EventId, which some may lack: an event that was logged twice counts twice, unless
          duplicates are dropped.
        - ``sample_weight``: 1 / (1 - pdrop), if only a share of the events was kept; else 1. To
          estimate from such a log, divide ``propensity`` by it and pass the pairs (X, y).
        - ``action_features``: DataFrame, one row per event and action, with both as its index;
          None without the argument `action_features`.
        - ``n_not_learned``: number of events so far that are marked ``_skipLearn``, which are left
          out.
        - ``n_dangling``: number of rewards so far whose decision is not on their line
          (``RewardValue`` without ``c``), which are left out.
        - ``n_skipped``: number of malformed lines skipped so far.

    Raises
    ------
    ValueError
        If a line cannot be read, has no cost or probability, or is not the decision for a single
        action, with its number and the reason; and, also with ``malformed="skip"``, if it
        contradicts itself.
    OSError
        If a file is missing or damaged.

    See Also
    --------
    skbandit.evaluation.replay_blocks : Evaluates policies that learn.
    skbandit.evaluation.off_policy_blocks : Evaluates policies that do not learn.

    Notes
    -----
    ``_label_Action`` counts actions from 1, ``_labelIndex`` from 0; ``p`` holds the probabilities
    of the actions in ``a``, which count from 1, or from 0 if 0 is among them. Where several of
    these are present they must agree.

    Actions of one event with the same label are one arm: it is available once, and its probability
    is the sum of theirs in ``p``. To tell them apart, number them by ``action_id=""``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skbandit.datasets import read_vw_dsjson
    >>> line = '''{"_label_cost": -1, "_label_probability": 0.75, "_label_Action": 2,
    ... "_labelIndex": 1, "Timestamp": "2021-02-04T16:31:29.2460000Z", "a": [2, 1],
    ... "p": [0.75, 0.25], "c": {"User": {"age": 33}, "_multi": [{"_tag": "tea"},
    ... {"_tag": "coffee"}]}}'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "decisions.json")
    ...     _ = path.write_text(" ".join(line.split()))
    ...     (log,) = read_vw_dsjson(path)
    >>> log.X
       User.age
    0        33
    >>> log.y[["action", "reward", "propensity", "available"]]
       action  reward  propensity      available
    0  coffee     1.0        0.75  (tea, coffee)
    """
    names = None if features is None else as_labels(features, "features")
    if not (action_id is None or isinstance(action_id, str)):
        raise TypeError(f"action_id must be the name of a feature, got {action_id!r}.")
    return read_blocks(
        paths, _DsjsonReader(names, action_id, action_features), block_size, malformed
    )


@dataclass
class _DsjsonReader:
    """Reads events; the first event or block decides what is None."""

    columns: list[str] | None  # of X
    action_id: str | None  # "" if actions have numbers
    action_features: bool
    timed: bool | None = None  # whether events have timestamps
    columns_given: bool = True
    n_not_learned: int = 0
    n_dangling: int = 0
    identified: bool = False  # whether an event had an id

    def read(self, line: bytes) -> tuple[Any, ...] | None:
        """Log, weight, context and features of the actions of an event."""
        if not line.strip():
            return None
        event = _parse(line)
        if event.get("_skipLearn"):
            self.n_not_learned += 1
            return None
        if "RewardValue" in event and "c" not in event:
            self.n_dangling += 1
            return None
        context = _member(event, "c", dict)
        for name in ("_slots", "_outcomes", "slots"):
            if name in event or name in context:
                raise ValueError(f"the event has {name!r}: several slots cannot be read.")
        multi = _member(context, "_multi", list, "c.")
        if not multi or not all(isinstance(action, dict) for action in multi):
            raise ValueError("c._multi must be a list of actions, each an object.")
        action_id = self.action_id
        if action_id is None:  # the feature that holds the labels, if there is one
            inner = multi[0].get("i")
            has_id = isinstance(inner, dict) and "id" in inner
            action_id = "_tag" if "_tag" in multi[0] else "i.id" if has_id else ""
        labels = _read_labels(multi, action_id)
        chosen = _read_choice(event, len(multi))
        propensity = _read_propensity(event, chosen, labels)
        reward = 0.0 - _number(event, "_label_cost")
        dropped = _number(event, "pdrop") if "pdrop" in event else 0.0
        if not 0 <= dropped < 1:
            raise ValueError(f"pdrop must be in [0, 1), got {dropped:g}.")
        try:
            time = event.get("Timestamp")
            time = None if time is None else datetime.fromisoformat(time)
        except (TypeError, ValueError) as error:
            message = f"Timestamp must be like 2021-07-29T10:00Z, got {_short(time)}."
            raise ValueError(message) from error
        if self.timed not in (None, time is not None):
            contrast = "Timestamp is missing" if time is None else "there is a Timestamp"
            raise ValueError(f"{contrast}, unlike in earlier events.")
        key = event.get("EventId")
        flat = _flatten({k: v for k, v in context.items() if k != "_multi"})
        described = _described(multi, labels) if self.action_features else []
        # a malformed line decides nothing: no error can occur from here on
        self.action_id, self.timed = action_id, time is not None
        pool = tuple(dict.fromkeys(labels))
        log = labels[chosen], reward, propensity, pool
        return *log, time, key, 1 / (1 - dropped), flat, described

    def bunch(self, columns: list[list[Any]], n_skipped: int) -> Bunch:
        """Return the block as yielded to the caller."""
        *log, times, keys, weight, contexts, described = columns
        names = list(dict.fromkeys(name for flat in contexts for name in flat))
        if self.columns is None:
            self.columns, self.columns_given = names, False
        new = [name for name in names if name not in self.columns]
        if new and not self.columns_given:
            raise ValueError(
                f"the feature {_short(new[0])} does not occur in the first block: choose the "
                "columns by features=[...], or read a larger first block, block_size=."
            )
        y = pd.DataFrame(dict(zip(_EVENT_COLUMNS, log, strict=True)))
        if self.timed:
            y["timestamp"] = pd.to_datetime(pd.Series(times), utc=True)
        self.identified = self.identified or any(key is not None for key in keys)
        if self.identified:
            y["id"] = keys
        actions = None
        if self.action_features:
            index = [(row, label) for row, labels in y["available"].items() for label in labels]
            actions = pd.DataFrame(
                [features for several in described for features in several],
                index=pd.MultiIndex.from_tuples(index, names=["event", "action"]),
            )
        X = {name: [flat.get(name) for flat in contexts] for name in self.columns}
        return Bunch(
            X=pd.DataFrame(X, range(len(contexts)), self.columns),
            y=y,
            sample_weight=np.array(weight),
            action_features=actions,
            n_not_learned=self.n_not_learned,
            n_dangling=self.n_dangling,
            n_skipped=n_skipped,
        )


def _parse(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise ValueError(f"the member {_short(twice)} occurs twice")
        return members

    try:
        text = line.decode("utf-8-sig")
        event = json.loads(text, object_pairs_hook=once)
        if _SURROGATE.search(text):
            json.dumps(event, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON object, {error!s:.200}: {quote(line)}.") from error
    if not isinstance(event, dict):
        raise ValueError(f"expected a JSON object, got {quote(line)}.")
    return event


def _member(of: dict[str, Any], name: str, kind: type, where: str = "") -> Any:
    """Return a required member of a JSON object."""
    if name not in of:
        raise ValueError(
            f"there is no {where}{name} among {first_few(of):.200}: is it a decision with feedback?"
        )
    if not isinstance(of[name], kind):
        raise ValueError(f"{where}{name} must be a {kind.__name__}, got {_short(of[name])}.")
    return of[name]


def _number(event: dict[str, Any], name: str) -> float:
    """Return a required finite number."""
    value = _member(event, name, object)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {_short(value)}.")
    return finite(value, name)


def _read_choice(event: dict[str, Any], n_actions: int) -> int:
    """Position of the chosen action, from 0."""
    positions = set()
    for name, start in (("_label_Action", 1), ("_labelIndex", 0)):
        if name in event:
            position = _number(event, name) - start
            if not (position.is_integer() and 0 <= position < n_actions):
                raise ValueError(
                    f"{name} must be an integer from {start} to {n_actions + start - 1}, got "
                    f"{position + start:g}."
                )
            positions.add(int(position))
    if not positions:
        raise ValueError("there is neither _label_Action nor _labelIndex.")
    if len(positions) > 1:
        raise ContradictionError(
            f"_label_Action, {event['_label_Action']}, counts from 1 and _labelIndex, "
            f"{event['_labelIndex']}, from 0, but they name different actions."
        )
    return positions.pop()


def _read_propensity(event: dict[str, Any], chosen: int, labels: tuple[Any, ...]) -> float:
    """Probability of the chosen label, compared with the logged distribution over actions."""
    logged = _number(event, "_label_probability")
    if not _SMALLEST_PROBABILITY <= logged <= 1 + _PROBABILITY_TOLERANCE:
        raise ValueError(
            f"_label_probability must be from {_SMALLEST_PROBABILITY:.2g}, the smallest in "
            f"single precision, to 1, got {logged:g}."
        )
    order, chances = event.get("a"), event.get("p")
    alike = [k for k, label in enumerate(labels) if label == labels[chosen]]
    if not (isinstance(order, list) and isinstance(chances, list)):
        if len(alike) > 1:
            raise ValueError(
                f"two actions have the label {_short(labels[chosen])}, but there are no "
                "probabilities a and p to add: pass action_id='' to number actions."
            )
        return min(logged, 1.0)
    if len(order) != len(chances):
        raise ContradictionError(
            f"a names {len(order)} actions, but p {len(chances)} probabilities."
        )
    first = 0 if 0 in order else 1
    if chosen + first not in order:
        actions = first_few(order)
        raise ContradictionError(
            f"the chosen action {chosen + first} is not among a, {actions:.200}."
        )
    of_alike = [chances[order.index(k + first)] for k in alike if k + first in order]
    chance = chances[order.index(chosen + first)]
    numbers = all(isinstance(value, int | float) for value in of_alike)
    if not numbers or not abs(chance - logged) <= _PROBABILITY_TOLERANCE:
        raise ContradictionError(
            f"_label_probability is {logged:g}, but p gives action {chosen + first} {chance!r:.20}."
        )
    return min(logged if len(alike) == 1 else sum(of_alike), 1.0)


def _read_labels(multi: list[dict[str, Any]], action_id: str) -> tuple[Any, ...]:
    """Labels of the actions of an event."""
    if not action_id:
        return tuple(range(1, len(multi) + 1))
    labels = []
    for k, action in enumerate(multi, start=1):
        label = action.get("_tag") if action_id == "_tag" else _flatten(action).get(action_id)
        if label is None:
            raise ValueError(f"action {k} has no {action_id}, which is the label of actions.")
        if isinstance(label, list | dict):
            raise ValueError(f"the label of action {k} is {_short(label)}, not a text or number.")
        labels.append(label)
    return tuple(labels)


def _described(multi: list[dict[str, Any]], labels: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Features of the actions, once per label."""
    described: dict[Any, dict[str, Any]] = {}
    for action, label in zip(multi, labels, strict=True):
        features = _flatten(action)
        if described.setdefault(label, features) != features:
            raise ValueError(
                f"two actions have the label {_short(label)} and different features: pass "
                "action_id='' to number actions."
            )
    return list(described.values())


def _flatten(value: Any, name: str = "", flat: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the features of a JSON value by dotted names, added to `flat`."""
    flat = {} if flat is None else flat
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("_") or key == "_text":
                _flatten(inner, f"{name}.{key}" if name else key, flat)
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            # objects in an array are parts of one namespace
            _flatten(inner, name if isinstance(inner, dict) else f"{name}.{k}", flat)
    elif value is not None:
        if name in flat:
            raise ValueError(f"the feature {_short(name)} occurs twice.")
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"the feature {_short(name)} must be finite, got {value}.")
        flat[name] = value
    return flat
