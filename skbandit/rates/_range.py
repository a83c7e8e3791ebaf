"""How far the value of a rate expression can reach, whatever the data."""

from __future__ import annotations

import math

from skbandit.rates._expression import Rate


def smallest_value(rate: Rate) -> float:
    """The lower end of an expression over all data; the upper end is ``-smallest_value(-rate)``.

    Every atom may be anywhere in [0, 1], independently of those that print otherwise. Over
    that box N/D is smallest at a corner, and its ones are those i whose n_i/d_i is below
    the minimum: so the atoms are raised from 0 to 1 in the order of n_i/d_i. A linear
    expression has D = 1.

    Returns
    -------
    float
        -inf where the denominator can vanish below a negative numerator.
    """
    above, below = rate.constant, 1.0 if rate.denominator is None else rate.denominator.constant
    coefficients: dict[object, list[float]] = {}
    for place, part in enumerate((rate, rate.denominator)):
        for coefficient, atom in () if part is None else part.terms:
            pair = coefficients.setdefault((repr(atom), atom.group), [0.0, 0.0])
            pair[place] += coefficient
    smallest = math.inf
    for n, d in [(0.0, 0.0), *sorted(coefficients.values(), key=_rise)]:
        above, below = above + n, below + d
        if below > 0:
            smallest = min(smallest, above / below)
        elif above < 0:
            return -math.inf
    return smallest


def _rise(pair: list[float]) -> float:
    n, d = pair
    return n / d if d else math.copysign(math.inf, n)
