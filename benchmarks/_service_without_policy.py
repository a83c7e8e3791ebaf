"""The service of `examples/service` with arms drawn by `random`, to which a policy is compared."""

import random
import time
from uuid import uuid4

import app as service
import store


class Worker(service.Worker):
    """Makes the same record without a policy."""

    def decide(self, context, available):
        return {
            "id": uuid4().hex,
            "time": time.time(),
            "context": context,
            "arm": random.choice(store.ARMS),
            "propensity": 1 / len(store.ARMS),
            "available": available,
            "version": 0,
        }


service.Worker = Worker
app = service.app
