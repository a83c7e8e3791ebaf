"""Metamorphic relations over random tables: form, order and names do not change results."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reliability import public_calls, wider_calls
from tests.reliability.forms import COLUMNS, SPARSE, TABLES
from tests.reliability.public_calls import LABEL, OWN_X
from tests.tiers import examples, first
from tests.worlds import refuses

# Of models asked with an array that were fitted with names, and of estimates from few events.
pytestmark = pytest.mark.filterwarnings("ignore")

CALLS = {call.name: call for call in public_calls.CALLS + wider_calls.CALLS}
# Whose tables are read as those of another call.
READ_ALIKE = {
    "ramp_predicts", "path", "path_measured", "report_of_classifier", "policy_continues",
    "policy_selects", "replay_score", "shares_of_replay", "curves_of_replay", "selector_predicts",
}  # fmt: skip
OF_X = [name for name, call in CALLS.items() if "X" in call.inputs and name not in READ_ALIKE]
OF_WEIGHTS = [
    name
    for name, call in CALLS.items()
    if "sample_weight" in call.inputs and name not in READ_ALIKE
]
LABELED = ["ramp", "threshold", "rate_scorer"]
TAKES_SPARSE = ["ramp", "threshold", "regression", "set_select", "popularity"]
random_seeds = st.integers(0, 2**32 - 1)


def quick_first(names):
    """Move the calls that take no time to the front: the default tier tries the first."""
    return sorted(names, key=lambda name: name not in ("popularity", "rate_scorer", "ips_of_table"))


def table(seed):
    """The first column tells the labels, as always: where nothing does, training ends anywhere."""
    X = pd.DataFrame(np.random.default_rng(seed).integers(-4, 5, (60, 3)), columns=list("abc"))
    return X.assign(a=OWN_X["a"].astype(int))


def assert_same(one, other, form, exact=1e-6):
    """To rounding: single precision is as good as the numbers in it."""
    if one.dtype.kind == "f":
        rough = 1e-2 if form in ("float16", "float32", "each column its own") else exact
        np.testing.assert_allclose(one, other, rtol=rough, atol=rough)
    else:
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("name", first(1, quick_first(OF_X)))
@examples(8)
@given(seed=random_seeds, form=st.sampled_from(list(TABLES)))
def test_tables_of_any_form(name, seed, form):
    X, call = table(seed), CALLS[name]
    if name == "threshold":  # its LogisticRegression, of scikit-learn 1.6, fails on them
        assume(form != "categories")
    assert_same(call(X=TABLES[form](X)), call(X=X.astype(float)), form)


@pytest.mark.parametrize("name", first(1, quick_first(TAKES_SPARSE)))
@examples(6)
@given(seed=random_seeds, form=st.sampled_from(list(SPARSE)))
def test_sparse_tables(name, seed, form):
    X = table(seed).to_numpy(dtype=float, copy=True)
    X[np.random.default_rng(seed).random(X.shape) < 0.5] = 0.0
    # Sums over sparse rows round otherwise, and training stops within its tolerance of an optimum.
    exact = 1e-2 if name == "ramp" else 1e-6
    assert_same(CALLS[name](X=SPARSE[form](X)), CALLS[name](X=X), form, exact)


@pytest.mark.parametrize("name", first(1, quick_first(LABELED)))
@examples(10)
@given(seed=random_seeds, form=st.sampled_from(list(COLUMNS)))
def test_labels_of_any_form(name, seed, form):
    y = np.where(np.random.default_rng(seed).random(60) < 0.1, 1 - LABEL, LABEL)
    if form == "objects" and name in ("ramp", "threshold"):  # as scikit-learn's classifiers
        refuses("Unknown label type", CALLS[name], y=COLUMNS[form](y))
        return
    assert_same(CALLS[name](y=COLUMNS[form](y)), CALLS[name](y=y), form)


@pytest.mark.parametrize("name", first(1, quick_first(OF_WEIGHTS)))
@pytest.mark.parametrize("form", COLUMNS)
def test_weights_of_any_form(name, form):
    call = CALLS[name]
    weight = call.inputs["sample_weight"].astype(int)
    assert_same(call(sample_weight=COLUMNS[form](weight)), call(sample_weight=weight), form)


LOG_FORMS = {
    "structured": lambda log: log.to_records(index=False),
    "nullable": lambda log: log.convert_dtypes(),
    "shuffled columns": lambda log: log[log.columns[::-1]],
    "other index": lambda log: log.set_axis(range(len(log), 0, -1)),
    "categories": lambda log: log.astype({"action": "category"}),
    "float32": lambda log: log.astype({"reward": np.float32}),
    "booleans": lambda log: log.astype({"reward": bool}),
    "another column": lambda log: log.assign(page="front"),
    "polars": lambda log: TABLES["polars"](log),
}
OF_LOG = [name for name, call in CALLS.items() if call.inputs.get("y") is public_calls.LOG]


@pytest.mark.parametrize("name", first(1, quick_first(OF_LOG)))
@pytest.mark.parametrize("form", LOG_FORMS)
def test_logs_of_any_form(name, form):
    call = CALLS[name]
    assert_same(call(y=LOG_FORMS[form](call.inputs["y"])), call(), form)
