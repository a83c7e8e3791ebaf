"""Contexts as the policy takes them: names and types of columns, read from the policy."""

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from settings import N_FEATURES
from sklearn.base import BaseEstimator

from skbandit.bandit import PolicyPipeline

LARGEST = 1000.0
"""Largest feature of a policy that learns. One far beyond all others would decide the units of the
features, and blind the policy; models of rewards would predict nonsense for it."""

LARGEST_NUMBER = np.finfo(float).max

KINDS = {"number": (int, float), "text": (str,), "true/false": (bool,)}


class Contexts:
    """Reads contexts: objects by the names of columns, or lists of numbers without names.

    Columns are those of the features, and those that goals of a policy under budgets name beyond.
    """

    def __init__(self, policy):
        self.policy = policy
        self.learns = hasattr(policy, "partial_fit")
        names = getattr(policy, "feature_names_in_", None)
        self.attributes = getattr(last_step(policy), "attributes_", {})
        self.n_features = getattr(policy, "n_features_in_", N_FEATURES)
        self.values, self.features = None, None
        if names is not None:
            self.features = names.tolist()
            self.values = dict.fromkeys(self.features, (0.0,))  # what a column may hold, such as
            note_values(policy, self.features, self.values)
            self.values |= {name: tuple(seen) for name, seen in self.attributes.items() if seen}
        elif self.attributes:
            raise ValueError(
                f"the goals of the policy name {', '.join(self.attributes)}, and its features have "
                "no names: fit it to a DataFrame."
            )
        self.kinds = {name: kinds_of(values) for name, values in (self.values or {}).items()}

    def example(self):
        """A context that the policy can choose in."""
        if self.values is None:
            return [0.0] * self.n_features
        return {name: values[0] for name, values in self.values.items()}

    def of_policy(self, row):
        """The features of a row that was read, and its attributes, if any, as a keyword."""
        if not self.attributes:
            return row, {}
        return row[self.features], {"attributes": row[list(self.attributes)]}

    def read(self, context):
        """One row of all columns; a ValueError says in one sentence what is wrong."""
        row = self._of_list(context) if self.values is None else self._of_names(context)
        if self.learns:
            steps = getattr(self.policy, "steps", ())
            features = self.policy[:-1].transform(row) if len(steps) > 1 else row
            dense = features.toarray() if issparse(features) else np.asarray(features, dtype=float)
            largest = np.abs(np.nan_to_num(dense)).max(initial=0.0)
            if not largest <= LARGEST:
                raise ValueError(
                    f"a feature of the context is {largest:g}, and the policy takes {LARGEST:g} at "
                    "most: scale it."
                )
        return row

    def _of_list(self, context):
        if not isinstance(context, list) or len(context) != self.n_features:
            raise ValueError(f"the context must be a list of {self.n_features} numbers.")
        if not all(is_kind(value, ("number",)) for value in context):
            raise ValueError("the context must hold numbers, without text, true or nan.")
        return np.array([context], dtype=float)

    def _of_names(self, context):
        columns = ", ".join(f"{name} ({' or '.join(kinds)})" for name, kinds in self.kinds.items())
        if not isinstance(context, dict):
            raise ValueError(f"the context must be an object with the columns {columns}.")
        for problem, names in (
            ("does not know", context.keys() - self.kinds.keys()),
            ("misses", self.kinds.keys() - context.keys()),
        ):
            if names:
                listed = ", ".join(map(repr, sorted(map(str, names))))
                raise ValueError(f"the policy {problem} {listed}: its columns are {columns}.")
        for name, kinds in self.kinds.items():
            if context[name] is not None and not is_kind(context[name], kinds):
                expected = " or ".join(kinds)
                raise ValueError(f"{name} is {str(context[name])[:40]!r}, and must be {expected}.")
        row = {name: context[name] for name in self.kinds}
        for name, value in row.items():
            if type(value) is int or (value is None and "text" not in self.kinds[name]):
                row[name] = np.nan if value is None else float(value)
        return pd.DataFrame({name: [value] for name, value in row.items()})


def is_kind(value, kinds):
    """Whether a value of JSON is of one of these kinds: true is no number."""
    if isinstance(value, int | float) and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        return False
    return any(type(value) in KINDS[kind] for kind in kinds)


def kinds_of(values):
    """Kinds of the values that a column may hold; a number is a default that may be true, too."""
    kinds = [kind for kind, types in KINDS.items() if any(type(v) in types for v in values)]
    return tuple(kinds) if kinds != ["number"] else ("number", "true/false")


def note_values(estimator, names, values):
    """Note the categories of columns that encoders have seen, in whatever is nested."""
    names = list(getattr(estimator, "feature_names_in_", names))
    if hasattr(estimator, "transformers_"):
        for _, transformer, columns in estimator.transformers_:
            at = [columns] if isinstance(columns, str | int) else columns
            chosen = np.array(names, dtype=object)[at] if not _are_names(at) else at
            note_values(transformer, list(chosen), values)
        return
    categories = getattr(estimator, "categories_", ())
    for name, seen in zip(names, categories, strict=len(categories) == len(names)):
        known = tuple(v for v in seen.tolist() if v == v and v is not None)
        if name in values and known:
            values[name] = known
    if isinstance(estimator, BaseEstimator):
        for part in vars(estimator).values():
            for inner in _estimators(part):
                note_values(inner, names, values)


def _are_names(columns):
    return not isinstance(columns, slice) and all(isinstance(name, str) for name in columns)


def _estimators(part):
    if isinstance(part, BaseEstimator):
        yield part
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from _estimators(inner)


def last_step(policy):
    """The policy behind transformers."""
    return getattr(policy, "steps", [(None, policy)])[-1][1]


def able(policy):
    """The policy with all methods of its last step, such as `select`, if that is in a Pipeline."""
    steps = getattr(policy, "steps", None)
    return policy if steps is None or hasattr(policy, "select") else PolicyPipeline(steps)
