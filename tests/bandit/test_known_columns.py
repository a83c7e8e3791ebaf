"""Rows of known columns skip scikit-learn's validation, and only these do."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.bandit import _sequential

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.normal(size=60), "visits": RNG.integers(9, size=60), "new": RNG.random(60) < 0.5}
)
Y = pd.DataFrame({"action": RNG.integers(3, size=60), "reward": RNG.random(60) < 0.3})


def refuse(*args, **kwargs):
    raise AssertionError("validated in full")


@pytest.mark.parametrize(
    "rows",
    [
        FRAME[:1], FRAME[5:9], FRAME[["age", "visits", "new"]], FRAME.astype(float)[:2],
        FRAME.astype("float32")[:2], pd.DataFrame(FRAME[:2].to_dict("records")),
    ],
)  # fmt: skip
def test_known_columns(rows, monkeypatch):
    policy = GLMUCBPolicy(random_state=0).fit(FRAME, Y)
    expected = policy.decision_function(rows.astype(object))
    monkeypatch.setattr(_sequential, "validate_data", refuse)
    np.testing.assert_array_equal(policy.decision_function(rows), expected)
    with pytest.raises(AssertionError, match="in full"):
        policy.select(rows.rename(columns={"age": "Age"}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (FRAME[["visits", "age", "new"]], "same order"),
        (FRAME.rename(columns={"age": "Age"}), "Feature names unseen"),
        (FRAME[["age", "visits"]], "missing|features"),
        (FRAME.assign(age=np.nan), "NaN"),
        (FRAME.assign(age=np.inf), "infinity"),
        (FRAME.assign(age="old"), "strings in the column 'age', such as 'old'"),
        (FRAME[:0], "0 sample"),
    ],
)
def test_others_are_errors_as_before(rows, message):
    policy = GLMUCBPolicy(random_state=0).fit(FRAME, Y)
    for method in ("select", "predict", "select_proba"):
        with pytest.raises(ValueError, match=message), warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(policy, method)(rows)
    with pytest.raises(ValueError, match=message), warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.partial_fit(rows, Y[: len(rows)])


def test_names_are_still_compared_with_arrays():
    named = GLMUCBPolicy(random_state=0).fit(FRAME, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(FRAME.to_numpy(dtype=float))
    unnamed = GLMUCBPolicy(random_state=0).fit(FRAME.to_numpy(dtype=float), Y)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        unnamed.predict(FRAME)


def test_any_order_of_memory(monkeypatch):
    x = np.asfortranarray(RNG.normal(size=(60, 3)))
    policy = GLMUCBPolicy(random_state=0).fit(x, Y)
    expected = policy.decision_function(np.ascontiguousarray(x))
    monkeypatch.setattr(_sequential, "validate_data", refuse)
    np.testing.assert_array_equal(policy.decision_function(x[:, ::-1][:, ::-1]), expected)
    one = policy.decision_function(x[3:4])
    np.testing.assert_array_equal(one, expected[3:4])
    policy.predict(np.ones((2, 3), dtype=bool))
