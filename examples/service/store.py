"""What must survive: choices and rewards in SQLite, and the policy's state in a file."""

import fcntl
import json
import os
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path

import joblib

from skbandit import GLMUCBPolicy

FOLDER = Path(os.environ.get("SERVICE_FOLDER", "service_data"))
WITHIN = float(os.environ.get("SERVICE_WITHIN", 600))  # seconds in which a reward must come
STATE = "policy.joblib"

ARMS = ["a", "b", "c"]
N_FEATURES = 2


def first_policy():
    """Make the policy before the first choice that is learned.

    Its choices are random, so that its log can evaluate other policies. Without a random_state,
    each process draws numbers of its own.
    """
    return GLMUCBPolicy(arms=ARMS, new_arms="error", exploration="squarecb")


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
"""


def connect():
    """Open the database; a commit returns when the data are on disk."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(FOLDER / "log.sqlite", timeout=30, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait
    connection.execute("PRAGMA synchronous=FULL")  # an acknowledged row survives a power cut
    connection.executescript(TABLES)
    return connection


@contextmanager
def turn():
    """Wait until no other process writes; yield the time, before which all others have written."""
    with (FOLDER / "writer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # woken in turn; SQLite's own lock is polled
        yield time.time()


def write(connection, rows):
    """Write choices (dicts) and rewards (pairs of id and reward), all in one transaction.

    Returns for each row whether it counts: a reward must come within WITHIN seconds. A second
    reward of an id is ignored, so clients may send again whatever was not acknowledged.
    """
    with turn() as now:
        connection.execute("BEGIN IMMEDIATE")
        try:
            counts = [_write(connection, row, now) for row in rows]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has already ended it
                connection.execute("ROLLBACK")
            raise
    return counts


def _write(connection, row, now):
    if isinstance(row, dict):
        # the time of all choices is that of their transaction, so that it is in their order, too
        values = row["id"], now, json.dumps(row | {"time": now})
        connection.execute("INSERT INTO choices (id, time, record) VALUES (?, ?, ?)", values)
        return True
    choice_id, reward = row
    connection.execute(
        "INSERT OR IGNORE INTO rewards SELECT id, ?, ? FROM choices WHERE id = ? AND time + ? >= ?",
        (reward, now, choice_id, WITHIN, now),
    )
    return _has(connection, "rewards", choice_id)


def is_known(connection, choice_id):
    """Whether a choice of this id was recorded."""
    return _has(connection, "choices", choice_id)


def _has(connection, table, choice_id):
    found = connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (choice_id,))
    return found.fetchone() is not None


def settled_after(connection, number, limit):
    """Choices after this number whose time for a reward has passed, in the order of commits.

    Rows of number, record (JSON) and reward, None without one.
    """
    query = (
        "SELECT number, record, reward, choices.time "
        "FROM choices LEFT JOIN rewards USING (id) WHERE number > ? ORDER BY number LIMIT ?"
    )
    with turn() as now:  # so that no reward that was in time is still on its way
        rows = connection.execute(query, (number, limit)).fetchall()
    settled = []
    for *row, at in rows:
        if at + WITHIN >= now:
            break
        settled.append(row)
    return settled


def load():
    """Read the policy, and the number of the last choice that it has learned."""
    path = FOLDER / STATE
    return joblib.load(path) if path.exists() else (first_policy(), 0)


def save(policy, number):
    """Replace the state at once, with the number of the last choice learned.

    Policy and number are one file: whoever reads it after a crash goes on where it stopped, and
    learns each choice once.
    """
    new = FOLDER / f"{STATE}.new"
    with new.open("wb") as file:
        joblib.dump((policy, number), file)
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
