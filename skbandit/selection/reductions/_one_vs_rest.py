"""One classifier per ad: the probability that the ad is good, converted to a cost.

With costs of an ad in [low, high], a row is an example of "good" with weight (high - c) / (high -
low), and of "bad" with the rest. The best probability is then (high - E[c|x]) / (high - low), so a
calibrated classifier yields the expected cost, whatever the distribution. If the cost has two
values only, such as clicks, each row has a single label.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skbandit.selection._cost_models import CostModels, ExpectedCost, constant
from skbandit.selection.reductions._rule import Examples, LowestCost, fit_binary
from skbandit.utils._fitting import in_parallel


def learn_one_vs_rest(examples: Examples, *, learner: Any, n_jobs: int | None = None) -> LowestCost:
    """Learn each ad from the rows where it is allowed and its cost is observed.

    An ad without such rows is predicted to cost the mean over all ads.
    """
    X, costs, weight = examples.X, examples.costs, examples.weight
    observed = ~np.isnan(examples.targets)
    mean = float(costs[observed].mean()) if observed.any() else 0.0
    models = in_parallel(
        (
            partial(_learn_ad, learner, X[rows], costs[rows, a], weight[rows], mean)
            for a, rows in enumerate(map(np.flatnonzero, observed.T))
        ),
        n_jobs,
    )
    return LowestCost(CostModels(models))


def _learn_ad(learner: Any, X: Any, costs: np.ndarray, weight: np.ndarray, mean: float) -> Any:
    """Learn one ad from its own rows."""
    if not len(costs):
        return constant(mean)
    low, high = float(costs.min()), float(costs.max())
    if low == high:
        return constant(low)
    goodness = (high - costs) / (high - low)
    good, bad = np.flatnonzero(goodness > 0), np.flatnonzero(goodness < 1)
    rows = np.concatenate([good, bad])
    share = np.concatenate([goodness[good], 1.0 - goodness[bad]])
    label = np.repeat([1, 0], [len(good), len(bad)])
    classifier = fit_binary(learner, X[rows], label, share * weight[rows])
    return ExpectedCost(classifier, np.array([high, low]))
