"""The service of `examples/service` over HTTP, with kills, clicks only, and input of any kind."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedPolicy, GLMUCBPolicy
from skbandit.bandit import make_policy_pipeline
from skbandit.evaluation import off_policy_value
from skbandit.logs import join_rewards
from skbandit.rates import cost, outcome
from tests.service import ROOT, SERVICE, Client, Service

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.nightly

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
            log = service.folder / "log.txt"
            await until(lambda: log.read_text().count("ready on") == 2 + k)  # noqa: B023
            os.kill(service.web_workers()[0], signal.SIGKILL)
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
    """Number of the last choice that the policy on disk has learned."""
    path = folder / "policy.joblib"
    return max(joblib.load(path)[1].values()) if path.exists() else 0


def saved(folder):
    """Records and rewards on disk, the policy's state, and the number of choices it has learned."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as database:
        texts = database.execute("SELECT record FROM choices ORDER BY number").fetchall()
        rewards = database.execute("SELECT id, reward, time FROM rewards").fetchall()
    return [json.loads(text) for (text,) in texts], rewards, *state_in(folder)


def state_in(folder):
    """The policy on disk, and the number of choices that it has learned."""
    policy, numbers, _ = joblib.load(folder / "policy.joblib")
    return policy, max(numbers.values())


async def all_learned(service, n):
    """Wait until the policy on disk, and then that of the workers, has learned n choices."""
    await until(lambda: learned(service.folder) == n)
    await until_reloaded(service, n)


