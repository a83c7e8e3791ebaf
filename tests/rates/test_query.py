"""Conditions as strings: pandas' values for what is allowed, and nothing else is evaluated.

An audit hook of the interpreter watches for commands and written files.
"""

import contextlib
import itertools
import os
import sys
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

from skbandit.measure import Columns
from skbandit.rates._query import MAX_LENGTH, Query, QueryError
from tests.worlds import refuses

RNG = np.random.default_rng(5)
N = 40
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(18, 80, N)),
        "count": RNG.integers(-3, 6, N),
        "sex": RNG.choice(["F", "M", None], N),
        "city": RNG.choice(["F", "Basel", ""], N),
        "member": RNG.random(N) < 0.5,
        "old": pd.array(RNG.choice([True, False, None], N), dtype="boolean"),
        "level": pd.Categorical(RNG.choice(["low", "high"], N)),
        "born in": RNG.choice(["CH", "a & b", "it's"], N),
        "class": RNG.choice([1, 2], N),
        "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(RNG.integers(0, 9, N), "D"),
        "small": RNG.random(N).astype(np.float32),
    }
)


def rows(query, frame=FRAME):
    return Columns.read(frame, None, len(frame)).mask(query, "here", len(frame))


def by_pandas(query):
    found = FRAME.convert_dtypes().eval(query, engine="python")
    return found.astype("boolean").to_numpy(dtype=bool, na_value=False)


# --- the values of pandas --------------------------------------------------------------

ASKED = [
    "age != 30 & sex == 'F'",
    "sex not in ('F',)",
    "count == [1, 2]",
    "count != [1, 2]",
    "sex in 'F'",
    "'F' in sex",
    "sex == city",
    "sex != sex",
    "sex == None",
    "member == True",
    "member == False and True",
    "level in ['low', 'none']",
    "`born in` == 'a & b'",
    '`born in` == "it\'s" or `class` == 1',
    "seen > '2024-01-05'",
    "small < count",
    "count > 1 == member",
    "city > 'C'",
]


@pytest.mark.parametrize("query", ASKED)
def test_values_are_those_of_pandas(query):
    try:
        expected = by_pandas(query)
    except (TypeError, ValueError):
        refuses("here: ", rows, query)
    else:
        np.testing.assert_array_equal(rows(query), expected)


@pytest.mark.parametrize("query", ["age * 2 > 3", "-age < 0", "age + 1 == 2", "age ** 2 > 1"])
def test_arithmetic_is_refused_with_the_new_way(query):
    refuses(r"arithmetic is refused.*make the column first, as by attributes\['new'\]", rows, query)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("query", "by_numpy"),
    [
        ("s >= 0.9", lambda s: s >= np.float64(0.9).astype(s.dtype)),
        ("0.7 == s", lambda s: s == np.float64(0.7).astype(s.dtype)),
        ("s == small", lambda s: s == (np.arange(100) / 100).astype(np.float16)),
    ],
)
def test_narrow_floats_are_those_of_numpy(query, by_numpy, dtype):
    """A threshold such as 0.9 of a float32 means the nearest float32."""
    hundredths = np.arange(100) / 100
    frame = pd.DataFrame({"s": hundredths.astype(dtype), "double": hundredths, "flag": True})
    frame = frame.assign(small=hundredths.astype(np.float16))
    expected = by_numpy(frame["s"].to_numpy())
    np.testing.assert_array_equal(rows(query, frame), expected)
    if dtype == "float32":
        nullable = frame.assign(s=frame["s"].astype("Float32"))
        np.testing.assert_array_equal(rows(query, nullable), expected)
    frame.loc[50, "s"] = np.nan
    assert not rows(query, frame)[50] and not rows(f"not ({query})", frame)[50]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_floats_do_not_overflow(dtype):
    frame = pd.DataFrame({"s": np.array([1.5, 300.0, np.inf], dtype=dtype)})
    np.testing.assert_array_equal(rows("s < 1e39", frame), [True, True, False])


@pytest.mark.parametrize(
    "query",
    [
        f"id == {2**53 + 1}",
        f"id in [{2**53 + 1}]",
        "hash > 9223372036854775808 and id > 1",
    ],
)
def test_long_integers_are_not_rounded(query):
    frame = pd.DataFrame(
        {
            "id": pd.array([2**53 + 1, 2**53 + 2, 1, None], dtype="Int64"),
            "hash": np.array([2**64 - 1, 2**63, 3, 4], dtype="uint64"),
            "huge": [2**62, 0, 0, 0],
            "least": [-(2**63), 0, 1, 1],
        }
    )
    np.testing.assert_array_equal(rows(query, frame), [True, False, False, False])


