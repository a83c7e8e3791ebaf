"""What the choices of each day used: `/spends`."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import store
from contexts import last_step

from skbandit.rates import Constraint

MOST_DAYS = 31


def per_day(policy):
    """One entry per day (UTC), the latest last: choices by arm, and means of what is bounded."""
    since = store.time.time() - MOST_DAYS * 86_400
    with store.reader() as connection:
        query = "SELECT time, record FROM choices WHERE time > ? ORDER BY number"
        rows = connection.execute(query, (since,)).fetchall()
    records = [json.loads(record) for _, record in rows]
    day = np.array([datetime.fromtimestamp(at, UTC).date().isoformat() for at, _ in rows])
    days = []
    for date in dict.fromkeys(day.tolist()):
        of_day = [record for record, at in zip(records, day, strict=True) if at == date]
        arms = pd.Series([record["arm"] for record in of_day], dtype=object)
        counts = {str(arm): int(n) for arm, n in arms.value_counts().items()}
        spends = list(bounded(policy, of_day, arms.to_numpy()))
        days.append({"day": date, "choices": len(of_day), "arms": counts, "spends": spends})
    return days


def bounded(policy, records, chosen):
    """Mean and total of each bounded rate of a policy under budgets that needs no outcome."""
    last = last_step(policy)
    rates = getattr(last, "constraints", ())
    rates = [rates] if isinstance(rates, Constraint) else rates
    contexts = pd.DataFrame([record["context"] for record in records])
    for constraint in rates:
        try:
            mean = float(constraint.lhs.value(None, chosen, contexts, labels=last.arms_.tolist()))
        except (AttributeError, ValueError, TypeError, KeyError):  # a form, or of outcomes
            continue
        yield {"constraint": str(constraint), "mean": mean, "total": mean * len(chosen)}
