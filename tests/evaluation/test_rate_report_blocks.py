"""rate_report_blocks: the report of all rows in memory, however they are cut, read or computed."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skbandit import rates
from skbandit.evaluation import rate_report, rate_report_blocks
from skbandit.rates import (
    any_of,
    churn,
    confusion,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    mean,
    outcome,
    positive_rate,
    precision,
    ratio,
    recall,
    worst,
)
from skbandit.rates._kinds import KINDS
from tests.tiers import first
from tests.worlds import cut, refuses

pytestmark = pytest.mark.filterwarnings(
    "ignore:Fewer than 20 rows", "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

RNG = np.random.default_rng(5)
N = 600


def old(table):
    return table["age"] > 50


def make_table(rng=RNG, n=N):
    """Groups of some rows only in the last rows; columns of continuous values."""
    table = pd.DataFrame(
        {
            "g": rng.choice(["a", "b"], n),
            "h": rng.choice([3, 1, 2], n),
            "age": rng.uniform(18, 80, n),
            "bold": rng.random(n) < 0.3,
            "amount": rng.exponential(size=n) * (rng.random(n) < 0.8),
            "price": rng.normal(size=n),
            "w": rng.exponential(size=n) * (rng.random(n) < 0.9),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
            "deployed": rng.integers(0, 2, n),
        }
    )
    table.loc[n - 60 :, "g"] = "late"
    table["y"] = rng.integers(0, 2, n)
    table["p"] = np.where(rng.random(n) < 0.7, table["y"], rng.integers(0, 2, n))
    table["tumor"] = rng.choice(["benign", "carcinoma"], n)
    table.loc[n - 90 :, "tumor"] = "melanoma"
    doubt = rng.choice(["benign", "carcinoma", "melanoma", "review"], n)
    table["guess"] = np.where(rng.random(n) < 0.6, table["tumor"], doubt)
    table["earlier"] = np.where(rng.random(n) < 0.8, table["guess"], "benign")
    return table


TABLE = make_table()

OF_TWO = {
    "all kinds": [getattr(rates, name)() for name in KINDS if name != "churn"],
    "churn": [churn("deployed"), churn("deployed", "age > 40") <= 0.4],
    "conditions": [
        recall("age > 30 and g != 'a'"),
        recall("bold") - recall("not bold"),
        recall({"h": [1, 3]}) >= 0.6,
        positive_rate(old),
        precision("day > '2024-01-04'") / precision(),
    ],
    "groups": [
        each(recall, by="g") >= 0.7,
        difference(recall, by=["g", "h"]) <= 0.2,
        ratio(positive_rate, by="g") >= 0.8,
        each(recall, by="h") - recall(),
        mean(recall, by="g"),
        worst(precision, by="g") >= 0.5,
        difference(lambda: f1("age > 60"), by="h"),
    ],
    "weights": [
        recall(weight="amount"),
        recall(weight="amount") - recall() <= 0.1,
        precision("age > 30", weight="amount") - recall(weight="price_level"),
        difference(lambda: recall(weight="amount"), by="g"),
        f1(weight="amount") >= 0.3,
    ],
    "constraints": [
        abs(recall() - 0.7) <= 0.05,
        recall() >= 0.8 * recall("bold"),
        (false_positive_rate() <= 0.3).named("alarms"),
        abs(recall("bold") - recall()),
    ],
    "names": {"found": recall(), "right": precision() >= 0.6},
    "of": [recall(of=0), each(precision, of="classes") >= 0.5, confusion(1, 0)],
    "costs": [
        cost({0: {0: 0, 1: 1}, 1: {0: 5, 1: 0}}) <= 2,
        cost({0: "amount", 1: 2}, "age > 30", weight="amount") <= 2,
        cost({0: 0, 1: "price"}) + 0.5 * recall(),
        each(lambda: cost({0: "price", 1: "amount"}), by="h"),
    ],
}
CLASSES = ["benign", "carcinoma", "melanoma"]
COSTS = [[0, 1, 2, 1], [5, 0, 1, 2], [20, 3, 0, 2]]
OF_SEVERAL = {
    "classes": [
        each(recall, of="classes") >= 0.5,
        mean(f1, of="classes"),
        difference(recall, of=["benign", "melanoma"]),
        positive_rate(of="review") <= 0.2,
        recall(of=any_of("carcinoma", "melanoma")),
        each(lambda: recall(of="melanoma"), by="h"),
    ],
    "without": [error_rate(without="review"), recall(of="benign", without="review") >= 0.3],
    "confusion": [
        confusion("melanoma", "benign"),
        confusion("melanoma", "review", normalize="pred"),
        confusion("benign", "carcinoma", "age < 30", normalize="all") <= 0.2,
    ],
    "churn": [churn("earlier"), each(lambda: churn("earlier"), by="g")],
    "costs": [
        cost(pd.DataFrame(COSTS, CLASSES, [*CLASSES, "review"])) <= 3,
        cost(dict.fromkeys(CLASSES, 0) | {"review": "amount"}, weight="amount") <= 3,
    ],
}
TABLE["price_level"] = TABLE["price"].abs()


def listened(report):
    """A report, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = report()
    return found, [str(one.message) for one in caught]


