"""off_policy_blocks: estimates of the whole log in memory, however it is cut or computed."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import off_policy_blocks, off_policy_value, replay_blocks
from skbandit.exceptions import ReplayCoverageWarning
from tests.tiers import examples
from tests.worlds import cut, refuses

pl = pytest.importorskip("polars", reason="polars is not installed")

LOG = make_bandit_log(4000, n_arms=4, n_features=3, base_rate=0.3, random_state=0)
X, Y = LOG.X[1000:], LOG.y[1000:]
FEATURES = list(X.columns)
POLICY = GLMUCBPolicy(random_state=0).fit(LOG.X[:1000], LOG.y[:1000])
MODEL = Ridge().fit(LOG.X[:1000], LOG.y["reward"][:1000])
TABLE = pd.concat([X, Y], axis=1)


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, one in found.items():
        assert one.estimator == name
        for figure, value in vars(one).items():
            if figure in (
                "evidence",
                "parts",
                "spread",
            ):  # intervals are compared below; blocks keep no parts
                continue
            wanted = getattr(expected[name], figure)
            assert value == wanted or value == pytest.approx(wanted, rel=1e-11), (name, figure)
        assert one.interval() == pytest.approx(expected[name].interval(), rel=1e-11)
    one, other = found["ips"], expected["ips"]  # sequences are common to all
    if one.evidence.bounds is not None:
        sequences = [estimate.interval(kind="sequence") for estimate in (one, other)]
        assert sequences[0] == pytest.approx(sequences[1], rel=1e-6)


@cache
def all_in_memory():
    return in_memory()


def in_memory(policy=POLICY, X=X, y=Y, rule="select", model=MODEL):
    methods = {"snips": {}, "ips": {}}
    if model is not None:  # frozen: no fold fits it anew
        frozen = {"reward_model": FrozenEstimator(model)}
        methods |= dict.fromkeys(("dr", "sndr", "switch_dr", "dr_shrinkage"), frozen)
    return {
        method: off_policy_value(policy, X, y, method=method, rule=rule, **options)
        for method, options in methods.items()
    }


@pytest.mark.thorough
@given(places=st.lists(st.integers(1, 2999), max_size=12))
@examples(25)
def test_any_cut(places):  # equal places are blocks without events
    found = off_policy_blocks(
        POLICY,
        cut(TABLE, *places),
        features=FEATURES,
        arms=range(4),
        reward_model=dict.fromkeys(range(4), MODEL),
    )
    assert_same(found, all_in_memory())


@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("exploration", ["ucb", "epsilon_greedy", "thompson"])
def test_rules(rule, exploration):
    policy = GLMUCBPolicy(exploration=exploration, epsilon=0.2, random_state=0)
    policy.fit(LOG.X[:1000], LOG.y[:1000])
    blocks = [(part[FEATURES], part[list(Y.columns)]) for part in cut(TABLE, 7, 2000)]
    found = off_policy_blocks(policy, iter(blocks), arms=range(4), rule=rule)
    assert_same(found, in_memory(policy, rule=rule, model=None))


def test_a_policy_as_reward_model_behind_transformers():
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0))
    pipeline.fit(LOG.X[:1000], LOG.y[:1000])
    q = pipeline[-1].predict_reward(pipeline[0].transform(X))
    pi = pipeline[-1].select_proba(pipeline[0].transform(X), available=[(0, 1, 2, 3)] * len(X))
    order = pipeline[-1].arms_
    weight = pi[np.arange(3000), pd.Index(order).get_indexer(Y["action"])] / Y["propensity"]
    logged = q[np.arange(3000), pd.Index(order).get_indexer(Y["action"])]
    terms = (pi * q).sum(axis=1) + weight * (Y["reward"] - logged)
    found = off_policy_blocks(
        pipeline, cut(TABLE, 900), features=FEATURES, arms=range(4), reward_model=pipeline
    )["dr"]
    assert found.mean_reward == pytest.approx(terms.mean())
    assert found.standard_error == pytest.approx(terms.std(ddof=1) / np.sqrt(3000))


def test_models_of_each_arm():
    """A classifier predicts its expected class."""
    first, models = LOG.y[:1000], {}
    for arm in range(4):
        own = first["action"] == arm
        models[arm] = LogisticRegression().fit(LOG.X[:1000][own], first["reward"][own])
    q = pd.DataFrame({arm: model.predict_proba(X)[:, 1] for arm, model in models.items()})
    pi = pd.DataFrame(POLICY.select_proba(X), columns=POLICY.arms_)[list(q)]
    rows, logged = np.arange(3000), Y["action"].to_numpy()
    weight = pi.to_numpy()[rows, logged] / Y["propensity"].to_numpy()
    terms = (pi * q).sum(axis=1) + weight * (Y["reward"].to_numpy() - q.to_numpy()[rows, logged])
    found = off_policy_blocks(
        POLICY, cut(TABLE, 2), features=FEATURES, arms=range(4), reward_model=models
    )
    assert found["dr"].mean_reward == pytest.approx(terms.mean())


def test_what_is_available_is_enough():
    log = make_bandit_log(3000, n_arms=6, n_available=3, base_rate=0.3, random_state=0)
    policy = GLMUCBPolicy(random_state=0).fit(log.X[:300], log.y[:300])
    blocks = [(log.X[a : a + 250], log.y[a : a + 250]) for a in range(300, 3000, 250)]
    expected = in_memory(policy, log.X[300:], log.y[300:], model=None)
    assert_same(off_policy_blocks(policy, blocks), expected)


def test_probabilities_in_a_column():
    pi = POLICY.select_proba(X)[np.arange(3000), pd.Index(POLICY.arms_).get_indexer(Y["action"])]
    blocks = cut(TABLE.assign(wanted=pi)[["action", "reward", "propensity", "wanted"]], 100, 2500)
    assert_same(off_policy_blocks("wanted", blocks), in_memory(model=None))


@pytest.mark.thorough
def test_dask_data_frame():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    options = {
        "features": FEATURES,
        "arms": range(4),
        "reward_model": dict.fromkeys(range(4), MODEL),
    }
    for n in (1, 7):
        frame = dd.from_pandas(TABLE.reset_index(drop=True), npartitions=n)
        assert_same(off_policy_blocks(POLICY, frame, **options), all_in_memory())
    some = frame[frame["x0"] > 1.5]  # as lazy as it can be
    rows = X["x0"] > 1.5
    expected = in_memory(POLICY, X[rows], Y[rows])
    assert_same(off_policy_blocks(POLICY, some, **options), expected)
    late = frame[frame["timestamp"] > Y["timestamp"].iloc[2000]]  # its first partitions are empty
    expected = in_memory(POLICY, X[2001:], Y[2001:])
    assert_same(off_policy_blocks(POLICY, late, **options), expected)


def test_dask_data_frame_with_tuples():
    dask = pytest.importorskip("dask", reason="dask is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    log = make_bandit_log(2000, n_arms=6, n_available=3, base_rate=0.3, random_state=0)
    policy = GLMUCBPolicy(random_state=0).fit(log.X[:300], log.y[:300])
    table, features = pd.concat([log.X, log.y], axis=1), list(log.X.columns)
    with pytest.raises(ValueError, match="one tuple of arm labels per row"):
        off_policy_blocks(policy, dd.from_pandas(table, npartitions=3), features=features)
    with dask.config.set({"dataframe.convert-string": False}):
        found = off_policy_blocks(policy, dd.from_pandas(table, npartitions=3), features=features)
    assert_same(found, in_memory(policy, log.X, log.y, model=None))


@pytest.mark.parametrize("wild", [1e6, -1e12])
@pytest.mark.parametrize("of_arms", [True, False])
def test_a_wild_context_is_told_and_moves_no_estimate(wild, of_arms):
    """Its prediction is clipped to the range of the block's rewards, as in memory."""
    far = X.copy()
    far.iloc[7, 0] = wild
    model = dict.fromkeys(range(4), MODEL) if of_arms else POLICY
    if not of_arms:  # whose predictions are not probabilities
        model = GLMUCBPolicy(link="linear", random_state=0).fit(LOG.X[:1000], LOG.y[:1000])
    given = {"reward_model": model, "arms": range(4)}
    chosen = GLMUCBPolicy(random_state=0).fit(LOG.X[:1000], LOG.y[:1000])
    wanted = off_policy_blocks(chosen, [(X, Y)], **given)
    with pytest.warns(UserWarning, match="row 7: a model predicts .* clipped"):
        estimates = off_policy_blocks(chosen, [(far, Y)], **given)
    for name, estimate in estimates.items():
        assert abs(estimate.mean_reward - wanted[name].mean_reward) < 0.02, name


