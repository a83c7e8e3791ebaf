"""Choices per second of `examples/service`, and of the same service without a policy.

    python -m benchmarks.service [--seconds 12] [--runs 5] [--visitors 8] [--keep]

Visitors ask for a choice, report a reward, and ask again, all on this machine; then again while a
web worker and the learner are killed in the middle of each run. Needs `pip install ".[service]"`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._kept import keep
from tests.service import Client, Service

APPS = {"GLMUCBPolicy": "app:app", "no policy": "_service_without_policy:app"}


async def visit(port: int, end: float, seed: int, seconds: list[float]) -> None:
    """One visitor, who comes again and again; requests that a kill cuts off are sent again."""
    rng, client = np.random.default_rng(seed), Client(port)

    while time.perf_counter() < end:
        x = rng.normal(size=2).tolist()
        start = time.perf_counter()
        answer = await client.insist("/choose", {"context": x})
        seconds.append(time.perf_counter() - start)
        liked = float(answer["arm"] == ("a" if x[0] > 0 else "b"))
        await client.insist("/reward", {"id": answer["id"], "reward": liked})
    client.close()


async def load(service: Service, seconds: float, visitors: int, seed: int, kill: bool) -> dict:
    """Rate and latencies of choices."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    visits = [
        asyncio.create_task(visit(service.port, end, 1000 * seed + k, took))
        for k in range(visitors)
    ]
    if kill:
        await asyncio.sleep(seconds / 2)
        os.kill(service.web_workers()[0], signal.SIGKILL)
        service.kill_learner()
    await asyncio.gather(*visits)
    median, high = np.percentile(took, [50, 99]) * 1e3
    return {"choices a second": len(took) / seconds, "median ms": median, "99% ms": high}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--visitors", type=int, default=8)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    start, rows = time.process_time(), []
    parts = {"undisturbed": False, "a worker and the learner killed": True}
    # methods in turn, so that a busy machine slows both
    for (part, kill), seed, method in product(parts.items(), range(given.runs), APPS):
        with tempfile.TemporaryDirectory() as folder:
            with Service(folder, APPS[method], path=Path(__file__).parent) as service:
                asyncio.run(load(service, 1, given.visitors, 100 + seed, False))  # to warm up
                found = load(service, given.seconds, given.visitors, seed, kill)
                row = {"part": part, "unit": f"run {seed}", "method": method} | asyncio.run(found)
        rows.append(row)
        print(*row.values(), sep=", ", flush=True)
    if given.keep:
        settings = {package: version(package) for package in ("fastapi", "uvicorn")}
        settings["ran on"] = f"{os.cpu_count()} cores"
        settings["run"] = f"{given.seconds:g} s, {given.visitors} visitors"
        keep("service", pd.DataFrame(rows), time.process_time() - start, **settings)


if __name__ == "__main__":
    main()
