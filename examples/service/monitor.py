"""What an operator looks at: `/health` as JSON, and `/metrics` for Prometheus."""

import store
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

BEHIND_SECONDS = 60.0
"""Choices that are due for longer, and not learned, are an error."""

MEANINGS = {
    "learned": "Number of the last choice that the policy has learned",
    "last": "Number of the last choice stored",
    "waiting": "Choices whose time for a reward has not passed",
    "due": "Choices whose time for a reward has passed, and that are not learned",
    "due_seconds": "Seconds for which the oldest of these is due",
    "rewards_late": "Choices with a reward that was refused as late",
    "set_aside": "Choices that could not be learned",
    "state_age_seconds": "Seconds since the policy's state was written",
}


def report(learned, readable=True):
    """State of the service, for a policy that has learned choices up to this number."""
    now = store.time.time()
    with store.reader() as connection:

        def ask(query, *values):
            return connection.execute(query, values).fetchone()

        before = now - store.WITHIN
        due, after = ask(
            "SELECT COALESCE(SUM(time < ?), 0), COUNT(*) FROM choices WHERE number > ?",
            *(before, learned),
        )
        (oldest,) = ask("SELECT MIN(time) FROM choices WHERE number > ?", learned)
        values = {
            "database": store.database_id(connection),
            "learned": learned,
            "last": store.last_number(connection),
            "waiting": after - due,
            "due": due,
            "due_seconds": max(0.0, before - oldest) if due else 0.0,
            "rewards_late": ask("SELECT COUNT(*) FROM late_rewards")[0],
            "set_aside": ask("SELECT COUNT(*) FROM set_aside")[0],
            "state_age_seconds": state_age(now),
        }
        lost = connection.execute("SELECT first, last FROM lost").fetchall()
    errors = list(sentences(values, lost, readable))
    return {"status": "error" if errors else "ok", "errors": errors} | values


def state_age(now):
    """Seconds since the state was written; None without one."""
    version = store.version()
    return None if version is None else max(0.0, now - version[0] / 1e9)


def sentences(values, lost, readable):
    """What is wrong."""
    if not readable:
        yield f"{store.STATE} cannot be read: choices go on with an older policy."
    if values["last"] < values["learned"]:
        yield (
            f"The policy has learned choices up to {values['learned']}, and the database ends with "
            f"{values['last']}: start the service again."
        )
    for first, last in lost:
        yield (
            f"The choices {first} to {last} were learned, and the database does not have them: it "
            "was restored from an older copy. DELETE FROM lost removes this message."
        )
    if values["due_seconds"] > BEHIND_SECONDS:
        yield (
            f"{values['due']} choices are due and not learned, the oldest for "
            f"{values['due_seconds']:.0f} seconds: the learner does not run, or is too slow."
        )
    if values["set_aside"]:
        yield (
            f"{values['set_aside']} choices could not be learned and are set aside: see the table "
            "set_aside for the reasons, and try again with python learner.py --again."
        )


class Gauges:
    """A report as metrics. They are those of the database, the same from every worker."""

    def __init__(self, values):
        self.values = values

    def collect(self):
        for name, meaning in MEANINGS.items():
            if self.values[name] is not None:
                yield GaugeMetricFamily(f"bandit_{name}", meaning, value=self.values[name])
        errors = "Number of errors that /health lists"
        yield GaugeMetricFamily("bandit_errors", errors, value=len(self.values["errors"]))
        database = {"id": self.values["database"]}
        yield InfoMetricFamily("bandit_database", "The database", value=database)


def metrics(values):
    """A report in the text format of Prometheus, and its media type."""
    registry = CollectorRegistry()
    registry.register(Gauges(values))
    return generate_latest(registry), CONTENT_TYPE_LATEST
