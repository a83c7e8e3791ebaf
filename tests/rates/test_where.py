"""Rows and weights by column: what `where` and `weight` select, and every way to get it wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skbandit import ConstrainedReduction, ConstrainedThreshold
from skbandit.evaluation import rate_report_blocks
from skbandit.measure import Columns, bind_rate
from skbandit.rates import positive_rate, recall
from tests.rates.tables import make_data
from tests.worlds import refuses

pl = pytest.importorskip("polars", reason="polars is not installed")

FRAME = pd.DataFrame(
    {
        "sex": ["F", "M", None, "F", "M"],
        "age": [20.0, 30.0, 40.0, np.nan, 60.0],
        "old": pd.array([False, False, True, None, True], dtype="boolean"),
        "born in": [1, 2, 3, 4, 5],
        "mail": ["x@y", "z", "x@y", "z", None],
        "at@home": [True, False, True, False, True],
        "level": pd.Categorical(["low", "high", None, "low", "low"]),
    }
)


def rows(where, attributes=FRAME, X=None, n=5):
    return np.flatnonzero(Columns.read(attributes, X, n).mask(where, "here", n)).tolist()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, [0, 1, 2, 3, 4]),
        ("old", [2, 4]),
        ("~old", [0, 1]),
        ("sex == 'F'", [0, 3]),
        ("sex == 'F' and age > 10", [0]),
        ('sex == "F" or age >= 60', [0, 3, 4]),
        ({"sex": None}, [2]),
        ("sex in ['F', None]", [0, 2, 3]),
        ("age != 30", [0, 2, 4]),
        ("sex != 'F'", [1, 2, 4]),  # pandas: a missing text differs from every text
        ("~(age > 25)", [0]),
        ("age > 25 or sex == [None]", [1, 2, 4]),
        ("`born in` >= 4", [3, 4]),
        ("mail == 'x@y'", [0, 2]),
        ('mail == "x@y" and sex == "F"', [0]),
        ("`at@home` and age > 20", [2, 4]),
        ("level == 'low'", [0, 3, 4]),
        ({"sex": "F"}, [0, 3]),
        ({"sex": ["F", "M"]}, [0, 1, 3, 4]),
        ({"sex": "F", "age": 20}, [0]),
        ({"born in": {2, 4}}, [1, 3]),
        ({"level": "low"}, [0, 3, 4]),
        ({"old": True}, [2, 4]),
        ({"sex": "nobody"}, []),
        ({}, [0, 1, 2, 3, 4]),
        (lambda frame: frame["age"] > 25, [1, 2, 4]),
        (lambda frame: (frame["age"] > 25).tolist(), [1, 2, 4]),
        (lambda frame: frame["old"], [2, 4]),
        (lambda frame: np.array([True, None, False, True, None], dtype=object), [0, 3]),
    ],
)
def test_rows_are_selected_by_position(where, expected):
    where = positive_rate(where).atoms[0].where  # as an atom stores it
    assert rows(where) == expected
    assert rows(where, FRAME.set_axis(list("vwxyz"))) == expected  # by position, not by index
    assert rows(where, None, FRAME) == expected


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        np.array([True, False, True]),
        pd.Series([True, False, True], index=[7, 8, 9]),
        pd.array([True, None, True], dtype="boolean"),
        np.array([True, None, True], dtype=object),
        np.array([np.True_, np.nan, np.True_], dtype=object),
        pd.Categorical([True, False, True]),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_boolean_columns_of_any_kind(column):
    assert rows("flag", {"flag": column}, n=3) == [0, 2]
    assert rows("flag", pd.DataFrame({"flag": column}), n=3) == [0, 2]


def test_column_of_missing_values_alone_selects_nothing():
    assert rows("flag", {"flag": [None, None]}, n=2) == []


def test_columns_of_polars_select_rows():
    frame = pl.DataFrame(
        {"sex": ["F", "M", None], "age": [20, None, 40], "old": [True, None, False]}
    )
    for attributes, X in ((frame, None), (None, frame)):
        assert rows("old", attributes, X, 3) == [0]
        assert rows("sex == 'M'", attributes, X, 3) == [1]
        assert rows("age > 30", attributes, X, 3) == [2]
        assert rows({"age": [20, 40]}, attributes, X, 3) == [0, 2]
    value = recall({"sex": ["F", "M"]}).value([1, 1, 1], [1, 0, 0], frame)
    assert value == 0.5


def test_attributes_hide_columns_of_X():
    X = pd.DataFrame({"sex": ["M", "M", "M"], "age": [1, 2, 3]})
    attributes = {"sex": ["F", "F", "M"]}
    assert rows({"sex": "F"}, attributes, X, 3) == [0, 1]
    assert rows("sex == 'F' and age > 1", attributes, X, 3) == [1]
    assert rows(lambda frame: (frame["sex"] == "F") & (frame["age"] > 1), attributes, X, 3) == [1]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "sx == 'F'",
            "here: name 'sx' is not defined; known columns are 'sex', 'age', 'old'",
        ),
        ({"sx": "F"}, "here: unknown column 'sx'; known columns are 'sex', 'age', 'old'"),
        ("sex == @value", r"here: a query cannot refer to Python variables with @.*write the"),
        ("mail == 'x@y' and sex == @value", "cannot refer to Python variables with @"),
        ("age + 1", "arithmetic is refused"),
        ("sex", r"column 'sex' must be boolean, got (str|object).*'F'; write {'sex': value}"),
        ("`born in`", "here must be boolean, got Int64 such as 1"),
        ("born in", r"column 'born in' must be boolean, got int64 such as 1; write {'born in': v"),
        ("sex ==", "here: cannot evaluate the query 'sex ==': "),
        ("age > 'F'", "here: cannot evaluate the query"),
        ("", "here: cannot evaluate the query ''"),
        ("1 == 1", "here: the query '1 == 1' names no column"),
        ("sex = 'F'", "here: cannot evaluate the query .* is an assignment: compare with =="),
        ("sex == 'F' and age", "and, or and not join .*, not (Float64|Int64) values"),
        ("sex.isna()", "Call is refused. A query may hold names .* pass a function of the"),
        (lambda frame: [True, False], "here: got 2 values for 5 rows"),
        (lambda frame: True, "here: got 1 values for 5 rows"),
        (lambda frame: frame["age"], r"here must be boolean, got float64 such as 20\.0"),
        (lambda frame: np.arange(5), "here must be boolean, got int64 such as 0"),
    ],
)
def test_selections_are_refused(where, message):
    refuses(message, rows, where)


def test_many_columns_are_not_all_listed():
    wide = pd.DataFrame(np.zeros((2, 23)), columns=[f"c{i}" for i in range(23)])
    refuses(r"'c0', .*'c19', and 3 more\.$", rows, {"other": 1}, wide, n=2)


def test_selections_without_columns_are_refused():
    refuses("no columns are known: pass attributes= ", recall({"sex": "F"}).value, [1, 1], [1, 0])
    with pytest.raises(ValueError, match="unknown column 'sex'; no columns are known"):
        rows({"sex": "F"}, None, np.zeros((5, 2)))


def test_a_frame_without_the_column_may_lack_attributes():
    frame = pd.DataFrame({"a": [1, 2]})
    cure = r"known columns are 'a'\. Pass those that X lacks as attributes=.*routing=True\)"
    for where in ({"sex": "F"}, "sex == 'F'"):
        refuses(cure, rows, where, None, frame, n=2)
        with pytest.raises(ValueError, match=r"known columns are 'a'\.$"):  # some were passed
            rows(where, frame, n=2)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"a": [1, 2], "b": [1, 2, 3]}, r"attributes\['a'\] has 2 rows for 3 rows of data.*DataFr"),
        (pd.DataFrame({"a": [1, 2]}), r"2 rows for 3 rows of data\. Select .*\.loc\[X\.index\]"),
        (pl.DataFrame({"a": [1, 2]}), "attributes has 2 rows for 3 rows of data"),
    ],
)
def test_attributes_of_another_length_are_refused(attributes, message):
    refuses(message, Columns.read, attributes, None, 3)


@pytest.mark.parametrize("attributes", [np.zeros((3, 2)), ["F", "M", "F"], pd.Series([1, 2, 3])])
def test_attributes_are_named(attributes):
    with pytest.raises(TypeError, match=r"attributes must be a DataFrame \(or a dict of arrays"):
        Columns.read(attributes, None, 3)


def test_error_names_the_table_and_the_rate():
    with pytest.raises(ValueError, match="attributes_extra has 2 rows"):
        Columns.read(pd.DataFrame({"a": [1, 2]}), None, 3, "attributes_extra")
    with pytest.raises(ValueError, match=r"recall\(\{'sx': 'F'\}\): unknown column 'sx'"):
        recall({"sx": "F"}).value([1], [1], {"sex": ["F"]})


def bind(rate, label=(1, 0, 1), weight=None, **columns):
    return bind_rate(rate, make_data(label, weight, **columns))


def test_where_that_selects_no_rows():
    with pytest.raises(ValueError, match="selects no rows; 'sex' holds 'F', 'M'"):
        bind(recall("sex == 'X'"), sex=["F", "M", "F"])
    listed = r"where={'sex': 'X', 'age': 1} selects no rows; 'sex' holds 'F', 'M'; 'age' holds 1, 2"
    refuses(listed, bind, recall({"sex": "X", "age": 1}), sex=["F", "M", "F"], age=[1, 2, 2])
    many = "'a' holds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "
    refuses(many + r"\.\.\.", bind, recall({"a": -1}), label=[1] * 12, a=range(12))


def test_rows_without_weight_are_absent():
    refuses("selects no rows", bind, recall({"sex": "M"}), weight=[1, 0, 1], sex=["F", "M", "F"])
    refuses("every row has weight 0", bind, recall(), weight=[0, 0, 0])


def test_weight_column():
    above, below, behind = bind(recall(weight="w"), w=[3, 9, 1])
    np.testing.assert_allclose(above.coef.toarray()[0], [0.75, 0, 0.25])
    assert (below.constant, behind.tolist()) == (1, [True, False, True])
    above, _, _ = bind(recall(weight="w"), w=pd.array([True, True, False], dtype="boolean"))
    np.testing.assert_allclose(above.coef.toarray()[0], [1, 0, 0])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, None])
def test_weight_column_is_checked_where_it_counts(bad):
    message = r"recall\({'g': 'a'}, weight='w'\): weights must be finite and not negative, 'w' has"
    columns = {"g": ["a", "b", "a"], "w": [1, bad, 2]}
    bind(recall({"g": "a"}, weight="w"), **columns)
    bind(recall(weight="w"), weight=[1, 0, 1], **columns)
    with pytest.raises(ValueError, match=message + r" .* in row 2\."):
        bind(recall({"g": "a"}, weight="w"), g=["a", "b", "a"], w=[1, 2, bad])


def test_weight_column_is_numeric():
    refuses(r"weight='w'\): column 'w' is not numeric", bind, recall(weight="w"), w=["a", "b", "c"])
    refuses("unknown column 'w'; known columns are 'v'", bind, recall(weight="w"), v=[1, 2, 3])


def test_ambiguous_and_scalar_columns():
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    refuses("2 columns are named 'a'", rows, {"a": 1}, twice, n=1)
    refuses(r"attributes\['a'\] is a single value", rows, "a", {"a": True}, n=1)


@pytest.mark.parametrize(
    "where",
    [
        "age > " + "1" * 200_000,
        "age > 30" + " or age > 30" * 500 + " or",
        "age > 30" + " or f(age)" * 500,
        "age == '" + "x" * 9_000 + "' and 5",
        "age > 1000" + " and age > 1000" * 90,
        {"age": list(range(1000, 50_000))},
        list(range(50_000)),
    ],
    ids=["too long", "malformed", "refused", "not boolean", "no rows", "no rows listed", "a list"],
)
def test_errors_do_not_repeat_a_long_selection(where):
    data = make_data(np.ones(50), age=np.arange(50))
    with pytest.raises((ValueError, TypeError), match=r" \.\.\. ") as caught:
        bind_rate(recall(where), data)
    assert len(str(caught.value)) < 1_500


STRANGERS = ["sex in ['F', 'mlae']", "age > 30 or sex == 'mlae'", "sex != 'mlae'"]


@pytest.mark.parametrize("query", STRANGERS)
def test_a_misspelt_value_beside_others_is_told(query):
    """Alone it selects no row, which is an error."""
    people = pd.DataFrame({"sex": ["F", "male"] * 80, "age": [*range(20, 60)] * 4})
    y, predicted = [1, 0, 1, 0] * 40, [1, 1, 0, 0] * 40
    with pytest.warns(UserWarning, match="no row has 'mlae' in column 'sex'. Did you mean 'male'"):
        whole = recall(query).value(y, predicted, people)
    table = people.assign(y=y, p=predicted)
    blocks = [table[:80], table[80:]]
    with pytest.warns(UserWarning, match="no row has 'mlae' in column 'sex'"):
        report = rate_report_blocks(blocks, recall(query), y_true="y", y_pred="p")
    assert report["value"].item() == pytest.approx(whole)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [ConstrainedThreshold, ConstrainedReduction])
def test_a_misspelt_value_is_told_in_fits_and_not_in_predictions(learner):
    X = pd.DataFrame({"x": np.linspace(-1, 1, 400), "sex": np.tile(["F", "male"], 200)})
    y = np.random.default_rng(0).random(400) < 1 / (1 + np.exp(-3 * X["x"]))
    linear = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    with pytest.warns(UserWarning, match="no row has 'mlae' in column 'sex'. Did you mean 'male'"):
        learner(linear, None, recall("x > 0 or sex == 'mlae'") >= 0.5).fit(X, y)
    told = learner(linear, None, recall("x > 0 or sex == 'male'") >= 0.5).fit(X, y)
    assert told.predict(X[:1]).shape == (1,)


def test_values_of_other_blocks_and_categories_are_no_strangers():
    people = pd.DataFrame({"sex": ["F", "M"] * 40, "y": 1, "p": [1, 0] * 40})
    blocks = [people[people["sex"] == "F"], people[people["sex"] == "M"]]
    goal = recall("sex in ['F', 'M']")
    assert rate_report_blocks(blocks, goal, y_true="y", y_pred="p")["value"].item() == 0.5
    few = people.astype({"sex": pd.CategoricalDtype(["F", "M", "X"])})
    assert recall("sex in ['F', 'X']").value(few["y"], few["p"], few) == 1.0
