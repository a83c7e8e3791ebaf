"""Labels of arms that a policy is told to forget."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from skbandit.utils._messages import first_few
from skbandit.utils._validation import as_labels


def arms_to_drop(labels: Iterable[Any], known: Collection[Any]) -> set[Any]:
    """Return the labels, which must be of known arms, but not of all of them."""
    dropped = set(as_labels(labels, "labels"))
    unknown = [label for label in dropped if label not in known]
    if unknown:
        raise ValueError(
            f"labels contains {unknown[0]!r}, which is not an arm: {first_few(known)}."
        )
    if len(dropped) == len(known):
        raise ValueError("labels names all arms: a policy needs at least one.")
    return dropped