def assert_same(
    blocks, goals, table=TABLE, y_true="y", y_pred="p", by=None, weight=None, **options
):
    """The same report, exactly where it counts rows, and the same warnings."""
    found, told = listened(
        lambda: rate_report_blocks(
            blocks, goals, y_true=y_true, y_pred=y_pred, by=by, weight=weight, **options
        )
    )
    expected, said = listened(
        lambda: rate_report(
            None if y_true is None else table[y_true],
            table[y_pred],
            goals,
            by=by,
            attributes=table,
            sample_weight=None if weight is None else table[weight],
            **options,
        )
    )
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-9)
    assert found.attrs == expected.attrs
    assert told == said
    if weight is None and not any("weight=" in goal for goal in found["goal"]):
        rows = ["n_rows", "effective_n"]  # counts are exact
        pd.testing.assert_frame_equal(found[rows], expected[rows], check_exact=True)
    return found


@pytest.mark.parametrize("weight", first(1, ["w", None]))
@pytest.mark.parametrize("by", first(1, ["g", None, ["h", "g"]]))
@pytest.mark.parametrize("name", OF_TWO)
def test_two_classes(name, by, weight):
    assert_same(cut(TABLE, 1, 150, 450), OF_TWO[name], by=by, weight=weight)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("by", first(1, ["g", None]))
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_several_classes(name, by, weight):
    columns = {"y_true": "tumor", "y_pred": "guess"}
    assert_same(cut(TABLE, 5, 300, 500), OF_SEVERAL[name], **columns, by=by, weight=weight)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(15)))
def test_any_cut(seed):
    """Blocks without a row, a class, or a group; rows without label, group, weight or amount."""
    rng = np.random.default_rng(seed)
    table = make_table(rng, 200)
    table["g"] = table["g"].mask(rng.random(200) < 0.1, None)
    table["y"] = table["y"].astype(float).mask(rng.random(200) < 0.2)
    table["amount"] = table["amount"].mask(table["age"] < 30)
    goals = [
        *OF_TWO["all kinds"],
        each(recall, by="g") >= 0.5,
        recall("age >= 30", weight="amount") - precision("age > 50"),
        cost({0: 0, 1: "amount"}, "age > 30"),
        recall("age > 79"),
    ]
    goals[-1:] *= bool(((table["age"] > 79) & (table["y"] == 1) & (table["w"] > 0)).any())
    places = rng.integers(0, 201, rng.integers(1, 30))
    assert_same(cut(table, *places), goals, table, by="g", weight=rng.choice([None, "w"]))


@pytest.mark.parametrize(
    "options",
    [
        {"labels": ["benign", "carcinoma", "melanoma", "review"]},
        {"labels": ["benign", "carcinoma", "melanoma", "review", "none"], "pos_label": "melanoma"},
        {"confidence_level": 0.5, "pos_label": "benign"},
    ],
)
def test_labels_and_levels(options):
    goals = [recall(of="melanoma"), error_rate(), each(positive_rate, of="decisions")]
    assert_same(cut(TABLE, 350), goals, y_true="tumor", y_pred="guess", **options)


def test_without_labels():
    goals = [positive_rate() <= 0.5, churn("deployed"), difference(positive_rate, by="g")]
    assert_same(cut(TABLE, 350), goals, y_true=None, by="h")
    with pytest.raises(ValueError, match=r"recall\(\) needs labels"):
        rate_report_blocks([TABLE], recall(), y_true=None, y_pred="p")


