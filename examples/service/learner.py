"""The one process that learns: `python learner.py`. It may be killed and started at any time."""

import argparse
import fcntl
import json
import logging
import math
import time

import store
from serve import end_with

from skbandit.logs import join_rewards

MOST_CHOICES = 1000
PAUSE_SECONDS = 0.1


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
    said = False
    while True:
        try:
            return store.load()
        except Exception:
            if not said:
                logging.exception("cannot read %s: nothing is learned until it is", store.STATE)
            said = True
            time.sleep(PAUSE_SECONDS)


def learn(policy, rows):
    """Learn choices, with their rewards or as 0 without one; what cannot be learned is left out."""
    try:
        records = [json.loads(record) for _, record, _ in rows]
        # what was acknowledged counts, also if WITHIN has been made shorter since
        rewards = [
            {"id": record["id"], "reward": reward, "time": record["time"]}
            for record, (_, _, reward) in zip(records, rows, strict=True)
            if reward is not None
        ]
        X, log = join_rewards(records, rewards, within=store.WITHIN, missing=0, now=math.inf)
        return policy.partial_fit(X, log)  # an error leaves it unchanged
    except Exception:
        if len(rows) == 1:
            logging.exception("choice %d is set aside: %.300s", *rows[0][:2])
            return policy
    for row in rows:
        policy = learn(policy, [row])
    return policy


def step(connection, policy, number):
    """Learn the choices that are due after this number, and save; return the new number, too."""
    rows = store.settled_after(connection, number, MOST_CHOICES)
    if rows:
        policy, number = learn(policy, rows), rows[-1][0]
        store.save(policy, number)
    return policy, number


def main(parent=None):
    if parent:
        end_with(parent)
    lock = only_one(wait=parent is not None)
    connection = store.connect()
    policy, number = load()
    while not lock.closed:
        policy, last = step(connection, policy, number)
        if last == number:
            time.sleep(PAUSE_SECONDS)
        number = last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parent", type=int, help="wait for other learners; end with this process")
    main(**vars(parser.parse_args()))
