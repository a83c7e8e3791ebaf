"""Read the arguments of `fit` of every constrained classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from skbandit import measure
from skbandit.utils._sklearn_compat import feature_names
from skbandit.utils._trials import groups_of_both, labels_of_groups
from skbandit.utils._validation import check_row_weights, first_few, warn, warn_if_reordered

EXTRA = ("X_extra", "y_extra", "attributes_extra", "sample_weight_extra")
"""Parameters of `fit` that are the extra dataset."""

OF_ROWS = ("sample_weight", "attributes", *EXTRA, "groups", "groups_extra")
"""Parameters of `fit` besides X and y."""

UNKNOWN = -1
"""Code of a row whose group was not found at fit."""


def read_other_decisions(others: Any, labels: np.ndarray) -> tuple[Any, ...]:
    """Check the parameter `other_decisions`: names of the type of the labels, none of them one."""
    if isinstance(others, str) or not isinstance(others, Iterable):
        raise TypeError(
            f"other_decisions={others!r} must be a list of decisions, such as ['review']."
        )
    decisions = tuple(
        decision.item() if hasattr(decision, "item") else decision for decision in others
    )
    for decision in decisions:
        if isinstance(decision, Iterable) and not isinstance(decision, str | bytes):
            raise TypeError(f"other_decisions has {decision!r}, which is no label.")
    if len(set(decisions)) < len(decisions):
        raise ValueError(f"other_decisions={list(decisions)} names a decision twice.")
    example = labels.tolist()[0]
    for decision in decisions:
        if decision in labels.tolist():
            raise ValueError(
                f"other_decisions has {decision!r}, which is one of the classes {labels.tolist()}."
            )
        if not _can_hold(labels, decision):
            kind = labels.dtype if labels.dtype.kind in "iufb" else type(example).__name__
            raise ValueError(
                f"other_decisions has {decision!r}, of type {type(decision).__name__}, and the "
                f"classes are {kind}, such as {example!r}: predict returns one array, so give all "
                "decisions one type."
            )
    return decisions


def _can_hold(labels: np.ndarray, decision: Any) -> bool:
    """Return whether an array of the labels can hold another decision as it is."""
    both = decision, labels.tolist()[0]
    types = [
        bool if isinstance(x, bool) else float if isinstance(x, int) else type(x) for x in both
    ]
    if types[0] != types[1] or labels.dtype.kind not in "iuf":
        return types[0] == types[1]
    with suppress(OverflowError, ValueError):
        return bool(np.array([decision], dtype=labels.dtype).tolist() == [decision])
    return False


@dataclass(frozen=True)
class Classes:
    """Class labels, sorted, and decisions that are no classes.

    Attributes
    ----------
    labels : ndarray of shape (K,)
    positive : label or None
        The class of rates that name none; of two classes that is always one.
    others : tuple
        The other decisions.
    """

    labels: np.ndarray
    positive: Any
    others: tuple[Any, ...] = ()

    @classmethod
    def read(cls, y: np.ndarray, pos_label: Any, others: Sequence[Any] = ()) -> Classes:
        """Find the classes in y; of two, `pos_label` None makes the second positive."""
        check_labels(y)
        return cls.of(np.unique(y), pos_label, others)

    @classmethod
    def of(cls, labels: np.ndarray, pos_label: Any, others: Sequence[Any] = ()) -> Classes:
        """Check the distinct sorted labels, which must be two at least, and other decisions."""
        if not len(labels):
            raise ValueError("y is empty.")
        measure.warn_of_blank(labels.tolist(), "y")
        if len(labels) < 2:
            raise ValueError(
                f"Two classes are needed, y has one class only: {labels.tolist()[0]!r}."
            )
        if pos_label is not None and pos_label not in labels.tolist():
            cure = ""
            if alike := [label for label in labels.tolist() if str(label) == str(pos_label)]:
                cure = f" Did you mean {alike[0]!r}, of type {type(alike[0]).__name__}?"
            elif labels.tolist() == [0, 1]:  # as ensembles encode them
                cure = (
                    " VotingClassifier, StackingClassifier and BaggingClassifier replace labels by "
                    "0 and 1: pass them labels 0 and 1, of which 1 is positive."
                )
            raise ValueError(
                f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.{cure}"
            )
        others = read_other_decisions(others, labels)
        if pos_label is None and len(labels) == 2 and not others:
            pos_label = labels.tolist()[1]
        return cls(labels, pos_label, others)

    def require_two(self, name: str) -> None:
        """Raise an error if an estimator that is for two classes has more."""
        if len(self.labels) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass, "
                f"with {len(self.labels)} classes, and {name} is for two: use "
                "ConstrainedThreshold, which meets goals on several classes with any classifier."
            )

    @property
    def of_two(self) -> bool:
        """True if there are two decisions, the classes."""
        return len(self.labels) == 2 and not self.others

    @property
    def decisions(self) -> np.ndarray:
        """The labels and the other decisions."""
        every, of_labels = [*self.labels.tolist(), *self.others], self.labels.dtype
        has_longer_names = bool(self.others) and of_labels.kind in "US"
        return np.array(every, dtype=None if has_longer_names else of_labels)

    @property
    def by_code(self) -> np.ndarray:
        """The decisions as they are coded in `Data`: of two classes the positive one last."""
        return self.decisions[:: int(self.orientation)]

    @property
    def orientation(self) -> float:
        """-1 if the positive one of two classes is ``labels[0]``, else 1.

        1 is as in scikit-learn's scores.
        """
        return -1.0 if self.of_two and self.labels[0] == self.positive else 1.0

    def encode(self, y: Any, name: str) -> np.ndarray:
        """Codes of labels: of two classes 1 for positive, else their order; -1 where missing."""
        if self.of_two:
            return measure.encode(y, self.positive, self.labels.tolist(), name)
        return measure.encode_classes(y, self.labels.tolist(), name)

    def data(self, train: measure.Rows, extra: measure.Rows | None) -> measure.Data:
        """Return the data that rates of these classes are measured on."""
        return measure.Data(train, extra, self.positive, self.labels.tolist(), self.others)


class Extra(NamedTuple):
    """The arguments of a second dataset, which only rates with ``on="extra"`` or ``"all"`` measure.

    Attributes
    ----------
    X, y, attributes, sample_weight : as passed
        A `y` of None, and missing entries, are unlabeled.
    """

    X: Any
    y: Any
    attributes: Any
    sample_weight: Any

    @classmethod
    def read(
        cls,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
    ) -> Extra | None:
        """Read the four `*_extra` arguments; None without rows.

        Each may be wrapped in a tuple of one, which cross-validation leaves whole (it slices
        everything else with as many rows as X).
        """
        given = X_extra, y_extra, attributes_extra, sample_weight_extra
        extra = cls(*(x[0] if isinstance(x, tuple) and len(x) == 1 else x for x in given))
        passed = [f"{name}_extra" for name, part in extra._asdict().items() if part is not None]
        if passed and extra.X is None:
            raise ValueError(f"{passed[0]} was passed without X_extra.")
        return extra if passed else None


def read_rows(
    X: Any, label: np.ndarray, sample_weight: Any, attributes: Any, suffix: str = "", y: Any = None
) -> measure.Rows:
    """Read one dataset; `X` and `y` as the user passed them, for their names and indices."""
    n = len(label)
    given = {"X": X, "y": y, "attributes": attributes, "sample_weight": sample_weight}
    warn_if_reordered({name + suffix: part for name, part in given.items()})
    columns = measure.Columns.read(attributes, X, n, f"attributes{suffix}")
    return measure.Rows(
        columns, label, check_row_weights(sample_weight, n, f"sample_weight{suffix}")
    )


def read_labels(y: Any, n_rows: int, classes: Classes, name: str) -> np.ndarray:
    """Return codes of shape (n_rows,), see `Classes.encode`; None is all missing."""
    if y is None:
        return np.full(n_rows, measure.MISSING, dtype=np.int8)
    codes = classes.encode(y, name)
    if len(codes) != n_rows:
        raise ValueError(f"{name} has {len(codes)} entries for {n_rows} rows.")
    return codes


def read_extra(
    extra: Extra | None,
    classes: Classes,
    *,
    X_is_named: bool,
    read_X: Callable[[Any], Any],
) -> tuple[Any, measure.Rows | None]:
    """Return ``read_X(extra.X)`` and its rows, or (None, None) without extra data."""
    if extra is None:
        return None, None
    if feature_names(extra.X) is not None and not X_is_named:
        raise ValueError(
            "X_extra has column names and X has none, so X was transformed and X_extra was not: "
            'pass transform_input=["X_extra"] to the Pipeline (with metadata routing enabled).'
        )
    with prefix_error_with_extra():
        X = read_X(extra.X)
    label = read_labels(extra.y, X.shape[0], classes, "y_extra")
    return X, read_rows(extra.X, label, extra.sample_weight, extra.attributes, "_extra", extra.y)


@contextmanager
def prefix_error_with_extra() -> Iterator[None]:
    """Name X_extra in the message of any ValueError."""
    try:
        yield
    except ValueError as error:
        if "feature" not in str(error):
            raise ValueError(f"X_extra: {error}") from error
        raise ValueError(
            f"X_extra does not fit X: {error}\n(In a Pipeline, transform_input=['X_extra'] "
            "sends it through the same transformers.)"
        ) from error


def class_factors(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Factors of the rows' weights in the objective; "balanced" refers to total weights."""
    if class_weight is None:
        return np.ones(len(y))
    codes = np.searchsorted(classes, y)
    if isinstance(class_weight, Mapping):
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    else:
        totals = np.bincount(codes, weights=weight, minlength=len(classes))
        factors = weight.sum() / (len(classes) * np.where(totals > 0, totals, np.inf))
    return check_row_weights(factors[codes], len(y), "class_weight")


