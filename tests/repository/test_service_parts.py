"""The parts of `examples/service` in one process: other clocks, errors, databases and arms."""

import importlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedPolicy, GLMUCBPolicy
from skbandit.bandit import make_policy_pipeline
from skbandit.evaluation import off_policy_blocks, off_policy_value, replay
from skbandit.rates import cost, each, positive_rate
from tests.service import ROOT, SERVICE

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.thorough

MODULES = (
    "settings", "contexts", "store", "choices", "learner", "monitor", "history", "goals", "serve",
    "spends",
)  # fmt: skip


class Clock:
    """Stands for the module `time` in the service."""

    now = 1_700_000_000.0

    def time(self):
        return self.now


class Parts:
    """The modules of the service in this process, with a clock that a test moves."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setenv("SERVICE_FOLDER", str(folder))
        monkeypatch.setenv("SERVICE_WITHIN", "600")
        monkeypatch.syspath_prepend(SERVICE)
        for name in MODULES:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name in MODULES:
            setattr(self, name, importlib.import_module(name))
        self.folder, self.clock, self.connections = folder, Clock(), []
        monkeypatch.setattr(self.store, "time", self.clock)
        self.rng = np.random.default_rng(0)
        monkeypatch.setattr(self.choices, "rng", np.random.default_rng(1))
        self.open()

    def open(self):
        """Start the learner again."""
        self.database = self.store.connect()
        self.connections.append(self.database)
        self.policy, self.number = self.store.load()

    def visit(self):
        """Id of a new choice."""
        return self.visits(1)[0]

    def visits(self, n):
        """Ids of new choices, written in one transaction."""
        records, arms = [], self.store.ARMS
        for x in self.rng.normal(size=(n, 1, 2)):
            arm, propensity = self.choices.choose(self.policy, x, arms)
            records.append(self.policy.record(x, arm, propensity, available=[tuple(arms)]))
        assert self.store.write(self.database, records) == [True] * n
        return [record["id"] for record in records]

    def reward(self, choice_id, reward=1.0):
        """Whether the reward counts."""
        return self.store.write(self.database, [(choice_id, reward)])[0]

    def learn(self, seconds=0):
        """Number of events learned after some time."""
        self.clock.now += seconds
        before = n_events(self.policy)
        self.policy, self.number = self.learner.step(self.database, self.policy, self.number)
        return n_events(self.policy) - before

    def remove_database(self, to):
        """Move the database away, as if the service did not run."""
        self.database.close()
        to.mkdir()
        for path in self.folder.glob("log.sqlite*"):
            path.rename(to / path.name)

    def report(self):
        return self.monitor.report(self.number)


def n_events(policy):
    """Number of events that a policy has learned, which may be none."""
    return int(policy.n_updates_.sum()) if hasattr(policy, "arms_") else 0


@pytest.fixture
def parts(tmp_path, monkeypatch):
    parts = Parts(tmp_path, monkeypatch)
    yield parts
    for connection in parts.connections:
        connection.close()
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_full_disk_is_named(parts):
    connection = parts.database
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    record = {"id": "0", "context": [0.0] * 10_000}
    with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
        parts.store.write(connection, [record])
    connection.execute("PRAGMA max_page_count = 1000")  # there is space again
    assert parts.store.write(connection, [record]) == [True]


def test_an_acknowledged_reward_counts_after_a_restart_with_less_time(parts):
    """WITHIN decides when a reward is taken, not later whether it is learned."""
    record = parts.policy.record([1.0, 0.0], "a", 0.5, available=parts.store.ARMS)
    parts.store.write(parts.database, [record])
    parts.clock.now += 300
    assert parts.reward(record["id"])
    parts.store.WITHIN = 60.0
    assert parts.learn(400) == 1
    assert parts.policy.predict_reward([[1.0, 0.0]])[0, 0] > 0.5


@pytest.mark.parametrize("ahead", [3600, 86_400, 1e10])
def test_a_choice_stored_while_the_clock_is_ahead_holds_up_no_other(parts, ahead, caplog):
    for k in range(6):
        parts.clock.now += ahead if k in (3, 5) else 0
        choice = parts.visit()
        parts.clock.now -= ahead if k in (3, 5) else 0
    assert parts.learn(700) == 5  # the fourth counts as the fifth
    assert parts.reward(choice)
    parts.open()
    assert parts.learn(590) == 0
    assert parts.learn(20) == 1  # the last one counts from when it was first read
    assert "choice 4 is dated" in caplog.text
    assert parts.report()["errors"] == []


def test_a_clock_that_goes_back_for_a_moment_changes_nothing(parts):
    choices = [parts.visit() for _ in range(3)]
    assert parts.learn(-86_400) == 0
    assert parts.learn(86_400 + 300) == 0
    assert all(parts.reward(choice) for choice in choices)
    assert parts.learn(400) == 3


def test_a_reward_of_a_choice_that_is_learned_is_refused(parts):
    choices = [parts.visit() for _ in range(2)]
    assert parts.learn(700) == 2
    parts.clock.now -= 690
    assert not parts.reward(choices[0])
    parts.clock.now += 690
    parts.store.WITHIN = 3600.0
    assert not parts.reward(choices[1])
    assert not parts.reward(choices[1])  # again
    assert parts.report()["rewards_late"] == 2


@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_an_error_that_passes_loses_no_choice(parts, monkeypatch, error):
    choices = [parts.visit() for _ in range(20)]
    assert all(parts.reward(choice) for choice in choices[:10])

    def fail(*args, **kwargs):
        raise error("not now")

    for module, name in ((parts.learner, "join_rewards"), (parts.store.os, "fsync")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(error, match="not now"):
                parts.learn(700)
        parts.open()
        assert n_events(parts.policy) == 0
        assert not parts.reward(choices[-1])  # its choice was about to be learned
    assert parts.learn() == 20
    assert parts.report()["set_aside"] == 0
    assert parts.policy.predict_reward(np.zeros((1, 2))).mean() > 0.3


def test_what_is_set_aside_can_be_learned_later(parts, monkeypatch, caplog):
    choices = [parts.visit() for _ in range(10)]
    parts.reward(choices[4])
    good = json.loads(parts.database.execute("SELECT record FROM choices").fetchall()[4][0])
    change = "UPDATE choices SET record = ? WHERE number = ?"
    for record, number in ((json.dumps(good | {"arm": "<script>"}), 5), ("{", 6)):
        parts.database.execute(change, (record, number))
    assert parts.learn(700) == 8
    assert caplog.text.count("is set aside") == 2
    report = parts.report()
    assert report["set_aside"] == 2 and "2 choices could not be learned" in report["errors"][0]

    parts.database.execute(change, (json.dumps(good), 5))
    assert parts.learn() == 0
    parts.learner.main(again=True)
    kept = parts.store.set_aside

    def killed(connection, rows, reasons):
        if reasons:  # of what has just been tried
            raise KeyboardInterrupt
        kept(connection, rows, reasons)

    monkeypatch.setattr(parts.store, "set_aside", killed)
    with pytest.raises(KeyboardInterrupt):
        parts.learn()
    monkeypatch.setattr(parts.store, "set_aside", kept)
    parts.open()
    assert n_events(parts.policy) == 9  # the state was saved, and the table not changed
    assert parts.learn() == 0
    assert parts.report()["set_aside"] == 1  # that which is still wrong
    for _ in range(3):
        parts.visit()
    assert parts.learn(700) == 3


def test_a_new_database_is_learned_from_its_beginning_and_an_old_one_from_where_it_was(
    parts, tmp_path, caplog
):
    for _ in range(30):
        parts.visit()
    assert parts.learn(700) == 30
    parts.visit()
    with closing(parts.store.connect()) as running:
        parts.remove_database(tmp_path / "first")
        with pytest.raises(parts.store.Replaced, match="was replaced while"):
            parts.store.write(running, [{"id": "0"}])
    parts.open()
    choices = [parts.visit() for _ in range(25)]
    assert all(parts.reward(choice) for choice in choices)
    assert parts.learn(700) == 25
    assert "nothing from this one" in caplog.text
    parts.remove_database(tmp_path / "second")
    for path in (tmp_path / "first").iterdir():
        path.rename(tmp_path / path.name)
    parts.open()
    assert (parts.number, parts.learn(0)) == (30, 1)
    assert n_events(parts.policy) == 56


def test_a_database_that_is_restored_from_a_copy_goes_on_with_new_numbers(parts, tmp_path, caplog):
    for _ in range(20):
        parts.visit()
    with closing(sqlite3.connect(tmp_path / "copy")) as copy:
        parts.database.backup(copy)
    for _ in range(10):
        parts.visit()
    assert parts.learn(700) == 30
    parts.remove_database(tmp_path / "lost")
    (tmp_path / "copy").rename(tmp_path / "log.sqlite")
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as database:  # not seen by `connect`
        assert database.execute("SELECT MAX(number) FROM choices").fetchone() == (20,)
        assert "ends with 20" in parts.report()["errors"][0]
    parts.open()
    assert "ends with 20" in caplog.text
    choices = [parts.visit() for _ in range(25)]
    assert all(parts.reward(choice) for choice in choices)
    assert parts.learn(700) == 25
    assert parts.number == 55
    assert "choices 21 to 30 were learned" in parts.report()["errors"][0]


def test_an_older_state_learns_again_what_it_lacks(parts, tmp_path):
    """The same, to the bit, as rewards of learned choices do not change."""
    for part in range(2):
        choices = [parts.visit() for _ in range(20)]
        assert all(parts.reward(choice) for choice in choices[::3])
        assert parts.learn(700) == 20
        if not part:
            state = (tmp_path / "policy.joblib").read_bytes()
    learned = parts.policy
    (tmp_path / "policy.joblib").write_bytes(state)
    parts.open()
    assert (parts.number, parts.learn()) == (20, 20)
    X = np.eye(2)
    np.testing.assert_array_equal(parts.policy.decision_function(X), learned.decision_function(X))


def teach(parts, n):
    """Choices without a click."""
    parts.visits(n)
    assert parts.learn(700) == n


def test_a_new_arm_is_chosen_and_a_retired_one_is_not(parts):
    teach(parts, 900)
    parts.store.ARMS = ["b", "c", "new", "newer"]
    parts.open()
    x, n = np.array([[0.5, 0.5]]), 4000
    chosen = [parts.choices.choose(parts.policy, x, parts.store.ARMS) for _ in range(n)]
    for arm in parts.store.ARMS:
        propensities = {round(p, 12) for label, p in chosen if label == arm}
        share = sum(label == arm for label, _ in chosen) / n
        assert len(propensities) == 1  # each way to an arm has the same propensity
        assert share == pytest.approx(propensities.pop(), abs=0.045)
    assert {arm for arm, _ in chosen} == set(parts.store.ARMS)
    teach(parts, 50)  # also of arms that no policy knew
    assert {"new", "newer", "a"} <= set(parts.policy.arms_)


def test_an_arm_with_few_events_has_a_least_propensity(parts):
    """Also if the policy hardly explores any more, and expects little of the arm."""
    arms = np.array(["a", "b", "new"])[np.r_[np.arange(6000) % 2, [2] * 20]]
    log = {"action": arms, "reward": np.where(arms == "new", 0.0, 1.0)}
    X = np.random.default_rng(0).normal(size=(len(arms), 2))
    policy = GLMUCBPolicy(exploration="squarecb").fit(X, log)
    x, names = X[:1], ["a", "b", "new"]
    assert policy.select_proba(x)[0][2] < 0.01
    chosen = [parts.choices.choose(policy, x, names) for _ in range(1000)]
    assert min(p for arm, p in chosen if arm == "new") >= parts.choices.LEAST_PROPENSITY
    assert sum(arm == "new" for arm, _ in chosen) > 15
    assert sum({arm: p for arm, p in chosen}.values()) == pytest.approx(1)


def test_the_log_is_read_in_blocks(parts):
    choices = parts.visits(300)
    records = [
        json.loads(text)
        for (text,) in parts.database.execute("SELECT record FROM choices ORDER BY number")
    ]
    liked = [
        (choice, 1.0)
        for choice, record in zip(choices, records, strict=True)
        if record["arm"] == "b"
    ]
    assert all(parts.store.write(parts.database, liked))
    change = "UPDATE choices SET record = ? WHERE number = ?"
    twice = json.dumps(records[9] | {"available": ["a", "a", "b", "c"]})
    parts.database.execute(change, (twice, 10))
    parts.database.execute(change, (json.dumps(records[19] | {"arm": "?"}), 20))
    assert parts.learn(700) == 299
    parts.visit()  # is still waiting
    X, log = parts.history.read_log()
    assert len(X) == len(log) == 299
    assert log["reward"].sum() == sum(
        record["arm"] == "b" for record in records[:19] + records[20:]
    )
    blocks = list(parts.history.read_blocks(block_size=100))
    assert [len(block) for _, block in blocks] == [100, 100, 99]
    assert len(parts.history.read_log(since=100)[0]) == 200
    policy = parts.store.first_policy().partial_fit(X[:150], log[:150])
    X, log, blocks = X[150:], log[150:], list(parts.history.read_blocks(100, since=151))
    whole = off_policy_value(policy, X, log, rule="predict")
    assert whole.mean_reward == pytest.approx(1, abs=0.05)
    in_parts = off_policy_blocks(policy, blocks, rule="predict")["snips"]
    assert in_parts.mean_reward == pytest.approx(whole.mean_reward)
    assert replay(parts.store.first_policy(), X, log).n_accepted > 15


def test_the_log_without_an_event_says_so(parts):
    with pytest.raises(ValueError, match="no choice after this number"):
        parts.history.read_log()


def test_what_an_operator_is_told(parts):
    report = parts.report()
    assert report["status"] == "ok" and report["errors"] == []
    assert report["state_age_seconds"] is None and report["last"] == 0
    text, kind = parts.monitor.metrics(report)
    assert b"bandit_due 0.0" in text and kind.startswith("text/plain")
    for _ in range(3):
        parts.visit()
        parts.clock.now += 500
    report = parts.report()
    assert (report["due"], report["waiting"], report["due_seconds"]) == (2, 1, 900)
    assert "2 choices are due and not learned" in report["errors"][0]
    assert report["database"] == parts.database.id
    assert parts.learn() == 2
    assert parts.report()["state_age_seconds"] is not None
    assert parts.report()["errors"] == []
    page = (ROOT / "docs" / "how_to" / "service.md").read_text(encoding="utf-8")
    delete = re.search("```sql\n(.*?)```", page, re.DOTALL)[1]
    parts.database.executescript(delete)
    count = "SELECT COUNT(*) FROM choices"
    assert parts.database.execute(count).fetchone() == (1,)
    assert parts.learn(700) == 1
    parts.database.executescript(delete.replace("old", "older"))
    assert parts.database.execute(count).fetchone() == (0,)
    assert parts.report()["errors"] == []
    parts.open()
    parts.visit()
    assert parts.learn(700) == 1
    unreadable = parts.monitor.report(parts.number, readable=False)["errors"]
    assert "policy.joblib cannot be read" in unreadable[0]


def test_the_learner_says_what_is_wrong_and_that_the_clock_jumps(parts, caplog, monkeypatch):
    lookout = parts.learner.Lookout()
    parts.visit()
    parts.clock.now += 1000
    lookout.look(0)
    assert "1 choices are due" in caplog.text and "jumped" not in caplog.text
    monkeypatch.setattr(parts.learner, "time", shifted := Clock())
    shifted.monotonic = time.monotonic
    lookout.look(0)
    assert "the clock has jumped by" in caplog.text
    assert caplog.text.count("are due") == 1  # not at each step


@pytest.mark.parametrize(
    ("reader", "texts", "message"),
    [
        ("read_within", ["nan", "-1", "inf", "ten", ""], "SERVICE_WITHIN is {!r}: .* a number"),
        ("read_folder", ["", " ", __file__], "SERVICE_FOLDER is {!r}: .* path of a folder"),
        ("read_arms", ["", "a,,b", "a,b,a"], "it must name arms"),
    ],
)
def test_settings_that_cannot_be_are_refused(parts, reader, texts, message):
    for text in texts:
        with pytest.raises(SystemExit, match=message.format(text)):
            getattr(parts.settings, reader)(text)


def test_settings_are_read(parts, tmp_path, monkeypatch):
    assert parts.settings.read_arms("tea, green tea") == ["tea", "green tea"]
    assert parts.settings.read_folder(str(tmp_path / "new")) == tmp_path / "new"
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SystemExit, match="may not write there"):
        parts.settings.read_folder(str(tmp_path))


def test_a_setting_that_cannot_be_ends_the_start_with_one_sentence(tmp_path):
    environment = os.environ | {"SERVICE_FOLDER": str(tmp_path), "SERVICE_WITHIN": "soon"}
    run = subprocess.run(
        [sys.executable, SERVICE / "serve.py"], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert run.stderr == "SERVICE_WITHIN is 'soon': it must be a number of seconds, 0 or more.\n"


class Ended:
    """A process that has ended at once."""

    pid, exitcode = 1, -9


def test_a_process_that_ends_again_and_again_is_started_later_and_later(parts, monkeypatch):
    clock, starts = Clock(), []
    clock.monotonic = clock.time
    monkeypatch.setattr(parts.serve, "time", clock)

    def start():
        starts.append(clock.now)
        return Ended()

    child = parts.serve.Child("worker 1", start)
    for _ in range(2400):
        child.look()
        clock.now += 0.1
    delays = np.diff(starts)
    assert delays[:6] == pytest.approx([0.1, 1.1, 2.1, 4.1, 8.1, 16.1], abs=0.15)
    assert delays[6:] == pytest.approx(30.1, abs=0.15)
    for _ in range(2):
        clock.now += 1000  # started, and ran for long
        child.look()
    assert child.delay == parts.serve.FIRST_DELAY


def test_goals_count_each_choice_once_when_its_time_has_passed(parts):
    goals = parts.goals.Goals(parts.policy)
    assert {entry["n_rows"] for entry in goals.report()} == {0}
    ids = parts.visits(40)
    for choice_id in ids[:10]:
        assert parts.reward(choice_id, 0.5)
    assert {entry["n_rows"] for entry in goals.report()} == {0}
    parts.clock.now += 601
    parts.visits(3)
    for _ in range(2):
        report = goals.report()
        assert {entry["n_rows"] for entry in report} == {40}
        assert report[-1]["value"] == pytest.approx(0.125, abs=1e-6)
    assert [entry["verdict"] for entry in report][-1] == "met"
    json.dumps(report, allow_nan=False)


# === Named contexts of several types, of a bandit and of a policy under budgets ==================

PEOPLE = pd.DataFrame(
    {
        "age": [25, 40, 61, 33] * 50,
        "income": [3e4, 8e4, 5e4, 2e4] * 50,
        "country": ["de", "fr", "us", "de"] * 50,
        "device": ["phone", "web"] * 100,
        "member": [True, False, False] * 66 + [True, True],
    }
)
OFFERS = np.tile(["call", "mail"], 100)[np.random.default_rng(0).permutation(200)]
SHOWN = pd.DataFrame(
    {"action": OFFERS, "reward": PEOPLE["member"] * (OFFERS == "call"), "propensity": 0.5}
)
SPEND = cost({"mail": 0, "call": 2}) <= 1
REGIONS = pd.DataFrame({"region": ["east", "west", "west", "east"] * 50, "age": PEOPLE["age"]})
FAIR = [SPEND, each(positive_rate(of="call"), by="region") <= 0.5]


def behind_transformers(kind):
    """A fitted policy of five columns of three types."""
    front = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["country"]),
        (OneHotEncoder(handle_unknown="ignore"), ["device"]),
        ("passthrough", ["member"]),
    )
    bandit = GLMUCBPolicy(exploration="squarecb", random_state=0)
    made = {
        "bandit": lambda: make_policy_pipeline(front, bandit),
        "pipeline": lambda: make_pipeline(front, bandit),
        "budgets": lambda: ConstrainedPolicy(make_pipeline(front, Ridge()), None, SPEND),
        "groups": lambda: ConstrainedPolicy(make_pipeline(front, Ridge()), None, FAIR),
        "groups behind": lambda: make_policy_pipeline(
            front, ConstrainedPolicy(Ridge(), None, FAIR)
        ),
    }
    given = {"attributes": REGIONS} if kind.startswith("groups") else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*several actions cost nearly the same")
        return made[kind]().fit(PEOPLE, SHOWN, **given)


@pytest.fixture(params=["bandit", "pipeline", "budgets", "groups", "groups behind"])
def named(request, tmp_path, monkeypatch):
    """The parts of a service whose policy was saved as a user saves it."""
    joblib.dump(behind_transformers(request.param), tmp_path / "policy.joblib")
    parts = Parts(tmp_path, monkeypatch)
    yield parts
    for connection in parts.connections:
        connection.close()
    for name in MODULES:
        sys.modules.pop(name, None)


VISITOR = {"age": 30, "income": 4e4, "country": "de", "device": "phone", "member": True}


def visitor(contexts, **change):
    """A context with all columns that the policy needs."""
    return VISITOR | ({"region": "west"} if contexts.attributes else {}) | change


def test_named_contexts_are_chosen_learned_and_read(named):
    contexts, arms = named.contexts.Contexts(named.policy), named.store.ARMS
    assert arms == ["call", "mail"]
    for age in range(20, 40):
        row = contexts.read(visitor(contexts, age=age))
        x, given = contexts.of_policy(row)
        arm, propensity = named.choices.choose(named.policy, x, arms, **given)
        record = named.policy.record(row, arm, propensity, available=[tuple(arms)])
        assert named.store.write(named.database, [record]) == [True]
    named.clock.now += 700
    named.policy, number = named.learner.step(named.database, named.policy, named.number)
    assert number == 20
    report = named.goals.Goals(named.policy).report()
    assert report[0]["n_rows"] == 20
    if contexts.attributes:  # of the policy: what calls cost, and their share in each region
        assert [entry["goal"][:4] for entry in report] == ["cost", "each"]
    X, log = named.history.read_log()
    assert X["age"].tolist() == list(range(20, 40))
    assert X.columns.tolist() == list(visitor(contexts))
    assert len(log) == 20
    (day,) = named.spends.per_day(named.policy)
    assert day["choices"] == sum(day["arms"].values()) == 20
    for spend in day["spends"]:
        assert spend["total"] == day["arms"].get("call", 0) * (
            2 if "cost" in spend["constraint"] else 1
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zip": 1}, "does not know 'zip': its columns are age .*, country .text., device .text."),
        ({"age": "old"}, "age is 'old', and must be number"),
        ({"country": 3}, "country is '3', and must be text"),
        ({"income": float("nan")}, "income is 'nan', and must be number"),
    ],
)
def test_read_refuses_a_wrong_context_in_one_sentence(named, change, message):
    contexts = named.contexts.Contexts(named.policy)
    with pytest.raises(ValueError, match=message):
        contexts.read(visitor(contexts, **change))
    if contexts.attributes:
        with pytest.raises(ValueError, match=r"misses 'region'.* region .text."):
            contexts.read(VISITOR)


def test_read_refuses_a_missing_column_and_wild_features(named):
    contexts = named.contexts.Contexts(named.policy)
    with pytest.raises(ValueError, match="misses 'member'"):
        contexts.read({k: value for k, value in visitor(contexts).items() if k != "member"})
    if contexts.learns:
        with pytest.raises(ValueError, match="takes 1000 at most: scale it"):
            contexts.read(visitor(contexts, income=1e15))
