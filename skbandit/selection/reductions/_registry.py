"""The reductions by name. A new reduction is registered here, and only here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from skbandit.selection.reductions._all_pairs import learn_all_pairs
from skbandit.selection.reductions._filter_tree import learn_filter_tree
from skbandit.selection.reductions._one_vs_rest import learn_one_vs_rest
from skbandit.selection.reductions._regression import learn_regression
from skbandit.selection.reductions._rule import CostSensitiveRule, Reduction

default_classifier: Callable[[], Any] = partial(LogisticRegression, max_iter=1000)


@dataclass(frozen=True)
class RegisteredReduction:
    """A reduction with its requirements.

    Parameters
    ----------
    learn : callable
        A `Reduction` with two more keywords, `learner` and `n_jobs`.
    default_learner : callable
        Makes the learner to use if the user passes none or, if `tunes_itself`, one like that which
        is tuned.
    needs_classifier : bool
        Whether a regressor is refused as the learner.
    needs_probabilities : bool
        Whether the learner must have `predict_proba`.
    tunes_itself : bool
        Whether `learn` takes None for a learner that it tunes.
    predicts_costs : bool
        Whether its rule predicts costs and chooses the lowest.
    depends_on_mask : bool
        Whether the learned problem depends on which ads compete, so that each round needs a fit of
        its own. Otherwise, what is learned about an ad or a pair is the same in every round.
    """

    learn: Callable[..., CostSensitiveRule]
    default_learner: Callable[[], Any] = default_classifier
    needs_classifier: bool = True
    needs_probabilities: bool = False
    tunes_itself: bool = False
    predicts_costs: bool = False
    depends_on_mask: bool = False


REDUCTIONS = {
    "filter_tree": RegisteredReduction(learn_filter_tree, depends_on_mask=True),
    "weighted_all_pairs": RegisteredReduction(learn_all_pairs),
    "regression": RegisteredReduction(
        learn_regression,
        default_learner=Ridge,
        needs_classifier=False,
        tunes_itself=True,
        predicts_costs=True,
    ),
    "one_vs_rest": RegisteredReduction(
        learn_one_vs_rest, needs_probabilities=True, predicts_costs=True
    ),
}

WITH_COSTS = tuple(name for name, kind in REDUCTIONS.items() if kind.predicts_costs)
"""Names of the reductions that predict costs."""


def default_learner(name: str) -> Any:
    """The learner of a reduction if the user passes none; of an unknown one, a classifier.

    Parameters are validated in `fit`, but tags and `hasattr` ask before.
    """
    known = name in list(REDUCTIONS)
    return REDUCTIONS[name].default_learner() if known else default_classifier()


def bind_learner(name: str, estimator: Any, n_jobs: int | None = None) -> Reduction:
    """A reduction to a given learner; raise if the learner is of the wrong kind."""
    kind = REDUCTIONS[name]
    learner = default_learner(name) if estimator is None else estimator
    given = type(learner).__name__
    if kind.needs_classifier and is_regressor(learner):
        raise ValueError(
            f'{given} is a regressor, but the reduction "{name}" needs a classifier: pass one, or '
            "choose the reduction to regression."
        )
    if kind.needs_probabilities and not hasattr(learner, "predict_proba"):
        raise ValueError(
            f'{given} has no predict_proba, but the reduction "{name}" compares ads by '
            "probabilities: wrap it in CalibratedClassifierCV, or choose the filter tree."
        )
    if estimator is None and kind.tunes_itself:
        learner = None
    return partial(kind.learn, learner=learner, n_jobs=n_jobs)
