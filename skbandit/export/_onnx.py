"""ONNX graphs of constrained classifiers: the inner model's own, and the rule behind it.

The inner model, with the steps of Pipelines, is converted by skl2onnx. What follows is in float64:
recalibration, the product with the table of costs of the row's group, and the least of them; or the
threshold of the group, for two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.constrained._linear import BaseRampClassifier
from skbandit.constrained.rules._recalibrate import SMALLEST
from skbandit.export._verify import (
    CURES,
    Rows,
    differing_columns,
    refused_columns,
    require_equal,
)
from skbandit.measure import Columns
from skbandit.utils._sklearn_compat import count_rows, import_optional
from skbandit.utils._validation import shortened

ZIPPED = SVC, NuSVC, SGDClassifier
"""Their converters return scores as maps without being asked."""

OPSET = 17
"""Of the operators; each runtime since 2022 has it."""


@dataclass
class Graph:
    """Nodes that are added to one another.

    Attributes
    ----------
    nodes, inputs, initializers : list
        In ONNX's own types.
    """

    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    initializers: list[Any] = field(default_factory=list)
    domains: dict[str, int] = field(default_factory=lambda: {"": OPSET})

    def add(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node, of the names of inputs or of constants; return the name of its output."""
        helper = import_optional("onnx.helper", "to_onnx")
        name = f"rule_{len(self.nodes)}"
        names = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        self.nodes.append(
            helper.make_node(operator, names, [name], domain=domain, name=name, **attributes)
        )
        if domain:
            self.domains[domain] = max(3, self.domains.get(domain, 0))
        return name

    def cast(self, name: str, kind: str) -> str:
        """Add a node that converts to a type of ONNX."""
        return self.add("Cast", name, to=getattr(_types(), kind))

    def rename(self, name: str, new: str) -> None:
        """Give an output another name."""
        helper = import_optional("onnx.helper", "to_onnx")
        self.nodes.append(helper.make_node("Identity", [name], [new]))

    def constant(self, values: Any) -> str:
        """Add an array."""
        helper = import_optional("onnx.numpy_helper", "to_onnx")
        name = f"constant_{len(self.initializers)}"
        values = np.asarray(values)
        self.initializers.append(
            helper.from_array(values.astype(object) if values.dtype.kind == "U" else values, name)
        )
        return name

    def column(self, name: Any, values: pd.Series) -> str:
        """Add a column as an input."""
        helper = import_optional("onnx.helper", "to_onnx")
        names = {"f": "FLOAT", "i": "INT64", "b": "BOOL", "s": "STRING"}
        kind = getattr(_types(), names[_kind(values)])
        self.inputs[str(name)] = helper.make_tensor_value_info(str(name), kind, [None, 1])
        return str(name)

    def include(self, model: Any, prefix: str, joined: pd.DataFrame | None, output: int) -> str:
        """Add the graph of an inner model; return the name of an output.

        Its inputs are of the same names, or one, of the joined columns of numbers.
        """
        compose = import_optional("onnx.compose", "to_onnx")
        model = compose.add_prefix(model, prefix, rename_inputs=joined is not None)
        if joined is None:
            self.inputs |= {entry.name: entry for entry in model.graph.input}
        else:
            parts = [self.cast(self.column(name, joined[name]), "FLOAT") for name in joined]
            self.rename(self.add("Concat", *parts, axis=1), model.graph.input[0].name)
        self.nodes += model.graph.node
        self.initializers += model.graph.initializer
        for domain in model.opset_import:
            self.domains[domain.domain] = max(domain.version, self.domains.get(domain.domain, 1))
        return str(model.graph.output[output].name)


