"""From what a user passes to `fit` to the datasets that expressions are bound to."""

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
from skbandit.utils._validation import check_row_weights


@dataclass(frozen=True)
class Extra:
    """The extra dataset as passed, each part bare or in a 1-tuple.

    Cross-validation slices whatever has as many rows as X; a tuple of one it leaves alone.
    """

    X: Any = None
    y: Any = None
    attributes: Any = None
    sample_weight: Any = None

    def unwrapped(self) -> Extra:
        """Take the parts out of their tuples; refuse parts without rows to belong to."""
        parts = {name: _unwrap(part) for name, part in vars(self).items()}
        if parts["X"] is None:
            given = [f"{name}_extra" for name, part in parts.items() if part is not None]
            if given:
                raise ValueError(f"{given[0]} was passed without X_extra.")
        return Extra(**parts)


def read_rows(
    X: Any, label: np.ndarray, sample_weight: Any, attributes: Any, suffix: str = ""
) -> Rows:
    """One dataset of `Rows`; `X` as the user passed it, for its column names."""
    n = len(label)
    columns = Columns.read(attributes, X, n, f"attributes{suffix}")
    return Rows(columns, label, check_row_weights(sample_weight, n, f"sample_weight{suffix}"))


def read_labels(y: Any, n_rows: int, pos_label: Any, classes: np.ndarray, name: str) -> np.ndarray:
    """Codes 1, 0 and -1 (missing) of shape (n_rows,); None is all missing."""
    if y is None:
        return np.full(n_rows, MISSING, dtype=np.int8)
    codes = encode(y, pos_label, classes.tolist(), name)
    if len(codes) != n_rows:
        raise ValueError(f"{name} has {len(codes)} entries for {n_rows} rows.")
    return codes


def read_extra(
    extra: Extra,
    pos_label: Any,
    classes: np.ndarray,
    *,
    X_is_named: bool,
    read_X: Callable[[Any], Any],
) -> tuple[Any, Rows | None]:
    """What `read_X` makes of X_extra, one entry a row, and its rows, or (None, None)."""
    extra = extra.unwrapped()
    if extra.X is None:
        return None, None
    if feature_names(extra.X) is not None and not X_is_named:
        raise ValueError(
            "X_extra has column names and X has none, so X was transformed and X_extra was not: "
            'pass transform_input=["X_extra"] to the Pipeline (with metadata routing enabled).'
        )
    with blamed_on_extra():
        X = read_X(extra.X)
    label = read_labels(extra.y, X.shape[0], pos_label, classes, "y_extra")
    return X, read_rows(extra.X, label, extra.sample_weight, extra.attributes, "_extra")


@contextmanager
def blamed_on_extra() -> Iterator[None]:
    """Say of an error that it is about X_extra."""
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
    """The rows of X, or what was made of them, and those of X_extra below."""
    if X_extra is None:
        return X
    if issparse(X) or issparse(X_extra):
        return vstack([X, X_extra], format="csr")
    return np.concatenate([X, X_extra])


def class_factors(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Factor of each row's weight in the objective; balanced means by total weight."""
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
    """The same data with the weights of the rows of X multiplied."""
    train = Rows(data.train.columns, data.train.label, data.train.weight * factors)
    return Data(train, data.extra, data.pos_label, data.labels)


def _unwrap(part: Any) -> Any:
    return part[0] if isinstance(part, tuple) and len(part) == 1 else part
