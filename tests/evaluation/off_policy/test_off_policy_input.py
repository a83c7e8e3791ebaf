"""Off-policy estimates: what the log cannot tell, what is refused, and real data."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, StratifiedKFold

from skbandit.datasets import load_open_bandit
from skbandit.evaluation import off_policy_value
from skbandit.exceptions import ReplayCoverageWarning
from tests.evaluation.logs import Greedy, Softmax, logged

doubly_robust = partial(off_policy_value, method="dr")
ips = partial(off_policy_value, method="ips")
snips = partial(off_policy_value, method="snips")

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
    with pytest.warns(ReplayCoverageWarning, match=r"count as \d\.\d only"):
        estimator(probability, X, y)


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
    with pytest.raises(ValueError, match=message):
        snips(given, X, Y)


def test_choices_that_were_not_there():
    X, y = logged()
    y["available"] = [("a", "b", "c")] * 399 + [(y["action"].iloc[-1],)]
    one = np.full((400, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"row 399: arm '\w' is chosen with probability 0\.333"):
        ips(one, X, y)
    away = "b" if y["action"].iloc[-1] == "a" else "a"
    greedy = Greedy([away])
    with pytest.raises(ValueError, match=r"row 399: arm .* probability 1, but was not"):
        ips(greedy, X, y)


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
    with pytest.raises(error, match=message):
        call(*logged())


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
    with pytest.raises(ValueError, match=r"row 3 has the weight .* correct the propensity"):
        estimator(given, X, y)


def test_a_reward_so_large_that_squares_overflow():
    X, y = logged()
    y["reward"] = y["reward"].astype(float)
    y.loc[3, ["reward", "propensity"]] = [1e150, 1e-9]
    with pytest.raises(ValueError, match=r"weighted reward of row 3, .* rescale the rewards"):
        ips(np.full(400, 0.5), X, y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (GroupKFold(3), r"GroupKFold needs .*cv=list\(GroupKFold\(\.\.\.\)\.split\(X, groups="),
        (StratifiedKFold(3), r"StratifiedKFold needs .* the labels to stratify by"),
    ],
)
def test_folds_that_need_more_than_contexts(cv, message):
    with pytest.raises(ValueError, match=message):
        doubly_robust(Softmax(["c", "a", "b"]), X, Y, cv=cv)
    given = {"groups": np.arange(400) % 7} if isinstance(cv, GroupKFold) else {"y": Y["action"]}
    doubly_robust(Softmax(["c", "a", "b"]), X, Y, cv=list(cv.split(X, **given)))