def to_onnx(model: Any, X: Any, *, attributes: Any = None) -> Any:
    """Convert a fitted constrained classifier to an ONNX graph that decides as it does.

    The graph is run on X, and on rows made of it: with a missing value in each column that may
    have one, an unseen category in each column of text, and numbers between those of X at the
    borders of float32. What differs from `predict` beyond rounding is an error.

    Parameters
    ----------
    model : classifier with constraints, or Pipeline or search that ends with one
        A fitted `ConstrainedThreshold`, `ConstrainedReduction`, `ConstrainedRampClassifier` or
        `RampClassifier`.
    X : {array-like, DataFrame}
        Rows to verify, and for the types of the inputs: thousands if there are. An array is one
        input ``X`` of float32, and each column of a DataFrame is an input of its name: float32,
        int64, bool or text. A Series or list of texts is one input of text.
    attributes : DataFrame or dict of arrays, default=None
        The same of the columns `by`, unless X has them; each is an input, too.

    Returns
    -------
    onnx.ModelProto
        With one output, ``decision``: what `predict` returns. A row of a group, or with a missing
        value, that `predict` would refuse is an error there, too, and so is a missing value where X
        has none, unless the graph decides as `predict`. An unseen category that `predict` would
        refuse gets the decision of a row with none. Missing text is "", a missing number nan.

    Raises
    ------
    ImportError
        If skl2onnx or onnxruntime is not installed: ``pip install "skbandit[onnx]"``.
    ValueError
        If the model, or a part of it, has no converter, or the graph decides otherwise: with the
        step and the number of rows. If two groups of `by` would be one in the graph.

    See Also
    --------
    check : Compares the graph with the model.

    Notes
    -----
    Most converters of skl2onnx compute in float32, as their inputs are. So a decision may differ
    where two are as good up to about 1e-6.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skbandit import ConstrainedThreshold
    >>> from skbandit.export import check, to_onnx
    >>> from skbandit.rates import each, error_rate, recall
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConstrainedThreshold(
    ...     LogisticRegression(max_iter=1000), error_rate(), each(recall, of="classes") >= 0.8
    ... ).fit(X, y)
    >>> graph = to_onnx(model, X)
    >>> [output.name for output in graph.graph.output]
    ['decision']
    >>> len(check(graph, model, X))
    0
    """
    steps, rule = _parts(model)
    check_is_fitted(rule)
    rows = X, attributes

    def predict(asked: Rows) -> np.ndarray:
        return _predicted(steps, rule, *asked)

    def compare(asked: Rows) -> pd.DataFrame:
        return _differences(session, steps, rule, *asked)

    step = partial(_differing_step, steps, rule)
    refused = refused_columns(predict, rows)
    made = _made(steps, rule, rows, refused)
    session = _session(made, model)
    if more := differing_columns(compare, rows, refused):
        made = _made(steps, rule, rows, [*refused, *more])
        session = _session(made, model)
    require_equal(compare, predict, step, rows, [*refused, *more])
    return made


def _made(steps: Pipeline | None, rule: Any, rows: Rows, refused: list[Any]) -> Any:
    """Return the graph, in which missing values of some columns are an error."""
    helper = import_optional("onnx.helper", "to_onnx")
    graph, (X, attributes) = Graph(), rows
    index = _group_index(graph, rule, X, attributes)
    decision = _decided(graph, rule, steps, X, index)
    decision = _guarded(graph, decision, X, refused)
    labels = np.asarray(getattr(rule, "decisions_", rule.classes_))
    if labels.dtype.kind in "OUST":
        labels, kind = labels.astype(str), "STRING"
    elif labels.dtype.kind in "iu":
        labels, kind = labels.astype(np.int64), "INT64"
    else:
        kind = "BOOL" if labels.dtype.kind == "b" else "DOUBLE"
        labels = labels if kind == "BOOL" else labels.astype(float)
    graph.rename(graph.add("Gather", labels, decision, axis=0), "decision")
    body = helper.make_graph(
        graph.nodes,
        "skbandit",
        list(graph.inputs.values()),
        [helper.make_tensor_value_info("decision", getattr(_types(), kind), [None])],
        graph.initializers,
    )
    imports = [helper.make_opsetid(name, version) for name, version in graph.domains.items()]
    made = helper.make_model(body, opset_imports=imports, producer_name="skbandit", ir_version=8)
    import_optional("onnx.checker", "to_onnx").check_model(made)
    return made


