"""Policies that learned apart, and the policy that knows what all of them do."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skbandit.logs import label_order
from skbandit.utils._validation import first_few

CHOOSING = {
    "alpha", "arm_features", "arms", "columns", "epsilon", "exploration", "mean", "new_arms",
    "random_state", "ucb",
}  # fmt: skip
"""Parameters that do not change what is learned from an event."""

THIS = "this policy"


def merged_policy(policy: Any, policies: Sequence[Any], base: Any) -> Any:
    """Policy with the parameters of `policy` that knows what it and others learned since a base."""
    base = copy.copy(base)
    if not base.__sklearn_is_fitted__():
        template = next((one for one in policies if one.__sklearn_is_fitted__()), policy)
        check_is_fitted(template)
        names = getattr(template, "feature_names_in_", None)
        base._begin(pd.DataFrame(np.zeros((1, template.n_features_in_)), columns=names))
    given = {id(one): (f"policies[{k}]", one) for k, one in enumerate(policies)}
    if policy.__sklearn_is_fitted__():
        given[id(policy)] = THIS, policy
    known = {name: copy.copy(one) for name, one in given.values()}
    for name, worker in known.items():
        check_ancestor(base, worker, name)
    grown = {
        name: worker
        for name, worker in known.items()
        if len(worker._codes) > len(base._codes) or worker._n_learned() > base._n_learned()
    }
    merged = copy.copy(*grown.values()) if len(grown) == 1 else copy.copy(base)
    if len(grown) > 1:
        new = {label for worker in grown.values() for label in worker._codes}
        added = sorted(new - base._codes.keys(), key=label_order)
        merged._sum_up(copy.copy(base), grown, [*base._codes, *added])
    states = [base, *known.values()]
    merged._latest = max((one._latest for one in states if one._latest is not None), default=None)
    firsts = [one._first_event for one in states if one._first_event is not None]
    merged._first_event = min(firsts, default=None)
    merged._stream = copy.copy(known.get(THIS, base)._stream)
    made = sum(one._stream.n_choices - base._stream.n_choices for one in known.values())
    merged._stream.n_choices = max(merged._stream.n_choices, base._stream.n_choices + made)
    return merged.set_params(**policy.get_params(deep=False))


def check_ancestor(base: Any, worker: Any, name: str) -> None:
    """Require that a worker may have learned from the base on."""
    if type(worker) is not type(base):
        raise TypeError(
            f"{name} is a {type(worker).__name__}, and base a {type(base).__name__}: merge "
            "policies of one type."
        )
    if not worker.__sklearn_is_fitted__():
        raise ValueError(f"{name} is not fitted: leave it out.")
    ours, theirs = base.get_params(deep=False), worker.get_params(deep=False)
    for parameter in sorted(ours.keys() - CHOOSING):
        if not np.array_equal(ours[parameter], theirs[parameter]):
            raise ValueError(
                f"{name} learns with {parameter}={theirs[parameter]!r}, and base with "
                f"{ours[parameter]!r}: merge policies with equal parameters of learning."
            )
    if base._first_event is not None and worker._first_event != base._first_event:
        raise ValueError(
            f"{name} began with another event than base: let workers start from copies of base."
        )
    features, others = (
        list(getattr(one, "feature_names_in_", range(one.n_features_in_))) for one in (base, worker)
    )
    if features != others:
        raise ValueError(
            f"{name} has the features {first_few(others)}, and base {first_few(features)}: merge "
            "policies of equal features."
        )
    if base._waiting or worker._waiting:
        raise ValueError(f"{name} or base has delayed events: call advance() before merge.")
    before, after = (
        dict(zip(one._codes, one.n_updates_.tolist(), strict=True)) for one in (base, worker)
    )
    for label, n in before.items():
        if after.get(label, -1) < n:
            found = f"has {after[label]}" if label in after else "lacks the arm"
            raise ValueError(
                f"base is not an earlier state of {name}: it has {n} events of arm {label!r}, and "
                f"{name} {found}."
            )
