"""ONNX graphs of constrained classifiers: the inner model's own, and the rule behind it.

The inner model, with the steps of Pipelines, is converted by skl2onnx. What follows is in float64:
recalibration, the product with the table of costs of the row's group, and the least of them; or the
threshold of the group, for two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
from skbandit.export._verify import CURES, Rows, guarded_columns, require_equal
from skbandit.measure import Columns
from skbandit.utils._sklearn_compat import count_rows, import_optional
from skbandit.utils._validation import shortened

ZIPPED = SVC, NuSVC, SGDClassifier
"""Their converters return scores as maps without being asked."""

OPSET = 17
"""Version of the operators; each runtime since 2022 has it."""

LABELS: dict[str, tuple[str, type]] = {
    "OUST": ("STRING", str),
    "iu": ("INT64", np.int64),
    "b": ("BOOL", np.bool_),
    "f": ("DOUBLE", float),
}
"""Types of decisions in a graph, and in numpy, by the kinds of their dtype."""


@dataclass(kw_only=True)
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
        return self.add("Cast", name, to=_type(kind))

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
        names = {"f": "FLOAT", "i": "INT64", "b": "BOOL", "s": "STRING"}
        self.inputs[str(name)] = _value(str(name), names[_kind(values)], [None, 1])
        return str(name)

    def is_missing(self, name: str, kind: str) -> str:
        """Add a node that is 1 where a value of text or a number is missing."""
        if kind == "s":
            return self.places(name, [""], 0, first=1)
        return self.cast(self.add("IsNaN", self.cast(name, "FLOAT")), "INT64")

    def places(self, name: str, texts: list[str], other: int, first: int = 0) -> str:
        """Add a node of the places of texts in a list, from a first one on, or of any other."""
        return self.add(
            "LabelEncoder", name, domain="ai.onnx.ml", keys_strings=texts,
            values_int64s=list(range(first, first + len(texts))), default_int64=other,
        )  # fmt: skip

    def convert(
        self, whole: Pipeline, X: Any, prefix: str, options: dict[int, Any], output: int
    ) -> str:
        """Add the graph of steps that skl2onnx makes; return the name of an output.

        Its inputs are of the same names, or one, of the joined columns of numbers.
        """
        skl2onnx = import_optional("skl2onnx", "to_onnx")
        first: Any = whole
        while isinstance(first, Pipeline):
            first = first.steps[0][1]
        frame = _as_frame(X)
        has_text = frame is not None and "s" in [_kind(frame[name]) for name in frame]
        joined = None if has_text or hasattr(first, "transformers") else frame
        types = import_optional("skl2onnx.common.data_types", "to_onnx")
        if frame is None or joined is not None:
            inputs = [("X", types.FloatTensorType([None, np.shape(X)[1]]))]
        else:
            made = {
                "f": types.FloatTensorType, "i": types.Int64TensorType,
                "b": types.BooleanTensorType, "s": types.StringTensorType,
            }  # fmt: skip
            inputs = [(str(name), made[_kind(frame[name])]([None, 1])) for name in frame]
        try:
            model = skl2onnx.to_onnx(
                whole,
                initial_types=inputs,
                options=options,
                target_opset={"": OPSET, "ai.onnx.ml": 3},
            )
        except Exception as error:  # of whatever type a converter raises
            raise ValueError(
                f"{type(_flat(whole)[-1]).__name__}, or a step before it, has no converter in "
                f"skl2onnx that works: {shortened(str(error), 200)} {_text_cure(whole)}".rstrip()
            ) from error
        compose = import_optional("onnx.compose", "to_onnx")
        model = compose.add_prefix(model, prefix, rename_inputs=joined is not None)
        if joined is None:
            self.inputs |= {entry.name: entry for entry in model.graph.input}
        else:
            parts = [self.cast(self.column(name, joined[name]), "FLOAT") for name in joined]
            self.rename(self.add("Concat", *parts, axis=1), model.graph.input[0].name)
        self.nodes += model.graph.node
        self.initializers += model.graph.initializer
        for entry in model.opset_import:
            self.domains[entry.domain] = max(entry.version, self.domains.get(entry.domain, 1))
        return str(model.graph.output[output].name)

    def model(self, output: str, kind: str, shape: Any = None) -> Any:
        """Return all that was added as a model of one output."""
        helper = import_optional("onnx.helper", "to_onnx")
        outputs = [_value(output, kind, shape)]
        inputs = [*self.inputs.values()]
        body = helper.make_graph(self.nodes, "skbandit", inputs, outputs, self.initializers)
        imports = [helper.make_opsetid(*pair) for pair in self.domains.items()]
        return helper.make_model(
            body, opset_imports=imports, producer_name="skbandit", ir_version=8
        )


@dataclass(frozen=True)
class Exported:
    """A constrained classifier, and the steps before it."""

    steps: Pipeline | None
    rule: Any

    @classmethod
    def of(cls, model: Any) -> Exported:
        """Return the parts of a model, a Pipeline or a search."""
        while (inner := getattr(model, "best_estimator_", None)) is not None:
            model = inner
        steps = None
        if isinstance(model, Pipeline):
            steps, model = (model[:-1] if len(model.steps) > 1 else None), model.steps[-1][1]
        if not isinstance(model, BaseRampClassifier | ConstrainedThreshold | ConstrainedReduction):
            raise ValueError(
                f"{type(model).__name__} has no converter: pass a ConstrainedThreshold, "
                "ConstrainedReduction, ConstrainedRampClassifier or RampClassifier, or a Pipeline "
                "that ends with one."
            )
        return cls(steps, model)

    @property
    def estimators(self) -> list[Any]:
        """The inner models, or the rule itself."""
        return getattr(self.rule, "estimators_", [getattr(self.rule, "estimator_", self.rule)])

    def behind(self, estimator: Any) -> Pipeline:
        """Return an inner model behind the steps."""
        flat = [*(_flat(self.steps) if self.steps else []), *_flat(estimator)]
        return Pipeline([(f"step{k}", step) for k, step in enumerate(flat)])

    def read(self, rows: Rows) -> tuple[Any, dict[str, Any]]:
        """Return rows as the rule takes them."""
        X, attributes = rows
        given = {} if attributes is None else {"attributes": attributes}
        return X if self.steps is None else self.steps.transform(X), given

    def predict(self, rows: Rows) -> np.ndarray:
        """Return decisions."""
        X, given = self.read(rows)
        return np.asarray(self.rule.predict(X, **given))

    def differences(self, session: Any, rows: Rows) -> pd.DataFrame:
        """Return the rows that differ, with their margins, and the largest one as their scale."""
        decided = _run(session, *rows)
        predicted = self.predict(rows)
        differ = np.flatnonzero(predicted.astype(decided.dtype) != decided)
        table = pd.DataFrame({"row": differ, "model": predicted[differ], "onnx": decided[differ]})
        if not len(differ):
            return table.assign(margin=np.zeros(0), scale=np.zeros(0))
        X, given = self.read(rows)
        if isinstance(self.rule, BaseRampClassifier) or self.rule._classes.of_two:
            margin = np.abs(self.rule.decision_function(X, **given))
        else:
            costs = np.sort(self.rule.expected_costs(X, **given).to_numpy(), axis=1)
            margin = costs[:, 1] - costs[:, 0]
        return table.assign(margin=margin[differ], scale=margin.max())

    def differing_step(self, X: Any) -> str:
        """Return the name of the first step whose graph returns something else, or of the model."""
        *flat, model = _flat(self.behind(self.estimators[0]))
        for k in range(1, len(flat) + 1 if X is not None else 0):
            before = Pipeline([(f"step{n}", step) for n, step in enumerate(flat[:k])])
            graph = Graph()
            try:
                output = graph.convert(before, X, "", {}, 0)
                made = _run(_session(graph.model(output, "FLOAT")), X, None)
                wanted = before.transform(X)
                wanted = wanted.toarray() if hasattr(wanted, "toarray") else np.asarray(wanted)
                equal = np.allclose(made, wanted, 1e-3, 1e-4, equal_nan=True)
            except Exception:
                equal = False
            if not equal:
                return type(flat[k - 1]).__name__
        return type(model).__name__


@dataclass(kw_only=True)
class RuleGraph(Graph):
    """A graph of a rule, with inputs as rows have them."""

    exported: Exported
    rows: Rows

    def finished(self, guarded: list[Any]) -> Any:
        """Return the model, in which missing values of some columns are an error."""
        rule, X = self.exported.rule, self.rows[0]
        decision = self._decided(self._group_index())
        if hasattr(X, "columns"):
            missing = [self.is_missing(str(name), _kind(X[name])) for name in guarded]
        else:
            columns = [self.add("Gather", "X", np.array(guarded), axis=1)] if guarded else []
            missing = [self.is_missing(name, "f") for name in columns]
        for is_missing in missing:  # a place that no decision has
            any_missing = self.add("ReduceMax", is_missing, axes=[1], keepdims=0)
            decision = self.add("Add", decision, self.add("Mul", any_missing, np.array(2**20)))
        labels = np.asarray(getattr(rule, "decisions_", rule.classes_))
        kind, dtype = next(row for kinds, row in LABELS.items() if labels.dtype.kind in kinds)
        self.rename(self.add("Gather", labels.astype(dtype), decision, axis=0), "decision")
        made = self.model("decision", kind, [None])
        import_optional("onnx.checker", "to_onnx").check_model(made)
        return made

    def _decided(self, index: str | None) -> str:
        """Return the places of decisions, of rows whose groups have places."""
        rule = self.exported.rule
        if isinstance(rule, BaseRampClassifier):
            linear = LogisticRegression()
            linear.coef_, linear.intercept_ = np.reshape(rule.coef_, (1, -1)), np.zeros(1)
            linear.intercept_ += rule.intercept_
            linear.classes_, linear.n_features_in_ = np.array([0, 1]), linear.coef_.shape[1]
            score = self._response(linear, "decision_function", "inner_")
            return self._above(score, np.array(0.0))
        if rule.response_method_ not in ("predict_proba", "decision_function"):
            raise ValueError(
                f"{type(rule).__name__} learns costs of decisions: it has no converter."
            )
        each = [
            self._by_decision(estimator, f"inner{k}_")
            for k, estimator in enumerate(self.exported.estimators)
        ]
        score = each[0]
        if len(each) > 1:
            score = self.add("Mul", self.add("Sum", *each), np.array(1.0 / len(each)))
        keeps_unseen = rule._grouping is not None and rule.unseen != "error"
        if rule._classes.of_two:
            sign = rule._classes.orientation
            thresholds = sign * np.asarray(rule._rule.thresholds, dtype=float)
            if index is None:
                return self._above(score, thresholds[0])
            thresholds = thresholds if keeps_unseen else thresholds[:-1]
            return self._above(score, self.add("Gather", thresholds, index, axis=0))
        if rule._unknown_groups is not None:
            score = self._joint(score)
        if (recalibration := rule._recalibration) is not None:
            constants: Any = recalibration.constants
            used = constants if rule._grouping is None or keeps_unseen else constants[:-1]
            constants = used[-1:] if index is None else self.add("Gather", used, index, axis=0)
            clipped = self.add("Clip", score, np.array(SMALLEST), np.array(1.0))
            logits = self.add("Div", self.add("Log", clipped), np.array(recalibration.temperature))
            score = self.add("Softmax", self.add("Add", logits, constants), axis=1)
        tables = rule._tables_of_costs()
        tables = tables if keeps_unseen else tables[:-1]
        if index is None:
            costs = self.add("MatMul", score, tables.reshape(-1, tables.shape[2]))
        else:
            of_row = self.add("Gather", tables, index, axis=0)
            row = self.add("Unsqueeze", score, np.array([1]))
            costs = self.add("Squeeze", self.add("MatMul", row, of_row), np.array([1]))
        return self.add("ArgMin", costs, axis=1, keepdims=0)

    def _above(self, score: str, threshold: Any) -> str:
        """Return 1 where scores are above thresholds, else 0."""
        return self.cast(self.add("Greater", score, threshold), "INT64")

    def _by_decision(self, estimator: Any, prefix: str) -> str:
        """Return the signed score of two classes, (n,), or probabilities of decisions, (n, D)."""
        rule = self.exported.rule
        score = self._response(estimator, rule.response_method_, prefix)
        if rule.response_method_ == "decision_function":
            return score
        labels = np.asarray(estimator.classes_).tolist()
        if rule._classes.of_two:
            sign = np.zeros((len(labels), 1))
            sign[labels.index(rule._classes.positive)] = rule._classes.orientation
            return self.add("Reshape", self.add("MatMul", score, sign), np.array([-1]))
        decisions = rule.decisions_.tolist()
        place = np.array([[float(label == decision) for decision in decisions] for label in labels])
        return self.add("MatMul", score, place)

    def _joint(self, of_label: str) -> str:
        """Return probabilities of unknown groups and labels: see `UnknownGroups.joint`."""
        rule = self.exported.rule
        n_groups, D = rule._unknown_groups.n_groups, len(rule.decisions_)
        fitted = rule.group_estimator_
        score = self._response(fitted, rule.response_method_, "groups_")
        place = np.zeros((len(fitted.classes_), n_groups * D))
        place[np.arange(len(fitted.classes_)), np.asarray(fitted.classes_, dtype=int)] = 1.0
        shape = np.array([-1, n_groups, D])
        strata = self.add("Reshape", self.add("MatMul", score, place), shape)
        total = self.add("ReduceSum", strata, np.array([1]), keepdims=1)
        positive = self.add("Greater", total, np.array(0.0))
        share = self.add("Div", strata, self.add("Where", positive, total, np.array(1.0)))
        share = self.add("Where", positive, share, np.array(1.0 / n_groups))
        joint = self.add("Mul", self.add("Unsqueeze", of_label, np.array([1])), share)
        return self.add("Reshape", joint, np.array([-1, n_groups * D]))

    def _response(self, estimator: Any, method: str, prefix: str) -> str:
        """Return probabilities (n, K), or scores (n,), of a model behind the steps, in float64."""
        whole = self.exported.behind(estimator)
        last = _flat(whole)[-1]
        is_zipped = isinstance(last, ZIPPED) or hasattr(last, "predict_proba")
        options = {"zipmap": False} if is_zipped else {}
        if method == "decision_function":
            options["raw_scores"] = True
        score = self.convert(whole, self.rows[0], prefix, {id(last): options}, 1)
        score = self.cast(score, "DOUBLE")
        if method == "predict_proba":
            return score
        # of two classes, converters return one column, or one for each class
        columns = self.add("Reshape", score, np.array([0, -1]))
        return self.add("Gather", columns, np.array(-1), axis=1)

    def _group_index(self) -> str | None:
        """Return the place of each row's group, unknown ones past the last; None without `by`."""
        grouping, (X, attributes) = getattr(self.exported.rule, "_grouping", None), self.rows
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
                'by= has groups "" and missing, which are one in a graph: name one of them '
                "otherwise."
            )
        masks, missing = [], []
        for place, name in enumerate(grouping.columns):
            kind = _kind(table[self.column(name, table[name])])
            values = np.array([[group[place] for group in groups]], dtype=object)
            if kind == "s":
                texts = [*dict.fromkeys(values[0].astype(str)), ""]
                column = self.places(name, texts, -1)
                codes = np.array([[texts.index(str(value)) for value in values[0]]], dtype=np.int64)
                missing.append(self.add("Equal", column, np.array([[len(texts) - 1]])))
            else:
                column = self.cast(name, "DOUBLE")
                missing.append(self.add("IsNaN", column))
                codes = values.astype(np.float32 if kind == "f" else float).astype(float)
                if kind == "f" and len({*codes[0]}) < len({*values[0]}):
                    raise ValueError(
                        f"by={name!r} has groups that are equal in float32: round them, or name "
                        "them."
                    )
                if kind == "i" and all(isinstance(value, int) for value in values[0]):
                    column, codes = name, values.astype(np.int64)  # of any number of digits
            masks.append(self.add("Equal", column, codes))
        inside, lacking = masks[0], missing[0]
        for mask, more in zip(masks[1:], missing[1:], strict=True):
            inside, lacking = self.add("And", inside, mask), self.add("Or", lacking, more)
        true = self.add("Or", lacking, self.add("Not", lacking))
        padded = self.add(
            "Concat", *([inside, lacking, true] if has_blank else [inside, true]), axis=1
        )
        # the first group that is the row's, or one past the last
        return self.add("ArgMax", self.cast(padded, "INT32"), axis=1, keepdims=0)


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
    exported, rows = Exported.of(model), (X, attributes)
    check_is_fitted(exported.rule)

    def session_of(guarded: list[Any]) -> tuple[Any, Any]:
        made = RuleGraph(exported=exported, rows=rows).finished(guarded)
        return made, _session(made, model)

    made, session = session_of([])
    guarded = guarded_columns(exported, session, rows)
    if guarded:
        made, session = session_of(guarded)
    require_equal(exported, session, rows, guarded)
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
        step, *_ = _lowering(model) or [Exported.of(model).differing_step(None)]
        raise ValueError(
            f"{step}: the graph that skl2onnx makes of it does not load. "
            f"{_text_cure(model) or CURES} ({shortened(str(error), 200)})"
        ) from error


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
    table = Exported.of(model).differences(_session(onnx), (X, attributes))
    return table.drop(columns="scale")


