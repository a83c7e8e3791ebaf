"""What must survive: choices and rewards in SQLite, and the policy's state in a file."""

import fcntl
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import joblib

from skbandit import GLMUCBPolicy

FOLDER = Path(os.environ.get("SERVICE_FOLDER", "service_data"))
STATE = "policy.joblib"

ARMS = ["a", "b", "c"]
N_FEATURES = 2


def first_policy():
    """Make the policy before the first reward.

    Its choices are random, so that its log can evaluate other policies. Without a random_state,
    each process draws numbers of its own.
    """
    return GLMUCBPolicy(arms=ARMS, exploration="squarecb")


TABLES = """
CREATE TABLE IF NOT EXISTS choices (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rewards (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of commits
    id TEXT NOT NULL UNIQUE REFERENCES choices (id),
    reward REAL NOT NULL,
    time REAL NOT NULL
);
"""


def connect():
    """Open the database; a commit returns when the data are on disk."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(FOLDER / "log.sqlite", timeout=30, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait
    connection.execute("PRAGMA synchronous=FULL")  # an acknowledged row survives a power cut
    connection.executescript(TABLES)
    return connection


def write(connection, rows):
    """Write choices (dicts) and rewards (pairs of id and reward), all in one transaction.

    A second reward of an id is ignored, so clients may send again whatever was not acknowledged.
    """
    choices = [(row["id"], json.dumps(row)) for row in rows if isinstance(row, dict)]
    rewards = [(*row, time.time()) for row in rows if not isinstance(row, dict)]
    with (FOLDER / "writer.lock").open("w") as turn, closing(connection.cursor()) as cursor:
        fcntl.flock(turn, fcntl.LOCK_EX)  # woken in turn; SQLite's own lock is polled
        cursor.execute("BEGIN IMMEDIATE")
        try:
            cursor.executemany("INSERT INTO choices VALUES (?, ?)", choices)
            cursor.executemany(
                "INSERT OR IGNORE INTO rewards (id, reward, time) VALUES (?, ?, ?)", rewards
            )
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise


def is_known(connection, choice_id):
    """Whether a choice of this id was recorded."""
    query = "SELECT 1 FROM choices WHERE id = ?"
    return connection.execute(query, (choice_id,)).fetchone() is not None


def rewards_after(connection, number, limit):
    """Records, their rewards and the number of the last one, in the order of commits."""
    query = (
        "SELECT number, record, reward FROM rewards JOIN choices USING (id) "
        "WHERE number > ? ORDER BY number LIMIT ?"
    )
    rows = connection.execute(query, (number, limit)).fetchall()
    records = [json.loads(record) for _, record, _ in rows]
    rewards = [
        {"id": record["id"], "reward": row[2]} for record, row in zip(records, rows, strict=True)
    ]
    return records, rewards, rows[-1][0] if rows else number


def load():
    """Read the policy, and the number of the last reward that it has learned."""
    path = FOLDER / STATE
    return joblib.load(path) if path.exists() else (first_policy(), 0)


def save(policy, number):
    """Replace the state at once, with the number of the last reward learned.

    Policy and number are one file: whoever reads it after a crash goes on where it stopped, and
    learns each reward once.
    """
    new = FOLDER / f"{STATE}.new"
    with new.open("wb") as file:
        joblib.dump((policy, number), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, FOLDER / STATE)


def version():
    """Tell one state from the next."""
    path = FOLDER / STATE
    return path.stat().st_mtime_ns if path.exists() else 0