def test_nothing_acknowledged_is_lost_and_each_choice_is_learned_once(tmp_path):
    with Service(tmp_path, within=5) as service:
        visitors = asyncio.run(under_load(service))
        assert len(service.web_workers()) == 2
        asyncio.run(all_learned(service, len(saved(tmp_path)[0])))
        environment = {"SERVICE_FOLDER": str(tmp_path), "PYTHONPATH": str(SERVICE.parents[1])}
        second = subprocess.run(
            [sys.executable, SERVICE / "learner.py"],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "another learner works in" in second.stderr
    records, rewards, policy, number = saved(tmp_path)
    log = (tmp_path / "log.txt").read_text()
    assert "Error" not in log and "Warning" not in log, log
    assert len(visitors.rewarded) > 100
    assert visitors.lost  # some requests were cut off

    by_id = {record["id"]: record for record in records}
    for key, (x, arm) in visitors.chosen.items():
        assert (by_id[key]["context"], by_id[key]["arm"]) == (x, arm)
    assert visitors.rewarded.items() <= {key: reward for key, reward, _ in rewards}.items()

    assert number == len(records) == policy.n_updates_.sum()
    given = [{"id": key, "reward": reward, "time": at} for key, reward, at in rewards]
    X, events = join_rewards(records, given, within=5, missing=0, now=np.inf)
    assert len(events) == number
    again = first_policy().partial_fit(X, events)
    np.testing.assert_array_equal(  # to the bit: once each, and in the order of commits
        policy.decision_function(X), again.decision_function(X)
    )
    versions = {record["version"] for record in records}
    assert len(versions) >= 3 and min(versions) == 0  # workers took over new states under load
    half = len(events) // 2
    judged = first_policy().partial_fit(X[:half], events[:half])
    assert off_policy_value(judged, X[half:], events[half:], rule="predict").mean_reward > 0.5


def first_policy():
    """That of the service."""
    return GLMUCBPolicy(arms=["a", "b", "c"], exploration="squarecb")


CLICK_RATES = {"a": 0.05, "b": 0.1, "c": 0.3}
POOLS = [None, ["a", "b"], None, ["c", "a"]]


async def visits_with_clicks_only(service, n):
    """Clicks are reported, their absence is not; every other visit names its arms."""
    rng, client, clicks = np.random.default_rng(0), Client(service.port), 0
    for k in range(n):
        visit = {"context": rng.normal(size=2).tolist(), "available": POOLS[k % 4]}
        answer = await client.insist("/choose", visit)
        assert answer["arm"] in (POOLS[k % 4] or CLICK_RATES)
        if rng.random() < CLICK_RATES[answer["arm"]]:
            await client.insist("/reward", {"id": answer["id"], "reward": 1})
            clicks += 1
    client.close()
    return clicks


async def late_reward(service):
    """Statuses of rewards before and after the time that they have: new, again, late, again."""
    client, statuses = Client(service.port), []
    one, other = [await client.insist("/choose", {"context": [0.5, 0]}) for _ in range(2)]
    for wait, answer in ((0, one), (0, one), (service.within + 0.3, other), (0, one)):
        await asyncio.sleep(wait)
        given = {"id": answer["id"], "reward": 1}
        statuses.append((await client.ask("POST", "/reward", given))[0])
    client.close()
    return statuses


def test_clicks_only_bad_records_late_rewards_and_a_supervisor_that_is_killed(tmp_path):
    with Service(tmp_path) as service:
        clicks = asyncio.run(visits_with_clicks_only(service, 1200))
        asyncio.run(all_learned(service, 1200))
        records, rewards, policy, _ = saved(tmp_path)
        assert policy.n_updates_.sum() == 1200 and len(rewards) == clicks
        assert policy.arms_.tolist() == list(CLICK_RATES)
        contexts = np.array([record["context"] for record in records])
        for k, arm in enumerate(policy.arms_):  # rates as they are, not those of clicks alone
            own = [record["id"] for record in records if record["arm"] == arm]
            rate = len({key for key, _, _ in rewards} & set(own)) / len(own)
            assert policy.predict_reward(contexts)[:, k].mean() == pytest.approx(rate, abs=0.04)

        # records that cannot be learned, among others that can
        with closing(sqlite3.connect(tmp_path / "log.sqlite", timeout=30)) as database, database:
            for key, bad in (
                ("x", "{"),
                ("y", json.dumps(records[0] | {"id": "y", "context": [1e200, 0]})),
                ("z", json.dumps(records[0] | {"id": "z", "arm": "<script>", "available": None})),
                ("w", json.dumps(records[0] | {"id": "w", "available": None})),
            ):
                row = key, time.time(), bad
                database.execute("INSERT INTO choices (id, time, record) VALUES (?, ?, ?)", row)
        assert asyncio.run(late_reward(service)) == [200, 200, 410, 200]
        asyncio.run(all_learned(service, 1206))
        policy, number = state_in(tmp_path)
        assert (policy.n_updates_.sum(), number) == (1203, 1206)
        log = (tmp_path / "log.txt").read_text()
        assert log.count("is set aside") == 3 and "choice 1202 is set aside" in log

        # a state that cannot be read: choices and learning wait for one that can
        state = tmp_path / "policy.joblib"
        whole = state.read_bytes()
        service.kill_learner()
        state.write_bytes(whole[: len(whole) // 2])
        text = (tmp_path / "log.txt").read_text
        asyncio.run(until(lambda: text().count("cannot read policy.joblib") >= 3))
        assert asyncio.run(visits_with_clicks_only(service, 40)) >= 0
        state.write_bytes(whole)
        asyncio.run(all_learned(service, 1246))
        assert text().count("cannot read policy.joblib: choices go on") <= 4  # not at each attempt

        workers = service.web_workers()
        service.web.kill()
        service.web.wait()
        service.start()  # on the same port, at once
        assert not set(workers) & set(service.web_workers())
        asyncio.run(until(lambda: not any(is_running(worker) for worker in workers)))
        asyncio.run(visits_with_clicks_only(service, 40))
        asyncio.run(all_learned(service, 1286))
        asyncio.run(is_watched(service))
    assert state_in(tmp_path)[0].n_updates_.sum() == 1283
    log = (tmp_path / "log.txt").read_text()
    assert f"ready on http://127.0.0.1:{service.port}" in log
    assert "the learner ended with signal 9: starts again in 0 s" in log


async def is_watched(service):
    """What an operator is told, after three choices were set aside."""
    client = Client(service.port)
    status, health = await client.ask("GET", "/health")
    assert status == 200 and health["status"] == "error"
    assert health["learned"] == health["last"] == 1286 and health["due"] == 0
    assert (health["set_aside"], health["rewards_late"]) == (3, 1)
    assert len(health["errors"]) == 1 and "3 choices could not be learned" in health["errors"][0]
    status, text = await client.ask("GET", "/metrics")
    assert status == 200 and "bandit_set_aside 3.0" in text
    assert f'bandit_database_info{{id="{health["database"]}"}} 1.0' in text
    client.close()


def is_running(process):
    """Whether a process of this id has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


ID = "0" * 32
HOSTILE = [
    ("/choose", '{"context": [0, NaN]}', 422),
    ("/choose", '{"context": [1e999, 0]}', 422),
    ("/choose", '{"context": [1e30, 0]}', 422),
    ("/choose", '{"context": [0, true]}', 422),
    ("/choose", '{"context": [0, "1"]}', 422),
    ("/choose", '{"context": [0, 1], "pool": ["a"]}', 422),
    ("/choose", '{"context": [0, 1], "available": ["a", "a"]}', 422),
    ("/choose", '{"context": [0]}', 422),
    ("/choose", '{"context": {"u": 0, "v": 1}}', 422),
    ("/choose", '{"context": [0, 1], "available": ["evil"]}', 422),
    ("/choose", '{"context": [0, 1], "available": ["a", "\\ud800"]}', 422),
    ("/choose", '{"context": [0, 1], "available": []}', 422),
    ("/choose", "[" * 40_000, 422),
    ("/choose", "\xff", 422),
    ("/choose", "", 422),
    ("/reward", '{"id": "' + ID + '", "reward": NaN}', 422),
    ("/reward", '{"id": "' + ID + '", "reward": 1.1}', 422),
    ("/reward", '{"id": "' + ID + '", "reward": 1}', 404),
    ("/reward", '{"id": "\\ud800", "reward": 1}', 422),
    ("/reward", '{"id": "' + ID + '", "reward": true}', 422),
    ("/reward", '{"id": "' + ID + '", "reward": 1, "time": 0}', 422),
]


async def send_hostile(service):
    client = Client(service.port)
    for path, body, expected in HOSTILE:
        status, answer = await client.send("POST", path, body.encode("latin-1"))
        assert 400 <= status < 500 and status in (expected, 400), (path, body[:80], answer)
    for size in (200_000, 20_000_000):
        start = time.monotonic()
        status, _ = await client.send("POST", "/choose", b'{"context": [' + b"0, " * (size // 3))
        assert status == 413 and time.monotonic() - start < 5
    client.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(b"POST /choose HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
    for _ in range(20):  # of an end that never comes
        writer.write(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    for arms in (["a"], ["c", "b", "a"], None):  # and after all this
        answer = await client.insist("/choose", {"context": [1000, -0.5], "available": arms})
        assert answer["arm"] in CLICK_RATES
        await client.insist("/reward", {"id": answer["id"], "reward": 0.5})
    client.close()


def test_hostile_input_is_refused(tmp_path):
    with Service(tmp_path, workers=1) as service:
        asyncio.run(send_hostile(service))
        asyncio.run(all_learned(service, 3))
    assert "Traceback" not in (tmp_path / "log.txt").read_text()
    records, rewards, policy, _ = saved(tmp_path)
    assert len(records) == len(rewards) == policy.n_updates_.sum() == 3
    assert policy.arms_.tolist() == list(CLICK_RATES)


def visits():
    """A bandit of the columns of your_log.md."""
    X = pd.DataFrame({"device": ["phone", "web"] * 20, "age": [35.0, None, 20.0, 50.0] * 10})
    front = make_column_transformer(
        (OneHotEncoder(), ["device"]), (make_pipeline(SimpleImputer(), StandardScaler()), ["age"])
    )
    policy = make_policy_pipeline(front, GLMUCBPolicy(exploration="squarecb"))
    return policy.fit(X, {"action": ["news", "sports"] * 20, "reward": [1, 0, 0, 1] * 10})


def router():
    """A policy with goals of the columns of router.md."""
    rng = np.random.default_rng(0)
    kind = pd.get_dummies(rng.choice(["chat", "code", "facts"], 600), dtype=float)
    X = kind.assign(hard=rng.normal(size=600), length=rng.lognormal(5, 0.8, 600))
    log = pd.DataFrame({"action": rng.choice(["nano", "huge"], 600), "propensity": 0.5})
    log["tokens"] = rng.gamma(2, 200, 600)  # no range is known: `/goals` leaves its goal out
    log["quality"] = (rng.random(600) < np.where(log["action"] == "huge", 0.9, 0.6)).astype(float)
    price, floor = cost({"nano": 0.1, "huge": 6.0}), outcome("quality", "code == 1") >= 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models cost nearly the same
        goals = [outcome("tokens") <= 900, floor, price <= 5]
        return ConstrainedPolicy(None, price, goals, random_state=0).fit(X, log)


@pytest.mark.parametrize(
    ("page", "make"),
    [("getting_started/your_log.md", visits), ("case_studies/router.md", router)],
)
def test_the_last_commands_of_a_page_work_as_printed(page, make, tmp_path, monkeypatch):
    text = (ROOT / "docs" / page).read_text()
    for name, value in re.findall(r"(SERVICE_OUTCOME)=(\w+)", text):
        monkeypatch.setenv(name, value)
    bodies = re.findall(r"localhost:8000/choose [^#]*? -d '(.*)'", text)
    policy = make()
    joblib.dump(policy, tmp_path / "policy.joblib")

    async def talk(port):
        client = Client(port)
        for body in bodies:
            status, answer = await client.ask("POST", "/choose", json.loads(body))
            assert status == 200, answer
            assert answer["arm"] in policy.arms_
            await client.ask("POST", "/reward", {"id": answer["id"], "reward": 1})
        status, refused = await client.ask("POST", "/choose", {"context": {"zip": 1}})
        assert status == 422
        first = policy.feature_names_in_[0]
        assert f"does not know 'zip': its columns are {first} (" in refused["detail"]
        _, days = await client.ask("GET", "/spends")
        assert days[0]["choices"] == len(bodies) > 0
        _, goals = await client.ask("GET", "/goals")
        watched = "outcome('quality'" if "router" in page else "no arm takes all"
        assert goals[0]["goal"].startswith(watched)
        client.close()

    with Service(tmp_path, workers=1) as service:
        asyncio.run(talk(service.port))
