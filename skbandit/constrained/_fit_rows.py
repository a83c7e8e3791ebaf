"""What `fit` of a classifier around other classifiers reads from its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d, indexable

from skbandit.constrained._classes import Classes
from skbandit.constrained._extra_rows import join_extra, read_extra, read_rows
from skbandit.rates._binding import Data
from skbandit.utils._sklearn_compat import feature_names


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
    """

    X: Any
    y: np.ndarray
    X_extra: Any
    classes: Classes
    data: Data

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        classify: Callable[[np.ndarray], tuple[Classes, np.ndarray]],
    ) -> FitRows:
        """Check and read the arguments of `fit`.

        Parameters
        ----------
        X, y : as passed
        metadata : dict
            The other arguments, by their names in `fit`.
        classify : callable
            From y to the classes and the code of each row, 1 for positive.
        """
        given, y_given = X, y
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        X, y = indexable(X, y)
        classes, label = classify(y)
        of_rows = metadata["sample_weight"], metadata["attributes"]
        train = read_rows(given, label, *of_rows, y=y_given)
        X_extra, extra = read_extra(
            extra_of(metadata),
            classes.positive,
            classes.labels,
            X_is_named=feature_names(given) is not None,
            read_X=lambda rows: indexable(rows)[0],
        )
        data = Data(train, extra, classes.positive, classes.labels.tolist())
        return cls(X, y, X_extra, classes, data)

    def require_both_classes(self) -> None:
        """Require rows of both classes with positive weight."""
        train = self.data.train
        if len(np.unique(train.label[train.weight > 0])) < 2:
            raise ValueError("Two classes are needed: all rows of one class have weight 0.")


def labels_of(y: np.ndarray, pos_label: Any) -> tuple[Classes, np.ndarray]:
    """The two classes of y, and the code of each row: 1 for positive, 0 for the other."""
    classes = Classes.read(y, pos_label)
    return classes, (y == classes.positive).astype(np.int8)


def extra_of(metadata: dict[str, Any]) -> Any:
    """The extra dataset among the arguments of `fit`, or None."""
    parts = ("X_extra", "y_extra", "attributes_extra", "sample_weight_extra")
    return join_extra(metadata["extra"], *(metadata[name] for name in parts))
