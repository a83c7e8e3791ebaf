"""Logs without propensities: uniform ones raise no alarm, those that depend on contexts do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbandit import GLMUCBPolicy
from skbandit.bandit import OffPolicyClassifier
from skbandit.evaluation import off_policy_value, replay, slate_ips, slate_pseudo_inverse
from skbandit.logs import check_uniform, read_log
from tests.worlds import warns

pl = pytest.importorskip("polars", reason="polars is not installed")

N = 2000
DEPENDS = r"no propensities, but its actions depend on the context: '[AB]' on [\d,]+ of [\d,]+ ev"


def noticed(X, y):
    """Whether a check of one log warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check_uniform(read_log(y, len(y)), X)


def by_context(inside, rng):
    """A log that chooses B inside, and as often A elsewhere as makes both arms frequent."""
    share = inside.mean()
    below = (0.5 - share) / (1 - share)
    action = np.where(inside | (rng.random(len(inside)) < below), "B", "A")
    return pd.DataFrame({"action": action, "reward": rng.random(len(inside)) < 0.3})


def contexts(rng):
    """Columns of every kind, by the events of which a log may choose B."""
    x, level = rng.normal(size=N), rng.choice([*"xyz"], N)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(50, size=N), unit="D")
    return {
        "above": (x, x > 1),
        "u-shaped": (x, np.abs(x) > 1),
        "float32": (x.astype(np.float32), x < -1),
        "rare": ((x > 1.8).astype(int), x > 1.8),
        "missing": (np.where(x > 1, np.nan, 0.5), x > 1),
        "text": (level, level == "x"),
        "category": (pd.Categorical(level), level == "y"),
        "objects": (pd.Series(np.where(level == "z", None, level), dtype=object), level == "z"),
        "bool": (level == "x", level == "x"),
        "nullable": (pd.array(level == "x", dtype="boolean"), level == "x"),
        "integers": (pd.array(rng.permutation(N), dtype="Int64"), None),
        "time": (day, day.day < 10),
        "zoned": (day.tz_localize("Asia/Tokyo"), day.day < 10),
    }


@pytest.mark.parametrize("kind", contexts(np.random.default_rng(0)))
def test_columns_of_every_kind(kind):
    rng = np.random.default_rng(0)
    column, inside = contexts(rng)[kind]
    inside = np.asarray(column) % 2000 < 300 if inside is None else inside
    X = pd.DataFrame({"other": rng.normal(size=N), "context": column})
    y = by_context(inside, rng)
    assert noticed(X, y)
    assert not noticed(X[["other"]], y)
    assert not noticed(X, y.assign(action=rng.choice(["A", "B"], N)))


@pytest.mark.thorough
def test_containers():
    rng = np.random.default_rng(0)
    table = rng.random((N, 3)).round(1) * (rng.random((N, 3)) < 0.3)
    y = by_context(table[:, 1] > 0, rng)
    frame = pd.DataFrame(table, columns=[*"abc"])
    sparse_forms = [sparse.csr_array(table), sparse.csc_matrix(table), sparse.coo_array(table)]
    for X in (table, table.tolist(), frame, pl.DataFrame(frame), *sparse_forms):
        assert noticed(X, y)
    assert not noticed(table[:, [0, 2]], y)
    assert not noticed(sparse.csr_array(table[:, [0, 2]]), y)
    wide = np.column_stack([rng.normal(size=(N, 150)), table])
    assert noticed(wide, y)
    assert not noticed(wide[:, :-3], y)
    assert not noticed(np.empty((N, 0)), y)
    lists = pd.DataFrame({"embedding": [[0.0, 1.0]] * N})
    assert not noticed(lists, y)


def test_the_message_names_the_context():
    rng = np.random.default_rng(1)
    segment = rng.integers(2, size=N)
    y = by_context(segment == 1, rng)
    wanted = r"'.' on [\d,]+ of [\d,]+ events with 'segment' = [01], where [\d,]+ are expected"
    warns(wanted, check_uniform, read_log(y, N), pd.DataFrame({"segment": segment}))