def _session(onnx: Any, model: Any = None) -> Any:
    """Return a runtime of a graph, with an error that names the step of a model."""
    runtime = import_optional("onnxruntime", "to_onnx")
    content = onnx if isinstance(onnx, bytes) else onnx.SerializeToString()
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        if model is None:
            raise
        step, *_ = _lowering(model) or [_differing_step(*_parts(model), (None, None))]
        raise ValueError(
            f"{step}: the graph that skl2onnx makes of it does not load. "
            f"{_text_cure(model) or CURES} ({shortened(str(error), 200)})"
        ) from error


def _predicted(steps: Pipeline | None, rule: Any, X: Any, attributes: Any) -> np.ndarray:
    given = {} if attributes is None else {"attributes": attributes}
    return np.asarray(rule.predict(X if steps is None else steps.transform(X), **given))


def _differences(
    session: Any, steps: Pipeline | None, rule: Any, X: Any, attributes: Any
) -> pd.DataFrame:
    """Return the rows that differ, with their margins, and the largest margin as their scale."""
    feed = {entry.name: _fed(entry, X, attributes) for entry in session.get_inputs()}
    decided = session.run(None, feed)[0]
    predicted = _predicted(steps, rule, X, attributes)
    differ = np.flatnonzero(predicted.astype(decided.dtype) != decided)
    table = pd.DataFrame({"row": differ, "model": predicted[differ], "onnx": decided[differ]})
    if not len(differ):
        return table.assign(margin=np.zeros(0), scale=np.zeros(0))
    given = {} if attributes is None else {"attributes": attributes}
    inner = X if steps is None else steps.transform(X)
    if isinstance(rule, BaseRampClassifier) or rule._classes.of_two:
        margin = np.abs(rule.decision_function(inner, **given))
    else:
        costs = np.sort(rule.expected_costs(inner, **given).to_numpy(), axis=1)
        margin = costs[:, 1] - costs[:, 0]
    return table.assign(margin=margin[differ], scale=margin.max())


def _guarded(graph: Graph, decision: str, X: Any, refused: list[Any]) -> str:
    """Return places of decisions, beyond the last where a refused value is missing."""
    for name in refused if hasattr(X, "columns") else []:
        if _kind(X[name]) == "s":
            missing = graph.add(
                "LabelEncoder", str(name), domain="ai.onnx.ml",
                keys_strings=[""], values_int64s=[1], default_int64=0,
            )  # fmt: skip
        else:
            missing = graph.cast(graph.add("IsNaN", graph.cast(str(name), "FLOAT")), "INT64")
        decision = _beyond(graph, decision, missing)
    if refused and not hasattr(X, "columns"):
        columns = graph.add("Gather", "X", np.array(refused), axis=1)
        missing = graph.cast(graph.add("IsNaN", graph.cast(columns, "FLOAT")), "INT64")
        decision = _beyond(graph, decision, missing)
    return decision


def _beyond(graph: Graph, decision: str, missing: str) -> str:
    """Add to places what no decision has, where a column is 1."""
    any_missing = graph.add("ReduceMax", missing, axes=[1], keepdims=0)
    return graph.add("Add", decision, graph.add("Mul", any_missing, np.array(2**20)))


