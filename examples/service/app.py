"""Choices and rewards over HTTP. Workers read the policy; `learner.py` alone changes it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated

import numpy as np
import store
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

RELOAD_SECONDS = 0.2
MOST_ROWS = 1000

Number = Annotated[float, Field(allow_inf_nan=False)]


class Visit(BaseModel):
    """A context, and the arms that can be chosen; None is all."""

    context: list[Number] = Field(min_length=store.N_FEATURES, max_length=store.N_FEATURES)
    available: list[str] | None = Field(default=None, min_length=1)


class Reward(BaseModel):
    """What became of a choice."""

    id: str
    reward: float = Field(ge=0, le=1)


class Worker:
    """One process: a policy that is replaced when its file is, and a queue of rows to write."""

    def __init__(self):
        self.version = store.version()
        self.policy, self.learned = store.load()
        self.rows = asyncio.Queue()
        self.disk = ThreadPoolExecutor(1, initializer=self.open)
        self.database = store.connect()

    def open(self):
        self.writer = store.connect()

    async def reload(self):
        """Take over new states, without a pause: choices go on with the old one meanwhile."""
        while True:
            version = store.version()
            if version != self.version:
                self.policy, self.learned = await asyncio.to_thread(store.load)
                self.version = version
            await asyncio.sleep(RELOAD_SECONDS)

    async def write(self):
        """Write what has come since the last commit in one transaction, then acknowledge it."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.rows.get()]
            while not self.rows.empty() and len(batch) < MOST_ROWS:
                batch.append(self.rows.get_nowait())
            rows = [row for row, _ in batch]
            try:
                await loop.run_in_executor(
                    self.disk, lambda rows=rows: store.write(self.writer, rows)
                )
                error = None
            except Exception as failed:  # of the disk or the database: nothing was written
                error = failed
            for _, done in batch:
                if not done.cancelled():
                    done.set_exception(error) if error else done.set_result(None)

    async def written(self, row):
        """Return when a row is on disk."""
        done = asyncio.get_running_loop().create_future()
        self.rows.put_nowait((row, done))
        await done

    def decide(self, context, available):
        """Choose an arm; return its record."""
        policy, x = self.policy, np.array([context])  # one state, whatever is reloaded
        pool = None if available is None else [tuple(available)]
        (arm,), (propensity,) = policy.select(x, available=pool, return_proba=True)
        return policy.record(x, arm, propensity, available=pool)


@asynccontextmanager
async def lifespan(app):
    app.state.worker = worker = Worker()
    worker.decide([0.0] * store.N_FEATURES, None)  # compiles, before the first visitor
    tasks = [asyncio.create_task(worker.reload()), asyncio.create_task(worker.write())]
    yield
    for task in tasks:
        task.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/choose")
async def choose(visit: Visit):
    """Choose an arm; the response is sent when its record is on disk."""
    worker = app.state.worker
    record = worker.decide(visit.context, visit.available)
    await worker.written(record)
    return {"id": record["id"], "arm": record["arm"]}


@app.post("/reward")
async def reward(given: Reward):
    """Keep a reward; the response is sent when it is on disk."""
    worker = app.state.worker
    if not store.is_known(worker.database, given.id):
        raise HTTPException(404, f"no choice has the id {given.id!r}")
    await worker.written((given.id, given.reward))
    return {"id": given.id}


@app.get("/state")
async def state():
    """Number of the last reward that the present policy has learned."""
    return {"learned": app.state.worker.learned}
