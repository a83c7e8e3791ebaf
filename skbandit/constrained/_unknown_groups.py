"""Groups that goals name and that predictions do not know: their probabilities by features."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained._goals import Declared
from skbandit.constrained.fits._fit_rows import UNKNOWN, Classes, Grouping
from skbandit.constrained.fits._weighted_fits import OutOfFold, Task, learns_costs
from skbandit.measure import Data, UnknownColumnError

MOST_STRATA = 60
"""Pairs of a group and a label of which probabilities are learned, at most."""


@dataclass(frozen=True)
class UnknownGroups:
    """Groups of the training rows, and a learner of groups and labels together.

    Attributes
    ----------
    group : ndarray of int, shape (N,)
        Of all rows, as far as it is known; else 0.
    grouping : Grouping
    strata : Classes
        Numbers ``group * n_decisions + label`` of the strata that have rows.
    n_decisions : int
    """

    group: np.ndarray
    grouping: Grouping
    strata: Classes
    n_decisions: int

    @classmethod
    def find(cls, declared: Declared, data: Data) -> UnknownGroups | None:
        """Return the groups that the rates select by; None if there are none, or too many."""
        columns = declared.columns_of_selections(data)
        if not columns:
            return None
        try:
            grouping = Grouping.find(columns, Data(data.train))
        except UnknownColumnError:  # of rates that are measured on X_extra only
            return None
        n_groups, D = len(grouping.groups), len(data.decisions)
        if n_groups < 2 or n_groups * len(data.classes) > MOST_STRATA:
            return None
        codes = []
        for rows, _ in data.parts("all"):
            try:
                codes.append(grouping.codes(rows.columns))
            except UnknownColumnError:
                codes.append(np.full(len(rows), UNKNOWN))
        group = np.maximum(np.concatenate(codes), 0)
        strata = np.unique(group[: len(data.train)] * D + data.train.label)
        if len(strata) <= 2:
            return None
        return cls(group, grouping, Classes(strata, None), D)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.grouping.groups)

    def fits(self, of_labels: OutOfFold, label: np.ndarray) -> OutOfFold:
        """Repeat the fits for strata in the place of labels."""
        learner = replace(of_labels.learner, classes=self.strata)
        y = self.group[: len(label)] * self.n_decisions + label
        return replace(of_labels, learner=learner, y=y)

    def task(self, of_labels: OutOfFold, label: np.ndarray) -> Task | None:
        """Return the strata as a task, for a learner of costs; None for a classifier."""
        if not learns_costs(of_labels.learner.estimator):
            return None
        of_row = self.group[: len(label)] * self.n_decisions + label
        gain = np.zeros((len(self.group), len(self.strata.labels)))
        gain[: len(label)] = of_row[:, None] == self.strata.labels
        return Task(gain * of_labels.weight[:, None])

    def joint(self, of_label: np.ndarray, of_strata: np.ndarray) -> np.ndarray:
        """Probabilities of groups and labels, (n, F): P(label) P(group | label).

        Parameters
        ----------
        of_label : ndarray of shape (n, D)
        of_strata : ndarray of shape (n, number of strata with rows)
        """
        n, D = of_label.shape
        probabilities = np.zeros((n, self.n_groups * D))
        probabilities[:, self.strata.labels] = of_strata
        probabilities = probabilities.reshape(n, self.n_groups, D)
        total = probabilities.sum(axis=1, keepdims=True)
        even = np.full_like(probabilities, 1 / self.n_groups)
        share = np.divide(probabilities, total, out=even, where=total > 0)
        return (of_label[:, None, :] * share).reshape(n, -1)
