"""Resolved options of `SetSelectClassifier`: a pure function of its parameters and the data."""

from __future__ import annotations

from dataclasses import dataclass

from skbandit.selection._costs import check_n_select
from skbandit.selection._rounds import (
    MASKED,
    PUBLISHED_NEXT_BEST,
    PUBLISHED_RANDOM,
    UNSHIFTED_NEXT_BEST,
    UNSHIFTED_RANDOM,
    Scheme,
)
from skbandit.selection.reductions._registry import REDUCTIONS


@dataclass(frozen=True)
class RoundSettings:
    """Settings of the rounds.

    Parameters
    ----------
    scheme : Scheme
        Treatment of the ads chosen before.
    n_rounds : int
        Number of rounds to train.
    max_select : int
        Largest set that `predict` can choose.
    holes : bool
        Whether rounds choose the ads to leave out.
    include_chosen : bool
        Whether learners see which ads are excluded.
    mask_features_from : int or None
        First round whose learners see it, counted from 0. This is the second round if all ads were
        available, since no ad is then excluded in the first.
    trained_once : bool
        Whether one fit serves all rounds.
    ranked_by_cost : bool
        Whether that fit predicts costs, so that the rounds choose the lowest of them in turn.
    n_folds : int or None
        Number of folds if choices on the training rows come from learners that have not seen the
        row; None otherwise.
    """

    scheme: Scheme
    n_rounds: int
    max_select: int
    holes: bool
    include_chosen: bool
    mask_features_from: int | None
    trained_once: bool
    ranked_by_cost: bool
    n_folds: int | None


def settle_rounds(
    n_ads: int,
    n_select: int,
    *,
    all_available: bool,
    positions_differ: bool = False,
    reduction: str,
    method: str,
    include_chosen: bool | str,
    cross_fit: int | None,
    dedup: str,
    holes: bool | str,
    n_rounds: int | None,
    shift: bool = True,
) -> RoundSettings:
    """Resolve None and "auto"; raise if the parameters contradict the data or one another.

    Parameters
    ----------
    n_ads : int
        Number of ads.
    n_select : int
        m.
    all_available : bool
        Whether every ad is available in every training row.
    positions_differ : bool
        Whether the order of the chosen ads matters, which rounds that leave ads out do not learn.
    reduction, method, include_chosen, cross_fit, dedup, holes, n_rounds, shift
        As in `SetSelectClassifier`.

    Returns
    -------
    RoundSettings
    """
    check_n_select(n_select, n_ads)
    max_select = n_select if n_rounds is None else n_rounds
    if not n_select <= max_select <= n_ads:
        raise ValueError(
            f"n_rounds={n_rounds} must be at least n_select={n_select} and at most {n_ads}, the "
            "number of ads."
        )
    if holes != "auto" and holes and n_rounds is not None:
        raise ValueError(
            f"n_rounds={n_rounds} has no meaning with holes=True, where rounds choose the ads to "
            "leave out: drop one of them."
        )
    masked, kind = method == "masked", REDUCTIONS[reduction]
    sees_chosen = (
        masked and kind.depends_on_mask if include_chosen == "auto" else bool(include_chosen)
    )
    trained_once = masked and not kind.depends_on_mask and not sees_chosen
    if trained_once:
        leaves_out = False
    elif holes == "auto":
        unordered = all_available and not positions_differ
        leaves_out = masked and unordered and 2 * n_select > n_ads and n_rounds is None
    else:
        leaves_out = bool(holes)
    return RoundSettings(
        scheme=_scheme(masked, dedup, shift),
        n_rounds=max(1, n_ads - n_select) if leaves_out else max_select,
        max_select=n_ads if trained_once else max_select,
        holes=leaves_out,
        include_chosen=sees_chosen,
        mask_features_from=int(all_available) if sees_chosen else None,
        trained_once=trained_once,
        ranked_by_cost=trained_once and kind.predicts_costs,
        # published rounds without mask features would choose even more duplicates
        n_folds=cross_fit if masked or sees_chosen else None,
    )


def _scheme(masked: bool, dedup: str, shift: bool) -> Scheme:
    """The scheme of a method and its treatment of duplicates and positive costs."""
    if masked:
        return MASKED
    if not shift:
        return UNSHIFTED_RANDOM if dedup == "random" else UNSHIFTED_NEXT_BEST
    return PUBLISHED_RANDOM if dedup == "random" else PUBLISHED_NEXT_BEST
