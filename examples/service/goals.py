"""What the service promises, and whether it still holds: `/goals`."""

import json

import store

from skbandit.evaluation import GoalMonitor
from skbandit.rates import each, outcome, positive_rate

GOALS = {
    "no arm takes all": each(positive_rate, of=list(store.ARMS)) <= 0.95,
    "rewards": outcome("reward") >= 0.01,
}
"""Change them here; they count choices whose time for a reward has passed."""

MOST_ROWS = 10_000


class Goals:
    """A monitor, and the number of the last choice that it has counted."""

    def __init__(self):
        self.monitor = GoalMonitor(
            GOALS, false_alarms=0.05, labels=store.ARMS, ranges={"reward": (0, 1)}
        )
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
                arms = [json.loads(record)["arm"] for record in records]
                self.monitor.update(arms, time=list(times), outcomes={"reward": rewards})
                self.counted = numbers[-1]

    def report(self):
        """One entry per goal, as JSON; what is unknown is null."""
        self.count()
        return json.loads(self.monitor.report().to_json(orient="records", date_format="iso"))
