"""What the service promises, and whether it still holds: `/goals`."""

import json
import logging
import os

import pandas as pd
import store
from contexts import last_step

from skbandit.evaluation import GoalMonitor
from skbandit.rates import each, outcome, positive_rate

log = logging.getLogger("service")

OUTCOME = os.environ.get("SERVICE_OUTCOME", "reward")
"""The column of the log that a reward is, by the name that goals give it."""

GOALS = {
    "no arm takes all": each(positive_rate, of=list(store.ARMS)) <= 0.95,
    "rewards": outcome(OUTCOME) >= 0.01,
}
"""Of a policy that declares none. They count choices whose time for a reward has passed."""

MOST_ROWS = 10_000


class Goals:
    """A monitor, and the number of the last choice that it has counted."""

    def __init__(self, policy):
        options = {"false_alarms": 0.05, "ranges": {OUTCOME: (0, 1)}}
        last, goals = last_step(policy), []
        declared = last.constraints if len(getattr(last, "constraint_report_", ())) else []
        for goal in declared if isinstance(declared, list | tuple) else [declared]:
            try:
                GoalMonitor(goal, **options)
                goals.append(goal)
            except ValueError as error:  # another outcome, or a column whose range is not known
                log.warning("/goals leaves out a goal: %s", error)
        labels = last.arms_ if goals else store.ARMS
        self.monitor = GoalMonitor(goals or GOALS, labels=labels, **options)
        self.counted = 0

    def count(self):
        """Count what is new, block by block."""
        query = (
            "SELECT number, time, record, COALESCE(reward, 0) FROM choices "
            "LEFT JOIN (SELECT id, reward FROM rewards) USING (id) "
            "WHERE number > ? AND time < ? ORDER BY number LIMIT ?"
        )
        with store.reader() as connection:
            while True:
                before = store.time.time() - store.WITHIN
                values = self.counted, before, MOST_ROWS
                rows = connection.execute(query, values).fetchall()
                if not rows:
                    return
                numbers, times, records, rewards = zip(*rows, strict=True)
                records = [json.loads(record) for record in records]
                contexts = [record["context"] for record in records]
                named = pd.DataFrame(contexts) if isinstance(contexts[0], dict) else None
                self.monitor.update(
                    [record["arm"] for record in records], attributes=named, time=list(times),
                    outcomes={OUTCOME: rewards},
                )  # fmt: skip
                self.counted = numbers[-1]

    def report(self):
        """One entry per goal, as JSON; what is unknown is null."""
        self.count()
        return json.loads(self.monitor.report().to_json(orient="records", date_format="iso"))
