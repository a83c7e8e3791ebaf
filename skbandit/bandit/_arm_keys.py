"""Labels of arms: keys of their random streams, and twins of another type."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np

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
        for other in _written_alike(label):
            if other in codes and other != label:
                return label, next(arm for arm in codes if arm == other)
    return None


@lru_cache(maxsize=REMEMBERED, typed=True)
def _written_alike(label: Any) -> list[Any]:
    """Return labels of other types that are written like this one."""
    if isinstance(label, str):
        text = label.strip()
        alike: list[Any] = [label.encode("utf-8", "surrogatepass")]
        if text in ("True", "False"):
            return [*alike, text == "True"]
        if re.fullmatch(r"[+-]?\d+(\.\d*)?", text, re.ASCII):
            with suppress(ValueError):  # more digits than Python converts
                alike.append(float(text) if "." in text else int(text))
        return alike
    if isinstance(label, bytes):
        return [label.decode("utf-8", "replace")]
    if not isinstance(label, bool | int | float | np.bool_ | np.number):
        return []
    with suppress(OverflowError):  # a huge integer has no float
        number = float(label)
        return [str(label), repr(number), *([str(int(label))] if number.is_integer() else [])]
    return [str(label)]
