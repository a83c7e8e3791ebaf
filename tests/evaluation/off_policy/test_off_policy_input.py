"""Off-policy estimates: probabilities, labels, the order of columns, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy
from skbandit.datasets import load_open_bandit
from skbandit.evaluation import off_policy_blocks, off_policy_value
from skbandit.exceptions import ReplayCoverageWarning
from tests.worlds import Greedy, Softmax, doubly_robust, ips, logged, refuses, snips, warns

# === Off-policy estimates: what the log cannot tell, what is refused, and real data =============


X, Y = logged()
ALL = [ips, snips, doubly_robust]


# --- what the log cannot tell ------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL)
def test_nothing_logged_that_the_policy_would_do(estimator):
    X, y = logged()
    y = y.assign(available=[("a", "b", "c", "d")] * 400)
    table = pd.DataFrame({"d": 1.0}, index=y.index).assign(a=0.0)
    with pytest.warns(ReplayCoverageWarning, match="never chooses a logged action") as caught:
        estimate = estimator(table, X, y)
    assert caught[0].filename == __file__
    assert np.isnan([estimate.mean_reward, estimate.standard_error]).all()
    assert estimate.effective_sample_size == 0
    assert "nan" in repr(estimate)


@pytest.mark.parametrize("estimator", ALL)
def test_few_events_speak_for_the_policy(estimator):
    X, y = logged()
    probability = np.full((400, 3), [0.0, 0.0, 1.0])
    y["propensity"] = np.where(np.arange(400) < 5, 1e-3, 0.9)
    warns(r"count as \d\.\d only", estimator, probability, X, y, warning=ReplayCoverageWarning)


@pytest.mark.parametrize("estimator", ALL)
def test_propensities_that_cannot_be(estimator):
    policy = Softmax(["c", "a", "b"])
    with pytest.warns(ReplayCoverageWarning, match="the mean weight is 2.* propensities are wrong"):
        estimator(policy, X, Y.assign(propensity=Y["propensity"] / 2))
    estimator(policy, X, Y)  # without a warning: warnings are errors


@pytest.mark.parametrize("estimator", ALL)
def test_no_propensities_though_the_log_is_not_uniform(estimator):
    X = np.zeros((400, 1))
    y = pd.DataFrame({"action": ["a"] * 300 + ["b"] * 100, "reward": 1.0})
    with pytest.warns(UserWarning, match="not chosen uniformly: 'a' on 300 events") as caught:
        estimator(np.full((400, 2), 0.5), X, y)
    assert caught[0].filename == __file__


# --- bad input ---------------------------------------------------------------------------


def frame(**columns):
    return pd.DataFrame(columns, index=range(400))


BAD_PROBABILITIES = {
    "sum": (np.full((400, 3), 0.3), r"must sum to 1: row 0 sums to 0\.9"),
    "named sum": (frame(a=0.5, b=0.6), r"must sum to 1: row 0 sums to 1\.1"),
    "negative": (frame(a=-0.5, b=1.5), r"in \[0, 1\]: row 0 has -0\.5"),
    "above 1": (np.full(400, 1.2), r"in \[0, 1\]: row 0 has 1\.2"),
    "missing": (frame(a=np.nan, b=1.0), r"in \[0, 1\]: row 0 has nan"),
    "one missing": (np.append(np.full(399, 0.5), np.nan), "missing on row 399"),
    "width": (np.full((400, 4), 0.25), r"shape \(400, 4\), expected \(400, 3\).*'a', 'b', 'c'"),
    "length": (np.full((5, 3), 1 / 3), r"shape \(5, 3\), expected \(400, 3\)"),
    "length of one": (np.full(5, 1.0), "5 entries for 400 events"),
    "other arms": (frame(x=0.5, z=0.5), r"no arm of the log, .* is among the columns \['x', 'z'\]"),
    "twice": (pd.concat([frame(a=0.5), frame(a=0.5)], axis=1), "two columns have the same arm"),
}


@pytest.mark.parametrize("case", BAD_PROBABILITIES)
def test_bad_probabilities(case):
    given, message = BAD_PROBABILITIES[case]
    refuses(message, snips, given, X, Y)


def test_choices_that_were_not_there():
    X, y = logged()
    y["available"] = [("a", "b", "c")] * 399 + [(y["action"].iloc[-1],)]
    one = np.full((400, 3), 1 / 3)
    refuses(r"row 399: arm '\w' is chosen with probability 0\.333", ips, one, X, y)
    away = "b" if y["action"].iloc[-1] == "a" else "a"
    greedy = Greedy([away])
    refuses(r"row 399: arm .* probability 1, but was not", ips, greedy, X, y)


class Broken(Softmax):
    def select_proba(self, X, *, available=None):
        return super().select_proba(X, available=available)[:, :2]

    def select(self, X, *, available=None):
        return self.arms_[:1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X, y: ips(Softmax, X, y), TypeError, "Softmax is a class"),
        (lambda X, y: ips("greedy", X, y), TypeError, "expected a fitted policy"),
        (lambda X, y: ips(object(), X, y), TypeError, "got object"),
        (lambda X, y: ips(Greedy("abc"), None, y), ValueError, "a policy needs contexts"),
        (lambda X, y: ips(Greedy("abc"), X, y, rule="greedy"), ValueError, "rule must be"),
        (
            lambda X, y: ips(Greedy("abc"), X, y, rule="predict"),
            ValueError,
            "Greedy has no predict: choose rule='select'",
        ),
        (
            lambda X, y: ips(Broken("abc"), X, y),
            ValueError,
            r"Broken\.select_proba: shape \(400, 2\), expected \(400, 3\)",
        ),
        (
            lambda X, y: doubly_robust(np.full(400, 0.5), X, y),
            ValueError,
            "needs the probabilities of all arms",
        ),
        (
            lambda X, y: doubly_robust(np.full((400, 3), 1 / 3), None, y),
            ValueError,
            "the reward model needs contexts",
        ),
        (
            lambda X, y: ips(np.full((400, 2), 0.5), X, [1, "a"] * 200, reward=y["reward"]),
            ValueError,
            "cannot be sorted.*pass a DataFrame",
        ),
    ],
)
def test_bad_calls(call, error, message):
    refuses(message, call, *logged(), error=error)


def test_a_policy_that_answers_too_little():
    broken = Broken("abc")
    broken.predict = broken.select
    with pytest.raises(
        ValueError, match=r"Broken\.predict returned an array of shape \(1,\) for 400 rows"
    ):
        ips(broken, X, Y, rule="predict")


# --- real data ---------------------------------------------------------------------------


@pytest.mark.thorough
def test_open_bandit():
    """Each policy, judged on the other's log, earns what it did: within 2.6 standard errors."""
    random, bts = load_open_bandit("random"), load_open_bandit("bts")
    # Thompson sampling knew the position only; what it chose there, time and again
    share = pd.crosstab(bts.position, bts.y["action"], normalize="index")
    as_bts = share.loc[random.position].reset_index(drop=True)
    as_random = np.full((len(bts.y), 34), 1 / 34)
    for log, policy, other in ((random, as_bts, bts), (bts, as_random, random)):
        truth, error = other.y["reward"].mean(), other.y["reward"].sem()
        for estimator in ALL:
            estimate = estimator(policy, log.X, log.y)
            spread = np.hypot(estimate.standard_error, error)
            assert abs(estimate.mean_reward - truth) < 2.6 * spread, estimate
            assert estimate.n_events == 10_000
    # the log of Thompson sampling says little of what it rarely did
    assert ips(as_random, None, bts.y).effective_sample_size < 2000
    assert ips(as_bts, None, random.y).effective_sample_size > 2000


