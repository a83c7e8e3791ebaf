"""The exact best threshold under constraints on hard rates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, csr_array
from sklearn.utils import check_array

from skbandit.constrained._tolerances import MET, SAME_SCORE
from skbandit.rates import Constraint
from skbandit.rates._bind import flatten_constraints
from skbandit.rates._confidence import ConfidenceLimit
from skbandit.rates._expression import as_rate
from skbandit.rates._forms import BoundConstraints, LinearFractionalForms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Threshold:
    """A cut between scores: those above `cut` are positive.

    Parameters
    ----------
    cut : float
        Midway between neighbouring scores, 1/2 beyond the outermost.
    objective : float
        The hard objective there, lower is better; inf if undefined.
    slack : float
        The smallest slack of a hard rate: negative if a bound is missed, -inf if a rate is
        undefined, inf without constraints. If confidence limits are given, their smallest
        slack where all rates are inside their bounds, else -inf.
    """

    cut: float
    objective: float
    slack: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return self.slack >= -MET


def best_threshold(
    scores: np.ndarray,
    objective: LinearFractionalForms,
    goals: BoundConstraints,
    preferred: float,
    limits: Sequence[ConfidenceLimit] = (),
) -> Threshold:
    """Search all thresholds for the best one that meets the constraints.

    Hard rates change only at the scores, so one sort and cumulative sums give the values at
    every threshold exactly. If no threshold meets all constraints, the one with the smallest
    worst violation is returned. Ties go to the cut nearest to `preferred`.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows that the expressions are over.
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    goals : BoundConstraints
        The constraints.
    preferred : float
        Cut to which ties go.
    limits : sequence of ConfidenceLimit, default=()
        One per constraint, if confidence limits must be inside the bounds too.

    Returns
    -------
    Threshold
    """
    order = np.argsort(-scores, kind="stable")
    sorted_scores = scores[order]
    cuts, heads = cuts_between(sorted_scores)
    values = _values_by_cut(objective, order, heads)[0]
    goal = np.where(np.isnan(values), np.inf, values)
    measured = _values_by_cut(goals.forms, order, heads)
    slack = least_slack(goals, measured)
    inside = np.flatnonzero(slack >= -MET)
    if limits and len(inside):  # a limit is inside its bound only if the rate is
        at = [limit.of_sums(head_sums(limit.rows, order, heads[inside])) for limit in limits]
        slack = np.full(len(cuts), -np.inf)
        slack[inside] = least_slack(goals, np.stack(at))
    if (slack >= -MET).any():
        candidates = np.flatnonzero(slack >= -MET)
        lowest = goal[candidates].min()
        candidates = candidates[goal[candidates] <= lowest + MET]
    else:
        candidates = np.flatnonzero(slack >= slack.max() - MET)
        candidates = candidates[goal[candidates] <= goal[candidates].min() + MET]
    best = candidates[np.argmin(np.abs(cuts[candidates] - preferred))]
    return Threshold(float(cuts[best]), float(goal[best]), float(slack[best]))


def slacks_by_cut(scores: np.ndarray, goals: BoundConstraints) -> np.ndarray:
    """Slacks of the hard rates of K constraints at every cut, -inf where undefined; (K, n_cuts)."""
    order = np.argsort(-scores, kind="stable")
    _, heads = cuts_between(scores[order])
    return _slacks(goals, _values_by_cut(goals.forms, order, heads))


def least_slack(goals: BoundConstraints, values: np.ndarray) -> np.ndarray:
    """The smallest slack at every cut, -inf where a value is undefined."""
    return _slacks(goals, values).min(axis=0, initial=np.inf)


def _slacks(goals: BoundConstraints, values: np.ndarray) -> np.ndarray:
    slacks = goals.sign[:, None] * (goals.bound[:, None] - values)
    return np.where(np.isnan(slacks), -np.inf, slacks)


def cuts_between(descending: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts between distinct scores, and the number of rows above each."""
    upper, lower = descending[:-1], descending[1:]
    size = np.maximum(np.abs(upper), np.abs(lower))
    size = np.maximum(size, np.median(np.abs(descending)))
    inner = np.flatnonzero(upper - lower > SAME_SCORE * np.maximum(size, 1e-300)) + 1
    middles = 0.5 * (descending[inner - 1] + descending[inner])
    cuts = np.concatenate([[descending[0] + 0.5], middles, [descending[-1] - 0.5]])
    return cuts, np.concatenate([[0], inner, [len(descending)]])


def _values_by_cut(
    forms: LinearFractionalForms, order: np.ndarray, heads: np.ndarray
) -> np.ndarray:
    """Values of K expressions at every cut, nan where undefined; shape (K, n_cuts)."""
    above = head_sums(forms.numerator, order, heads) + forms.numerator_constant[:, None]
    below = forms.denominator_constant[:, None]
    if forms.denominator.nnz:
        below = below + head_sums(forms.denominator, order, heads)
    return forms.quotients(above, below)