@pytest.mark.parametrize("most", [2**16, 500])
def test_ids_in_several_blocks_are_told(monkeypatch, most):
    """Of the least hashes, which are the same in any order of the blocks, all repeats count."""
    monkeypatch.setattr("skbandit.logs._blocks.MOST_IDS", most)
    log = Y.assign(id=[f"event {k}" for k in range(len(Y))])
    parts = [(X[a:b], log[a:b]) for a, b in [(0, 1500), (1500, 3000), (3000, 4000)]]
    assert_same(off_policy_blocks(POLICY, parts, arms=range(4)), in_memory(model=None))
    hashes = pd.util.hash_array(log["id"].map(repr).to_numpy(dtype=object))
    compared = np.sort(hashes)[:most]
    n_repeated = np.isin(compared, hashes[:1500]).sum()
    said = f"{n_repeated:,} of {len(compared):,} ids that were compared .* blocks, up to 3,"
    for order in ([0, 1, 0, 2, 0], [2, 0, 0, 1, 0]):
        with pytest.warns(UserWarning, match=f"off_policy_blocks: {said}"):
            off_policy_blocks(POLICY, [parts[k] for k in order], arms=range(4))
    with pytest.warns(UserWarning, match=f"replay_blocks: {said}"):
        untimed = [(A, y.drop(columns="timestamp")) for A, y in parts]
        replay_blocks(POLICY, [untimed[k] for k in (0, 1, 0, 2, 0)], acceptance=0.1, arms=range(4))


