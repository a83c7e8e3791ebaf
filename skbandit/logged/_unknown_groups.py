"""Rows whose groups are not known: what goals expect of them by the probabilities of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.logged._outcome_models import OutcomeModels
from skbandit.measure import MISSING, Columns, Rows, atom_weights, columns_of_selections
from skbandit.rates._kinds import Atom, Member
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import first_few, warn

GROUP_CLASSIFIER = LogisticRegression(max_iter=1000)
"""Learner of the probability of a group; cloned before use."""

GROUP = "group"
"""Name of the outcome that is to be of a group."""

MOST_GROUPS = 60
"""Combinations of values of unknown columns whose probabilities are learned, at most."""


@dataclass(frozen=True)
class EstimatedRows:
    """Rows, and the probability that each is of each group.

    Attributes
    ----------
    rows : Rows
        Without the columns of groups.
    groups : list of G dicts
        Values of these columns.
    share : ndarray of shape (n, G)
        Probabilities of sum 1.
    """

    rows: Rows
    groups: list[dict[str, Any]]
    share: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> np.ndarray:
        """Weights of the rows."""
        return self.rows.weight


def units(atom: Atom, rows: Rows | EstimatedRows) -> np.ndarray:
    """Return the weight of each row in an atom, expected or known, of rows of weight 1."""
    if not isinstance(rows, EstimatedRows):
        return atom_weights(atom, replace(rows, weight=np.ones(len(rows))))
    expected, columns = np.zeros(len(rows)), rows.rows.columns
    for share, values in zip(rows.share.T, rows.groups, strict=True):
        in_group = Columns(columns.attributes.assign(**values), columns.X)
        expected += share * units(atom, replace(rows.rows, columns=in_group))
    return expected


def rows_for_goals(X: Any, attributes: Any) -> Rows:
    """Read what goals name, of rows without labels."""
    n, columns = count_rows(X), Columns.read(attributes, X, count_rows(X))
    return Rows(columns, np.full(n, MISSING), np.ones(n))


@dataclass(frozen=True)
class Contexts:
    """Rows that a policy decides.

    Attributes
    ----------
    X : as passed
        Features.
    rows : Rows or EstimatedRows
        What goals name.
    mask : ndarray of bool, shape (n, D)
        Which actions each row may get.
    """

    X: Any
    rows: Any
    mask: np.ndarray


@dataclass(frozen=True)
class EstimatedGroups:
    """Groups that predictions may lack, and models of their probabilities.

    Attributes
    ----------
    groups : list of G dicts
        Combinations of the values of the columns.
    models : OutcomeModels
        Fitted to all rows, with groups in the place of actions.
    """

    groups: list[dict[str, Any]]
    models: OutcomeModels

    @classmethod
    def find(
        cls, atoms: Sequence[Atom], contexts: Contexts, estimator: Any, fold: np.ndarray
    ) -> tuple[EstimatedGroups, Contexts] | None:
        """Return groups that goals name and X lacks, which predictions may not know either.

        And the rows with probabilities by models without them. None if there is one group only, or
        too many.
        """
        X, rows = contexts.X, contexts.rows
        named = columns_of_selections(atoms, rows.columns) or ()
        columns = [name for name in named if name not in rows.columns.X.columns]
        values = rows.columns.several(columns, "groups")
        groups = values.dropna().drop_duplicates().to_dict("records")
        if not columns or not 2 <= len(groups) <= MOST_GROUPS:
            return None
        of_group = [(values == pd.Series(group)).all(axis=1) for group in groups]
        table = np.column_stack(of_group).astype(float)
        table[table.sum(axis=1) == 0] = np.nan  # rows without a group
        if estimator is None:
            learner = make_pipeline(StandardScaler(with_mean=False), GROUP_CLASSIFIER)
        elif isinstance(estimator, Pipeline):  # behind the same transformers
            learner = make_pipeline(*(step for _, step in estimator.steps[:-1]), GROUP_CLASSIFIER)
        else:
            learner = estimator
        every = np.ones(len(groups), dtype=bool)
        models = OutcomeModels(learner, np.arange(len(groups)), every)
        models = models.fit(X, {GROUP: table}, rows.weight)
        held_out = models.held_out(X, {GROUP: table}, rows.weight, fold)
        unknown = cls(groups, models)
        return unknown, unknown.estimated(contexts, held_out)

    def estimated(
        self, contexts: Contexts, predicted: Mapping[str, np.ndarray] | None = None
    ) -> Contexts:
        """Return contexts with the probabilities of their groups, as predicted."""
        rows, predicted = contexts.rows, predicted or self.models.predict(contexts.X)
        share = np.clip(predicted[GROUP], 0.0, None)
        total = share.sum(axis=1, keepdims=True)
        share = np.where(total > 0, share / np.where(total > 0, total, 1.0), 1 / len(self.groups))
        attributes = rows.columns.attributes.drop(columns=self.columns, errors="ignore")
        without = replace(rows, columns=Columns(attributes, rows.columns.X))
        return replace(contexts, rows=EstimatedRows(without, self.groups, share))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.groups[0])


def in_known_groups(
    rows: Rows, groups: Mapping[tuple[str, ...], list[Member]], unknown: EstimatedGroups | None
) -> np.ndarray:
    """Return which rows are of groups that the fit knew, shape (n,); warn of other values.

    Parameters
    ----------
    rows : Rows
    groups : mapping of tuple of str to list of Member
        The groups that the fit knew, by their columns.
    unknown : EstimatedGroups or None
        What estimates those that rows lack.
    """
    is_known = np.ones(len(rows), dtype=bool)
    if unknown is None and not groups:
        return is_known
    frame = rows.columns.frame
    if unknown is not None:
        if not set(unknown.columns) <= set(frame.columns):
            return ~is_known
        is_known = frame[unknown.columns].notna().all(axis=1).to_numpy(copy=True)
    for columns, members in groups.items():
        is_known &= np.logical_or.reduce(
            [rows.columns.member(member, "groups") for member in members]
        )
        new = ~is_known & frame[list(columns)].notna().all(axis=1).to_numpy()
        if new.any() or (not is_known.all() and unknown is None):
            value = tuple(frame[list(columns)].iloc[int(np.argmin(is_known))])
            how = "their groups are estimated from the features"
            if unknown is None:
                how = "no constraint by group is kept there"
            warn(
                f"{(~is_known).sum()} of {len(rows)} rows have {' and '.join(columns)} = "
                f"{first_few(value)}, or others that no row of fit had: {how}.",
                UserWarning,
            )
    return is_known
