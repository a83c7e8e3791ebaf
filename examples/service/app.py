"""Choices and rewards over HTTP. Workers read the policy; `learner.py` alone changes it."""

import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Literal

import monitor
import spends
import store
from choices import choose as choose_arm
from contexts import Contexts
from fastapi import FastAPI, HTTPException, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from goals import Goals
from pydantic import BaseModel, ConfigDict, Field, field_validator

RELOAD_SECONDS = 0.2
MOST_ROWS = 1000
MOST_BYTES = 100_000

log = logging.getLogger("service")

Arm = Literal[tuple(store.ARMS)]


class Body(BaseModel):
    """What is not expected is refused: an unknown key, or text and true where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Visit(Body):
    """A context, and the arms that can be chosen; None is all."""

    context: dict[str, Any] | list[Any]  # as the policy takes it: `contexts.py`
    available: list[Arm] | None = Field(default=None, min_length=1)

    @field_validator("available")
    @classmethod
    def names_each_once(cls, arms):
        if arms is not None and len(set(arms)) < len(arms):
            raise ValueError("an arm is named twice")
        return arms


class Reward(Body):
    """What became of a choice."""

    id: str = Field(pattern="^[0-9a-f]{32}$")
    reward: float = Field(ge=0, le=1, allow_inf_nan=False)


class Worker:
    """One process: a policy that is replaced when its file is, and a queue of rows to write."""

    def __init__(self):
        self.learned = 0
        self.take(store.first_policy())
        self.version, self.unreadable = None, ()  # versions that were read, and could not be
        self.load()
        self.rows = asyncio.Queue()
        self.disk = ThreadPoolExecutor(1, initializer=self.open)
        self.database = store.connect()
        self.goals, self.watching = Goals(self.contexts.policy), asyncio.Lock()

    def open(self):
        self.writer = store.connect()

    def take(self, policy):
        """Choose with this policy; the contexts that it takes come with it."""
        self.contexts = Contexts(policy)

    def load(self):
        """Take over a new state; one that cannot be read is logged, and tried again."""
        version = None
        try:
            version = store.version()
            if version != self.version:
                policy, self.learned = store.load()
                self.take(policy)
                self.version = version
            self.unreadable = ()
        except Exception:  # for whatever reason: this worker still has a policy that can choose
            if version != self.unreadable:
                log.exception("cannot read %s: choices go on with the last one", store.STATE)
                self.unreadable = version

    async def reload(self):
        """Look for new states, without a pause: choices go on with the old one meanwhile."""
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            await asyncio.to_thread(self.load)

    async def write(self):
        """Write what has come since the last commit in one transaction, then acknowledge it."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.rows.get()]
            while not self.rows.empty() and len(batch) < MOST_ROWS:
                batch.append(self.rows.get_nowait())
            rows = [row for row, _ in batch]
            try:
                results = await loop.run_in_executor(
                    self.disk, lambda rows=rows: store.write(self.writer, rows)
                )
                error = None
            except Exception as failed:  # of the disk or the database: nothing was written
                log.exception("cannot write %d choices and rewards, which were refused", len(rows))
                results, error = rows, failed
            for (_, done), result in zip(batch, results, strict=True):
                if not done.cancelled():
                    done.set_exception(error) if error else done.set_result(result)
            if isinstance(error, store.Replaced):  # a new process opens the new file
                signal.raise_signal(signal.SIGTERM)

    async def written(self, row):
        """Return when a row is on disk, or refused: whether it counts."""
        done = asyncio.get_running_loop().create_future()
        self.rows.put_nowait((row, done))
        try:
            return await done
        except Exception as error:
            raise HTTPException(503, "this could not be stored: send it again") from error

    def decide(self, context, available):
        """Choose an arm; return its record."""
        contexts = self.contexts  # one state, whatever is reloaded
        arms = available or store.ARMS  # named, as records are learned together
        try:
            row, policy = contexts.read(context), contexts.policy
            x, given = contexts.of_policy(row)
            arm, propensity = choose_arm(policy, x, arms, **given)
            return policy.record(row, arm, propensity, available=[tuple(arms)])
        except (ValueError, TypeError, OverflowError) as error:
            raise HTTPException(422, str(error)) from error

    def report(self):
        """State of the service, as this worker sees it."""
        return monitor.report(self.learned, readable=self.unreadable == ())


@asynccontextmanager
async def lifespan(app):
    app.state.worker = worker = Worker()
    worker.decide(worker.contexts.example(), None)  # compiles, before the first visitor
    tasks = [asyncio.create_task(worker.reload()), asyncio.create_task(worker.write())]
    yield
    for task in tasks:
        task.cancel()


class Bounded:
    """Refuse a body of more than MOST_BYTES, without reading more of it than these."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        declared = dict(scope.get("headers", ())).get(b"content-length", b"0")
        size, read = int(declared) if declared.isdigit() else 0, 0

        async def bounded():
            nonlocal read
            message = {} if size > MOST_BYTES else await receive()
            read += len(message.get("body", b""))
            if max(size, read) > MOST_BYTES:
                raise HTTPException(413, f"a request has at most {MOST_BYTES} bytes")
            return message

        await self.app(scope, bounded, send)


app = FastAPI(lifespan=lifespan)
app.add_middleware(Bounded)


@app.exception_handler(RequestValidationError)
async def refuse(request, error):
    """Say what is wrong without repeating it: JSON cannot hold all that is sent, such as nan."""
    wrong = [{"loc": cause["loc"], "msg": cause["msg"]} for cause in error.errors()]
    return JSONResponse({"detail": wrong}, 422)


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
    if not await worker.written((given.id, given.reward)):
        raise HTTPException(
            410,
            f"it came later than {store.WITHIN:g} seconds after its choice, or this is learned",
        )
    return {"id": given.id}


@app.get("/state")
async def state():
    """Number of the last choice that the present policy has learned."""
    return {"learned": app.state.worker.learned}


@app.get("/health")
async def health():
    """What is due, late or set aside, and a sentence for each error."""
    try:
        return await asyncio.to_thread(app.state.worker.report)
    except Exception as error:
        log.exception("cannot read the database")
        return JSONResponse({"status": "error", "errors": [f"The database: {error}"]}, 503)


@app.get("/goals")
async def goals():
    """Whether the goals of `goals.py` still hold, at all times with few false alarms."""
    worker = app.state.worker
    async with worker.watching:
        return await asyncio.to_thread(worker.goals.report)


@app.get("/spends")
async def spent():
    """Choices per day and arm, and what they used of the budgets that the policy declares."""
    return await asyncio.to_thread(spends.per_day, app.state.worker.contexts.policy)


@app.get("/metrics")
async def metrics():
    """The same for Prometheus."""
    content, media_type = monitor.metrics(await asyncio.to_thread(app.state.worker.report))
    return Response(content, media_type=media_type)
