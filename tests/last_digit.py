"""Checks the output of examples: the last printed digit of a decimal number may differ by one."""

import doctest
import re
from decimal import Decimal

NUMBER = r"(?>(?<![\w.])(-?(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?)(?!\.?\d))"


class LastDigitChecker(doctest.OutputChecker):
    """Allows one unit in the last place of each decimal number. Integers are exact.

    Processors and versions of libraries round differently: the same model prints .896 here and
    .895 there.

    >>> round(0.8954, 3)
    0.896
    """

    def check_output(self, want, got, optionflags):
        """Compare as doctest does, then number by number."""
        return super().check_output(want, got, optionflags) or _is_close(want, got)


def _is_close(want, got):
    """Match the pieces between the ellipses of `want` in their order, each as early as possible."""
    got = " ".join(got.split())
    first, *others = [" ".join(piece.split()) for piece in want.split("...")]
    if not others:
        return _find(first, got, 0, start=True, end=True) is not None
    position = _find(first, got, 0, start=True)
    for piece in others[:-1]:
        position = None if position is None else _find(piece, got, position)
    return position is not None and _find(others[-1], got, position, end=True) is not None


def _find(piece, got, position, *, start=False, end=False):
    """Return where the piece ends in `got`, or None."""
    texts = re.split(NUMBER, piece)
    wanted = texts[1::2]
    texts[1::2] = [NUMBER] * len(wanted)
    texts[::2] = [re.escape(text).replace(r"\ ", r"\s*") for text in texts[::2]]
    pattern = re.compile(r"\s*".join(texts) + (r"\s*\Z" if end else ""))
    while found := (pattern.match if start else pattern.search)(got, position):
        if all(map(_is_one_unit_apart, wanted, found.groups())):
            return found.end()
        if start:
            break
        position = found.start() + 1
    return None


def _is_one_unit_apart(want, got):
    """Compare in units of the finer of both; without decimals, a number is exact."""
    want, got = Decimal(want), Decimal(got)
    exponents = [number.as_tuple().exponent for number in (want, got)]
    return want == got or (min(exponents) < 0 and abs(want - got) <= Decimal(10) ** min(exponents))