def with_weights(data: measure.Data, factors: np.ndarray) -> measure.Data:
    """Multiply the weights of the rows of X."""
    return replace(data, train=replace(data.train, weight=data.train.weight * factors))


@dataclass(frozen=True)
class FitRows:
    """The rows of X and of the extra dataset; their features are left to the classifiers.

    Attributes
    ----------
    X : indexable of n rows
    y : ndarray of shape (n,)
    X_extra : indexable or None
    classes : Classes
    data : Data
        What rates are measured on.
    groups : Series of n rows, or None
        Labels of the groups of dependent rows, in the order of X.
    """

    X: Any
    y: np.ndarray
    X_extra: Any
    classes: Classes
    data: measure.Data
    groups: pd.Series | None

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        classify: Callable[[np.ndarray], tuple[Classes, np.ndarray]],
        read_X: Callable[[Any], Any] = lambda rows: indexable(rows)[0],
    ) -> FitRows:
        """Check and read the arguments of `fit`.

        Parameters
        ----------
        X, y : as passed
        metadata : dict
            The other arguments, by their names in `fit`: those of `OF_ROWS`.
        classify : callable
            From y to the classes and the code of each row: see `Classes.encode`.
        read_X : callable
            Checks the extra rows.
        """
        given, y_given = X, y
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        refuse_missing_labels(y)
        assert_all_finite(y, input_name="y")
        X, y = indexable(X, y)
        classes, label = classify(y)
        of_rows = metadata.get("sample_weight"), metadata.get("attributes")
        train = read_rows(given, label, *of_rows, y=y_given)
        X_extra, extra = read_extra(
            Extra.read(**{name: metadata.get(name) for name in EXTRA}),
            classes,
            X_is_named=feature_names(given) is not None,
            read_X=read_X,
        )
        data = classes.data(train, extra)
        groups = labels_of_groups(metadata.get("groups"), len(label), given, y_given)
        data = with_dependent(
            data, groups, (), metadata.get("groups_extra"), metadata.get("X_extra")
        )
        return cls(X, y, X_extra, classes, data, groups)


