"""What must survive: choices and rewards in SQLite, and the policy's state in a file."""

import fcntl
import json
import logging
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from uuid import uuid4

import joblib
import numpy as np
from contexts import able, last_step
from settings import FIRST_ARMS, FOLDER, NAMED_ARMS, STATE, WITHIN

from skbandit import GLMUCBPolicy

AHEAD_SECONDS = 5.0
"""A choice whose time is later than now by more was stored while the clock was wrong, or is now."""

ARMS = NAMED_ARMS or FIRST_ARMS  # or those of the saved policy, see the end

log = logging.getLogger("service")


def first_policy():
    """Make the policy before the first choice that is learned.

    Its choices are random, so that its log can evaluate other policies. Without a random_state,
    each process draws numbers of its own.
    """
    return GLMUCBPolicy(arms=list(ARMS), new_arms="add", exploration="squarecb")


TABLES = """
CREATE TABLE IF NOT EXISTS choices (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of commits
    id TEXT NOT NULL UNIQUE,
    time REAL NOT NULL,
    record TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS rewards (
    id TEXT PRIMARY KEY REFERENCES choices (id),
    reward REAL NOT NULL,
    time REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS late_rewards (  -- the same, of those that were refused
    id TEXT PRIMARY KEY REFERENCES choices (id),
    reward REAL NOT NULL,
    time REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    closed INTEGER NOT NULL  -- choices up to this number are being learned: no more rewards
);
CREATE TABLE IF NOT EXISTS set_aside (  -- choices that could not be learned
    number INTEGER PRIMARY KEY,
    reason TEXT NOT NULL,
    again INTEGER NOT NULL DEFAULT 0  -- whether the learner shall try again
);
CREATE TABLE IF NOT EXISTS ahead (  -- choices of a later time than that at which they were read
    number INTEGER PRIMARY KEY,
    seen REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS lost (  -- choices that were learned, and are not in the database
    first INTEGER NOT NULL,
    last INTEGER NOT NULL
);
"""


class Replaced(OSError):
    """The file of the database is another one than that which was opened."""


class Database(sqlite3.Connection):
    """A connection that knows which file it was opened on, and whose numbers a state has."""

    file = id = others = None