@pytest.mark.parametrize("zone", [None, "Europe/Zurich"])
def test_text_is_a_date_beside_dates(zone):
    """pandas from 3.0 on finds no date equal to a text."""
    frame = FRAME.assign(seen=FRAME["seen"].dt.tz_localize(zone))
    expected = FRAME["seen"] == pd.Timestamp("2024-01-05")
    assert expected.any()
    np.testing.assert_array_equal(rows("seen == '2024-01-05'", frame), expected)
    np.testing.assert_array_equal(rows("seen not in ['2024-01-05']", frame), ~expected)
    refuses("holds dates and 'noon' is not one", rows, "seen == 'noon'", frame)


@pytest.mark.parametrize("zone", ["UTC", None])
def test_an_instant_is_no_date_without_a_zone(zone):
    frame = pd.DataFrame({"seen": pd.date_range("2024-01-29", periods=3, tz=zone)})
    if zone:
        query = "seen != '2024-01-30T01:00+01:00'"
        np.testing.assert_array_equal(rows(query, frame), [True, False, True])
    else:
        with pytest.raises(ValueError, match=r"holds dates and .*\+01:00' is not one"):
            rows("seen != '2024-01-30T01:00+01:00'", frame)


DAYS = pd.Series(pd.date_range("2024-01-29", periods=6))
DURATIONS = pd.Series(pd.to_timedelta(range(6), "D"))
TENTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.9]
LISTED = [
    ("dates of Python", pd.Series(DAYS.dt.date, dtype=object), "2024-01-31", "2024-01-30"),
    ("periods", DAYS.dt.to_period("D"), "2024-01-31", "2024-01-30"),
    ("periods as objects", DAYS.dt.to_period("D").astype(object), "2024-01-31", "2024-01-30"),
    ("dates as objects", DAYS.astype(object), "2024-01-31", "2024-01-30"),
    ("categories of dates", DAYS.astype("category"), "2024-01-31", "2024-01-30"),
    (
        "categories of periods",
        DAYS.dt.to_period("D").astype("category"),
        "2024-01-31",
        "2024-01-30",
    ),
    ("durations", DURATIONS, "2 days", "24:00:00"),
    ("times", (DAYS + DURATIONS / 24).dt.time, "02:00", "01:00:00"),
    ("decimals", pd.Series([Decimal(str(one)) for one in TENTHS]), 0.3, 0.2),
    ("texts", pd.Series(list("abcdef")), "c", "b"),
    *((dtype, pd.Series(TENTHS).astype(dtype), 0.3, 0.2) for dtype in ("float16", "float32")),
    *((dtype, pd.Series(TENTHS).astype(dtype), 0.3, 0.2) for dtype in ("Float32", "float64")),
    ("categories", pd.Series(TENTHS, dtype="float32").astype("category"), 0.3, 0.2),
]  # the third value of each column, and its second
ARROW = [
    ("date32[pyarrow]", DAYS.dt.date, "2024-01-31", "2024-01-30"),
    ("timestamp[ns][pyarrow]", DAYS, "2024-01-31", "2024-01-30"),
    ("timestamp[us, tz=Europe/Zurich][pyarrow]", DAYS.dt.tz_localize("Europe/Zurich"),
     "2024-01-31", "2024-01-30 01:00+02:00"),
    ("duration[us][pyarrow]", DURATIONS, "2 days", "1 day"),
    ("float[pyarrow]", pd.Series(TENTHS), 0.3, 0.2),
    ("halffloat[pyarrow]", pd.Series(TENTHS, dtype="float16"), 0.3, 0.2),
    ("decimal128", pd.Series([Decimal(str(one)) for one in TENTHS]), 0.3, 0.2),
    ("dictionary", pd.Series(list("abcdef")), "c", "b"),
    ("uint64[pyarrow]", [0, 2**64 - 2, 2**64 - 1, 1, 2, 3], 2**64 - 1, 2**64 - 2),
    ("string[pyarrow]", pd.Series(list("abcdef")), "c", "b"),
]  # fmt: skip


def check_listed(column, third, second):
    column = column.copy()
    column[5] = None
    frame = pd.DataFrame({"t": column})
    expected = np.arange(6) == 2
    for text in (f"t == {third!r}", f"{third!r} == t", f"t in [{third!r}]", f"t == [{third!r}]"):
        np.testing.assert_array_equal(rows(text, frame), expected)
    np.testing.assert_array_equal(rows({"t": third}, frame), expected)
    np.testing.assert_array_equal(rows(f"t not in [{third!r}]", frame), ~expected)
    np.testing.assert_array_equal(rows(f"t != {third!r}", frame)[:5], ~expected[:5])
    two = [False, True, True, False, False]
    for where in (f"t in [{third!r}, {second!r}, None]", {"t": [second, third, None]}):
        np.testing.assert_array_equal(rows(where, frame), [*two, True])


