"""The two classes of a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target


@dataclass(frozen=True)
class Classes:
    """Two class labels, sorted, one of which is positive.

    Attributes
    ----------
    labels : ndarray of shape (2,)
    positive : label
    """

    labels: np.ndarray
    positive: Any

    @classmethod
    def read(cls, y: np.ndarray, pos_label: Any) -> Classes:
        """Find the classes in y; `pos_label` None makes the second positive."""
        check_classification_targets(y)
        labels = np.unique(y)
        return cls.of(labels, pos_label, type_of_target(y) if len(labels) > 2 else "binary")

    @classmethod
    def of(cls, labels: np.ndarray, pos_label: Any, kind: str = "multiclass") -> Classes:
        """Check the distinct labels of a target of type `kind`; there must be two."""
        if len(labels) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, with {len(labels)} classes."
            )
        if not len(labels):
            raise ValueError("y is empty.")
        if len(labels) < 2:
            raise ValueError(
                f"Two classes are needed, y has one class only: {labels.tolist()[0]!r}."
            )
        if pos_label is not None and pos_label not in labels.tolist():
            raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.")
        return cls(labels, labels.tolist()[1] if pos_label is None else pos_label)

    @property
    def orientation(self) -> float:
        """1 if the positive class is ``labels[1]``, as in scikit-learn's scores, else -1."""
        return 1.0 if self.labels[1] == self.positive else -1.0
