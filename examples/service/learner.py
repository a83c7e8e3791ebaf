"""The one process that learns: `python learner.py`. It may be killed and started at any time."""

import fcntl
import time

import store

from skbandit.logs import join_rewards

MOST_REWARDS = 1000
PAUSE_SECONDS = 0.1


def only_one():
    """Refuse to run next to another learner; a lock ends with its process."""
    store.FOLDER.mkdir(parents=True, exist_ok=True)
    lock = (store.FOLDER / "learner.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SystemExit(f"another learner works in {store.FOLDER}") from error
    return lock


def step(connection, policy, number):
    """Learn the rewards after this number, and save; return the policy and the new number."""
    records, rewards, last = store.rewards_after(connection, number, MOST_REWARDS)
    if records:
        policy = policy.partial_fit(*join_rewards(records, rewards))
        store.save(policy, last)
    return policy, last


def main():
    lock = only_one()
    connection = store.connect()
    policy, number = store.load()
    while not lock.closed:
        policy, last = step(connection, policy, number)
        if last == number:
            time.sleep(PAUSE_SECONDS)
        number = last


if __name__ == "__main__":
    main()