@pytest.mark.parametrize("p", [5e-324, 1e-300])
@pytest.mark.parametrize("estimator", [ips, snips])
def test_a_propensity_so_small_that_weights_overflow(estimator, p):
    X, y = logged()
    y.loc[3, "propensity"] = p
    given = np.full(400, 0.5)
    refuses(r"row 3 has the weight .* correct the propensity", estimator, given, X, y)


def test_a_reward_so_large_that_squares_overflow():
    X, y = logged()
    y["reward"] = y["reward"].astype(float)
    y.loc[3, ["reward", "propensity"]] = [1e150, 1e-9]
    refuses(r"weighted reward of row 3, .* rescale the rewards", ips, np.full(400, 0.5), X, y)


def test_folds_of_groups_need_groups():
    policy, cv = Softmax(["c", "a", "b"]), GroupKFold(3)
    refuses("GroupKFold needs groups", doubly_robust, policy, X, Y, cv=cv)
    splits = list(cv.split(X, groups=np.arange(400) % 7))
    assert np.isfinite(doubly_robust(policy, X, Y, cv=splits).mean_reward)


# === Probabilities in sparse matrices and as objects, and labels in a column ====================

N = 400
RNG = np.random.default_rng(0)
Y_FORMS = pd.DataFrame({"action": RNG.integers(3, size=N), "reward": RNG.random(N)})
P = RNG.dirichlet([1, 1, 1], size=N)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, lambda p: p.astype(object)])
def test_forms_of_probabilities(form):
    assert off_policy_value(form(P), None, Y_FORMS) == off_policy_value(P, None, Y_FORMS)