def _differing_step(steps: Pipeline | None, rule: Any, rows: Rows) -> str:
    """Return the name of the first step whose graph returns something else, or of the model."""
    inner = getattr(rule, "estimators_", None) or [getattr(rule, "estimator_", rule)]
    whole = Pipeline([*([] if steps is None else steps.steps), ("model", inner[0])])
    flat: list[Any] = []
    while isinstance(whole, Pipeline):
        flat += [step for _, step in whole.steps[:-1]]
        whole = whole.steps[-1][1]
    X, _ = rows
    for k in range(1, len(flat) + 1 if X is not None else 0):
        before = Pipeline([(f"step{n}", step) for n, step in enumerate(flat[:k])])
        graph = Graph()
        try:
            name = _converted(graph, before, X, "", {}, 0)
            types = import_optional("onnx.helper", "to_onnx")
            output = types.make_tensor_value_info(name, _types().FLOAT, None)
            body = types.make_graph(
                graph.nodes, "step", [*graph.inputs.values()], [output], graph.initializers
            )
            imports = [types.make_opsetid(*pair) for pair in graph.domains.items()]
            session = _session(types.make_model(body, opset_imports=imports, ir_version=8))
            feed = {entry.name: _fed(entry, X, None) for entry in session.get_inputs()}
            made, wanted = session.run(None, feed)[0], before.transform(X)
            wanted = wanted.toarray() if hasattr(wanted, "toarray") else np.asarray(wanted)
            equal = np.allclose(made, wanted, 1e-3, 1e-4, equal_nan=True)
        except Exception:
            equal = False
        if not equal:
            return type(flat[k - 1]).__name__
    return type(whole).__name__


def check(onnx: Any, model: Any, X: Any, *, attributes: Any = None) -> pd.DataFrame:
    """Compare the decisions of an ONNX graph with those of the model that it was made of.

    Parameters
    ----------
    onnx : onnx.ModelProto or bytes
        As `to_onnx` returns it, or as read from a file.
    model : estimator
    X, attributes : object
        Rows, as `to_onnx` and `predict` take them.

    Returns
    -------
    DataFrame
        The rows that differ: `row`, `model`, `onnx`, and `margin`, by which the decision of the
        model is better than the second best: of expected costs, or of scores.

    Raises
    ------
    TypeError
        If `onnx` is no graph, such as a model in its place.
    ImportError
        If onnxruntime is not installed: ``pip install "skbandit[onnx]"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.export import check, to_onnx
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> model = ConstrainedRampClassifier().fit(X, X[:, 0] > 0)
    >>> graph = to_onnx(model, X)
    >>> check(graph, model, X).columns.tolist()
    ['row', 'model', 'onnx', 'margin']
    """
    if not isinstance(onnx, bytes) and not hasattr(onnx, "SerializeToString"):
        raise TypeError(
            f"onnx={onnx!r} is no graph: pass what to_onnx returns, or the bytes of its file, "
            "before the model."
        )
    table = _differences(_session(onnx), *_parts(model), X, attributes)
    return table.drop(columns="scale")


def _types() -> Any:
    return import_optional("onnx", "to_onnx").TensorProto