def _type(kind: str) -> int:
    """Return the number of a type."""
    return int(getattr(import_optional("onnx", "to_onnx").TensorProto, kind))


def _value(name: str, kind: str, shape: Any) -> Any:
    """Return an input or output."""
    helper = import_optional("onnx.helper", "to_onnx")
    return helper.make_tensor_value_info(name, _type(kind), shape)


def _flat(model: Any) -> list[Any]:
    """Return the steps of a Pipeline whose last one may be another."""
    if not isinstance(model, Pipeline):
        return [model]
    return [*(step for _, step in model.steps[:-1]), *_flat(model.steps[-1][1])]


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


def _kind(column: pd.Series) -> str:
    """Return f for floats, i for whole numbers, b for booleans, s for anything else."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return "b"
    if pd.api.types.is_integer_dtype(column.dtype):
        return "i"
    return "f" if pd.api.types.is_float_dtype(column.dtype) else "s"


def _run(session: Any, X: Any, attributes: Any) -> np.ndarray:
    """Return what a graph returns on rows."""
    feed, is_table = {}, hasattr(X, "columns") or np.ndim(X) == 1
    X = _as_frame(X) if np.ndim(X) == 1 else X
    columns = Columns.read(attributes, X, count_rows(X))
    kinds = {"tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    for entry in session.get_inputs():
        if entry.name == "X" and not is_table:
            feed["X"] = np.asarray(X, dtype=np.float32)
            continue
        name = next((x for x in (X if is_table else ()) if str(x) == entry.name), entry.name)
        column = columns.get(name, entry.name)
        if "string" in entry.type:
            values = column.astype(object).where(column.notna(), "").astype(str).to_numpy(object)
        else:
            values = column.to_numpy(dtype=kinds.get(entry.type, np.float32))
        feed[entry.name] = values.reshape(-1, 1)
    return np.asarray(session.run(None, feed)[0])