def test_a_log_that_says_too_little():
    with pytest.warns(ReplayCoverageWarning, match="off_policy_blocks: the policy never") as seen:
        found = off_policy_blocks("wanted", cut(TABLE.assign(wanted=0.0), 50))
    assert np.isnan(found["snips"].mean_reward)
    assert len(seen) == 1
    assert seen[0].filename == __file__


@pytest.mark.parametrize(
    ("blocks", "options", "error", "message"),
    [
        ([], {}, ValueError, "blocks contains no event"),
        ([TABLE[:0]], {}, ValueError, "blocks contains no event"),
        ([TABLE], {"arms": None}, ValueError, r"pass them as arms=\[...\]"),
        ([TABLE], {"arms": [0, 1, 2]}, ValueError, r"that are not in arms=: \[3\]"),
        ([TABLE], {"features": None}, ValueError, "X is None: a policy needs contexts"),
        ([TABLE], {"rule": "best"}, ValueError, "rule must be"),
        ([TABLE.drop(columns="propensity")], {}, ValueError, "needs a column 'propensity'"),
        ([TABLE.drop(columns="reward")], {}, ValueError, "no rewards"),
        ([TABLE], {"reward_model": Ridge()}, TypeError, "have predict_reward, got Ridge"),
        ([TABLE], {"reward_model": {0: MODEL}}, ValueError, "has no model of arm 1, only of"),
    ],
)
def test_what_is_refused(blocks, options, error, message):
    told = {"features": FEATURES, "arms": range(4)} | options
    refuses(message, off_policy_blocks, POLICY, blocks, **told, error=error)


def test_refused_with_the_probabilities_of_a_column():
    table = TABLE.assign(wanted=0.5)
    with pytest.raises(ValueError, match=r"needs the probabilities of all arms, .* only those of"):
        off_policy_blocks("wanted", [table], features=FEATURES, reward_model=POLICY)
    refuses("policy='missing' is not a column of the log", off_policy_blocks, "missing", [table])


@pytest.mark.parametrize("on_dask", [False, True])
def test_which_block_is_wrong(on_dask):
    table = TABLE.copy().reset_index(drop=True)
    table.loc[1500, "propensity"] = 2.0
    blocks = cut(table, 1000, 2000)
    if on_dask:
        dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
        blocks = dd.from_pandas(table, npartitions=3)
    with pytest.raises(ValueError, match="row 500 has 2") as caught:
        off_policy_blocks(POLICY, blocks, features=FEATURES, arms=range(4))
    assert "In block 1, counted from 0." in caught.value.__notes__


def test_lazy_blocks_are_refused():
    """Nobody asked for the whole of them to be read for each column."""
    lazy = pl.LazyFrame({"action": [0], "reward": [1], "propensity": [0.25]})
    with pytest.raises(TypeError, match=r"got a lazy LazyFrame: call its collect\(\)"):
        off_policy_blocks("propensity", [lazy])
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    parts = [dd.from_pandas(TABLE, npartitions=2).get_partition(0)]
    with pytest.raises(TypeError, match=r"got a lazy DataFrame: call its compute\(\)"):
        off_policy_blocks(POLICY, parts, features=FEATURES, arms=range(4))


def test_an_index_of_pandas_in_a_pyarrow_table_is_a_column():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.Table.from_pandas(TABLE.set_index(FEATURES[0]))
    told = {"features": FEATURES, "arms": range(4), "rule": "predict"}
    assert off_policy_blocks(POLICY, [table], **told) == off_policy_blocks(POLICY, [TABLE], **told)
