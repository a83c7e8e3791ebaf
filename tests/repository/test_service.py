"""The service of `examples/service`, in processes that are killed: what it acknowledged stays."""

import asyncio
import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest

from skbandit.evaluation import off_policy_value
from skbandit.logs import join_rewards
from tests.service import SERVICE, Client, Service

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytestmark = pytest.mark.thorough

N_VISITORS = 8
WAIT_SECONDS = 120


class Visitors:
    """Concurrent visitors, who like "a" if their first feature is positive, else "b"."""

    def __init__(self, port):
        self.port, self.chosen, self.rewarded, self.lost = port, {}, {}, 0
        self.leave = False

    async def come(self, seed):
        rng, client = np.random.default_rng(seed), Client(self.port)
        while not self.leave:
            x = rng.normal(size=2).tolist()
            answer = await client.insist("/choose", {"context": x})
            self.chosen[answer["id"]] = x, answer["arm"]
            liked = float(answer["arm"] == ("a" if x[0] > 0 else "b"))
            await client.insist("/reward", {"id": answer["id"], "reward": liked})
            self.rewarded[answer["id"]] = liked
        self.lost += client.cut_off
        client.close()


async def under_load(service):
    """Visits, while two web workers and three learners are killed, each after it has learned."""
    visitors = Visitors(service.port)
    visits = [asyncio.create_task(visitors.come(seed)) for seed in range(N_VISITORS)]
    for k in range(3):
        before = learned(service.folder)
        await until(lambda before=before: learned(service.folder) >= before + 30)
        service.kill_learner()
        if k < 2:
            os.kill(service.web_workers()[0], signal.SIGKILL)
        await asyncio.sleep(0.2)
        service.start_learner()
    visitors.leave = True
    await asyncio.gather(*visits)
    return visitors


async def until(holds):
    """Wait for a condition."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def until_reloaded(service, number):
    """Wait for both workers; each connection meets one of them."""
    deadline, seen = time.monotonic() + WAIT_SECONDS, 0
    while seen < 20:
        assert time.monotonic() < deadline
        client = Client(service.port)
        _, state = await client.ask("GET", "/state")
        client.close()
        seen = seen + 1 if state["learned"] == number else 0
        await asyncio.sleep(0.02)


def learned(folder):
    """Number of the last reward that the policy on disk has learned."""
    path = folder / "policy.joblib"
    return joblib.load(path)[1] if path.exists() else 0


def saved(folder):
    """Records and rewards on disk, the policy's state, and the number of rewards it has learned."""
    with sqlite3.connect(folder / "log.sqlite") as database:
        records = [json.loads(text) for (text,) in database.execute("SELECT record FROM choices")]
        rows = database.execute("SELECT number, id, reward FROM rewards ORDER BY number").fetchall()
    return records, rows, *joblib.load(folder / "policy.joblib")


def first_policy():
    spec = importlib.util.spec_from_file_location("service_store", SERVICE / "store.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.first_policy()


def test_nothing_acknowledged_is_lost_and_each_reward_is_learned_once(tmp_path):
    with Service(tmp_path) as service:
        visitors = asyncio.run(under_load(service))
        assert len(service.web_workers()) == 2
        last = saved(tmp_path)[1][-1][0]
        asyncio.run(until(lambda: learned(tmp_path) == last))
        asyncio.run(until_reloaded(service, last))
        environment = {"SERVICE_FOLDER": str(tmp_path), "PYTHONPATH": str(SERVICE.parents[1])}
        second = subprocess.run(
            [sys.executable, SERVICE / "learner.py"],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "another learner works in" in second.stderr
    records, rows, policy, number = saved(tmp_path)
    log = (tmp_path / "log.txt").read_text()
    assert "Error" not in log, log
    assert len(visitors.rewarded) > 100
    assert visitors.lost  # some requests were cut off

    by_id = {record["id"]: record for record in records}
    for key, (x, arm) in visitors.chosen.items():
        assert (by_id[key]["context"], by_id[key]["arm"]) == (x, arm)
    rewards = {key: reward for _, key, reward in rows}
    assert visitors.rewarded.items() <= rewards.items()

    assert number == rows[-1][0]
    assert policy.n_updates_.sum() == len(rows)
    X, events = join_rewards(records, [{"id": key, "reward": reward} for _, key, reward in rows])
    again = first_policy().partial_fit(X, events)
    order = [again.arms_.tolist().index(arm) for arm in policy.arms_]
    np.testing.assert_array_equal(  # to the bit: once each, and in the order of commits
        policy.decision_function(X), again.decision_function(X)[:, order]
    )
    versions = {record["version"] for record in records}
    assert len(versions) >= 3 and min(versions) == 0  # workers took over new states under load
    half = len(events) // 2
    judged = first_policy().partial_fit(X[:half], events[:half])
    assert off_policy_value(judged, X[half:], events[half:], rule="predict").mean_reward > 0.5
