"""The reductions by name. A new reduction is registered here, and only here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from skbandit.selection._costs import CostMatrix, ad_means, row_effects
from skbandit.selection._ridge import choose_penalty
from skbandit.selection.reductions._all_pairs import learn_all_pairs
from skbandit.selection.reductions._filter_tree import learn_filter_tree
from skbandit.selection.reductions._one_vs_rest import learn_one_vs_rest
from skbandit.selection.reductions._rule import (
    CostSensitiveRule,
    Examples,
    Reduction,
    SharedPenalty,
    learn_regression,
)

FEW_ADS = 20
"""Number of ads up to which "auto" compares all pairs by a classifier of the user's: 190 fits.

All pairs need only know who is better, one versus rest needs probabilities. On synthetic problems
of 3, 5, 8 and 12 ads (48 of them, 400 rows), all pairs of decision trees earned far more than trees
one versus rest; of naive Bayes, as much. Logistic regressions with the default penalty earned .25,
.52, .44 and .71 of what could be gained over popularity by all pairs, and .32, .56, .55 and .72 one
versus rest, in a fifth of the time: so without a classifier, "auto" is one versus rest."""


@dataclass(frozen=True)
class RegisteredReduction:
    """A reduction with its requirements.

    Parameters
    ----------
    learn : callable
        A `Reduction` with two more keywords, `learner` and `n_jobs`.
    regresses : bool
        Whether it takes regressors, and Ridge if the user passes none, in place of classifiers.
    needs_probabilities : bool
        Whether the learner must have `predict_proba`.
    predicts_costs : bool
        Whether its rule predicts costs and chooses the lowest.
    depends_on_mask : bool
        Whether the learned problem depends on which ads compete, so that each round needs a fit of
        its own, and `learn` has a keyword `order`, of the ads. Otherwise, what is learned about an
        ad or a pair is the same in every round.
    """

    learn: Callable[..., CostSensitiveRule]
    regresses: bool = False
    needs_probabilities: bool = False
    predicts_costs: bool = False
    depends_on_mask: bool = False


REDUCTIONS = {
    "filter_tree": RegisteredReduction(learn_filter_tree, depends_on_mask=True),
    "weighted_all_pairs": RegisteredReduction(learn_all_pairs),
    "regression": RegisteredReduction(learn_regression, regresses=True, predicts_costs=True),
    "one_vs_rest": RegisteredReduction(
        learn_one_vs_rest, needs_probabilities=True, predicts_costs=True
    ),
}

WITH_COSTS = tuple(name for name, kind in REDUCTIONS.items() if kind.predicts_costs)
"""Names of the reductions that predict costs."""


def default_learner(name: str) -> Any:
    """Return the learner of a reduction if the user passes none; of an unknown one, a classifier.

    Parameters are validated in `fit`, but tags and `hasattr` ask before.
    """
    regresses = name in list(REDUCTIONS) and REDUCTIONS[name].regresses
    return Ridge() if regresses else LogisticRegression(max_iter=1000)


def choose_reduction(estimator: Any, n_ads: int, method: str) -> str:
    """Return the reduction that "auto" stands for.

    Parameters
    ----------
    estimator : classifier or None
        The learner.
    n_ads : int
        Number of ads.
    method : {"masked", "published"}
        In published rounds each needs a fit of its own, whatever the reduction.

    Returns
    -------
    str
    """
    if method == "published":
        return "filter_tree"
    if estimator is None:
        return "one_vs_rest"
    if n_ads <= FEW_ADS:
        return "weighted_all_pairs"
    return "one_vs_rest" if hasattr(estimator, "predict_proba") else "filter_tree"


def bind_learner(
    name: str,
    estimator: Any,
    examples: Examples,
    random: np.random.RandomState,
    n_jobs: int | None = None,
) -> Reduction:
    """Return a reduction to a given learner; raise if the learner is of the wrong kind.

    Parameters
    ----------
    name : str
        The reduction.
    estimator : classifier, regressor or None
        The learner; None means the default, tuned on `examples`.
    examples : Examples
        Training data.
    random : RandomState
        Draws the order of the ads in the filter tree.
    n_jobs : int or None
        Number of matches or ads learned in parallel.
    """
    kind = REDUCTIONS[name]
    learner = estimator
    if estimator is None and not kind.regresses:
        learner = SharedPenalty(shared_penalty(examples))
    given = type(learner).__name__
    if estimator is not None and not kind.regresses and is_regressor(learner):
        raise ValueError(
            f'{given} is a regressor, but the reduction "{name}" needs a classifier: pass one, or '
            "choose the reduction to regression."
        )
    probabilities = estimator is None or hasattr(learner, "predict_proba")
    if kind.needs_probabilities and not probabilities:
        raise ValueError(
            f'{given} has no predict_proba, but the reduction "{name}" compares ads by '
            "probabilities: wrap it in CalibratedClassifierCV, or choose the filter tree."
        )
    options = {"learner": learner, "n_jobs": n_jobs}
    if kind.depends_on_mask:
        options["order"] = random.permutation(examples.costs.shape[1])
    return partial(kind.learn, **options)


def shared_penalty(examples: Examples) -> float:
    """Return the penalty of ridge regressions that suits best what the costs of a row do not share.

    What all ads of a row have in common affects no comparison.
    """
    costs = examples.targets
    if np.isnan(costs).any():
        common = row_effects(costs - ad_means(costs, examples.weight))
    else:
        common = costs.mean(axis=1)
    costs -= common[:, None]
    weight = None if (examples.weight == 1.0).all() else examples.weight
    matrix = CostMatrix(costs, None, np.arange(costs.shape[1]))
    return choose_penalty(examples.X, matrix, weight)