def connect():
    """Open the database; a commit returns when the data are on disk."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        FOLDER / "log.sqlite", timeout=30, isolation_level=None, factory=Database
    )
    connection.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait
    connection.execute("PRAGMA synchronous=FULL")  # an acknowledged row survives a power cut
    connection.executescript(TABLES)
    connection.execute("INSERT OR IGNORE INTO identity VALUES (1, ?, 0)", (uuid4().hex,))
    connection.id, connection.file = database_id(connection), _file()
    _continue_numbers(connection)
    return connection


def reader():
    """Open the database for reading, in any thread; it must be there."""
    return closing(
        sqlite3.connect(f"{(FOLDER / 'log.sqlite').resolve().as_uri()}?mode=ro", uri=True)
    )


def database_id(connection):
    """Tell this database from others."""
    return connection.execute("SELECT id FROM identity").fetchone()[0]


def last_number(connection):
    """The highest number that a choice ever had, also if that was deleted."""
    query = "SELECT seq FROM sqlite_sequence WHERE name = 'choices'"
    return (connection.execute(query).fetchone() or (0,))[0]


def _file():
    try:
        status = (FOLDER / "log.sqlite").stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _continue_numbers(connection):
    """Number new choices after those that the state has learned.

    A database that was restored from a copy lacks the last of these. New choices with their numbers
    would never be learned.
    """
    try:
        number = _number_of(read_state()[1], connection.id)
    except MemoryError:
        raise
    except Exception:
        return  # who needs the state says so
    with writing(connection):
        last = last_number(connection)
        if number > last:
            log.error(
                "the policy has learned choices up to %d, and the database ends with %d: it was "
                "restored from an older copy. New choices are numbered from %d.",
                *(number, last, number + 1),
            )
            connection.execute("INSERT INTO lost VALUES (?, ?)", (last + 1, number))
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'choices'")
            connection.execute("INSERT INTO sqlite_sequence VALUES ('choices', ?)", (number,))
        connection.execute("UPDATE identity SET closed = MAX(closed, ?)", (number,))


@contextmanager
def turn():
    """Wait until no other process writes; yield the time, before which all others have written."""
    with (FOLDER / "writer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # woken in turn; SQLite's own lock is polled
        yield time.time()


@contextmanager
def writing(connection):
    """One transaction, in turn; yield the time."""
    with turn() as now:
        if _file() != connection.file:  # what is written into a removed file is lost
            raise Replaced(f"{FOLDER / 'log.sqlite'} was replaced while this process had it open")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield now
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has already ended it
                connection.execute("ROLLBACK")
            raise


def write(connection, rows):
    """Write choices (dicts) and rewards (pairs of id and reward), all in one transaction.

    Returns for each row whether it counts: a reward must come within WITHIN seconds, and before its
    choice is learned. A second reward of an id is ignored, so clients may send again whatever was
    not acknowledged.
    """
    with writing(connection) as now:
        return [_write(connection, row, now) for row in rows]


def _write(connection, row, now):
    if isinstance(row, dict):
        # the time of all choices is that of their transaction, so that it is in their order, too
        values = row["id"], now, json.dumps(row | {"time": now})
        connection.execute("INSERT INTO choices (id, time, record) VALUES (?, ?, ?)", values)
        return True
    choice_id, reward = row
    # times alone would let in a reward of a choice that is learned, if the clock has gone back
    connection.execute(
        "INSERT OR IGNORE INTO rewards SELECT id, ?, ? FROM choices "
        "WHERE id = ? AND time + ? >= ? AND number > (SELECT closed FROM identity)",
        (reward, now, choice_id, WITHIN, now),
    )
    counts = _has(connection, "rewards", choice_id)
    if not counts:
        connection.execute(
            "INSERT OR IGNORE INTO late_rewards SELECT id, ?, ? FROM choices WHERE id = ?",
            (reward, now, choice_id),
        )
    return counts


def is_known(connection, choice_id):
    """Whether a choice of this id was recorded."""
    return _has(connection, "choices", choice_id)


def _has(connection, table, choice_id):
    query = f"SELECT 1 FROM {table} WHERE id = ?"
    return connection.execute(query, (choice_id,)).fetchone() is not None


CHOICES = "SELECT number, record, reward, choices.time FROM choices LEFT JOIN rewards USING (id)"


def settle(connection, number, limit):
    """Close choices after this number whose time for a reward has passed, in the order of commits.

    Rows of number, record (JSON) and reward, None without one. Later rewards are refused, so a
    learner that starts again finds the same rewards.
    """
    query = f"{CHOICES} WHERE number > ? ORDER BY number LIMIT ?"
    with writing(connection) as now:  # so that no reward that was in time is still on its way
        rows = connection.execute(query, (number, limit)).fetchall()
        closed = connection.execute("SELECT closed FROM identity").fetchone()[0]
        settled = []
        for row, at in zip(rows, _times(connection, rows, now), strict=True):
            if row[0] > closed and at + WITHIN >= now:
                break
            settled.append(row[:3])
        if settled and settled[-1][0] > closed:
            connection.execute("UPDATE identity SET closed = ?", (settled[-1][0],))
    return settled


def _times(connection, rows, now):
    """Times of choices. One that is ahead counts as the next, or from when it was first read.

    Nothing is corrected in place: it may be the present time that is wrong.
    """
    times, following, ahead = [], now, []
    for number, _, _, at in reversed(rows):
        if at > now + AHEAD_SECONDS:
            ahead.append((number, at - now))
            seen = (
                "INSERT INTO ahead VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET seen = MIN(seen, excluded.seen) RETURNING seen"
            )
            ((first_seen,),) = connection.execute(seen, (number, now)).fetchall()
            at = min(first_seen, following)
        else:
            following = min(following, at)
        times.append(at)
    _warn_of_clock(connection, ahead)
    return times[::-1]


def _warn_of_clock(connection, ahead):
    """Warn once of each choice whose time is ahead."""
    fresh = [place for place in ahead if place[0] > getattr(connection, "warned", 0)]
    if fresh:
        number, seconds = fresh[-1]
        connection.warned = fresh[0][0]
        log.warning(
            "choice %d is dated %.0f seconds later than now, and so are %d after it: the clock was "
            "ahead, or has gone back. They count as the next one, or from now on.",
            *(number, seconds, len(fresh) - 1),
        )


def set_aside(connection, rows, reasons):
    """Keep the numbers of those of these rows that could not be learned, with the reasons."""
    with writing(connection):
        for number, *_ in rows:
            if number in reasons:
                values = number, reasons[number]
                connection.execute("REPLACE INTO set_aside (number, reason) VALUES (?, ?)", values)
            else:
                connection.execute("DELETE FROM set_aside WHERE number = ?", (number,))


def ask_again(connection):
    """Let the learner try what was set aside; return the number of choices."""
    with writing(connection):
        return connection.execute("UPDATE set_aside SET again = 1").rowcount


def asked_again(connection, limit):
    """Choices that were set aside and shall be learned now, as from `settle`."""
    query = f"{CHOICES} WHERE number IN (SELECT number FROM set_aside WHERE again LIMIT ?)"
    if not connection.execute("SELECT 1 FROM set_aside WHERE again").fetchone():
        return []
    database, numbers = read_state()[2]  # learned, and killed before this was noted here
    set_aside(connection, [(number,) for number in numbers if database == connection.id], {})
    return [row[:3] for row in connection.execute(query, (limit,))]


def read_state():
    """Read the state.

    The policy; the number of the last choice that it has learned, by the id of the database; and
    the id and the numbers of those that had been set aside and were learned last.
    """
    path = FOLDER / STATE
    if not path.exists():
        return first_policy(), {}, (None, [])
    saved = joblib.load(path)
    policy, numbers, *again = saved if isinstance(saved, tuple) else (saved, {})  # as a user saves
    policy = able(policy)
    if not isinstance(numbers, dict):  # of a time at which databases had no ids
        numbers = {None: numbers}
    last = last_step(policy)
    named = {"arms": list(ARMS), "new_arms": "add"}
    last.set_params(**{name: named[name] for name in named.keys() & last.get_params(deep=False)})
    return policy, numbers, *(again or [(None, [])])


def _number_of(numbers, database):
    return numbers.get(database, numbers.get(None, 0))


def load():
    """Read the policy, and the number of the last choice in this database that it has learned."""
    policy, numbers, _ = read_state()
    with reader() as connection:
        database = database_id(connection)
    number = _number_of(numbers, database)
    if numbers and not number:
        _warn_of_database(database, len(numbers))
    return policy, number


_new_databases = set()


def _warn_of_database(database, n_others):
    """Warn once of a database of which the state knows nothing."""
    if database not in _new_databases:
        _new_databases.add(database)
        log.warning(
            "the policy has learned from %d other databases and nothing from this one, %s: "
            "it goes on with the first choice in it",
            *(n_others, database),
        )


def save(connection, policy, number, again=()):
    """Replace the state at once, with the number of the last choice learned.

    Policy and number are one file: whoever reads it after a crash goes on where it stopped, and
    learns each choice once.
    """
    if connection.others is None:
        connection.others = read_state()[1]
        connection.others.pop(None, None)
    connection.others[connection.id] = number
    new = FOLDER / f"{STATE}.new"
    with new.open("wb") as file:
        joblib.dump((policy, connection.others, (connection.id, list(again))), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, FOLDER / STATE)


def version():
    """Tell one state from the next; None is that of the first policy."""
    path = FOLDER / STATE
    if not path.exists():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _arms():
    """Labels of the arms: of the settings, else those of the saved policy."""
    labels = []
    with suppress(Exception):  # who needs the state says so
        labels = np.asarray(read_state()[0].arms_).tolist()
    by_text = {str(label): label for label in labels}
    return [by_text.get(text, text) for text in NAMED_ARMS or by_text or FIRST_ARMS]


ARMS = _arms()