def test_warnings_of_all_rows():
    """Of few rows, of labels without a name, of groups without rows: one of each, at the end."""
    table = TABLE.assign(y=np.where(TABLE["g"] == "late", 0, TABLE["y"]))
    goals = [recall() >= 0.5, precision("age > 79.5"), recall("age > 70 and h == 9")]
    blocks = cut(table, 200, 570)
    assert_same(blocks, goals[:2], table, by="g")
    with pytest.raises(ValueError, match=r"selects no rows; 'age' holds [\d.]+, .*, \.\.\.; 'h' h"):
        rate_report_blocks(blocks, goals[2], y_true="y", y_pred="p")
    with pytest.warns(UserWarning, match="y_pred has \\['review'\\], which y_true lacks"):
        rate_report_blocks(cut(TABLE, 300), error_rate(), y_true="tumor", y_pred="guess")
    with pytest.warns(UserWarning, match=r"precision\('age > 79.5'\) \(\d+\)"):
        rate_report_blocks(blocks, goals[1], y_true="y", y_pred="p")


# --- forms of the rows -----------------------------------------------------------------------

GOALS = [
    recall("age > 30") >= 0.6,
    difference(recall, by="h") <= 0.2,
    precision(weight="amount"),
    churn("deployed", {"g": "a"}),
]


@pytest.mark.thorough
def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import dataset

    for number, part in enumerate(cut(TABLE, 250, 251)):
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    files = sorted(tmp_path.iterdir())
    for blocks in (tmp_path, str(tmp_path), files, tuple(map(str, files))):
        assert_same(blocks, GOALS, by="g", weight="w")
    assert_same([*files[1:], files[0]], GOALS)  # the order of rows is of no importance
    young = dataset.dataset(tmp_path).filter(dataset.field("age") < 40)
    assert_same(young, GOALS, TABLE[TABLE["age"] < 40])