def head_sums(rows: csr_array, order: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Sums of each row's coefficients over the first `heads` rows in order."""
    sums = np.zeros((rows.shape[0], len(heads)))
    # One row at a time: K dense rows may not fit in cache. Those without coefficients stay 0.
    for k in np.flatnonzero(np.diff(rows.indptr)):
        running = np.cumsum(rows[[k]].toarray().ravel()[order])
        sums[k] = np.append(0.0, running)[heads]
    return sums


def descending_in_groups(scores: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    """The rows of each group, 0 to G - 1, by descending score."""
    by_group = np.lexsort((-scores, group))
    starts = np.searchsorted(group[by_group], np.arange(group.max() + 2))
    return [by_group[first:last] for first, last in pairwise(starts)]


def head_sums_in_groups(
    rows: csr_array, orders: Sequence[np.ndarray], heads: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """`head_sums` of each group, with the order of its own rows and its own heads."""
    columns = csc_array(rows)
    return [
        head_sums(csr_array(columns[:, order]), np.arange(len(order)), above)
        for order, above in zip(orders, heads, strict=True)
    ]


def spread(heads: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the heads, evenly spaced, besides the outermost two."""
    if len(heads) <= most + 2:
        return heads
    return heads[np.unique(np.linspace(0, len(heads) - 1, most + 2).astype(int))]


class VariedConstraint(Constraint):
    """A constraint whose bound varies.

    A type rather than a mask, as `dataclasses.replace` keeps it when a constraint is split into
    one per group at `fit`.
    """


def read_bounds(bounds: ArrayLike) -> list[float]:
    """Check the user's `bounds`: one or more finite numbers."""
    try:
        numbers = check_array(bounds, ensure_2d=False, dtype=np.float64, input_name="bounds")
    except ValueError as error:
        raise ValueError(f"bounds={bounds!r} must be a list of finite numbers: {error}") from error
    if numbers.ndim != 1:
        raise ValueError(f"bounds must be a list of numbers, got shape {numbers.shape}.")
    return numbers.tolist()


def family(
    declared: Any, which: int | str | Callable[[float], Any] | None
) -> tuple[Callable[[float], list[Constraint]], str]:
    """Return a function from a bound to all constraints, and a label of what varies."""
    constraints = flatten_constraints(declared)
    if callable(which) and not isinstance(which, type):
        constraint_at = which
        try:
            label = next(iter(inspect.signature(constraint_at).parameters), "bound")
        except ValueError:  # some compiled functions have no signature
            label = "bound"

        def with_made(bound: float) -> list[Constraint]:
            made = [_as_varied(one) for one in flatten_constraints(constraint_at(bound))]
            if not made:
                raise ValueError(f"constraint={constraint_at!r} returns no constraint for {bound}.")
            return [*constraints, *made]

        return with_made, label

    k = _index(constraints, which)

    def with_replaced(bound: float) -> list[Constraint]:
        varied = _as_varied(with_bound(constraints[k], bound))
        return [*constraints[:k], varied, *constraints[k + 1 :]]

    return with_replaced, constraints[k].label


def _index(constraints: list[Constraint], which: Any) -> int:
    """Return the index of the constraint that the user's `constraint=` refers to."""
    listed = "; ".join(f"{k}: {one.label}" for k, one in enumerate(constraints))
    if not constraints:
        raise ValueError(
            "The estimator declares no constraint whose bound could vary: declare one, or pass "
            "constraint=lambda bound: ..., a function that returns one."
        )
    if which is None and len(constraints) == 1:
        return 0
    if which is None:
        raise ValueError(f"Pass constraint= to choose the one whose bound varies: {listed}.")
    if isinstance(which, str):
        found = [k for k, one in enumerate(constraints) if which in (one.name, one.text)]
        if len(found) == 1:
            return found[0]
    elif isinstance(which, int | np.integer) and -len(constraints) <= which < len(constraints):
        return int(which) % len(constraints)
    raise ValueError(f"constraint={which!r} does not match exactly one of {listed}.")


def _as_varied(one: Constraint) -> VariedConstraint:
    return VariedConstraint(one.lhs, one.sense, one.rhs, one.absolute, one.name)


def with_bound(constraint: Constraint, bound: float) -> Constraint:
    """Replace the number on the right-hand side of a constraint."""
    rhs = constraint.rhs
    if rhs.is_number:
        return replace(constraint, rhs=as_rate(bound, constraint.text))
    more = bound - rhs.constant
    moved = rhs + more if more >= 0 else rhs - -more
    return replace(constraint, rhs=replace(moved, constant=bound))


def common_sense(varied: Iterable[list[Constraint]], numbers: list[float]) -> str | None:
    """Return the sense of all constraints if each is bounded by its own number, else None."""
    as_given = all(
        one.rhs.constant == number
        for made, number in zip(varied, numbers, strict=True)
        for one in made
    )
    senses = {str(one.sense) for made in varied for one in made}
    return senses.pop() if as_given and len(senses) == 1 else None


def common_text(varied: list[list[Constraint]]) -> str | None:
    """Return the text of the bounded expressions if it is the same for every bound."""
    texts = {" and ".join(map(_bounded_text, made)) for made in varied}
    return texts.pop() if len(texts) == 1 else None


def _bounded_text(one: Constraint) -> str:
    if one.name is not None or not one.rhs.is_number:
        return one.label
    return f"abs({one.lhs})" if one.absolute else f"{one.lhs}"


def tightest_first(numbers: list[float], sense: str | None) -> list[int]:
    """Indices of the bounds, tightest first; in the order given if `sense` is unknown."""
    if sense is None:
        return list(range(len(numbers)))
    order = np.argsort(numbers, kind="stable")
    return (order if sense == "<=" else order[::-1]).tolist()