@pytest.mark.parametrize("dtype", [int, object, str])
def test_labels_in_a_column(dtype):
    labels = np.array([[1]] * N, dtype=dtype)
    labels[0] = 2
    y = Y_FORMS.assign(action=Y_FORMS["action"].astype(dtype))
    refuses(r"got \(400, 1\): pass labels\.ravel\(\)", off_policy_value, labels, None, y)
    off_policy_value(labels.ravel(), None, y)


# === One value per event: labels of the chosen arms are never read as probabilities =============

pl = pytest.importorskip("polars", reason="polars is not installed")

N_LABELS = 20_000


def uniform_log():
    """Two arms at random; the reward is 1 with probability .5 if the arm suits x, else .05."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_LABELS, 1))
    suits = (x[:, 0] > 0).astype(int)
    action = rng.integers(2, size=N_LABELS)
    reward = (rng.random(N_LABELS) < np.where(action == suits, 0.5, 0.05)).astype(float)
    return x, suits, pd.DataFrame({"action": action, "reward": reward, "propensity": 0.5})


X_LABELS, BEST, Y_LABELS = uniform_log()
FORMS = {
    "int": lambda best: best,
    "bool": lambda best: best == 1,
    "list": lambda best: best.tolist(),
    "Series": pd.Series,
    "Int64": lambda best: pd.Series(best, dtype="Int64"),
    "categories": lambda best: pd.Series(pd.Categorical(best)),
    "objects": lambda best: pd.Series(best).astype(object),
    "polars": pl.Series,
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_the_chosen_arms(form):
    as_table = ips(np.c_[1 - BEST, BEST], None, Y_LABELS)
    assert ips(FORMS[form](BEST), None, Y_LABELS) == as_table
    # the truth is .5; 5 standard errors are exceeded with probability 6e-7
    assert abs(as_table.mean_reward - 0.5) < 5 * as_table.standard_error


def test_floats_are_probabilities_of_the_logged_actions():
    pi = 0.1 + 0.8 * BEST
    of_logged = np.where(Y_LABELS["action"] == 1, pi, 1 - pi)
    estimate = ips(np.c_[1 - pi, pi], None, Y_LABELS)
    for form in (np.asarray, pd.Series, list, lambda p: pd.Series(p).astype(object)):
        assert ips(form(of_logged), None, Y_LABELS).mean_reward == pytest.approx(
            estimate.mean_reward
        )


@pytest.mark.parametrize("values", ["labels", "probabilities"])
def test_floats_that_could_be_either(values):
    given = {
        "labels": BEST.astype(float),
        "probabilities": (BEST == Y_LABELS["action"]).astype(float),
    }
    beyond = Y_LABELS.assign(action=Y_LABELS["action"] + 1)
    refuses(r"1\.0, 2\.0 are both arms", ips, BEST + 1.0, None, beyond)
    with pytest.raises(ValueError, match=r"0\.0, 1\.0 are both arms .* Categorical; .* table with"):
        ips(given[values], None, Y_LABELS)


def test_a_named_column_must_hold_floats():
    block = Y_LABELS.assign(mine=BEST, sure=(BEST == Y_LABELS["action"]).astype(float))
    refuses(r"'mine' holds int64 values .* look like labels", off_policy_blocks, "mine", [block])
    found = off_policy_blocks("sure", [block])["ips"]  # said to be probabilities: not ambiguous
    assert found.mean_reward == pytest.approx(ips(BEST, None, Y_LABELS).mean_reward)


def test_tuples_that_are_arms_are_labels():
    arms, k = [(0, 1), (1, 0)], np.arange(200) % 2
    action = np.empty(200, dtype=object)
    action[:] = [arms[j] for j in k]
    log = pd.DataFrame({"action": action, "reward": (k == 1) * 1.0, "propensity": 0.5})
    assert off_policy_value([(0, 1)] * 200, None, log).mean_reward == 0
    assert off_policy_value([(1, 0)] * 200, None, log).mean_reward == 1


def test_booleans_are_no_labels_of_other_arms():
    log = pd.DataFrame({"action": np.arange(60) % 3, "reward": 1.0, "propensity": 1 / 3})
    with pytest.raises(ValueError, match="array of booleans, which are no arms of the log"):
        off_policy_value(log["action"] == 1, None, log)


def test_rewards_in_another_order_are_told():
    order, action = np.random.default_rng(0).permutation(N_LABELS), Y_LABELS["action"].to_numpy()
    best, given = (
        pd.Series(BEST).iloc[order],
        {"reward": Y_LABELS["reward"], "propensity": [0.5] * N_LABELS},
    )
    warns("same row labels in different orders", off_policy_value, best, None, action, **given)


# === One order of arms: a table without names is read as it was made, or refused ================

rng = np.random.default_rng(0)
ARM = np.r_[2, 1, 0, rng.integers(3, size=597)]
X_ORDER = rng.normal(size=(600, 2))
Y_ORDER = pd.DataFrame(
    {"action": ARM, "reward": (rng.random(600) < np.array([0.9, 0.2, 0.1])[ARM]).astype(float)}
)
OLD, NEW = slice(0, 300), slice(300, 600)
POLICIES = [
    GLMUCBPolicy(exploration="squarecb", random_state=0),
    GLMUCBPolicy(exploration="squarecb", arms=[2, 0, 1], random_state=0),
    SharedGLMPolicy(exploration="squarecb", covariance="diagonal", random_state=0),
    OraclePolicy(Ridge(), random_state=0),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_probabilities_have_the_value_of_their_policy(policy):
    policy = clone(policy).fit(X_ORDER[OLD], Y_ORDER[OLD])
    assert policy.arms_.tolist() == [0, 1, 2]
    table = policy.select_proba(X_ORDER[NEW])
    value = off_policy_value(policy, X_ORDER[NEW], Y_ORDER[NEW]).mean_reward
    assert off_policy_value(table, X_ORDER[NEW], Y_ORDER[NEW]).mean_reward == pytest.approx(value)
    assert value > 0.7


@pytest.mark.parametrize("policy", [POLICIES[0], *POLICIES[2:]], ids=lambda p: type(p).__name__)
def test_probabilities_of_arms_met_later_are_read_as_lists(policy):
    first = ARM[OLD] != 0
    policy = clone(policy).partial_fit(X_ORDER[OLD][first], Y_ORDER[OLD][first])
    policy.partial_fit(X_ORDER[OLD][~first], Y_ORDER[OLD][~first])
    assert policy.arms_.tolist() == [0, 1, 2]
    table = json.loads(json.dumps(policy.select_proba(X_ORDER[NEW]).tolist()))
    value = off_policy_value(policy, X_ORDER[NEW], Y_ORDER[NEW]).mean_reward
    assert off_policy_value(table, X_ORDER[NEW], Y_ORDER[NEW]).mean_reward == pytest.approx(value)


def test_arms_named_in_another_order_are_sorted_and_their_masks_refused():
    policy = GLMUCBPolicy(arms=["small", "medium", "large"], random_state=0)
    mask = np.array([[True, False, False]])
    with pytest.raises(ValueError, match="'small', 'medium', 'large', are not in the order"):
        policy.select([[0.0]], available=mask)
    assert policy.arms_.tolist() == ["large", "medium", "small"]
    named = pd.DataFrame(mask, columns=["small", "medium", "large"])
    assert policy.select([[0.0]], available=named).tolist() == ["small"]
    shared = SharedGLMPolicy(pd.DataFrame({"z": [1.0, 2.0]}, index=["b", "a"]), random_state=0)
    refuses("two ways", shared.select, [[0.0]], available=mask[:, :2])
    assert shared.arm_features_["z"].tolist() == [2.0, 1.0]


def test_the_first_arms_are_sorted_in_every_way_to_begin():
    log = pd.DataFrame({"action": ["c", "a", "b", "a"], "reward": [1.0, 0, 1, 0]})
    for begin in ("fit", "partial_fit"):
        policy = getattr(GLMUCBPolicy(random_state=0), begin)(np.ones((4, 1)), log)
        assert policy.arms_.tolist() == ["a", "b", "c"]
    policy.partial_fit([[1.0]] * 2, ["e", "d"], reward=[1, 0])
    assert policy.arms_.tolist() == ["a", "b", "c", "d", "e"]
    unsortable = GLMUCBPolicy().fit(np.ones((2, 1)), ["b", 1], reward=[1, 0])
    assert unsortable.arms_.tolist() == ["b", 1]


@pytest.mark.parametrize(("method", "wild"), [("dr", 1e6), ("dr", -1e5), ("switch_dr", 1e6)])
def test_one_wild_context_does_not_decide(method, wild):
    """Rewards are 0 or 1, and .3 of the arm; unclipped, 1e6 made .21, and 1e12 -85,462."""
    rng = np.random.default_rng(6)
    X, a = rng.normal(size=(8000, 2)), rng.choice(list("abc"), 8000, p=[0.1, 0.1, 0.8])
    reward = (rng.random(8000) < np.where(a == "c", 0.3, 0.1)) * 1.0
    log = pd.DataFrame({"action": a, "reward": reward, "propensity": np.where(a == "c", 0.8, 0.1)})
    options = {"method": method, "random_state": 0}
    usual = off_policy_value(["c"] * 8000, X, log, **options)
    X[777, 0] = wild
    with pytest.warns(
        UserWarning, match="row 777: a model predicts .* from 0 to 1, and is clipped"
    ):
        estimate = off_policy_value(["c"] * 8000, X, log, **options)
    assert estimate.mean_reward == pytest.approx(usual.mean_reward, abs=0.002)
    assert estimate.standard_error == pytest.approx(usual.standard_error, abs=0.001)


def test_estimates_outside_of_the_range_of_rewards_are_told():
    """In blocks that are too small to show it; predictions of others are clipped to it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=500)})
    y = pd.DataFrame({"action": rng.choice(["a", "b"], 500), "propensity": 0.5})
    y["reward"] = (rng.random(500) < 0.3) * 1.0
    model = Ridge().fit(X, y["reward"] + 0.1 * X["x"])
    X.iloc[3] = 1e9
    policy = GLMUCBPolicy(random_state=0).fit(X[4:], y[4:])
    message = "off_policy_blocks: 'dr' estimates .* where rewards are from 0 to 1"
    models = {"arms": ["a", "b"], "reward_model": {"a": model, "b": model}, "rule": "predict"}
    small = [(X[k : k + 50], y[k : k + 50]) for k in range(0, 500, 50)]
    warns(message, off_policy_blocks, policy, small, warning=ReplayCoverageWarning, **models)
    warns("row 3: .* is clipped", off_policy_blocks, policy, [(X, y)], **models)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_equal_propensities_of_an_uneven_log_are_told():
    y = pd.DataFrame({"action": ["a"] * 300 + ["b"] * 100, "reward": 1.0, "propensity": 0.5})
    with pytest.warns(UserWarning, match="of arm 'a' have the mean 1.5 over 400 rows"):
        off_policy_value(["a"] * 200 + ["b"] * 200, None, y)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_probabilities_rounded_to_four_digits_are_scaled():
    y = pd.DataFrame({"action": ["a", "b", "c"] * 2, "reward": [1.0, 2, 3] * 2})
    thirds = np.full((6, 3), 0.3333)
    assert ips(thirds, None, y).mean_reward == pytest.approx(2.0)
    with pytest.raises(ValueError, match="row 0 sums to 0"):
        ips(thirds - 0.003, None, y)


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_an_unfitted_policy_is_told():
    X, y = np.zeros((4, 1)), pd.DataFrame({"action": ["a", "b"] * 2, "reward": 1.0})
    with pytest.warns(UserWarning, match="GLMUCBPolicy is not fitted: the value is that of"):
        off_policy_value(GLMUCBPolicy(arms=["a", "b"]), X, y)
