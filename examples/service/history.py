"""The service's log, for `replay` and `off_policy_value`."""

import json
import warnings

import pandas as pd
import store
from learner import join

BLOCK_SIZE = 10_000


def read_blocks(block_size=BLOCK_SIZE, since=0):
    """Yield pairs (X, log) of all choices after a number that get no more rewards.

    They have the rewards that the policy has learned, 0 without one. Choices that were set aside
    are left out, and those without a list of available arms, with a warning. Pass the blocks to
    `off_policy_blocks` or `replay_blocks`.
    """
    query = (
        f"{store.CHOICES} WHERE number > ? AND number <= (SELECT closed FROM identity) "
        "AND number NOT IN (SELECT number FROM set_aside) ORDER BY number LIMIT ?"
    )
    policy = store.load()[0]
    left_out = 0
    while True:
        with store.reader() as connection:  # anew, so that no block holds up the writers' log
            rows = connection.execute(query, (since, block_size)).fetchall()
        if not rows:
            break
        since = rows[-1][0]
        readable = [
            (number, plain, reward) for number, text, reward, _ in rows if (plain := tidy(text))
        ]
        left_out += len(rows) - len(readable)
        if readable:
            yield join(policy, readable)
    if left_out:
        warnings.warn(f"{left_out} choices without available arms are left out", stacklevel=2)


def tidy(text):
    """A record whose available arms are named once each; None without any."""
    record = json.loads(text)
    if not record["available"]:
        return None
    return json.dumps(record | {"available": list(dict.fromkeys(record["available"]))})


def read_log(since=0):
    """All blocks at once: contexts and log, for `replay` and `off_policy_value`."""
    blocks = list(read_blocks(since=since))
    if not blocks:
        raise ValueError("no choice after this number has waited for its reward to the end")
    contexts, logs = zip(*blocks, strict=True)
    X = pd.concat(map(pd.DataFrame, contexts), ignore_index=True)
    named = isinstance(contexts[0], pd.DataFrame)
    return X if named else X.to_numpy(), pd.concat(logs, ignore_index=True)
