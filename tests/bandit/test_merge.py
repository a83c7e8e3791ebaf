"""Policies that learned apart: their merge, against one process that saw all."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy, make_policy_pipeline
from skbandit.bandit._merge import combine, pooled_sums
from tests.tiers import examples, first
from tests.worlds import refuses

TASTE = np.random.default_rng(99).normal(size=(4, 5)) * 0.4
NEW = np.random.default_rng(98).normal(size=(500, 5)) * [1, 2, 0.5, 3, 1] + [0, 1, 2, 0, -3]
ARMS = pd.DataFrame({"u": [1.0, 0, 2, 1], "w": [0, 1.0, 1, 3]})


def events(n, seed, link="linear", arms=range(4)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 2, 0.5, 3, 1] + [0, 1, 2, 0, -3]
    action = rng.choice(list(arms), size=n)
    theta = (X * TASTE[action % 4]).sum(axis=1) - 0.5
    reward = theta + rng.normal(size=n)
    if link != "linear":
        reward = (theta + rng.logistic(size=n) > 0).astype(float)
    return X, pd.DataFrame({"action": action, "reward": reward})


def apart(policy, n_base=300, n=600, arms=(range(4), range(4))):
    """A base, two workers, and a process that learned the events of both in turn."""
    link = policy.link
    base = copy.copy(policy).fit(*events(n_base, 1, link))
    parts = [events(n, 2 + k, link, arms[k]) for k in range(2)]
    workers = [copy.copy(base).partial_fit(*part) for part in parts]
    turn = np.arange(2 * n).reshape(2, n).T.ravel()
    X, y = np.concatenate([X for X, _ in parts]), pd.concat([y for _, y in parts])
    return base, workers, copy.copy(base).partial_fit(X[turn], y.iloc[turn])


def largest_gap(one, other, X=NEW):
    """Of linear predictors, by label of the arm."""
    known = other.arms_.tolist()
    assert set(one.arms_.tolist()) == set(known)
    order = [known.index(label) for label in one.arms_.tolist()]
    return np.abs(one.decision_function(X) - other.decision_function(X)[:, order]).max()


@pytest.mark.parametrize("standardize", [False, True, "scale"])
@pytest.mark.parametrize("prior_scale", [3, (1, 3, 10)])
def test_linear_rewards_are_merged_exactly(standardize, prior_scale):
    """Posteriors, weights of prior scales and units are those of one process, to rounding."""
    policy = GLMUCBPolicy(
        "linear", covariance="full", standardize=standardize, prior_scale=prior_scale,
        noise_variance=1.0,
    )  # fmt: skip
    base, workers, one = apart(policy)
    merged = base.merge(workers, base=base)
    assert largest_gap(merged, one) < 1e-10
    np.testing.assert_allclose(merged.scale_weights_, one.scale_weights_, atol=1e-10)
    assert merged.n_updates_.tolist() == one.n_updates_.tolist()
    assert merged.arms_.tolist() == base.arms_.tolist()
    if not standardize:  # else the units of `one` are those of its last renewal
        np.testing.assert_allclose(merged.covariance_, one.covariance_, rtol=1e-10)
    later = events(900, 7)  # which leads to a renewal of both
    assert largest_gap(merged.partial_fit(*later), one.partial_fit(*later)) < 1e-10


def test_standardized_rewards_are_merged_up_to_the_unit_of_their_prior():
    base, workers, one = apart(GLMUCBPolicy("linear", covariance="full"))
    assert largest_gap(base.merge(workers, base=base), one) < 0.01


def test_from_nothing_with_arms_of_one_worker_only():
    """An unfitted base; arm 0 is learned by both, the others by one each."""
    policy = GLMUCBPolicy("linear", covariance="full", standardize=False, noise_variance=1.0)
    parts = [events(200, 2, arms=[0, 1]), events(200, 3, arms=[0, 2, 3])]
    workers = [copy.copy(policy).fit(*part) for part in parts]
    one = copy.copy(policy).fit(*parts[0]).partial_fit(*parts[1])
    merged = policy.merge(workers, base=policy)
    assert merged.arms_.tolist() == [0, 1, 2, 3]
    assert largest_gap(merged, one) < 1e-10
    np.testing.assert_allclose(merged.scale_weights_, one.scale_weights_, atol=1e-10)
    assert not policy.__sklearn_is_fitted__()
    for arm in (1, 2):  # in units of all contexts: the arm's own posterior, up to its prior's units
        moving = [copy.copy(policy).set_params(standardize=True).fit(*part) for part in parts]
        whole = moving[0].merge(moving[1:], base=copy.copy(policy).set_params(standardize=True))
        alone = moving[0] if arm == 1 else moving[1]
        k, j = (list(p.arms_).index(arm) for p in (whole, alone))
        gap = whole.decision_function(NEW)[:, k] - alone.decision_function(NEW)[:, j]
        assert np.abs(gap).max() < 0.1


@pytest.mark.parametrize(
    "policy",
    first(
        3,
        [
            GLMUCBPolicy(),
            GLMUCBPolicy(forgetting=0.99),
            SharedGLMPolicy(ARMS),
            GLMUCBPolicy("probit", standardize=False),
            GLMUCBPolicy("linear", covariance="full", forgetting=0.99),
            SharedGLMPolicy(ARMS, "linear"),
            SharedGLMPolicy(ARMS, covariance="diagonal", standardize=False),
        ],
    ),
    ids=str,
)
def test_merge_is_much_nearer_to_one_process_than_a_worker(policy):
    """Root mean square of the difference of linear predictors from those of one process.

    Tolerances: .4 of a worker's, and with forgetting, where the order matters, .7 of it.
    """
    base, workers, one = apart(policy)

    def distance(other):
        gap = other.decision_function(NEW) - one.decision_function(NEW)
        return np.sqrt((gap**2).mean())

    merged = base.merge(workers, base=base)
    tolerance = 0.4 if policy.forgetting in {1, "auto"} else 0.7
    assert distance(merged) < tolerance * min(distance(worker) for worker in workers)
    assert (merged.predict(NEW) == one.predict(NEW)).mean() > 0.9
    assert merged.n_updates_.tolist() == one.n_updates_.tolist()


SETTINGS = st.fixed_dictionaries(
    {
        "link": st.sampled_from(["linear", "logistic", "probit"]),
        "covariance": st.sampled_from(["diagonal", "full"]),
        "standardize": st.booleans(),
        "forgetting": st.sampled_from(["auto", 1.0, 0.98]),
    }
)


@pytest.mark.thorough  # compiles what no other test needs
@examples(30)
@given(SETTINGS, st.booleans(), st.integers(0, 40), st.integers(1, 40), st.integers(0, 9))
def test_properties(settings, shared, n_base, n, seed):
    """merge([a], base=b) == a, and the order of workers does not matter."""
    policy = SharedGLMPolicy(**settings) if shared else GLMUCBPolicy(**settings)
    link = settings["link"]
    base = copy.copy(policy)
    if n_base:
        base.fit(*events(n_base, seed, link))
    workers = [copy.copy(base).partial_fit(*events(n + k, seed + 10 + k, link)) for k in range(3)]
    for a in workers:
        merged = base.merge([a], base=base)
        assert merged.arms_.tolist() == a.arms_.tolist()
        np.testing.assert_array_equal(merged.decision_function(NEW), a.decision_function(NEW))
        np.testing.assert_array_equal(merged.n_updates_, a.n_updates_)
    forward = base.merge(workers, base=base)
    backward = base.merge(workers[::-1], base=base)
    from_worker = workers[1].merge([workers[2], workers[0], workers[1]], base=base)
    for other in (backward, from_worker):
        assert other.arms_.tolist() == forward.arms_.tolist()
        np.testing.assert_allclose(
            other.decision_function(NEW), forward.decision_function(NEW), rtol=1e-7, atol=1e-7
        )
    assert forward.n_updates_.sum() == n_base + 3 * n + 3
    for one in (base, *workers):  # none of them was changed
        assert one is base or one.n_updates_.sum() < forward.n_updates_.sum()


POLICIES = [
    GLMUCBPolicy(random_state=0),
    GLMUCBPolicy("linear", covariance="full", standardize=False),
    SharedGLMPolicy(ARMS),
    make_policy_pipeline(StandardScaler(), GLMUCBPolicy()),
    SlatePolicy(n_select=1),
]
POLICY_IDS = ["glm", "full", "shared", "pipeline", "slate"]


def n_events(policy):
    return policy.record(NEW[:1], 0, 1.0)["version"]


@pytest.mark.parametrize("policy", POLICIES, ids=POLICY_IDS)
def test_a_worker_counts_once_in_whatever_form_it_comes(policy):
    base = copy.deepcopy(policy).fit(*events(300, 1, "logistic"))
    saved = [
        pickle.dumps(copy.deepcopy(base).partial_fit(*events(300, k, "logistic"))) for k in (2, 3)
    ]
    load = pickle.loads
    one = load(saved[0])
    merged = one.merge([load(state) for state in saved], base=base)
    assert n_events(merged) == 900
    forms = [one, copy.deepcopy(one), copy.deepcopy(one), *map(load, saved), load(saved[1])]
    again = base.merge(forms, base=load(pickle.dumps(base)))
    np.testing.assert_array_equal(again.predict_reward(NEW), merged.predict_reward(NEW))
    assert n_events(again) == 900
    with pytest.raises(ValueError, match="began with another event than base, or with an earlier"):
        merged.merge([load(saved[0])], base=base)
    with pytest.raises(ValueError, match="earlier or merged state: pass as base"):
        base.merge([merged, load(saved[0])], base=base)
    # a state that was sent before and the one that it became, in the same process or another
    more = events(100, 4, "logistic")
    sent = [copy.deepcopy(one), one.partial_fit(*more), load(saved[0])]
    assert n_events(base.merge(sent, base=base)) == 700
    fork = load(saved[0]).partial_fit(*more)
    assert n_events(base.merge([fork, load(saved[0])], base=base)) == 700
    refuses("have learned some of the same events since base", base.merge, [fork, one], base=base)
    assert n_events(fork.merge([fork, one], base=load(saved[0]))) == 800


@pytest.mark.parametrize("policy", POLICIES, ids=POLICY_IDS)
def test_equal_events_of_two_workers_are_two_events(policy):
    base = copy.deepcopy(policy).fit(*events(300, 1, "logistic"))
    same = NEW[:1], pd.DataFrame({"action": [0], "reward": [1.0]})
    workers = [copy.deepcopy(base).partial_fit(*same) for _ in range(3)]
    assert n_events(base.merge(workers, base=base)) == 303
    if isinstance(policy, GLMUCBPolicy | SharedGLMPolicy):
        workers = [clone(policy).fit(*same) for _ in range(3)]
        assert n_events(policy.merge(workers, base=policy)) == 3


def test_servers_that_merge_the_same_go_on_together():
    base, (a, b), _ = apart(GLMUCBPolicy("linear"), n=50)
    here, there = a.merge([b], base=base), copy.deepcopy(b).merge([copy.deepcopy(a)], base=base)
    east, west = (one.partial_fit(*events(50, k)) for k, one in enumerate((here, there)))
    start = base.merge([b, a], base=base)
    assert n_events(start.merge([east, west], base=start)) == 500


def test_turns_of_workers_that_forget():
    """Of M events in turn, each of precision 1, the last counts 1 and the one before it γ."""
    gamma, n = 0.5, [np.array([1]), np.array([3])]
    known = [sum(gamma**j for j in range(k)) for k in (1, 3, 4)]
    means = 2.0, 1.0  # of the rewards of each worker
    one = np.ones((1, 1))
    prior, before = (0 * one, 1e12 * one), 8.0  # of which γⁿ remains after n events
    base = (0 * one, one / before)
    workers = []
    for mean, k, (events_of,) in zip(means, known, n, strict=False):
        precision = gamma**events_of * before + k
        workers.append((mean * k / precision * one, one / precision))
    (mean, variance), *_ = combine(base, workers, prior, n, gamma)
    of_events = known[2] * (1 * means[0] + 3 * means[1]) / 4
    precision = gamma**4 * before + known[2]
    assert 1 / variance[0, 0] == pytest.approx(precision)
    assert mean[0, 0] == pytest.approx(of_events / precision)
    sums = [
        gamma**events_of * before + np.array([mean * k])
        for mean, k, events_of in zip(means, known, n, strict=False)
    ]
    total = pooled_sums(np.array([before]), sums, n, gamma)
    assert total[0] == pytest.approx(gamma**4 * before + of_events)
    # with nothing forgotten, sums are those of all
    assert pooled_sums(np.array([7.0]), [np.array([9.0]), np.array([8.0])], n, 1.0) == [10.0]


def test_arms_described_to_one_worker():
    base, workers, _ = apart(SharedGLMPolicy(ARMS, "linear"))
    new = pd.DataFrame({"u": [5.0, 4], "w": [1.0, 9]}, index=[9, 8])
    X, y = events(50, 5, arms=[8, 9])
    workers[0].describe_arms(new).partial_fit(X, y)
    merged = base.merge(workers, base=base)
    assert merged.arms_.tolist() == [0, 1, 2, 3, 8, 9]
    pd.testing.assert_frame_equal(merged.arm_features_.loc[[9, 8]], new)
    one = copy.copy(workers[0]).partial_fit(*events(600, 3))
    # less near than where units of arms stay: the prior is that of other units. Over 20 draws of
    # the events, the ratio of the two gaps is .4 to 1.1, .6 on average.
    assert largest_gap(merged, one) < 0.9 * largest_gap(workers[0], one)


def test_sparse_contexts_merge_as_dense_ones():
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 2, size=(90, 6)) * 1.0
    y = pd.DataFrame({"action": rng.integers(5, size=90), "reward": rng.random(90) < 0.3})
    results = []
    for form in (np.asarray, csr_array):
        start = GLMUCBPolicy(standardize="scale").fit(form(dense[:30]), y[:30])
        others = [
            copy.copy(start).partial_fit(form(dense[rows]), y[rows])
            for rows in (slice(30, 60), slice(60, 90))
        ]
        results.append(start.merge(others, base=start).decision_function(dense))
    np.testing.assert_array_equal(*results)


def test_what_a_merge_takes_from_this_policy():
    base, (a, b), _ = apart(GLMUCBPolicy(random_state=0), n=50)
    a.select(NEW[:7]), b.select(NEW[:5])
    a.set_params(alpha=0.7, random_state=3)
    merged = a.merge([b], base=base)
    assert merged.get_params() == a.get_params()
    assert merged.n_updates_.sum() == 400
    again = a.merge([b], base=base)
    np.testing.assert_array_equal(merged.select(NEW), again.select(NEW))
    timed = events(10, 8, "logistic")[1].assign(timestamp=np.arange(10.0))
    b.partial_fit(NEW[:10], timed)
    assert a.merge([b], base=base).last_timestamp_ == 9.0


def test_pipelines_merge_as_their_policies_do():
    start = make_policy_pipeline(StandardScaler(), GLMUCBPolicy("linear", covariance="full"))
    base = start.fit(*events(50, 0))
    workers = [copy.deepcopy(base).partial_fit(*events(90, k)) for k in (1, 2)]
    merged = base.merge(workers, base=base)
    assert merged.steps[-1][1].n_updates_.sum() == 230
    assert base.steps[-1][1].n_updates_.sum() == 50
    refuses("step 'standardscaler' of base is not fitted", base.merge, workers, base=clone(start))


@pytest.mark.parametrize(
    "spoil, match",
    [
        (lambda b: b.set_params(forgetting=0.9), r"policies\[1\] learns with forgetting=0.9"),
        (lambda b: b.drop_arms([0]), r"base is not an earlier state of policies\[1\]: it has"),
        (lambda b: b.fit(*events(900, 5)), r"policies\[1\] began with another event than base"),
        (lambda b: b.fit(NEW[:, :2], events(500, 1)[1]), "began with another event"),
        (lambda b: GLMUCBPolicy("linear"), r"policies\[1\] is not fitted: leave it out"),
        (
            lambda b: SharedGLMPolicy(link="linear").fit(*events(9, 0)),
            r"policies\[1\] is a SharedGLMPolicy, and base a GLMUCBPolicy",
        ),
    ],
)
def test_what_cannot_be_merged(spoil, match):
    base, (a, b), _ = apart(GLMUCBPolicy("linear"), n=50)
    spoiled = spoil(b)
    refuses(match, base.merge, [a, spoiled], base=base, error=(ValueError, TypeError))


def test_a_path_that_was_cut_is_not_summed():
    """A worker that was loaded many times may share events from before them with another one."""
    unfitted = GLMUCBPolicy(random_state=0)
    worker = copy.copy(unfitted).fit(*events(300, 1, "logistic"))
    early = pickle.dumps(worker)
    late = pickle.loads(early)
    for _ in range(1100):
        late._walker = b"another process"
        late._note_step()
    late.partial_fit(*events(5, 2, "logistic"))
    for base in (unfitted, pickle.loads(early)):
        with pytest.raises(ValueError, match=r"was loaded, and learned, 999 times or more"):
            unfitted.merge([late, pickle.loads(early)], base=base)
    more = pickle.loads(pickle.dumps(late)).partial_fit(*events(9, 3, "logistic"))
    other = pickle.loads(pickle.dumps(late)).partial_fit(*events(9, 4, "logistic"))
    assert late.merge([more, other], base=late).n_updates_.sum() == 323
    assert unfitted.merge([more], base=unfitted).n_updates_.sum() == 314


def test_a_later_base_delays_adaptive_priors_and_oracles():
    base, (a, b), _ = apart(GLMUCBPolicy("linear", covariance="full"), n=50)
    longer = copy.copy(base).partial_fit(*events(300, 8))  # more events of each arm than a has
    with pytest.raises(ValueError, match=r"base is not an earlier state of policies\[0\]: it has"):
        base.merge([b, a], base=longer)
    (X, y), (Z, z) = events(400, 4), events(500, 6)
    narrow, wide = (copy.copy(base).partial_fit(one, y) for one in (0.01 * X, X))
    narrow._path = wide._path = ()  # as of states that were saved before these were noted
    more = copy.copy(narrow).partial_fit(0.01 * Z, z)
    with pytest.raises(ValueError, match=r"earlier state of policies\[1\]: it knows more of arm"):
        GLMUCBPolicy("linear", covariance="full").merge(
            [copy.copy(wide).partial_fit(Z, z), more], base=wide
        )
    late = GLMUCBPolicy(update_every=60).fit(
        NEW[:20], events(20, 1)[1].clip(0, 1).assign(timestamp=np.arange(20.0))
    )
    with pytest.raises(ValueError, match=r"has delayed events: call advance\(\) before merge"):
        late.merge([copy.copy(late)], base=late)
    base, workers, _ = apart(GLMUCBPolicy("linear", prior_mean="adaptive"), n=50)
    refuses("Merge needs a fixed prior", base.merge, workers, base=base)
    oracle = OraclePolicy(DecisionTreeClassifier()).fit(*events(50, 1, "logistic"))
    others = [copy.copy(oracle).partial_fit(*events(9, k, "logistic")) for k in (2, 3)]
    refuses("a OraclePolicy cannot be merged", oracle.merge, others, base=oracle, error=TypeError)


@pytest.mark.parametrize(
    "policy", [GLMUCBPolicy(), SharedGLMPolicy(), SlatePolicy()], ids=lambda p: type(p).__name__
)
def test_states_of_later_versions_are_refused_before_they_are_read(policy, monkeypatch):
    saved = pickle.dumps(policy)
    assert type(pickle.loads(saved)) is type(policy)
    monkeypatch.setattr("skbandit.bandit._guard.STATE_FORMAT", 7)
    monkeypatch.setattr("skbandit.__version__", "9.9.0")
    policy.unreadable = Unreadable()
    later, state = pickle.dumps(policy), policy.__getstate__()
    monkeypatch.undo()
    message = (
        r"saved by skbandit 9.9.0, in format 7, and skbandit .* reads formats up to 1: install "
        "skbandit 9.9.0 or later"
    )
    refuses(message, pickle.loads, later)
    with pytest.raises(ValueError, match=message):  # as skops restores it
        object.__new__(type(policy)).__setstate__(state)


class Unreadable:
    """Stands for a type that this version does not know."""

    def __reduce__(self):
        return _fail, ()


def _fail():
    raise AssertionError("the state of a later version was read")


def test_copies_of_a_shared_policy_count_their_own_events():
    base = SharedGLMPolicy(alpha=lambda n: n * 1.0).fit(*events(20, 1, "logistic"))
    before = base.select_scores(NEW)
    copy.copy(base).partial_fit(*events(20, 2, "logistic"))
    np.testing.assert_array_equal(base.select_scores(NEW), before)
    assert base.record(NEW[:1], 0, 1.0)["version"] == 20
