"""Graphs decide as models do, except where two decisions are as good."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skbandit import ConstrainedRampClassifier, ConstrainedThreshold
from skbandit.constrained import ConstrainedReduction
from skbandit.rates import each, error_rate, positive_rate, recall
from tests.tiers import first

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
import onnxruntime

from skbandit.export import check, to_onnx

pytestmark = pytest.mark.filterwarnings("ignore")  # of converters, and of few rows

W = np.random.default_rng(1).normal(size=(6, 4))
LEAST = 1e-5


def draw(n, k, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return X, np.array(list("abcd"))[(X @ W[:, :k] + rng.gumbel(size=(n, k))).argmax(axis=1)]


def table(X):
    frame = pd.DataFrame(X, columns=list("pqrstu"))
    return frame.assign(site=np.array(["n", "s", "w"])[(X[:, 0] > 0) + 1 * (X[:, 1] > 1)])


def assert_same(model, X, **rows):
    few = {name: value[:4] for name, value in rows.items()}
    graph = to_onnx(model, X[:4], **few)
    different = check(graph.SerializeToString(), model, X, **rows)
    assert (different["margin"] < LEAST).all()
    assert len(different) <= len(X) / 1000


MODELS = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(15, max_depth=6, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=8, random_state=0),
    "pipeline": make_pipeline(
        make_column_transformer((StandardScaler(), list("pqrstu")), (OneHotEncoder(), ["site"])),
        LogisticRegression(),
    ),
}
GOALS = {2: [recall(of="a") >= 0.6], 3: [each(recall, of="classes") >= 0.4]}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", first(1, [2000, 20_000]))
def test_threshold(name, k, n):
    (X, y), (new, _) = draw(900, k, 0), draw(n, k, 1)
    if name == "pipeline":
        X, new = table(X), table(new)
    model = ConstrainedThreshold(MODELS[name], error_rate(), GOALS[k], pos_label="a", cv=3)
    assert_same(model.fit(X, y), new)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [2, 3])
def test_other_decisions(k):
    (X, y), (new, _) = draw(900, k, 0), draw(3000, k, 1)
    goals = [*GOALS[k], positive_rate(of="review") <= 0.1]
    model = ConstrainedThreshold(
        LogisticRegression(), error_rate(), goals, other_decisions=["review"], pos_label="a", cv=3
    )
    assert_same(model.fit(X, y), new)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("unseen", ["error", "overall"])
def test_groups(k, unseen):
    (X, y), (new, _) = draw(1500, k, 0), draw(3000, k, 1)
    goal = each(recall(of="a"), by="site") >= 0.5
    model = ConstrainedThreshold(
        MODELS["forest"], error_rate(), [goal, *GOALS[k]], by="site", unseen=unseen,
        pos_label="a", cv=3,
    )  # fmt: skip
    model.fit(X, y, attributes=table(X)[["site"]])
    sites = table(new)[["site"]]
    assert_same(model, new, attributes=sites)
    graph = to_onnx(model, new[:4], attributes=sites[:4])
    sites = sites.assign(site="elsewhere")
    if unseen == "overall":
        assert (check(graph, model, new, attributes=sites)["margin"] < LEAST).all()
    else:
        from onnxruntime import InferenceSession

        session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        feed = {"X": new[:2], "site": np.array([["elsewhere"], ["n"]], dtype=object)}
        with pytest.raises(Exception, match="out of data bounds"):
            session.run(None, feed)


@pytest.mark.thorough
def test_groups_of_two_columns_with_missing_values():
    (X, y), (new, _) = draw(2000, 3, 0), draw(3000, 3, 1)

    def columns(rows):
        flag = (np.arange(len(rows)) % 2).astype(float)
        return table(rows)[["site"]].assign(flag=np.where(np.arange(len(rows)) % 50, flag, np.nan))

    by = ["site", "flag"]
    model = ConstrainedThreshold(
        LogisticRegression(), error_rate(), [each(recall(of="a"), by=by) >= 0.3], by=by, cv=3
    ).fit(X, y, attributes=columns(X))
    assert_same(model, new, attributes=columns(new))


@pytest.mark.thorough
def test_groups_that_predictions_do_not_know():
    (X, y), (new, _) = draw(1500, 3, 0), draw(3000, 3, 1)
    goal = each(recall(of="a"), by="site") >= 0.5
    model = ConstrainedThreshold(MODELS["forest"], error_rate(), goal, cv=3)
    assert_same(model.fit(X, y, attributes=table(X)[["site"]]), new)


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedThreshold(LinearSVC(), error_rate(), recall() >= 0.6, pos_label="a", cv=3),
        ConstrainedThreshold(
            LogisticRegression(), error_rate(), recall() >= 0.6, pos_label="b", cv=3,
            response_method="decision_function",
        ),
        ConstrainedReduction(LogisticRegression(), error_rate(), recall() >= 0.6, pos_label="a"),
        make_pipeline(
            StandardScaler(),
            ConstrainedRampClassifier(error_rate(), recall() >= 0.6, pos_label="a", cv=2),
        ),
    ],
    ids=["svc", "scores", "reduction", "ramp"],
)  # fmt: skip
def test_other_rules(model):
    (X, y), (new, _) = draw(600, 2, 0), draw(3000, 2, 1)
    assert_same(model.fit(X, y), new)


def numbers(X, dtype=float):
    return pd.DataFrame(np.round(8 * X), columns=list("pqrstu")).astype(dtype)


@pytest.mark.parametrize(
    "make",
    [
        numbers,
        lambda X: numbers(X, int),
        lambda X: numbers(X).assign(r=X[:, 2] > 0, s=(9 * X[:, 3]).astype("int8")),
        lambda X: numbers(X).set_axis(range(6), axis=1),
        lambda X: numbers(X).rename(columns={"p": "a name"}),
    ],
    ids=["floats", "ints", "mixed", "numbers as names", "spaces"],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_tables_of_numbers(make, scaled):
    (X, y), (new, _) = draw(600, 2, 0), draw(2000, 2, 1)
    model = ConstrainedThreshold(
        LogisticRegression(C=0.01), error_rate(), GOALS[2], pos_label="a", cv=3
    )
    model = make_pipeline(StandardScaler(), model) if scaled else model
    names = [entry.name for entry in to_onnx(model.fit(make(X), y), make(X)).graph.input]
    assert names == [str(name) for name in make(X)]
    assert_same(model, make(new))


@pytest.mark.thorough
def test_table_of_numbers_of_which_one_is_the_group():
    (X, y), (new, _) = draw(900, 2, 0), draw(2000, 2, 1)
    first, second = (numbers(part).assign(k=(part[:, 0] > 0) * 1) for part in (X, new))
    ramp = ConstrainedRampClassifier(error_rate(), recall() >= 0.6, pos_label="a", cv=2)
    by = ConstrainedThreshold(
        LogisticRegression(C=0.01), error_rate(), GOALS[2], by="k", pos_label="a", cv=3
    )
    for model in (ramp, by):
        assert_same(model.fit(first, y), second)


@pytest.mark.thorough
def test_groups_that_are_long_numbers():
    (X, y), (new, _) = draw(900, 2, 0), draw(2000, 2, 1)
    first, second = (pd.DataFrame({"k": 2**53 + (part[:, 0] > 0)}) for part in (X, new))
    model = ConstrainedThreshold(
        LogisticRegression(), error_rate(), GOALS[2], by="k", pos_label="a", cv=3
    ).fit(X, y, attributes=first)
    assert model.thresholds_.nunique() == 2
    assert_same(model, new, attributes=second)
    with pytest.raises(ValueError, match="by='X' is the name of the array"):
        model = model.set_params(by="X").fit(X, y, attributes=first.set_axis(["X"], axis=1))
        to_onnx(model, X, attributes=first.set_axis(["X"], axis=1))


def test_whole_numbers_as_labels():
    X, y = draw(600, 2, 0)
    model = ConstrainedThreshold(LogisticRegression(), error_rate(), recall() >= 0.6, cv=3)
    assert_same(model.fit(X, (y == "a").astype(int)), X)


def test_a_difference_is_found():
    (X, y), (new, _) = draw(600, 2, 0), draw(500, 2, 1)
    model = ConstrainedThreshold(LogisticRegression(), error_rate(), GOALS[2], pos_label="a", cv=3)
    graph = to_onnx(model.fit(X, y), X[:2])
    model.threshold_ += 0.1
    table = check(graph, model, new)
    assert len(table) and (table["margin"] <= 0.1 + 1e-6).all()
    assert (table["model"] != table["onnx"]).all()


def test_models_without_converter_are_named():
    X, y = draw(300, 2, 0)
    with pytest.raises(ValueError, match="KNeighborsClassifier has no converter"):
        to_onnx(KNeighborsClassifier().fit(X, y), X)

    class Own(LogisticRegression):
        pass

    model = ConstrainedThreshold(Own(), error_rate(), GOALS[2], pos_label="a", cv=3).fit(X, y)
    with pytest.raises(ValueError, match=r"Own.* has no converter in skl2onnx"):
        to_onnx(model, X)


# --- verification ------------------------------------------------------------------------


def people(n=1500):
    """Numbers and text, of which some are missing, which tells of the label."""
    rng = np.random.default_rng(0)
    X, miss = rng.normal(size=(n, 2)), rng.random(n) < 0.3
    y = np.where(X[:, 1] + 2 * miss + rng.logistic(size=n) > 0.7, "yes", "no")
    holes = X.copy()
    holes[miss, 0] = np.nan
    return X, holes, pd.DataFrame({"a": X[:, 1], "c": np.where(miss, None, "u")}), y


def rule_of(estimator, X, y):
    return ConstrainedThreshold(estimator, error_rate(), recall(of="yes") >= 0.8, cv=3).fit(X, y)


def encoded():
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]), remainder="passthrough"
    )
    return make_pipeline(encoder, LogisticRegression())


@pytest.mark.parametrize(
    "make, which, step",
    [
        (
            lambda: make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression()),
            1,
            "SimpleImputer",
        ),
        (
            lambda: RandomForestClassifier(30, max_depth=5, random_state=0),
            1,
            "RandomForestClassifier",
        ),
        (LinearDiscriminantAnalysis, 0, "LinearDiscriminantAnalysis"),
        (encoded, 2, "ColumnTransformer"),
    ],
)
def test_to_onnx_refuses_graphs_that_decide_otherwise(make, which, step):
    *tables, y = people()
    model = rule_of(make(), tables[which], y)
    with pytest.raises(ValueError, match=rf"^{step}: .* in \d+ of 1500 rows of X.*imputer"):
        to_onnx(model, tables[which])


@pytest.mark.parametrize(
    "make, which",
    [
        (lambda: make_pipeline(SimpleImputer(), LogisticRegression()), 1),
        (SVC, 0),
        (lambda: SGDClassifier(random_state=0), 0),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()), 0),
        (lambda: make_pipeline(StandardScaler(), LinearSVC()), 0),
    ],
)
def test_graphs_that_decide_as_predict(make, which):
    *tables, y = people()
    model = rule_of(make(), tables[which], y)
    assert not len(check(to_onnx(model, tables[which]), model, tables[which]))


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("forest", [False, True])
def test_a_missing_value_that_the_graph_would_decide_otherwise_is_an_error_there(framed, forest):
    X, holes, _, y = people()
    if framed:
        X, holes = (pd.DataFrame(table, columns=["a", "b"]) for table in (X, holes))
    model = rule_of(
        RandomForestClassifier(20, random_state=0) if forest else LogisticRegression(), X, y
    )
    graph = to_onnx(model, X)
    assert not len(check(graph, model, X))
    feed = {"X": holes.astype("f4")}
    if framed:
        feed = {name: holes[[name]].to_numpy("f4") for name in holes}
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, feed)


def test_groups_that_a_graph_would_merge_are_refused():
    X, _, _, y = people()
    group = np.array(["", "x", None], dtype=object)[np.arange(len(y)) % 3]
    for values, message in (
        (group, 'groups "" and missing'),
        (1 + (np.arange(len(y)) % 2) * 1e-9, "equal in float32"),
    ):
        model = ConstrainedThreshold(
            LogisticRegression(), error_rate(), recall(of="yes") >= 0.7, by="g", cv=3
        ).fit(X, y, attributes={"g": values})
        with pytest.raises(ValueError, match=message):
            to_onnx(model, X, attributes={"g": values})


def test_numbers_of_many_digits_are_refused():
    X, _, _, y = people()
    far = X + 1e9
    model = rule_of(make_pipeline(StandardScaler(), LogisticRegression()), far, y)
    with pytest.raises(ValueError, match=r"\d+ of 1500 rows change as numbers become float32"):
        to_onnx(model, far)


@pytest.mark.parametrize("kind", ["series", "list", "frame"])
def test_texts(kind):
    rng = np.random.default_rng(0)
    words = np.array(["good", "Bad", "fine", "ugly", "nice", "poor"])
    texts = pd.Series([" ".join(rng.choice(words, 6)) for _ in range(600)], name="text")
    y = np.where(texts.str.count("good|nice|fine") + rng.logistic(size=600) / 2 > 3, "yes", "no")
    steps = TfidfVectorizer(lowercase=False)
    steps = make_column_transformer((steps, "text")) if kind == "frame" else steps
    X = {"series": texts, "list": texts.tolist(), "frame": texts.to_frame()}[kind]
    model = rule_of(make_pipeline(steps, LogisticRegression()), X, y)
    graph = to_onnx(model, X)
    assert [entry.name for entry in graph.graph.input] == ["X" if kind == "list" else "text"]
    assert not len(check(graph, model, X))
