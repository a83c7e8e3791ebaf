"""replay: which events it keeps, and what a policy gets to see."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, off_policy_value
from skbandit.evaluation import replay
from skbandit.evaluation._replay._engine import Streams, prepared_copy, seeds_of_runs
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import Always, EpsilonGreedy, QuickEpsilonGreedy, Recorder
from tests.worlds import NOTHING, Y, refuses, uneven_log, uniform_log, warns

# === replay: which events it keeps, and what a policy gets to see ===============================

few = pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")


# --- which events are kept ---------------------------------------------------------------


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
    own_stream = prepared_copy(EpsilonGreedy(0.2), Streams.of(seeds_of_runs(0, 1)[0]), True)
    assert own_stream.random_state != EpsilonGreedy(0.2).random_state
    h, mean = as_the_paper_has_it(own_stream, X, y, pools, T)
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


# --- what the policy gets to see ---------------------------------------------------------


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


# --- buckets, parts, orders, repeats -----------------------------------------------------


@pytest.mark.thorough
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


@pytest.mark.thorough
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
    before_choices = [one for one, then in pairwise(names) if then == "select"]
    assert set(before_choices) == {"advance"}


@pytest.mark.thorough
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


# --- a compiled pass ---------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"deployment_share": 0.3}, {"max_accepted": 40}], ids=repr)
def test_a_policy_may_replay_the_log_itself(options):
    X, y = uneven_log(500)
    own, event_by_event = (
        replay(kind(0.3), X, y, random_state=0, **options)
        for kind in (QuickEpsilonGreedy, EpsilonGreedy)
    )
    pd.testing.assert_frame_equal(own.history, event_by_event.history)
    assert own.n_events == event_by_event.n_events


# === Replay of a rule's choices, one label per event, and its difference to a policy that learns


class BySign:
    """The rule as a policy, which reads it from contexts."""

    def __init__(self, arms):
        self.named = np.array(arms)

    def select(self, X):
        return self.named[(X[:, 0] > 0).astype(int)]

    predict = select


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "n_repeats": 3},
        {"subsample": 0.5, "n_repeats": 2},
        {"max_accepted": 20},
        {"deployment_share": 0.3},
        {"rule": "predict"},
        {"acceptance": 0.1},
    ],
)
@pytest.mark.parametrize("form", [np.asarray, list, pd.Series, pd.Categorical])
def test_labels_are_the_policy_that_chooses_them(form, options):
    X, y = uneven_log(400)
    rule = BySign([0, 2])
    found = replay(form(rule.select(X).tolist()), X, y, random_state=0, **options)
    expected = replay(rule, X, y, random_state=0, **options)
    assert found.n_accepted > 0 and found.history.equals(expected.history)
    assert (found - expected).standard_error == 0
    if options.get("deployment_share"):
        assert found.deployment.history.equals(expected.deployment.history)


def test_by_hand():
    """Always b, whose rewards in the log are 1, 1, 0, 1."""
    with pytest.warns(ReplayCoverageWarning):
        result = replay(["b"] * 12, NOTHING, Y)
    assert (result.n_accepted, result.mean_reward) == (4, 0.75)


def test_events_that_could_not_be_chosen_are_told():
    X, y = uniform_log(200)
    y.loc[100:, "action"] = np.random.default_rng(1).choice(["a", "c"], 100)
    y["available"] = [("a", "b", "c")] * 100 + [("a", "c")] * 100
    warns("chose arms that were not available on", replay, ["b"] * 200, X, y)


def test_what_is_refused():
    X, y = uniform_log(60)
    for given, message in (
        (["a"] * 59, "there are 59 labels of chosen arms for 60 events"),
        (["A"] * 60, r"none of the chosen labels, 'A', is an arm of the log, 'a', 'b', 'c'"),
        (["a"] * 30 + ["B"] * 30, r"the label 'B', chosen on row 30, is no arm of the log"),
        ([True] * 60, "an array of booleans"),
        (["a"] * 59 + [None], "label of the chosen arm is missing on row 59"),
    ):
        refuses(message, replay, given, X, y)
    with pytest.raises(TypeError, match=r"got a table of shape \(60, 3\): pass probabilities to"):
        replay(np.full((60, 3), 1 / 3), X, y)
    warns("policy", replay, pd.Series(["a"] * 60, index=range(59, -1, -1)), pd.DataFrame(X), y)


def test_a_replay_less_an_estimate():
    X, y = uniform_log(300)
    one, other = replay(["a"] * 300, X, y), off_policy_value(["a"] * 300, X, y)
    for a, b in ((one, other), (other, one)):
        with pytest.raises(TypeError, match=r"replay\(actions, X, y, random_state=0\)"):
            a - b
    with pytest.raises(TypeError, match="unsupported operand"):
        one - 1.0