def with_dependent(
    data: measure.Data, groups: Any, tables: tuple[Any, ...], groups_extra: Any, X_extra: Any
) -> measure.Data:
    """Add the groups of dependent rows; see `groups_of_both`."""
    counted = data.train.weight > 0
    codes, codes_extra = groups_of_both(groups, tables, groups_extra, X_extra, counted)
    if codes is None or codes_extra is None:
        return replace(data, dependent=codes)
    return replace(data, dependent=np.concatenate([codes, codes_extra]))


def refuse_keywords(estimator: Any, unknown: Iterable[str]) -> None:
    """Raise an error that names the first keyword of a fit that is unknown, and its cure."""
    for name in unknown:
        cure = ""
        if name == "sensitive_features":
            cure = (
                ": pass their columns as attributes=, a DataFrame, and name them in the "
                "constraints, as in difference(positive_rate, by='sex') <= 0.05"
            )
        raise TypeError(
            f"{type(estimator).__name__}.fit() got an unexpected keyword argument {name!r}{cure}."
        )


def check_labels(y: np.ndarray) -> None:
    """Require labels of classes; numbers and booleans must not be stored as objects."""
    if y.dtype == object and type_of_target(y) == "unknown":
        types = list(dict.fromkeys(type(label).__name__ for label in y.tolist()))
        cure = f"y.astype({types[0]})" if len(types) == 1 else "one type, as by y.astype(str)"
        raise ValueError(
            f"Unknown label type: y is of dtype object and holds {' and '.join(types)}, as after a "
            f"merge with missing rows: pass {cure}."
        )
    check_classification_targets(y)


def refuse_missing_labels(y: Any) -> None:
    """Raise an error if a label is missing: such rows belong into X_extra."""
    missing = np.asarray(pd.isna(y))
    if missing.ndim and missing.any():
        raise ValueError(
            f"y has no label in {int(missing.sum())} rows, row {int(np.argmax(missing))} first "
            "(NaN or None): pass rows without labels as X_extra, and count them in rates with "
            'on="extra" or "all".'
        )


def labels_of(y: np.ndarray, pos_label: Any, others: Sequence[Any]) -> tuple[Classes, np.ndarray]:
    """Return the classes of y, and the code of each row: see `Classes.encode`."""
    classes = Classes.read(y, pos_label, others)
    if classes.of_two:
        return classes, (y == classes.positive).astype(np.int8)
    return classes, np.searchsorted(classes.labels, y)