@pytest.mark.thorough
def test_parquet_reads_only_what_is_needed(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from skbandit.datasets import _parquet

    TABLE.to_parquet(tmp_path / "table.parquet")
    calls, read = [], _parquet._read_batches
    monkeypatch.setattr(_parquet, "TABLE_ROWS", 70)
    monkeypatch.setattr(
        _parquet, "_read_batches", lambda *given: calls.append(given) or read(*given)
    )
    assert_same(tmp_path, GOALS, by="g", weight="w")
    assert set(calls[0][0].columns) == {"y", "p", "w", "g", "h", "age", "amount", "deployed"}
    assert_same(tmp_path, recall(old))  # a function may read any column
    assert calls[1][0].columns == TABLE.columns.tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("n_partitions", first(1, [20, 3, 1]))
def test_dask(n_partitions):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    goals = [*GOALS, positive_rate(old), recall(lambda table: table["age"] < 30)]
    frame = dd.from_pandas(TABLE, npartitions=n_partitions)
    assert_same(frame, goals, by="g", weight="w")
    assert_same(frame[frame["age"] < 40], GOALS, TABLE[TABLE["age"] < 40])


@pytest.mark.thorough
def test_tables_of_polars_pyarrow_and_csv(tmp_path):
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    goals = GOALS[:3]
    with pd.read_csv(tmp_path / "table.csv", chunksize=200) as blocks:
        assert_same(blocks, goals, by="g", weight="w")
    pl = pytest.importorskip("polars", reason="polars is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert_same(map(pl.from_pandas, cut(TABLE, 400)), goals, by="g")
    batches = pa.Table.from_pandas(TABLE.set_index("g")).to_batches(max_chunksize=400)
    assert_same(batches, goals, by="g")


@pytest.mark.thorough
def test_categories_dates_and_booleans():
    """Categories that only later blocks have; groups that are dates; labels that are booleans."""
    table = TABLE.assign(y=TABLE["y"] == 1, p=TABLE["p"] == 1, g=TABLE["g"].astype("category"))
    goals = [each(recall, by="g"), recall({"g": "late"}), each(recall, by="day")]
    assert_same(cut(table, 300, 570), goals, table, by=["day", "bold"])
    own = [part.assign(g=part["g"].cat.remove_unused_categories()) for part in cut(table, 300, 570)]
    assert_same(own, goals, table, by="g")


def test_integers_that_become_floats():
    """As read_csv returns a block with missing values."""
    table = TABLE.assign(h=TABLE["h"].mask(np.arange(N) == 450), y=TABLE["y"].astype(float))
    blocks = [TABLE[:400], table[400:500], TABLE[500:].convert_dtypes()]
    assert_same(blocks, [each(recall, by="h"), recall("h >= 2")], table, by="g")


def values_of(blocks, **options):
    options = {"y_true": None, "y_pred": "p", "by": "g"} | options
    report = rate_report_blocks(blocks, positive_rate(), **options)
    return dict(zip(report[options["by"]], report["value"], strict=True))


def parquet(folder, *tables):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for number, part in enumerate(tables):
        part.to_parquet(folder / f"{number}.parquet")
    return folder


def test_parquet_of_several_types(tmp_path):
    """Types of the first file, forced on the second, would merge groups 1 and 2, and weights."""
    first = pd.DataFrame({"p": [1, 1, 0, 1], "g": [True, False] * 2, "w": [True] * 4})
    second = pd.DataFrame({"p": [0, 1, 1, 0], "g": [1, 2] * 2, "w": [0.25, 0.5, 0.75, 0.0]})
    folder = parquet(tmp_path, first, second)
    expected = {"all": 4.25 / 5.5, 0: 1.0, 1: 1.75 / 3, 2: 1.0}
    for blocks in (folder, folder.glob("*.parquet"), f"{folder}/*.parquet", [first, second]):
        assert values_of(blocks, weight="w") == pytest.approx(expected)
    second["p"] = [2, 0, 2, 0]
    with pytest.raises(ValueError, match="there are 3"):
        values_of(parquet(tmp_path, first.assign(p=first["p"] == 1), second))
    text = second.assign(g=["01", "1"] * 2)
    with pytest.raises(ValueError, match=r"1\.parquet: column 'g' holds text .*: convert it"):
        values_of(parquet(tmp_path, second, text))


def test_parquet_in_folders(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pd.DataFrame({"p": [1, 1, 0, 0, 1], "g": ["east", "west", "east", "east", None]})
    table.to_parquet(tmp_path, partition_cols=["g"])
    expected = {"all": 0.6, "east": 1 / 3, "west": 1.0, "(missing)": 1.0}
    assert values_of(tmp_path) == pytest.approx(expected)


ORDER = ["low", "medium", "high"]


def test_ordered_categories_keep_their_order(tmp_path):
    groups = pd.Categorical(["high", "low", "medium", "high"], ORDER, ordered=True)
    table = pd.DataFrame({"p": [1, 0, 0, 0], "g": groups})
    expected = {"all": 0.25, "low": 0.0, "medium": 0.0, "high": 0.5}
    fewer = table[:2].assign(g=table["g"][:2].cat.remove_unused_categories())
    for blocks in ([table], [table[:1], table[1:]], [fewer, table[2:]], [table[2:], fewer]):
        assert list(values_of(blocks).items()) == list(expected.items())
    report = rate_report(table["p"], table["p"], positive_rate(), by="g", attributes=table)
    assert report["g"].tolist() == ["all", *ORDER]
    without = table.assign(g=None)
    assert [*values_of([table, without])] == ["all", *ORDER, "(missing)"]
    assert [*values_of(parquet(tmp_path, table, without))] == ["all", *ORDER, "(missing)"]
    other = table.assign(g=pd.Categorical(table["g"].astype(str), ORDER[::-1], ordered=True))
    assert [*values_of([table, other])] == ["all", "high", "low", "medium"]  # no order


def test_times_with_and_without_a_zone_are_no_groups_of_their_own():
    naive = pd.DataFrame({"p": [1, 0], "g": pd.Timestamp("2026-01-01")})
    zoned = naive.assign(g=naive["g"].dt.tz_localize("UTC"))
    for blocks in ([naive, zoned], [zoned, naive.astype({"g": object})]):
        with pytest.raises(ValueError, match=r"column 'g' holds .* convert it, as by dt.tz_loc"):
            values_of(blocks)
    moved = zoned.assign(g=zoned["g"].dt.tz_convert("Europe/Berlin"))
    assert values_of([zoned, moved]) == {"all": 0.5, zoned["g"][0]: 0.5}


def at_night(attributes):
    return attributes["t"].dt.hour < 6


@pytest.mark.parametrize("where", ["t < '2026-01-01 06:00'", at_night, {"t": "2026-01-01"}])
def test_conditions_on_local_times_need_one_zone(tmp_path, where):
    """Midnight in Berlin is of the day before in UTC: which rows counted depended on the block."""
    frame = pytest.importorskip("dask.dataframe").from_map
    times = pd.date_range("2026-01-01", periods=2, freq="12h", tz="Europe/Berlin")
    berlin = pd.DataFrame({"p": [1, 0], "t": times})
    utc = berlin.assign(t=berlin["t"].dt.tz_convert("UTC"))
    goal = positive_rate(where)

    def value(blocks):
        return rate_report_blocks(blocks, goal, y_true="p", y_pred="p")["value"][0]

    for parts in ((berlin, utc), (utc, berlin)):
        for blocks in (parts, parquet(tmp_path, *parts), frame(lambda k, p=parts: p[k], [0, 1])):
            refuses(
                "column 't' has the time zone .* convert it, as by dt.tz_convert", value, blocks
            )
    twin = berlin["t"].dt.tz_convert("Europe/Vienna")  # whose local times are the same
    unknown = berlin.assign(t=berlin["t"].where([False] * 2))
    assert value([berlin, berlin.assign(t=twin), unknown]) == 1
    goal = positive_rate("t < '2026-01-01 00:30+01:00'")
    assert value([berlin, utc]) == 1 == value(parquet(tmp_path, berlin, utc))


@pytest.mark.parametrize("goal", [recall() - recall(where="g == 'a'"), difference(recall, by="g")])
def test_dependent_rows_that_are_merged_leave_intervals_as_they_are(goal):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"person": rng.integers(0, 40, 1200), "g": rng.choice(["a", "b"], 1200)})
    table["y"] = rng.integers(0, 2, 1200)
    table["p"] = np.where(table["person"] % 4 == 0, table["y"], rng.integers(0, 2, 1200))
    table["number"] = np.arange(1200)
    bits = [
        positive_rate(where=lambda rows, k=k: rows["number"] // 2**k % 2 == 1) for k in range(11)
    ]
    options = {"y_true": "y", "y_pred": "p", "groups": "person"}
    report = rate_report_blocks([table], goal, **options)
    unmerged = rate_report_blocks([table], [goal, *bits], **options)  # no two rows are equal
    for name in ("value", "ci_low", "ci_high", "effective_n", "n_groups"):
        np.testing.assert_allclose(report[name], unmerged[name][: len(report)], rtol=1e-12)


# --- memory ----------------------------------------------------------------------------------


def test_blocks_are_read_one_at_a_time():
    alive = []

    def blocks():
        for part in cut(TABLE, *range(100, N, 100)):
            alive.append(part)
            yield part
            assert len(alive) == 1
            alive.clear()

    assert_same(blocks(), recall())


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"y_true": "z"}, ValueError, r"y_true: no column 'z' among \['g', 'h', 'age'"),
        ({"y_pred": "z"}, ValueError, "y_pred: no column 'z'"),
        ({"by": ["g", "z"]}, ValueError, r"by=\['g', 'z'\]: no column 'z'"),
        ({"goals": recall("z > 3")}, ValueError, r"recall\('z > 3'\): no column 'z'"),
        ({"goals": churn("z")}, ValueError, r"churn\('z'\): no column 'z'"),
        ({"goals": recall(weight="z")}, ValueError, r"weight='z'\): no column 'z'"),
        ({"goals": recall("age >")}, ValueError, "cannot evaluate the query 'age >'"),
        ({"goals": recall("g > 3")}, ValueError, r"recall\('g > 3'\): cannot evaluate"),
        ({"goals": recall("age")}, ValueError, "column 'age' must be boolean"),
        ({"goals": recall(weight="g")}, ValueError, "column 'g' is not numeric"),
        ({"goals": recall(weight="price")}, ValueError, "weights must be finite and not neg"),
        ({"goals": recall}, TypeError, "is not a rate or a constraint"),
        ({"goals": outcome("age")}, TypeError, "known for logged ones only"),
        ({"weight": "price"}, ValueError, "weight='price' must not be negative: row "),
        ({"y_true": TABLE["y"]}, TypeError, "y_true must be the name of a column .*, got Series"),
        ({"by": TABLE["g"]}, TypeError, "by must be a column name or a list of them, got Series"),
        ({"by": [3]}, TypeError, "by must list names"),
        ({"y_true": "tumor"}, ValueError, "y_true has labels .* encode both alike"),
        ({"confidence_level": 95}, ValueError, "confidence_level=95 must lie between"),
        ({"y_true": "tumor", "y_pred": "tumor"}, ValueError, r"recall\(of='benign'\)"),
        ({"labels": [0, 2]}, ValueError, r"y has \[1\], not among labels=\[0, 2\]"),
        ({"blocks": TABLE}, TypeError, r"for a single block, pass \[block\]"),
        ({"blocks": 3}, TypeError, "blocks must be an iterable of blocks, got int"),
        ({"blocks": []}, ValueError, "contains no rows: it is empty, or a generator that was"),
        ({"blocks": [(TABLE, TABLE)]}, TypeError, "a block must be a table, got tuple"),
        ({"blocks": "nowhere.parquet"}, FileNotFoundError, "blocks: no such file"),
    ],
)  # fmt: skip
def test_wrong_input(options, error, message):
    given = {"goals": recall(), "y_true": "y", "y_pred": "p", "blocks": [TABLE]} | options
    with pytest.raises(error, match=message):
        rate_report_blocks(given.pop("blocks"), given.pop("goals"), **given)


