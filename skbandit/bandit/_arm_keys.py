"""Labels of arms: keys of their random streams, and those to forget."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

from skbandit.utils._validation import as_labels, first_few

REMEMBERED = 2**16
"""Labels that are remembered with their key: the same new arms are offered time and again."""

# An address in memory, as in the default repr of objects: it changes from process to process.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def canonical(label: Any) -> bytes:
    """Return bytes that are equal for labels that are equal in Python, and differ for others.

    1, 1.0, True and ``np.int64(1)`` are equal, but differ from "1". Of types unknown here, labels
    differ by their repr, without addresses.
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str):
        return b"str:" + str.encode(label, "utf-8", "surrogatepass")
    if isinstance(label, bytes):
        return b"bytes:" + label
    if isinstance(label, int | float | Decimal | Fraction):
        # math.isfinite would turn huge integers and fractions into floats
        finite = label.is_finite() if isinstance(label, Decimal) else True
        if not finite or (isinstance(label, float) and not math.isfinite(label)):
            return b"number:%s" % repr(float(label)).encode()
        return b"number:%x/%x" % label.as_integer_ratio()
    if isinstance(label, datetime):
        if label.utcoffset() is not None:
            return b"instant:" + label.astimezone(UTC).replace(tzinfo=None).isoformat().encode()
        return b"datetime:" + label.isoformat().encode()
    if isinstance(label, date):
        return b"date:" + label.isoformat().encode()
    if isinstance(label, tuple):
        return b"tuple:" + b"".join(_sized(canonical(part)) for part in label)
    if isinstance(label, frozenset):
        return b"set:" + b"".join(sorted(_sized(canonical(part)) for part in label))
    kind = f"{type(label).__module__}.{type(label).__qualname__}"
    return f"object:{kind}:{_ADDRESS.sub('', repr(label))}".encode("utf-8", "surrogatepass")


def _sized(part: bytes) -> bytes:
    return b"%d:%s" % (len(part), part)


@lru_cache(maxsize=REMEMBERED, typed=True)
def arm_key(label: Any, attempt: int = 0) -> int:
    """Return signed integer of 64 bits; further attempts give other keys for the same label."""
    key = b"arm" if attempt == 0 else b"arm%d" % attempt
    digest = blake2b(canonical(label), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little", signed=True)


def new_keys(labels: Sequence[Any], taken: Collection[int]) -> list[int]:
    """Return keys of new arms, distinct from one another and from the keys of known arms."""
    first = [arm_key(label) for label in labels]
    if len(set(first).difference(taken)) == len(first):
        return first
    taken, keys = set(taken), []
    for label in labels:
        attempt = 0
        while (key := arm_key(label, attempt)) in taken:
            attempt += 1
        taken.add(key)
        keys.append(key)
    return keys


def lookalike_label(labels: Sequence[Any], codes: Mapping[Any, Any]) -> tuple[Any, Hashable] | None:
    """Find one of these labels that is written like a known label of another type, and this one.

    Examples
    --------
    >>> lookalike_label(["1"], {0: 0, 1: 1})
    ('1', 1)
    >>> lookalike_label(["a", 1.0], {"0": 0, "1": 1})
    (1.0, '1')
    """
    for label in labels:
        alike = _written_alike(label)
        for other in codes if not codes.keys().isdisjoint(alike) else ():
            if other in alike and other != label:
                return label, other
    return None


@lru_cache(maxsize=REMEMBERED, typed=True)
def _written_alike(label: Any) -> list[Any]:
    """Return labels of other types that are written like this one."""
    candidates: list[Any] = []
    if isinstance(label, str):
        text = label.strip()
        candidates = [label.encode("utf-8", "surrogatepass"), *_numbers_written(text)]
    elif isinstance(label, bytes):
        candidates = [label.decode("utf-8", "replace")]
    elif isinstance(label, bool | int | float | np.generic):
        is_number = isinstance(label, bool | int | float | np.bool_ | np.number)
        candidates = [str(label)] if is_number else []
        with suppress(OverflowError):  # a huge integer has no float
            candidates += [repr(float(label)) for _ in candidates]
            if candidates and math.isfinite(label) and label == int(label):
                candidates.append(str(int(label)))
    return candidates


def _numbers_written(text: str) -> list[Any]:
    """Return numbers and booleans that are written as this text."""
    if text in ("True", "False"):
        return [text == "True"]
    if not re.fullmatch(r"[+-]?\d+(\.\d*)?", text, re.ASCII):
        return []
    try:
        return [float(text) if "." in text else int(text)]
    except ValueError:  # more digits than Python converts
        return []


def arms_to_drop(labels: Iterable[Any], arms: Collection[Any]) -> set[Any]:
    """Return the labels, which must be of known arms, but not of all of them."""
    dropped = set(as_labels(labels, "labels"))
    unknown = [label for label in dropped if label not in arms]
    if unknown:
        raise ValueError(f"labels contains {unknown[0]!r}, which is not an arm: {first_few(arms)}.")
    if len(dropped) == len(arms):
        raise ValueError("labels names all arms: a policy needs at least one.")
    return dropped