@pytest.mark.parametrize(
    ("column", "third", "second"), [one[1:] for one in LISTED], ids=[one[0] for one in LISTED]
)
def test_listed_values_are_read_as_the_column_holds_them(column, third, second):
    check_listed(column, third, second)


@pytest.mark.parametrize(("dtype", "values", "third", "second"), ARROW, ids=[x[0] for x in ARROW])
def test_columns_of_arrow(dtype, values, third, second):
    pa = pytest.importorskip("pyarrow")
    types = {"decimal128": pa.decimal128(10, 2), "dictionary": pa.dictionary("int32", "string")}
    listed = list(np.asarray(values)) if dtype == "halffloat[pyarrow]" else list(values)
    column = pd.Series(listed, dtype=pd.ArrowDtype(types[dtype]) if dtype in types else dtype)
    check_listed(column, third, second)
    if dtype != "dictionary":
        assert rows(f"t > {second!r}", pd.DataFrame({"t": column}))[:3].tolist() == [0, 0, 1]


NO_TEXTS = [
    pd.Series(pd.cut([1, 2, 3], [0, 2, 4])),
    pd.Series([uuid.UUID(int=1)]),
    pd.Series([b"noon"]),
    pd.Series([True, False]),
    pd.Series([1, 2]),
]


@pytest.mark.parametrize("column", [*(one[1] for one in LISTED if one[0] != "texts"), *NO_TEXTS])
def test_values_that_a_column_cannot_hold_are_refused(column):
    for where in ("t != 'noon'", "t not in ['noon']", "t == ''", {"t": "noon"}):
        refuses(r"'t' holds .* is (not one|a text)", rows, where, pd.DataFrame({"t": column}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sex", "holds texts, which do not compare .* 1: write '1'"),
        ("seen", "holds dates and 1 is"),
    ],
)
def test_numbers_beside_texts_and_dates_are_refused(column, message):
    for query in (f"{column} != 1", f"{column} not in [1]", f"{column} > 1", f"1 == {column}"):
        refuses(message, rows, query)


def test_a_query_may_span_lines():
    np.testing.assert_array_equal(
        rows("age > 30 and\n  member\n"), by_pandas("age > 30 and member")
    )


numbers = st.sampled_from(["age", "count", "`class`", "small", "2", "-1", "0.5", "30"])
texts = st.sampled_from(["sex", "city", "level", "`born in`"])
literals = st.sampled_from(["'F'", "'low'", "''", '"a & b"', "'nobody'"])
compared = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
tests = st.one_of(
    st.tuples(numbers, compared, numbers).map(" ".join),
    st.tuples(numbers, compared, numbers, compared, numbers).map(" ".join),
    st.tuples(texts, st.sampled_from(["==", "!=", "in", "not in"]), literals).map(" ".join),
    st.tuples(literals, st.sampled_from(["==", "!="]), texts).map(" ".join),
    st.tuples(texts, st.sampled_from(["in", "not in", "=="]), st.lists(literals)).map(
        lambda p: f"{p[0]} {p[1]} [{', '.join(p[2])}]"
    ),
    st.tuples(st.sampled_from(["age", "count"]), st.lists(st.integers(-9, 60), min_size=1)).map(
        lambda p: f"{p[0]} in {p[1]}"
    ),
    st.sampled_from(["member", "old"]),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "&", "|"]), inner).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
        inner.map(lambda one: f"not ({one})"),
        inner.map(lambda one: f"~({one})"),
    ),
    max_leaves=5,
)


@settings(derandomize=True, deadline=None)
@given(conditions)
def test_allowed_queries_have_the_values_of_pandas(query):
    with np.errstate(all="ignore"):
        try:
            expected = by_pandas(query)
        except Exception:
            return  # pandas cannot: for instance, two literals
        try:
            found = rows(query)
        except ValueError as error:
            assert "names no column" in str(error) or "in must follow a column" in str(error)
        else:
            np.testing.assert_array_equal(found, expected)


# --- hostile strings -------------------------------------------------------------------

WATCHED = ("os.", "subprocess.", "shutil.", "socket.", "ctypes.", "pickle.", "urllib.", "tempfile.")
harm: list[str] = []
watching = False