def _parts(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps before the rule, and the rule."""
    while (inner := getattr(model, "best_estimator_", None)) is not None:
        model = inner
    steps = None
    if isinstance(model, Pipeline):
        steps, model = (model[:-1] if len(model.steps) > 1 else None), model.steps[-1][1]
    if not isinstance(model, BaseRampClassifier | ConstrainedThreshold | ConstrainedReduction):
        raise ValueError(
            f"{type(model).__name__} has no converter: pass a ConstrainedThreshold, "
            "ConstrainedReduction, ConstrainedRampClassifier or RampClassifier, or a Pipeline that "
            "ends with one."
        )
    return steps, model


def _decided(graph: Graph, rule: Any, steps: Pipeline | None, X: Any, index: str | None) -> str:
    """Return the places of decisions."""
    if isinstance(rule, BaseRampClassifier):
        linear = LogisticRegression()
        linear.coef_, linear.intercept_ = np.reshape(rule.coef_, (1, -1)), np.zeros(1)
        linear.intercept_ += rule.intercept_
        linear.classes_, linear.n_features_in_ = np.array([0, 1]), linear.coef_.shape[1]
        score = _response(graph, linear, steps, X, "decision_function", "inner_")
        return _above(graph, score, 0.0)
    method = rule.response_method_
    if method not in ("predict_proba", "decision_function"):
        raise ValueError(f"{type(rule).__name__} learns costs of decisions: it has no converter.")
    inner = rule.estimators_ if isinstance(rule, ConstrainedReduction) else [rule.estimator_]
    each = [
        _by_decision(graph, rule, estimator, steps, X, f"inner{k}_")
        for k, estimator in enumerate(inner)
    ]
    score = each[0]
    if len(each) > 1:
        score = graph.add("Mul", graph.add("Sum", *each), np.array(1.0 / len(each)))
    if rule._classes.of_two:
        sign = rule._classes.orientation
        fallback = vars(rule).get("threshold_", np.nan)
        if index is None:
            return _above(graph, score, sign * fallback)
        thresholds = sign * np.asarray(rule._group_thresholds, dtype=float)
        if rule.unseen != "error":
            thresholds = np.append(thresholds, sign * fallback)
        return _above(graph, score, graph.add("Gather", thresholds, index, axis=0))
    if rule._unknown_groups is not None:
        score = _joint(graph, rule, steps, X, score)
    if (recalibration := rule._recalibration) is not None:
        constants: Any = recalibration.constants
        is_last_used = rule._grouping is None or rule.unseen != "error"
        used = constants if is_last_used else constants[:-1]
        constants = used[-1:] if index is None else graph.add("Gather", used, index, axis=0)
        clipped = graph.add("Clip", score, np.array(SMALLEST), np.array(1.0))
        logits = graph.add("Div", graph.add("Log", clipped), np.array(recalibration.temperature))
        score = graph.add("Softmax", graph.add("Add", logits, constants), axis=1)
    tables = rule._tables_of_costs()
    if index is None:
        costs = graph.add("MatMul", score, tables.reshape(-1, tables.shape[2]))
    else:
        if rule.unseen != "error":
            tables = np.concatenate([tables, rule._tables_of_unseen()])
        of_row = graph.add("Gather", tables, index, axis=0)
        row = graph.add("Unsqueeze", score, np.array([1]))
        costs = graph.add("Squeeze", graph.add("MatMul", row, of_row), np.array([1]))
    return graph.add("ArgMin", costs, axis=1, keepdims=0)


def _above(graph: Graph, score: str, threshold: Any) -> str:
    """Return 1 where scores are above a threshold, else 0."""
    part = threshold if isinstance(threshold, str) else np.array(float(threshold))
    above = graph.add("Greater", score, part)
    return graph.cast(above, "INT64")


def _by_decision(
    graph: Graph, rule: Any, estimator: Any, steps: Pipeline | None, X: Any, prefix: str
) -> str:
    """Return the signed score of two classes, (n,), or probabilities of all decisions, (n, D)."""
    score = _response(graph, estimator, steps, X, rule.response_method_, prefix)
    if rule.response_method_ == "decision_function":
        return score
    labels = np.asarray(estimator.classes_).tolist()
    if rule._classes.of_two:
        sign = np.zeros((len(labels), 1))
        sign[labels.index(rule._classes.positive)] = rule._classes.orientation
        return graph.add("Reshape", graph.add("MatMul", score, sign), np.array([-1]))
    decisions = rule.decisions_.tolist()
    place = np.array([[float(label == decision) for decision in decisions] for label in labels])
    return graph.add("MatMul", score, place)


def _joint(graph: Graph, rule: Any, steps: Pipeline | None, X: Any, of_label: str) -> str:
    """Return probabilities of groups that are unknown and labels: see `UnknownGroups.joint`."""
    unknown = rule._unknown_groups
    n_groups, D = unknown.n_groups, len(rule.decisions_)
    fitted = rule.group_estimator_
    score = _response(graph, fitted, steps, X, rule.response_method_, "groups_")
    place = np.zeros((len(fitted.classes_), n_groups * D))
    place[np.arange(len(fitted.classes_)), np.asarray(fitted.classes_, dtype=int)] = 1.0
    strata = graph.add("Reshape", graph.add("MatMul", score, place), np.array([-1, n_groups, D]))
    total = graph.add("ReduceSum", strata, np.array([1]), keepdims=1)
    positive = graph.add("Greater", total, np.array(0.0))
    divisor = graph.add("Where", positive, total, np.array(1.0))
    share = graph.add("Div", strata, divisor)
    share = graph.add("Where", positive, share, np.array(1.0 / n_groups))
    joint = graph.add("Mul", graph.add("Unsqueeze", of_label, np.array([1])), share)
    return graph.add("Reshape", joint, np.array([-1, n_groups * D]))


def _response(
    graph: Graph, estimator: Any, steps: Pipeline | None, X: Any, method: str, prefix: str
) -> str:
    """Return probabilities (n, K), or scores (n,), of a model behind the steps, in float64."""
    before = [] if steps is None else steps.steps
    whole = Pipeline([*before, ("model", estimator)])
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    options = (
        {"zipmap": False} if isinstance(last, ZIPPED) or hasattr(last, "predict_proba") else {}
    )
    if method == "decision_function":
        options["raw_scores"] = True
    score = graph.cast(_converted(graph, whole, X, prefix, {id(last): options}, 1), "DOUBLE")
    if method == "predict_proba":
        return score
    # of two classes, converters return one column, or one for each class
    columns = graph.add("Reshape", score, np.array([0, -1]))
    return graph.add("Gather", columns, np.array(-1), axis=1)


def _converted(
    graph: Graph, whole: Pipeline, X: Any, prefix: str, options: dict[int, Any], output: int
) -> str:
    """Return the name of an output of steps in a graph."""
    skl2onnx = import_optional("skl2onnx", "to_onnx")
    first: Any = whole
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    frame = _as_frame(X)
    has_text = frame is not None and "s" in [_kind(frame[name]) for name in frame]
    joined = None if has_text or hasattr(first, "transformers") else frame
    try:
        model = skl2onnx.to_onnx(
            whole,
            initial_types=_input_types(X, frame if joined is None else None),
            options=options,
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )
    except Exception as error:  # of whatever type a converter raises
        last = whole
        while isinstance(last, Pipeline):
            last = last.steps[-1][1]
        raise ValueError(
            f"{type(last).__name__}, or a step before it, has no converter in skl2onnx that works: "
            f"{shortened(str(error), 200)} {_text_cure(whole)}".rstrip()
        ) from error
    return graph.include(model, prefix, joined, output)


def _as_frame(X: Any) -> pd.DataFrame | None:
    """Return a table of columns of their own: a DataFrame, or texts, one per row."""
    if hasattr(X, "columns"):
        return Columns.read(X, None, count_rows(X), "X").frame
    if np.ndim(X) == 1:
        name = getattr(X, "name", None)
        return pd.DataFrame({"X" if name is None else name: np.asarray(X, dtype=object)})
    return None


def _lowering(model: Any) -> list[str]:
    """Return the steps that lower texts, which needs a locale that a runtime may lack."""
    names = [name.split("__") for name, value in model.get_params().items() if value is True]
    return [name[-2] for name in names if len(name) > 1 and name[-1] == "lowercase"]


def _text_cure(model: Any) -> str:
    return "Set lowercase=False, and lower texts before." if _lowering(model) else ""


def _input_types(X: Any, frame: pd.DataFrame | None) -> list[tuple[str, Any]]:
    """Return names and types of the inputs: columns, or one of all numbers."""
    types = import_optional("skl2onnx.common.data_types", "to_onnx")
    if frame is None:
        return [("X", types.FloatTensorType([None, np.shape(X)[1]]))]
    made = {"f": types.FloatTensorType, "i": types.Int64TensorType, "b": types.BooleanTensorType}
    return [
        (str(name), made.get(_kind(frame[name]), types.StringTensorType)([None, 1]))
        for name in frame
    ]


def _kind(column: pd.Series) -> str:
    """Return f for floats, i for whole numbers, b for booleans, s for anything else."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return "b"
    if pd.api.types.is_integer_dtype(column.dtype):
        return "i"
    return "f" if pd.api.types.is_float_dtype(column.dtype) else "s"


def _group_index(graph: Graph, rule: Any, X: Any, attributes: Any) -> str | None:
    """Return the place of each row's group, unknown ones past the last; None without `by`."""
    grouping = getattr(rule, "_grouping", None)
    if grouping is None:
        return None
    if "X" in grouping.columns and not hasattr(X, "columns"):
        raise ValueError("by='X' is the name of the array of features, too: rename the column.")
    table = Columns.read(attributes, X, count_rows(X)).several(list(grouping.columns), "by")
    # a group of rows with any missing value
    has_blank = any(None in group for group in grouping.groups)
    groups = [group for group in grouping.groups if None not in group]
    if has_blank and any("" in group for group in groups):
        raise ValueError(
            'by= has groups "" and missing, which are one in a graph: name one of them otherwise.'
        )
    masks, missing = [], []
    for place, name in enumerate(grouping.columns):
        kind = _kind(table[graph.column(name, table[name])])
        values = np.array([[group[place] for group in groups]], dtype=object)
        if kind == "s":
            texts = [*dict.fromkeys(values[0].astype(str)), ""]
            column = graph.add(
                "LabelEncoder", name, domain="ai.onnx.ml", keys_strings=texts,
                values_int64s=list(range(len(texts))), default_int64=-1,
            )  # fmt: skip
            codes = np.array([[texts.index(str(value)) for value in values[0]]], dtype=np.int64)
            missing.append(graph.add("Equal", column, np.array([[len(texts) - 1]])))
        else:
            column = graph.cast(name, "DOUBLE")
            missing.append(graph.add("IsNaN", column))
            codes = values.astype(np.float32 if kind == "f" else float).astype(float)
            if kind == "f" and len({*codes[0]}) < len({*values[0]}):
                raise ValueError(
                    f"by={name!r} has groups that are equal in float32: round them, or name them."
                )
            if kind == "i" and all(isinstance(value, int) for value in values[0]):
                column, codes = name, values.astype(np.int64)  # of any number of digits
        masks.append(graph.add("Equal", column, codes))
    inside, lacking = masks[0], missing[0]
    for mask, more in zip(masks[1:], missing[1:], strict=True):
        inside, lacking = graph.add("And", inside, mask), graph.add("Or", lacking, more)
    true = graph.add("Or", lacking, graph.add("Not", lacking))
    padded = graph.add(
        "Concat", *([inside, lacking, true] if has_blank else [inside, true]), axis=1
    )
    # the first group that is the row's, or one past the last
    return graph.add("ArgMax", graph.cast(padded, "INT32"), axis=1, keepdims=0)


def _fed(entry: Any, X: Any, attributes: Any) -> np.ndarray:
    """Return the values of one input."""
    framed = hasattr(X, "columns")
    if np.ndim(X) == 1:
        X = _as_frame(X)
        framed = True
    elif entry.name == "X" and not framed:
        return np.asarray(X, dtype=np.float32)
    columns = Columns.read(attributes, X, count_rows(X))
    name = next((x for x in (X if framed else ()) if str(x) == entry.name), entry.name)
    column = columns.get(name, entry.name)
    if "string" in entry.type:
        values = column.astype(object).where(column.notna(), "").astype(str).to_numpy(object)
    else:
        kinds = {"tensor(int64)": np.int64, "tensor(bool)": np.bool_}
        values = column.to_numpy(dtype=kinds.get(entry.type, np.float32))
    return values.reshape(-1, 1)