def test_pools_by_context_are_uniform():
    """What is available may depend on the context, as long as the choice from it does not."""
    rng = np.random.default_rng(0)
    shop = rng.integers(2, size=N)
    pools = [("A", "B") if rng.random() < (0.9 if k else 0.2) else ("B", "C") for k in shop]
    second = rng.integers(2, size=N)
    y = pd.DataFrame({"available": pools, "reward": 0.5})
    y["action"] = [pool[k] for pool, k in zip(pools, second, strict=True)]
    assert not noticed(shop[:, None], y)
    y["action"] = [pool[k] for pool, k in zip(pools, shop, strict=True)]
    assert noticed(shop[:, None], y)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_actions_by_pool():
    """Each arm is as frequent as it should be, overall and by context, but not from each pool."""
    rng = np.random.default_rng(0)
    cycle = [("A", "B"), ("B", "C"), ("C", "A")]
    pools = [cycle[k] for k in rng.integers(3, size=N)]
    second = rng.integers(2, size=N)
    first = pd.DataFrame({"action": [pool[0] for pool in pools], "reward": 0.5, "available": pools})
    drawn = first.assign(action=[pool[k] for pool, k in zip(pools, second, strict=True)])
    for X in (None, np.zeros((N, 1)), sparse.csr_array((N, 2))):
        assert noticed(X, first)
        assert not noticed(X, drawn)
    with pytest.warns(UserWarning, match=r"with available = \('.', '.'\), where [\d,]+ are exp"):
        off_policy_value(drawn["action"], None, first)
    slates = first.assign(
        action=[(pool[0],) for pool in pools], reward=[(0.5,)] * N, available=pools
    )
    warns(r"with available = \('.', '.'\)", slate_ips, slates["action"].tolist(), None, slates)
    # as rare as they are, sets count together
    rare = [tuple(rng.permutation(30)[:3].tolist()) for _ in range(N)]
    y = pd.DataFrame({"reward": 0.5, "available": rare})
    assert not noticed(None, y.assign(action=[pool[0] for pool in rare]))


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_everything_that_takes_logs_as_uniform():
    rng = np.random.default_rng(0)
    segment = rng.integers(2, size=(N, 1))
    y = by_context(segment[:, 0] == 1, rng)
    policy = GLMUCBPolicy(arms=["A", "B"], random_state=0)
    slates = np.where(segment == 1, [["A", "B"]], [["B", "A"]])
    of_arms = pd.DataFrame({"action": slates.tolist(), "reward": [(1.0, 0.0)] * N})
    of_slates = of_arms.assign(reward=1.0)
    calls = [
        lambda: off_policy_value(["B"] * N, segment, y),
        lambda: off_policy_value(["B"] * N, segment, y, method="dr", random_state=0),
        lambda: replay(policy, segment, y, random_state=0),
        lambda: OffPolicyClassifier(random_state=0).fit(segment, y),
        lambda: slate_pseudo_inverse(slates, segment, of_slates),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match=DEPENDS) as caught:
            call()
        assert caught[0].filename == __file__
    slate_ips(slates, segment, of_arms)  # always shows both, in whatever order
    off_policy_value(["B"] * N, segment, y.assign(propensity=0.5))


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_slates_that_prefer_an_arm():
    rng = np.random.default_rng(0)
    slates = [tuple(rng.permutation(["A", "B", "C"])[:2].tolist()) for _ in range(N)]
    y = pd.DataFrame({"action": slates, "reward": [(1.0, 0.0)] * N})
    shown = [["A", "B"]] * N
    slate_ips(shown, None, y)
    more = y.assign(action=[("A", "C") if k % 5 == 0 else s for k, s in enumerate(slates)])
    warns("not chosen uniformly: '[ABC]' on", slate_ips, shown, None, more)
    where = rng.integers(2, size=(N, 1))
    by_arm = [("A", "C") if s[0] != "B" and w else s for s, (w,) in zip(slates, where, strict=True)]
    with pytest.warns(UserWarning, match="not chosen uniformly|depend on the context"):
        slate_ips(shown, where, y.assign(action=by_arm))


@pytest.mark.thorough
def test_alarms_about_uniform_logs():
    """At most 1% by the union bound; Freedman's inequality leaves a tenth of that."""
    alarms = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        n, n_arms = int(rng.choice([50, 300, 1000])), int(rng.choice([2, 5, 30]))
        X = pd.DataFrame(rng.normal(size=(n, 5)))
        X["level"], X["heavy"] = rng.choice([*"xyz"], n), rng.exponential(size=n) ** 3
        y = pd.DataFrame({"action": rng.integers(n_arms, size=n), "reward": 0.0})
        alarms += noticed(X, y)
    assert alarms <= 5
