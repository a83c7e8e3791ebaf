"""From the arguments of `fit` to the datasets that expressions are bound to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils.class_weight import compute_class_weight

from skbandit.rates._binding import MISSING, Columns, Data, Rows, encode
from skbandit.utils._sklearn_compat import feature_names
from skbandit.utils._validation import check_row_weights, warn_if_reordered


@dataclass(frozen=True, eq=False, repr=False)
class ExtraData:
    """A second dataset, measured only by rates with ``on="extra"`` or ``"all"``.

    Pass it as ``extra=`` to `fit` or a report. It suits direct calls and cross-validation,
    which passes it whole. A Pipeline does not transform it: there pass the parts as `X_extra`,
    `y_extra`, ... instead, with ``transform_input=["X_extra"]``.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_extra, n_features)
        Rows, with the same features as the training rows.
    y : array-like of shape (n_extra,), default=None
        Labels; None or missing entries are unlabelled.
    attributes : DataFrame or dict of arrays, default=None
        Columns that constraints name and the model need not see.
    sample_weight : array-like of shape (n_extra,), default=None
        Row weights.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.constrained import ExtraData
    >>> from skbandit.rates import positive_rate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> clf = ConstrainedRampClassifier(constraints=positive_rate(on="extra") <= 0.6)
    >>> clf.fit(X[:400], y[:400], extra=ExtraData(X[400:])).constraint_report_["n_rows"].tolist()
    [169]
    """

    X: Any
    y: Any = None
    attributes: Any = None
    sample_weight: Any = None

    def __post_init__(self) -> None:
        """Require rows."""
        if self.X is None:
            raise ValueError("ExtraData needs rows: X is None.")


def join_extra(
    extra: ExtraData | None, X: Any, y: Any, attributes: Any, sample_weight: Any
) -> ExtraData | None:
    """Read the extra dataset from `extra` or from the four `*_extra` arguments, not both.

    Each of the latter may be wrapped in a tuple of one, which cross-validation leaves whole
    (it slices everything else with as many rows as X).
    """
    parts = {"X": X, "y": y, "attributes": attributes, "sample_weight": sample_weight}
    parts = {name: _unwrap(part) for name, part in parts.items()}
    passed = [f"{name}_extra" for name, part in parts.items() if part is not None]
    if extra is not None and not isinstance(extra, ExtraData):
        raise TypeError(
            f"extra must be an ExtraData, got {type(extra).__name__}: pass "
            "extra=ExtraData(X, y, attributes, sample_weight), or use X_extra, y_extra, ..."
        )
    if extra is not None and passed:
        raise ValueError(f"Pass the extra dataset once, as extra= or as {passed[0]}=, not both.")
    if passed and parts["X"] is None:
        raise ValueError(f"{passed[0]} was passed without X_extra.")
    return ExtraData(**parts) if passed else extra


def read_rows(
    X: Any, label: np.ndarray, sample_weight: Any, attributes: Any, suffix: str = "", y: Any = None
) -> Rows:
    """Read one dataset; `X` and `y` as the user passed them, for their names and indices."""
    n = len(label)
    given = {"X": X, "y": y, "attributes": attributes, "sample_weight": sample_weight}
    warn_if_reordered({name + suffix: part for name, part in given.items()})
    columns = Columns.read(attributes, X, n, f"attributes{suffix}")
    return Rows(columns, label, check_row_weights(sample_weight, n, f"sample_weight{suffix}"))


def read_labels(y: Any, n_rows: int, pos_label: Any, classes: np.ndarray, name: str) -> np.ndarray:
    """Return codes 1, 0 and -1 (missing) of shape (n_rows,); None is all missing."""
    if y is None:
        return np.full(n_rows, MISSING, dtype=np.int8)
    codes = encode(y, pos_label, classes.tolist(), name)
    if len(codes) != n_rows:
        raise ValueError(f"{name} has {len(codes)} entries for {n_rows} rows.")
    return codes


def read_extra(
    extra: ExtraData | None,
    pos_label: Any,
    classes: np.ndarray,
    *,
    X_is_named: bool,
    read_X: Callable[[Any], Any],
) -> tuple[Any, Rows | None]:
    """Return ``read_X(extra.X)`` and its rows, or (None, None) without extra data."""
    if extra is None:
        return None, None
    if feature_names(extra.X) is not None and not X_is_named:
        raise ValueError(
            "X_extra has column names and X has none, so X was transformed and X_extra was not: "
            'pass transform_input=["X_extra"] to the Pipeline (with metadata routing enabled).'
        )
    with blamed_on_extra():
        X = read_X(extra.X)
    label = read_labels(extra.y, X.shape[0], pos_label, classes, "y_extra")
    return X, read_rows(extra.X, label, extra.sample_weight, extra.attributes, "_extra", extra.y)


@contextmanager
def blamed_on_extra() -> Iterator[None]:
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


def stack_rows(X: Any, X_extra: Any) -> Any:
    """Stack the extra rows, if any, below the others; so with values computed from them."""
    if X_extra is None:
        return X
    if issparse(X) or issparse(X_extra):
        return vstack([X, X_extra], format="csr")
    return np.concatenate([X, X_extra])


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


def with_weights(data: Data, factors: np.ndarray) -> Data:
    """Multiply the weights of the rows of X."""
    train = Rows(data.train.columns, data.train.label, data.train.weight * factors)
    return Data(train, data.extra, data.pos_label, data.labels)


def _unwrap(part: Any) -> Any:
    return part[0] if isinstance(part, tuple) and len(part) == 1 else part
