"""The one process that learns: `python learner.py`. It may be killed and started at any time."""

import argparse
import fcntl
import json
import logging
import math
import time

import monitor
import store
from serve import end_with
from settings import start_log

from skbandit.logs import join_rewards

MOST_CHOICES = 1000
PAUSE_SECONDS = 0.1
SAY_SECONDS = 60.0

# What a record itself can cause. OSError and MemoryError pass: they end this process, and it is
# started again.
ERRORS_OF_RECORDS = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError
)  # fmt: skip

log = logging.getLogger("service")


def only_one(wait):
    """Wait for another learner, or refuse to run next to it; a lock ends with its process."""
    store.FOLDER.mkdir(parents=True, exist_ok=True)
    lock = (store.FOLDER / "learner.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise SystemExit(f"another learner works in {store.FOLDER}") from error
    return lock


def load():
    """Read the state, again and again while it cannot be read: it is never replaced unread."""
    said = -math.inf
    while True:
        try:
            return store.load()
        except MemoryError:
            raise
        except Exception:
            if time.monotonic() > said + SAY_SECONDS:
                log.exception("cannot read %s: nothing is learned until it is", store.STATE)
                said = time.monotonic()
            time.sleep(PAUSE_SECONDS)


def join(policy, rows):
    """Contexts and log of choices, with their rewards or 0 without one."""
    records = [json.loads(record) for _, record, _ in rows]
    arms = {*getattr(policy, "arms_", ()), *store.ARMS}
    for record in records:
        if record["arm"] not in arms and record["arm"] not in (record["available"] or ()):
            raise ValueError(f"no policy has chosen the arm {record['arm']!r}")
    # what was acknowledged counts, also if WITHIN has been made shorter since
    rewards = [
        {"id": record["id"], "reward": reward, "time": record["time"]}
        for record, (_, _, reward) in zip(records, rows, strict=True)
        if reward is not None
    ]
    return join_rewards(records, rewards, within=store.WITHIN, missing=0, now=math.inf)


def learn(policy, rows):
    """Learn choices; return the policy, and why some were set aside, by number.

    A policy under budgets learns nothing: fit it anew to the log of `history.py`.
    """
    if not hasattr(policy, "partial_fit"):
        return policy, {}
    try:
        return policy.partial_fit(*join(policy, rows)), {}  # an error leaves it unchanged
    except ERRORS_OF_RECORDS as error:
        if len(rows) == 1:
            number, record, _ = rows[0]
            log.warning("choice %d is set aside, as of %r: %.300s", number, error, record)
            return policy, {number: repr(error)}
    reasons = {}
    for row in rows:
        policy, refused = learn(policy, [row])
        reasons |= refused
    return policy, reasons


def step(connection, policy, number):
    """Learn the choices that are due after this number, and save; return the new number, too."""
    policy = learn_again(connection, policy, number)
    rows = store.settle(connection, number, MOST_CHOICES)
    if rows:
        policy, reasons = learn(policy, rows)
        store.set_aside(connection, rows, reasons)  # before the number passes them
        number = rows[-1][0]
        store.save(connection, policy, number)
    return policy, number


def learn_again(connection, policy, number):
    """Learn choices that were set aside, if that was asked for."""
    rows = store.asked_again(connection, MOST_CHOICES)
    if rows:
        policy, reasons = learn(policy, rows)
        learned = [row[0] for row in rows if row[0] not in reasons]
        store.save(connection, policy, number, again=learned)  # with the policy: each once
        store.set_aside(connection, rows, reasons)
        log.info("%d of %d choices set aside are learned now", len(learned), len(rows))
    return policy


class Lookout:
    """Says every minute what is wrong, and when the clock jumps."""

    def __init__(self):
        self.said, self.offset = -math.inf, time.time() - time.monotonic()

    def look(self, number):
        offset = time.time() - time.monotonic()
        if abs(offset - self.offset) > store.AHEAD_SECONDS:
            log.warning("the clock has jumped by %.0f seconds", offset - self.offset)
        self.offset = offset
        if time.monotonic() > self.said + SAY_SECONDS:
            self.said = time.monotonic()
            for sentence in monitor.report(number)["errors"]:
                log.error(sentence)


def main(parent=None, again=False):
    start_log()
    if again:
        log.info("%d choices shall be learned again", store.ask_again(store.connect()))
        return
    if parent:
        end_with(parent)
    lock = only_one(wait=parent is not None)
    connection = store.connect()
    policy, number = load()
    lookout = Lookout()
    while not lock.closed:
        policy, last = step(connection, policy, number)
        lookout.look(last)
        if last == number:
            time.sleep(PAUSE_SECONDS)
        number = last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parent", type=int, help="wait for other learners; end with this process")
    parser.add_argument(
        "--again", action="store_true", help="let the learner try again what was set aside"
    )
    main(**vars(parser.parse_args()))