def watch(event, arguments):
    if not watching:
        return
    writes = event == "open" and (
        (isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"))
        or arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )
    if writes or event.startswith(WATCHED):
        harm.append(f"{event}{arguments}")


sys.addaudithook(watch)  # for the life of the process, as hooks cannot be removed


@contextlib.contextmanager
def watched():
    global watching
    harm.clear()
    watching = True
    try:
        yield harm
    finally:
        watching = False


def hostile(path):
    """Calls, attributes and subscripts from every value that a query can name."""
    roots = ["age", "sex", "`born in`", "(age > 1)", "'a'", "1", "[1]", "index", "Timestamp"]
    roots += ["__builtins__", "pd", "self", "datetime", "list", "@age", "@pd", "__import__"]
    deeds = [
        f".to_csv({path!r})",
        f".to_pickle({path!r})",
        f".__init__.__globals__['sys'].modules['os'].system('touch {path}')",
        f".__class__.__mro__[-1].__subclasses__()[0]('touch {path}')",
        f".apply(lambda _: open({path!r}, 'w'))",
        ".values",
        "[0]",
        "('os')",
        f"('os').system('touch {path}')",
        ".str.len()",
        f".pipe(__import__('os').system, 'touch {path}')",
    ]
    frames = [
        "{} == 0",
        "{} > 0 and member",
        "{} in ['F']",
        "not {}",
        "age in [{}]",
        "age ** {} > 1",
    ]
    for root, deed, frame in itertools.product(roots, deeds, frames):
        yield frame.format(root + deed)
    yield from [
        f"__import__('os').system('touch {path}') == 0",
        f"exec('open({path!r}, \\'w\\')') == 0",
        "eval('1') == age",
        f"open({path!r}, 'w') == age",
        f"(lambda: open({path!r}, 'w'))() == age",
        f"f\"{{open({path!r}, 'w')}}\" == sex",
        f"(x := open({path!r}, 'w')) == age",
        f"age if open({path!r}, 'w') else sex",
        f"age = open({path!r}, 'w')",
        f"age == 1\nopen({path!r}, 'w')",
        "import os",
        "*age == 1",
        f"age == {{1: open({path!r}, 'w')}}",
        f"age is open({path!r}, 'w')",
        "age << 999999999999 == 1",
        "b'a' == sex",
        "1j == age",
        "... == age",
        f"`age`.to_csv({path!r}) == 1",
        f"`age.to_csv({path!r})` == 1",
        "'''a''' + `age`.name == sex",
        f"sex == 'F' & `x` in [open({path!r}, 'w')]",
        f"sex == '\\\\' and open({path!r}, 'w') # '",
    ]


@pytest.mark.thorough
def test_hostile_strings_are_refused_and_nothing_runs(tmp_path):
    target = tmp_path / "sentinel"
    queries = list(hostile(str(target)))
    queries = queries[:-30:3] + queries[-30:]
    assert len(queries) > 400
    rows("sex == 'F' and age > 1")  # loads what pandas loads on first use
    with watched() as harm:
        for query in queries:
            refuses("here: ", rows, query)
    assert not harm and not target.exists()


PIECES = [
    *"age sex count member ( ) [ ] ' \" ` @ & | ~ == = < ** * % . , : := lambda 9 1e999 é".split(),
    *("{ } \\ # f' b' None __class__ open".split()),
    *("not ", " in ", " if ", " else ", " for ", "\n", "\x00"),
]


@pytest.mark.thorough
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_random_strings_give_rows_or_a_clear_error(query):
    with np.errstate(all="ignore"):
        try:
            found = rows(query)
        except ValueError as error:
            assert str(error).startswith("here")
        else:
            assert found.shape == (N,) and found.dtype == bool


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("age > ((9 ** 99) ** 99) ** 99", "arithmetic is refused"),
        ("age > 1" + 400 * "0", "beyond the range of floats"),
        ("age > 1e999", "beyond the range of floats"),
        ("'F' * 1000000000 == sex", "arithmetic is refused"),
        ("age > " + "-" * 200 + "1", "arithmetic is refused"),
        ("age > " + "1 + " * 2000 + "1", "arithmetic is refused|nested"),
        ("(" * 1000 + "age" + ")" * 1000 + " > 1", "cannot evaluate|nested"),
        ("not " * 2000 + "member", "nested"),
        ("age in [" + "1, " * 5000 + "1]", rf"characters, more than {MAX_LENGTH}: .*\[values\]"),
        ("age > 1 / 0", "cannot evaluate the query"),
        ("age in count", "in must follow a column, and a list"),
        ("age in [count]", "lists must hold literals"),
        ("age < [1]", "only in and == compare with a list"),
        ("age and member", "and, or and not join .* not Float64|Int64 values"),
        ("~count == 1", "and, or and not join .* not Int64 values"),
        ("member and 1", "and, or and not join .* not 1"),
    ],
)
def test_large_and_meaningless_expressions_are_refused(query, message):
    refuses(message, rows, query)


def test_a_query_is_checked_without_data():
    refuses("Attribute is refused", Query.parse, "age.values == 1", error=QueryError)
    assert list(Query.parse("b > `a c` and 1 < b").names.values()) == ["b", "a c"]


def test_columns_named_as_the_placeholders_of_quoted_names():
    frame = pd.DataFrame({"column0": [1, 2], "a b": [2, 2]})
    assert rows("column0 == 2 and `a b` == 2", frame).tolist() == [False, True]
