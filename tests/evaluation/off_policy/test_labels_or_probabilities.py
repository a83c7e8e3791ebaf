"""One value per event: labels of the chosen arms are never read as probabilities."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skbandit.evaluation import off_policy_blocks, off_policy_value

doubly_robust = partial(off_policy_value, method="dr")
ips = partial(off_policy_value, method="ips")
snips = partial(off_policy_value, method="snips")

pl = pytest.importorskip("polars", reason="polars is not installed")

N = 20_000


def uniform_log():
    """Two arms at random; the reward is 1 with probability .5 if the arm suits x, else .05."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 1))
    suits = (x[:, 0] > 0).astype(int)
    action = rng.integers(2, size=N)
    reward = (rng.random(N) < np.where(action == suits, 0.5, 0.05)).astype(float)
    return x, suits, pd.DataFrame({"action": action, "reward": reward, "propensity": 0.5})


X, BEST, Y = uniform_log()
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
    as_table = ips(np.c_[1 - BEST, BEST], None, Y)
    assert ips(FORMS[form](BEST), None, Y) == as_table
    # the truth is .5; 5 standard errors are exceeded with probability 6e-7
    assert abs(as_table.mean_reward - 0.5) < 5 * as_table.standard_error


def test_labels_are_a_policy_for_every_estimator():
    table = np.c_[1 - BEST, BEST]
    assert snips(BEST, None, Y) == snips(table, None, Y)
    options = {"random_state": 0}
    assert doubly_robust(BEST, X, Y, **options) == doubly_robust(table, X, Y, **options)


def test_labels_that_are_strings():
    named = Y.assign(action=np.array(["no", "yes"])[Y["action"]])
    for labels in (np.array(["no", "yes"])[BEST], np.array(["no", "yes"])[BEST].tolist()):
        assert ips(labels, None, named) == ips(BEST, None, Y)


def test_floats_are_probabilities_of_the_logged_actions():
    pi = 0.1 + 0.8 * BEST
    of_logged = np.where(Y["action"] == 1, pi, 1 - pi)
    estimate = ips(np.c_[1 - pi, pi], None, Y)
    for form in (np.asarray, pd.Series, list, lambda p: pd.Series(p).astype(object)):
        assert ips(form(of_logged), None, Y).mean_reward == pytest.approx(estimate.mean_reward)


@pytest.mark.parametrize("values", ["labels", "probabilities"])
def test_floats_that_could_be_either(values):
    given = {"labels": BEST.astype(float), "probabilities": (BEST == Y["action"]).astype(float)}
    beyond = Y.assign(action=Y["action"] + 1)
    with pytest.raises(ValueError, match=r"1\.0, 2\.0 are both arms"):
        ips(BEST + 1.0, None, beyond)
    with pytest.raises(ValueError, match=r"0\.0, 1\.0 are both arms .* Categorical; .* table with"):
        ips(given[values], None, Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda best: np.array(["0", "1"])[BEST], "none of the chosen labels, '1', '0', is an arm"),
        (lambda best: BEST[:7], "7 labels of chosen arms for 20000 events"),
        (lambda best: [None, *BEST[1:]], "label of the chosen arm is missing on row 0"),
    ],
)
def test_labels_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        ips(labels(BEST), None, Y)


def test_a_named_column_must_hold_floats():
    block = Y.assign(mine=BEST, sure=(BEST == Y["action"]).astype(float))
    with pytest.raises(ValueError, match=r"'mine' holds int64 values .* look like labels"):
        off_policy_blocks("mine", [block])
    found = off_policy_blocks("sure", [block])["ips"]  # said to be probabilities: not ambiguous
    assert found.mean_reward == pytest.approx(ips(BEST, None, Y).mean_reward)


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
    order, action = np.random.default_rng(0).permutation(N), Y["action"].to_numpy()
    best, given = pd.Series(BEST).iloc[order], {"reward": Y["reward"], "propensity": [0.5] * N}
    with pytest.warns(UserWarning, match="same row labels in different orders"):
        off_policy_value(best, None, action, **given)