@pytest.mark.parametrize("on_dask", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part.assign(h=part["h"].astype(str)), r"'h' holds string .* '\d', and num"),
        (lambda part: part.assign(p=part["p"].mask(part["age"] < 30)), "'p' has missing values"),
        (lambda part: part.assign(w=-part["w"]), "must not be negative: row"),
    ],
)
def test_which_block_is_wrong(on_dask, change, message):
    blocks = cut(TABLE, 100, 300, 400)
    blocks[2] = change(blocks[2])
    if on_dask:
        dask = pytest.importorskip("dask", reason="dask is not installed")
        dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
        parts = [dask.delayed(part) for part in blocks]
        blocks = dd.from_delayed(parts, meta=TABLE[:0], verify_meta=False)
    goals = each(recall, by="h")
    with pytest.raises(ValueError, match=message) as caught:
        rate_report_blocks(blocks, goals, y_true="y", y_pred="p", weight="w")
    assert "In block 2, counted from 0." in caught.value.__notes__


def test_scores_and_groups_of_many_values_are_refused(monkeypatch):
    """Their combinations would need as much memory as the rows."""
    monkeypatch.setattr("skbandit.measure._merged.MOST_MERGED", 400)
    for options in ({"y_pred": "age"}, {"by": "age"}):
        given = {"y_true": "y", "y_pred": "p"} | options
        with pytest.raises(
            ValueError, match=r"400 combinations; column 'age' holds \d+ diff"
        ) as one:
            rate_report_blocks(cut(TABLE, 300), recall(), **given)
        assert "In block 1, counted from 0." in one.value.__notes__
    with pytest.raises(TypeError, match="column 'g': the values must be hashable"):
        rate_report_blocks([TABLE.assign(g=[[1]] * N)], recall(), y_true="y", y_pred="p", by="g")


def test_weights_that_are_zero():
    table = TABLE.assign(w=np.where(np.arange(N) < 400, 0.0, 2.0))
    assert_same(cut(table, 200, 400), GOALS, table, by="g", weight="w")
    with pytest.raises(ValueError, match="must not be zero for every row"):
        rate_report_blocks([table[:300]], recall(), y_true="y", y_pred="p", weight="w")


def test_rows_that_a_rate_does_not_count_may_have_any_weight_or_amount():
    odd = TABLE["age"] < 30
    table = TABLE.assign(
        amount=TABLE["amount"].mask(odd, [-1, np.nan, np.inf] * 200),
        price=TABLE["price"].mask(odd, np.nan),
        g=TABLE["g"].mask(odd, None),
    )
    goals = [
        recall("age >= 30", weight="amount"),
        cost({0: 0, 1: "price"}, "age >= 30", weight="amount"),
        each(lambda: recall(weight="amount"), by="g"),
        recall(),
    ]
    assert_same(cut(table, 111), goals, table, weight="w")
