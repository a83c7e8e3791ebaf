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
    _, best, y = uniform_log()
    as_table = ips(np.c_[1 - best, best], None, y)
    assert ips(FORMS[form](best), None, y) == as_table
    # the truth is .5; 5 standard errors are exceeded with probability 6e-7
    assert abs(as_table.mean_reward - 0.5) < 5 * as_table.standard_error


def test_labels_are_a_policy_for_every_estimator():
    x, best, y = uniform_log()
    table = np.c_[1 - best, best]
    assert snips(best, None, y) == snips(table, None, y)
    options = {"random_state": 0}
    assert doubly_robust(best, x, y, **options) == doubly_robust(table, x, y, **options)


def test_labels_that_are_strings():
    _, best, y = uniform_log()
    named = y.assign(action=np.array(["no", "yes"])[y["action"]])
    for labels in (np.array(["no", "yes"])[best], np.array(["no", "yes"])[best].tolist()):
        assert ips(labels, None, named) == ips(best, None, y)


def test_floats_are_probabilities_of_the_logged_actions():
    _, best, y = uniform_log()
    pi = 0.1 + 0.8 * best
    of_logged = np.where(y["action"] == 1, pi, 1 - pi)
    estimate = ips(np.c_[1 - pi, pi], None, y)
    for form in (np.asarray, pd.Series, list, lambda p: pd.Series(p).astype(object)):
        assert ips(form(of_logged), None, y).mean_reward == pytest.approx(estimate.mean_reward)


@pytest.mark.parametrize("values", ["labels", "probabilities"])
def test_floats_that_could_be_either(values):
    _, best, y = uniform_log()
    given = {"labels": best.astype(float), "probabilities": (best == y["action"]).astype(float)}
    beyond = y.assign(action=y["action"] + 1)
    with pytest.raises(ValueError, match=r"1\.0, 2\.0 are both arms"):
        ips(best + 1.0, None, beyond)
    with pytest.raises(ValueError, match=r"0\.0, 1\.0 are both arms .* Categorical; .* table with"):
        ips(given[values], None, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda best: np.array(["0", "1"])[best], "none of the chosen labels, '1', '0', is an arm"),
        (lambda best: best[:7], "7 labels of chosen arms for 20000 events"),
        (lambda best: [None, *best[1:]], "label of the chosen arm is missing on row 0"),
    ],
)
def test_labels_refused(labels, message):
    _, best, y = uniform_log()
    with pytest.raises(ValueError, match=message):
        ips(labels(best), None, y)


def test_a_named_column_must_hold_floats():
    _, best, y = uniform_log()
    block = y.assign(mine=best, sure=(best == y["action"]).astype(float))
    with pytest.raises(ValueError, match=r"'mine' holds int64 values .* look like labels"):
        off_policy_blocks("mine", [block])
    found = off_policy_blocks("sure", [block])["ips"]  # said to be probabilities: not ambiguous
    assert found.mean_reward == pytest.approx(ips(best, None, y).mean_reward)
