"""Availability: one meaning, whichever way it is passed."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, RegressionSetSelector, SetSelectClassifier
from skbandit.bandit import (
    OffPolicyClassifier,
    OraclePolicy,
    SharedGLMPolicy,
    SlatePolicy,
    make_policy_pipeline,
    select,
)
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplayScorer, off_policy_value, replay, slate_ips
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import align_rows, label_array, read_log, read_mask, read_pools, read_slates
from skbandit.selection import PopularitySetSelector, assign, logged_costs
from tests.worlds import refuses

Y = pd.DataFrame({"action": ["a", "b", "a", "c"], "reward": [1.0, 0.0, 0.0, 1.0]})
SETS = [("a", "b"), ("b", "c"), ("a", "b"), ("a", "b", "c")]
TABLE = pd.DataFrame({arm: [arm in pool for pool in SETS] for arm in "abc"})


def test_arms_beyond_the_log_are_not_available():
    assert read_log(Y).available_mask(5).tolist() == [[True] * 3 + [False] * 2] * 4
    masked = read_log(Y, available=SETS, arms="abc").available_mask(4)
    assert not masked[:, 3].any()


# --- rows are matched with those of X -------------------------------------------------------

ROWS = pd.DataFrame({"x": np.arange(4.0)}, index=list("pqrs"))
NAMED_TABLE = TABLE.set_index(ROWS.index)


@pytest.mark.parametrize(
    ("available", "X"),
    [
        (NAMED_TABLE, ROWS),
        (NAMED_TABLE.iloc[[3, 1, 0, 2]], ROWS),
        (pd.Series(SETS, ROWS.index).iloc[[3, 1, 0, 2]], ROWS),
        (pd.concat([NAMED_TABLE.set_axis(list("tuvw")), NAMED_TABLE]), ROWS),
        (TABLE.to_numpy(), ROWS),
        (NAMED_TABLE, ROWS.to_numpy()),
        (TABLE.set_axis([5, 5, 6, 6]), ROWS.set_axis([5, 5, 6, 6])),
    ],
    ids=["same", "reordered", "Series", "more", "array", "array X", "repeated labels"],
)
def test_rows_are_those_of_X(available, X):
    np.testing.assert_array_equal(mask_of(align_rows(available, X), "abc"), TABLE.to_numpy())


@pytest.mark.parametrize(
    ("available", "X"),
    [
        (TABLE, ROWS),
        (NAMED_TABLE, ROWS.set_axis(range(4))),
        (NAMED_TABLE, ROWS.set_axis(list("ppqr"))),
        (NAMED_TABLE.set_axis(list("pqqs")), ROWS),
    ],
)
def test_rows_of_other_labels_are_matched_by_position_with_a_warning(available, X):
    with pytest.warns(UserWarning, match=r"different row labels .*available\.set_axis\(X\.index"):
        assert align_rows(available, X) is available


def test_numbers_of_rows_are_no_labels_of_a_longer_table():
    """Otherwise X_test.reset_index() would take the first rows of all."""
    assert align_rows(TABLE, ROWS.set_axis(range(4))[:2]) is TABLE
    labels_for_all_rows = pd.Series(["a", "b"])
    assert align_rows(labels_for_all_rows, ROWS) is labels_for_all_rows


LOG = make_bandit_log(40, n_arms=3, random_state=0)
CONTEXTS = LOG.X.set_axis([f"u{k}" for k in range(40)])
_rng = np.random.default_rng(0)
_played = LOG.y["action"].to_numpy()[:, None] == np.arange(3)
ALLOWED = pd.DataFrame(_played | (_rng.random((40, 3)) < 0.3), CONTEXTS.index)
COSTS = pd.DataFrame(_rng.normal(size=(40, 3)), CONTEXTS.index)
EVENTS = LOG.y[["action", "reward", "propensity"]].set_axis(CONTEXTS.index)


def policies():
    trained = [
        GLMUCBPolicy(random_state=0),
        SharedGLMPolicy(random_state=0),
        OraclePolicy(Ridge(), random_state=0),
        OffPolicyClassifier(random_state=0),
        make_policy_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)),
        make_policy_pipeline(StandardScaler(), OffPolicyClassifier(random_state=0)),
    ]
    methods = ["predict", "select", "select_proba", "predict_proba"]
    return [(model, EVENTS, methods) for model in trained]


SELECTORS = [
    (model, COSTS, ["predict", "predict_indicator"])
    for model in (
        RegressionSetSelector(),
        PopularitySetSelector(),
        SetSelectClassifier(random_state=0),
        SetSelectClassifier(reduction="filter_tree", random_state=0),
    )
]


@pytest.mark.parametrize(
    ("model", "y", "methods"),
    [*policies(), *SELECTORS],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_every_door_matches_rows_by_label(model, y, methods):
    """In another order, a table of the same labels means the same."""
    other = ALLOWED.iloc[_rng.permutation(40)]
    methods = [name for name in methods if hasattr(model, name)]
    if isinstance(model, Pipeline):  # its predict_proba is scikit-learn's, behind transformers
        methods = methods[:3] if "select_proba" in methods else methods[:2]
    results = []
    for available in (ALLOWED, other):
        model = clone(model).fit(CONTEXTS, y, available=available)
        found = [getattr(model, name)(CONTEXTS, available=available) for name in methods]
        if hasattr(model, "score") and y is COSTS:
            found.append(model.score(CONTEXTS, y, available=available))
        results.append(found)
    for one, another in zip(*results, strict=True):
        np.testing.assert_array_equal(one, another)
    chosen = np.ravel(getattr(model, methods[0])(CONTEXTS, available=other))
    assert ALLOWED.to_numpy()[np.arange(40), chosen.astype(int)].all()


def test_functions_match_rows_by_label():
    order = _rng.permutation(40)
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)).fit(CONTEXTS, EVENTS)
    other = make_pipeline(StandardScaler(), GLMUCBPolicy(random_state=0)).fit(-CONTEXTS, EVENTS)
    slates = SlatePolicy(n_select=1, random_state=0).fit(CONTEXTS, SLATES)
    policy = GLMUCBPolicy(arms=[0, 1, 2], random_state=0)
    calls = [
        lambda available: select(copy.deepcopy(pipeline), CONTEXTS, available=available),
        lambda available: assign(COSTS, {0: 20}, available=available),
        lambda available: logged_costs(
            EVENTS["action"], -EVENTS["reward"], EVENTS["propensity"] ** 0, available=available
        ),
        lambda available: (
            SlatePolicy(n_select=1, random_state=0)
            .fit(CONTEXTS, SLATES, available=available)
            .select(CONTEXTS, available=available)
        ),
        lambda available: replay(policy, CONTEXTS, EVENTS, available=available).mean_reward,
        lambda available: ReplayScorer(random_state=0, min_accepted=1)(
            policy, CONTEXTS, EVENTS, available=available
        ),
        lambda available: (
            off_policy_value(other, CONTEXTS, EVENTS, method="ips", available=available).mean_reward
        ),
        lambda available: (
            slate_ips(
                slates, CONTEXTS, SLATES, propensity=np.full((40, 1), 0.4), available=available
            ).mean_reward
        ),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the weights 1/propensity")
            warnings.simplefilter("ignore", ReplayCoverageWarning)
            np.testing.assert_array_equal(call(ALLOWED.iloc[order]), call(ALLOWED))


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist], ids=["array", "lists"])
def test_columns_without_names_are_arms_in_the_order_of_their_labels(make):
    """Whichever arm the log shows first; refused if arms known before are in another order."""
    flags = make(TABLE.to_numpy())
    for first in (0, 1, 3):
        rows = [first, *(k for k in range(4) if k != first)]
        shown = Y.iloc[rows].reset_index(drop=True)
        log = read_log(shown, available=[flags[k] for k in rows])
        sets, numbers = log.available_sets()
        assert [set(sets[k]) for k in numbers] == [set(SETS[k]) for k in rows]
        assert log.arms[log.action].tolist() == shown["action"].tolist()
        assert log.arms.tolist() == ["a", "b", "c"]
    assert read_log(Y, available=flags, arms="a").arms.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="could be read in two ways: pass a DataFrame"):
        read_log(Y, available=TABLE[["c", "a", "b"]].to_numpy(), arms="c")
    slates = pd.DataFrame({"action": [["c"], ["a"]], "reward": [[1.0], [0.0]]})
    slate_log = read_slates(slates, available=make(np.array([[False, True], [True, False]])))
    assert slate_log.available_labels() == [("c",), ("a",)]
    policy = GLMUCBPolicy(random_state=0)
    backwards = Y.iloc[::-1].reset_index(drop=True)
    policy.fit(np.ones((4, 1)), backwards, available=flags[::-1])
    assert policy.arms_.tolist() == ["a", "b", "c"], "as select reads such a table"
    policy.fit(np.ones((4, 1)), backwards, available=SETS[::-1])
    assert policy.arms_.tolist() == ["a", "b", "c"]


SLATES = pd.DataFrame(
    {"action": [[arm] for arm in EVENTS["action"]], "reward": [[r] for r in EVENTS["reward"]]},
    CONTEXTS.index,
)


# --- one reader for policies and selectors ------------------------------------------------


def as_rows(mask, labels):
    return [[label for label, flag in zip(labels, row, strict=True) if flag] for row in mask]


def pools_of(available, labels, n_rows=4):
    codes = {label: k for k, label in enumerate(labels)}
    pools = read_pools(available, n_rows, codes)
    assert list(codes) == list(labels)
    return pools.mask(len(labels))


def mask_of(available, labels, n_rows=4):
    read = read_mask(available, label_array(labels), n_rows)
    return read.toarray() if sp.issparse(read) else read


READERS = pytest.mark.parametrize("reader", [pools_of, mask_of], ids=["policy", "selector"])


@READERS
@pytest.mark.parametrize("labels", [list("abc"), [0, 1, 2], [7, "x", ("t", 1)]], ids=repr)
@pytest.mark.parametrize(
    "form",
    [
        lambda mask, labels: as_rows(mask, labels),
        lambda mask, labels: [tuple(row) for row in as_rows(mask, labels)],
        lambda mask, labels: tuple(set(row) for row in as_rows(mask, labels)),
        lambda mask, labels: (row for row in as_rows(mask, labels)),
        lambda mask, labels: pd.Series(
            [tuple(row) for row in as_rows(mask, labels)], index=[9] * 4
        ),
        lambda mask, labels: mask,
        lambda mask, labels: mask.tolist(),
        lambda mask, labels: mask.astype(object),
        lambda mask, labels: sp.csc_array(mask),
        lambda mask, labels: pd.DataFrame(
            mask[:, ::-1], columns=pd.Index(labels[::-1], dtype=object)
        ),
    ],
)
def test_one_meaning(reader, form, labels):
    mask = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]], dtype=bool)
    np.testing.assert_array_equal(reader(form(mask, labels), labels), mask)


@READERS
def test_tables_of_more_than_eight_arms_in_any_order_of_memory(reader):
    mask = np.arange(4 * 9).reshape(4, 9) % 5 > 0
    table = pd.DataFrame(np.asfortranarray(mask))
    np.testing.assert_array_equal(reader(table, range(9)), mask)


@READERS
@pytest.mark.parametrize(
    "available",
    [["a", "c"], ("c", "a"), {"a", "c"}, np.array(["a", "c"]), pd.Index(["a", "c"])],
    ids=lambda given: type(given).__name__,
)
def test_one_collection_for_all_rows(reader, available):
    np.testing.assert_array_equal(reader(available, "abc"), [[True, False, True]] * 4)


@READERS
def test_integers_0_and_1_are_labels_in_collections(reader):
    np.testing.assert_array_equal(reader([(0, 1)] * 4, [0, 1, 2]), [[True, True, False]] * 4)
    np.testing.assert_array_equal(reader([(0,), (1,), (1, 0), (2,)], [0, 1, 2])[1], [0, 1, 0])
    np.testing.assert_array_equal(reader([1, 0], [0, 1, 2]), [[True, True, False]] * 4)


@READERS
@pytest.mark.parametrize(
    ("available", "labels", "message"),
    [
        ([("a", None)] * 4, "abc", "row 0 has None among its labels"),
        ([("a", np.nan)] * 4, "abc", "row 0 has nan among its labels"),
        ([("a",)] * 3, "abc", "3 entries for 4 rows"),
        (["a", "b", "a", "b"], "abc", "names 'a' twice: .* tuple of labels per row"),
        ([("x", 1), ("y", 1)], ["x", "y", 1, ("x", 1), ("y", 1)], "and so are their parts"),
    ],
)
def test_refused(reader, available, labels, message):
    refuses(message, reader, available, list(labels))


@READERS
@pytest.mark.parametrize(
    ("available", "what"),
    [
        ("a", "'a'"),
        ({"a": True}, "{'a': True}"),
        (np.ones((4, 3, 1), dtype=bool), r"ndarray of shape \(4, 3, 1\)"),
        ([True, False, True, True], "one boolean per row or arm"),
        (["a", ["b"]], r"\['b'\] as entry 1, but the label 'a' as entry 0"),
        ([("a",), "b", ("a",), ("a",)], "'b' in row 1"),
        ([(1, 0, 1)] * 4, r"\(1, 0, 1\) in row 0, with a label twice"),
        ([[True, False, True]] * 3 + [[True]], r"3 booleans in row 0, and \[True\] in row 3"),
        (np.array([[True, 0, True]] * 4, dtype=object), "0 in row 0"),
        (np.array([[0, 1, 1]] * 4), "0 in row 0"),
        (np.array([[0.5, 1.0, 1.0]] * 4), "0.5 in row 0"),
        (pd.DataFrame([[0, 1, 1]] * 4, columns=[0, 1, 2]), "0 in row 0"),
        (sp.csr_array([[0, 1, 1]] * 4), "1"),
    ],
)
def test_what_has_none_of_the_three_forms(reader, available, what):
    forms = "boolean table with one column per arm, one tuple of arm labels per row, .*one list"
    with pytest.raises(ValueError, match=f"{forms} of labels for all rows, got {what}\\.$"):
        reader(available, [0, 1, 2])


@READERS
def test_masked_and_unhashable(reader):
    with pytest.raises(TypeError, match="available is a masked array"):
        reader(np.ma.masked_array(np.ones((4, 3), dtype=bool)), "abc")
    refuses("must be hashable", reader, [([1],)] * 4, "abc", error=TypeError)


def test_unknown_ads_of_a_selector():
    ads = label_array("abc")
    rows = [("a", "new"), ("b",), ("new",), ("c", "a")]
    refuses(r"row 0 names unknown ads: 'new'; .*'c'.*ignore", read_mask, rows, ads, 4, "error")
    refuses(r"row 0 names unknown actions: 'new'; .*Leave them out", read_mask, rows, ads, 4, None)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
    np.testing.assert_array_equal(read_mask(rows, ads, 4, "ignore").toarray(), expected)
    # c was retired and d is new
    table = pd.DataFrame({"d": [True] * 4, "b": [True, False] * 2, "a": [False, True] * 2})
    for named in (table.drop(columns="d"), table.assign(c=False)):
        refuses("unknown_ads=", read_mask, named, ads, 4)
    expected = [[0, 1, 0], [1, 0, 0]] * 2
    np.testing.assert_array_equal(read_mask(table, ads, 4, "ignore"), expected)


@pytest.mark.parametrize(
    "pool",
    [
        (3,),
        (3, 1),
        (1.0, 3),
        (True, False),
        (True, 3),
        (1, 1),
        (1, "new"),
        (("a", 1), 1),
        ("a", 1),
        ([1], 3),
        (),
    ],
)
def test_one_row_is_read_as_the_first_of_two(pool):
    """In service one row is read by itself, and what is new or wrong in it as ever."""
    known = {label: k for k, label in enumerate([("a", 1), 1, 3, "a"])}

    def read(available):
        codes = dict(known)
        try:
            pools = read_pools(available, len(available), codes)
        except (TypeError, ValueError) as error:
            return type(error)
        return pools.mask(len(codes))[0].tolist(), list(codes)

    assert read([pool]) == read([pool, pool])


def test_tuples_of_booleans_are_labels_where_no_arm_is_known():
    pools = read_pools([(True, False), (True,)], 2, codes := {})
    assert list(codes) == [True, False] and pools.sizes.tolist() == [2, 1]
