"""The lines of the upgrade notes give what the development version gave."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import scale

import skbandit
from skbandit import (
    ConstrainedRampClassifier,
    GLMUCBPolicy,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.bandit import OraclePolicy
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import (
    make_bandit_log,
    make_set_selection,
    read_parquet_log,
    read_yahoo_r6,
)
from skbandit.evaluation import OffPolicyEstimate, ReplayResult
from skbandit.rates import false_positive_rate, recall
from skbandit.selection import logged_costs

NOTES = (Path(__file__).parents[1] / "docs" / "upgrading.md").read_text(encoding="utf-8")
NAMES = {
    one.__name__: one
    for one in (
        ConstrainedRampClassifier,
        GLMUCBPolicy,
        LogisticRegression,
        OraclePolicy,
        RegressionSetSelector,
        Ridge,
        SetSelectClassifier,
    )
}
DEFAULTS = NOTES.partition("### Defaults")[2].partition("###")[0]
LINES = re.findall(r"^```python\n([A-Z].*)\n```$", DEFAULTS, flags=re.M)


def old(kind, nth=0):
    """The nth estimator of this class among the lines below the defaults."""
    return eval([line for line in LINES if line.startswith(f"{kind.__name__}(")][nth], NAMES)


def test_each_default_has_its_line_back():
    assert len(LINES) == DEFAULTS.count("```python") - 1 == 7  # and a display's
    for line in LINES:
        estimator = eval(line, NAMES)
        assert repr(estimator).replace(" ", "").replace("\n", "")
        given = set(re.findall(r"(\w+)=", line)) & set(estimator.get_params())
        new = type(estimator)(
            *([LogisticRegression()] if isinstance(estimator, OraclePolicy) else [])
        ).get_params()
        changed = {name for name in given if new[name] != estimator.get_params()[name]}
        assert changed == given  # no word that says what is the default anyway


def test_the_ramp_classifier_of_before():
    """Figures of the last development version with the old defaults."""
    X, y = load_breast_cancer(return_X_y=True)
    model = old(ConstrainedRampClassifier).set_params(
        objective=false_positive_rate(), constraints=recall() >= 0.98, pos_label=0
    )
    model.fit(scale(X), y)
    np.testing.assert_allclose(model.objective_path_[-1], 0.0077088, atol=2e-4)
    before = [-0.20024082, 0.24135114, -0.10793132, -0.1470523]
    np.testing.assert_allclose(model.coef_[0, :4], before, atol=2e-2)


def test_the_policy_of_before():
    log = make_bandit_log(2000, n_arms=4, random_state=0)
    policy = old(GLMUCBPolicy).set_params(random_state=0).fit(log.X, log.y)
    assert policy.select(log.X[:12]).tolist() == [0, 0, 3, 3, 0, 3, 3, 0, 3, 0, 0, 0]
    before = [0.05422909, 0.31090647, 0.01870294, 0.04585589]
    np.testing.assert_allclose(policy.predict_reward(log.X[:2]).ravel()[:4], before, rtol=1e-5)
    policy = old(GLMUCBPolicy).set_params(random_state=0, exploration="thompson")
    policy.fit(log.X, log.y)
    assert policy.select(log.X[:12]).tolist() == [0, 0, 3, 2, 3, 3, 3, 0, 3, 0, 0, 0]


def test_the_alpha_of_squarecb_is_squared():
    """√(K n)/α²: the square root of an old alpha leaves γ as it was."""
    assert old(OraclePolicy).alpha ** 2 == pytest.approx(0.1)
    log = make_bandit_log(2000, n_arms=4, random_state=0)
    plain = old(GLMUCBPolicy).set_params(exploration="squarecb", random_state=0, alpha=0.25**0.5)
    plain.fit(log.X, log.y)
    rewards = plain.predict_reward(log.X[:5])
    gamma = np.sqrt(4 * 2000) / 0.25
    gaps = rewards.max(axis=1, keepdims=True) - rewards
    expected = 1 / (4 + gamma * gaps)
    best = rewards.argmax(axis=1)
    expected[np.arange(5), best] += 1 - expected.sum(axis=1)
    np.testing.assert_allclose(plain.select_proba(log.X[:5]), expected, rtol=1e-9)


def test_the_ridge_of_before():
    X, costs, _ = make_set_selection(500, n_ads=6, random_state=0)
    selector = old(RegressionSetSelector).set_params(n_select=2).fit(X[:300], costs[:300])
    assert selector.predict(X[300:304]).tolist() == [[5, 1], [4, 1], [3, 4], [1, 5]]


def test_old_names_are_errors():
    X, y = load_breast_cancer(return_X_y=True)
    gone = {
        "margin": (ConstrainedRampClassifier, ConstrainedThreshold),
        "model": (logged_costs,),
        "level": (ReplayResult.interval, OffPolicyEstimate.interval),
        "chunk_size": (read_parquet_log, read_yahoo_r6),
    }
    for name, places in gone.items():
        assert f"`{name}=`" in NOTES
        for place in places:
            parameters = inspect.signature(place).parameters
            assert name not in parameters
            assert inspect.Parameter.VAR_KEYWORD not in {p.kind for p in parameters.values()}
    with pytest.raises(ValueError, match="threshold='train'"):
        ConstrainedRampClassifier(threshold="shift").fit(X, y)
    with pytest.raises(ValueError, match="published"):
        SetSelectClassifier(method="post").fit(X, -X[:, :3])
    assert not hasattr(skbandit.evaluation, "select")
    assert not hasattr(skbandit.rates, "flatten_constraints")
    assert not hasattr(skbandit.rates, "AbsoluteRate")
    assert not hasattr(ReplayResult, "walks") and not hasattr(ReplayResult, "terms")


def test_new_names_are_there():
    """What the right column names: parameters of what the left one names, or public names."""
    table = NOTES.partition("### Names")[2].partition("###")[0]
    pairs = re.findall(r"^\| `\w+=?\S*` of (.+?) \| `(\w+)=", table, flags=re.M)
    assert len(pairs) == 6
    places = {
        place.__qualname__: place
        for place in (
            ConstrainedRampClassifier,
            ConstrainedThreshold,
            SetSelectClassifier,
            logged_costs,
            OffPolicyEstimate.interval,
            ReplayResult.interval,
            read_parquet_log,
            read_yahoo_r6,
        )
    }
    for owners, new in pairs:
        for owner in re.findall(r"`([\w.]+)`", owners):
            assert new in inspect.signature(places[owner]).parameters, (owner, new)
    assert callable(skbandit.bandit.select)
