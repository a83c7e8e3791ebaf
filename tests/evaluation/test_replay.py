"""replay: which events it keeps, what a policy gets to see, and what it refuses."""

import pickle
import re
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.datasets import fetch_open_bandit, make_bandit_log
from skbandit.evaluation import ReplayScorer, replay, select
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import Always, EpsilonGreedy, QuickEpsilonGreedy, Recorder

NOTHING = np.zeros((12, 1))
Y = pd.DataFrame(
    {
        "action": list("abcabcabcabc"),
        "reward": [0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0],
    }
)
few = pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")


def uniform_log(n, arms=("a", "b", "c"), seed=0, **columns):
    rng = np.random.default_rng(seed)
    y = pd.DataFrame({"action": rng.choice(arms, n), "reward": rng.random(n) < 0.3})
    return rng.normal(size=(n, 2)), y.assign(**columns)


def uneven_log(n, seed=0):
    """Three arms, logged with propensities that depend on the context."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    p = np.where(X[:, :1] > 0, [[0.2, 0.3, 0.5]], [[0.6, 0.2, 0.2]])
    arm = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    reward = (rng.random(n) < 0.2 + 0.2 * arm).astype(int)
    y = {"action": arm, "reward": reward, "propensity": p[np.arange(n), arm]}
    return X, pd.DataFrame(y)


def generic(policy):
    """The same policy without its own walk."""

    class Plain(type(policy)):
        def _walk_log(self, *args, **kwargs):
            return None

    return Plain(**policy.get_params())


# --- which events are kept -----------------------------------------------------------------


@few
def test_algorithm_2_by_hand():
    result = replay(Always("b"), NOTHING, Y)
    assert result.history["event"].tolist() == [1, 4, 7, 10]
    assert result.history["action"].tolist() == ["b"] * 4
    assert (result.mean_reward, result.n_accepted, result.n_events) == (0.75, 4, 12)
    assert result.acceptance == pytest.approx(1 / 3)


@few
def test_algorithm_1_by_hand():
    result = replay(Always("b"), NOTHING, Y, max_accepted=2)
    assert result.history["event"].tolist() == [1, 4]
    assert (result.mean_reward, result.n_accepted, result.n_events) == (1.0, 2, 5)


def as_the_paper_has_it(policy, X, y, pools, T=None):
    """Algorithm 2, and 1 if T is given, line by line."""
    h, G = [], 0.0
    for t in range(len(y)):
        x, a, r = X[t : t + 1], y["action"].iloc[t], y["reward"].iloc[t]
        if policy.select(x, available=[pools[t]])[0] == a:
            policy.partial_fit(x, y.iloc[[t]])
            h.append(t)
            G += r
        if len(h) == T:
            break
    return h, G / len(h)


@pytest.mark.parametrize("T", [None, 50])
@pytest.mark.parametrize("arms", [["a", "b", "c"], [0, 1, 2, 3], [True, False], [2.5, -1.0]])
def test_learning_policy_as_the_paper_has_it(arms, T):
    X, y = uniform_log(400, arms)
    pools = [tuple(sorted(arms))] * 400
    h, mean = as_the_paper_has_it(EpsilonGreedy(0.2), X, y, pools, T)
    result = replay(EpsilonGreedy(0.2), X, y, max_accepted=T)
    assert result.history["event"].tolist() == h
    assert result.mean_reward == pytest.approx(mean)
    assert result.n_events == (400 if T is None else h[-1] + 1)


def test_sets_of_arms_that_vary():
    rng = np.random.default_rng(1)
    pools = [tuple(rng.permutation(5)[: rng.integers(2, 5)].tolist()) for _ in range(600)]
    actions = [pool[rng.integers(len(pool))] for pool in pools]
    y = pd.DataFrame({"action": actions, "reward": rng.random(600) < 0.5})
    X = np.zeros((600, 1))
    largest = max(map(len, pools))
    result = replay(EpsilonGreedy(), X, y, available=pools, random_state=3)
    assert result.acceptance == pytest.approx(1 / largest)
    # kept with probability K_t / K_max: none where the set is largest is lost
    kept = result.history["event"].to_numpy()
    sizes = np.array([len(pool) for pool in pools])
    assert set(sizes[kept]) == set(sizes)
    again = replay(EpsilonGreedy(), X, y.assign(available=pools), random_state=3)
    assert again.history["event"].tolist() == kept.tolist()
    table = pd.DataFrame([{arm: arm in pool for arm in range(5)} for pool in pools])
    same = replay(EpsilonGreedy(), X, y, available=table, random_state=3)
    assert same.history.equals(result.history)


def test_matches_are_kept_with_probability_c_over_p():
    X, y = uneven_log(4000)
    c = y["propensity"].min()
    result = replay(Always(2), X, y, random_state=0)
    assert result.acceptance == c
    kept = np.zeros(4000, dtype=bool)
    kept[result.history["event"]] = True
    for p in (0.2, 0.5):
        matches = (y["action"] == 2) & (y["propensity"] == p)
        # four standard deviations: for another seed, a false alarm in 1 of 10,000
        n = matches.sum()
        assert abs(kept[matches].mean() - c / p) <= 4 * np.sqrt(c / p * (1 - c / p) / n)
    assert kept[y["propensity"] == c].sum() == (y["action"][y["propensity"] == c] == 2).sum()


@pytest.mark.parametrize("acceptance", [0.05, 0.2])
def test_smaller_acceptance_keeps_fewer_and_larger_is_told(acceptance):
    X, y = uneven_log(3000)
    result = replay(Always(0), X, y, acceptance=acceptance, random_state=0)
    assert result.n_accepted == pytest.approx(3000 * acceptance, rel=0.25)
    clipped = (y["propensity"] < 0.3).mean()
    with pytest.warns(UserWarning, match=f"above the propensity of {clipped:.2%} of the events"):
        more = replay(Always(0), X, y, acceptance=0.3, random_state=0)
    assert more.n_accepted > result.n_accepted
    assert "biased" in repr(more)


def test_the_order_of_arms_tells_nothing_of_later_events():
    X, y = uniform_log(60)
    y["action"] = ["c", "a", "b"] * 20
    diary = []
    replay(Recorder(diary=diary), X, y)
    replay(Recorder(diary=diary), X, y, available=[("b", "c"), ("c", "a"), ("b", "a")] * 20)
    asked = [tuple(available[0]) for name, _, available in diary if name == "select"]
    assert len(asked) == 120 and all(list(pool) == sorted(pool) for pool in asked)
    mixed = [1, "a", (2, "b"), 2.5]
    y["action"] = pd.Series(mixed * 15, dtype=object)
    result = replay(Always((2, "b")), X, y)
    assert result.history["event"].tolist() == list(range(2, 60, 4))


# --- what the policy gets to see -----------------------------------------------------------


@pytest.mark.parametrize("deployment_share", [0.0, 0.3])
def test_nothing_is_shown_but_what_was_earned(deployment_share):
    X, y = uneven_log(500)
    frame = pd.DataFrame(X, columns=["p", "q"]).assign(row=np.arange(500))
    y["timestamp"] = np.arange(500.0)
    diary = []
    policy = Recorder(0.3, diary=diary)
    result = replay(policy, frame, y, deployment_share=deployment_share, random_state=0)
    history = result.history
    asked = [entry for entry in diary if entry[0] != "partial_fit"]
    told = [entry for entry in diary if entry[0] == "partial_fit"]
    rows = [int(X["row"].iloc[0]) for _, X, _ in diary]
    assert rows == sorted(rows)  # in order, nothing from later
    assert all(isinstance(X, pd.DataFrame) and len(X) == 1 for _, X, _ in diary)
    assert all(set(available[0]) == {0, 1, 2} for *_, available in asked)
    learned = history[history["bucket"] == "learning"]
    assert [int(X["row"].iloc[0]) for _, X, _ in told] == learned["event"].tolist()
    for (_, _, feedback), (_, event) in zip(told, learned.iterrows(), strict=True):
        assert feedback.columns.tolist() == ["action", "reward", "timestamp"]
        expected = [event["action"], event["reward"], event["event"]]
        assert feedback.iloc[0].tolist() == expected
    # an event that its coin rejects is not even shown; its probability here is 1 - .2 / p
    shown = {int(X["row"].iloc[0]) for _, X, _ in asked}
    assert len(asked) == len(shown) < 500
    assert {row for row in range(500) if y["propensity"][row] == 0.2} <= shown
    if deployment_share:
        deployed = [int(X["row"].iloc[0]) for name, X, _ in asked if name == "predict"]
        assert 0.2 * len(asked) < len(deployed) < 0.4 * len(asked)
        assert not set(deployed) & {int(X["row"].iloc[0]) for _, X, _ in told}
    else:
        assert all(name == "select" for name, *_ in asked)


def test_the_same_events_are_shown_to_every_policy():
    _, y = uneven_log(400)
    frame = pd.DataFrame({"row": np.arange(400)})
    shown = []
    for epsilon in (0.0, 0.9):
        diary = []
        options = {"subsample": 0.7, "deployment_share": 0.2, "shuffle": True, "random_state": 5}
        replay(Recorder(epsilon, diary=diary), frame, y, **options)
        shown.append([(name, X["row"].iloc[0]) for name, X, _ in diary if name != "partial_fit"])
    assert shown[0] == shown[1]
    assert len(shown[0]) > 100


@pytest.mark.parametrize("policy", [EpsilonGreedy(), GLMUCBPolicy(random_state=0)], ids=repr)
@pytest.mark.parametrize("fitted", [False, True])
def test_the_callers_policy_is_never_changed(policy, fitted):
    X, y = uniform_log(300)
    if fitted:
        policy.fit(X[:50], y[:50])
    before = pickle.dumps(policy)
    replay(policy, X, y, deployment_share=0.2)
    replay(policy, X, y, learn=False)
    assert pickle.dumps(policy) == before


def test_it_starts_from_the_state_the_policy_is_in():
    X, y = uniform_log(500)
    y["reward"] = (y["action"] == "c").astype(int)
    cold = replay(EpsilonGreedy(0.0), X, y).history
    warm = replay(EpsilonGreedy(0.0).fit(X, y), X, y).history
    assert cold["action"].unique().tolist() == ["a", "b", "c"]
    assert set(warm["action"]) == {"c"}


def test_a_policy_that_does_not_learn():
    X, y = uniform_log(20_000)  # several blocks
    policy = EpsilonGreedy(0.5).fit(X[:100], y[:100])
    result = replay(policy, X, y, learn=False)
    greedy = replay(policy, X, y, learn=False, rule="predict")
    chosen = policy.select(X, available=[("a", "b", "c")] * 20_000)
    assert result.history["event"].tolist() == np.flatnonzero(chosen == y["action"]).tolist()
    best = policy.predict(X[:1])[0]
    assert greedy.history["event"].tolist() == np.flatnonzero(y["action"] == best).tolist()
    cut = replay(policy, X, y, learn=False, rule="predict", max_accepted=5000)
    assert cut.history["event"].tolist() == greedy.history["event"][:5000].tolist()
    assert cut.n_events == cut.history["event"].iloc[-1] + 1
    assert "this path" not in repr(result)


def test_batches_decide_as_single_events():
    X, y = uniform_log(500)

    class Timed(EpsilonGreedy):
        def advance(self, timestamp):
            pass

    policies = [kind(0.3).fit(X[:20], y[:20]) for kind in (EpsilonGreedy, Timed)]
    y["timestamp"] = np.arange(500)
    batched, single = (
        replay(policy, X, y, learn=False, deployment_share=0.3, random_state=1)
        for policy in policies
    )
    pd.testing.assert_frame_equal(batched.history, single.history)


def test_rule():
    X, y = uniform_log(300)
    greedy = replay(EpsilonGreedy(0.0), X, y)
    assert replay(EpsilonGreedy(1.0), X, y, rule="predict").history.equals(greedy.history)
    assert not replay(EpsilonGreedy(1.0), X, y).history.equals(greedy.history)


# --- buckets, parts, orders, repeats -------------------------------------------------------


def test_deployment_bucket():
    X, y = uniform_log(6000)
    y["reward"] = np.where(y["action"] == "c", 0.9, 0.1)
    result = replay(EpsilonGreedy(0.5), X, y, deployment_share=0.25, random_state=0)
    deployed = result.deployment
    assert deployed.mean_reward > 0.8 > result.mean_reward  # no price for exploring
    assert deployed.n_accepted == pytest.approx(6000 / 4 / 3, rel=0.2)
    assert result.n_accepted == pytest.approx(6000 * 3 / 4 / 3, rel=0.1)
    assert deployed.n_events == result.n_events == 6000
    assert replay(EpsilonGreedy(), X, y).deployment is None


@few
def test_max_accepted_counts_the_learning_bucket():
    X, y = uniform_log(2000)
    result = replay(EpsilonGreedy(), X, y, deployment_share=0.5, max_accepted=100, random_state=0)
    assert result.n_accepted == 100
    assert result.deployment.n_accepted == pytest.approx(100, rel=0.4)
    assert result.history["event"].iloc[-1] == result.n_events - 1
    assert result.history["bucket"].iloc[-1] == "learning"


def test_subsamples_are_parts_in_the_logs_order():
    X, y = uniform_log(900)
    result = replay(EpsilonGreedy(), X, y, subsample=0.5, n_repeats=4, random_state=0)
    assert result.runs["n_events"].tolist() == [450] * 4
    parts = [run["event"].tolist() for _, run in result.history.groupby("run")]
    assert all(part == sorted(set(part)) for part in parts)
    assert len({tuple(part) for part in parts}) == 4


def test_shuffled_runs_keep_time_running_forward():
    X, y = uniform_log(200)
    y["timestamp"] = np.arange(200) * 10.0
    times = []

    class Timed(Recorder):
        def __deepcopy__(self, memo):
            return Timed(self.epsilon, self.random_state, self.diary)

        def advance(self, timestamp):
            times.append(timestamp)
            self.diary.append(("advance", timestamp, None))

    diary = []
    result = replay(Timed(diary=diary), X, y, shuffle=True, random_state=0)
    assert times == y["timestamp"].tolist()
    assert result.history["event"].tolist() != sorted(result.history["event"])
    names = [name for name, *_ in diary]
    before_choices = [first for first, then in pairwise(names) if then == "select"]
    assert set(before_choices) == {"advance"}


@pytest.mark.parametrize(
    ("policy", "backend"),
    [(EpsilonGreedy(), "threading"), (GLMUCBPolicy(random_state=0), "loky")],
    ids=repr,
)
def test_repeats_in_parallel_are_those_in_series(policy, backend):
    X, y = uneven_log(300)
    options = {"n_repeats": 4, "shuffle": True, "deployment_share": 0.2, "random_state": 7}
    serial = replay(policy, X, y, **options)
    with joblib.parallel_config(backend, n_jobs=2):
        parallel = replay(policy, X, y, **options)
    pd.testing.assert_frame_equal(serial.history, parallel.history)
    first = replay(policy, X, y, **(options | {"n_repeats": 1}))
    pd.testing.assert_frame_equal(first.runs, serial.runs[:1])


def test_random_state_of_the_policy():
    X, y = uniform_log(400)
    seeded = replay(EpsilonGreedy(0.5, 3), X, y)
    assert seeded.history.equals(replay(EpsilonGreedy(0.5, 3), X, y, random_state=1).history)
    drawn = [replay(EpsilonGreedy(0.5, None), X, y, random_state=k).history for k in (0, 0, 1)]
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(drawn[2])
    runs = replay(EpsilonGreedy(0.5, 3), X, y, n_repeats=3, random_state=0)
    assert runs.runs["n_accepted"].nunique() > 1
    assert runs.runs[:1].equals(seeded.runs)


# --- a compiled pass -----------------------------------------------------------------------

TIMED = {"update_every": 3000.0}


def mostly_the_first(X, available):
    """Every available arm, the first of them twice as often."""
    p = np.zeros((len(X), 5))
    for row in range(len(X)):
        arms = [0, 1, 2, 3, 4] if available is None else list(available[row])
        p[row, arms] = 1 / (len(arms) + 1)
        p[row, arms[0]] *= 2
    return p


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"exploration": "thompson"}, {"deployment_share": 0.3}),
        ({"exploration": "epsilon_greedy", "epsilon": 0.3}, {"subsample": 0.6}),
        ({"link": "probit"}, {"shuffle": True, "n_repeats": 2}),
        ({"link": "linear", "covariance": "full"}, {"max_accepted": 40}),
        ({}, {"learn": False}),
        ({}, {"rule": "predict", "acceptance": 0.1}),
        (TIMED, {"deployment_share": 0.2}),
        (TIMED, {"shuffle": True}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_available", [None, 3])
def test_compiled_pass_decides_identically(settings, options, n_available):
    log = make_bandit_log(
        600, 5, 3, n_available=n_available, base_rate=0.3, logging=mostly_the_first, random_state=0
    )
    X = log.X.to_numpy()
    policy = GLMUCBPolicy(random_state=0, **settings)
    results = [
        replay(one, X, log.y, random_state=1, **options) for one in (policy, generic(policy))
    ]
    pd.testing.assert_frame_equal(results[0].history, results[1].history)
    pd.testing.assert_frame_equal(results[0].runs, results[1].runs)
    assert results[0].n_accepted > 10


@pytest.mark.parametrize("options", [{}, {"deployment_share": 0.3}, {"max_accepted": 40}], ids=repr)
def test_a_policy_may_walk_the_log_itself(options):
    X, y = uneven_log(500)
    own, event_by_event = (
        replay(kind(0.3), X, y, random_state=0, **options)
        for kind in (QuickEpsilonGreedy, EpsilonGreedy)
    )
    pd.testing.assert_frame_equal(own.history, event_by_event.history)
    assert own.n_events == event_by_event.n_events


# --- data of many kinds --------------------------------------------------------------------


def test_forms_of_a_log():
    X, y = uneven_log(300)
    expected = replay(EpsilonGreedy(), X, y, random_state=0).history
    structured = y.to_records(index=False)
    parts = {name: y[name].tolist() for name in ("reward", "propensity")}
    actions = y["action"]
    for log, more in ((structured, {}), (actions.to_numpy(), parts), (actions.tolist(), parts)):
        assert replay(EpsilonGreedy(), X, log, random_state=0, **more).history.equals(expected)
    polars = pytest.importorskip("polars")
    found = replay(EpsilonGreedy(), polars.DataFrame(X), polars.DataFrame(y), random_state=0)
    assert found.history.equals(expected)


@pytest.mark.parametrize("kind", [pd.DataFrame, csr_array, np.asarray, list])
def test_rows_keep_their_type(kind):
    X, y = uniform_log(60)
    diary = []
    replay(Recorder(diary=diary), kind(X), y)
    assert {type(rows) for _, rows, _ in diary} == {type(kind(X))}


def test_arms_that_are_tuples():
    X, y = uniform_log(300, [0, 1, 2])
    arms = [("home", 1), ("home", 2), ("news", 1)]
    y["action"] = [arms[k] for k in y["action"]]
    result = replay(Always(("home", 2)), X, y)
    assert set(result.history["action"]) == {("home", 2)}
    assert result.n_accepted == y["action"].tolist().count(("home", 2))


def test_classifiers_without_available():
    X, y = uniform_log(300)

    class Classifier:
        def predict(self, X):
            return np.where(X[:, 0] > 0, "a", "b")

    result = replay(Classifier(), X, y, rule="predict")
    assert (
        result.history["event"].tolist()
        == np.flatnonzero(np.where(X[:, 0] > 0, "a", "b") == y["action"]).tolist()
    )


def test_behind_transformers_and_in_a_search():
    log = make_bandit_log(2000, 4, 2, base_rate=0.3, random_state=0)
    scaler = StandardScaler().fit(log.X)
    policy = GLMUCBPolicy(random_state=0)
    expected = replay(policy, scaler.transform(log.X), log.y).history
    model = make_pipeline(scaler, policy)
    assert replay(model, log.X, log.y).history.equals(expected)
    search = GridSearchCV(model, {}, scoring=ReplayScorer(random_state=0), cv=2).fit(log.X, log.y)
    best = search.best_estimator_
    expected = replay(best[-1], best[0].transform(log.X), log.y).history
    for one in (search, best, make_pipeline(FunctionTransformer(), best)):
        assert replay(one, log.X, log.y).history.equals(expected)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        replay(make_pipeline(StandardScaler(), policy), log.X, log.y)


def test_select_behind_transformers():
    X, y = uniform_log(100)
    policy = EpsilonGreedy(0.0).fit(X, y)
    model = make_pipeline(StandardScaler().fit(X), policy)
    assert select(model, X[:5]).tolist() == policy.select(X[:5]).tolist()
    assert select(model, X[:2], available=[("a",), ("b",)]).tolist() == ["a", "b"]
    with pytest.raises(AttributeError, match="select"):
        select(make_pipeline(StandardScaler(), StandardScaler()).fit(X), X)


@pytest.mark.realdata
def test_open_bandit_logged_by_thompson_sampling(real_data):
    X, y = fetch_open_bandit("bts", data_home=real_data, return_X_y=True)
    with pytest.warns(ReplayCoverageWarning, match=r"keeps 1\.65 in the mean.*snips") as caught:
        result = replay(Always(y["action"][0]), X, y, random_state=0)
    assert len(caught) == 1
    assert result.expected == pytest.approx(1.65, abs=0.01)
    assert result.n_accepted < 10
    assert "snips" in repr(result)
    assert "of 10,000 events" in repr(result)


# --- warnings ------------------------------------------------------------------------------


def test_nothing_kept():
    class Elsewhere:
        def select(self, X):
            return np.full(len(X), "z")

    with (
        pytest.warns(UserWarning, match="not available on 12 events, first 'z' on row 0"),
        pytest.warns(
            ReplayCoverageWarning, match="none of 12 events kept, where c = 0.333 keeps 4"
        ),
    ):
        result = replay(Elsewhere(), NOTHING, Y)
    assert np.isnan([result.mean_reward, result.lift, result.standard_error]).all()
    assert np.isnan(result.interval()).all()
    assert result.history.empty


def test_few_kept():
    with pytest.warns(ReplayCoverageWarning, match=r"4 of 12 events kept.*too few"):
        replay(Always("b"), NOTHING, Y)


def test_actions_that_are_not_uniform():
    X, y = uneven_log(2000)
    with pytest.warns(UserWarning, match="no propensities, but its actions were not chosen unif"):
        replay(EpsilonGreedy(), X, y[["action", "reward"]])
    pools = [(0, 1, 2, 3) if k % 2 else (0, 1) for k in range(2000)]
    rng = np.random.default_rng(0)
    y["action"] = [pool[rng.integers(len(pool))] for pool in pools]
    replay(EpsilonGreedy(), X, y[["action", "reward"]], available=pools)
    with (
        pytest.warns(UserWarning, match=r"[01] on \d+ events, where 500 are expected"),
        pytest.warns(ReplayCoverageWarning, match="whatever the policy"),
    ):
        replay(Always(3), X, y[["action", "reward"]])


def test_kept_events_that_cannot_be_chance():
    X, y = uneven_log(2000)
    wrong = y.assign(propensity=1 / 3)
    with pytest.warns(ReplayCoverageWarning, match=r"run 0 kept \d+ of 2,000 events.*667 ± 21"):
        replay(Always(1), X, wrong)
    replay(Always(1), X, y, random_state=0)


def test_runs_that_do_not_differ():
    X, y = uniform_log(200)
    with pytest.warns(UserWarning, match="3 runs are one and the same"):
        replay(EpsilonGreedy(0.0), X, y, n_repeats=3)


def test_log_ends_before_the_horizon():
    X, y = uniform_log(200)
    with pytest.warns(ReplayCoverageWarning, match="before max_accepted=1,000"):
        replay(EpsilonGreedy(), X, y, max_accepted=1000)


# --- refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rule": "explore"}, "rule must be 'select' or 'predict', got 'explore'"),
        ({"deployment_share": 1.0}, r"deployment_share must be in \[0, 1\), got 1.0"),
        ({"acceptance": 0.0}, r"acceptance must be None or in \(0, 1\], got 0.0"),
        ({"acceptance": 2}, r"acceptance must be None or in \(0, 1\], got 2"),
        ({"subsample": -0.5}, r"subsample must be None or in \(0, 1\], got -0.5"),
        ({"n_repeats": 0}, "n_repeats must be a positive integer, got 0"),
        ({"max_accepted": 2.5}, "max_accepted must be a positive integer, got 2.5"),
    ],
)
def test_wrong_options(options, match):
    with pytest.raises(ValueError, match=match):
        replay(EpsilonGreedy(), NOTHING, Y, **options)


LOGS = {
    "propensity 0": (Y.assign(propensity=0.0), "row 0 has 0"),
    "propensity above 1": (Y.assign(propensity=1.5), "row 0 has 1.5"),
    "propensity missing": (
        Y.assign(propensity=[0.5] * 11 + [None]),
        "propensity is missing on row",
    ),
    "reward missing": (Y.assign(reward=[None] + [1] * 11), "reward is missing on row 0"),
    "action missing": (Y.assign(action=[None] + ["a"] * 11), "action is missing on row 0"),
    "not available": (Y.assign(available=[("a", "b")] * 12), "action of row 2, 'c'"),
    "unnamed": (Y.to_numpy(), "no column names"),
    "no reward": (Y[["action"]], "no rewards"),
    "no action": (Y[["reward"]], "no column 'action'"),
    "misspelt": (Y.rename(columns={"reward": "rewards"}), "rename it to 'reward'"),
    "longer": (pd.concat([Y, Y]), "24 events for 12 rows"),
}


POOLS = Y.assign(available=[("a", "b", "c")] * 12)


@pytest.mark.parametrize("name", LOGS)
def test_wrong_logs(name):
    y, match = LOGS[name]
    with pytest.raises(ValueError, match=match):
        replay(EpsilonGreedy(), NOTHING, y)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"reward": [1, 0]}, "2 entries for 12|given twice"),
        ({"propensity": [0.5] * 11}, "propensity has 11 entries for 12 events"),
        ({"available": [("a", "b", "c")] * 7}, "available has 7 entries for 12"),
        ({"available": np.ones((12, 5), dtype=bool)}, r"shape \(12, 5\), expected \(12, 3\)"),
        ({"available": np.ones((12, 3), dtype=int)}, "must be boolean"),
        ({"timestamp": np.arange(5)}, "timestamp has 5 entries for 12"),
        ({"y": POOLS, "available": np.ones((12, 3), dtype=bool)}, "available is given twice"),
        ({"y": POOLS, "available": np.ones((12, 2), dtype=bool)}, "available is given twice"),
    ],
)
def test_wrong_parts(parts, match):
    with pytest.raises(ValueError, match=match):
        replay(EpsilonGreedy(), NOTHING, **({"y": Y} | parts))


def test_empty_log():
    with pytest.raises(ValueError, match="log is empty"):
        replay(EpsilonGreedy(), np.zeros((0, 1)), Y[:0])


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("compiled", [True, False])
def test_rewards_that_the_policy_refuses(link, compiled):
    X, y = uniform_log(50)
    policy = GLMUCBPolicy(link, random_state=0).fit(X[:10], y[:10])
    policy = policy if compiled else generic(policy)
    before = pickle.dumps(policy) if compiled else None
    with pytest.raises(ValueError, match="reward is 3"):
        replay(policy, X, y.assign(reward=3))
    assert not compiled or pickle.dumps(policy) == before


@pytest.mark.parametrize("compiled", [True, False])
def test_unsorted_timestamps_where_delay_is_asked_for(compiled):
    X, y = uniform_log(50)
    y["timestamp"] = np.arange(50.0)[::-1]
    policy = GLMUCBPolicy(update_every=5.0, random_state=0)
    with pytest.raises(ValueError, match="timestamp"):
        replay(policy if compiled else generic(policy), X, y)
    replay(policy.set_params(update_every=None), X, y)


def test_what_is_no_policy():
    with pytest.raises(TypeError, match=r"StandardScaler has no select: choose rule='predict'"):
        replay(StandardScaler(), NOTHING, Y)
    with pytest.raises(TypeError, match="EpsilonGreedy is a class"):
        replay(EpsilonGreedy, NOTHING, Y)
    with pytest.raises(TypeError, match="GLMUCBPolicy is a class"):
        replay(GLMUCBPolicy, NOTHING, Y)

    class Explorer:
        def select(self, X):
            return np.full(len(X), "a")

    with pytest.raises(TypeError, match="Explorer has no predict for the deployment bucket"):
        replay(Explorer(), NOTHING, Y, deployment_share=0.1)

    class Sets:
        def select(self, X, available):
            return np.array([pool[:2] for pool in available])

    with pytest.raises(ValueError, match=re.escape("shape (8192, 2): a policy chooses one arm")):
        replay(Sets(), *uniform_log(9000))