@dataclass(frozen=True)
class Grouping:
    """The groups that have a threshold.

    Attributes
    ----------
    columns : tuple of str
        Attribute columns whose values, or combinations of values, are the groups.
    groups : tuple of tuple
        The values of each group, in the order of `columns`. All None, the last one, is for rows
        with a missing value, if fit had some.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[Any, ...], ...]

    @classmethod
    def find(cls, by: Any, data: measure.Data) -> Grouping:
        """Find the groups on the rows of positive weight.

        Parameters
        ----------
        by : str or sequence of str
            The parameter of the estimator.
        data : Data
            The rows of X, and of X_extra if passed.
        """
        names = measure.read_by(by)
        ons = {"train"} if data.extra is None else {"all"}
        data_groups = data.groups(names, ons, f"by={by!r}")  # type: ignore[arg-type]
        groups = tuple(group.values for group in data_groups)
        if data.without_group(names, ons, f"by={by!r}"):  # type: ignore[arg-type]
            groups += ((None,) * len(names),)
        return cls(names, groups)

    def codes(self, columns: measure.Columns) -> np.ndarray:
        """Index of the group of each row; UNKNOWN for values not found at fit."""
        code_of = {values: code for code, values in enumerate(self.groups)}
        frame = columns.several(self.columns, self._context)
        joint, first = measure.number_groups(frame.items(), len(frame))
        none = code_of.get((None,) * len(self.columns), UNKNOWN)
        code = np.array(
            [
                none if None in values else code_of.get(values, UNKNOWN)
                for values in measure.values_at(frame, first)
            ],
            dtype=np.int64,
        )
        return code[joint]

    def codes_of(self, columns: measure.Columns, has_overall: bool) -> np.ndarray:
        """Index of the group of each row; without a known group an error, or UNKNOWN.

        Warn if all rows are UNKNOWN.
        """
        codes = self.codes(columns)
        if not has_overall and (codes == UNKNOWN).any():
            self._blame(columns, codes == UNKNOWN)
        if len(codes) and (codes == UNKNOWN).all():
            frame = columns.several(self.columns, self._context)
            warn(
                f"{self._context}: no row is of a group with a threshold, so that all get the "
                f"overall one. Row 0 is of group {self._named(frame, 0)}, and fit saw "
                f"{self._listed()}: are the values of another type, or coded otherwise?",
                UserWarning,
            )
        return codes

    def index(self) -> pd.Index:
        """Return the groups as an index."""
        if len(self.columns) == 1:
            return pd.Index([values[0] for values in self.groups], name=self.columns[0])
        return pd.MultiIndex.from_tuples(self.groups, names=self.columns)

    @property
    def _context(self) -> str:
        return f"by={self.columns[0] if len(self.columns) == 1 else list(self.columns)!r}"

    def _blame(self, columns: measure.Columns, unknown: np.ndarray) -> None:
        frame = columns.several(self.columns, self._context)
        missing = frame.isna().to_numpy()
        if missing.any():
            row, column = map(int, np.argwhere(missing)[0])
            raise ValueError(
                f"{self._context}: column {self.columns[column]!r} is missing in "
                f"{int(missing.any(axis=1).sum())} rows, row {row} first, and each row needs a "
                "group: give missing values one of their own, such as 'unknown', before fit and "
                "predict, or set unseen='overall' before fit."
            )
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"{self._context}: row {row} is of group {self._named(frame, row)}, which "
            f"has no threshold: fit saw only {self._listed()}. Fit with rows of that group, or "
            "give rare groups one value in common before fit and predict, or set unseen='overall' "
            "before fit."
        )

    @staticmethod
    def _named(frame: pd.DataFrame, row: int) -> str:
        (values,) = measure.values_at(frame, [row])
        return ", ".join(f"{name}={value!r}" for name, value in zip(frame, values, strict=True))

    def _listed(self) -> str:
        shown = [values[0] if len(values) == 1 else values for values in self.groups]
        return first_few(shown, most=10)


def read_prefit(
    y: np.ndarray, estimator: Any, pos_label: Any, others: Sequence[Any]
) -> tuple[Classes, np.ndarray]:
    """Return the classes of a fitted classifier, and y encoded by them."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            f"cv='prefit' requires a fitted estimator, and this {type(estimator).__name__} is not "
            "fitted: fit it first, or choose another cv."
        ) from error
    check_labels(y)
    classes = Classes.of(np.unique(estimator.classes_), pos_label, others)
    unknown = [label for label in np.unique(y).tolist() if label not in classes.labels.tolist()]
    if unknown:
        raise ValueError(
            f"y contains {unknown}, which estimator was not fitted on: its classes are "
            f"{classes.labels.tolist()}."
        )
    return classes, classes.encode(y, "y")
